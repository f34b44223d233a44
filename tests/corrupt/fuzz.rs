//! Random changes to all tables of testdata/, the same ones in every run.
//!
//! `H5BRIDGE_LONG=1` tries more of them, and others each time; `CTDS_FUZZ_DIR` has other tables.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ctds_hdf5::{ErrorKind, Table};
use ctds_hdf5_testing::proptest::prelude::*;
use ctds_hdf5_testing::proptest::sample::Index;
use ctds_hdf5_testing::{Copy, Mutation, Watch, mutations, peak_memory_mib, property, tables_below, testdata};

use super::{check, limit_memory, read_all};

const MANY_ROWS: u64 = 1 << 24;
/// Changes to each table in a run that is not long.
const CHANGES: u32 = 20;

/// Damage to one file of a table.
#[derive(Debug, Clone)]
struct Damage {
    /// Among the files of the data managers rather than among all.
    is_data: bool,
    file: Index,
    mutations: Vec<Mutation>,
    is_converted: bool,
}

fn damage() -> impl Strategy<Value = Damage> {
    let parts = (prop::bool::weighted(0.7), any::<Index>(), mutations(2), prop::bool::weighted(0.25));
    parts.prop_map(|(is_data, file, mutations, is_converted)| Damage { is_data, file, mutations, is_converted })
}

/// Tries one damage, which is undone afterwards.
fn try_one(damage: &Damage, copy: &Copy, watch: &Watch) {
    let files = copy.files();
    let data: Vec<&String> = files.iter().filter(|file| file.starts_with("table.f")).collect();
    let file = match damage.is_data && !data.is_empty() {
        true => data[damage.file.index(data.len())],
        false => &files[damage.file.index(files.len())],
    };
    let original = copy.read(file);
    let mut bytes = original.clone();
    let changes: Vec<String> = damage.mutations.iter().map(|mutation| mutation.apply(&mut bytes)).collect();
    let what = format!("{}: {file}: {}", copy.path().display(), changes.join(", "));
    copy.write(file, &bytes);
    let target = copy.beside("out.h5");
    let target = damage.is_converted.then_some(target.as_path());
    let result = watch.over(&what, || catch_unwind(AssertUnwindSafe(|| check(&copy.path(), target))));
    copy.write(file, &original);
    match result {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => panic!("{what}: {failure}"),
        Err(_) => panic!("{what}: panic"),
    }
}

fn is_skipped(path: &Path) -> bool {
    // reading 2^32 rows takes minutes
    Table::open(path).is_ok_and(|table| table.rows() > MANY_ROWS)
        || matches!(read_all(path), Err(error) if error.kind() == ErrorKind::Unsupported)
}

#[test]
fn random_changes_end_in_ok_or_err() {
    limit_memory();
    let started = Instant::now();
    let folder = std::env::var_os("CTDS_FUZZ_DIR").map_or_else(testdata, PathBuf::from);
    let watch = Watch::new(Duration::from_secs(20));
    let (mut tables, tried, mut skipped) = (0, Cell::new(0), 0);
    let mut failures = Vec::new();
    for path in tables_below(&folder) {
        if is_skipped(&path) {
            skipped += 1;
            continue;
        }
        tables += 1;
        let copy = Copy::of_path(&path);
        let table = || {
            property(CHANGES, damage(), |damage| {
                tried.set(tried.get() + 1);
                try_one(&damage, &copy, &watch);
            });
        };
        // one table that fails does not hide the others
        if let Err(failure) = catch_unwind(AssertUnwindSafe(table)) {
            let failure = failure.downcast_ref::<String>().cloned().unwrap_or_default();
            failures.push(format!("{}: {failure}", path.display()));
        }
    }
    let (tried, seconds, peak) = (tried.get(), started.elapsed().as_secs_f64(), peak_memory_mib());
    println!(
        "{tried} changes to {tables} tables in {seconds:.1} s, peak {peak} MiB; {skipped} tables skipped, which are not supported or too long"
    );
    for failure in &failures {
        println!("{failure}");
    }
    assert!(failures.is_empty(), "{} tables fail", failures.len());
    assert!(tried >= CHANGES * tables && tables > 200, "{tried} changes to {tables} tables");
}
