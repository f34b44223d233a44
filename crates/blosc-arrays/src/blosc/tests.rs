//! Tests with chunks made here; tests/python/formats/test_blz.py reads those of Blosc itself.

use super::{BloscCodec, ChunkHeader, ChunkSettings, HEADER_BYTES, blosclz, check, encode};
use crate::blosc::samples::{compressed, one_block, plain_chunk};
use crate::error::{ErrorKind, Fails, Result};

fn decode(chunk: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    super::decode(chunk, 1 << 20, &mut out)?;
    Ok(out)
}

#[test]
fn every_codec_decodes() {
    let bytes: Vec<u8> = (0..4000u32).map(|at| (at / 16) as u8).collect();
    for (codec, data) in compressed(&bytes) {
        let chunk = one_block(codec, 0, 1, bytes.len(), &data);
        assert_eq!(decode(&chunk).unwrap(), bytes, "{codec}");
        // every length but the whole one, and every flipped byte of the header, is an error or
        // other bytes
        for len in 0..chunk.len() {
            assert!(decode(&chunk[..len]).is_err(), "{codec}: {len}");
        }
        for at in 0..24 {
            for bit in 0..8 {
                let mut changed = chunk.clone();
                changed[at] ^= 1 << bit;
                if let Err(error) = decode(&changed) {
                    assert_eq!(error.kind(), ErrorKind::Format, "{codec}: byte {at}: {error}");
                }
            }
        }
    }
    assert_eq!(decode(&plain_chunk(b"plain")).unwrap(), b"plain");
    assert_eq!(decode(&plain_chunk(b"")).unwrap(), b"");
}

#[test]
fn codecs_have_names() {
    assert_eq!("blosclz".parse::<BloscCodec>().unwrap(), BloscCodec::Lz4);
    "lzma".parse::<BloscCodec>().fails(ErrorKind::Format, "the codec \"lzma\" is not one of Blosc");
}

#[test]
fn blosclz_copies_literals_and_references() {
    let mut out = [0; 10];
    // three literals, then seven bytes from a distance of 3
    assert_eq!(blosclz::decode(&[2, b'a', b'b', b'c', 0b101_00000, 2], &mut out), Some(10));
    assert_eq!(&out, b"abcabcabca");
    // references lead to decoded bytes only, and nothing is longer than it should be
    for (data, len) in [(&[2, 1, 2, 3, 0b101_00000, 3][..], 10), (&[2, 1, 2, 3, 0b101_00000, 2], 9), (&[2, 1, 2], 3)] {
        assert_eq!(blosclz::decode(data, &mut out[..len]), None);
    }
}

/// Bytes that compress, and some that do not.
fn samples() -> Vec<Vec<u8>> {
    let noise = |i: u32| (i.wrapping_mul(2_654_435_761) >> 13) as u8;
    let numbers = |count: u32| (0..count).flat_map(|i| (i / 5).to_le_bytes()).collect::<Vec<u8>>();
    let mut samples = vec![Vec::new(), vec![7; 5], vec![7; 127], vec![0; 128], (0..3000).map(noise).collect()];
    samples.extend([numbers(250), numbers(200_001), [numbers(70_000), vec![1, 2, 3]].concat()]);
    samples
}

#[test]
fn chunks_round_trip() {
    for codec in [BloscCodec::Lz4, BloscCodec::Snappy, BloscCodec::Zlib, BloscCodec::Zstd] {
        for (level, shuffle, typesize) in
            [(5, true, 4), (5, false, 4), (1, true, 3), (9, true, 8), (5, true, 300), (0, true, 4)]
        {
            let settings = ChunkSettings { codec, level, shuffle, typesize };
            for bytes in samples() {
                let mut chunk = Vec::new();
                encode(&bytes, &settings, &mut chunk).unwrap();
                assert!(chunk.len() <= bytes.len() + HEADER_BYTES);
                let header = ChunkHeader::decode(chunk.first_chunk().unwrap()).unwrap();
                assert_eq!((header.bytes as usize, header.stored as usize), (bytes.len(), chunk.len()));
                check(&chunk).unwrap();
                assert!(decode(&chunk).unwrap() == bytes, "{settings:?}: {} bytes", bytes.len());
                if level > 0 && typesize == 4 && bytes.len() > 100_000 {
                    assert!(chunk.len() < bytes.len() * 3 / 4, "{settings:?}: {} of {}", chunk.len(), bytes.len());
                    assert_eq!(header.codec(), codec.name());
                    assert_eq!(header.compressor(), Some(settings.compressor()));
                }
            }
        }
    }
}

#[test]
fn check_finds_missing_bytes_without_decoding() {
    let settings = ChunkSettings { codec: BloscCodec::Lz4, level: 5, shuffle: true, typesize: 4 };
    let mut chunk = Vec::new();
    encode(&samples()[6], &settings, &mut chunk).unwrap();
    for len in (0..chunk.len()).step_by(997) {
        let mut cut = chunk[..len].to_vec();
        assert_eq!(check(&cut).unwrap_err().kind(), ErrorKind::Format);
        if len >= HEADER_BYTES {
            cut[12..16].copy_from_slice(&(len as u32).to_le_bytes());
            assert_eq!(check(&cut).unwrap_err().kind(), ErrorKind::Format, "{len}");
        }
    }
}
