//! Reads the fields of a structure, one after the other, from bytes that may end anywhere.

use crate::error::{Error, Result};

/// Bytes of an address and of a length in a file, from its superblock: 2, 4 or 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) address: usize,
    pub(crate) length: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Bytes<'a> {
    /// For errors: `B-tree node`.
    structure: &'static str,
    /// Offset of the first byte in the file.
    start: u64,
    bytes: &'a [u8],
    at: usize,
    sizes: Sizes,
}

impl<'a> Bytes<'a> {
    /// `start` is the offset of `bytes` in the file.
    pub(crate) fn new(structure: &'static str, start: u64, bytes: &'a [u8], sizes: Sizes) -> Self {
        Bytes { structure, start, bytes, at: 0, sizes }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Offset in the file of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// An error at the next byte.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        Error::damaged(message).within(format_args!("{} at byte {}", self.structure, self.offset()))
    }

    pub(crate) fn unsupported(&self, message: impl Into<String>) -> Error {
        Error::unsupported(message).within(format_args!("{} at byte {}", self.structure, self.offset()))
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| self.error(format!("{len} bytes are expected, {} remain", self.remaining())))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    pub(crate) fn skip(&mut self, len: usize) -> Result<()> {
        self.take(len).map(drop)
    }

    /// Skips padding after the structure's first byte up to a multiple of 8.
    pub(crate) fn align(&mut self) -> Result<()> {
        self.skip(self.at.next_multiple_of(8) - self.at)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("`take` returns as many bytes as asked for"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A little-endian number of `len` bytes, at most 8.
    pub(crate) fn number(&mut self, len: usize) -> Result<u64> {
        let mut word = [0; 8];
        let bytes = self.take(len)?;
        word.get_mut(..len).ok_or_else(|| Error::damaged(format!("a number of {len} bytes")))?.copy_from_slice(bytes);
        Ok(u64::from_le_bytes(word))
    }

    /// `None` for the undefined address, all bits set.
    pub(crate) fn address(&mut self) -> Result<Option<u64>> {
        let address = self.number(self.sizes.address)?;
        Ok((address != undefined(self.sizes.address)).then_some(address))
    }

    pub(crate) fn defined_address(&mut self, what: &str) -> Result<u64> {
        let before = self.clone();
        self.address()?.ok_or_else(|| before.error(format!("the address of {what} is undefined")))
    }

    pub(crate) fn length(&mut self) -> Result<u64> {
        self.number(self.sizes.length)
    }

    pub(crate) fn signature(&mut self, expected: &[u8; 4]) -> Result<()> {
        let before = self.clone();
        let found = self.take(4)?;
        if found != expected {
            let (found, expected) = (found.escape_ascii(), expected.escape_ascii());
            return Err(before.error(format!("the signature is \"{found}\", expected \"{expected}\"")));
        }
        Ok(())
    }

    pub(crate) fn version(&mut self, known: &[u8]) -> Result<u8> {
        let before = self.clone();
        let version = self.u8()?;
        if !known.contains(&version) {
            return Err(before.unsupported(format!("version {version} is not one of {known:?}")));
        }
        Ok(version)
    }

    /// Text that ends with NUL, without it.
    pub(crate) fn text(&mut self) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&byte| byte == 0).ok_or_else(|| self.error("text does not end with NUL"))?;
        self.at += end + 1;
        Ok(&rest[..end])
    }
}

fn undefined(len: usize) -> u64 {
    u64::MAX >> (64 - 8 * len.clamp(1, 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { address: 4, length: 2 };

    #[test]
    fn fields_of_every_width() {
        let bytes: Vec<u8> = (1..=30).collect();
        let mut fields = Bytes::new("test", 100, &bytes, SIZES);
        assert_eq!((fields.u8().unwrap(), fields.u16().unwrap()), (1, 0x0302));
        assert_eq!((fields.address().unwrap(), fields.length().unwrap()), (Some(0x0706_0504), 0x0908));
        assert_eq!(fields.number(3).unwrap(), 0x000c_0b0a);
        fields.align().unwrap();
        assert_eq!((fields.position(), fields.offset(), fields.remaining()), (16, 116, 14));
        let error = fields.take(15).unwrap_err().to_string();
        assert_eq!(error, "test at byte 116: 15 bytes are expected, 14 remain");
        assert!(fields.take(usize::MAX).is_err());
    }

    #[test]
    fn undefined_addresses_and_text() {
        let bytes = [0xff, 0xff, 0xff, 0xff, b'a', b'b', 0, b'c'];
        let mut fields = Bytes::new("test", 0, &bytes, SIZES);
        assert_eq!(fields.address().unwrap(), None);
        assert_eq!(fields.text().unwrap(), b"ab");
        assert!(fields.text().is_err());
    }
}
