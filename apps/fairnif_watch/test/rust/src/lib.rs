//! A plain NIF that works for that many rounds, of about a microsecond each.
use std::hint::black_box;

#[rustler::nif]
fn spin(rounds: u64) -> u64 {
    (0..rounds).fold(1, work)
}

#[inline(never)]
fn work(sum: u64, round: u64) -> u64 {
    (0..1000).fold(sum + round, |s, i| black_box(s.wrapping_mul(31).wrapping_add(i)))
}

rustler::init!("fairnif_watch_block_rust");
