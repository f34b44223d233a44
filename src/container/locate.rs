//! Paths that lead into containers: `/d/one.mfh5/ANTENNA`.

use std::path::{Component, Path};
use std::sync::Arc;

use super::{Container, Directory, FORMATS, Format};
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};

/// The files at `path`: a directory, a file that is a container, or what is nested in one.
///
/// A missing directory is reported when one of its files is opened.
///
/// # Errors
/// `Format` if `path` is another kind of file; those of opening the container.
pub(crate) fn locate(path: &Path) -> Result<Arc<dyn Container>> {
    match outermost(path)? {
        Some(found) => found.open(),
        None => Ok(Arc::new(Directory::new(path))),
    }
}

/// A file or directory that is a container, and the path in it.
pub(crate) struct Outermost<'a> {
    pub(crate) directory: Directory,
    pub(crate) name: &'a str,
    pub(crate) format: &'static Format,
    below: &'a Path,
}

/// The file or directory of a container that `path` is, or leads into.
///
/// # Errors
/// `Format` if it is a file that is not a container.
pub(crate) fn outermost(path: &Path) -> Result<Option<Outermost<'_>>> {
    let Some(found) = path.ancestors().find(|prefix| prefix.exists()) else { return Ok(None) };
    let directory = Directory::new(found.parent().unwrap_or(Path::new("")));
    let below = path.strip_prefix(found).unwrap_or(Path::new(""));
    let name = found.file_name().unwrap_or_default().to_str();
    if !found.is_file() {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
        let format = recognise_directory(&directory, name)?;
        return Ok(format.map(|format| Outermost { directory, name, format, below }));
    }
    let name = name.ok_or_else(|| Error::unsupported("the file's name is not UTF-8"))?;
    let Some(format) = recognise(&directory, name)? else {
        return Err(match below.as_os_str().is_empty() {
            true => Error::format("neither a table directory, nor a container, nor an HDF5 file"),
            false => Error::not_found(format!("{} is neither a directory nor a container", found.display())),
        });
    };
    Ok(Some(Outermost { directory, name, format, below }))
}

impl Outermost<'_> {
    /// Opens the container, and follows the path in it.
    pub(crate) fn open(&self) -> Result<Arc<dyn Container>> {
        let mut levels = vec![(self.format.open)(&self.directory, self.name)?];
        for component in self.below.components() {
            match component {
                Component::Normal(name) => {
                    let inner = levels[levels.len() - 1].enter(&name.to_string_lossy())?;
                    levels.push(inner);
                }
                Component::ParentDir if levels.len() > 1 => drop(levels.pop()),
                Component::ParentDir => return Err(Error::not_found("the path leads out of the container")),
                _ => {}
            }
        }
        Ok(levels.swap_remove(levels.len() - 1))
    }
}

/// The kind of container that the file `name` of `inside` is.
pub(crate) fn recognise(inside: &dyn Container, name: &str) -> Result<Option<&'static Format>> {
    recognise_as(false, inside, name)
}

/// The kind of container that the directory `name` of `inside` is; `None`: a plain directory.
pub(crate) fn recognise_directory(inside: &dyn Container, name: &str) -> Result<Option<&'static Format>> {
    recognise_as(true, inside, name)
}

fn recognise_as(is_directory: bool, inside: &dyn Container, name: &str) -> Result<Option<&'static Format>> {
    for format in FORMATS.iter().filter(|format| format.is_directory == is_directory) {
        if (format.recognise)(inside, name)? {
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// The container among the files of a table, in the format that its table.dat names.
///
/// Casacore creates none for a table without managers that can be in a container, whatever table.dat says.
pub(crate) fn of_table(files: &dyn Container, format: Option<&Format>) -> Result<Option<Arc<dyn Container>>> {
    let Some((format, casacore)) = format.and_then(|format| Some((format, format.casacore?))) else { return Ok(None) };
    let name = casacore.file_name;
    match files.open(name) {
        Ok(_) => Ok(Some((format.open)(files, name).context(Context::member(name))?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
