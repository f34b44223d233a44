//! Resolves paths in HDF5 files link by link in this program, so that libhdf5 never follows a link
//! and opens a file by itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctds::error::{Context, Error, ErrorKind, Result, ResultExt};
use ctds_hdf5::internals::{AnyObject, CommittedRows, File, Group, Link, Served, Unwritten};

const MAX_LINKS: usize = 16;

/// How soft and external links in an HDF5 file are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkResolution {
    /// Soft and external links are shown as links, never followed.
    None,
    /// A link is followed if it leads to an object, otherwise shown as a link.
    #[default]
    OnlyValid,
    /// All links are followed; one that leads nowhere is an error.
    All,
}

pub(crate) struct OpenFile {
    file: File,
    /// The casacore table that is shown as this file.
    pub(crate) table: Option<Unwritten>,
    /// Canonical; names of other files are relative to it. Of a casacore table, the table itself.
    directory: PathBuf,
    /// Without the directory, for messages.
    pub(crate) name: String,
    /// Another process may be appending (SWMR).
    pub(crate) grows: bool,
    pub(crate) committed: CommittedRows,
}

impl OpenFile {
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let directory = parent.canonicalize().with_context(|| Context::path(path))?;
        let (file, grows) = File::open_unlocked(path)?;
        Ok(Arc::new(OpenFile { file, table: None, directory, name, grows, committed: CommittedRows::default() }))
    }

    /// `file` is in memory, and has no elements of columns.
    pub(crate) fn of_table(path: &Path, table: Unwritten, file: File) -> Result<Arc<Self>> {
        let directory = path.canonicalize()?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let committed = CommittedRows::default();
        Ok(Arc::new(OpenFile { file, table: Some(table), directory, name, grows: false, committed }))
    }

    pub(crate) fn root(&self) -> Result<Group> {
        self.file.root()
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

pub(crate) enum Target {
    Root(Arc<OpenFile>),
    Member(Member),
}

/// An object reached by a hard link.
pub(crate) struct Member {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) group: Group,
    pub(crate) name: String,
}

impl Member {
    pub(crate) fn path(&self) -> String {
        join(self.group.path(), &self.name)
    }

    /// Committed extent of a dataset on its slowest axis; `None` if it is not of a live table.
    pub(crate) fn committed(&self) -> Result<Option<u64>> {
        self.file.committed.extent(&self.file.root()?, self.group.path(), &self.name)
    }

    pub(crate) fn open(&self) -> Result<AnyObject> {
        self.group.any_object(&self.name)
    }
}

/// An object, or a link that was not followed.
pub(crate) enum Found {
    Target(Target),
    /// The error is why; `None` if following was not asked for.
    Link(Link, Option<Error>),
}

pub(crate) struct Resolver<'a> {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) is_served: &'a (dyn Fn(&Path) -> bool + Sync),
}

pub(crate) fn join(path: &str, name: &str) -> String {
    format!("{}/{name}", path.trim_end_matches('/'))
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !matches!(*name, "" | "."))
}

impl Resolver<'_> {
    /// `links` concerns the last name of `path`; earlier links are always followed. `NotFound` has
    /// the words that the explorer looks for; `Unsupported` for a link to a file that is not
    /// served.
    pub(crate) fn find(&self, path: &str, links: LinkResolution) -> Result<Found> {
        if path.is_empty() {
            return Err(self.invalid(path));
        }
        let names: Vec<_> = segments(path).collect();
        let Some((last, parents)) = names.split_last() else {
            return Ok(Found::Target(Target::Root(Arc::clone(&self.file))));
        };
        let (mut file, mut group, mut followed) = (Arc::clone(&self.file), self.file.root()?, 0);
        for name in parents {
            let target = self.follow(&file, &group, name, &mut followed).map_err(|error| self.missing(error, path))?;
            (file, group) = self.group(target).map_err(|error| self.missing(error, path))?;
        }
        self.member(&file, &group, last, links, path)
    }

    /// `links` says whether a link is followed; `path` is the member's name in messages.
    pub(crate) fn member(
        &self,
        file: &Arc<OpenFile>,
        group: &Group,
        name: &str,
        links: LinkResolution,
        path: &str,
    ) -> Result<Found> {
        let Some(link) = group.any_link(name)? else { return Err(self.invalid(path)) };
        if link == Link::Hard {
            return Ok(Found::Target(Target::Member(Member {
                file: Arc::clone(file),
                group: group.clone(),
                name: name.to_owned(),
            })));
        }
        if links == LinkResolution::None {
            return Ok(Found::Link(link, None));
        }
        match self.follow(file, group, name, &mut 0) {
            Ok(target) => Ok(Found::Target(target)),
            Err(error) if links == LinkResolution::OnlyValid => Ok(Found::Link(link, Some(error))),
            Err(error) => {
                let message = format!("Cannot resolve the link at {path} of {}: {}", self.file.name, error.message());
                Err(Error::not_found(message).caused_by(error))
            }
        }
    }

    /// Counts links in `followed`; more than [`MAX_LINKS`] are an error.
    fn follow(&self, file: &Arc<OpenFile>, group: &Group, name: &str, followed: &mut usize) -> Result<Target> {
        let Some(link) = group.any_link(name)? else {
            return Err(Error::not_found(format!("{} does not exist", join(group.path(), name))));
        };
        if link != Link::Hard {
            *followed += 1;
            if *followed > MAX_LINKS {
                return Err(Error::not_found(format!(
                    "the path leads through more than {MAX_LINKS} links, or through links in a circle"
                )));
            }
        }
        match link {
            Link::Hard => {
                Ok(Target::Member(Member { file: Arc::clone(file), group: group.clone(), name: name.to_owned() }))
            }
            Link::Soft(path) => {
                let from = if path.starts_with('/') { file.root()? } else { group.clone() };
                self.walk(file, from, &path, followed)
            }
            Link::External { file: name, path } => {
                let found = Served::new(file.directory(), &|path| (self.is_served)(path)).find(&name)?;
                let file = OpenFile::open(&found)?;
                let root = file.root()?;
                self.walk(&file, root, &path, followed)
            }
            Link::UserDefined(class) => Err(Error::unsupported(format!(
                "a link of class {class}, which only the program that made it can follow"
            ))),
        }
    }

    fn walk(&self, file: &Arc<OpenFile>, from: Group, path: &str, followed: &mut usize) -> Result<Target> {
        let names: Vec<_> = segments(path).collect();
        let Some((last, parents)) = names.split_last() else {
            if path.starts_with('/') {
                return Ok(Target::Root(Arc::clone(file)));
            }
            return Err(Error::not_found(format!("the link leads to {path:?}, which is not a path")));
        };
        let (mut file, mut group) = (Arc::clone(file), from);
        for name in parents {
            let target = self.follow(&file, &group, name, followed)?;
            (file, group) = self.group(target)?;
        }
        self.follow(&file, &group, last, followed)
    }

    fn group(&self, target: Target) -> Result<(Arc<OpenFile>, Group)> {
        match target {
            Target::Root(file) => {
                let root = file.root()?;
                Ok((file, root))
            }
            Target::Member(member) => match member.open()? {
                AnyObject::Group(group) => Ok((member.file, group)),
                _ => Err(Error::not_found(format!("{} is not a group", member.path()))),
            },
        }
    }

    fn invalid(&self, path: &str) -> Error {
        Error::not_found(format!("{path} is not a valid path in {}", self.file.name))
    }

    /// If an object on the way was not found, `path` is not valid; other errors stay.
    fn missing(&self, error: Error, path: &str) -> Error {
        match error.kind() {
            ErrorKind::NotFound => self.invalid(path).caused_by(error),
            _ => error,
        }
    }
}
