//! Waits that the system refuses.

use super::*;

#[test]
fn without_descriptors_it_is_looked_after_now_and_then() {
    let mut fake = Fake::new();
    fake.no_descriptor = true;
    let (sender, receiver) = oneshot::channel();
    let begin = Instant::now();
    let sending = thread::spawn(move || {
        thread::sleep(SHORT * 2);
        sender.send(7).unwrap();
    });
    assert_eq!(fake.run(receiver), Ok(7));
    let most = begin.elapsed().as_millis() as usize / 2;
    assert!(fake.waits < most, "{} waits of {most}", fake.waits);
    sending.join().unwrap();
}

#[test]
fn without_memory_it_ticks() {
    let mut fake = Fake::new();
    fake.no_memory = 1000;
    fake.run(sleep(SHORT));
    assert!(fake.ticks > 0);
}

/// An epoll descriptor in another one, so deep that a further one is refused.
#[cfg(target_os = "linux")]
#[test]
fn a_descriptor_that_cannot_be_watched_is_an_error_at_once() {
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    let new = || unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) };
    let mut chain = vec![new()];
    loop {
        let next = new();
        let inner = chain.last().unwrap().as_raw_fd();
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        if unsafe { libc::epoll_ctl(next.as_raw_fd(), libc::EPOLL_CTL_ADD, inner, &mut event) } != 0
        {
            break;
        }
        chain.push(next);
    }
    let (reader, _writer) = UnixStream::pair().unwrap();
    run(async move {
        let deepest = chain.last().unwrap();
        select! {
            ready = readable(deepest).fuse() => assert!(ready.is_err()),
            _ = readable(&reader).fuse() => panic!("nothing is written"),
        }
    });
}
