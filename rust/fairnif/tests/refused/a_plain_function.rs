#[fairnif::nif]
fn f() {}

fn main() {}
