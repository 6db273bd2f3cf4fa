//! Code that cannot tick, run elsewhere.

use std::future::Future;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::abi::mode;
use crate::call::with_this;
use crate::source::wake;

/// Where [`offload`] runs its closure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In place while so many units are known to be short, else on a dirty CPU scheduler.
    Auto,
    /// On a normal scheduler: for what is short.
    Normal,
    /// On a dirty CPU scheduler: computes, and is never short.
    DirtyCpu,
    /// On a dirty I/O scheduler: waits, briefly or seldom.
    DirtyIo,
    /// On a thread of the runtime's pool: waits, or computes for long. The function must be
    /// `awaited` (or of mode `"threaded"`).
    Threaded,
}

/// Runs a closure that cannot tick on a thread of the runtime's pool, and waits for it. The
/// function must be `awaited` (or of mode `"threaded"`); for other places see [`Offload::on`].
///
/// The whole call waits: what is joined or selected with it goes on afterwards. A closure that has
/// begun runs to its end, also when the caller dies meanwhile; one that has not is dropped with
/// this future. It panics as the closure does.
///
/// ```no_run
/// # fn apply(_document: &[u8]) -> Vec<u8> { vec![] }
/// #[fairnif::nif(awaited)]
/// async fn merge(document: fairnif::Bin) -> fairnif::OwnedBin {
///     fairnif::offload(move || apply(&document)).await.as_slice().into()
/// }
/// ```
pub fn offload<F, R>(closure: F) -> Offload<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let state = State { closure: Some(Box::new(closure)), result: None, waker: None };
    let work = Arc::new(Work { place: Place::Threaded, units: 0, state: Mutex::new(state) });
    Offload { work, call: 0 }
}

/// What [`offload`] returns.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Offload<R: Send + 'static> {
    work: Arc<Work<R>>,
    /// The call that it waits for.
    call: u64,
}

impl<R: Send + 'static> Offload<R> {
    /// Runs it somewhere else than on the pool.
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
    /// Only [`Place::Auto`] looks at `units`: how much there is to do, in any measure that grows
    /// with the time it takes. The runtime learns the time of each power of two.
    pub fn on(mut self, place: Place, units: usize) -> Self {
        // Nobody has the work before the first poll takes it to a call.
        if let Some(work) = Arc::get_mut(&mut self.work) {
            work.place = place;
            work.units = units;
        }
        self
    }
}

impl<R: Send + 'static> Future for Offload<R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        match self.work.take_result(context) {
            Some(Ok(result)) => Poll::Ready(result),
            Some(Err(payload)) => resume_unwind(payload),
            None => {
                with_this("offload", |call| {
                    if self.call != call.id() {
                        self.call = call.id();
                        call.add_job(self.work.clone());
                    }
                });
                Poll::Pending
            }
        }
    }
}

impl<R: Send + 'static> Drop for Offload<R> {
    fn drop(&mut self) {
        // Dropped here: the code is the author's, and may panic.
        let mut state = self.work.state();
        let all = (state.closure.take(), state.result.take(), state.waker.take());
        drop(state);
        drop(all);
    }
}

/// What a call runs elsewhere.
pub(crate) trait Job: Send + Sync {
    /// The place, as a mode, and the units.
    fn terms(&self) -> (u32, usize);
    /// False once it was dropped or has run.
    fn is_wanted(&self) -> bool;
    /// On any thread. Does not panic.
    fn run(&self);
    /// Who waits is told.
    fn done(&self);
}

struct Work<R> {
    place: Place,
    units: usize,
    state: Mutex<State<R>>,
}

struct State<R> {
    closure: Option<Box<dyn FnOnce() -> R + Send>>,
    result: Option<thread::Result<R>>,
    waker: Option<Waker>,
}

impl<R> Work<R> {
    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_result(&self, context: &Context) -> Option<thread::Result<R>> {
        let mut state = self.state();
        if state.result.is_none() {
            state.waker = Some(context.waker().clone());
        }
        state.result.take()
    }
}

impl<R: Send> Job for Work<R> {
    fn terms(&self) -> (u32, usize) {
        let place = match self.place {
            Place::Auto => mode::AUTO,
            Place::Normal => mode::NORMAL,
            Place::DirtyCpu => mode::DIRTY_CPU,
            Place::DirtyIo => mode::DIRTY_IO,
            Place::Threaded => mode::THREADED,
        };
        (place, self.units)
    }

    fn is_wanted(&self) -> bool {
        self.state().closure.is_some()
    }

    fn run(&self) {
        let closure = self.state().closure.take();
        if let Some(closure) = closure {
            let result = catch_unwind(AssertUnwindSafe(closure));
            self.state().result = Some(result);
        }
    }

    fn done(&self) {
        let waker = self.state().waker.take();
        wake(waker);
    }
}
