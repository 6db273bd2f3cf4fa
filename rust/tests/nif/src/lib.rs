//! The functions of fairnif_rust_tests.
use fairnif::{Bin, Error, OwnedBin, Ticker};
use rustler::{Env, Term};

const BLOCK: usize = 4096;

#[fairnif::nif]
async fn count(t: Ticker, data: Bin, byte: u8) -> Result<u64, Error> {
    let mut found = 0;
    for block in data.chunks(BLOCK) {
        found += block.iter().filter(|b| **b == byte).count() as u64;
        t.tick(block.len()).await;
    }
    Ok(found)
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

/// Goes on until its caller dies.
#[fairnif::nif]
async fn forever(t: Ticker) -> u64 {
    loop {
        t.tick(std::hint::black_box(1)).await;
    }
}

fn load(env: Env, info: Term) -> bool {
    fairnif::load(env, info)
}

rustler::init!("fairnif_rust_nif", load = load);
