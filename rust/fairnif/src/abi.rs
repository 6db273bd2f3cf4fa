//! What the runtime and a library know of each other: `fairnif.h` and `fairnif_abi.h` in Rust.
//!
//! `tests/layout.rs` compares it with the headers. A term is a `usize` here ([`Term`]), an
//! environment an untyped pointer: rustler's types for them differ from release to release.
#![allow(missing_docs)]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The version of the runtime's interface that this crate was written for.
pub const ABI_MAJOR: u16 = 3;
pub const ABI_MINOR: u16 = 0;

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
    pub const CLEANUP: u32 = 0x20;
    pub const NO_YIELD: u32 = 0x40;
    pub const MAY_WAIT: u32 = 0x80;
    pub const PROMPT: u32 = 0x100;
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
    pub reserved: *mut c_void,
}

/// `fair_mutex`.
#[repr(C)]
pub struct Mutex {
    pub holder: *mut c_void,
    pub first: *mut c_void,
    pub last: *mut c_void,
    pub next: *mut c_void,
    pub reserved: [*mut c_void; 2],
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
    pub may_wait: u8,
    pub yields: u8,
    pub cleans_up: u8,
    pub prompt: u8,
    pub unused: [u8; 2],
    pub max_tasks: c_uint,
    pub unused_too: c_uint,
    pub reserved: [u64; 3],
}

/// `struct fair__lib`.
#[repr(C)]
pub struct Lib {
    pub ops: *const Ops,
    pub resource_type: *mut c_void,
    pub state: c_int,
    pub unused: c_uint,
    pub reserved: [u64; 4],
}

/// `FAIR__LOADED`.
pub const LOADED: c_int = 2;

/// `FAIR__BINDS`.
pub const BINDS: u32 = 0xFA17_0001;

/// `struct fair__handshake`; its first two are `struct fair__question`.
#[repr(C)]
pub struct Handshake {
    pub size: u32,
    pub kind: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub task_size: u32,
    pub options_size: u32,
    pub nif_size: u32,
    pub lib_size: u32,
    pub ops_size: u32,
    pub bin_size: u32,
    pub mutex_size: u32,
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
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ResourceOptions {
    pub name: *const c_char,
    pub cleanup: Option<Cleanup>,
    pub down: Option<Unused>,
    pub stop: Option<Unused>,
    pub max_concurrent: c_uint,
    pub cleans_up: c_uint,
    pub stack_size: usize,
    pub slice_us: c_uint,
    pub size: usize,
}

/// `struct fair_resource_type`. The VM's object holds the address of the runtime's.
#[repr(C)]
pub struct ResourceType {
    pub vm: *mut c_void,
    pub size: usize,
    pub refused: *mut u64,
}

/// `struct fair__object_head`: what is before an object.
#[repr(C)]
pub struct ObjectHead {
    pub size: usize,
    pub unused: usize,
    pub resource_type: *mut ResourceType,
    pub vm: *mut c_void,
}

/// Functions of the table that this crate does not call.
pub type Unused = unsafe extern "C" fn();

/// `struct fair__ops`. What is called here has its name; the rest keeps its place.
#[repr(C)]
pub struct Ops {
    pub size: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    _1: [Unused; 1],
    pub enter: unsafe extern "C" fn(*mut Nif, Env, c_int, *const Term) -> Term,
    pub tick: unsafe extern "C" fn(*mut Task, usize) -> c_int,
    _2: [Unused; 2],
    pub offload: unsafe extern "C" fn(
        *mut Task,
        c_uint,
        usize,
        unsafe extern "C" fn(*mut c_void),
        *mut c_void,
    ) -> c_int,
    pub wait: unsafe extern "C" fn(*mut Task, c_int, c_uint, c_int) -> c_int,
    _3: [Unused; 5],
    pub caller: unsafe extern "C" fn(*mut Task, *mut Term),
    pub root_new: unsafe extern "C" fn(*mut Task, Term) -> c_uint,
    pub root_drop: unsafe extern "C" fn(*mut Task, c_uint),
    _4: [Unused; 1],
    pub root_get: unsafe extern "C" fn(*mut Task, c_uint) -> Term,
    _5: [Unused; 20],
    pub raise: unsafe extern "C" fn(*mut Task, Term) -> Term,
    _6: [Unused; 9],
    pub loaded: unsafe extern "C" fn(c_int),
    pub resource_open:
        unsafe extern "C" fn(Env, *const ResourceOptions, usize) -> *mut ResourceType,
    pub resource_new: unsafe extern "C" fn(*mut ResourceType, usize) -> *mut c_void,
    pub post: unsafe extern "C" fn(*mut Task, Term, Term, c_int),
    pub ask: unsafe extern "C" fn(*mut Task, *const Term, c_uint, *mut Term) -> c_int,
    _7: [Unused; 2],
    pub copy: unsafe extern "C" fn(*mut Task, Env, Term) -> Term,
}
