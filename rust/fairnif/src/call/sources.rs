//! What a call waits for: times and descriptors, any number of each.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use polling::{Event, Events, PollMode, Poller};

use super::waker::{Rest, Wakes};
use super::wanted::Wanted;
use crate::abi;

/// How long a wait takes at most where there is no descriptor to be woken through.
const NO_DESCRIPTOR_MS: i32 = 10;

/// What a wait answers when it is the call that ends: nothing of what is waited for.
const CANCELLED: i32 = -libc::ECANCELED;

pub(crate) type Source = Wanted<What, io::Result<()>>;

pub(crate) enum What {
    Time(Instant),
    /// A duplicate: its owner may close the descriptor and forget the future.
    Fd(OwnedFd, Interest),
}

/// `abi::READ` or `abi::WRITE`.
pub(crate) type Interest = u32;

impl Source {
    fn fd(&self) -> Option<(&OwnedFd, Interest)> {
        match &self.what {
            What::Fd(fd, events) => Some((fd, *events)),
            What::Time(_) => None,
        }
    }

    fn time(&self) -> Option<Instant> {
        match self.what {
            What::Time(until) => Some(until),
            What::Fd(..) => None,
        }
    }
}

pub(crate) fn is_ready(fd: BorrowedFd, events: Interest) -> bool {
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
    // Safety: as many structs as said.
    let ready = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, 0) };
    usize::try_from(ready).unwrap_or(0)
}

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
    fn forget(&mut self, poller: Option<&Poller>) {
        if let (true, Some((fd, _)), Some(poller)) = (self.added, self.source.fd(), poller) {
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
    /// continues, also where a set of futures polls only those that were woken.
    pub(crate) fn close(&self, wakes: &Wakes) {
        for mut entry in self.entries.take() {
            entry.forget(wakes.existing_poller());
            entry.source.wake();
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
                if let Some((fd, events)) = source.fd() {
                    let answer = wait(fd.as_raw_fd(), events, timeout);
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
                finish_all(&fds, || result_of(-libc::EMFILE));
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
        let poll_of =
            |source: &Arc<Source>| source.fd().map(|(fd, events)| pollfd(fd.as_fd(), events));
        let mut polls: Vec<_> = fds.iter().filter_map(poll_of).collect();
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
            // Only a wait for a descriptor learns of it; else it would be asked again at once.
            ..0 if fds.is_empty() => {
                wait(-1, 0, sooner(timeout, NO_DESCRIPTOR_MS));
            }
            error @ ..0 => finish_all(fds, || result_of(error)),
            _ => self.finish_ready(poller),
        }
    }

    /// False when there is an error to report instead of waiting.
    fn watch(&self, poller: &Poller) -> bool {
        let mut failed = vec![];
        for entry in self.entries.borrow_mut().iter_mut().filter(|entry| !entry.added) {
            let Some((fd, events)) = entry.source.fd() else {
                continue;
            };
            let event = Event::new(entry.key, events == abi::READ, events == abi::WRITE);
            // Safety: `forget` takes it out before the descriptor is closed.
            match unsafe { poller.add_with_mode(fd.as_raw_fd(), event, PollMode::Oneshot) } {
                Ok(()) => entry.added = true,
                Err(error) => failed.push((entry.source.clone(), error)),
            }
        }
        let all = failed.is_empty();
        for (source, error) in failed {
            source.finish(Err(error));
        }
        all
    }

    fn finish_ready(&self, poller: &Poller) {
        let mut events = Events::new();
        // An interrupted look finds them the next time.
        let _ = poller.wait(&mut events, Some(Duration::ZERO));
        for event in events.iter() {
            finish_all(&self.find(|entry| entry.key == event.key), || Ok(()));
        }
    }

    pub(crate) fn finish_times(&self) {
        let now = Instant::now();
        let due = |entry: &Entry| entry.source.time().is_some_and(|until| until <= now);
        finish_all(&self.find(due), || Ok(()));
    }

    /// Not with the list borrowed is anybody woken.
    fn find(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Arc<Source>> {
        let entries = self.entries.borrow();
        entries.iter().filter(|entry| wanted(entry)).map(|entry| entry.source.clone()).collect()
    }

    fn fds(&self) -> Vec<Arc<Source>> {
        self.find(|entry| entry.source.fd().is_some())
    }

    /// Only for times, if for anything.
    pub(crate) fn are_times(&self, wakes: &Wakes) -> bool {
        self.drop_gone(wakes);
        self.entries.borrow().iter().all(|entry| entry.source.fd().is_none())
    }

    fn drop_gone(&self, wakes: &Wakes) {
        self.entries.borrow_mut().retain_mut(|entry| {
            let wanted = entry.source.is_wanted();
            if !wanted {
                entry.forget(wakes.existing_poller());
            }
            wanted
        });
    }

    /// To the first of the times; -1 without any.
    pub(crate) fn timeout_ms(&self) -> i32 {
        let entries = self.entries.borrow();
        ms_until(entries.iter().filter_map(|entry| entry.source.time()).min())
    }
}

fn finish_all(sources: &[Arc<Source>], result: impl Fn() -> io::Result<()>) {
    for source in sources {
        source.finish(result());
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
