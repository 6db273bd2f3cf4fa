//! What panics when it is dropped, where the crate drops it.

use std::task::{Context, Wake};

use super::*;

type Later = Pin<Box<crate::Offload<Bad>>>;

/// Panics when it is dropped.
struct Bad;

impl Wake for Bad {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Bad {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("quietly"));
    }
}

#[test]
fn a_waker_that_panics_when_it_is_dropped_is_an_error_of_the_call() {
    let end = Fake::new().drive(async {
        let mut nap = Box::pin(sleep(LONG));
        let waker = Waker::from(Arc::new(Bad));
        assert!(nap.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        drop(nap);
        sleep(SHORT).await;
    });
    assert!(matches!(end, End::Panicked(_)));
}

#[test]
fn so_is_a_result_that_no_future_wants_any_more() {
    let kept: Arc<Mutex<Option<Later>>> = Arc::default();
    let (keep, from) = (kept.clone(), kept.clone());
    let end = Fake::new().drive(async move {
        let mut bad = Box::pin(offload(move || {
            from.lock().unwrap().take();
            Bad
        }));
        assert!(poll_fn(|cx| Poll::Ready(bad.as_mut().poll(cx))).await.is_pending());
        *keep.lock().unwrap() = Some(bad);
        sleep(SHORT).await;
    });
    assert!(matches!(end, End::Ready(())));
}

#[test]
fn a_value_that_panics_with_its_future_is_one_panic() {
    struct Both(Option<Bad>, #[allow(dead_code)] Bad);
    impl Future for Both {
        type Output = Bad;
        fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Bad> {
            Poll::Ready(self.0.take().unwrap())
        }
    }
    assert!(matches!(Fake::new().drive(Both(Some(Bad), Bad)), End::Panicked(_)));
}

#[test]
fn the_payload_of_a_destructors_panic_may_panic_too() {
    struct Worse;
    impl Drop for Worse {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new(Bad));
        }
    }
    let mut fake = Fake::new();
    fake.cancel_at_wait = 1;
    let end = fake.drive(async {
        let _worse = Worse;
        pending::<()>().await;
    });
    assert!(matches!(end, End::Cancelled));
}
