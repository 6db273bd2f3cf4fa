//! The VM's functions that are called here, through rustler's table of them.
//!
//! rustler's type of a term was a number up to 0.38 and is a struct around one since. `raw` and
//! `cooked` are the only places that know.

use std::ffi::{c_int, c_void};
use std::mem::{transmute_copy, MaybeUninit};
use std::ptr::NonNull;

use rustler::sys;

use crate::abi::{Env, Term};

pub(crate) use sys::ErlNifBinary;

pub(crate) fn raw<T: Copy>(term: T) -> Term {
    const { assert!(size_of::<T>() == size_of::<Term>()) };
    // Safety: a term is a machine word in every release, without padding.
    unsafe { transmute_copy(&term) }
}

/// # Safety
/// `T` must be rustler's type of a term.
unsafe fn cooked<T: Copy>(term: Term) -> T {
    const { assert!(size_of::<T>() == size_of::<Term>()) };
    transmute_copy(&term)
}

/// What a rustler term is.
pub(crate) fn raw_term(term: rustler::Term) -> Term {
    raw(term.as_c_arg())
}

/// The environment of a slice, for rustler.
///
/// # Safety
/// `env` must be valid as long as `lifetime`, which nothing else borrows.
pub(crate) unsafe fn rustler_env<T>(lifetime: &T, env: Env) -> rustler::Env<'_> {
    rustler::Env::new(lifetime, env.cast())
}

pub(crate) fn raw_env(env: rustler::Env) -> Env {
    env.as_c_arg().cast()
}

/// # Safety
/// `term` must be a term of `env`.
pub(crate) unsafe fn rustler_term(env: rustler::Env, term: Term) -> rustler::Term {
    rustler::Term::new(env, cooked(term))
}

pub(crate) fn make_atom(env: rustler::Env, name: &str) -> Term {
    let name: &[u8] = name.as_bytes();
    // Safety: the environment is valid, the bytes are as many as said.
    raw(unsafe { sys::enif_make_atom_len(env.as_c_arg(), name.as_ptr().cast(), name.len()) })
}

/// # Safety
/// `env` must be valid and this thread's.
pub(crate) unsafe fn make_int(env: Env, number: c_int) -> Term {
    raw(sys::enif_make_int(env.cast(), number))
}

/// `=:=`
///
/// # Safety
/// Both must be terms that are valid now.
pub(crate) unsafe fn is_identical(one: Term, other: Term) -> bool {
    sys::enif_is_identical(cooked(one), cooked(other)) != 0
}

/// The elements of a tuple.
pub(crate) fn get_tuple<'a>(term: rustler::Term<'a>) -> Option<&'a [Term]> {
    let (mut arity, mut elements) = (0, std::ptr::null());
    let env = term.get_env();
    // Safety: the term is one of its environment; the elements live as long.
    unsafe {
        if sys::enif_get_tuple(env.as_c_arg(), term.as_c_arg(), &mut arity, &mut elements) == 0 {
            return None;
        }
        Some(std::slice::from_raw_parts(elements.cast(), arity as usize))
    }
}

/// # Safety
/// `data` must be what the resource object of module and type `name` expects.
pub(crate) unsafe fn dynamic_resource_call(
    env: rustler::Env,
    module: Term,
    name: Term,
    object: Term,
    data: *mut c_void,
) -> c_int {
    sys::enif_dynamic_resource_call(
        env.as_c_arg(),
        cooked(module),
        cooked(name),
        cooked(object),
        data as _,
    )
}

/// # Safety
/// `env` must be that of a running call, `reason` a term of it.
pub(crate) unsafe fn raise(env: rustler::Env, reason: Term) -> Term {
    raw(sys::enif_raise_exception(env.as_c_arg(), cooked(reason)))
}

/// A process-independent environment.
pub(crate) fn alloc_env() -> Env {
    // Safety: always allowed, on any thread; the VM ends the node when memory is out.
    unsafe { sys::enif_alloc_env() }.cast()
}

/// # Safety
/// `env` must come from `alloc_env`, and nothing of it be used any more.
pub(crate) unsafe fn free_env(env: Env) {
    sys::enif_free_env(env.cast())
}

/// # Safety
/// `term` must be a term that stays as it is during the call.
pub(crate) unsafe fn copy_out(to: rustler::Env, term: Term) -> rustler::Term {
    rustler_term(to, raw(sys::enif_make_copy(to.as_c_arg(), cooked(term))))
}

/// # Safety
/// `term` must be a term of `env`. What is answered lives as long as that.
pub(crate) unsafe fn inspect_binary(env: Env, term: Term) -> Option<(*const u8, usize)> {
    let mut bin = MaybeUninit::<ErlNifBinary>::uninit();
    if sys::enif_inspect_binary(env.cast(), cooked(term), bin.as_mut_ptr()) == 0 {
        return None;
    }
    let bin = bin.assume_init();
    Some((bin.data, bin.size))
}

pub(crate) fn alloc_binary(size: usize) -> Option<ErlNifBinary> {
    let mut bin = MaybeUninit::<ErlNifBinary>::uninit();
    // Safety: an answer other than 0 says that it is set.
    unsafe { (sys::enif_alloc_binary(size, bin.as_mut_ptr()) != 0).then(|| bin.assume_init()) }
}

/// # Safety
/// `bin` must come from `alloc_binary` and be no term yet.
pub(crate) unsafe fn realloc_binary(bin: &mut ErlNifBinary, size: usize) -> bool {
    sys::enif_realloc_binary(bin, size) != 0
}

/// # Safety
/// As `realloc_binary`; it is gone afterwards.
pub(crate) unsafe fn release_binary(bin: &mut ErlNifBinary) {
    sys::enif_release_binary(bin)
}

/// The first `len` bytes of a binary as a term. What is behind them stays in memory.
///
/// # Safety
/// As `realloc_binary`; it belongs to the term afterwards. `env` is valid and this thread's.
pub(crate) unsafe fn make_part(env: Env, bin: *mut ErlNifBinary, len: usize) -> Term {
    let whole = (*bin).size;
    let term = sys::enif_make_binary(env.cast(), bin);
    if len == whole {
        return raw(term);
    }
    raw(sys::enif_make_sub_binary(env.cast(), term, 0, len))
}

/// A term of a copy of these bytes.
pub(crate) fn copy_bytes<'a>(env: rustler::Env<'a>, bytes: &[u8]) -> rustler::Term<'a> {
    // Safety: the VM ends the node when memory is out, so there is room for the bytes.
    unsafe {
        let mut term = cooked(0);
        let data = sys::enif_make_new_binary(env.as_c_arg(), bytes.len(), &mut term);
        if !bytes.is_empty() {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
        }
        rustler::Term::new(env, term)
    }
}

// -- resource objects: each is one of the VM's that is there --------------------------------------

/// # Safety
/// `object` must be an object of the VM's.
pub(crate) unsafe fn keep_resource(object: NonNull<c_void>) {
    sys::enif_keep_resource(object.as_ptr() as _);
}

/// # Safety
/// As `keep_resource`; one reference to it goes.
pub(crate) unsafe fn release_resource(object: NonNull<c_void>) {
    sys::enif_release_resource(object.as_ptr() as _);
}

/// # Safety
/// As `keep_resource`.
pub(crate) unsafe fn make_resource(
    env: rustler::Env<'_>,
    object: NonNull<c_void>,
) -> rustler::Term<'_> {
    let term = raw(sys::enif_make_resource(env.as_c_arg(), object.as_ptr() as _));
    rustler_term(env, term)
}

/// The object of a term, if it is of this type; valid as long as the term.
///
/// # Safety
/// `of` must be a type of the VM's.
pub(crate) unsafe fn get_resource(term: rustler::Term, of: *mut c_void) -> Option<NonNull<c_void>> {
    let mut object = std::ptr::null_mut::<c_void>();
    let env = term.get_env().as_c_arg();
    let found = sys::enif_get_resource(env, term.as_c_arg(), of as _, &mut object as *mut _ as _);
    NonNull::new(object).filter(|_| found != 0)
}
