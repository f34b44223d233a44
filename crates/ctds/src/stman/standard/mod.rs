//! StandardStMan stores rows in buckets, column by column. Casacore Note 260, 3.4; formats/stman.md
//! 1.
//!
//! ```text
//! table.dat --> Info: where in a bucket each column begins, and which index knows its buckets
//! table.f0      Header --> index buckets: Index per column set --> data buckets
//!                                                                    |      |
//!               string heap buckets  <-------------------------------+      |
//! table.f0i     arrays  <---------------------------------------------------+
//! ```

mod cell;
mod column;
mod header;
mod heap;
mod index;
mod layout;
mod strings;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use self::column::StandardColumn;
use self::header::{Header, Info};
use self::index::Index;
use super::bucket::{self, Buckets};
use super::indirect::{ArrayFile, Arrays};
use super::{ColumnCells, Kind, Manager, OpenArgs, Storage};
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::ByteOrder;
use crate::value::{DataType, Record};

pub(super) static KIND: Kind =
    Kind { packable: true, create: Some(write::create), ..Kind::new(&["StandardStMan"], open) };

#[derive(Debug)]
struct Standard {
    name: BString,
    parameters: Record,
    columns: Vec<StandardColumn>,
}

#[derive(Debug)]
struct Shared {
    place: Context,
    /// The table's, for data buckets; the string heap is always big-endian.
    order: ByteOrder,
    buckets: Buckets,
    indices: Vec<Index>,
    /// `None` if no column has indirect arrays other than of strings.
    arrays: Option<ArrayFile>,
}

fn open(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let place = Context::managed(args.file_name(""), "StandardStMan");
    let info = Info::decode(args.info, args.columns.len()).context(&place)?;
    let file = args.file("")?;
    let header = Header::decode(&file, args.order).context(&place)?;
    let buckets = Buckets::new(file, header.bucket_bytes, header.buckets).context(&place)?;
    let parameters = bucket::parameters(header.bucket_bytes, header.cache);
    let indices = Index::read_all(&header, &buckets, args.order).context(&place)?;
    let indirect =
        |column: &super::ColumnSpec| column.storage == Storage::Indirect && column.data_type != DataType::String;
    let has_arrays = args.columns.iter().any(indirect);
    let arrays = has_arrays.then(|| ArrayFile::open(args, "i", args.order, "StandardStMan"));
    let shared = Arc::new(Shared { place, order: args.order, buckets, indices, arrays });
    let columns = args.columns.iter().zip(info.offsets.iter().zip(&info.sets));
    let columns = columns
        .map(|(spec, (&offset, &set))| {
            StandardColumn::new(shared.clone(), spec, offset, set)
                .with_context(|| Context::column(&spec.name))
                .with_context(|| &shared.place)
        })
        .collect::<Result<_>>()?;
    Ok(Box::new(Standard { name: info.name, parameters, columns }))
}

impl Shared {
    fn arrays(&self) -> Result<&Arrays> {
        match &self.arrays {
            Some(file) => file.arrays(),
            // made at opening for every column that asks
            None => Err(Error::format("the array file is missing").context(&self.place)),
        }
    }
}

impl Manager for Standard {
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
