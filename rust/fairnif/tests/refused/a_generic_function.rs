#[fairnif::nif]
async fn f<T: Send>(_t: T) {}

#[fairnif::nif]
async fn g<'a>(_s: std::borrow::Cow<'a, str>) {}

fn main() {}
