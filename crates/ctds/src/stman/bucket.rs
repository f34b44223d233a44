//! The bucket file that StandardStMan and IncrementalStMan share: a header, then buckets of equal
//! size.
//!
//! ```text
//! 0        512        512+B      512+2B            512+n*B
//! +--------+----------+----------+-- ... -----------+----------
//! | header | bucket 0 | bucket 1 |                  | other
//! +--------+----------+----------+-- ... -----------+----------
//! ```

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{Paged, PagedMut, ReadAt, WriteAt, read_array};
use crate::value::{Record, Value, Values};

/// Mostly unused.
const HEADER_BYTES: u64 = 512;

/// Offsets are bytes of the file.
#[derive(Debug)]
pub(super) struct Buckets<F = Paged> {
    pub(super) file: F,
    pub(super) bucket_bytes: u32,
    pub(super) count: u32,
}

impl Buckets {
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
}

impl<F> Buckets<F> {
    pub(super) fn end(&self) -> u64 {
        HEADER_BYTES + u64::from(self.count) * u64::from(self.bucket_bytes)
    }

    /// Fails for a bucket beyond the end of the file; the error names its content `what`.
    pub(super) fn offset(&self, bucket: u32, what: impl std::fmt::Display) -> Result<u64> {
        if bucket >= self.count {
            return Err(Error::format(format!("{what} is bucket {bucket}, the file has {}", self.count)));
        }
        Ok(HEADER_BYTES + u64::from(bucket) * u64::from(self.bucket_bytes))
    }
}

/// The buckets of a file that is being written, and the list of the free ones. A free bucket begins
/// with the number of the next one: i32, big-endian, -1 ends the list. formats/stman.md 1.5.
#[derive(Debug)]
pub(super) struct BucketsMut {
    pub(super) buckets: Buckets<PagedMut>,
    pub(super) free: u32,
    pub(super) first_free: Option<u32>,
}

impl BucketsMut {
    pub(super) fn create(file: Arc<dyn WriteAt>, bucket_bytes: u32) -> Result<Self> {
        let file = PagedMut::new(file)?;
        file.grow(HEADER_BYTES);
        Ok(BucketsMut { buckets: Buckets { file, bucket_bytes, count: 0 }, free: 0, first_free: None })
    }

    pub(super) fn file(&self) -> &PagedMut {
        &self.buckets.file
    }

    pub(super) fn bytes(&self) -> u32 {
        self.buckets.bucket_bytes
    }

    pub(super) fn offset(&self, bucket: u32) -> u64 {
        HEADER_BYTES + u64::from(bucket) * u64::from(self.bytes())
    }

    /// Returns a zeroed bucket, a free one or a new one at the end; `Limit` beyond 31 bits.
    pub(super) fn take(&mut self) -> Result<u32> {
        if let Some(bucket) = self.first_free {
            let offset = self.offset(bucket);
            self.first_free = u32::try_from(i32::from_be_bytes(read_array(self.file(), offset)?)).ok();
            self.free -= 1;
            self.file().write(offset, &vec![0; self.bytes() as usize])?;
            return Ok(bucket);
        }
        let bucket = self.buckets.count;
        if bucket >= i32::MAX as u32 {
            return Err(Error::limit(format!(
                "the file would have more than {bucket} buckets of {} bytes: a larger bucket is needed",
                self.bytes()
            )));
        }
        self.buckets.count += 1;
        self.file().grow(self.buckets.end());
        Ok(bucket)
    }

    pub(super) fn give(&mut self, bucket: u32) -> Result<()> {
        self.file().write(self.offset(bucket), &link(self.first_free).to_be_bytes())?;
        self.first_free = Some(bucket);
        self.free += 1;
        Ok(())
    }

    pub(super) fn flush(&mut self, header: &[u8]) -> Result<()> {
        self.file().write(0, header)?;
        self.file().flush()
    }
}

/// A stored reference to a bucket; -1 for none.
pub(super) fn link(bucket: Option<u32>) -> i32 {
    bucket.map_or(-1, |bucket| bucket as i32)
}

/// Under the names of casacore's `SPEC` records; `cached` buckets are a hint for casacore.
pub(super) fn parameters(bucket_bytes: u32, cached: u32) -> Record {
    let mut record = Record::default();
    for (name, value) in [("BUCKETSIZE", bucket_bytes), (CACHE_PARAMETER, cached)] {
        record.set(name, Value::Scalar(Values::Int(vec![value as i32])));
    }
    record
}

/// A parameter within `range`; `default` if it is missing.
pub(super) fn parameter(parameters: &Record, name: &str, default: i64, range: RangeInclusive<i64>) -> Result<i64> {
    let value = parameters.integer(name).unwrap_or(default);
    if parameters.get(name).is_some() && parameters.integer(name).is_none() || !range.contains(&value) {
        let message = format!("{name} is an integer from {} to {}, not {value}", range.start(), range.end());
        return Err(Error::usage(message));
    }
    Ok(value)
}

/// Buckets that casacore is to keep in memory, as a hint.
pub(super) const CACHE_PARAMETER: &str = "PERSCACHESIZE";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Fails;
    use crate::io::MemoryFile;

    #[test]
    fn free_buckets_are_taken_first() {
        let mut buckets = BucketsMut::create(Arc::new(MemoryFile::default()), 128).unwrap();
        assert_eq!([0; 3].map(|_| buckets.take().unwrap()), [0, 1, 2]);
        buckets.file().write(buckets.offset(0), &[7; 384]).unwrap();
        buckets.give(1).unwrap();
        buckets.give(0).unwrap();
        assert_eq!((buckets.free, buckets.first_free), (2, Some(0)));
        assert_eq!(read_array(buckets.file(), 512).unwrap(), 1i32.to_be_bytes());
        assert_eq!(read_array(buckets.file(), 640).unwrap(), (-1i32).to_be_bytes());
        assert_eq!([0; 3].map(|_| buckets.take().unwrap()), [0, 1, 3]);
        assert_eq!(read_array(buckets.file(), 640).unwrap(), [0; 128]);
        assert_eq!((buckets.free, buckets.first_free), (0, None));
        assert_eq!(buckets.file().len().unwrap(), 512 + 4 * 128);
    }

    #[test]
    fn buckets_have_numbers_of_31_bits() {
        let mut buckets = BucketsMut::create(Arc::new(MemoryFile::default()), 128).unwrap();
        buckets.buckets.count = i32::MAX as u32;
        buckets.take().fails(
            crate::ErrorKind::Limit,
            "the file would have more than 2147483647 buckets of 128 bytes: a larger bucket is needed",
        );
    }
}
