//! Writes a SION set serially: each virtual file becomes the stream of one task. The lengths of all
//! streams are known before the first byte is written.
//!
//! Streams that came from a SION set, with its properties, are laid out as in that set: the new
//! files equal the old ones, except for bytes that belong to no stream. Otherwise each stream is
//! one chunk, its space rounded up to whole blocks.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctds::container::{Announced, AnnouncedFile, Container, ContainerInfo, ContainerMut, FormatOptions, Properties};
use ctds::error::{Context, Error, Result, ResultExt};
use ctds::io::{FileTarget, ReadAt, WriteAt};

use super::extents::{Extents, StreamMut};
use super::header::Meta1;
use super::names::Folder;
use super::physical::Places;
use super::set::member_name;

/// SIONlib 1.7, as 1000 times the major number plus the minor one, and patch 6.
const VERSION: (i32, i32) = (1007, 6);

const FILE_FORMAT: i32 = 5;

/// First flag word: its upper half is the key-value mode 50, streams without key-value records.
const NO_KEYS: i64 = 50 << 32;

/// Metadata and layout of a physical file that is going to be written.
struct FilePlan {
    meta1: Meta1,
    places: Places,
    /// Bytes in each chunk: a list for each task.
    written: Vec<Vec<u64>>,
    unused: i64,
    mapping: Option<Vec<[i32; 2]>>,
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    file: Arc<FileTarget>,
    meta1: Vec<u8>,
    /// Offset in the file, and encoded bytes.
    meta2: (u64, Vec<u8>),
}

/// Shared by the container and its nested ones.
#[derive(Debug)]
struct Shared {
    files: Vec<OpenFile>,
    /// Stream of each virtual file, by path: index in `files`, and its extents in that file.
    streams: HashMap<String, (usize, Extents)>,
    folders: BTreeSet<String>,
    info: ContainerInfo,
}

/// A set that is open for writing, or a folder nested in it.
#[derive(Debug)]
pub(super) struct SionMut {
    shared: Arc<Shared>,
    /// Path of the nested folder, with a `/` at its end; empty for the outermost.
    prefix: String,
}

impl SionMut {
    pub(super) fn create(path: &Path, files: &Announced, options: &FormatOptions) -> Result<Self> {
        if options.checksums || options.compression.is_some() || options.appendable {
            return Err(Error::usage("a SION file has neither checksums nor compression"));
        }
        let index = Folder::index(files)?;
        let mut announced = Vec::new();
        let mut folders = BTreeSet::new();
        collect(files, "", &mut announced, &mut folders);
        let stored = if index.is_none() { stored_plans(&files.properties, &announced) } else { None };
        let is_stored = stored.is_some();
        let plans = match stored {
            Some(plans) => plans,
            None => vec![new_plan(path, index.as_deref(), &announced, options.block_bytes)?],
        };
        let first_task = usize::from(index.is_some());
        let mut streams = HashMap::new();
        for (task, (path, file)) in announced.into_iter().enumerate() {
            let place = if is_stored { stored_place(file) } else { None };
            let (number, local) = place.unwrap_or((0, first_task + task));
            let plan = &plans[number];
            streams.insert(path, (number, plan.places.extents(local, plan.written[local].iter().copied())?));
        }
        let mut open = Vec::new();
        for (number, plan) in (0..).zip(&plans) {
            let path = if number == 0 { path.to_owned() } else { member_path(path, number)? };
            open.push(plan.create(path)?);
        }
        if let Some(index) = index {
            let extents = plans[0].places.extents(0, [index.len() as u64])?;
            StreamMut { file: open[0].file.clone(), extents }.write_at(0, &index)?;
        }
        let info = ContainerInfo {
            format: super::FORMAT.name,
            version: Some(plans[0].meta1.file_format as u32),
            block_bytes: Some(plans[0].meta1.block_bytes as u64),
            ..ContainerInfo::default()
        };
        Ok(SionMut { shared: Arc::new(Shared { files: open, streams, folders, info }), prefix: String::new() })
    }

    fn stream(&self, name: &str) -> Result<Arc<StreamMut>> {
        let found = self.shared.streams.get(&format!("{}{name}", self.prefix));
        let (number, extents) =
            found.ok_or_else(|| Error::not_found("the file was not announced").context(Context::member(name)))?;
        Ok(Arc::new(StreamMut { file: self.shared.files[*number].file.clone(), extents: extents.clone() }))
    }
}

/// Lists the files in the order of their tasks.
fn collect<'a>(
    files: &'a Announced,
    prefix: &str,
    out: &mut Vec<(String, &'a AnnouncedFile)>,
    folders: &mut BTreeSet<String>,
) {
    out.extend(files.files.iter().map(|file| (format!("{prefix}{}", file.name), file)));
    for (name, inner) in &files.nested {
        let path = format!("{prefix}{name}/");
        collect(inner, &path, out, folders);
        folders.insert(path);
    }
}

fn member_path(path: &Path, number: u32) -> Result<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Error::unsupported("the file's name is not UTF-8"))?;
    Ok(path.with_file_name(member_name(name, number)))
}

/// One chunk for each stream, and one for an index of names.
fn new_plan(
    path: &Path,
    index: Option<&[u8]>,
    announced: &[(String, &AnnouncedFile)],
    block_bytes: u64,
) -> Result<FilePlan> {
    let own = index.map(|index| (index.len() as u64, 0));
    let rank_of = |(task, file): (usize, &AnnouncedFile)| {
        (file.len, file.properties.int("sion_globalrank").unwrap_or((task + usize::from(index.is_some())) as i64))
    };
    let of_files = announced.iter().map(|(_, file)| *file).enumerate().map(rank_of);
    let (lens, ranks): (Vec<u64>, Vec<i64>) = own.into_iter().chain(of_files).unzip();
    if lens.is_empty() || i32::try_from(lens.len()).is_err() {
        return Err(Error::unsupported(format!("a SION file has 1 to {} streams, not {}", i32::MAX, lens.len())));
    }
    let block_bytes = i32::try_from(block_bytes).ok().filter(|&bytes| bytes > 0);
    let block_bytes =
        block_bytes.ok_or_else(|| Error::usage(format!("blocks of a SION file have 1 to {} bytes", i32::MAX)))?;
    let round_up =
        |len: u64| len.checked_next_multiple_of(block_bytes as u64).filter(|&space| space <= i64::MAX as u64);
    let chunk_bytes = lens.iter().map(|&len| round_up(len)).collect::<Option<Vec<_>>>();
    let mut prefix = path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
    prefix.truncate(1023);
    let mut meta1 = Meta1 {
        endianness: [0; 4],
        version: VERSION.0,
        patch: VERSION.1,
        file_format: FILE_FORMAT,
        block_bytes,
        files: 1,
        file_number: 1,
        flag1: NO_KEYS,
        flag2: 0,
        prefix,
        ranks,
        chunk_bytes: chunk_bytes.ok_or_else(|| Error::usage("a stream is longer than any file"))?,
        blocks: 1,
        meta2: 0,
    };
    let first = meta1.nominal_start();
    let places = Places::new(&meta1, first)?;
    meta1.meta2 = first + places.skip;
    Ok(FilePlan {
        meta1,
        places,
        written: lens.iter().map(|&len| vec![len]).collect(),
        unused: 0,
        mapping: Some(Vec::new()),
    })
}

/// Physical file, and task in it, in the original set; `None` if the properties do not tell.
fn stored_place(file: &AnnouncedFile) -> Option<(usize, usize)> {
    let number = |name| file.properties.int(name).and_then(|value| usize::try_from(value).ok());
    Some((number("sion_file")?, number("sion_local_task")?))
}

/// `None` if the properties are incomplete or do not fit the streams.
fn stored_plans(properties: &Properties, announced: &[(String, &AnnouncedFile)]) -> Option<Vec<FilePlan>> {
    let set = StoredSet::new(properties)?;
    let plans = (0..set.files).map(|number| set.plan(number, announced));
    let mut plans: Vec<FilePlan> = plans.collect::<Option<_>>()?;
    let mut seen = BTreeSet::new();
    for (_, file) in announced {
        let (number, local) = stored_place(file)?;
        if !seen.insert((number, local)) {
            return None;
        }
        plans.get_mut(number)?.add_stream(local, file)?;
    }
    plans.iter_mut().try_for_each(FilePlan::finish)?;
    (seen.len() == plans.iter().map(|plan| plan.written.len()).sum::<usize>()).then_some(plans)
}

/// Properties of the original set: lists with an entry for each physical file.
struct StoredSet<'a> {
    properties: &'a Properties,
    files: usize,
    prefixes: Vec<&'a str>,
    /// Four for each file.
    order: &'a [i64],
}

impl<'a> StoredSet<'a> {
    fn new(properties: &'a Properties) -> Option<Self> {
        let files = properties.ints("sion_file_format")?.len();
        let prefixes = properties.text("sion_prefix")?.split('\n').collect();
        let order = properties.ints("sion_byte_order").filter(|bytes| bytes.len() == 4 * files)?;
        Some(StoredSet { properties, files, prefixes, order })
    }

    fn value(&self, name: &str, number: usize) -> Option<i64> {
        self.properties.ints(name).filter(|list| list.len() == self.files).map(|list| list[number])
    }

    /// The plan of a physical file, without its streams.
    fn plan(&self, number: usize, announced: &[(String, &AnnouncedFile)]) -> Option<FilePlan> {
        let value = |name: &str| self.value(name, number);
        let int = |name: &str| i32::try_from(value(name)?).ok();
        let tasks = usize::try_from(int("sion_tasks")?).ok().filter(|&tasks| (1..=announced.len()).contains(&tasks))?;
        let endianness: Vec<u8> = self.order[4 * number..][..4].iter().map(|&byte| byte as u8).collect();
        let meta1 = Meta1 {
            endianness: endianness.try_into().ok()?,
            version: int("sion_version")?,
            patch: int("sion_patch")?,
            file_format: int("sion_file_format").filter(|format| (2..=5).contains(format))?,
            block_bytes: int("sion_block_bytes").filter(|&bytes| bytes > 0)?,
            files: int("sion_files").filter(|&files| files > 0)?,
            file_number: int("sion_file_number")?,
            flag1: value("sion_flag1")?,
            flag2: value("sion_flag2")?,
            prefix: self.prefixes.get(number).filter(|prefix| prefix.len() <= 1024)?.as_bytes().to_vec(),
            ranks: vec![0; tasks],
            chunk_bytes: vec![0; tasks],
            blocks: int("sion_blocks").and_then(|blocks| u32::try_from(blocks).ok())?,
            meta2: 0,
        };
        let first = u64::try_from(value("sion_first_chunk")?).ok().filter(|&first| first >= meta1.len())?;
        // `finish` adds the spaces and starts of the tasks
        let places = Places { spaces: Vec::new(), starts: vec![first], skip: 0 };
        let mapping = match value("sion_mapping")? {
            -1 => None,
            0 => Some(Vec::new()),
            count if number == 0 && count == announced.len() as i64 => {
                let places = announced.iter().map(|(_, file)| stored_place(file));
                Some(places.map(|place| place.map(|(file, task)| [file as i32, task as i32])).collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(FilePlan { meta1, places, written: vec![Vec::new(); tasks], unused: value("sion_unused")?, mapping })
    }
}

impl FilePlan {
    /// `None` if the original chunks are not known, or do not have the length of the stream.
    fn add_stream(&mut self, local: usize, file: &AnnouncedFile) -> Option<()> {
        let written = file.properties.ints("sion_written_bytes")?;
        let written: Vec<u64> = written.iter().map(|&bytes| u64::try_from(bytes).ok()).collect::<Option<_>>()?;
        let len = written.iter().try_fold(0u64, |sum, &bytes| sum.checked_add(bytes));
        if written.len() as u64 > self.meta1.blocks.into() || len != Some(file.len) {
            return None;
        }
        let chunk_bytes = u64::try_from(file.properties.int("sion_chunk_bytes")?).ok()?;
        *self.written.get_mut(local)? = written;
        self.meta1.ranks[local] = file.properties.int("sion_globalrank")?;
        self.meta1.chunk_bytes[local] = chunk_bytes;
        Some(())
    }

    /// Places the chunks of all streams; `None` if some do not fit their space.
    fn finish(&mut self) -> Option<()> {
        self.places = Places::new(&self.meta1, self.places.starts[0]).ok()?;
        self.meta1.meta2 = self.places.chunk(0, self.meta1.blocks.into())?;
        let most = self.written.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let fits = |(space, written): (&u64, &Vec<u64>)| written.iter().all(|bytes| bytes <= space);
        (self.meta1.blocks as usize <= most && self.places.spaces.iter().zip(&self.written).all(fits)).then_some(())
    }

    /// Creates the file and reserves space for it; the metadata is written at the commit.
    fn create(&self, path: PathBuf) -> Result<OpenFile> {
        let file = Arc::new(FileTarget::create(&path)?);
        let meta2 = (self.meta1.meta2, self.meta2()?);
        // a file that is mostly holes stays sparse
        let bytes: u64 = self.written.iter().flatten().sum();
        if bytes >= meta2.0 / 2 {
            file.reserve(meta2.0.saturating_add(meta2.1.len() as u64)).context(Context::path(&path))?;
        }
        Ok(OpenFile { path, file, meta1: self.meta1.encode()?, meta2 })
    }

    fn meta2(&self) -> Result<Vec<u8>> {
        let order = self.meta1.order()?;
        let mut out = Vec::new();
        self.written.iter().for_each(|written| out.extend(order.u64_bytes(written.len() as u64)));
        for block in 0..self.meta1.blocks as usize {
            for written in &self.written {
                out.extend(order.u64_bytes(written.get(block).copied().unwrap_or(self.unused as u64)));
            }
        }
        if let Some(mapping) = &self.mapping {
            out.extend(order.u32_bytes(mapping.len() as u32));
            mapping.iter().flatten().for_each(|&number| out.extend(order.u32_bytes(number as u32)));
        }
        Ok(out)
    }
}

impl Container for SionMut {
    fn names(&self) -> Result<Vec<String>> {
        let own = |path: &&String| path.strip_prefix(&self.prefix).is_some_and(|rest| !rest.contains('/'));
        let mut names: Vec<_> =
            self.shared.streams.keys().filter(own).map(|path| path[self.prefix.len()..].to_owned()).collect();
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(self.stream(name)?)
    }

    fn describe(&self) -> ContainerInfo {
        self.shared.info.clone()
    }
}

impl ContainerMut for SionMut {
    fn create(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        Ok(self.stream(name)?)
    }

    fn edit(&self, name: &str) -> Result<Arc<dyn WriteAt>> {
        Ok(self.stream(name)?)
    }

    fn remove(&self, name: &str) -> Result<()> {
        Err(Error::unsupported("a SION file is written as a whole").context(Context::member(name)))
    }

    fn create_nested(&self, name: &str) -> Result<Arc<dyn ContainerMut>> {
        let prefix = format!("{}{name}/", self.prefix);
        if !self.shared.folders.contains(&prefix) {
            return Err(Error::not_found("this container was not announced").context(Context::member(name)));
        }
        Ok(Arc::new(SionMut { shared: self.shared.clone(), prefix }))
    }

    /// Writes META2 and then META1, without which the file is not a SION file; does nothing for a
    /// nested container.
    fn commit(&self) -> Result<()> {
        if !self.prefix.is_empty() {
            return Ok(());
        }
        for OpenFile { path, file, meta1, meta2: (position, meta2) } in &self.shared.files {
            let write = || {
                file.write_at(*position, meta2)?;
                file.write_at(0, meta1)
            };
            write().context(Context::path(path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use ctds::error::ErrorKind;

    #[test]
    fn the_other_files_of_a_set_have_names_in_utf_8() {
        let error = member_path(Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff")), 1).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Unsupported, "the file's name is not UTF-8")
        );
        assert_eq!(member_path(Path::new("/tmp/a"), 1).unwrap(), Path::new("/tmp/a.000001"));
    }
}
