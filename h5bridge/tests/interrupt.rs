//! Conversions that are interrupted at random moments: by SIGINT, by SIGTERM, killed, and by a
//! `CancelToken`.
//!
//! Afterwards the target is as it was before (absent, or what it held), or whole: all bytes are
//! those of an undisturbed run. Nothing else of the program is left in the directory, except after
//! kill -9 one temporary file or directory, which the next run of the same command removes.
//!
//! `H5BRIDGE_LONG=1` interrupts 300 conversions, otherwise 30. The moments come from a random seed,
//! which is printed when the test fails; `H5BRIDGE_SEED` sets it.

mod writers;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use ctds_hdf5::convert::{ToHdf5, ToOriginal, ToTable};
use ctds_hdf5::live::Finalize;
use ctds_hdf5::pack::{Pack, PackFormat, Unpack};
use ctds_hdf5::{CancelToken, Compression, ErrorKind, IfExists};

use signal_hook::consts::{SIGINT, SIGKILL, SIGTERM};

use ctds_hdf5_testing::testdata;
use writers::{Content, Writer, is_long, names_in, program, scratch, succeed, wait_for_end, writers};

const TABLE: &str = "demo/demo.ms";

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
    wait_for_end(&mut child);
    child.wait_with_output().unwrap()
}

/// Makes the earlier content of `target`: nothing, or the content of another table.
fn prepare(writer: &Writer, target: &Path, older: &Content) {
    older.write_to(target);
    assert_eq!(Content::of(target).as_ref(), Some(older), "{}", writer.name);
}

/// The earlier content of a target, and the way in which the process is stopped.
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

/// A call of the library that writes a target.
type Call = Box<dyn Fn(&Path, IfExists, &CancelToken) -> ctds_hdf5::Result<()>>;

/// The calls that write, with sources in `folder` made from `table`.
fn calls(folder: &Path, table: &Path) -> Vec<(&'static str, Call)> {
    let hdf5 = |restorable: bool| -> Call {
        let table = table.to_owned();
        Box::new(move |target, if_exists, token| {
            let conversion = ToHdf5::new(&table).threads(2).restorable(restorable);
            conversion.if_exists(if_exists).cancel(token).write(target).map(drop)
        })
    };
    let pack = |format, single_file, compression: Compression| -> Call {
        let table = table.to_owned();
        Box::new(move |target, if_exists, token| {
            let pack =
                Pack::new(&table).format(format).checksums(true).compression(compression).single_file(single_file);
            pack.if_exists(if_exists).cancel(token).write(target).map(drop)
        })
    };
    let calls: Vec<(&str, Call)> = vec![
        ("to_hdf5", hdf5(false)),
        ("to_hdf5 restorable", hdf5(true)),
        ("pack", pack(PackFormat::MULTI_FILE, true, Compression::NONE)),
        ("pack a directory", pack(PackFormat::MULTI_FILE, false, Compression::NONE)),
        ("pack gzip", pack(PackFormat::MULTI_HDF5, false, Compression::gzip(6))),
        ("pack MultiHDF5", pack(PackFormat::MULTI_HDF5, true, Compression::NONE)),
    ];
    let sources = ["native.h5", "restorable.h5", "packed.mf"].map(|name| folder.join(name));
    for ((name, call), source) in calls.iter().zip(&sources) {
        call(source, IfExists::Fail, &CancelToken::new()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let live = folder.join("live.h5");
    succeed(Command::new(program()).args(["follow", "-q", "--until-closed"]).arg(table).arg(&live));
    let [native, restorable, packed] = sources;
    let back: Vec<(&str, Call)> = vec![
        (
            "to_table",
            Box::new(move |target, if_exists, token| {
                ToTable::new(&native).if_exists(if_exists).cancel(token).write(target).map(drop)
            }),
        ),
        (
            "restore",
            Box::new(move |target, if_exists, token| {
                ToOriginal::new(&restorable).threads(2).if_exists(if_exists).cancel(token).write(target).map(drop)
            }),
        ),
        (
            "unpack",
            Box::new(move |target, if_exists, token| {
                Unpack::new(&packed).if_exists(if_exists).cancel(token).write(target).map(drop)
            }),
        ),
        (
            "finalize",
            Box::new(move |target, if_exists, token| {
                Finalize::new(&live).threads(2).if_exists(if_exists).cancel(token).write(target).map(drop)
            }),
        ),
    ];
    calls.into_iter().chain(back).collect()
}

/// The call ends with `Interrupted` and leaves the target as it was; or it was done already.
#[test]
fn a_token_stops_every_call() {
    let (mut random, seed) = Random::seeded();
    eprintln!("H5BRIDGE_SEED={seed}");
    let folder = scratch();
    let all: Vec<_> = calls(folder.path(), &testdata().join(TABLE))
        .into_iter()
        .map(|(name, call)| {
            let target = folder.path().join("reference");
            let start = Instant::now();
            call(&target, IfExists::Fail, &CancelToken::new()).unwrap_or_else(|error| panic!("{name}: {error}"));
            let (duration, whole) = (start.elapsed(), Content::of(&target).unwrap());
            if target.is_dir() { fs::remove_dir_all(&target) } else { fs::remove_file(&target) }.unwrap();
            (name, call, duration, whole)
        })
        .collect();
    let before = names_in(folder.path());
    let table = Content::of(&testdata().join("twospw/twospw.ms")).unwrap();

    let mut stopped = HashMap::<&str, usize>::new();
    for number in 0..if is_long() { 300 } else { 40 } {
        let (name, call, duration, whole) = &all[number % all.len()];
        let work = scratch();
        let target = work.path().join("out");
        let older = (random.next() % 3 == 0).then(|| if whole.is_file() { whole.cut() } else { table.clone() });
        if let Some(older) = &older {
            older.write_to(&target);
        }
        // the first of each is cancelled before it begins
        let after = if number < all.len() { Duration::ZERO } else { duration.mul_f64(random.fraction()) };
        let what = format!("{name} cancelled after {after:?}, replacing: {}, H5BRIDGE_SEED={seed}", older.is_some());
        let token = CancelToken::new();
        let result = std::thread::scope(|scope| {
            if after.is_zero() {
                token.cancel();
            } else {
                scope.spawn(|| {
                    std::thread::sleep(after);
                    token.cancel();
                });
            }
            call(&target, if older.is_some() { IfExists::Replace } else { IfExists::Fail }, &token)
        });
        let found = target.symlink_metadata().is_ok().then(|| Content::of(&target).unwrap());
        match result {
            Ok(()) => assert!(found.as_ref() == Some(whole), "{what}: done, but not whole"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Interrupted, "{what}: {error}");
                assert!(found == older, "{what}: the target is not as it was: {found:?}");
                *stopped.entry(name).or_default() += 1;
            }
        }
        let others: Vec<_> = names_in(work.path()).into_iter().filter(|name| name != "out").collect();
        assert_eq!(others, Vec::<String>::new(), "{what}: left behind");
        assert_eq!(names_in(folder.path()), before, "{what}: left beside the source");
    }
    eprintln!("{stopped:?}");
    for (name, ..) in &all {
        assert!(stopped.contains_key(name), "{name} was never stopped: {stopped:?}");
    }
}

/// How long a run takes that is left alone.
fn duration(writer: &Writer) -> Duration {
    let folder = scratch();
    let start = Instant::now();
    succeed(&mut writer.command(&folder.path().join(writer.target), false));
    start.elapsed()
}
