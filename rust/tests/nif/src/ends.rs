//! Calls that run until their caller dies, in every state, with something that counts its drops.

use std::hint::black_box;
use std::os::unix::net::UnixStream;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fairnif::{offload, readable, sleep, Place, Ticker};
use futures::future::{join, pending};

/// All, and those on a normal scheduler.
static DROPS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
static BEGUN: AtomicUsize = AtomicUsize::new(0);

const LONG: Duration = Duration::from_secs(3600);

pub(crate) struct Guard;

impl Guard {
    pub(crate) fn new() -> Guard {
        BEGUN.fetch_add(1, Ordering::SeqCst);
        Guard
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Safety: it asks what this thread is.
        let normal = unsafe { rustler::sys::enif_thread_type() } == 1;
        DROPS[1].fetch_add(usize::from(normal), Ordering::SeqCst);
        DROPS[0].fetch_add(1, Ordering::SeqCst);
    }
}

/// Begun, dropped, dropped on a normal scheduler; from zero again.
#[rustler::nif]
fn guards() -> (usize, usize, usize) {
    let take = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    (take(&BEGUN), take(&DROPS[0]), take(&DROPS[1]))
}

#[rustler::nif]
fn reset_guards() {
    for counter in [&BEGUN, &DROPS[0], &DROPS[1]] {
        counter.store(0, Ordering::SeqCst);
    }
}

#[fairnif::nif]
async fn ends(t: Ticker) -> u64 {
    let _guard = Guard::new();
    t.tick(100).await;
    7
}

#[fairnif::nif(may_wait)]
async fn lasts(t: Ticker, how: String) {
    last(t, how).await
}

#[fairnif::nif(mode = "dirty_cpu", may_wait)]
async fn lasts_dirty(t: Ticker, how: String) {
    last(t, how).await
}

#[fairnif::nif(mode = "threaded")]
async fn lasts_threaded(t: Ticker, how: String) {
    last(t, how).await
}

async fn last(t: Ticker, how: String) {
    let _guard = Guard::new();
    let boxed = Box::new(Guard::new());
    match how.as_str() {
        "ticks" => loop {
            t.tick(black_box(1)).await;
        },
        "ticks_here" => deep(&t, 10),
        "swallows" => swallows(&t),
        "sleeps" => sleep(LONG).await,
        "reads" => {
            let (reader, _writer) = UnixStream::pair().unwrap();
            readable(&reader).await.unwrap();
        }
        "both" => {
            let (reader, _writer) = UnixStream::pair().unwrap();
            let _ = join(sleep(LONG), readable(&reader)).await;
        }
        "pends" => pending().await,
        "receives" => drop(fairnif::receive().await),
        "receives_both" => {
            drop(join(fairnif::receive().tagged(1), fairnif::receive().tagged(2)).await)
        }
        "applies" => {
            let ok = rustler::types::atom::ok();
            drop(fairnif::apply("fairnif_rust_tests", "sleep_forever", (ok,)).await);
        }
        "offloads" => loop {
            offload(|| thread::sleep(Duration::from_millis(1))).await;
        },
        "offloads_dirty" => loop {
            offload(|| thread::sleep(Duration::from_millis(1))).on(Place::DirtyIo, 1).await;
        },
        _ => {}
    }
    drop(boxed);
}

fn deep(t: &Ticker, depth: usize) {
    let _guard = Guard::new();
    if depth > 0 {
        return deep(t, depth - 1);
    }
    loop {
        // Safety: nothing of a thread's is used here.
        unsafe { t.tick_here(black_box(1)) };
    }
}

/// Ten times.
fn swallows(t: &Ticker) {
    for _ in 0..10 {
        let _ = catch_unwind(AssertUnwindSafe(|| deep(t, 1)));
    }
    deep(t, 1);
}
