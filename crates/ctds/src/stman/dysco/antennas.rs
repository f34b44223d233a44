//! Reads the antennas of rows from the columns ANTENNA1 and ANTENNA2: DyscoStMan, which compresses
//! visibilities with loss, multiplies the stored values by scale factors of these antennas.
//! formats/engines.md 2.1.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::stman::antennas::{ANTENNA_COLUMNS, key_column, read_keys};
use crate::stman::{OtherColumn, TableContext};

#[derive(Debug)]
pub(super) struct Antennas {
    /// Number of antennas that the header states; each has scale factors.
    count: u32,
    /// Columns, or the error of opening them, returned when they are needed.
    columns: Result<[OtherColumn; 2]>,
}

impl Antennas {
    pub(super) fn open(table: &dyn TableContext, count: u32) -> Self {
        let both = || Ok([key_column(table, ANTENNA_COLUMNS[0])?, key_column(table, ANTENNA_COLUMNS[1])?]);
        Antennas { count, columns: both() }
    }

    pub(super) fn read(&self, rows: Range<u64>) -> Result<Vec<[u32; 2]>> {
        let columns = self.columns.as_ref().map_err(Error::clone)?;
        let one = self.read_column(0, &columns[0], rows.clone())?;
        let other = self.read_column(1, &columns[1], rows)?;
        Ok(one.into_iter().zip(other).map(|(one, other)| [one, other]).collect())
    }

    fn read_column(&self, index: usize, column: &OtherColumn, rows: Range<u64>) -> Result<Vec<u32>> {
        let antennas = read_keys(column, rows.clone())?;
        rows.zip(antennas).map(|(row, antenna)| self.check(index, row, antenna)).collect()
    }

    /// Casacore does not check this, and reads beyond the scale factors.
    fn check(&self, index: usize, row: u64, antenna: i32) -> Result<u32> {
        u32::try_from(antenna).ok().filter(|&antenna| antenna < self.count).ok_or_else(|| {
            let found = format!("antenna {antenna} in row {row}, but the header has {}", self.count);
            Error::format(found).context(ANTENNA_COLUMNS[index])
        })
    }
}
