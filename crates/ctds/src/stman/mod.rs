//! Storage managers, which decode and encode the cells in the files `table.f<sequence>`.
//! formats/stman.md.
//!
//! A manager is a file here that exports its [`Kind`], and a line in `KINDS`. Everything above sees
//! [`Manager`], [`ManagerMut`] and [`ColumnCells`] only, and asks [`is_tiled`],
//! [`is_engine_keyword`] … about a type name; a [`Container`](crate::container::Container) provides
//! the bytes.
//!
//! Managers that write go through `io::PagedMut`, which keeps 4 MiB of a file. IncrementalStMan
//! keeps decoded buckets and cuts them when they overflow. A tiled manager keeps the model of its
//! reader; cells go through pages of the tile files, whole tiles past them. StManAipsIO collects
//! cells in unlinked scratch files and writes its one stream at flush. `parameters` describes a
//! manager so that `create` makes it again.

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
    &engine::TAQL,
    &ms_columns::ANTENNA_PAIR,
    &ms_columns::UVW,
    &ms_columns::STOKES_I,
    &ms_columns::SISCO,
    &dysco::KIND,
];

/// Types whose opening fails with the reason why this program cannot read them.
static REFUSED: &[&Kind] = &[&engine::RETYPED, &ms_columns::THIRD_PARTY];

/// The names of all storage managers that can be read, as table.dat stores them, without template
/// arguments.
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

pub fn open(name: &BStr, args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    (find(name)?.open)(args)
}

pub fn create(name: &BStr, args: &CreateArgs<'_>) -> Result<Box<dyn ManagerMut>> {
    match find(name)?.create {
        Some(create) => create(args),
        None => Err(Error::unsupported(format!("data manager {name} is not written"))),
    }
}

/// Whether casacore may put the files of this type into a container (MultiFile or MultiHDF5).
pub fn packable(name: &BStr) -> bool {
    find(name).is_ok_and(|kind| kind.packable)
}

pub fn is_tiled(name: &BStr) -> bool {
    find(name).is_ok_and(|kind| kind.tiled)
}

pub fn is_engine_keyword(keyword: &BStr) -> bool {
    let mut engines = all().filter_map(|kind| kind.engine.as_ref());
    engines.any(|engine| engine.prefixes.iter().any(|prefix| keyword.starts_with(prefix.as_bytes())))
}

/// The column from which a virtual column with these keywords computes values.
pub fn stored_column(keywords: &Record) -> Option<&BStr> {
    keywords.string(engine::STORED_COLUMN)
}

/// Whether the type computes values, and stores none.
pub fn is_engine(name: &BStr) -> bool {
    find(name).is_ok_and(|kind| kind.engine.is_some())
}

/// Whether the type computes values from TaQL expressions.
pub fn is_expression(name: &BStr) -> bool {
    find(name).is_ok_and(|kind| kind.engine.as_ref().is_some_and(|engine| engine.expression.is_some()))
}

/// The expression of an engine in the keywords of its column.
pub fn expression(keywords: &Record) -> Option<&BStr> {
    let engines = all().filter_map(|kind| kind.engine.as_ref());
    engines.filter_map(|engine| engine.expression).find_map(|keyword| keywords.string(keyword))
}

/// The n of `table.f<n>…`: 3 for `table.f3_TSM0`.
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
/// All but records.
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
