//! How a call is woken, from any thread.
//!
//! Most calls never need it. So the waker of a poll is a reference to [`Wakes`] on the body's
//! stack, and what is shared with other threads is made when that waker is cloned.

use std::mem::ManuallyDrop;
use std::task::{RawWaker, RawWakerVTable, Waker};

// ../../../tests/loom has other ones for these.
use super::sync::{fence, waker, Arc, AtomicBool, OnceLock, Ordering, Poller};

#[derive(Default)]
pub(crate) struct Wakes {
    woken: AtomicBool,
    shared: OnceLock<Arc<Shared>>,
    root: OnceLock<Waker>,
}

/// What clones of the waker own.
#[derive(Default)]
pub(crate) struct Shared {
    woken: AtomicBool,
    /// There while the call waits for more than a single descriptor.
    poller: OnceLock<Poller>,
}

/// How a call that has nothing to do waits.
pub(crate) enum Rest<'a> {
    /// Not at all: it was woken.
    Woken,
    /// By itself: nothing can wake it.
    Alone,
    /// With this, which a wake makes ready.
    With(&'a Poller),
    /// There is no descriptor left for a poller.
    NoDescriptor,
}

impl Wakes {
    /// The waker that polls are given. It must not move: `Wakes` lies in a `Call`, which does not.
    pub(crate) fn root(&self) -> &Waker {
        self.root.get_or_init(|| {
            let data = std::ptr::from_ref(self).cast();
            // Safety: the functions of the table need `Wakes` alive. Nothing owns this waker but
            // `Wakes` itself: others have it for a poll, and what they clone is another one.
            unsafe { Waker::new(data, &ROOT) }
        })
    }

    pub(crate) fn is_root(&self, waker: &Waker) -> bool {
        self.root.get().is_some_and(|root| root.will_wake(waker))
    }

    pub(crate) fn clear(&self) {
        self.woken.store(false, Ordering::Relaxed);
        if let Some(shared) = self.shared.get() {
            // A read-modify-write: what the waker wrote before is seen by the poll that follows.
            shared.woken.swap(false, Ordering::AcqRel);
        }
    }

    pub(crate) fn are_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
            || self.shared.get().is_some_and(|shared| shared.woken.load(Ordering::Acquire))
    }

    /// After a poll, and before the wait; `several`: it needs a poller anyhow.
    pub(crate) fn rest(&self, several: bool) -> Rest<'_> {
        if several || self.are_shared() {
            let poller = self.poller();
            match poller {
                _ if self.are_woken() => Rest::Woken,
                Some(poller) => Rest::With(poller),
                None => Rest::NoDescriptor,
            }
        } else if self.are_woken() {
            // By the last one that had a waker, and dropped it.
            Rest::Woken
        } else {
            Rest::Alone
        }
    }

    /// Has anybody but the call itself a waker?
    pub(crate) fn are_shared(&self) -> bool {
        let shared = self.shared.get().is_some_and(|shared| Arc::strong_count(shared) > 1);
        // What was written before the count fell is seen after this. (loom's count does so itself.)
        fence(Ordering::Acquire);
        shared
    }

    /// `None` when there is no descriptor left for it.
    fn poller(&self) -> Option<&Poller> {
        let shared = self.shared();
        if shared.poller.get().is_none() {
            let _ = shared.poller.set(Poller::new().ok()?);
        }
        // A wake that came before did not see it; the caller asks `are_woken` after this.
        fence(Ordering::SeqCst);
        shared.poller.get()
    }

    pub(crate) fn existing_poller(&self) -> Option<&Poller> {
        self.shared.get()?.poller.get()
    }

    fn shared(&self) -> &Arc<Shared> {
        self.shared.get_or_init(Arc::default)
    }
}

impl Shared {
    pub(crate) fn wake(&self) {
        if self.woken.swap(true, Ordering::AcqRel) {
            return;
        }
        fence(Ordering::SeqCst);
        if let Some(poller) = self.poller.get() {
            // It fails only where the descriptor is gone, and with it the wait.
            let _ = poller.notify();
        }
    }
}

static ROOT: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, ignore);

unsafe fn clone(wakes: *const ()) -> RawWaker {
    let waker = ManuallyDrop::new(waker((*wakes.cast::<Wakes>()).shared().clone()));
    RawWaker::new(waker.data(), waker.vtable())
}

unsafe fn wake(wakes: *const ()) {
    (*wakes.cast::<Wakes>()).woken.store(true, Ordering::Release);
}

unsafe fn ignore(_wakes: *const ()) {}
