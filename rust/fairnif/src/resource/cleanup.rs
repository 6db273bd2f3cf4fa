//! Where a value lies in its object, and how it ends.

use std::ffi::c_void;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use crate::call::{drive, End};
use crate::error::quietly;
use crate::{abi, vm, Ticker};

// -- the memory of an object ----------------------------------------------------------------------

/// What the runtime aligns an object to.
const ALIGNED: usize = 16;

/// With room to align what wants more.
pub(super) const fn size_for<T>() -> usize {
    size_of::<T>() + align_of::<T>().saturating_sub(ALIGNED)
}

/// Where the value is in it.
///
/// # Safety
/// `data` must be an object of `size_for::<T>()` bytes.
pub(super) unsafe fn place_in<T>(data: NonNull<c_void>) -> NonNull<T> {
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
        // Safety: it was there, and only its owner drops it now.
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
pub(super) unsafe extern "C" fn clean_up<T: Send + 'static>(
    task: *mut abi::Task,
    data: *mut c_void,
) {
    let value = InPlace(place_in::<T>(NonNull::new_unchecked(data)));
    report(task, drive(task, None, async move { drop(value) }));
}

/// The same by the author's function.
pub(super) unsafe extern "C" fn clean_up_by<T, F, R>(task: *mut abi::Task, data: *mut c_void)
where
    T: Send + 'static,
    F: Fn(T, Ticker) -> R + Copy + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let value = InPlace(place_in::<T>(NonNull::new_unchecked(data)));
    // Safety: `Type::cleanup` has seen that it has no size, and one that may be copied.
    let function = NonNull::<F>::dangling().read();
    report(task, drive(task, None, async move { function(value.take(), Ticker::new()).await }));
}

/// A panic has no caller. The runtime reports and counts what raises in a task without one.
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
