//! A call under way: its future is polled here, and it pauses here, in the first frame of its
//! stack and never inside a poll.
//!
//! ```text
//! drive: poll --> Ready: the future is dropped, the result goes back
//!          |
//!          '---> Pending, since
//!                  a tick found the budget used up --> ops.tick, and then, without a wait:
//!                  it was woken meanwhile          --> (counts as a tick)
//!                  a closure is to run elsewhere   --> ops.offload
//!                  it wants something of its caller --> ops.ask, ops.post
//!                  it waits                        --> ops.wait
//!                and then: cancelled? the future is dropped : poll again
//! ```
//!
//! During a poll the thread-local [`CURRENT`] says which call that is. It is empty at every pause,
//! since the body may continue on another thread. Nothing that outlives a poll points to `Call`.
//!
//! What a call owns is below it: [`sources`] (times, descriptors), [`asks`] (messages, Erlang
//! functions), [`jobs`] (closures). The futures that fill these are above it.

pub(crate) mod asks;
pub(crate) mod jobs;
pub(crate) mod sources;
mod sync;
pub(crate) mod waker;
pub(crate) mod wanted;

use std::cell::Cell;
use std::future::Future;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::pin;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

use crate::abi;
use crate::error::quietly;
use asks::{Asks, Outbox, ELSEWHERE_MS};
use jobs::{Job, Jobs};
use sources::{sooner, Sources};
use waker::Wakes;

thread_local! {
    static CURRENT: Cell<*const Call> = const { Cell::new(null()) };
}

/// Sets which call this thread polls, and answers which it was.
///
/// A function of its own, as `current`: inlined, the compiler might keep the variable's address
/// in a frame that continues on another thread.
#[inline(never)]
pub(crate) fn set_current(call: *const Call) -> *const Call {
    CURRENT.replace(call)
}

#[inline(never)]
pub(crate) fn current() -> *const Call {
    CURRENT.get()
}

/// Does something with the call that this thread polls; `None` where it polls none.
pub(crate) fn with_current<R>(f: impl FnOnce(&Call) -> R) -> Option<R> {
    // Safety: it is set only while the call lives, by `Call::enter`; `f` cannot keep it.
    unsafe { current().as_ref() }.map(f)
}

/// The same where there must be one.
pub(crate) fn with_this<R>(what: &str, f: impl FnOnce(&Call) -> R) -> R {
    match with_current(f) {
        Some(answer) => answer,
        None => panic!("fairnif: {what} outside of a fair function"),
    }
}

pub(crate) struct Call {
    task: *mut abi::Task,
    /// Units of ticks that found the budget used up, while one did.
    asked: Cell<Option<u64>>,
    id: Cell<u64>,
    ending: Cell<bool>,
    /// Where any thread may send in the caller's name.
    outbox: Option<Arc<Outbox>>,
    pub(crate) jobs: Jobs,
    pub(crate) sources: Sources,
    pub(crate) asks: Asks,
    pub(crate) wakes: Wakes,
}

/// How a future ended.
pub(crate) enum End<T> {
    Ready(T),
    Panicked(Box<dyn std::any::Any + Send>),
    Cancelled,
}

/// What `tick_here` unwinds with.
pub(crate) struct Unwound;

/// Polls the future until it is ready or the call was cancelled, and drops it.
///
/// # Safety
/// `task` must be the task whose body calls this.
pub(crate) unsafe fn drive<F>(
    task: *mut abi::Task,
    outbox: Option<Arc<Outbox>>,
    future: F,
) -> End<F::Output>
where
    F: Future + Send + 'static,
{
    let call = Call::new(task, outbox);
    let mut future = pin!(Some(future));
    let end = loop {
        let poll = || {
            let context = &mut Context::from_waker(call.wakes.root());
            match future.as_mut().as_pin_mut() {
                Some(future) => future.poll(context),
                None => unreachable!(),
            }
        };
        match call.enter(poll) {
            Ok(Poll::Ready(value)) => break End::Ready(value),
            Ok(Poll::Pending) => call.pause(),
            Err(payload) if payload.is::<Unwound>() => break End::Cancelled,
            Err(payload) => break End::Panicked(payload),
        }
        if call.is_cancelled() {
            break End::Cancelled;
        }
    };
    call.ending.set(true);
    let dropped = call.enter(|| future.set(None));
    // What was moved to another call is polled there now.
    call.jobs.close();
    call.asks.close();
    // Safety: no poll is under way.
    unsafe { call.post_all(true) };
    call.sources.close(&call.wakes);
    match (dropped, end) {
        (Err(payload), End::Ready(value)) => {
            quietly(|| drop(value));
            End::Panicked(payload)
        }
        (Err(payload), end) => {
            quietly(|| drop(payload));
            end
        }
        (Ok(()), end) => end,
    }
}

impl Call {
    fn new(task: *mut abi::Task, outbox: Option<Arc<Outbox>>) -> Call {
        Call {
            task,
            asked: Cell::new(None),
            id: Cell::new(0),
            ending: Cell::new(false),
            outbox,
            jobs: Jobs::default(),
            sources: Sources::default(),
            asks: Asks::default(),
            wakes: Wakes::default(),
        }
    }

    /// Runs author's code as this call.
    fn enter<R>(&self, f: impl FnOnce() -> R) -> thread::Result<R> {
        self.wakes.clear();
        let previous = set_current(self);
        let result = catch_unwind(AssertUnwindSafe(f));
        set_current(previous);
        result
    }

    /// A number for what registers with this call, to tell it from others.
    pub(crate) fn id(&self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);

        if self.id.get() == 0 {
            self.id.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        }
        self.id.get()
    }

    // -- ticks: the task's fields are this thread's during a poll, and in `pause` -----------------

    pub(crate) fn is_cancelled(&self) -> bool {
        // Safety: the task lives as long as its body, which made this call.
        unsafe { (*self.task).cancelled != 0 }
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.get()
    }

    /// What may be spent before the clock is read.
    pub(crate) fn budget(&self) -> u64 {
        // Safety: as above.
        unsafe { (*self.task).budget }
    }

    /// Counts a tick, as `fair_tick`; false when the budget is used up, and nothing was counted.
    pub(crate) fn pay(&self, units: u64) -> bool {
        let budget = self.budget();
        if units < budget {
            self.set_budget(budget - units - 1);
        }
        units < budget
    }

    /// Counts what was done, as far as there is budget for it.
    pub(crate) fn spend(&self, units: u64) {
        self.set_budget(self.budget().saturating_sub(units));
    }

    fn set_budget(&self, budget: u64) {
        // Safety: as above.
        unsafe { (*self.task).budget = budget };
    }

    /// A tick cannot be paid: the call pauses once the future has returned.
    pub(crate) fn ask(&self, units: u64) {
        let more = self.asked.get().map_or(0, |so_far| so_far.saturating_add(1));
        self.asked.set(Some(more.saturating_add(units)));
    }

    /// Ticks now; true when the runtime was asked. The body may be on another thread afterwards.
    ///
    /// # Safety
    /// CURRENT must be empty, and no lock of the system's held.
    pub(crate) unsafe fn tick(&self, units: u64) -> bool {
        let paid = self.pay(units);
        if !paid {
            ((*(*self.task).ops).tick)(self.task, units.min(usize::MAX as u64) as usize);
        }
        !paid
    }

    // -- pauses ------------------------------------------------------------------------------------

    /// What the future waits for: see above.
    fn pause(&self) {
        // Safety (of all): this is the first frame of the body, between two polls.
        unsafe { self.post_all(false) };
        if self.is_cancelled() {
            return;
        }
        let units = self.asked.take().or_else(|| self.wakes.are_woken().then_some(1));
        if let Some(units) = units {
            let looked = unsafe { self.tick(units) };
            if !looked || self.is_cancelled() {
                return;
            }
        }
        if let Some(job) = self.jobs.next() {
            unsafe { self.run_elsewhere(&job) };
            job.wake();
            quietly(|| drop(job));
        } else if unsafe { !self.asks.apply_first(self.task) } {
            if units.is_none() {
                return self.wait();
            }
            unsafe { self.asks.receive(self.task, 0) };
        }
        if self.is_cancelled() {
            return;
        }
        // One part of the future may run for ever: another one that waits is not to do so too.
        self.sources.look(&self.wakes);
    }

    /// There is nothing to do but to wait.
    fn wait(&self) {
        let mut most = -1;
        if self.asks.receive_any() {
            // No other thread can end the wait: it may be as long as it likes.
            let alone = self.sources.are_times(&self.wakes) && !self.wakes.are_shared();
            if alone && self.wakes.are_woken() {
                return;
            }
            let timeout = if alone { self.sources.timeout_ms() } else { 0 };
            // Safety: as in `pause`.
            let received = unsafe { self.asks.receive(self.task, timeout) };
            if alone || received || self.is_cancelled() {
                self.sources.finish_times();
                return;
            }
            most = sooner(self.asks.timeout_ms(), ELSEWHERE_MS);
        }
        self.sources.wait(&self.wakes, |fd, events, timeout| unsafe {
            let timeout = sooner(timeout, most);
            let answer = ((*(*self.task).ops).wait)(self.task, fd, events, timeout);
            let answer = if answer == -libc::ETIMEDOUT { 0 } else { answer };
            // It was refused, and did not pause: it may be asked for again and again.
            if answer < 0 && !self.is_cancelled() {
                self.tick(1);
            }
            answer
        });
    }

    unsafe fn post_all(&self, last: bool) {
        if let Some(outbox) = &self.outbox {
            outbox.post_all(self.task, last);
        }
    }

    unsafe fn run_elsewhere(&self, job: &Job) {
        unsafe extern "C" fn run(job: *mut std::ffi::c_void) {
            (*job.cast::<Job>()).run();
        }
        let arg = std::ptr::from_ref(job).cast_mut().cast();
        ((*(*self.task).ops).offload)(self.task, job.what.place, job.what.units, run, arg);
    }
}
