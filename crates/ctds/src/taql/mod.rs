//! TaQL expressions, which compute the columns of VirtualTaQLColumn. formats/engines.md 1.11.
//!
//! | file            | purpose                                                              |
//! |-----------------|----------------------------------------------------------------------|
//! | `token`         | the words of an expression                                           |
//! | `parse`         | the words as a tree                                                  |
//! | `style`         | how indices, axes and ranges are counted                             |
//! | `compile`       | columns and keywords found, types and units of all parts             |
//! | `function`      | functions: their arguments, types and units                          |
//! | `node`, `typing`| an expression with types; operations on it                           |
//! | `unit`          | units and their conversion                                           |
//! | `block`         | values in a block of rows                                            |
//! | `evaluate`      | values of an expression in a block of rows                           |
//! | `elementwise`   | operators and functions element by element; `complex`, `text` and `pattern` have the details |
//! | `rearrange`     | slices, transposed arrays, fewer axes; `reduce` has sums, means …    |
//! | `set`           | arrays of values and ranges, and membership                          |
//!
//! An expression has at most 2^14 bytes and 100 operations within each other. Operations work on
//! the cells of a block of rows; values are Bools, integers of 64 bits, doubles, complex numbers of
//! two doubles, or strings.

mod block;
mod compile;
mod complex;
mod elementwise;
mod evaluate;
mod function;
mod node;
mod parse;
mod pattern;
mod rearrange;
mod reduce;
mod set;
mod style;
#[cfg(test)]
mod tests;
mod text;
mod token;
mod typing;
mod unit;

use std::ops::Range;

use crate::error::Result;

pub(crate) use block::{Block, Shapes};
pub(crate) use compile::{ColumnType, Table};
pub(crate) use evaluate::Columns;
pub(crate) use node::Kind;

/// An expression whose columns have been found.
#[derive(Debug)]
pub(crate) struct Expression {
    root: node::Node,
    /// Columns that it uses.
    columns: usize,
}

impl Expression {
    /// `style`: names of TaQL's styles, separated by commas; empty for TaQL's own. Columns have
    /// numbers in the order in which `table` finds them.
    ///
    /// # Errors
    /// `Unsupported`, with the place or the function, if the expression has a word that is not
    /// supported; those of opening columns.
    pub(crate) fn new(text: &str, style: &str, table: &mut dyn Table) -> Result<Self> {
        let style = style::Style::new(style)?;
        let tree = parse::parse(text)?;
        let mut compiler = compile::Compiler { table, style, columns: Vec::new() };
        let root = compiler.node(&tree)?;
        Ok(Expression { root, columns: compiler.columns.len() })
    }

    pub(crate) fn kind(&self) -> Kind {
        self.root.kind
    }

    pub(crate) fn is_array(&self) -> bool {
        self.root.is_array
    }

    /// A cell for each of `rows`; empty vectors where cells that it is made of are undefined.
    ///
    /// # Errors
    /// `Format` if the expression has no value in a row; `Limit` if it needs too much memory for
    /// one row, or for all of `rows`: then fewer rows may succeed; those of reading columns.
    pub(crate) fn evaluate(&self, columns: &dyn Columns, rows: Range<u64>) -> Result<Block> {
        let count = (rows.end - rows.start) as usize;
        let block = evaluate::evaluate(&self.root, columns, self.columns, rows)?;
        Ok(block.defined().expanded(count).into_owned())
    }
}
