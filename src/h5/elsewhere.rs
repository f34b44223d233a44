//! References of an HDF5 file to objects and elements in other files, and the rules by which they
//! are followed or refused.
//!
//! A file may name any other file of its reader as the place of its elements: as external raw
//! storage, as the source of a virtual dataset, through an external link. libhdf5 opens them
//! without asking. So every link and every dataset is looked at here before libhdf5 follows it, and
//! refused if it leads out of the file. [`Reach`] says what is permitted.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::existing::{Handle, converted, text};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};

pub(super) const MAX_SOURCES: usize = 100_000;

/// Levels of virtual datasets whose sources are virtual datasets in turn.
const MAX_DEPTH: usize = 8;

/// Names in a message; the rest are only counted.
const LISTED: usize = 3;

/// The `hdf5` crate cuts names of external files to this length; such names are refused.
const MAX_NAME: usize = 1024;

/// A virtual dataset names its own file so.
const SAME_FILE: &str = ".";

/// A reference to an object in another file, or to elements in other files or datasets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// External storage: names of raw files.
    Raw(Vec<String>),
    /// File and dataset of each source; `.` is the virtual dataset's own file.
    Virtual(Vec<(String, String)>),
    Link {
        /// As the link states it: absolute, or relative to the directory of its file.
        file: String,
        /// Path from the root group of `file`.
        path: String,
    },
    /// HDF5's number of a class; only the program that defines it can follow the link.
    UserDefined(i32),
}

impl Elsewhere {
    /// `None` if the dataset holds its elements itself.
    pub(super) fn of(dataset: &h5_read::Dataset) -> Result<Option<Self>> {
        if let h5_read::Layout::Virtual { .. } = dataset.layout() {
            let mappings = dataset.mappings().map_err(|error| converted(&error))?;
            if mappings.len() > MAX_SOURCES {
                return Err(too_many_sources());
            }
            let sources = mappings.iter().map(|mapping| (text(&mapping.file), text(&mapping.dataset)));
            return Ok(Some(Elsewhere::Virtual(sources.collect())));
        }
        let files: Vec<_> = dataset.external().iter().map(|file| text(&file.name)).collect();
        Ok((!files.is_empty()).then_some(Elsewhere::Raw(files)))
    }

    /// HDF5's words: `external storage`, `virtual dataset` …
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Elsewhere::Raw(_) => "external storage",
            Elsewhere::Virtual(_) => "virtual dataset",
            Elsewhere::Link { .. } => "external link",
            Elsewhere::UserDefined(_) => "user-defined link",
        }
    }

    /// With the object where known, `other.h5:/MAIN/DATA`; for a user-defined link its class.
    pub(crate) fn targets(&self) -> Vec<String> {
        let object = |(file, path): (&String, &String)| format!("{file}:{path}");
        match self {
            Elsewhere::Raw(files) => files.clone(),
            Elsewhere::Virtual(sources) => sources.iter().map(|(file, path)| object((file, path))).collect(),
            Elsewhere::Link { file, path } => vec![object((file, path))],
            Elsewhere::UserDefined(class) => vec![format!("class {class}")],
        }
    }

    /// The reference is not followed.
    pub(super) fn refused(&self) -> Error {
        Error::elsewhere(match self {
            Elsewhere::UserDefined(_) => format!("{self}, which only the program that made it can follow"),
            _ => format!("{self}: other files are not opened unless asked for (--follow-external)"),
        })
    }
}

pub(super) fn too_many_sources() -> Error {
    Error::limit(format!("the virtual dataset has more than {MAX_SOURCES} sources, which is the limit"))
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets = self.targets();
        write!(f, "{} ", self.kind())?;
        f.write_str(match self {
            Elsewhere::Raw(_) => "in ",
            Elsewhere::Virtual(_) => "over ",
            Elsewhere::Link { .. } => "to ",
            Elsewhere::UserDefined(_) => "of ",
        })?;
        f.write_str(&targets[..targets.len().min(LISTED)].join(", "))?;
        match targets.len() {
            0..=LISTED => Ok(()),
            more => write!(f, " and {} more", more - LISTED),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) enum Reach {
    #[default]
    File,
    Directory(Arc<Directory>),
}

#[derive(Debug)]
pub(crate) struct Directory {
    /// Canonical; directories below it count.
    path: PathBuf,
    /// Called only for files at or below `path`.
    open: fn(&Path) -> Result<Handle>,
}

impl Reach {
    pub(super) fn beside(path: &Path, open: fn(&Path) -> Result<Handle>) -> Result<Self> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let path = parent.canonicalize().with_context(|| Context::path(parent))?;
        Ok(Reach::Directory(Arc::new(Directory { path, open })))
    }

    /// Returns the root group and the reach of the file, which the caller has admitted.
    pub(super) fn open(&self, path: &Path) -> Result<(Handle, Self)> {
        match self {
            Reach::File => Err(Error::usage("no other files may be opened")),
            Reach::Directory(directory) => Ok(((directory.open)(path)?, Self::beside(path, directory.open)?)),
        }
    }

    pub(super) fn directory(&self) -> Option<&Path> {
        match self {
            Reach::File => None,
            Reach::Directory(directory) => Some(&directory.path),
        }
    }
}

pub(super) trait Admission {
    /// `Unsupported` if the file may not be opened, `NotFound` if it is missing.
    fn admit(&self, found: &Elsewhere, name: &str) -> Result<PathBuf>;

    fn takes_other_files(&self) -> bool;

    /// Fails if other files may be opened while `variable` is set: libhdf5 would search elsewhere.
    fn check_environment(&self, found: &Elsewhere, variable: &str) -> Result<()> {
        if self.takes_other_files() && std::env::var_os(variable).is_some_and(|value| !value.is_empty()) {
            let message =
                format!("{found} is not followed while {variable} is set, which changes where it lies: unset it");
            return Err(Error::elsewhere(message));
        }
        Ok(())
    }
}

impl Admission for Reach {
    fn takes_other_files(&self) -> bool {
        self.directory().is_some()
    }

    fn admit(&self, found: &Elsewhere, name: &str) -> Result<PathBuf> {
        let Some(directory) = self.directory() else { return Err(found.refused()) };
        let refused = |why: &str| Error::elsewhere(format!("{found}: {name} is not followed: {why}"));
        let path = Path::new(name);
        if name.is_empty() || name.len() >= MAX_NAME || name.contains(char::REPLACEMENT_CHARACTER) {
            return Err(refused("not the name of a file"));
        }
        if path.components().any(|part| part == Component::ParentDir) {
            return Err(refused("its path contains .."));
        }
        let path = directory.join(path);
        let path = match path.canonicalize() {
            Ok(path) => path,
            Err(error) => return Err(Error::new(ErrorKind::Format, format!("{found}: {error}")).context(name)),
        };
        if !path.starts_with(directory) {
            return Err(refused(&format!("it is not below {}", directory.display())));
        }
        if !path.is_file() {
            return Err(refused("it is not a regular file"));
        }
        Ok(path)
    }
}

pub(super) trait Objects {
    /// Path from the root in the virtual dataset's own file, and where elements are, if not in the
    /// found dataset, which libhdf5 may then open.
    fn inside(&self, path: &str) -> Result<(String, Option<Elsewhere>)>;

    /// Fails unless all elements are in `file`.
    fn outside(&mut self, file: &Path, path: &str) -> Result<()>;
}

/// Checks that elements stored elsewhere may be read; returns whether some are in other files.
pub(super) fn check_elements(
    reach: &dyn Admission,
    path: &str,
    found: &Elsewhere,
    objects: &mut dyn Objects,
) -> Result<bool> {
    match found {
        Elsewhere::Raw(files) => {
            files.iter().try_for_each(|file| reach.admit(found, file).map(drop))?;
            reach.check_environment(found, "HDF5_EXTFILE_PREFIX")?;
            Ok(true)
        }
        Elsewhere::Virtual(sources) => {
            let mut check = Sources { reach, objects, checked: BTreeSet::new() };
            check.check(found, sources, &mut vec![path.to_owned()])
        }
        Elsewhere::Link { .. } | Elsewhere::UserDefined(_) => Err(found.refused()),
    }
}

struct Sources<'a> {
    reach: &'a dyn Admission,
    objects: &'a mut dyn Objects,
    /// Nested virtual datasets in the outermost one's file that were checked.
    checked: BTreeSet<String>,
}

impl Sources<'_> {
    /// Whether a source is in another file. Fails for a refused file, a pattern, a circle, or more
    /// than [`MAX_DEPTH`] levels; `virtuals` are the paths of datasets, outermost first.
    fn check(&mut self, found: &Elsewhere, sources: &[(String, String)], virtuals: &mut Vec<String>) -> Result<bool> {
        if virtuals.len() > MAX_DEPTH {
            return Err(Error::limit(format!(
                "virtual datasets refer to virtual datasets: the limit is {MAX_DEPTH} levels"
            )));
        }
        let mut outside = false;
        // several sources may be parts of one dataset
        for (file, dataset) in sources.iter().collect::<BTreeSet<_>>() {
            // libhdf5 puts numbers in place of a pattern, without end
            if file.contains('%') || dataset.contains('%') {
                let message = format!("{found}: a pattern of names is not followed");
                return Err(if file == SAME_FILE { Error::unsupported(message) } else { Error::elsewhere(message) });
            }
            if file != SAME_FILE {
                let path = self.reach.admit(found, file)?;
                self.reach.check_environment(found, "HDF5_VDS_PREFIX")?;
                self.objects.outside(&path, dataset).with_context(|| Context::path(&path))?;
                outside = true;
                continue;
            }
            let names: Vec<_> = dataset.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
            let (path, nested) = self.objects.inside(&names.join("/")).with_context(|| format!("source {dataset}"))?;
            match nested {
                None => {}
                Some(_) if virtuals.contains(&path) => {
                    return Err(Error::format(format!(
                        "virtual datasets refer to each other in a circle: {}",
                        virtuals.join(", ")
                    )));
                }
                Some(Elsewhere::Virtual(_)) if self.checked.contains(&path) => {}
                Some(Elsewhere::Virtual(ref sources)) => {
                    self.checked.insert(path.clone());
                    virtuals.push(path);
                    outside |= self.check(&Elsewhere::Virtual(sources.clone()), sources, virtuals)?;
                    virtuals.pop();
                }
                // libhdf5 would look for its files in the working directory
                Some(nested) => return Err(nested.refused().context(format!("source {path}"))),
            }
        }
        Ok(outside)
    }
}
