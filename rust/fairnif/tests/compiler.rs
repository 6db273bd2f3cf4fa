//! What the compiler must refuse, and in which words.
//!
//! The words are those of one release; with another one this is skipped, aloud.

use std::process::Command;

const RELEASE: &str = "rustc 1.95.";

#[test]
fn the_compiler_refuses_what_would_be_unsound() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().unwrap();
    let version = String::from_utf8(output.stdout).unwrap();
    if !version.starts_with(RELEASE) {
        eprintln!("skipped: the words in tests/refused are those of {RELEASE}x, not {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
