//! Calls on a runtime that stands in for the real one: what safe code may do to them.
//!
//! It counts, waits by `poll`, runs `call` on a thread, and cancels when a test wants that. What it
//! cannot is to continue on another thread; fairnif_rust_tests (apps/fairnif/test) does that.

mod bad_drops;
#[cfg(target_os = "linux")]
mod bins;
mod fake;
#[cfg(target_os = "linux")]
mod messages;
mod moved;
mod refused;
#[cfg(target_os = "linux")]
mod resources;
mod starved;

use std::ffi::{c_int, c_uint, c_void};
use std::future::{pending, poll_fn, Future};
use std::io::Write;
use std::mem::{forget, transmute};
use std::os::unix::net::UnixStream;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::Pin;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{join, select, FutureExt};

use crate::abi::{Ops, Task};
use crate::call::{drive, End};
use fake::{run, Drops, Fake};

use crate::{fair_here, offload, readable, sleep, Place, Ticker};

const GRANTED: u64 = 100;
const LONG: Duration = Duration::from_secs(3600);
/// Longer than a busy machine keeps a thread waiting.
const SHORT: Duration = Duration::from_millis(200);

// -- ticks ----------------------------------------------------------------------------------------

#[test]
fn every_unit_is_counted_once_and_each_tick_is_one_more() {
    for units in [0, 1, 7, 99, 100, 1000] {
        let mut fake = Fake::new();
        fake.run(async move {
            let t = Ticker::new();
            for _ in 0..50 {
                t.tick(units).await;
            }
        });
        assert_eq!(fake.units, 50 * (units as u64 + 1), "ticks of {units}");
    }
}

#[test]
fn tickers_of_a_call_count_all_their_units_but_for_the_last_loans() {
    let mut fake = Fake::new();
    fake.run(async {
        let (t, u) = (Ticker::new(), Ticker::new());
        let v = t.clone();
        for _ in 0..1000 {
            join!(t.tick(1), u.tick(2));
            v.tick(3).await;
        }
    });
    let all = 1000 * (2 + 3 + 4);
    assert!((all - 2 * GRANTED..=all).contains(&fake.units), "{}", fake.units);
}

#[test]
fn a_ticker_on_another_thread_counts_for_no_call() {
    let mut fake = Fake::new();
    fake.run(async {
        let t = Arc::new(Ticker::new());
        t.tick(1).await;
        let there = t.clone();
        thread::spawn(move || {
            for _ in 0..10 * GRANTED {
                assert_eq!(there.tick(1).now_or_never(), Some(()));
                unsafe { there.tick_here(1) };
            }
        })
        .join()
        .unwrap();
    });
    // What it was lent is all that it may have spent.
    assert!(fake.ticks == 0 && fake.units <= GRANTED);
}

#[test]
fn a_ticker_of_another_call_counts_for_the_one_that_is_polled() {
    let t: &'static Ticker = Box::leak(Box::new(Ticker::new()));
    let (mut one, mut two) = (Fake::new(), Fake::new());
    one.run(async { t.tick(1).await });
    assert_eq!(one.ticks, 0);
    two.run(async {
        for _ in 0..10 * GRANTED {
            t.tick(0).await;
        }
    });
    assert!(two.ticks >= 8);
    // After the calls: no harm.
    assert_eq!(t.tick(1000).now_or_never(), Some(()));
}

#[test]
fn a_ticker_of_two_calls_at_once_counts_no_more_than_was_done() {
    static SHARED: Ticker = Ticker::new();

    let largest = |granted| {
        let mut fake = Fake::new();
        (fake.granted, fake.task.budget) = (granted, granted);
        fake.run(async {
            for _ in 0..200_000 {
                SHARED.tick(1).await;
            }
        });
        fake.most
    };
    let calls = [7, 100, 100_000].map(|granted| thread::spawn(move || largest(granted)));
    for call in calls {
        assert!(call.join().unwrap() < 1_000_000);
    }
}

#[test]
fn a_ticker_may_be_forgotten() {
    let mut fake = Fake::new();
    fake.run(async {
        let t = Ticker::new();
        t.tick(1).await;
        forget(t);
        let t = Box::leak(Box::new(Ticker::new()));
        let mut tick = Box::pin(t.tick(GRANTED as usize));
        assert!(poll_fn(|cx| Poll::Ready(tick.as_mut().poll(cx))).await.is_pending());
        forget(tick);
    });
}

#[test]
fn a_tick_inside_a_poll_pauses_at_once() {
    let mut fake = Fake::new();
    fake.run(async {
        let t = Ticker::new();
        let mut numbers: Vec<u32> = (0..100).rev().collect();
        numbers.sort_by(|a, b| {
            unsafe { t.tick_here(9) };
            a.cmp(b)
        });
        assert!(numbers.is_sorted());
        assert_eq!(unsafe { fair_here(numbers) }.sum::<u32>(), 4950);
    });
    assert!(fake.ticks > 5);
}

// -- cancellation and panics ----------------------------------------------------------------------

#[test]
fn what_waits_is_dropped_when_it_is_cancelled() {
    let (reader, _writer) = UnixStream::pair().unwrap();
    let cases: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = vec![
        Box::pin(sleep(LONG)),
        Box::pin(pending()),
        Box::pin(async move { readable(&reader).await.unwrap() }),
        Box::pin(async { _ = join!(sleep(LONG), pending::<()>()) }),
        Box::pin(poll_fn(|cx| {
            // The waker is kept.
            forget(cx.waker().clone());
            Poll::Pending
        })),
    ];
    for case in cases {
        let mut fake = Fake::new();
        fake.cancel_at_wait = 1;
        let drops = Drops::default();
        let guard = drops.guard();
        let end = fake.drive(async move {
            let _guard = guard;
            case.await;
        });
        assert!(matches!(end, End::Cancelled));
        assert_eq!((drops.count(), fake.waits), (1, 1));
    }
}

#[test]
fn a_cancelled_tick_here_unwinds_and_one_that_was_swallowed_is_raised_again() {
    let mut fake = Fake::new();
    fake.cancel_at_tick = 1;
    let (drops, swallowed) = (Drops::default(), Drops::default());
    let (guard, counted) = (drops.guard(), swallowed.clone());
    let end = fake.drive(async move {
        let t = Ticker::new();
        let _guard = guard;
        for _ in 0..3 {
            let tick = || unsafe { t.tick_here(1000) };
            if catch_unwind(AssertUnwindSafe(tick)).is_err() {
                drop(counted.guard());
            }
        }
        unsafe { t.tick_here(1000) };
        unreachable!()
    });
    assert!(matches!(end, End::Cancelled::<()>));
    assert_eq!((drops.count(), swallowed.count(), fake.ticks), (1, 3, 1));
}

#[test]
fn nothing_pauses_in_a_destructor_that_a_panic_or_the_end_runs() {
    struct Ticks;
    impl Drop for Ticks {
        fn drop(&mut self) {
            unsafe { Ticker::new().tick_here(1000) };
        }
    }
    let mut fake = Fake::new();
    let end = fake.drive(async {
        let _ticks = (Ticks, Ticks);
        std::panic::resume_unwind(Box::new("quietly"));
    });
    assert!(matches!(end, End::Panicked::<()>(_)));
    assert_eq!(fake.ticks, 0);
    fake.cancel_at_wait = 1;
    let end = fake.drive(async {
        let _ticks = (Ticks, Ticks);
        pending::<()>().await;
    });
    assert!(matches!(end, End::Cancelled));
    assert_eq!(fake.ticks, 0);
}

// -- waiting --------------------------------------------------------------------------------------

#[test]
fn several_descriptors_are_waited_for_at_once_with_wakers_of_their_own() {
    let pairs: Vec<_> = (0..10).map(|_| UnixStream::pair().unwrap()).collect();
    let (readers, writers): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let writing = thread::spawn(move || {
        for mut writer in writers.iter().rev() {
            thread::sleep(Duration::from_millis(2));
            writer.write_all(b"x").unwrap();
        }
        writers
    });
    let read = run(async move {
        let mut all = FuturesUnordered::new();
        for reader in readers {
            all.push(async move { readable(&reader).await.is_ok() }.boxed());
        }
        all.push(sleep(SHORT).map(|()| true).boxed());
        let mut read = 0;
        while let Some(ok) = all.next().await {
            read += usize::from(ok);
        }
        read
    });
    assert_eq!(read, 11);
    writing.join().unwrap();
}

#[test]
fn a_descriptor_may_be_closed_behind_a_future_that_was_forgotten() {
    let (reader, writer) = UnixStream::pair().unwrap();
    run(async move {
        let reader: &'static UnixStream = Box::leak(Box::new(reader));
        let mut ready = Box::pin(readable(reader));
        assert!(poll_fn(|cx| Poll::Ready(ready.as_mut().poll(cx))).await.is_pending());
        forget(ready);
        drop(writer);
        join!(sleep(SHORT), sleep(SHORT));
    });
}

#[test]
fn a_waker_may_be_kept_cloned_on_another_thread_and_used_after_the_call() {
    let kept: Arc<Mutex<Vec<Waker>>> = Arc::default();
    let keep = kept.clone();
    run(poll_fn(move |cx| {
        let waker = cx.waker();
        let there = thread::scope(|s| s.spawn(|| waker.clone()).join().unwrap());
        there.wake_by_ref();
        waker.wake_by_ref();
        let mut kept = keep.lock().unwrap();
        kept.extend([there, waker.clone()]);
        if kept.len() > 4 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    kept.lock().unwrap().drain(..).for_each(Waker::wake);
}

#[test]
fn a_future_that_wakes_itself_ticks() {
    let mut fake = Fake::new();
    let mut polls = 0;
    fake.run(poll_fn(move |cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        if polls > 1000 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    assert_eq!((fake.units, fake.waits), (2000, 0));
}

#[test]
fn waiting_outside_of_a_call_panics() {
    let (reader, _writer) = UnixStream::pair().unwrap();
    let outside = |f: &mut dyn FnMut()| assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
    outside(&mut || _ = sleep(LONG).now_or_never());
    outside(&mut || _ = readable(&reader).now_or_never());
    outside(&mut || _ = offload(|| ()).now_or_never());
}

// -- closures that run elsewhere ------------------------------------------------------------------

#[test]
fn closures_run_where_they_are_sent_to() {
    let here = thread::current().id();
    let mut fake = Fake::new();
    let there = fake.run(async {
        let one = offload(|| thread::current().id());
        let two = offload(|| thread::current().id()).on(Place::DirtyCpu, 5);
        join!(one, two)
    });
    assert!(there.0 != here && there.1 != here);
    assert_eq!(fake.calls, [crate::abi::mode::THREADED, crate::abi::mode::DIRTY_CPU]);
}

#[test]
fn a_closure_that_did_not_begin_is_dropped_and_not_run() {
    let drops = Drops::default();
    let guard = drops.guard();
    let mut fake = Fake::new();
    fake.run(async move {
        let mut never = Box::pin(offload(move || drop(guard)));
        assert!(poll_fn(|cx| Poll::Ready(never.as_mut().poll(cx))).await.is_pending());
        drop(never);
        sleep(SHORT).await;
    });
    assert_eq!((drops.count(), fake.calls.len()), (1, 0));
}
