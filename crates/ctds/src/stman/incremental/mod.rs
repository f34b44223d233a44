//! IncrementalStMan stores a column's value only in the rows where the value changes; each stored
//! value holds for later rows up to the next change. Casacore Note 260, 3.5; formats/stman.md 2.
//!
//! ```text
//! table.f0   Header, buckets, Index --> Bucket: values, and per column the rows from which they hold
//! table.f0i  arrays                 <-- values of indirect columns
//! ```

mod bucket;
mod cell;
mod column;
mod edit;
mod header;
mod index;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use self::bucket::Bucket;
use self::cell::Cell;
use self::column::IncrementalColumn;
use self::header::{Header, Info};
use self::index::Index;
use super::bucket::{self as bucket_file, Buckets};
use super::indirect::ArrayFile;
use super::{ColumnCells, Kind, Manager, OpenArgs, Storage};
use crate::error::{Context, Result, ResultExt};
use crate::io::{ByteOrder, Recent, read_bytes};
use crate::value::Record;

pub(super) static KIND: Kind =
    Kind { packable: true, create: Some(write::create), ..Kind::new(&["IncrementalStMan"], open) };

/// Decoded buckets kept in memory while reading.
const CACHE_BYTES: u64 = 1 << 21;

/// Since this version one array file holds the arrays of all columns, before each has its own.
const SHARED_ARRAYS: u32 = 3;

#[derive(Debug)]
struct Incremental {
    name: BString,
    parameters: Record,
    columns: Vec<IncrementalColumn>,
}

#[derive(Debug)]
struct Shared {
    place: Context,
    order: ByteOrder,
    columns: usize,
    buckets: Buckets,
    index: Index,
    recent: Recent<Bucket>,
}

fn open(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let place = Context::managed(args.file_name(""), "IncrementalStMan");
    let info = Info::decode(args.info).context(&place)?;
    let file = args.file("")?;
    let header = Header::decode(&file, args.order).context(&place)?;
    let buckets = Buckets::new(file, header.bucket_bytes, header.buckets).context(&place)?;
    let parameters = bucket_file::parameters(header.bucket_bytes, header.cache);
    let index = Index::read(&buckets, args.order).context(&place)?;
    let recent = Recent::new(CACHE_BYTES, u64::from(header.bucket_bytes));
    let shared = Arc::new(Shared { place, order: args.order, columns: args.columns.len(), buckets, index, recent });
    // a Westerbork system wrote header version 3 with an info of version 1, but shared arrays
    let version = if header.version == 3 { SHARED_ARRAYS } else { info.version };
    let columns = cells(args, version)?.into_iter().enumerate();
    let columns = columns.map(|(number, cell)| IncrementalColumn { shared: shared.clone(), number, cell }).collect();
    Ok(Box::new(Incremental { name: info.name, parameters, columns }))
}

fn cells(args: &OpenArgs<'_>, version: u32) -> Result<Vec<Cell<Arc<ArrayFile>>>> {
    let open = |suffix: &str| Arc::new(ArrayFile::open(args, suffix, args.order, "IncrementalStMan"));
    let mut shared_arrays: Option<Arc<ArrayFile>> = None;
    let mut own_arrays = 0;
    let mut cells = Vec::new();
    for spec in args.columns {
        cells.push(match spec.storage {
            Storage::Indirect if version >= SHARED_ARRAYS => {
                Cell::Array(shared_arrays.get_or_insert_with(|| open("i")).clone())
            }
            Storage::Indirect => {
                own_arrays += 1;
                Cell::Array(open(&format!("i{}", own_arrays - 1)))
            }
            Storage::Scalar | Storage::Direct => Cell::direct(spec)
                .with_context(|| Context::column(&spec.name))
                .with_context(|| Context::member(args.file_name("")))?,
        });
    }
    Ok(cells)
}

impl Shared {
    fn bucket(&self, number: u32) -> Result<Arc<Bucket>> {
        self.recent.get(u64::from(number), || {
            let offset = self.buckets.offset(number, "the next one in the index").context(&self.place)?;
            read_bytes(&self.buckets.file, offset, u64::from(self.buckets.bucket_bytes))
                .and_then(|bytes| Bucket::decode(bytes, self.order, self.columns))
                .with_context(|| format!("bucket {number}"))
                .with_context(|| &self.place)
        })
    }
}

impl Manager for Incremental {
    fn name(&self) -> &BStr {
        self.name.as_bstr()
    }

    fn readable(&self, index: usize) -> Result<()> {
        self.columns[index].readable()
    }

    fn column(&self, index: usize) -> &dyn ColumnCells {
        &self.columns[index]
    }

    fn parameters(&self) -> Record {
        self.parameters.clone()
    }
}
