//! What `resource!` makes of a type, and how a load opens all of them.
#![allow(missing_docs)]

use std::ffi::{c_uint, CStr, CString};
use std::future::Future;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;

use rustler::codegen_runtime::inventory;

use super::cleanup::{clean_up, clean_up_by};
use crate::{abi, Ticker};

/// The longest name that the runtime takes.
const LONGEST_NAME: usize = 200;

/// What the author's `cleanup` gets by value must fit on its stack, a few times over.
const LARGEST_MOVED: usize = 16384;

/// What `resource!` implements.
///
/// # Safety
/// It answers one and the same static, for this type alone.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not declared as a fair resource",
    note = "declare it, once, in the crate that it is of: fairnif::resource!({Self});"
)]
pub unsafe trait Declared: Send + Sync + Sized + 'static {
    fn fair_type() -> &'static Type<Self>;
}

/// A type declared by [`resource!`](crate::resource), and by nothing else.
pub trait Resource: Declared {}

impl<T: Declared> Resource for T {}

/// What `resource!` makes of its options: one for each type, in a static.
pub struct Type<T> {
    any: AnyType,
    of: PhantomData<fn(T)>,
}

/// The same without the type's parameter.
pub struct AnyType {
    type_name: fn() -> &'static str,
    name: Option<&'static str>,
    /// But for the name.
    declared: abi::ResourceOptions,
    /// What the runtime reads as long as the library is loaded; made by the first load.
    options: OnceLock<abi::ResourceOptions>,
    /// The type of the instance that was loaded last.
    opened: AtomicPtr<abi::ResourceType>,
}

// Safety: numbers, functions, and a text that is never freed.
unsafe impl Sync for AnyType {}

/// In the inventory of the library.
pub struct ResourceEntry(pub &'static AnyType);

inventory::collect!(ResourceEntry);

impl<T: Send + Sync + 'static> Type<T> {
    #[allow(clippy::new_without_default)] // It is for a constant.
    pub const fn new() -> Type<T> {
        let any = AnyType {
            type_name: std::any::type_name::<T>,
            name: None,
            declared: abi::ResourceOptions {
                name: null(),
                cleanup: Some(clean_up::<T>),
                down: None,
                stop: None,
                max_concurrent: 0,
                cleans_up: 1,
                stack_size: 0,
                slice_us: 0,
                size: 0,
            },
            options: OnceLock::new(),
            opened: AtomicPtr::new(null_mut()),
        };
        Type { any, of: PhantomData }
    }

    pub const fn name(mut self, name: &'static str) -> Type<T> {
        let bytes = name.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            assert!(bytes[at] >= 0x20 && bytes[at] < 0x7f, "a name of printable ASCII characters");
            at += 1;
        }
        assert!(at > 0 && at <= LONGEST_NAME, "a name of 1 to 200 characters");
        self.any.name = Some(name);
        self
    }

    pub const fn cleanup<F, R>(mut self, function: F) -> Type<T>
    where
        F: Fn(T, Ticker) -> R + Copy + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        assert!(size_of::<F>() == 0, "cleanup is a function, or a closure that captures nothing");
        assert!(size_of::<T>() <= LARGEST_MOVED, "cleanup moves a value of over 16 KiB: box it");
        let _ = function;
        self.any.declared.cleanup = Some(clean_up_by::<T, F, R>);
        self
    }

    pub const fn max_concurrent(mut self, count: c_uint) -> Type<T> {
        self.any.declared.max_concurrent = count;
        self
    }

    pub const fn stack_size(mut self, bytes: usize) -> Type<T> {
        self.any.declared.stack_size = bytes;
        self
    }

    pub const fn slice_us(mut self, us: c_uint) -> Type<T> {
        self.any.declared.slice_us = us;
        self
    }

    pub const fn any(&'static self) -> &'static AnyType {
        &self.any
    }
}

impl AnyType {
    /// `others`: those of this library that have a name. Rust's names of types are not unique (two
    /// releases of a crate), and the VM would take two of one name for the same.
    fn options(&self, others: &[String]) -> &abi::ResourceOptions {
        self.options.get_or_init(|| abi::ResourceOptions {
            name: self.unique_name(others).into_raw(),
            ..self.declared
        })
    }

    fn unique_name(&self, others: &[String]) -> CString {
        let mut name = self.name.unwrap_or_else(self.type_name).replace('\0', "");
        while name.len() > LONGEST_NAME {
            name.pop();
        }
        let full = name.clone();
        for number in 2.. {
            if !others.contains(&name) {
                break;
            }
            let suffix = format!(" {number}");
            name.clone_from(&full);
            while name.len() + suffix.len() > LONGEST_NAME {
                name.pop();
            }
            name += &suffix;
        }
        CString::new(name).unwrap_or_default()
    }
}

/// The runtime's table, for objects.
static OPS: AtomicPtr<abi::Ops> = AtomicPtr::new(null_mut());

/// Opened by a load that may still fail.
pub(crate) type Opened = Vec<(&'static AnyType, *mut abi::ResourceType)>;

/// Opens the types of the library. `None` when one cannot be, which the runtime has said on
/// standard error.
///
/// # Safety
/// In load, with its environment and the runtime's table, once the runtime knows of the load.
pub(crate) unsafe fn open(env: abi::Env, ops: *const abi::Ops) -> Option<Opened> {
    let mut names = vec![];
    let mut all = vec![];
    for ResourceEntry(any) in inventory::iter::<ResourceEntry>() {
        let options = any.options(&names);
        names.push(CStr::from_ptr(options.name).to_string_lossy().into_owned());
        let opened = ((*ops).resource_open)(env, options, size_of::<abi::ResourceOptions>());
        if opened.is_null() {
            return None;
        }
        all.push((*any, opened));
    }
    Some(all)
}

/// From now on objects are made of them.
pub(crate) fn publish(ops: *const abi::Ops, all: &Opened) {
    OPS.store(ops.cast_mut(), Ordering::Release);
    for (any, opened) in all {
        any.opened.store(*opened, Ordering::Release);
    }
}

/// Null before that.
pub(crate) fn opened<T: Declared>() -> *mut abi::ResourceType {
    T::fair_type().any.opened.load(Ordering::Acquire)
}

/// Set wherever a type is opened.
pub(crate) fn ops() -> *const abi::Ops {
    OPS.load(Ordering::Acquire)
}

/// Declares a type as a fair resource, for [`FairResource`](crate::FairResource).
///
/// ```no_run
/// use fairnif::{FairResource, Ticker};
///
/// struct Connection(std::net::TcpStream);
/// fairnif::resource!(Connection);
///
/// struct Forest(Vec<Box<[u8; 64]>>);
/// fairnif::resource!(Forest, name = "forest", cleanup = Forest::fell, max_concurrent = 2);
///
/// impl Forest {
///     async fn fell(self, t: Ticker) {
///         for tree in self.0 {
///             drop(tree);
///             t.tick(1).await;
///         }
///     }
/// }
/// ```
///
/// The type must be `Send + Sync + 'static`, and have no open type parameters. Its `Drop`, and those of
/// its fields, run once, after the last reference was dropped: in place while they have proved to be
/// short (under half a slice), otherwise on a thread of the runtime's pool, where they may block. No
/// scheduler waits for a long one. Only the end of the node stops it. The library stays in memory until
/// it has returned, even if the module is purged.
///
/// | option | |
/// |---|---|
/// | `cleanup = f` | `async fn f(value: T, t: Ticker)` runs instead; it ticks, sleeps and waits as a fair function does; `T` is up to 16 KiB |
/// | `name = "..."` | the name in `fairnif:info/0`; default the type's path |
/// | `max_concurrent = N` | how many may be under way; default the number of dirty CPU schedulers online |
/// | `stack_size = N` | bytes of stack, 16 KiB to 64 MiB; default 128 KiB |
/// | `slice_us = N` | length of a slice in us |
///
/// A panic is reported on standard error and counted in `rule_violations` of `fairnif:info/0`. The value's
/// fields are dropped even then.
#[macro_export]
macro_rules! resource {
    ($type:ty $(, $option:ident = $value:expr)* $(,)?) => {
        const _: () = {
            static __FAIRNIF_TYPE: $crate::codegen::Type<$type> =
                $crate::codegen::Type::<$type>::new()$(.$option($value))*;

            // Safety: the static is of this type, and of this expansion alone.
            unsafe impl $crate::codegen::Declared for $type {
                fn fair_type() -> &'static $crate::codegen::Type<$type> {
                    &__FAIRNIF_TYPE
                }
            }

            $crate::codegen::inventory::submit! {
                $crate::codegen::ResourceEntry(__FAIRNIF_TYPE.any())
            }
        };
    };
}
