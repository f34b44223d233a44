//! Damaged tables: every one ends in an error that says what is wrong where, never in a panic, a
//! hang or a large allocation.
//!
//! | module     | damage                                                                    |
//! |------------|---------------------------------------------------------------------------|
//! | `flips`    | every byte of every header, and every length to which a file can be cut   |
//! | `fuzz`     | thousands of random changes to all tables of testdata/                    |
//! | `named`    | one thing each, and what the message must say of it                       |
//! | `live`     | live files that contradict themselves, or whose writer did not close them |
//! | `native`   | HDF5 files that are not what they should be                                |
//! | `documents`| random changes to the JSON documents in them                              |
//! | `absurd`   | sizes that no bytes back                                                  |
//! | `contexts` | what `Error::contexts` says of it                                           |
//!
//! The whole process has a memory limit; a test that asks for more aborts it.

mod absurd;
mod contexts;
mod documents;
mod flips;
mod fuzz;
mod live;
mod named;
mod native;

use std::fs;
use std::path::Path;
use std::sync::Once;

use ctds_hdf5::convert::{Compare, Digest, DigestPolicy, ToHdf5};
use ctds_hdf5::{Error, ErrorKind, Result, Table};

const MEMORY_LIMIT_BYTES: u64 = 4 << 30;

/// Limits the address space of this process.
fn limit_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        let (_, most) = getrlimit(Resource::RLIMIT_AS).unwrap();
        setrlimit(Resource::RLIMIT_AS, MEMORY_LIMIT_BYTES, most).unwrap();
    });
}

/// Reads all of a table and its subtables; the first error of a table or a column.
fn read_all(path: &Path) -> Result<()> {
    for (_, table) in Digest::new(path).run()? {
        for column in table?.columns {
            column.hash?;
        }
    }
    Ok(())
}

/// Plans and makes a conversion; whatever happens, nothing half-made stays.
fn convert(path: &Path, target: &Path) -> Result<()> {
    let make = || -> Result<()> {
        let made = ToHdf5::new(path).digest(DigestPolicy::Always).threads(1).write(target)?;
        if made.missing == 0 {
            // readable cells are written unchanged
            let differences = Compare::new(path, target).run()?.differences;
            assert!(differences.is_empty(), "{differences:?}");
        }
        Ok(())
    };
    let made = make();
    let name = target.file_name().unwrap().to_string_lossy();
    let beside = fs::read_dir(target.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    let is_partial = |found: &std::ffi::OsString| found.to_string_lossy().starts_with(&format!("{name}."));
    assert!(!beside.into_iter().any(|found| is_partial(&found)), "a partial file stays behind");
    assert_eq!(target.exists(), made.is_ok(), "the target is there although the conversion failed, or not there");
    let _ = fs::remove_file(target);
    made
}

/// Whether the error is one that damage may lead to.
fn is_of_damage(error: &Error) -> bool {
    use ErrorKind::{Format, Limit, NoSpace, NotFound, Unsupported};
    matches!(error.kind(), Format | Limit | NoSpace | NotFound | Unsupported)
}

/// Reading and converting end well or with a suitable error of one line.
fn check(path: &Path, target: Option<&Path>) -> std::result::Result<(), String> {
    // rows that no bytes stand for, as many as a flipped bit of table.lock claims: legal, and takes
    // hours
    let unbacked = ["MemoryStMan", "AntennaPairStMan", "DyscoStMan"];
    let is_unbacked = |table: &Table| {
        table.columns().is_empty()
            || table.managers().any(|manager| unbacked.iter().any(|name| manager.type_name == *name))
    };
    if Table::open(path).is_ok_and(|table| is_unbacked(&table) && table.rows() > 1 << 20) {
        return Ok(());
    }
    for result in [Some(read_all(path)), target.map(|target| convert(path, target))].into_iter().flatten() {
        if let Err(error) = result {
            let message = error.to_string();
            if !is_of_damage(&error) || message.contains('\n') {
                return Err(format!("unsuitable error: {error:?}"));
            }
        }
    }
    Ok(())
}
