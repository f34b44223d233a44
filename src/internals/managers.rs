//! Fuzz targets for single storage managers without the table.dat around them: the input says what
//! the manager is told about its table.

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::fuzz::{File, in_memory, named, pack, read_column, unpack};
use crate::aipsio::{Decoder, Encoder};
use crate::error::{Error, Result};
use crate::io::ByteOrder;
use crate::schema::{Body, TableDat};
use crate::stman::{self, ColumnCells, ColumnSpec, Columns, Manager, OpenArgs, OtherColumn, Storage, TableContext};
use crate::table::Table;
use crate::value::{DataType, Record, Region, Shape, Values};

/// Packed entry with the type name of the manager.
const TYPE: &str = "type";
/// Packed entry with the manager's own bytes of table.dat.
const INFO: &str = "info";
/// Packed entry with rows, byte order and sequence number.
const TABLE: &str = "table";
const KEYWORDS: &str = "private keywords";
/// Packed entries with one column each, and with its keywords.
const COLUMN: &str = "column";
const COLUMN_KEYWORDS: &str = "keywords";

/// The input names the type.
pub(super) fn any(bytes: &[u8]) -> Result<()> {
    let files = unpack(bytes);
    let type_name = files.iter().find(|file| file.0 == TYPE).map_or(&b""[..], |file| &file.1);
    read(type_name.as_bstr(), &files)
}

/// The type that the input names is ignored.
pub(super) fn one(type_name: &str, bytes: &[u8]) -> Result<()> {
    read(type_name.into(), &unpack(bytes))
}

fn read(type_name: &BStr, files: &[File]) -> Result<()> {
    let entry = |name: &str| files.iter().find(|file| file.0 == name).map_or(&[][..], |file| &file.1);
    let all = |name: &'static str| files.iter().filter(move |file| file.0 == name).map(|file| &file.1[..]);
    let number = |at: usize, len: usize| -> u64 {
        entry(TABLE).iter().skip(at).take(len).rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    };
    let columns: Vec<ColumnSpec> = all(COLUMN).map(decode_spec).collect::<Result<_>>()?;
    let private_keywords = decode_record(entry(KEYWORDS))?;
    let keywords: Vec<Record> = all(COLUMN_KEYWORDS).map(decode_record).collect::<Result<_>>()?;
    let none = Record::default();
    let column_keywords: Vec<&Record> = (0..columns.len()).map(|at| keywords.get(at).unwrap_or(&none)).collect();
    let args = OpenArgs {
        type_name,
        files: &*in_memory(files),
        sequence: number(9, 4) as u32,
        rows: number(0, 8),
        order: if number(8, 1) % 2 == 0 { ByteOrder::Big } else { ByteOrder::Little },
        columns: &columns,
        info: entry(INFO),
        private_keywords: &private_keywords,
        column_keywords: &column_keywords,
        table: &Table01 { rows: number(0, 8), keywords: Record::default() },
    };
    let manager = stman::open(type_name, &args)?;
    let mut result = Ok(());
    for (index, spec) in columns.iter().enumerate() {
        let read =
            || manager.readable(index).and_then(|()| read_column(manager.column(index), args.rows, spec.data_type));
        result = result.and(read());
    }
    result
}

/// `None` for managers of all types.
pub(super) fn seeds(type_name: Option<&str>, files: &[File]) -> Vec<Vec<u8>> {
    let dat = named(files, "table.dat").first().and_then(|bytes| TableDat::decode(bytes).ok());
    let (Some(dat), Ok(table)) = (dat, Table::in_container(in_memory(files))) else { return Vec::new() };
    let Body::Plain(plain) = dat.body else { return Vec::new() };
    let (desc, set) = *plain;
    let mut seeds = Vec::new();
    for (number, manager) in set.managers.iter().enumerate() {
        if type_name.is_some_and(|wanted| manager.type_name != wanted) {
            continue;
        }
        let mut entries = vec![
            (TYPE.to_owned(), manager.type_name.to_vec()),
            (INFO.to_owned(), manager.info.clone()),
            (TABLE.to_owned(), encode_table(table.rows(), dat.order, manager.sequence)),
            (KEYWORDS.to_owned(), encode_record(&desc.private_keywords)),
        ];
        let own = table.manager_numbers().into_iter().zip(table.columns()).filter(|(of, _)| *of == Some(number));
        for (_, column) in own {
            entries.push((COLUMN.to_owned(), encode_spec(&column.spec())));
            entries.push((COLUMN_KEYWORDS.to_owned(), encode_record(&column.desc.keywords)));
        }
        let own = files.iter().filter(|file| stman::sequence_of(&file.0) == Some(manager.sequence));
        entries.extend(own.cloned());
        seeds.push(pack(&entries));
    }
    seeds
}

fn encode_table(rows: u64, order: ByteOrder, sequence: u32) -> Vec<u8> {
    [&rows.to_le_bytes()[..], &[u8::from(order == ByteOrder::Little)], &sequence.to_le_bytes()].concat()
}

fn encode_record(record: &Record) -> Vec<u8> {
    let mut e = Encoder::new(ByteOrder::Big);
    match e.root_record(record) {
        Ok(()) => e.into_bytes(),
        Err(_) => Vec::new(),
    }
}

fn decode_record(bytes: &[u8]) -> Result<Record> {
    if bytes.is_empty() {
        return Ok(Record::default());
    }
    Decoder::new(&bytes, 0, ByteOrder::Big, "record")?.root_record()
}

/// Type, storage, axes, longest string in two bytes, axes of the fixed shape or 255, its extents in
/// four bytes each, name.
fn encode_spec(spec: &ColumnSpec) -> Vec<u8> {
    let storage = match spec.storage {
        Storage::Scalar => 0,
        Storage::Direct => 1,
        Storage::Indirect => 2,
    };
    let data_type = stman::TYPES.iter().position(|known| *known == spec.data_type).unwrap_or_default();
    let mut bytes = vec![data_type as u8, storage, spec.ndim as u8];
    bytes.extend((spec.max_length as u16).to_le_bytes());
    bytes.push(spec.shape.as_ref().map_or(u8::MAX, |shape| shape.len() as u8));
    bytes.extend(spec.shape.iter().flat_map(|shape| shape.iter()).flat_map(|&extent| (extent as u32).to_le_bytes()));
    bytes.extend(spec.name.iter());
    bytes
}

fn decode_spec(bytes: &[u8]) -> Result<ColumnSpec> {
    let Some((&[data_type, storage, ndim, low, high, axes], mut rest)) = bytes.split_first_chunk() else {
        return Err(Error::format("a short column"));
    };
    let shape = (axes != u8::MAX).then(|| {
        let mut extents = Vec::new();
        while let (true, Some((extent, after))) = (extents.len() < axes.into(), rest.split_first_chunk()) {
            extents.push(u32::from_le_bytes(*extent).into());
            rest = after;
        }
        Shape::from_iter(extents)
    });
    let storage = match storage % 3 {
        0 => Storage::Scalar,
        1 => Storage::Direct,
        _ => Storage::Indirect,
    };
    // the table description promises its managers these shapes
    let shape = match storage {
        Storage::Scalar => Some(Shape::scalar()),
        Storage::Direct => Some(shape.unwrap_or_else(|| Shape::from([1]))),
        Storage::Indirect => shape,
    };
    Ok(ColumnSpec {
        name: BString::from(rest),
        data_type: stman::TYPES[usize::from(data_type) % stman::TYPES.len()],
        storage,
        ndim: shape.as_ref().map_or(i32::from(ndim as i8), |shape| shape.len() as i32),
        shape,
        max_length: u16::from_le_bytes([low, high]).into(),
    })
}

/// Every other column has the values 0, 1, 0, 1, …
#[derive(Debug)]
struct Table01 {
    rows: u64,
    keywords: Record,
}

impl Columns for Table01 {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn keywords(&self) -> &Record {
        &self.keywords
    }

    fn column(&self, name: &BStr) -> Result<OtherColumn> {
        let (data_type, storage) = (DataType::Int, Storage::Scalar);
        let shape = Some(Shape::scalar());
        let spec = ColumnSpec { name: name.to_owned(), data_type, storage, shape, ndim: 0, max_length: 0 };
        Ok(OtherColumn { spec, manager: Arc::new(Column01), index: 0 })
    }
}

impl TableContext for Table01 {
    fn column_keywords(&self, _name: &BStr) -> Result<&Record> {
        Ok(&self.keywords)
    }

    fn table(&self, stored: &BStr) -> Result<Box<dyn Columns>> {
        Err(Error::not_found(format!("table {stored} is missing")))
    }
}

#[derive(Debug)]
struct Column01;

impl Manager for Column01 {
    fn name(&self) -> &BStr {
        "01".into()
    }

    fn column(&self, _index: usize) -> &dyn ColumnCells {
        self
    }
}

impl ColumnCells for Column01 {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Ok(Some(Shape::scalar()))
    }

    fn read_cell(&self, row: u64, _region: Option<&Region>, out: &mut Values) -> Result<()> {
        out.extend_from(&Values::Int(vec![(row % 2) as i32]), 0..1)
    }
}
