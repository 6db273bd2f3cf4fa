//! What `waker.rs` is made of. The model of it (`../../../tests/loom`) has the same names by loom.

pub(crate) use std::sync::atomic::{fence, AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};

pub(crate) use polling::Poller;

use super::waker::Shared;

pub(crate) fn waker(shared: Arc<Shared>) -> Waker {
    shared.into()
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        Shared::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Shared::wake(self);
    }
}
