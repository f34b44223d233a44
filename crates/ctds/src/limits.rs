//! Limits on the memory, nesting and number of tables that a table can claim in only a few stored
//! bytes; they stop damaged and malicious files.
//!
//! Counts are checked against the bytes that remain (see [`crate::aipsio::Decoder`]); these limits
//! are for sizes that no input backs.

use std::ops::Range;

use crate::error::{Error, Result};

/// Bytes in memory of cells of which the file stores fewer, such as zeros never written.
const UNBACKED_CELL_BYTES: u64 = 1 << 28;

/// Bytes of a file of metadata (`table.dat`, `table.info`) that is read whole.
const WHOLE_FILE_BYTES: u64 = 1 << 30;

/// Rows of one conversion, comparison or digest; a table can claim any number in a few bytes.
const MAX_ROWS: u64 = 1 << 36;

/// Rows from which a condition (`where`) or a range of rows can select.
const MAX_SELECTED_ROWS: u64 = 1 << 33;

/// Tables that opening one may open: parts of a concatenation, targets of forwarded columns.
const MAX_TABLES: usize = 1 << 14;

/// Deepest nesting of records, subtables and groups. In JSON a record takes three levels, and the
/// parser allows 128.
pub const MAX_DEPTH: usize = 40;

pub fn unbacked_cell(bytes: u64) -> Result<()> {
    if bytes > UNBACKED_CELL_BYTES {
        return Err(Error::limit(format!(
            "a cell of {bytes} bytes of which the file stores none; the limit is {UNBACKED_CELL_BYTES}"
        )));
    }
    Ok(())
}

pub fn whole_file(bytes: u64) -> Result<()> {
    if bytes > WHOLE_FILE_BYTES {
        return Err(Error::limit(format!(
            "the file has {bytes} bytes, which is too much to be read whole; the limit is {WHOLE_FILE_BYTES}"
        )));
    }
    Ok(())
}

pub fn repeated(bytes: u64) -> Result<()> {
    if bytes > UNBACKED_CELL_BYTES {
        return Err(Error::limit(format!("{bytes} bytes of one string repeated; the limit is {UNBACKED_CELL_BYTES}")));
    }
    Ok(())
}

/// 2^36 rows are more than a telescope makes, and their numbers alone take half a terabyte.
pub fn rows(rows: u64) -> Result<()> {
    if rows > MAX_ROWS {
        return Err(Error::limit(format!("{rows} rows; the limit is {MAX_ROWS}")));
    }
    Ok(())
}

/// The rows that fit a bitmap of a gigabyte.
pub fn selected_rows(rows: u64) -> Result<()> {
    if rows > MAX_SELECTED_ROWS {
        return Err(Error::limit(format!("a condition on {rows} rows; the limit is {MAX_SELECTED_ROWS}")));
    }
    Ok(())
}

/// Refuses a half-open range that exceeds the `all` rows of the table.
pub fn row_range(rows: &Range<u64>, all: u64) -> Result<()> {
    if rows.start > rows.end || rows.end > all {
        return Err(Error::usage(format!("rows {}..{} exceed the table, which has {all} rows", rows.start, rows.end)));
    }
    Ok(())
}

pub fn tables(count: usize) -> Result<()> {
    if count > MAX_TABLES {
        return Err(Error::limit(format!("more than {MAX_TABLES} tables that one table leads to")));
    }
    Ok(())
}

/// `what` names the nested things in the error.
pub fn depth(depth: usize, what: &str) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::limit(format!("{what} are nested too deeply: the limit is {MAX_DEPTH} levels")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// The kind of error tells a limit from damage.
    #[test]
    fn every_limit_is_named() {
        let refused = [
            (unbacked_cell(UNBACKED_CELL_BYTES + 1), UNBACKED_CELL_BYTES),
            (whole_file(WHOLE_FILE_BYTES + 1), WHOLE_FILE_BYTES),
            (repeated(UNBACKED_CELL_BYTES + 1), UNBACKED_CELL_BYTES),
            (rows(MAX_ROWS + 1), MAX_ROWS),
            (selected_rows(MAX_SELECTED_ROWS + 1), MAX_SELECTED_ROWS),
            (tables(MAX_TABLES + 1), MAX_TABLES as u64),
            (depth(MAX_DEPTH + 1, "records"), MAX_DEPTH as u64),
        ];
        for (result, limit) in refused {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
            assert!(error.message().contains(&limit.to_string()), "{error}");
        }
        assert!(whole_file(WHOLE_FILE_BYTES).is_ok() && rows(MAX_ROWS).is_ok() && depth(MAX_DEPTH, "records").is_ok());
    }
}
