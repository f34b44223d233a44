//! Finds files by paths that lead into containers: `/d/one.mfh5/ANTENNA`, `/d/run.sion/TASK3`.

use std::path::{Component, Path};
use std::sync::Arc;

use super::format::Salvaged;
use super::{Container, Directory, Format, Formats};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::lfs;
use crate::limits;
use crate::suggest::instead;

/// Opens the files at `path` as a container: a directory, a file that is a container, or a container nested in one. A
/// virtual file that is a container itself is opened without being unpacked.
///
/// A missing directory is reported when one of its files is opened.
///
/// # Errors
/// `Format` if `path` is another kind of file; those of opening the container.
pub fn locate(path: &Path, formats: Formats) -> Result<Arc<dyn Container>> {
    match outermost(path, formats)? {
        Some(found) => found.open(),
        None => Ok(Arc::new(Directory::new(path))),
    }
}

/// Opens the files at `path` as a container, like [`locate`]. If `path` is a damaged container file, it is opened as
/// far as its format supports this, and the error that describes the damage is returned with it.
pub fn locate_damaged(path: &Path, formats: Formats) -> Result<(Arc<dyn Container>, Option<Error>)> {
    match outermost(path, formats)? {
        Some(found) if found.below.as_os_str().is_empty() => {
            let (container, damage) = found.salvage()?;
            Ok((container, damage))
        }
        _ => Ok((locate(path, formats)?, None)),
    }
}

/// The object to which a path leads; the path may continue inside a container file.
pub enum Found {
    /// The path leads to a directory or a container.
    Container(Arc<dyn Container>),
    /// The path leads to a virtual file that is not a container: the container that holds it, and its name in it.
    File(Arc<dyn Container>, String),
}

fn not_a_container() -> Error {
    Error::format("the source is neither a table directory, nor a container, nor an HDF5 file")
}

/// The outermost container of a path: a container that is a file or directory of the file system itself, with the rest
/// of the path, which continues inside it.
pub struct Outermost<'a> {
    pub directory: Directory,
    pub name: &'a str,
    pub format: &'static Format,
    below: &'a Path,
    /// Those that are recognised inside.
    formats: Formats,
}

/// Finds the container in the file system to which `path` leads, or into which it leads; `None` for a plain directory or a missing file.
///
/// # Errors
/// `Format` if it is a file that is not a container.
pub fn outermost(path: &Path, formats: Formats) -> Result<Option<Outermost<'_>>> {
    let Some(found) = path.ancestors().find(|prefix| prefix.exists()) else { return Ok(None) };
    let directory = Directory::new(found.parent().unwrap_or(Path::new("")));
    let below = path.strip_prefix(found).unwrap_or(Path::new(""));
    let name = found.file_name().unwrap_or_default().to_str();
    if !found.is_file() {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
        let format = recognise_directory(&directory, name, formats)?;
        return Ok(format.map(|format| Outermost { directory, name, format, below, formats }));
    }
    let name = name.ok_or_else(|| Error::unsupported("the file's name is not UTF-8"))?;
    let Some(format) = recognise(&directory, name, formats)? else {
        lfs::check(found)?;
        return Err(match below.as_os_str().is_empty() {
            true => not_a_container(),
            false => Error::not_found(format!("{} is neither a directory nor a container", found.display())),
        });
    };
    Ok(Some(Outermost { directory, name, format, below, formats }))
}

impl Outermost<'_> {
    /// Whether the path that was looked up ends at its outermost container, and does not lead into it.
    pub fn is_whole(&self) -> bool {
        self.below.as_os_str().is_empty()
    }

    /// Opens the container to which the path that was looked up leads: its outermost container, or one inside it. A file that is
    /// not a container is an error.
    pub fn open(&self) -> Result<Arc<dyn Container>> {
        match self.find()? {
            Found::Container(container) => Ok(container),
            Found::File(_, name) => {
                Err(Error::not_found("a file that is not a container").context(Context::member(name)))
            }
        }
    }

    /// Finds what the path that was looked up leads to: its outermost container, or a container or virtual file inside it.
    /// Containers are opened.
    pub fn find(&self) -> Result<Found> {
        let mut levels = vec![(self.format.open)(&self.directory, self.name)?];
        let mut components = self.below.components().peekable();
        while let Some(component) = components.next() {
            match component {
                Component::Normal(name) => {
                    limits::depth(levels.len(), "containers")?;
                    let (last, name) = (&levels[levels.len() - 1], name.to_string_lossy());
                    let inner = match enter(&**last, &name, self.formats)? {
                        Some(inner) => inner,
                        None if components.peek().is_none() => {
                            return Ok(Found::File(last.clone(), name.into_owned()));
                        }
                        None => {
                            let message = "the file is not a container, so the path cannot go on in it";
                            return Err(Error::not_found(message).context(Context::member(name)));
                        }
                    };
                    levels.push(inner);
                }
                Component::ParentDir if levels.len() > 1 => drop(levels.pop()),
                Component::ParentDir => return Err(Error::not_found("the path leads out of the container")),
                _ => {}
            }
        }
        Ok(Found::Container(levels.swap_remove(levels.len() - 1)))
    }

    /// Opens the outermost container of the path that was looked up, as far as it can be read if it is damaged. Also returns the
    /// error that describes the damage; `None` if it is sound.
    fn salvage(&self) -> Result<(Arc<dyn Container>, Option<Error>)> {
        match ((self.format.open)(&self.directory, self.name), self.format.salvage) {
            (Err(error), Some(salvage)) if error.is_damage() => {
                let (container, damage): Salvaged = salvage(&self.directory, self.name)?;
                Ok((container, Some(damage)))
            }
            (opened, _) => Ok((opened?, None)),
        }
    }
}

/// Opens the container `name` in another one: a nested container, or a virtual file that is a container; `None` for any other
/// virtual file.
///
/// # Errors
/// `NotFound` if the container has neither.
fn enter(container: &dyn Container, name: &str, formats: Formats) -> Result<Option<Arc<dyn Container>>> {
    match container.enter(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => match recognise(container, name, formats) {
            Ok(Some(format)) => match (format.open)(container, name) {
                // libhdf5 opens files of the file system only
                Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
                opened => opened.context(Context::member(name)).map(Some),
            },
            Ok(None) => Ok(None),
            // neither a container nor a file has this name
            Err(missing) if missing.kind() == ErrorKind::NotFound => {
                let names = [container.names()?, container.nested()?].concat();
                let message = format!("the container has no such member{}", instead(name, names));
                Err(Error::not_found(message).context(Context::member(name)))
            }
            Err(error) => Err(error),
        },
        entered => entered.map(Some),
    }
}

/// The container format of the file `name` of `inside`; `None` if the file is not a container.
pub fn recognise(inside: &dyn Container, name: &str, formats: Formats) -> Result<Option<&'static Format>> {
    recognise_as(false, inside, name, formats)
}

/// The container format of the directory `name` of `inside`; `None` for a plain directory.
pub fn recognise_directory(inside: &dyn Container, name: &str, formats: Formats) -> Result<Option<&'static Format>> {
    recognise_as(true, inside, name, formats)
}

fn recognise_as(
    is_directory: bool,
    inside: &dyn Container,
    name: &str,
    formats: Formats,
) -> Result<Option<&'static Format>> {
    for format in formats.list.iter().filter(|format| format.is_directory == is_directory) {
        if (format.recognise)(inside, name)? {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// Opens the container in which casacore keeps the storage managers' files of a table; `format` is the one that table.dat
/// names. `None` if the table has no container.
///
/// Casacore creates none for a table without managers that can be in a container, whatever table.dat says.
pub fn of_table(files: &dyn Container, format: Option<&Format>) -> Result<Option<Arc<dyn Container>>> {
    let Some((format, casacore)) = format.and_then(|format| Some((format, format.casacore?))) else { return Ok(None) };
    let name = casacore.file_name;
    match files.open(name) {
        Ok(_) => Ok(Some((format.open)(files, name).context(Context::member(name))?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
