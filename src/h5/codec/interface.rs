//! What a codec is.

use std::fmt;
use std::ops::RangeInclusive;

use crate::error::Result;

/// A compression method, which is a filter of HDF5.
pub(crate) trait Codec: fmt::Debug + Sync {
    /// Number of the filter in the registry of The HDF Group.
    fn id(&self) -> i32;

    /// Name of the codec on the command line: `gzip`, `zstd`.
    fn name(&self) -> &'static str;

    /// The name of the filter, where that is another.
    fn filter_name(&self) -> &'static str {
        self.name()
    }

    /// The levels that a user can choose from; `None` if the codec has none.
    fn levels(&self) -> Option<Levels> {
        None
    }

    /// The software that lets other programs read the filter; `None` if every libhdf5 contains it.
    fn plugin(&self) -> Option<&'static str>;

    /// The parameters that HDF5 stores with the filter (`cd_values`), for data compressed at `level`.
    fn parameters(&self, _level: u8) -> Vec<u32> {
        Vec::new()
    }

    /// The level that stored parameters name; `None` if they name none that [`levels`](Self::levels) has.
    fn level(&self, _parameters: &[u32]) -> Option<u8> {
        None
    }

    /// The largest number of bytes that `stored` bytes can decode to. No more is allocated on the word of a file.
    fn bound(&self, stored: u64) -> u64;

    /// Compresses at `level`; `None` if this program only reads what the codec made.
    fn encoder(&self, level: u8) -> Option<Box<dyn Encoder>>;

    /// Decompresses.
    fn decoder(&self) -> Box<dyn Decoder>;
}

/// Compresses chunks, one after the other; keeps its working memory between them.
pub(crate) trait Encoder: Send {
    /// Replaces `out` with `bytes` compressed. They are a series of planes of `plane` bytes each and a shorter rest, where
    /// bytes were sorted by their place in the elements; one plane else.
    ///
    /// # Errors
    /// Those of the library that compresses: it has no memory left.
    fn encode(&mut self, bytes: &[u8], plane: usize, out: &mut Vec<u8>) -> Result<()>;
}

/// Decompresses chunks, one after the other; keeps its working memory between them.
pub(crate) trait Decoder: Send {
    /// Replaces `out` with what was compressed to `bytes`, and never makes it longer than `limit` bytes.
    ///
    /// # Errors
    /// `Format` if `bytes` are damaged or stand for more than `limit` bytes.
    fn decode(&mut self, bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()>;
}

/// The levels of a codec, fastest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) range: RangeInclusive<u8>,
    /// The level for users who name the codec alone.
    pub(crate) default: u8,
}

impl PartialEq for dyn Codec {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for dyn Codec {}
