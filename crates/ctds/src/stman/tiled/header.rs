//! The AipsIO object `TiledStMan` in the header file of a tiled manager: lists the hypercubes and
//! the positions of their tiles. formats/stman.md 6.2.

use bstr::BString;

use crate::aipsio::{Decoder, Encoder};
use crate::error::{Error, Result};
use crate::io::ByteOrder;
use crate::stman::{ColumnSpec, OpenArgs};
use crate::value::{DataType, Record, Shape};

/// Largest number in the older, 32-bit versions of the objects.
const MAX_NARROW: u64 = i32::MAX as u64;

/// | field | v1, v2 | v3 | meaning |
/// |---------|------------------|------------------|------------------------------------------|
/// | big | v2: Bool | Bool | byte order of the tiles; v1: big |
/// | sequence| u32 | u32 | as in table.dat |
/// | rows | u32 | u64 | as in the table |
/// | columns | u32, codes i32 | u32, codes i32 | data type of each |
/// | name | string | string | of the hypercolumn |
/// | cache | u32 | u32 | MiB, 0 any; a hint |
/// | ndim | u32 | u32 | of the cubes |
/// | files | u32, optional each | u64, optional each | [`FileEntry`] |
/// | cubes | u32, each | u64, each | [`CubeEntry`] |
#[derive(Debug)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) name: BString,
    pub(super) cache: u32,
    pub(super) ndim: usize,
    pub(super) files: Vec<Option<FileEntry>>,
    pub(super) cubes: Vec<CubeEntry>,
    /// The rows that the header describes, with the error that says so, if the table has more.
    pub(super) lacking: Option<(u64, Error)>,
}

/// | field | v1 | v2 | meaning |
/// |----------|-----|-----|--------------------------------------------|
/// | version | u32 | u32 | |
/// | sequence | u32 | u32 | of `table.f<n>_TSM<sequence>` |
/// | len | u32 | i64 | bytes in use; the file itself says better |
#[derive(Debug, Clone)]
pub(super) struct FileEntry {
    pub(super) sequence: u32,
    pub(super) len: u64,
}

/// | field | v1 | v2 | meaning |
/// |------------|-------------|-------------|------------------------------------------------|
/// | version | i32 | i32 | |
/// | values | `Record` | `Record` | ids and coordinates |
/// | extensible | Bool | Bool | |
/// | ndim | u32 | u32 | 0: no shape yet |
/// | shape | `IPosition` | `IPosition` | |
/// | tile | `IPosition` | `IPosition` | |
/// | file | i32 | i32 | index in the list of files, -1 none |
/// | offset | u32 | i64 | bytes, of the first tile |
#[derive(Debug, Clone)]
pub(super) struct CubeEntry {
    pub(super) values: Option<Box<Record>>,
    /// The last axis can grow, to hold more rows.
    pub(super) extensible: bool,
    /// Fastest axis first; without axes until it is set.
    pub(super) shape: Shape,
    pub(super) tile: Shape,
    pub(super) file: Option<usize>,
    pub(super) offset: u64,
}

impl Header {
    pub(super) fn decode(d: &mut Decoder<'_>, args: &OpenArgs<'_>) -> Result<Self> {
        let version = d.start("TiledStMan", 1..=3)?;
        let order = if version == 1 || d.bool("big endian")? { ByteOrder::Big } else { ByteOrder::Little };
        if order != args.order {
            return Err(d.error(format!(
                "tiles are {} endian, but the table is {} endian",
                order.name(),
                args.order.name()
            )));
        }
        let wide = version == 3;
        let sequence = d.u32("sequence number")?;
        if sequence != args.sequence {
            return Err(d.error(format!("sequence number {sequence}, but table.dat says {}", args.sequence)));
        }
        let rows = d.uint("rows", wide)?;
        let other_rows = (rows != args.rows).then(|| d.error(format!("{rows} rows, but the table has {}", args.rows)));
        let lacking = match other_rows {
            Some(error) if rows > args.rows => return Err(error),
            error => error.map(|error| (rows, error)),
        };
        let columns = d.u32("columns")?;
        if columns as usize != args.columns.len() {
            return Err(d.error(format!("{columns} columns, but the table has {} here", args.columns.len())));
        }
        for column in args.columns {
            let code = d.i32("data type")?;
            if DataType::from_code(code) != Some(column.data_type) {
                return Err(d.error(format!(
                    "column {} has data type code {code}, but the table says {}",
                    column.name, column.data_type
                )));
            }
        }
        let name = d.string("hypercolumn name")?;
        let cache = d.u32("cache size")?;
        let ndim = d.u32("ndim")? as usize;
        let file_count = d.uint("files", wide)?;
        let mut files = Vec::new();
        for _ in 0..file_count {
            files.push(if d.bool("file present")? { Some(FileEntry::decode(d)?) } else { None });
        }
        let cube_count = d.uint("hypercubes", wide)?;
        let mut cubes = Vec::new();
        for _ in 0..cube_count {
            cubes.push(CubeEntry::decode(d, ndim, files.len())?);
        }
        d.end()?;
        Ok(Header { version, name, cache, ndim, files, cubes, lacking })
    }
}

impl Header {
    /// The lowest version that can express `order` and `rows`.
    pub(super) fn encode(
        &self,
        e: &mut Encoder,
        order: ByteOrder,
        sequence: u32,
        rows: u64,
        columns: &[ColumnSpec],
    ) -> Result<()> {
        let wide = rows > MAX_NARROW;
        let big = order == ByteOrder::Big;
        let version = match (wide, big) {
            (true, _) => 3,
            (false, true) => 1,
            (false, false) => 2,
        };
        e.start("TiledStMan", version);
        if wide || !big {
            e.bool(big);
        }
        e.u32(sequence);
        e.uint(rows, wide);
        e.u32(columns.len() as u32);
        for column in columns {
            e.i32(column.data_type.code());
        }
        e.string(&self.name);
        e.u32(self.cache);
        e.u32(self.ndim as u32);
        e.uint(self.files.len() as u64, wide);
        for file in &self.files {
            e.bool(file.is_some());
            if let Some(file) = file {
                file.encode(e);
            }
        }
        e.uint(self.cubes.len() as u64, wide);
        for cube in &self.cubes {
            cube.encode(e)?;
        }
        e.end();
        Ok(())
    }
}

impl FileEntry {
    fn decode(d: &mut Decoder<'_>) -> Result<Self> {
        let version = d.u32("file version")?;
        if !(1..=2).contains(&version) {
            return Err(d.error(format!("TSMFile version {version}, known are 1 and 2")));
        }
        let sequence = d.u32("file sequence number")?;
        let len = d.uint("file length", version == 2)?;
        Ok(FileEntry { sequence, len })
    }

    fn encode(&self, e: &mut Encoder) {
        let wide = self.len > MAX_NARROW;
        e.u32(if wide { 2 } else { 1 });
        e.u32(self.sequence);
        e.uint(self.len, wide);
    }
}

impl CubeEntry {
    fn decode(d: &mut Decoder<'_>, ndim: usize, files: usize) -> Result<Self> {
        let version = d.i32("hypercube version")?;
        if !(1..=2).contains(&version) {
            return Err(d.error(format!("TSMCube version {version}, known are 1 and 2")));
        }
        let values = d.record()?;
        let values = (!values.fields.is_empty()).then(|| Box::new(values));
        let extensible = d.bool("extensible")?;
        let own_ndim = d.u32("hypercube ndim")? as usize;
        let shape = d.shape("hypercube shape")?;
        let tile = d.shape("tile shape")?;
        let file = d.i32("hypercube file")?;
        let offset = d.uint("hypercube offset", version == 2)?;
        let file = match usize::try_from(file) {
            Ok(file) if file < files => Some(file),
            Ok(file) => return Err(d.error(format!("hypercube in file {file} of {files}"))),
            Err(_) => None,
        };
        if own_ndim != 0 && (own_ndim != ndim || shape.len() != ndim || tile.len() != ndim) {
            return Err(d.error(format!("hypercube of shape {shape} in tiles {tile}, {ndim} axes expected")));
        }
        let shape = if own_ndim == 0 { Shape::scalar() } else { shape };
        if !shape.contains(&0) && tile.contains(&0) {
            return Err(d.error(format!("tile shape {tile} of a hypercube of shape {shape}")));
        }
        Ok(CubeEntry { values, extensible, shape, tile, file, offset })
    }

    fn encode(&self, e: &mut Encoder) -> Result<()> {
        let wide = self.offset > MAX_NARROW;
        e.i32(if wide { 2 } else { 1 });
        match &self.values {
            Some(values) => e.record("Record", values)?,
            None => e.record("Record", &Record::default())?,
        }
        e.bool(self.extensible);
        e.u32(self.shape.len() as u32);
        e.shape(&self.shape);
        e.shape(&self.tile);
        e.i32(self.file.map_or(-1, |file| file as i32));
        e.uint(self.offset, wide);
        Ok(())
    }

    /// A hypercube without a shape; `file` is the index of its file of tiles.
    pub(super) fn undefined(file: Option<usize>) -> Self {
        let (shape, tile) = (Shape::scalar(), Shape::scalar());
        CubeEntry { values: None, extensible: false, shape, tile, file, offset: 0 }
    }

    pub(super) fn is_defined(&self) -> bool {
        !self.shape.is_empty()
    }
}
