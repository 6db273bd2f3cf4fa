//! How a library finds the runtime: what `FAIR_NIF_INIT` does in C.
//!
//! When the same file is loaded again, the dynamic linker may hand out the same mapping: then
//! several instances of the module stand on one set of statics. In C each has entry points of its
//! own. rustler has one for each function, and no `upgrade`: the VM refuses to load a library while
//! an older instance can still be called. So the newest instance is the one that calls are for,
//! and each function points to its record in that ([`Function::record`]). Tasks of an older
//! instance, which live on after a purge, point to the records of theirs: these are never freed.

use std::ffi::{c_char, c_int, CStr, CString};
use std::mem::{size_of, zeroed};
use std::ptr::{from_mut, null, null_mut};
use std::sync::atomic::Ordering;

use rustler::{Env, Term};

use crate::abi;
use crate::codegen::{inventory, Entry, Function};
use crate::resource::declare;
use crate::vm;

/// Binds the library to the runtime. The library's `load` calls it, once, and answers false when
/// it does.
///
/// ```no_run
/// use rustler::{Env, Term};
///
/// fn load(env: Env, info: Term) -> bool {
///     fairnif::load(env, info)
/// }
/// rustler::init!("Elixir.My.Native", load = load);
/// ```
///
/// The module gives what `fairnif:load_info/0` answers to `load_nif`; in Elixir:
///
/// ```elixir
/// use Rustler, otp_app: :my_app, load_data_fun: {:fairnif, :load_info}
/// ```
///
/// Let it be the last thing that `load` does, as in `prepare() && fairnif::load(env, info)`, or answer
/// true after it. The VM undoes what was opened when `load` answers false: a
/// [`FairResource`](crate::FairResource) that was made meanwhile would be of a type that is gone, as
/// rustler's `ResourceArc` would. Before it has succeeded none can be made.
///
/// Anywhere else it answers false. What goes wrong is said on standard error. The functions of a
/// library that does not call this raise `error:{fairnif, not_loaded}`.
pub fn load(env: Env, info: Term) -> bool {
    match module() {
        Some(module) => load_as(env, info, module),
        None => {
            eprintln!("fairnif: a library without nif_init: use fairnif::load_as");
            false
        }
    }
}

/// As [`load`], for a library whose `nif_init` cannot be looked up, such as one that is linked into
/// another. `module` is what `rustler::init!` got.
pub fn load_as(env: Env, info: Term, module: &str) -> bool {
    let error = CString::new(module).map_or(abi::E_ABI, |module| bind(env, info, &module));
    error == 0
}

/// What was given to `fairnif:load_info/1`, from the term that `load` got.
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
        return refuse(module, abi::E_LOAD_INFO, "fairnif::load is for the library's load");
    }
    let fairnif = vm::make_atom(env, "fairnif");
    let runtime = match vm::get_tuple(info) {
        Some(&[tag, _, runtime, _]) if tag == fairnif => runtime,
        _ => {
            return refuse(
                module,
                abi::E_LOAD_INFO,
                "the second argument of load_nif is not what \
                fairnif:load_info/0 answers (Elixir: load_data_fun: {:fairnif, :load_info})",
            );
        }
    };
    let functions: Vec<&Function> = inventory::iter::<Entry>().map(|entry| entry.0).collect();
    let (lib, nifs) = records(&functions);
    let mut handshake = handshake(module, nifs);
    // Safety: the runtime's object knows this struct by its first field, its size.
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
    // Safety: this is load, and its environment; the runtime waits to be told how it ends.
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

/// What an instance needs for good: some 90 bytes a function, at each load.
#[allow(clippy::mut_from_ref)] // What is borrowed mutably is new.
fn records(functions: &[&'static Function]) -> (&'static mut abi::Lib, &'static mut [abi::Nif]) {
    let lib = abi::Lib { ops: null(), resource_type: null_mut(), state: abi::LOADED };
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
        abi_major: abi::ABI_MAJOR,
        abi_minor: abi::ABI_MINOR,
        task_size: size_of::<abi::Task>() as u32,
        options_size: size_of::<abi::Options>() as u32,
        nif_size: size_of::<abi::Nif>() as u32,
        ops_size: size_of::<abi::Ops>() as u32,
        module: module.as_ptr(),
        nifs: nifs.as_mut_ptr(),
        nif_count: nifs.len() as u32,
        error: 0,
        ops: null(),
        resource_type: null_mut(),
    }
}

/// The name that `rustler::init!` got. It is in what `nif_init` answers, and nowhere else: the VM
/// tells a library neither its module nor where it has put the table.
fn module() -> Option<&'static str> {
    type Init = unsafe extern "C" fn() -> *const vm::Entry;

    // Safety: a library that is loaded is looked up by an address in it. Its `nif_init` may be
    // called again: it fills in the same table anew.
    unsafe {
        let mut here: libc::Dl_info = zeroed();
        if libc::dladdr(module as *const _, &mut here) == 0 {
            return None;
        }
        let library = libc::dlopen(here.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if library.is_null() {
            return None;
        }
        let init = libc::dlsym(library, c"nif_init".as_ptr());
        libc::dlclose(library);
        if init.is_null() {
            return None;
        }
        let init: Init = std::mem::transmute(init);
        let name: *const c_char = (*init()).name;
        CStr::from_ptr(name).to_str().ok()
    }
}
