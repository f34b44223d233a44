//! Live files: HDF5 files to which one process appends rows while others read them (SWMR: single
//! writer, multiple readers).
//!
//! libhdf5 does not refuse to create, delete or attach in such a file, though its readers would
//! stumble. So a file that goes live is closed and opened again as a [`LiveFile`], and the datasets
//! of that can be appended to and nothing else.
//!
//! Elements go straight to their place in the file: chunks are unfiltered and not cached, so that
//! what a partly filled chunk costs is the bytes that are written. Chunks are found through an
//! Extensible Array. Once libhdf5 has given a chunk its place, rows are written there without it,
//! and counted up in the header of the dataset ([`RowCount`]) when the file is flushed. libhdf5 is
//! told of them before it is asked for anything that depends on them. Readers in the process of the
//! writer do not share its libhdf5 memory, which does not know of these rows: see
//! [`LiveFile::open`].

use std::cell::{Cell, RefCell};
use std::fmt;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::row_count::RowCount;
use super::{Dataset, Group, Reach, Steps, file, library};
use crate::clock::Clock;
use crate::error::{Context, Error, Result, ResultExt};
use crate::value::{DataType, Shape};

/// Alignment of blocks of at least [`LARGE_METADATA`] bytes while the file is created, of 8 bytes
/// or more once it is live: a killed process may leave a write unfinished where memory pages meet,
/// and each header and counter, rewritten in each commit, therefore lies within one page.
pub(super) const ALIGNMENT: u64 = 512;
pub(super) const LARGE_METADATA: u64 = 200;

#[derive(Debug, Clone, Copy)]
pub(crate) struct LiveSpec<'a> {
    pub(crate) element: Element,
    pub(crate) cell: &'a Shape,
    pub(crate) chunk_rows: u64,
}

/// All elements have the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    Number(DataType),
    /// UTF-8 of this number of bytes, padded with NUL.
    String(usize),
    /// Unsigned 64 bits, e.g. the committed rows.
    Counter,
}

impl Element {
    pub(crate) fn size(self) -> usize {
        match self {
            Element::Number(data_type) => data_type.size(),
            Element::String(bytes) => bytes,
            Element::Counter => 8,
        }
    }
}

#[derive(Debug)]
pub(crate) struct LiveFile {
    /// `None` only after `close` or `drop`.
    file: Option<library::File>,
    shared: Arc<Shared>,
    path: PathBuf,
    /// Measures how fast rows arrive and how long searches for a chunk's address take.
    clock: Clock,
}

/// Shared by a live file and its open datasets.
#[derive(Debug)]
struct Shared {
    /// Writes and counts rows without libhdf5, in chunks for which that has allocated space.
    descriptor: fs::File,
    /// Flushes of all changes by libhdf5.
    flushes: AtomicU64,
    /// `flushes` when libhdf5 last changed a dataset, plus 1; 0 before.
    changed: AtomicU64,
}

impl LiveFile {
    /// A reader in this process reads the bytes of the file, as those in other processes do.
    /// `Locked` if another program has it open otherwise, or its writer did not close it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = file::open(path, || library::File::append_live(path))?;
        let descriptor = file.descriptor().with_context(|| Context::path(path))?;
        let shared = Shared { descriptor, flushes: AtomicU64::new(0), changed: AtomicU64::new(0) };
        Ok(LiveFile { file: Some(file), shared: Arc::new(shared), path: path.to_owned(), clock: Clock::default() })
    }

    /// Sets the clock of datasets that are opened later, for tests.
    #[cfg(test)]
    pub(crate) fn set_clock(&mut self, clock: &Clock) {
        self.clock = clock.clone();
    }

    /// Later messages name `path`.
    pub(crate) fn renamed(&mut self, path: &Path) {
        path.clone_into(&mut self.path);
    }

    /// `path` is relative to the root.
    pub(crate) fn dataset(&self, path: &str) -> Result<LiveDataset> {
        let file = self.file.as_ref().expect("taken only when the file goes");
        let root = Group::new(file.root().context(Context::path(&self.path))?, String::new(), Reach::File);
        LiveDataset::new(root.dataset(path)?, self.shared.clone(), self.clock.clone())
    }

    /// Hands changes in libhdf5's memory to the operating system: readers see no row before its
    /// elements. [`LiveDataset::flush`] counts rows that were written without libhdf5.
    pub(crate) fn flush(&self) -> Result<()> {
        let flushes = self.shared.flushes.load(Ordering::Relaxed);
        if self.shared.changed.load(Ordering::Relaxed) <= flushes {
            return Ok(());
        }
        let file = self.file.as_ref().expect("taken only when the file goes");
        file.flush().with_context(|| Context::path(&self.path))?;
        self.shared.flushes.store(flushes + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Every [`LiveDataset`] must be dropped first; on failure the file stays marked as written.
    pub(crate) fn close(mut self) -> Result<()> {
        self.end().with_context(|| Context::path(&self.path))
    }

    fn end(&mut self) -> Result<()> {
        self.file.take().map_or(Ok(()), |file| file.close(true))
    }
}

impl Drop for LiveFile {
    /// [`close`](LiveFile::close) also reports errors.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

pub(crate) struct LiveDataset {
    dataset: Dataset,
    /// `None` for a counter, which casacore lacks.
    element: Option<DataType>,
    /// Slowest axis first.
    cell: Vec<u64>,
    row_bytes: usize,
    chunk_rows: u64,
    rows: Cell<u64>,
    /// Rows that libhdf5 knows of.
    known: Cell<u64>,
    /// `None` if libhdf5 has changed it since it was read.
    header: RefCell<Option<RowCount>>,
    /// Byte of the header; `None` if only libhdf5 can change it.
    address: Cell<Option<u64>>,
    /// The last chunk whose address was found.
    chunk: Cell<Option<PlacedChunk>>,
    /// The file's flushes when libhdf5 last changed this dataset; `None` without changes in memory.
    changed: Cell<Option<u64>>,
    /// When libhdf5 last wrote up to the end of the dataset, and the rows then.
    written: Cell<Option<(Instant, u64)>>,
    /// Time of the last search for a chunk's address.
    search: Cell<Duration>,
    file: Arc<Shared>,
    clock: Clock,
}

/// libhdf5 finds a chunk by walking over all before it. It is asked for an address only if these
/// are at most this many for each write still expected in the chunk; else it writes the rows.
const CHUNKS_WALKED: u64 = 16;

/// Time for the rows of a chunk in which zeros are written to its end, because readers read whole
/// chunks, slowly where nothing was written: costly for fast rows, memory held long for slow ones.
const PACE: Range<Duration> = Duration::from_millis(10)..Duration::from_secs(10);

/// Least ratio of the time for the rows of a chunk to that of the search for its address.
const PACE_PER_SEARCH: u32 = 50;

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

#[derive(Debug, Clone, Copy)]
struct PlacedChunk {
    first: u64,
    address: u64,
}

impl LiveDataset {
    fn new(dataset: Dataset, file: Arc<Shared>, clock: Clock) -> Result<Self> {
        let open = || -> Result<_> {
            dataset.check_addresses()?;
            if !dataset.is_appendable()? {
                return Err(Error::usage("no rows can be appended: the first axis has a limit"));
            }
            let (cell, rows) = dataset.shape()?.split_last().ok_or_else(|| Error::usage("a scalar cannot grow"))?;
            let row_bytes = cell.elements()? as usize * dataset.element_bytes()?;
            let (chunk, chunk_rows) = dataset.chunk()?.and_then(|chunk| chunk.split_last()).unwrap_or_default();
            if chunk != cell || chunk_rows == 0 || !dataset.filters()?.is_empty() {
                return Err(Error::usage("rows can be appended to chunks of whole rows without filters only"));
            }
            let address = dataset.library()?.address()?;
            Ok((cell.reversed(), row_bytes, chunk_rows, rows, address))
        };
        let element = dataset.data_type().ok();
        let (cell, row_bytes, chunk_rows, rows, address) =
            open().with_context(|| format!("dataset {}", dataset.path()))?;
        Ok(LiveDataset {
            dataset,
            element,
            cell,
            row_bytes,
            chunk_rows,
            rows: Cell::new(rows),
            known: Cell::new(rows),
            header: RefCell::new(None),
            address: Cell::new(Some(address)),
            chunk: Cell::new(None),
            changed: Cell::new(None),
            written: Cell::new(None),
            search: Cell::new(Duration::ZERO),
            file,
            clock,
        })
    }

    /// Committed or not.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.get()
    }

    pub(crate) fn data_type(&self) -> Option<DataType> {
        self.element
    }

    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Little-endian, first axis fastest; seen by readers once file, then dataset are flushed.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<()> {
        let (first, rows) = (self.rows.get(), (bytes.len() / self.row_bytes) as u64);
        let counts_itself = self.can_count(first, rows).with_context(|| self.place())?;
        self.rows.set(first + rows);
        if !counts_itself {
            self.hand_over().with_context(|| self.place())?;
        }
        self.write(first, bytes)
    }

    /// The last row's chunk has a place, and libhdf5 has no changes of the header in memory.
    fn can_count(&self, first: u64, rows: u64) -> Result<bool> {
        let row_in_chunk = first % self.chunk_rows;
        if row_in_chunk == 0 || rows > self.chunk_rows - row_in_chunk || self.is_changed() {
            return Ok(false);
        }
        let Some(address) = self.address.get() else { return Ok(false) };
        if self.placed_chunk(first, rows)?.is_none() {
            return Ok(false);
        }
        let mut header = self.header.borrow_mut();
        if header.is_none() {
            *header = RowCount::read(&self.file.descriptor, address, &self.extents(first))?;
            if header.is_none() {
                self.address.set(None);
            }
        }
        Ok(header.is_some())
    }

    /// Whether libhdf5 knows of all rows, for tests.
    #[cfg(test)]
    pub(super) fn is_known_to_libhdf5(&self) -> bool {
        self.known.get() == self.rows.get()
    }

    fn is_changed(&self) -> bool {
        self.changed.get() == Some(self.file.flushes.load(Ordering::Relaxed))
    }

    /// Leaves the header to libhdf5 until the next flush: tells it of all rows.
    fn hand_over(&self) -> Result<()> {
        let flushes = self.file.flushes.load(Ordering::Relaxed);
        self.changed.set(Some(flushes));
        self.file.changed.store(flushes + 1, Ordering::Relaxed);
        self.header.replace(None);
        let rows = self.rows.get();
        if self.known.replace(rows) < rows {
            self.dataset.library()?.set_extents(&self.extents(rows))?;
        }
        Ok(())
    }

    /// A concurrent reader may see a mix of old and new values.
    pub(crate) fn write(&self, first: u64, bytes: &[u8]) -> Result<()> {
        let write = || {
            let rows = (bytes.len() / self.row_bytes) as u64;
            if !bytes.len().is_multiple_of(self.row_bytes) || first + rows > self.rows.get() {
                let (has, length) = (self.rows.get(), bytes.len());
                return Err(Error::usage(format!(
                    "{length} bytes from row {first} on exceed the {has} rows of the dataset, or are not whole rows"
                )));
            }
            let (mut first, mut bytes) = (first, bytes);
            while !bytes.is_empty()
                && let Some(chunk) = self.placed_chunk(first, (bytes.len() / self.row_bytes) as u64)?
            {
                let offset = (first - chunk.first) as usize * self.row_bytes;
                let len = bytes.len().min(self.chunk_rows as usize * self.row_bytes - offset);
                self.file.descriptor.write_all_at(&bytes[..len], chunk.address + offset as u64)?;
                (first, bytes) = (first + (len / self.row_bytes) as u64, &bytes[len..]);
            }
            if bytes.is_empty() {
                return Ok(());
            }
            let rows = (bytes.len() / self.row_bytes) as u64;
            self.hand_over()?;
            self.dataset.library()?.write_bytes(&self.block(first, rows), bytes)?;
            self.fill_last_chunk(first + rows)
        };
        write().with_context(|| self.place())
    }

    /// `None` if libhdf5 has to write, e.g. because the chunk is not allocated or costly to find.
    fn placed_chunk(&self, row: u64, rows: u64) -> Result<Option<PlacedChunk>> {
        let (number, row_in_chunk) = (row / self.chunk_rows, row % self.chunk_rows);
        let first = row - row_in_chunk;
        if self.chunk.get().is_none_or(|chunk| chunk.first != first) {
            // libhdf5 finds a chunk by walking over all that come before it
            let writes_left = (self.chunk_rows - row_in_chunk).div_ceil(rows.max(1));
            if number > writes_left.saturating_mul(CHUNKS_WALKED) {
                return Ok(None);
            }
            self.search_chunk(first)?;
        }
        Ok(self.chunk.get())
    }

    /// Keeps the address of the chunk whose first row is `first`.
    fn search_chunk(&self, first: u64) -> Result<()> {
        let start = self.clock.now();
        let offset: Vec<u64> = std::iter::once(first).chain(self.cell.iter().map(|_| 0)).collect();
        let stored = self.dataset.library()?.chunk(&offset)?;
        // a damaged index may lead out of the file: libhdf5 says so when it writes there
        let end = self.dataset.library()?.file_bytes()?;
        let chunk_bytes = self.chunk_rows.saturating_mul(self.row_bytes as u64);
        let stored = stored.filter(|chunk| chunk.address.saturating_add(chunk_bytes) <= end);
        self.chunk.set(stored.map(|stored| PlacedChunk { first, address: stored.address }));
        self.search.set(self.clock.now() - start);
        Ok(())
    }

    /// Zeros to the end of the last chunk save the system making these pages for a reader of the
    /// newest row. Only at a suitable pace ([`PACE`], [`PACE_PER_SEARCH`]), and if the rows before
    /// `end`, which libhdf5 has just written, are new and the last.
    fn fill_last_chunk(&self, end: u64) -> Result<()> {
        let (now, before) = (self.clock.now(), self.written.get());
        // rows that were overwritten say nothing about the pace
        if end != self.rows.get() || before.is_some_and(|(_, rows)| end <= rows) {
            return Ok(());
        }
        self.written.set(Some((now, end)));
        let row_in_chunk = end % self.chunk_rows;
        let Some((then, rows)) = before.filter(|_| row_in_chunk > 0) else { return Ok(()) };
        let pace = (now - then).div_f64((end - rows) as f64 / self.chunk_rows as f64);
        if !PACE.contains(&pace) || pace < self.search.get() * PACE_PER_SEARCH {
            return Ok(());
        }
        self.search_chunk(end - row_in_chunk)?;
        let Some(chunk) = self.chunk.get() else { return Ok(()) };
        let (mut at, end) = (row_in_chunk * self.row_bytes as u64, self.chunk_rows * self.row_bytes as u64);
        while at < end {
            let zeros = &ZEROS[..ZEROS.len().min((end - at) as usize)];
            if self.file.descriptor.write_all_at(zeros, chunk.address + at).is_err() {
                // the rows are stored without them; if the disk is full the next rows say so
                break;
            }
            at += zeros.len() as u64;
        }
        Ok(())
    }

    /// Little-endian, first axis fastest.
    pub(crate) fn read(&self, first: u64, rows: u64, out: &mut Vec<u8>) -> Result<()> {
        let mut read = || {
            if first + rows > self.rows.get() {
                return Err(Error::usage(format!(
                    "{rows} rows from {first} on exceed the {} rows of the dataset",
                    self.rows.get()
                )));
            }
            if rows == 0 {
                return Ok(());
            }
            if first + rows > self.known.get() {
                self.hand_over()?;
            }
            let start = out.len();
            out.resize(start + rows as usize * self.row_bytes, 0);
            self.dataset.library()?.read(&self.block(first, rows), u64::MAX, &mut out[start..])
        };
        read().with_context(|| self.place())
    }

    /// Slowest axis first.
    fn block(&self, first: u64, rows: u64) -> Vec<Steps> {
        let rows = Steps { start: first, step: 1, count: rows };
        std::iter::once(rows).chain(self.cell.iter().map(|&count| Steps { start: 0, step: 1, count })).collect()
    }

    /// The rows are with the operating system already, their number is not.
    pub(crate) fn flush(&self) -> Result<()> {
        let flush = || {
            if self.is_changed() {
                self.dataset.library()?.flush()?;
                self.changed.set(None);
            }
            match self.header.borrow_mut().as_mut() {
                Some(header) if header.rows() != self.rows.get() => {
                    header.write(&self.file.descriptor, self.rows.get())
                }
                _ => Ok(()),
            }
        };
        flush().with_context(|| self.place())
    }

    pub(crate) fn extents(&self, rows: u64) -> Vec<u64> {
        std::iter::once(rows).chain(self.cell.iter().copied()).collect()
    }

    fn place(&self) -> String {
        format!("dataset {}", self.dataset.path())
    }
}

impl fmt::Debug for LiveDataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiveDataset").field(&self.dataset.path()).field(&self.rows).finish()
    }
}

#[cfg(test)]
mod tests;
