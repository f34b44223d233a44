//! The layout of native HDF5 files, and nothing else: docs/layout.md. Conversion and live files write by it, and all that
//! reads a native file reads by it.

mod attributes;
mod axes;
mod cells;
mod digests;
mod document;
mod form;
pub(crate) mod json;
mod names;
mod raw_strings;
mod reader;
mod table;
mod undescribed;

pub(crate) use attributes::{Attributes, Edited};
pub(crate) use axes::{Coordinates, Dimensions, Scales, axis_roles};
pub(crate) use digests::{ATTRIBUTE as DIGESTS, ColumnDigests, to_attribute as digests_attribute};
pub(crate) use document::{Layout, begin, column_document, columns, open_path, parse, table_document};
pub(crate) use form::{FormKind, MAX_CUBES, stored_size};
pub(crate) use names::{Names, row_name, unique};
pub(crate) use raw_strings::{RawStrings, text, text_attribute};
pub(crate) use reader::Reader;
pub use table::{DatasetInfo, Elsewhere};
pub(crate) use table::{NativeEntry, NativeTable, is_native, open};
