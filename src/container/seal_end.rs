//! The last bytes of the seal, the checksums after the end, of a MultiHDF5 container. They tell
//! without libhdf5 whether a file is sealed: libhdf5 may loop forever on a damaged file.

use crate::error::Result;
use crate::io::{ReadAt, read_array};

/// Only the seal's own checksum follows, 4 bytes.
pub(super) const MAGIC: [u8; 8] = *b"ctdsseal";

/// Entry of a region: its length, the number of its virtual file, its CRC-32.
pub(super) const ENTRY_BYTES: usize = 16;

/// The fields of fixed size, which are the last bytes of a sealed file.
pub(super) const END_BYTES: usize = 36;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seal {
    /// Length in bytes of the HDF5 file without the seal.
    pub(super) len: u64,
    pub(super) regions: u64,
    pub(super) names_bytes: u64,
    pub(super) magic: [u8; 8],
    pub(super) checksum: u32,
}

impl Seal {
    /// Also of a damaged seal; `None` if the file has none.
    pub(super) fn find(file: &dyn ReadAt) -> Result<Option<Self>> {
        let file_len = file.len()?;
        let Some(start) = file_len.checked_sub(END_BYTES as u64) else { return Ok(None) };
        let end: [u8; END_BYTES] = read_array(file, start)?;
        let (numbers, _) = end.as_chunks::<8>();
        let [len, regions, names_bytes] = [0, 1, 2].map(|at| u64::from_le_bytes(numbers[at]));
        let checksum = u32::from_le_bytes([end[32], end[33], end[34], end[35]]);
        let seal = Seal { len, regions, names_bytes, magic: numbers[3], checksum };
        // either alone is enough: a byte that is flipped does not make the seal disappear
        Ok((seal.fits(file_len) || seal.magic == MAGIC).then_some(seal))
    }

    /// Whether the seal and its HDF5 file add up to `file_len` bytes.
    pub(super) fn fits(&self, file_len: u64) -> bool {
        let entries = self.regions.checked_mul(ENTRY_BYTES as u64);
        let parts = [entries, Some(self.names_bytes), Some(END_BYTES as u64)];
        parts.into_iter().try_fold(self.len, |sum, part| sum.checked_add(part?)) == Some(file_len)
    }
}
