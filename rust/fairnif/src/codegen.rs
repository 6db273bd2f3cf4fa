//! What the code that `#[fairnif::nif]` makes calls. Not for authors.

use std::cell::OnceCell;
use std::ffi::{c_int, c_uint, CStr};
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::Arc;

use rustler::codegen_runtime::{NifReturnable, NifReturned};
use rustler::{Decoder, Encoder, Env};

use crate::call::asks::Outbox;
use crate::call::{drive, End};
use crate::caller::Caller;
use crate::error::{panicked, quietly, Error};
use crate::{abi, vm};

pub use crate::abi::mode;
pub use crate::abi::{Env as RawEnv, Options, Task, Term as RawTerm};
pub use crate::resource::declare::{AnyType, Declared, ResourceEntry, Type};
pub use rustler::codegen_runtime::inventory;
pub use std::ffi::c_int as int;

/// A fair function: one for each use of the macro, in a static.
pub struct Function {
    pub(crate) name: &'static CStr,
    pub(crate) arity: c_uint,
    pub(crate) mode: c_uint,
    pub(crate) options: abi::Options,
    /// Its record in the instance of the library that was loaded last.
    pub(crate) record: AtomicPtr<abi::Nif>,
}

// Safety: what it points to is the library's code and constants, and records that are never freed.
unsafe impl Sync for Function {}

impl Function {
    pub const fn new(
        name: &'static CStr,
        arity: c_uint,
        mode: c_uint,
        options: abi::Options,
    ) -> Function {
        let record = AtomicPtr::new(null_mut());
        Function { name, arity, mode: mode | abi::mode::CLEANUP, options, record }
    }

    /// Where the VM comes in.
    ///
    /// # Safety
    /// With what the VM gives to a NIF.
    pub unsafe fn enter(&self, env: RawEnv, argc: int, argv: *const RawTerm) -> RawTerm {
        let record = self.record.load(Ordering::Acquire);
        let Some(nif) = record.as_ref() else {
            return self.raise_unbound(env);
        };
        ((*(*nif.lib).ops).enter)(record, env, argc, argv)
    }

    /// The library was made by `rustler::init!` alone.
    #[cold]
    unsafe fn raise_unbound(&self, env: RawEnv) -> RawTerm {
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            eprintln!(
                "fairnif: {}/{}: rustler::init! made this library: let fairnif::init! do so",
                self.name.to_string_lossy(),
                self.arity
            );
        }
        let lifetime = ();
        let env = vm::rustler_env(&lifetime, env);
        let fairnif = vm::rustler_term(env, vm::make_atom(env, "fairnif"));
        let reason = vm::rustler_term(env, vm::make_atom(env, "not_loaded"));
        vm::raise(env, vm::raw_term((fairnif, reason).encode(env)))
    }
}

/// In the inventory of the library.
pub struct Entry(pub &'static Function);

inventory::collect!(Entry);

/// What the VM calls.
pub type Enter = unsafe extern "C" fn(RawEnv, c_int, *const RawTerm) -> RawTerm;

/// In rustler's inventory.
#[allow(clippy::missing_transmute_annotations)]
pub const fn nif(function: &Function, enter: Enter) -> rustler::Nif {
    rustler::Nif {
        name: function.name.as_ptr(),
        arity: function.arity,
        flags: 0,
        // Safety: the same function; rustler's names of the pointers' types change.
        raw_func: unsafe { std::mem::transmute::<Enter, _>(enter) },
    }
}

/// The arguments of a call, at its begin.
pub struct Args<'a> {
    env: Env<'a>,
    terms: &'a [RawTerm],
    task: *mut Task,
    /// Made where the function has a `Caller`.
    outbox: OnceCell<Arc<Outbox>>,
}

impl<'a> Args<'a> {
    pub fn get<T: Decoder<'a>>(&self, index: usize) -> Result<T, rustler::Error> {
        let term = *self.terms.get(index).ok_or(rustler::Error::BadArg)?;
        // Safety: it is one of the terms that came with the environment.
        unsafe { vm::rustler_term(self.env, term) }.decode()
    }

    pub fn caller(&self) -> Result<Caller, rustler::Error> {
        let outbox = self.outbox.get_or_init(Outbox::new).clone();
        // Safety: `begin` is called with the body's task.
        unsafe { Caller::new(self.task, outbox) }.ok_or(rustler::Error::BadArg)
    }
}

/// A body: decodes the arguments, runs the future to its end, answers its value.
///
/// # Safety
/// The task is that of the body that calls this.
pub unsafe fn run<F>(
    task: *mut Task,
    make: impl for<'a> FnOnce(&Args<'a>) -> Result<F, rustler::Error>,
    answer: impl for<'a> FnOnce(F::Output, Env<'a>) -> NifReturned,
) -> RawTerm
where
    F: Future + Send + 'static,
{
    let (begun, outbox) = begin(task, make);
    match begun {
        Ok(Ok(future)) => match drive(task, outbox, future) {
            End::Ready(value) => reply(task, |env| answer(value, env)),
            End::Panicked(payload) => reply(task, |env| of_panic(payload, env)),
            End::Cancelled => 0,
        },
        Ok(Err(error)) => reply(task, |env| error.into_returned(env)),
        Err(payload) => reply(task, |env| of_panic(payload, env)),
    }
}

/// The future, and where what is sent lies. No pause, and no term of these after it.
unsafe fn begin<F>(
    task: *mut Task,
    make: impl for<'a> FnOnce(&Args<'a>) -> Result<F, rustler::Error>,
) -> (std::thread::Result<Result<F, rustler::Error>>, Option<Arc<Outbox>>) {
    let lifetime = ();
    let env = vm::rustler_env(&lifetime, (*task).env);
    let terms = match (*task).argc {
        0 => &[],
        argc => std::slice::from_raw_parts((*task).argv, argc as usize),
    };
    let args = Args { env, terms, task, outbox: OnceCell::new() };
    let begun = catch_unwind(AssertUnwindSafe(|| make(&args)));
    (begun, args.outbox.into_inner())
}

unsafe fn reply(task: *mut Task, answer: impl FnOnce(Env) -> NifReturned) -> RawTerm {
    if (*task).cancelled != 0 {
        quietly(|| drop(answer));
        return 0;
    }
    (*task).env_used = 1;
    let lifetime = ();
    let env = vm::rustler_env(&lifetime, (*task).env);
    let returned = catch_unwind(AssertUnwindSafe(|| answer(env)));
    let ops = &*(*task).ops;
    let returned = returned.unwrap_or_else(|payload| {
        quietly(|| drop(payload));
        panicked(env)
    });
    match returned {
        NifReturned::Term(term) => vm::raw(term),
        NifReturned::Raise(reason) => (ops.raise)(task, vm::raw(reason)),
        NifReturned::BadArg => (ops.raise)(task, vm::make_atom(env, "badarg")),
        // rustler's `schedule`, which leads out of the task.
        NifReturned::Reschedule { .. } => 0,
    }
}

/// As rustler has it: some panics carry an answer.
fn of_panic(payload: Box<dyn std::any::Any + Send>, env: Env) -> NifReturned {
    match payload.downcast::<NifReturned>() {
        Ok(returned) => *returned,
        Err(_) => panicked(env),
    }
}

/// A value on its way to a term. The macro calls `answer` of `&mut &mut Answer`: that is
/// `AnswerResult`'s for a `Result` with this crate's error, and else `AnswerOther`'s.
pub struct Answer<T>(pub Option<T>, PhantomData<T>);

impl<T> Answer<T> {
    pub fn new(value: T) -> Answer<T> {
        Answer(Some(value), PhantomData)
    }
}

pub trait AnswerResult {
    fn answer(self, env: Env) -> NifReturned;
}

impl<T: NifReturnable> AnswerResult for &mut &mut Answer<Result<T, Error>> {
    fn answer(self, env: Env) -> NifReturned {
        match self.0.take() {
            // Safety: it makes terms of `env`, which is valid.
            Some(Ok(value)) => unsafe { value.into_returned(env) },
            Some(Err(error)) => error.into_returned(env),
            None => panicked(env),
        }
    }
}

pub trait AnswerOther {
    fn answer(self, env: Env) -> NifReturned;
}

impl<T: NifReturnable> AnswerOther for &mut Answer<T> {
    fn answer(self, env: Env) -> NifReturned {
        match self.0.take() {
            // Safety: as above.
            Some(value) => unsafe { value.into_returned(env) },
            None => panicked(env),
        }
    }
}
