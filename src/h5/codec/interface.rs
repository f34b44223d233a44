//! The traits of a codec, which is a compression method with its encoder and decoder.

use std::fmt;
use std::ops::RangeInclusive;

use crate::error::Result;

/// A compression method that is a filter of HDF5.
pub(crate) trait Codec: fmt::Debug + Sync {
    /// Number of the codec's filter in the registry of The HDF Group.
    fn id(&self) -> i32;

    /// Name of the codec on the command line: `gzip`, `zstd`.
    fn name(&self) -> &'static str;

    /// The name of the codec's filter in HDF5. It is that of the codec, unless HDF5 has another: `deflate` for `gzip`.
    fn filter_name(&self) -> &'static str {
        self.name()
    }

    /// The levels of compression that a user can choose from; `None` if the codec has none.
    fn levels(&self) -> Option<Levels> {
        None
    }

    /// Name of the software with which other programs can read the codec's filter, such as `hdf5plugin`; `None` if every
    /// libhdf5 contains it.
    fn plugin(&self) -> Option<&'static str>;

    /// The parameters that HDF5 stores with the codec's filter (`cd_values`), for data compressed at `level`.
    fn parameters(&self, _level: u8) -> Vec<u32> {
        Vec::new()
    }

    /// The compression level that the stored `parameters` of the codec's filter state; `None` if they state none that is
    /// valid.
    fn level(&self, _parameters: &[u32]) -> Option<u8> {
        None
    }

    /// The largest number of bytes that `stored` compressed bytes can decode to; no more is allocated, whatever a file
    /// declares.
    fn bound(&self, stored: u64) -> u64;

    /// Makes an encoder of the codec at `level`; `None` if this program only reads the codec.
    fn encoder(&self, level: u8) -> Option<Box<dyn Encoder>>;

    /// Makes a decoder that decompresses chunks of the codec.
    fn decoder(&self) -> Box<dyn Decoder>;
}

/// An encoder of a codec: compresses chunks, one after the other, and keeps its working memory between them.
pub(crate) trait Encoder: Send {
    /// Replaces `out` with `bytes` compressed. `plane` is the number of elements if `bytes` are shuffled (the first
    /// bytes of all elements, then the second bytes, and so on), otherwise the length of `bytes`.
    ///
    /// # Errors
    /// Those of the library that compresses: it has no memory left.
    fn encode(&mut self, bytes: &[u8], plane: usize, out: &mut Vec<u8>) -> Result<()>;
}

/// A decoder of a codec: decompresses chunks, one after the other, and keeps its working memory between them.
pub(crate) trait Decoder: Send {
    /// Replaces `out` with the decompressed content of `bytes`, and never makes it longer than `limit` bytes.
    ///
    /// # Errors
    /// `Format` if `bytes` are damaged or stand for more than `limit` bytes.
    fn decode(&mut self, bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()>;
}

/// The compression levels of a codec, from the fastest to the smallest output, and its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) range: RangeInclusive<u8>,
    /// The compression level that is used if the user names the codec without a level.
    pub(crate) default: u8,
}

impl PartialEq for dyn Codec {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for dyn Codec {}
