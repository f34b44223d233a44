//! Every long call stops when its token is cancelled, at any block, and leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ctds_hdf5::convert::{Compare, Digest, ToHdf5, ToOriginal, ToTable};
use ctds_hdf5::live::{Finalize, Follow, repair_with};
use ctds_hdf5::pack::{Check, CompareBytes, Pack, PackFormat, Unpack};
use ctds_hdf5::{CancelToken, Error, ErrorKind, IfExists, Progress, Result};
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

/// Stops `call`, which writes to a path in an empty folder, at each moment at which it asks, of
/// those that there are few of.
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

#[test]
fn conversions() {
    for restorable in [false, true] {
        stop_everywhere("to_hdf5", |target, progress| {
            ToHdf5::new(demo()).restorable(restorable).progress(progress).write(target).map(drop)
        });
    }
    let folder = TempDir::new().unwrap();
    let native = folder.path().join("x.h5");
    ToHdf5::new(demo()).restorable(true).write(&native).unwrap();
    for source in [demo(), native.clone()] {
        stop_everywhere("to_table", |target, progress| {
            ToTable::new(&source).progress(progress).write(target).map(drop)
        });
    }
    stop_everywhere("restore", |target, progress| ToOriginal::new(&native).progress(progress).write(target).map(drop));
}

#[test]
fn packing() {
    let folder = TempDir::new().unwrap();
    let packed = folder.path().join("packed");
    for single_file in [false, true] {
        for format in PackFormat::all().filter(|format| format.name() != "vt") {
            let is_for_tables = [PackFormat::MULTI_FILE, PackFormat::MULTI_HDF5].contains(&format);
            if single_file && !is_for_tables {
                continue;
            }
            let pack = || Pack::new(demo()).format(format).checksums(is_for_tables).single_file(single_file);
            stop_everywhere("pack", |target, progress| pack().progress(progress).write(target).map(drop));
            pack().if_exists(IfExists::Replace).write(&packed).unwrap();
            stop_everywhere("unpack", |target, progress| {
                Unpack::new(&packed).progress(progress).write(target).map(drop)
            });
            stop_everywhere("compare", |_, progress| {
                CompareBytes::new(demo(), &packed).progress(progress).run().map(drop)
            });
            stop_everywhere("check", |_, progress| Check::open(&packed)?.read(progress));
            remove(&packed);
        }
    }
}

/// An entry of a vt archive appears with its last byte; blocks that are in the store by then are
/// used by the next run.
#[test]
fn packing_into_a_store() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("a.vt");
    let pack = |progress: &dyn Progress| {
        let format = "vt".parse::<PackFormat>().unwrap();
        Pack::new(demo()).format(format).progress(progress).write(&archive)
    };
    for stop_at in [0, 1, 5, 20] {
        let error = pack(&Countdown::new(stop_at)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted, "at {stop_at}: {error}");
        assert!(!archive.exists(), "at {stop_at}");
    }
    pack(&()).unwrap();
    assert!(CompareBytes::new(demo(), &archive).run().unwrap().differences.is_empty());
}

#[test]
fn comparisons() {
    let folder = TempDir::new().unwrap();
    let native = folder.path().join("x.h5");
    ToHdf5::new(demo()).restorable(true).write(&native).unwrap();
    stop_everywhere("verify", |_, progress| Compare::new(demo(), &native).progress(progress).run().map(drop));
    stop_everywhere("digest", |_, progress| Digest::new(demo()).progress(progress).run().map(drop));
    stop_everywhere("check", |_, progress| Compare::with_stored_digests(&native).progress(progress).run().map(drop));
}

#[test]
fn live_files() {
    let folder = TempDir::new().unwrap();
    let live = folder.path().join("live.h5");
    let follow = Follow::new(demo(), &live).start().unwrap();
    follow.finish().unwrap();
    stop_everywhere("finalize", |target, progress| Finalize::new(&live).progress(progress).write(target).map(drop));
    assert_eq!(names(folder.path()), ["live.h5"], "no lock file stays");
    let before = fs::read(&live).unwrap();
    stop_everywhere("repair", |_, progress| repair_with(&live, progress).map(drop));
    assert_eq!(fs::read(&live).unwrap(), before);
    // a wait that would take a minute
    let token = CancelToken::new();
    token.cancel();
    let other = Follow::new(demo(), folder.path().join("other.h5"));
    let error = other.overwrite(true).cancel(&token).start().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(names(folder.path()), ["live.h5"]);
}

#[test]
fn a_target_that_exists_stays_as_it_is() {
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("x.h5");
    fs::write(&target, b"mine").unwrap();
    let convert = || ToHdf5::new(demo()).if_exists(IfExists::Replace);
    let (token, other) = (CancelToken::new(), CancelToken::new());
    assert!(!token.is_cancelled());
    token.clone().cancel();
    assert!(token.is_cancelled() && !other.is_cancelled());
    let stopped = |progress: &dyn Progress| -> Error { convert().progress(progress).write(&target).unwrap_err() };
    assert_eq!(stopped(&token).kind(), ErrorKind::Interrupted);
    assert_eq!(stopped(&token.with(&())).kind(), ErrorKind::Interrupted);
    assert_eq!(stopped(&other.with(&token)).kind(), ErrorKind::Interrupted);
    let error = convert().cancel(&token).write(&target).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    assert_eq!(ToHdf5::new(demo()).write(&target).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!((fs::read(&target).unwrap(), names(folder.path())), (b"mine".to_vec(), vec!["x.h5".to_owned()]));
    convert().cancel(&other).write(&target).unwrap();
}
