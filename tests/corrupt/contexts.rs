//! Where damage is, as data: `Error::contexts` leads from the path to the byte, without parsing of
//! messages.

use std::fs;

use ctds_hdf5::convert::Source;
use ctds_hdf5::{Context, Error, ErrorKind, Table};

use super::{convert, limit_memory};
use ctds_hdf5_testing::{Copy, find};

const STANDARD: &str = "dtypes_all_managers/StandardStMan_little.tab";
/// Of the rows in table.lock.
const LOCK_ROWS: usize = 284;

fn contexts(error: &Error) -> Vec<Context> {
    error.contexts().cloned().collect()
}

fn is_member(context: &Context, name: &str, type_name: Option<&str>) -> bool {
    matches!(context, Context::Member { file, manager } if file == name && manager.as_deref() == type_name)
}

#[test]
fn of_a_column_path_name_file_and_offset() {
    limit_memory();
    let copy = Copy::of(STANDARD);
    copy.put("table.lock", LOCK_ROWS, &0x7fff_ffffu32.to_be_bytes());
    let table = Table::open(copy.path()).unwrap();
    let name = table.columns().iter().find(|info| info.desc.name.ends_with(b"int")).unwrap().desc.name.to_string();
    let error = table.column(&name).unwrap().scalar::<i32>(0x7fff_0000).unwrap_err();
    let [path, column, file, index] = contexts(&error).try_into().unwrap_or_else(|found| panic!("{error}: {found:?}"));
    assert_eq!(path, Context::Path(copy.path()));
    assert!(matches!(&column, Context::Column { column, .. } if *column == name), "{column:?}");
    assert!(is_member(&file, "table.f0", Some("StandardStMan")), "{file:?}");
    assert!(matches!(&index, Context::Offset { structure, offset: 512.. } if structure == "index"), "{index:?}");
    assert_eq!(error.to_string(), format!("{path}: {column}: {file}: {index}: {}", error.message()));
}

#[test]
fn of_a_description_file_and_offset() {
    let copy = Copy::of(STANDARD);
    copy.edit("table.dat", |bytes| bytes.truncate(3000));
    let error = Table::open(copy.path()).unwrap_err();
    let found = contexts(&error);
    assert_eq!(found[0], Context::Path(copy.path()));
    assert!(is_member(&found[1], "table.dat", None), "{found:?}");
    assert!(matches!(found.last(), Some(Context::Offset { offset: 4, .. })), "{found:?}");
}

#[test]
fn of_a_conversion_the_table_and_its_column() {
    limit_memory();
    let copy = Copy::of("demo/demo.ms");
    fs::remove_file(copy.path().join("FEED/table.f0")).unwrap();
    let error = convert(&copy.path(), &copy.beside("out.h5")).unwrap_err();
    let found = contexts(&error);
    assert!(found.contains(&Context::Path(copy.path().join("FEED"))), "{found:?}");
    assert!(found.iter().any(|context| is_member(context, "table.f0", None)), "{found:?}");

    let copy = Copy::of("demo/demo.ms");
    copy.edit("ANTENNA/table.f0", |bytes| bytes.truncate(bytes.len() / 2));
    let error = convert(&copy.path(), &copy.beside("out.h5")).unwrap_err();
    let found = contexts(&error);
    let is_there = |context: &Context| {
        matches!(context, Context::Table(table) if table == "ANTENNA")
            || matches!(context, Context::Column { table, .. } if table == "ANTENNA")
            || *context == Context::Path(copy.path().join("ANTENNA"))
    };
    assert!(found.iter().any(is_there), "{error}: {found:?}");
}

#[test]
fn of_a_name_that_no_file_can_have() {
    let copy = Copy::of("demo/demo.ms");
    copy.edit("table.dat", |bytes| {
        let at = find(bytes, b"././ANTENNA");
        bytes[at + 5] = 0;
    });
    // the system calls a NUL invalid input; here it is a name that leads nowhere, as any other
    let source = Source::open(copy.path()).unwrap();
    let (name, error) = source.problems().next().unwrap();
    assert_eq!((name, error.kind()), ("ANTENNA", ErrorKind::NotFound), "{error}");
}
