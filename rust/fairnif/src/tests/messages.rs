//! Receives, with binaries for messages: tests/bins.rs has the functions for these. Tags, and what
//! the VM makes of all of it, are in fairnif_rust_tests.

use std::collections::VecDeque;

use super::*;
use crate::call::asks::Outbox;
use crate::vm;
use crate::{receive, Bin, OwnedBin, OwnedTerm};

#[no_mangle]
extern "C" fn enif_make_int(_env: *mut c_void, number: c_int) -> usize {
    number as usize
}

// No term here is a tuple, nor a tag.

#[no_mangle]
extern "C" fn enif_is_identical(one: usize, other: usize) -> c_int {
    (one == other).into()
}

#[no_mangle]
extern "C" fn enif_is_ref(_env: *mut c_void, _term: usize) -> c_int {
    0
}

#[no_mangle]
extern "C" fn enif_get_tuple(
    _env: *mut c_void,
    _term: usize,
    _arity: *mut c_int,
    _elements: *mut *const usize,
) -> c_int {
    0
}

fn message(byte: u8) -> OwnedTerm {
    OwnedTerm::new(OwnedBin::from(&[byte][..]))
}

fn byte(message: OwnedTerm) -> u8 {
    message.decode::<Bin>().unwrap()[0]
}

/// A mailbox: what is in it comes when it is due, in ms from now on.
fn mailbox(messages: &[(u64, u8)]) -> Box<Fake> {
    let begin = Instant::now();
    let mut left: VecDeque<_> = messages.to_vec().into();
    let (mut came, timeout) = (vec![], message(0));
    let mut fake = Fake::new();
    fake.ask = Some(Box::new(move |timeout_ms| {
        let until = match timeout_ms {
            ..0 => Instant::now() + LONG,
            ms => Instant::now() + Duration::from_millis(ms as u64),
        };
        let due = left.front().map(|(ms, _)| begin + Duration::from_millis(*ms));
        let end = due.map_or(until, |due| due.min(until));
        thread::sleep(end.saturating_duration_since(Instant::now()));
        if due.is_none_or(|due| due > end) {
            return (false, timeout.raw());
        }
        came.push(message(left.pop_front().unwrap().1));
        (true, came.last().unwrap().raw())
    }));
    fake
}

#[test]
fn a_time_ends_the_wait_for_a_message() {
    let mut fake = mailbox(&[(2000, 1)]);
    fake.run(async {
        let first = select! {
            () = sleep(SHORT).fuse() => 0,
            message = receive().fuse() => byte(message),
        };
        assert_eq!((first, byte(receive().await)), (0, 1));
    });
    // It looked once for each, and nowhere else.
    assert!(fake.waits == 0 && fake.asked.len() <= 3, "{} {:?}", fake.waits, fake.asked);
}

#[test]
fn a_receive_keeps_no_descriptor_and_no_thread_waiting() {
    let (reader, mut writer) = UnixStream::pair().unwrap();
    let (sender, answer) = oneshot::channel();
    let writing = thread::spawn(move || {
        thread::sleep(SHORT);
        writer.write_all(b"x").unwrap();
        thread::sleep(SHORT);
        sender.send(2).unwrap();
    });
    let mut fake = mailbox(&[(3000, 3)]);
    let seen = fake.run(async move {
        let seen = Mutex::new(vec![]);
        let see = |what| seen.lock().unwrap().push(what);
        let messages = async { see(byte(receive().await)) };
        let others = async {
            readable(&reader).await.unwrap();
            see(1);
            see(answer.await.unwrap());
        };
        join!(messages, others);
        seen.into_inner().unwrap()
    });
    writing.join().unwrap();
    assert_eq!(seen, [1, 2, 3]);
}

#[test]
fn a_message_comes_beside_ticks_without_an_end() {
    let mut fake = mailbox(&[(20, 1)]);
    let came = fake.run(async {
        let t = Ticker::new();
        select! {
            message = receive().fuse() => byte(message),
            () = async { loop { t.tick(10).await } }.fuse() => 0,
        }
    });
    assert_eq!(came, 1);
}

#[test]
fn a_message_for_a_future_that_is_gone_is_the_next_ones() {
    let mut fake = mailbox(&[(0, 1), (0, 2)]);
    let seen = fake.run(async {
        let mut gone = Box::pin(receive());
        let mut polled = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut polled, true) {
                return Poll::Ready(());
            }
            assert!(gone.as_mut().poll(cx).is_pending());
            Poll::Pending
        })
        .await;
        drop(gone);
        [byte(receive().await), byte(receive().await)]
    });
    assert_eq!(seen, [1, 2]);
}

#[test]
fn what_is_sent_from_any_thread_goes_when_the_call_pauses_or_ends() {
    let mut fake = mailbox(&[(0, 1)]);
    fake.task.env = vm::alloc_env();
    let outbox = Outbox::new();
    fake.outbox = Some(outbox.clone());
    let send = move |byte| outbox.post(message(1), message(byte), false);
    let after = send.clone();
    fake.run(async move {
        send(2);
        receive().await;
        let there = send.clone();
        thread::spawn(move || there(3)).join().unwrap();
        send(4);
    });
    after(5);
    unsafe { vm::free_env(fake.task.env) };
    assert_eq!(fake.posted, 3);
}
