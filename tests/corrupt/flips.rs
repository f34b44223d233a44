//! Bytes of headers, and lengths to which a small file can be cut: with `H5BRIDGE_LONG=1` every
//! one, otherwise a part.

use ctds_hdf5_testing::{Copy, Watch, step};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::{check, limit_memory};

/// Numbers of bytes that count as header: at the start, and at the end, where indices are.
fn header_bytes(file: &str) -> (usize, usize) {
    match file {
        "table.dat" | "table.lock" | "table.info" => (usize::MAX, 0),
        _ if file.contains("_TSM") => (16, 0),
        _ if file.ends_with('i') => (160, 0),
        _ => (600, 200),
    }
}

/// A table of each manager, in both byte orders.
const TABLES: [&str; 12] = [
    "dtypes_all_managers/StandardStMan_big.tab",
    "dtypes_all_managers/StandardStMan_little.tab",
    "dtypes_all_managers/IncrementalStMan_big.tab",
    "dtypes_all_managers/IncrementalStMan_little.tab",
    "dtypes_all_managers/StManAipsIO_big.tab",
    "dtypes_all_managers/StManAipsIO_little.tab",
    "dtypes_tiled/TiledColumnStMan_complex_big.tab",
    "dtypes_tiled/TiledColumnStMan_boolean_little.tab",
    "dtypes_tiled/TiledShapeStMan_float_big.tab",
    "dtypes_tiled/TiledShapeStMan_int_little.tab",
    "dtypes_tiled/TiledCellStMan_double_big.tab",
    "dtypes_tiled/TiledCellStMan_short_little.tab",
];

/// Checks the copy after each of `changes`, which are named.
fn each(copy: &Copy, file: &str, changes: impl Iterator<Item = (String, Vec<u8>)>) -> usize {
    limit_memory();
    let watch = Watch::new(Duration::from_secs(20));
    let original = copy.read(file);
    let mut failures = BTreeSet::new();
    let mut tried = 0;
    for (what, bytes) in changes {
        copy.write(file, &bytes);
        let what = format!("{}: {file}: {what}", copy.path().display());
        let result = watch.over(&what, || catch_unwind(AssertUnwindSafe(|| check(&copy.path(), None))));
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => drop(failures.insert(format!("{what}: {error}"))),
            Err(_) => drop(failures.insert(format!("{what}: panic"))),
        }
        tried += 1;
    }
    copy.write(file, &original);
    assert!(failures.is_empty(), "{failures:#?}");
    tried
}

/// Step through bytes and lengths of a run that is not long; each table begins at another one.
const STEP: usize = 7;

#[test]
fn every_byte_of_every_header() {
    let mut tried = 0;
    let part = step(STEP);
    for (number, name) in TABLES.iter().enumerate() {
        let copy = Copy::of(name);
        for file in copy.files() {
            let original = copy.read(&file);
            // table.dat is all header, and much the same in all tables: a part of it for each
            let step = if file == "table.dat" { TABLES.len() } else { 1 } * part;
            let first = if file == "table.dat" { number } else { number % part };
            let (start, end) = header_bytes(&file);
            let is_header = |&at: &usize| at < start || at + end >= original.len();
            let positions = (first..original.len()).step_by(step).filter(is_header);
            let flips = |at: usize| [0x01u8, 0x80, 0xff].map(move |flip| (at, flip));
            // each bucket of an IncrementalStMan has an index somewhere
            let is_buckets = name.contains("Incremental") && file == "table.f0";
            let others = (start..original.len() - end.min(original.len()))
                .filter(|at| is_buckets && at % part == number % part)
                .map(|at| (at, 0xff));
            let changes = positions.flat_map(flips).chain(others).map(|(at, flip)| {
                let mut bytes = original.clone();
                bytes[at] ^= flip;
                (format!("byte {at} ^ {flip:#x}"), bytes)
            });
            tried += each(&copy, &file, changes);
        }
    }
    println!("{tried} flips in {} tables", TABLES.len());
}

#[test]
fn every_length() {
    let mut tried = 0;
    let part = step(STEP);
    for (number, name) in TABLES.iter().enumerate() {
        let copy = Copy::of(name);
        for file in copy.files() {
            let original = copy.read(&file);
            // longer steps where there are only values
            let lengths = (0..original.len()).filter(|&len| len < 200 || len % 97 == 0 || len + 20 > original.len());
            let lengths = lengths.skip(number % part).step_by(part);
            let changes = lengths.map(|len| (format!("cut at {len}"), original[..len].to_vec()));
            tried += each(&copy, &file, changes);
        }
    }
    println!("{tried} lengths of files of {} tables", TABLES.len());
}
