//! Engines that compute a column from one stored column, cell by cell: casacore's
//! BaseMappedArrayEngine. formats/engines.md 0.3.
//!
//! The keyword `_BaseMappedArrayEngine_Name` of the virtual column names the stored one, which may
//! itself be virtual. A virtual cell is defined where the stored cell is. The [`Coding`] of an
//! engine computes elements; reading cells, rows and regions is here.

use std::cell::Cell;
use std::fmt::Debug;
use std::ops::Range;

use bstr::{BStr, ByteSlice};

use crate::error::{Context, Error, Result, ResultExt};
use crate::stman::{ColumnCells, ColumnSpec, Manager, OpenArgs, OtherColumn, Storage, undefined};
use crate::value::{DataType, Record, Region, Shape, Values};

pub(crate) const STORED_COLUMN: &str = "_BaseMappedArrayEngine_Name";

/// Keywords inherited from casacore's BaseMappedArrayEngine.
pub(super) const STORED_COLUMN_PREFIX: &str = "_BaseMappedArrayEngine_";

pub(super) trait Coding: Debug + Send + Sync + 'static {
    /// Parameters of a row, such as scale and offset.
    type Row: Copy;

    /// If 2, stored cells have an additional first axis of that length.
    const STORED: usize = 1;

    fn rows(&self, rows: Range<u64>) -> Result<Rows<Self::Row>>;

    fn decode(&self, row: Self::Row, stored: &Values, range: Range<usize>, out: &mut Values) -> Result<()>;
}

/// The same parameters for all rows, or those of each row.
#[derive(Debug)]
pub(super) enum Rows<R> {
    Same(R),
    Each(Vec<R>),
}

pub(super) struct Mapping<'a> {
    pub(super) args: &'a OpenArgs<'a>,
    pub(super) spec: &'a ColumnSpec,
    pub(super) keywords: &'a Record,
    pub(super) stored: OtherColumn,
    /// As [`Manager::reads`], of scale and offset columns.
    pub(super) parameter_reads: Cell<u64>,
}

#[derive(Debug)]
struct Engine<C> {
    /// Without template arguments, for errors.
    type_name: &'static str,
    spec: ColumnSpec,
    stored: OtherColumn,
    reads: u64,
    coding: C,
}

/// `coding` checks the element types of the two columns, and reads the parameters.
pub(super) fn open<C: Coding>(
    type_name: &'static str,
    args: &OpenArgs<'_>,
    coding: impl FnOnce(&Mapping<'_>) -> Result<C>,
) -> Result<Box<dyn Manager>> {
    let open = || {
        let ([spec], [keywords]) = (args.columns, args.column_keywords) else {
            return Err(Error::format(format!("the engine has {} columns, expected one", args.columns.len())));
        };
        let stored = other_column(args, keywords, STORED_COLUMN)?;
        let mapping = Mapping { args, spec, keywords, stored, parameter_reads: Cell::new(0) };
        let stored = &mapping.stored.spec;
        for column in [spec, stored] {
            if column.storage == Storage::Scalar {
                return Err(Error::format(format!("column {} has scalars, arrays are expected", column.name)));
            }
        }
        let coding = coding(&mapping)?;
        let reads = mapping.stored.reads().saturating_add(mapping.parameter_reads.get());
        Ok(Engine { type_name, spec: spec.clone(), stored: mapping.stored, reads, coding })
    };
    let engine: Engine<C> = open().context(type_name)?;
    Ok(Box::new(engine))
}

/// Opens the column, of the same table, that the keyword `key` names.
pub(super) fn other_column(args: &OpenArgs<'_>, keywords: &Record, key: &str) -> Result<OtherColumn> {
    let name = keywords.string(key).ok_or_else(|| Error::format(format!("the column keyword {key} is missing")))?;
    args.table.column(name).context(key)
}

impl Mapping<'_> {
    pub(super) fn wrong_types(&self) -> Error {
        Error::format(format!(
            "a column of {} values cannot be stored as {} in column {}",
            self.spec.data_type, self.stored.spec.data_type, self.stored.spec.name
        ))
    }

    pub(super) fn expect(&self, data_type: DataType, stored: &[DataType]) -> Result<()> {
        let found = self.spec.data_type == data_type && stored.contains(&self.stored.spec.data_type);
        if found { Ok(()) } else { Err(self.wrong_types()) }
    }
}

impl<C: Coding> Engine<C> {
    /// An error if the computed column is declared as Direct, with another shape.
    fn shape_from(&self, stored: Shape) -> Result<Shape> {
        let shape = match (C::STORED as u64, stored.split_first()) {
            (1, _) => stored,
            (factor, Some((&first, rest))) if first == factor => rest.into(),
            (factor, _) => {
                let message = format!("a stored cell of shape {stored}, a first axis of {factor} is expected");
                return Err(Error::format(message));
            }
        };
        match &self.spec.shape {
            Some(fixed) if self.spec.storage == Storage::Direct && shape != *fixed => {
                Err(Error::format(format!("a cell of shape {shape}, but the column's cells have shape {fixed}")))
            }
            _ => Ok(shape),
        }
    }

    fn shape(&self, row: u64) -> Result<Option<Shape>> {
        match self.stored.cells().cell_shape(row).with_context(|| self.below())? {
            Some(stored) => self.shape_from(stored).map(Some).with_context(|| Context::Row(row)),
            None if self.spec.storage == Storage::Direct => Err(undefined(row).context(self.below())),
            None => Ok(None),
        }
    }

    /// `None` if the shape is not known or not common.
    fn same_stored_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        match &self.stored.spec {
            ColumnSpec { storage: Storage::Direct, shape: Some(shape), .. } => Some(shape.clone()),
            _ => self.stored.cells().same_shape(rows),
        }
    }

    /// Context of errors of the stored column.
    fn below(&self) -> String {
        format!("column {}", self.stored.spec.name)
    }

    fn read(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let mut stored = Values::new(self.stored.spec.data_type);
        self.stored.cells().read_rows(rows.clone(), &mut stored).with_context(|| self.below())?;
        let parameters = self.coding.rows(rows.clone())?;
        let same = match self.same_stored_shape(&rows) {
            Some(shape) => Some(self.shape_from(shape)?),
            None => None,
        };
        let any_shape = C::STORED == 1 && self.spec.storage != Storage::Direct;
        if let Rows::Same(row) = parameters
            && (same.is_some() || any_shape)
        {
            return self.coding.decode(row, &stored, 0..stored.len(), out);
        }
        let mut start = 0;
        for (index, row) in rows.enumerate() {
            let shape = if same.is_some() { same.clone() } else { self.shape(row)? };
            let Some(shape) = shape else { continue };
            let end = start + shape.elements()? as usize * C::STORED;
            if end > stored.len() {
                return Err(Error::format(format!("row {row} has fewer elements than its shape")).context(self.below()));
            }
            let parameters = match &parameters {
                Rows::Same(row) => *row,
                Rows::Each(each) => each[index],
            };
            self.coding.decode(parameters, &stored, start..end, out)?;
            start = end;
        }
        Ok(())
    }
}

impl<C: Coding> Manager for Engine<C> {
    fn name(&self) -> &BStr {
        self.spec.name.as_bstr()
    }

    fn column(&self, _index: usize) -> &dyn ColumnCells {
        self
    }

    fn reads(&self, _index: usize) -> u64 {
        self.reads
    }
}

impl<C: Coding> ColumnCells for Engine<C> {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.shape(row).context(self.type_name)
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let mut read = || {
            let shape = self.shape(row)?.ok_or_else(|| undefined(row))?;
            let Some(region) = region else { return self.read(row..row + 1, out) };
            region.check(&shape)?;
            let mut below = region.clone();
            if C::STORED > 1 {
                below.start = std::iter::once(0).chain(region.start.iter().copied()).collect();
                below.shape = std::iter::once(C::STORED as u64).chain(region.shape.iter().copied()).collect();
            }
            let mut stored = Values::new(self.stored.spec.data_type);
            self.stored.cells().read_cell(row, Some(&below), &mut stored).with_context(|| self.below())?;
            let row = match self.coding.rows(row..row + 1)? {
                Rows::Same(row) => row,
                Rows::Each(rows) => rows[0],
            };
            self.coding.decode(row, &stored, 0..stored.len(), out)
        };
        read().context(self.type_name)
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        self.read(rows, out).context(self.type_name)
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        self.shape_from(self.same_stored_shape(rows)?).ok()
    }
}
