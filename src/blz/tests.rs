//! Tests of the parsers with bytes made here; tests/python/test_blz.py reads files of the original programs.

use std::sync::Arc;

use super::dtype::{Dtype, Kind};
use super::samples::{compressed, file, one_block, plain_chunk};
use super::shuffle::{unshuffle_bits, unshuffle_bytes};
use super::superchunk::Superchunk;
use super::{blosclz, chunk, json};
use crate::error::ErrorKind;

fn decode(chunk: &[u8]) -> crate::error::Result<Vec<u8>> {
    let mut out = Vec::new();
    chunk::decode(chunk, 1 << 20, &mut out)?;
    Ok(out)
}

/// The opposite of [`unshuffle_bytes`].
fn shuffled(bytes: &[u8], typesize: usize) -> Vec<u8> {
    let elements = bytes.len() / typesize;
    let mut out: Vec<u8> =
        (0..typesize).flat_map(|byte| (0..elements).map(move |at| bytes[at * typesize + byte])).collect();
    out.extend(&bytes[elements * typesize..]);
    out
}

#[test]
fn every_codec_decodes() {
    let bytes: Vec<u8> = (0..4000u32).map(|at| (at / 16) as u8).collect();
    for (codec, data) in compressed(&bytes) {
        let chunk = one_block(codec, 0, 1, bytes.len(), &data);
        assert_eq!(decode(&chunk).unwrap(), bytes, "{codec}");
        // every length but the whole one, and every flipped byte of the header, is an error or other bytes
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
fn blosclz_copies_literals_and_references() {
    let mut out = b"before".to_vec();
    // three literals, then seven bytes from a distance of 3
    blosclz::decode(&[2, b'a', b'b', b'c', 0b101_00000, 2], 10, &mut out).unwrap();
    assert_eq!(out, b"beforeabcabcabca");
    // references never lead to bytes of other data, and nothing is longer than it should be
    for (data, len) in [(&[2, 1, 2, 3, 0b101_00000, 3][..], 10), (&[2, 1, 2, 3, 0b101_00000, 2], 9), (&[2, 1, 2], 3)] {
        let error = blosclz::decode(data, len, &mut vec![1; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
    }
}

#[test]
fn shuffles_are_undone() {
    let bytes: Vec<u8> = (0..1000u32).map(|at| (at * 7 + at / 13) as u8).collect();
    for typesize in [2, 3, 4, 7, 8, 16] {
        let mut out = Vec::new();
        unshuffle_bytes(&shuffled(&bytes, typesize), typesize, &mut out);
        assert_eq!(out, bytes, "{typesize}");
    }
    // eight elements of one byte: plane b has their bits b
    let mut out = Vec::new();
    unshuffle_bits(&[0b0000_0001, 0, 0, 0, 0, 0, 0, 0b1000_0000], 1, &mut out);
    assert_eq!(out, [1, 0, 0, 0, 0, 0, 0, 128]);
    out.clear();
    unshuffle_bits(&[1, 2, 3], 1, &mut out);
    assert_eq!(out, [1, 2, 3], "not a multiple of 8 elements");
}

#[test]
fn json_of_python_is_read() {
    let value =
        json::decode(b" {\"a\": NaN, \"b\": [Infinity, -Infinity], \"c NaN\": \"In\\\"finity Infinity\"}\n").unwrap();
    assert_eq!(value["a"], "NaN");
    assert_eq!(value["b"][1], "-Infinity");
    assert_eq!(value["c NaN"], "In\"finity Infinity");
    assert_eq!(json::decode(b"\n").unwrap(), serde_json::json!({}));
    for wrong in [&b"{"[..], b"\xff", b"{NaN: 1}x", b"\"\\"] {
        assert_eq!(json::decode(wrong).unwrap_err().kind(), ErrorKind::Format);
    }
}

#[test]
fn element_types_are_parsed() {
    for (text, size) in
        [("float64", 8), ("|S7", 7), ("<U5", 20), (">i4", 4), ("bool", 1), ("datetime64[D]", 8), ("'<f8'", 8)]
    {
        assert_eq!(Dtype::parse(text).unwrap().size, size, "{text}");
    }
    let record = Dtype::parse("[('a', '<i4'), (u'b', [('x', '>f8', (2, 3)), ('y', '|S3')])]").unwrap();
    assert_eq!(record.size, 4 + 48 + 3);
    assert!(!record.is_plain() && matches!(record.kind, Kind::Record(_)));
    for wrong in [
        "",
        "float65",
        "int24",
        "<q8",
        "[]x",
        "[('a', '<i4')",
        "[('a', '<i4'), ('a', '<i4')]",
        "[('a', '<i4', (0,))]",
        "x",
    ] {
        assert_eq!(Dtype::parse(wrong).map(drop).unwrap_err().kind(), ErrorKind::Format, "{wrong}");
    }
    assert_eq!(Dtype::parse("object").map(drop).unwrap_err().kind(), ErrorKind::Unsupported);
    let deep = format!("{}{}", "[('a', ".repeat(40), "'<i4'");
    assert_eq!(Dtype::parse(&deep).map(drop).unwrap_err().kind(), ErrorKind::Limit);
}

/// Headers with absurd counts are refused before memory is allocated, and damage of any byte is an error or other chunks.
#[test]
fn files_of_chunks_are_bounded() {
    let file = file(2, &[plain_chunk(b"abcd"), plain_chunk(b"efgh")]);
    let open = |file: &[u8]| Superchunk::open(Arc::new(file.to_vec()));
    let opened = open(&file).unwrap();
    let mut out = Vec::new();
    opened.decode(0, 4, &mut out).unwrap();
    opened.decode(1, 4, &mut out).unwrap();
    assert_eq!(out, b"abcdefgh");
    let read = |file: &[u8]| {
        let opened = open(file)?;
        let mut out = Vec::new();
        (0..opened.chunks.len()).try_for_each(|chunk| opened.decode(chunk, 1 << 20, &mut out))?;
        Ok::<_, crate::error::Error>(out)
    };
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut changed = file.clone();
            changed[at] ^= 1 << bit;
            match read(&changed) {
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Limit), "byte {at}: {error}")
                }
                // the chunks themselves have checksums
                Ok(_) => assert!(at < 48, "byte {at}"),
            }
        }
    }
    for len in 0..file.len() {
        assert!(read(&file[..len]).is_err(), "{len}");
    }
}
