#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

#[cfg(not(unix))]
compile_error!("fairnif needs Unix");

mod apply;
mod ask;
mod bin;
mod call;
mod error;
mod iter;
mod load;
mod offload;
mod receive;
mod resource;
mod source;
mod sync;
mod term;
mod ticker;
mod vm;
mod waker;

#[doc(hidden)]
pub mod abi;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod codegen;

pub use apply::{apply, link, monitor, Apply, Args, Class, Raised};
pub use bin::{Bin, OwnedBin};
pub use error::Error;
pub use fairnif_macros::nif;
pub use iter::{fair, fair_here, Fair, FairHere};
pub use load::{authors_info, load, load_as};
pub use offload::{offload, Offload, Place};
pub use receive::{caller, receive, reply, send, Receive, ReceiveWithin};
pub use resource::{FairResource, Resource};
pub use source::{readable, sleep, writable, Ready, Sleep};
pub use term::OwnedTerm;
pub use ticker::{Tick, Ticker};

#[cfg(test)]
mod tests;
