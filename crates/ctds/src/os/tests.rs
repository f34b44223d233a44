//! The calls of this system and the portable paths, in one process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::*;

/// Those of [`system`] and of [`portable`], as one type.
macro_rules! both {
    ($function:ident: $type:ty) => {
        [system::$function as $type, portable::$function as $type]
    };
}

type Rename = fn(&Path, &Path) -> io::Result<Renamed>;
type CloneRange = fn(&File, &Range<u64>, &File, u64) -> nix::Result<()>;
type CopyRange = fn(&File, &Range<u64>, &File, u64) -> u64;

fn not_tested(part: &str, folder: &Path) {
    eprintln!("not tested: {} has no {part}", folder.display());
}

/// A file whose bytes repeat late.
fn sample(folder: &Path, name: &str, len: usize) -> (File, Vec<u8>) {
    let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8 ^ (i >> 12) as u8).collect();
    fs::write(folder.join(name), &bytes).unwrap();
    (File::options().read(true).write(true).open(folder.join(name)).unwrap(), bytes)
}

#[test]
fn renames_keep_existing_files() {
    for (rename_new, exchange) in both!(rename_new: Rename).into_iter().zip(both!(exchange: Rename)) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let content = |name: &str| fs::read_to_string(path(name)).unwrap_or_default();
        fs::write(path("a"), "1").unwrap();
        fs::write(path("b"), "2").unwrap();
        assert_ne!(rename_new(&path("a"), &path("b")).unwrap(), Renamed::Done);
        assert_ne!(exchange(&path("a"), &path("c")).unwrap(), Renamed::Done);
        assert_eq!(["a", "b", "c"].map(content), ["1", "2", ""]);
        match exchange(&path("a"), &path("b")).unwrap() {
            Renamed::Done => assert_eq!(["a", "b"].map(content), ["2", "1"]),
            Renamed::Unsupported => not_tested("exchange of names", folder.path()),
            Renamed::Not => panic!("both files exist"),
        }
        fs::write(path("a"), "3").unwrap();
        match rename_new(&path("a"), &path("c")).unwrap() {
            Renamed::Done => assert_eq!(["a", "c"].map(content), ["", "3"]),
            Renamed::Unsupported => not_tested("rename without replacing", folder.path()),
            Renamed::Not => panic!("the name is free"),
        }
    }
}

#[test]
fn copied_and_shared_bytes_are_those_of_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let (from, bytes) = sample(folder.path(), "from", 100_000);
    let found = || fs::read(folder.path().join("to")).unwrap();
    for copy_range in both!(copy_range: CopyRange) {
        let (to, before) = sample(folder.path(), "to", 10_000);
        let count = copy_range(&from, &(5000..90_000), &to, 10_000) as usize;
        assert_eq!(found(), [&before, &bytes[5000..5000 + count]].concat());
    }
    for clone_range in both!(clone_range: CloneRange) {
        let (to, before) = sample(folder.path(), "to", 4096);
        match clone_range(&from, &(8192..16_384), &to, 4096) {
            Ok(()) => assert_eq!(found(), [&before, &bytes[8192..16_384]].concat()),
            Err(_) => not_tested("shared bytes", folder.path()),
        }
    }
}

#[test]
fn requests_for_the_disk_leave_the_file_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (file, bytes) = sample(folder.path(), "file", 10_000);
    for reserve in both!(reserve: fn(&File, Range<u64>) -> io::Result<()>) {
        reserve(&file, 10_000..4 << 20).unwrap();
    }
    for write_back in both!(write_back: fn(&File, Range<u64>)) {
        write_back(&file, 0..8192);
    }
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), bytes);
}

#[test]
fn holes_are_within_the_file() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(1 << 20).unwrap();
    for first_hole in both!(first_hole: fn(&File, u64) -> Option<u64>) {
        assert!(first_hole(&file, 4096).is_none_or(|hole| (4096..=1 << 20).contains(&hole)));
        assert_eq!(first_hole(&file, 2 << 20), None);
    }
}

#[test]
fn free_space_needs_an_existing_path() {
    let folder = tempfile::tempdir().unwrap();
    for free_bytes in both!(free_bytes: fn(&Path) -> io::Result<u64>) {
        assert!(free_bytes(folder.path()).unwrap() > 0);
        assert_eq!(free_bytes(&folder.path().join("missing")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

#[test]
fn peak_memory_covers_what_is_held() {
    let held = vec![1_u8; 32 << 20];
    for peak_memory in both!(peak_memory: fn() -> Option<u64>) {
        let peak = peak_memory().unwrap();
        assert!((held.len() as u64..1 << 40).contains(&peak), "{peak}");
    }
}

#[test]
fn running_processes_are_told_from_others() {
    // the largest number of a process is 4194304
    for is_running in both!(is_running: fn(u32) -> bool) {
        assert_eq!([std::process::id(), 1, 0, 4_194_305, u32::MAX].map(is_running), [true, true, false, false, false]);
    }
}

#[test]
fn writers_of_a_file_are_found_and_readers_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    for (redirection, writes) in [(">>", true), ("<", false)] {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 3{redirection}\"$0\"; echo; read end")]).arg(&path);
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        let expected = (writes && cfg!(target_os = "linux")).then_some(child.id());
        assert_eq!(system::process_that_writes(&path), expected);
        assert_eq!(portable::process_that_writes(&path), None);
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}

#[test]
fn locks_belong_to_open_files() {
    let folder = tempfile::tempdir().unwrap();
    let (one, _) = sample(folder.path(), "file", 10);
    let other = File::options().read(true).write(true).open(folder.path().join("file")).unwrap();
    assert!(try_lock(&one, LockKind::Read, 0..1).unwrap() && try_lock(&other, LockKind::Read, 0..1).unwrap());
    assert!(!try_lock(&other, LockKind::Write, 0..1).unwrap());
    assert!(try_lock(&other, LockKind::Write, 1..2).unwrap());
    assert_eq!(conflicting_lock(&one, LockKind::Read, 0..1).unwrap(), None);
    let holder = Some(LockHolder::Description);
    assert_eq!(conflicting_lock(&one, LockKind::Write, 0..1).unwrap(), holder);
    assert_eq!(conflicting_lock(&one, LockKind::Read, WHOLE_FILE).unwrap(), holder);
    unlock(&other, WHOLE_FILE).unwrap();
    assert_eq!(conflicting_lock(&one, LockKind::Write, WHOLE_FILE).unwrap(), None);
    assert!(try_lock(&other, LockKind::Write, 1 << 62..(1 << 62) + 1).unwrap());
    assert_eq!(conflicting_lock(&one, LockKind::Write, WHOLE_FILE).unwrap(), holder);
    drop(other);
    assert_eq!(conflicting_lock(&one, LockKind::Write, WHOLE_FILE).unwrap(), None);
    assert!(
        !has_no_locks(&try_lock(&one, LockKind::Write, u64::MAX - 1..u64::MAX).unwrap_err()),
        "an offset is signed"
    );
}
