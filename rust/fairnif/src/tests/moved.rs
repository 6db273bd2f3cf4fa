//! Futures that go from one call to another.

use super::*;

/// Polls it once in a call of its own, which ends then.
fn begun<F: Future + Unpin + Send + 'static>(future: F) -> F {
    let (give, given) = mpsc::channel();
    let mut future = Some(future);
    run(poll_fn(move |cx| {
        let mut future = future.take().unwrap();
        assert!(Pin::new(&mut future).poll(cx).is_pending());
        give.send(future).unwrap();
        Poll::Ready(())
    }));
    given.recv().unwrap()
}

/// A call that has begun it continues for a while after it gave it away, and ends before the call
/// that got it waits.
fn taken_over<F: Future + Unpin + Send + 'static>(make: F, cancelled: bool) -> F::Output {
    let (give, given) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let first = thread::spawn(move || {
        let mut fake = Fake::new();
        fake.cancel_at_wait = usize::from(cancelled);
        let mut future = make;
        fake.drive(async move {
            assert!(poll_fn(|cx| Poll::Ready(Pin::new(&mut future).poll(cx))).await.is_pending());
            give.send(future).ok().unwrap();
            thread::sleep(SHORT);
            sleep(SHORT * 2).await;
        });
        end.send(()).unwrap();
    });
    let mut future = given.recv().unwrap();
    let result = run(poll_fn(move |cx| {
        let poll = Pin::new(&mut future).poll(cx);
        let _ = ended.recv();
        poll
    }));
    first.join().unwrap();
    result
}

#[test]
fn a_sleep_that_another_call_took_over_is_not_ended_by_the_first() {
    taken_over(sleep(SHORT), false);
}

#[test]
fn a_descriptor_is_not_either_nor_has_it_the_error_of_a_cancelled_call() {
    for cancelled in [false, true] {
        let (reader, mut writer) = UnixStream::pair().unwrap();
        let reader: &'static UnixStream = Box::leak(Box::new(reader));
        let writing = thread::spawn(move || {
            thread::sleep(SHORT);
            writer.write_all(b"x").unwrap();
            writer
        });
        taken_over(readable(reader), cancelled).unwrap();
        writing.join().unwrap();
    }
}

#[test]
fn what_a_set_of_futures_waits_for_continues_in_another_call() {
    let all: FuturesUnordered<_> =
        [sleep(SHORT).boxed(), offload(|| ()).boxed()].into_iter().collect();
    run(begun(all.into_future()).map(|(first, rest)| {
        assert!(first.is_some() && rest.len() == 1);
    }));
    let all: FuturesUnordered<_> = [sleep(SHORT)].into_iter().collect();
    run(begun(all.into_future()).map(|(first, _)| assert!(first.is_some())));
}

#[test]
fn a_future_may_go_to_and_fro_between_calls() {
    let (reader, writer) = UnixStream::pair().unwrap();
    let reader: &'static UnixStream = Box::leak(Box::new(reader));
    run(async move {
        let mut ready = readable(reader);
        for _ in 0..3 {
            assert!(poll_fn(|cx| Poll::Ready(Pin::new(&mut ready).poll(cx))).await.is_pending());
            ready = thread::spawn(|| begun(ready)).join().unwrap();
        }
        let writing = thread::spawn(move || {
            thread::sleep(SHORT);
            (&writer).write_all(b"x").unwrap();
            writer
        });
        let (ready, ()) = join!(&mut ready, sleep(SHORT));
        ready.unwrap();
        writing.join().unwrap();
    });
}
