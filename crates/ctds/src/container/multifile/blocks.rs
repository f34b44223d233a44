//! Reads the blocks of a MultiFile and compares them with their checksums.

use super::crc::Crc;
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::ReadAt;

/// Bytes read at a time for the checksum of a block of which only a part is wanted.
const PIECE_BYTES: u64 = 1 << 16;

/// Block b begins at byte b·`block_bytes`. docs/reference/formats/table.md, 5.5 and 5.6.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks<'a> {
    pub(super) file: &'a dyn ReadAt,
    pub(super) block_bytes: u64,
    /// CRC of each block; blocks after the end of the list are not checked.
    pub(super) checksums: Option<&'a [u32]>,
}

impl Blocks<'_> {
    /// Compares each block as a whole with its CRC, unless `known` is true for its number, and
    /// calls `checked` for each that matches. `out` begins at byte `within` of `block`.
    pub(super) fn read(
        &self,
        block: u64,
        within: u64,
        out: &mut [u8],
        known: impl Fn(u64) -> bool,
        checked: impl Fn(u64),
    ) -> Result<()> {
        let at = block * self.block_bytes + within;
        self.file.read_at(at, out).with_context(|| format!("block {block}"))?;
        let Some(checksums) = self.checksums else { return Ok(()) };
        let (mut block, mut within, mut rest) = (block, within, &*out);
        while !rest.is_empty() {
            let (part, others) = rest.split_at((self.block_bytes - within).min(rest.len() as u64) as usize);
            if let Some(&stored) = checksums.get(block as usize)
                && !known(block)
            {
                let place = || Context::offset(format!("block {block}"), block * self.block_bytes);
                let found = self.crc_around(block, within, part).with_context(place)?;
                if found != stored {
                    let message =
                        format!("CRC {stored:08x} stored, but the bytes have {found:08x}: the block is damaged");
                    return Err(Error::format(message).context(place()));
                }
                checked(block);
            }
            (block, within, rest) = (block + 1, 0, others);
        }
        Ok(())
    }

    /// CRC of a whole block, of which `part`, from byte `within` on, is in memory already.
    fn crc_around(&self, block: u64, within: u64, part: &[u8]) -> Result<u32> {
        let mut crc = Crc::new();
        self.add(&mut crc, block, 0..within)?;
        crc.update(part);
        self.add(&mut crc, block, within + part.len() as u64..self.block_bytes)?;
        Ok(crc.finish())
    }

    pub(super) fn crc(&self, block: u64) -> Result<u32> {
        self.crc_around(block, 0, &[])
    }

    fn add(&self, crc: &mut Crc, block: u64, range: std::ops::Range<u64>) -> Result<()> {
        let mut piece = vec![0; (range.end - range.start).min(PIECE_BYTES) as usize];
        let mut position = range.start;
        while position < range.end {
            let count = (range.end - position).min(PIECE_BYTES);
            let piece = &mut piece[..count as usize];
            self.file.read_at(block * self.block_bytes + position, piece)?;
            crc.update(piece);
            position += count;
        }
        Ok(())
    }
}
