//! Chooses the storage manager of a column in a new table: the one that the column had in the
//! original table, if this library can write that, otherwise one that suits the column's cells.

use bstr::{BString, ByteSlice};

use crate::error::Result;
use crate::native::Layout;
use crate::source::Content;
use crate::stman::{is_engine, is_expression, is_tiled, written};
use crate::table::{ColumnCells, ColumnInfo, ManagerSpec};
use crate::value::{DataType, Values};

/// Approximate size of chosen tiles.
const TILE_BYTES: u64 = 1 << 20;
/// Cells together from which arrays are stored in tiles.
const TILED_FROM_BYTES: u64 = 1 << 20;
/// Rows read to judge how often a scalar changes.
const LOOK_ROWS: u64 = 4096;
const SLOW_ROWS: u64 = 16;

pub(super) struct Managers<'a> {
    /// Managers of the original table, as the source records them.
    layout: &'a Layout,
    chosen: Vec<Chosen>,
}

struct Chosen {
    spec: ManagerSpec,
    /// Index in the original layout; `None` for a new one.
    known: Option<usize>,
    columns: Vec<BString>,
}

impl<'a> Managers<'a> {
    pub(super) fn new(layout: &'a Layout) -> Self {
        Managers { layout, chosen: Vec::new() }
    }

    /// Returns a warning if the original manager was another. `engines` allows engines.
    pub(super) fn add(
        &mut self,
        info: &ColumnInfo,
        content: &Content,
        index: usize,
        engines: bool,
    ) -> Result<Option<String>> {
        let number = self.layout.bindings.get(index).copied().flatten();
        let had = number
            .or_else(|| self.position(|known| *known.name == info.manager_name && *known.type_name == info.manager));
        let had = had.filter(|&had| had < self.layout.managers.len() && (engines || is_written(info)));
        let (known, spec, replaced) = match had {
            Some(had) => (Some(had), self.layout.managers[had].clone(), None),
            None => {
                let spec = suitable(info, &*content.cells(index)?, content.rows())?;
                let was = info.manager.to_str_lossy();
                let message = format!("{} is not written; the column is in a {} now", was.trim_end(), spec.type_name);
                // managers that are not tiled may as well be those that the table had
                let tiled = is_tiled(spec.type_name.as_bstr());
                let known = self.position(|known| known.type_name == spec.type_name && !tiled);
                let spec = known.map_or(spec, |known| self.layout.managers[known].clone());
                (known, spec, (!was.is_empty()).then_some(message))
            }
        };
        let name = info.desc.name.clone();
        // the manager of an expression has one column
        let is_alone = is_expression(spec.type_name.as_bstr());
        let same = |other: &&mut Chosen| !is_alone && other.known == known && (known.is_some() || other.spec == spec);
        match self.chosen.iter_mut().find(same) {
            Some(chosen) => chosen.columns.push(name),
            None => self.chosen.push(Chosen { spec, known, columns: vec![name] }),
        }
        Ok(replaced)
    }

    fn position(&self, is_it: impl Fn(&ManagerSpec) -> bool) -> Option<usize> {
        self.layout.managers.iter().position(is_it)
    }

    /// Ordered as in the original table; new ones are last.
    pub(super) fn finish(mut self) -> Vec<(ManagerSpec, Vec<BString>)> {
        self.chosen.sort_by_key(|chosen| chosen.known.unwrap_or(usize::MAX));
        self.chosen.into_iter().map(|chosen| (chosen.spec, chosen.columns)).collect()
    }
}

/// Whether the manager stores cells, and this library can write it.
fn is_written(info: &ColumnInfo) -> bool {
    !is_engine(info.manager.as_bstr()) && written().any(|name| info.manager == name)
}

/// Tiles for large arrays, IncrementalStMan for values that seldom change, otherwise StandardStMan.
fn suitable(info: &ColumnInfo, cells: &dyn ColumnCells, rows: u64) -> Result<ManagerSpec> {
    let shape = cells.same_shape(&(0..rows)).or_else(|| info.shape.clone()).unwrap_or_default();
    let axes = info.shape.as_ref().map_or(info.desc.ndim, |shape| shape.len() as i32);
    let size = info.data_type().size() as u64;
    let cell_bytes = shape.elements()?.saturating_mul(size);
    if !shape.is_empty() && axes == shape.len() as i32 && cell_bytes.saturating_mul(rows) >= TILED_FROM_BYTES {
        let tile_rows = (TILE_BYTES / cell_bytes.max(1)).clamp(1, rows);
        let name = [b"Tiled".as_slice(), &info.desc.name].concat();
        return Ok(ManagerSpec::tiled_shape(name, &shape.with_axis(tile_rows)));
    }
    if written().any(|n| n == "IncrementalStMan")
        && shape.is_empty()
        && info.shape.is_some()
        && changes_slowly(info.data_type(), cells, rows)?
    {
        return Ok(ManagerSpec::incremental("IncrementalData"));
    }
    Ok(ManagerSpec::standard("StandardData"))
}

/// Whether at most one row in 16 changes among the first 4096; false for fewer than 16 rows.
fn changes_slowly(data_type: DataType, cells: &dyn ColumnCells, rows: u64) -> Result<bool> {
    let looked = rows.min(LOOK_ROWS);
    if looked < SLOW_ROWS || data_type == DataType::Record {
        return Ok(false);
    }
    let mut values = Values::new(data_type);
    cells.read_rows(0..looked, &mut values)?;
    let changes = crate::value::for_each_type!(&values, v => v.windows(2).filter(|pair| pair[0] != pair[1]).count());
    Ok((changes as u64).saturating_mul(SLOW_ROWS) <= looked)
}
