//! Decides which columns of a conversion are compressed: those that get smaller by it.

use std::ops::Range;
use std::time::Instant;

use crate::error::Result;
use crate::h5::{Compression, Effort, FilterScratch, Plugin};
use crate::source::blocks::RowBlocks;
use crate::table::{ColumnCells, ColumnInfo};
use crate::value::{DataType, Values};

/// Size in bytes below which a dataset is not compressed, as the filter would cost more than it saves.
const SMALL_DATASET_BYTES: u64 = 1 << 10;
const PROBE_FROM_BYTES: u64 = 1 << 20;
const PROBE_BYTES: u64 = 256 << 10;
/// Largest compressed size of a sample, as a fraction of its bytes, with which a column of floating-point numbers is
/// compressed.
const WORTHWHILE: f64 = 0.95;
/// Number of rows from which the array of row numbers is compressed.
const MANY_ROWS: u64 = 128;

/// How the datasets of a conversion are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compress {
    /// All datasets of numbers are compressed in the same way.
    With(Compression),
    /// Datasets of numbers and Bools from 1 KiB on are compressed with gzip, which every HDF5 reader has. Columns of
    /// floating-point numbers of at least 1 MiB are left uncompressed if a sample of the cells gets less than 5 %
    /// smaller.
    Auto,
    /// Hypercubes of numbers are not compressed: each dataset is one block of the tiles in their order, so that the
    /// file can share its bytes with the source. Other datasets are compressed with gzip, as with `Auto`.
    Shared,
}

impl Compress {
    /// Parses `auto` (gzip, except for floating-point columns that hardly shrink), `shared` (hypercubes of numbers
    /// uncompressed, so that files can share bytes), `none`, or a codec with or without a level: `gzip`, `gzip:6`.
    /// [`Compression::forms`] lists the codecs.
    ///
    /// # Errors
    /// `Usage` as for [`Compression::parse`].
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Compress::Auto),
            "shared" => Ok(Compress::Shared),
            _ => Compression::parse(text).map(Compress::With),
        }
    }

    /// The HDF5 plugin that other programs need to read files with this compression; `None` if every libhdf5 reads them.
    pub fn plugin(self) -> Option<Plugin> {
        match self {
            Compress::With(compression) => compression.plugin(),
            Compress::Auto | Compress::Shared => None,
        }
    }

    /// Decides how a column of `bytes` bytes is compressed, by a sample of its cells in `rows` if it is large.
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
        if compression.is_none() || bytes < PROBE_FROM_BYTES {
            return Ok(Choice::from(compression));
        }
        let sample = Sample::take(&probe(info, cells, rows)?, data_type, compression)?;
        // whole numbers and flags are compressed anyway: a sample shows little of what repeats in them
        let noisy = matches!(data_type, DataType::Float | DataType::Double | DataType::Complex | DataType::DComplex);
        let is_left = !matches!(self, Compress::With(_)) && noisy && sample.remains > WORTHWHILE;
        Ok(Choice { compression: if is_left { Compression::NONE } else { compression }, sample: Some(sample) })
    }

    /// Compression of the row numbers of `rows` rows, and of the arrays that tell where the cells of these rows are.
    pub(super) fn of_row_numbers(self, rows: u64) -> Compression {
        match self {
            Compress::With(compression) => compression,
            Compress::Auto | Compress::Shared if rows > MANY_ROWS => Compression::portable(Effort::Balanced),
            Compress::Auto | Compress::Shared => Compression::NONE,
        }
    }
}

/// How a column is compressed, and the sample by which that was decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Choice {
    pub(super) compression: Compression,
    /// Result of compressing a sample of the column (some of its cells); `None` if no sample was taken, as for a column
    /// of less than 1 MiB.
    pub(super) sample: Option<Sample>,
}

/// Result of compressing a sample of a column: how much remains, and how long it took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// Size of a sample of the column's elements after shuffle and the chosen codec, as a fraction of the uncompressed
    /// size: 1 if nothing is saved, more if it grows.
    pub(crate) remains: f64,
    /// Time in seconds that one thread takes to compress a byte (before compression) of the sample of the column's
    /// elements.
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
        Choice { compression, sample: None }
    }
}

impl From<Compression> for Compress {
    fn from(compression: Compression) -> Self {
        Compress::With(compression)
    }
}

/// Reads some elements of a column from the middle of `rows`, as a sample.
fn probe(info: &ColumnInfo, cells: &dyn ColumnCells, rows: &Range<u64>) -> Result<Values> {
    let middle = rows.start + (rows.end - rows.start) / 2;
    let mut values = Values::new(info.data_type());
    for block in RowBlocks::new(info, cells, middle..rows.end, PROBE_BYTES) {
        block?.read(cells, &mut values)?;
        if (values.len() * info.data_type().size()) as u64 >= PROBE_BYTES / 2 {
            break;
        }
    }
    Ok(values)
}
