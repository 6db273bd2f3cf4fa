struct Mine;

impl fairnif::Resource for Mine {}

fn main() {}
