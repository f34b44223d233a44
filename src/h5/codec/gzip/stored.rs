//! Stored (not compressed) blocks of deflate (RFC 1951, 3.2.4), for the encoder of gzip.

/// Limit of deflate.
const MOST: usize = 65_535;

pub(super) fn store(bytes: &[u8], out: &mut Vec<u8>) {
    for block in bytes.chunks(MOST) {
        let len = block.len() as u16;
        out.push(0);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
}
