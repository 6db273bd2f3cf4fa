//! Messages of the caller: received, sent, answered. See `ask.rs`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustler::types::LocalPid;
use rustler::Encoder;

use crate::ask::{Answer, Asking, Posted, What};
use crate::call::{with_this, Call};
use crate::OwnedTerm;

/// Waits for the next message of the caller: of a native process, or of any process that awaits
/// this call. The function must be `awaited` (or of mode `"threaded"`).
///
/// ```no_run
/// use fairnif::{receive, reply};
///
/// #[fairnif::nif(awaited)]
/// async fn counter(first: i64) -> Result<i64, fairnif::Error> {
///     let mut n = first;
///     loop {
///         let message = receive().await;
///         if let Some((from, request)) = message.as_call() {
///             n += request.decode::<i64>()?;
///             reply(from, n);
///         }
///     }
/// }
/// ```
///
/// It may be joined and selected with others. With [`sleep`](crate::sleep) that costs nothing. A
/// call that also waits for a descriptor, for another thread or for messages of several tags looks
/// at one after the other, every 10 ms: where that is too late, let what it waits for come as a
/// message. A message that has come for a future which is dropped before it has answered is the
/// next one's.
pub fn receive() -> Receive {
    Receive { tag: None, asking: Asking::default() }
}

/// What [`receive`] returns.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Receive {
    tag: Option<OwnedTerm>,
    asking: Asking,
}

impl Receive {
    /// The first message with this tag: the message is the tag, or a tuple whose first element it
    /// is; of a reference also one whose second element it is, as of `{'DOWN', Ref, ...}`. The
    /// others stay in the mailbox.
    pub fn tagged(mut self, tag: impl Encoder) -> Receive {
        self.tag = Some(OwnedTerm::new(tag));
        self
    }

    /// Waits so long at most, from now on; then it answers `None`. With zero it looks whether there
    /// is one.
    pub fn within(self, time: Duration) -> ReceiveWithin {
        ReceiveWithin { receive: self, until: Instant::now().checked_add(time) }
    }

    fn poll_until(&mut self, until: Option<Instant>, context: &Context) -> Poll<Option<OwnedTerm>> {
        let tag = &self.tag;
        let make = || What::Message { tag: tag.clone(), until };
        self.asking.poll("receive", context, make).map(|answer| match answer {
            Answer::Came(message) => Some(message),
            _ => None,
        })
    }
}

impl Future for Receive {
    type Output = OwnedTerm;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<OwnedTerm> {
        match self.poll_until(None, context) {
            Poll::Ready(Some(message)) => Poll::Ready(message),
            _ => Poll::Pending,
        }
    }
}

/// What [`Receive::within`] returns.
#[must_use = "a future does nothing unless it is awaited"]
pub struct ReceiveWithin {
    receive: Receive,
    /// `None`: for longer than can be told.
    until: Option<Instant>,
}

impl Future for ReceiveWithin {
    type Output = Option<OwnedTerm>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<OwnedTerm>> {
        let until = self.until;
        self.receive.poll_until(until, context)
    }
}

/// `To ! Message`: to a pid, a registered name, `{Name, Node}` or an alias, on any node.
///
/// It does not wait: the caller sends it at the end of this slice, or when the future waits next.
/// What is sent so arrives in the order in which it was sent. A name that nobody has is ignored.
/// The function must be `awaited` (or of mode `"threaded"`).
///
/// # Panics
/// Outside of a fair function, and on another thread than its own.
pub fn send(to: impl Encoder, message: impl Encoder) {
    post("send", to, message, false);
}

/// Answers a call, whose `from` [`OwnedTerm::as_call`] has found; otherwise as [`send`].
pub fn reply(from: impl Encoder, value: impl Encoder) {
    post("reply", from, value, true);
}

fn post(what: &str, to: impl Encoder, message: impl Encoder, is_reply: bool) {
    let posted = Posted { to: OwnedTerm::new(to), message: OwnedTerm::new(message), is_reply };
    with_this(what, |call| call.asks.post(posted));
}

/// The pid of the caller: of the native process itself. `None` in a `cleanup`, which has none.
///
/// # Panics
/// Outside of a fair function, and on another thread than its own.
pub fn caller() -> Option<LocalPid> {
    let pid = with_this("caller", Call::caller);
    // Safety: a local pid is a term of any environment, and in `ErlNifPid` as it is.
    OwnedTerm::made(|_| pid).decode().ok()
}
