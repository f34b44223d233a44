//! The layout of StandardStMan's buckets: the number of rows in a bucket, and where each column
//! begins in the bucket. formats/stman.md 1.6.

use crate::error::{Error, Result};
use crate::stman::bucket::parameter;
use crate::value::Record;

const LEAST_BYTES: u64 = 128;
/// Largest size chosen for a number of rows; exceeded only if one row is larger.
const MAX_BYTES: u64 = 32768;
/// Used if neither BUCKETROWS nor BUCKETSIZE is given.
const DEFAULT_ROWS: u64 = 32;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) bucket_bytes: u32,
    pub(super) rows: u32,
}

impl Layout {
    /// Chooses as casacore does, for cells of `bits`. `BUCKETSIZE`: bytes, or rows if negative;
    /// `BUCKETROWS`: rows. `Usage` for sizes beyond 31 bits, `Limit` if a row does not fit them.
    pub(super) fn choose(parameters: &Record, bits: &[u64]) -> Result<Self> {
        let most = i64::from(i32::MAX);
        let size = parameter(parameters, "BUCKETSIZE", 0, -most..=most)?;
        let mut rows = parameter(parameters, "BUCKETROWS", 0, 0..=most)? as u64;
        if rows == 0 && size <= 0 {
            rows = if size < 0 { size.unsigned_abs() } else { DEFAULT_ROWS };
        }
        let (mut bytes, mut fitting) = fit(size.max(0) as u64, rows, bits);
        if rows > fitting {
            // the same number in each of the buckets that they need
            let buckets = rows.div_ceil(fitting);
            (bytes, fitting) = fit(bytes, rows.div_ceil(buckets), bits);
        }
        match (i32::try_from(bytes), u32::try_from(fitting)) {
            (Ok(bytes), Ok(rows)) => Ok(Layout { bucket_bytes: bytes as u32, rows }),
            _ => Err(Error::limit(format!("a row takes {bytes} bytes, a bucket can have 2^31"))),
        }
    }
}

fn fit(bytes: u64, rows: u64, bits: &[u64]) -> (u64, u64) {
    let bytes = bytes.max(LEAST_BYTES);
    if rows == 0 {
        return most_rows(bytes, bits);
    }
    let wanted = all_bytes(rows, bits);
    let bytes = wanted.clamp(LEAST_BYTES, MAX_BYTES);
    if bytes == wanted { (bytes, rows) } else { most_rows(bytes, bits) }
}

/// `bytes` and the rows that fit; the size of one row and 1 if that is larger.
fn most_rows(bytes: u64, bits: &[u64]) -> (u64, u64) {
    if all_bytes(1, bits) > bytes {
        return (all_bytes(1, bits), 1);
    }
    // a row takes a bit at least, or nothing at all
    let (mut low, mut high) = (1, bytes * 8 + 1);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if all_bytes(middle, bits) <= bytes { low = middle } else { high = middle }
    }
    (bytes, low)
}

pub(super) fn column_bytes(rows: u64, bits: u64) -> u64 {
    rows.saturating_mul(bits).div_ceil(8)
}

fn all_bytes(rows: u64, bits: &[u64]) -> u64 {
    bits.iter().fold(0, |sum, &bits| sum.saturating_add(column_bytes(rows, bits)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Value, Values};

    fn choose(parameter: Option<(&str, i32)>, bits: &[u64]) -> (u32, u32) {
        let mut parameters = Record::default();
        if let Some((name, value)) = parameter {
            parameters.set(name, Value::Scalar(Values::Int(vec![value])));
        }
        let layout = Layout::choose(&parameters, bits).unwrap();
        (layout.bucket_bytes, layout.rows)
    }

    /// Values of `getdminfo` and of the index of tables that casacore made.
    #[test]
    fn as_casacore_chooses() {
        let sample = [32, 1, 96, 32, 96, 64];
        assert_eq!(choose(Some(("BUCKETROWS", 4)), &sample), (161, 4));
        assert_eq!(choose(Some(("BUCKETSIZE", -4)), &sample), (161, 4));
        assert_eq!(choose(None, &[32, 96]), (512, 32));
        assert_eq!(choose(Some(("BUCKETROWS", 7)), &[32, 96]), (128, 8));
        assert_eq!(choose(Some(("BUCKETSIZE", 1)), &[32]), (128, 32));
        assert_eq!(choose(Some(("BUCKETSIZE", 1)), &[8 * 1000]), (1000, 1));
        assert_eq!(choose(Some(("BUCKETROWS", 10000)), &[64]), (26672, 3334));
        assert_eq!(choose(Some(("BUCKETROWS", 8192)), &[64]), (32768, 4096));
        assert_eq!(choose(None, &[0]), (128, 1024));
    }

    #[test]
    fn impossible_sizes_are_rejected() {
        let mut parameters = Record::default();
        parameters.set("BUCKETSIZE", Value::string("large"));
        assert!(Layout::choose(&parameters, &[32]).is_err());
        parameters.set("BUCKETSIZE", Value::Scalar(Values::Int64(vec![1 << 31])));
        assert_eq!(Layout::choose(&parameters, &[32]).unwrap_err().kind(), crate::ErrorKind::Usage);
        assert_eq!(Layout::choose(&Record::default(), &[1 << 40]).unwrap_err().kind(), crate::ErrorKind::Limit);
    }
}
