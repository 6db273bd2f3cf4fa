//! `abi.rs` against the C headers, by a C program that prints sizes and places.
//!
//! Skipped, aloud, without a C compiler, `erl_nif.h` or the headers (in the crate's package).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::Command;

use fairnif::abi;

type Layout = BTreeMap<String, usize>;

/// C's names of a struct and its fields, and Rust's.
macro_rules! structs {
    ($($c:literal = $rust:ident { $($field:literal = $r:ident),* $(,)? })*) => {
        fn layout() -> Layout {
            let mut layout = Layout::new();
            $(
                layout.insert($c.to_string(), size_of::<abi::$rust>());
                $(layout.insert(concat!($c, ".", $field).into(), offset_of!(abi::$rust, $r));)*
            )*
            layout
        }

        fn program() -> String {
            let mut lines = String::new();
            $(
                writeln!(lines, "SIZE({})", $c).unwrap();
                $(writeln!(lines, "PLACE({}, {})", $c, $field).unwrap();)*
            )*
            lines
        }
    };
}

structs! {
    "struct fair_task" = Task {
        "budget" = budget, "ops" = ops, "env" = env, "argv" = argv, "argc" = argc,
        "env_used" = env_used, "yields" = yields, "cancelled" = cancelled,
    }
    "fair_options" = Options {
        "body" = body, "stack_size" = stack_size, "slice_us" = slice_us, "max_tasks" = max_tasks,
    }
    "fair_bin" = Bin { "data" = data, "size" = size, "ref" = reference, "reserved" = reserved }
    "fair_mutex" = Mutex {
        "holder" = holder, "first" = first, "last" = last, "next" = next, "reserved" = reserved,
    }
    "struct fair__nif" = Nif {
        "body" = body, "options" = options, "name" = name, "arity" = arity, "mode" = mode,
        "lib" = lib, "func" = func, "slice_ns" = slice_ns, "stack_class" = stack_class,
        "may_wait" = may_wait, "yields" = yields, "cleans_up" = cleans_up, "prompt" = prompt,
        "unused" = unused, "max_tasks" = max_tasks, "unused_too" = unused_too, "reserved" = reserved,
    }
    "struct fair__lib" = Lib {
        "ops" = ops, "type" = resource_type, "state" = state, "unused" = unused,
        "reserved" = reserved,
    }
    "struct fair__handshake" = Handshake {
        "is.size" = size, "is.kind" = kind, "abi_major" = abi_major, "abi_minor" = abi_minor,
        "task_size" = task_size, "options_size" = options_size, "nif_size" = nif_size,
        "lib_size" = lib_size, "ops_size" = ops_size, "bin_size" = bin_size,
        "mutex_size" = mutex_size, "module" = module, "nifs" = nifs, "nif_count" = nif_count,
        "error" = error, "ops" = ops, "type" = resource_type,
    }
    "fair_resource_options" = ResourceOptions {
        "name" = name, "cleanup" = cleanup, "down" = down, "stop" = stop, "max_concurrent" = max_concurrent,
        "cleans_up" = cleans_up, "stack_size" = stack_size, "slice_us" = slice_us, "size" = size,
    }
    "struct fair_resource_type" = ResourceType { "vm" = vm, "size" = size, "refused" = refused }
    "struct fair__object_head" = ObjectHead {
        "size" = size, "unused" = unused, "type" = resource_type, "vm" = vm,
    }
    "struct fair__ops" = Ops {
        "size" = size, "abi_major" = abi_major, "abi_minor" = abi_minor, "enter" = enter,
        "tick" = tick, "offload" = offload, "wait" = wait, "caller" = caller,
        "root_new" = root_new, "root_drop" = root_drop, "root_get" = root_get, "raise" = raise,
        "loaded" = loaded, "resource_open" = resource_open, "resource_new" = resource_new,
        "post" = post, "ask" = ask, "copy" = copy,
    }
}

fn constants() -> Layout {
    [
        ("ERL_NIF_TERM_SIZE", size_of::<abi::Term>()),
        ("FAIR_ABI_MAJOR", abi::ABI_MAJOR as usize),
        ("FAIR_ABI_MINOR", abi::ABI_MINOR as usize),
        ("FAIR_NORMAL", abi::mode::NORMAL as usize),
        ("FAIR_DIRTY_CPU", abi::mode::DIRTY_CPU as usize),
        ("FAIR_DIRTY_IO", abi::mode::DIRTY_IO as usize),
        ("FAIR_THREADED", abi::mode::THREADED as usize),
        ("FAIR_AUTO", abi::mode::AUTO as usize),
        ("FAIR_CLEANUP", abi::mode::CLEANUP as usize),
        ("FAIR_NO_YIELD", abi::mode::NO_YIELD as usize),
        ("FAIR_MAY_WAIT", abi::mode::MAY_WAIT as usize),
        ("FAIR_READ", abi::READ as usize),
        ("FAIR_WRITE", abi::WRITE as usize),
        ("FAIR_E_LOAD_INFO", abi::E_LOAD_INFO as usize),
        ("FAIR_E_RUNTIME", abi::E_RUNTIME as usize),
        ("FAIR_E_ABI", abi::E_ABI as usize),
        ("FAIR_E_NOMEM", abi::E_NOMEM as usize),
        ("FAIR__LOADED", abi::LOADED as usize),
        ("FAIR__BINDS", abi::BINDS as usize),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into()
}

#[test]
fn rust_has_the_layout_of_the_headers() {
    let Some(printed) = print_layout() else {
        return;
    };
    let mut ours = layout();
    ours.extend(constants());
    assert_eq!(printed, ours);
}

fn print_layout() -> Option<Layout> {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps/fairnif/c_include");
    if !headers.join("fairnif.h").exists() {
        eprintln!("skipped: fairnif.h is not beside this crate");
        return None;
    }
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = dir.join("layout.c");
    let binary = dir.join("layout");
    std::fs::write(&source, c_source()).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let Some(erl_nif) = erl_nif_dir() else {
        eprintln!("skipped: no erl to ask for the folder of erl_nif.h");
        return None;
    };
    let compiled = Command::new(&compiler)
        .arg("-I")
        .arg(&headers)
        .arg("-I")
        .arg(&erl_nif)
        .args(["-o".as_ref(), binary.as_os_str(), source.as_os_str()])
        .status();
    match compiled {
        Err(error) => {
            eprintln!("skipped: no C compiler: {compiler}: {error}");
            return None;
        }
        Ok(status) => assert!(status.success(), "the headers do not compile"),
    }
    let output = Command::new(&binary).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let pair = |line: &str| {
        let (name, number) = line.rsplit_once(' ').unwrap();
        (name.to_string(), number.parse().unwrap())
    };
    Some(text.lines().map(pair).collect())
}

fn c_source() -> String {
    let mut source = String::from(
        "#include <fairnif.h>\n\
         #include <stdio.h>\n\
         #define SIZE(S) printf(\"%s %zu\\n\", #S, sizeof(S));\n\
         #define PLACE(S, F) printf(\"%s.%s %zu\\n\", #S, #F, offsetof(S, F));\n\
         #define VALUE(N) printf(\"%s %zu\\n\", #N, (size_t)(N));\n\
         #define ERL_NIF_TERM_SIZE sizeof(ERL_NIF_TERM)\n\
         int main(void)\n{\n",
    );
    source.push_str(&program());
    for name in constants().keys() {
        writeln!(source, "VALUE({name})").unwrap();
    }
    source.push_str("return 0;\n}\n");
    source
}

fn erl_nif_dir() -> Option<String> {
    let program = "io:put_chars(filename:join([code:root_dir(), usr, include])), halt().";
    let output = Command::new("erl").args(["-noinput", "-eval", program]).output().ok()?;
    let dir = String::from_utf8(output.stdout).ok()?;
    Path::new(&dir).join("erl_nif.h").exists().then_some(dir)
}
