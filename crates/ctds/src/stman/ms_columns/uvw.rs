//! UvwStMan stores a position for each antenna and time step; the UVW of a row is the difference of
//! two of them. formats/engines.md 3.3.
//!
//! [`RowFile`] with tag `Uvw-col` and three numbers: table rows of a time step, the reference
//! antenna, and antennas. A row is 3 f64. Each time step has a row for every antenna but the
//! reference, whose position is 0.
//!
//! Casacore rounds the number of rows of the *table* up to whole time steps when it opens one; we
//! do not.

use std::ops::Range;

use bstr::BStr;

use super::row_file::RowFile;
use crate::error::{Error, Result, ResultExt};
use crate::io::ByteOrder;
use crate::stman::antennas::{ANTENNA_COLUMNS, key_column, read_keys};
use crate::stman::{ColumnCells, Kind, Manager, OpenArgs, OtherColumn, Storage, read_part, undefined};
use crate::value::{DataType, Region, Shape, Values};

pub(crate) static KIND: Kind = Kind::new(&["UvwStMan"], open);

const ROW_BYTES: u64 = 24;

/// A coordinate that was never written.
const UNKNOWN: f64 = f64::MAX;

/// Rows whose antennas are read at a time.
const STEP_ROWS: u64 = 1 << 16;

type Position = [f64; 3];

#[derive(Debug)]
struct Uvw {
    file: RowFile,
    /// Rows of a time step; 0 if the whole table is one.
    block_rows: u64,
    reference: u64,
    antennas: u64,
    /// ANTENNA1 and ANTENNA2.
    pair: [OtherColumn; 2],
    /// Declared as Direct: every cell must have a value.
    direct: bool,
}

fn open(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let file = RowFile::open(args, KIND.names[0], b"Uvw-col\0", 3)?;
    let place = file.place.clone();
    file.expect_stride(ROW_BYTES)?;
    let open = || {
        let [spec] = args.columns else {
            return Err(Error::format(format!("the manager has {} columns, expected one", args.columns.len())));
        };
        let is_uvw = spec.data_type == DataType::Double && spec.shape.as_deref() == Some(&[3]);
        if !is_uvw || spec.storage == Storage::Scalar {
            return Err(Error::format(format!("column {} is not of double arrays of shape [3]", spec.name)));
        }
        Ok(Uvw {
            block_rows: file.field(0),
            reference: file.field(1),
            antennas: file.field(2),
            file,
            pair: [key_column(args.table, ANTENNA_COLUMNS[0])?, key_column(args.table, ANTENNA_COLUMNS[1])?],
            direct: spec.storage == Storage::Direct,
        })
    };
    Ok(Box::new(open().context(place)?))
}

impl Uvw {
    /// Calls `each` with a row and its UVW, `None` if the file lacks the position of an antenna.
    fn for_rows(&self, rows: Range<u64>, mut each: impl FnMut(u64, Option<Position>) -> Result<()>) -> Result<()> {
        let mut row = rows.start;
        while row < rows.end {
            let end = rows.end.min(row + STEP_ROWS);
            let [first, second] = [read_keys(&self.pair[0], row..end)?, read_keys(&self.pair[1], row..end)?];
            let start = row;
            while row < end {
                let block = row.checked_div(self.block_rows).unwrap_or(0);
                let block_end = block.saturating_add(1).saturating_mul(self.block_rows);
                let stop = if self.block_rows == 0 { end } else { end.min(block_end) };
                let positions = self.positions(block, stop - row)?;
                for row in row..stop {
                    let index = (row - start) as usize;
                    each(row, self.difference(&positions, block, first[index], second[index])?)?;
                }
                row = stop;
            }
        }
        Ok(())
    }

    /// All antennas; empty if the file lacks the time step, or for one row: two reads are faster.
    fn positions(&self, block: u64, wanted_rows: u64) -> Result<Vec<Position>> {
        let stored = self.antennas.saturating_sub(1);
        let first = block.checked_mul(stored).filter(|&first| first < self.file.rows);
        let Some(first) = first.filter(|_| wanted_rows > 1) else { return Ok(Vec::new()) };
        let bytes = self.file.read(first, stored.min(self.file.rows - first))?;
        Ok(bytes.as_chunks().0.iter().map(position).collect())
    }

    /// Taken from the list, or else the file; `None` if it is missing or was never written.
    fn position(&self, positions: &[Position], block: u64, antenna: i32) -> Result<Option<Position>> {
        let Some(antenna) = u64::try_from(antenna).ok().filter(|&antenna| antenna < self.antennas) else {
            return Ok(None);
        };
        if antenna == self.reference {
            return Ok(Some([0.; 3]));
        }
        let index = if antenna < self.reference { antenna } else { antenna - 1 };
        let found = match positions.get(index as usize) {
            Some(position) => *position,
            None => {
                let row = block.checked_mul(self.antennas - 1).and_then(|first| first.checked_add(index));
                let Some(row) = row.filter(|&row| row < self.file.rows) else { return Ok(None) };
                position(self.file.read(row, 1)?.first_chunk().expect("a row was read"))
            }
        };
        Ok(Some(found).filter(|position| !position.contains(&UNKNOWN)))
    }

    fn difference(&self, positions: &[Position], block: u64, first: i32, second: i32) -> Result<Option<Position>> {
        let from = self.position(positions, block, first)?;
        let to = self.position(positions, block, second)?;
        Ok(from.zip(to).map(|(from, to)| std::array::from_fn(|axis| to[axis] - from[axis])))
    }

    fn unknown(&self, row: u64) -> Error {
        match self.direct {
            true => Error::format(format!("row {row}: the file has no position for one of the antennas")),
            false => undefined(row),
        }
    }

    fn value(&self, row: u64) -> Result<Option<Position>> {
        let mut value = None;
        self.for_rows(row..row + 1, |row, found| {
            if found.is_none() && self.direct {
                return Err(self.unknown(row));
            }
            value = found;
            Ok(())
        })?;
        Ok(value)
    }
}

fn position(row: &[u8; ROW_BYTES as usize]) -> Position {
    let mut position = [0.; 3];
    for (value, bytes) in position.iter_mut().zip(row.as_chunks().0) {
        *value = f64::from_bits(ByteOrder::Little.u64(*bytes));
    }
    position
}

impl Manager for Uvw {
    fn name(&self) -> &BStr {
        // the file does not have the name from creation
        BStr::new("")
    }

    fn column(&self, _index: usize) -> &dyn ColumnCells {
        self
    }
}

impl ColumnCells for Uvw {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        Ok(self.value(row).context(&self.file.place)?.map(|_| Shape::from([3])))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let value = self.value(row).and_then(|value| value.ok_or_else(|| self.unknown(row)));
        let value = value.context(&self.file.place)?;
        read_part(region, &Shape::from([3]), out, |out| match out {
            Values::Double(out) => {
                out.extend(value);
                Ok(())
            }
            _ => Err(Error::usage("UVW is read into Doubles")),
        })
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let Values::Double(out) = out else { return Err(Error::usage("UVW is read into Doubles")) };
        self.for_rows(rows, |row, value| {
            match value {
                Some(value) => out.extend(value),
                None if self.direct => return Err(self.unknown(row)),
                None => {}
            }
            Ok(())
        })
        .context(&self.file.place)
    }

    /// Computes all UVWs, which is faster than a query for each; `None` if one is unknown.
    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let defined = self.for_rows(rows.clone(), |row, value| value.map(drop).ok_or_else(|| undefined(row)));
        defined.ok().map(|()| Shape::from([3]))
    }
}
