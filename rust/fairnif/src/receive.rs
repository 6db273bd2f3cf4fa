//! Messages of the caller, received. `call/asks.rs` gets them; a `Caller` sends.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustler::Encoder;

use crate::call::asks::{Answer, What};
use crate::call::{with_current, Call};
use crate::wait::Waiting;
use crate::OwnedTerm;

/// Waits for the next message in the caller's mailbox. The caller is a native process, or any process
/// that awaits this call. The function must be `may_wait` (or have mode `"threaded"`). See
/// [`Caller`](crate::Caller) for a server's loop.
///
/// It can be joined and selected with other futures. With [`sleep`](crate::sleep) that costs nothing.
/// A call that also waits for a descriptor, for another thread or for messages with several tags
/// checks them in turn, every 10 ms. If that is too slow, have the other event arrive as a message.
/// If a future is dropped before it returned its message, the next future gets that message.
pub fn receive() -> Receive {
    Receive { tag: None, waiting: Waiting::new() }
}

/// What [`receive`] returns.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Receive {
    tag: Option<OwnedTerm>,
    waiting: Waiting<What, Answer>,
}

impl Receive {
    /// Waits for the first message with this tag: the message is the tag itself, or a tuple whose
    /// first element is the tag. If the tag is a reference, it may be the second element instead, as
    /// in `{'DOWN', Ref, ...}`. Other messages stay in the mailbox.
    pub fn tagged(mut self, tag: impl Encoder) -> Receive {
        self.tag = Some(OwnedTerm::new(tag));
        self
    }

    /// Waits up to `time` from now, then returns `None`. Zero only checks whether a message is there.
    pub fn within(self, time: Duration) -> ReceiveWithin {
        ReceiveWithin { receive: self, until: Instant::now().checked_add(time) }
    }

    fn poll_until(&mut self, until: Option<Instant>, context: &Context) -> Poll<Option<OwnedTerm>> {
        let tag = &self.tag;
        let make = || Ok(What::Message { tag: tag.clone(), until });
        let add = |call: &Call, ask| call.asks.add(ask);
        self.waiting.poll("receive", context, make, add).map(|answer| match answer {
            Answer::Came(message) => Some(message),
            _ => None,
        })
    }
}

impl Future for Receive {
    type Output = OwnedTerm;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<OwnedTerm> {
        match self.poll_until(None, context) {
            Poll::Ready(Some(message)) => Poll::Ready(message),
            _ => Poll::Pending,
        }
    }
}

/// A message that came for it is the next one's.
impl Drop for Receive {
    fn drop(&mut self) {
        let Some((Answer::Came(message), id)) = self.waiting.leave() else {
            return;
        };
        with_current(|call| {
            if call.id() == id {
                call.asks.give_back(message);
            }
        });
    }
}

/// What [`Receive::within`] returns.
#[must_use = "a future does nothing unless it is awaited"]
pub struct ReceiveWithin {
    receive: Receive,
    /// `None`: for longer than an `Instant` can hold.
    until: Option<Instant>,
}

impl Future for ReceiveWithin {
    type Output = Option<OwnedTerm>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<OwnedTerm>> {
        let until = self.until;
        self.receive.poll_until(until, context)
    }
}
