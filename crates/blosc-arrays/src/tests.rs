//! Tests of the parsers with bytes made here; tests/python/formats/test_blz.py reads files of the
//! original programs.

use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use crate::dtype::{Dtype, Kind};
use crate::error::{Fails, Result};
use crate::json::{self, Document};
use crate::samples::{array, file, plain_chunk};
use crate::superchunk::Superchunk;
use crate::{ArrayFormat, Arrays, ErrorKind, Writer};

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
        assert_eq!(text.parse::<Dtype>().unwrap().size, size, "{text}");
    }
    let record = "[('a', '<i4'), (u'b', [('x', '>f8', (2, 3)), ('y', '|S3')])]".parse::<Dtype>().unwrap();
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
        assert_eq!(wrong.parse::<Dtype>().map(drop).unwrap_err().kind(), ErrorKind::Format, "{wrong}");
    }
    assert_eq!("object".parse::<Dtype>().map(drop).unwrap_err().kind(), ErrorKind::Unsupported);
    let deep = format!("{}{}", "[('a', ".repeat(40), "'<i4'");
    assert_eq!(deep.parse::<Dtype>().map(drop).unwrap_err().kind(), ErrorKind::Limit);
}

/// Absurd counts are refused before memory is allocated; damage is an error or other chunks.
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
        let dtype = text.parse::<Dtype>().unwrap();
        assert_eq!((dtype.code().as_str(), dtype.to_string().as_str()), (code, name), "{text}");
        assert_eq!(dtype.to_string().parse::<Dtype>().unwrap(), dtype);
    }
    let text = "[('a', '<i4'), ('b', [('x', '>f8', (2, 3)), ('y', '|S3')]), ('c', '<f4', (4,))]";
    assert_eq!(text.parse::<Dtype>().unwrap().code(), text);
}

#[test]
fn defaults_are_elements() {
    let fill = |text: &str, dflt| text.parse::<Dtype>().unwrap().fill(&dflt);
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

#[test]
fn elements_round_trip_through_their_neutral_form() {
    for (text, element) in [
        (">i4", &[1, 2, 3, 4][..]),
        (">c8", &[1, 2, 3, 4, 5, 6, 7, 8]),
        ("<U2", &[0xe9, 0, 0, 0, 0, 0xf6, 1, 0]),
        (">U2", &[0, 0, 0, 0x41, 0, 0, 0, 0]),
        ("[('a', '>i2'), ('b', '<U1', (2,))]", &[1, 2, 0x41, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let dtype = text.parse::<Dtype>().unwrap();
        let mut bytes = element.to_vec();
        dtype.convert(&mut bytes).unwrap();
        assert_ne!(bytes, element, "{text}");
        dtype.restore(&mut bytes).unwrap();
        assert_eq!(bytes, element, "{text}");
    }
    let text = "<U1".parse::<Dtype>().unwrap();
    assert_eq!(text.restore(&mut b"ab\0\0".to_vec()).unwrap_err().kind(), ErrorKind::Format);
    assert_eq!(text.restore(&mut [0xff, 0, 0, 0]).unwrap_err().kind(), ErrorKind::Format);
    refused(text.convert(&mut [0, 0, 0x11, 0]), ErrorKind::Format, "0x110000 is not a Unicode character");
}

#[test]
fn documents_are_written_as_python_does() {
    let document = Document::new(json!({"a": [1, 2.5], "b": {"c": "é\""}, "d": null}));
    assert_eq!(document.text, "{\"a\": [1, 2.5], \"b\": {\"c\": \"é\\\"\"}, \"d\": null}");
    assert_eq!(Document::decode(document.text.as_bytes()).unwrap(), document);
}

/// `metadata` are in their stored form.
fn with_metadata(codec: u8, plain: u32, stored: &[u8], space: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut file = vec![b'b', b'l', b'p', b'k', 3, 2, 0, 1];
    file.extend([-1i32; 2].into_iter().flat_map(i32::to_le_bytes));
    file.extend((chunks.len() as i64).to_le_bytes());
    file.extend([0; 8]);
    file.extend(b"JSON\0\0\0\0");
    file.extend([0, 0, codec, 0]);
    file.extend([plain, space, stored.len() as u32].into_iter().flat_map(u32::to_le_bytes));
    file.extend([0; 8]);
    assert_eq!(file.len(), 64);
    file.extend(stored);
    file.resize(64 + space as usize, 0);
    chunks.iter().for_each(|chunk| file.extend(chunk));
    file
}

#[track_caller]
fn refused<T>(result: Result<T>, kind: ErrorKind, says: &str) {
    result.fails(kind, says);
}

/// Bytes in chunks of four.
const PLAIN: &str = r#"{"dtype": "uint8", "chunklen": 4}"#;

const FOUR: &str = r#"{"shape": [4]}"#;

fn export(path: &Path, out: &Path, format: ArrayFormat) -> Result<()> {
    let arrays = Arrays::open(path)?;
    let (_, _) = (std::fs::remove_dir_all(out), std::fs::remove_file(out));
    Writer::new(&arrays).format(format).write(out, &())
}

#[test]
fn inconsistent_documents_of_an_array_are_errors() {
    use ErrorKind::Format;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let open = |storage: &str, sizes: &str| Arrays::open(array(&path, storage, sizes, &[b"abcd"]));
    let check = |storage: &str, sizes: &str| open(storage, sizes)?.check(&());
    check(PLAIN, FOUR).unwrap();
    refused(open("{}", FOUR), Format, "meta/storage has no dtype");
    refused(open(r#"{"dtype": "uint8"}"#, FOUR), Format, "meta/storage has no chunklen of 1 or more");
    refused(open(PLAIN, r#"{"shape": 4}"#), Format, "meta/sizes: the shape is not a list of 1 to 32 extents");
    refused(
        open(PLAIN, r#"{"shape": [4, 5000000000]}"#),
        Format,
        "rows of shape [5000000000] are longer than a chunk can be",
    );
    refused(
        check(PLAIN, r#"{"shape": [9]}"#),
        Format,
        "array: the shape takes 9 bytes, but the chunks have 4: __1.blp is missing",
    );
    array(&path, PLAIN, FOUR, &[b"abcd"]);
    std::fs::write(path.join("__attrs__"), "[1]").unwrap();
    refused(Arrays::open(&path), Format, "the attributes are not a JSON object");
}

#[test]
fn inconsistent_documents_of_a_table_are_errors() {
    use ErrorKind::Format;
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t");
    for (name, sizes) in [("x", FOUR), ("y", r#"{"shape": [3]}"#)] {
        array(&table.join(name), PLAIN, sizes, &[b"abcd"]);
    }
    std::fs::write(table.join("__rootdirs__"), r#"{"names": ["x", "y"]}"#).unwrap();
    refused(Arrays::open(&table), Format, "column y has 3 rows, the first one 4");
    std::fs::write(table.join("__rootdirs__"), r#"{"dirs": {}}"#).unwrap();
    refused(Arrays::open(&table), Format, "__rootdirs__: its list of names is missing");
}

#[test]
fn inconsistent_headers_of_bloscpack_files_are_errors() {
    use ErrorKind::{Format, Limit, Unsupported};
    let dir = tempfile::tempdir().unwrap();
    let (file, out) = (dir.path().join("f.blp"), dir.path().join("out"));
    let of_file = |bytes: Vec<u8>| {
        std::fs::write(&file, bytes).unwrap();
        export(&file, &out, ArrayFormat::Blz)
    };
    let json = br#"{"container": "numpy", "dtype": "uint8", "shape": [9]}"#;
    let chunks = [plain_chunk(b"abcd")];
    let whole = |json: &[u8]| with_metadata(0, json.len() as u32, json, 100, &chunks);
    refused(of_file(whole(json)), Format, "array: the shape takes 9 bytes, but the chunks have 4");
    let fortran = br#"{"container": "numpy", "dtype": "uint8", "shape": [300000, 300000], "order": "F"}"#;
    refused(
        of_file(whole(fortran)),
        Limit,
        "the array in Fortran order has 90000000000 bytes; the limit is 1073741824",
    );
    let len = json.len() as u32;
    refused(
        of_file(with_metadata(0, len, json, 10, &chunks)),
        Format,
        "metadata at byte 32: the metadata has 54 bytes, stored as 54, but the file reserves 10",
    );
    refused(
        of_file(with_metadata(7, len, json, 100, &chunks)),
        Format,
        "the codec of the metadata is 7, expected 0 or 1",
    );
    refused(of_file(with_metadata(1, len, json, 100, &chunks)), Format, "the zlib data cannot be decoded");
    refused(
        of_file(with_metadata(0, 50, json, 100, &chunks)),
        Format,
        "the metadata have 54 bytes, but their header states 50",
    );
    let name = dir.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    std::fs::write(&name, whole(json)).unwrap();
    refused(Arrays::open(&name), Unsupported, "the file's name is not UTF-8");
}

#[test]
fn arrays_too_large_for_a_format_are_refused() {
    use ErrorKind::{Format, Unsupported, Usage};
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("a"), dir.path().join("out"));
    refused("npy".parse::<ArrayFormat>(), Usage, "\"npy\" is not a format of arrays; expected blz, bcolz or bloscpack");
    let one_chunk = |rows: u64, format: ArrayFormat| {
        let storage = format!(r#"{{"dtype": "uint8", "chunklen": {rows}}}"#);
        array(&path, &storage, &format!(r#"{{"shape": [{rows}, 8]}}"#), &[b"abcd"]);
        export(&path, &out, format)
    };
    refused(
        one_chunk(1 << 40, ArrayFormat::Bloscpack),
        Unsupported,
        "chunks have 2 GiB or more, which bloscpack cannot store",
    );
    refused(
        one_chunk(1 << 61, ArrayFormat::Bcolz),
        Unsupported,
        "chunks have 2^64 bytes or more, which Blosc cannot store",
    );
    refused(
        one_chunk(1 << 61, ArrayFormat::Bloscpack),
        Format,
        "2305843009213693952 rows of 8 bytes exceed 2^63 bytes",
    );
    let unknown = r#"{"dtype": "uint8", "chunklen": 4, "cparams": {"cname": "brotli"}}"#;
    array(&path, unknown, FOUR, &[b"abcd"]);
    refused(export(&path, &out, ArrayFormat::Bcolz), Format, "the codec \"brotli\" is not one of Blosc");
}

/// A table has several arrays, and the fields of an array of records may have directories.
#[test]
fn arrays_of_other_structure_than_a_format_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (path, table, out) = (dir.path().join("a"), dir.path().join("t"), dir.path().join("out"));
    array(&table.join("x"), PLAIN, FOUR, &[b"abcd"]);
    std::fs::write(table.join("__rootdirs__"), r#"{"names": ["x"]}"#).unwrap();
    refused(
        export(&table, &out, ArrayFormat::Bloscpack),
        ErrorKind::Usage,
        "a bloscpack file has one array, this is a table: name a column",
    );
    let records = r#"{"dtype": "[('a', [('b', '|u1')])]", "chunklen": 4}"#;
    array(&path, records, FOUR, &[]);
    array(&path.join("data/a/b"), PLAIN, FOUR, &[]);
    std::fs::rename(path.join("data/a/b/data"), path.join("data/a/c")).unwrap();
    std::fs::remove_dir_all(path.join("data/a/b")).unwrap();
    std::fs::rename(path.join("data/a/c"), path.join("data/a/b")).unwrap();
    refused(
        export(&path, &out, ArrayFormat::Bcolz),
        ErrorKind::Unsupported,
        "column \"a/b\" is a field of a record, which bcolz does not have",
    );
}

#[test]
fn arrays_in_memory_need_a_format() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new");
    let arrays = Arrays::of_bytes("uint8", &[4], 4, b"abcd".to_vec()).unwrap();
    refused(
        Writer::new(&arrays).write(&out, &()),
        ErrorKind::Usage,
        "the arrays did not come from blz, bcolz or bloscpack: name the format to write",
    );
    assert!(!out.exists());
    Writer::new(&arrays).format(ArrayFormat::Bcolz).write(&out, &()).unwrap();
    let again = Writer::new(&arrays).format(ArrayFormat::Bcolz).write(&out, &());
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Exists);
}

/// A difference in the first of many chunks: the other chunks are not read.
#[test]
fn comparison_ends_at_the_first_difference() {
    let dir = tempfile::tempdir().unwrap();
    let made = |name: &str, numbers: RangeInclusive<u8>| {
        let chunks: Vec<Vec<u8>> = numbers.map(|number| vec![number; 4]).collect();
        let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        Arrays::open(array(&dir.path().join(name), PLAIN, r#"{"shape": [800]}"#, &chunks)).unwrap()
    };
    let found = made("left", 0..=199).compare(&made("right", 1..=200), &()).unwrap();
    assert_eq!(found.differences.len(), 1);
}

#[test]
fn types_of_one_form_are_compared() {
    let is_like =
        |left: &str, right: &str| left.parse::<Dtype>().unwrap().is_like(&right.parse::<Dtype>().unwrap()).unwrap();
    for (left, right) in [
        (">i4", "int32"),
        ("datetime64[s]", "int64"),
        ("<U2", ">U2"),
        ("[('a', '>f8', (2,)), ('b', 'm8[s]')]", "[('a', '<f8', (2,)), ('b', '<i8')]"),
    ] {
        assert!(is_like(left, right), "{left} {right}");
    }
    for (left, right) in [
        ("int32", "uint32"),
        ("int32", "int64"),
        ("<U2", "|S8"),
        ("[('a', '<f8')]", "[('b', '<f8')]"),
        ("[('a', '<f8')]", "[('a', '<f8'), ('b', '<f8')]"),
        ("[('a', '<f8', (2,))]", "[('a', '<f8', (2, 1))]"),
    ] {
        assert!(!is_like(left, right), "{left} {right}");
    }
    let record = "[('a', '<f8'), ('b', '|S0')]".parse::<Dtype>().unwrap();
    record.is_like(&record).fails(ErrorKind::Unsupported, "the elements have 0 bytes, which HDF5 does not have");
}

#[test]
fn arrays_in_memory_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..3000u32).flat_map(u32::to_be_bytes).collect();
    let arrays = Arrays::of_bytes(">i4", &[1000, 3], 64, bytes.clone()).unwrap();
    for format in ArrayFormat::ALL {
        for codec in ["lz4", "snappy", "zlib", "zstd"] {
            let path = dir.path().join(format!("{format}.{codec}"));
            Writer::new(&arrays).format(format).compression(codec.parse().unwrap(), Some(1)).write(&path, &()).unwrap();
            assert!(Arrays::are_at(&path), "{format} {codec}");
            let read = Arrays::open(&path).unwrap();
            let info = &read.list().unwrap()[0];
            assert_eq!((info.shape.as_slice(), info.codec.as_deref()), (&[1000, 3][..], Some(codec)), "{format}");
            assert_eq!(read.format(), Some(format));
            assert!(read.compare(&arrays, &()).unwrap().differences.is_empty(), "{format} {codec}");
            let mut found = Vec::new();
            let mut take = |piece: &[u8]| {
                found.extend_from_slice(piece);
                Ok(())
            };
            read.read("array", &(), &mut take).unwrap();
            assert!(found == bytes, "{format} {codec}");
        }
    }
    arrays
        .read("arrya", &(), &mut |_| Ok(()))
        .fails(ErrorKind::NotFound, "the array arrya does not exist; did you mean array?");
    let of = |dtype: &str, shape: &[u64]| Arrays::of_bytes(dtype, shape, 64, bytes.clone());
    of("int32", &[]).fails(ErrorKind::Usage, "an array has 1 to 32 axes, the shape has 0");
    of("int32", &[7]).fails(ErrorKind::Usage, "the shape takes 28 bytes, but 12000 are given");
}
