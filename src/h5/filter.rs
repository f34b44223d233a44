//! Filters that we run ourselves, on any thread, so that chunks can be read and written without libhdf5's lock.
//!
//! - Shuffle (HDF5 filter 2): the first bytes of all elements, then the second bytes, and so on.
//! - Deflate (filter 1): a zlib stream, RFC 1950.
//! - Fletcher32 (filter 3): the bytes, then their checksum in 4 bytes, little-endian.

use std::fmt;

use libdeflater::{CompressionLvl, Compressor, Decompressor};

use crate::error::{Error, Result};

/// Compression of datasets: shuffle, then deflate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deflate {
    /// 0 (none) to 9 (smallest).
    pub(crate) level: u8,
}

/// One filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Shuffle { element_size: usize },
    Deflate(Deflate),
    Fletcher32,
}

/// The filters of a dataset, first applied first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pipeline(Vec<Stage>);

/// What a thread needs to run filters, kept between chunks.
#[derive(Default)]
pub(crate) struct Coder {
    compressor: Option<(u8, Compressor)>,
    decompressor: Option<Decompressor>,
    scratch: Vec<u8>,
}

impl fmt::Debug for Coder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Coder")
    }
}

/// A zlib stream holds at most 1032 times its own bytes.
pub(super) const MOST_INFLATED: usize = 1032;

impl Pipeline {
    pub(crate) fn new(stages: Vec<Stage>) -> Self {
        Pipeline(stages)
    }

    /// Whether bytes are stored as they are.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces `out` with a chunk's `bytes` as they are to be stored, with filter mask 0.
    pub(crate) fn encode(&self, coder: &mut Coder, bytes: &[u8], out: &mut Vec<u8>) {
        run(self.0.iter(), &mut coder.scratch, bytes, out, |stage, input, output| {
            match stage {
                Stage::Shuffle { element_size } => shuffle(*element_size, input, output),
                Stage::Deflate(Deflate { level }) => deflate(&mut coder.compressor, *level, input, output),
                Stage::Fletcher32 => add_checksum(input, output),
            }
            Ok(())
        })
        .expect("encoding has no errors");
    }

    /// Replaces `out` with the `len` bytes of a chunk that is stored as `bytes`.
    ///
    /// Bit `i` of `filter_mask` is set where stage `i` was skipped.
    ///
    /// # Errors
    /// `Format` if the bytes are not a chunk of that length.
    pub(crate) fn decode(
        &self,
        coder: &mut Coder,
        filter_mask: u32,
        bytes: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let applied = self.0.iter().enumerate().filter(|(i, _)| *i >= 32 || (filter_mask >> i) & 1 == 0);
        let stages = applied.map(|(_, stage)| stage).rev();
        run(stages, &mut coder.scratch, bytes, out, |stage, input, output| match stage {
            Stage::Shuffle { element_size } => {
                unshuffle(*element_size, input, output);
                Ok(())
            }
            Stage::Deflate(_) => inflate(coder.decompressor.get_or_insert_default(), input, len, output),
            Stage::Fletcher32 => check_checksum(input, output),
        })?;
        match out.len() {
            found if found == len => Ok(()),
            found => Err(Error::format(format!("a chunk of {found} bytes where {len} are expected"))),
        }
    }
}

/// Feeds `bytes` through the stages one after the other; the last output is left in `out`.
fn run<'a>(
    stages: impl Iterator<Item = &'a Stage>,
    scratch: &mut Vec<u8>,
    bytes: &[u8],
    out: &mut Vec<u8>,
    mut apply: impl FnMut(&Stage, &[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut first = true;
    for stage in stages {
        if first {
            apply(stage, bytes, out)?;
        } else {
            std::mem::swap(scratch, out);
            apply(stage, scratch, out)?;
        }
        first = false;
    }
    if first {
        out.clear();
        out.extend_from_slice(bytes);
    }
    Ok(())
}

fn deflate(compressor: &mut Option<(u8, Compressor)>, level: u8, input: &[u8], out: &mut Vec<u8>) {
    if compressor.as_ref().is_none_or(|(has, _)| *has != level) {
        let setting = CompressionLvl::new(i32::from(level)).unwrap_or_default();
        *compressor = Some((level, Compressor::new(setting)));
    }
    let (_, compressor) = compressor.as_mut().expect("set above");
    out.resize(compressor.zlib_compress_bound(input.len()), 0);
    let len = compressor.zlib_compress(input, out).expect("the buffer has the size the library asked for");
    out.truncate(len);
}

fn inflate(decompressor: &mut Decompressor, input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
    if len / MOST_INFLATED > input.len() {
        return Err(Error::format(format!("{} bytes cannot be {len} deflated ones", input.len())));
    }
    out.resize(len, 0);
    let found = decompressor
        .zlib_decompress(input, out)
        .map_err(|error| Error::format(format!("a chunk does not inflate to {len} bytes")).caused_by(error))?;
    out.truncate(found);
    Ok(())
}

fn add_checksum(input: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(input);
    out.extend_from_slice(&fletcher32(input).to_le_bytes());
}

fn check_checksum(input: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Some((bytes, stored)) = input.split_last_chunk::<4>() else {
        return Err(Error::format(format!("{} bytes, where a checksum is expected", input.len())));
    };
    let (stored, found) = (u32::from_le_bytes(*stored), fletcher32(bytes));
    if stored != found {
        return Err(Error::format(format!("the checksum of the chunk is {found:#010x}, {stored:#010x} is expected")));
    }
    out.clear();
    out.extend_from_slice(bytes);
    Ok(())
}

/// Fletcher's checksum of the big-endian 16-bit words, modulo 65535, where 65535 itself stands for 0 once anything was
/// summed. The last of an odd number of bytes is the upper half of a word.
fn fletcher32(bytes: &[u8]) -> u32 {
    // so few words that the second sum cannot overflow
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

/// Elements taken at a time, so that both sides stay in the cache.
const BLOCK: usize = 256;

fn shuffle(size: usize, input: &[u8], out: &mut Vec<u8>) {
    out.resize(input.len(), 0);
    match size {
        2 => transpose::<2>(input, out),
        4 => transpose::<4>(input, out),
        8 => transpose::<8>(input, out),
        16 => transpose::<16>(input, out),
        // unshuffling "elements" of count bytes is shuffling
        _ if size > 1 && input.len() / size > 1 => {
            let count = input.len() / size;
            for (i, element) in input.chunks_exact(size).enumerate() {
                element.iter().enumerate().for_each(|(byte, &value)| out[byte * count + i] = value);
            }
            out[count * size..].copy_from_slice(&input[count * size..]);
        }
        _ => out.copy_from_slice(input),
    }
}

fn unshuffle(size: usize, input: &[u8], out: &mut Vec<u8>) {
    out.resize(input.len(), 0);
    match size {
        2 => untranspose::<2>(input, out),
        4 => untranspose::<4>(input, out),
        8 => untranspose::<8>(input, out),
        16 => untranspose::<16>(input, out),
        _ if size > 1 && input.len() / size > 1 => {
            let count = input.len() / size;
            for (i, element) in out.chunks_exact_mut(size).enumerate() {
                element.iter_mut().enumerate().for_each(|(byte, value)| *value = input[byte * count + i]);
            }
            out[count * size..].copy_from_slice(&input[count * size..]);
        }
        _ => out.copy_from_slice(input),
    }
}

fn transpose<const SIZE: usize>(input: &[u8], out: &mut [u8]) {
    let (elements, rest) = input.as_chunks::<SIZE>();
    let (planes, out_rest) = out.split_at_mut(elements.len() * SIZE);
    for (block, elements_of_block) in elements.chunks(BLOCK).enumerate() {
        for byte in 0..SIZE {
            let start = byte * elements.len() + block * BLOCK;
            let plane = &mut planes[start..start + elements_of_block.len()];
            plane.iter_mut().zip(elements_of_block).for_each(|(to, element)| *to = element[byte]);
        }
    }
    out_rest.copy_from_slice(rest);
}

fn untranspose<const SIZE: usize>(input: &[u8], out: &mut [u8]) {
    let (elements, out_rest) = out.as_chunks_mut::<SIZE>();
    let count = elements.len();
    let (planes, rest) = input.split_at(count * SIZE);
    for (block, elements_of_block) in elements.chunks_mut(BLOCK).enumerate() {
        for byte in 0..SIZE {
            let start = byte * count + block * BLOCK;
            let plane = &planes[start..start + elements_of_block.len()];
            elements_of_block.iter_mut().zip(plane).for_each(|(element, &from)| element[byte] = from);
        }
    }
    out_rest.copy_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_is_by_byte_planes() {
        let mut out = Vec::new();
        shuffle(4, &[1, 2, 3, 4, 5, 6, 7, 8, 99], &mut out);
        assert_eq!(out, [1, 5, 2, 6, 3, 7, 4, 8, 99]);
    }

    #[test]
    fn every_element_size_comes_back() {
        let bytes: Vec<u8> = (0..5003u32).map(|i| ((i * i) >> 3) as u8).collect();
        let mut coder = Coder::default();
        for element_size in 1..20 {
            let pipeline = Pipeline::new(vec![Stage::Shuffle { element_size }, Stage::Deflate(Deflate { level: 4 })]);
            let (mut stored, mut back) = (Vec::new(), Vec::new());
            pipeline.encode(&mut coder, &bytes, &mut stored);
            pipeline.decode(&mut coder, 0, &stored, bytes.len(), &mut back).unwrap();
            assert_eq!(back, bytes);
            pipeline.decode(&mut coder, 3, &bytes, bytes.len(), &mut back).unwrap();
            assert_eq!(back, bytes);
        }
    }

    #[test]
    fn damaged_streams_are_errors() {
        let pipeline = Pipeline::new(vec![Stage::Deflate(Deflate { level: 1 })]);
        let (mut coder, mut stored, mut out) = (Coder::default(), Vec::new(), Vec::new());
        pipeline.encode(&mut coder, &[7; 1000], &mut stored);
        assert!(pipeline.decode(&mut coder, 0, &stored, 999, &mut out).is_err());
        assert!(pipeline.decode(&mut coder, 0, &stored, 1001, &mut out).is_err());
        assert!(pipeline.decode(&mut coder, 0, &stored, 1 << 40, &mut out).is_err());
        stored[4] ^= 1;
        assert!(pipeline.decode(&mut coder, 0, &stored, 1000, &mut out).is_err());
    }
}
