//! Conversions that are interrupted at random moments: by SIGINT, by SIGTERM, and killed.
//!
//! Afterwards the target is as it was before (absent, or what it held), or whole: all bytes are those of an undisturbed
//! run. Nothing else of the program is left in the directory, except after kill -9 one temporary file or directory,
//! which the next run of the same command removes.
//!
//! `H5BRIDGE_LONG=1` interrupts 300 conversions, otherwise 30. The moments come from a random seed, which is printed when
//! the test fails; `H5BRIDGE_SEED` sets it.

mod writers;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use signal_hook::consts::{SIGINT, SIGKILL, SIGTERM};

use ctds_hdf5_testing::testdata;
use writers::{Content, Writer, is_long, names_in, scratch, succeed, writers};

const TABLE: &str = "demo/demo.ms";

/// Longer than any process takes here.
const LIMIT: Duration = Duration::from_secs(120);

/// splitmix64.
struct Random(u64);

impl Random {
    fn seeded() -> (Self, u64) {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let seed = std::env::var("H5BRIDGE_SEED").map_or(time.as_nanos() as u64, |seed| seed.parse().unwrap());
        (Random(seed), seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[(self.next() % items.len() as u64) as usize]
    }

    /// From 0 to 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn send(child: &Child, signal: i32) {
    let sent = Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).status().unwrap();
    assert!(sent.success());
}

/// Waits for the end of a process, which must come.
fn wait(mut child: Child) -> std::process::Output {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("a process hangs that was interrupted");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait_with_output().unwrap()
}

/// What `target` holds before: nothing, or the content of another table.
fn prepare(writer: &Writer, target: &Path, older: &Content) {
    older.write_to(target);
    assert_eq!(Content::of(target).as_ref(), Some(older), "{}", writer.name);
}

/// What there was of a target before, and what was done to the process.
struct Case<'a> {
    writer: &'a Writer,
    older: Option<&'a Content>,
    signal: i32,
    after: Duration,
}

impl std::fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let replaced = if self.older.is_some() { ", --overwrite" } else { "" };
        write!(f, "{}{replaced}, signal {} after {:?}", self.writer.name, self.signal, self.after)
    }
}

/// What came of it.
#[derive(Default, Debug)]
struct Seen {
    /// The process was still at work when the signal came.
    interrupted: usize,
    /// The target was whole nevertheless.
    whole: usize,
    /// A killed process left a temporary file.
    left: usize,
}

fn interrupt(case: &Case<'_>, seen: &mut Seen) {
    let folder = scratch();
    let target = folder.path().join(case.writer.target);
    if let Some(older) = case.older {
        prepare(case.writer, &target, older);
    }
    let child = case.writer.command(&target, case.older.is_some()).spawn().unwrap();
    std::thread::sleep(case.after);
    send(&child, case.signal);
    let output = wait(child);
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();

    let is_whole = check_target(case, &target, &said);
    seen.whole += usize::from(is_whole);
    seen.interrupted += usize::from(code != Some(0));
    assert!(code != Some(0) || is_whole, "{case}: done, but the target is not written");
    let others = || names_in(folder.path()).into_iter().filter(|name| *name != case.writer.target).collect::<Vec<_>>();
    if case.signal == SIGKILL {
        assert!(matches!(code, None | Some(0)), "{case}: {code:?}: {said}");
        assert!(others().len() <= 1, "{case}: left behind: {:?}", others());
        seen.left += others().len();
    } else {
        // a signal may come before the program can tell it from any other
        assert!(matches!(code, Some(0 | 130) | None), "{case}: {code:?}: {said}");
        assert_eq!(others(), Vec::<String>::new(), "{case}: left behind");
    }

    succeed(&mut case.writer.command(&target, true));
    assert!(check_target(case, &target, "the next run"), "{case}: the next run wrote something else");
    assert_eq!(others(), Vec::<String>::new(), "{case}: left by the next run");
}

/// Whether the target is whole; otherwise it must be as it was.
fn check_target(case: &Case<'_>, target: &Path, said: &str) -> bool {
    let found = target.symlink_metadata().is_ok().then(|| Content::of(target).unwrap());
    if found.as_ref() == Some(&case.writer.whole) {
        return true;
    }
    let difference = found.as_ref().map_or("nothing is there".into(), |found| found.difference(&case.writer.whole));
    assert!(found.as_ref() == case.older, "{case}: neither whole nor as it was: {difference}; {said}");
    false
}

#[test]
fn a_target_is_whole_or_as_it_was() {
    let (mut random, seed) = Random::seeded();
    eprintln!("H5BRIDGE_SEED={seed}");
    let folder = scratch();
    let all = writers(folder.path(), &testdata().join(TABLE));
    let others = folder.path().join("others");
    fs::create_dir(&others).unwrap();
    let older = writers(&others, &testdata().join("twospw/twospw.ms"));
    let durations: HashMap<&str, Duration> = all.iter().map(|writer| (writer.name, duration(writer))).collect();

    let mut seen = Seen::default();
    for number in 0..if is_long() { 300 } else { 30 } {
        // each writer and each signal in turn, so that short runs try them, too
        let writer = &all[number % all.len()];
        let older = older.iter().find(|older| older.name == writer.name).unwrap();
        let case = Case {
            writer,
            older: (random.next() % 3 == 0).then_some(&older.whole),
            signal: *random.pick(&[SIGINT, SIGTERM, SIGKILL, SIGKILL]),
            after: durations[writer.name].mul_f64(1.1 * random.fraction()),
        };
        interrupt(&case, &mut seen);
    }
    eprintln!("{seen:?}");
    assert!(seen.interrupted > 0, "no process was interrupted: {seen:?}, H5BRIDGE_SEED={seed}");
}

/// How long a run takes that is left alone.
fn duration(writer: &Writer) -> Duration {
    let folder = scratch();
    let start = Instant::now();
    succeed(&mut writer.command(&folder.path().join(writer.target), false));
    start.elapsed()
}
