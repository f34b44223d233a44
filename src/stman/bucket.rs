//! The bucket file that StandardStMan and IncrementalStMan share: a header, then buckets of equal size.
//!
//! ```text
//! 0        512        512+B      512+2B            512+n*B
//! +--------+----------+----------+-- ... -----------+----------
//! | header | bucket 0 | bucket 1 |                  | other
//! +--------+----------+----------+-- ... -----------+----------
//! ```

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{Paged, ReadAt};

/// Of the header, most of it unused.
const HEADER_BYTES: u64 = 512;

/// The buckets of a file.
#[derive(Debug)]
pub(super) struct Buckets {
    pub(super) file: Paged,
    /// Of each bucket.
    pub(super) bucket_bytes: u32,
    pub(super) count: u32,
}

impl Buckets {
    /// Checks that the file holds `count` buckets of `bucket_bytes`.
    pub(super) fn new(file: Arc<dyn ReadAt>, bucket_bytes: u32, count: u32) -> Result<Self> {
        let buckets = Buckets { file: Paged::new(file)?, bucket_bytes, count };
        let len = buckets.file.len()?;
        if len < buckets.end() {
            return Err(Error::format(format!(
                "the header announces {count} buckets of {bucket_bytes} bytes, so {} bytes in all, \
                 but the file has {len}",
                buckets.end()
            )));
        }
        Ok(buckets)
    }

    /// The offset of the byte behind the last bucket.
    pub(super) fn end(&self) -> u64 {
        HEADER_BYTES + u64::from(self.count) * u64::from(self.bucket_bytes)
    }

    /// The offset of a bucket, of which `what` is kept for errors.
    pub(super) fn offset(&self, bucket: u32, what: impl std::fmt::Display) -> Result<u64> {
        if bucket >= self.count {
            return Err(Error::format(format!("{what} is bucket {bucket}, the file has {}", self.count)));
        }
        Ok(HEADER_BYTES + u64::from(bucket) * u64::from(self.bucket_bytes))
    }
}
