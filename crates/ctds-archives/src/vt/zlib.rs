//! zlib streams of blocks: by libdeflate, with the feature of that name, or by zlib-rs. Each reads
//! the streams of the other; the bytes that they compress to differ.

#[cfg(feature = "libdeflate")]
pub(super) use by_libdeflate::{deflate, inflate};
#[cfg(not(feature = "libdeflate"))]
pub(super) use by_zlib_rs::{deflate, inflate};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InflateError {
    /// Also where a stream is cut off just when the space is filled.
    InsufficientSpace,
    Damaged,
}

#[cfg(feature = "libdeflate")]
mod by_libdeflate {
    use std::cell::RefCell;

    use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

    use crate::vt::zlib::InflateError;

    thread_local! {
        static COMPRESSOR: RefCell<Compressor> = RefCell::new(Compressor::new(CompressionLvl::fastest()));
        static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
    }

    pub(in super::super) fn inflate(stream: &[u8], out: &mut [u8]) -> Result<usize, InflateError> {
        let inflated = DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.zlib_decompress(stream, out));
        inflated.map_err(|error| match error {
            DecompressionError::InsufficientSpace => InflateError::InsufficientSpace,
            DecompressionError::BadData => InflateError::Damaged,
        })
    }

    /// `None` if the bytes do not fit.
    pub(in super::super) fn deflate(block: &[u8], out: &mut [u8]) -> Option<usize> {
        COMPRESSOR.with_borrow_mut(|compressor| compressor.zlib_compress(block, out)).ok()
    }
}

#[cfg(any(test, not(feature = "libdeflate")))]
pub(super) mod by_zlib_rs {
    use zlib_rs::{DeflateConfig, InflateConfig, ReturnCode, compress_slice, decompress_slice};

    use crate::vt::zlib::InflateError;

    /// The fastest level that makes Huffman codes for each stream.
    const LEVEL: i32 = 2;

    pub(in super::super) fn inflate(stream: &[u8], out: &mut [u8]) -> Result<usize, InflateError> {
        match decompress_slice(out, stream, InflateConfig::default()) {
            (inflated, ReturnCode::Ok) => Ok(inflated.len()),
            (_, ReturnCode::BufError) => Err(InflateError::InsufficientSpace),
            _ => Err(InflateError::Damaged),
        }
    }

    /// `None` if the bytes do not fit.
    pub(in super::super) fn deflate(block: &[u8], out: &mut [u8]) -> Option<usize> {
        let (deflated, ended) = compress_slice(out, block, DeflateConfig::new(LEVEL));
        (ended == ReturnCode::Ok).then_some(deflated.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Inflate = fn(&[u8], &mut [u8]) -> Result<usize, InflateError>;

    const INFLATES: &[Inflate] = &[
        by_zlib_rs::inflate,
        #[cfg(feature = "libdeflate")]
        by_libdeflate::inflate,
    ];

    #[cfg(feature = "libdeflate")]
    fn deflate_well(block: &[u8], out: &mut [u8]) -> Option<usize> {
        libdeflater::Compressor::default().zlib_compress(block, out).ok()
    }

    #[test]
    fn streams_of_each_are_read_by_all() {
        let deflates = [
            by_zlib_rs::deflate,
            #[cfg(feature = "libdeflate")]
            deflate_well,
        ];
        for inflate in INFLATES {
            for block in [&b""[..], b"block", &[7; 100_000]] {
                for deflate in deflates {
                    let mut stream = [0; 1000];
                    let len = deflate(block, &mut stream).unwrap();
                    let mut back = vec![1; block.len() + 1];
                    assert_eq!(inflate(&stream[..len], &mut back), Ok(block.len()));
                    assert_eq!(&back[..block.len()], block);
                }
            }
            // by zlib, level 9
            let mut back = [0; 17];
            let stream = b"\x78\xda\x2b\x2b\x51\x28\x43\x41\x00\x37\x13\x06\x1d";
            assert_eq!((inflate(stream, &mut back), &back), (Ok(17), b"vt vt vt vt vt vt"));
        }
    }

    #[test]
    fn too_little_space_and_damage_are_told_apart() {
        let mut stream = [0; 1000];
        for deflate in [deflate, by_zlib_rs::deflate] {
            assert_eq!(deflate(&[7; 100_000], &mut stream[..9]), None);
        }
        let len = by_zlib_rs::deflate(&[7; 100_000], &mut stream).unwrap();
        for inflate in INFLATES {
            let mut stream = stream;
            let mut back = vec![0; 100_001];
            assert_eq!(inflate(&stream[..len], &mut back[2..]), Err(InflateError::InsufficientSpace));
            assert_eq!(inflate(&stream[..len - 1], &mut back), Err(InflateError::Damaged));
            stream[len - 1] ^= 1;
            assert_eq!(inflate(&stream[..len], &mut back), Err(InflateError::Damaged));
            assert_eq!(inflate(&[1, 2, 3], &mut back), Err(InflateError::Damaged));
        }
    }
}
