//! Lists the files that containers hold, in the form in which they are stored, and checks them
//! against their checksums.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::copy::PIECE_BYTES;
use super::file_set::TABLE_DAT;
use crate::container::{self, BlockCheck, Container, ContainerInfo, Directory, FileLayout, Format, Found, Properties};
use crate::error::{Context, Error, Result, ResultExt};
use crate::hash::{Hash, HashKind, Hasher};
use crate::limits;
use crate::progress::Progress;

/// A directory or container, and the files and containers in it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listing {
    /// Name of this directory or container in the one that holds it; for the outermost its path.
    pub name: String,
    /// Format, block size and other properties of the container.
    pub info: ContainerInfo,
    /// Properties that only this container's format has, as names and values; empty for most
    /// formats.
    pub properties: Properties,
    /// Files of the directory or container, sorted by name.
    pub files: Vec<ListedFile>,
    /// Directories and containers (files that hold other files) in this one, sorted by name.
    pub nested: Vec<Listing>,
    /// Names of the recorded states of a content-addressed `.vt` archive (their dates), oldest
    /// first, the present one last. Empty for other formats. The path `my.vt/DATE` opens a recorded
    /// state as a container of its own.
    pub history: Vec<String>,
    /// Entries of the container that are neither files nor containers: the name of each, and what
    /// it is. Only `.vt` archives report them: symbolic links.
    pub left_out: Vec<(String, String)>,
    container: Arc<dyn Container>,
}

/// A file in a directory or container, and how it is stored.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ListedFile {
    /// Name of the file as stored; containers can hold names that files in directories cannot have,
    /// such as `a/b`.
    pub name: String,
    /// Length of the listed file in bytes.
    pub len: u64,
    /// How the container stores the file, such as in blocks.
    pub layout: FileLayout,
    /// Properties of the file that only the format of its container has, as names and values; empty
    /// for most formats.
    pub properties: Properties,
}

/// The target of a path: a table, a container of other files, or one file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Contents {
    /// A table; also a path that leads to neither a container of other files nor a file in one:
    /// opening it as a table gives the error.
    Table,
    /// A container of files that are not those of a table.
    Container(StoredFiles),
    /// One file inside a container.
    File(Box<StoredFile>),
}

/// A container of files that are not those of a table. Its files are listed only when that is asked
/// for.
#[derive(Debug)]
pub struct StoredFiles {
    name: String,
    container: Arc<dyn Container>,
}

/// One part of a listing, in the order in which [`Listing::visit`] finds them: a container, its
/// files, its other entries, its recorded states (dated snapshots, which only `.vt` archives have),
/// then the containers in it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Listed<'a> {
    /// A part of a listing: a directory or container. The parts for its files, its other entries
    /// and its recorded states (dated snapshots, which only `.vt` archives have) follow.
    Container {
        /// Number of directories and containers around the listed container; 0 for the outermost.
        depth: usize,
        /// Name of the listed container in the one that holds it; for the outermost its path.
        name: &'a str,
        /// Format, block size and other properties of the listed container.
        info: &'a ContainerInfo,
    },
    /// A part of a listing: a file in the directory or container of the last `Listed::Container`.
    File {
        /// Name of the file as stored; containers can hold names that files in directories cannot
        /// have, such as `a/b`.
        name: &'a str,
        /// Length in bytes of the listed file: of its content, not of the space that it takes in
        /// the container.
        len: u64,
        /// How the container stores the listed file, such as in blocks.
        layout: &'a FileLayout,
    },
    /// A part of a listing: an entry of the container of the last `Listed::Container` that is
    /// neither a file nor a container. Only `.vt` archives report such entries: symbolic links.
    LeftOut {
        /// Name of the symbolic link, as the `.vt` archive stores it, in the directory that
        /// contains the link.
        name: &'a str,
        /// Description of the symbolic link for the user: `a symbolic link to "TARGET"`.
        what: &'a str,
    },
    /// A part of a listing: a recorded state, old or present, of the container of the last
    /// `Listed::Container`. Only a content-addressed `.vt` archive keeps such states.
    History {
        /// Name of a state of the packed directory that the vt archive has recorded: its date. The
        /// path `my.vt/DATE` opens the state as a container of its own.
        name: &'a str,
    },
}

/// A file in a container, opened for reading.
#[derive(Debug)]
#[non_exhaustive]
pub struct StoredFile {
    /// Name and length of the file, and how it is stored.
    pub listed: ListedFile,
    container: Arc<dyn Container>,
}

impl Contents {
    /// Whether the file at `path` is a damaged container of which some files can be salvaged.
    pub fn can_be_salvaged(path: impl AsRef<Path>) -> bool {
        container::locate_damaged(path.as_ref()).is_ok_and(|(_, damage)| damage.is_some())
    }

    /// Finds out what the path leads to: a table, a container of other files, or a file in one.
    ///
    /// # Errors
    /// Those of opening a container that is not for tables.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let of = || {
            let absolute = std::path::absolute(path)?;
            let found = container::at_address(path).map_or_else(|| container::outermost(&absolute), |at| Ok(Some(at)));
            let Ok(Some(file)) = found else { return Ok(Contents::Table) };
            let for_tables = file.format.is_for_tables();
            if for_tables && file.is_whole() {
                return Ok(Contents::Table);
            }
            match file.find() {
                Ok(Found::File(container, name)) => {
                    let listed = ListedFile::of(&*container, name)?;
                    Ok(Contents::File(Box::new(StoredFile { listed, container })))
                }
                Ok(Found::Container(container)) => {
                    let format = container::FORMATS.named(container.describe().format);
                    let is_table = container.open(TABLE_DAT).is_ok() || format.is_some_and(Format::is_for_tables);
                    if is_table {
                        return Ok(Contents::Table);
                    }
                    Ok(Contents::Container(StoredFiles { name: path.display().to_string(), container }))
                }
                Err(_) if for_tables => Ok(Contents::Table),
                Err(error) => Err(error),
            }
        };
        of().with_context(|| Context::path(path))
    }
}

impl StoredFiles {
    /// Path of the container as given to [`Contents::of`]: on the disk, or through the containers
    /// that hold it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Format, block size and other properties of the container as a whole.
    pub fn info(&self) -> ContainerInfo {
        self.container.describe()
    }

    /// Properties that only the format of this container has, as names and values; empty for most
    /// formats.
    ///
    /// # Errors
    /// Those of reading the container.
    pub fn properties(&self) -> Result<Properties> {
        self.container.properties()
    }

    /// Number of files in the container and in all containers inside it, and the sum of their
    /// bytes.
    ///
    /// # Errors
    /// Those of opening the files and the containers in it.
    pub fn totals(&self) -> Result<(u64, u64)> {
        totals(&*self.container, 0)
    }

    /// Lists all files of the container, and of the containers inside it.
    ///
    /// # Errors
    /// Those of opening the files and the containers in it.
    pub fn listing(&self) -> Result<Listing> {
        Listing::of("", self.name.clone(), self.container.clone(), &mut |_, _, _, _| Ok(true), 0)
    }
}

fn totals(container: &dyn Container, depth: usize) -> Result<(u64, u64)> {
    limits::depth(depth, "directories and containers")?;
    let (mut files, mut bytes) = (0u64, 0u64);
    for name in container.names()? {
        let len = container.open(&name).and_then(|file| file.len()).with_context(|| Context::member(&name))?;
        (files, bytes) = (files + 1, bytes.saturating_add(len));
    }
    for name in container.nested()? {
        let inner = || totals(&*container.enter(&name)?, depth + 1);
        let (more_files, more_bytes) = inner().with_context(|| Context::member(&name))?;
        (files, bytes) = (files + more_files, bytes.saturating_add(more_bytes));
    }
    Ok((files, bytes))
}

impl StoredFile {
    /// Computes the hash of the file's bytes.
    ///
    /// # Errors
    /// Those of reading it; `Interrupted` if `progress` says so.
    pub fn hash(&self, kind: HashKind, progress: &dyn Progress) -> Result<Hash> {
        hash(&*self.container, &self.listed, kind, progress)
    }
}

impl ListedFile {
    fn of(container: &dyn Container, name: String) -> Result<Self> {
        let of = || -> Result<_> {
            let (len, layout) = (container.open(&name)?.len()?, container.layout(&name)?);
            Ok((len, layout, container.file_properties(&name)?))
        };
        let (len, layout, properties) = of().context(Context::member(&name))?;
        Ok(ListedFile { name, len, layout, properties })
    }
}

/// Whether a container file is opened: path below the outermost container, format, directory or
/// container that holds the file, and the file's name there.
type Wanted<'a> = dyn FnMut(&str, &Format, &dyn Container, &str) -> Result<bool> + 'a;

impl Listing {
    /// Lists the files at `path`, whether it is a table or not: a directory, a container, or a
    /// container inside another.
    ///
    /// # Errors
    /// `NotFound` if `path` does not exist, `Format` if it is not a container or a damaged one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let listing = Self::open_if(path.as_ref(), &mut |_, _, _, _| Ok(true))?;
        Ok(listing.expect("it was wanted"))
    }

    /// Lists the files at `path` like [`open`](Self::open), but calls `each` with one part of the
    /// listing after the other instead of keeping the listing in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open); that of `each`, after which it is not called again.
    pub fn visit(path: impl AsRef<Path>, each: &mut dyn FnMut(Listed<'_>) -> Result<()>) -> Result<()> {
        let name = path.as_ref().display().to_string();
        let container = match container::at_address(path.as_ref()) {
            Some(address) => address.open(),
            None => container::locate(&std::path::absolute(&path)?),
        };
        let container = container.with_context(|| Context::member(&name))?;
        visit(&name, container, 0, each).with_context(|| Context::member(&name))
    }

    /// Leaves out containers that are not `wanted`; `None` if that is the outermost one.
    fn open_if(path: &Path, wanted: &mut Wanted<'_>) -> Result<Option<Self>> {
        let (name, absolute) = (path.display().to_string(), std::path::absolute(path)?);
        let mut open = || {
            let found = container::at_address(path).map_or_else(|| container::outermost(&absolute), |at| Ok(Some(at)));
            let container: Arc<dyn Container> = match found? {
                Some(file) if !wanted(".", file.format, &file.directory, file.name)? => return Ok(None),
                Some(file) => file.open()?,
                None => Arc::new(Directory::new(absolute.clone())),
            };
            Self::of("", name.clone(), container, wanted, 0).map(Some)
        };
        open().context(Context::member(&name))
    }

    /// `prefix` is the path of the container, with which the paths of its files begin.
    fn of(
        prefix: &str,
        name: String,
        container: Arc<dyn Container>,
        wanted: &mut Wanted<'_>,
        depth: usize,
    ) -> Result<Self> {
        let mut files = Vec::new();
        let mut add = |name| {
            files.push(ListedFile::of(&*container, name)?);
            Ok(())
        };
        let inner = entries(prefix, &*container, wanted, depth, &mut add)?;
        let mut nested = Vec::new();
        for (name, container) in inner {
            let prefix = format!("{prefix}{name}/");
            nested.push(Self::of(&prefix, name.clone(), container, wanted, depth + 1).context(Context::member(name))?);
        }
        let (history, left_out) = (container.history()?, container.left_out()?);
        let (info, properties) = (container.describe(), container.properties()?);
        Ok(Listing { name, info, properties, files, nested, history, left_out, container })
    }

    /// `is_covered`: a container around has checksums, which cover this one as well.
    fn all<'a>(&'a self, prefix: &str, is_covered: bool, found: &mut Vec<Checked<'a>>) {
        let path = if prefix.is_empty() { "." } else { prefix.trim_end_matches('/') };
        found.push(Checked { path: path.to_owned(), container: &*self.container, file: None, is_covered });
        let is_covered = is_covered || self.info.checksum.is_some();
        found.extend(self.files.iter().map(|file| Checked {
            path: format!("{prefix}{}", file.name),
            container: &*self.container,
            file: Some(file),
            is_covered,
        }));
        self.nested.iter().for_each(|inner| inner.all(&format!("{prefix}{}/", inner.name), is_covered, found));
    }

    /// Computes the hash of each file in the listing, in the order of the listing; `each` is called
    /// with the path and hash of one file after the other.
    ///
    /// # Errors
    /// Those of reading the files; `Interrupted` if `progress` says so; that of `each`.
    pub fn digest(
        &self,
        kind: HashKind,
        progress: &dyn Progress,
        each: &mut dyn FnMut(&str, &ListedFile, Hash) -> Result<()>,
    ) -> Result<()> {
        self.digest_below("", kind, progress, each)
    }

    fn digest_below(
        &self,
        prefix: &str,
        kind: HashKind,
        progress: &dyn Progress,
        each: &mut dyn FnMut(&str, &ListedFile, Hash) -> Result<()>,
    ) -> Result<()> {
        for file in &self.files {
            let path = format!("{prefix}{}", file.name);
            let hash = hash(&*self.container, file, kind, progress).context(Context::member(&path))?;
            each(&path, file, hash)?;
        }
        let below = |inner: &Listing| format!("{prefix}{}/", inner.name);
        self.nested.iter().try_for_each(|inner| inner.digest_below(&below(inner), kind, progress, each))
    }

    /// Sum of the lengths of all files in this listing, those of nested containers included, in
    /// bytes.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum::<u64>() + self.nested.iter().map(Listing::bytes).sum::<u64>()
    }
}

/// Calls `file` with the name of each file that is not a container. Returns directories and wanted
/// containers, opened and sorted by name; `prefix` precedes their names in paths.
fn entries(
    prefix: &str,
    container: &dyn Container,
    wanted: &mut Wanted<'_>,
    depth: usize,
    file: &mut dyn FnMut(String) -> Result<()>,
) -> Result<Vec<(String, Arc<dyn Container>)>> {
    limits::depth(depth, "directories and containers")?;
    let mut inner = Vec::new();
    let names = container.names()?;
    let mut found = Vec::with_capacity(names.len());
    let mut parts = HashSet::new();
    for name in names {
        let format = format_in_directory(container, &name).context(Context::member(&name))?;
        if let Some(format) = format {
            parts.extend((format.parts)(container, &name).context(Context::member(&name))?);
        }
        found.push((name, format));
    }
    for (name, format) in found.into_iter().filter(|(name, _)| !parts.contains(name)) {
        if let Some(format) = format {
            if !wanted(&format!("{prefix}{name}"), format, container, &name).context(Context::member(&name))? {
                continue;
            }
            match (format.open)(container, &name) {
                Ok(container) => {
                    inner.push((name, container));
                    continue;
                }
                Err(error) if format.is_file_name(&name) => return Err(error.context(Context::member(name))),
                // not all HDF5 files are containers
                Err(_) => {}
            }
        }
        file(name)?;
    }
    for name in container.nested()? {
        let format = match container.path(&name) {
            Some(_) => container::recognise_directory(container, &name).context(Context::member(&name))?,
            None => None,
        };
        let entered = match format {
            Some(format) => (format.open)(container, &name),
            None => container.enter(&name),
        };
        inner.push((name.clone(), entered.context(Context::member(name))?));
    }
    inner.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(inner)
}

/// Part of [`Listing::visit`]; `depth` counts the containers around.
fn visit(
    name: &str,
    container: Arc<dyn Container>,
    depth: usize,
    each: &mut dyn FnMut(Listed<'_>) -> Result<()>,
) -> Result<()> {
    each(Listed::Container { depth, name, info: &container.describe() })?;
    let mut file = |name: String| {
        let of = || -> Result<_> { Ok((container.open(&name)?.len()?, container.layout(&name)?)) };
        let (len, layout) = of().with_context(|| Context::member(&name))?;
        each(Listed::File { name: &name, len, layout: &layout })
    };
    let inner = entries("", &*container, &mut |_, _, _, _| Ok(true), depth, &mut file)?;
    for (name, what) in container.left_out()? {
        each(Listed::LeftOut { name: &name, what: &what })?;
    }
    for name in container.history()? {
        each(Listed::History { name: &name })?;
    }
    drop(container);
    inner
        .into_iter()
        .try_for_each(|(name, inner)| visit(&name, inner, depth + 1, each).with_context(|| Context::member(&name)))
}

/// A name that casacore gives to containers of tables decides, otherwise the content.
fn format_in_directory(directory: &dyn Container, name: &str) -> Result<Option<&'static Format>> {
    if directory.path(name).is_none() {
        return Ok(None);
    }
    let named = container::FORMATS.of_file_name(name);
    named.map_or_else(|| container::recognise(directory, name), |format| Ok(Some(format)))
}

/// Result of checking the files at a path against the checksums that their containers have.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Check {
    /// The files that were found; `None` if the source is a single damaged container, which cannot
    /// be listed.
    pub listing: Option<Listing>,
    /// Number of files that have checksums and were checked.
    pub files: u64,
    /// Sum of the lengths of the files with checksums, in bytes.
    pub bytes: u64,
    /// Number of blocks that were compared with checksums or with the hashes that name them: those
    /// of the files with checksums, and those of stores that hold blocks without files.
    pub blocks: u64,
    /// Sum of the lengths of the compared blocks that do not belong to files, in bytes.
    pub block_bytes: u64,
    /// Number of blocks in stores that nothing names, so that nothing says what their bytes should
    /// be.
    pub unnamed: u64,
    /// Number of files and containers that have no checksums.
    pub unchecked: u64,
    /// Paths of damaged files and containers, each with the error.
    pub damaged: Vec<(String, Error)>,
}

impl Check {
    /// Lists the files at `path`, and checks containers with a checksum of the whole container
    /// against it. Damaged containers are not listed, since their content is not reliable.
    ///
    /// # Errors
    /// As [`Listing::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut check = Check::default();
        let damaged = &mut check.damaged;
        let mut whole = |path: &str, format: &Format, inside: &dyn Container, name: &str| {
            let before = damaged.len();
            match (format.damage)(inside, name) {
                Ok(found) => damaged.extend(found.into_iter().map(|damage| {
                    let file = damage.file.as_deref().map_or(String::new(), |file| format!("/{file}"));
                    (format!("{path}{file}").trim_start_matches("./").to_owned(), Error::format(damage.to_string()))
                })),
                Err(error) => damaged.push((path.to_owned(), error)),
            }
            Ok(damaged.len() == before)
        };
        check.listing = Listing::open_if(path, &mut whole)?;
        Ok(check)
    }

    /// Reads all files and compares them with the checksums in their containers: checksums of
    /// blocks, and hashes of files.
    ///
    /// # Errors
    /// `Interrupted` if `progress` says so; damage is in [`damaged`](Self::damaged).
    pub fn read(&mut self, progress: &dyn Progress) -> Result<()> {
        let mut all = Vec::new();
        if let Some(listing) = &self.listing {
            listing.all("", false, &mut all);
        }
        let mut others = Vec::new();
        for one in all {
            // stores scan their blocks with threads of their own
            match one.blocks()? {
                None => others.push(one),
                Some(found) => {
                    (self.blocks, self.block_bytes) = (self.blocks + found.blocks, self.block_bytes + found.bytes);
                    self.unnamed += found.unnamed;
                    self.damaged.extend(found.damage.into_iter().map(|error| (one.path.clone(), error)));
                }
            }
        }
        let checked: Vec<_> = others.into_par_iter().map(|one| (one.check(progress), one)).collect();
        progress.go_on()?;
        for (has_checksums, Checked { path, file, .. }) in checked {
            let (bytes, blocks) = (file.map(|file| file.len), file.map_or(0, |file| file.layout.blocks));
            progress.advance(bytes.unwrap_or(0), ".", &path);
            match (has_checksums, bytes) {
                (Err(error), _) => self.damaged.push((path, error)),
                (Ok(false), _) => self.unchecked += 1,
                (Ok(true), None) => {}
                (Ok(true), Some(bytes)) => {
                    self.files += 1;
                    self.bytes += bytes;
                    self.blocks += blocks;
                }
            }
        }
        Ok(())
    }
}

/// A container, or a file in it.
struct Checked<'a> {
    path: String,
    /// The one that is checked, or that holds the checked file.
    container: &'a dyn Container,
    file: Option<&'a ListedFile>,
    is_covered: bool,
}

impl Checked<'_> {
    /// Compares the blocks of a container without files with the hashes that name them.
    fn blocks(&self) -> Result<Option<BlockCheck>> {
        if self.file.is_some() { Ok(None) } else { self.container.check_blocks() }
    }

    /// Whether there are checksums, its own or of a container around it.
    fn check(&self, progress: &dyn Progress) -> Result<bool> {
        let own = match self.file {
            Some(file) => {
                read(self.container, file, progress)?;
                file.layout.checksum.is_some() || file.layout.hash.is_some()
            }
            None => self.container.check()?,
        };
        Ok(own || self.is_covered)
    }
}

fn hash(container: &dyn Container, file: &ListedFile, kind: HashKind, progress: &dyn Progress) -> Result<Hash> {
    let mut hasher = Hasher::new(kind);
    read_pieces(container, file, progress, &mut |piece| hasher.update(piece))?;
    Ok(hasher.finish())
}

/// Fails if the file differs from its checksums.
fn read(container: &dyn Container, file: &ListedFile, progress: &dyn Progress) -> Result<()> {
    match &file.layout.hash {
        Some((kind, expected)) if hash(container, file, *kind, progress)?.to_string() != *expected => {
            Err(Error::format(format!("the {kind} of the bytes is not the one that was stored")))
        }
        Some(_) => Ok(()),
        None => read_pieces(container, file, progress, &mut |_| ()),
    }
}

fn read_pieces(
    container: &dyn Container,
    file: &ListedFile,
    progress: &dyn Progress,
    each: &mut dyn FnMut(&[u8]),
) -> Result<()> {
    let source = container.open(&file.name)?;
    let mut piece = vec![0; file.len.min(PIECE_BYTES as u64) as usize];
    let mut at = 0;
    while at < file.len {
        progress.go_on()?;
        let count = (file.len - at).min(piece.len() as u64) as usize;
        source.read_at(at, &mut piece[..count])?;
        each(&piece[..count]);
        at += count as u64;
    }
    Ok(())
}
