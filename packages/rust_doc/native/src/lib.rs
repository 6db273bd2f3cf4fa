//! Shared documents by yrs: fair functions, and plain and dirty ones with the same code.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

use async_lock::{Mutex, MutexGuardArc};
use fairnif::{offload, Bin, Error, OwnedBin, Place};
use rustler::{Atom, Binary, Encoder, Env, NifResult, Resource, ResourceArc, Term};
use yrs::{Doc, GetString, ReadTxn, StateVector, Text, Transact};

mod update;

const TEXT: &str = "text";
/// Bytes of updates whose document is freed in well under a millisecond.
const SMALL: usize = 10_000;

/// Bytes of an update at most that is a keystroke or a few.
const TYPED: usize = 200;

rustler::atoms! { ok }

#[derive(Default)]
struct Document {
    doc: Arc<Mutex<Doc>>,
    /// How many bytes of updates it has taken: what there is to do grows with it.
    size: AtomicUsize,
}

#[rustler::resource_impl]
impl Resource for Document {}

/// rustler asks for it. After a panic of the crate's the document is what was made of it so far.
impl std::panic::RefUnwindSafe for Document {}

/// A collection calls it, on any scheduler: a large document is freed on a thread, for which
/// the library stays mapped (build.rs).
impl Drop for Document {
    fn drop(&mut self) {
        if *self.size.get_mut() > SMALL {
            let doc = std::mem::take(&mut self.doc);
            // Where no thread is to be had it is dropped here, with the closure.
            let _ = thread::Builder::new().spawn(move || drop(doc));
        }
    }
}

impl Document {
    fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Is waited for without a thread that stands still.
    async fn lock(&self) -> MutexGuardArc<Doc> {
        self.doc.lock_arc().await
    }
}

#[rustler::nif]
fn new() -> ResourceArc<Document> {
    ResourceArc::new(Document::default())
}

/// One call into the crate each; none can tick.
fn apply(doc: &Doc, update: &[u8]) -> Result<(), String> {
    let update = update::decode(update).map_err(|e| e.to_string())?;
    doc.transact_mut().apply_update(update).map_err(|e| e.to_string())
}

fn encode(doc: &Doc) -> Vec<u8> {
    doc.transact().encode_state_as_update_v1(&StateVector::default())
}

fn text(doc: &Doc) -> String {
    doc.get_or_insert_text(TEXT).get_string(&doc.transact())
}

fn insert(doc: &Doc, at: u32, new: &str) -> Result<(), Error> {
    let text = doc.get_or_insert_text(TEXT);
    let mut transaction = doc.transact_mut();
    let len = text.len(&transaction);
    let inside = at > 0 && at < len;
    if at > len || inside && !text.get_string(&transaction).is_char_boundary(at as usize) {
        return Err(Error::BadArg);
    }
    text.insert(&mut transaction, at, new);
    Ok(())
}

/// How long it takes is not known before: it depends on what others typed in the same place. Only
/// what is very small is tried in place.
#[fairnif::nif(may_wait)]
async fn apply_nif(document: ResourceArc<Document>, update: Bin) -> Result<Atom, Error> {
    let place = if update.len() <= TYPED { Place::Auto } else { Place::Threaded };
    let size = document.size.fetch_add(update.len(), Ordering::Relaxed) + update.len();
    let doc = document.lock().await;
    offload(move || apply(&doc, &update)).on(place, size).await.map_err(Error::term)?;
    Ok(ok())
}

#[fairnif::nif(may_wait)]
async fn encode_nif(document: ResourceArc<Document>) -> OwnedBin {
    let doc = document.lock().await;
    let encoded = move || OwnedBin::from(&encode(&doc)[..]);
    offload(encoded).on(Place::Auto, document.size()).await
}

#[fairnif::nif(may_wait)]
async fn text_nif(document: ResourceArc<Document>) -> OwnedBin {
    let doc = document.lock().await;
    let read = move || OwnedBin::from(text(&doc).as_bytes());
    offload(read).on(Place::Auto, document.size()).await
}

#[fairnif::nif(may_wait)]
async fn insert_nif(document: ResourceArc<Document>, at: u32, new: Bin) -> Result<Atom, Error> {
    let size = document.size.fetch_add(new.len(), Ordering::Relaxed) + new.len();
    let doc = document.lock().await;
    let inserted = move || insert(&doc, at, std::str::from_utf8(&new).map_err(|_| Error::BadArg)?);
    offload(inserted).on(Place::Auto, size).await?;
    Ok(ok())
}

fn apply_at_once(document: &Document, update: &[u8]) -> NifResult<Atom> {
    document.size.fetch_add(update.len(), Ordering::Relaxed);
    let doc = document.doc.lock_blocking();
    apply(&doc, update).map_err(|e| rustler::Error::Term(Box::new(e)))?;
    Ok(ok())
}

fn encode_at_once<'a>(env: Env<'a>, document: &Document) -> Term<'a> {
    let encoded = encode(&document.doc.lock_blocking());
    OwnedBin::from(&encoded[..]).encode(env)
}

#[rustler::nif]
fn plain_apply(document: ResourceArc<Document>, update: Binary) -> NifResult<Atom> {
    apply_at_once(&document, &update)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn dirty_apply(document: ResourceArc<Document>, update: Binary) -> NifResult<Atom> {
    apply_at_once(&document, &update)
}

#[rustler::nif]
fn plain_encode(env: Env, document: ResourceArc<Document>) -> Term {
    encode_at_once(env, &document)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn dirty_encode(env: Env, document: ResourceArc<Document>) -> Term {
    encode_at_once(env, &document)
}

fairnif::init!("rust_doc");
