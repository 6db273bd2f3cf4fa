use fairnif::Ticker;
use std::sync::Mutex;

static LOCK: Mutex<u64> = Mutex::new(1);

#[fairnif::nif]
async fn f(t: Ticker) -> u64 {
    let guard = LOCK.lock().unwrap();
    t.tick(1).await;
    *guard
}

fn main() {}
