use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::*;
use crate::ErrorKind;
use crate::pack::{Check, CompareBytes, FinalizeFiles, Unpack};

/// A table with files of its own, and a subtable.
fn table(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/strings_boundaries/StandardStMan_256.tab");
    let table = folder.join("my.tab");
    for target in [table.clone(), table.join("SUB")] {
        fs::create_dir(&target).unwrap();
        for entry in fs::read_dir(&source).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
        }
    }
    table
}

fn follow(table: &Path, live: &Path) -> FollowFiles {
    FollowFiles::new(table, live).poll(Duration::from_millis(1)).block_bytes(4096)
}

fn differences(left: &Path, right: &Path) -> Vec<String> {
    let compared = CompareBytes::new(left, right).run().unwrap();
    assert!(compared.files > 0);
    compared.differences.into_iter().map(|difference| difference.file).collect()
}

fn append(path: &Path, bytes: &[u8]) {
    let file = OpenOptions::new().append(true).open(path).unwrap();
    std::io::Write::write_all(&mut &file, bytes).unwrap();
}

/// Each commit is compared with the table, then the table is changed in another way.
#[test]
fn every_change_is_committed() {
    let folder = tempfile::tempdir().unwrap();
    let (table, live) = (table(folder.path()), folder.path().join("live.mfh5"));
    let data = table.join("table.f0");
    let mut commits = Vec::new();
    let changes: [&dyn Fn(); 5] = [
        &|| append(&data, &[1; 10_000]),
        &|| OpenOptions::new().write(true).open(&data).unwrap().write_all_at(b"other", 700).unwrap(),
        &|| fs::write(table.join("notes.txt"), "new").unwrap(),
        &|| {
            fs::remove_file(table.join("notes.txt")).unwrap();
            File::options().write(true).open(&data).unwrap().set_len(5000).unwrap();
        },
        &|| fs::remove_dir_all(table.join("SUB")).unwrap(),
    ];
    let followed = follow(&table, &live).idle(Duration::from_millis(300)).run(|event| {
        let FilesEvent::Committed(commit) = event else { return };
        assert_eq!(differences(&table, &live), [""; 0], "after {} commits", commits.len());
        if let Some(change) = changes.get(commits.len()) {
            change();
        }
        commits.push(commit);
    });
    let followed = followed.unwrap();
    let new_files: Vec<bool> = commits.iter().map(|commit| commit.new_file).collect();
    assert_eq!(new_files, [true, false, false, true, false, true]);
    assert!(commits[1].appended >= 8192 && commits[1].replaced == 0, "{commits:?}");
    assert_eq!((commits[2].appended, commits[2].replaced), (0, 4096));
    assert_eq!((followed.commits, followed.generations), (6, 3));
    assert_eq!(followed.notes, [""; 0]);
    let files = fs::read_dir(&table).unwrap().count();
    assert_eq!((followed.files, followed.stored_bytes), (files, live.metadata().unwrap().len()));
    // closed: nothing else is left, and all of it is read
    assert_eq!(differences(&table, &live), [""; 0]);
    let mut check = Check::open(&live).unwrap();
    check.read(&()).unwrap();
    assert!(check.damaged.is_empty(), "{check:?}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn the_end_is_an_ordinary_container() {
    let folder = tempfile::tempdir().unwrap();
    let (table, live) = (table(folder.path()), folder.path().join("live.mfh5"));
    let packed = folder.path().join("packed.tab");
    follow(&table, &live).until_closed(true).run(|_| {}).unwrap();
    let rows = crate::open_table(&table).unwrap().rows();
    assert!(is_followed(&live) && !is_followed(&table) && !is_followed(folder.path().join("no")));
    assert_eq!(crate::open_table(&live).unwrap().rows(), rows);

    let finalized = FinalizeFiles::new(&live).write(&packed).unwrap();
    assert!(finalized.comparison.files > 0 && finalized.comparison.differences.is_empty());
    assert!(packed.join("table.mfh5").is_file() && packed.join("SUB/table.mfh5").is_file());
    assert_eq!(differences(&table, &packed), [""; 0]);
    assert_eq!(crate::open_table(&packed).unwrap().rows(), rows);
    assert_eq!(FinalizeFiles::new(&live).write(&packed).unwrap_err().kind(), ErrorKind::Exists);

    FinalizeFiles::new(&live).replace().unwrap();
    assert!(!is_followed(&live));
    assert_eq!(differences(&table, &live), [""; 0]);
    let mut check = Check::open(&live).unwrap();
    check.read(&()).unwrap();
    assert!(check.damaged.is_empty() && check.files > 0, "{check:?}");
    let refused = FinalizeFiles::new(&live).replace().unwrap_err();
    assert!(refused.kind() == ErrorKind::Usage && refused.to_string().contains("`pack --follow`"), "{refused}");
    Unpack::new(&live).write(folder.path().join("plain.tab")).unwrap();
    assert_eq!(differences(&table, &folder.path().join("plain.tab")), [""; 0]);
}

#[test]
fn another_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (first, live) = (table(folder.path()), folder.path().join("live.mfh5"));
    fs::create_dir(folder.path().join("others")).unwrap();
    let other = table(&folder.path().join("others"));
    let run = |table: &Path| follow(table, &live).until_closed(true).run(|_| {});
    fs::write(&live, "anything").unwrap();
    let refused = run(&first).unwrap_err();
    assert!(refused.kind() == ErrorKind::Exists && refused.to_string().contains("was not made by"), "{refused}");
    assert_eq!(fs::read(&live).unwrap(), b"anything");
    follow(&first, &live).until_closed(true).overwrite(true).run(|_| {}).unwrap();
    // the same table goes on, another one does not, also if it is in the place of the first
    run(&first).unwrap();
    let refused = run(&other).unwrap_err();
    assert!(refused.kind() == ErrorKind::Exists && refused.to_string().contains("another table, "), "{refused}");
    fs::rename(&first, folder.path().join("old.tab")).unwrap();
    fs::rename(&other, &first).unwrap();
    let refused = run(&first).unwrap_err();
    assert!(refused.kind() == ErrorKind::Exists && refused.to_string().contains("was here before"), "{refused}");
    assert_eq!(differences(&folder.path().join("old.tab"), &live), [""; 0]);
    let nowhere = follow(&first, &folder.path().join("no/live.mfh5")).until_closed(true).run(|_| {}).unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::Usage);
    let inside = follow(&first, &first.join("live.mfh5")).until_closed(true).run(|_| {}).unwrap_err();
    assert_eq!(inside.kind(), ErrorKind::Usage);
}

#[test]
fn one_writer_at_a_time_and_a_table_that_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (table, live) = (table(folder.path()), folder.path().join("live.mfh5"));
    let mut second = None;
    let removed = follow(&table, &live).run(|event| {
        if let FilesEvent::Committed(_) = event {
            second = follow(&table, &live).run(|_| {}).err();
            fs::remove_dir_all(&table).unwrap();
        }
    });
    assert_eq!(second.unwrap().kind(), ErrorKind::Locked);
    let removed = removed.unwrap_err();
    assert!(removed.kind() == ErrorKind::NotFound && removed.to_string().contains("was removed"), "{removed}");
    assert!(crate::open_table(&live).unwrap().rows() > 0);
}

#[test]
fn a_cancelled_first_copy_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (table, live) = (table(folder.path()), folder.path().join("live.mfh5"));
    let token = CancelToken::new();
    token.cancel();
    let cancelled = follow(&table, &live).cancel(&token).run(|_| {}).unwrap_err();
    assert_eq!(cancelled.kind(), ErrorKind::Interrupted);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // a container that exists gets the newest state
    let (token, mut at_the_end) = (CancelToken::new(), false);
    let followed = follow(&table, &live).cancel(&token).run(|event| {
        if let FilesEvent::Committed(_) = event {
            at_the_end = true;
            append(&table.join("table.f0"), &[1; 100]);
            token.cancel();
        }
    });
    assert!(at_the_end && followed.unwrap().commits == 2);
    assert_eq!(differences(&table, &live), [""; 0]);
}

/// Damage that does not pass is an error, soon.
#[test]
fn a_directory_without_a_table_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (table, live) = (table(folder.path()), folder.path().join("live.mfh5"));
    fs::write(table.join("table.lock"), [0; 300]).unwrap();
    fs::remove_file(table.join("table.dat")).unwrap();
    let start = Instant::now();
    let missing = follow(&table, &live).idle(Duration::from_millis(50)).run(|_| {}).unwrap_err();
    assert!(missing.kind() == ErrorKind::NotFound && missing.to_string().contains("no table.dat yet"), "{missing}");
    assert!(start.elapsed() < Duration::from_secs(20));
    fs::remove_file(table.join("table.lock")).unwrap();
    fs::write(table.join("table.dat"), "").unwrap();
    let unlocked = follow(&table, &live).run(|_| {}).unwrap_err();
    assert_eq!(unlocked.kind(), ErrorKind::Unsupported);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
