//! How long paragraphs are, before they are read.
//!
//! The crate takes a paragraph apart in one go. How long that takes depends on its markup more than
//! on its length: about 200 ns for a byte that may be some, 3 ns for another one.

use fairnif::Ticker;

/// A byte that may be markup counts as this many others.
const MARKUP: u32 = 64;

/// That much takes two slices.
const LONG: u32 = 300 * MARKUP;

const WEIGHTS: [u8; 256] = weights();

const fn weights() -> [u8; 256] {
    let mut weights = [1; 256];
    let markup = b"[]!*_`<&\\~";
    let mut i = 0;
    while i < markup.len() {
        weights[markup[i] as usize] = MARKUP as u8;
        i += 1;
    }
    weights
}

/// Where a line is. `Item`: behind what begins an item of a list, if something follows.
#[derive(Clone, Copy)]
enum Line {
    Indent(u8),
    Bullet,
    Item,
    Text,
}

/// What has been read since a paragraph could last begin: after a blank line, or with an item of a
/// list. All else that ends one is left out, so this is the most that a paragraph may be.
struct Paragraph {
    so_far: u32,
    line: Line,
}

impl Paragraph {
    /// False when it is too long.
    fn read(&mut self, bytes: &[u8]) -> bool {
        for &byte in bytes {
            if let (b'\n', Line::Indent(_)) = (byte, self.line) {
                self.so_far = 0;
            }
            self.line = match (self.line, byte) {
                (_, b'\n') => Line::Indent(0),
                (Line::Text, _) => Line::Text,
                (Line::Indent(n), b' ') => Line::Indent(n.saturating_add(1)),
                (Line::Indent(_), b'\t' | b'\r') => Line::Indent(4),
                (Line::Indent(0..=3), b'-' | b'+' | b'*') => Line::Bullet,
                (Line::Bullet | Line::Item, b' ') => Line::Item,
                (Line::Item, b'\r' | b'\t') => Line::Item,
                (Line::Item, _) => {
                    self.so_far = 0;
                    Line::Text
                }
                _ => Line::Text,
            };
            self.so_far += u32::from(WEIGHTS[usize::from(byte)]);
            if self.so_far > LONG {
                return false;
            }
        }
        true
    }
}

/// Whether one may be so long that it takes more than two slices.
pub async fn any_is_long(t: &Ticker, text: &[u8]) -> bool {
    let mut paragraph = Paragraph { so_far: 0, line: Line::Indent(0) };
    for bytes in text.chunks(4096) {
        if !paragraph.read(bytes) {
            return true;
        }
        // In the measure of `fair_here`: an event takes some 200 ns.
        t.tick(bytes.len() / 128).await;
    }
    false
}
