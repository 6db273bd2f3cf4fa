//! Erlang functions that the caller calls for a body. See `call/asks.rs`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustler::{Encoder, Env, Term};

use crate::call::asks::{Answer, What};
use crate::call::Call;
use crate::term::Named;
use crate::wait::Waiting;
use crate::{vm, Error, OwnedTerm};

/// Calls an Erlang function in the caller's process, where it may take as long as it likes. The fair
/// function must be `may_wait` (or have mode `"threaded"`).
///
/// ```no_run
/// #[fairnif::nif(may_wait)]
/// async fn sum(numbers: Vec<i64>) -> Result<i64, fairnif::Error> {
///     fairnif::apply("lists", "sum", (numbers,)).await?.decode()
/// }
/// ```
///
/// The arguments are a tuple of up to eight. The whole call waits: futures joined or selected with
/// this one continue afterwards.
///
/// # Panics
/// If a name is longer than 255 bytes.
pub fn apply(module: &str, function: &str, args: impl Args) -> Apply {
    assert!(module.len() < 256 && function.len() < 256, "an atom of over 255 bytes");
    let args = OwnedTerm::made(|env| vm::raw_term(args.terms(env).encode(env)));
    Apply { what: (module.to_string(), function.to_string(), args), waiting: Waiting::new() }
}

/// Arguments of [`apply`]: tuples of types that rustler encodes.
pub trait Args: sealed::Args {}

impl<T: sealed::Args> Args for T {}

mod sealed {
    use super::{Encoder, Env, Term};

    pub trait Args {
        fn terms<'a>(&self, env: Env<'a>) -> Vec<Term<'a>>;
    }

    macro_rules! args {
        ($($name:ident)*) => {
            impl<$($name: Encoder),*> Args for ($($name,)*) {
                #[allow(non_snake_case)]
                fn terms<'a>(&self, _env: Env<'a>) -> Vec<Term<'a>> {
                    let ($($name,)*) = self;
                    vec![$($name.encode(_env)),*]
                }
            }
        };
    }

    args!();
    args!(A);
    args!(A B);
    args!(A B C);
    args!(A B C D);
    args!(A B C D E);
    args!(A B C D E F);
    args!(A B C D E F G);
    args!(A B C D E F G H);
}

/// `erlang:monitor(process, Who)`. Returns the reference, with which to receive the `DOWN` message.
pub fn monitor(who: impl Encoder) -> Apply {
    apply("erlang", "monitor", (Named("process"), who))
}

/// `link(Pid)`.
pub fn link(pid: impl Encoder) -> Apply {
    apply("erlang", "link", (pid,))
}

/// The future that [`apply`] returns: the function's result, or the exception that it raised.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Apply {
    what: (String, String, OwnedTerm),
    waiting: Waiting<What, Answer>,
}

impl Future for Apply {
    type Output = Result<OwnedTerm, Raised>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Apply { what, waiting } = &mut *self;
        let make = || {
            let (module, function, args) = what.clone();
            Ok(What::Apply { module, function, args })
        };
        let add = |call: &Call, ask| call.asks.add(ask);
        waiting.poll("apply", context, make, add).map(|answer| match answer {
            Answer::Came(result) => Ok(result),
            Answer::Raised(why) => Err(Raised::new(why)),
            Answer::Nothing => unreachable!("it has no time"),
        })
    }
}

/// An exception that an Erlang function raised.
///
/// Converted to an [`Error`], an error is raised unchanged, an exit or a throw as the error
/// `{Class, Reason}`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Raised {
    /// The class.
    pub class: Class,
    /// The reason.
    pub reason: OwnedTerm,
}

/// Erlang's classes of exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `error(Reason)`
    Error,
    /// `exit(Reason)`
    Exit,
    /// `throw(Reason)`
    Throw,
}

impl Raised {
    /// Of `{Class, Reason}`.
    fn new(why: OwnedTerm) -> Raised {
        match why.tuple().as_deref() {
            Some([class, reason]) => {
                let class = match class {
                    class if class.is_atom("exit") => Class::Exit,
                    class if class.is_atom("throw") => Class::Throw,
                    _ => Class::Error,
                };
                Raised { class, reason: reason.clone() }
            }
            _ => Raised { class: Class::Error, reason: why },
        }
    }
}

impl Encoder for Raised {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        match self.class {
            Class::Error => self.reason.encode(env),
            Class::Exit => (Named("exit"), &self.reason).encode(env),
            Class::Throw => (Named("throw"), &self.reason).encode(env),
        }
    }
}

impl From<Raised> for Error {
    fn from(raised: Raised) -> Error {
        Error::raise(raised)
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?}: {:?}", self.class, self.reason)
    }
}

impl std::error::Error for Raised {}
