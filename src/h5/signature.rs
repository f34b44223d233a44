//! Where HDF5 data begins in a file. HDF5 File Format Specification 3.0, section II.A.

use crate::error::{Error, Result};
use crate::io::ReadAt;

/// Start of HDF5 data: of a file, or after a user block.
const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// A user block may precede the signature.
pub(crate) fn is_hdf5(file: &dyn ReadAt) -> Result<bool> {
    Ok(signature(file)?.is_some())
}

/// Tells which releases of HDF5 can read the file; `Format` if it is not HDF5.
pub(crate) fn superblock_version(file: &dyn ReadAt) -> Result<u8> {
    let start = signature(file)?.ok_or_else(|| Error::format("the file is not an HDF5 file"))?;
    let mut version = [0];
    file.read_at(start + SIGNATURE.len() as u64, &mut version)?;
    Ok(version[0])
}

fn signature(file: &dyn ReadAt) -> Result<Option<u64>> {
    let len = file.len()?;
    let starts = std::iter::successors(Some(0u64), |&start| Some(if start == 0 { 512 } else { start * 2 }));
    for start in starts.take_while(|start| start + 8 <= len) {
        let mut bytes = [0; 8];
        file.read_at(start, &mut bytes)?;
        if bytes == SIGNATURE {
            return Ok(Some(start));
        }
    }
    Ok(None)
}
