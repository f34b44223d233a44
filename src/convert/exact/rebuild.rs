//! Rebuilds the bytes of an original casacore file from the datasets of a native HDF5 file, in
//! windows (blocks of the file) on several threads.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::recipe::{Encoding, File, LITERALS, OpenStream, Segment, Sources};
use crate::call::pool::Buffers;
use crate::error::Result;
use crate::grid::copy_box;
use crate::hash::{Hash, HashKind, Hasher};
use crate::io::ByteOrder;
use crate::progress::{Progress, cancelled};
use crate::value::{Region, Shape, Values, bits, swap_bytes, swap_width};

/// Part of a file that a thread rebuilds at a time.
pub(super) const WINDOW_BYTES: u64 = 2 << 20;
/// Windows rebuilt concurrently, while at most as many finished ones wait to be hashed.
pub(super) const WINDOWS: usize = 4;
/// Bytes of a dataset read at a time; at least one box, even if it is larger.
const STEP_BYTES: u64 = 1 << 20;

/// A window of a file, and the segments that may reach into it.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) bytes: Range<u64>,
    segments: Vec<Segment>,
}

struct Windows<'a> {
    segments: &'a [Segment],
    /// Segments that may reach into the next window, with their ends in the file.
    active: Vec<(Segment, u64)>,
    sources: &'a Sources,
    next: u64,
    len: u64,
}

impl Iterator for Windows<'_> {
    type Item = Result<Window>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.len {
            return None;
        }
        let bytes = self.next..self.len.min(self.next + WINDOW_BYTES);
        self.next = bytes.end;
        let begun = self.segments.partition_point(|segment| segment.offset < bytes.end);
        let (begun, later) = self.segments.split_at(begun);
        self.segments = later;
        for segment in begun {
            let box_bytes = self.sources.get(segment).and_then(|stream| stream.box_bytes(segment.rows));
            match box_bytes {
                // checked when the recipe was read
                Ok(len) => self.active.push((*segment, segment.offset + (segment.count - 1) * segment.stride + len)),
                Err(error) => return Some(Err(error)),
            }
        }
        self.active.retain(|&(_, end)| end > bytes.start);
        let segments = self.active.iter().map(|&(segment, _)| segment).collect();
        Some(Ok(Window { bytes, segments }))
    }
}

/// Calls `work` for every window, `count` in parallel, and `take` on the results in order.
pub(super) fn for_windows<T: Send>(
    len: u64,
    mut segments: Vec<Segment>,
    sources: &Sources,
    (pool, count): (&rayon::ThreadPool, usize),
    work: impl Fn(Window) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> Result<()> + Send,
) -> Result<()> {
    segments.sort_by_key(|segment| segment.offset);
    let mut windows = Windows { segments: &segments, active: Vec::new(), sources, next: 0, len };
    let mut done: Vec<T> = Vec::new();
    loop {
        let batch = windows.by_ref().take(count).collect::<Result<Vec<_>>>()?;
        if batch.is_empty() && done.is_empty() {
            return Ok(());
        }
        // `take` runs on finished windows beside the work on the next ones
        let ready = std::mem::take(&mut done);
        let (worked, taken) = pool.join(
            || batch.into_par_iter().map(&work).collect::<Result<Vec<T>>>(),
            || ready.into_iter().try_for_each(&mut take),
        );
        taken?;
        done = worked?;
    }
}

/// Calls `work` with the index of each file, on two at a time, the longest first: while one file
/// waits for its hash, which is computed in order, the other is rebuilt.
pub(super) fn for_files(
    files: &[File],
    pool: &rayon::ThreadPool,
    progress: &dyn Progress,
    work: impl Fn(usize, &GoOn<'_>) -> Result<()> + Sync,
) -> Result<()> {
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|&number| Reverse(files[number].len));
    let (next, first_error) = (AtomicUsize::new(0), OnceLock::new());
    let go_on = || if first_error.get().is_some() { Err(cancelled()) } else { progress.go_on() };
    let work_on = || {
        while let (None, Some(&number)) = (first_error.get(), order.get(next.fetch_add(1, Ordering::Relaxed))) {
            if let Err(error) = work(number, &go_on) {
                // the other thread's error may only say that it was to end
                let _ = first_error.set(error);
            }
        }
    };
    pool.join(work_on, work_on);
    first_error.into_inner().map_or(Ok(()), Err)
}

/// Fails if work on several threads should end: after an error, or if `progress` says so.
pub(super) type GoOn<'a> = dyn Fn() -> Result<()> + Sync + 'a;

/// Calls `write` from several threads, in no order; returns the hash of the file.
pub(super) fn rebuild(
    len: u64,
    kind: HashKind,
    segments: Vec<Segment>,
    sources: &Sources,
    (pool, buffers): (&rayon::ThreadPool, &Buffers),
    write: impl Fn(u64, &[u8]) -> Result<()> + Sync,
) -> Result<Hash> {
    let mut hasher = Hasher::new(kind);
    let work = |window: Window| {
        // a byte that nothing supplies shows in the hash
        let mut bytes = buffers.take(window.len());
        window.fill(sources, &mut bytes, None)?;
        write(window.bytes.start, &bytes)?;
        Ok(bytes)
    };
    // BLAKE3 has work for other threads here, SHA-256 has none
    let take = |bytes: Vec<u8>| {
        hasher.update(&bytes);
        buffers.give(bytes);
        Ok(())
    };
    for_windows(len, segments, sources, (pool, WINDOWS), work, take)?;
    Ok(hasher.finish())
}

impl Window {
    pub(super) fn len(&self) -> usize {
        (self.bytes.end - self.bytes.start) as usize
    }

    /// Fills `out` with supplied bytes, literals last, and sets `covered` to 1 for each.
    pub(super) fn fill(&self, sources: &Sources, out: &mut [u8], mut covered: Option<&mut [u8]>) -> Result<()> {
        for literal in [false, true] {
            for segment in self.segments.iter().filter(|segment| (segment.stream == LITERALS) == literal) {
                let stream = sources.get(segment)?;
                let target = RestoreFile { start: self.bytes.start, out: &mut *out, covered: covered.as_deref_mut() };
                stream.fill(segment, target)?;
            }
        }
        Ok(())
    }
}

/// `out` has the file's bytes from `start` on; `covered` becomes 1 for each supplied byte.
struct RestoreFile<'a> {
    start: u64,
    out: &'a mut [u8],
    covered: Option<&'a mut [u8]>,
}

impl RestoreFile<'_> {
    fn end(&self) -> u64 {
        self.start + self.out.len() as u64
    }

    /// The part of `range` that is in the buffer; may be empty.
    fn wanted(&self, range: Range<u64>) -> Range<u64> {
        let start = range.start.clamp(self.start, self.end());
        start..range.end.clamp(start, self.end())
    }

    /// Marks the bytes of `wanted` as supplied.
    fn place(&mut self, wanted: Range<u64>) -> &mut [u8] {
        let range = (wanted.start - self.start) as usize..(wanted.end - self.start) as usize;
        if let Some(covered) = &mut self.covered {
            covered[range.clone()].fill(1);
        }
        &mut self.out[range]
    }

    /// Bytes outside the buffer are left out.
    fn put(&mut self, offset: u64, bytes: &[u8]) {
        let wanted = self.wanted(offset..offset + bytes.len() as u64);
        let from = wanted.start.saturating_sub(offset) as usize;
        let len = (wanted.end - wanted.start) as usize;
        if len > 0 {
            self.place(wanted).copy_from_slice(&bytes[from..from + len]);
        }
    }
}

impl OpenStream {
    fn fill(&self, segment: &Segment, mut target: RestoreFile<'_>) -> Result<()> {
        let box_bytes = self.box_bytes(segment.rows)?;
        if box_bytes == 0 || segment.offset >= target.end() {
            return Ok(());
        }
        let stride = if segment.count == 1 { box_bytes } else { segment.stride };
        // the boxes that reach into the window
        let first = match target.start.checked_sub(segment.offset + box_bytes) {
            Some(beyond) => beyond / stride + 1,
            None => 0,
        };
        let boxes = first..segment.count.min((target.end() - segment.offset).div_ceil(stride));
        if boxes.is_empty() {
            return Ok(());
        }
        if !self.covers_cells() {
            for number in boxes {
                let bytes = self.tile(segment, number)?;
                target.put(segment.offset + number * stride, &bytes);
            }
            return Ok(());
        }
        let row_bytes = self.plain_bytes(1)? as u64;
        if self.encoding != Encoding::Bits && stride == box_bytes {
            // one run of rows, of which only those wanted are read
            let (row, offset) = (segment.first + boxes.start * segment.rows, segment.offset + boxes.start * stride);
            return self.fill_rows(row, offset, (boxes.end - boxes.start) * segment.rows, row_bytes, &mut target);
        }
        let step = (STEP_BYTES / box_bytes).max(1);
        let mut plain = Vec::new();
        for start in boxes.clone().step_by(step as usize) {
            let count = step.min(boxes.end - start);
            if let (1, Encoding::Bytes(_)) = (count, self.encoding) {
                let (row, offset) = (segment.first + start * segment.rows, segment.offset + start * stride);
                self.fill_rows(row, offset, segment.rows, row_bytes, &mut target)?;
                continue;
            }
            let rows = count * segment.rows;
            plain.resize(self.plain_bytes(rows)?, 0);
            self.read_rows(segment.first + start * segment.rows, &mut plain)?;
            let encoded = self.encode(&mut plain, count as usize);
            for (number, bytes) in (start..).zip(encoded.chunks_exact(box_bytes as usize)) {
                target.put(segment.offset + number * stride, bytes);
            }
        }
        Ok(())
    }

    /// Copies in the byte order of the file, where row `first` begins at byte `offset`.
    fn fill_rows(
        &self,
        first: u64,
        offset: u64,
        rows: u64,
        row_bytes: u64,
        target: &mut RestoreFile<'_>,
    ) -> Result<()> {
        let wanted = target.wanted(offset..offset + rows * row_bytes);
        let (start, end) = (wanted.start - offset, wanted.end - offset);
        // rows that are wanted whole go straight to their place
        let whole = start.div_ceil(row_bytes)..end / row_bytes;
        if !whole.is_empty() {
            let place = target.place(offset + whole.start * row_bytes..offset + whole.end * row_bytes);
            self.read_rows(first + whole.start, place)?;
            self.swap(place);
        }
        let first_part = start / row_bytes;
        let last_part = (end.div_ceil(row_bytes)).saturating_sub(1);
        for row in [first_part, last_part] {
            if start < end && !whole.contains(&row) {
                let mut plain = vec![0; row_bytes as usize];
                self.read_rows(first + row, &mut plain)?;
                self.swap(&mut plain);
                target.put(offset + row * row_bytes, &plain);
            }
        }
        Ok(())
    }

    /// Little-endian bytes of whole rows from `first` on, zeros after the last row.
    fn read_rows(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let row_bytes = (self.cell.elements()? as usize * self.reader.data_type.size()).max(1);
        let there = ((out.len() / row_bytes) as u64).min(self.reader.rows().saturating_sub(first));
        let (there, beyond) = out.split_at_mut(there as usize * row_bytes);
        beyond.fill(0);
        self.reader.read_rows(first, there, row_bytes)
    }

    /// Bytes of a tile of `segment` as in the file; elements beyond the edge of the dataset are
    /// zeros. Tile 0 begins at row `segment.first`; numbers go along the fastest axis first.
    fn tile(&self, segment: &Segment, number: u64) -> Result<Vec<u8>> {
        let mut rest = number;
        let mut start: Vec<u64> = Vec::with_capacity(self.cell.len() + 1);
        for (&count, &extent) in self.across.iter().zip(self.cell.iter()) {
            start.push(rest % count.max(1) * extent);
            rest /= count.max(1);
        }
        start.push(segment.first + rest * segment.rows);
        let shape = self.cell.with_axis(segment.rows);
        let within: Shape = shape
            .iter()
            .zip(&start)
            .zip(self.reader.shape.iter())
            .map(|((&extent, &start), &end)| extent.min(end.saturating_sub(start)))
            .collect();
        let mut values = Values::new(self.reader.data_type);
        let region = Region { start: Shape::from(start.as_slice()), shape: within };
        self.reader.read(&region, &mut values)?;
        if region.shape != shape {
            let mut padded = Values::new(self.reader.data_type);
            padded.extend_default(shape.elements()? as usize);
            let zero = vec![0; shape.len()];
            copy_box(&values, &region.shape, &zero, &mut padded, 0, &shape, &zero, &region.shape);
            values = padded;
        }
        // `OpenStream` has checked that the elements have a fixed size
        Ok(self.encode(&mut values.into_bytes(), 1).to_vec())
    }

    /// Converts little-endian elements to the byte order of the file, or Bools to bits.
    fn encode<'a>(&self, plain: &'a mut Vec<u8>, boxes: usize) -> &'a [u8] {
        if self.encoding == Encoding::Bits {
            let box_elements = plain.len() / boxes.max(1);
            let mut packed = Vec::with_capacity(plain.len() / 8 + boxes);
            plain.chunks_exact(box_elements.max(1)).for_each(|bools| bits::pack_bytes(bools, &mut packed));
            *plain = packed;
        }
        self.swap(plain);
        plain
    }

    fn swap(&self, plain: &mut [u8]) {
        if self.encoding == Encoding::Bytes(ByteOrder::Big) {
            swap_bytes(plain, swap_width(self.reader.data_type));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;
    use crate::call::pool::thread_pool;
    use crate::error::{Error, ErrorKind};

    fn files(count: u64) -> Vec<File> {
        let file =
            |len| File { path: format!("f{len}").into(), len, hash: Hash::of(HashKind::default(), b""), segments: 0 };
        (0..count).map(file).collect()
    }

    #[test]
    fn every_file_has_its_turn_the_longest_first() {
        for threads in 1..=3 {
            let pool = thread_pool(threads).unwrap();
            let done = Mutex::new(Vec::new());
            let work = |number, go_on: &GoOn<'_>| {
                go_on()?;
                done.lock().unwrap().push(number);
                Ok(())
            };
            for_files(&files(40), &pool, &(), work).unwrap();
            let mut done = done.into_inner().unwrap();
            if threads == 1 {
                assert!(done.is_sorted_by(|one, next| one > next), "{done:?}");
            }
            done.sort_unstable();
            assert_eq!(done, (0..40).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_the_work_on_other_files() {
        let pool = thread_pool(2).unwrap();
        let ended = Mutex::new(BTreeMap::new());
        let work = |number, go_on: &GoOn<'_>| {
            let mut goes_on = go_on();
            if number == 38 {
                return Err(Error::format("38 is damaged"));
            }
            // until it is told to end
            while number == 39 && goes_on.is_ok() {
                std::thread::yield_now();
                goes_on = go_on();
            }
            ended.lock().unwrap().insert(number, goes_on.is_err());
            goes_on
        };
        let error = for_files(&files(40), &pool, &(), work).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Format, "38 is damaged"));
        assert_eq!(ended.into_inner().unwrap(), BTreeMap::from([(39, true)]), "no other file was begun");
    }
}
