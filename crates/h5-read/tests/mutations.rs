//! Changes files at random, repairs the checksums, and reads all of each: it ends in values or in
//! errors, soon and in little memory.
//!
//! The seed is that of the commit, so that each commit tries other changes; H5BRIDGE_SEED takes the
//! one that a failure names. H5BRIDGE_MUTATE is the number of seconds.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use h5_read::{Class, Dataset, Datatype, File, GlobalHeap, Object, ObjectKind, Target, lookup3};

#[path = "../examples/support/inflate.rs"]
mod inflate;

const ELEMENTS: u64 = 1 << 16;
/// Memory of the whole test, whose files have a few KB.
const MEMORY: u64 = 256 << 20;
const LONGEST: Duration = Duration::from_secs(10);
const SIGNATURES: [&[u8; 4]; 16] = [
    b"OHDR", b"OCHK", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTIN", b"BTLF", b"FAHD", b"FADB", b"EAHD", b"EAIB",
    b"EASB", b"EADB", b"SMTB", b"SMLI",
];

/// splitmix64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

struct Original {
    name: String,
    bytes: Vec<u8>,
    /// Blocks that end with their checksum.
    blocks: Vec<Range<usize>>,
}

impl Original {
    fn read(path: &PathBuf) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_block = |at: &usize| {
            *at == 0 && bytes.get(8).is_some_and(|version| *version >= 2)
                || SIGNATURES.iter().any(|signature| bytes[*at..].starts_with(*signature))
        };
        let end = |start: usize| {
            (start + 8..(start + 8192).min(bytes.len()))
                .find(|&end| bytes[end..].get(..4) == Some(&lookup3(&bytes[start..end]).to_le_bytes()[..]))
        };
        let blocks = (0..bytes.len()).filter(is_block).filter_map(|start| Some(start..end(start)?)).collect();
        Original { name, bytes, blocks }
    }

    /// One to four changes, in blocks with a checksum more often than elsewhere.
    fn changed(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let mut touched = HashSet::new();
        for _ in 0..1 + random.below(4) {
            let place = match random.below(4) {
                0 => 0..bytes.len(),
                _ if self.blocks.is_empty() => 0..bytes.len(),
                _ => {
                    let block = random.below(self.blocks.len());
                    touched.insert(block);
                    self.blocks[block].clone()
                }
            };
            change(&mut bytes, place, random);
        }
        for (number, block) in self.blocks.iter().enumerate() {
            // a change of any place may lie in a block as well
            if touched.contains(&number) || bytes[block.clone()] != self.bytes[block.clone()] {
                let checksum = lookup3(&bytes[block.clone()]).to_le_bytes();
                bytes[block.end..block.end + 4].copy_from_slice(&checksum);
            }
        }
        if random.below(64) == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
        bytes
    }
}

fn change(bytes: &mut [u8], place: Range<usize>, random: &mut Random) {
    let at = place.start + random.below(place.len());
    let width = [1, 1, 2, 4, 8][random.below(5)].min(place.end - at);
    let end = bytes.len() as u64;
    let value = match random.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << random.below(64),
        3 => (1 << random.below(64)) - 1,
        4 => end - random.next() % 16,
        5 => at as u64,
        6 => random.next() % end,
        _ => random.next(),
    };
    if random.below(8) == 0 {
        let from = random.below(bytes.len() - width);
        bytes.copy_within(from..from + width, at);
    } else {
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

fn read(bytes: Vec<u8>) -> h5_read::Result<()> {
    let file = File::open(bytes)?.with_filters(inflate::Inflate);
    let root = file.root()?;
    let mut heap = GlobalHeap::new(&file);
    let mut seen = HashSet::from([root.object().address()]);
    let mut todo = vec![root.object().clone()];
    while let Some(object) = todo.pop() {
        for attribute in object.attributes().items {
            elements(&attribute.datatype, &attribute.data, &mut heap);
        }
        match object.kind() {
            ObjectKind::Dataset => {
                let _ = object.dataset().and_then(|dataset| dataset_elements(&dataset, &mut heap));
            }
            ObjectKind::Group => follow(&file, &object, &mut seen, &mut todo),
            ObjectKind::Type => drop(object.committed_type()),
        }
    }
    Ok(())
}

fn follow(file: &File, object: &Object, seen: &mut HashSet<u64>, todo: &mut Vec<Object>) {
    let Ok(group) = object.group() else { return };
    for link in group.links().items {
        let found = match &link.target {
            Target::Object(address) => file.object(*address),
            Target::Soft(path) => group.find(path),
            _ => continue,
        };
        if let Ok(found) = found
            && seen.insert(found.address())
        {
            todo.push(found);
        }
    }
}

fn dataset_elements(dataset: &Dataset, heap: &mut GlobalHeap) -> h5_read::Result<()> {
    let _ = dataset.chunks();
    let _ = dataset.mappings();
    let mut left = ELEMENTS;
    let region = dataset.space().extents.iter().rev().map(|&extent| {
        let taken = extent.min(left.max(1));
        left /= taken.max(1);
        0..taken
    });
    let mut region: Vec<_> = region.collect();
    region.reverse();
    let data = dataset.read(&region, &inflate::Inflate)?;
    elements(dataset.datatype(), &data, heap);
    Ok(())
}

fn elements(datatype: &Datatype, data: &[u8], heap: &mut GlobalHeap) {
    let size = match &datatype.class {
        Class::VariableString(_) => 1,
        Class::Sequence(base) => base.size,
        _ => return,
    };
    for element in data.chunks_exact(datatype.size.max(1) as usize).take(1 << 10) {
        let _ = heap.sequence(element, size);
    }
}

fn seed() -> u64 {
    let given = std::env::var("H5BRIDGE_SEED").ok();
    let commit = || {
        let said = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        String::from_utf8_lossy(&said.ok()?.stdout).get(..15).map(str::to_owned)
    };
    let from_commit = || u64::from_str_radix(&commit()?, 16).ok();
    given.map(|text| text.parse().expect("H5BRIDGE_SEED is a number")).or_else(from_commit).unwrap_or(1)
}

/// `None` where the system does not tell.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    Some(peak.expect("Linux tells the peak in KiB") * 1024)
}

#[test]
fn changed_files_end_in_values_or_errors() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/h5-read");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "h5"));
    paths.sort();
    let originals: Vec<_> = paths.iter().map(Original::read).collect();
    assert!(originals.len() >= 8 && originals.iter().map(|original| original.blocks.len()).sum::<usize>() > 100);
    for original in &originals {
        read(original.bytes.clone()).unwrap_or_else(|error| panic!("{}: {error}", original.name));
    }
    let seconds = std::env::var("H5BRIDGE_MUTATE").map_or(10, |text| text.parse().expect("seconds"));
    let (started, seed) = (Instant::now(), seed());
    static CASE: AtomicU64 = AtomicU64::new(0);
    // the watchdog ends what hangs
    std::thread::spawn(move || {
        loop {
            let before = CASE.load(Ordering::Relaxed);
            std::thread::sleep(LONGEST);
            if CASE.load(Ordering::Relaxed) == before {
                eprintln!("H5BRIDGE_SEED={} takes more than {LONGEST:?}", before);
                std::process::abort();
            }
        }
    });
    let (mut case, mut refused) = (seed, 0u64);
    while started.elapsed() < Duration::from_secs(seconds) || case == seed {
        CASE.store(case, Ordering::Relaxed);
        let mut random = Random(case);
        let original = &originals[random.below(originals.len())];
        let changed = original.changed(&mut random);
        let found = std::panic::catch_unwind(|| read(changed).is_err());
        refused += u64::from(found.unwrap_or_else(|_| panic!("H5BRIDGE_SEED={case}: {}", original.name)));
        case += 1;
    }
    let (tried, peak) = (case - seed, peak_memory());
    let shown = peak.map_or("unknown".to_owned(), |peak| format!("{} MiB", peak >> 20));
    println!("{tried} changed files from seed {seed}, {refused} refused as a whole, peak memory {shown}");
    assert!(refused * 2 < tried, "most changes are met below the superblock");
    assert!(peak.is_none_or(|peak| peak < MEMORY), "{peak:?} bytes of memory");
}
