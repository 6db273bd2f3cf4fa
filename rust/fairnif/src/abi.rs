//! What the runtime and a library know of each other: `fairnif.h` and `fairnif_abi.h` in Rust.
//!
//! `tests/layout.rs` compares it with the headers. A term is a `usize` here ([`Term`]), an
//! environment an untyped pointer: rustler's types for them differ from release to release.
#![allow(missing_docs)]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The version of the runtime's interface that this crate was written for.
pub const ABI_MAJOR: u16 = 2;
pub const ABI_MINOR: u16 = 4;

/// `ERL_NIF_TERM`.
pub type Term = usize;
/// `ErlNifEnv *`.
pub type Env = *mut c_void;

/// `enum fair_mode`.
pub mod mode {
    pub const NORMAL: u32 = 1;
    pub const DIRTY_CPU: u32 = 2;
    pub const DIRTY_IO: u32 = 3;
    pub const THREADED: u32 = 4;
    pub const AUTO: u32 = 5;
    /// Or-ed to a mode.
    pub const UNWINDS: u32 = 0x20;
    pub const NO_YIELD: u32 = 0x40;
    pub const AWAITED: u32 = 0x80;
}

/// Events of `fair_wait`.
pub const READ: c_uint = 1;
pub const WRITE: c_uint = 2;

pub const E_LOAD_INFO: c_int = 4701;
pub const E_RUNTIME: c_int = 4702;
pub const E_ABI: c_int = 4703;
pub const E_NOMEM: c_int = 4705;

/// `fair_body`.
pub type Body = unsafe extern "C" fn(task: *mut Task) -> Term;

/// `fair_options`.
#[repr(C)]
pub struct Options {
    pub body: Option<Body>,
    pub stack_size: usize,
    pub slice_us: c_uint,
    pub max_tasks: c_uint,
}

/// `fair_bin`.
#[repr(C)]
pub struct Bin {
    pub data: *mut u8,
    pub size: usize,
    pub reference: *mut c_void,
}

/// `fair_mutex`.
#[repr(C)]
pub struct Mutex {
    pub holder: *mut c_void,
    pub first: *mut c_void,
    pub last: *mut c_void,
    pub next: *mut c_void,
}

/// `struct fair_task`: the part that the runtime shows.
#[repr(C)]
pub struct Task {
    pub budget: u64,
    pub ops: *const Ops,
    pub env: Env,
    pub argv: *const Term,
    pub argc: c_uint,
    pub env_used: c_uint,
    pub yields: u64,
    pub cancelled: c_uint,
}

/// `struct fair__nif`.
#[repr(C)]
pub struct Nif {
    pub body: Option<Body>,
    pub options: *const Options,
    pub name: *const c_char,
    pub arity: c_uint,
    pub mode: c_uint,
    pub lib: *mut Lib,
    pub func: *mut c_void,
    pub slice_ns: u64,
    pub stack_class: u16,
    pub awaited: u8,
    pub yields: u8,
    pub unwinds: u8,
    pub max_tasks: c_uint,
}

/// `struct fair__lib`.
#[repr(C)]
pub struct Lib {
    pub ops: *const Ops,
    pub resource_type: *mut c_void,
    pub state: c_int,
}

/// `FAIR__LOADED`.
pub const LOADED: c_int = 2;

/// `struct fair__handshake`.
#[repr(C)]
pub struct Handshake {
    pub size: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub task_size: u32,
    pub options_size: u32,
    pub nif_size: u32,
    pub ops_size: u32,
    pub module: *const c_char,
    pub nifs: *mut Nif,
    pub nif_count: c_uint,
    pub error: c_int,
    pub ops: *const Ops,
    pub resource_type: *mut c_void,
}

/// What a fair resource's `cleanup` is.
pub type Cleanup = unsafe extern "C" fn(task: *mut Task, object: *mut c_void);

/// `fair_resource_options`.
#[repr(C)]
pub struct ResourceOptions {
    pub name: *const c_char,
    pub cleanup: Option<Cleanup>,
    pub down: Option<Unused>,
    pub stop: Option<Unused>,
    pub at_once: c_uint,
    pub unwinds: c_uint,
    pub stack_size: usize,
    pub slice_us: c_uint,
}

/// `struct fair_resource_type`. The VM's object holds the address of the runtime's.
#[repr(C)]
pub struct ResourceType {
    pub vm: *mut c_void,
}

/// `struct fair__object_head`: what is before an object.
#[repr(C)]
pub struct ObjectHead {
    pub resource_type: *mut ResourceType,
    pub vm: *mut c_void,
}

/// A function of the table that this crate does not call.
pub type Unused = unsafe extern "C" fn();

/// `struct fair__ops`. Of what is called here the signature is given; the rest keeps its place.
#[repr(C)]
pub struct Ops {
    pub size: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub running: Unused,
    pub enter: unsafe extern "C" fn(*mut Nif, Env, c_int, *const Term) -> Term,
    pub tick: unsafe extern "C" fn(*mut Task, usize),
    pub r#move: Unused,
    pub r#where: Unused,
    pub call: unsafe extern "C" fn(
        *mut Task,
        c_uint,
        usize,
        unsafe extern "C" fn(*mut c_void),
        *mut c_void,
    ),
    pub wait: unsafe extern "C" fn(*mut Task, c_int, c_uint, c_int) -> c_int,
    pub make_fd: Unused,
    pub get_fd: Unused,
    pub close_fd: Unused,
    pub lock: Unused,
    pub unlock: Unused,
    pub caller: unsafe extern "C" fn(*mut Task, *mut Term),
    pub root: Unused,
    pub unroot: Unused,
    pub keep: Unused,
    pub kept: Unused,
    pub get_resource: Unused,
    pub get_bin: Unused,
    pub get_iolist: Unused,
    pub get_string: Unused,
    pub get_list_length: Unused,
    pub new_bin: Unused,
    pub resize_bin: Unused,
    pub make_bin: Unused,
    pub release_bin: Unused,
    pub list_next: Unused,
    pub list_push: Unused,
    pub list_reverse: Unused,
    pub alloc: Unused,
    pub realloc: Unused,
    pub free: Unused,
    pub defer: Unused,
    pub undefer: Unused,
    pub raise: unsafe extern "C" fn(*mut Task, Term) -> Term,
    pub held_lock: Unused,
    pub seen_arg: Unused,
    pub priv_data: Unused,
    pub self_pid: Unused,
    pub is_alive: Unused,
    pub consume: Unused,
    pub send: Unused,
    pub monotonic_time: Unused,
    // Since 2.2.
    pub current: Unused,
    pub loaded: unsafe extern "C" fn(c_int),
    pub resource_open:
        unsafe extern "C" fn(Env, *const ResourceOptions, usize) -> *mut ResourceType,
    pub resource_new: unsafe extern "C" fn(*mut ResourceType, usize) -> *mut c_void,
    // Since 2.3.
    pub post: unsafe extern "C" fn(*mut Task, Term, Term, c_int),
    pub ask: unsafe extern "C" fn(*mut Task, *const Term, c_uint, *mut Term) -> c_int,
    // Since 2.4.
    pub alarm: Unused,
}
