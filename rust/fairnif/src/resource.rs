//! Resource objects whose `Drop` runs as a task of nobody's: `fairnif_resource.h` in Rust.
//!
//! The runtime owns an object's memory, the object its value: written once, in `new`; destroyed
//! once, by [`clean_up`], after the last reference has gone. Who has a [`FairResource`] has one of
//! the VM's references, so the value and the library's code stay.
//!
//! rustler's libraries have no `upgrade`, so no type is ever taken over: each instance of the
//! library opens its own, and what an older one made is `badarg` for the newer. A value is
//! destroyed by the code that made it.

pub mod declare;

use std::ffi::c_void;
use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;

use rustler::{Decoder, Encoder, Env, NifResult, Term};

use crate::abi;
use crate::call::{drive, quietly, End};
use crate::{vm, Ticker};
use declare::{opened, ops, Type};

/// A reference to a value that Erlang terms refer to as well, as rustler's `ResourceArc`; but when
/// the last one goes, the value's `Drop` runs in a task, and blocks no scheduler.
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
/// It is an argument and a result of fair functions and of rustler's, alone or inside of other
/// types. What is no object of this type is `badarg`. It may be kept across a pause, sent to another
/// thread, and kept in a static; the library then stays in memory.
///
/// Making one costs two allocations of the VM's, a clone and a drop an atomic operation each.
/// [`resource!`](crate::resource) says how `Drop` runs.
pub struct FairResource<T: Resource> {
    /// The VM's object, of which this is one reference.
    vm: NonNull<c_void>,
    value: NonNull<T>,
}

// Safety: as an `Arc`. The last reference may go on any thread; the value is dropped on another one.
unsafe impl<T: Resource> Send for FairResource<T> {}
unsafe impl<T: Resource> Sync for FairResource<T> {}

// A panic changes nothing in it. rustler asks for this of what it encodes.
impl<T: Resource> UnwindSafe for FairResource<T> {}
impl<T: Resource> RefUnwindSafe for FairResource<T> {}

/// A type that [`resource!`](crate::resource) has declared.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not declared as a fair resource",
    note = "declare it, once, in the crate that it is of: fairnif::resource!({Self});"
)]
pub trait Resource: Send + Sync + Sized + 'static {
    #[doc(hidden)]
    fn fair_type() -> &'static Type<Self>;
}

impl<T: Resource> FairResource<T> {
    /// # Panics
    /// As [`FairResource::try_new`] fails.
    pub fn new(value: T) -> FairResource<T> {
        FairResource::try_new(value).unwrap_or_else(|_| {
            let name = std::any::type_name::<T>();
            panic!("fairnif: no memory for a resource {name}, or fairnif::load was not called")
        })
    }

    /// The value comes back when memory is out, when the runtime can start no thread, and before
    /// [`fairnif::load`](crate::load) has succeeded.
    pub fn try_new(value: T) -> Result<FairResource<T>, T> {
        let opened = opened::<T>();
        if opened.is_null() {
            return Err(value);
        }
        // Safety: `publish` has set both, the table first. What is answered is as large as said,
        // aligned to `ALIGNED`, and nobody else's yet.
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

// -- the memory of an object ----------------------------------------------------------------------

/// What the runtime aligns an object to.
const ALIGNED: usize = 16;

/// With room to align what wants more.
const fn size_for<T>() -> usize {
    size_of::<T>() + align_of::<T>().saturating_sub(ALIGNED)
}

/// Where the value is in it.
///
/// # Safety
/// `data` must be an object of `size_for::<T>()` bytes.
unsafe fn place_in<T>(data: NonNull<c_void>) -> NonNull<T> {
    let to_next = data.addr().get().wrapping_neg() & (align_of::<T>() - 1);
    data.byte_add(to_next).cast()
}

// -- the end of a value ---------------------------------------------------------------------------

/// A value in its object, which it does not outlive.
struct InPlace<T>(NonNull<T>);

// Safety: it owns the value.
unsafe impl<T: Send> Send for InPlace<T> {}

impl<T> InPlace<T> {
    fn take(self) -> T {
        let value = ManuallyDrop::new(self).0;
        // Safety: it was there, and nobody drops it now but who has it.
        unsafe { value.read() }
    }
}

impl<T> Drop for InPlace<T> {
    fn drop(&mut self) {
        // Safety: it is the owner.
        unsafe { self.0.drop_in_place() };
    }
}

/// The body of the task. The value is not moved: it may be larger than the stack.
///
/// # Safety
/// What the runtime calls, once for each object.
unsafe extern "C" fn clean_up<T: Send + 'static>(task: *mut abi::Task, data: *mut c_void) {
    let value = InPlace(place_in::<T>(NonNull::new_unchecked(data)));
    report(task, drive(task, async move { drop(value) }));
}

/// The same by the author's function.
unsafe extern "C" fn clean_up_by<T, F, R>(task: *mut abi::Task, data: *mut c_void)
where
    T: Send + 'static,
    F: Fn(T, Ticker) -> R + Copy + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let value = InPlace(place_in::<T>(NonNull::new_unchecked(data)));
    // Safety: `Type::cleanup` has seen that it has no size, and one that may be copied.
    let function = NonNull::<F>::dangling().read();
    report(task, drive(task, async move { function(value.take(), Ticker::new()).await }));
}

/// Nobody is told of a panic. The runtime reports and counts what raises in a task of nobody's.
unsafe fn report(task: *mut abi::Task, end: End<()>) {
    let End::Panicked(payload) = end else {
        return;
    };
    quietly(|| drop(payload));
    if (*task).cancelled == 0 {
        let lifetime = ();
        let env = vm::rustler_env(&lifetime, (*task).env);
        ((*(*task).ops).raise)(task, vm::make_atom(env, "nif_panicked"));
    }
}
