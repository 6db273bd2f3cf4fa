//! What is moved must fit on the stack; what is called must be known without a value of it.
struct Huge([u8; 20_000]);
fairnif::resource!(Huge, cleanup = |_huge, _t| async {});

struct Named;
fairnif::resource!(Named, name = "");

fn main() {}
