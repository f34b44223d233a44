//! Opens the files that hold the chunks of a BLZ array: one numbered file for each chunk, or a
//! single file for all.

use std::sync::Arc;

use crate::container::Container;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::superchunk::{Place, Superchunk};

/// Largest number of bytes of decoded chunks of an array that are held in memory at a time; a
/// single larger chunk is held nevertheless.
pub const BATCH_BYTES: u64 = 32 << 20;

/// Most chunks that are held in memory at a time, since each may keep a file of its own open.
pub(crate) const BATCH_FILES: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Naming {
    /// `__0.blp`, `__1.blp`, … as blz and bcolz do.
    Blp,
    /// `__1__.bin`, `__2__.bin`, … as in the first description of the BLZ format.
    Bin,
    One(String),
}

/// The files of chunks of an array: where they are and how they are named.
#[derive(Debug, Clone)]
pub struct ChunkFiles {
    folder: Arc<dyn Container>,
    naming: Naming,
}

/// A chunk of an array, and the file that it is in.
pub struct StoredChunk {
    pub(crate) superchunk: Arc<Superchunk>,
    pub(crate) file: Arc<str>,
    pub place: Place,
}

impl StoredChunk {
    /// The stored bytes of the chunk, compressed, after its checksum was verified and each block of
    /// the Blosc chunk was found to be present.
    ///
    /// # Errors
    /// `Format` if it is damaged.
    pub fn stored(&self) -> Result<Vec<u8>> {
        self.superchunk.stored_whole(&self.place).with_context(|| Context::member(&*self.file))
    }

    /// Verifies the stored chunk against its checksum, and returns its decoded bytes.
    ///
    /// # Errors
    /// `Format` if it is damaged.
    pub fn decoded(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.superchunk.decode(&self.place, &mut bytes).with_context(|| Context::member(&*self.file))?;
        Ok(bytes)
    }
}

fn is_missing(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

impl ChunkFiles {
    /// Looks only for the first file, as there may be millions; `None` if it is missing.
    pub(crate) fn in_folder(folder: Arc<dyn Container>) -> Result<Option<Self>> {
        for naming in [Naming::Blp, Naming::Bin] {
            let files = ChunkFiles { folder: folder.clone(), naming };
            match files.folder.open(&files.name(0)) {
                Ok(_) => return Ok(Some(files)),
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    pub(crate) fn one(folder: Arc<dyn Container>, name: &str) -> Self {
        ChunkFiles { folder, naming: Naming::One(name.to_owned()) }
    }

    pub(crate) fn name(&self, number: u64) -> String {
        match &self.naming {
            Naming::Blp => format!("__{number}.blp"),
            Naming::Bin => format!("__{}__.bin", number.saturating_add(1)),
            Naming::One(name) => name.clone(),
        }
    }

    fn open(&self, name: &str) -> Result<Superchunk> {
        // an error of opening has the name already
        let file = self.folder.open(name)?;
        Superchunk::open(file).with_context(|| Context::member(name))
    }

    pub(crate) fn first(&self) -> Result<Superchunk> {
        self.open(&self.name(0))
    }

    /// Stops when `visit` returns false. Returns the first numbered file that is missing; `None` if
    /// stopped, or for a single file; `Format` if a header is damaged.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(StoredChunk) -> Result<bool>) -> Result<Option<String>> {
        for number in 0.. {
            let name = self.name(number);
            let superchunk = match self.open(&name) {
                Ok(superchunk) => Arc::new(superchunk),
                Err(error) if is_missing(&error) => return Ok(Some(name)),
                Err(error) => return Err(error),
            };
            let file: Arc<str> = name.as_str().into();
            for place in superchunk.walk() {
                let place = place.with_context(|| Context::member(&name))?;
                let (superchunk, file) = (superchunk.clone(), file.clone());
                if !visit(StoredChunk { superchunk, file, place })? {
                    return Ok(None);
                }
            }
            if let Naming::One(_) = self.naming {
                break;
            }
        }
        Ok(None)
    }
}
