//! The files `table.dat`, `table.info` and `table.lock`, which describe a table and its columns;
//! storage managers have the cells. formats/table.md sections 2 to 4.

mod column_desc;
mod column_set;
mod info;
mod length;
mod storage;
mod sync;
mod table_dat;
mod table_desc;
mod table_name;
mod views;

pub use column_desc::{ColumnDesc, ColumnKind, Foreign};
pub use column_set::{ColumnBinding, ColumnSet, DEFAULT_BLOCK_BYTES, ManagerEntry, StorageOption};
pub use info::TableInfo;
pub use storage::with_storage;
pub use sync::{Counters, Sync};
pub use table_dat::{Body, TableDat};
pub use table_desc::TableDesc;
pub use table_name::{resolve, stored_name};
pub use views::{ConcatTable, NewRefTable, RefTable};

/// Whether casacore stores this number of rows in 64 bits. formats/table.md 2.7.
fn is_wide(rows: u64) -> bool {
    rows > i32::MAX as u64
}
