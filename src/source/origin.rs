//! The table that a content has its values from: what views of it leave as it is.

use crate::native::{Layout, NativeTable};
use crate::schema::TableInfo;
use crate::table::Table;
use crate::value::Record;

/// A table as it lies in the file system or, of a native HDF5 file, in its group.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    Casacore(&'a Table),
    Native(&'a NativeTable),
}

impl<'a> Origin<'a> {
    pub(super) fn keywords(self) -> &'a Record {
        match self {
            Origin::Casacore(table) => table.keywords(),
            Origin::Native(table) => table.keywords(),
        }
    }

    pub(super) fn info(self) -> &'a TableInfo {
        match self {
            Origin::Casacore(table) => table.info(),
            Origin::Native(table) => table.info(),
        }
    }

    pub(super) fn table_name(self, stored: &[u8]) -> String {
        match self {
            Origin::Casacore(table) => {
                table.resolve(stored).file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            Origin::Native(table) => table.table_name(stored),
        }
    }

    pub(super) fn group(self, stored: &[u8]) -> Option<&'a str> {
        match self {
            Origin::Casacore(_) => None,
            Origin::Native(table) => table.group(stored),
        }
    }

    pub(super) fn layout(self) -> Layout {
        match self {
            Origin::Casacore(table) => Layout::of(table),
            Origin::Native(table) => table.layout(),
        }
    }
}
