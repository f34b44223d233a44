//! Binary encoding in the files of the Python package cs.vt. Integers have variable length: 7 bits
//! in each byte, the most significant first; the high bit of a byte is set if another byte follows.
//! Bytes and text are preceded by their length in bytes, such an integer.

use ctds::error::{Context, Error, Result, ResultExt};

/// Longest encoded integer that is read, in bytes, leading zeros included.
pub(super) const LONGEST_UINT: usize = 10;

#[derive(Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Name of the structure for the context of errors.
    structure: &'static str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], structure: &'static str) -> Self {
        Cursor { bytes, at: 0, structure }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Name of the structure, and offset from its start.
    pub(super) fn place(&self) -> Context {
        Context::offset(self.structure, self.at as u64)
    }

    /// Takes the next `count` bytes; fails if fewer are left.
    pub(super) fn take(&mut self, count: u64) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = usize::try_from(count).ok().and_then(|count| rest.get(..count)) else {
            let message = format!("{count} bytes are expected, {} follow", rest.len());
            return Err(Error::format(message).context(self.place()));
        };
        self.at += taken.len();
        Ok(taken)
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    pub(super) fn uint(&mut self) -> Result<u64> {
        match decode_uint(&self.bytes[self.at..]).with_context(|| self.place())? {
            Some((value, len)) => {
                self.at += len;
                Ok(value)
            }
            None => Err(Error::format("the bytes end in an integer, before its last byte").context(self.place())),
        }
    }

    pub(super) fn data(&mut self) -> Result<&'a [u8]> {
        let len = self.uint()?;
        self.take(len)
    }

    pub(super) fn string(&mut self) -> Result<&'a str> {
        let place = self.place();
        std::str::from_utf8(self.data()?).map_err(|_| Error::format("the text is not UTF-8").context(place))
    }
}

/// Value and encoded length in bytes; `None` if `bytes` ends within it.
pub(super) fn decode_uint(bytes: &[u8]) -> Result<Option<(u64, usize)>> {
    let mut value: u64 = 0;
    for (at, &byte) in bytes.iter().take(LONGEST_UINT).enumerate() {
        if value >> (u64::BITS - 7) != 0 {
            return Err(Error::format("an integer exceeds 64 bits"));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(Some((value, at + 1)));
        }
    }
    match bytes.len() < LONGEST_UINT {
        true => Ok(None),
        false => Err(Error::format(format!("an integer has more than {LONGEST_UINT} bytes"))),
    }
}

pub(super) fn put_uint(out: &mut Vec<u8>, value: u64) {
    let groups = (u64::BITS - value.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let more = if group > 0 { 0x80 } else { 0 };
        out.push((value >> (7 * group)) as u8 & 0x7f | more);
    }
}

pub(super) fn put_data(out: &mut Vec<u8>, data: &[u8]) {
    put_uint(out, data.len() as u64);
    out.extend_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_round_trip() {
        for (value, bytes) in [(0, &[0][..]), (127, &[127]), (128, &[0x81, 0]), (300, &[0x82, 0x2c])] {
            let mut out = Vec::new();
            put_uint(&mut out, value);
            assert_eq!(out, bytes);
        }
        for value in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_uint(&mut out, value);
            assert_eq!(decode_uint(&out).unwrap(), Some((value, out.len())));
            assert_eq!(decode_uint(&out[..out.len() - 1]).unwrap(), None);
        }
    }

    #[test]
    fn integers_may_be_longer_than_needed_but_not_too_large() {
        assert_eq!(decode_uint(&[0x80, 0x80, 5]).unwrap(), Some((5, 3)));
        assert!(decode_uint(&[0xff; 10]).is_err() && decode_uint(&[0x80; 12]).is_err());
        assert!(decode_uint(&[0x83, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]).is_err());
    }

    #[test]
    fn a_length_beyond_the_end_is_refused() {
        let error = Cursor::new(&[0x85, 0, 1, 2], "block reference").data().unwrap_err();
        assert_eq!(error.to_string(), "block reference at byte 2: 640 bytes are expected, 2 follow");
        assert!(Cursor::new(&[1, 0xff], "x").string().is_err());
    }
}
