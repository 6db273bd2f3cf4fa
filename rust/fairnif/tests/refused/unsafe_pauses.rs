use fairnif::{fair_here, Ticker};

#[fairnif::nif]
async fn f(t: Ticker) -> u64 {
    t.tick_here(1);
    fair_here(0..10u64).sum()
}

fn main() {}
