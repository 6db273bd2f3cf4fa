//! The caller: its pid, and what is sent in its name.

use std::sync::Arc;

use rustler::types::LocalPid;
use rustler::Encoder;

use crate::abi::Task;
use crate::call::asks::Outbox;
use crate::OwnedTerm;

/// The process that called, in whose name messages are sent. In a native process it is the process
/// itself.
///
/// A fair function receives one for each parameter of this type, as it does a
/// [`Ticker`](crate::Ticker). A `Caller` may be cloned, stored and sent to another thread.
///
/// ```no_run
/// use fairnif::{receive, Caller};
///
/// #[fairnif::nif(may_wait)]
/// async fn counter(caller: Caller, first: i64) -> Result<i64, fairnif::Error> {
///     let mut n = first;
///     loop {
///         let message = receive().await;
///         if let Some((from, request)) = message.as_call() {
///             n += request.decode::<i64>()?;
///             caller.reply(from, n);
///         }
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Caller {
    pid: LocalPid,
    outbox: Arc<Outbox>,
}

impl Caller {
    /// Of a call that begins.
    ///
    /// # Safety
    /// The task is that of the body that calls this.
    pub(crate) unsafe fn new(task: *mut Task, outbox: Arc<Outbox>) -> Option<Caller> {
        let mut pid = 0;
        ((*(*task).ops).caller)(task, &mut pid);
        // A local pid is a term of any environment, and in `ErlNifPid` as it is.
        let pid = OwnedTerm::made(|_| pid).decode().ok()?;
        Some(Caller { pid, outbox })
    }

    /// Its pid.
    pub fn pid(&self) -> LocalPid {
        self.pid
    }

    /// `To ! Message`: to a pid, a registered name, `{Name, Node}` or an alias, on any node.
    ///
    /// It does not wait: the caller sends the message at the end of this slice, or when the call waits
    /// next. Messages arrive in the order in which they were sent. An unregistered name is ignored. The
    /// function must be `may_wait` (or have mode `"threaded"`).
    ///
    /// On another thread, the message waits until the call pauses, which this does not bring about.
    /// After the call has ended, the message is dropped.
    pub fn send(&self, to: impl Encoder, message: impl Encoder) {
        self.outbox.post(OwnedTerm::new(to), OwnedTerm::new(message), false);
    }

    /// Replies to a call; [`OwnedTerm::as_call`] returns its `from`. Otherwise like [`Caller::send`].
    pub fn reply(&self, from: impl Encoder, value: impl Encoder) {
        self.outbox.post(OwnedTerm::new(from), OwnedTerm::new(value), true);
    }
}
