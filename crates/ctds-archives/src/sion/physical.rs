//! One physical file of a SION set: its metadata, and where the chunks of each task are. Tasks are
//! those of this file, counted from 0, as blocks are; a block has one chunk of each task. Offsets
//! are those in the file.

use std::sync::Arc;

use ctds::error::{Context, Error, Result, ResultExt};
use ctds::io::{ReadAt, read_array, read_bytes};
use ctds::value::ByteOrder;

use super::extents::Extents;
use super::header::Meta1;

const NUMBERS_AT_A_TIME: u64 = 1 << 17;

#[derive(Debug)]
pub(super) struct Physical {
    pub(super) file: Arc<dyn ReadAt>,
    pub(super) meta1: Meta1,
    order: ByteOrder,
    places: Places,
    /// Number of chunks of each task.
    counts: Vec<u32>,
    lens: Vec<u64>,
    written: Written,
    /// File and task in it of each logical task; without entries, tasks are numbered file by file.
    pub(super) mapping: Option<Vec<[i32; 2]>>,
    /// Byte count that META2 stores for chunks that are not used: 0 or -1.
    pub(super) unused: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) spaces: Vec<u64>,
    /// Offset of the first chunk of each task.
    pub(super) starts: Vec<u64>,
    /// Bytes from the start of a chunk to the next chunk of the same task.
    pub(super) skip: u64,
}

impl Places {
    /// `first` is the offset of the first chunk; `Format` if the offsets do not fit into any file.
    pub(super) fn new(meta1: &Meta1, first: u64) -> Result<Self> {
        let spaces = meta1.spaces()?;
        let mut next = first;
        let mut starts = Vec::with_capacity(spaces.len());
        for &space in &spaces {
            starts.push(next);
            let end = next.checked_add(space).filter(|&next| next <= i64::MAX as u64);
            next = end.ok_or_else(|| Error::format("the chunks of a block are longer than any file"))?;
        }
        Ok(Places { spaces, starts, skip: next - first })
    }

    /// Offset of a chunk; `None` if it is 2^64 or more.
    pub(super) fn chunk(&self, task: usize, block: u64) -> Option<u64> {
        block.checked_mul(self.skip)?.checked_add(self.starts[task])
    }

    /// The stream of `task`; `written` is the number of bytes in each of its chunks.
    pub(super) fn extents(&self, task: usize, written: impl IntoIterator<Item = u64>) -> Result<Extents> {
        let mut extents = Extents::default();
        for (block, written) in (0..).zip(written) {
            let position = self.chunk(task, block);
            extents.push(position.ok_or_else(|| Error::format(format!("chunk {block} is beyond any file")))?, written);
        }
        Ok(extents)
    }
}

/// Source of the number of bytes written to each chunk.
#[derive(Debug, Clone, Copy)]
enum Written {
    /// Offset of the list of these numbers in META2.
    Rows(u64),
    /// Without META2 all bytes of every chunk count as written, up to the offset `end`.
    Spaces { end: u64 },
}

impl Physical {
    /// `Format` if the writer did not close the file, or the metadata contradict it.
    pub(super) fn open(file: Arc<dyn ReadAt>) -> Result<Self> {
        let meta1 = Meta1::read(&*file)?;
        let end = file.len()?;
        if !meta1.is_closed() {
            let message = "the file was never closed: the position of META2, which has the lengths of all chunks, is 0";
            return Err(Error::format(message).context(Context::offset("META1", 0)));
        }
        if meta1.meta2 > end {
            let message =
                format!("META2 is expected at byte {}, but the file has {end} bytes: it is cut off", meta1.meta2);
            return Err(Error::format(message));
        }
        let mut opened = Self::new(file, meta1)?;
        opened.read_meta2(end).context(Context::offset("META2", opened.meta1.meta2))?;
        Ok(opened)
    }

    /// Without META2 every chunk within the file counts as written, with all its space.
    pub(super) fn salvage(file: Arc<dyn ReadAt>) -> Result<Self> {
        let meta1 = Meta1::read(&*file)?;
        let end = file.len()?;
        let end = if meta1.is_closed() { end.min(meta1.meta2) } else { end };
        let mut opened = Self::new(file, meta1)?;
        for task in 0..opened.tasks() {
            let (start, space) = (opened.places.starts[task], opened.places.spaces[task]);
            if space == 0 || start >= end {
                continue;
            }
            // not 0: this task has some space
            let skip = opened.places.skip;
            let count = (end - start).div_ceil(skip);
            let last = start + (count - 1) * skip;
            opened.counts[task] = u32::try_from(count)
                .map_err(|_| Error::format(format!("task {task} has {count} chunks, expected fewer than 2^32")))?;
            opened.lens[task] = (count - 1) * space + space.min(end - last);
        }
        opened.written = Written::Spaces { end };
        Ok(opened)
    }

    /// The file by META1 alone: its streams are empty so far.
    fn new(file: Arc<dyn ReadAt>, meta1: Meta1) -> Result<Self> {
        let skip = Places::new(&meta1, 0)?.skip;
        // some builds of the library reserve more for META1; then only META2 tells where the first
        // chunk is
        let told = skip.checked_mul(meta1.blocks.into()).and_then(|bytes| meta1.meta2.checked_sub(bytes));
        let told = if meta1.is_closed() && meta1.blocks > 0 { Some(told) } else { None };
        let first = told.unwrap_or_else(|| Some(meta1.nominal_start())).filter(|&first| first >= meta1.len());
        let first = first.ok_or_else(|| {
            let message = format!(
                "{} blocks of {skip} bytes after META1 do not end at byte {}, where META2 is expected",
                meta1.blocks, meta1.meta2
            );
            Error::format(message)
        })?;
        let tasks = meta1.ranks.len();
        Ok(Physical {
            order: meta1.order()?,
            file,
            places: Places::new(&meta1, first)?,
            meta1,
            counts: vec![0; tasks],
            lens: vec![0; tasks],
            written: Written::Spaces { end: 0 },
            mapping: None,
            unused: 0,
        })
    }

    fn read_meta2(&mut self, end: u64) -> Result<()> {
        let (tasks, blocks) = (self.tasks() as u64, u64::from(self.meta1.blocks));
        let numbers = (blocks + 1).checked_mul(tasks).filter(|&numbers| numbers <= (end - self.meta1.meta2) / 8);
        let Some(numbers) = numbers else {
            let message =
                format!("{tasks} tasks with {blocks} chunks each do not fit into the {end} bytes of the file");
            return Err(Error::format(message));
        };
        let rows = self.meta1.meta2 + 8 * tasks;
        self.written = Written::Rows(rows);
        let mut done = 0;
        while done < numbers {
            let count = NUMBERS_AT_A_TIME.min(numbers - done);
            let bytes = read_bytes(&*self.file, self.meta1.meta2 + 8 * done, 8 * count)?;
            for (at, number) in bytes.as_chunks().0.iter().enumerate() {
                let (at, number) = (done + at as u64, self.order.u64(*number) as i64);
                let task = (at % tasks) as usize;
                match (at / tasks).checked_sub(1) {
                    None => self.set_count(task, number)?,
                    Some(block) => self.add_chunk(task, block, number)?,
                }
            }
            done += count;
        }
        self.mapping = self.read_mapping(rows + 8 * tasks * blocks, end)?;
        Ok(())
    }

    fn set_count(&mut self, task: usize, count: i64) -> Result<()> {
        let count = u32::try_from(count).ok().filter(|&count| count <= self.meta1.blocks);
        self.counts[task] = count.ok_or_else(|| {
            Error::format(format!("task {task} has another number of chunks than 0 to {}", self.meta1.blocks))
        })?;
        Ok(())
    }

    fn add_chunk(&mut self, task: usize, block: u64, written: i64) -> Result<()> {
        if block >= self.counts[task].into() {
            self.unused = written;
            return Ok(());
        }
        let space = self.places.spaces[task];
        let written = match written {
            -1 => 0,
            _ => u64::try_from(written).ok().filter(|&written| written <= space).ok_or_else(|| {
                let message = format!("chunk {block} of task {task} holds {written} bytes, its space is {space}");
                Error::format(message)
            })?,
        };
        // the chunk ends before META2: `new` has found the first one by that. The sum is at most
        // the length of the file.
        self.lens[task] += written;
        Ok(())
    }

    /// `None` if the file ends before the mapping, as single files written by parallel programs do.
    fn read_mapping(&self, position: u64, end: u64) -> Result<Option<Vec<[i32; 2]>>> {
        if end - position < 4 {
            return Ok(None);
        }
        let count = self.order.u32(read_array(&*self.file, position)?);
        if u64::from(count) > (end - position - 4) / 8 {
            let message = format!("a mapping of {count} tasks, which the {end} bytes of the file cannot hold");
            return Err(Error::format(message).context(Context::offset("mapping", position)));
        }
        let bytes = read_bytes(&*self.file, position + 4, u64::from(count) * 8)?;
        let number = |bytes: &[u8; 4]| self.order.u32(*bytes) as i32;
        let pairs = bytes.as_chunks::<4>().0.as_chunks::<2>().0;
        Ok(Some(pairs.iter().map(|[file, task]| [number(file), number(task)]).collect()))
    }

    pub(super) fn tasks(&self) -> usize {
        self.places.starts.len()
    }

    /// Offset of the first chunk of all.
    pub(super) fn first(&self) -> u64 {
        self.places.starts.first().copied().unwrap_or(0)
    }

    pub(super) fn stream_bytes(&self, task: usize) -> u64 {
        self.lens[task]
    }

    pub(super) fn space(&self, task: usize) -> u64 {
        self.places.spaces[task]
    }

    pub(super) fn chunks(&self, task: usize) -> u32 {
        self.counts[task]
    }

    pub(super) fn written(&self, task: usize) -> Result<Vec<u64>> {
        let tasks = self.tasks() as u64;
        (0..u64::from(self.counts[task]))
            .map(|block| match self.written {
                Written::Rows(rows) => {
                    let number =
                        self.order.u64(read_array(&*self.file, rows + 8 * (block * tasks + task as u64))?) as i64;
                    Ok(u64::try_from(number).unwrap_or(0))
                }
                Written::Spaces { end } => {
                    let position = self.places.chunk(task, block).unwrap_or(end);
                    Ok(self.places.spaces[task].min(end.saturating_sub(position)))
                }
            })
            .collect()
    }

    pub(super) fn extents(&self, task: usize) -> Result<Extents> {
        self.places.extents(task, self.written(task)?)
    }
}
