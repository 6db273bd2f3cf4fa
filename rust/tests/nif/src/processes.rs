//! Native processes, and what else the caller does for a call.

use std::future::poll_fn;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use fairnif::{
    apply, link, monitor, readable, receive, sleep, Bin, Caller, Class, Error, OwnedTerm, Ticker,
};
use futures::channel::oneshot;
use futures::stream::{FuturesUnordered, StreamExt};
use futures::{join, select, FutureExt};
use rustler::{Atom, LocalPid};

use crate::ends::Guard;

rustler::atoms! { all, ok, stop, normal, add, go, done, nobody, mine }

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A server of a list of binaries.
#[fairnif::nif(may_wait)]
async fn keeper(t: Ticker, caller: Caller, kept: Vec<Bin>) -> Result<Atom, Error> {
    keep(t, caller, kept).await
}

#[fairnif::nif(mode = "threaded")]
async fn keeper_threaded(t: Ticker, caller: Caller, kept: Vec<Bin>) -> Result<Atom, Error> {
    keep(t, caller, kept).await
}

async fn keep(t: Ticker, caller: Caller, mut kept: Vec<Bin>) -> Result<Atom, Error> {
    let _guard = Guard::new();
    loop {
        let message = receive().await;
        if let Some(request) = message.as_cast() {
            if let Ok((tag, bin)) = request.decode::<(Atom, Bin)>() {
                if tag == add() {
                    kept.push(bin);
                }
            }
            continue;
        }
        let Some((from, request)) = message.as_call() else {
            continue;
        };
        match request.decode::<Atom>() {
            Ok(atom) if atom == all() => caller.reply(from, &kept),
            Ok(atom) if atom == stop() => {
                caller.reply(from, (ok(), kept.len()));
                return Ok(normal());
            }
            _ => {
                t.tick(1_000_000).await;
                // What it is not ends the process.
                caller.reply(from, request.decode::<Bin>()?);
            }
        }
    }
}

fn text(message: Option<OwnedTerm>) -> String {
    match message.map(|message| message.decode::<(Atom, String)>()) {
        Some(Ok((_, text))) => text,
        Some(Err(_)) => "another".into(),
        None => "none".into(),
    }
}

/// Of a tag, then the rest of the mailbox, with times.
#[fairnif::nif(may_wait)]
async fn receives(tag: OwnedTerm, first: Atom) -> Vec<String> {
    vec![
        text(receive().tagged(tag).within(ms(0)).await),
        text(Some(receive().tagged(first).await)),
        text(receive().tagged(first).within(ms(5)).await),
        text(Some(receive().await)),
        text(receive().within(ms(5)).await),
        text(receive().within(Duration::ZERO).await),
    ]
}

#[fairnif::nif]
async fn receives_unawaited() -> OwnedTerm {
    let _guard = Guard::new();
    receive().await
}

#[fairnif::nif]
async fn sends_unawaited(caller: Caller) {
    let _guard = Guard::new();
    caller.send(ok(), 1);
}

#[fairnif::nif(may_wait)]
async fn sends(t: Ticker, caller: Caller, to: OwnedTerm, text: String) -> bool {
    caller.send(&to, &text);
    caller.send(caller.pid(), (mine(), 1));
    caller.send(nobody(), &to);
    caller.send((nobody(), nobody()), 1);
    caller.send(7, 1);
    t.tick(1_000_000).await;
    let came = receive().tagged(mine()).await;
    let there = caller.clone();
    thread::spawn(move || there.send(&to, &came)).join().is_ok()
}

#[fairnif::nif(may_wait)]
async fn applies(how: String, arg: OwnedTerm) -> Result<OwnedTerm, Error> {
    let _guard = Guard::new();
    match how.as_str() {
        "sum" => Ok(apply("lists", "sum", (vec![1, 2, 3],)).await?),
        "none" => Ok(apply("erlang", "self", ()).await?),
        "monitor" => Ok(receive().tagged(monitor(&arg).await?).await),
        "link" => Ok(link(&arg).await?),
        "caught" => match apply("erlang", "exit", (&arg,)).await {
            Err(raised) if raised.class == Class::Exit => Ok(raised.reason),
            _ => Err(Error::BadArg),
        },
        how => Ok(apply("erlang", how, (&arg,)).await?),
    }
}

/// Which of two is there first, and the message that it did not wait for.
#[fairnif::nif(may_wait)]
async fn first_of(sleep_ms: u64) -> (String, String) {
    let first = select! {
        () = sleep(ms(sleep_ms)).fuse() => "sleep".into(),
        message = receive().fuse() => text(Some(message)),
    };
    (first, text(receive().within(ms(2000)).await))
}

/// Waits for messages, time, a descriptor, another thread; none keeps another one waiting.
#[fairnif::nif(may_wait)]
async fn joins(caller: Caller, parent: LocalPid) -> Result<Vec<String>, Error> {
    let (reader, mut writer) = UnixStream::pair()?;
    let (sender, answer) = oneshot::channel();
    let writing = thread::spawn(move || {
        thread::sleep(ms(20));
        writer.write_all(b"x").unwrap();
        thread::sleep(ms(20));
        sender.send("answer").unwrap();
    });
    let seen = std::sync::Mutex::new(vec![]);
    let see = |what: &str| seen.lock().unwrap().push(what.to_string());
    let messages = async {
        see(&text(Some(receive().await)));
        // The test sends the others once all else is over.
        see(&text(Some(receive().await)));
    };
    let tagged = async {
        see(&text(Some(receive().tagged(done()).await)));
    };
    let ready = async {
        readable(&reader).await.unwrap();
        see("read");
        see(answer.await.unwrap());
        let sleeping = [1, 2, 3].map(|n| sleep(ms(n)));
        sleeping.into_iter().collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await;
        see("slept");
        caller.send(parent, go());
    };
    join!(messages, tagged, ready);
    writing.join().map_err(|_| Error::BadArg)?;
    Ok(seen.into_inner().unwrap())
}

/// While another part of it ticks without an end, until the message comes.
#[fairnif::nif(may_wait)]
async fn ticks_beside(t: Ticker) -> String {
    select! {
        message = receive().fuse() => text(Some(message)),
        () = async { loop { t.tick(1000).await } }.fuse() => "never".into(),
    }
}

/// A message that comes for a future which is dropped before it is polled again is the next one's.
#[fairnif::nif(may_wait)]
async fn drops_one() -> String {
    let mut dropped = Box::pin(receive());
    let mut polls = 0;
    poll_fn(|cx| {
        polls += 1;
        if polls == 1 {
            assert!(dropped.as_mut().poll_unpin(cx).is_pending());
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
    drop(dropped);
    text(receive().within(ms(0)).await)
}
