use fairnif::Ticker;
use std::rc::Rc;

#[fairnif::nif]
async fn f(t: Ticker) -> u64 {
    let shared = Rc::new(1);
    t.tick(1).await;
    *shared
}

fn main() {}
