//! The tiled storage managers store arrays as hypercubes cut into tiles. formats/stman.md section
//! 6.
//!
//! `table.f<n>` is the header ([`header`], an AipsIO stream, always big endian),
//! `table.f<n>_TSM<j>` the tiles, in the table's byte order. All data columns of a manager share
//! its cubes. The four managers differ in how rows map to cubes, which is their [`RowMap`]:
//!
//! | manager          | cubes                                  | rows                            |
//! |------------------|----------------------------------------|---------------------------------|
//! | TiledColumnStMan | one                                    | position = row                  |
//! | TiledShapeStMan  | one for each cell shape, 0 is a dummy  | intervals to positions          |
//! | TiledCellStMan   | one for each row                       | cube = row                      |
//! | TiledDataStMan   | one for each set of id values          | intervals to positions, several row axes |

mod cube;
mod header;
mod parameters;
mod row_map;
mod tile_shape;
mod write;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use self::cube::CubeColumn;
use self::header::{CubeEntry, Header};
use self::row_map::{Place as RowPlace, RowMap};
use super::{
    ColumnCells, ColumnSpec, EachExtent, Extent, Kind, Manager, OpenArgs, RowRun, Stored, Tiling, memory_bytes,
    undefined,
};
use crate::aipsio::Decoder;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::grid::{ChunkCache, ChunkRead, read_region};
use crate::io::{ByteOrder, ReadAt};
use crate::limits;
use crate::value::{DataType, Record, Region, Shape, Value, Values};

pub(super) static COLUMN: Kind = Kind {
    create: Some(|args| write::create(args, Type::Column)),
    ..kind(&["TiledColumnStMan"], |args| open(args, Type::Column))
};
pub(super) static SHAPE: Kind = Kind {
    create: Some(|args| write::create(args, Type::Shape)),
    ..kind(&["TiledShapeStMan"], |args| open(args, Type::Shape))
};
pub(super) static CELL: Kind = Kind {
    create: Some(|args| write::create(args, Type::Cell)),
    ..kind(&["TiledCellStMan"], |args| open(args, Type::Cell))
};
pub(super) static DATA: Kind = Kind {
    create: Some(|args| write::create(args, Type::Data)),
    ..kind(&["TiledDataStMan"], |args| open(args, Type::Data))
};

const fn kind(names: &'static [&'static str], open: fn(&OpenArgs<'_>) -> Result<Box<dyn Manager>>) -> Kind {
    Kind { packable: true, tiled: true, ..Kind::new(names, open) }
}

/// Decoded tiles kept per column, for reads smaller than a tile.
const CACHE_BYTES: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Column,
    Shape,
    Cell,
    Data,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::Column => "TiledColumnStMan",
            Type::Shape => "TiledShapeStMan",
            Type::Cell => "TiledCellStMan",
            Type::Data => "TiledDataStMan",
        }
    }
}

#[derive(Debug)]
struct Tiled {
    kind: Type,
    default_tile: Vec<i64>,
    cubes: Arc<Cubes>,
    columns: Vec<Box<dyn TiledColumn>>,
    /// Cells that cannot be read: the header has fewer rows, or files of tiles are too short.
    lacking: Option<Error>,
}

trait TiledColumn: ColumnCells + std::fmt::Debug {}
impl TiledColumn for DataColumn {}
impl TiledColumn for CoordinateColumn {}

#[derive(Debug)]
struct Cubes<F: ?Sized = dyn ReadAt> {
    header: Header,
    order: ByteOrder,
    files: Vec<Option<Arc<F>>>,
    /// Ordered as in a tile.
    data_types: Vec<DataType>,
    map: RowMap,
    /// Leading axes of each hypercube that are axes of a cell; the others are row axes.
    cell_axes: usize,
}

#[derive(Debug)]
struct DataColumn {
    cubes: Arc<Cubes>,
    /// Position among the data columns of a tile.
    index: usize,
    cache: ChunkCache,
}

/// An id (one value for all rows of a hypercube), or the coordinates of an axis.
#[derive(Debug)]
struct CoordinateColumn {
    cubes: Arc<Cubes>,
    spec: ColumnSpec,
    /// `None` for an id.
    axis: Option<usize>,
}

fn open(args: &OpenArgs<'_>, kind: Type) -> Result<Box<dyn Manager>> {
    open_file(args, kind).map_err(|error| error.context(Context::managed(args.file_name(""), kind.name())))
}

fn open_file(args: &OpenArgs<'_>, kind: Type) -> Result<Box<dyn Manager>> {
    let file = args.file("")?;
    let mut d = Decoder::new(&file, 0, ByteOrder::Big, "tiled header")?;
    let version = d.root(kind.name(), 1..=if kind == Type::Data { 2 } else { 1 })?;
    let mut default_tile = Vec::new();
    if matches!(kind, Type::Column | Type::Cell) {
        default_tile = d.iposition("default tile shape")?;
    }
    let header = Header::decode(&mut d, args)?;
    let map = match kind {
        Type::Column => RowMap::Column,
        Type::Cell => RowMap::Cell,
        Type::Shape => {
            default_tile = d.iposition("default tile shape")?;
            RowMap::decode_shape(&mut d)?
        }
        Type::Data => RowMap::decode_data(&mut d, version, header.version)?,
    };
    d.end()?;

    let roles = roles(args.columns, args.private_keywords, header.name.as_bstr(), kind)?;
    let order = tile_order(args.columns, &roles);
    let data_types = tile_types(args.columns, &order)?;
    let cell_axes = cell_axes(kind, header.ndim, args.columns, &roles)?;
    check_fixed_shapes(args.columns, &roles, &header, cell_axes)?;
    let described = header.lacking.as_ref().map_or(args.rows, |(rows, _)| *rows);
    map.check(&header.cubes, described)?;
    let (files, is_short) = open_files(args, &header, &data_types, cell_axes)?;
    let lacking = header.lacking.as_ref().map(|(_, error)| error.clone()).or(is_short);
    let lacking = lacking.map(|error| error.context(Context::managed(args.file_name(""), kind.name())));
    let cubes = Arc::new(Cubes { header, order: args.order, files, data_types, map, cell_axes });
    let columns = args
        .columns
        .iter()
        .zip(&roles)
        .enumerate()
        .map(|(column, (spec, role))| -> Box<dyn TiledColumn> {
            let cubes = cubes.clone();
            match *role {
                Role::Data(_) => {
                    let index = order.iter().position(|&other| other == column).unwrap_or_default();
                    Box::new(DataColumn { cubes, index, cache: ChunkCache::new(CACHE_BYTES) })
                }
                Role::Coordinate(axis) => Box::new(CoordinateColumn { cubes, spec: spec.clone(), axis: Some(axis) }),
                Role::Id => Box::new(CoordinateColumn { cubes, spec: spec.clone(), axis: None }),
            }
        })
        .map(|column| match &lacking {
            Some(error) => Box::new(InPart { column, rows: described, error: error.clone() }),
            None => column,
        })
        .collect();
    Ok(Box::new(Tiled { kind, default_tile, cubes, columns, lacking }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Data(usize),
    Coordinate(usize),
    Id,
}

/// Roles by the definition of the hypercolumn in the table's private keywords; without one, which a
/// TiledDataStMan must have, all are data columns. formats/stman.md 6.3.
fn roles(columns: &[ColumnSpec], private_keywords: &Record, hypercolumn: &BStr, kind: Type) -> Result<Vec<Role>> {
    let key = definition_key(hypercolumn);
    let Some(definition) = private_keywords.record(&key) else {
        if kind == Type::Data {
            return Err(Error::format(format!("the table description lacks {key}, which says what its columns are")));
        }
        return Ok((0..columns.len()).map(Role::Data).collect());
    };
    let find = |field: &str, name: &BString| definition.strings(field)?.iter().position(|known| known == name);
    columns
        .iter()
        .map(|column| {
            if let Some(place) = find("data", &column.name) {
                Ok(Role::Data(place))
            } else if let Some(axis) = find("coord", &column.name) {
                Ok(Role::Coordinate(axis))
            } else if find("id", &column.name).is_some() {
                Ok(Role::Id)
            } else {
                Err(Error::format(format!("column {} is not part of {key}", column.name)))
            }
        })
        .collect()
}

fn definition_key(hypercolumn: &BStr) -> String {
    format!("Hypercolumn_{}", hypercolumn.to_str_lossy())
}

fn cell_axes(kind: Type, ndim: usize, columns: &[ColumnSpec], roles: &[Role]) -> Result<usize> {
    let axes = match kind {
        Type::Column | Type::Shape => ndim.checked_sub(1),
        Type::Cell => Some(ndim),
        Type::Data => {
            let first = roles.iter().position(|role| matches!(role, Role::Data(0)));
            first.and_then(|first| usize::try_from(columns[first].ndim).ok()).filter(|&axes| axes < ndim)
        }
    };
    axes.ok_or_else(|| Error::format(format!("hypercubes of {ndim} axes do not suit the columns")))
}

fn check_fixed_shapes(columns: &[ColumnSpec], roles: &[Role], header: &Header, cell_axes: usize) -> Result<()> {
    let data = columns.iter().zip(roles).filter(|(_, role)| matches!(role, Role::Data(_)));
    for (column, fixed) in data.filter_map(|(column, _)| Some((column, column.shape.as_ref()?))) {
        let other = header.cubes.iter().find(|cube| cube.is_defined() && cube.shape[..cell_axes] != fixed[..]);
        if let Some(cube) = other {
            let (shape, name) = (&cube.shape, &column.name);
            return Err(Error::format(format!(
                "hypercube of shape {shape} for column {name}, whose cells are {fixed}"
            )));
        }
    }
    Ok(())
}

/// Ordered as in a tile; an error for types that cannot be tiled, such as strings.
fn tile_types(columns: &[ColumnSpec], order: &[usize]) -> Result<Vec<DataType>> {
    let types: Vec<DataType> = order.iter().map(|&column| columns[column].data_type).collect();
    match types.iter().find(|data_type| !data_type.is_fixed_size()) {
        Some(other) => Err(Error::format(format!("a {other} column, which cannot be tiled"))),
        None => Ok(types),
    }
}

/// Larger elements first, Bools last, equal sizes in reverse order; before 2013 casacore kept equal
/// sizes in order, but it reads such files by today's rule: no file records which one it follows.
fn tile_order(columns: &[ColumnSpec], roles: &[Role]) -> Vec<usize> {
    let mut data: Vec<(usize, usize)> = roles
        .iter()
        .enumerate()
        .filter_map(|(column, role)| if let Role::Data(place) = *role { Some((place, column)) } else { None })
        .collect();
    data.sort_unstable();
    let mut order: Vec<usize> = data.into_iter().map(|(_, column)| column).collect();
    order.sort_by_key(|&column| match columns[column].data_type {
        DataType::Bool => 0,
        data_type => data_type.size(),
    });
    order.reverse();
    order
}

/// Cells of a manager that lacks some are read one by one, so that each can fail.
#[derive(Debug)]
struct InPart {
    column: Box<dyn TiledColumn>,
    rows: u64,
    error: Error,
}

impl TiledColumn for InPart {}

impl InPart {
    fn check(&self, row: u64) -> Result<()> {
        if row < self.rows { Ok(()) } else { Err(self.error.clone()) }
    }
}

impl ColumnCells for InPart {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.check(row)?;
        self.column.cell_shape(row)
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        self.check(row)?;
        self.column.read_cell(row, region, out).map_err(|error| match error.kind() {
            // a tile after the end of the file: `error` knows neither the file nor the manager
            ErrorKind::Format => self.error.clone(),
            _ => error,
        })
    }
}

type Files = Vec<Option<Arc<dyn ReadAt>>>;

/// `None` for files without tiles; the error of a file too short, if some tiles can be read.
fn open_files(
    args: &OpenArgs<'_>,
    header: &Header,
    data_types: &[DataType],
    cell_axes: usize,
) -> Result<(Files, Option<Error>)> {
    let mut is_short = None;
    let mut files: Vec<Option<Arc<dyn ReadAt>>> = vec![None; header.files.len()];
    let mut lens = vec![0; header.files.len()];
    for cube in &header.cubes {
        if !cube.is_defined() || cube.shape.contains(&0) {
            continue;
        }
        let entry = cube.file.and_then(|index| Some((index, header.files[index].as_ref()?)));
        let Some((index, entry)) = entry else {
            return Err(Error::format(format!("hypercube of shape {} has no file", cube.shape)));
        };
        if files[index].is_none() {
            let file = open_tiles(args, entry.sequence)?;
            lens[index] = file.len()?;
            files[index] = Some(file);
        }
        let checked = cube::layout(cube, data_types, lens[index])
            .with_context(|| args.file_name(&format!("_TSM{}", entry.sequence)));
        match checked {
            Err(error) if has_tiles(cube, data_types, lens[index], cell_axes) => is_short = is_short.or(Some(error)),
            checked => drop(checked?),
        }
    }
    Ok((files, is_short))
}

/// Whether cells of a too short file are read: if it has the first tile and a cell's length.
fn has_tiles(cube: &CubeEntry, data_types: &[DataType], len: u64, cell_axes: usize) -> bool {
    let Ok((stride, _)) = cube::layout(cube, data_types, u64::MAX) else { return false };
    let cell = cube.shape[..cell_axes].iter().try_fold(1u64, |size, &extent| size.checked_mul(extent));
    cube.offset.checked_add(stride).is_some_and(|end| end <= len) && cell.is_some_and(|cell| cell <= len)
}

fn open_tiles(args: &OpenArgs<'_>, sequence: u32) -> Result<Arc<dyn ReadAt>> {
    let suffix = format!("_TSM{sequence}");
    match args.file(&suffix) {
        // casacore from 3.6.0 on cuts the suffix to 7 characters
        Err(_) if suffix.len() > 7 => args.file(&suffix[..7]),
        result => result,
    }
}

impl Manager for Tiled {
    fn name(&self) -> &BStr {
        self.cubes.header.name.as_bstr()
    }

    fn readable(&self, _index: usize) -> Result<()> {
        self.lacking.clone().map_or(Ok(()), Err)
    }

    fn column(&self, index: usize) -> &dyn ColumnCells {
        &*self.columns[index]
    }

    fn parameters(&self) -> Record {
        parameters::describe(self)
    }
}

impl<F: ReadAt + ?Sized> Cubes<F> {
    fn locate(&self, row: u64) -> Result<Option<RowPlace>> {
        self.map.locate(row, &self.header.cubes, self.cell_axes)
    }

    fn cell_shape(&self, cube: usize) -> Shape {
        self.header.cubes[cube].shape[..self.cell_axes].into()
    }

    /// A hypercube that is a single cell gets a row axis of extent 1.
    fn column(&self, cube: usize, index: usize) -> Result<CubeColumn<F>> {
        let entry = &self.header.cubes[cube];
        // the file's length was checked when it was opened
        let (stride, starts) = cube::layout(entry, &self.data_types, u64::MAX)?;
        let file = entry.file.and_then(|file| self.files[file].clone());
        let row_axis = self.cell_axes == entry.shape.len();
        Ok(CubeColumn::new(entry, file, self.data_types[index], self.order, (starts[index], stride), row_axis))
    }

    /// `count` rows, or `region` of each, from `place` along the first row axis.
    fn region(&self, place: &RowPlace, count: u64, region: Option<&Region>) -> Result<Region> {
        let cell = self.cell_shape(place.cube);
        let region = match region {
            Some(region) => {
                region.check(&cell)?;
                region.clone()
            }
            None => Region::whole(&cell),
        };
        let rows = (self.header.cubes[place.cube].shape.len() - cell.len()).max(1);
        let at = place.at.iter().copied().chain(std::iter::repeat(0)).take(rows);
        let extents = std::iter::once(count).chain(std::iter::repeat(1)).take(rows);
        Ok(Region {
            start: region.start.iter().copied().chain(at).collect(),
            shape: region.shape.iter().copied().chain(extents).collect(),
        })
    }

    /// Scalar for an id or a row axis; for a cell axis a list of its length, `None` without cube.
    fn coordinate_shape(&self, axis: Option<usize>, row: u64) -> Result<Option<Shape>> {
        match axis {
            Some(axis) if axis < self.cell_axes => {
                let place = self.locate(row)?;
                Ok(place.map(|place| Shape::from([self.header.cubes[place.cube].shape[axis]])))
            }
            _ => Ok(Some(Shape::scalar())),
        }
    }

    /// Position of a row on a row axis; else 0: all rows of the hypercube share the values.
    fn first_coordinate(&self, axis: Option<usize>, place: &RowPlace) -> u64 {
        match axis {
            Some(axis) if axis >= self.cell_axes => place.at.get(axis - self.cell_axes).copied().unwrap_or_default(),
            _ => 0,
        }
    }
}

impl DataColumn {
    fn read_at(&self, place: &RowPlace, count: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let cube = self.cubes.column(place.cube, self.index)?;
        let region = self.cubes.region(place, count, region)?;
        read_region(&cube, &self.cache, place.cube as u64, &region, out)
    }
}

impl ColumnCells for DataColumn {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        Ok(self.cubes.locate(row)?.map(|place| self.cubes.cell_shape(place.cube)))
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let place = self.cubes.locate(row)?.ok_or_else(|| undefined(row))?;
        self.read_at(&place, 1, region, out)
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let mut row = rows.start;
        while row < rows.end {
            let count = match self.cubes.locate(row)? {
                Some(place) => {
                    let count = place.stretch.min(rows.end - row);
                    self.read_at(&place, count, None, out)?;
                    count
                }
                None => 1,
            };
            row += count;
        }
        Ok(())
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let place = self.cubes.locate(rows.start).ok()??;
        (place.stretch >= rows.end.saturating_sub(rows.start)).then(|| self.cubes.cell_shape(place.cube))
    }

    fn tiling(&self, max_cubes: usize) -> Option<Tiling<'_>> {
        let cubes = &self.cubes;
        // the dummy and other undefined cubes stay in the count so that numbers in the row map need
        // no translation
        let runs = cubes.map.runs(&cubes.header.cubes, cubes.cell_axes, max_cubes)?;
        let mut used: Vec<usize> = runs.iter().map(|run| run.cube).collect();
        used.sort_unstable();
        used.dedup();
        let columns: Vec<Box<dyn ChunkRead>> = used
            .iter()
            .map(|&cube| cubes.column(cube, self.index).ok().map(|column| Box::new(column) as Box<dyn ChunkRead>))
            .collect::<Option<_>>()?;
        let runs = runs
            .into_iter()
            .map(|run| RowRun { cube: used.binary_search(&run.cube).unwrap_or_default(), ..run })
            .collect();
        Some(Tiling { cubes: columns, runs })
    }

    fn forget(&self) {
        self.cache.clear();
    }

    fn extents(&self, _rows: u64, max_cubes: usize, each: &mut EachExtent<'_>) -> Result<()> {
        let cubes = &self.cubes;
        let Some(runs) = cubes.map.runs(&cubes.header.cubes, cubes.cell_axes, usize::MAX) else { return Ok(()) };
        let used: BTreeSet<usize> = runs.iter().map(|run| run.cube).collect();
        let is_cells = used.len() > max_cubes;
        for (number, &cube) in used.iter().enumerate() {
            let entry = &cubes.header.cubes[cube];
            let Some(sequence) =
                entry.file.and_then(|file| cubes.header.files[file].as_ref()).map(|file| file.sequence)
            else {
                continue;
            };
            let column = cubes.column(cube, self.index)?;
            let (offset, stride, count) = column.tiles()?;
            let content = match () {
                // a cube that is a cell and a tile
                () if is_cells && matches!(cubes.map, RowMap::Cell) && entry.shape == entry.tile => {
                    Stored::Cells(cube as u64..cube as u64 + 1)
                }
                () if is_cells => continue,
                () => Stored::Tiles { cube: number, tile: column.grid().chunk.clone(), stride, count },
            };
            each(Extent { suffix: &format!("_TSM{sequence}"), offset, order: cubes.order, content })?;
        }
        Ok(())
    }
}

impl CoordinateColumn {
    fn value(&self, cube: usize) -> Option<&Value> {
        let values = self.cubes.header.cubes[cube].values.as_ref()?;
        // a rename does not reach these fields, but then casacore does not find them either
        values.get(self.spec.name.to_str().ok()?)
    }
}

impl ColumnCells for CoordinateColumn {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.cubes.coordinate_shape(self.axis, row)
    }

    /// Values that the header record lacks are read as 0.
    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let shape = self.cell_shape(row)?.ok_or_else(|| undefined(row))?;
        let (start, wanted) = match region {
            Some(region) => {
                region.check(&shape)?;
                (region.start.first().copied().unwrap_or_default(), region.shape.elements()?)
            }
            None => (0, shape.elements()?),
        };
        // an axis may have any extent, however few coordinates it has
        limits::unbacked_cell(memory_bytes(out.data_type(), shape.elements()?))?;
        let Some(place) = self.cubes.locate(row)? else {
            out.extend_default(wanted as usize);
            return Ok(());
        };
        let first = start + self.cubes.first_coordinate(self.axis, &place);
        let mut found = 0;
        if let Some(Value::Scalar(values) | Value::Array(_, values)) = self.value(place.cube) {
            let end = first.saturating_add(wanted).min(values.len() as u64);
            if first < end {
                out.extend_from(values, first as usize..end as usize)?;
                found = end - first;
            }
        }
        out.extend_default((wanted - found) as usize);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
