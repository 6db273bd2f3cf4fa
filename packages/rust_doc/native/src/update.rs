//! Updates, which others send, decoded so that none can be deeper than a stack.
//!
//! The crate decodes a value in a value by a call in a call, and deletes a shared type in a shared
//! type so: an update of 80 kB overflows a stack of 8 MiB, and that ends the node. A text has no
//! need of either. So values go `DEPTH` deep at most, and shared types within others are refused.

use std::sync::Arc;

use yrs::block::ClientID;
use yrs::encoding::read::{Error, Read};
use yrs::updates::decoder::{Decode, Decoder, DecoderV1};
use yrs::{Any, Update, ID};

/// serde_json, which reads the values that are JSON, allows as much.
const DEPTH: usize = 128;

/// An update in lib0's first version.
pub fn decode(update: &[u8]) -> Result<Update, Error> {
    Update::decode(&mut Bounded(DecoderV1::from(update)))
}

struct Bounded<'a>(DecoderV1<'a>);

fn too_deep() -> Error {
    Error::Custom("the update is nested too deep".into())
}

/// As the crate reads it, but for the depth.
fn any<R: Read>(from: &mut R, depth: usize) -> Result<Any, Error> {
    let tag = from.read_u8()?;
    if depth == 0 && (tag == 117 || tag == 118) {
        return Err(too_deep());
    }
    match tag {
        118 => {
            let mut map = std::collections::HashMap::new();
            for _ in 0..from.read_var::<usize>()? {
                let key = from.read_string()?.to_owned();
                map.insert(key, any(from, depth - 1)?);
            }
            Ok(Any::Map(Arc::new(map)))
        }
        117 => {
            let mut array = Vec::new();
            for _ in 0..from.read_var::<usize>()? {
                array.push(any(from, depth - 1)?);
            }
            Ok(Any::Array(array.into()))
        }
        _ => Any::decode(&mut Tagged(Some(tag), from)),
    }
}

/// What was read of it comes first.
struct Tagged<'a, R>(Option<u8>, &'a mut R);

impl<R: Read> Read for Tagged<'_, R> {
    fn read_u8(&mut self) -> Result<u8, Error> {
        self.0.take().map_or_else(|| self.1.read_u8(), Ok)
    }

    fn read_exact(&mut self, len: usize) -> Result<&[u8], Error> {
        self.1.read_exact(len)
    }
}

impl Read for Bounded<'_> {
    fn read_u8(&mut self) -> Result<u8, Error> {
        self.0.read_u8()
    }

    fn read_exact(&mut self, len: usize) -> Result<&[u8], Error> {
        self.0.read_exact(len)
    }
}

macro_rules! as_it_is {
    ($($name:ident -> $type:ty),* $(,)?) => {
        $(fn $name(&mut self) -> Result<$type, Error> {
            self.0.$name()
        })*
    };
}

impl Decoder for Bounded<'_> {
    as_it_is! {
        read_ds_clock -> u32, read_ds_len -> u32, read_left_id -> ID, read_right_id -> ID,
        read_client -> ClientID, read_info -> u8, read_parent_info -> bool, read_len -> u32,
        read_json -> Any, read_key -> Arc<str>, read_to_end -> &[u8],
    }

    fn reset_ds_cur_val(&mut self) {
        self.0.reset_ds_cur_val()
    }

    fn read_any(&mut self) -> Result<Any, Error> {
        any(&mut self.0, DEPTH)
    }

    fn read_type_ref(&mut self) -> Result<u8, Error> {
        Err(Error::Custom("a shared type within another is no text".into()))
    }
}
