//! VirtualTaQLColumn: a TaQL expression over columns of the table. formats/engines.md 1.11.
//!
//! | keyword                        | type   | meaning                                                      |
//! |--------------------------------|--------|--------------------------------------------------------------|
//! | `_VirtualTaQLEngine_CalcExpr`  | String | the expression                                               |
//! | `_VirtualTaQLEngine_Style`     | String | style of its indices, axes and ranges; missing before 2020   |
//!
//! An expression that [`taql`](crate::taql) does not support, or that casacore would refuse, is
//! refused when the column is opened.

use std::ops::Range;

use bstr::{BStr, ByteSlice};

use crate::error::{Context, Error, Result, ResultExt};
use crate::stman::manager::{EngineKeywords, Kind};
use crate::stman::{Access, ColumnCells, ColumnSpec, Manager, OpenArgs, OtherColumn, Storage, TableContext, read_part};
use crate::taql::{self, Block, ColumnType, Expression, Shapes, Table};
use crate::value::{Complex32, Record, Region, Shape, Values};

const EXPRESSION: &str = "_VirtualTaQLEngine_CalcExpr";

const STYLE: &str = "_VirtualTaQLEngine_Style";

/// Rows that are evaluated together, if memory allows.
const BLOCK_ROWS: u64 = 1 << 12;

/// Columns that are read for a cell, when expressions use columns of other expressions.
const MAX_READS: u64 = 1000;

pub(crate) static KIND: Kind = Kind {
    engine: Some(EngineKeywords { prefixes: &["_VirtualTaQLEngine_"], expression: Some(EXPRESSION) }),
    create: Some(super::write::create),
    ..Kind::new(&["VirtualTaQLColumn"], open)
};

#[derive(Debug)]
struct Engine {
    spec: ColumnSpec,
    expression: Expression,
    /// Ordered as the expression names them.
    columns: Vec<OtherColumn>,
    reads: u64,
}

fn open(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let ([spec], [keywords]) = (args.columns, args.column_keywords) else {
        let message = format!("VirtualTaQLColumn: the engine has {} columns, expected one", args.columns.len());
        return Err(Error::format(message));
    };
    let text = keywords.string(EXPRESSION).unwrap_or(BStr::new("(not stored)"));
    match Engine::new(spec, text, keywords.string(STYLE).unwrap_or_default(), args.table) {
        Ok(engine) => Ok(Box::new(engine)),
        Err(error) if error.may_be_left_out() => {
            let contexts: Vec<String> = error.contexts().map(|context| format!("{context}: ")).collect();
            let reason = format!("{}{}", contexts.concat(), error.message());
            Err(Error::unsupported(format!("VirtualTaQLColumn: the expression {text} is not evaluated: {reason}")))
        }
        Err(error) => Err(error.context(format!("VirtualTaQLColumn: the expression {text}"))),
    }
}

impl Engine {
    fn new(spec: &ColumnSpec, text: &BStr, style: &BStr, table: &dyn TableContext) -> Result<Self> {
        let utf8 = |text: &BStr| {
            text.to_str()
                .map(str::to_owned)
                .map_err(|error| Error::unsupported(format!("its text is not UTF-8: {error}")))
        };
        let mut found = TableColumns { table, found: Vec::new() };
        let expression = Expression::new(&utf8(text)?, &utf8(style)?, &mut found)?;
        let columns = found.found;
        let reads = columns.iter().fold(1u64, |sum, column| sum.saturating_add(column.reads()));
        if reads > MAX_READS {
            return Err(Error::limit(format!("a cell needs {reads} reads of other columns; the limit is {MAX_READS}")));
        }
        let described =
            |kind: String, is_array: bool| format!("{kind} {}", if is_array { "arrays" } else { "scalars" });
        let is_array = spec.storage != Storage::Scalar;
        if taql::Kind::of(spec.data_type) != Some(expression.kind()) || expression.is_array() != is_array {
            return Err(Error::unsupported(format!(
                "it gives {}, the column holds {}: casacore does not open such a table",
                described(expression.kind().to_string(), expression.is_array()),
                described(spec.data_type.to_string(), is_array)
            )));
        }
        Ok(Engine { spec: spec.clone(), expression, columns, reads })
    }

    /// Calls `each` with the values of one part of `rows` after the other.
    fn evaluate(&self, rows: Range<u64>, each: &mut dyn FnMut(Block) -> Result<()>) -> Result<()> {
        let (mut start, mut count) = (rows.start, BLOCK_ROWS);
        while start < rows.end {
            let part = start..rows.end.min(start.saturating_add(count));
            let found = part.end - part.start;
            match self.expression.evaluate(self, part.clone()).and_then(|block| self.checked(block)) {
                Ok(block) => {
                    each(block)?;
                    start = part.end;
                    count = (2 * count).min(BLOCK_ROWS);
                }
                // rows that need too much memory together, or not all of which have a value
                Err(error) if found > 1 && error.is_damage() => count = found / 2,
                Err(error) => return Err(error.context(Context::Row(start))),
            }
        }
        Ok(())
    }

    /// An error if a cell does not have the column's fixed shape.
    fn checked(&self, block: Block) -> Result<Block> {
        let is_array = self.spec.storage != Storage::Scalar;
        let Some(fixed) = self.spec.shape.as_ref().filter(|_| is_array) else { return Ok(block) };
        match (0..block.cells()).map(|cell| block.shape(cell)).find(|shape| shape != fixed) {
            None => Ok(block),
            Some(shape) => Err(Error::format(format!(
                "a cell has the shape {shape}, but the column's cells have the shape {fixed}"
            ))),
        }
    }

    fn cell(&self, row: u64) -> Result<Block> {
        let block = self.expression.evaluate(self, row..row + 1).and_then(|block| self.checked(block));
        block.with_context(|| Context::Row(row))
    }

    /// Appends values, converted as C converts them, to those of the column's type.
    fn append(&self, values: Values, out: &mut Values) -> Result<()> {
        macro_rules! integers {
            ($($variant:ident: $type:ty),*) => {
                match (values, out) {
                    (Values::Bool(v), Values::Bool(out)) => out.extend(v),
                    $((Values::Int64(v), Values::$variant(out)) => out.extend(v.into_iter().map(|v| v as $type)),)*
                    (Values::Double(v), Values::Float(out)) => out.extend(v.into_iter().map(|v| v as f32)),
                    (Values::Double(v), Values::Double(out)) => out.extend(v),
                    (Values::DComplex(v), Values::Complex(out)) => {
                        out.extend(v.into_iter().map(|v| Complex32::new(v.re as f32, v.im as f32)));
                    }
                    (Values::DComplex(v), Values::DComplex(out)) => out.extend(v),
                    (Values::String(mut v), Values::String(out)) => {
                        let longest = self.spec.max_length as usize;
                        if longest > 0 && self.spec.storage == Storage::Scalar {
                            v.iter_mut().for_each(|text| text.truncate(longest));
                        }
                        out.extend(v);
                    }
                    (values, out) => {
                        let (found, wanted) = (values.data_type(), out.data_type());
                        return Err(Error::usage(format!("values of type {found} are read into {wanted} values")));
                    }
                }
            };
        }
        integers!(UChar: u8, Short: i16, UShort: u16, Int: i32, UInt: u32, Int64: i64);
        Ok(())
    }
}

impl taql::Columns for Engine {
    fn shapes(&self, column: usize, rows: Range<u64>) -> Result<Shapes> {
        let OtherColumn { spec, .. } = &self.columns[column];
        if spec.storage == Storage::Scalar {
            return Ok(Shapes::Scalars);
        }
        let cells = self.columns[column].cells();
        let same = match &spec.shape {
            Some(shape) if spec.storage == Storage::Direct => Some(shape.clone()),
            _ => cells.same_shape(&rows),
        };
        match same {
            Some(shape) => Shapes::same((rows.end - rows.start) as usize, shape),
            None => Shapes::each(cells.shapes(rows).with_context(|| Context::column(&spec.name))?),
        }
    }

    fn values(&self, column: usize, rows: Range<u64>) -> Result<Values> {
        let other = &self.columns[column];
        let mut values = Values::new(other.spec.data_type);
        other.cells().read_rows(rows, &mut values).with_context(|| Context::column(&other.spec.name))?;
        Ok(values)
    }
}

impl Manager for Engine {
    /// Casacore gives it none.
    fn name(&self) -> &BStr {
        BStr::new("")
    }

    fn column(&self, _index: usize) -> &dyn ColumnCells {
        self
    }

    fn reads(&self, _index: usize) -> u64 {
        self.reads
    }
}

impl ColumnCells for Engine {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        if self.spec.storage == Storage::Scalar {
            return Ok(Some(Shape::scalar()));
        }
        Ok(Some(self.cell(row)?.shape(0)))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let block = self.cell(row)?;
        read_part(region, &block.shape(0), out, |out| self.append(block.values, out))
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        self.evaluate(rows, &mut |block| self.append(block.values, out))
    }

    fn access(&self) -> Access {
        Access::Computed
    }

    fn shapes(&self, rows: Range<u64>) -> Result<Vec<Option<Shape>>> {
        if self.spec.storage == Storage::Scalar {
            return Ok(rows.map(|_| Some(Shape::scalar())).collect());
        }
        let mut shapes = Vec::new();
        self.evaluate(rows, &mut |block| {
            shapes.extend((0..block.cells()).map(|cell| Some(block.shape(cell))));
            Ok(())
        })?;
        Ok(shapes)
    }

    fn same_shape(&self, _rows: &Range<u64>) -> Option<Shape> {
        self.spec.shape.clone()
    }
}

struct TableColumns<'a> {
    table: &'a dyn TableContext,
    found: Vec<OtherColumn>,
}

impl Table for TableColumns<'_> {
    fn column(&mut self, name: &str) -> Result<Option<ColumnType>> {
        if self.table.column_keywords(name.into()).is_err() {
            return Ok(None);
        }
        let column = self.table.column(name.into()).with_context(|| Context::column(name))?;
        let ColumnSpec { data_type, storage, ndim, .. } = column.spec;
        self.found.push(column);
        let axes = usize::try_from(ndim).ok().filter(|&axes| axes > 0);
        Ok(Some(ColumnType { data_type, is_array: storage != Storage::Scalar, axes }))
    }

    fn keywords(&self, column: Option<&str>) -> Result<&Record> {
        let Some(name) = column else { return Ok(self.table.keywords()) };
        let missing = |_| Error::unsupported(format!("the column {name} does not exist"));
        self.table.column_keywords(name.into()).map_err(missing)
    }
}
