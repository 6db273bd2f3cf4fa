//! What only the caller can do, in `fairnif:await/1` or as a native process: receive, send, call
//! Erlang functions.
//!
//! The runtime's functions for it pause, or may end the call, and are called between two polls. So a
//! future of these leaves what it asks for with the call ([`Asks`]), which puts the answer there; and
//! what is sent is an [`OwnedTerm`] until then ([`Outbox`]).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::sources::{ms_until, sooner};
use super::wanted::Wanted;
use crate::abi::{self, Task};
use crate::term::OwnedTerm;
use crate::vm;

/// How long a call looks elsewhere that waits for a message and for something else, or for messages
/// of several tags.
pub(crate) const ELSEWHERE_MS: i32 = 10;

pub(crate) type Ask = Wanted<What, Answer>;

pub(crate) enum What {
    Message { tag: Option<OwnedTerm>, until: Option<Instant> },
    Apply { module: String, function: String, args: OwnedTerm },
}

pub(crate) enum Answer {
    Came(OwnedTerm),
    /// The time was up.
    Nothing,
    Raised(OwnedTerm),
}

impl Ask {
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

#[derive(Default)]
pub(crate) struct Asks {
    wanted: RefCell<Vec<Arc<Ask>>>,
    /// Came for futures that are gone.
    returned: RefCell<VecDeque<OwnedTerm>>,
}

impl Asks {
    pub(crate) fn add(&self, ask: Arc<Ask>) {
        self.wanted.borrow_mut().push(ask);
    }

    pub(crate) fn give_back(&self, message: OwnedTerm) {
        self.returned.borrow_mut().push_back(message);
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

    /// What waits polls again: in another call now.
    pub(crate) fn close(&self) {
        self.wanted.take().iter().for_each(|ask| ask.wake());
    }

    /// Makes the first call that is asked for; false without any.
    ///
    /// # Safety
    /// The task is this call's, and no poll is under way.
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

    /// Waits for a message, up to that long (-1: for ever). True when a future's wait is over.
    ///
    /// # Safety
    /// As `apply_first`.
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

    /// To one that waits for its tag, before one that takes any.
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
    let copy = (*(*task).ops).copy;
    let answer = OwnedTerm::made(|env| copy(task, vm::raw_env(env), answer));
    ((*task).cancelled == 0).then_some((outcome > 0, answer))
}

/// In the environment of this slice; of a large one it pauses before.
unsafe fn copied(task: *mut Task, term: &OwnedTerm) -> abi::Term {
    (*task).env_used = 1;
    ((*(*task).ops).copy)(task, std::ptr::null_mut(), term.raw())
}

// -- what is sent ---------------------------------------------------------------------------------

struct Posted {
    to: OwnedTerm,
    message: OwnedTerm,
    is_reply: bool,
}

/// What the caller sends when the call pauses or ends. Shared with every `Caller`, on any
/// thread.
pub(crate) struct Outbox {
    /// `None` once the call has ended.
    posted: Mutex<Option<Vec<Posted>>>,
}

impl Outbox {
    pub(crate) fn new() -> Arc<Outbox> {
        Arc::new(Outbox { posted: Mutex::new(Some(vec![])) })
    }

    fn posted(&self) -> MutexGuard<'_, Option<Vec<Posted>>> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops it after the call has ended.
    pub(crate) fn post(&self, to: OwnedTerm, message: OwnedTerm, is_reply: bool) {
        let posted = Posted { to, message, is_reply };
        match &mut *self.posted() {
            Some(all) => all.push(posted),
            // Freed under the lock, where no code of the author's runs.
            None => drop(posted),
        }
    }

    /// Gives the runtime what was sent. It may end the call. `last`: nothing is taken after this.
    ///
    /// # Safety
    /// As `apply_first`.
    pub(crate) unsafe fn post_all(&self, task: *mut Task, last: bool) {
        let mut posted = self.posted();
        let all = if last { posted.take() } else { posted.as_mut().map(std::mem::take) };
        drop(posted);
        for posted in all.unwrap_or_default() {
            if (*task).cancelled != 0 {
                return;
            }
            // Each copy may pause: a caller's tag is what it likes, a fun too.
            let message = copied(task, &posted.message);
            let root = ((*(*task).ops).root_new)(task, message);
            let to = copied(task, &posted.to);
            let message = ((*(*task).ops).root_get)(task, root);
            ((*(*task).ops).root_drop)(task, root);
            ((*(*task).ops).post)(task, to, message, posted.is_reply.into());
        }
    }
}
