use std::net::TcpStream;

async fn wait(stream: TcpStream) {
    let ready = fairnif::readable(&stream);
    drop(stream);
    let _ = ready.await;
}

fn main() {
    let _ = wait;
}
