//! StManAipsIO stores every column as one AipsIO object; it was the storage manager of the 1990s.
//! formats/stman.md 4.
//!
//! The file is always big-endian, also in little-endian tables. It is read through once at opening,
//! to learn where the rows of each column are ([`segments`]); cells are read when asked for. Arrays
//! of varying shape are in `table.f<n>i`, or of early columns each in a file of its own,
//! `table.f<n>i<column>`.

mod column;
mod segments;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use self::column::{AipsIoColumn, Cell};
use self::segments::{Layout, Segments};
use super::elements::element_bits;
use super::indirect::ArrayFile;
use super::{ColumnCells, ColumnSpec, Kind, Manager, OpenArgs, Storage};
use crate::aipsio::Decoder;
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ByteOrder, Paged};
use crate::value::{DataType, Shape};

pub(super) static KIND: Kind = Kind { create: Some(write::create), ..Kind::new(&["StManAipsIO"], open) };

/// Byte order of the files, whatever that of the table is.
const ORDER: ByteOrder = ByteOrder::Big;

/// AipsIO object `StManAipsIO`:
///
/// | field | type | since | meaning |
/// |----------|----------|-------|------------------------------------------------------|
/// | name | string | 2 | of the manager |
/// | sequence | u32 | | must agree with table.dat |
/// | unique | u32 | | indirect columns ever made |
/// | rows | u32 | | must agree with the table |
/// | count | u32 | | columns; must agree |
/// | types | i32 each | | must agree |
/// | columns | | | objects: see [`Preamble`] and [`Segments`] |
#[derive(Debug)]
struct AipsIoManager {
    name: BString,
    columns: Vec<AipsIoColumn>,
}

#[derive(Debug)]
struct Shared {
    place: Context,
    file: Paged,
}

fn open(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let place = Context::managed(args.file_name(""), "StManAipsIO");
    let shared = Arc::new(Shared { file: Paged::new(args.file("")?).context(&place)?, place });
    Ok(Box::new(AipsIoManager::decode(&shared, args)?))
}

impl AipsIoManager {
    fn decode(shared: &Arc<Shared>, args: &OpenArgs<'_>) -> Result<Self> {
        let mut d = Decoder::new(&shared.file, 0, ORDER, "file").context(&shared.place)?;
        let name = Self::header(&mut d, args).context(&shared.place)?;
        let mut columns = Vec::new();
        for spec in args.columns {
            let (kind, segments) = Preamble::decode(&mut d, spec, args.rows)
                .with_context(|| Context::column(&spec.name))
                .with_context(|| &shared.place)?;
            let cell = match kind {
                Preamble::Elements { shape, count } => Cell::Elements { shape, count },
                Preamble::Array { suffix } => Cell::Array(ArrayFile::open(args, &suffix, ORDER, "StManAipsIO")),
            };
            columns.push(AipsIoColumn { shared: shared.clone(), cell, segments });
        }
        d.end().context(&shared.place)?;
        Ok(AipsIoManager { name, columns })
    }

    /// Up to the columns; returns the name of the manager.
    fn header(d: &mut Decoder<'_>, args: &OpenArgs<'_>) -> Result<BString> {
        let version = d.root("StManAipsIO", 1..=2)?;
        let name = if version >= 2 { d.string("name")? } else { BString::default() };
        let expect = |d: &Decoder<'_>, what: &str, found: u32, expected: u64| match u64::from(found) == expected {
            true => Ok(()),
            false => Err(d.error(format!("{what} {found}, the table has {expected}"))),
        };
        let sequence = d.u32("sequence number")?;
        expect(d, "sequence number", sequence, u64::from(args.sequence))?;
        d.u32("unique number")?;
        let rows = d.u32("rows")?;
        expect(d, "rows:", rows, args.rows)?;
        let count = d.u32("columns")?;
        expect(d, "columns:", count, args.columns.len() as u64)?;
        for spec in args.columns {
            let code = d.i32("data type")?;
            if DataType::from_code(code) != Some(spec.data_type) {
                return Err(d.error(format!("column {} has data type {code}, not {}", spec.name, spec.data_type)));
            }
        }
        Ok(name)
    }
}

/// Tells whether the cells of a column are elements or arrays in another file.
///
/// A scalar column is just its [`Segments`]; the others precede them:
///
/// | `StManColumnArrayAipsIO` | | | `StManColumnIndArrayAipsIO` | |
/// |-----------|-------------|-----------|-|------------|------------------------|
/// | data type | u32 | version 1 | | data type | i32 |
/// | shape | `IPosition` | version 1 | | column | u32: `j` of its file in version 1 |
/// | elements | u32 | version 1 | | | |
enum Preamble {
    Elements { shape: Shape, count: u64 },
    Array { suffix: String },
}

impl Preamble {
    fn decode(d: &mut Decoder<'_>, spec: &ColumnSpec, rows: u64) -> Result<(Self, Segments)> {
        match (spec.storage, &spec.shape) {
            (Storage::Scalar, _) => {
                let layout = match spec.data_type {
                    DataType::String => Layout::Strings { count: 1, counted: false },
                    DataType::Bool => Layout::Bits,
                    data_type => Layout::Fixed { skip: 0, bytes: data_type.size() as u64 },
                };
                let segments = Segments::decode(d, rows, Some(1), |_| layout)?;
                Ok((Preamble::Elements { shape: Shape::scalar(), count: 1 }, segments))
            }
            (Storage::Direct, None) => Err(Error::format("a direct column has no shape")),
            (Storage::Direct, Some(shape)) => {
                let count = shape.elements()?;
                let version = d.start("StManColumnArrayAipsIO", 1..=2)?;
                if version == 1 {
                    d.u32("data type")?;
                    d.shape("shape")?;
                    d.u32("elements")?;
                }
                let segments = Segments::decode(d, rows, Some(count), |version| match spec.data_type {
                    DataType::String => Layout::Strings { count, counted: version == 1 },
                    data_type => Layout::Fixed {
                        skip: if version == 1 { 4 } else { 0 },
                        bytes: count.saturating_mul(element_bits(data_type)).div_ceil(8),
                    },
                })?;
                d.end()?;
                Ok((Preamble::Elements { shape: shape.clone(), count }, segments))
            }
            (Storage::Indirect, _) => {
                let version = d.start("StManColumnIndArrayAipsIO", 1..=2)?;
                d.i32("data type")?;
                let column = d.u32("unique column number")?;
                let suffix = if version == 1 { format!("i{column}") } else { "i".to_owned() };
                let segments = Segments::decode(d, rows, None, |_| Layout::Offsets)?;
                d.end()?;
                Ok((Preamble::Array { suffix }, segments))
            }
        }
    }
}

impl Manager for AipsIoManager {
    fn name(&self) -> &BStr {
        self.name.as_bstr()
    }

    fn readable(&self, index: usize) -> Result<()> {
        self.columns[index].readable()
    }

    fn column(&self, index: usize) -> &dyn ColumnCells {
        &self.columns[index]
    }
}
