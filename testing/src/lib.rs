//! Code that tests share: copies of the tables in testdata/, ways to damage them, and properties
//! that hold for random input.
//!
//! It depends on nothing that it tests, so that the library's own tests use it like any other.
#![deny(missing_docs)]

mod copy;
mod mutation;
mod property;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};

pub use copy::{Copy, copy_tree};
pub use mutation::{Mutation, mutation, mutations};
pub use property::{cases, is_long, property, step};
pub use proptest;
pub use watch::Watch;

/// Path of the folder `testdata` of the repository.
pub fn testdata() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|folder| folder.join("testdata")).find(|path| path.is_dir()).expect("testdata is in the tree")
}

/// Paths of all table directories below `folder`, including subtables, sorted.
pub fn tables_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        if folder.join("table.dat").is_file() {
            found.push(folder.clone());
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        pending.extend(entries.map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

/// The offset at which `pattern` first occurs in `bytes`; panics if it does not.
pub fn find(bytes: &[u8], pattern: &[u8]) -> usize {
    let found = bytes.windows(pattern.len()).position(|window| window == pattern);
    found.unwrap_or_else(|| panic!("{:?} is not in the file", String::from_utf8_lossy(pattern)))
}

/// The offset of the first field of the AipsIO object `name`: after its name and version.
pub fn fields_of(bytes: &[u8], name: &str) -> usize {
    let mut framed = (name.len() as u32).to_be_bytes().to_vec();
    framed.extend_from_slice(name.as_bytes());
    let mut other = (name.len() as u32).to_le_bytes().to_vec();
    other.extend_from_slice(name.as_bytes());
    let at = |pattern: &[u8]| bytes.windows(pattern.len()).position(|window| window == pattern);
    let start = at(&framed).or_else(|| at(&other)).unwrap_or_else(|| panic!("there is no object {name}"));
    start + framed.len() + 4
}

/// A number from the environment variable `name`, for test settings; `default` if it is not set.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The most memory that the test process has held, in MiB.
pub fn peak_memory_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}
