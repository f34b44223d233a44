//! What the test binaries share: copies of the tables in testdata/, ways to damage them, and what must hold whatever
//! the damage.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The folder `testdata` of the repository.
pub fn testdata() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|folder| folder.join("testdata")).find(|path| path.is_dir()).expect("testdata is in the tree")
}

/// All table directories below `folder`, subtables too, sorted.
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

/// A copy of a table, free to be damaged.
pub struct Copy {
    folder: TempDir,
    name: String,
}

impl Copy {
    /// A copy of the table `name` of testdata, and of whatever lies in its directory.
    pub fn of(name: &str) -> Self {
        Self::of_path(&testdata().join(name))
    }

    /// A copy of the table at `path`.
    pub fn of_path(path: &Path) -> Self {
        let copy = Copy {
            folder: tempfile::tempdir().unwrap(),
            name: path.file_name().unwrap().to_str().expect("names in testdata are plain").to_owned(),
        };
        copy_tree(path, &copy.path());
        copy
    }

    /// Where the copy is.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// A path beside the copy.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its regular files, sorted.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    pub fn read(&self, file: &str) -> Vec<u8> {
        fs::read(self.path().join(file)).unwrap()
    }

    pub fn write(&self, file: &str, bytes: &[u8]) {
        fs::write(self.path().join(file), bytes).unwrap();
    }

    /// Changes the bytes of a file.
    pub fn edit(&self, file: &str, change: impl FnOnce(&mut Vec<u8>)) -> &Self {
        let mut bytes = self.read(file);
        change(&mut bytes);
        self.write(file, &bytes);
        self
    }

    /// Puts `bytes` at `offset`.
    pub fn put(&self, file: &str, offset: usize, bytes: &[u8]) -> &Self {
        self.edit(file, |content| content[offset..offset + bytes.len()].copy_from_slice(bytes))
    }

    pub fn remove(&self, file: &str) -> &Self {
        fs::remove_file(self.path().join(file)).unwrap();
        self
    }
}

/// Copies a directory with everything below it.
pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Where `pattern` is in `bytes`.
pub fn find(bytes: &[u8], pattern: &[u8]) -> usize {
    let found = bytes.windows(pattern.len()).position(|window| window == pattern);
    found.unwrap_or_else(|| panic!("{:?} is not in the file", String::from_utf8_lossy(pattern)))
}

/// The offset of the first field of the AipsIO object `name`: behind its name and version.
pub fn fields_of(bytes: &[u8], name: &str) -> usize {
    let mut framed = (name.len() as u32).to_be_bytes().to_vec();
    framed.extend_from_slice(name.as_bytes());
    let mut other = (name.len() as u32).to_le_bytes().to_vec();
    other.extend_from_slice(name.as_bytes());
    let at = |pattern: &[u8]| bytes.windows(pattern.len()).position(|window| window == pattern);
    let start = at(&framed).or_else(|| at(&other)).unwrap_or_else(|| panic!("there is no object {name}"));
    start + framed.len() + 4
}

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Random numbers that are the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// splitmix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Numbers at which counts, offsets and extents go wrong.
const SUSPECTS: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0xff,
    0xffff,
    0x0001_0000,
    0x00ff_ffff,
    0x1000_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
    1 << 60,
    u64::MAX,
];

/// Damages `bytes` in one of several ways, and says how.
pub fn mutate(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    if bytes.is_empty() {
        bytes.push(random.next() as u8);
        return "a byte in an empty file".into();
    }
    // headers are at the start, indices often at the end
    let position = match random.below(4) {
        0 => random.below(bytes.len().min(64)),
        1 => random.below(bytes.len().min(700)),
        2 => bytes.len() - 1 - random.below(bytes.len().min(300)),
        _ => random.below(bytes.len()),
    };
    let room = bytes.len() - position;
    match random.below(12) {
        0..3 => {
            let bit = random.below(8);
            bytes[position] ^= 1 << bit;
            format!("bit {bit} of byte {position} flipped")
        }
        3 | 4 => {
            bytes[position] = random.next() as u8;
            format!("byte {position} = {:#04x}", bytes[position])
        }
        kind @ 5..9 => {
            let value = SUSPECTS[random.below(SUSPECTS.len())];
            let width = if kind == 8 { 8 } else { 4 }.min(room);
            let big = random.below(2) == 0;
            let mut field = value.to_le_bytes()[..width].to_vec();
            if big {
                field.reverse();
            }
            bytes[position..position + width].copy_from_slice(&field);
            format!("{width} bytes at {position} = {value:#x} {}", if big { "big" } else { "little" })
        }
        9 => {
            bytes.truncate(position);
            format!("cut at {position}")
        }
        10 => {
            let count = 1 + random.below(room.min(64));
            bytes.drain(position..position + count);
            format!("{count} bytes at {position} removed")
        }
        _ => {
            let count = 1 + random.below(room.min(64));
            let copied = bytes[position..position + count].to_vec();
            bytes.splice(position..position, copied);
            format!("{count} bytes at {position} doubled")
        }
    }
}

/// Ends the process when one piece of work takes too long: a hang cannot be caught otherwise.
pub struct Watch(Arc<Mutex<Option<(String, Instant)>>>);

impl Watch {
    pub fn new(limit: Duration) -> Self {
        let work = Arc::new(Mutex::new(None::<(String, Instant)>));
        let seen = Arc::downgrade(&work);
        std::thread::spawn(move || {
            while let Some(work) = seen.upgrade() {
                if let Some((what, since)) = &*work.lock().unwrap_or_else(PoisonError::into_inner)
                    && since.elapsed() > limit
                {
                    // not eprintln!, which the test harness keeps to itself
                    let _ = writeln!(std::io::stderr(), "hangs: {what}");
                    std::process::exit(101);
                }
                drop(work);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Watch(work)
    }

    /// Does `work`, which is called `what` if it hangs.
    pub fn over<T>(&self, what: impl Into<String>, work: impl FnOnce() -> T) -> T {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((what.into(), Instant::now()));
        let result = work();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        result
    }
}

/// The most memory that this process has held, in MiB.
pub fn peak_memory_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}
