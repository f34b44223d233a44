//! Random changes to all tables of testdata/, the same ones in every run.
//!
//! For longer runs: `CTDS_FUZZ_DIR` has other tables, `CTDS_FUZZ_CHANGES` is how often each is changed,
//! `CTDS_FUZZ_SEED` what the changes depend on; with `CTDS_FUZZ_TRACE` each is printed before it is tried.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ctds_hdf5::{ErrorKind, Table};

use super::common::{Copy, Random, Watch, mutate, peak_memory_mib, setting, tables_below, testdata};
use super::{check, limit_memory, read_all};

const MANY_ROWS: u64 = 1 << 24;

#[test]
fn random_changes_end_in_ok_or_err() {
    limit_memory();
    let started = Instant::now();
    let folder = std::env::var_os("CTDS_FUZZ_DIR").map_or_else(testdata, PathBuf::from);
    let (changes, seed) = (setting("CTDS_FUZZ_CHANGES", 60), setting("CTDS_FUZZ_SEED", 1));
    let trace = std::env::var_os("CTDS_FUZZ_TRACE").is_some();
    let watch = Watch::new(Duration::from_secs(20));
    let (mut tables, mut tried, mut skipped) = (0, 0, 0);
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    for (number, path) in tables_below(&folder).iter().enumerate() {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        // reading 2^32 rows takes minutes
        let many_rows = Table::open(path).is_ok_and(|table| table.rows() > MANY_ROWS);
        if many_rows || matches!(read_all(path), Err(error) if error.kind() == ErrorKind::Unsupported) {
            skipped += 1;
            continue;
        }
        tables += 1;
        let copy = Copy::of_path(path);
        let target = copy.beside("out.h5");
        let files = copy.files();
        let mut random = Random::new(seed << 32 | number as u64);
        for change in 0..changes {
            // rather the data managers' files than the small ones
            let most: Vec<&String> = files.iter().filter(|file| file.starts_with("table.f")).collect();
            let file = match random.below(3) {
                0 => &files[random.below(files.len())],
                _ => most.get(random.below(most.len().max(1))).copied().unwrap_or(&files[0]),
            };
            let original = copy.read(file);
            let mut bytes = original.clone();
            let mut what = format!("{name}: {file}: {}", mutate(&mut bytes, &mut random));
            if random.below(4) == 0 {
                what += &format!(", {}", mutate(&mut bytes, &mut random));
            }
            if trace {
                eprintln!("{what}");
            }
            copy.write(file, &bytes);
            let target = (change % 4 == 0).then_some(target.as_path());
            let result = watch.over(&what, || catch_unwind(AssertUnwindSafe(|| check(&copy.path(), target))));
            let failed = match result {
                Ok(result) => result.err(),
                Err(panic) => Some(format!(
                    "panic: {:?}",
                    panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(|s| s.to_string()))
                )),
            };
            if let Some(failed) = failed {
                failures.entry(failed).or_insert(what);
            }
            copy.write(file, &original);
            tried += 1;
        }
    }
    let (seconds, peak) = (started.elapsed().as_secs_f64(), peak_memory_mib());
    println!(
        "{tried} changes to {tables} tables in {seconds:.1} s, peak {peak} MiB; {skipped} tables skipped, which are not supported or too long"
    );
    for (failure, what) in &failures {
        println!("{what}: {failure}");
    }
    assert!(failures.is_empty(), "{} kinds of failure", failures.len());
    assert!(tried > 0, "nothing was tried");
}
