//! DyscoStMan stores visibilities and weights in few bits each. formats/engines.md, part 2.
//!
//! ```text
//! table.f0   Header --> block 0: rows 0 .. R, block 1: rows R .. 2R, ...
//!                         each: per column, scales and packed symbols
//!            symbol --> dictionary --> × scales of channel and row, or of channel and antennas --> value
//! ```
//! A block of a column can be decoded from any row on, so only the requested values are read, and
//! the scales of the block. Rows that no block holds are zero, as in casacore.

mod antennas;
mod blocks;
mod column;
mod dictionary;
mod header;
mod normal;
mod scale;
mod student;
mod symbols;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use self::antennas::Antennas;
use self::column::DyscoColumn;
use self::header::{Header, Normalization};
use super::{ColumnCells, Kind, Manager, OpenArgs};
use crate::error::{Context, Result, ResultExt};
use crate::value::{DataType, Record};

pub(super) static KIND: Kind = Kind::new(&["DyscoStMan"], open);

#[derive(Debug)]
struct Dysco {
    name: BString,
    parameters: Record,
    columns: Vec<DyscoColumn>,
}

fn open(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let place = Context::managed(args.file_name(""), "DyscoStMan");
    let file = args.file("")?;
    // a file stays empty if less than two blocks were ever written; casacore then refuses the table
    let header = match file.is_empty()? {
        true => None,
        false => Some(Header::decode(&file, args.columns.len()).context(&place)?),
    };
    let has_data = args.columns.iter().any(|spec| spec.data_type == DataType::Complex);
    let antennas = match &header {
        Some(header) if has_data && header.normalization == Normalization::AntennaFrequency => {
            Some(Arc::new(Antennas::open(args.table, header.antennas)))
        }
        _ => None,
    };
    let columns = args.columns.iter().enumerate().map(|(index, spec)| {
        let place = [Context::column(&spec.name), place.clone()];
        DyscoColumn::new(spec, &file, header.as_ref(), index, antennas.clone(), place.clone()).in_contexts(&place)
    });
    let columns: Vec<DyscoColumn> = columns.collect::<Result<_>>()?;
    warn_of_unwritten(&columns, args.rows);
    let parameters = header.as_ref().map(Header::parameters).unwrap_or_default();
    let name = header.map_or_else(|| "DyscoStMan".into(), |header| header.name);
    Ok(Box::new(Dysco { name, parameters, columns }))
}

/// Missing rows are read as zeros, which cannot be told from zeros that were written.
fn warn_of_unwritten(columns: &[DyscoColumn], rows: u64) {
    for (column, written) in columns.iter().map(|column| (column, column.rows_written())) {
        if written < rows {
            let [name, file] = &column.place;
            tracing::warn!("{file}: {name}: rows {written} to {rows} were never written and read as zero");
        }
    }
}

impl Manager for Dysco {
    fn name(&self) -> &BStr {
        self.name.as_bstr()
    }

    fn column(&self, index: usize) -> &dyn ColumnCells {
        &self.columns[index]
    }

    fn parameters(&self) -> Record {
        self.parameters.clone()
    }
}
