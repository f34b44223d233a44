//! Makes Blosc chunks for tests, and as a start for fuzzing.

/// Makes a Blosc chunk that stores its bytes as they are.
pub fn plain_chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = vec![2, 1, 2, 1];
    for number in [bytes.len() as u32, bytes.len() as u32, bytes.len() as u32 + 16] {
        chunk.extend(number.to_le_bytes());
    }
    chunk.extend(bytes);
    chunk
}

/// Makes a Blosc chunk with one block, whose `data` is already compressed by the codec of this
/// number.
pub fn one_block(codec: u8, flags: u8, typesize: u8, len: usize, data: &[u8]) -> Vec<u8> {
    let mut chunk = vec![2, 1, codec << 5 | flags | 16, typesize];
    for number in [len as u32, len as u32, data.len() as u32 + 24, 20, data.len() as u32] {
        chunk.extend(number.to_le_bytes());
    }
    chunk.extend(data);
    chunk
}

/// Compresses bytes by each codec but BloscLZ; returns the numbers of the codecs and the compressed
/// bytes.
pub fn compressed(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let snappy = snap::raw::Encoder::new().compress_vec(bytes).unwrap_or_default();
    let mut zlib = vec![0; bytes.len() + 100];
    let level = libdeflater::CompressionLvl::default();
    let len = libdeflater::Compressor::new(level).zlib_compress(bytes, &mut zlib).unwrap_or_default();
    zlib.truncate(len);
    let zstd = zstd::bulk::compress(bytes, 1).unwrap_or_default();
    vec![(1, lz4_flex::block::compress(bytes)), (2, snappy), (3, zlib), (4, zstd)]
}
