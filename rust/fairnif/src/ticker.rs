//! Ticks: a `Ticker` counts down what it was lent, and settles with the call when that is used up.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread;

use crate::call::{current, set_current, with_current, Call, Unwound};

/// Reports how much work was done, so that the runtime can pause the call.
///
/// A fair function receives one for each parameter of this type; [`Ticker::new`] and `clone` create
/// more. They are interchangeable: a tick counts for the call that this thread is polling, and does
/// nothing on a thread that polls none. A `Ticker` may be sent, stored or forgotten.
///
/// The runtime lends it the number of units that it expects before the clock should be read (a few
/// times in a slice), and `tick` subtracts from them.
#[derive(Debug, Default)]
pub struct Ticker {
    left: AtomicU64,
    lent: AtomicU64,
}

impl Ticker {
    /// Creates a `Ticker` to which nothing has been lent yet.
    pub const fn new() -> Ticker {
        Ticker { left: AtomicU64::new(0), lent: AtomicU64::new(0) }
    }

    /// Reports `units` of work done since the last tick: bytes, rows, rounds.
    ///
    /// The runtime learns what a unit costs. Tick at least every 5 us. Pauses when the slice is up:
    /// other processes run, and the future continues later, perhaps on another thread. If the caller
    /// has died, the future is dropped instead. Otherwise a tick costs a subtraction and a branch.
    /// Each tick counts one unit more than it reports.
    ///
    /// ```no_run
    /// use fairnif::{Bin, Ticker};
    ///
    /// #[fairnif::nif]
    /// async fn count(t: Ticker, data: Bin, byte: u8) -> usize {
    ///     let mut found = 0;
    ///     for block in data.chunks(4096) {
    ///         found += block.iter().filter(|b| **b == byte).count();
    ///         t.tick(block.len()).await;
    ///     }
    ///     found
    /// }
    /// ```
    #[inline(always)]
    pub fn tick(&self, units: usize) -> Tick<'_> {
        Tick { ticker: self, units: units as u64, asked: false }
    }

    /// The same for code that cannot be `async`, such as a callback deep inside a crate. Pauses at
    /// once, inside the poll, with everything on the stack.
    ///
    /// If the caller has died, it does not return. It unwinds to the first frame of the call, like a
    /// panic but without a message. Code that catches this and continues meets it again at its next
    /// tick. Nothing pauses while the thread panics.
    ///
    /// ```no_run
    /// use fairnif::Ticker;
    ///
    /// #[fairnif::nif]
    /// async fn sorted(t: Ticker, mut numbers: Vec<u64>) -> Vec<u64> {
    ///     // Safety: no lock and no thread-local variable is in use in `sort_by`.
    ///     numbers.sort_by(|a, b| {
    ///         unsafe { t.tick_here(1) };
    ///         a.cmp(b)
    ///     });
    ///     numbers
    /// }
    /// ```
    ///
    /// # Safety
    /// The caller, and every frame between it and the fair function, may continue on another thread.
    /// None of them may hold, across this call,
    ///
    /// - a reference to a thread-local variable, or its address in any form;
    /// - a guard of a lock of the standard library or of the system, or of anything else that
    ///   belongs to a thread;
    /// - a value that is not `Send`, unless nothing else shares it;
    /// - a frame that may not be unwound (C, or `extern "C"`).
    #[inline(always)]
    pub unsafe fn tick_here(&self, units: usize) {
        if !self.pay(units as u64) {
            self.pause_here(units as u64);
        }
    }

    /// A plain load and a plain store. Two threads at once may lose units, which harms no one.
    #[inline(always)]
    fn pay(&self, units: u64) -> bool {
        let left = self.left.load(Ordering::Relaxed);
        if units < left {
            self.left.store(left - units - 1, Ordering::Relaxed);
        }
        units < left
    }

    /// What was done since the last loan.
    fn spent(&self) -> u64 {
        let lent = self.lent.load(Ordering::Relaxed);
        // Another thread may just have been lent less.
        lent.saturating_sub(self.left.load(Ordering::Relaxed))
    }

    fn borrow(&self, units: u64) {
        self.lent.store(units, Ordering::Relaxed);
        self.left.store(units, Ordering::Relaxed);
    }

    /// Settles; answers what is still to be paid, if the call's budget is used up.
    fn settle(&self, call: &Call, units: u64) -> Option<u64> {
        let due = self.spent().saturating_add(units);
        let paid = call.pay(due);
        self.borrow(if paid { call.budget() } else { 0 });
        (!paid).then_some(due)
    }

    #[cold]
    #[inline(never)]
    unsafe fn pause_here(&self, units: u64) {
        let Some(call) = current().as_ref() else {
            return;
        };
        if thread::panicking() || call.is_ending() {
            return;
        }
        if !call.is_cancelled() {
            let Some(due) = self.settle(call, units) else {
                return;
            };
            set_current(null());
            call.tick(due);
            set_current(call);
        }
        if call.is_cancelled() {
            resume_unwind(Box::new(Unwound));
        }
        self.borrow(call.budget());
    }
}

/// Begins with nothing lent.
impl Clone for Ticker {
    fn clone(&self) -> Ticker {
        Ticker::new()
    }
}

/// What was done is counted.
impl Drop for Ticker {
    fn drop(&mut self) {
        let spent = self.spent();
        if spent > 0 {
            with_current(|call| call.spend(spent));
        }
    }
}

/// What [`Ticker::tick`] returns.
#[must_use = "a tick counts when it is awaited"]
#[derive(Debug)]
pub struct Tick<'a> {
    ticker: &'a Ticker,
    units: u64,
    asked: bool,
}

impl Future for Tick<'_> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !self.asked && self.ticker.pay(self.units) {
            return Poll::Ready(());
        }
        self.as_mut().look(context)
    }
}

impl Tick<'_> {
    #[cold]
    #[inline(never)]
    fn look(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.asked {
            with_current(|call| self.ticker.borrow(call.budget()));
            return Poll::Ready(());
        }
        let due = with_current(|call| {
            let due = self.ticker.settle(call, self.units)?;
            call.ask(due);
            Some(due)
        });
        if due.flatten().is_none() {
            return Poll::Ready(());
        }
        self.asked = true;
        // Who polls this inside of something else (select, join) must come here again.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
