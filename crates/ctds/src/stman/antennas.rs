//! Reads key columns of a MeasurementSet (`ANTENNA1`, `FIELD_ID` …), for managers that compute
//! values from them.

use std::ops::Range;

use super::{OtherColumn, Storage, TableContext};
use crate::error::{Context, Error, Result, ResultExt};
use crate::value::{DataType, Values};

pub(super) const ANTENNA_COLUMNS: [&str; 2] = ["ANTENNA1", "ANTENNA2"];

/// Opens a key column such as `ANTENNA1`; fails unless it holds Int scalars.
pub(super) fn key_column(table: &dyn TableContext, name: &str) -> Result<OtherColumn> {
    let column = table.column(name.into())?;
    let (found, storage) = (column.spec.data_type, column.spec.storage);
    if (found, storage) != (DataType::Int, Storage::Scalar) {
        return Err(Error::format(format!("column {name} does not hold int scalars, but {found}")));
    }
    Ok(column)
}

pub(super) fn read_keys(column: &OtherColumn, rows: Range<u64>) -> Result<Vec<i32>> {
    let count = rows.end - rows.start;
    let mut values = Values::new(DataType::Int);
    column.cells().read_rows(rows, &mut values).with_context(|| Context::column(&column.spec.name))?;
    match values {
        Values::Int(values) if values.len() as u64 == count => Ok(values),
        values => {
            let message = format!("column {} has {} int scalars in {count} rows", column.spec.name, values.len());
            Err(Error::format(message))
        }
    }
}
