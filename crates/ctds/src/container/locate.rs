//! Finds files by paths that lead into containers: `/d/one.mfh5/ANTENNA`, `/d/run.sion/TASK3`.

use std::path::{Component, Path};
use std::sync::Arc;

use super::format::Salvaged;
use super::{Container, Directory, Format, Formats};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::lfs;
use crate::limits;
use crate::suggest::instead;

/// Opens the directory or container at `path`; containers inside containers are opened without
/// being unpacked. A missing directory is reported when one of its files is opened.
///
/// # Errors
/// `Format` if `path` is another kind of file; those of opening the container.
pub fn locate(path: &Path, formats: Formats) -> Result<Arc<dyn Container>> {
    match outermost(path, formats)? {
        Some(found) => found.open(),
        None => Ok(Arc::new(Directory::new(path))),
    }
}

/// Like [`locate`]; a damaged container is opened as far as its format can, with the error that
/// describes the damage.
pub fn locate_damaged(path: &Path, formats: Formats) -> Result<(Arc<dyn Container>, Option<Error>)> {
    match outermost(path, formats)? {
        Some(found) if found.below.as_os_str().is_empty() => {
            let (container, damage) = found.salvage()?;
            Ok((container, damage))
        }
        _ => Ok((locate(path, formats)?, None)),
    }
}

/// The object to which a path leads, perhaps inside a container file.
pub enum Found {
    Container(Arc<dyn Container>),
    /// A virtual file that is not a container: its container, and its name there.
    File(Arc<dyn Container>, String),
}

fn not_a_container() -> Error {
    Error::format("the source is neither a table directory, nor a container, nor an HDF5 file")
}

/// The outermost container of a path, and the rest of the path, which continues inside it.
pub struct Outermost<'a> {
    pub directory: Directory,
    pub name: &'a str,
    pub format: &'static Format,
    below: &'a Path,
    formats: Formats,
}

/// `None` for a plain directory or a missing file.
///
/// # Errors
/// `Format` for a file that is not a container.
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

impl<'a> Outermost<'a> {
    /// A container of `format` that is not one of the files of a directory, such as one on another
    /// machine; `below` is the path inside it.
    pub fn elsewhere(name: &'a str, format: &'static Format, below: &'a Path, formats: Formats) -> Self {
        Outermost { directory: Directory::new(""), name, format, below, formats }
    }

    /// Whether the path ends at the container.
    pub fn is_whole(&self) -> bool {
        self.below.as_os_str().is_empty()
    }

    /// Opens the container to which the path leads; a file that is not a container is an error.
    pub fn open(&self) -> Result<Arc<dyn Container>> {
        match self.find()? {
            Found::Container(container) => Ok(container),
            Found::File(_, name) => {
                Err(Error::not_found("a file that is not a container").context(Context::member(name)))
            }
        }
    }

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

    /// Opens a damaged container as far as it can be read; the error describes the damage.
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

/// `None` for a virtual file that is not a container, `NotFound` for an unknown name.
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

pub fn recognise(inside: &dyn Container, name: &str, formats: Formats) -> Result<Option<&'static Format>> {
    recognise_as(false, inside, name, formats)
}

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

/// Opens the container with the storage managers' files of a table, of the format that table.dat
/// names. `None` if there is none: casacore creates none for managers that cannot be in a
/// container, whatever table.dat says.
pub fn of_table(files: &dyn Container, format: Option<&Format>) -> Result<Option<Arc<dyn Container>>> {
    let Some((format, casacore)) = format.and_then(|format| Some((format, format.casacore?))) else { return Ok(None) };
    let name = casacore.file_name;
    match files.open(name) {
        Ok(_) => Ok(Some((format.open)(files, name).context(Context::member(name))?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
