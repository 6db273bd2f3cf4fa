fn load(env: rustler::Env, info: rustler::Term) -> bool {
    fairnif::__load(env, info, "refused") && false
}

rustler::init!("refused", load = load);

fn main() {}
