//! Conversion of columns to chunks on several threads, the lanes; one thread writes the chunks in
//! an order that is always the same.
//!
//! ```text
//! lane 0   read, digest ──► filters ──┐ chunks
//! lane 1   …                ──► …   ──┼──────────► writer: takes from the lane with the smallest share written
//! lane 2   …                ──► …   ──┘            of its own total
//! ```
//! A lane is a thread with its share of the columns; other threads, those of a pool, filter its
//! chunks while it reads the next ones. libhdf5 is called by the writer alone. Because the order of
//! writing depends on the sizes of chunks only, the same input gives the same bytes, with any
//! number of threads.
//! `dataset` indexes `Writer::datasets`; the `index` of a chunk counts chunks per axis, fastest
//! first.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex};

use super::budget::{CHUNKS_IN_FILTERS, QUEUED_CHUNKS};
use crate::call::pool::Buffers;
use crate::error::{Error, ErrorKind, Result};
use crate::grid::Grid;
use crate::h5::{FilterScratch, Pipeline};
use crate::sync::{LockUnpoisoned, Unpoisoned};
use crate::value::{Region, Shape, Values};

pub(crate) enum Message<D> {
    /// `len` is the size before filtering.
    Chunk {
        dataset: usize,
        index: Shape,
        bytes: Vec<u8>,
        len: u64,
    },
    /// Only libhdf5 can write strings; axes of `region` are fastest first.
    Strings {
        dataset: usize,
        region: Region,
        values: Values,
    },
    Done(D),
    Failed(Error),
}

/// A dataset, as a lane needs it to produce chunks.
#[derive(Debug, Clone)]
pub(crate) struct DatasetSink {
    pub(crate) dataset: usize,
    pub(crate) grid: Grid,
    /// Bytes of an element.
    pub(crate) size: usize,
    pub(crate) pipeline: Option<Pipeline>,
}

impl DatasetSink {
    /// Planning has checked that chunks fit in memory.
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.grid.chunk.iter().product::<u64>() as usize * self.size
    }
}

/// Little-endian bytes, padded with zeros.
pub(super) fn pad(values: &Values, shape: &Shape, padded: &Shape) -> Result<Vec<u8>> {
    let zero = vec![0; shape.len()];
    let mut whole = Values::new(values.data_type());
    whole.extend_default(padded.elements()? as usize);
    crate::grid::copy_box(values, shape, &zero, &mut whole, 0, padded, &zero, shape);
    whole
        .le_bytes()
        .map(|bytes| bytes.into_owned())
        .ok_or_else(|| Error::format("the elements of the column have no fixed size"))
}

/// Lanes without a permit wait.
#[derive(Debug)]
struct Permits {
    free: Mutex<usize>,
    returned: Condvar,
}

impl Permits {
    fn take(&self) {
        let free = self.free.lock_unpoisoned();
        let mut free = self.returned.wait_while(free, |free| *free == 0).unpoisoned();
        *free -= 1;
    }

    fn give(&self) {
        *self.free.lock_unpoisoned() += 1;
        self.returned.notify_one();
    }
}

/// Working memory of filters, reused by all threads because it is costly to allocate.
#[derive(Debug, Default)]
struct FilterScratches(Mutex<Vec<FilterScratch>>);

impl FilterScratches {
    fn take(&self) -> FilterScratch {
        self.0.lock_unpoisoned().pop().unwrap_or_default()
    }

    fn give(&self, scratch: FilterScratch) {
        self.0.lock_unpoisoned().push(scratch);
    }
}

struct InFilters {
    dataset: usize,
    index: Shape,
    /// Bytes before filtering.
    len: usize,
    filtered: Filtered,
}

type Filtered = Receiver<Result<Vec<u8>>>;

/// A lane from the side of its thread.
pub(crate) struct Lane<'a, D> {
    sender: SyncSender<Message<D>>,
    /// Held while working, returned while waiting for filters or the writer.
    permits: &'a Permits,
    pub(crate) buffers: &'a Buffers,
    filter: &'a dyn Fn(&Pipeline, Vec<u8>) -> Filtered,
    /// Oldest first.
    in_filters: VecDeque<InFilters>,
}

impl<D: Send> Lane<'_, D> {
    pub(crate) fn chunk(&mut self, target: &DatasetSink, index: Shape, bytes: Vec<u8>) -> Result<()> {
        let (dataset, len) = (target.dataset, bytes.len());
        let Some(pipeline) = &target.pipeline else { return self.send_chunk(dataset, index, len, bytes) };
        let filtered = (self.filter)(pipeline, bytes);
        self.in_filters.push_back(InFilters { dataset, index, len, filtered });
        // how many are waited for does not depend on speed, so that the order of writing does not
        if self.in_filters.len() > CHUNKS_IN_FILTERS { self.send_filtered() } else { Ok(()) }
    }

    pub(crate) fn strings(&mut self, dataset: usize, region: Region, values: Values) -> Result<()> {
        self.send(Message::Strings { dataset, region, values })
    }

    pub(crate) fn done(&mut self, result: D) -> Result<()> {
        self.send(Message::Done(result))
    }

    /// Waits for the first chunk in filters, and passes it on.
    fn send_filtered(&mut self) -> Result<()> {
        let Some(InFilters { dataset, index, len, filtered }) = self.in_filters.pop_front() else { return Ok(()) };
        let received = filtered.try_recv().or_else(|_| {
            self.permits.give();
            let received = filtered.recv();
            self.permits.take();
            received
        });
        let bytes = received.map_err(|_| Error::new(ErrorKind::Interrupted, "a filter has stopped"))??;
        self.send_chunk(dataset, index, len, bytes)
    }

    fn finish(&mut self) -> Result<()> {
        while !self.in_filters.is_empty() {
            self.send_filtered()?;
        }
        Ok(())
    }

    fn send_chunk(&mut self, dataset: usize, index: Shape, len: usize, bytes: Vec<u8>) -> Result<()> {
        self.send(Message::Chunk { dataset, index, bytes, len: len as u64 })
    }

    fn send(&mut self, message: Message<D>) -> Result<()> {
        self.permits.give();
        let sent = self.sender.send(message);
        self.permits.take();
        // the writer went away because it failed, and says why
        sent.map_err(|_| Error::new(ErrorKind::Interrupted, "the writer has stopped"))
    }
}

/// Cuts a stream of bytes into chunks along the slowest axis of a dataset.
pub(crate) struct Appender<'a> {
    target: &'a DatasetSink,
    chunk: Vec<u8>,
    chunk_bytes: usize,
    next: u64,
}

impl<'a> Appender<'a> {
    pub(crate) fn new(target: &'a DatasetSink) -> Self {
        Appender { target, chunk: Vec::new(), chunk_bytes: target.chunk_bytes(), next: 0 }
    }

    pub(crate) fn push<D: Send>(&mut self, lane: &mut Lane<'_, D>, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.chunk.is_empty() {
                self.chunk = lane.buffers.take(0);
                self.chunk.reserve(self.chunk_bytes);
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.chunk_bytes - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
            if self.chunk.len() == self.chunk_bytes {
                self.flush(lane)?;
            }
        }
        Ok(())
    }

    pub(crate) fn push_zeros<D: Send>(&mut self, lane: &mut Lane<'_, D>, mut count: usize) -> Result<()> {
        let zeros = [0; 4096];
        while count > 0 {
            let now = count.min(zeros.len());
            self.push(lane, &zeros[..now])?;
            count -= now;
        }
        Ok(())
    }

    /// Pads an incomplete last chunk with zeros.
    pub(crate) fn finish<D: Send>(mut self, lane: &mut Lane<'_, D>) -> Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        self.chunk.resize(self.chunk_bytes, 0);
        self.flush(lane)
    }

    fn flush<D: Send>(&mut self, lane: &mut Lane<'_, D>) -> Result<()> {
        let axes = self.target.grid.shape.len();
        let mut index = vec![0; axes];
        index[axes - 1] = self.next;
        self.next += 1;
        let chunk = std::mem::take(&mut self.chunk);
        lane.chunk(self.target, Shape::from(index.as_slice()), chunk)
    }
}

/// Runs `work` for each of `jobs`, given with their sizes; the first error is by order of writing.
pub(crate) fn run<J: Send, D: Send>(
    jobs: Vec<(u64, J)>,
    lanes: usize,
    pool: &rayon::ThreadPool,
    work: impl Fn(J, &mut Lane<'_, D>) -> Result<()> + Sync,
    mut write: impl FnMut(Message<D>, &Buffers) -> Result<()>,
) -> Result<()> {
    let shares = share(jobs, lanes);
    let (buffers, filters) = (Buffers::default(), FilterScratches::default());
    // one lane more than threads works: with as many, filters sometimes had nothing to do
    let permits = Permits { free: Mutex::new(pool.current_num_threads() + 1), returned: Condvar::new() };
    std::thread::scope(|scope| {
        let mut ends: Vec<LaneEnd<D>> = Vec::new();
        for (total, jobs) in shares {
            let (sender, receiver) = sync_channel(QUEUED_CHUNKS);
            ends.push(LaneEnd { receiver, total: total.max(1), taken: 0 });
            let (work, buffers, filters, permits) = (&work, &buffers, &filters, &permits);
            scope.spawn(move || {
                pool.in_place_scope(|pool| {
                    let filter =
                        |pipeline: &Pipeline, bytes| filter_in(pool, buffers, filters, pipeline.clone(), bytes);
                    let mut lane = Lane { sender, permits, buffers, filter: &filter, in_filters: VecDeque::new() };
                    permits.take();
                    let mut run = |job| work(job, &mut lane).and_then(|()| lane.finish());
                    if let Err(error) = jobs.into_iter().try_for_each(&mut run) {
                        // fails only if the writer has gone already
                        let _ = lane.send(Message::Failed(error));
                    }
                    permits.give();
                });
            });
        }
        while let Some(next) = furthest_behind(&ends) {
            match ends[next].receiver.recv() {
                Ok(Message::Failed(error)) => return Err(error),
                Ok(message) => {
                    if let Message::Chunk { len, .. } = &message {
                        ends[next].taken += len;
                    }
                    write(message, &buffers)?;
                }
                Err(_) => {
                    ends.remove(next);
                }
            }
        }
        Ok(())
    })
}

fn filter_in<'scope>(
    pool: &rayon::Scope<'scope>,
    buffers: &'scope Buffers,
    filters: &'scope FilterScratches,
    pipeline: Pipeline,
    bytes: Vec<u8>,
) -> Filtered {
    let (sender, filtered) = sync_channel(1);
    pool.spawn(move |_| {
        let mut packed = buffers.take(0);
        let mut scratch = filters.take();
        let result = pipeline.encode(&mut scratch, &bytes, &mut packed);
        filters.give(scratch);
        buffers.give(bytes);
        // fails only if the lane has ended with an error
        let _ = sender.send(result.map(|()| packed));
    });
    filtered
}

/// A lane from the side of the writer.
struct LaneEnd<D> {
    receiver: Receiver<Message<D>>,
    /// Bytes that the lane is expected to produce.
    total: u64,
    taken: u64,
}

fn furthest_behind<D>(ends: &[LaneEnd<D>]) -> Option<usize> {
    let progress = |end: &LaneEnd<D>| u128::from(end.taken) * (1 << 32) / u128::from(end.total);
    (0..ends.len()).min_by_key(|&lane| progress(&ends[lane]))
}

/// Lanes of about equal bytes, in the given order; their sums of sizes add 4096 for each job.
fn share<J>(jobs: Vec<(u64, J)>, lanes: usize) -> Vec<(u64, Vec<J>)> {
    let mut by_size: Vec<usize> = (0..jobs.len()).collect();
    by_size.sort_by_key(|&job| std::cmp::Reverse(jobs[job].0));
    let mut totals = vec![0u64; lanes.clamp(1, jobs.len().max(1))];
    let mut lane_of = vec![0; jobs.len()];
    for job in by_size {
        let lane = (0..totals.len()).min_by_key(|&lane| totals[lane]).unwrap_or_default();
        // a column costs something even if it is empty
        totals[lane] += jobs[job].0 + 4096;
        lane_of[job] = lane;
    }
    let mut shares: Vec<(u64, Vec<J>)> = totals.into_iter().map(|total| (total, Vec::new())).collect();
    for (job, (_, content)) in jobs.into_iter().enumerate() {
        shares[lane_of[job]].1.push(content);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_writing_does_not_depend_on_speed() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let orders: Vec<Vec<(usize, u64)>> = (0..3)
            .map(|slow| {
                let jobs = vec![(8000, 0), (6000, 1), (4000, 2)];
                let mut order = Vec::new();
                // a lane that also writes what has no filters
                let work = |dataset: usize, lane: &mut Lane<'_, ()>| {
                    let grid = Grid { shape: Shape::from([5000]), chunk: Shape::from([100]) };
                    let filtered = DatasetSink { dataset, grid, size: 1, pipeline: Some(Pipeline::new(Vec::new())) };
                    let plain = DatasetSink { dataset: dataset + 3, pipeline: None, ..filtered.clone() };
                    let mut appenders = [Appender::new(&filtered), Appender::new(&plain)];
                    for _ in 0..(4000 - dataset * 1000) / 50 {
                        if dataset == slow {
                            std::thread::sleep(std::time::Duration::from_micros(200));
                        }
                        appenders.iter_mut().try_for_each(|appender| appender.push(lane, &[7; 50]))?;
                    }
                    appenders.into_iter().try_for_each(|appender| appender.finish(lane))
                };
                run(jobs, 3, &pool, work, |message, _| {
                    if let Message::Chunk { dataset, index, .. } = message {
                        order.push((dataset, index[0]));
                    }
                    Ok(())
                })
                .unwrap();
                order
            })
            .collect();
        assert_eq!(orders[0].len(), 180);
        assert_eq!(orders[0], orders[1]);
        assert_eq!(orders[0], orders[2]);
    }

    #[test]
    fn nothing_waits_for_a_filter_for_ever() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let mut written = 0;
        let work = |_: u32, lane: &mut Lane<'_, ()>| {
            let grid = Grid { shape: Shape::from([5]), chunk: Shape::from([5]) };
            let target = DatasetSink { dataset: 0, grid, size: 1, pipeline: Some(Pipeline::new(Vec::new())) };
            let mut appender = Appender::new(&target);
            appender.push(lane, &[7; 5])?;
            appender.finish(lane)
        };
        run(vec![(5, 0)], 4, &pool, work, |message, _| {
            written += usize::from(matches!(message, Message::Chunk { .. }));
            Ok(())
        })
        .unwrap();
        assert_eq!(written, 1);
    }

    #[test]
    fn an_error_ends_all_lanes() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let work = |job: u32, lane: &mut Lane<'_, u32>| match job {
            3 => Err(Error::format("damaged")),
            _ => (0..1000).try_for_each(|i| lane.done(i)),
        };
        let jobs = (0..6).map(|job| (1, job)).collect();
        assert_eq!(run(jobs, 4, &pool, work, |_, _| Ok(())).unwrap_err().to_string(), "damaged");
    }
}
