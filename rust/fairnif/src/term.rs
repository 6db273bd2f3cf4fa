//! Terms that survive pauses.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustler::{Decoder, Encoder, Env, Term};

use crate::{abi, vm, Error};

/// Any term that may be kept across a pause, sent to another thread and outlive the call: a message,
/// the result of an Erlang function, a pid or a reference of any node.
///
/// It is a copy in its own environment. A clone, and the parts that [`OwnedTerm::as_call`] returns,
/// share that environment. It can be an argument, a result, or a part of either, like any other type:
/// `message.decode::<(Atom, OwnedTerm)>()`.
#[derive(Clone)]
pub struct OwnedTerm {
    held: Arc<Held>,
    term: abi::Term,
}

struct Held {
    env: abi::Env,
    /// Decoders may make terms in the environment.
    decoding: Mutex<()>,
}

// Safety: the terms never change. Who writes to the environment holds the lock, or made it and has
// not given it away yet; the last owner frees it.
unsafe impl Send for Held {}
unsafe impl Sync for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        // Safety: there is no term of it any more.
        unsafe { vm::free_env(self.env) };
    }
}

impl OwnedTerm {
    /// A value as a term.
    pub fn new(value: impl Encoder) -> OwnedTerm {
        OwnedTerm::made(|env| vm::raw_term(value.encode(env)))
    }

    /// `make` answers a term of the environment that it gets.
    pub(crate) fn made(make: impl FnOnce(Env) -> abi::Term) -> OwnedTerm {
        let held = Held { env: vm::alloc_env(), decoding: Mutex::new(()) };
        let lifetime = ();
        // Safety: it is valid as long as `held`.
        let term = make(unsafe { vm::rustler_env(&lifetime, held.env) });
        OwnedTerm { held: Arc::new(held), term }
    }

    /// A copy of a term of another environment.
    ///
    /// # Safety
    /// It must be one that is valid now.
    pub(crate) unsafe fn copy_of(term: abi::Term) -> OwnedTerm {
        OwnedTerm::made(|env| vm::raw_term(vm::copy_out(env, term)))
    }

    /// Where the bytes of a binary are, as long as this holds it. Asked of a term that was made just
    /// now, which is not shared yet.
    pub(crate) fn bytes(&self) -> Option<(*const u8, usize)> {
        // Safety: the term is one of the environment.
        unsafe { vm::inspect_binary(self.held.env, self.term) }
    }

    pub(crate) fn raw(&self) -> abi::Term {
        self.term
    }

    fn with<R>(&self, f: impl FnOnce(Term) -> R) -> R {
        let lifetime = ();
        // Safety: the environment and its term live as long as `self`.
        f(unsafe { vm::rustler_term(vm::rustler_env(&lifetime, self.held.env), self.term) })
    }

    /// Decodes the term. [`Error::BadArg`] if it is not a `T`.
    pub fn decode<T: for<'a> Decoder<'a>>(&self) -> Result<T, Error> {
        let _lock = self.held.decoding.lock().unwrap_or_else(PoisonError::into_inner);
        self.with(|term| term.decode().map_err(|_| Error::BadArg))
    }

    /// If this is a message of `gen_server:call` (`GenServer.call`): who sent it, for
    /// [`Caller::reply`](crate::Caller::reply), and the request. Otherwise `None`.
    pub fn as_call(&self) -> Option<(OwnedTerm, OwnedTerm)> {
        match self.parts_after("$gen_call")?[..] {
            [from, request] => Some((self.part(from), self.part(request))),
            _ => None,
        }
    }

    /// If this is a message of `gen_server:cast`: the request. Otherwise `None`.
    pub fn as_cast(&self) -> Option<OwnedTerm> {
        match self.parts_after("$gen_cast")?[..] {
            [request] => Some(self.part(request)),
            _ => None,
        }
    }

    /// The elements of a tuple that begins with this atom, but for it.
    fn parts_after(&self, name: &str) -> Option<Vec<abi::Term>> {
        self.with(|term| match vm::get_tuple(term)? {
            [tag, rest @ ..] if *tag == vm::make_atom(term.get_env(), name) => Some(rest.to_vec()),
            _ => None,
        })
    }

    pub(crate) fn tuple(&self) -> Option<Vec<OwnedTerm>> {
        let parts = self.with(|term| vm::get_tuple(term).map(<[_]>::to_vec));
        parts.map(|parts| parts.into_iter().map(|part| self.part(part)).collect())
    }

    fn part(&self, term: abi::Term) -> OwnedTerm {
        OwnedTerm { held: self.held.clone(), term }
    }

    /// As `fair_receive_tagged` has it.
    pub(crate) fn is_tagged(&self, tag: &OwnedTerm) -> bool {
        self == tag
            || self.tuple().is_some_and(|parts| {
                parts.first() == Some(tag)
                    || parts.get(1) == Some(tag) && tag.with(|term| term.is_ref())
            })
    }

    pub(crate) fn is_atom(&self, name: &str) -> bool {
        self.with(|term| self.term == vm::make_atom(term.get_env(), name))
    }
}

impl PartialEq for OwnedTerm {
    fn eq(&self, other: &OwnedTerm) -> bool {
        // Safety: both are valid.
        unsafe { vm::is_identical(self.term, other.term) }
    }
}

impl fmt::Debug for OwnedTerm {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.with(|term| fmt::Debug::fmt(&term, f))
    }
}

impl<'a> Decoder<'a> for OwnedTerm {
    fn decode(term: Term<'a>) -> rustler::NifResult<OwnedTerm> {
        // Safety: it is valid as long as its environment.
        Ok(unsafe { OwnedTerm::copy_of(vm::raw_term(term)) })
    }
}

impl Encoder for OwnedTerm {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        // Safety: the term does not change.
        unsafe { vm::copy_out(env, self.term) }
    }
}

/// An atom by its name, to be encoded.
pub(crate) struct Named(pub(crate) &'static str);

impl Encoder for Named {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        // Safety: an atom is a term of any environment.
        unsafe { vm::rustler_term(env, vm::make_atom(env, self.0)) }
    }
}
