//! One kind of damage each, and what the message must say of it: file, structure, offset, what was
//! expected.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use ctds_hdf5::convert::Source;
use ctds_hdf5::{ErrorKind, Table};
use ctds_hdf5_testing::{Copy, Watch, fields_of, find, tables_below, testdata};

use super::{convert, limit_memory, read_all};

const STANDARD: &str = "dtypes_all_managers/StandardStMan_little.tab";
const INCREMENTAL: &str = "dtypes_all_managers/IncrementalStMan_big.tab";
const AIPSIO: &str = "dtypes_all_managers/StManAipsIO_little.tab";
const TILED: &str = "dtypes_tiled/TiledShapeStMan_float_big.tab";

/// Reading and converting fail with a message that has all of `parts`, in one line, and leave
/// nothing behind.
#[track_caller]
fn fails(copy: &Copy, kind: ErrorKind, parts: &[&str]) {
    limit_memory();
    for (what, result) in [("read", read_all(&copy.path())), ("convert", convert(&copy.path(), &copy.beside("out.h5")))]
    {
        let Err(error) = result else { panic!("{what}: no error where {parts:?} is expected") };
        let message = error.to_string();
        assert_eq!(error.kind(), kind, "{what}: {message}");
        for part in parts {
            assert!(message.contains(part), "{what}: {part:?} is not in: {message}");
        }
        assert!(!message.contains('\n') && message.len() < 1000, "{what}: {message}");
    }
}

#[track_caller]
fn is_damaged(copy: &Copy, parts: &[&str]) {
    fails(copy, ErrorKind::Format, parts);
}

fn cut(name: &str, file: &str, len: usize) -> Copy {
    let copy = Copy::of(name);
    copy.edit(file, |bytes| bytes.truncate(len));
    copy
}

/// Where the first field of an object is, which follows its name and version: in `Table` and `sync`
/// the number of rows.
fn first_field(copy: &Copy, file: &str, object: &str) -> usize {
    fields_of(&copy.read(file), object)
}

/// Puts `value` into the field `offset` bytes behind the name and version of an object.
fn set_field(copy: &Copy, file: &str, object: &str, offset: usize, value: &[u8]) {
    copy.edit(file, |bytes| {
        let at = fields_of(bytes, object) + offset;
        bytes[at..at + value.len()].copy_from_slice(value);
    });
}

/// Casacore and this library read the cells that are there; nothing can be written of them.
#[test]
fn cells_that_differ_from_their_description_are_not_converted() {
    let copy = Copy::of("r7_8/t.tab");
    copy.edit("table.f1i", |bytes| bytes[20] ^= 1 << 5);
    read_all(&copy.path()).unwrap();
    let error = convert(&copy.path(), &copy.beside("out.h5")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    let says = "column colx: its cells have shape [36, 3], which is [4, 3] in its description";
    assert!(error.to_string().ends_with(says), "{error}");
}

#[test]
fn no_table_at_all() {
    let copy = Copy::of(STANDARD);
    copy.remove("table.dat");
    let words = "StandardStMan_little.tab: not a table: the directory has table.f0, table.f0i, table.info, table.lock but no table.dat";
    is_damaged(&copy, &[words]);

    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "no table\n").unwrap();
    let error = read_all(&text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Format);
    assert!(
        error
            .to_string()
            .ends_with("notes.txt: the source is neither a table directory, nor a container, nor an HDF5 file"),
        "{error}"
    );

    let error = read_all(&folder.path().join("nothing")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("nothing"), "{error}");
}

#[test]
fn table_dat() {
    is_damaged(&cut(STANDARD, "table.dat", 0), &["table.dat at byte 0: the file is empty"]);
    is_damaged(
        &cut(STANDARD, "table.dat", 2),
        &["table.dat: Table header: table.dat at byte 0: magic", "2 bytes are left"],
    );
    is_damaged(&cut(STANDARD, "table.dat", 3000), &["table.dat: table.dat at byte 4", "the file ends at byte 3000"]);

    let copy = Copy::of(STANDARD);
    copy.put("table.dat", 0, b"text");
    is_damaged(&copy, &["table.dat at byte 0: 0x74657874 where the AipsIO magic 0xbebebebe begins a Table"]);

    let copy = Copy::of(STANDARD);
    copy.put("table.dat", first_field(&copy, "table.dat", "Table") - 4, &9u32.to_be_bytes());
    is_damaged(&copy, &["table.dat: Table at byte 4: Table version 9, known are 1 to 3"]);

    // every counted field that there is, one after the other, is somewhere among the words of the
    // file
    let copy = Copy::of(STANDARD);
    copy.edit("table.dat", |bytes| {
        let at = fields_of(bytes, "RecordDesc");
        bytes[at..at + 4].copy_from_slice(&0x7fff_fff0u32.to_be_bytes());
    });
    is_damaged(&copy, &["table.dat: RecordDesc at byte", "number of fields: 2147483632 items announced, but only"]);
}

#[test]
fn table_lock() {
    for len in [300, 270, 265] {
        is_damaged(&cut(STANDARD, "table.lock", len), &["table.lock: ", "sync", "at byte"]);
    }
    let copy = Copy::of(STANDARD);
    copy.put("table.lock", 264, b"text");
    is_damaged(&copy, &["table.lock: ", "sync record at byte 264", "AipsIO magic"]);
}

#[test]
fn more_rows_than_data() {
    for (name, parts) in [
        (STANDARD, ["table.f0 (StandardStMan): index at byte ", "is not stored: the index has rows 0 to "]),
        (INCREMENTAL, ["table.f0 (IncrementalStMan): ISMIndex at byte ", "is not stored: the index has "]),
        (AIPSIO, ["table.f0 (StManAipsIO): StManAipsIO at byte ", "rows: "]),
        (TILED, ["table.f0 (TiledShapeStMan): TiledStMan at byte ", "rows, but the table has 2147483647"]),
    ] {
        let copy = Copy::of(name);
        set_field(&copy, "table.lock", "sync", 0, &0x7fff_ffffu32.to_be_bytes());
        is_damaged(&copy, &parts);
    }
    let copy = Copy::of(STANDARD);
    set_field(copy.remove("table.lock"), "table.dat", "Table", 0, &1_000_000u32.to_be_bytes());
    is_damaged(&copy, &["index at byte ", "is not stored: the index has rows 0 to "]);
}

#[test]
fn missing_files() {
    for (name, file) in
        [(STANDARD, "table.f0"), (STANDARD, "table.f0i"), (INCREMENTAL, "table.f0"), (AIPSIO, "table.f0")]
            .into_iter()
            .chain([(TILED, "table.f0"), (TILED, "table.f0_TSM1")])
    {
        let copy = Copy::of(name);
        copy.remove(file);
        is_damaged(&copy, &[&format!("{file}: the file is missing")]);
        fs::create_dir(copy.path().join(file)).unwrap();
        is_damaged(&copy, &[&format!("{file}: a directory, where a file is expected")]);
    }
}

#[test]
fn truncated_manager_files() {
    let copy = cut(STANDARD, "table.f0", 4000);
    is_damaged(&copy, &["table.f0 (StandardStMan): the header announces ", "but the file has 4000"]);
    is_damaged(
        &cut(STANDARD, "table.f0", 20),
        &["table.f0 (StandardStMan): header at byte 12: object name", "only 8 bytes are left"],
    );
    is_damaged(&cut(STANDARD, "table.f0i", 8), &["table.f0i (StandardStMan): ", "arrays lie in bytes 16 to 8"]);
    is_damaged(&cut(STANDARD, "table.f0i", 200), &["table.f0i (StandardStMan): array at byte ", "200"]);
    is_damaged(&cut(INCREMENTAL, "table.f0", 600), &["table.f0 (IncrementalStMan): ", "the file has 600"]);
    let len = Copy::of(INCREMENTAL).read("table.f0").len();
    is_damaged(&cut(INCREMENTAL, "table.f0", len - 20), &["table.f0 (IncrementalStMan): ", "at byte "]);
    is_damaged(&cut(INCREMENTAL, "table.f0i", 200), &["table.f0i (IncrementalStMan): array at byte ", "200"]);
    is_damaged(&cut(AIPSIO, "table.f0", 5000), &["table.f0 (StManAipsIO): file at byte 4: ", "ends at byte 5000"]);
    is_damaged(&cut(AIPSIO, "table.f0i", 200), &["table.f0i (StManAipsIO): array at byte ", "200"]);
    is_damaged(&cut(TILED, "table.f0", 100), &["table.f0 (TiledShapeStMan): tiled header at byte 4: ", "byte 100"]);
    is_damaged(
        &cut(TILED, "table.f0_TSM1", 3),
        &["table.f0_TSM1: hypercube of shape ", "more than the 3 bytes of its file"],
    );
}

#[test]
fn headers_of_other_managers() {
    let copy = Copy::of(STANDARD);
    copy.write("table.f0", &Copy::of(INCREMENTAL).read("table.f0"));
    is_damaged(&copy, &["table.f0 (StandardStMan): header at byte ", "object name: "]);

    let copy = Copy::of("dtypes_all_managers/StandardStMan_big.tab");
    copy.write("table.f0", &Copy::of(INCREMENTAL).read("table.f0"));
    let found = "object \"IncrementalStMan\" where a StandardStMan is expected";
    is_damaged(&copy, &["table.f0 (StandardStMan): IncrementalStMan at byte 4: ", found]);

    let copy = Copy::of(STANDARD);
    set_field(&copy, "table.f0", "StandardStMan", 0, &[1]);
    is_damaged(
        &copy,
        &["table.f0 (StandardStMan): StandardStMan at byte", "big endian: true, but the table is little"],
    );
}

#[test]
fn index_chain_in_a_circle() {
    // fields of version 3: flag, bucket size, buckets, cache, free, first free, index buckets,
    // first index, offset, heap, index length
    let copy = Copy::of(STANDARD);
    let header = copy.read("table.f0");
    let at = fields_of(&header, "StandardStMan");
    let word = |field: usize| u32::from_le_bytes(header[at + 1 + 4 * field..][..4].try_into().unwrap()) as usize;
    let (bucket_bytes, buckets, first) = (word(0), word(1), word(6));
    // the index starts behind the links and is longer than a bucket, which leads to itself
    let long = (bucket_bytes * (buckets - 1)) as u32;
    copy.edit("table.f0", |bytes| {
        bytes[at + 1 + 4 * 7..][..4].fill(0);
        bytes[at + 1 + 4 * 9..][..4].copy_from_slice(&long.to_le_bytes());
        let bucket = 512 + first * bucket_bytes;
        for link in [bucket, bucket + 4] {
            bytes[link..link + 4].copy_from_slice(&(first as u32).to_be_bytes());
        }
    });
    Watch::new(Duration::from_secs(10)).over("index chain", || {
        is_damaged(&copy, &["table.f0 (StandardStMan): index: bucket ", " comes twice in the chain"]);
    });
}

#[test]
fn string_chain_in_a_circle() {
    let mut tried = 0;
    for path in tables_below(&testdata().join("strings_boundaries")) {
        if !path.to_string_lossy().contains("StandardStMan") {
            continue;
        }
        let copy = Copy::of_path(&path);
        let header = copy.read("table.f0");
        let at = fields_of(&header, "StandardStMan");
        let word = |field: usize| {
            let bytes: [u8; 4] = header[at + 1 + 4 * field..][..4].try_into().unwrap();
            u32::from_le_bytes(bytes) as usize
        };
        let (bucket_bytes, buckets) = (word(0), word(1));
        let before = tried;
        // each bucket of the heap that goes on in another goes on in itself, without using a byte
        copy.edit("table.f0", |bytes| {
            for number in 0..buckets {
                let bucket = 512 + number * bucket_bytes;
                let field = |at: usize| i32::from_be_bytes(bytes[bucket + at..][..4].try_into().unwrap());
                let (used, next) = (field(4), field(12));
                if [field(0), field(8)] == [0, 0]
                    && (1..=bucket_bytes as i32 - 16).contains(&used)
                    && (1..buckets as i32).contains(&next)
                {
                    bytes[bucket + 4..bucket + 8].fill(0);
                    bytes[bucket + 12..bucket + 16].copy_from_slice(&(number as u32).to_be_bytes());
                    tried += 1;
                }
            }
        });
        if tried > before {
            Watch::new(Duration::from_secs(10)).over("string chain", || {
                // of the strings that begin in other buckets, and of one that begins behind what is
                // used now
                let error = read_all(&copy.path()).unwrap_err().to_string();
                assert!(error.contains("buckets, which is all there are"), "{error}");
                is_damaged(&copy, &["table.f0 (StandardStMan): string at byte ", " of bucket "]);
            });
        }
    }
    assert!(tried > 0, "no string goes on in another bucket");
}

#[test]
fn deep_records() {
    // the keywords of the table become 1000 records within each other, each described by the one
    // around it
    let copy = Copy::of(STANDARD);
    copy.edit("table.dat", |bytes| {
        let mut description = framed("RecordDesc", 2, &0u32.to_be_bytes());
        for _ in 0..1000 {
            let mut fields = 1u32.to_be_bytes().to_vec();
            fields.extend(text("r"));
            fields.extend(25u32.to_be_bytes());
            fields.extend(&description);
            fields.extend(text(""));
            description = framed("RecordDesc", 2, &fields);
        }
        let mut fields = description;
        fields.extend(0u32.to_be_bytes());
        let start = find(bytes, b"TableRecord") - 8;
        let len = u32::from_be_bytes(bytes[start..start + 4].try_into().unwrap()) as usize;
        bytes.splice(start..start + len, framed("TableRecord", 1, &fields));
        repair_lengths(bytes, start);
    });
    fails(
        &copy,
        ErrorKind::Limit,
        &["table.dat: ", "record descriptions are nested too deeply: the limit is 40 levels"],
    );
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

fn framed(name: &str, version: u32, fields: &[u8]) -> Vec<u8> {
    let mut object = text(name);
    object.extend(version.to_be_bytes());
    object.extend(fields);
    [&(object.len() as u32 + 4).to_be_bytes()[..], &object].concat()
}

/// Makes `Table` and `TableDesc` as long as they are after a change at `changed`.
fn repair_lengths(bytes: &mut [u8], changed: usize) {
    let total = bytes.len() as u32 - 4;
    bytes[4..8].copy_from_slice(&total.to_be_bytes());
    let desc = find(bytes, b"TableDesc") - 8;
    assert!(desc < changed, "the description holds the keywords");
    // nested deeper than the limit comes before the length is seen to be wrong, so that it needs to
    // be large only
    let len = (bytes.len() - desc) as u32;
    bytes[desc..desc + 4].copy_from_slice(&len.to_be_bytes());
}

#[test]
fn subtables_in_a_circle() {
    for target in ["itself", "parent", "keyword"] {
        let copy = Copy::of("demo/demo.ms");
        let subtable = copy.path().join("ANTENNA");
        match target {
            "itself" => {
                fs::remove_dir_all(&subtable).unwrap();
                symlink("ANTENNA", &subtable).unwrap();
            }
            "parent" => {
                fs::remove_dir_all(&subtable).unwrap();
                symlink(copy.path(), &subtable).unwrap();
            }
            _ => {
                copy.edit("table.dat", |bytes| {
                    let at = find(bytes, b"././ANTENNA");
                    bytes[at..at + 11].copy_from_slice(b"././FEED/..");
                });
            }
        }
        let source = Source::open(copy.path()).unwrap();
        assert!(source.tables().len() <= Source::open(testdata().join("demo/demo.ms")).unwrap().tables().len());
        // a link to itself leads nowhere, so that the subtable is missing
        convert(&copy.path(), &copy.beside("out.h5")).unwrap();
    }
}

#[test]
fn subtables_missing_and_damaged() {
    let copy = Copy::of("demo/demo.ms");
    fs::remove_dir_all(copy.path().join("ANTENNA")).unwrap();
    let source = Source::open(copy.path()).unwrap();
    let problems: Vec<String> = source.problems().map(|(name, error)| format!("{name}: {error}")).collect();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("ANTENNA: ") && problems[0].contains("demo.ms/ANTENNA"), "{problems:?}");
    convert(&copy.path(), &copy.beside("out.h5")).unwrap();

    let copy = Copy::of("demo/demo.ms");
    fs::write(copy.path().join("FEED/table.dat"), b"").unwrap();
    is_damaged(&copy, &["subtable FEED", "demo.ms/FEED: table.dat: table.dat at byte 0: the file is empty"]);

    let copy = Copy::of("demo/demo.ms");
    fs::remove_file(copy.path().join("FEED/table.f0")).unwrap();
    is_damaged(&copy, &["table.f0: the file is missing"]);
}

#[test]
fn one_damaged_manager_leaves_the_others() {
    let copy = Copy::of("demo/demo.ms");
    let files = copy.files();
    let tiles = files.iter().find(|name| name.contains("_TSM1")).unwrap();
    copy.edit(tiles, |bytes| bytes.truncate(10));
    let table = Table::open(copy.path()).unwrap();
    let time: f64 = table.column("TIME").unwrap().scalar(0).unwrap();
    assert!(time > 0.);
    is_damaged(&copy, &["of its file"]);
}

#[test]
fn tiles_larger_than_their_cube() {
    // values differ then, but all of them are there: what is read is what is written
    let copy = Copy::of("dtypes_tiled/TiledShapeStMan_complex_little.tab");
    copy.edit("table.f0", |header| {
        let shape = find(header, b"\0\0\0\x03\0\0\0\x05\0\0\0\x04");
        header[shape + 7] = 2;
    });
    limit_memory();
    read_all(&copy.path()).unwrap();
    convert(&copy.path(), &copy.beside("out.h5")).unwrap();
}

#[test]
fn cubes_of_another_shape_than_the_column() {
    let copy = Copy::of("dtypes_tiled/TiledColumnStMan_complex_little.tab");
    copy.put("table.f0", 228, &2u32.to_be_bytes());
    let parts = ["table.f0 (TiledColumnStMan): hypercube of shape [3, 2, 9] for column D, whose cells are [3, 5]"];
    is_damaged(&copy, &parts);
}
