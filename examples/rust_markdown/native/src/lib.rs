//! Markdown to HTML by pulldown-cmark: a fair function, and plain and dirty ones with the same code.

mod paragraphs;

use fairnif::{fair_here, offload, Bin, Error, OwnedBin, Place, Ticker};
use pulldown_cmark::{html, Event, Options, Parser};
use rustler::{Binary, NifResult};
use self_cell::self_cell;

type Blocks<'a> = Parser<'a>;

self_cell! {
    /// A text, and the parser that reads it.
    struct Document {
        owner: Bin,
        #[not_covariant]
        dependent: Blocks,
    }
}

/// Finds the blocks of the whole text, in one go: that is how the crate begins.
fn blocks(text: &[u8]) -> Result<Blocks<'_>, Error> {
    let text = std::str::from_utf8(text).map_err(|_| Error::BadArg)?;
    Ok(Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH))
}

/// Writes what the parser finds, block for block.
fn render<'a>(events: impl Iterator<Item = Event<'a>>, size: usize) -> OwnedBin {
    let mut out = OwnedBin::with_capacity(size + size / 4);
    html::write_html_io(&mut out, events).expect("a binary takes all");
    out
}

/// `None` where a paragraph is long: that is for `nif_to_html_long`.
#[fairnif::nif]
async fn nif_to_html(t: Ticker, text: Bin) -> Result<Option<OwnedBin>, Error> {
    if paragraphs::any_is_long(&t, &text).await {
        return Ok(None);
    }
    convert(text).await.map(Some)
}

/// The same on a dirty scheduler: a paragraph is taken apart in one go.
#[fairnif::nif(mode = "dirty_cpu")]
async fn nif_to_html_long(text: Bin) -> Result<OwnedBin, Error> {
    convert(text).await
}

/// To find the blocks and to free them takes as long as there are many: then it is done on a
/// dirty scheduler. The rest ticks event for event. To find them takes some eight times as long,
/// and `Place::Auto` learns from both.
async fn convert(text: Bin) -> Result<OwnedBin, Error> {
    let size = text.len();
    let found = move || Document::try_new(text, |text| blocks(text));
    let mut document = offload(found).on(Place::Auto, 8 * size).await?;
    // Safety: the crate has no lock and no thread-local variable, and no C stands between.
    let html = document.with_dependent_mut(|_, blocks| render(unsafe { fair_here(blocks) }, size));
    offload(move || drop(document)).on(Place::Auto, size).await;
    Ok(html)
}

fn at_once(text: Binary) -> NifResult<OwnedBin> {
    let blocks = blocks(&text).map_err(|_| rustler::Error::BadArg)?;
    Ok(render(blocks, text.len()))
}

#[rustler::nif]
fn plain_to_html(text: Binary) -> NifResult<OwnedBin> {
    at_once(text)
}

#[rustler::nif(schedule = "DirtyCpu")]
fn dirty_to_html(text: Binary) -> NifResult<OwnedBin> {
    at_once(text)
}

fairnif::init!("rust_markdown");
