//! Files of chunks made here, for tests and as a start for fuzzing.

use std::sync::Arc;

use super::checksum::Checksum;
use super::superchunk::Superchunk;
use crate::error::Result;

/// A chunk of plain bytes.
pub(super) fn plain_chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = vec![2, 1, 2, 1];
    for number in [bytes.len() as u32, bytes.len() as u32, bytes.len() as u32 + 16] {
        chunk.extend(number.to_le_bytes());
    }
    chunk.extend(bytes);
    chunk
}

/// A chunk with one block that is compressed by the codec of this number.
pub(super) fn one_block(codec: u8, flags: u8, typesize: u8, len: usize, data: &[u8]) -> Vec<u8> {
    let mut chunk = vec![2, 1, codec << 5 | flags | 16, typesize];
    for number in [len as u32, len as u32, data.len() as u32 + 24, 20, data.len() as u32] {
        chunk.extend(number.to_le_bytes());
    }
    chunk.extend(data);
    chunk
}

/// Bytes compressed by each codec but BloscLZ, with its number.
pub(super) fn compressed(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let snappy = snap::raw::Encoder::new().compress_vec(bytes).unwrap_or_default();
    let mut zlib = vec![0; bytes.len() + 100];
    let level = libdeflater::CompressionLvl::default();
    let len = libdeflater::Compressor::new(level).zlib_compress(bytes, &mut zlib).unwrap_or_default();
    zlib.truncate(len);
    let zstd = zstd::bulk::compress(bytes, 1).unwrap_or_default();
    vec![(1, lz4_flex::block::compress(bytes)), (2, snappy), (3, zlib), (4, zstd)]
}

/// A file of version 2 with offsets and these chunks, and a checksum of each.
pub(super) fn file(checksum: u8, chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut file = vec![b'b', b'l', b'p', b'k', 2, 1, checksum, 1];
    file.extend([-1i32; 2].into_iter().flat_map(i32::to_le_bytes));
    file.extend((chunks.len() as i64).to_le_bytes());
    file.extend([0; 8]);
    let kind = Checksum::of_number(checksum).unwrap_or(Checksum::NONE);
    let mut position = file.len() + 8 * chunks.len();
    for chunk in chunks {
        file.extend((position as i64).to_le_bytes());
        position += chunk.len() + kind.len();
    }
    for chunk in chunks {
        file.extend(chunk);
        file.extend(kind.of(chunk));
    }
    file
}

/// Files with each codec, each shuffle and some kinds of checksums.
pub(crate) fn files() -> Vec<Vec<u8>> {
    let bytes: Vec<u8> = (0..2400u32).map(|at| (at / 16) as u8).collect();
    let mut files = Vec::new();
    for (at, (codec, data)) in compressed(&bytes).into_iter().enumerate() {
        for flags in [0, 1, 4] {
            let chunk = one_block(codec, flags, 4, bytes.len(), &data);
            files.push(file([0, 1, 2, 6][at], &[chunk, plain_chunk(b"plain bytes")]));
        }
    }
    let lz = one_block(0, 0, 1, 10, &[2, b'a', b'b', b'c', 0b101_00000, 2]);
    files.push(file(0, &[lz]));
    files
}

/// Reads all chunks of a file.
///
/// # Errors
/// `Format` if it is damaged.
pub(crate) fn read(bytes: &[u8]) -> Result<()> {
    let opened = Superchunk::open(Arc::new(bytes.to_vec()))?;
    let mut out = Vec::new();
    for chunk in 0..opened.chunks.len() {
        out.clear();
        opened.decode(chunk, 1 << 20, &mut out)?;
        assert_eq!(out.len(), opened.chunks[chunk].bytes as usize, "a chunk decodes to the bytes that it states");
    }
    Ok(())
}
