//! Reads selected elements of any type from the chunks of a dataset, of which decoded ones are kept
//! for the next read. Chunks that were never written are left to the caller.
//! Axes are slowest first, elements last axis fastest.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use h5_read::Layout;

use super::chunk_reader::with_decoded;
use super::existing::Place;
use super::stored_filter::StoredFilter;
use super::{ChunkInfo, Pipeline, Steps, StoredChunk};
use crate::error::Result;
use crate::io::ReadAt;
use crate::sync::LockUnpoisoned;
use crate::value::Shape;

/// Shorter runs in an unfiltered chunk are read together with the bytes between them.
const LONG_RUN: usize = 4 << 10;

/// Decoded chunks stay in memory for the next read; larger ones are left to the caller.
const MAX_DECODED: usize = 8 << 20;

/// Bytes spanned by one read of short runs; longer reads are left to the caller.
const MAX_SPAN: usize = 16 << 20;

/// Reads that need more are left to the caller.
const MAX_CHUNKS: usize = 1 << 20;

pub(super) struct AnyChunks {
    bytes: Arc<dyn ReadAt>,
    /// Extents of a chunk in elements, slowest axis first.
    extents: Vec<u64>,
    element_bytes: usize,
    chunk_bytes: usize,
    pipeline: Pipeline,
    kept: Mutex<Kept>,
}

/// Decoded chunks by the index of their first element; the oldest are dropped first.
#[derive(Default)]
struct Kept {
    chunks: HashMap<Vec<u64>, Vec<u8>>,
    order: VecDeque<Vec<u64>>,
    bytes: usize,
    most: usize,
}

/// Elements of a block in one chunk, along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// Index of the chunk's first element in the dataset.
    chunk: u64,
    /// Index in the chunk.
    start: u64,
    first: u64,
    count: u64,
}

/// Equally long runs of bytes, copied from a chunk to a block in memory.
#[derive(Debug, PartialEq, Eq)]
struct Runs {
    len: usize,
    from: usize,
    to: usize,
    /// Number, distance in the chunk and in the block for each axis along which runs repeat.
    axes: Vec<(u64, usize, usize)>,
}

impl AnyChunks {
    /// `None` if the chunks are left to the caller; about `keep` bytes of decoded ones are cached.
    pub(super) fn new(place: &Place, keep: u64) -> Result<Option<Self>> {
        let known = place.known();
        let dataset = known.dataset()?;
        let Layout::Chunked(chunked) = dataset.layout() else { return Ok(None) };
        let (extents, element_bytes) = (chunked.shape.clone(), dataset.datatype().size as usize);
        let own = |filter| StoredFilter::of(filter).own(element_bytes);
        let own = dataset.pipeline().filters.iter().map(own).collect::<Option<Vec<_>>>();
        let Some(pipeline) = own.map(Pipeline::new).filter(Pipeline::is_decodable) else { return Ok(None) };
        let bytes = extents.iter().try_fold(element_bytes as u64, |bytes, &extent| bytes.checked_mul(extent));
        let chunk_bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|&bytes| bytes > 0);
        let (Some(chunk_bytes), false) = (chunk_bytes, chunked.edges_are_plain) else { return Ok(None) };
        if !pipeline.is_empty() && chunk_bytes > MAX_DECODED {
            return Ok(None);
        }
        let kept = Mutex::new(Kept { most: usize::try_from(keep).unwrap_or(usize::MAX), ..Kept::default() });
        Ok(Some(AnyChunks { bytes: place.bytes().clone(), extents, element_bytes, chunk_bytes, pipeline, kept }))
    }

    /// `None` if the elements are left to the caller, e.g. because a chunk was never written.
    pub(super) fn read(&self, place: &Place, block: &[Steps]) -> Result<Option<Vec<u8>>> {
        if block.len() != self.extents.len() {
            return Ok(None);
        }
        let elements = block.iter().try_fold(1u64, |elements, axis| elements.checked_mul(axis.count));
        let bytes = elements.and_then(|elements| usize::try_from(elements).ok()?.checked_mul(self.element_bytes));
        let Some(bytes) = bytes else { return Ok(None) };
        let axes: Vec<Vec<Segment>> =
            block.iter().zip(&self.extents).map(|(axis, &extent)| segments(axis, extent)).collect();
        let Some(places) = places(place, &axes)? else { return Ok(None) };
        let mut out = vec![0; bytes];
        let mut at = vec![0; axes.len()];
        for place in places {
            let Some(chunk) = place else { return Ok(None) };
            let segments: Vec<Segment> = at.iter().zip(&axes).map(|(&number, axis)| axis[number]).collect();
            let start: Vec<u64> = segments.iter().map(|segment| segment.chunk).collect();
            let runs = Runs::new(&segments, block, &self.extents, self.element_bytes);
            if !self.copy(start, &chunk, &runs, &mut out)? {
                return Ok(None);
            }
            advance(&mut at, &axes);
        }
        Ok(Some(out))
    }

    /// `false` if a read would exceed [`MAX_SPAN`], or an unfiltered chunk has another size.
    fn copy(&self, start: Vec<u64>, chunk: &StoredChunk, runs: &Runs, out: &mut [u8]) -> Result<bool> {
        if !self.pipeline.is_empty() {
            let mut kept = self.kept.lock_unpoisoned();
            let bytes = kept.get(start, |bytes| self.decode(chunk, bytes))?;
            runs.each(|from, to| out[to..to + runs.len].copy_from_slice(&bytes[from..from + runs.len]));
            return Ok(true);
        }
        if chunk.bytes != self.chunk_bytes as u64 {
            return Ok(false);
        }
        if runs.len >= LONG_RUN || runs.count() == 1 {
            let mut read = Ok(());
            runs.each(|from, to| {
                if read.is_ok() {
                    read = self.bytes.read_at(chunk.address + from as u64, &mut out[to..to + runs.len]);
                }
            });
            read?;
            return Ok(true);
        }
        let span = runs.span();
        if span > MAX_SPAN {
            return Ok(false);
        }
        let mut bytes = vec![0; span];
        self.bytes.read_at(chunk.address + runs.from as u64, &mut bytes)?;
        runs.each(|from, to| {
            let from = from - runs.from;
            out[to..to + runs.len].copy_from_slice(&bytes[from..from + runs.len]);
        });
        Ok(true)
    }

    fn decode(&self, chunk: &StoredChunk, out: &mut Vec<u8>) -> Result<()> {
        let info = ChunkInfo {
            index: Shape::default(),
            address: chunk.address,
            stored_bytes: chunk.bytes,
            filter_mask: chunk.filter_mask,
        };
        with_decoded(&*self.bytes, &self.pipeline, &info, self.chunk_bytes, |bytes| {
            out.clear();
            out.extend_from_slice(bytes);
            Ok(())
        })
    }
}

impl Kept {
    fn get(&mut self, start: Vec<u64>, decode: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<&[u8]> {
        if !self.chunks.contains_key(&start) {
            let mut chunk = Vec::new();
            while self.bytes >= self.most
                && let Some(oldest) = self.order.pop_front()
            {
                // its memory is used again
                chunk = self.chunks.remove(&oldest).unwrap_or_default();
                self.bytes -= chunk.len();
            }
            decode(&mut chunk)?;
            self.bytes += chunk.len();
            self.order.push_back(start.clone());
            self.chunks.insert(start.clone(), chunk);
        }
        Ok(self.chunks.get(&start).map_or(&[], Vec::as_slice))
    }
}

/// One segment for each chunk, which has `extent` elements on this axis.
fn segments(axis: &Steps, extent: u64) -> Vec<Segment> {
    let step = axis.step.max(1);
    let mut segments = Vec::new();
    let mut first = 0;
    while first < axis.count {
        let position = axis.start + first * step;
        let start = position % extent;
        let count = (extent - start).div_ceil(step).min(axis.count - first);
        segments.push(Segment { chunk: position - start, start, first, count });
        first += count;
    }
    segments
}

/// Last axis fastest; `None` for a chunk never written, no list beyond [`MAX_CHUNKS`].
fn places(place: &Place, axes: &[Vec<Segment>]) -> Result<Option<Vec<Option<StoredChunk>>>> {
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.len()));
    let Some(count) = count.filter(|&count| count <= MAX_CHUNKS) else { return Ok(None) };
    if count == 1 {
        let start: Vec<u64> = axes.iter().map(|axis| axis[0].chunk).collect();
        return Ok(Some(vec![place.chunk(&start)?]));
    }
    // the index is walked once for all
    let mut places = vec![None; count];
    place.each_chunk(|start, chunk| {
        let number = axes.iter().zip(start).try_fold(0, |number, (axis, start)| {
            let segment = axis.binary_search_by_key(start, |segment| segment.chunk).ok()?;
            Some(number * axis.len() + segment)
        });
        if let Some(number) = number {
            places[number] = Some(chunk);
        }
    })?;
    Ok(Some(places))
}

/// Next chunk, last axis fastest, cyclically; `at` indexes the segments of each axis.
fn advance(at: &mut [usize], axes: &[Vec<Segment>]) {
    for (number, axis) in at.iter_mut().zip(axes).rev() {
        *number += 1;
        if *number < axis.len() {
            return;
        }
        *number = 0;
    }
}

impl Runs {
    /// `block` selects elements of the dataset, `segments` those in this chunk of `extents`.
    fn new(segments: &[Segment], block: &[Steps], extents: &[u64], element_bytes: usize) -> Self {
        let mut runs = Runs { len: element_bytes, from: 0, to: 0, axes: Vec::new() };
        // bytes from one element of the axis to the next, in the chunk and in the block
        let (mut in_chunk, mut in_block) = (element_bytes, element_bytes);
        for ((segment, axis), &extent) in segments.iter().zip(block).zip(extents).rev() {
            runs.from += segment.start as usize * in_chunk;
            runs.to += segment.first as usize * in_block;
            let is_dense = (axis.step == 1 || segment.count == 1) && runs.len == in_chunk && runs.len == in_block;
            if is_dense && runs.axes.is_empty() {
                runs.len *= segment.count as usize;
            } else if segment.count > 1 {
                runs.axes.insert(0, (segment.count, axis.step as usize * in_chunk, in_block));
            }
            in_chunk *= extent as usize;
            in_block *= axis.count as usize;
        }
        runs
    }

    fn count(&self) -> u64 {
        self.axes.iter().map(|(count, ..)| count).product()
    }

    /// Bytes in the chunk from the first run to the end of the last.
    fn span(&self) -> usize {
        self.len + self.axes.iter().map(|(count, step, _)| (*count as usize - 1) * step).sum::<usize>()
    }

    /// Calls `copy` with the offsets of each run in the chunk and in the block.
    fn each(&self, mut copy: impl FnMut(usize, usize)) {
        each_run(&self.axes, self.from, self.to, &mut copy);
    }
}

fn each_run(axes: &[(u64, usize, usize)], from: usize, to: usize, copy: &mut impl FnMut(usize, usize)) {
    let Some((&(count, step_from, step_to), inner)) = axes.split_first() else { return copy(from, to) };
    for number in 0..count as usize {
        each_run(inner, from + number * step_from, to + number * step_to, copy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements are their own numbers.
    fn expected(whole: &[u64], block: &[Steps]) -> Vec<u8> {
        let mut numbers = vec![0u64];
        for (&extent, axis) in whole.iter().zip(block) {
            let positions: Vec<u64> = (0..axis.count).map(|number| axis.start + number * axis.step).collect();
            numbers = numbers.iter().flat_map(|number| positions.iter().map(move |p| number * extent + p)).collect();
        }
        numbers.into_iter().flat_map(|number| (number as u16).to_le_bytes()).collect()
    }

    #[test]
    fn blocks_are_those_of_the_whole_array() {
        let whole = [7u64, 5, 6];
        let number = |at: &[u64]| at.iter().zip(whole).fold(0, |number, (at, extent)| number * extent + at) as u16;
        let steps = |start, step, count| Steps { start, step, count };
        let all = [steps(0, 1, 7), steps(0, 1, 5), steps(0, 1, 6)];
        for extents in [[7u64, 5, 6], [2, 5, 6], [3, 2, 4], [1, 1, 1], [4, 5, 4], [10, 10, 10]] {
            for block in [
                all,
                [steps(1, 1, 3), all[1], all[2]],
                [steps(0, 3, 3), steps(1, 2, 2), steps(5, 1, 1)],
                [all[0], steps(2, 1, 1), steps(1, 2, 3)],
                [steps(6, 1, 1), all[1], steps(0, 5, 2)],
                [steps(2, 4, 2), all[1], all[2]],
            ] {
                let axes: Vec<Vec<Segment>> =
                    block.iter().zip(extents).map(|(a, extent)| segments(a, extent)).collect();
                let mut out = vec![0; expected(&whole, &block).len()];
                let mut at = vec![0; 3];
                for _ in 0..axes.iter().map(Vec::len).product() {
                    let found: Vec<Segment> = at.iter().zip(&axes).map(|(&number, axis)| axis[number]).collect();
                    let mut chunk = Vec::new();
                    for element in 0..extents.iter().product::<u64>() {
                        let inner = [
                            element / (extents[1] * extents[2]),
                            element / extents[2] % extents[1],
                            element % extents[2],
                        ];
                        let place: Vec<u64> =
                            inner.iter().zip(&found).map(|(at, segment)| at + segment.chunk).collect();
                        chunk.extend(number(&place).to_le_bytes());
                    }
                    let runs = Runs::new(&found, &block, &extents, 2);
                    let mut end = 0;
                    runs.each(|from, to| {
                        out[to..to + runs.len].copy_from_slice(&chunk[from..from + runs.len]);
                        end = from + runs.len;
                    });
                    assert_eq!(runs.from + runs.span(), end);
                    advance(&mut at, &axes);
                }
                assert_eq!(out, expected(&whole, &block), "chunks {extents:?}, block {block:?}");
            }
        }
        let axis = Steps { start: 0, step: 1, count: 7 };
        let block = [axis, Steps { count: 5, ..axis }, Steps { count: 6, ..axis }];
        let found = Runs::new(
            &[segments(&axis, 7)[0], segments(&block[1], 5)[0], segments(&block[2], 6)[0]],
            &block,
            &whole,
            2,
        );
        assert_eq!(found, Runs { len: 420, from: 0, to: 0, axes: vec![] }, "a whole chunk is one run");
    }

    #[test]
    fn the_oldest_chunks_leave() {
        let mut kept = Kept { most: 25, ..Kept::default() };
        let mut decoded = Vec::new();
        for number in [1u64, 2, 3, 1, 4, 1, 2, 4] {
            let bytes = kept.get(vec![number], |bytes| {
                decoded.push(number);
                bytes.clear();
                bytes.resize(10, number as u8);
                Ok(())
            });
            assert_eq!(bytes.unwrap(), [number as u8; 10]);
            assert!(kept.bytes <= 30 && kept.bytes == 10 * kept.order.len());
        }
        assert_eq!(decoded, [1, 2, 3, 4, 1, 2]);
    }
}
