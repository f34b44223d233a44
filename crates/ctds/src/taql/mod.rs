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

#[derive(Debug)]
pub(crate) struct Expression {
    root: node::Node,
    columns: usize,
}

impl Expression {
    /// Styles are separated by commas, none is TaQL's own; columns are numbered as `table` finds
    /// them. `Unsupported`, with the place or the function, for a word that is not supported.
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

    /// A cell for each of `rows`, an empty vector for undefined operands. `Format` if a row has no
    /// value; `Limit` for too much memory: fewer rows may succeed.
    pub(crate) fn evaluate(&self, columns: &dyn Columns, rows: Range<u64>) -> Result<Block> {
        let count = (rows.end - rows.start) as usize;
        let block = evaluate::evaluate(&self.root, columns, self.columns, rows)?;
        Ok(block.defined().expanded(count).into_owned())
    }
}
