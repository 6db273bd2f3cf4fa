//! Work without an end, which says when it began and was dropped.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use fairnif::{Error, Ticker};
use rustler::Atom;

/// About 2 us of `work`.
const STEP: u64 = 2000;

/// Rounds done; when the call began and ended, ns of CLOCK_MONOTONIC, 0: not yet.
struct Slot {
    rounds: AtomicU64,
    begun: AtomicU64,
    ended: AtomicU64,
}

static SLOT: Slot =
    Slot { rounds: AtomicU64::new(0), begun: AtomicU64::new(0), ended: AtomicU64::new(0) };

/// As fairnif_exp_nif.c's.
fn work(mut x: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Safety: it writes to `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

struct SaysEnd;

impl Drop for SaysEnd {
    fn drop(&mut self) {
        SLOT.ended.store(now(), SeqCst);
    }
}

async fn endless(t: Ticker) -> Result<(), Error> {
    let _says = SaysEnd;
    let mut x = 88_172_645_463_325_252;
    SLOT.begun.store(now(), SeqCst);
    loop {
        x = black_box(work(x, STEP));
        SLOT.rounds.fetch_add(STEP, SeqCst);
        t.tick(STEP as usize).await;
    }
}

#[fairnif::nif]
async fn auto_forever(t: Ticker, slot: u32) -> Result<(), Error> {
    one(slot)?;
    endless(t).await
}

#[fairnif::nif(mode = "dirty_cpu")]
async fn dirty_cpu_forever(t: Ticker, slot: u32) -> Result<(), Error> {
    one(slot)?;
    endless(t).await
}

/// There is one slot, 0.
fn one(slot: u32) -> Result<(), Error> {
    (slot == 0).then_some(()).ok_or(Error::BadArg)
}

#[rustler::nif]
fn slot(number: u32) -> rustler::NifResult<(u64, u64, u64)> {
    one(number).map_err(|_| rustler::Error::BadArg)?;
    Ok((SLOT.rounds.load(SeqCst), SLOT.begun.load(SeqCst), SLOT.ended.load(SeqCst)))
}

#[rustler::nif]
fn clear_slot(slot: u32) -> rustler::NifResult<Atom> {
    one(slot).map_err(|_| rustler::Error::BadArg)?;
    for field in [&SLOT.rounds, &SLOT.begun, &SLOT.ended] {
        field.store(0, SeqCst);
    }
    Ok(rustler::types::atom::ok())
}
