use fairnif::Ticker;
use rustler::OwnedEnv;

#[fairnif::nif]
async fn f(t: Ticker) {
    let env = OwnedEnv::new();
    let borrowed = &env;
    t.tick(1).await;
    borrowed.run(|_| ());
}

fn main() {}
