//! Names of the author's that what the macro makes might have used too.

/// As the crate's module.
mod codegen {
    pub(super) type Number = u64;
}

#[fairnif::nif]
async fn body(n: codegen::Number) -> codegen::Number {
    n
}

#[fairnif::nif]
async fn enter(t: fairnif::Ticker, task: u64) -> u64 {
    t.tick(1).await;
    task
}

#[fairnif::nif]
async fn task(env: u64, args: u64) -> u64 {
    env + args
}

#[fairnif::nif]
async fn args(value: u64) -> u64 {
    value
}
