//! AntennaPairStMan stores ANTENNA1 and ANTENNA2 as one sequence of pairs for all time steps.
//! formats/engines.md 3.2.
//!
//! [`RowFile`] with tag `AntPair` and one number, the pattern: after that many rows the pairs
//! repeat; 0 while no repetition was seen, then every row of the table is in the file. A row is
//! ANTENNA1 and ANTENNA2, both i32.

use std::ops::Range;
use std::sync::Arc;

use bstr::BStr;

use super::row_file::RowFile;
use crate::error::{Error, Result, ResultExt};
use crate::io::ByteOrder;
use crate::stman::{ColumnCells, Kind, Manager, OpenArgs, Storage, read_part};
use crate::value::{DataType, Region, Shape, Values};

pub(crate) static KIND: Kind = Kind::new(&["AntennaPairStMan"], open);

const ROW_BYTES: u64 = 8;

#[derive(Debug)]
struct AntennaPair {
    columns: Vec<AntennaColumn>,
}

#[derive(Debug)]
struct AntennaColumn {
    pairs: Arc<Pairs>,
    /// Byte of the antenna number in a row of the file: 0 for ANTENNA1, 4 for ANTENNA2.
    offset: usize,
}

#[derive(Debug)]
struct Pairs {
    file: RowFile,
    /// Rows of a time step, after which pairs repeat; 0 if the file stores a pair for every row.
    pattern: u64,
    /// Pairs of one time step, 8 bytes each, or of a shorter table; empty if `pattern` is 0.
    repeated: Vec<u8>,
}

fn open(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let file = RowFile::open(args, KIND.names[0], b"AntPair\0", 1)?;
    let place = file.place.clone();
    file.expect_stride(ROW_BYTES)?;
    let pattern = file.field(0);
    // a table that ends within its first time step needs less than the pattern
    let repeated = if pattern > 0 { file.read(0, pattern.min(file.rows))? } else { Vec::new() };
    let pairs = Arc::new(Pairs { file, pattern, repeated });
    let columns = args
        .columns
        .iter()
        .map(|spec| {
            let offset = match spec.name.as_slice() {
                b"ANTENNA1" => 0,
                b"ANTENNA2" => 4,
                _ => return Err(Error::format(format!("column {}, ANTENNA1 or ANTENNA2 is expected", spec.name))),
            };
            if spec.data_type != DataType::Int || spec.storage != Storage::Scalar {
                return Err(Error::format(format!("column {} does not have int scalars", spec.name)));
            }
            Ok(AntennaColumn { pairs: pairs.clone(), offset })
        })
        .collect::<Result<_>>()
        .context(place)?;
    Ok(Box::new(AntennaPair { columns }))
}

impl Manager for AntennaPair {
    fn name(&self) -> &BStr {
        // the file does not have the name from creation
        BStr::new("")
    }

    fn column(&self, index: usize) -> &dyn ColumnCells {
        &self.columns[index]
    }
}

impl AntennaColumn {
    fn extend(&self, rows: &[u8], out: &mut Vec<i32>) {
        let antenna = |row: &[u8; ROW_BYTES as usize]| {
            let at = self.offset;
            ByteOrder::Little.u32([row[at], row[at + 1], row[at + 2], row[at + 3]]) as i32
        };
        out.extend(rows.as_chunks().0.iter().map(antenna));
    }

    fn read(&self, rows: Range<u64>, out: &mut Vec<i32>) -> Result<()> {
        let Pairs { file, pattern, repeated } = &*self.pairs;
        if *pattern == 0 {
            if rows.end > file.rows && !rows.is_empty() {
                return Err(never_written(rows.start.max(file.rows), file.rows));
            }
            self.extend(&file.read(rows.start, rows.end - rows.start)?, out);
            return Ok(());
        }
        let mut row = rows.start;
        while row < rows.end {
            let first = row % pattern;
            let count = (pattern - first).min(rows.end - row);
            if first + count > file.rows {
                return Err(never_written(row + file.rows.saturating_sub(first), file.rows));
            }
            let bytes = first * ROW_BYTES..(first + count) * ROW_BYTES;
            self.extend(&repeated[bytes.start as usize..bytes.end as usize], out);
            row += count;
        }
        Ok(())
    }
}

fn never_written(row: u64, rows: u64) -> Error {
    Error::format(format!("the antennas of row {row} were never written: the file has {rows} pairs"))
}

impl ColumnCells for AntennaColumn {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Ok(Some(Shape::scalar()))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        read_part(region, &Shape::scalar(), out, |out| self.read_rows(row..row + 1, out))
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let Values::Int(out) = out else { return Err(Error::usage("antennas are read into Ints")) };
        self.read(rows, out).context(&self.pairs.file.place)
    }

    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        Some(Shape::scalar())
    }
}
