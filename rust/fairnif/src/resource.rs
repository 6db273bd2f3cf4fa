//! Resource objects whose `Drop` runs as a task without a caller: `fairnif_resource.h` in Rust.
//!
//! The runtime owns an object's memory, the object its value: written once, in `new`; destroyed
//! once, by [`cleanup`], after the last reference has gone. A [`FairResource`] is one of the
//! VM's references, so the value and the library's code stay.
//!
//! rustler's libraries have no `upgrade`, so no type is ever taken over: each instance of the
//! library opens its own, and what an older one made is `badarg` for the newer. A value is
//! destroyed by the code that made it.

mod cleanup;
pub mod declare;

use std::ffi::c_void;
use std::fmt;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;

use rustler::{Decoder, Encoder, Env, NifResult, Term};

use crate::{abi, vm};
use cleanup::{place_in, size_for};
use declare::{opened, ops, Resource};

/// A reference to a value that Erlang terms may refer to as well, like rustler's `ResourceArc`. When
/// the last reference is dropped, the value's `Drop` runs in a task, and blocks no scheduler.
///
/// ```no_run
/// use fairnif::FairResource;
///
/// struct Index(std::collections::BTreeMap<String, Vec<u64>>);
///
/// fairnif::resource!(Index);
///
/// #[rustler::nif]
/// fn new_index() -> FairResource<Index> {
///     FairResource::new(Index(Default::default()))
/// }
///
/// #[fairnif::nif]
/// async fn lookup(index: FairResource<Index>, word: String) -> Vec<u64> {
///     index.0.get(&word).cloned().unwrap_or_default()
/// }
/// ```
///
/// It can be an argument and a result of fair functions and of rustler's, alone or inside other types.
/// A term that is not an object of this type raises `badarg`. It may be kept across a pause, sent to
/// another thread and stored in a static, which keeps the library in memory.
///
/// Creating one costs two allocations in the VM; a clone and a drop cost an atomic operation each.
/// [`resource!`](crate::resource) says how `Drop` runs.
pub struct FairResource<T: Resource> {
    /// The VM's object, of which this is one reference.
    vm: NonNull<c_void>,
    value: NonNull<T>,
}

// Safety: as an `Arc`. The last reference may go on any thread; the value is dropped on another.
unsafe impl<T: Resource> Send for FairResource<T> {}
unsafe impl<T: Resource> Sync for FairResource<T> {}

// A panic changes nothing in it. rustler asks for this of what it encodes.
impl<T: Resource> UnwindSafe for FairResource<T> {}
impl<T: Resource> RefUnwindSafe for FairResource<T> {}

impl<T: Resource> FairResource<T> {
    /// # Panics
    /// Where [`FairResource::try_new`] returns an error.
    pub fn new(value: T) -> FairResource<T> {
        FairResource::try_new(value).unwrap_or_else(|_| {
            let name = std::any::type_name::<T>();
            panic!("fairnif: no memory for a resource {name}, or no load by fairnif::init!")
        })
    }

    /// Returns the value if memory is exhausted, if the runtime cannot start a thread, or if
    /// [`fairnif::init!`](crate::init) has not loaded the library yet.
    pub fn try_new(value: T) -> Result<FairResource<T>, T> {
        let opened = opened::<T>();
        if opened.is_null() {
            return Err(value);
        }
        // Safety: `publish` has set both, the table first. What is answered is as large as said,
        // aligned to `ALIGNED`, and not shared yet.
        unsafe {
            let Some(data) = NonNull::new(((*ops()).resource_new)(opened, size_for::<T>())) else {
                return Err(value);
            };
            let place = place_in::<T>(data);
            place.write(value);
            let head = data.cast::<abi::ObjectHead>().sub(1);
            let vm = NonNull::new_unchecked(head.as_ref().vm);
            Ok(FairResource { vm, value: place })
        }
    }
}

impl<T: Resource> Deref for FairResource<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // Safety: it stays as long as this reference to it.
        unsafe { self.value.as_ref() }
    }
}

impl<T: Resource> Clone for FairResource<T> {
    fn clone(&self) -> FairResource<T> {
        // Safety: the object is there.
        unsafe { vm::keep_resource(self.vm) };
        FairResource { ..*self }
    }
}

impl<T: Resource> Drop for FairResource<T> {
    fn drop(&mut self) {
        // Safety: it is this one's reference.
        unsafe { vm::release_resource(self.vm) };
    }
}

impl<T: Resource + fmt::Debug> fmt::Debug for FairResource<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: Resource> Encoder for FairResource<T> {
    fn encode<'a>(&self, env: Env<'a>) -> Term<'a> {
        // Safety: the object is there.
        unsafe { vm::make_resource(env, self.vm) }
    }
}

impl<'a, T: Resource> Decoder<'a> for FairResource<T> {
    fn decode(term: Term<'a>) -> NifResult<FairResource<T>> {
        let opened = opened::<T>();
        // Safety: a type that was opened is never freed. An object of it was made by `try_new`; it
        // holds the address of the value's memory.
        unsafe {
            let opened = opened.as_ref().ok_or(rustler::Error::BadArg)?;
            let vm = vm::get_resource(term, opened.vm).ok_or(rustler::Error::BadArg)?;
            let data =
                NonNull::new(vm.cast::<*mut c_void>().read()).ok_or(rustler::Error::BadArg)?;
            vm::keep_resource(vm);
            Ok(FairResource { vm, value: place_in(data) })
        }
    }
}
