//! Reads rows of a main table for plots, from a live file, a file that does not grow, or a table
//! directory. A live file is an HDF5 file that may grow while it is read. Ranges of rows are
//! half-open.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bstr::ByteSlice;
use ctds::error::{Context, Error, ErrorKind, Result, ResultExt};
use ctds::schema::Sync;
use ctds::table::{ColumnInfo, Snapshot, Watch, between_writes};
use ctds::value::{Complex32, Complex64, DataType, Element, Shape, Values};
use ctds_hdf5::Source;
use ctds_hdf5::internals::each_run;
use ctds_hdf5::live::{CellShapes, Reader, TableReader};

/// Most bytes of a cell that is read; a larger one is an error.
const MAX_CELL_BYTES: u64 = 256 << 20;

/// Most newest rows that a poll reads of a column whose cells have one shape.
pub(crate) const SAMPLE_ROWS: u64 = 4096;
/// Most newest rows that a poll reads of a column whose cells have several shapes.
const SAMPLE_CELLS: u64 = 256;

/// Function that decides, by the path of a table, whether it may be opened because a plotted file
/// or table refers to it.
pub type Served = Arc<dyn Fn(&Path) -> bool + Send + std::marker::Sync>;

pub(crate) struct Rows {
    path: PathBuf,
    served: Served,
    place: Place,
    /// Number at the last refresh.
    rows: u64,
}

enum Place {
    Live(Reader),
    /// A native HDF5 file, or a container with a packed table.
    File(Source),
    /// `watch` observes the lock file; `None` without a usable one. `seen`: number of rows and
    /// counters of changes in it when the table was last read; `None` if unknown.
    Table {
        source: Source,
        watch: Option<Watch>,
        seen: Option<Sync>,
    },
}

/// Changes since the last refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Change {
    pub(crate) grew: bool,
    /// Cells of a table directory were overwritten without a new row; false for files.
    pub(crate) rewritten: bool,
}

/// Cells of one column with the same shape, out of those that were read for a list of rows.
#[derive(Debug)]
pub(crate) struct Group {
    /// Index of each cell's row in that list, ascending.
    pub(crate) places: Vec<usize>,
    /// First axis fastest.
    pub(crate) shape: Shape,
    /// One cell after the other, first axis fastest.
    pub(crate) values: Values,
}

impl Group {
    /// Amplitudes of complex numbers, 1 for true and 0 for false; empty for strings and records.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        match &self.values {
            Values::Bool(v) => v.iter().map(|&v| f64::from(u8::from(v))).collect(),
            Values::UChar(v) => v.iter().map(|&v| v.into()).collect(),
            Values::Short(v) => v.iter().map(|&v| v.into()).collect(),
            Values::UShort(v) => v.iter().map(|&v| v.into()).collect(),
            Values::Int(v) => v.iter().map(|&v| v.into()).collect(),
            Values::UInt(v) => v.iter().map(|&v| v.into()).collect(),
            Values::Int64(v) => v.iter().map(|&v| v as f64).collect(),
            Values::Float(v) => v.iter().map(|&v| v.into()).collect(),
            Values::Double(v) => v.clone(),
            Values::Complex(v) => v.iter().map(|v| v.norm().into()).collect(),
            Values::DComplex(v) => v.iter().map(|v| v.norm()).collect(),
            Values::String(_) | Values::Record(_) => Vec::new(),
        }
    }
}

impl Rows {
    pub(crate) fn open(path: &Path, served: Served) -> Result<Self> {
        // opening a missing path as a source fails with the similar names that exist
        let is_file = path.is_file();
        let place = match is_file.then(|| Reader::open(path)) {
            Some(Ok(reader)) => Place::Live(reader),
            Some(Err(error)) if !matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::Format) => {
                return Err(error);
            }
            _ => {
                // before the table, so that what is written in between is seen as a change
                let watch = if is_file { None } else { Watch::new(path).ok() };
                let seen = watch.as_ref().and_then(|watch| watch.sync().ok().flatten());
                let source = between_writes(path, || open_source(path, &served))?;
                match is_file {
                    true => Place::File(source),
                    false => Place::Table { source, watch, seen },
                }
            }
        };
        let mut rows = Rows { path: path.to_owned(), served, place, rows: 0 };
        rows.rows = rows.count()?;
        Ok(rows)
    }

    /// An error for any other file or directory.
    pub(crate) fn open_live(path: &Path) -> Result<Self> {
        let place = Place::Live(Reader::open(path)?);
        let mut rows = Rows { path: path.to_owned(), served: Arc::new(|_| true), place, rows: 0 };
        rows.rows = rows.count()?;
        Ok(rows)
    }

    pub(crate) fn served(&self) -> Served {
        Arc::clone(&self.served)
    }

    /// `live`, `hdf5` or `table`.
    pub(crate) fn kind(&self) -> &'static str {
        match self.place {
            Place::Live(_) => "live",
            Place::File(_) => "hdf5",
            Place::Table { .. } => "table",
        }
    }

    /// Device and inode, which differ after the file or directory was replaced.
    pub(crate) fn identity(path: &Path) -> Result<(u64, u64)> {
        let found = path.metadata().with_context(|| Context::path(path))?;
        Ok((found.dev(), found.ino()))
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    fn count(&self) -> Result<u64> {
        match &self.place {
            Place::Live(reader) => Ok(reader.tables().first().map_or(0, |main| main.committed_rows())),
            Place::File(source) => source.tables()[0].rows(),
            Place::Table { source, seen, .. } => {
                let rows = source.tables()[0].rows()?;
                Ok(seen.as_ref().map_or(rows, |seen| seen.rows.min(rows)))
            }
        }
    }

    /// Name and number of rows of each table; the first one is the main table, named `MAIN`.
    pub(crate) fn tables(&self) -> Result<Vec<(String, u64)>> {
        let of_source = |source: &Source| {
            let rows = |(number, table): (usize, &ctds_hdf5::SourceTable)| {
                let name = if number == 0 {
                    ctds_hdf5::convert::display_name(&table.name).to_owned()
                } else {
                    table.name.clone()
                };
                (name, if number == 0 { self.rows } else { table.rows().unwrap_or(0) })
            };
            source.tables().iter().enumerate().map(rows).collect()
        };
        Ok(match &self.place {
            Place::Live(reader) => {
                reader.tables().iter().map(|table| (table.name().to_owned(), table.committed_rows())).collect()
            }
            Place::File(source) | Place::Table { source, .. } => of_source(source),
        })
    }

    /// Whether a live file is marked as being written, or another program has the table directory
    /// open. False for other files, and for tables without a lock file.
    pub(crate) fn is_open(&self) -> Result<bool> {
        match &self.place {
            Place::Live(reader) => reader.is_being_written(),
            Place::File(_) => Ok(false),
            Place::Table { watch, .. } => watch.as_ref().map_or(Ok(false), Watch::is_in_use),
        }
    }

    /// Modification time of the file, or of the lock file of a table, without one of its directory.
    pub(crate) fn written(&self) -> Result<SystemTime> {
        let path = match &self.place {
            Place::Table { watch: Some(_), .. } => &self.path.join("table.lock"),
            _ => &self.path,
        };
        Ok(path.metadata().and_then(|metadata| metadata.modified())?)
    }

    pub(crate) fn refresh(&mut self) -> Result<Change> {
        let before = self.rows;
        let mut rewritten = false;
        match &mut self.place {
            Place::Live(reader) => {
                for table in reader.tables() {
                    table.refresh()?;
                }
            }
            Place::File(_) => return Ok(Change::default()),
            Place::Table { watch: None, .. } => return Ok(Change::default()),
            Place::Table { source, watch: Some(watch), seen } => {
                let Some(sync) = watch.sync()? else { return Ok(Change::default()) };
                if seen.as_ref() == Some(&sync) {
                    watch.prompt()?;
                    return Ok(Change::default());
                }
                // in the middle of a flush the table is as it was
                let open = || open_source(&self.path, &self.served);
                let Snapshot::Consistent(new) = watch.snapshot_of(open)? else {
                    return Ok(Change::default());
                };
                *source = new;
                rewritten = seen.as_ref().is_some_and(|seen| seen.rows == sync.rows && seen.modify != sync.modify);
                *seen = Some(sync);
            }
        }
        self.rows = self.count()?;
        Ok(Change { grew: self.rows > before, rewritten })
    }

    /// `None` if the table may have been written to during the read.
    pub(crate) fn at_one_moment<T>(&mut self, read: impl FnOnce(&Self) -> Result<T>) -> Result<Option<T>> {
        let Place::Table { watch: watch @ Some(_), .. } = &mut self.place else { return read(self).map(Some) };
        let Some(mut taken) = watch.take() else { return read(self).map(Some) };
        let result = match taken.is_in_use() {
            // no other program has it open
            Ok(false) => read(self).map(Some),
            Ok(true) => taken.snapshot(|_| read(self)).map(|snapshot| match snapshot {
                Snapshot::Consistent(value) => Some(value),
                Snapshot::Unconfirmed(_) | Snapshot::WriterActive => None,
            }),
            Err(error) => Err(error),
        };
        if let Place::Table { watch, .. } = &mut self.place {
            *watch = Some(taken);
        }
        result
    }

    pub(crate) fn column(&self, name: &str) -> Option<&ColumnInfo> {
        self.columns().into_iter().find(|info| info.desc.name == name)
    }

    pub(crate) fn columns(&self) -> Vec<&ColumnInfo> {
        match &self.place {
            Place::Live(reader) => reader.tables().first().map_or(Vec::new(), |main| main.columns().collect()),
            Place::File(source) | Place::Table { source, .. } => {
                source.tables()[0].columns().map_or(Vec::new(), |columns| columns.iter().collect())
            }
        }
    }

    /// Keyword QuantumUnits or UNIT of the column; empty without one.
    pub(crate) fn unit(&self, column: &str) -> String {
        let of_column = || {
            let keywords = &self.column(column)?.desc.keywords;
            let unit = keywords.strings("QuantumUnits").and_then(|units| units.first()).map(|unit| unit.as_bstr());
            Some(unit.or_else(|| keywords.string("UNIT"))?.to_string())
        };
        of_column().unwrap_or_default()
    }

    pub(crate) fn with_tables<T>(&self, read: impl FnOnce(&Source) -> T) -> Result<T> {
        match &self.place {
            Place::Live(_) => Ok(read(&open_source(&self.path, &self.served)?)),
            Place::File(source) | Place::Table { source, .. } => Ok(read(source)),
        }
    }

    /// Scalars or arrays of one shape; `NotFound` if a cell is undefined.
    pub(crate) fn all(&self, name: &str, rows: Range<u64>) -> Result<Values> {
        match &self.place {
            Place::Live(reader) => {
                let main = main(reader)?;
                let mut values = Values::new(self.data_type(name)?);
                main.read(name, rows, &mut values)?;
                Ok(values)
            }
            Place::File(source) | Place::Table { source, .. } => typed(&source.column(name)?, &Wanted::Range(rows)),
        }
    }

    /// Integers of any width.
    pub(crate) fn integers(&self, name: &str, rows: Range<u64>) -> Result<Vec<i64>> {
        let values = self.all(name, rows)?.integers();
        values.ok_or_else(|| Error::format("the elements are not integers").context(Context::column(name)))
    }

    pub(crate) fn doubles(&self, name: &str, rows: Range<u64>) -> Result<Vec<f64>> {
        match self.all(name, rows)? {
            Values::Double(values) => Ok(values),
            other => {
                let message = format!("the elements are of type {}, not double", other.data_type());
                Err(Error::format(message).context(Context::column(name)))
            }
        }
    }

    fn data_type(&self, name: &str) -> Result<DataType> {
        let info = self.column(name).map(ColumnInfo::data_type);
        info.ok_or_else(|| Error::not_found(format!("the main table lacks the column {name}")))
    }

    /// Rows ascend; undefined cells are left out.
    pub(crate) fn cells(&self, name: &str, rows: &[u64]) -> Result<Vec<Group>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        match &self.place {
            Place::Live(reader) => {
                let data_type = self.data_type(name)?;
                let mut groups = Groups { data_type, groups: Vec::new() };
                each_run(main(reader)?, name, rows, &mut |place, shape, read| {
                    check_cell(data_type, shape)?;
                    groups.add(place, shape, read)
                })?;
                Ok(groups.groups)
            }
            Place::File(source) | Place::Table { source, .. } => {
                let column = source.column(name)?;
                let mut lists: Vec<(Shape, Vec<usize>)> = Vec::new();
                let info = column.info();
                match info.shape.clone().filter(|_| info.is_always_defined()) {
                    Some(shape) => lists.push((shape, (0..rows.len()).collect())),
                    None => {
                        for (place, &row) in rows.iter().enumerate() {
                            let Some(shape) = column.cell_shape(row)? else { continue };
                            match lists.iter_mut().rev().find(|(known, _)| *known == shape) {
                                Some((_, places)) => places.push(place),
                                None => lists.push((shape, vec![place])),
                            }
                        }
                    }
                }
                let group = |(shape, places): (Shape, Vec<usize>)| {
                    check_cell(column.info().data_type(), &shape)?;
                    let numbers: Vec<u64> = places.iter().map(|&place| rows[place]).collect();
                    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
                    let wanted = match last - first == numbers.len() as u64 - 1 {
                        true => Wanted::Range(first..last + 1),
                        false => Wanted::List(&numbers),
                    };
                    Ok(Group { values: typed(&column, &wanted)?, places, shape })
                };
                lists.into_iter().map(group).collect()
            }
        }
    }

    /// 0 if the cell is undefined or its elements have no fixed size.
    pub(crate) fn cell_bytes(&self, name: &str, row: u64) -> Result<u64> {
        let element = self.data_type(name)?.size() as u64;
        let shape = match &self.place {
            Place::Live(reader) => main(reader)?.cell(name, row)?.map(|(shape, _)| shape),
            Place::File(source) | Place::Table { source, .. } => source.column(name)?.cell_shape(row)?,
        };
        Ok(shape.map_or(Ok(0), |shape| shape.elements())?.saturating_mul(element))
    }

    /// Largest of the shapes that a live file declares; elsewhere the cell of the newest row counts
    /// as the largest, 0 without rows.
    pub(crate) fn largest_cell(&self, name: &str) -> Result<u64> {
        let Place::Live(reader) = &self.place else {
            return self.rows.checked_sub(1).map_or(Ok(0), |newest| self.cell_bytes(name, newest));
        };
        let element = self.data_type(name)?.size().max(1) as u64;
        let bytes = |shape: &Shape| Ok::<_, Error>(shape.elements()?.saturating_mul(element));
        Ok(match main(reader)?.shapes(name)? {
            CellShapes::One(shape) => bytes(&shape)?,
            CellShapes::Several(shapes) => {
                shapes.iter().map(bytes).collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or(0)
            }
        })
    }

    /// Newest rows whose cells fit in `bytes`: at least 1, at most 4096, or 256 if shapes differ.
    pub(crate) fn sample_rows(&self, column: &str, bytes: u64) -> Result<u64> {
        let limit = if self.has_one_shape(column) { SAMPLE_ROWS } else { SAMPLE_CELLS };
        Ok((bytes / self.largest_cell(column)?.max(1)).clamp(1, limit))
    }

    pub(crate) fn has_one_shape(&self, name: &str) -> bool {
        match &self.place {
            Place::Live(reader) => main(reader).is_ok_and(|main| matches!(main.shapes(name), Ok(CellShapes::One(_)))),
            _ => self.column(name).is_some_and(|info| info.shape.is_some()),
        }
    }

    /// Approximate bytes of all cells: of all tables of a live file, otherwise of the main table.
    pub(crate) fn bytes(&self) -> Result<f64> {
        match &self.place {
            Place::Live(reader) => {
                let bytes = |table| Ok::<_, Error>(row_bytes(table)? * table.committed_rows() as f64);
                reader.tables().iter().map(bytes).sum()
            }
            _ if self.rows == 0 => Ok(0.),
            _ => {
                let newest = self.rows - 1;
                let names = self.columns().into_iter().map(|info| info.desc.name.to_string());
                // columns that cannot be read have no bytes here
                let bytes: u64 = names.map(|name| self.cell_bytes(&name, newest).unwrap_or(0)).sum();
                Ok(bytes as f64 * self.rows as f64)
            }
        }
    }
}

/// Opens without a lock, so that a writer never waits for this reader.
fn open_source(path: &Path, served: &Served) -> Result<Source> {
    Source::open_served(path, &|path| served(path))
}

fn main(reader: &Reader) -> Result<&TableReader> {
    reader.tables().first().ok_or_else(|| Error::format("the file has no tables"))
}

/// An array column of varying shapes counts with its cell in the newest row.
fn row_bytes(table: &TableReader) -> Result<f64> {
    let mut bytes = 0;
    for info in table.columns() {
        let element = match info.data_type() {
            DataType::String => u64::from(info.desc.max_length),
            number => number.size() as u64,
        };
        let name = info.desc.name.to_string();
        let elements = match table.shapes(&name)? {
            CellShapes::One(shape) => shape.elements()?,
            CellShapes::Several(_) if table.committed_rows() == 0 => 0,
            CellShapes::Several(_) => {
                let cell = table.cell(&name, table.committed_rows() - 1)?;
                cell.map_or(Ok(0), |(shape, _)| shape.elements())?
            }
        };
        bytes += elements * element;
    }
    Ok(bytes as f64)
}

fn check_cell(data_type: DataType, shape: &Shape) -> Result<()> {
    let bytes = shape.elements()?.saturating_mul(data_type.size().max(1) as u64);
    if bytes > MAX_CELL_BYTES {
        return Err(Error::limit(format!(
            "a cell of {bytes} bytes; plots are made of cells of at most {MAX_CELL_BYTES}"
        )));
    }
    Ok(())
}

struct Groups {
    data_type: DataType,
    groups: Vec<Group>,
}

impl Groups {
    fn add(&mut self, places: Range<usize>, shape: &Shape, read: &dyn Fn(&mut Values) -> Result<()>) -> Result<()> {
        let index = self.groups.iter().position(|group| group.shape == *shape).unwrap_or_else(|| {
            let values = Values::new(self.data_type);
            self.groups.push(Group { places: Vec::new(), shape: shape.clone(), values });
            self.groups.len() - 1
        });
        let group = &mut self.groups[index];
        group.places.extend(places);
        read(&mut group.values)
    }
}

enum Wanted<'a> {
    Range(Range<u64>),
    List(&'a [u64]),
}

fn typed(column: &ctds::table::Column<'_>, wanted: &Wanted<'_>) -> Result<Values> {
    fn read<T: Element>(column: &ctds::table::Column<'_>, wanted: &Wanted<'_>) -> Result<Values> {
        let array = match wanted {
            Wanted::Range(rows) => column.rows::<T>(rows.clone())?,
            Wanted::List(rows) => column.rows_at::<T>(rows)?,
        };
        Ok(T::values(array.into_raw_vec_and_offset().0))
    }
    match column.info().data_type() {
        DataType::Bool => read::<bool>(column, wanted),
        DataType::UChar => read::<u8>(column, wanted),
        DataType::Short => read::<i16>(column, wanted),
        DataType::UShort => read::<u16>(column, wanted),
        DataType::Int => read::<i32>(column, wanted),
        DataType::UInt => read::<u32>(column, wanted),
        DataType::Int64 => read::<i64>(column, wanted),
        DataType::Float => read::<f32>(column, wanted),
        DataType::Double => read::<f64>(column, wanted),
        DataType::Complex => read::<Complex32>(column, wanted),
        DataType::DComplex => read::<Complex64>(column, wanted),
        other => Err(Error::unsupported(format!("elements of type {other} are not plotted"))),
    }
}

#[cfg(test)]
mod tests {
    use ctds::error::Fails;
    use ctds::schema::ColumnDesc;
    use ctds::table::NewTable;
    use ctds::value::BString;

    use super::*;

    #[test]
    fn unsupported_columns_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ms");
        let table = NewTable::new()
            .column(ColumnDesc::scalar::<i32>("TIME"))
            .column(ColumnDesc::scalar::<f64>("ANTENNA1"))
            .column(ColumnDesc::scalar::<BString>("NAME"));
        let mut table = table.create(&path).unwrap();
        table.add_rows(1).unwrap();
        table.close().unwrap();
        let rows = Rows::open(&path, Arc::new(|_| true)).unwrap();
        rows.doubles("TIME", 0..1).fails(ErrorKind::Format, "column TIME: the elements are of type int, not double");
        rows.integers("ANTENNA1", 0..1).fails(ErrorKind::Format, "column ANTENNA1: the elements are not integers");
        rows.all("NAME", 0..1).fails(ErrorKind::Unsupported, "elements of type string are not plotted");
        check_cell(DataType::Double, &Shape::from([1 << 30]))
            .fails(ErrorKind::Limit, "a cell of 8589934592 bytes; plots are made of cells of at most 268435456");
    }
}
