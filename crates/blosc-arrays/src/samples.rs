//! Files of chunks and arrays made here, for tests and as a start for fuzzing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use crate::blosc::samples::plain_chunk;
use crate::blosc::samples::{compressed, one_block};
use crate::checksum::Checksum;
use crate::error::{Error, Result};
use crate::superchunk::Superchunk;

/// A file of version 2 with offsets and these chunks, and a checksum of each.
pub fn file(checksum: u8, chunks: &[Vec<u8>]) -> Vec<u8> {
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
pub fn files() -> Vec<Vec<u8>> {
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
pub fn read(bytes: &[u8]) -> Result<()> {
    let opened = Superchunk::open(Arc::new(bytes.to_vec()))?;
    let mut out = Vec::new();
    for place in opened.walk() {
        let place = place?;
        if place.bytes() > 1 << 20 {
            return Err(Error::limit("a chunk that is larger than any of the samples"));
        }
        out.clear();
        opened.decode(&place, &mut out)?;
        assert_eq!(out.len() as u64, place.bytes(), "a chunk decodes to the bytes that it states");
        opened.stored_whole(&place)?;
    }
    Ok(())
}

/// Writes an array in the form of bcolz at `path`: the documents, and a chunk of each of `chunks`.
pub fn array(path: &Path, storage: &str, sizes: &str, chunks: &[&[u8]]) -> PathBuf {
    let _ = std::fs::remove_dir_all(path);
    std::fs::create_dir_all(path.join("meta")).unwrap();
    std::fs::create_dir_all(path.join("data")).unwrap();
    std::fs::write(path.join("meta/storage"), storage).unwrap();
    std::fs::write(path.join("meta/sizes"), sizes).unwrap();
    for (number, chunk) in chunks.iter().enumerate() {
        let file = [&b"blpk\x01\0\0\0\x01\0\0\0\0\0\0\0"[..], &plain_chunk(chunk)].concat();
        std::fs::write(path.join(format!("data/__{number}.blp")), file).unwrap();
    }
    path.to_owned()
}
