//! LZF (HDF5 filter 32000), which h5py contains: each chunk is one LZF block. This program decodes
//! it, but does not encode it.
//!
//! A block is a series of runs, each begun by a control byte:
//!
//! | control byte | meaning |
//! |---|---|
//! | `000nnnnn` | the next n + 1 bytes as they are |
//! | `lllooooo` and a byte `p` | l + 2 bytes again that came `ooooopppppppp` + 1 bytes ago; l is 1 to 6 |
//! | `111ooooo`, a byte `m`, a byte `p` | as before, m + 9 bytes |

use super::interface::{Codec, Decoder, Encoder};
use crate::error::{Error, Result};

/// Three bytes stand for a run of up to 264.
const MAX_EXPANSION: u64 = 264 / 3;

#[derive(Debug)]
pub(super) struct Lzf;

impl Codec for Lzf {
    fn id(&self) -> i32 {
        32000
    }

    fn name(&self) -> &'static str {
        "lzf"
    }

    fn plugin(&self) -> Option<&'static str> {
        Some("h5py")
    }

    fn bound(&self, stored: u64) -> u64 {
        stored.saturating_mul(MAX_EXPANSION)
    }

    fn encoder(&self, _level: u8) -> Option<Box<dyn Encoder>> {
        None
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Runs)
    }
}

struct Runs;

impl Decoder for Runs {
    fn decode(&mut self, bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.reserve_exact(limit);
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = run(rest, limit, out).ok_or_else(|| {
                Error::format(format!("LZF: a run that is damaged or exceeds {limit} bytes, after {} bytes", out.len()))
            })?;
        }
        Ok(())
    }
}

/// Returns the bytes after the first run; `None` if it is damaged or `out` would exceed `limit`.
fn run<'a>(bytes: &'a [u8], limit: usize, out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (&control, rest) = bytes.split_first()?;
    let (code, low) = (usize::from(control >> 5), usize::from(control & 0x1f));
    let room = limit - out.len();
    if code == 0 {
        let (literals, rest) = rest.split_at_checked(low + 1)?;
        if literals.len() > room {
            return None;
        }
        out.extend_from_slice(literals);
        return Some(rest);
    }
    let (more, rest) =
        if code == 7 { rest.split_first().map(|(&more, rest)| (usize::from(more), rest))? } else { (0, rest) };
    let (&offset, rest) = rest.split_first()?;
    let distance = (low << 8 | usize::from(offset)) + 1;
    let (len, start) = (code + more + 2, out.len().checked_sub(distance)?);
    if len > room {
        return None;
    }
    // the run may repeat bytes of its own
    for at in start..start + len {
        out.push(out[at]);
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], limit: usize) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        Runs.decode(bytes, limit, &mut out).map(|()| out)
    }

    #[test]
    fn runs() {
        assert_eq!(decode(b"", 10).unwrap(), b"");
        assert_eq!(decode(b"\x02abc", 10).unwrap(), b"abc");
        // 3 bytes from 3 bytes ago; then 9 from 1 byte ago; then 20 from 2 bytes ago
        assert_eq!(decode(b"\x02abc\x20\x02", 10).unwrap(), b"abcabc");
        assert_eq!(decode(b"\x00a\xe0\x00\x00", 10).unwrap(), b"aaaaaaaaaa");
        assert_eq!(decode(b"\x01ab\xe0\x0b\x01", 22).unwrap(), b"ab".repeat(11));
        let far: Vec<u8> = (0..=255u8).flat_map(|i| [0, i]).chain([0x20, 0xff]).collect();
        assert_eq!(decode(&far, 259).unwrap()[253..], [253, 254, 255, 0, 1, 2]);
    }

    #[test]
    fn damage() {
        // more than allowed, cut, from before the beginning
        for (bytes, limit) in [
            (&b"\x02abc"[..], 2),
            (b"\x00a\xe0\x00\x00", 9),
            (b"\x02ab", 10),
            (b"\x00a\xe0\x00", 10),
            (b"\x00a\x20", 10),
            (b"\x00a\x20\x01", 10),
        ] {
            let error = decode(bytes, limit).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Format);
        }
    }
}
