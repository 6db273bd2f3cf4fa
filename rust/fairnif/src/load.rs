//! How a library finds the runtime: what `FAIR_NIF_INIT` does in C.
//!
//! When the same file is loaded again, the dynamic linker may return the same mapping: then
//! several instances of the module stand on one set of statics. In C each has entry points of its
//! own. rustler has one for each function, and no `upgrade`: the VM refuses to load a library while
//! an older instance can still be called. So the newest instance is the one that calls are for,
//! and each function points to its record in that ([`Function::record`]). Tasks of an older
//! instance, which live on after a purge, point to the records of theirs: these are never freed.

use std::ffi::{c_int, CStr, CString};
use std::mem::{size_of, zeroed};
use std::ptr::{from_mut, null, null_mut};
use std::sync::atomic::Ordering;

use rustler::codegen_runtime::inventory;
use rustler::{Env, Term};

use crate::abi;
use crate::codegen::{Entry, Function};
use crate::resource::declare;
use crate::vm;

/// Replaces `rustler::init!`, and adds a `load` that binds the library to the runtime.
///
/// ```no_run
/// use rustler::{Env, Term};
///
/// fn prepare(env: Env, info: Term) -> bool {
///     fairnif::authors_info(info).is_some_and(|term| term.is_atom())
/// }
/// fairnif::init!("Elixir.My.Native", load = prepare);
/// ```
///
/// `load = ` is optional. The author's function runs first. If it returns false or panics, the library
/// is not loaded, and nothing has changed for an older instance of it, whose threads may be at work.
///
/// The module passes what `fairnif:load_info/0` returns to `load_nif`. In Elixir:
///
/// ```elixir
/// use Rustler, otp_app: :my_app, load_data_fun: {:fairnif, :load_info}
/// ```
///
/// Errors are reported on standard error. The fair functions of a library that uses `rustler::init!`
/// instead raise `error:{fairnif, not_loaded}`.
#[macro_export]
macro_rules! init {
    ($module:tt $(, load = $load:path)? $(,)?) => {
        fn __fairnif_load<'a>(env: ::rustler::Env<'a>, info: ::rustler::Term<'a>) -> bool {
            $(
                if !$load(env, info) {
                    return false;
                }
            )?
            // Safety: what it answers is what the library's load answers.
            unsafe { $crate::__load(env, info, $module) }
        }

        ::rustler::init!($module, load = __fairnif_load);
    };
}

/// Binds the library to the runtime. `module` is the argument of `rustler::init!`. Returns false
/// everywhere but in `load`.
///
/// # Safety
/// If this returns true, the library's `load` must return true as well. Otherwise the VM frees the
/// types of the library's `FairResource`s, and safe code would create objects of freed types. So only
/// [`init!`](crate::init) calls this, at the end of the `load` that it makes.
pub unsafe fn load(env: Env, info: Term, module: &str) -> bool {
    let error = CString::new(module).map_or(abi::E_ABI, |module| bind(env, info, &module));
    error == 0
}

/// The argument of `fairnif:load_info/1`, found in the term that `load` received.
pub fn authors_info<'a>(info: Term<'a>) -> Option<Term<'a>> {
    let term = *vm::get_tuple(info)?.get(3)?;
    // Safety: an element of a tuple of the same environment.
    Some(unsafe { vm::rustler_term(info.get_env(), term) })
}

/// Of no value. The runtime makes a type of resources for the library, which the VM allows in `load`
/// only, and does not check. rustler knows which environments are those of `load`: in others it
/// refuses to make this one.
struct Loading;

impl rustler::Resource for Loading {}

fn bind(env: Env, info: Term, module: &CStr) -> c_int {
    if env.register::<Loading>().is_err() {
        return refuse(
            module,
            abi::E_LOAD_INFO,
            "a library is bound to the runtime in its load only",
        );
    }
    let fairnif = vm::make_atom(env, "fairnif");
    let runtime = match vm::get_tuple(info) {
        Some(&[tag, _, runtime, _]) if tag == fairnif => runtime,
        _ => {
            return refuse(
                module,
                abi::E_LOAD_INFO,
                "the second argument of load_nif is not what fairnif:load_info/0 returned: call \
                erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info()), in Elixir \
                use Rustler, load_data_fun: {:fairnif, :load_info}",
            );
        }
    };
    let functions: Vec<&Function> = inventory::iter::<Entry>().map(|entry| entry.0).collect();
    let (lib, nifs) = records(&functions);
    let mut handshake = handshake(module, nifs);
    // Safety: the runtime's object knows this struct by its first fields, size and kind.
    let answer = unsafe {
        let name = vm::make_atom(env, "fairnif_runtime");
        vm::dynamic_resource_call(env, fairnif, name, runtime, from_mut(&mut handshake).cast())
    };
    if answer != 0 {
        return refuse(
            module,
            abi::E_RUNTIME,
            "the runtime of this load_info is not there: call \
            fairnif:load_info/0 in the node, and when the library is loaded",
        );
    }
    if handshake.error != 0 || handshake.ops.is_null() {
        // Safety: a table that is there is whole.
        if let Some(ops) = unsafe { handshake.ops.as_ref() } {
            unsafe { (ops.loaded)(handshake.error) };
        }
        return if handshake.error != 0 { handshake.error } else { abi::E_ABI };
    }
    // Safety: this is load, and its environment; the runtime waits for its outcome.
    let opened = unsafe { declare::open(env.as_c_arg().cast(), handshake.ops) };
    let error = if opened.is_some() { 0 } else { abi::E_NOMEM };
    // Safety: the runtime's table.
    unsafe { ((*handshake.ops).loaded)(error) };
    let Some(opened) = opened else {
        return error;
    };
    lib.ops = handshake.ops;
    lib.resource_type = handshake.resource_type;
    declare::publish(handshake.ops, &opened);
    for (function, nif) in functions.iter().zip(nifs) {
        function.record.store(nif, Ordering::Release);
    }
    0
}

fn refuse(module: &CStr, error: c_int, why: &str) -> c_int {
    eprintln!("fairnif: {}: {why}", module.to_string_lossy());
    error
}

/// What an instance needs until the VM halts: some 110 bytes a function, at each load.
#[allow(clippy::mut_from_ref)] // What is borrowed mutably is new.
fn records(functions: &[&'static Function]) -> (&'static mut abi::Lib, &'static mut [abi::Nif]) {
    // Safety: pointers and numbers.
    let lib = abi::Lib { state: abi::LOADED, ..unsafe { zeroed() } };
    let lib = Box::leak(Box::new(lib));
    let pointer = from_mut(lib);
    let nifs = functions.iter().map(|function| abi::Nif {
        body: function.options.body,
        options: &function.options,
        name: function.name.as_ptr(),
        arity: function.arity,
        mode: function.mode,
        lib: pointer,
        // Safety: numbers and a pointer, which the runtime sets.
        ..unsafe { zeroed() }
    });
    (lib, Vec::leak(nifs.collect()))
}

fn handshake(module: &CStr, nifs: &mut [abi::Nif]) -> abi::Handshake {
    abi::Handshake {
        size: size_of::<abi::Handshake>() as u32,
        kind: abi::BINDS,
        abi_major: abi::ABI_MAJOR,
        abi_minor: abi::ABI_MINOR,
        task_size: size_of::<abi::Task>() as u32,
        options_size: size_of::<abi::Options>() as u32,
        nif_size: size_of::<abi::Nif>() as u32,
        lib_size: size_of::<abi::Lib>() as u32,
        ops_size: size_of::<abi::Ops>() as u32,
        bin_size: size_of::<abi::Bin>() as u32,
        mutex_size: size_of::<abi::Mutex>() as u32,
        module: module.as_ptr(),
        nifs: nifs.as_mut_ptr(),
        nif_count: nifs.len() as u32,
        error: 0,
        ops: null(),
        resource_type: null_mut(),
    }
}
