//! What a fair function returns when it has no result.

use std::fmt;
use std::io;
use std::mem::forget;
use std::panic::{catch_unwind, AssertUnwindSafe};

use rustler::codegen_runtime::{NifReturnable, NifReturned};
use rustler::{Atom, Encoder, Env};

/// The same variants as `rustler::Error`, but it may be kept across a pause.
#[non_exhaustive]
pub enum Error {
    /// Raises `badarg`.
    BadArg,
    /// Returns the atom.
    Atom(&'static str),
    /// Raises the atom.
    RaiseAtom(&'static str),
    /// Returns `{error, Term}`.
    Term(Box<dyn Encoder + Send + Sync>),
    /// Raises the term.
    RaiseTerm(Box<dyn Encoder + Send + Sync>),
}

impl Error {
    /// Returns `{error, Term}`.
    pub fn term(term: impl Encoder + Send + Sync + 'static) -> Error {
        Error::Term(Box::new(term))
    }

    /// Raises the term.
    pub fn raise(term: impl Encoder + Send + Sync + 'static) -> Error {
        Error::RaiseTerm(Box::new(term))
    }
}

/// Returns `{error, Message}` with the message in a binary.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::term(error.to_string())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::BadArg => f.write_str("BadArg"),
            Error::Atom(name) => write!(f, "Atom({name})"),
            Error::RaiseAtom(name) => write!(f, "RaiseAtom({name})"),
            Error::Term(_) => f.write_str("Term(_)"),
            Error::RaiseTerm(_) => f.write_str("RaiseTerm(_)"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(crate) fn into_returned(self, env: Env) -> NifReturned {
        let theirs = match self {
            Error::BadArg => rustler::Error::BadArg,
            Error::Atom(name) => rustler::Error::Atom(name),
            Error::RaiseAtom(name) => rustler::Error::RaiseAtom(name),
            Error::Term(term) => rustler::Error::Term(term),
            Error::RaiseTerm(term) => rustler::Error::RaiseTerm(term),
        };
        // Safety: it makes terms of `env`, which is valid.
        unsafe { theirs.into_returned(env) }
    }
}

/// What a panic answers, as rustler's functions do.
pub(crate) fn panicked(env: Env) -> NifReturned {
    let atom = Atom::from_str(env, "nif_panicked");
    atom.map_or(NifReturned::BadArg, |atom| Error::raise(atom).into_returned(env))
}

/// Runs what may be the author's where no poll is under way: a panic has no caller to go to.
pub(crate) fn quietly(f: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        return;
    };
    // Its destructor is the author's too.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        forget(another);
    }
}
