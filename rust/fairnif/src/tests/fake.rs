//! The runtime that stands in for the real one, and what counts its drops.

use super::*;
use crate::call::asks::Outbox;

pub(super) type Answers = Box<dyn FnMut(c_int) -> (bool, usize)>;

#[repr(C)]
pub(super) struct Fake {
    pub(super) task: Task,
    pub(super) granted: u64,
    pub(super) units: u64,
    /// The largest tick.
    pub(super) most: usize,
    pub(super) ticks: usize,
    pub(super) waits: usize,
    /// At which tick, and at which wait.
    pub(super) cancel_at_tick: usize,
    pub(super) cancel_at_wait: usize,
    pub(super) calls: Vec<c_uint>,
    root: usize,
    /// There is none left for a wait's duplicate.
    pub(super) no_descriptor: bool,
    /// How many waits find no memory.
    pub(super) no_memory: usize,
    /// What an ask answers, and the timeouts that were asked for.
    pub(super) ask: Option<Answers>,
    pub(super) asked: Vec<c_int>,
    pub(super) cancel_at_ask: usize,
    pub(super) posted: usize,
    pub(super) outbox: Option<Arc<Outbox>>,
}

unsafe fn fake<'a>(task: *mut Task) -> &'a mut Fake {
    &mut *task.cast()
}

unsafe extern "C" fn tick(task: *mut Task, units: usize) -> c_int {
    let fake = fake(task);
    let done = fake.granted - fake.task.budget + 1;
    fake.units += done + units as u64;
    fake.most = fake.most.max(units);
    fake.ticks += 1;
    fake.task.cancelled |= c_uint::from(fake.ticks == fake.cancel_at_tick);
    fake.granted = if fake.task.cancelled == 0 { GRANTED } else { 0 };
    fake.task.budget = fake.granted;
    if fake.task.cancelled == 0 {
        1
    } else {
        -libc::ECANCELED
    }
}

unsafe extern "C" fn wait(task: *mut Task, fd: c_int, events: c_uint, timeout: c_int) -> c_int {
    let fake = fake(task);
    fake.waits += 1;
    if fake.waits == fake.cancel_at_wait {
        fake.task.cancelled = 1;
        return -libc::ECANCELED;
    }
    if fake.no_descriptor && fd >= 0 {
        return -libc::EMFILE;
    }
    if fake.waits <= fake.no_memory {
        return -libc::ENOMEM;
    }
    let events = [0, libc::POLLIN, libc::POLLOUT][events as usize];
    let mut poll = libc::pollfd { fd, events, revents: 0 };
    match libc::poll(&mut poll, 1, timeout) {
        0 if fd >= 0 => -libc::ETIMEDOUT,
        0 => 1,
        answer => answer,
    }
}

/// An untagged receive. Its timeout is a term as it is.
unsafe extern "C" fn ask(
    task: *mut Task,
    request: *const usize,
    parts: c_uint,
    answer: *mut usize,
) -> c_int {
    let fake = fake(task);
    assert_eq!(parts, 1);
    let timeout = *request as c_int;
    fake.asked.push(timeout);
    if fake.asked.len() == fake.cancel_at_ask {
        fake.task.cancelled = 1;
        return -libc::ECANCELED;
    }
    let (came, term) = fake.ask.as_mut().unwrap()(timeout);
    *answer = term;
    if came {
        1
    } else {
        -libc::ETIMEDOUT
    }
}

extern "C" {
    fn enif_make_copy(env: *mut c_void, term: usize) -> usize;
}

unsafe extern "C" fn copy(task: *mut Task, to: *mut c_void, term: usize) -> usize {
    let to = if to.is_null() { fake(task).task.env } else { to };
    enif_make_copy(to, term)
}

unsafe extern "C" fn post(task: *mut Task, _: usize, _: usize, _: c_int) {
    fake(task).posted += 1;
}

// One at a time, and nothing moves here.
unsafe extern "C" fn root_new(task: *mut Task, term: usize) -> c_uint {
    fake(task).root = term;
    1
}

unsafe extern "C" fn root_get(task: *mut Task, _root: c_uint) -> usize {
    fake(task).root
}

unsafe extern "C" fn root_drop(_task: *mut Task, _root: c_uint) {}

unsafe extern "C" fn call(
    task: *mut Task,
    place: c_uint,
    _units: usize,
    run: unsafe extern "C" fn(*mut c_void),
    arg: *mut c_void,
) -> c_int {
    fake(task).calls.push(place);
    let arg = arg as usize;
    thread::scope(|scope| scope.spawn(move || run(arg as *mut c_void)).join()).unwrap();
    1
}

unsafe extern "C" fn unused() {
    unreachable!()
}

fn ops() -> &'static Ops {
    const COUNT: usize = size_of::<Ops>() / size_of::<usize>();
    let table: [unsafe extern "C" fn(); COUNT] = [unused; COUNT];
    // Safety: a table of functions, but for its first word.
    let mut ops: Ops = unsafe { transmute(table) };
    (ops.tick, ops.wait, ops.offload) = (tick, wait, call);
    (ops.ask, ops.post, ops.copy) = (ask, post, copy);
    (ops.root_new, ops.root_get, ops.root_drop) = (root_new, root_get, root_drop);
    Box::leak(Box::new(ops))
}

impl Fake {
    pub(super) fn new() -> Box<Fake> {
        let task = Task {
            budget: GRANTED,
            ops: ops(),
            env: null_mut(),
            argv: null(),
            argc: 0,
            env_used: 0,
            yields: 0,
            cancelled: 0,
        };
        Box::new(Fake {
            task,
            granted: GRANTED,
            units: 0,
            most: 0,
            ticks: 0,
            waits: 0,
            cancel_at_tick: 0,
            cancel_at_wait: 0,
            calls: vec![],
            root: 0,
            no_descriptor: false,
            no_memory: 0,
            ask: None,
            asked: vec![],
            cancel_at_ask: 0,
            posted: 0,
            outbox: None,
        })
    }

    pub(super) fn drive<F: Future + Send + 'static>(&mut self, future: F) -> End<F::Output> {
        let end = unsafe { drive((self as *mut Fake).cast(), self.outbox.clone(), future) };
        self.units += self.granted - self.task.budget;
        assert!(crate::call::current().is_null());
        end
    }

    pub(super) fn run<F: Future + Send + 'static>(&mut self, future: F) -> F::Output {
        match self.drive(future) {
            End::Ready(value) => value,
            End::Panicked(_) => panic!("it panicked"),
            End::Cancelled => panic!("it was cancelled"),
        }
    }
}

pub(super) fn run<F: Future + Send + 'static>(future: F) -> F::Output {
    Fake::new().run(future)
}

/// Counts its drops.
#[derive(Clone, Default)]
pub(super) struct Drops(pub(super) Arc<AtomicUsize>);

impl Drops {
    pub(super) fn guard(&self) -> Guard {
        Guard(self.clone())
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub(super) struct Guard(pub(super) Drops);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0 .0.fetch_add(1, Ordering::SeqCst);
    }
}
