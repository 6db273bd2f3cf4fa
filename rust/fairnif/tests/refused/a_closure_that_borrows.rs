#[fairnif::nif(may_wait)]
async fn f(data: fairnif::Bin) -> usize {
    let slice = &data[..];
    fairnif::offload(|| slice.len()).await
}

fn main() {}
