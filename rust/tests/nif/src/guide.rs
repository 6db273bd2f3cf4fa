use fairnif::{receive, Caller, Error};
use rustler::Atom;

rustler::atoms! { add, stop, ok, normal }

#[fairnif::nif(may_wait)]
async fn nif_counter(caller: Caller, first: i64) -> Result<Atom, Error> {
    let mut n = first;
    loop {
        let message = receive().await;
        let Some((from, request)) = message.as_call() else {
            continue;
        };
        match request.decode::<(Atom, i64)>() {
            Ok((what, number)) if what == add() => {
                n += number;
                caller.reply(from, n);
            }
            _ if request.decode::<Atom>()? == stop() => {
                caller.reply(from, ok());
                return Ok(normal());
            }
            _ => {}
        }
    }
}
