//! Two and three processes that write the same target at the same time, for every verb that writes.
//!
//! A file under the target's name is whole at any moment: the test reads it as soon as it appears,
//! and each time it is another file, and compares all bytes with those of a run alone. Without
//! `--overwrite` one process succeeds and the others end with status 7; with it none ends otherwise
//! than with 0 or 7. Nothing but the target is left in its directory.
//!
//! `H5BRIDGE_LONG=1` does 50 rounds of each, otherwise there are few.

mod writers;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ctds_hdf5::live::Reader;

use ctds_hdf5_testing::testdata;
use writers::{Content, Writer, identity, is_long, names_in, program, scratch, succeed, wait_for_end, writers};

const TABLE: &str = "demo/demo.ms";

fn rounds() -> usize {
    if is_long() { 50 } else { 4 }
}

#[derive(Debug)]
struct End {
    code: Option<i32>,
    stderr: String,
}

fn wait(mut child: Child) -> End {
    wait_for_end(&mut child);
    let output = child.wait_with_output().unwrap();
    End { code: output.status.code(), stderr: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// Starts all commands at once. `look` is called until all have ended, and once after that.
fn run_all(commands: Vec<Command>, mut look: impl FnMut() + Send) -> Vec<End> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                look();
                std::thread::sleep(Duration::from_micros(200));
            }
            look();
        });
        let children: Vec<Child> = commands.into_iter().map(|mut command| command.spawn().unwrap()).collect();
        let ends = children.into_iter().map(wait).collect();
        done.store(true, Ordering::Release);
        if let Err(panic) = watcher.join() {
            std::panic::resume_unwind(panic);
        }
        ends
    })
}

/// `overwrite`: each process may replace the output of another one.
fn round(writer: &Writer, processes: usize, overwrite: bool) {
    let folder = scratch();
    let target = folder.path().join(writer.target);
    let what = format!("{}, {processes} processes{}", writer.name, if overwrite { ", --overwrite" } else { "" });
    let mut seen = None;
    let ends = run_all((0..processes).map(|_| writer.command(&target, overwrite)).collect(), || {
        let found = identity(&target);
        if found.is_none() || found == seen {
            return;
        }
        if let Some(content) = Content::of(&target) {
            seen = found;
            assert!(content == writer.whole, "{what}: not whole: {}", content.difference(&writer.whole));
        }
    });
    assert!(seen.is_some(), "{what}: no target: {ends:?}");
    for end in &ends {
        assert!(matches!(end.code, Some(0 | 7)), "{what}: {end:?}");
        assert!(end.code == Some(0) || end.stderr.contains("exists"), "{what}: {end:?}");
    }
    let winners = ends.iter().filter(|end| end.code == Some(0)).count();
    assert!(if overwrite { winners >= 1 } else { winners == 1 }, "{what}: {winners} succeeded: {ends:?}");
    assert_eq!(names_in(folder.path()), [writer.target], "{what}: left behind: {ends:?}");
}

/// The rounds of all writers of which `wanted` says so.
fn race(wanted: impl Fn(&Writer) -> bool) {
    let folder = scratch();
    let all = writers(folder.path(), &testdata().join(TABLE));
    let mut tried = 0;
    for writer in all.iter().filter(|writer| wanted(writer)) {
        for number in 0..rounds() {
            // two and three processes, without and with --overwrite, in turns
            round(writer, 2 + number % 2, number / 2 % 2 == 1);
        }
        tried += 1;
    }
    assert!(tried > 0);
}

#[test]
fn to_hdf5() {
    race(|writer| writer.verb == "to-hdf5");
}

#[test]
fn to_ms() {
    race(|writer| writer.verb == "to-ms");
}

#[test]
fn pack() {
    race(|writer| writer.verb == "pack");
}

#[test]
fn unpack() {
    race(|writer| writer.verb == "unpack");
}

/// Only one has the live file at a time: the others may find it locked.
#[test]
fn finalize() {
    let folder = scratch();
    let all = writers(folder.path(), &testdata().join(TABLE));
    for writer in all.into_iter().filter(|writer| writer.verb == "finalize") {
        for number in 0..rounds() {
            finalize_round(&writer, folder.path(), 2 + number % 2);
        }
    }
}

fn finalize_round(writer: &Writer, sources: &Path, processes: usize) {
    let folder = scratch();
    let target = folder.path().join(writer.target);
    let ends = run_all((0..processes).map(|_| writer.command(&target, false)).collect(), || {
        if let Some(content) = Content::of(&target) {
            assert!(content == writer.whole, "{}: not whole: {}", writer.name, content.difference(&writer.whole));
        }
    });
    let winners = ends.iter().filter(|end| end.code == Some(0)).count();
    assert_eq!(winners, 1, "{}: {ends:?}", writer.name);
    assert!(ends.iter().all(|end| matches!(end.code, Some(0 | 7))), "{}: {ends:?}", writer.name);
    assert_eq!(names_in(folder.path()), [writer.target], "{}: left behind: {ends:?}", writer.name);
    assert!(!sources.join("live.h5.writer").exists(), "{}: a lock is left behind", writer.name);
}

/// In place: the first makes the live file one for the archive, and then the others make it so
/// again or are refused.
#[test]
fn finalize_in_place() {
    let sources = scratch();
    let live = sources.path().join("live.h5");
    succeed(Command::new(program()).args(["follow", "-q", "--until-closed"]).arg(testdata().join(TABLE)).arg(&live));
    for number in 0..rounds() {
        let folder = scratch();
        let target = folder.path().join("live.h5");
        fs::copy(&live, &target).unwrap();
        let mut seen = identity(&target);
        let command = || {
            let mut command = Command::new(program());
            command.args(["finalize", "-q"]).arg(&target).stdout(Stdio::null()).stderr(Stdio::piped());
            command
        };
        let ends = run_all((0..2 + number % 2).map(|_| command()).collect(), || {
            let found = identity(&target);
            assert!(found.is_some(), "the live file is gone");
            if found != seen {
                verify(&target);
                seen = found;
            }
        });
        assert!(ends.iter().all(|end| matches!(end.code, Some(0 | 7))), "{ends:?}");
        assert!(ends.iter().any(|end| end.code == Some(0)), "{ends:?}");
        assert_eq!(names_in(folder.path()), ["live.h5"], "left behind: {ends:?}");
        verify(&target);
    }
}

/// Two that follow the same table into the same file: one writes at a time, the file opens as soon
/// as it is there, and what it is at the end is the table.
#[test]
fn follow() {
    let source = testdata().join(TABLE);
    for number in 0..rounds() {
        let folder = scratch();
        let target = folder.path().join("live.h5");
        let overwrite = number / 2 % 2 == 1;
        let command = || {
            let mut command = Command::new(program());
            command.args(["follow", "-q", "--until-closed"]).arg(&source).arg(&target);
            if overwrite {
                command.arg("--overwrite");
            }
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            command
        };
        let mut seen = None;
        let ends = run_all((0..2 + number % 2).map(|_| command()).collect(), || {
            let found = identity(&target);
            if found.is_some() && found != seen {
                let opened = Reader::open(&target);
                assert!(opened.is_ok(), "the live file does not open: {:?}", opened.err());
                seen = found;
            }
        });
        assert!(ends.iter().any(|end| end.code == Some(0)), "{ends:?}");
        assert!(ends.iter().all(|end| matches!(end.code, Some(0 | 7))), "{ends:?}");
        assert_eq!(names_in(folder.path()), ["live.h5"], "left behind: {ends:?}");
        let end =
            Command::new(program()).args(["digest", "-q", "--json", "--columns", "TIME,DATA"]).arg(&target).output();
        let of_source =
            Command::new(program()).args(["digest", "-q", "--json", "--columns", "TIME,DATA"]).arg(&source).output();
        assert_eq!(main_columns(&end.unwrap().stdout), main_columns(&of_source.unwrap().stdout), "{ends:?}");
    }
}

/// The digests of the columns of the main table, as `digest --json` prints them.
fn main_columns(document: &[u8]) -> Vec<(String, String)> {
    let document: serde_json::Value = serde_json::from_slice(document).unwrap();
    let columns = document["tables"]["."]["columns"].as_object().unwrap();
    let mut found: Vec<_> = columns.iter().map(|(name, column)| (name.clone(), column["sha256"].to_string())).collect();
    assert_eq!(found.len(), 2, "{document}");
    found.sort();
    found
}

fn verify(path: &Path) {
    let output = succeed(Command::new(program()).arg("verify").arg(path));
    assert!(output.status.success());
}
