//! The column set, a part of `table.dat`: which data manager holds which column. formats/table.md
//! 2.4.

use std::ops::Range;

use bstr::BString;

use super::TableDesc;
use crate::aipsio::{Decoder, Encoder};
use crate::error::Result;
use crate::value::{Record, Shape};

/// Stored by casacore for a table without a container, where it has no meaning.
pub const DEFAULT_BLOCK_BYTES: u32 = 4 << 20;

/// Casacore's `StorageOption`: where the files of data managers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageOption {
    /// All files are in `table.mf`.
    MultiFile,
    /// All files are in `table.mfh5`.
    MultiHdf5,
    /// Each on its own in the directory of the table.
    SepFile,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ManagerEntry {
    pub type_name: BString,
    /// Names the files `table.f<sequence>…`; it does not change when other managers are removed.
    pub sequence: u32,
    /// The manager's own AipsIO stream, or empty.
    pub info: Vec<u8>,
}

/// Which data manager stores a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnBinding {
    /// The name at creation, by which the data manager knows the column.
    pub original_name: BString,
    /// Sequence number of the data manager.
    pub sequence: u32,
    /// Fixed shape of all cells, which the column's `ColumnDesc` may lack.
    pub shape: Option<Shape>,
    /// Half-open part of `table.dat`.
    pub bytes: Range<u64>,
}

/// The column set of a table: its data managers, and which of them stores each column. In
/// `table.dat` it follows the `TableDesc` object, without a header.
///
/// | field    | v1          | v2  | v3  | meaning                                         |
/// |----------|-------------|-----|-----|-------------------------------------------------|
/// | version  | i32 rows ≥ 0| -2  | -3  | i32                                             |
/// | rows     |             | u32 | u64 | ignored: see [`super::Sync`]                    |
/// | storage  |             |     | i32 | 0 MultiFile, 1 MultiHDF5, 2 SepFile             |
/// | block    |             |     | u32 | container block size in bytes; informative      |
/// | counter  | u32         | u32 | u32 | next sequence number                            |
/// | managers | u32 n, n × (string type, u32 sequence) | | |                               |
/// | columns  | one each; v1: sorted by name           | | |                               |
/// | info     | u32 length and bytes per manager       | | |                               |
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSet {
    /// May be out of date: the sync record in `table.lock` decides.
    pub rows: u64,
    pub storage: StorageOption,
    /// Version 3 only.
    pub block_bytes: Option<u32>,
    /// Half-open part of `table.dat` from the version up to the next sequence number (`counter`),
    /// which is not included; its length depends on the version.
    pub head: Range<u64>,
    /// Next sequence number.
    pub counter: u32,
    pub managers: Vec<ManagerEntry>,
    /// Ordered as in the table description.
    pub columns: Vec<ColumnBinding>,
}

impl ColumnSet {
    pub(super) fn decode(d: &mut Decoder<'_>, desc: &mut TableDesc) -> Result<Self> {
        let start = d.position();
        let mut rows = 0;
        let version = match d.i32("column set version")? {
            stored @ 0.. => {
                rows = stored as u64;
                1
            }
            -2 => 2,
            -3 => 3,
            version => return Err(d.error_at(start, format!("column set version {version}, known are -2 and -3"))),
        };
        let (mut storage, mut block_bytes) = (StorageOption::SepFile, None);
        if version >= 2 {
            rows = d.uint("column set rows", version >= 3)?;
        }
        if version >= 3 {
            let code = d.i32("storage option")?;
            let option = StorageOption::of_code(code);
            storage = option.ok_or_else(|| d.error(format!("storage option {code}, known are 0 to 2")))?;
            block_bytes = Some(d.u32("block size")?);
        }
        let head = start..d.position();
        let counter = d.u32("data manager counter")?;
        let count = d.u32("number of data managers")?;
        let mut managers: Vec<ManagerEntry> = Vec::new();
        for _ in 0..count {
            let type_name = d.string("data manager type")?;
            let sequence = d.u32("data manager sequence number")?;
            if managers.iter().any(|other| other.sequence == sequence) {
                return Err(d.error(format!("two data managers with sequence number {sequence}")));
            }
            managers.push(ManagerEntry { type_name, sequence, info: Vec::new() });
        }
        let mut order: Vec<usize> = (0..desc.columns.len()).collect();
        if version == 1 {
            order.sort_by(|&a, &b| desc.columns[a].name.cmp(&desc.columns[b].name));
        }
        let mut columns = vec![None; desc.columns.len()];
        for index in order {
            let column = &mut desc.columns[index];
            let binding = ColumnBinding::decode(d, column.kind == super::ColumnKind::Array, &mut column.keywords)?;
            if !managers.iter().any(|manager| manager.sequence == binding.sequence) {
                return Err(d.error(format!(
                    "column {:?} in data manager {}, which does not exist",
                    column.name, binding.sequence
                )));
            }
            columns[index] = Some(binding);
        }
        for manager in &mut managers {
            let len = d.u32("data manager info")?;
            manager.info = d.bytes("data manager info", u64::from(len))?;
        }
        let columns = columns.into_iter().map(|binding| binding.expect("every column was decoded")).collect();
        Ok(ColumnSet { rows, storage, block_bytes, head, counter, managers, columns })
    }

    /// Version 2 if each manager has its own files and `rows` fit in an i32, else version 3.
    pub(super) fn encode_head(e: &mut Encoder, rows: u64, storage: StorageOption, block_bytes: Option<u32>) {
        let wide = storage != StorageOption::SepFile || super::is_wide(rows);
        e.i32(if wide { -3 } else { -2 });
        e.uint(rows, wide);
        if wide {
            e.i32(storage.code());
            e.u32(block_bytes.unwrap_or(DEFAULT_BLOCK_BYTES));
        }
    }

    pub(super) fn encode(&self, e: &mut Encoder, rows: u64, desc: &TableDesc) {
        Self::encode_head(e, rows, self.storage, self.block_bytes);
        e.u32(self.counter);
        e.u32(self.managers.len() as u32);
        for manager in &self.managers {
            e.string(&manager.type_name);
            e.u32(manager.sequence);
        }
        for (binding, column) in self.columns.iter().zip(&desc.columns) {
            binding.encode(e, column.kind == super::ColumnKind::Array);
        }
        for manager in &self.managers {
            e.string(&manager.info);
        }
    }
}

impl ColumnBinding {
    /// Column keywords of an entry of version 1 are added to `keywords`.
    ///
    /// | field         | type          | present                      |
    /// |---------------|---------------|------------------------------|
    /// | version       | u32           | 1 or 2                       |
    /// | keywords      | `TableRecord` | version 1                    |
    /// | original_name | string        |                              |
    /// | class version | u32 = 1       |                              |
    /// | sequence      | u32           |                              |
    /// | has shape     | Bool          | arrays                       |
    /// | shape         | `IPosition`   | arrays that have it          |
    fn decode(d: &mut Decoder<'_>, is_array: bool, keywords: &mut Record) -> Result<Self> {
        let start = d.position();
        let version = d.u32("column info version")?;
        if !(1..=2).contains(&version) {
            return Err(d.error(format!("column info version {version}, known are 1 and 2")));
        }
        if version == 1 {
            for field in d.record()?.fields {
                keywords.set(field.name, field.value);
            }
        }
        let original_name = d.string("original column name")?;
        let class = d.u32("column class version")?;
        if class != 1 {
            return Err(d.error(format!("column class version {class}, only 1 exists")));
        }
        let sequence = d.u32("data manager sequence number")?;
        let shape = if is_array && d.bool("shape is fixed")? { Some(d.shape("fixed shape")?) } else { None };
        Ok(ColumnBinding { original_name, sequence, shape, bytes: start..d.position() })
    }

    fn encode(&self, e: &mut Encoder, is_array: bool) {
        e.u32(2);
        e.string(&self.original_name);
        e.u32(1);
        e.u32(self.sequence);
        if is_array {
            e.bool(self.shape.is_some());
            if let Some(shape) = &self.shape {
                e.shape(shape);
            }
        }
    }
}

impl StorageOption {
    const ALL: [Self; 3] = [StorageOption::MultiFile, StorageOption::MultiHdf5, StorageOption::SepFile];

    /// `None` for an unknown code.
    pub fn of_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|option| option.code() == code)
    }

    pub fn code(self) -> i32 {
        match self {
            StorageOption::MultiFile => 0,
            StorageOption::MultiHdf5 => 1,
            StorageOption::SepFile => 2,
        }
    }
}
