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
    "fair_bin" = Bin { "data" = data, "size" = size, "ref" = reference }
    "fair_mutex" = Mutex { "holder" = holder, "first" = first, "last" = last, "next" = next }
    "struct fair__nif" = Nif {
        "body" = body, "options" = options, "name" = name, "arity" = arity, "mode" = mode,
        "lib" = lib, "func" = func, "slice_ns" = slice_ns, "stack_class" = stack_class,
        "awaited" = awaited, "yields" = yields, "unwinds" = unwinds, "max_tasks" = max_tasks,
    }
    "struct fair__lib" = Lib { "ops" = ops, "type" = resource_type, "state" = state }
    "struct fair__handshake" = Handshake {
        "size" = size, "abi_major" = abi_major, "abi_minor" = abi_minor,
        "task_size" = task_size, "options_size" = options_size, "nif_size" = nif_size,
        "ops_size" = ops_size, "module" = module, "nifs" = nifs, "nif_count" = nif_count,
        "error" = error, "ops" = ops, "type" = resource_type,
    }
    "fair_resource_options" = ResourceOptions {
        "name" = name, "cleanup" = cleanup, "down" = down, "stop" = stop, "at_once" = at_once,
        "unwinds" = unwinds, "stack_size" = stack_size, "slice_us" = slice_us,
    }
    "struct fair_resource_type" = ResourceType { "vm" = vm }
    "struct fair__object_head" = ObjectHead { "type" = resource_type, "vm" = vm }
    "struct fair__ops" = Ops {
        "size" = size, "abi_major" = abi_major, "abi_minor" = abi_minor, "running" = running,
        "enter" = enter, "tick" = tick, "move" = r#move, "where" = r#where, "call" = call,
        "wait" = wait, "make_fd" = make_fd, "get_fd" = get_fd, "close_fd" = close_fd,
        "lock" = lock, "unlock" = unlock, "caller" = caller, "root" = root, "unroot" = unroot,
        "keep" = keep, "kept" = kept, "get_resource" = get_resource, "get_bin" = get_bin,
        "get_iolist" = get_iolist, "get_string" = get_string,
        "get_list_length" = get_list_length, "new_bin" = new_bin, "resize_bin" = resize_bin,
        "make_bin" = make_bin, "release_bin" = release_bin, "list_next" = list_next,
        "list_push" = list_push, "list_reverse" = list_reverse, "alloc" = alloc,
        "realloc" = realloc, "free" = free, "defer" = defer, "undefer" = undefer,
        "raise" = raise, "held_lock" = held_lock, "seen_arg" = seen_arg,
        "priv_data" = priv_data, "self" = self_pid, "is_alive" = is_alive,
        "consume" = consume, "send" = send, "monotonic_time" = monotonic_time,
        "current" = current, "loaded" = loaded, "resource_open" = resource_open,
        "resource_new" = resource_new, "post" = post, "ask" = ask, "alarm" = alarm,
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
        ("FAIR_UNWINDS", abi::mode::UNWINDS as usize),
        ("FAIR_NO_YIELD", abi::mode::NO_YIELD as usize),
        ("FAIR_AWAITED", abi::mode::AWAITED as usize),
        ("FAIR_READ", abi::READ as usize),
        ("FAIR_WRITE", abi::WRITE as usize),
        ("FAIR_E_LOAD_INFO", abi::E_LOAD_INFO as usize),
        ("FAIR_E_RUNTIME", abi::E_RUNTIME as usize),
        ("FAIR_E_ABI", abi::E_ABI as usize),
        ("FAIR_E_NOMEM", abi::E_NOMEM as usize),
        ("FAIR__LOADED", abi::LOADED as usize),
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
