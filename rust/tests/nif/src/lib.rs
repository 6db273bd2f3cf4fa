//! The functions of fairnif_rust_tests: results, errors, ends, waits, and what safe code may do to
//! a `Ticker`, a `Bin`, a future and a resource.

mod ends;
// As it stands in docs/guide/rust.md.
mod guide;
mod kept;
mod names;
mod processes;
mod resources;
mod waits;

use std::hint::black_box;
use std::thread;

use fairnif::{fair, fair_here, Bin, Error, OwnedBin, Ticker};
use rustler::{Atom, Env, NifMap, Term};

pub(crate) const BLOCK: usize = 4096;

// -- results --------------------------------------------------------------------------------------

/// One body in every mode.
macro_rules! in_modes {
    ($($name:ident($($option:tt)*);)*) => {$(
        #[fairnif::nif($($option)*)]
        async fn $name(t: Ticker, data: Bin, byte: u8) -> usize {
            count_in(&t, &data, byte).await
        }
    )*};
}

in_modes! {
    count();
    count_normal(mode = "normal");
    count_dirty_cpu(mode = "dirty_cpu");
    count_dirty_io(mode = "dirty_io");
    count_threaded(mode = "threaded");
    count_awaited(mode = "auto", may_wait);
    count_no_yield(no_yield);
    count_small(stack_size = 65536, slice_us = 50, max_tasks = 2);
    count_named(name = "count another", may_wait);
}

async fn count_in(t: &Ticker, data: &Bin, byte: u8) -> usize {
    let mut found = 0;
    for block in data.chunks(BLOCK) {
        found += block.iter().filter(|b| **b == byte).count();
        t.tick(block.len()).await;
    }
    found
}

#[fairnif::nif]
async fn exor(t: Ticker, data: Bin, byte: u8) -> OwnedBin {
    let mut out = OwnedBin::with_capacity(data.len());
    for block in data.chunks(BLOCK) {
        out.extend(block.iter().map(|b| b ^ byte));
        t.tick(block.len()).await;
    }
    out
}

#[fairnif::nif]
async fn echo(data: Bin) -> Bin {
    data
}

#[derive(NifMap)]
struct Point {
    x: f64,
    y: f64,
}

#[fairnif::nif]
async fn turned(point: Point, name: Atom, rest: (String, Vec<i64>)) -> (Atom, Vec<i64>, Point) {
    (name, rest.1.into_iter().rev().collect(), Point { x: point.y, y: point.x })
}

#[fairnif::nif]
async fn nothing() {}

/// Twice in one result, and written to in between.
#[fairnif::nif]
async fn rewritten(size: usize) -> (OwnedBin, Bin, Bin, OwnedBin) {
    let mut first = OwnedBin::zeroed(size);
    first.extend_from_slice(b"end");
    let copy = Bin::from(OwnedBin::from(&first[..]));
    let mut second = OwnedBin::from(&copy[..]);
    second.reserve(1000);
    second[0] = 1;
    (first, copy.clone(), copy, second)
}

#[fairnif::nif]
async fn lines(data: Bin) -> usize {
    let mut lines = fair(data.split(|b| *b == b'\n'));
    let mut count = 0;
    while let Some(line) = lines.next().await {
        count += usize::from(!line.is_empty());
    }
    count
}

#[fairnif::nif]
async fn sorted(t: Ticker, mut numbers: Vec<u64>) -> Vec<u64> {
    // Safety: nothing of a thread's is used here.
    numbers.sort_by(|a, b| {
        unsafe { t.tick_here(1) };
        a.cmp(b)
    });
    numbers
}

/// On how many threads an iterator's items were made.
#[fairnif::nif]
async fn threads_of(items: u64) -> usize {
    // Safety: an id is a number.
    let items = unsafe { fair_here(0..items) };
    let mut ids: Vec<_> = items.map(|_| format!("{:?}", thread::current().id())).collect();
    ids.sort();
    ids.dedup();
    ids.len()
}

#[rustler::nif]
fn plain(a: i64, b: i64) -> i64 {
    a + b
}

// -- errors ---------------------------------------------------------------------------------------

#[fairnif::nif]
async fn fails(t: Ticker, how: String) -> Result<u64, Error> {
    t.tick(1).await;
    Err(match how.as_str() {
        "badarg" => Error::BadArg,
        "atom" => Error::Atom("an_atom"),
        "raise_atom" => Error::RaiseAtom("an_atom"),
        "term" => Error::term((1, "two")),
        "raise" => Error::raise((1, "two")),
        "io" => std::io::Error::other("wet").into(),
        _ => return Ok(7),
    })
}

#[fairnif::nif]
async fn fails_as_theirs(how: String) -> Result<u64, rustler::Error> {
    Err(match how.as_str() {
        "badarg" => rustler::Error::BadArg,
        "atom" => rustler::Error::Atom("an_atom"),
        "raise_atom" => rustler::Error::RaiseAtom("an_atom"),
        "term" => rustler::Error::Term(Box::new((1, "two"))),
        "raise" => rustler::Error::RaiseTerm(Box::new((1, "two"))),
        _ => return Ok(7),
    })
}

/// As rustler has it where the error is a term as well.
#[fairnif::nif]
async fn fails_as_a_term(ok: bool) -> Result<u64, String> {
    if ok {
        Ok(7)
    } else {
        Err("no".into())
    }
}

#[fairnif::nif]
async fn panics(t: Ticker, ticks: u64) -> u64 {
    for _ in 0..ticks {
        t.tick(black_box(100)).await;
    }
    panic!("as the test wants it")
}

#[rustler::nif]
fn plain_panics() -> u64 {
    panic!("as the test wants it")
}

/// Refused where the author's load_info is an integer. A thread makes a resource then, after that.
fn prepare(_: Env, info: Term) -> bool {
    let refused = fairnif::authors_info(info).is_some_and(|term| term.is_integer());
    if refused {
        resources::make_after_refusal();
    }
    !refused
}

fairnif::init!("fairnif_test_rust", load = prepare);
