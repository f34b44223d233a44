//! Where a file will be read.

/// Chunks aim at this many bytes.
pub(super) const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks of a file in an object store aim at this many bytes: few requests for much data.
const CLOUD_CHUNK_BYTES: u64 = 4 << 20;
/// Bytes of a page of a file in an object store: a few hold the metadata of a MeasurementSet, and chunks waste little of their
/// last page. docs/cloud.md has the measurements.
const CLOUD_PAGE_BYTES: u64 = 128 << 10;

/// Where a file will be read: how large its chunks are, and where its metadata lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Profile {
    /// A disk: chunks of about 1 MiB, tiles as they are.
    #[default]
    Disk,
    /// An object store, read by HTTP requests for ranges of bytes: chunks of about 4 MiB, and metadata together in pages.
    Cloud,
}

impl Profile {
    /// Bytes that chunks aim at.
    pub(super) fn chunk_bytes(self) -> u64 {
        match self {
            Profile::Disk => CHUNK_BYTES,
            Profile::Cloud => CLOUD_CHUNK_BYTES,
        }
    }

    /// Tiles with fewer bytes do not become chunks of their own.
    pub(super) fn least_tile_bytes(self) -> u64 {
        match self {
            Profile::Disk => 0,
            Profile::Cloud => CLOUD_CHUNK_BYTES / 4,
        }
    }

    /// Bytes of the pages in which HDF5 gives out space; `None`: no pages.
    pub fn page_bytes(self) -> Option<u64> {
        (self == Profile::Cloud).then_some(CLOUD_PAGE_BYTES)
    }
}
