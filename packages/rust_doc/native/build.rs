//! The library stays mapped when its module is purged: a thread may be in it that frees a
//! document (`Document::drop`), for which the VM does not wait.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-link-arg-cdylib=-Wl,-z,nodelete");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
