//! Waits while another part of the same call is at work.

use std::sync::atomic::AtomicBool;

use super::*;

/// Ticks until it is asked to stop.
async fn busy(stop: Arc<AtomicBool>) {
    let t = Ticker::new();
    while !stop.load(Ordering::SeqCst) {
        t.tick(1000).await;
    }
}

/// As `busy`, by waking itself.
async fn restless(stop: Arc<AtomicBool>) {
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if stop.load(Ordering::SeqCst) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await
}

/// Runs it beside what runs until it has ended.
fn beside<F: Future + Send + 'static>(make: impl Fn() -> F) {
    for awake in [false, true] {
        let stop: Arc<AtomicBool> = Arc::default();
        let (stops, future) = (stop.clone(), make());
        let ends = async move {
            future.await;
            stops.store(true, Ordering::SeqCst);
        };
        let at_work = if awake { restless(stop).boxed() } else { busy(stop).boxed() };
        let all: FuturesUnordered<_> = [ends.boxed(), at_work].into_iter().collect();
        run(all.collect::<()>());
    }
}

#[test]
fn a_time_comes_while_others_tick() {
    beside(|| sleep(SHORT));
}

#[test]
fn a_descriptor_is_ready_while_others_tick() {
    beside(|| async {
        let (reader, mut writer) = UnixStream::pair().unwrap();
        let writing = thread::spawn(move || {
            thread::sleep(SHORT);
            writer.write_all(b"x").unwrap();
            writer
        });
        readable(&reader).await.unwrap();
        writing.join().unwrap();
    });
}

#[test]
fn a_closure_runs_while_others_tick() {
    beside(|| offload(|| ()));
}

#[test]
fn a_time_comes_while_closures_run() {
    let stop: Arc<AtomicBool> = Arc::default();
    let stops = stop.clone();
    let ends = async move {
        sleep(SHORT).await;
        stops.store(true, Ordering::SeqCst);
    };
    let at_work = async move {
        while !stop.load(Ordering::SeqCst) {
            offload(|| ()).await;
        }
    };
    let all: FuturesUnordered<_> = [ends.boxed(), at_work.boxed()].into_iter().collect();
    run(all.collect::<()>());
}

#[test]
fn what_is_given_up_while_others_tick_is_released() {
    let (reader, _writer) = UnixStream::pair().unwrap();
    run(async move {
        let t = Ticker::new();
        for _ in 0..100_000 {
            select! {
                ready = readable(&reader).fuse() => ready.unwrap(),
                () = t.tick(1).fuse() => {}
            }
        }
    });
}
