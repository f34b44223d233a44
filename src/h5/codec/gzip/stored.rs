//! Stored (not compressed) blocks of deflate (RFC 1951, 3.2.4), for the encoder of gzip.

/// Largest number of bytes in a stored block of deflate.
const MOST: usize = 65_535;

/// Appends stored (not compressed) blocks of deflate to `out` that decode to `bytes`.
pub(super) fn store(bytes: &[u8], out: &mut Vec<u8>) {
    for block in bytes.chunks(MOST) {
        let len = block.len() as u16;
        out.push(0);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
}
