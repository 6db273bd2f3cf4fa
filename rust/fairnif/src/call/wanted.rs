//! One thing that a call waits for, shared by the future that wants it and the call that gets it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use super::waker::Wakes;
use crate::error::quietly;

pub(crate) struct Wanted<W, T> {
    pub(crate) what: W,
    state: Mutex<State<T>>,
}

struct State<T> {
    answer: Option<T>,
    /// `None`: the call itself, which polls again after each pause.
    waker: Option<Waker>,
    /// Nothing waits any more.
    gone: bool,
}

impl<W, T> Wanted<W, T> {
    pub(crate) fn new(what: W) -> Arc<Wanted<W, T>> {
        let state = State { answer: None, waker: None, gone: false };
        Arc::new(Wanted { what, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_wanted(&self) -> bool {
        let state = self.state();
        !state.gone && state.answer.is_none()
    }

    /// Sets the answer, or gives it back where nothing waits.
    pub(crate) fn put(&self, answer: T) -> Option<T> {
        let mut state = self.state();
        if state.gone {
            return Some(answer);
        }
        // One that is there already is dropped without the lock.
        let before = state.answer.replace(answer);
        drop(state);
        drop(before);
        None
    }

    /// The same, and what waits polls again.
    pub(crate) fn finish(&self, answer: T) -> Option<T> {
        let back = self.put(answer);
        self.wake();
        back
    }

    pub(crate) fn wake(&self) {
        let waker = self.state().waker.take();
        if let Some(waker) = waker {
            // It may be the author's code.
            quietly(|| waker.wake());
        }
    }

    /// The answer; without one, the poller is woken when there is one. `own`: of the call that
    /// brings it about, which polls again without being woken.
    pub(crate) fn poll(&self, own: Option<&Wakes>, context: &Context) -> Option<T> {
        let mut state = self.state();
        let answer = state.answer.take();
        state.gone |= answer.is_some();
        let waker = context.waker();
        let is_root = own.is_some_and(|wakes| wakes.is_root(waker));
        let waker = (answer.is_none() && !is_root).then(|| waker.clone());
        let before = std::mem::replace(&mut state.waker, waker);
        drop(state);
        drop(before);
        answer
    }

    /// The future is gone. Returns the answer that it did not take.
    pub(crate) fn leave(&self) -> Option<T> {
        let mut state = self.state();
        state.gone = true;
        let (answer, waker) = (state.answer.take(), state.waker.take());
        drop(state);
        // Without the lock: it may be the author's code, and panic.
        drop(waker);
        answer
    }
}
