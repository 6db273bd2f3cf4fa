//! The bodies in Rust that the figures are measured with. A peer is a plain rustler function that
//! does the same work with the same loop.

mod endless;
mod levenshtein;

use fairnif::{Bin, Ticker};
use rustler::Binary;

use levenshtein::Table;

#[fairnif::nif]
async fn levenshtein(t: Ticker, a: Bin, b: Bin) -> usize {
    let mut table = Table::new(&a, &b);
    loop {
        match table.step() {
            0 => return table.distance(),
            cells => t.tick(cells).await,
        }
    }
}

#[rustler::nif]
fn plain_levenshtein(a: Binary, b: Binary) -> usize {
    let mut table = Table::new(&a, &b);
    while table.step() > 0 {}
    table.distance()
}

#[fairnif::nif]
async fn noop(number: i64) -> i64 {
    number
}

#[rustler::nif]
fn plain_noop(number: i64) -> i64 {
    number
}

fairnif::init!("fairnif_exp_rust");
