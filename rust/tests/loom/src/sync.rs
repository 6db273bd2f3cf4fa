use std::io;
use std::mem::ManuallyDrop;
use std::task::{RawWaker, RawWakerVTable, Waker};

use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::{fence, AtomicBool, Ordering};
pub(crate) use loom::sync::Arc;
use loom::sync::{Condvar, Mutex};

use crate::waker::Shared;

/// As `polling`'s: a notification is kept until a thread waits.
pub(crate) struct Poller {
    notified: Mutex<bool>,
    changed: Condvar,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller { notified: Mutex::new(false), changed: Condvar::new() })
    }

    pub(crate) fn notify(&self) -> io::Result<()> {
        *self.notified.lock().unwrap() = true;
        self.changed.notify_one();
        Ok(())
    }

    pub(crate) fn wait(&self) {
        let mut notified = self.notified.lock().unwrap();
        while !*notified {
            notified = self.changed.wait(notified).unwrap();
        }
        *notified = false;
    }
}

/// As the standard library's, which loom has none of.
pub(crate) struct OnceLock<T> {
    setting: Mutex<()>,
    is_set: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        let (setting, is_set) = (Mutex::new(()), AtomicBool::new(false));
        OnceLock { setting, is_set, value: UnsafeCell::new(None) }
    }
}

impl<T> OnceLock<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        self.value.with(|value| unsafe { (*value).as_ref() })
    }

    pub(crate) fn set(&self, new: T) -> Result<(), T> {
        let _setting = self.setting.lock().unwrap();
        if self.is_set.load(Ordering::Relaxed) {
            return Err(new);
        }
        self.value.with_mut(|value| unsafe { *value = Some(new) });
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if self.get().is_none() {
            let _ = self.set(make());
        }
        self.get().unwrap()
    }
}

/// As `Waker::from` of an `Arc`.
pub(crate) fn waker(shared: Arc<Shared>) -> Waker {
    const TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, release);

    unsafe fn clone(data: *const ()) -> RawWaker {
        let shared = ManuallyDrop::new(Arc::from_raw(data.cast::<Shared>()));
        RawWaker::new(Arc::into_raw(Arc::clone(&shared)).cast(), &TABLE)
    }
    unsafe fn wake(data: *const ()) {
        Arc::from_raw(data.cast::<Shared>()).wake();
    }
    unsafe fn wake_by_ref(data: *const ()) {
        ManuallyDrop::new(Arc::from_raw(data.cast::<Shared>())).wake();
    }
    unsafe fn release(data: *const ()) {
        drop(Arc::from_raw(data.cast::<Shared>()));
    }
    unsafe { Waker::new(Arc::into_raw(shared).cast(), &TABLE) }
}
