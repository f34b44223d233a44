//! Which columns are compressed: where it gains.

use std::ops::Range;

use super::plan::{ColumnPlan, Compress};
use crate::error::Result;
use crate::h5::{Coder, Deflate, Pipeline, Stage};
use crate::source::blocks::RowBlocks;
use crate::table::{Cells, ColumnInfo};
use crate::value::{DataType, Values};

/// Datasets smaller than this are not worth a filter, nor a probe.
const SMALL_DATASET_BYTES: u64 = 1 << 10;
const PROBE_FROM_BYTES: u64 = 1 << 20;
const PROBE_BYTES: u64 = 256 << 10;
impl ColumnPlan {
    pub(super) fn choose_filter(
        &self,
        info: &ColumnInfo,
        cells: &dyn Cells,
        rows: &Range<u64>,
        compress: Compress,
    ) -> Result<Option<u8>> {
        let level = match compress {
            Compress::None => return Ok(None),
            _ if !self.data_type.is_fixed_size() || self.bytes == 0 => return Ok(None),
            Compress::Gzip(level) => return Ok(Some(level)),
            Compress::Auto => 4,
        };
        if self.bytes < SMALL_DATASET_BYTES {
            return Ok(None);
        }
        let noisy =
            matches!(self.data_type, DataType::Float | DataType::Double | DataType::Complex | DataType::DComplex);
        if noisy && self.bytes >= PROBE_FROM_BYTES && !gains(&probe(info, cells, rows)?, self.data_type) {
            return Ok(None);
        }
        Ok(Some(level))
    }
}

/// Some elements from the middle rows.
fn probe(info: &ColumnInfo, cells: &dyn Cells, rows: &Range<u64>) -> Result<Values> {
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

fn gains(values: &Values, data_type: DataType) -> bool {
    let Some(bytes) = values.le_bytes() else { return false };
    let stages = vec![Stage::Shuffle { element_size: data_type.size() }, Stage::Deflate(Deflate { level: 1 })];
    let mut packed = Vec::new();
    Pipeline::new(stages).encode(&mut Coder::default(), &bytes, &mut packed);
    packed.len() * 20 <= bytes.len() * 19
}
