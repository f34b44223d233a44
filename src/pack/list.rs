//! What is in containers, as it is stored; and whether it is what was stored.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::copy::PIECE_BYTES;
use crate::container::{self, Container, ContainerInfo, FileLayout};
use crate::convert::Progress;
use crate::error::{Error, Place, Result};
use crate::limits;
use crate::sha::hex;

/// A directory or container, and what is in it.
#[derive(Debug)]
pub struct Listing {
    /// Of the directory or container in the one around it; the path of the outermost.
    pub name: String,
    /// What it is.
    pub info: ContainerInfo,
    /// Sorted by name.
    pub files: Vec<ListedFile>,
    /// Directories, containers, and files of directories that are containers; sorted by name.
    pub nested: Vec<Listing>,
    container: Arc<dyn Container>,
}

/// A file, and how it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// As stored: it need not be one that a file in a directory can have.
    pub name: String,
    /// In bytes.
    pub len: u64,
    /// How the container stores it.
    pub layout: FileLayout,
}

impl Listing {
    /// Lists what is at `path`, whether it is a table or not: a directory, a container, a container in one.
    ///
    /// # Errors
    /// `NotFound` if there is nothing, `Format` if it is no container or a damaged one.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let open = || Self::of(name.clone(), container::locate(&std::path::absolute(path)?)?, 0);
        open().at(&name)
    }

    fn of(name: String, container: Arc<dyn Container>, depth: usize) -> Result<Self> {
        limits::depth(depth, "directories and containers")?;
        let (mut files, mut nested) = (Vec::new(), Vec::new());
        for name in container.names()? {
            if let Some(inner) = container_in_directory(&*container, &name).at(&name)? {
                nested.push(Self::of(name.clone(), inner, depth + 1).at(name)?);
                continue;
            }
            let (len, layout) = (container.open(&name)?.len()?, container.layout(&name).at(&name)?);
            files.push(ListedFile { name, len, layout });
        }
        for name in container.nested()? {
            let inner = container.enter(&name).and_then(|inner| Self::of(name.clone(), inner, depth + 1));
            nested.push(inner.at(name)?);
        }
        nested.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Listing { name, info: container.describe(), files, nested, container })
    }

    /// All files in it and below, with where they are.
    fn all<'a>(&'a self, prefix: &str, found: &mut Vec<(String, &'a dyn Container, &'a ListedFile)>) {
        found.extend(self.files.iter().map(|file| (format!("{prefix}{}", file.name), &*self.container, file)));
        self.nested.iter().for_each(|inner| inner.all(&format!("{prefix}{}/", inner.name), found));
    }

    /// Bytes of all files in it and below.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum::<u64>() + self.nested.iter().map(Listing::bytes).sum::<u64>()
    }
}

/// The container that a file of a directory is, by its bytes. Those of tables have their names; others may be anything.
fn container_in_directory(directory: &dyn Container, name: &str) -> Result<Option<Arc<dyn Container>>> {
    if directory.path(name).is_none() {
        return Ok(None);
    }
    if let Some(format) = container::FORMATS.iter().find(|format| format.file_name == name) {
        return (format.open)(directory, name).map(Some);
    }
    let format = container::recognise(&*directory.open(name)?)?;
    Ok(format.and_then(|format| (format.open)(directory, name).ok()))
}

/// What was checked, and what is damaged.
#[derive(Debug, Default)]
pub struct Check {
    /// Files with checksums.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files without.
    pub unchecked: u64,
    /// Where files are, and what is wrong with them.
    pub damaged: Vec<(String, Error)>,
}

/// Reads all files in `listing` and below, and compares them with their checksums: those of their blocks, and the
/// SHA-256 of the file, where the container has them.
pub fn check(listing: &Listing, progress: &dyn Progress) -> Check {
    let mut files = Vec::new();
    listing.all("", &mut files);
    let mut check = Check::default();
    let checked: Vec<_> =
        files.into_par_iter().map(|(path, container, file)| (path, read(container, file), file)).collect();
    for (path, read, file) in checked {
        progress.advance(file.len, ".", &path);
        match read {
            Err(error) => check.damaged.push((path, error)),
            Ok(()) if file.layout.checksum.is_some() || file.layout.sha256.is_some() => {
                check.files += 1;
                check.bytes += file.len;
            }
            Ok(()) => check.unchecked += 1,
        }
    }
    check
}

fn read(container: &dyn Container, file: &ListedFile) -> Result<()> {
    let source = container.open(&file.name)?;
    let mut sha = file.layout.sha256.as_ref().map(|expected| (Sha256::new(), expected));
    let mut piece = vec![0; file.len.min(PIECE_BYTES as u64) as usize];
    let mut at = 0;
    while at < file.len {
        let count = (file.len - at).min(piece.len() as u64) as usize;
        source.read_at(at, &mut piece[..count])?;
        if let Some((sha, _)) = &mut sha {
            sha.update(&piece[..count]);
        }
        at += count as u64;
    }
    match sha.map(|(sha, expected)| hex(&sha.finalize().into()) == *expected) {
        Some(false) => Err(Error::format("the SHA-256 of the bytes is not the one that was stored")),
        _ => Ok(()),
    }
}
