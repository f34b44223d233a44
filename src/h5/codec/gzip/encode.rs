//! Writes zlib streams that spend time where it gains.
//!
//! After the shuffle a chunk is a series of planes: the first bytes of all elements, the second bytes, and so on. The planes of
//! measured numbers differ: exponents compress well, the last bits are noise. Each plane is cut into segments, each segment
//! is encoded by the [`Method`] that suits it, and the pieces are joined to one stream, which every inflate decodes:
//!
//! ```text
//! 2 bytes   header (RFC 1950)
//! for each series of segments with one method, blocks of deflate (RFC 1951) that end at a byte:
//!   stored blocks; or blocks of zlib that begin without history and end with a full flush
//! 2 bytes   an empty last block
//! 4 bytes   Adler-32 of the chunk
//! ```

use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Strategy};

use super::super::interface::Encoder;
use super::estimate::Estimator;
use crate::error::{Error, Result};

/// Chunks up to this length are one segment, which is not judged.
const SMALL_CHUNK: usize = 8 << 10;
/// The most bytes of a segment.
const SEGMENT: usize = 64 << 10;
/// The most bytes of a stored block.
const STORED_BLOCK: usize = 65_535;
/// The last block of a stream, without content.
const LAST_BLOCK: [u8; 2] = [3, 0];
/// Gains below this, as the part that remains, are not worth the time.
const NO_GAIN: f32 = 0.985;
/// Bytes that are encoded to choose between two methods.
const TRIAL: usize = 8 << 10;

/// The way to encode a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// The bytes as they are: noise.
    Stored,
    /// Codes by frequency only: exponents of noise.
    Codes,
    /// Codes, and runs of one byte: flags, weights, what is constant.
    Runs,
    /// Codes, and repetitions of any kind.
    Matches,
}

/// Compresses at a level, which says how hard repetitions are looked for.
pub(super) struct Encode {
    level: u8,
    estimator: Estimator,
    /// Kept when first needed, one for each method that zlib runs.
    codes: Option<Deflate>,
    runs: Option<Deflate>,
    matches: Option<Deflate>,
}

impl Encode {
    pub(super) fn new(level: u8) -> Self {
        Encode { level, estimator: Estimator::new(), codes: None, runs: None, matches: None }
    }

    /// The fastest method of those that leave about the fewest bytes of `segment`.
    fn method(&mut self, segment: &[u8]) -> Result<Method> {
        let expected = self.estimator.estimate(segment);
        let simple = expected.codes.min(expected.runs);
        if simple.min(expected.matches) > NO_GAIN {
            // what the sample does not show is somewhere else
            return Ok(if expected.segment > NO_GAIN { Method::Stored } else { Method::Runs });
        }
        if expected.matches < 0.95 * simple {
            return Ok(Method::Matches);
        }
        if expected.runs >= 0.99 * expected.codes {
            return Ok(Method::Codes);
        }
        // where runs gain much, longer repetitions often gain more, which an estimate does not see
        if (0.01..0.5).contains(&expected.runs) && expected.runs < 0.9 * expected.codes {
            let trial = &segment[segment.len().saturating_sub(TRIAL)..];
            let (mut with_runs, mut with_matches) = (Vec::new(), Vec::new());
            self.deflate(Method::Runs, trial, &mut with_runs)?;
            self.deflate(Method::Matches, trial, &mut with_matches)?;
            if with_matches.len() * 51 < with_runs.len() * 50 {
                return Ok(Method::Matches);
            }
        }
        Ok(Method::Runs)
    }

    /// Appends blocks that decode to `bytes` and end at a byte.
    fn deflate(&mut self, method: Method, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let (slot, strategy) = match method {
            Method::Stored => {
                store(bytes, out);
                return Ok(());
            }
            Method::Codes => (&mut self.codes, Strategy::HuffmanOnly),
            Method::Runs => (&mut self.runs, Strategy::Rle),
            Method::Matches => (&mut self.matches, Strategy::Default),
        };
        let deflate = match slot {
            Some(deflate) => {
                deflate.reset();
                deflate
            }
            // window_bits below 0: no header, no checksum. Level 1 has fixed codes, which are poor for numbers.
            none => none.insert(Deflate::new_with_config(DeflateConfig {
                level: i32::from(self.level).max(2),
                window_bits: -15,
                strategy,
                ..DeflateConfig::default()
            })),
        };
        let start = out.len();
        // zlib stores what would grow: 5 bytes a block
        out.resize(start + bytes.len() + bytes.len() / 16 + 64, 0);
        let ended = deflate.compress(bytes, &mut out[start..], DeflateFlush::FullFlush);
        let (read, written) = (deflate.total_in() as usize, deflate.total_out() as usize);
        if ended.is_err() || read != bytes.len() || start + written >= out.len() {
            return Err(Error::usage(format!("deflate stopped after {read} of {} bytes", bytes.len())));
        }
        out.truncate(start + written);
        Ok(())
    }
}

impl Encoder for Encode {
    fn encode(&mut self, bytes: &[u8], plane: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.reserve(bytes.len() + bytes.len() / 16 + 1024);
        out.extend_from_slice(&[0x78, 0x5e]);
        if bytes.len() <= SMALL_CHUNK {
            if !bytes.is_empty() {
                self.deflate(Method::Matches, bytes, out)?;
            }
        } else {
            let mut rest = 0;
            let mut series = Method::Stored;
            let mut at = 0;
            for segment in segments(bytes, plane) {
                let method = self.method(segment)?;
                if method != series {
                    self.deflate(series, &bytes[rest..at], out)?;
                    (rest, series) = (at, method);
                }
                at += segment.len();
            }
            self.deflate(series, &bytes[rest..], out)?;
        }
        out.extend_from_slice(&LAST_BLOCK);
        out.extend_from_slice(&libdeflater::adler32(bytes).to_be_bytes());
        Ok(())
    }
}

/// Cuts planes of `plane` bytes into segments of about equal length; the last plane may be shorter.
fn segments(bytes: &[u8], plane: usize) -> impl Iterator<Item = &[u8]> {
    // planes of a few bytes are judged together
    let plane = plane.max(SMALL_CHUNK / 2);
    bytes.chunks(plane).flat_map(|plane| {
        let count = plane.len().div_ceil(SEGMENT);
        plane.chunks(plane.len().div_ceil(count))
    })
}

/// Appends stored blocks.
fn store(bytes: &[u8], out: &mut Vec<u8>) {
    for block in bytes.chunks(STORED_BLOCK) {
        let len = block.len() as u16;
        out.push(0);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
}
