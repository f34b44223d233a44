//! Decides which columns of a conversion are compressed: those that get smaller by it.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::h5::{Compression, Effort, FilterScratch, Plugin};
use crate::source::blocks::RowBlocks;
use crate::table::{Access, ColumnCells, ColumnInfo};
use crate::value::{DataType, Values};

/// Below this size, a filter would cost more than it saves.
const SMALL_DATASET_BYTES: u64 = 1 << 10;
const PROBE_FROM_BYTES: u64 = 1 << 20;
const PROBE_BYTES: u64 = 256 << 10;
/// Largest compressed fraction of a sample for which floating-point numbers are compressed.
const WORTHWHILE: f64 = 0.95;
/// Assumed bytes of elements decoded per second in a column that can be decoded in row order only.
const IN_ORDER_RATE: f64 = 5.5e7;
/// Rows from which row numbers are compressed.
const MANY_ROWS: u64 = 128;

/// How the datasets of a conversion are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compress {
    /// All datasets of numbers are compressed in the same way.
    With(Compression),
    /// Datasets of numbers and Bools from 1 KiB on are compressed with gzip, which every HDF5
    /// reader has. Columns of floating-point numbers of at least 1 MiB are left uncompressed if a
    /// sample of the cells gets less than 5 % smaller.
    Auto,
    /// Hypercubes of numbers are not compressed: each dataset is one block of the tiles in their
    /// order, so that the file can share its bytes with the source. Other datasets are compressed
    /// with gzip, as with `Auto`.
    Shared,
}

impl Compress {
    /// The HDF5 plugin that other programs need to read files with this compression; `None` if
    /// every libhdf5 reads them.
    pub fn plugin(self) -> Option<Plugin> {
        match self {
            Compress::With(compression) => compression.plugin(),
            Compress::Auto | Compress::Shared => None,
        }
    }

    /// A large column of `bytes` bytes is judged by a sample of its cells in `rows`.
    pub(super) fn of_column(
        self,
        info: &ColumnInfo,
        bytes: u64,
        cells: &dyn ColumnCells,
        rows: &Range<u64>,
    ) -> Result<Choice> {
        let data_type = info.data_type();
        if !data_type.is_fixed_size() || bytes == 0 {
            return Ok(Choice::from(Compression::NONE));
        }
        let compression = match self {
            Compress::With(compression) => compression,
            Compress::Auto | Compress::Shared if bytes < SMALL_DATASET_BYTES => Compression::NONE,
            Compress::Auto | Compress::Shared => Compression::portable(Effort::Balanced),
        };
        if bytes < PROBE_FROM_BYTES || (compression.is_none() && cells.access() == Access::Copied) {
            return Ok(Choice::from(compression));
        }
        let (values, decoding) = probe(info, cells, rows)?;
        if compression.is_none() {
            return Ok(Choice { decoding, ..Choice::from(compression) });
        }
        let sample = Sample::take(&values, data_type, compression)?;
        // whole numbers and flags are compressed anyway: a sample shows little of their repetitions
        let noisy = matches!(data_type, DataType::Float | DataType::Double | DataType::Complex | DataType::DComplex);
        let is_left = !matches!(self, Compress::With(_)) && noisy && sample.remains > WORTHWHILE;
        let compression = if is_left { Compression::NONE } else { compression };
        Ok(Choice { compression, sample: Some(sample), decoding })
    }

    /// Compression of elements that repeat other parts of the file: they are to take little space.
    pub(super) fn of_derived(self, bytes: u64) -> Compression {
        match self {
            Compress::With(compression) if !compression.is_none() => compression,
            _ if bytes < SMALL_DATASET_BYTES => Compression::NONE,
            _ => Compression::portable(Effort::Balanced),
        }
    }

    /// Compression of row numbers, and of arrays that tell where cells are.
    pub(super) fn of_row_numbers(self, rows: u64) -> Compression {
        match self {
            Compress::With(compression) => compression,
            Compress::Auto | Compress::Shared if rows > MANY_ROWS => Compression::portable(Effort::Balanced),
            Compress::Auto | Compress::Shared => Compression::NONE,
        }
    }
}

impl FromStr for Compress {
    type Err = Error;

    /// Parses `auto` (gzip, except for floating-point columns that hardly shrink), `shared`
    /// (hypercubes of numbers uncompressed, so that files can share bytes), `none`, or a codec with
    /// or without a level: `gzip`, `gzip:6`. [`Compression::forms`] lists the codecs.
    ///
    /// # Errors
    /// `Usage` as for [`Compression`].
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Compress::Auto),
            "shared" => Ok(Compress::Shared),
            _ => text.parse::<Compression>().map(Compress::With),
        }
    }
}

/// The text that [`FromStr`] reads.
impl fmt::Display for Compress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compress::With(compression) => compression.fmt(f),
            Compress::Auto => f.write_str("auto"),
            Compress::Shared => f.write_str("shared"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Choice {
    pub(super) compression: Compression,
    /// Missing for columns of less than 1 MiB.
    pub(super) sample: Option<Sample>,
    /// Seconds in which one thread decodes a byte; 0 if elements are stored as they are.
    pub(super) decoding: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Size after shuffle and codec as a fraction of the uncompressed size; may exceed 1.
    pub(crate) remains: f64,
    /// Seconds in which one thread compresses a byte.
    pub(crate) seconds_per_byte: f64,
}

impl Sample {
    fn take(values: &Values, data_type: DataType, compression: Compression) -> Result<Self> {
        let bytes = values.le_bytes().filter(|bytes| !bytes.is_empty());
        let Some(bytes) = bytes else { return Ok(Sample { remains: 1.0, seconds_per_byte: 0.0 }) };
        let pipeline = compression.pipeline(data_type.size());
        let (mut scratch, mut packed) = (FilterScratch::default(), Vec::new());
        // the first round also pays for the memory that is used again later
        let mut seconds = 0.0;
        for _ in 0..2 {
            let started = Instant::now();
            pipeline.encode(&mut scratch, &bytes, &mut packed)?;
            seconds = started.elapsed().as_secs_f64();
        }
        let len = bytes.len() as f64;
        Ok(Sample { remains: packed.len() as f64 / len, seconds_per_byte: seconds / len })
    }
}

impl From<Compression> for Choice {
    fn from(compression: Compression) -> Self {
        Choice { compression, sample: None, decoding: 0.0 }
    }
}

impl From<Compression> for Compress {
    fn from(compression: Compression) -> Self {
        Compress::With(compression)
    }
}

/// Elements from the middle of `rows`, or the start if decoded in order; and `Choice::decoding`.
fn probe(info: &ColumnInfo, cells: &dyn ColumnCells, rows: &Range<u64>) -> Result<(Values, f64)> {
    let access = cells.access();
    let first = if access == Access::InOrder { rows.start } else { rows.start.midpoint(rows.end) };
    let mut values = Values::new(info.data_type());
    let mut blocks = RowBlocks::new(info, cells, first..rows.end, PROBE_BYTES);
    for block in blocks.by_ref() {
        block?.read(cells, &mut values)?;
        if (values.len() * info.data_type().size()) as u64 >= PROBE_BYTES / 2 {
            break;
        }
    }
    let decoding = match access {
        Access::Copied => 0.0,
        Access::Computed => {
            // the first cells also pay for tables and memory that are used again
            let (mut further, started) = (Values::new(info.data_type()), Instant::now());
            blocks.next().map_or(Ok(()), |block| block?.read(cells, &mut further))?;
            match further.len() * info.data_type().size() {
                0 => 0.0,
                bytes => started.elapsed().as_secs_f64() / bytes as f64,
            }
        }
        // the first cells also pay for many that follow
        Access::InOrder => 1.0 / IN_ORDER_RATE,
    };
    Ok((values, decoding))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use bstr::BString;

    use super::*;
    use crate::schema::ColumnDesc;
    use crate::value::{Region, Shape};

    /// Cells of 256 KiB each; notes the rows that are read.
    struct Noted(Access, Mutex<Vec<u64>>);

    impl ColumnCells for Noted {
        fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
            Ok(Some(Shape::from([64 << 10])))
        }

        fn read_cell(&self, row: u64, _region: Option<&Region>, out: &mut Values) -> Result<()> {
            self.1.lock().unwrap().push(row);
            *out = Values::Float(vec![1.0; 64 << 10]);
            Ok(())
        }

        fn access(&self) -> Access {
            self.0
        }
    }

    #[test]
    fn samples_are_where_they_cost_little() {
        let desc = ColumnDesc::array::<f32>("DATA");
        let manager = BString::default();
        let info = ColumnInfo { desc, shape: None, manager_name: manager.clone(), manager, may_be_undefined: false };
        let choose = |access, compress: Compress| {
            let cells = Noted(access, Mutex::default());
            let choice = compress.of_column(&info, 100 << 18, &cells, &(0..100)).unwrap();
            (cells.1.into_inner().unwrap(), choice.sample.is_some(), choice.decoding > 0.0)
        };
        let none = Compress::With(Compression::NONE);
        assert_eq!(choose(Access::Copied, Compress::Auto), (vec![50], true, false));
        assert_eq!(choose(Access::Copied, none), (vec![], false, false));
        // a column that ends with the sample
        let last = Noted(Access::Computed, Mutex::default());
        assert_eq!(none.of_column(&info, 100 << 18, &last, &(99..100)).unwrap().decoding, 0.0);
        // one cell for the sample, and one to measure the time
        assert_eq!(choose(Access::Computed, Compress::Auto), (vec![50, 51], true, true));
        assert_eq!(choose(Access::Computed, none), (vec![50, 51], false, true));
        // the first cell of those that are decoded in order
        assert_eq!(choose(Access::InOrder, Compress::Auto), (vec![0], true, true));
        assert_eq!(choose(Access::InOrder, none), (vec![0], false, true));
    }
}
