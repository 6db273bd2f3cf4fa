//! What safe code may do: keep a `Ticker`, a `Bin`, a waker or a future, forget it, send it to
//! another thread, use it from another call or after all calls.

use std::future::{poll_fn, Future};
use std::mem::forget;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use fairnif::{offload, sleep, Bin, Ticker};
use futures::FutureExt;

type Kept = Pin<Box<dyn Future<Output = u64> + Send>>;

static TICKER: Ticker = Ticker::new();
static BINS: Mutex<Vec<Bin>> = Mutex::new(vec![]);
static WAKERS: Mutex<Vec<Waker>> = Mutex::new(vec![]);
static FUTURES: Mutex<Vec<Kept>> = Mutex::new(vec![]);

/// Ticks by a `Ticker` of all calls, here and on another thread.
#[fairnif::nif]
async fn ticks_by_a_static(ticks: u64) -> u64 {
    let there = thread::spawn(move || {
        (0..ticks).filter(|_| TICKER.tick(10).now_or_never().is_some()).count() as u64
    });
    let mut mine = 0;
    for _ in 0..ticks {
        TICKER.tick(10).await;
        mine += 1;
    }
    mine + there.join().unwrap()
}

#[fairnif::nif]
async fn forgets(t: Ticker, data: Bin) -> usize {
    t.tick(100).await;
    let mut tick = Box::pin(t.tick(usize::MAX));
    let _ = poll_fn(|cx| Poll::Ready(tick.as_mut().poll(cx))).await;
    forget(tick);
    let mut nap = Box::pin(sleep(Duration::from_secs(1)));
    let _ = poll_fn(|cx| Poll::Ready(nap.as_mut().poll(cx))).await;
    forget(nap);
    let mut never = Box::pin(offload(|| 1));
    let _ = poll_fn(|cx| Poll::Ready(never.as_mut().poll(cx))).await;
    drop(never);
    let size = data.len();
    forget((t, data.clone()));
    size
}

#[fairnif::nif]
async fn keeps(data: Bin) -> usize {
    poll_fn(|cx| {
        WAKERS.lock().unwrap().push(cx.waker().clone());
        Poll::Ready(())
    })
    .await;
    let mut bins = BINS.lock().unwrap();
    bins.push(data);
    bins.len()
}

/// What was kept, read on another thread and dropped there. Wakes what there is to wake.
#[rustler::nif]
fn kept() -> u64 {
    let bins = std::mem::take(&mut *BINS.lock().unwrap());
    WAKERS.lock().unwrap().drain(..).for_each(Waker::wake);
    thread::spawn(move || bins.iter().flat_map(|bin| bin.iter()).map(|b| u64::from(*b)).sum())
        .join()
        .unwrap()
}

/// Begins to wait, and leaves the rest to another call.
#[fairnif::nif(may_wait)]
async fn begins() -> bool {
    let mut future: Kept = Box::pin(async {
        let t = Ticker::new();
        t.tick(1).await;
        sleep(Duration::from_millis(20)).await;
        t.tick(1_000_000).await;
        offload(|| 7).await
    });
    let pending = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await;
    FUTURES.lock().unwrap().push(future);
    pending
}

#[fairnif::nif(may_wait)]
async fn resumes() -> u64 {
    let future = FUTURES.lock().unwrap().pop();
    match future {
        Some(future) => future.await,
        None => 0,
    }
}

/// It is too late for that.
#[rustler::nif]
fn loads_again(env: rustler::Env, info: rustler::Term) -> bool {
    // Safety: this is no load, so it answers false.
    unsafe { fairnif::__load(env, info, "fairnif_test_rust") }
}
