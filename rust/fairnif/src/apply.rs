//! Erlang functions that the caller calls for a body. See `ask.rs`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustler::{Encoder, Env, Term};

use crate::ask::{Answer, Asking, What};
use crate::term::Named;
use crate::{vm, Error, OwnedTerm};

/// Calls an Erlang function in the caller, where Erlang code waits as long as it likes. The
/// function must be `awaited` (or of mode `"threaded"`).
///
/// ```no_run
/// #[fairnif::nif(awaited)]
/// async fn sum(numbers: Vec<i64>) -> Result<i64, fairnif::Error> {
///     fairnif::apply("lists", "sum", (numbers,)).await?.decode()
/// }
/// ```
///
/// The arguments are a tuple, of eight at most. The whole call waits: what is joined or selected
/// with it goes on afterwards.
///
/// # Panics
/// When a name has over 255 bytes.
pub fn apply(module: &str, function: &str, args: impl Args) -> Apply {
    assert!(module.len() < 256 && function.len() < 256, "an atom of over 255 bytes");
    let args = OwnedTerm::made(|env| vm::raw_term(args.terms(env).encode(env)));
    Apply { what: (module.to_string(), function.to_string(), args), asking: Asking::default() }
}

/// Arguments of [`apply`]: tuples of what rustler encodes.
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

/// `erlang:monitor(process, Who)`: its reference, by which to receive.
pub fn monitor(who: impl Encoder) -> Apply {
    apply("erlang", "monitor", (Named("process"), who))
}

/// `link(Pid)`.
pub fn link(pid: impl Encoder) -> Apply {
    apply("erlang", "link", (pid,))
}

/// What [`apply`] returns: a future of what the function returned, or raised.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Apply {
    what: (String, String, OwnedTerm),
    asking: Asking,
}

impl Future for Apply {
    type Output = Result<OwnedTerm, Raised>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Apply { what, asking } = &mut *self;
        let make = || {
            let (module, function, args) = what.clone();
            What::Apply { module, function, args }
        };
        asking.poll("apply", context, make).map(|answer| match answer {
            Answer::Came(result) => Ok(result),
            Answer::Raised(why) => Err(Raised::new(why)),
            Answer::Nothing => unreachable!("it has no time"),
        })
    }
}

/// What an Erlang function raised.
///
/// As an [`Error`] it is raised as it was; an exit or a throw as an error `{Class, Reason}`.
#[derive(Clone, Debug)]
pub struct Raised {
    /// Which class.
    pub class: Class,
    /// And the reason.
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
