//! The files and directories that the server shows, the names by which clients ask for them, and
//! their paths.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::{Context, Result};
use ctds_hdf5::convert::Source;
use ctds_hdf5::live::Reader;
use ctds_hdf5::program::LockUnpoisoned;
use ctds_hdf5::{ColumnInfo, ErrorKind};
use ms_look::{Image, has_plots, is_calibration};
use serde::Serialize;

/// How many levels below a served directory are listed.
const LEVELS: usize = 4;

/// All served directories count together.
const MAX_LISTED: usize = 10_000;

/// Directory entries of any kind.
const MAX_VISITED: usize = 200_000;

/// A listing then opens no further file. Known facts are kept, so that the next listing continues.
const LISTING_TIME: Duration = Duration::from_secs(1);

/// HDF5 files in served directories.
const EXTENSIONS: [&str; 4] = ["h5", "hdf5", "nc", "nxs"];

/// A directory with this file is a casacore table.
const TABLE_FILE: &str = "table.dat";

pub(super) struct Sources {
    roots: Vec<Root>,
    known: Mutex<HashMap<PathBuf, (Stamp, Facts)>>,
}

struct Root {
    /// First part of names, or the whole name of a single file; empty if one directory is all that
    /// is served.
    name: String,
    /// Absolute, without resolving links.
    path: PathBuf,
    is_folder: bool,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Listed {
    file: String,
    /// `live`: made to append rows, closed or not; `table`: a directory, or packed in a file;
    /// `hdf5`: any other. Until it was opened, `table` for a directory, else `hdf5`.
    kind: &'static str,
    /// Whether the server can plot it; `None` until it was opened.
    measurement_set: Option<bool>,
    /// `MeasurementSet`, `calibration table` or `image`, which have plots; `None` for others.
    content: Option<&'static str>,
    bytes: u64,
    /// Seconds since 1970.
    modified: f64,
    /// Rows of the main table, committed ones of a live file; `None` without a table or if unread.
    rows: Option<u64>,
}

/// Known after a file was opened.
#[derive(Debug, Clone, Copy)]
struct Facts {
    kind: &'static str,
    content: Option<&'static str>,
    rows: Option<u64>,
}

const IMAGE: &str = "image";

/// Differs after the file, or a file of the table, was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Nanoseconds since 1970.
    changed: i128,
    modified: i128,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Not in a served directory, missing, or not a regular file or table.
    NotFound,
    Denied,
}

impl Sources {
    /// Each gets a name of its own; `NotFound` for a path without a file or directory.
    pub(super) fn new(paths: &[PathBuf]) -> Result<Self> {
        let mut roots: Vec<Root> = Vec::new();
        for path in paths {
            let found = fs::metadata(path).map_err(|error| ctds_hdf5::Error::from(error).context(path.display()))?;
            let path = std::path::absolute(path)?;
            let is_folder = found.is_dir() && !is_table(&path);
            let file_name = path.canonicalize().context("a source")?;
            let name = path.file_name().or(file_name.file_name()).unwrap_or(OsStr::new("files"));
            let mut name = name.to_string_lossy().into_owned();
            if is_folder && paths.len() == 1 {
                name.clear();
            }
            let given = name.clone();
            let mut number = 1;
            while roots.iter().any(|root| root.name == name) {
                number += 1;
                name = format!("{given}~{number}");
            }
            roots.push(Root { name, path, is_folder });
        }
        Ok(Sources { roots, known: Mutex::default() })
    }

    /// Links are resolved.
    pub(super) fn find(&self, name: &str) -> Result<PathBuf, Missing> {
        let (root, inside) = self.split(name).ok_or(Missing::NotFound)?;
        let resolved = resolve(&root.path)?;
        let path = if inside.is_empty() {
            resolved
        } else {
            let is_plain = |part: &str| matches!(Path::new(part).components().next(), Some(Component::Normal(_)));
            if name.contains('\0') || !inside.split('/').all(is_plain) {
                return Err(Missing::NotFound);
            }
            let path = resolve(&resolved.join(inside))?;
            if !path.starts_with(&resolved) {
                return Err(Missing::NotFound);
            }
            path
        };
        let found = fs::metadata(&path).map_err(|error| Missing::of(&error))?;
        let is_served = found.is_file() || found.is_dir() && is_table(&path);
        if is_served { Ok(path) } else { Err(Missing::NotFound) }
    }

    /// Asked for a file to which another one refers.
    pub(super) fn serves(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        self.roots.iter().any(|root| {
            let Ok(root_path) = root.path.canonicalize() else { return false };
            path == root_path || root_path.is_dir() && path.starts_with(&root_path)
        })
    }

    /// The served file or directory, and the path in it.
    fn split<'a>(&self, name: &'a str) -> Option<(&Root, &'a str)> {
        if let Some(root) = self.roots.iter().find(|root| !root.is_folder && root.name == name) {
            return Some((root, ""));
        }
        self.roots.iter().filter(|root| root.is_folder).find_map(|root| {
            let inside = if root.name.is_empty() { name } else { name.strip_prefix(&root.name)?.strip_prefix('/')? };
            (!inside.is_empty()).then_some((root, inside))
        })
    }

    /// Sorted by name. `go_on` tells whether the client still waits.
    pub(super) fn list(&self, go_on: impl Fn() -> bool) -> Vec<Listed> {
        let mut found = BTreeMap::new();
        let mut visited = 0;
        for root in &self.roots {
            if !root.is_folder {
                found.insert(root.name.clone(), root.path.clone());
                continue;
            }
            let mut folders = vec![(root.path.clone(), root.name.clone(), 1)];
            while let Some((folder, prefix, level)) = folders.pop() {
                let Ok(entries) = fs::read_dir(&folder) else { continue };
                for entry in entries.filter_map(Result::ok) {
                    visited += 1;
                    if visited > MAX_VISITED || found.len() >= MAX_LISTED || !go_on() {
                        break;
                    }
                    // names that are not UTF-8 cannot be asked for
                    let file_name = entry.file_name();
                    let (Some(name), Ok(kind)) = (file_name.to_str(), entry.file_type()) else { continue };
                    let path = entry.path();
                    let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
                    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
                    if EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)) && !kind.is_dir()
                        || !kind.is_file() && is_table(&path)
                    {
                        // also looks where links lead
                        if self.find(&name).is_ok() {
                            found.insert(name, path);
                        }
                    } else if kind.is_dir() && level < LEVELS {
                        folders.push((path, name, level + 1));
                    }
                }
            }
        }
        let start = Instant::now();
        let list = found.into_iter().filter_map(|(name, path)| {
            let stamp = Stamp::of(&path).ok()?;
            let facts = self.facts(&path, stamp, go_on() && start.elapsed() < LISTING_TIME);
            let kind = if path.is_dir() { "table" } else { "hdf5" };
            Some(Listed {
                file: name,
                kind: facts.map_or(kind, |facts| facts.kind),
                measurement_set: facts.map(|facts| facts.content.is_some_and(|content| content != IMAGE)),
                content: facts.and_then(|facts| facts.content),
                bytes: stamp.bytes,
                modified: stamp.modified as f64 * 1e-9,
                rows: facts.and_then(|facts| facts.rows),
            })
        });
        list.collect()
    }

    /// Names and paths, sorted, and the number of files that were not opened yet.
    pub(super) fn live_files(&self) -> (Vec<(String, PathBuf)>, usize) {
        let list = self.list(|| true);
        let unknown = list.iter().filter(|listed| listed.measurement_set.is_none()).count();
        let live = list.into_iter().filter(|listed| listed.kind == "live");
        (live.filter_map(|listed| Some((listed.file.clone(), self.find(&listed.file).ok()?))).collect(), unknown)
    }

    /// Facts of the last opening; the file is opened again if `may_open` and the stamp has changed.
    fn facts(&self, path: &Path, stamp: Stamp, may_open: bool) -> Option<Facts> {
        let known = || self.known.lock_unpoisoned();
        if let Some((_, facts)) = known().get(path).filter(|(then, _)| *then == stamp || !may_open) {
            return Some(*facts);
        }
        if !may_open {
            return None;
        }
        // a file that makes this panic does not keep others from being listed
        let read = || Facts::of(path, &|path| self.serves(path));
        let facts = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Facts::nothing(path));
        let mut known = known();
        if known.len() >= 2 * MAX_LISTED {
            known.clear();
        }
        known.insert(path.to_owned(), (stamp, facts));
        Some(facts)
    }
}

impl Facts {
    fn nothing(path: &Path) -> Self {
        Facts { kind: if path.is_dir() { "table" } else { "hdf5" }, content: None, rows: None }
    }

    fn of(path: &Path, is_served: &dyn Fn(&Path) -> bool) -> Self {
        let nothing = Facts::nothing(path);
        if !path.is_dir()
            && let Ok(reader) = Reader::open(path)
        {
            let Some(main) = reader.tables().first() else { return Facts { kind: "live", ..nothing } };
            return Facts { kind: "live", content: content(main.columns()), rows: main.refresh().ok() };
        }
        let Ok(source) = Source::open_served(path, is_served) else { return nothing };
        let Some(main) = source.tables().first() else { return nothing };
        let kind = if main.table().is_ok_and(|table| table.is_some()) { "table" } else { "hdf5" };
        let (found, rows) = (content(main.columns().unwrap_or_default()), main.rows().ok());
        let is_image = found.is_none() && Image::of(source).is_ok_and(|image| image.is_some());
        Facts { kind, content: found.or(is_image.then_some(IMAGE)), rows }
    }
}

/// Content of a main table with these columns; `None` if it has no visibilities to plot.
fn content<'a>(columns: impl IntoIterator<Item = &'a ColumnInfo>) -> Option<&'static str> {
    let columns: Vec<&ColumnInfo> = columns.into_iter().collect();
    let name = if is_calibration(columns.iter().copied()) { "calibration table" } else { "MeasurementSet" };
    has_plots(columns).then_some(name)
}

fn is_table(folder: &Path) -> bool {
    folder.join(TABLE_FILE).is_file()
}

fn resolve(path: &Path) -> Result<PathBuf, Missing> {
    path.canonicalize().map_err(|error| Missing::of(&error))
}

impl Missing {
    fn of(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::PermissionDenied { Missing::Denied } else { Missing::NotFound }
    }
}

impl Stamp {
    /// A table has the newest time and the total size of its files.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        let mut stamp = Stamp::of_file(&found);
        if found.is_dir() {
            stamp.bytes = 0;
            stamp.add_folder(path, LEVELS);
        }
        Ok(stamp)
    }

    fn of_file(found: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Stamp {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            changed: nanoseconds(found.ctime(), found.ctime_nsec()),
            modified: nanoseconds(found.mtime(), found.mtime_nsec()),
        }
    }

    fn add_folder(&mut self, folder: &Path, levels: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.filter_map(Result::ok).take(MAX_LISTED) {
            let Ok(found) = entry.metadata() else { continue };
            if found.is_file() {
                let file = Stamp::of_file(&found);
                self.bytes += file.bytes;
                self.changed = self.changed.max(file.changed);
                self.modified = self.modified.max(file.modified);
            } else if found.is_dir() && levels > 1 {
                self.add_folder(&entry.path(), levels - 1);
            }
        }
    }

    /// Bytes for entity tags, and the time since the last change.
    pub(super) fn identity(&self) -> (Vec<u8>, Duration) {
        let numbers = [self.device.into(), self.inode.into(), self.bytes.into(), self.changed];
        let now = UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos() as i128);
        let age = u64::try_from(now - self.changed).unwrap_or(0);
        (numbers.iter().flat_map(|number| number.to_le_bytes()).collect(), Duration::from_nanos(age))
    }
}

pub(super) fn status_of(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::NotFound => 404,
        ErrorKind::Usage | ErrorKind::Format | ErrorKind::Unsupported => 422,
        ErrorKind::Limit => 413,
        ErrorKind::Locked => 503,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("a/sub/table.ms")).unwrap();
        fs::create_dir_all(path("b/a/1/2/3/4")).unwrap();
        for file in [
            "a/x.h5",
            "a/sub/y.nc",
            "a/sub/table.ms/table.dat",
            "a/notes.txt",
            "b/secret.h5",
            "b/a/x.h5",
            "b/a/1/2/3/4/deep.h5",
        ] {
            fs::write(path(file), "bytes").unwrap();
        }
        let link = |target: &str, name: &str| std::os::unix::fs::symlink(path(target), path(name)).unwrap();
        link("b/secret.h5", "a/out.h5");
        link("b", "a/elsewhere");
        link("a/x.h5", "a/sub/in.h5");
        link("a", "a/sub/circle");
        folder
    }

    fn names(sources: &Sources) -> Vec<String> {
        sources.list(|| true).into_iter().map(|listed| listed.file).collect()
    }

    #[test]
    fn names_lead_to_files_below_the_source() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        let one = Sources::new(&[path("a")]).unwrap();
        let real = folder.path().canonicalize().unwrap();
        for (name, found) in [
            ("x.h5", "a/x.h5"),
            ("sub/y.nc", "a/sub/y.nc"),
            ("sub/table.ms", "a/sub/table.ms"),
            ("sub/in.h5", "a/x.h5"),
            ("sub/circle/x.h5", "a/x.h5"),
            ("notes.txt", "a/notes.txt"),
        ] {
            assert_eq!(one.find(name), Ok(real.join(found)), "{name}");
        }
        let absolute = path("a/x.h5").to_string_lossy().into_owned();
        for name in [
            "",
            "/",
            ".",
            "..",
            "../b/secret.h5",
            "sub/../x.h5",
            "./x.h5",
            "sub//y.nc",
            "/x.h5",
            "x.h5/",
            "out.h5",
            "sub",
            "none.h5",
            "elsewhere/secret.h5",
            "x.h5\0",
            absolute.as_str(),
        ] {
            assert_eq!(one.find(name), Err(Missing::NotFound), "{name:?}");
        }
        assert_eq!(names(&one), ["sub/in.h5", "sub/table.ms", "sub/y.nc", "x.h5"]);
        assert!(one.serves(&path("a/sub/../x.h5")) && one.serves(&path("a/notes.txt")));
        assert!(!one.serves(&path("b/secret.h5")) && !one.serves(&path("a/out.h5")) && !one.serves(&path("a/none")));
    }

    #[test]
    fn sources_of_one_name_are_told_apart() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        let real = folder.path().canonicalize().unwrap();
        let several =
            Sources::new(&[path("a"), path("b/a"), path("a/x.h5"), path("b/a/x.h5"), path("a/sub/table.ms")]).unwrap();
        assert_eq!(
            names(&several),
            ["a/sub/in.h5", "a/sub/table.ms", "a/sub/y.nc", "a/x.h5", "a~2/x.h5", "table.ms", "x.h5", "x.h5~2"]
        );
        assert_eq!(several.find("x.h5~2"), Ok(real.join("b/a/x.h5")));
        assert_eq!(several.find("a~2/x.h5"), Ok(real.join("b/a/x.h5")));
        assert_eq!(several.find("ax.h5"), Err(Missing::NotFound));
        assert!(!several.serves(&path("b/secret.h5")));
        assert!(Sources::new(&[path("none")]).is_err());
    }
}
