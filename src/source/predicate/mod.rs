//! Conditions on scalar columns, by which rows are selected:
//! `DATA_DESC_ID == 1 && FIELD_ID == "3C286"`.
//!
//! | file          | purpose                                                          |
//! |---------------|------------------------------------------------------------------|
//! | `token.rs`    | the words of a condition                                         |
//! | `parse.rs`    | the words as a tree                                              |
//! | `resolve.rs`  | columns found, names and dates replaced by numbers               |
//! | `evaluate.rs` | the rows that satisfy it                                         |
//! | `date.rs`     | dates as modified Julian dates                                   |

mod date;
mod evaluate;
mod parse;
mod resolve;
#[cfg(test)]
mod tests;
mod token;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A condition on the scalar columns of the main table, by which rows are selected.
///
/// | form | example |
/// |---|---|
/// | comparison by `==` (or `=`), `!=`, `<`, `<=`, `>`, `>=` | `TIME >= 4.9e9`, `ANTENNA1 != ANTENNA2` |
/// | range without its end, or with it | `SCAN_NUMBER in 3..5`, `SCAN_NUMBER in 3..=5` |
/// | list of values and ranges | `DATA_DESC_ID in [0, 2, 8..16]` |
/// | Bool column | `FLAG_ROW` |
/// | `&&` (`and`), `\|\|` (`or`), `!` (`not`), parentheses | `!FLAG_ROW && (SCAN_NUMBER == 1 \|\| SCAN_NUMBER == 4)` |
///
/// Text is in quotes, double or single. For a number of rows of a subtable it is a name there:
/// `FIELD_ID == "3C286"` (FIELD/NAME), `ANTENNA1 in ["DV01", "DV02"]` (ANTENNA/NAME),
/// `STATE_ID == "ON_SOURCE"` (STATE/OBS_MODE). For an epoch it is a date:
/// `TIME > "2014-04-22T10:30:00"`, in the time system of the column.
///
/// A comparison with an undefined cell is neither true nor false, and its row is selected only if
/// the rest decides.
///
/// ```
/// use ctds_hdf5::convert::Predicate;
///
/// let predicate: Predicate = "DATA_DESC_ID == 1 && SCAN_NUMBER in 3..=5".parse()?;
/// assert_eq!(predicate.to_string(), "DATA_DESC_ID == 1 && SCAN_NUMBER in 3..=5");
///
/// let error = "SCAN_NUMBER = > 3".parse::<Predicate>().unwrap_err();
/// assert!(error.to_string().contains("at character 15"));
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Predicate {
    text: String,
    condition: parse::Condition,
}

impl FromStr for Predicate {
    type Err = Error;

    /// Fails with `Usage`, and the number of the character, if the text is not a condition.
    fn from_str(text: &str) -> Result<Self> {
        Ok(Predicate { text: text.trim().to_owned(), condition: parse::parse(text)? })
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
