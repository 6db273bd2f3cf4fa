//! Fair resources on functions that stand in for the runtime's and the VM's. A term is the address of
//! an object here; an environment, which would hold references, is none.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::OnceLock;

use rustler::{Decoder, Encoder, Env, Term};

use super::fake::Guard;
use super::*;
use crate::abi::{self, ResourceOptions, ResourceType};
use crate::codegen::Declared;
use crate::resource::declare::{self, opened};
use crate::{vm, FairResource, Resource};

// -- the runtime and the VM -----------------------------------------------------------------------

#[repr(C)]
struct FakeType {
    seen: ResourceType,
    options: &'static ResourceOptions,
}

/// The VM's object.
#[repr(C)]
struct Object {
    data: *mut c_void,
    references: AtomicUsize,
    of: *mut FakeType,
    block: Box<[Slot]>,
}

#[derive(Clone, Copy)]
#[repr(align(16))]
struct Slot(#[allow(dead_code)] [u8; 16]);

static OBJECTS: Mutex<isize> = Mutex::new(0);

thread_local! {
    static NO_MEMORY: Cell<bool> = const { Cell::new(false) };
    static RAISED: Cell<usize> = const { Cell::new(0) };
    static CANCEL_AT_TICK: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" fn open(
    _: abi::Env,
    options: *const ResourceOptions,
    _: usize,
) -> *mut ResourceType {
    let new = FakeType {
        seen: ResourceType { vm: null_mut(), size: 0, refused: null_mut() },
        options: &*options,
    };
    let new = Box::into_raw(Box::new(new));
    (*new).seen.vm = new.cast();
    new.cast()
}

unsafe extern "C" fn new(of: *mut ResourceType, size: usize) -> *mut c_void {
    if NO_MEMORY.get() {
        return null_mut();
    }
    // Two slots for the head: so the object is aligned to 16 bytes, and now and then to no more.
    let mut block = vec![Slot([0; 16]); 2 + size.div_ceil(16)].into_boxed_slice();
    let data: *mut c_void = block.as_mut_ptr().add(2).cast();
    let references = AtomicUsize::new(1);
    let vm = Box::new(Object { data, references, of: of.cast(), block });
    data.cast::<abi::ObjectHead>().sub(1).write(abi::ObjectHead {
        size,
        unused: 0,
        resource_type: of,
        vm: Box::into_raw(vm).cast(),
    });
    *OBJECTS.lock().unwrap() += 1;
    data
}

unsafe extern "C" fn raise(_: *mut Task, reason: usize) -> usize {
    RAISED.set(RAISED.get() + 1);
    reason
}

#[no_mangle]
extern "C" fn enif_make_atom_len(_: *mut c_void, _: *const u8, length: usize) -> usize {
    length
}

#[no_mangle]
unsafe extern "C" fn enif_keep_resource(object: *mut Object) -> c_int {
    (*object).references.fetch_add(1, Ordering::SeqCst);
    1
}

#[no_mangle]
unsafe extern "C" fn enif_release_resource(object: *mut Object) {
    if (*object).references.fetch_sub(1, Ordering::SeqCst) > 1 {
        return;
    }
    let object = Box::from_raw(object);
    let mut fake = Fake::new();
    fake.cancel_at_tick = CANCEL_AT_TICK.get();
    let mut table: Ops = std::ptr::read(fake.task.ops);
    table.raise = raise;
    fake.task.ops = &table;
    ((*object.of).options.cleanup.unwrap())((&mut *fake as *mut Fake).cast(), object.data);
    *OBJECTS.lock().unwrap() -= 1;
}

#[no_mangle]
extern "C" fn enif_make_resource(_: *mut c_void, object: usize) -> usize {
    object
}

#[no_mangle]
unsafe extern "C" fn enif_get_resource(
    _: *mut c_void,
    term: usize,
    of: *mut FakeType,
    found: *mut usize,
) -> c_int {
    *found = term;
    c_int::from(term != 0 && (*(term as *mut Object)).of == of)
}

/// As `fairnif::load` does, once.
fn load() {
    static LOADED: OnceLock<()> = OnceLock::new();

    LOADED.get_or_init(|| {
        let mut ops = unsafe { std::ptr::read(Fake::new().task.ops) };
        (ops.resource_open, ops.resource_new) = (open, new);
        let ops: &Ops = Box::leak(Box::new(ops));
        let all = unsafe { declare::open(null_mut(), ops) }.unwrap();
        declare::publish(ops, &all);
    });
}

fn with_env<R>(f: impl FnOnce(Env) -> R) -> R {
    f(unsafe { Env::new(&(), 8 as _) })
}

fn decode<T: Resource>(term: Term) -> Result<FairResource<T>, ()> {
    FairResource::decode(term).map_err(|_| ())
}

fn options_of<T: Resource>() -> &'static ResourceOptions {
    unsafe { (*opened::<T>().cast::<FakeType>()).options }
}

// -- types ----------------------------------------------------------------------------------------

struct Counted(#[allow(dead_code)] Guard);
crate::resource!(Counted);

#[repr(align(64))]
struct Aligned(u8, Guard);
crate::resource!(Aligned, name = "aligned", max_concurrent = 3, stack_size = 65536, slice_us = 50);

static NOTHING_DROPS: AtomicUsize = AtomicUsize::new(0);

struct Nothing;
crate::resource!(Nothing, name = "aligned");

impl Drop for Nothing {
    fn drop(&mut self) {
        NOTHING_DROPS.fetch_add(1, Ordering::SeqCst);
    }
}

struct Bad(#[allow(dead_code)] Guard);
crate::resource!(Bad);

impl Drop for Bad {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("quietly"));
    }
}

struct Large(#[allow(dead_code)] [u64; 100_000], #[allow(dead_code)] Guard);
crate::resource!(Large);

struct Steps(Vec<Guard>);
crate::resource!(Steps, cleanup = Steps::clean_up);

static LAST_STEPS: Mutex<Vec<usize>> = Mutex::new(vec![]);

impl Steps {
    async fn clean_up(self, t: Ticker) {
        let mut steps = 0;
        for guard in self.0 {
            drop(guard);
            t.tick(GRANTED as usize).await;
            steps += 1;
        }
        LAST_STEPS.lock().unwrap().push(steps);
    }
}

struct Fails(#[allow(dead_code)] Guard);
crate::resource!(
    Fails,
    cleanup = |value: Fails, _| {
        let _here = value;
        if true {
            std::panic::resume_unwind(Box::new("quietly"));
        }
        async {}
    }
);

struct Unopened;
unsafe impl Declared for Unopened {
    fn fair_type() -> &'static crate::codegen::Type<Unopened> {
        static TYPE: crate::codegen::Type<Unopened> = crate::codegen::Type::new();
        &TYPE
    }
}

// -- tests ----------------------------------------------------------------------------------------

#[test]
fn a_value_is_dropped_once_after_its_last_reference() {
    load();
    let drops = Drops::default();
    let one = FairResource::new(Counted(drops.guard()));
    let two = one.clone();
    let term = with_env(|env| vm::raw_term(two.encode(env)));
    drop(two);
    let three = with_env(|env| decode::<Counted>(unsafe { vm::rustler_term(env, term) }).unwrap());
    drop(one);
    assert_eq!(drops.count(), 0);
    drop(three);
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_value_may_want_more_alignment_than_the_object_has_or_no_room() {
    load();
    let drops = Drops::default();
    let all: Vec<_> = (0..100).map(|n| FairResource::new(Aligned(n, drops.guard()))).collect();
    for (n, one) in (0..).zip(&all) {
        let at = std::ptr::from_ref::<Aligned>(one) as usize;
        assert_eq!((one.0, at % 64), (n, 0));
        assert_eq!(with_env(|env| decode::<Aligned>(one.encode(env)).unwrap().0), n);
        assert_eq!(one.1 .0.count(), 0);
    }
    drop(all);
    assert_eq!(drops.count(), 100);
    drop(vec![FairResource::new(Nothing), FairResource::new(Nothing)]);
    assert_eq!(NOTHING_DROPS.load(Ordering::SeqCst), 2);
}

#[test]
fn a_panic_in_a_destructor_is_raised_for_the_runtime_and_the_fields_are_dropped() {
    load();
    let drops = Drops::default();
    RAISED.set(0);
    drop(FairResource::new(Bad(drops.guard())));
    drop(FairResource::new(Fails(drops.guard())));
    assert_eq!((RAISED.get(), drops.count()), (2, 2));
}

#[test]
fn a_large_value_is_dropped_where_it_is() {
    load();
    let drops = Drops::default();
    let large = thread::Builder::new().stack_size(16 << 20);
    let guard = drops.guard();
    let large = large.spawn(move || FairResource::new(Large([0; 100_000], guard))).unwrap();
    let large = large.join().unwrap();
    let small = thread::Builder::new().stack_size(256 << 10);
    small.spawn(move || drop(large)).unwrap().join().unwrap();
    assert_eq!(drops.count(), 1);
}

#[test]
fn an_authors_function_ticks_and_what_is_cancelled_is_dropped() {
    load();
    let drops = Drops::default();
    let steps = || Steps((0..10).map(|_| drops.guard()).collect());
    drop(FairResource::new(steps()));
    assert_eq!((drops.count(), LAST_STEPS.lock().unwrap().split_off(0)), (10, vec![10]));
    CANCEL_AT_TICK.set(3);
    drop(FairResource::new(steps()));
    CANCEL_AT_TICK.set(0);
    assert_eq!((drops.count(), LAST_STEPS.lock().unwrap().split_off(0)), (20, vec![]));
}

#[test]
fn a_value_that_gets_no_object_comes_back() {
    load();
    let drops = Drops::default();
    NO_MEMORY.set(true);
    let back = FairResource::try_new(Counted(drops.guard())).err().unwrap();
    let new = || FairResource::new(Counted(drops.guard()));
    assert!(catch_unwind(AssertUnwindSafe(new)).is_err());
    NO_MEMORY.set(false);
    assert_eq!(drops.count(), 1);
    drop(back);
    assert_eq!(drops.count(), 2);
    assert!(FairResource::try_new(Unopened).is_err());
}

#[test]
fn many_threads_make_clone_and_drop_them() {
    load();
    let drops = Drops::default();
    let one = FairResource::new(Counted(drops.guard()));
    let work = || {
        for _ in 0..200 {
            let all = [one.clone(), FairResource::new(Counted(drops.guard())), one.clone()];
            drop(all.map(|each| each.clone()));
        }
    };
    thread::scope(|scope| (0..8).for_each(|_| _ = scope.spawn(work)));
    assert_eq!(drops.count(), 8 * 200);
    drop(one);
    assert_eq!(drops.count(), 8 * 200 + 1);
}

#[test]
fn options_reach_the_runtime_and_two_types_have_two_names() {
    load();
    let aligned = options_of::<Aligned>();
    assert_eq!(
        (aligned.max_concurrent, aligned.stack_size, aligned.slice_us, aligned.cleans_up),
        (3, 65536, 50, 1)
    );
    let name = |options: &ResourceOptions| unsafe { CStr::from_ptr(options.name) }.to_owned();
    let mut names = [aligned, options_of::<Nothing>()].map(name);
    names.sort();
    assert_eq!(names, [c"aligned".to_owned(), c"aligned 2".to_owned()]);
    let counted = name(options_of::<Counted>());
    assert_eq!(counted.to_str().unwrap(), std::any::type_name::<Counted>());
}
