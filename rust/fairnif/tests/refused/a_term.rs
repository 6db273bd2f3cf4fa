//! The usual types are named in what the macro says.
#[fairnif::nif]
async fn f(_term: rustler::Term<'_>) {}

#[fairnif::nif]
async fn g(_env: rustler::Env<'_>) {}

#[fairnif::nif]
async fn h(_data: rustler::Binary<'_>) {}

#[fairnif::nif]
async fn i(_text: &str) {}

fn main() {}
