//! The files of a table as they would be in directories without containers, wherever they are now:
//! the input of packing and unpacking.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BStr, ByteSlice};

use super::elsewhere::{self, Elsewhere, Reference};
use super::special::{self, Special};
use crate::container::thin;
use crate::container::{
    self, Announced, AnnouncedFile, Container, ContainerInfo, Format, Found, Outermost, Properties,
};
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ReadAt, read_all};
use crate::limits;
use crate::output::Damage;
use crate::progress::Progress;
use crate::schema::{Body, ColumnSet, StorageOption, TableDat, with_storage};
use crate::stman;
use crate::table::{OpenOptions, ReadLock};

pub(super) const TABLE_DAT: &str = "table.dat";

/// Bytes read at a time of a file that is only checked.
const READ_BYTES: u64 = 1 << 18;

/// The original table.dat of a packed table, in its container, if the packed one does not show it.
pub(super) const ORIGINAL_DAT: &str = "table.dat_plain";

/// The files of a table and of its subtables in plain form, which means outside of containers: each
/// file for itself in a directory.
///
/// | stored as                | taken as                                                                         |
/// |--------------------------|----------------------------------------------------------------------------------|
/// | file beside a container  | it is                                                                            |
/// | file in a container      | it is, beside the others                                                         |
/// | table.dat                | casacore writes it when each file lies on its own, or as it was before packing   |
/// | the container            | nothing                                                                          |
/// | directory, nested container | its own files, unpacked                                                       |
///
/// Tables in directories are locked for reading as long as this exists.
#[derive(Debug)]
pub(super) struct FileSet {
    path: PathBuf,
    pub(super) root: Folder,
    damage: Vec<Damage>,
    /// Tables in the set, with all in their directories: the source, and those that were followed.
    trees: Vec<PathBuf>,
}

/// Kinds of sources that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A table, or a container of a format that can hold any files (not only those of tables).
    Table,
    /// A table or a container file, with whatever files.
    Packed,
    /// Any directory, container or file.
    Files,
}

#[derive(Clone, Copy)]
struct Search {
    options: OpenOptions,
    wanted: Wanted,
    /// Lists unreadable files, containers and directories as damage; otherwise they are errors.
    salvage: bool,
    /// Tables outside of the source, which its tables need, are taken into the set.
    follow: bool,
}

/// A table or directory, with its files and the folders inside it.
#[derive(Debug)]
pub(super) struct Folder {
    /// Path in the source: `ANTENNA/`; empty for the source itself.
    pub(super) prefix: String,
    /// `None` for a container or in one.
    pub(super) path: Option<PathBuf>,
    /// Absolute path, also through containers, from which `table.dat` names other tables.
    origin: PathBuf,
    pub(super) files: Vec<SetFile>,
    pub(super) nested: Vec<(String, Folder)>,
    /// Where the files were found; those of a table may be in another container inside it.
    container: Arc<dyn Container>,
    /// Data managers (`table.f<number>`) whose files can be in a container. `None` if the folder is
    /// not a table with data of its own, or its `table.dat` cannot be decoded.
    packable: Option<Vec<u32>>,
    /// Numbers of all data managers, in the order of `table.dat`; none where `packable` is `None`.
    pub(super) managers: Vec<u32>,
    warnings: Vec<String>,
    /// Left out of this folder, with folders directly in it.
    damage: Vec<Damage>,
    _lock: Option<ReadLock>,
}

fn exists(path: &Path) -> bool {
    container::locate(path).is_ok_and(|files| files.open(TABLE_DAT).is_ok())
}

/// A table of the set: where it was, and the name of its folder, empty for the source.
#[derive(Clone)]
struct Tree {
    origin: PathBuf,
    name: String,
}

impl Tree {
    /// Adds a tree with a name that is not `taken` if none has the table at `path`.
    fn place(trees: &mut Vec<Self>, path: &Path, taken: &[String]) -> PathBuf {
        for tree in trees.iter() {
            if let Ok(below) = path.strip_prefix(&tree.origin) {
                return Path::new(&tree.name).join(below).components().collect();
            }
        }
        let wanted = path.file_name().unwrap_or_default().to_string_lossy();
        let is_taken = |name: &str| taken.iter().chain(trees.iter().map(|tree| &tree.name)).any(|other| other == name);
        let mut names = std::iter::once(wanted.to_string()).chain((2..).map(|number| format!("{wanted}_{number}")));
        let name = names.find(|name| !is_taken(name)).expect("the numbers do not end");
        trees.push(Tree { origin: path.to_owned(), name: name.clone() });
        name.into()
    }
}

#[derive(Debug)]
pub(super) struct SetFile {
    pub(super) name: String,
    pub(super) len: u64,
    stored: Stored,
}

#[derive(Debug, Clone)]
enum Stored {
    In(Arc<dyn Container>),
    Bytes(Arc<Vec<u8>>),
}

impl SetFile {
    fn new(container: &Arc<dyn Container>, name: String) -> Result<Self> {
        let len = container.open(&name)?.len().context(Context::member(&name))?;
        Ok(SetFile { name, len, stored: Stored::In(container.clone()) })
    }

    pub(super) fn open(&self) -> Result<Arc<dyn ReadAt>> {
        self.stored.open(&self.name)
    }

    /// Whether the bytes are those of a file of the file system.
    pub(super) fn has_path(&self) -> bool {
        matches!(&self.stored, Stored::In(container) if container.path(&self.name).is_some())
    }

    /// Empty if the container's format records none.
    fn properties(&self) -> Result<Properties> {
        match &self.stored {
            Stored::In(container) => container.file_properties(&self.name),
            Stored::Bytes(_) => Ok(Properties::default()),
        }
    }

    /// Finds out whether all bytes can be read.
    fn read_through(&self, progress: &dyn Progress) -> Result<()> {
        let (file, mut at) = (self.open()?, 0);
        let mut piece = vec![0; self.len.min(READ_BYTES) as usize];
        while at < self.len {
            progress.go_on()?;
            piece.truncate((self.len - at).min(READ_BYTES) as usize);
            file.read_at(at, &mut piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }
}

impl Stored {
    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        match self {
            Stored::In(container) => container.open(name),
            Stored::Bytes(bytes) => Ok(bytes.clone()),
        }
    }
}

/// Files presented as one container, for formats that write a whole container at once.
#[derive(Debug)]
struct Plain {
    /// Directory of the files, also of those in a container there (`table.mf`), if it exists.
    path: Option<PathBuf>,
    properties: Properties,
    files: BTreeMap<String, Stored>,
    nested: BTreeMap<String, Arc<Plain>>,
}

impl Plain {
    fn new(folder: &Folder) -> Result<Self> {
        let nested = folder.nested.iter().map(|(name, inner)| Ok((name.clone(), Arc::new(Plain::new(inner)?))));
        Ok(Plain {
            path: folder.path.clone(),
            properties: folder.container.properties()?,
            files: folder.files.iter().map(|file| (file.name.clone(), file.stored.clone())).collect(),
            nested: nested.collect::<Result<_>>()?,
        })
    }
}

impl Container for Plain {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.files.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        match self.files.get(name) {
            Some(stored) => stored.open(name),
            None => Err(Error::not_found("the file does not exist").context(Context::member(name))),
        }
    }

    fn nested(&self) -> Result<Vec<String>> {
        Ok(self.nested.keys().cloned().collect())
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        match self.nested.get(name) {
            Some(inner) => Ok(inner.clone()),
            None => Err(Error::not_found("the directory does not exist").context(Context::member(name))),
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        if name.is_empty() {
            return self.path.clone();
        }
        match self.files.get(name) {
            Some(Stored::In(container)) => container.path(name),
            Some(Stored::Bytes(_)) => Some(self.path.as_ref()?.join(name)),
            None => self.nested.get(name)?.path(""),
        }
    }

    fn properties(&self) -> Result<Properties> {
        Ok(self.properties.clone())
    }

    fn file_properties(&self, name: &str) -> Result<Properties> {
        match self.files.get(name) {
            Some(Stored::In(container)) => container.file_properties(name),
            _ => Ok(Properties::default()),
        }
    }

    fn describe(&self) -> ContainerInfo {
        ContainerInfo { format: "directory", ..ContainerInfo::default() }
    }
}

/// A single file inside a container becomes a container with this file as its only member.
fn locate_files(path: &Path) -> Result<Arc<dyn Container>> {
    let Some(outermost) = container::outermost(path)? else { return container::locate(path) };
    files_of(&outermost)
}

fn files_of(outermost: &Outermost<'_>) -> Result<Arc<dyn Container>> {
    Ok(match outermost.find()? {
        Found::Container(container) => container,
        Found::File(container, name) => {
            let files = BTreeMap::from([(name, Stored::In(container.clone()))]);
            let properties = Properties::default();
            Arc::new(Plain { path: None, properties, files, nested: BTreeMap::new() })
        }
    })
}

impl FileSet {
    /// A table directory, a file that holds a whole table, a table in one, or a container. `Locked`
    /// if a program writes to a table for too long, `Format` if `path` is not a table, a container
    /// is damaged, or a file cannot be named.
    pub(super) fn open(path: &Path, wanted: Wanted, options: OpenOptions) -> Result<Self> {
        Self::find(path, Search { options, wanted, salvage: false, follow: false })
    }

    /// As [`open`](Self::open), with the tables outside of the source that its tables need, each as
    /// a folder of the source.
    pub(super) fn follow(path: &Path, wanted: Wanted, options: OpenOptions) -> Result<Self> {
        Self::find(path, Search { options, wanted, salvage: false, follow: true })
    }

    /// As [`open`](Self::open), without files that cannot be read as a whole, and containers and
    /// directories that cannot be opened; [`damage`](Self::damage) lists them. Reads every file
    /// once. `Format` where the main `table.dat` or the file that holds everything is damaged.
    pub(super) fn salvage(
        path: &Path,
        wanted: Wanted,
        options: OpenOptions,
        follow: bool,
        progress: &dyn Progress,
    ) -> Result<Self> {
        let mut found = Self::find(path, Search { options, wanted, salvage: true, follow })?;
        let was_table = found.root.is_table();
        found.root.leave_out_damaged(progress)?;
        if was_table && !found.root.is_table() {
            return Err(Error::format("its table.dat cannot be read").context(Context::path(path)));
        }
        found.damage = found.root.all().iter().flat_map(|folder| folder.damage.clone()).collect();
        Ok(found)
    }

    fn find(path: &Path, search: Search) -> Result<Self> {
        let open = || {
            let address = container::at_address(path);
            let path = if address.is_some() { path.to_owned() } else { std::path::absolute(path)? };
            let (container, damage) = match (&address, search.salvage) {
                (Some(address), _) => (files_of(address)?, None),
                (None, true) => container::locate_damaged(&path)?,
                (None, false) if search.wanted == Wanted::Files => (locate_files(&path)?, None),
                (None, false) => (container::locate(&path)?, None),
            };
            let format = container::FORMATS.named(container.describe().format);
            let is_accepted = match search.wanted {
                Wanted::Table => format.is_some_and(|format| !format.is_for_tables()),
                Wanted::Packed => format.is_some(),
                Wanted::Files => true,
            };
            let mut root = Folder::open(container, String::new(), path.clone(), search, 0)?;
            let trees = if search.follow { root.follow(search)? } else { vec![path.clone()] };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            root.damage.extend(damage.map(|error| Damage::of_file(".", &name, &error)));
            match root.is_table() || is_accepted {
                true => Ok(FileSet { path, root, damage: Vec::new(), trees }),
                false => Err(Error::format("not a table: it has no table.dat")),
            }
        };
        open().with_context(|| Context::path(path))
    }

    /// For formats that write a whole container at once: one container of all files.
    pub(super) fn as_container(&self) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(Plain::new(&self.root)?))
    }

    pub(super) fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Adds the path of the source to an error of damage.
    pub(super) fn blame(&self, error: Error) -> Error {
        if error.is_damage() { error.of_file(&Context::path(&self.path)) } else { error }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if the target is the source, inside it, or a directory that contains it.
    pub(super) fn check_apart(&self, target: &Path) -> Result<()> {
        if [self.path(), target].into_iter().any(|path| container::at_address(path).is_some()) {
            return Ok(());
        }
        let real = |path: &Path| path.ancestors().find_map(|path| path.canonicalize().ok()).unwrap_or_default();
        let source = real(&self.path);
        let target = std::path::absolute(target)?;
        let parent = target.parent().map(real).unwrap_or_default();
        let place = target.canonicalize().unwrap_or_else(|_| parent.join(target.file_name().unwrap_or_default()));
        if place.starts_with(&source) || source.starts_with(&place) {
            return Err(Error::usage("the target is the source, in it, or around it").context(Context::path(&target)));
        }
        Ok(())
    }

    /// List for container formats that store it before the content of files.
    pub(super) fn announce(&self) -> Result<Announced> {
        self.root.announce()
    }

    /// Includes those of subtables.
    pub(super) fn files(&self) -> usize {
        self.root.all().iter().map(|folder| folder.files.len()).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.root.all().iter().flat_map(|folder| &folder.files).map(|file| file.len).sum()
    }

    /// Tables outside of the set that its tables need.
    pub(super) fn elsewhere(&self) -> Result<Vec<Elsewhere>> {
        let mut found = Vec::new();
        for folder in self.root.all() {
            for (Reference { holds, is_subtable, .. }, path) in folder.references()? {
                let is_missing = !exists(&path);
                // nothing is lost with a subtable that is missing
                let is_inside = self.trees.iter().any(|tree| elsewhere::is_in(&path, tree));
                if !(is_inside || is_subtable && is_missing) {
                    found.push(Elsewhere { table: folder.name().to_owned(), holds, path, is_missing });
                }
            }
        }
        Ok(found)
    }

    /// Left out files, followed symbolic links, and each table.dat that cannot be decoded.
    pub(super) fn warnings(&self) -> Vec<String> {
        self.root.all().iter().flat_map(|folder| folder.warnings.clone()).collect()
    }
}

impl Folder {
    fn open(
        container: Arc<dyn Container>,
        prefix: String,
        origin: PathBuf,
        search: Search,
        depth: usize,
    ) -> Result<Self> {
        limits::depth(depth, "directories and containers")?;
        let path = container.path("");
        if let Some(path) = &path
            && thin::Record::read(path)?.is_some()
        {
            let message = "a thin table, whose tiles are in an HDF5 file; `h5bridge materialize` makes it independent";
            return Err(Error::unsupported(message).context(Context::path(path)));
        }
        let lock = match &path {
            Some(path) => ReadLock::take(path, search.options)?,
            None => None,
        };
        let mut folder = Folder {
            prefix,
            path: path.clone(),
            origin,
            files: Vec::new(),
            nested: Vec::new(),
            container: container.clone(),
            packable: None,
            managers: Vec::new(),
            warnings: Vec::new(),
            damage: Vec::new(),
            _lock: lock,
        };
        let left_out = folder.look_around(path)?;
        folder.add_files(&container, &left_out, search)?;
        let packed = folder.open_table(&container, search.salvage)?;
        for container in [container].into_iter().chain(packed) {
            folder.add_nested(&*container, &left_out, search, depth)?;
        }
        folder.check_names()?;
        Ok(folder)
    }

    /// Adds the files of the container, without those that are `left_out`.
    fn add_files(&mut self, container: &Arc<dyn Container>, left_out: &[String], search: Search) -> Result<()> {
        for name in container.names()?.into_iter().filter(|name| !left_out.contains(name)) {
            container::check_name(&name)?;
            match SetFile::new(container, name.clone()) {
                Ok(file) => self.files.push(file),
                Err(error) if search.salvage && error.is_damage() => self.leave_out(&name, &error),
                // a file that the user may not read
                Err(error) if error.kind() == crate::ErrorKind::Io => self.warn(&name, &format!("left out: {error}")),
                Err(error) => return Err(error),
            }
        }
        for (name, what) in container.left_out()? {
            self.warn(&name, &format!("left out: {what}"));
        }
        Ok(())
    }

    /// Adds the directories and containers in the container, without those that are `left_out`.
    fn add_nested(
        &mut self,
        container: &dyn Container,
        left_out: &[String],
        search: Search,
        depth: usize,
    ) -> Result<()> {
        for name in container.nested()?.into_iter().filter(|name| !left_out.contains(name)) {
            container::check_name(&name)?;
            let inner = || {
                let prefix = format!("{}{name}/", self.prefix);
                Self::open(container.enter(&name)?, prefix, self.origin.join(&name), search, depth + 1)
            };
            match inner().context(Context::member(&name)) {
                Ok(inner) => self.nested.push((name, inner)),
                Err(error) if search.salvage && error.is_damage() => {
                    let table = format!("{}{name}", self.prefix);
                    self.damage.push(Damage::of_table(&table, &error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Fails if two members have one name.
    fn check_names(&self) -> Result<()> {
        let mut names: Vec<&String> = self.files.iter().map(|file| &file.name).collect();
        names.extend(self.nested.iter().map(|(name, _)| name));
        names.sort();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::format(format!("there are two files named {:?}", pair[0]))),
            None => Ok(()),
        }
    }

    /// Absolute paths; none if `table.dat` cannot be decoded, of which a warning tells.
    fn references(&self) -> Result<Vec<(Reference, PathBuf)>> {
        let Some(dat) = self.files.iter().find(|file| file.name == TABLE_DAT) else { return Ok(Vec::new()) };
        let Ok(dat) = TableDat::decode(&dat.open()?) else { return Ok(Vec::new()) };
        let located = |reference: Reference| {
            let path = elsewhere::target(reference.stored.as_bstr(), &self.origin)?;
            Ok((reference, path))
        };
        elsewhere::references(&dat).into_iter().map(located).collect()
    }

    /// For the root: takes tables that are needed into it; paths of the source and of each of them.
    fn follow(&mut self, search: Search) -> Result<Vec<PathBuf>> {
        let mut trees = vec![Tree { origin: self.origin.clone(), name: String::new() }];
        let taken: Vec<String> = self.nested.iter().map(|(name, _)| name.clone()).collect();
        let taken: Vec<String> = taken.into_iter().chain(self.files.iter().map(|file| file.name.clone())).collect();
        self.relocate(Path::new(""), &mut trees, &taken)?;
        let mut next = 1;
        while next < trees.len() {
            let Tree { origin, name } = trees[next].clone();
            let open = || Self::open(container::locate(&origin)?, format!("{name}/"), origin.clone(), search, 1);
            let mut folder = open().with_context(|| Context::path(&origin))?;
            folder.relocate(Path::new(&name), &mut trees, &taken)?;
            self.nested.push((name, folder));
            next += 1;
        }
        Ok(trees.into_iter().map(|tree| tree.origin).collect())
    }

    /// Names tables by their new places, once this folder is `place` of the set. Adds those that
    /// are not in the set yet to `trees`, with names that are not `taken`.
    fn relocate(&mut self, place: &Path, trees: &mut Vec<Tree>, taken: &[String]) -> Result<()> {
        let mut renamed = Vec::new();
        for (Reference { stored, is_subtable, .. }, path) in self.references()? {
            // names within the source lead to the same place below its copy
            let stays = elsewhere::is_in(&path, &trees[0].origin) && !stored.starts_with(b"/");
            if stays || is_subtable && !exists(&path) {
                continue;
            }
            let to = Tree::place(trees, &path, taken);
            renamed.push((stored, elsewhere::relative_name(&to, place)));
        }
        if !renamed.is_empty()
            && let Some(dat) = self.files.iter_mut().find(|file| file.name == TABLE_DAT)
        {
            let new = |stored: &BStr| renamed.iter().find(|(old, _)| old == stored).map(|(_, new)| new.clone());
            let bytes = elsewhere::rename(&read_all(&dat.open()?)?, &new).context(Context::path(&self.origin))?;
            (dat.len, dat.stored) = (bytes.len() as u64, Stored::Bytes(Arc::new(bytes)));
        }
        self.nested.iter_mut().try_for_each(|(name, inner)| inner.relocate(&place.join(name), trees, taken))
    }

    pub(super) fn is_table(&self) -> bool {
        self.files.iter().any(|file| file.name == TABLE_DAT)
    }

    fn announce(&self) -> Result<Announced> {
        let file = |file: &SetFile| {
            let properties = file.properties().context(Context::member(&file.name))?;
            Ok(AnnouncedFile { name: file.name.clone(), len: file.len, properties })
        };
        let nested =
            |(name, folder): &(String, Folder)| Ok((name.clone(), folder.announce().context(Context::member(name))?));
        Ok(Announced {
            properties: self.container.properties()?,
            files: self.files.iter().map(file).collect::<Result<_>>()?,
            nested: self.nested.iter().map(nested).collect::<Result<_>>()?,
        })
    }

    fn leave_out(&mut self, name: &str, error: &Error) {
        let damage = Damage::of_file(self.name(), name, error);
        self.damage.push(damage);
    }

    /// Also in all folders below.
    fn leave_out_damaged(&mut self, progress: &dyn Progress) -> Result<()> {
        for file in std::mem::take(&mut self.files) {
            match file.read_through(progress) {
                Ok(()) => self.files.push(file),
                Err(error) if error.is_damage() => self.leave_out(&file.name, &error),
                Err(error) => return Err(error),
            }
        }
        self.nested.iter_mut().try_for_each(|(_, inner)| inner.leave_out_damaged(progress))
    }

    fn warn(&mut self, name: &str, what: &str) {
        self.warnings.push(format!("{}{name}: {what}", self.prefix));
    }

    /// Warns of special entries; returns those to leave out, but for names that are not UTF-8.
    fn look_around(&mut self, path: Option<PathBuf>) -> Result<Vec<String>> {
        let Some(path) = path else { return Ok(Vec::new()) };
        let mut left_out = Vec::new();
        for (name, special) in special::find(&path)? {
            self.warn(&name.to_string_lossy(), special.describe());
            if special != Special::FollowedLink {
                left_out.extend(name.into_string());
            }
        }
        Ok(left_out)
    }

    /// Replaces the container of a table (`table.mf`) in the list of files by the files in it, and
    /// returns it; `None` without one, or if it is damaged and `salvage` is set.
    fn open_table(&mut self, container: &Arc<dyn Container>, salvage: bool) -> Result<Option<Arc<dyn Container>>> {
        let Some(dat) = self.files.iter().position(|file| file.name == TABLE_DAT) else { return Ok(None) };
        let file = self.files[dat].open()?;
        let decoded = match TableDat::decode(&file) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.warn(TABLE_DAT, &format!("{error}; the files are taken as they are"));
                return Ok(None);
            }
        };
        let Body::Plain(body) = decoded.body else { return Ok(None) };
        let set = body.1;
        self.packable = Some(packable(&set));
        self.managers = set.managers.iter().map(|manager| manager.sequence).collect();
        let Some(format) = container::FORMATS.of_option(set.storage.code()) else { return Ok(None) };
        let bytes = read_all(&file)?;
        let mut plain_dat = with_storage(&bytes, StorageOption::SepFile, None)?;
        let mut packed = match container::of_table(&**container, Some(format)) {
            Err(error) if salvage && error.is_damage() => {
                self.leave_out_container(format, &error);
                None
            }
            opened => opened?,
        };
        if let Some(opened) = &packed {
            match original_dat(&**opened, &bytes, &set) {
                Ok(original) => plain_dat = original.unwrap_or(plain_dat),
                // the packed table's own is as good, but for its bytes
                Err(error) if salvage && error.is_damage() => self.leave_out(ORIGINAL_DAT, &error),
                Err(error) => return Err(error),
            }
            match self.take_from(opened, format, &**container, salvage) {
                Err(error) if salvage && error.is_damage() => {
                    self.leave_out_container(format, &error);
                    packed = None;
                }
                taken => taken?,
            }
        }
        // one of the container, which took its place, may have been left out
        if let Some(dat) = self.files.iter_mut().find(|file| file.name == TABLE_DAT) {
            (dat.len, dat.stored) = (plain_dat.len() as u64, Stored::Bytes(Arc::new(plain_dat)));
        }
        Ok(packed)
    }

    /// Lists the files in the opened container `packed` in its place.
    fn take_from(
        &mut self,
        packed: &Arc<dyn Container>,
        format: &Format,
        directory: &dyn Container,
        salvage: bool,
    ) -> Result<()> {
        let Some(casacore) = format.casacore else { return Ok(()) };
        let mut container_files = (format.parts)(directory, casacore.file_name)?;
        container_files.push(casacore.file_name.to_owned());
        self.files.retain(|file| !container_files.contains(&file.name));
        for name in packed.names().context(casacore.file_name)? {
            container::check_name(&name).context(casacore.file_name)?;
            if name == ORIGINAL_DAT {
                continue;
            }
            if let Some(stale) = self.files.iter().position(|file| file.name == name) {
                // the one in the container is the one that is used
                self.files.remove(stale);
                self.warn(&name, "left out: there is one of this name in the container");
            }
            match SetFile::new(packed, name.clone()).context(casacore.file_name) {
                Ok(file) => self.files.push(file),
                Err(error) if salvage && error.is_damage() => self.leave_out(&name, &error),
                Err(error) => return Err(error),
            }
        }
        self.files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    fn leave_out_container(&mut self, format: &Format, error: &Error) {
        let Some(casacore) = format.casacore else { return };
        self.files.retain(|file| file.name != casacore.file_name);
        self.leave_out(casacore.file_name, error);
    }

    /// Whether casacore would put this file into the container of the table.
    pub(super) fn belongs_into_container(&self, name: &str) -> bool {
        let packable = |sequence| self.packable.as_ref().is_some_and(|list| list.contains(&sequence));
        stman::sequence_of(name).is_some_and(packable)
    }

    /// Whether files of at least one data manager can be in a container. `None` as for `packable`.
    pub(super) fn is_packable(&self) -> Option<bool> {
        self.packable.as_ref().map(|list| !list.is_empty())
    }

    /// `ANTENNA`, or `.` for the source.
    pub(super) fn name(&self) -> &str {
        self.prefix.strip_suffix('/').unwrap_or(".")
    }

    /// This folder and all below it, parents first.
    pub(super) fn all(&self) -> Vec<&Folder> {
        let mut all = vec![self];
        self.nested.iter().for_each(|(_, inner)| all.extend(inner.all()));
        all
    }
}

fn packable(set: &ColumnSet) -> Vec<u32> {
    let packable = set.managers.iter().filter(|manager| stman::packable(manager.type_name.as_ref()));
    packable.map(|manager| manager.sequence).collect()
}

/// The table.dat kept when the table was packed, unless the packed one was changed since then.
fn original_dat(packed: &dyn Container, bytes: &[u8], set: &ColumnSet) -> Result<Option<Vec<u8>>> {
    if !packed.names()?.iter().any(|name| name == ORIGINAL_DAT) {
        return Ok(None);
    }
    let original = read_all(&packed.open(ORIGINAL_DAT)?).context(Context::member(ORIGINAL_DAT))?;
    let again = with_storage(&original, set.storage, set.block_bytes);
    Ok(again.is_ok_and(|again| again == bytes).then_some(original))
}
