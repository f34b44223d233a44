//! Inserts chunks, which workers of a conversion by many processes have written to separate files,
//! into the HDF5 file that the conversion makes. Compares them with the workers' results on the
//! way.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use super::document::{ShardItem, ShardPlan, ShardResult};
use super::work::StoredChunks;
use crate::error::{Context, Error, Result, ResultExt};
use crate::grid::unravel;
use crate::h5::{self, Bounds};
use crate::hash::Hasher;
use crate::io::Growth;
use crate::native::open_dataset;
use crate::output::SyncPolicy;
use crate::progress::Progress;

const READ_AHEAD: usize = 8;

/// Items of one dataset follow one another.
pub(super) struct Insertion<'a> {
    pub(super) plan: &'a ShardPlan,
    pub(super) items: &'a [(&'a ShardItem, &'a ShardResult)],
    /// Whether the system is asked early to write the file to the disk.
    pub(super) sync: SyncPolicy,
    pub(super) progress: &'a dyn Progress,
}

/// Stored bytes of the next chunk, or the error of reading it.
type Read = Result<Vec<u8>>;

impl Insertion<'_> {
    /// Returns the copied bytes. After an error the HDF5 file has wrong chunks: never publish it.
    pub(super) fn run(&self, path: &Path) -> Result<u64> {
        let (send, chunks) = sync_channel(READ_AHEAD);
        let (give_back, buffers) = channel();
        thread::scope(|scope| {
            scope.spawn(move || self.read_all(&send, &buffers));
            self.write_all(path, chunks, &give_back)
        })
    }

    /// Sends each chunk in the order of the items, until an error or the receiver is gone.
    fn read_all(&self, send: &SyncSender<Read>, buffers: &Receiver<Vec<u8>>) {
        for &(item, result) in self.items {
            let read = || -> Result<bool> {
                let mut file = StoredChunks::open(&self.plan.chunk_file(item))?;
                let mut hasher = Hasher::new(result.hash.kind());
                for number in item.first..item.last {
                    let mut bytes = buffers.try_recv().unwrap_or_default();
                    file.next(&mut bytes)?;
                    hasher.update(&(bytes.len() as u64).to_le_bytes());
                    hasher.update(&bytes);
                    // the last one only if all were right
                    let is_last = number + 1 == item.last;
                    if is_last {
                        file.end()?;
                        let found = ShardResult::new(result.file_bytes, &hasher);
                        if let Some(difference) = result.difference(&found) {
                            return Err(Error::format(difference));
                        }
                    }
                    if send.send(Ok(bytes)).is_err() {
                        return Ok(false);
                    }
                }
                Ok(true)
            };
            match read() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let is_damage = error.kind() == crate::error::ErrorKind::Format;
                    let error = if is_damage { damaged(self.plan, item, &error.to_string()) } else { error };
                    let _ = send.send(Err(error.of_file(&Context::path(self.plan.chunk_file(item)))));
                    return;
                }
            }
        }
    }

    fn write_all(&self, path: &Path, chunks: Receiver<Read>, give_back: &Sender<Vec<u8>>) -> Result<u64> {
        let file = h5::File::edit(path, Bounds::V110)?;
        let root = file.root()?;
        let mut growth = self.sync.is_behind().then(|| Growth::open(path)).transpose()?;
        let mut inserted = 0;
        for items in self.items.chunk_by(|(one, _), (other, _)| one.dataset == other.dataset) {
            let Some((first, _)) = items.first() else { continue };
            let dataset = self.plan.dataset(first);
            let counts = dataset.grid().counts();
            let open = open_dataset(&root, &dataset.path)?;
            for number in items.iter().flat_map(|(item, _)| item.first..item.last) {
                self.progress.go_on()?;
                let ended = || Error::usage("the thread that reads files of chunks has ended");
                let bytes = chunks.recv().map_err(|_| ended())??;
                open.write_chunk(&unravel(number, &counts), &bytes, 0).map_err(Error::blame_source)?;
                growth.iter_mut().for_each(Growth::write_back);
                inserted += bytes.len() as u64;
                self.progress.advance(8 + bytes.len() as u64, &dataset.table, &dataset.column);
                // nothing is read any more at the end
                let _ = give_back.send(bytes);
            }
        }
        drop(root);
        file.close().with_context(|| Context::path(path))?;
        Ok(inserted)
    }
}

pub(super) fn damaged(plan: &ShardPlan, item: &ShardItem, difference: &str) -> Error {
    let (id, name) = (&item.id, plan.describe(item));
    let message = format!(
        "item {id} ({name}) is damaged: {difference}; `h5bridge shard verify` marks it, and `shard work` does it again"
    );
    Error::format(message).context(Context::path(plan.target()))
}
