struct Mine;

#[fairnif::nif]
async fn f(_mine: Mine) {}

fn main() {}
