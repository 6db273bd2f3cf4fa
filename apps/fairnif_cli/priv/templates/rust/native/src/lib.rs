//! Counts bytes, and yields between blocks of them.

use fairnif::{Bin, Error, Ticker};

/// Bytes between two ticks: 1 to 2 us. A tick at least every 5 us keeps the slices fair.
const BLOCK: usize = 16 * 1024;

/// `count/2`. It may pause at each tick and continue later, on another thread: what it keeps must
/// be `Send`. When its caller dies meanwhile, it is dropped there. Plain rustler functions may
/// stand beside it.
#[fairnif::nif]
async fn count(t: Ticker, data: Bin, byte: u32) -> Result<usize, Error> {
    let byte = u8::try_from(byte).map_err(|_| Error::BadArg)?;
    let mut found = 0;
    for block in data.chunks(BLOCK) {
        found += block.iter().filter(|b| **b == byte).count();
        t.tick(block.len()).await;
    }
    Ok(found)
}

fairnif::init!("{{module}}");
