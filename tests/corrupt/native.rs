//! Native files that are valid HDF5 but not what docs/reference/layout.md says: objects of another
//! type or size, attributes that contradict each other.
//!
//! Damage to HDF5's own structures is found before libhdf5 sees it: one case is here, random ones
//! are in `internals::fuzz` and in h5bridge/tests/cli.rs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ctds_hdf5::ErrorKind;
use ctds_hdf5::convert::{Compare, Digest, Source, ToHdf5, ToTable};
use ctds_hdf5::value::{Complex64, Region};
use ctds_hdf5_testing::{Copy, find, testdata};
use hdf5::types::VarLenUnicode;
use hdf5::{File, Group};
use tempfile::TempDir;

use super::{limit_memory, read_all};

const DENSE: &str = "dtypes_all_managers/StandardStMan_little.tab";
const CUBES: &str = "dtypes_tiled/TiledShapeStMan_float_big.tab";

/// The native file made of a table of testdata.
struct Native {
    _folder: TempDir,
    path: PathBuf,
}

impl Native {
    fn of(table: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("native.h5");
        ToHdf5::new(table).threads(1).write(&path).unwrap();
        Native { _folder: folder, path }
    }

    /// Changes the file, and expects an error that has all of `parts`, soon.
    #[track_caller]
    fn fails(name: &str, change: impl FnOnce(&Group, &Group), kind: ErrorKind, parts: &[&str]) {
        Self::of(&testdata().join(name)).damaged_by(change, kind, parts);
    }

    #[track_caller]
    fn damaged_by(self, change: impl FnOnce(&Group, &Group), kind: ErrorKind, parts: &[&str]) {
        limit_memory();
        let native = self;
        {
            let file = File::open_rw(&native.path).unwrap();
            change(&file.group("MAIN").unwrap(), &file.group("_ctds/MAIN").unwrap());
            file.close().unwrap();
        }
        let started = Instant::now();
        let error = read_all(&native.path).unwrap_err();
        let message = error.to_string();
        assert_eq!(error.kind(), kind, "{message}");
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in: {message}");
        }
        assert!(!message.contains('\n') && message.len() < 1000, "{message}");
        assert!(started.elapsed() < Duration::from_secs(10), "took {:?}: {message}", started.elapsed());
    }
}

/// Another dataset in place of one.
pub(super) fn replace<T: hdf5::H5Type>(group: &Group, name: &str, shape: &[usize], values: &[T]) {
    group.unlink(name).unwrap();
    let dataset = group.new_dataset::<T>().shape(shape).create(name).unwrap();
    if !values.is_empty() {
        dataset.write_raw(values).unwrap();
    }
}

fn text_of(group: &Group, name: &str) -> String {
    group.attr(name).unwrap().read_scalar::<VarLenUnicode>().unwrap().to_string()
}

fn set_text(group: &Group, name: &str, text: &str) {
    group.delete_attr(name).unwrap();
    let attribute = group.new_attr::<VarLenUnicode>().create(name).unwrap();
    attribute.write_scalar(&text.parse::<VarLenUnicode>().unwrap()).unwrap();
}

/// Replaces a part of the text of an attribute, which must be there.
pub(super) fn edit_text(group: &Group, name: &str, from: &str, to: &str) {
    let text = text_of(group, name);
    assert!(text.contains(from), "{from} is not in {text}");
    set_text(group, name, &text.replacen(from, to, 1));
}

use ErrorKind::{Format, Limit, NotFound, Unsupported};

#[test]
fn dense_columns() {
    let other_type = |main: &Group, _: &Group| replace(main, "s_int", &[5], &[0.5f32; 5]);
    Native::fails(DENSE, other_type, Unsupported, &["s_int: row 0", "the value 0.5 cannot become int"]);
    let strings = |main: &Group, _: &Group| replace(main, "s_string", &[5], &[0i32; 5]);
    Native::fails(
        DENSE,
        strings,
        Unsupported,
        &["s_string: elements of the HDF5 type int32, which cannot become string"],
    );
    let rows = |main: &Group, _: &Group| replace(main, "s_int", &[4], &[0i32; 4]);
    Native::fails(DENSE, rows, Unsupported, &["different numbers of rows: 4 in s_int; 5 in "]);
    let axes = |main: &Group, _: &Group| replace(main, "s_int", &[5, 3], &[0i32; 15]);
    Native::fails(DENSE, axes, Unsupported, &["s_int has cells of shape [3]"]);
    let cell = |main: &Group, _: &Group| replace(main, "d_int", &[5, 2, 4], &[0i32; 40]);
    Native::fails(DENSE, cell, Unsupported, &["d_int has cells of shape [4, 2]"]);
    let scalar = |main: &Group, _: &Group| replace(main, "s_int", &[], &[0i32; 1]);
    Native::fails(DENSE, scalar, Format, &["s_int", "has no axes"]);
    let records = |main: &Group, _: &Group| replace(main, "s_record", &[5], &[0f64; 5]);
    Native::fails(DENSE, records, Unsupported, &["s_record: elements of the HDF5 type float64"]);
    let text =
        |main: &Group, _: &Group| replace(main, "s_record", &[5], &vec!["no".parse::<VarLenUnicode>().unwrap(); 5]);
    Native::fails(DENSE, text, Format, &["s_record: row 0 is not JSON: expected ident"]);
}

#[test]
fn ragged_columns() {
    let offsets = |values: [i64; 6]| {
        move |main: &Group, _: &Group| {
            replace(&main.group("i_int").unwrap(), "offset", &[6], &values);
        }
    };
    Native::fails(DENSE, offsets([0, 2, 6, 6, 5, 24]), Format, &["i_int", "row 3: elements 6 to 5 for a cell"]);
    Native::fails(
        DENSE,
        offsets([0, i64::MIN, 0, 0, 0, 0]),
        Format,
        &["i_int", "row 0: elements 0 to -9223372036854775808"],
    );
    Native::fails(DENSE, offsets([-6, 0, 0, 0, 0, 0]), Format, &["i_int", "row 0: elements -6 to 0"]);
    Native::fails(DENSE, offsets([i64::MAX - 6, i64::MAX, 0, 0, 0, 0]), Format, &["i_int", "row 0: elements "]);

    let shapes = |values: [i32; 10]| {
        move |main: &Group, _: &Group| {
            replace(&main.group("i_int").unwrap(), "shape", &[5, 2], &values);
        }
    };
    Native::fails(DENSE, shapes([i32::MAX; 10]), Format, &["i_int", "row 0: elements 0 to 2 for a cell of shape"]);
    Native::fails(DENSE, shapes([-1; 10]), Format, &["i_int", "row 0: elements 0 to 2 for a cell of shape []"]);
    let flat = |main: &Group, _: &Group| replace(&main.group("i_int").unwrap(), "shape", &[5], &[6i32; 5]);
    Native::fails(DENSE, flat, Format, &["dataset /MAIN/i_int/shape: shape [5], which should have 2 axes"]);
    let none = |main: &Group, _: &Group| replace(&main.group("i_int").unwrap(), "shape", &[], &[6i32; 1]);
    Native::fails(DENSE, none, Format, &["dataset /MAIN/i_int/shape: shape [], which should have 2 axes"]);
    let short = |main: &Group, _: &Group| replace(&main.group("i_int").unwrap(), "values", &[3], &[6i32; 3]);
    Native::fails(DENSE, short, Format, &["i_int", "elements 2 to 6"]);
    let square = |main: &Group, _: &Group| replace(&main.group("i_int").unwrap(), "values", &[24, 24], &[6i32; 576]);
    Native::fails(DENSE, square, Format, &["/MAIN/i_int/values: shape [24, 24], which should have 1 axes"]);
    let flags = |main: &Group, _: &Group| replace(&main.group("i_int").unwrap(), "defined", &[5], &[0.5f32; 5]);
    Native::fails(DENSE, flags, Unsupported, &["i_int/defined: row 0: the value 0.5 cannot become boolean"]);
}

#[test]
fn columns_of_cubes() {
    let cubes = |values: [i32; 9]| {
        move |main: &Group, _: &Group| {
            replace(&main.group("D").unwrap(), "row_cube", &[9], &values);
        }
    };
    Native::fails(CUBES, cubes([5; 9]), Format, &["column D: row 0 refers to cube5, which does not exist"]);
    let positions = |values: [i64; 9]| {
        move |main: &Group, _: &Group| {
            replace(&main.group("D").unwrap(), "row_index", &[9], &values);
        }
    };
    Native::fails(CUBES, positions([i64::MAX; 9]), Format, &["column D: row ", "refers to position"]);
    Native::fails(CUBES, positions([-1; 9]), Format, &["column D: row ", "refers to position"]);
    let other = |main: &Group, _: &Group| replace(&main.group("D").unwrap(), "cube0", &[9, 1, 1], &[0.1f64; 9]);
    Native::fails(CUBES, other, Unsupported, &["D/cube0: position 0: the value 0.1 cannot become float"]);
    let scalar = |main: &Group, _: &Group| replace(&main.group("D").unwrap(), "cube0", &[], &[0f32; 1]);
    Native::fails(CUBES, scalar, Format, &["column D: row "]);
    let flat = |main: &Group, _: &Group| replace(&main.group("D").unwrap(), "row_cube", &[3, 3], &[0i32; 9]);
    Native::fails(CUBES, flat, Format, &["dataset /MAIN/D/row_cube: shape [3, 3], which should have 1 axes"]);
}

#[test]
fn datasets_that_store_next_to_nothing() {
    // a row count that the dataset has, and no bytes
    let rows = |main: &Group, exact: &Group| {
        for name in main.member_names().unwrap() {
            main.unlink(&name).unwrap();
        }
        for name in exact.attr_names().unwrap().iter().filter(|name| *name != "table" && *name != "column.s_int") {
            exact.delete_attr(name).unwrap();
        }
        main.new_dataset::<i32>().chunk(1 << 20).shape(1 << 40).create("s_int").unwrap();
        edit_text(exact, "table", "\"rows\":5", "\"rows\":1099511627776");
    };
    Native::fails(DENSE, rows, Limit, &["1099511627776 rows; the limit is"]);

    // a chunk of 2 GiB that was never written
    let chunk = |main: &Group, _: &Group| {
        main.unlink("s_int").unwrap();
        main.new_dataset::<i32>().chunk(1 << 29).shape(hdf5::SimpleExtents::resizable([5])).create("s_int").unwrap();
    };
    Native::fails(DENSE, chunk, Limit, &["s_int", "of which the file stores none"]);

    // cells of 2^40 elements that were never written
    let cell = |main: &Group, exact: &Group| {
        main.unlink("d_string").unwrap();
        main.new_dataset::<VarLenUnicode>()
            .chunk((1, 1, 1024))
            .shape((5, 1 << 20, 1 << 20))
            .create("d_string")
            .unwrap();
        edit_text(exact, "column.d_string", "\"shape\":[2,3]", "\"shape\":[1048576,1048576]");
    };
    Native::fails(DENSE, cell, Limit, &["d_string", "of which the file stores none"]);
}

#[test]
fn documents() {
    for (from, to, part) in [
        ("\"rows\":5", "\"rows\":-5", "invalid value: integer `-5`, expected u64"),
        ("\"keywords\":[]", "\"keywords\":7", "keywords: found 7, expected an array of [name, value]"),
        ("{\"name\"", "\"name\"", "not JSON"),
        ("\"rows\":5,", "", "rows is missing"),
    ] {
        let change = |_: &Group, exact: &Group| edit_text(exact, "table", from, to);
        Native::fails(DENSE, change, Format, &[part]);
    }
    let deep = |_: &Group, exact: &Group| {
        let nested = "[[\"r\",{\"type\":\"record\",\"value\":".repeat(1000);
        let closed = "}]]".repeat(1000);
        edit_text(exact, "table", "\"keywords\":[]", &format!("\"keywords\":{nested}[]{closed}"));
    };
    Native::fails(DENSE, deep, Format, &["_ctds attribute table: ", "recursion limit exceeded"]);
    for (from, to, part) in [
        (
            "\"form\":\"dense\"",
            "\"form\":\"odd\"",
            "unknown variant `odd`, expected one of `dense`, `cubes`, `ragged`, `record`, `missing`",
        ),
        ("\"dtype\":\"int\"", "\"dtype\":\"quad\"", "the dtype \"quad\" is not known"),
        ("\"form\":\"dense\"", "\"form\":\"ragged\"", "group /MAIN/s_int"),
        (
            "\"form\":\"dense\"",
            "\"form\":\"record\"",
            "column.s_int: elements of type int cannot be stored in the form record",
        ),
        (
            "\"dtype\":\"int\"",
            "\"dtype\":\"record\"",
            "column.s_int: elements of type record cannot be stored in the form dense",
        ),
    ] {
        let change = |_: &Group, exact: &Group| edit_text(exact, "column.s_int", from, to);
        Native::fails(DENSE, change, Format, &[part]);
    }
    for (from, to, part) in [
        ("\"dtype\":\"int\"", "\"dtype\":\"string\"", "the HDF5 type int32, which cannot become string"),
        ("\"link\":\"s_int\"", "\"link\":\"d_int\"", "d_int has cells of shape [3, 2]"),
    ] {
        let change = |_: &Group, exact: &Group| edit_text(exact, "column.s_int", from, to);
        Native::fails(DENSE, change, Unsupported, &[part]);
    }
    let number = |_: &Group, exact: &Group| {
        exact.delete_attr("table").unwrap();
        exact.new_attr::<i32>().create("table").unwrap().write_scalar(&7).unwrap();
    };
    Native::fails(DENSE, number, Format, &["_ctds attribute table: the attribute is not a string"]);
    let record = |_: &Group, exact: &Group| {
        edit_text(exact, "column.s_record", "\"dtype\":\"record\"", "\"dtype\":\"string\"");
    };
    let parts = [
        "native.h5: group /MAIN: _ctds attribute column.s_record: elements of type string cannot be stored in the form record",
    ];
    Native::fails(DENSE, record, Format, &parts);
    let loops = |_: &Group, exact: &Group| exact.link_hard("/_ctds/MAIN", "loop").unwrap();
    Native::fails(DENSE, loops, Limit, &["groups are nested too deeply: the limit is 40 levels"]);
}

/// A link that a user adds is not a column; undefined cells have no parts.
#[test]
fn links_and_undefined_cells() {
    let native = Native::of(&testdata().join("undefined/little.tab"));
    {
        let file = File::open_rw(&native.path).unwrap();
        file.group("MAIN").unwrap().link_soft("/_ctds", "alias").unwrap();
        file.close().unwrap();
    }
    let source = Source::open(&native.path).unwrap();
    assert!(source.tables()[0].columns().unwrap().iter().all(|info| info.desc.name != "alias"));
    let column = source.column("IncrementalStMan_half").unwrap();
    let row = (0..20).find(|&row| column.cell_shape(row).unwrap().is_none()).unwrap();
    let error = column.part::<Complex64>(row, &Region::c_order(&[0, 0], &[1, 1])).unwrap_err();
    assert_eq!(error.kind(), NotFound, "{error}");
    assert!(error.to_string().ends_with(&format!("IncrementalStMan_half: row {row} is undefined")), "{error}");
}

/// Values that a table cannot hold are the file's fault, not the caller's.
#[test]
fn documents_that_contradict_the_data() {
    let native = Native::of(&testdata().join("strings_boundaries/StandardStMan_128.tab"));
    let exact = File::open_rw(&native.path).unwrap().group("_ctds/MAIN").unwrap();
    edit_text(&exact, "column.M20", "\"max_length\":20", "\"max_length\":2");
    drop(exact);
    let target = native.path.with_file_name("out.tab");
    let error = ToTable::new(&native.path).write(&target).unwrap_err();
    assert_eq!(error.kind(), Format, "{error}");
    assert!(error.to_string().contains("the longest of this column has 2"), "{error}");
    assert!(!target.exists());
}

#[test]
fn verify_says_which_side_is_damaged() {
    let good = testdata().join(DENSE);
    let native = Native::of(&testdata().join(DENSE));
    let main = File::open_rw(&native.path).unwrap().group("MAIN").unwrap();
    replace(&main, "s_int", &[5], &[0.5f32; 5]);
    drop(main);
    for compare in [Compare::new(&good, &native.path), Compare::new(&native.path, &good)] {
        let error = compare.run().unwrap_err();
        let says = "dataset /MAIN/s_int: row 0: the value 0.5 cannot become int, the type of the column";
        let place = format!("column s_int: {}: {says}", native.path.display());
        assert!(error.to_string().contains(&place), "{error}");
    }
}

#[test]
fn other_files() {
    let root = |change: fn(&Group)| move |main: &Group, _: &Group| change(&main.file().unwrap().group("/").unwrap());
    let format = root(|root| set_text(root, "format", "something"));
    Native::fails(DENSE, format, Unsupported, &["native.h5: this HDF5 file is not a native file of ctds-hdf5"]);
    let version = root(|root| set_text(root, "format_version", "9.0"));
    Native::fails(DENSE, version, Unsupported, &["format_version \"9.0\", known is 1.0"]);
    let number = root(|root| {
        root.delete_attr("format").unwrap();
        root.new_attr::<i32>().create("format").unwrap().write_scalar(&7).unwrap();
    });
    Native::fails(DENSE, number, Unsupported, &["is not a native file of ctds-hdf5"]);
    Native::fails(DENSE, root(|root| root.unlink("MAIN").unwrap()), NotFound, &["group /MAIN"]);
}

#[test]
fn odd_strings() {
    // the file keeps strings that HDF5 cannot hold beside the dataset
    let copy = Copy::of("strings_boundaries/StManAipsIO_128.tab");
    copy.edit("table.f0", |bytes| {
        let at = find(bytes, b"zzzzz");
        bytes[at + 1] = 0;
    });
    for name in ["index", "offset", "bytes"] {
        let change = |_: &Group, exact: &Group| {
            let group = exact.member_names().unwrap().into_iter().find(|name| name.starts_with("strings.")).unwrap();
            let group = exact.group(&group).unwrap();
            group.unlink(name).unwrap();
            match name {
                "bytes" => drop(group.new_dataset::<u8>().chunk(1 << 20).shape(1usize << 40).create(name)),
                _ => drop(group.new_dataset::<i64>().chunk(1 << 20).shape(1usize << 40).create(name)),
            }
        };
        Native::of(&copy.path()).damaged_by(change, Limit, &[name, "of which the file stores none"]);
    }
    for (name, values, words) in [
        ("offset", &[0i64][..], "found 1 offsets for 1 strings, expected one more than strings"),
        ("offset", &[0, 1 << 40], "refers to bytes 0 to 1099511627776, which do not exist"),
    ] {
        let change = |_: &Group, exact: &Group| {
            let group = exact.member_names().unwrap().into_iter().find(|name| name.starts_with("strings.")).unwrap();
            replace(&exact.group(&group).unwrap(), name, &[values.len()], values);
        };
        Native::of(&copy.path()).damaged_by(change, Format, &["strings.", words]);
    }
}

/// The header of an object becomes zeros, as the pages of a failing disk do.
fn zero_header(path: &Path, object: &str) {
    let mut bytes = std::fs::read(path).unwrap();
    let file = h5_read::File::open(bytes.clone()).unwrap();
    let header = file.offset(file.root().unwrap().find(object).unwrap().address()).unwrap() as usize;
    bytes[header..header + 16].fill(0);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn damaged_subtables_cost_nothing_else() {
    for object in ["FIELD", "_ctds/FIELD"] {
        let native = Native::of(&testdata().join("demo/demo.ms"));
        let digests = || Digest::new(&native.path).run().unwrap();
        let whole = digests();
        zero_header(&native.path, object);
        let damaged = digests();
        assert_eq!(whole.len(), damaged.len());
        for ((name, whole), (_, found)) in whole.iter().zip(&damaged) {
            if name != "FIELD" {
                assert_eq!(whole.as_ref().unwrap().hash, found.as_ref().unwrap().hash, "{name}");
                continue;
            }
            let error = found.as_ref().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format);
            assert!(error.to_string().contains("the object has no header here"), "{error}");
        }
        let target = native.path.with_file_name("back.ms");
        let convert = || ToTable::new(&native.path);
        assert_eq!(convert().write(&target).unwrap_err().kind(), ErrorKind::Format);
        let summary = convert().salvage(true).write(&target).unwrap();
        let left_out: Vec<&str> = summary.damage.iter().map(|damage| damage.table.as_str()).collect();
        assert_eq!(left_out, ["FIELD"]);
        for (name, table) in Digest::new(&target).run().unwrap().into_iter().filter(|(name, _)| name != "FIELD") {
            let before = whole.iter().find(|(other, _)| *other == name).unwrap();
            assert_eq!(table.unwrap().hash, before.1.as_ref().unwrap().hash, "{name}");
        }
    }
}

#[test]
fn damaged_columns_cost_nothing_else() {
    for (object, table, column) in [("MAIN/WEIGHT", ".", "WEIGHT"), ("HISTORY/APP_PARAMS", "HISTORY", "APP_PARAMS")] {
        let native = Native::of(&testdata().join("demo/demo.ms"));
        zero_header(&native.path, object);
        let target = native.path.with_file_name("back.ms");
        let convert = || ToTable::new(&native.path);
        let error = convert().write(&target).unwrap_err();
        assert!(error.to_string().contains("the object has no header here"), "{error}");
        let summary = convert().salvage(true).write(&target).unwrap();
        let left_out: Vec<_> = summary.damage.iter().map(|damage| (&*damage.table, damage.column.as_deref())).collect();
        assert_eq!(left_out, [(table, Some(column))]);
    }
}
