//! Fair resources: values that count their drops, and take their time for them.

use std::hint::black_box;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use fairnif::{sleep, FairResource, Ticker};
use rustler::{Resource, ResourceArc, Term};

/// Made, dropped, dropped on a normal scheduler.
static COUNTS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

fn count(at: usize) {
    COUNTS[at].fetch_add(1, Ordering::SeqCst);
}

/// What all of these types hold.
struct Counted(u64);

impl Counted {
    fn new(number: u64) -> Counted {
        count(0);
        Counted(number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Safety: it asks what this thread is.
        if unsafe { rustler::sys::enif_thread_type() } == 1 {
            count(2);
        }
        count(1);
    }
}

#[rustler::nif]
fn resource_counts() -> (usize, usize, usize) {
    let take = |at: usize| COUNTS[at].load(Ordering::SeqCst);
    (take(0), take(1), take(2))
}

#[rustler::nif]
fn reset_resource_counts() {
    COUNTS.iter().for_each(|count| count.store(0, Ordering::SeqCst));
}

/// By a thread that is at work still when this load has been refused.
pub fn make_after_refusal() {
    thread::spawn(|| {
        thread::sleep(Duration::from_millis(50));
        drop(FairResource::try_new(Short(Counted::new(0))));
    });
}

// -- what is short, and goes both ways ------------------------------------------------------------

struct Short(Counted);
fairnif::resource!(Short, name = "short");

#[rustler::nif]
fn short(number: u64) -> FairResource<Short> {
    FairResource::new(Short(Counted::new(number)))
}

#[rustler::nif]
fn number_of(short: FairResource<Short>) -> u64 {
    short.0 .0
}

#[fairnif::nif]
async fn short_fair(number: u64) -> FairResource<Short> {
    FairResource::new(Short(Counted::new(number)))
}

/// The same ones again, and the sum of their numbers.
#[fairnif::nif]
async fn all_of(t: Ticker, all: Vec<FairResource<Short>>) -> (u64, Vec<FairResource<Short>>) {
    let mut sum = 0;
    for each in &all {
        sum += each.0 .0;
        t.tick(100_000).await;
    }
    (sum, all)
}

/// Ticks until its caller dies.
#[fairnif::nif]
async fn holds(t: Ticker, _short: FairResource<Short>) {
    loop {
        t.tick(black_box(10)).await;
    }
}

/// Outlives every term.
static KEPT: Mutex<Vec<FairResource<Short>>> = Mutex::new(vec![]);

#[rustler::nif]
fn keep_short(short: FairResource<Short>) -> usize {
    let mut kept = KEPT.lock().unwrap();
    kept.push(short);
    kept.len()
}

#[rustler::nif]
fn drop_shorts() -> usize {
    let kept = std::mem::take(&mut *KEPT.lock().unwrap());
    kept.len()
}

// -- other types ----------------------------------------------------------------------------------

/// With the VM's destructor.
struct Theirs(u64);

#[rustler::resource_impl]
impl Resource for Theirs {}

impl Drop for Theirs {
    fn drop(&mut self) {
        thread::sleep(Duration::from_millis(self.0));
    }
}

#[rustler::nif]
fn theirs(drop_ms: u64) -> ResourceArc<Theirs> {
    ResourceArc::new(Theirs(drop_ms))
}

#[repr(align(256))]
struct Aligned(Counted);
fairnif::resource!(Aligned);

#[rustler::nif]
fn aligned(number: u64) -> (bool, FairResource<Aligned>) {
    let new = FairResource::new(Aligned(Counted::new(number)));
    let at = std::ptr::from_ref::<Aligned>(&new) as usize;
    (at.is_multiple_of(256) && new.0 .0 == number, new)
}

struct Nothing;
fairnif::resource!(Nothing);

impl Drop for Nothing {
    fn drop(&mut self) {
        drop(Counted(0));
    }
}

#[rustler::nif]
fn nothing_at_all() -> FairResource<Nothing> {
    count(0);
    FairResource::new(Nothing)
}

// -- what takes its time --------------------------------------------------------------------------

/// Its drop blocks its thread.
struct Slow(u64, #[allow(dead_code)] Counted);
fairnif::resource!(Slow, name = "slow");

impl Drop for Slow {
    fn drop(&mut self) {
        thread::sleep(Duration::from_millis(self.0));
    }
}

#[rustler::nif]
fn slow(drop_ms: u64) -> FairResource<Slow> {
    FairResource::new(Slow(drop_ms, Counted::new(0)))
}

struct Steps(Vec<Counted>);
fairnif::resource!(Steps, name = "steps", cleanup = Steps::take_down, stack_size = 65536);

impl Steps {
    /// A sleep, and 20 us of work a step.
    async fn take_down(self, t: Ticker) {
        sleep(Duration::from_millis(5)).await;
        for step in self.0 {
            drop(step);
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_micros(20) {}
            t.tick(1).await;
        }
    }
}

#[rustler::nif]
fn steps(count: u64) -> FairResource<Steps> {
    FairResource::new(Steps((0..count).map(Counted::new).collect()))
}

struct Bad(#[allow(dead_code)] Counted);
fairnif::resource!(Bad, name = "bad");

impl Drop for Bad {
    fn drop(&mut self) {
        resume_unwind(Box::new("without a message"));
    }
}

#[rustler::nif]
fn bad() -> FairResource<Bad> {
    FairResource::new(Bad(Counted::new(0)))
}

/// What it is of, if it is a term of ours at all.
#[rustler::nif]
fn kind_of(term: Term) -> &'static str {
    if term.decode::<FairResource<Short>>().is_ok() {
        "short"
    } else if term.decode::<FairResource<Nothing>>().is_ok() {
        "nothing"
    } else if term.decode::<ResourceArc<Theirs>>().is_ok() {
        "theirs"
    } else {
        "none"
    }
}
