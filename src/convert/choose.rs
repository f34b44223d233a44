//! Which manager a column gets: the one it had, if that can be written, else one that suits its cells.

use bstr::{BString, ByteSlice};

use super::content::Content;
use crate::error::Result;
use crate::stman::written;
use crate::table::{Cells, ColumnInfo, ManagerSpec};
use crate::value::{DataType, Shape, Values};

/// A tile is about as large as this.
const TILE_BYTES: u64 = 1 << 20;
/// Columns of cells that are smaller than this in all are not tiled.
const TILED_FROM_BYTES: u64 = 1 << 20;
/// Rows that are looked at to see how often a scalar changes, and rows for a change that make it slow.
const LOOK_ROWS: u64 = 4096;
const SLOW_ROWS: u64 = 16;

/// The managers of a table, with their columns.
pub(super) struct Managers {
    known: Vec<ManagerSpec>,
    chosen: Vec<(ManagerSpec, Vec<BString>)>,
}

impl Managers {
    /// `known` are those that the table had.
    pub(super) fn new(known: &[ManagerSpec]) -> Self {
        Managers { known: known.to_vec(), chosen: Vec::new() }
    }

    /// Finds a manager for a column; says so if that is another than the column had.
    pub(super) fn add(&mut self, info: &ColumnInfo, content: &dyn Content, index: usize) -> Result<Option<String>> {
        let had = self.known.iter().find(|known| known.type_name == info.manager && known.name == info.manager_name);
        let can_write = written().any(|name| info.manager == name);
        let (spec, replaced) = match had {
            Some(had) if can_write => (had.clone(), None),
            _ => {
                let spec = suitable(info, &*content.cells(index)?, content.rows())?;
                let had = info.manager.to_str_lossy();
                let message = format!("{} is not written; the column is in a {} now", had.trim_end(), spec.type_name);
                (spec, (!had.is_empty()).then_some(message))
            }
        };
        let name = info.desc.name.clone();
        match self.chosen.iter_mut().find(|(other, _)| other.type_name == spec.type_name && other.name == spec.name) {
            Some((_, columns)) => columns.push(name),
            None => self.chosen.push((spec, vec![name])),
        }
        Ok(replaced)
    }

    /// All managers; two that had the same name have not any more.
    pub(super) fn finish(self) -> Vec<(ManagerSpec, Vec<BString>)> {
        let mut named: Vec<(ManagerSpec, Vec<BString>)> = Vec::new();
        for (mut spec, columns) in self.chosen {
            let wanted = spec.name.clone();
            for number in 1.. {
                if !named.iter().any(|(other, _)| other.name == spec.name) {
                    break;
                }
                spec.name = format!("{wanted}_{number}").into();
            }
            named.push((spec, columns));
        }
        named
    }
}

/// Tiles for large arrays, one value for many rows for what seldom changes, else rows in buckets.
fn suitable(info: &ColumnInfo, cells: &dyn Cells, rows: u64) -> Result<ManagerSpec> {
    let shape = cells.same_shape(&(0..rows)).or_else(|| info.shape.clone()).unwrap_or_default();
    let axes = info.shape.as_ref().map_or(info.desc.ndim, |shape| shape.len() as i32);
    let size = info.data_type().size() as u64;
    let cell_bytes = shape.elements()?.saturating_mul(size);
    if !shape.is_empty() && axes == shape.len() as i32 && cell_bytes.saturating_mul(rows) >= TILED_FROM_BYTES {
        let tile_rows = (TILE_BYTES / cell_bytes.max(1)).clamp(1, rows);
        let name = [b"Tiled".as_slice(), &info.desc.name].concat();
        return Ok(ManagerSpec::tiled_shape(name, &shape.with_axis(tile_rows)));
    }
    if shape.is_empty() && info.shape.is_some() && changes_slowly(info.data_type(), cells, rows)? {
        return Ok(ManagerSpec::incremental("IncrementalData"));
    }
    Ok(ManagerSpec::standard("StandardData"))
}

/// Whether a scalar stays the same over many rows, as far as a look at the first ones tells.
fn changes_slowly(data_type: DataType, cells: &dyn Cells, rows: u64) -> Result<bool> {
    let looked = rows.min(LOOK_ROWS);
    if looked < SLOW_ROWS || data_type == DataType::Record {
        return Ok(false);
    }
    let mut values = Values::new(data_type);
    cells.read_rows(0..looked, &mut values)?;
    let changes = crate::value::for_each_type!(&values, v => v.windows(2).filter(|pair| pair[0] != pair[1]).count());
    Ok((changes as u64).saturating_mul(SLOW_ROWS) <= looked)
}
