#[fairnif::nif]
async unsafe fn f() {}

fn main() {}
