//! Code that cannot tick, run elsewhere.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use crate::abi::mode;
use crate::call::jobs::{Job, Work};
use crate::call::wanted::Wanted;
use crate::call::with_this;

/// Where [`offload`] runs its closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// In place if this many units are known to be short, otherwise on a dirty CPU scheduler.
    Auto,
    /// On a normal scheduler, for short work.
    Normal,
    /// On a dirty CPU scheduler, for computations that are never short.
    DirtyCpu,
    /// On a dirty I/O scheduler, for short or rare waits.
    DirtyIo,
    /// On a thread of the runtime's pool, for waits and long computations. The function must be
    /// `may_wait` (or have mode `"threaded"`).
    Threaded,
}

/// Runs a closure that cannot tick on a thread of the runtime's pool, and waits for it. The
/// function must be `may_wait` (or have mode `"threaded"`). [`Offload::on`] chooses another place.
///
/// The whole call waits: futures joined or selected with this one continue afterwards. A closure that
/// has begun runs to its end even if the caller dies. One that has not begun is dropped with this
/// future. A panic of the closure is passed on.
///
/// ```no_run
/// # fn apply(_document: &[u8]) -> Vec<u8> { vec![] }
/// #[fairnif::nif(may_wait)]
/// async fn merge(document: fairnif::Bin) -> fairnif::OwnedBin {
///     fairnif::offload(move || apply(&document)).await.as_slice().into()
/// }
/// ```
pub fn offload<F, R>(closure: F) -> Offload<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let boxed = Box::new(move || Box::new(closure()) as Box<dyn Any + Send>);
    let work = Work { place: mode::THREADED, units: 0, closure: Mutex::new(Some(boxed)) };
    Offload { job: Wanted::new(work), call: 0, result: PhantomData }
}

/// What [`offload`] returns.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Offload<R: Send + 'static> {
    job: Arc<Job>,
    /// The call that it waits for.
    call: u64,
    result: PhantomData<fn() -> R>,
}

impl<R: Send + 'static> Offload<R> {
    /// Runs the closure elsewhere than on the pool.
    ///
    /// ```no_run
    /// # use fairnif::{offload, Place};
    /// # fn digest(_data: &[u8]) -> u64 { 0 }
    /// #[fairnif::nif]
    /// async fn hash(data: fairnif::Bin) -> u64 {
    ///     let units = data.len();
    ///     offload(move || digest(&data)).on(Place::Auto, units).await
    /// }
    /// ```
    ///
    /// Only [`Place::Auto`] uses `units`: the amount of work, in any measure that grows with the time
    /// it takes. The runtime learns the time for each power of two.
    pub fn on(mut self, place: Place, units: usize) -> Self {
        // No thread has the job before the first poll takes it to a call.
        if let Some(job) = Arc::get_mut(&mut self.job) {
            job.what.place = match place {
                Place::Auto => mode::AUTO,
                Place::Normal => mode::NORMAL,
                Place::DirtyCpu => mode::DIRTY_CPU,
                Place::DirtyIo => mode::DIRTY_IO,
                Place::Threaded => mode::THREADED,
            };
            job.what.units = units;
        }
        self
    }
}

impl<R: Send + 'static> Future for Offload<R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        // Another call may run it, if the future was there before: so the waker is always needed.
        let answer = with_this("offload", |call| {
            let answer = self.job.poll(None, context);
            if answer.is_none() && self.call != call.id() {
                self.call = call.id();
                call.jobs.add(self.job.clone());
            }
            answer
        });
        match answer.map(|answer| answer.map(|result| result.downcast::<R>())) {
            None => Poll::Pending,
            Some(Ok(Ok(result))) => Poll::Ready(*result),
            Some(Ok(Err(_))) => unreachable!(),
            Some(Err(payload)) => resume_unwind(payload),
        }
    }
}

impl<R: Send + 'static> Drop for Offload<R> {
    fn drop(&mut self) {
        // Dropped here, without a lock: the code is the author's, and may panic.
        let closure = self.job.closure().take();
        drop((closure, self.job.leave()));
    }
}
