//! What only the caller can do, in `fairnif:await/1` or as a native process: receive, send, call
//! Erlang functions.
//!
//! The runtime's functions for it pause, or may end the call, and are called in [`Call::pause`],
//! between two polls. So a future of these leaves what it asks for with the call ([`Asks`]), which
//! puts the answer there; and what is sent is an [`OwnedTerm`] until then.
//!
//! [`Call::pause`]: crate::call::Call

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rustler::Encoder;

use crate::abi::{self, Task};
use crate::call::{with_current, with_this, Call};
use crate::source::{ms_until, sooner, wake};
use crate::{vm, OwnedTerm};

/// How long a call looks elsewhere that waits for a message and for something else, or for messages
/// of several tags.
pub(crate) const ELSEWHERE_MS: i32 = 10;

/// One thing that is asked for. Shared by the future that waits and the call that polls it.
struct Ask {
    what: What,
    state: Mutex<State>,
}

pub(crate) enum What {
    Message { tag: Option<OwnedTerm>, until: Option<Instant> },
    Apply { module: String, function: String, args: OwnedTerm },
}

#[derive(Default)]
struct State {
    answer: Option<Answer>,
    /// `None`: the call itself, which polls again after each pause.
    waker: Option<Waker>,
    /// Nobody waits any more.
    gone: bool,
}

pub(crate) enum Answer {
    Came(OwnedTerm),
    /// The time was up.
    Nothing,
    Raised(OwnedTerm),
}

impl Ask {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_wanted(&self) -> bool {
        let state = self.state();
        !state.gone && state.answer.is_none()
    }

    /// Tells who waits; gives the answer back where nobody does.
    fn finish(&self, answer: Answer) -> Option<Answer> {
        let mut state = self.state();
        if state.gone {
            return Some(answer);
        }
        state.answer = Some(answer);
        let waker = state.waker.take();
        drop(state);
        wake(waker);
        None
    }

    fn poll(&self, call: &Call, context: &Context) -> Option<Answer> {
        let mut state = self.state();
        if state.answer.is_none() {
            let waker = context.waker();
            state.waker = (!call.wakes.is_root(waker)).then(|| waker.clone());
        }
        let answer = state.answer.take();
        state.gone |= answer.is_some();
        answer
    }

    fn tag(&self) -> Option<&OwnedTerm> {
        match &self.what {
            What::Message { tag, .. } => tag.as_ref(),
            What::Apply { .. } => None,
        }
    }

    /// Whether it waits for that message.
    fn takes(&self, message: &OwnedTerm) -> bool {
        self.tag().is_none_or(|tag| message.is_tagged(tag))
    }

    fn until(&self) -> Option<Instant> {
        match self.what {
            What::Message { until, .. } => until,
            What::Apply { .. } => None,
        }
    }
}

// -- a future's part ------------------------------------------------------------------------------

/// As `source::Registered`: a future may be moved to another call.
#[derive(Default)]
pub(crate) struct Asking {
    ask: Option<Arc<Ask>>,
    call: u64,
}

impl Asking {
    pub(crate) fn poll(
        &mut self,
        what: &str,
        context: &Context,
        make: impl FnOnce() -> What,
    ) -> Poll<Answer> {
        with_this(what, |call| {
            if let Some(answer) = self.ask.as_ref().and_then(|ask| ask.poll(call, context)) {
                self.ask = None;
                return Poll::Ready(answer);
            }
            if self.ask.is_none() || self.call != call.id() {
                self.leave();
                self.call = call.id();
                let ask = Arc::new(Ask { what: make(), state: Mutex::default() });
                ask.poll(call, context);
                call.asks.add(ask.clone());
                self.ask = Some(ask);
            }
            Poll::Pending
        })
    }

    fn leave(&mut self) {
        let Some(ask) = self.ask.take() else {
            return;
        };
        let mut state = ask.state();
        state.gone = true;
        let (answer, waker) = (state.answer.take(), state.waker.take());
        drop(state);
        if let (Some(Answer::Came(message)), What::Message { .. }) = (answer, &ask.what) {
            with_current(|call| {
                if call.id() == self.call {
                    call.asks.give_back(message);
                }
            });
        }
        // Dropped here: its code is the author's, and may panic.
        drop(waker);
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.leave();
    }
}

// -- all that a call asks for ---------------------------------------------------------------------

pub(crate) struct Posted {
    pub(crate) to: OwnedTerm,
    pub(crate) message: OwnedTerm,
    pub(crate) is_reply: bool,
}

#[derive(Default)]
pub(crate) struct Asks {
    wanted: RefCell<Vec<Arc<Ask>>>,
    /// Came for futures that are gone.
    returned: RefCell<VecDeque<OwnedTerm>>,
    outbox: RefCell<Vec<Posted>>,
}

impl Asks {
    fn add(&self, ask: Arc<Ask>) {
        self.wanted.borrow_mut().push(ask);
    }

    fn give_back(&self, message: OwnedTerm) {
        self.returned.borrow_mut().push_back(message);
    }

    pub(crate) fn post(&self, posted: Posted) {
        self.outbox.borrow_mut().push(posted);
    }

    /// Gives the runtime what was sent. It may end the call.
    ///
    /// # Safety
    /// The task is this call's, and no poll is under way.
    pub(crate) unsafe fn post_all(&self, task: *mut Task) {
        for posted in self.outbox.take() {
            if (*task).cancelled != 0 {
                return;
            }
            let (to, message) = (copied(task, &posted.to), copied(task, &posted.message));
            ((*(*task).ops).post)(task, to, message, posted.is_reply.into());
        }
    }

    /// Not with the list borrowed is anybody's code run.
    fn find(&self, what: impl Fn(&Ask) -> bool) -> Vec<Arc<Ask>> {
        let wanted = |ask: &Arc<Ask>| ask.is_wanted();
        let mut asks = self.wanted.borrow_mut();
        let gone: Vec<_> = asks.iter().filter(|ask| !wanted(ask)).cloned().collect();
        asks.retain(wanted);
        let found = asks.iter().filter(|ask| what(ask)).cloned().collect();
        drop(asks);
        drop(gone);
        found
    }

    /// Whoever waits is to poll again: in another call now.
    pub(crate) fn close(&self) {
        for ask in self.wanted.take() {
            let waker = ask.state().waker.take();
            wake(waker);
        }
    }

    /// Makes the first call that is asked for; false without any.
    ///
    /// # Safety
    /// As `post_all`.
    pub(crate) unsafe fn apply_first(&self, task: *mut Task) -> bool {
        let applies = self.find(|ask| matches!(ask.what, What::Apply { .. }));
        let Some(first) = applies.first() else {
            return false;
        };
        if let What::Apply { module, function, args } = &first.what {
            let lifetime = ();
            let env = vm::rustler_env(&lifetime, (*task).env);
            let atoms = [module, function].map(|name| vm::make_atom(env, name));
            let request = [atoms[0], atoms[1], copied(task, args)];
            if let Some((returned, answer)) = ask(task, &request) {
                let answer = if returned { Answer::Came(answer) } else { Answer::Raised(answer) };
                first.finish(answer);
            }
        }
        true
    }

    fn receives(&self) -> Vec<Arc<Ask>> {
        self.find(|ask| matches!(ask.what, What::Message { .. }))
    }

    pub(crate) fn receive_any(&self) -> bool {
        !self.receives().is_empty()
    }

    /// Until the first of the times; -1 without any.
    pub(crate) fn timeout_ms(&self) -> i32 {
        ms_until(self.receives().iter().filter_map(|ask| ask.until()).min())
    }

    /// Waits for a message, so long at most (-1: for ever). True when somebody's wait is over.
    ///
    /// # Safety
    /// As `post_all`.
    pub(crate) unsafe fn receive(&self, task: *mut Task, most_ms: i32) -> bool {
        let receives = self.receives();
        let (Some(first), true) = (receives.first(), (*task).cancelled == 0) else {
            return false;
        };
        if self.take_returned(&receives) {
            return true;
        }
        let timeout = sooner(self.timeout_ms(), most_ms);
        let message = if receives.iter().any(|ask| ask.tag().is_none()) {
            next(task, None, timeout)
        } else if receives.len() == 1 {
            next(task, first.tag(), timeout)
        } else {
            let there = receives.iter().find_map(|ask| next(task, ask.tag(), 0));
            there.or_else(|| {
                let wait = sooner(timeout, ELSEWHERE_MS);
                if wait > 0 {
                    next(task, first.tag(), wait)
                } else {
                    None
                }
            })
        };
        match message {
            Some(message) => {
                self.deliver(&receives, message);
                true
            }
            // All have looked, unless the call is over.
            None if (*task).cancelled == 0 => expire(&receives),
            None => true,
        }
    }

    fn take_returned(&self, receives: &[Arc<Ask>]) -> bool {
        let taken = {
            let mut returned = self.returned.borrow_mut();
            let is_taken = |message: &OwnedTerm| receives.iter().any(|ask| ask.takes(message));
            let place = returned.iter().position(is_taken);
            place.and_then(|place| returned.remove(place))
        };
        match taken {
            Some(message) => {
                self.deliver(receives, message);
                true
            }
            None => false,
        }
    }

    /// To one who waits for its tag, before one who takes any.
    fn deliver(&self, receives: &[Arc<Ask>], message: OwnedTerm) {
        let tagged = receives.iter().filter(|ask| ask.tag().is_some());
        let all = tagged.chain(receives.iter().filter(|ask| ask.tag().is_none()));
        let mut answer = Answer::Came(message);
        for ask in all {
            if let Answer::Came(message) = &answer {
                if !ask.takes(message) {
                    continue;
                }
            }
            match ask.finish(answer) {
                Some(back) => answer = back,
                None => return,
            }
        }
        if let Answer::Came(message) = answer {
            self.give_back(message);
        }
    }
}

fn expire(receives: &[Arc<Ask>]) -> bool {
    let now = Instant::now();
    let mut any = false;
    for ask in receives.iter().filter(|ask| ask.until().is_some_and(|until| until <= now)) {
        any |= ask.finish(Answer::Nothing).is_none();
    }
    any
}

/// The next message in the mailbox, or the next one with the tag.
unsafe fn next(task: *mut Task, tag: Option<&OwnedTerm>, timeout_ms: i32) -> Option<OwnedTerm> {
    let timeout = vm::make_int((*task).env, timeout_ms);
    let answer = match tag {
        Some(tag) => ask(task, &[copied(task, tag), timeout]),
        None => ask(task, &[timeout]),
    };
    answer.filter(|(came, _)| *came).map(|(_, message)| message)
}

/// Pauses. `None` when the call was cancelled.
unsafe fn ask(task: *mut Task, request: &[abi::Term]) -> Option<(bool, OwnedTerm)> {
    let mut answer = 0;
    (*task).env_used = 1;
    let parts = request.len() as std::ffi::c_uint;
    let outcome = ((*(*task).ops).ask)(task, request.as_ptr(), parts, &mut answer);
    if (*task).cancelled != 0 {
        return None;
    }
    Some((outcome != 0, OwnedTerm::copy_of(answer)))
}

/// In the environment of this slice.
unsafe fn copied(task: *mut Task, term: &OwnedTerm) -> abi::Term {
    let lifetime = ();
    (*task).env_used = 1;
    vm::raw_term(term.encode(vm::rustler_env(&lifetime, (*task).env)))
}
