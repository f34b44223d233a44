//! Every long call stops when its token is cancelled, at any block, and leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ctds_hdf5::convert::{
    Options, Plan, RestoreOptions, Source, TableOptions, check, digest_with, restore, to_hdf5, to_table, verify_with,
};
use ctds_hdf5::live::{Follow, FollowOptions, finalize, repair_with};
use ctds_hdf5::pack::{self, Check, FileSet, PackFormat, PackOptions, pack, unpack};
use ctds_hdf5::{CancelToken, Compression, Error, ErrorKind, OpenOptions, Progress, Result};
use tempfile::TempDir;

/// Counts how often it is asked, and says stop from the `stop_at`th time on.
struct Countdown {
    asked: AtomicU64,
    stop_at: u64,
}

impl Countdown {
    fn new(stop_at: u64) -> Self {
        Countdown { asked: AtomicU64::new(0), stop_at }
    }
}

impl Progress for Countdown {
    fn is_cancelled(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.stop_at
    }
}

fn demo() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/demo");
    let mut tables = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    tables.find(|path| path.join("table.dat").exists()).expect("a table")
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Stops `call`, which writes to a path in an empty folder, at each moment at which it asks, of those that there are few of.
fn stop_everywhere(what: &str, call: impl Fn(&Path, &dyn Progress) -> Result<()>) {
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("target");
    let all = Countdown::new(u64::MAX);
    call(&target, &all).unwrap_or_else(|error| panic!("{what}: {error}"));
    let asked = all.asked.into_inner();
    assert!(asked > 2, "{what} asks {asked} times");
    let made = names(folder.path());
    remove(&target);
    assert!(names(folder.path()).is_empty(), "{what}: {made:?}");
    let step = (asked / 12).max(1);
    for stop_at in (0..asked).step_by(step as usize) {
        // threads may ask less often when they are stopped
        let error = call(&target, &Countdown::new(stop_at)).expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Interrupted, "{what} at {stop_at} of {asked}: {error}");
        assert!(names(folder.path()).is_empty(), "{what} at {stop_at}: {:?}", names(folder.path()));
    }
}

fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

fn convert(source: &Path, target: &Path, options: &Options, progress: &dyn Progress) -> Result<()> {
    let source = Source::open(source)?;
    let plan = Plan::new(&source, options)?;
    to_hdf5(&source, &plan, options, target, false, progress).map(drop)
}

#[test]
fn conversions() {
    for options in [Options::default(), Options { restorable: true, ..Options::default() }] {
        stop_everywhere("to_hdf5", |target, progress| convert(&demo(), target, &options, progress));
    }
    let folder = TempDir::new().unwrap();
    let native = folder.path().join("x.h5");
    convert(&demo(), &native, &Options { restorable: true, ..Options::default() }, &()).unwrap();
    for source in [demo(), native.clone()] {
        stop_everywhere("to_table", |target, progress| {
            let options = TableOptions::default();
            to_table(&Source::open(&source)?, &options, target, false, progress).map(drop)
        });
    }
    stop_everywhere("restore", |target, progress| {
        restore(&native, target, &RestoreOptions::default(), progress).map(drop)
    });
}

#[test]
fn packing() {
    let folder = TempDir::new().unwrap();
    let packed = folder.path().join("packed");
    let plain = || FileSet::open(&demo(), OpenOptions::default()).unwrap();
    for single_file in [false, true] {
        for format in PackFormat::all() {
            let options = PackOptions {
                format,
                block_bytes: None,
                checksums: true,
                compression: Compression::NONE,
                single_file,
                overwrite: true,
            };
            stop_everywhere("pack", |target, progress| pack(&plain(), target, &options, progress).map(drop));
            pack(&plain(), &packed, &options, &()).unwrap();
            let source = || FileSet::open(&packed, OpenOptions::default()).unwrap();
            stop_everywhere("unpack", |target, progress| unpack(&source(), target, false, progress).map(drop));
            stop_everywhere("compare", |_, progress| pack::compare(&plain(), &source(), progress).map(drop));
            stop_everywhere("check", |_, progress| Check::open(&packed)?.read(progress));
            remove(&packed);
        }
    }
}

#[test]
fn comparisons() {
    let folder = TempDir::new().unwrap();
    let native = folder.path().join("x.h5");
    convert(&demo(), &native, &Options { restorable: true, ..Options::default() }, &()).unwrap();
    stop_everywhere("verify", |_, progress| {
        verify_with(&Source::open(demo())?, &Source::open(&native)?, progress).map(drop)
    });
    stop_everywhere("digest", |_, progress| digest_with(&Source::open(demo())?, |_, _| true, progress).map(drop));
    stop_everywhere("check", |_, progress| check(&native, OpenOptions::default(), progress).map(drop));
}

#[test]
fn live_files() {
    let folder = TempDir::new().unwrap();
    let live = folder.path().join("live.h5");
    let follow = Follow::start(demo(), &live, &FollowOptions::default()).unwrap();
    follow.finish().unwrap();
    stop_everywhere("finalize", |target, progress| {
        finalize(&live, None, target, &Options::default(), false, progress).map(drop)
    });
    assert_eq!(names(folder.path()), ["live.h5"], "no lock file stays");
    let before = fs::read(&live).unwrap();
    stop_everywhere("repair", |_, progress| repair_with(&live, progress).map(drop));
    assert_eq!(fs::read(&live).unwrap(), before);
    // a wait that would take a minute
    let options = FollowOptions { overwrite: true, ..FollowOptions::default() };
    options.cancel.cancel();
    let error = Follow::start(demo(), folder.path().join("other.h5"), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(names(folder.path()), ["live.h5"]);
}

#[test]
fn a_target_that_exists_stays_as_it_is() {
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("x.h5");
    fs::write(&target, b"mine").unwrap();
    let source = Source::open(demo()).unwrap();
    let options = Options::default();
    let plan = Plan::new(&source, &options).unwrap();
    let (token, other) = (CancelToken::new(), CancelToken::new());
    assert!(!token.is_cancelled());
    token.clone().cancel();
    assert!(token.is_cancelled() && !other.is_cancelled());
    let stopped =
        |progress: &dyn Progress| -> Error { to_hdf5(&source, &plan, &options, &target, true, progress).unwrap_err() };
    assert_eq!(stopped(&token).kind(), ErrorKind::Interrupted);
    assert_eq!(stopped(&token.with(&())).kind(), ErrorKind::Interrupted);
    assert_eq!(stopped(&other.with(&token)).kind(), ErrorKind::Interrupted);
    assert_eq!((fs::read(&target).unwrap(), names(folder.path())), (b"mine".to_vec(), vec!["x.h5".to_owned()]));
    to_hdf5(&source, &plan, &options, &target, true, &other).unwrap();
}
