struct Mine;

#[fairnif::nif]
async fn f() -> Mine {
    Mine
}

fn main() {}
