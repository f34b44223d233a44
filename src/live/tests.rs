//! Live files written and read in one process. Other processes, kills and full disks:
//! tests/python/live/test_live.py.

use super::*;
use crate::error::ErrorKind;
use crate::output::IfExists;
use crate::schema::{Body, ColumnDesc, ColumnKind, TableDat};
use crate::source::Source;
use crate::table::NewTable;
use crate::value::{BString, Complex32, DataType, Record, Shape, Value, Values};

/// Nothing is committed unless asked for.
fn schema() -> Schema {
    declared().commit(CommitPolicy::manual())
}

fn declared() -> Schema {
    let mut nested = Record::default();
    nested.set("n", Value::Scalar(Values::Int(vec![3])));
    let mut main = TableSpec::new("MAIN")
        .column(ColumnDesc::scalar::<f64>("TIME").unit("s").comment("when"))
        .column(ColumnDesc::array::<Complex32>("DATA").fixed_shape([2, 3]).keyword("nested", Value::Record(nested)))
        .column(ColumnDesc::scalar::<bool>("row"))
        .column(ColumnDesc::scalar::<BString>("NAME").max_length(8))
        .column(ColumnSpec::from(ColumnDesc::array::<i16>("VAR")).shapes([Shape::from([2]), Shape::from([1, 3])]))
        .coordinate("chan", Values::Double(vec![1., 2., 3.]));
    main.info.table_type = "Measurement Set".into();
    let antenna = TableSpec::new("ANTENNA").column(ColumnDesc::scalar::<f64>("DISH"));
    let inner = TableSpec::new("ANTENNA/INNER").column(ColumnDesc::scalar::<u8>("x"));
    Schema::new().table(main).table(antenna).table(inner)
}

/// Rows are made from their numbers.
fn append(writer: &mut Writer, count: u64) -> crate::Result<()> {
    let first = writer.table("MAIN")?.rows();
    let rows = first..first + count;
    let times: Vec<f64> = rows.clone().map(|row| row as f64).collect();
    let data = ndarray::Array3::from_shape_fn((count as usize, 3, 2), |(row, slow, fast)| {
        Complex32::new((first as usize + row) as f32, (slow * 2 + fast) as f32)
    });
    let flags: Vec<bool> = rows.clone().map(|row| row % 2 == 0).collect();
    let names: Vec<BString> = rows.clone().map(|row| row.to_string().into()).collect();
    let shapes: Vec<Option<usize>> = rows.clone().map(|row| [None, Some(0), Some(1)][row as usize % 3]).collect();
    let cells: Vec<i16> = rows.flat_map(|row| vec![row as i16; [0, 2, 3][row as usize % 3]]).collect();
    let mut rows = writer.table("MAIN")?.batch(count);
    rows.set("VAR", Block::from(&cells).with_shapes(&shapes))?.set("TIME", &times)?.set("DATA", &data)?;
    rows.set("row", &flags[..])?.set("NAME", &names)?;
    rows.append()
}

fn check(table: &TableReader, rows: u64) {
    assert_eq!(table.rows::<f64>("TIME", 0..rows).unwrap(), (0..rows).map(|row| row as f64).collect::<Vec<_>>());
    let data = table.rows::<Complex32>("DATA", 0..rows).unwrap();
    assert!(data.iter().zip(0..).all(|(value, i)| *value == Complex32::new((i / 6) as f32, (i % 6) as f32)));
    let names = table.rows::<BString>("NAME", 0..rows).unwrap();
    assert!(names.iter().zip(0..).all(|(name, row)| *name == row.to_string()));
    for row in 0..rows {
        let value = |count: usize| Values::Short(vec![row as i16; count]);
        let expected = [None, Some((Shape::from([2]), value(2))), Some((Shape::from([1, 3]), value(3)))];
        assert_eq!(table.cell("VAR", row).unwrap(), expected[row as usize % 3]);
    }
}

#[test]
fn rows_are_seen_when_committed_and_appended_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.h5");
    let mut writer = schema().create(&path).unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.tables().iter().map(TableReader::name).collect::<Vec<_>>(), ["MAIN", "ANTENNA", "ANTENNA/INNER"]);
    let main = reader.table("MAIN").unwrap();
    assert_eq!(main.refresh().unwrap(), 0);
    let mut expected = 0;
    for count in [1, 0, 700, 20_000] {
        append(&mut writer, count).unwrap();
        assert_eq!(main.refresh().unwrap(), expected);
        assert_eq!(writer.table("MAIN").unwrap().committed_rows(), expected);
        writer.commit().unwrap();
        expected += count;
        assert_eq!(main.refresh().unwrap(), expected);
    }
    check(main, 300);
    assert_eq!(main.rows::<f64>("TIME", expected..expected + 1).unwrap_err().kind(), ErrorKind::Usage);
    // not committed
    let mut antenna = writer.table("ANTENNA").unwrap().batch(1);
    antenna.set("DISH", [25.0]).unwrap();
    antenna.append().unwrap();
    drop((writer, reader));

    // a dropped writer leaves uncommitted rows
    let found = repair(&path).unwrap();
    assert!(!found.was_open && found.tables[0].committed == expected && found.tables[1].lost == 0);
    let mut writer = Writer::reopen(&path, CommitPolicy::manual().every_rows(10)).unwrap();
    append(&mut writer, 9).unwrap();
    assert_eq!(writer.table("MAIN").unwrap().committed_rows(), expected);
    append(&mut writer, 1).unwrap();
    assert_eq!(writer.table("MAIN").unwrap().committed_rows(), expected + 10);
    append(&mut writer, 1).unwrap();
    writer.close().unwrap();
    let reader = Reader::open(&path).unwrap();
    assert_eq!(reader.table("MAIN").unwrap().refresh().unwrap(), expected + 11);
    check(reader.table("MAIN").unwrap(), 30);
    let source = Source::open(&path).unwrap();
    assert_eq!(source.tables().iter().map(|table| table.rows().unwrap()).collect::<Vec<_>>(), [expected + 11, 0, 0]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "the lock is gone");
}

#[test]
fn viewers_draw_the_visibilities() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.h5");
    let made = |schema: Schema| {
        schema.if_exists(IfExists::Replace).create(&path).unwrap().close().unwrap();
        let root = crate::h5::File::open(&path).unwrap().root().unwrap();
        let main = root.group("MAIN").unwrap();
        let found = ["NX_class", "signal", "axes"].map(|name| main.attribute(name).unwrap());
        let edits = Source::open(&path).unwrap().edits(&|_| true).unwrap();
        assert!(edits.is_empty(), "{edits:?}");
        found.map(|attribute| attribute.map(|attribute| attribute.values().clone()))
    };
    let texts = |texts: &[&str]| Some(Values::String(texts.iter().map(|&text| text.into()).collect()));
    assert_eq!(made(schema()), [texts(&["NXdata"]), texts(&["DATA"]), texts(&[".", "chan_0", "."])]);
    let keywords = Source::open(&path).unwrap().tables()[0].keywords().unwrap().clone();
    assert!(["NX_class", "signal", "axes"].iter().all(|name| keywords.get(*name).is_none()));
    // a keyword keeps the name of its attribute
    let mut main = TableSpec::new("MAIN").column(ColumnDesc::array::<f32>("DATA").fixed_shape([2]));
    main.keywords.set("axes", Value::string("mine"));
    assert_eq!(made(Schema::new().table(main)), [None, None, texts(&["mine"])]);
}

/// libhdf5 would share its memory of the file, and then read wrong rows of new chunks (64 rows).
#[test]
#[cfg(feature = "static-hdf5")]
fn readers_in_one_process_read_what_is_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.h5");
    let number = ColumnSpec::from(ColumnDesc::scalar::<i32>("x")).with_chunk_rows(64);
    let schema = Schema::new().table(TableSpec::new("MAIN").column(number)).commit(CommitPolicy::manual());
    let mut writer = schema.create(&path).unwrap();
    let mut readers = vec![Reader::open(&path).unwrap()];
    let mut expected = Vec::new();
    for count in [10, 100, 1000, 300, 5000] {
        let first = expected.len() as i32 + 1;
        let rows: Vec<i32> = (first..first + count).collect();
        give(&mut writer, "MAIN", count as u64, &[("x", Block::from(&rows))]).unwrap();
        writer.commit().unwrap();
        expected.extend(rows);
        readers.push(Reader::open(&path).unwrap());
        for (number, reader) in readers.iter().enumerate().rev() {
            let main = reader.table("MAIN").unwrap();
            let found = main.rows::<i32>("x", 0..main.refresh().unwrap()).unwrap();
            assert!(found == expected, "reader {number} after {} rows", expected.len());
        }
    }
}

/// The machine's libhdf5 shares its memory of the file.
#[test]
#[cfg(not(feature = "static-hdf5"))]
fn a_third_reader_in_one_process_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.h5");
    schema().create(&path).unwrap();
    let reader = Reader::open(&path).unwrap();
    let _second = Reader::open(&path).unwrap();
    assert_eq!(Reader::open(&path).unwrap_err().kind(), ErrorKind::Unsupported);
    drop(reader);
    Reader::open(&path).unwrap();
}

/// Blocks on both sides of the size from which on they are not collected.
#[test]
fn rows_of_small_and_large_blocks_keep_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.h5");
    let mut writer = schema().create(&path).unwrap();
    let counts = [3, 3000, 2, 17_000, 700, 700, 17_000, 1];
    for count in counts {
        append(&mut writer, count).unwrap();
    }
    writer.close().unwrap();
    let reader = Reader::open(&path).unwrap();
    let main = reader.table("MAIN").unwrap();
    assert_eq!(main.refresh().unwrap(), counts.iter().sum::<u64>());
    check(main, counts.iter().sum());
}

/// Table, rows, blocks, and the words of the error.
type Wrong<'a> = (&'a str, u64, &'a [(&'a str, Block<'a>)], &'a str);

fn give(writer: &mut Writer, table: &str, rows: u64, blocks: &[(&str, Block<'_>)]) -> crate::Result<()> {
    let mut batch = writer.table(table)?.batch(rows);
    for (column, block) in blocks {
        batch.set(column, block.clone())?;
    }
    batch.append()
}

#[test]
fn blocks_that_do_not_fit_write_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = schema().create(directory.path().join("live.h5")).unwrap();
    let (one, two) = ([1.0], [1.0, 2.0]);
    let square = ndarray::Array3::<Complex32>::zeros((1, 2, 3));
    let wrong: [Wrong<'_>; 7] = [
        ("ANTENNA", 1, &[("DISH", Block::from(&two[..]))], "16 bytes for 1 rows"),
        ("ANTENNA", 1, &[("DISH", Block::from(&[1i32][..]))], "int values where double are declared"),
        ("ANTENNA", 1, &[("NAME", Block::from(&one[..]))], "column NAME does not exist"),
        (
            "ANTENNA",
            1,
            &[("DISH", Block::from(&one[..])), ("DISH", Block::from(&one[..]))],
            "two blocks are of one column",
        ),
        ("ANTENNA", 1, &[], "column DISH: appended rows need a cell in every column"),
        ("ANTENNA", 1, &[("DISH", Block::from(&one[..])), ("X", Block::from(&one[..]))], "column X does not exist"),
        (
            "MAIN",
            1,
            &[("TIME", Block::from(&one[..])), ("DATA", Block::from(square.view()))],
            "[1, 2, 3] where [1, 3, 2]",
        ),
    ];
    for (table, rows, blocks, expected) in wrong {
        let error = give(&mut writer, table, rows, blocks).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert!(writer.table("FEED").is_err());
    append(&mut writer, 5).unwrap();
    writer.commit().unwrap();
    assert_eq!(writer.table("MAIN").unwrap().committed_rows(), 5);
    assert_eq!(writer.table("ANTENNA").unwrap().rows(), 0);
}

#[test]
fn cells_are_overwritten_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.h5");
    let mut writer = schema().create(&path).unwrap();
    append(&mut writer, 6).unwrap();
    writer.table("MAIN").unwrap().rewrite("row", 1, 2, [true, true]).unwrap();
    let cells = [7i16, 8, 9, 10, 11];
    let block = Block::from(&cells[..]);
    writer.table("MAIN").unwrap().rewrite("VAR", 1, 2, block.clone().with_shapes(&[Some(0), Some(1)])).unwrap();
    let error = writer.table("MAIN").unwrap().rewrite("VAR", 2, 2, block.with_shapes(&[Some(0), Some(1)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(writer.table("MAIN").unwrap().rewrite("row", 5, 2, [true, true]).is_err());
    writer.close().unwrap();
    let reader = Reader::open(&path).unwrap();
    let main = reader.table("MAIN").unwrap();
    assert_eq!(main.rows::<bool>("row", 0..6).unwrap(), [true, true, true, false, true, false]);
    assert_eq!(main.cell("VAR", 1).unwrap(), Some((Shape::from([2]), Values::Short(vec![7, 8]))));
    assert_eq!(main.cell("VAR", 2).unwrap(), Some((Shape::from([1, 3]), Values::Short(vec![9, 10, 11]))));
    assert_eq!(main.cell("VAR", 5).unwrap(), Some((Shape::from([1, 3]), Values::Short(vec![5; 3]))));
}

#[test]
fn invalid_declarations_leave_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.h5");
    let column = |name: &str| ColumnDesc::scalar::<i32>(name);
    let main = || TableSpec::new("MAIN").column(column("x"));
    let wrong = [
        Schema::new(),
        Schema::new().table(main().column(ColumnDesc::scalar::<BString>("S"))),
        Schema::new().table(main().column(ColumnDesc::new("R".into(), DataType::Record, ColumnKind::Scalar))),
        Schema::new().table(main().column(ColumnDesc::array::<i32>("E").fixed_shape([0, 4]))),
        Schema::new().table(main()).table(main()),
        Schema::new().table(main()).table(TableSpec::new("A/B").column(column("x"))),
        Schema::new().table(main()).table(TableSpec::new("../B").column(column("x"))),
    ];
    for schema in wrong {
        schema.create(&path).unwrap_err();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
    std::fs::write(&path, b"something").unwrap();
    assert_eq!(Schema::new().table(main()).create(&path).unwrap_err().kind(), ErrorKind::Exists);
    let writer = Schema::new().table(main()).if_exists(IfExists::Replace).create(&path).unwrap();
    assert_eq!(Writer::reopen(&path, CommitPolicy::manual()).unwrap_err().kind(), ErrorKind::Locked);
    drop(writer);
    Writer::reopen(&path, CommitPolicy::manual()).unwrap();
}

#[test]
fn readers_are_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Reader>();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("live.h5");
    let mut writer = schema().create(&path).unwrap();
    append(&mut writer, 100).unwrap();
    writer.commit().unwrap();
    let reader = Reader::open(&path).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let main = reader.table("MAIN").unwrap();
                for _ in 0..20 {
                    let rows = main.refresh().unwrap();
                    check(main, rows.min(100));
                }
            });
        }
        append(&mut writer, 50).unwrap();
        writer.commit().unwrap();
    });
    assert_eq!(reader.table("MAIN").unwrap().committed_rows(), reader.table("MAIN").unwrap().refresh().unwrap());
    writer.close().unwrap();
}

/// Subtables of a view are not followed either.
#[test]
fn views_are_not_followed() {
    let tables = ctds_hdf5_testing::Copy::of_path(&ctds_hdf5_testing::testdata().join("ref_tables"));
    let new = |name: &str, keyword: &str| {
        let table = NewTable::new().column(ColumnDesc::scalar::<i32>("I"));
        let table = table.keyword("S", Value::Table(keyword.into()));
        let mut table = table.create(tables.path().join(name)).unwrap();
        table.add_rows(1).unwrap();
        table.close().unwrap();
    };
    new("inner.tab", "././none");
    new("main.tab", "./sel.ref");
    tables.edit("base.tab/table.dat", |bytes| {
        let mut dat = TableDat::decode(bytes).unwrap();
        let Body::Plain(plain) = &mut dat.body else { panic!("a plain table") };
        plain.0.keywords.set("INNER", Value::Table("./inner.tab".into()));
        *bytes = dat.encode().unwrap();
    });
    let live = tables.path().join("live.h5");
    let follow = Follow::new(tables.path().join("main.tab"), &live).start().unwrap();
    let notes = follow.notes();
    for note in [
        "S: only tables that have their own rows are followed",
        "S/INNER: the table that it belongs to is not followed",
    ] {
        assert!(notes.iter().any(|known| known == note), "{notes:?}");
    }
}
