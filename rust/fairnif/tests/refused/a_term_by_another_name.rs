type Something<'a> = rustler::Term<'a>;

#[fairnif::nif]
async fn f(_something: Something<'_>) {}

fn main() {}
