//! The encoder of gzip: writes zlib streams, and compresses each part of a chunk by the fastest
//! method that suits it.
//!
//! After the shuffle a chunk is a series of planes: the first bytes of all elements, the second
//! bytes, and so on. The planes of measured numbers differ: exponents compress well, the last bits
//! are noise. Each plane is cut into segments, each segment is encoded by the [`Method`] that suits
//! it, and the pieces are joined to one stream, which every inflate decodes:
//!
//! ```text
//! 2 bytes   header (RFC 1950)
//! for each series of segments with one method, blocks of deflate (RFC 1951) that end at a byte:
//!   stored blocks; blocks of codes; or blocks of zlib that begin without history and end with a full flush
//! 2 bytes   an empty last block
//! 4 bytes   Adler-32 of the chunk
//! ```
//! A chunk whose segments all have repetitions, and a short one, is encoded as a whole.

use libdeflater::{CompressionLvl, Compressor};
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush};

use super::super::interface::Encoder;
use super::codes;
use super::estimate::Estimator;
use super::runs::Runs;
use super::stored::store;
use crate::error::{Error, Result};

/// Longer chunks are divided into segments, each with its own method.
const SMALL_CHUNK: usize = 8 << 10;
const SEGMENT: usize = 64 << 10;
/// zlib: deflate with a window of 32 KiB.
const HEADER: [u8; 2] = [0x78, 0x5e];
const LAST_BLOCK: [u8; 2] = [3, 0];
/// Above this ratio of lengths a method is not worth its time.
const NO_GAIN: f32 = 0.985;
/// Below this estimated ratio the sample counts as constant, or nearly.
const CONSTANT: f32 = 0.01;
/// Bytes at the end of a segment that [`Method::Runs`] and [`Method::Matches`] both encode.
const TRIAL: usize = 8 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// Suits noise.
    Stored,
    /// A Huffman code for each byte: suits the exponents of noisy floating-point numbers.
    Codes,
    /// Huffman codes and runs of one byte: suits flags, weights and constant values.
    Runs,
    /// Huffman codes and repetitions at any distance, as in zlib: suits data that repeats.
    Matches,
}

/// The level decides how hard repetitions are searched for.
pub(super) struct Encode {
    level: u8,
    estimator: Estimator,
    /// libdeflate's, kept for reuse.
    whole: Option<Compressor>,
    runs: Runs,
    matches: Option<Deflate>,
    /// Output of zlib, never shortened, so that its memory is not cleared again for each use.
    blocks: Vec<u8>,
}

impl Encode {
    pub(super) fn new(level: u8) -> Self {
        Encode { level, estimator: Estimator::new(), whole: None, runs: Runs::new(), matches: None, blocks: Vec::new() }
    }

    /// Lengths of parts by method; empty for a short chunk. `plane` is the length of a plane.
    fn series(&mut self, bytes: &[u8], plane: usize) -> Result<Vec<(Method, usize)>> {
        let mut series: Vec<(Method, usize)> = Vec::new();
        if bytes.len() <= SMALL_CHUNK {
            return Ok(series);
        }
        for segment in segments(bytes, plane) {
            let method = self.method(segment)?;
            match series.last_mut() {
                Some((last, len)) if *last == method => *len += segment.len(),
                _ => series.push((method, segment.len())),
            }
        }
        Ok(series)
    }

    /// The fastest method among those with about the fewest bytes.
    fn method(&mut self, segment: &[u8]) -> Result<Method> {
        if is_constant(segment) {
            return Ok(Method::Runs);
        }
        let expected = self.estimator.estimate(segment);
        let simple = expected.codes.min(expected.runs);
        if simple.min(expected.matches) > NO_GAIN {
            // the gain that the sample does not show is elsewhere in the segment
            return Ok(if expected.segment > NO_GAIN { Method::Stored } else { Method::Runs });
        }
        // the slowest method: where little gain is expected, it is tried
        let ratio = expected.matches / simple;
        if ratio < 0.92 || (ratio < 0.95 && self.gains_by_matches(segment)?) {
            return Ok(Method::Matches);
        }
        if expected.runs >= 0.99 * expected.codes {
            return Ok(Method::Codes);
        }
        // a constant sample says nothing about the rest; if the rest is constant, all methods are
        // as fast
        if expected.runs < CONSTANT {
            return Ok(Method::Matches);
        }
        // where runs gain much, longer repetitions often gain more, which an estimate does not see
        if expected.runs < 0.5 && expected.runs < 0.9 * expected.codes && self.gains_by_matches(segment)? {
            return Ok(Method::Matches);
        }
        Ok(Method::Runs)
    }

    /// At least 2 % fewer bytes than by [`Method::Runs`], tried at the end of a segment.
    fn gains_by_matches(&mut self, segment: &[u8]) -> Result<bool> {
        let trial = &segment[segment.len().saturating_sub(TRIAL)..];
        let (mut with_runs, mut with_matches) = (Vec::new(), Vec::new());
        self.deflate(Method::Runs, trial, &mut with_runs)?;
        self.deflate(Method::Matches, trial, &mut with_matches)?;
        Ok(with_matches.len() * 51 < with_runs.len() * 50)
    }

    /// libdeflate finds repetitions faster than zlib, but its blocks cannot be joined to others.
    fn whole(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let level = CompressionLvl::new(self.level.into()).unwrap_or_default();
        let compressor = self.whole.get_or_insert_with(|| Compressor::new(level));
        out.resize(compressor.zlib_compress_bound(bytes.len()), 0);
        let len = compressor.zlib_compress(bytes, out);
        out.truncate(len.map_err(|error| Error::usage("deflate failed").caused_by(error))?);
        Ok(())
    }

    fn deflate(&mut self, method: Method, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match method {
            Method::Stored => store(bytes, out),
            Method::Codes => codes::encode(bytes, out),
            Method::Runs => self.runs.encode(bytes, out),
            Method::Matches => return self.zlib(bytes, out),
        }
        Ok(())
    }

    fn zlib(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let deflate = match &mut self.matches {
            Some(deflate) => {
                deflate.reset();
                deflate
            }
            // window_bits below 0: no header, no checksum. Level 1 has fixed codes, which are poor
            // for numbers.
            none => none.insert(Deflate::new_with_config(DeflateConfig {
                level: i32::from(self.level).max(2),
                window_bits: -15,
                ..DeflateConfig::default()
            })),
        };
        // zlib stores what would grow: 5 bytes a block
        let bound = bytes.len() + bytes.len() / 16 + 64;
        if self.blocks.len() < bound {
            self.blocks.resize(bound, 0);
        }
        let ended = deflate.compress(bytes, &mut self.blocks, DeflateFlush::FullFlush);
        let (read, written) = (deflate.total_in() as usize, deflate.total_out() as usize);
        if ended.is_err() || read != bytes.len() || written >= self.blocks.len() {
            return Err(Error::usage(format!("deflate stopped after {read} of {} bytes", bytes.len())));
        }
        out.extend_from_slice(&self.blocks[..written]);
        Ok(())
    }
}

impl Encoder for Encode {
    fn encode(&mut self, bytes: &[u8], plane: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let series = self.series(bytes, plane)?;
        if series.iter().all(|(method, _)| *method == Method::Matches) {
            return self.whole(bytes, out);
        }
        out.reserve_exact(bytes.len() + bytes.len() / 16 + 1024);
        out.extend_from_slice(&HEADER);
        let mut rest = bytes;
        for (method, len) in series {
            let (now, later) = rest.split_at(len);
            self.deflate(method, now, out)?;
            rest = later;
        }
        out.extend_from_slice(&LAST_BLOCK);
        out.extend_from_slice(&libdeflater::adler32(bytes).to_be_bytes());
        Ok(())
    }
}

/// Compares at about the speed of reading memory.
fn is_constant(bytes: &[u8]) -> bool {
    bytes.is_empty() || bytes[1..] == bytes[..bytes.len() - 1]
}

/// Parts of one plane (`plane` bytes) each, unless planes are shorter than 4 KiB.
fn segments(bytes: &[u8], plane: usize) -> impl Iterator<Item = &[u8]> {
    // planes of a few bytes are judged together
    let plane = plane.max(SMALL_CHUNK / 2);
    bytes.chunks(plane).flat_map(|plane| {
        let count = plane.len().div_ceil(SEGMENT);
        plane.chunks(plane.len().div_ceil(count))
    })
}

#[cfg(test)]
mod tests {
    use super::super::estimate::noise;
    use super::*;

    const PLANE: usize = 80_000;

    /// A plane for each method, and how much of it may remain.
    fn planes() -> Vec<(Method, Vec<u8>, f64)> {
        let noise = noise(PLANE);
        let of = |value: fn(u8) -> u8| noise.iter().map(|&byte| value(byte)).collect::<Vec<u8>>();
        let repeated = noise[..5000].iter().copied().cycle().take(PLANE).collect();
        vec![
            (Method::Stored, noise.clone(), 1.001),
            (Method::Codes, of(|byte| (byte & 63).leading_zeros() as u8), 0.27),
            (Method::Runs, of(|byte| u8::from(byte > 250)), 0.045),
            (Method::Matches, repeated, 0.08),
        ]
    }

    #[test]
    fn each_plane_has_its_method() {
        let (methods, planes): (Vec<_>, Vec<_>) =
            planes().into_iter().map(|(method, plane, _)| (method, plane)).unzip();
        let bytes = planes.concat();
        let expected: Vec<_> = methods.into_iter().map(|method| (method, PLANE)).collect();
        assert_eq!(Encode::new(4).series(&bytes, PLANE).unwrap(), expected);
    }

    #[test]
    fn others_decode_what_is_joined_and_it_is_small() {
        let planes = planes();
        let bytes = planes.iter().map(|(_, plane, _)| plane.as_slice()).collect::<Vec<_>>().concat();
        let most: f64 = planes.iter().map(|(_, plane, part)| plane.len() as f64 * part).sum();
        for level in [1, 4, 9] {
            let mut out = Vec::new();
            Encode::new(level).encode(&bytes, PLANE, &mut out).unwrap();
            assert!((out.len() as f64) < most, "{} of {} bytes, at most {most} are expected", out.len(), bytes.len());
            let mut back = vec![0; bytes.len()];
            let config = zlib_rs::InflateConfig::default();
            let (decoded, ended) = zlib_rs::decompress_slice(&mut back, &out, config);
            assert_eq!((ended, decoded == bytes), (zlib_rs::ReturnCode::Ok, true));
        }
    }

    /// The middle of a segment, which is the sample, may differ from the rest.
    #[test]
    fn gain_outside_the_sample_is_found() {
        let repeated = noise(1500).into_iter().cycle().take(12_000);
        let padded: Vec<u8> = repeated.chain(std::iter::repeat_n(0, 48_000)).collect();
        let flagged: Vec<u8> = std::iter::repeat_n(0, 16_000).chain(noise(44_000)).collect();
        for (bytes, most) in [(padded, 2500), (flagged, 45_000)] {
            let mut out = Vec::new();
            Encode::new(4).encode(&bytes, bytes.len(), &mut out).unwrap();
            assert!(out.len() < most, "{} bytes, at most {most} are expected", out.len());
        }
    }
}
