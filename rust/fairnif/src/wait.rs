//! Futures of a time and of a descriptor; and how a future waits in the call that polls it.

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::abi;
use crate::call::sources::{is_ready, Interest, What};
use crate::call::wanted::Wanted;
use crate::call::{with_this, Call};

/// A future's place in the call that polls it. A future may be moved from one call to another: it
/// registers there, since the other call ends it for itself, with errors of its own, and wakes no
/// other.
pub(crate) struct Waiting<W, T> {
    wanted: Option<Arc<Wanted<W, T>>>,
    /// Which call looks after it.
    call: u64,
}

impl<W, T> Waiting<W, T> {
    pub(crate) fn new() -> Waiting<W, T> {
        Waiting { wanted: None, call: 0 }
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.wanted.is_some()
    }

    /// `make` says what is waited for, or at once how it ends; `add` gives it to the call.
    pub(crate) fn poll(
        &mut self,
        name: &str,
        context: &Context,
        make: impl FnOnce() -> Result<W, T>,
        add: impl FnOnce(&Call, Arc<Wanted<W, T>>),
    ) -> Poll<T> {
        with_this(name, |call| {
            let poll = |wanted: &Arc<Wanted<W, T>>| wanted.poll(Some(&call.wakes), context);
            let answer = self.wanted.as_ref().and_then(poll);
            if let Some(answer) = answer {
                self.wanted = None;
                return Poll::Ready(answer);
            }
            if self.wanted.is_none() || self.call != call.id() {
                drop(self.leave());
                let wanted = match make() {
                    Ok(what) => Wanted::new(what),
                    Err(answer) => return Poll::Ready(answer),
                };
                poll(&wanted);
                add(call, wanted.clone());
                (self.wanted, self.call) = (Some(wanted), call.id());
            }
            Poll::Pending
        })
    }

    /// The answer that was not taken, and whose it is.
    pub(crate) fn leave(&mut self) -> Option<(T, u64)> {
        Some((self.wanted.take()?.leave()?, self.call))
    }
}

impl<W, T> Drop for Waiting<W, T> {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

/// Waits for `time`, rounded up to milliseconds, and occupies no scheduler and no thread meanwhile.
///
/// The function must be `may_wait` (or have mode `"threaded"`).
///
/// ```no_run
/// # use std::time::Duration;
/// #[fairnif::nif(may_wait)]
/// async fn nap(ms: u64) -> u64 {
///     fairnif::sleep(Duration::from_millis(ms)).await;
///     ms
/// }
/// ```
pub fn sleep(duration: Duration) -> Sleep {
    Sleep { until: Instant::now().checked_add(duration), waiting: Waiting::new() }
}

/// What [`sleep`] returns.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    /// `None`: for longer than an `Instant` can hold.
    until: Option<Instant>,
    waiting: Waiting<What, io::Result<()>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(until) = self.until else {
            return Poll::Pending;
        };
        if Instant::now() >= until {
            return Poll::Ready(());
        }
        let add = |call: &Call, source| call.sources.add(source);
        self.waiting.poll("sleep", context, || Ok(What::Time(until)), add).map(|_| ())
    }
}

/// Waits until the descriptor can be read, or has an error or a hang-up. Read it to find out which.
///
/// The data may be gone by the time it is read: use a non-blocking descriptor, and wait again if there
/// is nothing. Duplicates the descriptor if it has to wait. The function must be `may_wait` (or have
/// mode `"threaded"`).
///
/// ```no_run
/// # use std::{io::{ErrorKind, Read}, net::TcpStream};
/// #[fairnif::nif(may_wait)]
/// async fn first_byte(host: String) -> Result<u8, fairnif::Error> {
///     let mut stream = TcpStream::connect(host)?;
///     stream.set_nonblocking(true)?;
///     let mut byte = [0];
///     loop {
///         match stream.read(&mut byte) {
///             Err(e) if e.kind() == ErrorKind::WouldBlock => fairnif::readable(&stream).await?,
///             Err(e) => return Err(e.into()),
///             Ok(_) => return Ok(byte[0]),
///         }
///     }
/// }
/// ```
pub fn readable<F: AsFd + ?Sized>(fd: &F) -> Ready<'_> {
    Ready::new(fd.as_fd(), abi::READ)
}

/// Waits until the descriptor can be written. Otherwise like [`readable`].
pub fn writable<F: AsFd + ?Sized>(fd: &F) -> Ready<'_> {
    Ready::new(fd.as_fd(), abi::WRITE)
}

/// What [`readable`] and [`writable`] return.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Ready<'fd> {
    fd: BorrowedFd<'fd>,
    events: Interest,
    waiting: Waiting<What, io::Result<()>>,
}

impl<'fd> Ready<'fd> {
    fn new(fd: BorrowedFd<'fd>, events: Interest) -> Self {
        Ready { fd, events, waiting: Waiting::new() }
    }
}

impl Future for Ready<'_> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Ready { fd, events, .. } = *self;
        if !self.waiting.is_registered() && is_ready(fd, events) {
            return Poll::Ready(Ok(()));
        }
        let make = || match fd.try_clone_to_owned() {
            Ok(fd) => Ok(What::Fd(fd, events)),
            Err(error) => Err(Err(error)),
        };
        let add = |call: &Call, source| call.sources.add(source);
        self.waiting.poll("a descriptor was waited for", context, make, add)
    }
}
