//! For the tests of the managers: bytes from formats/stman.md, and what to open them with.

use std::panic::Location;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bstr::BStr;

use super::{
    ColumnCells, ColumnSpec, Columns, CreateArgs, Manager, OpenArgs, OtherColumn, Storage, TableContext, read_part,
    undefined,
};
use crate::container::{Container, Memory};
use crate::error::{Error, ErrorKind, Result};
use crate::io::ByteOrder;
use crate::value::{DataType, Record, Region, Shape, Values};

static NO_KEYWORDS: LazyLock<Record> = LazyLock::new(Record::default);

/// Notation: hexadecimal digits, `'text'`, and `00*12` for a repeated byte.
pub(super) fn bytes(notation: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, part) in notation.split('\'').enumerate() {
        if index % 2 == 1 {
            bytes.extend_from_slice(part.as_bytes());
            continue;
        }
        for word in part.split_whitespace() {
            let (digits, times) = word.split_once('*').unwrap_or((word, "1"));
            for _ in 0..times.parse().unwrap() {
                bytes.extend(
                    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()),
                );
            }
        }
    }
    bytes
}

pub(super) fn column(name: &str, data_type: DataType, storage: Storage, shape: Option<&[u64]>) -> ColumnSpec {
    let scalar = storage == Storage::Scalar;
    let shape = if scalar { Some(Shape::scalar()) } else { shape.map(Shape::from) };
    ColumnSpec { name: name.into(), data_type, storage, shape, ndim: if scalar { 0 } else { -1 }, max_length: 0 }
}

pub(super) fn args<'a>(
    files: &'a dyn Container,
    order: ByteOrder,
    rows: u64,
    columns: &'a [ColumnSpec],
    info: &'a [u8],
) -> OpenArgs<'a> {
    OpenArgs {
        type_name: BStr::new(""),
        files,
        sequence: 0,
        rows,
        order,
        columns,
        info,
        private_keywords: &NO_KEYWORDS,
        column_keywords: &[],
        table: &Alone,
    }
}

pub(super) fn create_args<'a>(
    files: &Arc<Memory>,
    order: ByteOrder,
    columns: &'a [ColumnSpec],
    parameters: &'a Record,
) -> CreateArgs<'a> {
    CreateArgs {
        name: BStr::new("Test"),
        files: files.clone(),
        sequence: 0,
        order,
        columns,
        parameters,
        private_keywords: &NO_KEYWORDS,
    }
}

/// Every damaged form of `good` ends soon: well, or with a one-line error that damage leads to.
#[track_caller]
pub(super) fn damage(good: &[u8], read: impl Fn(Vec<u8>) -> Result<()>) {
    read(good.to_vec()).unwrap_or_else(|error| panic!("{}: {error}", Location::caller()));
    let damaged = |bytes: Vec<u8>, what: String| {
        let started = Instant::now();
        if let Err(error) = read(bytes) {
            let (kind, text) = (error.kind(), error.to_string());
            let is_suitable = matches!(kind, ErrorKind::Format | ErrorKind::Limit | ErrorKind::Unsupported);
            assert!(is_suitable && !text.contains('\n'), "{what}: {error:?}");
        }
        assert!(started.elapsed() < LONGEST, "{what}: took {:?}", started.elapsed());
    };
    for len in 0..good.len() {
        damaged(good[..len].to_vec(), format!("cut at {len}"));
    }
    for at in 0..good.len() {
        for flip in [0x01, 0x04, 0x80, 0xff] {
            let mut bytes = good.to_vec();
            bytes[at] ^= flip;
            damaged(bytes, format!("byte {at} ^ {flip:#x}"));
        }
    }
}

/// A damaged file has a few hundred bytes; other tests may keep the machine busy.
const LONGEST: Duration = Duration::from_secs(10);

/// Cells read at once and one by one, which must agree.
pub fn read_both_ways(column: &dyn ColumnCells, rows: u64, data_type: DataType) -> Result<Values> {
    let mut at_once = Values::new(data_type);
    column.read_rows(0..rows, &mut at_once)?;
    let mut one_by_one = Values::new(data_type);
    for row in 0..rows {
        let Some(shape) = column.cell_shape(row)? else {
            let error = column.read_cell(row, None, &mut one_by_one).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::NotFound);
            continue;
        };
        let before = one_by_one.len();
        column.read_cell(row, None, &mut one_by_one)?;
        assert_eq!((one_by_one.len() - before) as u64, shape.elements()?);
        let mut region = Values::new(data_type);
        column.read_cell(row, Some(&Region::whole(&shape)), &mut region)?;
        assert_eq!(region.len(), one_by_one.len() - before);
    }
    // bytes, because a damaged NaN differs from itself
    match at_once.le_bytes() {
        Some(bytes) => assert_eq!(Some(bytes), one_by_one.le_bytes()),
        None => assert_eq!(at_once, one_by_one),
    }
    Ok(at_once)
}

#[derive(Debug)]
pub(super) struct Alone;

impl Columns for Alone {
    fn rows(&self) -> u64 {
        0
    }

    fn keywords(&self) -> &Record {
        &NO_KEYWORDS
    }

    fn column(&self, name: &BStr) -> Result<OtherColumn> {
        Err(Error::format(format!("column {name} does not exist")))
    }
}

impl TableContext for Alone {
    fn column_keywords(&self, _name: &BStr) -> Result<&Record> {
        Ok(&NO_KEYWORDS)
    }

    fn table(&self, stored: &BStr) -> Result<Box<dyn Columns>> {
        Err(Error::not_found(format!("table {stored} does not exist")))
    }
}

/// Columns in memory, and tables of the same columns.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) rows: u64,
    pub(super) keywords: Record,
    columns: Vec<(ColumnSpec, Record, Arc<GivenColumn>)>,
}

/// Shape and elements of each row; `None`: undefined.
#[derive(Debug)]
struct GivenColumn(Vec<Option<(Shape, Values)>>);

impl Given {
    pub(super) fn scalars(self, name: &str, values: Values) -> Self {
        let cell = |row| {
            let mut cell = Values::new(values.data_type());
            cell.extend_from(&values, row..row + 1).unwrap();
            Some((Shape::scalar(), cell))
        };
        let cells = (0..values.len()).map(cell).collect();
        self.column(column(name, values.data_type(), Storage::Scalar, None), Record::default(), cells)
    }

    pub(super) fn column(mut self, spec: ColumnSpec, keywords: Record, cells: Vec<Option<(Shape, Values)>>) -> Self {
        self.rows = cells.len() as u64;
        self.columns.push((spec, keywords, Arc::new(GivenColumn(cells))));
        self
    }

    fn find(&self, name: &BStr) -> Result<&(ColumnSpec, Record, Arc<GivenColumn>)> {
        let found = self.columns.iter().find(|column| column.0.name == name);
        found.ok_or_else(|| Error::format(format!("column {name} does not exist")))
    }
}

impl Columns for Given {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn keywords(&self) -> &Record {
        &self.keywords
    }

    fn column(&self, name: &BStr) -> Result<OtherColumn> {
        let (spec, _, column) = self.find(name)?;
        Ok(OtherColumn { spec: spec.clone(), manager: column.clone(), index: 0 })
    }
}

impl TableContext for Given {
    fn column_keywords(&self, name: &BStr) -> Result<&Record> {
        Ok(&self.find(name)?.1)
    }

    /// `self` is a table with the same columns.
    fn table(&self, stored: &BStr) -> Result<Box<dyn Columns>> {
        if stored != "self" {
            return Err(Error::not_found(format!("table {stored} does not exist")));
        }
        let (rows, keywords, columns) = (self.rows, self.keywords.clone(), self.columns.clone());
        Ok(Box::new(Given { rows, keywords, columns }))
    }
}

impl Manager for GivenColumn {
    fn name(&self) -> &BStr {
        BStr::new("given")
    }

    fn column(&self, _index: usize) -> &dyn ColumnCells {
        self
    }
}

impl ColumnCells for GivenColumn {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        Ok(self.0[row as usize].as_ref().map(|(shape, _)| shape.clone()))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let (shape, values) = self.0[row as usize].as_ref().ok_or_else(|| undefined(row))?;
        read_part(region, shape, out, |out| out.extend_from(values, 0..values.len()))
    }
}
