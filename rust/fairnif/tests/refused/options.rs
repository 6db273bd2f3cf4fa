#[fairnif::nif(mode = "fast")]
async fn f() {}

#[fairnif::nif(schedule = "DirtyCpu")]
async fn g() {}

#[fairnif::nif(name = "")]
async fn h() {}

fn main() {}
