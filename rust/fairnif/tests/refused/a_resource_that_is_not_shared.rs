//! A resource is used on any thread, and dropped on another one.
struct Local(std::cell::Cell<u8>);
fairnif::resource!(Local);

fn main() {}
