//! Iterators that tick for their caller.

use crate::Ticker;

/// Wraps an iterator so that each item ticks one unit.
///
/// ```no_run
/// use fairnif::{fair, Bin};
///
/// #[fairnif::nif]
/// async fn lines(data: Bin) -> usize {
///     let mut lines = fair(data.split(|b| *b == b'\n'));
///     let mut blank = 0;
///     while let Some(line) = lines.next().await {
///         blank += usize::from(line.is_empty());
///     }
///     blank
/// }
/// ```
pub fn fair<I: IntoIterator>(iterator: I) -> Fair<I::IntoIter> {
    Fair { iterator: iterator.into_iter(), ticker: Ticker::new() }
}

/// What [`fair`] returns.
#[derive(Debug, Clone)]
pub struct Fair<I> {
    iterator: I,
    ticker: Ticker,
}

impl<I: Iterator> Fair<I> {
    /// The next item, after a tick.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub async fn next(&mut self) -> Option<I::Item> {
        self.ticker.tick(1).await;
        self.iterator.next()
    }

    /// Returns the wrapped iterator in its current state.
    pub fn into_inner(self) -> I {
        self.iterator
    }
}

/// Like [`fair`], but an iterator, for code that takes one and is not `async`. It pauses in `next`.
///
/// ```no_run
/// # fn render(parser: impl Iterator<Item = u8>) -> Vec<u8> { parser.collect() }
/// #[fairnif::nif]
/// async fn html(text: fairnif::Bin) -> Vec<u8> {
///     // Safety: `render` keeps no lock and no thread-local variable in use.
///     render(unsafe { fairnif::fair_here(text.iter().copied()) })
/// }
/// ```
///
/// # Safety
/// Each `next` is a [`Ticker::tick_here`], whose safety rules apply to its callers.
pub unsafe fn fair_here<I: IntoIterator>(iterator: I) -> FairHere<I::IntoIter> {
    FairHere(fair(iterator))
}

/// What [`fair_here`] returns.
#[derive(Debug, Clone)]
pub struct FairHere<I>(Fair<I>);

impl<I: Iterator> Iterator for FairHere<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        // Safety: who made this promised it.
        unsafe { self.0.ticker.tick_here(1) };
        self.0.iterator.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.iterator.size_hint()
    }
}
