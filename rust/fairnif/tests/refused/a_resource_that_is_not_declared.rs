//! The runtime does not know its type.
struct Forgotten;

fn main() {
    fairnif::FairResource::new(Forgotten);
}
