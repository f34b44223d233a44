//! Filters that this program runs itself, on any thread, so that chunks can be read and written
//! without libhdf5's lock.
//!
//! - Shuffle (HDF5 filter 2): the first bytes of all elements, then the second bytes, and so on.
//! - Fletcher32 (filter 3): the bytes, then their checksum in 4 bytes, little-endian.
//! - The compression methods of [`codec`](super::codec).

use std::fmt;

use smallvec::SmallVec;

use super::codec::{self, Codec, Decoder, Encoder};
use crate::error::{Error, Result};
use crate::shuffle::{shuffle, unshuffle};

const SHUFFLE: i32 = 2;
const FLETCHER32: i32 = 3;
const CHECKSUM_BYTES: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    Shuffle { element_size: usize },
    Fletcher32,
    Codec { codec: &'static dyn Codec, level: u8 },
}

/// Ordered as a writer applies them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pipeline(Vec<Filter>);

/// Working memory of a thread, reused from chunk to chunk.
#[derive(Default)]
pub(crate) struct FilterScratch {
    /// The last encoder, with HDF5's filter number and the level.
    encoder: Option<(i32, u8, Box<dyn Encoder>)>,
    decoder: Option<(i32, Box<dyn Decoder>)>,
    bytes: Vec<u8>,
}

impl fmt::Debug for FilterScratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FilterScratch")
    }
}

impl Filter {
    /// `None` if only libhdf5 can run the filter.
    pub(super) fn stored(id: i32, parameters: &[u32], element_size: usize) -> Option<Self> {
        match id {
            SHUFFLE => Some(Filter::Shuffle { element_size }),
            FLETCHER32 => Some(Filter::Fletcher32),
            _ => {
                let codec = codec::find(id)?;
                let default = || codec.levels().map_or(0, |levels| levels.default);
                Some(Filter::Codec { codec, level: codec.level(parameters).unwrap_or_else(default) })
            }
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Filter::Shuffle { .. } => f.write_str("shuffle"),
            Filter::Fletcher32 => f.write_str("fletcher32"),
            Filter::Codec { codec, level } if codec.levels().is_some() => {
                write!(f, "{}({level})", codec.filter_name())
            }
            Filter::Codec { codec, .. } => f.write_str(codec.filter_name()),
        }
    }
}

impl Pipeline {
    pub(crate) fn new(filters: Vec<Filter>) -> Self {
        Pipeline(filters)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// At most one filter may compress: the length of the bytes between two is unknown.
    pub(super) fn is_decodable(&self) -> bool {
        self.0.iter().filter(|filter| matches!(filter, Filter::Codec { .. })).count() <= 1
    }

    pub(super) fn filters(&self) -> &[Filter] {
        &self.0
    }

    /// Replaces `out` with the chunk as stored; fails only without memory.
    pub(crate) fn encode(&self, scratch: &mut FilterScratch, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let FilterScratch { encoder, bytes: between, .. } = scratch;
        let mut plane = bytes.len();
        run(self.0.iter(), between, bytes, out, |filter, input, output| match filter {
            Filter::Shuffle { element_size } => {
                plane = input.len() / (*element_size).max(1);
                output.resize(input.len(), 0);
                shuffle(*element_size, input, output);
                Ok(())
            }
            Filter::Fletcher32 => {
                add_checksum(input, output);
                Ok(())
            }
            Filter::Codec { codec, level } => {
                if encoder.as_ref().is_none_or(|(id, has, _)| (*id, *has) != (codec.id(), *level)) {
                    *encoder = codec.encoder(*level).map(|encoder| (codec.id(), *level, encoder));
                }
                match encoder {
                    Some((_, _, encoder)) => encoder.encode(input, plane, output),
                    None => Err(Error::unsupported(format!("{} is not written, only read", codec.name()))),
                }
            }
        })
    }

    /// Replaces `out` with the chunk of `len` bytes, never allocating more; `Format` for another
    /// length. Bit `i` of `filter_mask` is set where filter `i` was skipped.
    pub(crate) fn decode(
        &self,
        scratch: &mut FilterScratch,
        filter_mask: u32,
        bytes: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        undo(&self.applied(filter_mask), scratch, bytes, len, out)
    }

    /// As [`decode`](Self::decode), into a buffer of the chunk's length; `last` is scratch memory.
    pub(crate) fn decode_to(
        &self,
        scratch: &mut FilterScratch,
        filter_mask: u32,
        bytes: &[u8],
        last: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<()> {
        let applied = self.applied(filter_mask);
        match applied.as_slice() {
            [Filter::Shuffle { element_size }, others @ ..] => {
                undo(others, scratch, bytes, out.len(), last)?;
                unshuffle(*element_size, last, out);
            }
            filters => {
                undo(filters, scratch, bytes, out.len(), last)?;
                out.copy_from_slice(last);
            }
        }
        Ok(())
    }

    /// Largest decoded size of a chunk of `stored` bytes.
    pub(super) fn largest(&self, filter_mask: u32, stored: u64) -> u64 {
        let codec = self.applied(filter_mask).into_iter().find_map(|filter| match filter {
            Filter::Codec { codec, .. } => Some(codec),
            _ => None,
        });
        codec.map_or(stored, |codec| codec.bound(stored))
    }

    fn applied(&self, filter_mask: u32) -> SmallVec<[&Filter; 4]> {
        let is_applied = |(i, _): &(usize, &Filter)| *i >= 32 || (filter_mask >> i) & 1 == 0;
        self.0.iter().enumerate().filter(is_applied).map(|(_, filter)| filter).collect()
    }
}

/// `applied` is in the order of writing; `len` excludes checksums added before compression.
fn undo(applied: &[&Filter], scratch: &mut FilterScratch, bytes: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
    let codec_at = applied.iter().position(|filter| matches!(filter, Filter::Codec { .. })).unwrap_or_default();
    let checksums = applied[..codec_at].iter().filter(|filter| ***filter == Filter::Fletcher32).count();
    // the length of the codec's input
    let decoded = len.saturating_add(checksums * CHECKSUM_BYTES);
    let FilterScratch { decoder, bytes: between, .. } = scratch;
    run(applied.iter().copied().rev(), between, bytes, out, |filter, input, output| match filter {
        Filter::Shuffle { element_size } => {
            output.resize(input.len(), 0);
            unshuffle(*element_size, input, output);
            Ok(())
        }
        Filter::Fletcher32 => check_checksum(input, output),
        Filter::Codec { codec, .. } => {
            if codec.bound(input.len() as u64) < decoded as u64 {
                let message = format!("{} bytes of {} cannot be {decoded} bytes", input.len(), codec.filter_name());
                return Err(Error::format(message));
            }
            if decoder.as_ref().is_none_or(|(id, _)| *id != codec.id()) {
                *decoder = Some((codec.id(), codec.decoder()));
            }
            match decoder {
                Some((_, decoder)) => decoder.decode(input, decoded, output),
                None => Ok(()),
            }
        }
    })?;
    match out.len() {
        found if found == len => Ok(()),
        found => Err(Error::format(format!("the chunk has {found} bytes, expected {len}"))),
    }
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, filter) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { " + " };
            write!(f, "{separator}{filter}")?;
        }
        Ok(())
    }
}

/// Passes the output of each filter to the next, alternately in `scratch` and `out`, the last in
/// `out`. With two, `scratch` keeps its length from chunk to chunk: it is not zeroed again.
fn run<'a>(
    filters: impl Iterator<Item = &'a Filter> + Clone,
    scratch: &mut Vec<u8>,
    bytes: &[u8],
    out: &mut Vec<u8>,
    mut apply: impl FnMut(&Filter, &[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut left = filters.clone().count();
    if left == 0 {
        out.clear();
        out.extend_from_slice(bytes);
    }
    let mut first = true;
    for filter in filters {
        let (target, other) = if left % 2 == 1 { (&mut *out, &mut *scratch) } else { (&mut *scratch, &mut *out) };
        apply(filter, if first { bytes } else { other }, target)?;
        first = false;
        left -= 1;
    }
    Ok(())
}

fn add_checksum(input: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(input);
    out.extend_from_slice(&fletcher32(input).to_le_bytes());
}

fn check_checksum(input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Some((bytes, stored)) = input.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(Error::format(format!(
            "the chunk has {} bytes, expected at least the 4 of its checksum",
            input.len()
        )));
    };
    let (stored, found) = (u32::from_le_bytes(*stored), fletcher32(bytes));
    if stored != found {
        return Err(Error::format(format!("the checksum of the chunk is {found:#010x}, {stored:#010x} is expected")));
    }
    out.clear();
    out.extend_from_slice(bytes);
    Ok(())
}

/// The sum of big-endian 16-bit words in the lower half, of partial sums in the upper half. Both
/// are modulo 65535, with 65535 in place of 0 unless all words are 0; an odd last byte is the upper
/// half of a word.
fn fletcher32(bytes: &[u8]) -> u32 {
    // few enough words that the second sum cannot overflow
    const WORDS: usize = 360;
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut first, mut second) = (0u32, 0u32);
    for block in bytes.chunks(2 * WORDS) {
        let (words, rest) = block.as_chunks::<2>();
        for word in words {
            first += u32::from(u16::from_be_bytes(*word));
            second += first;
        }
        if let [last] = rest {
            first += u32::from(*last) << 8;
            second += first;
        }
        (first, second) = (fold(first), fold(second));
    }
    fold(second) << 16 | fold(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h5::Compression;

    #[test]
    fn every_element_size_comes_back() {
        let bytes: Vec<u8> = (0..5003u32).map(|i| ((i * i) >> 3) as u8).collect();
        let mut scratch = FilterScratch::default();
        for element_size in 1..20 {
            let pipeline = Compression::gzip(4).pipeline(element_size);
            let (mut stored, mut back) = (Vec::new(), Vec::new());
            pipeline.encode(&mut scratch, &bytes, &mut stored).unwrap();
            pipeline.decode(&mut scratch, 0, &stored, bytes.len(), &mut back).unwrap();
            assert_eq!(back, bytes);
            pipeline.decode(&mut scratch, 3, &bytes, bytes.len(), &mut back).unwrap();
            assert_eq!(back, bytes);
        }
    }

    #[test]
    fn checksums_before_and_after_a_codec() {
        let codec = Compression::gzip(4).filter().unwrap();
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i % 7) as u8).collect();
        let (mut scratch, mut stored, mut back) = (FilterScratch::default(), Vec::new(), Vec::new());
        let orders = [vec![codec, Filter::Fletcher32], vec![Filter::Fletcher32, codec], vec![Filter::Fletcher32; 2]];
        for filters in orders {
            let pipeline = Pipeline::new(filters);
            pipeline.encode(&mut scratch, &bytes, &mut stored).unwrap();
            pipeline.decode(&mut scratch, 0, &stored, bytes.len(), &mut back).unwrap();
            assert_eq!(back, bytes, "{pipeline}");
            *stored.last_mut().unwrap() ^= 1;
            assert!(pipeline.decode(&mut scratch, 0, &stored, bytes.len(), &mut back).is_err(), "{pipeline}");
        }
    }

    #[test]
    fn chunks_are_decoded_to_where_they_are_wanted() {
        let codec = Compression::gzip(4).filter().unwrap();
        let shuffle = Filter::Shuffle { element_size: 8 };
        let bytes: Vec<u8> = (0..4000u32).map(|i| ((i * i) >> 5) as u8).collect();
        let (mut scratch, mut stored, mut last) = (FilterScratch::default(), Vec::new(), Vec::new());
        let orders =
            [vec![shuffle, codec], vec![codec], vec![shuffle], vec![shuffle, codec, Filter::Fletcher32], vec![]];
        for filters in orders {
            let pipeline = Pipeline::new(filters);
            pipeline.encode(&mut scratch, &bytes, &mut stored).unwrap();
            let mut out = vec![1; bytes.len()];
            pipeline.decode_to(&mut scratch, 0, &stored, &mut last, &mut out).unwrap();
            assert_eq!(out, bytes, "{pipeline}");
            // all filters were skipped
            pipeline.decode_to(&mut scratch, u32::MAX, &bytes, &mut last, &mut out).unwrap();
            assert_eq!(out, bytes, "{pipeline}");
            let cut = &mut out[..bytes.len() - 8];
            assert!(pipeline.decode_to(&mut scratch, 0, &stored, &mut last, cut).is_err(), "{pipeline}");
            assert!(pipeline.largest(0, stored.len() as u64) >= bytes.len() as u64);
        }
        let pipeline = Pipeline::new(vec![shuffle, codec]);
        assert_eq!(pipeline.largest(0, 100), 100 * 1032);
        assert_eq!([pipeline.largest(0b10, 100), pipeline.largest(0b01, 100)], [100, 100 * 1032]);
    }
}
