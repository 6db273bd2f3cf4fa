use fairnif::{Bin, OwnedBin};

fn outlives(bin: Bin) -> &'static [u8] {
    &bin
}

fn grows() {
    let mut bin = OwnedBin::zeroed(10);
    let bytes = bin.as_slice();
    bin.push(1);
    println!("{}", bytes.len());
}

fn main() {
    let _ = (outlives, grows);
}
