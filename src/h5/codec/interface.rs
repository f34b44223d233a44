//! The traits of a codec, which is a compression method with its encoder and decoder.

use std::fmt;
use std::ops::RangeInclusive;

use crate::error::Result;

pub(crate) trait Codec: fmt::Debug + Sync {
    /// The filter's number in the registry of The HDF Group.
    fn id(&self) -> i32;

    /// Name on the command line: `gzip`, `zstd`.
    fn name(&self) -> &'static str;

    /// HDF5's name, where it differs: `deflate` for `gzip`.
    fn filter_name(&self) -> &'static str {
        self.name()
    }

    fn levels(&self) -> Option<Levels> {
        None
    }

    /// Software by which others read the filter, such as `hdf5plugin`; `None` if in every libhdf5.
    fn plugin(&self) -> Option<&'static str>;

    /// HDF5's `cd_values` for data compressed at `level`.
    fn parameters(&self, _level: u8) -> Vec<u32> {
        Vec::new()
    }

    /// `None` if the parameters state no valid level.
    fn level(&self, _parameters: &[u32]) -> Option<u8> {
        None
    }

    /// Largest decoded size of `stored` bytes; no more is allocated, whatever a file declares.
    fn bound(&self, stored: u64) -> u64;

    /// `None` if this program only reads the codec.
    fn encoder(&self, level: u8) -> Option<Box<dyn Encoder>>;

    fn decoder(&self) -> Box<dyn Decoder>;
}

/// Keeps its working memory from chunk to chunk.
pub(crate) trait Encoder: Send {
    /// Replaces `out`; fails only without memory. `plane` is the number of elements if `bytes` are
    /// shuffled (all first bytes, then all second bytes, and so on), else the length of `bytes`.
    fn encode(&mut self, bytes: &[u8], plane: usize, out: &mut Vec<u8>) -> Result<()>;
}

pub(crate) trait Decoder: Send {
    /// Replaces `out`; `Format` if `bytes` are damaged or decode to more than `limit` bytes.
    fn decode(&mut self, bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()>;
}

/// Levels from the fastest to the smallest output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) range: RangeInclusive<u8>,
    /// Used without a level in the codec's name.
    pub(crate) default: u8,
}

impl PartialEq for dyn Codec {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for dyn Codec {}
