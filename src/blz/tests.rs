//! Tests of the parsers with bytes made here; tests/python/test_blz.py reads files of the original programs.

use std::sync::Arc;

use serde_json::json;

use super::dtype::{Dtype, Kind};
use super::json;
use super::json::Document;
use super::samples::{file, plain_chunk};
use super::superchunk::Superchunk;
use crate::error::{ErrorKind, Result};

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
    let read = |file: &[u8]| -> Result<Vec<u8>> {
        let opened = Superchunk::open(Arc::new(file.to_vec()))?;
        let mut out = Vec::new();
        opened.walk().try_for_each(|place| opened.decode(&place?, &mut out))?;
        Ok(out)
    };
    assert_eq!(read(&file).unwrap(), b"abcdefgh");
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

#[test]
fn types_are_spelled_as_python_does() {
    for (text, code, name) in [
        ("float64", "<f8", "float64"),
        ("<i4", "<i4", "int32"),
        (">i4", ">i4", ">i4"),
        ("bool", "|b1", "bool"),
        ("u1", "|u1", "uint8"),
        ("|S7", "|S7", "|S7"),
        ("<U5", "<U5", "<U5"),
        ("datetime64[D]", "<M8[D]", "datetime64[D]"),
        (">m8[ns]", ">m8[ns]", ">m8[ns]"),
        ("complex64", "<c8", "complex64"),
    ] {
        let dtype = Dtype::parse(text).unwrap();
        assert_eq!((dtype.code().as_str(), dtype.name().as_str()), (code, name), "{text}");
        assert_eq!(Dtype::parse(&dtype.name()).unwrap(), dtype);
    }
    let text = "[('a', '<i4'), ('b', [('x', '>f8', (2, 3)), ('y', '|S3')]), ('c', '<f4', (4,))]";
    assert_eq!(Dtype::parse(text).unwrap().code(), text);
}

#[test]
fn defaults_are_elements() {
    let fill = |text: &str, dflt| Dtype::parse(text).unwrap().fill(&dflt);
    assert_eq!(fill("int32", json!(7)).unwrap(), [7, 0, 0, 0]);
    assert_eq!(fill(">i2", json!(-2.9)).unwrap(), [0xff, 0xfe]);
    assert_eq!(fill("uint8", json!(256)), None);
    assert_eq!(fill("int8", json!(-128)).unwrap(), [0x80]);
    assert_eq!(fill("uint64", json!(u64::MAX)).unwrap(), [0xff; 8]);
    assert_eq!(fill("float64", json!([[0.5, 0.5], [0.5, 0.5]])).unwrap(), 0.5f64.to_le_bytes());
    assert_eq!(fill("float64", json!([0.5, 0.25])), None);
    assert!(f32::from_le_bytes(fill("float32", json!("NaN")).unwrap().try_into().unwrap()).is_nan());
    for (number, half) in
        [(1., 0x3c00u16), (-2., 0xc000), (65504., 0x7bff), (1e9, 0x7c00), (2f64.powi(-24), 1), (0., 0)]
    {
        assert_eq!(fill("float16", json!(number)).unwrap(), half.to_le_bytes(), "{number}");
    }
    assert_eq!(fill("float16", json!("-Infinity")).unwrap(), [0, 0xfc]);
    assert_eq!(fill("bool", json!(true)).unwrap(), [1]);
    assert_eq!(fill("|S3", json!("ab")).unwrap(), b"ab\0");
    assert_eq!(fill("|S3", json!("abcd")), None);
    assert_eq!(fill(">U2", json!("é")).unwrap(), [0, 0, 0, 0xe9, 0, 0, 0, 0]);
    assert_eq!(fill("datetime64[s]", json!("NaT")).unwrap(), i64::MIN.to_le_bytes());
    assert_eq!(fill("[('a', '<i2'), ('b', '|S2', (2,))]", json!([1, "x"])).unwrap(), b"\x01\0x\0x\0");
    assert_eq!(fill("[('a', '<i2'), ('b', '|S2')]", json!([1])), None);
}

/// What HDF5 has of an element becomes the element again.
#[test]
fn elements_come_back() {
    for (text, element) in [
        (">i4", &[1, 2, 3, 4][..]),
        (">c8", &[1, 2, 3, 4, 5, 6, 7, 8]),
        ("<U2", &[0xe9, 0, 0, 0, 0, 0xf6, 1, 0]),
        (">U2", &[0, 0, 0, 0x41, 0, 0, 0, 0]),
        ("[('a', '>i2'), ('b', '<U1', (2,))]", &[1, 2, 0x41, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let dtype = Dtype::parse(text).unwrap();
        let mut bytes = element.to_vec();
        dtype.convert(&mut bytes).unwrap();
        assert_ne!(bytes, element, "{text}");
        dtype.restore(&mut bytes).unwrap();
        assert_eq!(bytes, element, "{text}");
    }
    let text = Dtype::parse("<U1").unwrap();
    assert_eq!(text.restore(&mut b"ab\0\0".to_vec()).unwrap_err().kind(), ErrorKind::Format);
    assert_eq!(text.restore(&mut [0xff, 0, 0, 0]).unwrap_err().kind(), ErrorKind::Format);
}

#[test]
fn documents_are_written_as_python_does() {
    let document = Document::new(json!({"a": [1, 2.5], "b": {"c": "é\""}, "d": null}));
    assert_eq!(document.text, "{\"a\": [1, 2.5], \"b\": {\"c\": \"é\\\"\"}, \"d\": null}");
    assert_eq!(Document::decode(document.text.as_bytes()).unwrap(), document);
}
