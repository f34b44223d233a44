//! A native HDF5 file in memory without the elements of its columns: these stay in the casacore
//! tables, and are read from there on request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::compression::Compress;
use super::plan::{Plan, ToHdf5Options};
use super::stored::{Place, StoredColumn, axis};
use super::structure::Writer;
use crate::error::{Result, ResultExt, column_context};
use crate::grid::ChunkCache;
use crate::h5::{Compression, File};
use crate::native;
use crate::source::{Content, Source};
use crate::sync::LockUnpoisoned;
use crate::value::{Region, Values};

/// A source, and the structure of the HDF5 file that `to-hdf5 --compress none` would make of it.
pub struct Unwritten {
    source: Source,
    plan: Plan,
    /// Datasets whose elements stay in the source, by path.
    places: BTreeMap<String, Place>,
    starts: Starts,
}

impl Unwritten {
    /// Makes the file, without the elements of columns. Each subtable that [`Source::open_served`]
    /// has refused becomes an external link, whose file name is its path as the keyword stores it.
    ///
    /// # Errors
    /// Those of planning a conversion: tables and columns that are damaged.
    pub fn write(source: Source) -> Result<(Self, File)> {
        let options =
            ToHdf5Options { compress: Compress::With(Compression::NONE), digest: false, ..ToHdf5Options::default() };
        let plan = Plan::new(&source, &options)?;
        let file = File::create_in_memory()?;
        let mut writer = Writer::new(&source, &plan, &options, &file)?;
        writer.write_structure(&())?;
        let places = writer.places().into_iter().collect();
        drop(writer);
        for (path, stored) in &plan.refused_tables {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            native::open_path(&file.root()?, parent)?.link_file(name, stored)?;
        }
        Ok((Unwritten { source, plan, places, starts: Starts::default() }, file.reopened()?))
    }

    /// Holder of the elements of the dataset at `path`. `None` if the file in memory has them, such
    /// as the values of axes, or if no dataset is at `path`.
    pub fn place(&self, path: &str) -> Option<Place> {
        self.places.get(path).copied()
    }

    /// Reads a box of a dataset. Axes are in casacore's order, fastest first, rows last. `cache` is
    /// for this dataset only.
    ///
    /// # Errors
    /// Those of reading the cells.
    pub fn read(&self, place: Place, region: &Region, cache: &ChunkCache) -> Result<Values> {
        match place {
            Place::Rows { table } => {
                let table = &self.plan.tables[table];
                let content = self.source.tables[table.source].content()?;
                Ok(row_numbers(content, table.rows.start, region))
            }
            Place::RootRows { table } => {
                let table = &self.plan.tables[table];
                let (content, rows) = (self.source.tables[table.source].content()?, axis(region, 0));
                let first = table.rows.start;
                let numbers = content.root_rows(first + rows.start..first + rows.end)?;
                Ok(Values::Int64(numbers.into_iter().map(|number| number as i64).collect()))
            }
            Place::Column { table, column, part } => {
                let (table_plan, column_plan) = (&self.plan.tables[table], &self.plan.tables[table].columns[column]);
                let stored = StoredColumn { source: &self.source, table: table_plan, column: column_plan, cache };
                let starts = || self.starts.of((table, column), || stored.starts());
                let read = stored.read(part, region, &starts);
                read.with_context(|| column_context(&table_plan.name, &column_plan.name))
            }
        }
    }
}

/// Numbers in the whole table; the axis of `region` counts rows of the source from `first`.
fn row_numbers(content: &Content, first: u64, region: &Region) -> Values {
    let rows = axis(region, 0);
    Values::Int64(rows.map(|row| content.original_row(first + row) as i64).collect())
}

/// Results of [`StoredColumn::starts`].
#[derive(Debug, Default)]
struct Starts(Mutex<BTreeMap<TableAndColumn, Arc<Vec<u64>>>>);

type TableAndColumn = (usize, usize);

impl Starts {
    fn of(&self, column: TableAndColumn, count: impl FnOnce() -> Result<Vec<u64>>) -> Result<Arc<Vec<u64>>> {
        if let Some(known) = self.0.lock_unpoisoned().get(&column) {
            return Ok(Arc::clone(known));
        }
        // counted without the lock: two threads may count the same column, which is harmless
        let counted = Arc::new(count()?);
        self.0.lock_unpoisoned().insert(column, Arc::clone(&counted));
        Ok(counted)
    }
}
