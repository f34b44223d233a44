//! Live containers whose files are changed as well as appended to.

use std::collections::BTreeSet;

use super::super::names::BLOCKS;
use super::*;

const BLOCK: u64 = 64;

fn origin() -> Origin {
    Origin { path: "/data/my.ms".to_owned(), inode: 7 }
}

fn create(path: &Path, paths: &[&str]) -> LiveFiles {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    LiveFiles::create(path, BLOCK, &paths, &origin()).unwrap()
}

/// Makes the container hold these files, and no others, and commits.
fn commit(files: &mut LiveFiles, expected: &BTreeMap<String, Vec<u8>>) -> Updated {
    let mut all = Updated::default();
    for (path, plain) in expected {
        let updated = files.update(path, plain, Vec::len(plain) as u64, &()).unwrap();
        all.appended += updated.appended;
        all.replaced += updated.replaced;
    }
    files.keep(&expected.keys().cloned().collect::<BTreeSet<_>>());
    files.commit(false).unwrap();
    all
}

/// Changes a file in one of the ways in which files change; `None`: it is removed.
fn changed(number: u64, plain: Vec<u8>) -> Option<Vec<u8>> {
    let (mut plain, len) = (plain.clone(), Vec::len(&plain));
    match number % 9 {
        0..=2 => plain.extend(bytes(number, 1 + number * 37 % 200)),
        3 if len > 0 => plain[number as usize * 131 % len] ^= 1,
        4 => plain.truncate(len / 2),
        5 => plain = bytes(number, number * 53 % 700),
        // shorter, and then longer with other bytes
        6 => {
            plain.truncate(len.saturating_sub(number as usize % 90));
            plain.extend(bytes(number + 1, number % 60));
        }
        7 => return None,
        _ => {}
    }
    Some(plain)
}

/// Readers that have had the container open since an earlier commit, and a kill, change nothing.
#[test]
fn every_commit_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.mfh5");
    for seed in 0..12 {
        let path = folder.path().join(format!("{seed}.mfh5"));
        let paths = ["a", "b", "n/c", "n/m/d", "none/"];
        let mut files = create(&path, &paths);
        let mut expected: BTreeMap<String, Vec<u8>> =
            paths[..4].iter().map(|path| ((*path).to_owned(), Vec::new())).collect();
        let mut earlier = Vec::new();
        for round in 0..14 {
            for (number, path) in (0..).zip(&paths[..4]) {
                let plain = expected.remove(*path).unwrap_or_default();
                let number = (seed * 1009 + round * 7919 + number * 104_729) >> 2;
                expected.extend(changed(number, plain).map(|plain| ((*path).to_owned(), plain)));
            }
            commit(&mut files, &expected);
            // as if the process was killed now
            std::fs::copy(&path, &copy).unwrap();
            let opened = open(&copy).unwrap();
            assert!(content(&*opened) == expected, "seed {seed}, round {round}");
            assert_eq!(opened.nested().unwrap(), ["n", "none"]);
            let mut reader = LiveContainerReader::open(&copy).unwrap();
            assert!(!reader.refresh().unwrap());
            for path in &paths[..4] {
                let Some(plain) = expected.get(*path) else {
                    assert_eq!(reader.len(path).unwrap_err().kind(), ErrorKind::NotFound);
                    continue;
                };
                let mut bytes = vec![0; reader.len(path).unwrap() as usize];
                reader.read_at(path, 0, &mut bytes).unwrap();
                assert_eq!(&bytes, plain);
            }
            earlier.push((open(&path).unwrap(), expected.clone()));
        }
        for (round, (container, expected)) in earlier.iter().enumerate() {
            assert!(content(&**container) == *expected, "seed {seed}, round {round}, at the end");
        }
        files.close().unwrap();
        assert!(content(&*open(&path).unwrap()) == expected, "seed {seed}, closed");
    }
}

#[test]
fn growth_costs_what_is_new_and_a_change_a_block() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.mfh5");
    let mut files = create(&path, &["f"]);
    let mut expected = BTreeMap::from([("f".to_owned(), vec![1; 100])]);
    assert_eq!(commit(&mut files, &expected), Updated { appended: 128, replaced: 0 });
    // within the last block, whose row stays
    expected.insert("f".to_owned(), vec![1; 120]);
    assert_eq!(commit(&mut files, &expected), Updated { appended: 64, replaced: 0 });
    assert_eq!(files.used_and_replaced(), (128, 0));
    assert_eq!(commit(&mut files, &expected), Updated::default());
    expected.get_mut("f").unwrap()[70] = 2;
    assert_eq!(commit(&mut files, &expected), Updated { appended: 0, replaced: 64 });
    assert_eq!(files.used_and_replaced(), (128, 64));
    assert_eq!((files.count(), files.bytes()), (1, 120));
    // rows that no commit has yet are written in place
    files.update("f", &vec![3u8; 128], 128, &()).unwrap();
    files.update("f", &vec![4u8; 128], 128, &()).unwrap();
    assert_eq!(files.used_and_replaced(), (128, 192));
    expected.insert("f".to_owned(), vec![4; 128]);
    assert_eq!(commit(&mut files, &expected), Updated::default());
    files.close().unwrap();
    assert!(content(&*open(&path).unwrap()) == expected);
}

/// The file has been replaced by another one with more commits.
#[test]
fn a_reader_finds_the_next_container() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("live.mfh5"), folder.path().join("other.mfh5"));
    let mut files = create(&path, &["f"]);
    commit(&mut files, &BTreeMap::from([("f".to_owned(), vec![1; 100])]));
    let mut reader = LiveContainerReader::open(&path).unwrap();
    commit(&mut files, &BTreeMap::from([("f".to_owned(), vec![2; 90])]));
    assert!(reader.refresh().unwrap() && !reader.refresh().unwrap());
    let read = |reader: &mut LiveContainerReader| {
        let mut bytes = vec![0; reader.len("f").unwrap() as usize];
        reader.read_at("f", 0, &mut bytes).unwrap();
        bytes
    };
    assert_eq!(read(&mut reader), [2; 90]);
    let mut next = create(&other, &["f", "g"]);
    commit(&mut next, &BTreeMap::from([("f".to_owned(), vec![3; 80]), ("g".to_owned(), vec![4; 10])]));
    std::fs::rename(&other, &path).unwrap();
    assert!(reader.refresh().unwrap());
    assert_eq!((read(&mut reader), reader.len("g").unwrap()), (vec![3; 80], 10));
}

#[test]
fn a_failure_to_read_is_not_one_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.mfh5");
    let mut files = create(&path, &["f"]);
    assert!(files.update("f", &vec![1u8; 100], 200, &()).is_err());
    assert_eq!(files.update("g", &vec![1u8; 1], 1, &()).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(files.broken().is_none());
    let expected = BTreeMap::from([("f".to_owned(), vec![5; 150])]);
    commit(&mut files, &expected);
    assert!(!files.is_changed() && files.has("f") && !files.has("g"));
    // without a commit nothing of it is seen
    files.update("f", &vec![6u8; 300], 300, &()).unwrap();
    assert!(files.is_changed());
    files.close().unwrap();
    assert!(content(&*open(&path).unwrap()) == expected);
    assert_eq!(LiveFiles::origin(&path).unwrap(), Some(origin()));
    // the header knows the hash of an empty file only
    assert_eq!(open(&path).unwrap().layout("f").unwrap().hash, None);
}

#[test]
fn only_its_writer_changes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.mfh5");
    let mut files = create(&path, &["f"]);
    commit(&mut files, &BTreeMap::from([("f".to_owned(), vec![1; 100])]));
    files.close().unwrap();
    let refused = MultiHdf5Mut::edit(&path).unwrap_err();
    assert!(refused.kind() == ErrorKind::Unsupported && refused.to_string().contains("h5bridge finalize"), "{refused}");
    assert_eq!(LiveContainer::open(&path).unwrap_err().kind(), ErrorKind::Unsupported);
    let plain = folder.path().join("plain.mfh5");
    LiveContainer::create(&plain, BLOCK, &["f"]).unwrap().close().unwrap();
    assert_eq!(LiveFiles::origin(&plain).unwrap(), None);
}

#[test]
fn damaged_lists_of_blocks_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.mfh5");
    let error = |entries: &[i64], rows: u64| {
        let mut files = create(&path, &["f"]);
        commit(&mut files, &BTreeMap::from([("f".to_owned(), vec![1; 100])]));
        files.close().unwrap();
        let file = h5::File::edit(&path, Bounds::V110).unwrap();
        let root = file.root().unwrap();
        let blocks = root.dataset(BLOCKS).unwrap();
        blocks.set_extent(rows).unwrap();
        if !entries.is_empty() {
            let region = Region::whole(&Shape::from([3, entries.len() as u64 / 3]));
            blocks.write_region(&region, &Values::Int64(entries.to_vec())).unwrap();
        }
        drop((blocks, root));
        file.close().unwrap();
        open(&path).and_then(|container| container.open("f")).map_or_else(|error| error.to_string(), |_| String::new())
    };
    assert_eq!(error(&[], 2), "");
    for (entries, rows, says) in [
        (&[][..], 1, "the list has 1 entries, but the commit has 2"),
        (&[0, 0, 0, 1, 0, 1][..], 2, "file 1 is listed, but the container has 1"),
        (&[0, 0, 0, 0, 2, 1][..], 2, "block 2 of file 0 is listed, but the file has 1 blocks before"),
        (&[0, 0, 0, 0, 0, 1][..], 2, "the file has 100 bytes, but only 1 of its blocks are listed"),
        (&[0, 0, 0, 0, 1, 1 << 40][..], 2, "a block is in row 1099511627776, but the dataset has"),
    ] {
        let found = error(entries, rows);
        assert!(found.contains(says), "{found:?}, expected {says:?}");
    }
}
