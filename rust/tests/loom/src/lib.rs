//! Is a wake ever lost? `waker.rs` itself, with loom's types in the place of the standard library's,
//! run in every order in which its threads can come, and with every value that the memory model lets
//! them read.
#![cfg(test)]

#[allow(dead_code)]
#[path = "../../../fairnif/src/call/waker.rs"]
mod waker;

/// What `waker.rs` is made of.
mod sync;

use loom::sync::atomic::AtomicUsize;
use loom::thread;

use sync::{Arc, Ordering};
use waker::{Rest, Wakes};

/// Wakes a call from several threads, each when it has done something: the call sees all of it, and
/// does not wait for ever (which loom takes for a deadlock).
fn woken_from(threads: usize, several: bool) {
    let mut model = loom::model::Builder::new();
    // Where a thread is interrupted at will only so often, three threads take seconds and not hours.
    model.preemption_bound = Some(3);
    model.check(move || {
        let wakes = Box::new(Wakes::default());
        let done = Arc::new(AtomicUsize::new(0));
        let others: Vec<_> = (0..threads)
            .map(|_| {
                let (waker, done) = (wakes.root().clone(), done.clone());
                thread::spawn(move || {
                    done.fetch_add(1, Ordering::Relaxed);
                    waker.wake();
                })
            })
            .collect();
        loop {
            wakes.clear();
            if done.load(Ordering::Relaxed) == threads {
                break;
            }
            match wakes.rest(several) {
                Rest::Woken => {}
                Rest::With(poller) => poller.wait(),
                Rest::Alone => panic!("who has done nothing yet has a waker"),
                Rest::NoDescriptor => unreachable!(),
            }
        }
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn a_wake_from_another_thread_is_not_lost() {
    woken_from(1, false);
}

#[test]
fn nor_is_it_by_who_waits_for_several() {
    woken_from(1, true);
}

#[test]
fn nor_one_of_two() {
    woken_from(2, false);
}
