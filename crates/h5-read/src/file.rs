//! An open file: its storage, its superblock, and how its bytes are read.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::bytes::{Bytes, Sizes};
use crate::checksum;
use crate::error::{Error, ErrorKind, Result, Within};
use crate::filters::{Filters, NoFilters};
use crate::storage::Storage;
use crate::superblock::Superblock;
use crate::walk::Walk;

/// Pause before a structure is read again that a writer may just be writing.
const RETRY_PAUSE: Duration = Duration::from_micros(100);
/// Longest time of reading one structure again.
const RETRY_TIME: Duration = Duration::from_millis(50);
/// Time after a structure was given up in which others are read three times only.
const GIVE_UP_TIME: Duration = Duration::from_secs(1);

/// Bounds for reading a file; a file that needs more is refused.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Largest structure that is read at once, in bytes: a node, a block of a heap, a block of an
    /// object header.
    pub structure_bytes: u64,
    /// Largest chunk, in bytes after decoding.
    pub chunk_bytes: u64,
    /// Largest result of [`Dataset::read`](crate::Dataset::read), in bytes.
    pub read_bytes: u64,
    /// Most levels of a B-tree, and of types within types.
    pub depth: u32,
    /// How often a structure is read until its checksum is right, in a file that a writer has open.
    /// The HDF5 library does so 100 times.
    pub attempts: u32,
}

impl Default for Limits {
    /// Structures of 64 MiB, chunks of 256 MiB, results of 512 MiB, 32 levels, 100 attempts.
    fn default() -> Self {
        Limits { structure_bytes: 64 << 20, chunk_bytes: 256 << 20, read_bytes: 512 << 20, depth: 32, attempts: 100 }
    }
}

/// An HDF5 file, open for reading. Clones share it.
#[derive(Clone)]
pub struct File {
    inner: Arc<Inner>,
    filters: Option<Arc<dyn Filters + Send + Sync>>,
    /// Bytes of structures that may still be read; `None` without a limit.
    budget: Option<Arc<AtomicU64>>,
}

struct Inner {
    storage: Box<dyn Storage>,
    superblock: Superblock,
    limits: Limits,
    /// Bytes of the storage; `None` while a writer may lengthen it.
    len: Option<u64>,
    /// When a structure was last given up that stayed damaged.
    given_up: Mutex<Option<Instant>>,
}

impl File {
    /// Opens the HDF5 file in `storage`.
    ///
    /// # Errors
    /// `Damaged` if it is not HDF5; `Io`.
    pub fn open(storage: impl Storage + 'static) -> Result<Self> {
        Self::open_with(storage, Limits::default())
    }

    /// As [`open`](Self::open), with limits of the caller's.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(storage: impl Storage + 'static, limits: Limits) -> Result<Self> {
        let superblock = Superblock::find(&storage)?;
        let len = if superblock.is_being_written() { None } else { Some(storage.len()?) };
        let inner = Inner { storage: Box::new(storage), superblock, limits, len, given_up: Mutex::new(None) };
        Ok(File { inner: Arc::new(inner), filters: None, budget: None })
    }

    /// The superblock, as it was when the file was opened.
    pub fn superblock(&self) -> &Superblock {
        &self.inner.superblock
    }

    /// The same file, whose groups may have filtered links; few files have any.
    #[must_use]
    pub fn with_filters(&self, filters: impl Filters + Send + Sync + 'static) -> Self {
        File { filters: Some(Arc::new(filters)), ..self.clone() }
    }

    /// The same file, of which structures of at most `bytes` bytes are read, by this clone and its
    /// clones together. More bytes are refused with [`ErrorKind::Limit`].
    ///
    /// An intact file has each structure once. In a file made to harm, many objects can have the
    /// same large parts, so that to visit all objects takes the product of both: a multiple of the
    /// file's size bounds it.
    #[must_use]
    pub fn with_budget(&self, bytes: u64) -> Self {
        File { budget: Some(Arc::new(AtomicU64::new(bytes))), ..self.clone() }
    }

    pub(crate) fn filters(&self) -> &dyn Filters {
        match &self.filters {
            Some(filters) => &**filters,
            None => &NoFilters,
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.inner.superblock.sizes
    }

    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.inner.len.map_or_else(|| self.inner.storage.len(), Ok)?)
    }

    pub(crate) fn walk(&self) -> Result<Walk> {
        Ok(Walk::new(self.len()?))
    }

    /// Offset in the storage of an address in the file.
    pub fn offset(&self, address: u64) -> Result<u64> {
        let offset = address.checked_add(self.inner.superblock.base);
        offset.ok_or_else(|| Error::damaged(format!("address {address:#x} is beyond every file")))
    }

    /// Address of an offset in the storage, the inverse of [`offset`](Self::offset).
    pub(crate) fn address(&self, offset: u64) -> u64 {
        offset.saturating_sub(self.inner.superblock.base)
    }

    fn spend(&self, bytes: u64) -> Result<()> {
        let Some(budget) = &self.budget else { return Ok(()) };
        let spent = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        spent.map(drop).map_err(|left| Error::limit(format!("of all structures, {left} more bytes may be read")))
    }

    /// Bytes of a structure, all of them in the file.
    pub(crate) fn read(&self, structure: &'static str, address: u64, bytes: u64) -> Result<Vec<u8>> {
        let read = || -> Result<_> {
            if bytes > self.inner.limits.structure_bytes {
                let limit = self.inner.limits.structure_bytes;
                return Err(Error::limit(format!("the structure has {bytes} bytes; the limit is {limit}")));
            }
            let (offset, len) = (self.offset(address)?, self.len()?);
            if offset.checked_add(bytes).is_none_or(|end| end > len) {
                return Err(Error::damaged(format!("{bytes} bytes are expected, but the file has {len} bytes")));
            }
            self.spend(bytes)?;
            let mut out = vec![0; bytes as usize];
            self.inner.storage.read_at(offset, &mut out)?;
            Ok(out)
        };
        read().within(|| place(structure, address))
    }

    /// Fills `out` with elements from an address on: neither a structure nor limited as one.
    ///
    /// # Errors
    /// `Damaged` if the file ends before; `Io`.
    pub fn read_at(&self, address: u64, out: &mut [u8]) -> Result<()> {
        let (offset, len) = (self.offset(address)?, self.len()?);
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > len) {
            let bytes = out.len();
            return Err(Error::damaged(format!(
                "{bytes} bytes are expected at byte {offset}, but the file has {len} bytes"
            )));
        }
        Ok(self.inner.storage.read_at(offset, out)?)
    }

    /// Replaces the bytes of `out`; allocates once they are known to be in the file.
    pub(crate) fn read_vec(&self, address: u64, bytes: u64, out: &mut Vec<u8>) -> Result<()> {
        let (offset, len) = (self.offset(address)?, self.len()?);
        let size = usize::try_from(bytes).ok().filter(|_| offset.checked_add(bytes).is_some_and(|end| end <= len));
        let size = size.ok_or_else(|| {
            Error::damaged(format!("{bytes} bytes are expected at byte {offset}, but the file has {len} bytes"))
        })?;
        out.resize(size, 0);
        Ok(self.inner.storage.read_at(offset, out)?)
    }

    /// Bytes of a structure whose last four are the checksum of those before. While a writer has
    /// the file open, it is read again until they fit (SWMR design, 4.3).
    pub(crate) fn sealed(&self, structure: &'static str, address: u64, bytes: u64) -> Result<Vec<u8>> {
        self.retried(|| {
            let found = self.read(structure, address, bytes)?;
            check(&found).within(|| place(structure, address))?;
            Ok(found)
        })
    }

    /// Repeats `read` on damage if a writer has the file open. After a structure that stayed
    /// damaged, others are given up at once for a while: a false claim of a writer costs little.
    pub(crate) fn retried<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        let mut given_up = read();
        // browsers can neither wait nor see a file change
        if given_up.is_ok() || !self.inner.superblock.is_being_written() || cfg!(target_family = "wasm") {
            return given_up;
        }
        let begin = Instant::now();
        for attempt in 1..self.inner.limits.attempts {
            match &given_up {
                // torn bytes can have any version
                Err(error) if matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Unsupported) => {}
                _ => return given_up,
            }
            if begin.elapsed() > RETRY_TIME || attempt > 2 && self.gave_up_since(begin) {
                break;
            }
            std::thread::sleep(RETRY_PAUSE);
            given_up = read();
        }
        if let Ok(mut last) = self.inner.given_up.lock() {
            *last = Some(Instant::now());
        }
        given_up
    }

    fn gave_up_since(&self, time: Instant) -> bool {
        let last = self.inner.given_up.lock().ok().and_then(|last| *last);
        last.is_some_and(|last| time.saturating_duration_since(last) < GIVE_UP_TIME)
    }

    pub(crate) fn bytes<'a>(&self, structure: &'static str, address: u64, bytes: &'a [u8]) -> Bytes<'a> {
        Bytes::new(structure, address.saturating_add(self.inner.superblock.base), bytes, self.sizes())
    }
}

fn place(structure: &str, address: u64) -> String {
    format!("{structure} at address {address}")
}

/// Compares the last four bytes with the checksum of those before.
fn check(bytes: &[u8]) -> Result<()> {
    let Some((sealed, stored)) = bytes.split_last_chunk::<4>() else {
        return Err(Error::damaged("the structure is too short for a checksum"));
    };
    checksum::check(u32::from_le_bytes(*stored), sealed)
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("File").field(&self.inner.superblock).finish()
    }
}
