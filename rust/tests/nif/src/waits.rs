//! Calls that wait: for times, descriptors, closures, other threads.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use fairnif::{offload, readable, sleep, writable, Error, Place};
use futures::channel::oneshot;
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{select, FutureExt};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[fairnif::nif(may_wait)]
async fn sleeps(time: u64) -> u64 {
    sleep(ms(time)).await;
    time
}

#[fairnif::nif]
async fn sleeps_unawaited(time: u64) -> u64 {
    let _guard = crate::ends::Guard::new();
    sleep(ms(time)).await;
    time
}

#[fairnif::nif(mode = "threaded")]
async fn sleeps_threaded(time: u64) -> u64 {
    sleep(ms(time)).await;
    time
}

/// `bytes` through a socket, both ends of which are this call's.
#[fairnif::nif(may_wait)]
async fn pumps(bytes: usize) -> Result<usize, Error> {
    let (mut reader, mut writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    writer.set_nonblocking(true)?;
    let write = async move {
        let mut left = bytes;
        while left > 0 {
            match writer.write(&vec![1; left.min(100_000)]) {
                Ok(written) => left -= written,
                Err(e) if e.kind() == ErrorKind::WouldBlock => writable(&writer).await?,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    };
    let read = async move {
        let (mut sum, mut buffer) = (0, vec![0; 10_000]);
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(sum),
                Ok(read) => sum += buffer[..read].iter().map(|b| usize::from(*b)).sum::<usize>(),
                Err(e) if e.kind() == ErrorKind::WouldBlock => readable(&reader).await?,
                Err(e) => return Err(e),
            }
        }
    };
    let (written, read) = futures::join!(write, read);
    written?;
    Ok(read?)
}

/// Which of two is there first.
#[fairnif::nif(may_wait)]
async fn first(sleep_ms: u64, write_ms: u64) -> Result<String, Error> {
    let (reader, mut writer) = UnixStream::pair()?;
    let writing = thread::spawn(move || {
        thread::sleep(ms(write_ms));
        writer.write_all(b"x")
    });
    let first = select! {
        () = sleep(ms(sleep_ms)).fuse() => "sleep",
        ready = readable(&reader).fuse() => { ready?; "read" }
    };
    offload(move || writing.join()).await.map_err(|_| Error::RaiseAtom("panicked"))??;
    Ok(first.into())
}

/// What another thread sends, `times` times.
#[fairnif::nif(may_wait)]
async fn hears(times: u64) -> u64 {
    let (ask, asked) = std::sync::mpsc::channel::<oneshot::Sender<u64>>();
    let answering = thread::spawn(move || {
        asked.iter().zip(1..).for_each(|(answer, n)| answer.send(n).unwrap());
    });
    let mut sum = 0;
    for _ in 0..times {
        let (sender, receiver) = oneshot::channel();
        ask.send(sender).unwrap();
        sum += receiver.await.unwrap();
    }
    drop(ask);
    offload(|| answering.join().unwrap()).await;
    sum
}

/// That many sleeps at once; what they sum up to.
#[fairnif::nif(may_wait)]
async fn sleeps_many(times: u64) -> u64 {
    let sleeping = (1..=times).map(|n| sleep(ms(n % 20)).map(move |()| n));
    sleeping.collect::<FuturesUnordered<_>>().fold(0, |sum, n| async move { sum + n }).await
}

/// What kind of thread a closure runs on, as `enif_thread_type` has it.
#[fairnif::nif(may_wait)]
async fn runs_on(place: String) -> Result<i64, Error> {
    let place = match place.as_str() {
        "auto" => Place::Auto,
        "normal" => Place::Normal,
        "dirty_cpu" => Place::DirtyCpu,
        "dirty_io" => Place::DirtyIo,
        "threaded" => Place::Threaded,
        _ => return Err(Error::BadArg),
    };
    // Safety: it asks what this thread is.
    Ok(offload(|| i64::from(unsafe { rustler::sys::enif_thread_type() })).on(place, 1).await)
}

#[fairnif::nif(may_wait)]
async fn offloads_a_panic() {
    offload(|| panic!("as the test wants it")).await
}

/// A kilobyte of stack for each level: `stacker` asks how much the thread has left.
fn depth(levels: u64) -> u64 {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let frame = std::hint::black_box([levels as u8; 1024]);
        if levels == 0 { 0 } else { 1 + depth(levels - 1) + u64::from(frame[7] ^ levels as u8) }
    })
}

/// digs(Levels): on a whole thread, whose bounds are true.
#[fairnif::nif(may_wait)]
async fn digs(levels: u64) -> u64 {
    offload(move || depth(levels)).await
}

#[fairnif::nif(mode = "threaded")]
async fn digs_threaded(levels: u64) -> u64 {
    offload(move || depth(levels)).await
}
