//! Closures that a call runs elsewhere.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::wanted::Wanted;
use crate::error::quietly;

pub(crate) type Closure = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

pub(crate) type Job = Wanted<Work, thread::Result<Box<dyn Any + Send>>>;

pub(crate) struct Work {
    /// Where it runs, as a mode.
    pub(crate) place: u32,
    pub(crate) units: usize,
    /// `None` once it runs.
    pub(crate) closure: Mutex<Option<Closure>>,
}

impl Job {
    pub(crate) fn closure(&self) -> MutexGuard<'_, Option<Closure>> {
        self.what.closure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On any thread. Does not panic, and wakes nothing: the call does so where it continues.
    pub(crate) fn run(&self) {
        let closure = self.closure().take();
        if let Some(closure) = closure {
            let unwanted = self.put(catch_unwind(AssertUnwindSafe(closure)));
            quietly(|| drop(unwanted));
        }
    }
}

#[derive(Default)]
pub(crate) struct Jobs(RefCell<VecDeque<Arc<Job>>>);

impl Jobs {
    pub(crate) fn add(&self, job: Arc<Job>) {
        self.0.borrow_mut().push_back(job);
    }

    /// The next one that has not begun.
    pub(crate) fn next(&self) -> Option<Arc<Job>> {
        loop {
            // Not with the list borrowed is one dropped.
            let job = self.0.borrow_mut().pop_front()?;
            if job.closure().is_some() {
                return Some(job);
            }
            quietly(|| drop(job));
        }
    }

    /// What waits polls again: in another call now.
    pub(crate) fn close(&self) {
        for job in self.0.take() {
            job.wake();
            quietly(|| drop(job));
        }
    }
}
