//! What a call waits for: a time, a descriptor; any number of each.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use polling::{Event, Events, PollMode, Poller};

use crate::abi;
use crate::call::{quietly, with_this, Call};
use crate::waker::{Rest, Wakes};

/// How long a wait takes at most where there is no descriptor to be woken through.
const NO_DESCRIPTOR_MS: i32 = 10;

/// What a wait answers when it is the call that ends: nothing of what is waited for.
const CANCELLED: i32 = -libc::ECANCELED;

/// One thing that is waited for. Shared by the future that waits and the call that polls it.
pub(crate) struct Source {
    what: What,
    /// Nobody waits any more.
    gone: AtomicBool,
    waiter: Mutex<Waiter>,
}

enum What {
    Time(Instant),
    /// A duplicate: its owner may close the descriptor and forget the future.
    Fd(OwnedFd, Interest),
}

/// `abi::READ` or `abi::WRITE`.
type Interest = u32;

#[derive(Default)]
struct Waiter {
    /// `None`: the call itself, which polls again after each wait.
    waker: Option<Waker>,
    result: Option<io::Result<()>>,
}

impl Source {
    fn new(what: What) -> Arc<Source> {
        Arc::new(Source { what, gone: AtomicBool::new(false), waiter: Mutex::default() })
    }

    fn waiter(&self) -> std::sync::MutexGuard<'_, Waiter> {
        self.waiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pollfd(&self) -> Option<libc::pollfd> {
        match &self.what {
            What::Fd(fd, events) => Some(pollfd(fd.as_fd(), *events)),
            What::Time(_) => None,
        }
    }

    fn finish(&self, result: io::Result<()>) {
        self.gone.store(true, Ordering::Relaxed);
        self.waiter().result = Some(result);
        self.tell();
    }

    /// Whoever waits is to poll again.
    fn tell(&self) {
        let waker = self.waiter().waker.take();
        wake(waker);
    }

    /// The result; else whoever polls is told when there is one.
    fn poll(&self, call: &Call, context: &Context) -> Option<io::Result<()>> {
        let mut waiter = self.waiter();
        if waiter.result.is_none() {
            let waker = context.waker();
            waiter.waker = (!call.wakes.is_root(waker)).then(|| waker.clone());
        }
        waiter.result.take()
    }
}

/// Somebody's waker may be his own code.
pub(crate) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        quietly(|| waker.wake());
    }
}

/// A source's place in the future that waits for it. A future may be moved from one call to another:
/// it gets a source of that one then. The other would end it for itself, with errors of its own, and
/// tell nobody.
#[derive(Default)]
struct Registered {
    source: Option<Arc<Source>>,
    /// Which call looks after it.
    call: u64,
}

impl Registered {
    fn poll(
        &mut self,
        what: &str,
        context: &Context,
        make: impl FnOnce() -> io::Result<What>,
    ) -> Poll<io::Result<()>> {
        with_this(what, |call| {
            if self.call != call.id() {
                self.leave();
                self.call = call.id();
            }
            if self.source.is_none() {
                let source = Source::new(make()?);
                call.add_source(source.clone());
                self.source = Some(source);
            }
            let Some(source) = &self.source else { unreachable!() };
            if let Some(result) = source.poll(call, context) {
                self.source = None;
                return Poll::Ready(result);
            }
            Poll::Pending
        })
    }

    fn leave(&mut self) {
        if let Some(source) = self.source.take() {
            source.gone.store(true, Ordering::Relaxed);
            // Dropped here: its code is the author's, and may panic.
            let waker = source.waiter().waker.take();
            drop(waker);
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.leave();
    }
}

// -- the futures ----------------------------------------------------------------------------------

/// Waits for that long, and holds nothing meanwhile. Rounded up to milliseconds.
///
/// The function must be `awaited` (or of mode `"threaded"`).
///
/// ```no_run
/// # use std::time::Duration;
/// #[fairnif::nif(awaited)]
/// async fn nap(ms: u64) -> u64 {
///     fairnif::sleep(Duration::from_millis(ms)).await;
///     ms
/// }
/// ```
pub fn sleep(duration: Duration) -> Sleep {
    Sleep { until: Instant::now().checked_add(duration), registered: Registered::default() }
}

/// What [`sleep`] returns.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    /// `None`: for longer than can be told.
    until: Option<Instant>,
    registered: Registered,
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
        self.registered.poll("sleep", context, || Ok(What::Time(until))).map(|_| ())
    }
}

/// Waits until the descriptor can be read, or has an error or a hang-up: read, and see.
///
/// What is ready may be gone by the time it is read: use a non-blocking descriptor, and wait again
/// when there is nothing. Costs a duplicate of the descriptor where it has to wait. The function
/// must be `awaited` (or of mode `"threaded"`).
///
/// ```no_run
/// # use std::{io::{ErrorKind, Read}, net::TcpStream};
/// #[fairnif::nif(awaited)]
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

/// Waits until the descriptor can be written; see [`readable`].
pub fn writable<F: AsFd + ?Sized>(fd: &F) -> Ready<'_> {
    Ready::new(fd.as_fd(), abi::WRITE)
}

/// What [`readable`] and [`writable`] return.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Ready<'fd> {
    fd: BorrowedFd<'fd>,
    events: Interest,
    registered: Registered,
}

impl<'fd> Ready<'fd> {
    fn new(fd: BorrowedFd<'fd>, events: Interest) -> Self {
        Ready { fd, events, registered: Registered::default() }
    }
}

impl Future for Ready<'_> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Ready { fd, events, .. } = *self;
        if self.registered.source.is_none() && is_ready(fd, events) {
            return Poll::Ready(Ok(()));
        }
        self.registered.poll("a descriptor was waited for", context, || {
            Ok(What::Fd(fd.try_clone_to_owned()?, events))
        })
    }
}

fn is_ready(fd: BorrowedFd, events: Interest) -> bool {
    ready_of(&mut [pollfd(fd, events)]) > 0
}

fn pollfd(fd: BorrowedFd, events: Interest) -> libc::pollfd {
    let events = if events == abi::READ { libc::POLLIN } else { libc::POLLOUT };
    libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }
}

/// How many of them are ready. Does not wait.
fn ready_of(polls: &mut [libc::pollfd]) -> usize {
    if polls.is_empty() {
        return 0;
    }
    // Safety: so many structs.
    let ready = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, 0) };
    usize::try_from(ready).unwrap_or(0)
}

// -- all sources of a call ------------------------------------------------------------------------

#[derive(Default)]
pub(crate) struct Sources {
    entries: RefCell<Vec<Entry>>,
    last_key: Cell<usize>,
}

struct Entry {
    source: Arc<Source>,
    key: usize,
    /// The poller knows it.
    added: bool,
}

impl Entry {
    fn fd(&self) -> Option<(RawFd, Interest)> {
        match &self.source.what {
            What::Fd(fd, events) => Some((fd.as_raw_fd(), *events)),
            What::Time(_) => None,
        }
    }

    fn forget(&mut self, poller: Option<&Poller>) {
        if let (true, What::Fd(fd, _), Some(poller)) = (self.added, &self.source.what, poller) {
            let _ = poller.delete(fd);
        }
        self.added = false;
    }
}

impl Sources {
    pub(crate) fn add(&self, source: Arc<Source>) {
        let key = self.last_key.get() + 1;
        self.last_key.set(key);
        self.entries.borrow_mut().push(Entry { source, key, added: false });
    }

    /// Nothing is watched any more. A future that was moved to another call is polled there, and
    /// goes on, also where a set of futures polls only those that were woken.
    pub(crate) fn close(&self, wakes: &Wakes) {
        for mut entry in self.entries.take() {
            entry.forget(wakes.existing_poller());
            entry.source.tell();
        }
    }

    /// Waits by `wait`, the runtime's, until one of them is there or the call is woken.
    pub(crate) fn wait(&self, wakes: &Wakes, wait: impl Fn(RawFd, u32, i32) -> i32) {
        self.drop_gone(wakes);
        let timeout = self.timeout_ms();
        let fds = self.fds();
        match (wakes.rest(fds.len() > 1), &fds[..]) {
            (Rest::Woken, _) => {}
            (Rest::With(poller), _) => self.wait_with(poller, &fds, timeout, wait),
            (Rest::Alone, [source, ..]) => {
                if let What::Fd(fd, events) = &source.what {
                    let answer = wait(fd.as_raw_fd(), *events, timeout);
                    if answer != 0 && answer != CANCELLED {
                        source.finish(result_of(answer));
                    }
                }
            }
            (Rest::Alone, []) => {
                wait(-1, 0, timeout);
            }
            (Rest::NoDescriptor, []) => {
                wait(-1, 0, sooner(timeout, NO_DESCRIPTOR_MS));
            }
            (Rest::NoDescriptor, _) => {
                let error = || Err(io::Error::from_raw_os_error(libc::EMFILE));
                fds.iter().for_each(|source| source.finish(error()));
            }
        }
        self.finish_times();
    }

    /// What is there already, without a wait.
    pub(crate) fn look(&self, wakes: &Wakes) {
        self.drop_gone(wakes);
        if self.entries.borrow().is_empty() {
            return;
        }
        self.finish_times();
        let fds = self.fds();
        let mut polls: Vec<_> = fds.iter().filter_map(|source| source.pollfd()).collect();
        if ready_of(&mut polls) == 0 {
            return;
        }
        for (source, poll) in fds.iter().zip(&polls) {
            if poll.revents != 0 {
                source.finish(Ok(()));
            }
        }
    }

    fn wait_with(
        &self,
        poller: &Poller,
        fds: &[Arc<Source>],
        timeout: i32,
        wait: impl Fn(RawFd, u32, i32) -> i32,
    ) {
        if !self.watch(poller) {
            return;
        }
        match wait(poller.as_fd().as_raw_fd(), abi::READ, timeout) {
            CANCELLED => {}
            // Only who waits for a descriptor is told; else it would be asked again at once.
            ..0 if fds.is_empty() => {
                wait(-1, 0, sooner(timeout, NO_DESCRIPTOR_MS));
            }
            error @ ..0 => fds.iter().for_each(|source| source.finish(result_of(error))),
            _ => self.finish_ready(poller),
        }
    }

    /// False when there is an error to be told instead of waiting.
    fn watch(&self, poller: &Poller) -> bool {
        let mut failed = vec![];
        for entry in self.entries.borrow_mut().iter_mut().filter(|entry| !entry.added) {
            let Some((fd, events)) = entry.fd() else {
                continue;
            };
            let event = Event::new(entry.key, events == abi::READ, events == abi::WRITE);
            // Safety: `forget` takes it out before the descriptor is closed.
            match unsafe { poller.add_with_mode(fd, event, PollMode::Oneshot) } {
                Ok(()) => entry.added = true,
                Err(error) => failed.push((entry.source.clone(), error)),
            }
        }
        let all = failed.is_empty();
        failed.into_iter().for_each(|(source, error)| source.finish(Err(error)));
        all
    }

    fn finish_ready(&self, poller: &Poller) {
        let mut events = Events::new();
        // An interrupted look finds them the next time.
        let _ = poller.wait(&mut events, Some(Duration::ZERO));
        for event in events.iter() {
            let source = self.find(|entry| entry.key == event.key);
            source.iter().for_each(|source| source.finish(Ok(())));
        }
    }

    pub(crate) fn finish_times(&self) {
        let now = Instant::now();
        let due = |entry: &Entry| matches!(entry.source.what, What::Time(until) if until <= now);
        self.find(due).iter().for_each(|source| source.finish(Ok(())));
    }

    /// Not with the list borrowed is anybody woken.
    fn find(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Arc<Source>> {
        let entries = self.entries.borrow();
        entries.iter().filter(|entry| wanted(entry)).map(|entry| entry.source.clone()).collect()
    }

    fn fds(&self) -> Vec<Arc<Source>> {
        self.find(|entry| entry.fd().is_some())
    }

    /// Only for times, if for anything.
    pub(crate) fn are_times(&self, wakes: &Wakes) -> bool {
        self.drop_gone(wakes);
        self.entries.borrow().iter().all(|entry| entry.fd().is_none())
    }

    fn drop_gone(&self, wakes: &Wakes) {
        self.entries.borrow_mut().retain_mut(|entry| {
            let gone = entry.source.gone.load(Ordering::Relaxed);
            if gone {
                entry.forget(wakes.existing_poller());
            }
            !gone
        });
    }

    /// To the first of the times; -1 without any.
    pub(crate) fn timeout_ms(&self) -> i32 {
        let entries = self.entries.borrow();
        let times = entries.iter().filter_map(|entry| match entry.source.what {
            What::Time(until) => Some(until),
            What::Fd(..) => None,
        });
        ms_until(times.min())
    }
}

/// Rounded up; -1: for ever.
pub(crate) fn ms_until(until: Option<Instant>) -> i32 {
    until.map_or(-1, |until| {
        let left = until.saturating_duration_since(Instant::now());
        i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
    })
}

/// Of two times that are waited for at most.
pub(crate) fn sooner(one: i32, other: i32) -> i32 {
    match (one, other) {
        (..0, _) => other,
        (_, ..0) => one,
        _ => one.min(other),
    }
}

/// What the runtime's wait answers: events, or a negative error number.
fn result_of(answer: i32) -> io::Result<()> {
    if answer < 0 {
        Err(io::Error::from_raw_os_error(-answer))
    } else {
        Ok(())
    }
}
