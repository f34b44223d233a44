//! The layout of native HDF5 files (docs/reference/layout.md), in which this program stores
//! casacore tables: names of objects, JSON documents that describe tables and columns, forms of
//! storing cells, and readers. Used by conversion and live files.
//!
//! | file             | purpose                                                              |
//! |------------------|----------------------------------------------------------------------|
//! | `names.rs`       | names of groups and datasets                                         |
//! | `form.rs`        | the datasets of a column                                             |
//! | `document.rs`    | the documents of `_ctds`, with casacore values by `json.rs`          |
//! | `attributes.rs`  | keywords as attributes, and edits of them                            |
//! | `axes.rs`        | dimension scales                                                     |
//! | `nexus.rs`       | attributes by which viewers draw a group                             |
//! | `raw_strings.rs` | strings that HDF5 cannot hold                                        |
//! | `view.rs`        | records of tables that showed rows of others                         |
//! | `table`          | reads a table by all of these; `undescribed.rs`: one without `_ctds` |

mod attributes;
mod axes;
mod cells;
mod cubes;
mod digests;
mod document;
mod exact;
mod form;
pub(crate) mod json;
mod names;
mod nexus;
mod notes;
mod processing_set;
mod raw_strings;
mod reader;
mod table;
mod undescribed;
mod unread;
mod view;

pub(crate) use attributes::{Attributes, DIMENSION_LIST, LONG_NAME, UNITS, taql_of};
pub(crate) use axes::{AxisNames, Coordinates, Dimensions, NewAxis, Scales, TreeDimensions, axis_roles};
pub(crate) use digests::{StoredColumnDigests, StoredDigests, StoredMarks};
pub(crate) use document::{
    AVERAGED, ColumnDocument, DescribedColumn, DescribedTable, Layout, NOT_FOLLOWED, SOURCE, SOURCE_DIGEST,
    TableDocument, begin, described_columns, described_tables, open_dataset, open_path, root_attributes,
};
#[cfg(any(test, feature = "internals"))]
pub(crate) use document::{documents_of, read_any};
pub use form::Part;
pub(crate) use form::{
    FormKind, MAX_CUBES, Maker, Members, NewColumn, NewDataset, StoredForm, StoredGrid, stored_size,
};
#[cfg(any(test, feature = "internals"))]
pub(crate) use form::{Growth, growth, row_map};
pub use names::display_name;
pub(crate) use names::{
    COMMITTED_ROWS, CTDS, MAIN_TABLE, Names, OF_PROCESSING_SET, PROCESSING_SET, QUICKLOOK, QUICKLOOK_VERSION, RESTORE,
    VIEW_ROWS, defined_flags, is_main, is_position, last_part, missing_link, restore_path, row_name, source_name,
    split_name, table_path, unique,
};
pub(crate) use nexus::{DEFAULT, MOST_ROWS, OF_VIEWERS, SIGNALS, TIME, auxiliary_signals, view};
pub(crate) use notes::Notes;
pub(crate) use processing_set::{attribute_of, changed_attributes, coordinates_attribute};
pub(crate) use raw_strings::{RawStrings, can_hold, changed_keywords, changed_strings, readable, text_attribute};
pub(crate) use reader::Reader;
pub(crate) use table::open::{NativeEntry, is_native, may_be_native, open, open_around_damage};
pub(crate) use table::storage::StoredBlock;
pub use table::storage::{DatasetInfo, Elsewhere};
pub(crate) use table::{NativeTable, Written};
pub(crate) use undescribed::is_scale;
pub(crate) use view::{View, ViewKind, name_of_stored, places_of};
