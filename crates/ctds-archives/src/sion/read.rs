//! Reading a SION set as a container: the virtual files are the streams of all tasks or, with an
//! index of names in task 0, the files in one folder of the index.

use std::sync::{Arc, OnceLock};

use ctds::container::{Container, ContainerInfo, FileLayout, Properties, Property};
use ctds::error::{Context, Error, Result, ResultExt};
use ctds::io::{Raw, ReadAt};

use super::extents::{Extents, Stream};
use super::header::{Meta1, is_data_big};
use super::keys::{self, Keys};
use super::names::{Folder, task_name, task_of};
use super::set::Set;

const INLINE_KEYS: i64 = 51;

#[derive(Debug)]
pub(super) struct Sion {
    set: Arc<Set>,
    /// `None` without an index of names.
    folder: Option<Arc<Folder>>,
}

impl Sion {
    pub(super) fn new(set: Set) -> Result<Self> {
        let set = Arc::new(set);
        let first = TaskStream::new(set.clone(), 0);
        let folder = Folder::read(&first, set.tasks.len()).context(Context::member(task_name(0)))?;
        Ok(Sion { set, folder: folder.map(Arc::new) })
    }

    fn task(&self, name: &str) -> Result<usize> {
        let task = match &self.folder {
            Some(folder) => folder.files.get(name).copied(),
            None => task_of(name).filter(|&task| task < self.set.tasks.len()),
        };
        task.ok_or_else(|| Error::not_found("the file does not exist").context(Context::member(name)))
    }

    fn meta1s(&self) -> impl Iterator<Item = &Meta1> {
        self.set.files.iter().map(|file| &file.meta1)
    }
}

impl Container for Sion {
    fn names(&self) -> Result<Vec<String>> {
        Ok(match &self.folder {
            Some(folder) => folder.files.keys().cloned().collect(),
            None => (0..self.set.tasks.len()).map(task_name).collect(),
        })
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(TaskStream::new(self.set.clone(), self.task(name)?)))
    }

    fn nested(&self) -> Result<Vec<String>> {
        Ok(self.folder.as_ref().map_or(Vec::new(), |folder| folder.nested.keys().cloned().collect()))
    }

    fn enter(&self, name: &str) -> Result<Arc<dyn Container>> {
        if let Some(inner) = self.folder.as_ref().and_then(|folder| folder.nested.get(name)) {
            return Ok(Arc::new(Sion { set: self.set.clone(), folder: Some(inner.clone()) }));
        }
        if let Some(task) = keys::stream_of(name).and_then(|stream| self.task(stream).ok()) {
            let meta1 = &self.set.task(task).0.meta1;
            if meta1.key_value_mode() == INLINE_KEYS {
                let stream = Arc::new(TaskStream::new(self.set.clone(), task));
                return Ok(Arc::new(Keys::read(stream, meta1.order()?).context(Context::member(name))?));
            }
        }
        Err(Error::not_found("the container does not exist").context(Context::member(name)))
    }

    fn describe(&self) -> ContainerInfo {
        let first = self.set.files.first().map(|file| &file.meta1);
        ContainerInfo {
            format: super::FORMAT.name,
            version: first.map(|meta1| meta1.file_format as u32),
            block_bytes: first.map(|meta1| meta1.block_bytes as u64),
            ..ContainerInfo::default()
        }
    }

    fn layout(&self, name: &str) -> Result<FileLayout> {
        let (file, local) = self.set.task(self.task(name)?);
        let (space, chunks) = (file.space(local), u64::from(file.chunks(local)));
        Ok(FileLayout {
            stored_bytes: space.saturating_mul(chunks),
            block_bytes: Some(space),
            blocks: chunks,
            ..FileLayout::default()
        })
    }

    /// The fields of META1 and META2; lists are in the order of the physical files.
    fn properties(&self) -> Result<Properties> {
        let each = |value: fn(&Meta1) -> i64| Property::Ints(self.meta1s().map(value).collect());
        let mut found = Properties::default();
        found.push(
            "sion_byte_order",
            Property::Ints(self.meta1s().flat_map(|meta1| meta1.endianness.map(i64::from)).collect()),
        );
        let is_big = self.meta1s().next().is_some_and(|meta1| is_data_big(meta1.endianness));
        found.push("sion_data_byte_order", Property::Text(if is_big { "big" } else { "little" }.to_owned()));
        found.push("sion_version", each(|meta1| meta1.version.into()));
        found.push("sion_patch", each(|meta1| meta1.patch.into()));
        found.push("sion_file_format", each(|meta1| meta1.file_format.into()));
        found.push("sion_block_bytes", each(|meta1| meta1.block_bytes.into()));
        found.push("sion_tasks", each(|meta1| meta1.ranks.len() as i64));
        found.push("sion_files", each(|meta1| meta1.files.into()));
        found.push("sion_file_number", each(|meta1| meta1.file_number.into()));
        found.push("sion_flag1", each(|meta1| meta1.flag1));
        found.push("sion_flag2", each(|meta1| meta1.flag2));
        found.push("sion_blocks", each(|meta1| meta1.blocks.into()));
        found.push("sion_first_chunk", Property::Ints(self.set.files.iter().map(|file| file.first() as i64).collect()));
        found.push("sion_unused", Property::Ints(self.set.files.iter().map(|file| file.unused).collect()));
        let mapping = |of: fn(&Vec<[i32; 2]>) -> i64| {
            Property::Ints(self.set.files.iter().map(|file| file.mapping.as_ref().map_or(-1, of)).collect())
        };
        found.push("sion_mapping", mapping(|stored| stored.len() as i64));
        let prefixes: Vec<_> = self.meta1s().map(|meta1| String::from_utf8_lossy(&meta1.prefix).into_owned()).collect();
        found.push("sion_prefix", Property::Text(prefixes.join("\n")));
        Ok(found)
    }

    fn file_properties(&self, name: &str) -> Result<Properties> {
        let task = self.task(name)?;
        let ((file, local), number) = (self.set.task(task), self.set.tasks[task].0);
        let mut found = Properties::default();
        found.push("sion_task", Property::Int(task as i64));
        found.push("sion_file", Property::Int(number.into()));
        found.push("sion_local_task", Property::Int(local as i64));
        found.push("sion_globalrank", Property::Int(file.meta1.ranks[local]));
        found.push("sion_chunk_bytes", Property::Int(file.meta1.chunk_bytes[local] as i64));
        let written = file.written(local)?.into_iter().map(|bytes| bytes as i64).collect();
        found.push("sion_written_bytes", Property::Ints(written));
        Ok(found)
    }

    /// Always false: SION files have no checksums.
    fn check(&self) -> Result<bool> {
        Ok(false)
    }
}

/// The lengths of its chunks are read on the first access to its bytes.
#[derive(Debug)]
struct TaskStream {
    set: Arc<Set>,
    task: usize,
    stream: OnceLock<Stream>,
}

impl TaskStream {
    fn new(set: Arc<Set>, task: usize) -> Self {
        TaskStream { set, task, stream: OnceLock::new() }
    }

    fn stream(&self) -> Result<&Stream> {
        if let Some(stream) = self.stream.get() {
            return Ok(stream);
        }
        let (file, local) = self.set.task(self.task);
        let extents: Extents = file.extents(local)?;
        Ok(self.stream.get_or_init(|| Stream { file: file.file.clone(), extents }))
    }
}

impl ReadAt for TaskStream {
    fn len(&self) -> Result<u64> {
        let (file, local) = self.set.task(self.task);
        Ok(file.stream_bytes(local))
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.stream()?.read_at(offset, out)
    }

    fn raw(&self, offset: u64) -> Option<Raw<'_>> {
        self.stream().ok()?.raw(offset)
    }
}
