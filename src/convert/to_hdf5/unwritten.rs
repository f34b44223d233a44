//! A native HDF5 file in memory without the elements of its columns: these stay in the casacore
//! tables, and are read from there on request.

use std::collections::BTreeMap;

use super::compression::Compress;
use super::plan::{Plan, ToHdf5Options};
use super::stored::{Place, Starts, StoredColumn, row_numbers};
use super::structure::Writer;
use crate::error::{Result, ResultExt, column_context};
use crate::grid::ChunkCache;
use crate::h5::{Compression, File};
use crate::native;
use crate::source::Source;
use crate::value::{Region, Values};

/// A source, and the structure of the HDF5 file that `to-hdf5 --compress none` would make of it.
pub(crate) struct Unwritten {
    source: Source,
    plan: Plan,
    /// Datasets whose elements stay in the source, by path.
    places: BTreeMap<String, Place>,
    starts: Starts,
}

impl Unwritten {
    /// Each subtable that `h5bridge serve` refuses to open becomes an external link, whose file
    /// name is its path as the keyword stores it.
    ///
    /// # Errors
    /// Those of planning a conversion: tables and columns that are damaged.
    pub(crate) fn write(source: Source) -> Result<(Self, File)> {
        let options =
            ToHdf5Options { compress: Compress::With(Compression::NONE), digest: false, ..ToHdf5Options::default() };
        let plan = Plan::new(&source, &options)?;
        let file = File::create_in_memory()?;
        let mut writer = Writer::new(&source, &plan, &options, &file)?;
        writer.write_structure(&())?;
        let places = writer.places();
        drop(writer);
        for (path, stored) in &plan.refused_tables {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            native::open_path(&file.root()?, parent)?.link_file(name, stored)?;
        }
        Ok((Unwritten { source, plan, places, starts: Starts::default() }, file.reopened()?))
    }

    /// `None` if the file in memory has the elements, such as the values of axes, or if no dataset
    /// is at `path`.
    pub(crate) fn place(&self, path: &str) -> Option<Place> {
        self.places.get(path).copied()
    }

    /// Axes are in casacore's order, fastest first, rows last. `cache` is for this dataset only.
    ///
    /// # Errors
    /// Those of reading the cells.
    pub(crate) fn read(&self, place: Place, region: &Region, cache: &ChunkCache) -> Result<Values> {
        match place {
            Place::Rows { table } => {
                let table = &self.plan.tables[table];
                let content = self.source.tables[table.source].content()?;
                Ok(row_numbers(content, table.rows.start, region))
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
