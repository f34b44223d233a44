//! Storage managers, which decode and encode the cells in the files `table.f<sequence>`. formats/stman.md.
//!
//! A manager is a file here that exports its [`Kind`], and a line in `KINDS`. Everything above sees [`Manager`],
//! [`ManagerMut`] and [`ColumnCells`] only, and asks [`is_tiled`], [`is_engine_keyword`] … about a type name; a
//! [`Container`](crate::container::Container) provides the bytes.

mod aipsio;
mod antennas;
mod bucket;
mod cell;
mod checks;
#[cfg(test)]
mod conformance;
#[cfg(any(test, feature = "internals"))]
pub mod contradictory;
mod dysco;
mod elements;
mod engine;
mod incremental;
mod indirect;
mod manager;
mod memory;
#[cfg(test)]
mod model;
mod ms_columns;
#[cfg(test)]
pub mod samples;
mod standard;
mod tiled;
mod with_context;

use bstr::{BStr, ByteSlice};

use crate::error::{Error, Result};
use crate::value::Record;

pub use cell::{extend_unbacked, memory_bytes, read_part, undefined, write_part};
pub use engine::FORWARD_TABLES;
pub use manager::{
    Access, ColumnCells, ColumnSpec, Columns, CreateArgs, EachExtent, Extent, Kind, LinkedCube, Manager, ManagerMut,
    OpenArgs, OtherColumn, RowRun, Storage, Stored, TableContext, TilePlace, Tiling,
};

static KINDS: &[&Kind] = &[
    &standard::KIND,
    &incremental::KIND,
    &aipsio::KIND,
    &memory::KIND,
    &tiled::COLUMN,
    &tiled::SHAPE,
    &tiled::CELL,
    &tiled::DATA,
    &engine::FORWARD,
    &engine::FORWARD_ROWS,
    &engine::SCALED_ARRAY,
    &engine::SCALED_COMPLEX,
    &engine::MAPPED,
    &engine::COMPRESS_FLOAT,
    &engine::COMPRESS_COMPLEX,
    &engine::COMPRESS_COMPLEX_SD,
    &engine::BIT_FLAGS,
    &ms_columns::ANTENNA_PAIR,
    &ms_columns::UVW,
    &ms_columns::STOKES_I,
    &ms_columns::SISCO,
    &dysco::KIND,
];

/// Types of managers that this program knows by name but cannot read: opening one returns an error with the reason.
static REFUSED: &[&Kind] = &[&engine::RETYPED, &engine::TAQL, &ms_columns::THIRD_PARTY];

/// The names of all storage managers that can be read, as table.dat stores them, without template arguments.
pub fn supported() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| kind.names.iter().copied())
}

/// The names of all storage managers that can be written, as table.dat stores them.
pub fn written() -> impl Iterator<Item = &'static str> {
    all().filter(|kind| kind.create.is_some()).flat_map(|kind| kind.names.iter().copied())
}

fn all() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().chain(REFUSED).copied()
}

/// Opens the storage manager of the type `name`.
pub fn open(name: &BStr, args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    (find(name)?.open)(args)
}

/// Creates a storage manager of the type `name`, without rows.
pub fn create(name: &BStr, args: &CreateArgs<'_>) -> Result<Box<dyn ManagerMut>> {
    match find(name)?.create {
        Some(create) => create(args),
        None => Err(Error::unsupported(format!("data manager {name} is not written"))),
    }
}

/// Whether casacore may put the files of managers of the type `name` into a container (MultiFile or MultiHDF5); if not,
/// they stay separate files in the table's directory.
pub fn packable(name: &BStr) -> bool {
    find(name).is_ok_and(|kind| kind.packable)
}

/// Whether managers of the type `name` store their cells in hypercubes of tiles.
pub fn is_tiled(name: &BStr) -> bool {
    find(name).is_ok_and(|kind| kind.tiled)
}

/// Whether the column keyword of this name is a parameter of an engine.
pub fn is_engine_keyword(keyword: &BStr) -> bool {
    let mut engines = all().filter_map(|kind| kind.engine.as_ref());
    engines.any(|engine| engine.prefixes.iter().any(|prefix| keyword.starts_with(prefix.as_bytes())))
}

/// The column of the same table from which a virtual column engine with these column keywords computes values; `None` if
/// no keyword names one.
pub fn stored_column(keywords: &Record) -> Option<&BStr> {
    keywords.string(engine::STORED_COLUMN)
}

/// Whether managers of the type `name` compute values from TaQL expressions, which only casacore evaluates.
pub fn is_expression(name: &BStr) -> bool {
    find(name).is_ok_and(|kind| kind.engine.as_ref().is_some_and(|engine| engine.expression.is_some()))
}

/// The expression of an engine, such as a TaQL one, in the keywords of its column; `None` if the keywords do not have one.
pub fn expression(keywords: &Record) -> Option<&BStr> {
    let engines = all().filter_map(|kind| kind.engine.as_ref());
    engines.filter_map(|engine| engine.expression).find_map(|keyword| keywords.string(keyword))
}

/// The sequence number n of the storage manager that the file `file_name` of a table belongs to: 3 for `table.f3_TSM0`;
/// `None` if the name is not of the form `table.f<n>…`.
pub fn sequence_of(file_name: &str) -> Option<u32> {
    let rest = file_name.strip_prefix("table.f")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn find(name: &BStr) -> Result<&'static Kind> {
    let base = name.split_once_str("<").map_or(name.as_bytes(), |(base, _)| base).trim_ascii();
    let kind = all().find(|kind| kind.names.iter().any(|known| known.as_bytes() == base));
    kind.ok_or_else(|| Error::unsupported(format!("data manager {name} is not supported yet")))
}

#[cfg(any(test, feature = "internals"))]
/// All data types of the cells of columns in tests; records are left out.
pub const TYPES: [crate::value::DataType; 12] = [
    crate::value::DataType::Bool,
    crate::value::DataType::UChar,
    crate::value::DataType::Short,
    crate::value::DataType::UShort,
    crate::value::DataType::Int,
    crate::value::DataType::UInt,
    crate::value::DataType::Int64,
    crate::value::DataType::Float,
    crate::value::DataType::Double,
    crate::value::DataType::Complex,
    crate::value::DataType::DComplex,
    crate::value::DataType::String,
];
