//! The antennas of rows, from other columns of the table. formats/engines.md 2.1.

use std::ops::Range;

use crate::error::{Error, Result, ResultExt};
use crate::stman::{Around, ColumnSpec, OtherColumn, Storage};
use crate::value::{DataType, Values};

const NAMES: [&str; 2] = ["ANTENNA1", "ANTENNA2"];

/// The columns ANTENNA1 and ANTENNA2.
#[derive(Debug)]
pub(super) struct Antennas {
    /// In the header: each antenna has scales.
    count: u32,
    /// What is wrong with them shows when they are needed.
    columns: Result<[OtherColumn; 2]>,
}

impl Antennas {
    pub(super) fn open(around: &dyn Around, count: u32) -> Self {
        let open = |name: &str| {
            let column = around.column(name.into())?;
            let ColumnSpec { data_type, storage, .. } = column.spec;
            if (data_type, storage) != (DataType::Int, Storage::Scalar) {
                return Err(Error::format(format!("column {name} does not hold int scalars, but {data_type}")));
            }
            Ok(column)
        };
        let both = || Ok([open(NAMES[0])?, open(NAMES[1])?]);
        Antennas { count, columns: both() }
    }

    /// The antennas of each of `rows`, all of them below the number in the header.
    pub(super) fn read(&self, rows: Range<u64>) -> Result<Vec<[u32; 2]>> {
        let columns = self.columns.as_ref().map_err(Error::clone)?;
        let one = self.read_column(0, &columns[0], rows.clone())?;
        let other = self.read_column(1, &columns[1], rows)?;
        Ok(one.into_iter().zip(other).map(|(one, other)| [one, other]).collect())
    }

    fn read_column(&self, index: usize, column: &OtherColumn, rows: Range<u64>) -> Result<Vec<u32>> {
        let mut values = Values::new(DataType::Int);
        column.cells().read_rows(rows.clone(), &mut values).context(NAMES[index])?;
        let wanted = rows.end - rows.start;
        match values {
            Values::Int(values) if values.len() as u64 == wanted => {
                rows.zip(values).map(|(row, antenna)| self.check(index, row, antenna)).collect()
            }
            values => Err(Error::format(format!("{} values in {wanted} rows", values.len())).context(NAMES[index])),
        }
    }

    /// Casacore does not check, and takes whatever lies behind the scales.
    fn check(&self, index: usize, row: u64, antenna: i32) -> Result<u32> {
        u32::try_from(antenna).ok().filter(|&antenna| antenna < self.count).ok_or_else(|| {
            let found = format!("antenna {antenna} in row {row}, but the header has {}", self.count);
            Error::format(found).context(NAMES[index])
        })
    }
}
