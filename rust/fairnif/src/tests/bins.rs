//! Binaries, with functions that stand in for the VM's. The newest rustler finds those by name; older ones
//! have a table of them, which is not filled here.

use std::cell::Cell;

use rustler::{Encoder, Env};

use super::*;
use crate::vm::ErlNifBinary;
use crate::{Bin, OwnedBin};

thread_local! {
    static NO_MEMORY: Cell<bool> = const { Cell::new(false) };
    /// How many blocks there are.
    static BLOCKS: Cell<isize> = const { Cell::new(0) };
}

struct Block(*mut u8, usize);

unsafe impl Send for Block {}
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        BLOCKS.set(BLOCKS.get() - 1);
        unsafe {
            self.0.write_bytes(0xdd, self.1);
            libc::free(self.0.cast());
        }
    }
}

type Terms = Vec<Box<(Arc<Block>, usize)>>;

unsafe fn term(env: *mut Terms, block: Arc<Block>, size: usize) -> usize {
    (*env).push(Box::new((block, size)));
    std::ptr::from_ref(&**(*env).last().unwrap()) as usize
}

unsafe fn block(term: usize) -> &'static (Arc<Block>, usize) {
    &*(term as *const (Arc<Block>, usize))
}

#[no_mangle]
extern "C" fn enif_alloc_env() -> *mut Terms {
    Box::into_raw(Box::default())
}

#[no_mangle]
unsafe extern "C" fn enif_free_env(env: *mut Terms) {
    drop(Box::from_raw(env));
}

#[no_mangle]
unsafe extern "C" fn enif_alloc_binary(size: usize, bin: *mut ErlNifBinary) -> c_int {
    if NO_MEMORY.get() {
        return 0;
    }
    BLOCKS.set(BLOCKS.get() + 1);
    bin.write_bytes(0, 1);
    ((*bin).data, (*bin).size) = (libc::malloc(size.max(1)).cast(), size);
    1
}

#[no_mangle]
unsafe extern "C" fn enif_realloc_binary(bin: *mut ErlNifBinary, size: usize) -> c_int {
    if NO_MEMORY.get() {
        return 0;
    }
    ((*bin).data, (*bin).size) = (libc::realloc((*bin).data.cast(), size.max(1)).cast(), size);
    1
}

#[no_mangle]
unsafe extern "C" fn enif_release_binary(bin: *mut ErlNifBinary) {
    drop(Block((*bin).data, (*bin).size));
}

#[no_mangle]
unsafe extern "C" fn enif_make_binary(env: *mut Terms, bin: *mut ErlNifBinary) -> usize {
    let size = (*bin).size;
    term(env, Arc::new(Block((*bin).data, size)), size)
}

#[no_mangle]
unsafe extern "C" fn enif_make_sub_binary(
    env: *mut Terms,
    whole: usize,
    _at: usize,
    size: usize,
) -> usize {
    term(env, block(whole).0.clone(), size)
}

#[no_mangle]
unsafe extern "C" fn enif_make_copy(env: *mut Terms, of: usize) -> usize {
    term(env, block(of).0.clone(), block(of).1)
}

#[no_mangle]
unsafe extern "C" fn enif_make_new_binary(
    env: *mut Terms,
    size: usize,
    new: *mut usize,
) -> *mut u8 {
    let data = libc::malloc(size.max(1)).cast();
    BLOCKS.set(BLOCKS.get() + 1);
    *new = term(env, Arc::new(Block(data, size)), size);
    data
}

#[no_mangle]
unsafe extern "C" fn enif_inspect_binary(
    _env: *mut Terms,
    term: usize,
    bin: *mut ErlNifBinary,
) -> c_int {
    bin.write_bytes(0, 1);
    ((*bin).data, (*bin).size) = (block(term).0 .0, block(term).1);
    1
}

/// Makes a term of it in an environment that lives as briefly.
fn make_term(bin: &OwnedBin) {
    let (env, lifetime) = (enif_alloc_env(), ());
    bin.encode(unsafe { Env::new(&lifetime, env.cast()) });
    unsafe { enif_free_env(env) };
}

#[test]
fn a_binary_that_is_a_term_is_whole_when_memory_is_out_for_its_copy() {
    let mut bin = OwnedBin::zeroed(1000);
    make_term(&bin);
    NO_MEMORY.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| bin.push(1))).is_err());
    NO_MEMORY.set(false);
    assert_eq!(bin[..], [0; 1000]);
    bin.push(1);
    assert_eq!((bin.len(), bin[1000]), (1001, 1));
    drop(bin);
    assert_eq!(BLOCKS.get(), 0);
}

#[test]
fn a_binary_may_be_a_term_twice_and_be_written_to_in_between() {
    for size in [0, 1, 64, 65, 1000] {
        let mut bin = OwnedBin::with_capacity(2 * size);
        bin.resize(size, 1);
        make_term(&bin);
        make_term(&bin);
        bin.reserve(1);
        bin.shrink_to_fit();
        make_term(&bin);
        bin.resize(size / 2, 0);
        bin.iter_mut().for_each(|byte| *byte += 1);
        bin.extend(std::iter::repeat_n(2, size));
        let all = Bin::from(bin);
        let same = thread::scope(|s| s.spawn(|| all.clone()).join().unwrap());
        assert!(same.len() == size / 2 + size && same.iter().all(|byte| *byte == 2));
        drop((all, same));
        assert_eq!(BLOCKS.get(), 0);
    }
}
