//! Sizes of chunks and of HDF5 pages for a converted file, which depend on where the file will be
//! read: on a disk or in an object store.

pub(super) const CHUNK_BYTES: u64 = 1 << 20;
/// Uncompressed, as all sizes of chunks here: few requests for much data.
const CLOUD_CHUNK_BYTES: u64 = 4 << 20;
/// A few pages hold the metadata of a MeasurementSet, and chunks waste little of their last page.
/// docs/howto/cloud.md has the measurements.
const CLOUD_PAGE_BYTES: u64 = 128 << 10;

/// Where a converted HDF5 file will be read; it decides how large chunks are, and where the
/// metadata are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Profile {
    /// The file is read from a disk: chunks have about 1 MiB, or the size of the casacore table's
    /// tiles.
    #[default]
    Disk,
    /// The file is read from an object store, by HTTP requests for ranges of bytes: chunks have
    /// about 4 MiB, and the metadata are together in pages.
    Cloud,
}

impl Profile {
    pub(super) fn chunk_bytes(self) -> u64 {
        match self {
            Profile::Disk => CHUNK_BYTES,
            Profile::Cloud => CLOUD_CHUNK_BYTES,
        }
    }

    /// Smaller tiles do not become chunks of their own.
    pub(super) fn least_tile_bytes(self) -> u64 {
        match self {
            Profile::Disk => 0,
            Profile::Cloud => CLOUD_CHUNK_BYTES / 4,
        }
    }

    /// Size in bytes of the pages in which HDF5 allocates space in the converted file; `None` if
    /// the file is not divided into pages.
    pub fn page_bytes(self) -> Option<u64> {
        (self == Profile::Cloud).then_some(CLOUD_PAGE_BYTES)
    }
}
