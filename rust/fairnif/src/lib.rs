#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

#[cfg(not(unix))]
compile_error!("fairnif needs Unix");

mod apply;
mod bin;
mod call;
mod caller;
mod error;
mod iter;
mod load;
mod offload;
mod receive;
mod resource;
mod term;
mod ticker;
mod vm;
mod wait;

#[doc(hidden)]
pub mod abi;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod codegen;

pub use apply::{apply, link, monitor, Apply, Args, Class, Raised};
pub use bin::{Bin, OwnedBin};
pub use caller::Caller;
pub use error::Error;
pub use fairnif_macros::nif;
pub use iter::{fair, fair_here, Fair, FairHere};
pub use load::authors_info;
#[doc(hidden)]
pub use load::load as __load;
pub use offload::{offload, Offload, Place};
pub use receive::{receive, Receive, ReceiveWithin};
pub use resource::declare::Resource;
pub use resource::FairResource;
pub use term::OwnedTerm;
pub use ticker::{Tick, Ticker};
pub use wait::{readable, sleep, writable, Ready, Sleep};

#[cfg(test)]
mod tests;
