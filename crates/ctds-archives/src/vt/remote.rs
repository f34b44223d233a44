//! A store on the other side of a stream, for reading and for adding blocks.

use std::sync::{Arc, Mutex};

use ctds::error::{Context, Error, Result, ResultExt};
use ctds::sync::{LockUnpoisoned, Unpoisoned};

use super::address::Address;
use super::append::KIND;
use super::archive::Line;
use super::client::Client;
use super::hash::BlockHash;
use super::index::Growing;
use super::plain::InFile;
use super::protocol::{Request, Saved, decode_hash, decode_saved};
use super::sink::Sink;
use super::source::Source;
use super::store::Cache;
use super::update::date;
use super::wire::Cursor;

/// Blocks that are collected before the store is asked which of them it has.
const QUEUE_BLOCKS: usize = 256;
const QUEUE_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Remote {
    client: Mutex<Client>,
    cache: Mutex<Cache>,
}

impl Remote {
    pub(super) fn connect(address: &Address<'_>) -> Result<Self> {
        Ok(Remote { client: Mutex::new(Client::connect(address.transport)?), cache: Mutex::default() })
    }

    /// All states in an archive, the newest last; empty if it has none.
    pub(super) fn lines(&self, archive: &str) -> Result<Vec<Line>> {
        let (_, entries) = self.client.lock_unpoisoned().ask(&Request::ArchiveList(archive.to_owned()))?;
        let mut cursor = Cursor::new(&entries, "archive");
        let mut lines = Vec::new();
        while !cursor.is_at_end() {
            let Saved { seconds, entry } = decode_saved(&mut cursor)?;
            let microseconds = (seconds.fract() * 1e6) as u32;
            lines.push(Line { date: date(seconds as u64, microseconds), seconds, entry: Ok(entry) });
        }
        Ok(lines)
    }
}

impl Source for Remote {
    fn block_of_file(&self, hash: &BlockHash, _place: Option<InFile>) -> Result<Arc<Vec<u8>>> {
        if let Some(block) = self.cache.lock_unpoisoned().get(hash) {
            return Ok(block);
        }
        let (flags, block) = self.client.lock_unpoisoned().ask(&Request::Get(*hash))?;
        if flags & 1 == 0 {
            return Err(Error::format(format!("block {hash} is missing from the store that is served")));
        }
        let found = hash.kind().hash(&block);
        if found != *hash {
            return Err(Error::format(format!("the block has the hash {found}, expected {hash}")));
        }
        let block = Arc::new(block);
        self.cache.lock_unpoisoned().put(*hash, &block);
        Ok(block)
    }
}

/// Adds blocks to a store on the other side of a stream.
pub(super) struct RemoteSink {
    client: Mutex<Client>,
    /// Blocks that were sent or that the store has; the offsets have no meaning.
    known: Growing,
    queue: Vec<(BlockHash, Vec<u8>)>,
    queued_bytes: usize,
    sent_bytes: u64,
}

impl RemoteSink {
    pub(super) fn connect(address: &Address<'_>) -> Result<Self> {
        let client = Mutex::new(Client::connect(address.transport)?);
        let known = Growing::new(&std::env::temp_dir());
        Ok(RemoteSink { client, known, queue: Vec::new(), queued_bytes: 0, sent_bytes: 0 })
    }

    /// Sends those of the queued blocks that the store does not have.
    fn send(&mut self) -> Result<()> {
        let queue = std::mem::take(&mut self.queue);
        self.queued_bytes = 0;
        let client = self.client.get_mut().unpoisoned();
        let asked: Vec<_> = queue.iter().map(|(hash, _)| Request::Contains(*hash)).collect();
        let known = client.ask_all(&asked)?.into_iter().map(|(flags, _)| flags & 1 != 0);
        let missing: Vec<_> =
            queue.into_iter().zip(known).filter(|(_, is_known)| !is_known).map(|(queued, _)| queued).collect();
        let hashes: Vec<_> = missing.iter().map(|(hash, _)| *hash).collect();
        let adding: Vec<_> = missing.into_iter().map(|(_, block)| Request::Add { kind: KIND, block }).collect();
        for (hash, (_, answer)) in hashes.iter().zip(client.ask_all(&adding)?) {
            let found = decode_hash(&mut Cursor::new(&answer, "response"))?;
            if found != *hash {
                return Err(Error::format(format!("the server has given the block the hash {found}, expected {hash}")));
            }
        }
        let bytes = |request: &Request| if let Request::Add { block, .. } = request { block.len() as u64 } else { 0 };
        self.sent_bytes += adding.iter().map(bytes).sum::<u64>();
        Ok(())
    }

    /// Adds a state to an archive, after all blocks are durable; returns the bytes of the blocks
    /// that were sent.
    pub(super) fn finish(mut self, archive: &str, saved: Saved) -> Result<u64> {
        self.send()?;
        let client = self.client.get_mut().unpoisoned();
        client.ask(&Request::Flush)?;
        let update = Request::ArchiveUpdate { archive: archive.to_owned(), saved: Box::new(saved) };
        client.ask(&update).with_context(|| Context::member(archive))?;
        Ok(self.sent_bytes)
    }
}

impl Sink for RemoteSink {
    fn has(&self, hash: &BlockHash) -> Result<bool> {
        self.known.contains(hash)
    }

    fn encode(&self, block: &[u8]) -> Vec<u8> {
        block.to_vec()
    }

    fn append(&mut self, hash: &BlockHash, encoded: Vec<u8>) -> Result<()> {
        // twice among the blocks that were prepared together
        if self.known.was_just_added(hash) {
            return Ok(());
        }
        self.known.add(hash, 0)?;
        self.queued_bytes += encoded.len();
        self.queue.push((*hash, encoded));
        if self.queue.len() < QUEUE_BLOCKS && self.queued_bytes < QUEUE_BYTES { Ok(()) } else { self.send() }
    }

    fn make_room(&self) -> Result<()> {
        Ok(())
    }
}
