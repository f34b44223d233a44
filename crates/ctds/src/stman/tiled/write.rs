//! Writes tiled storage managers: adds hypercubes and rows, and writes cells into tiles.
//! formats/stman.md 6.8.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::header::{CubeEntry, FileEntry, Header};
use super::parameters::{self, Given, Wanted};
use super::row_map::{Place as RowPlace, RowMap};
use super::{Cubes, Role, Type, cell_axes, cube, definition_key, roles, tile_order, tile_shape, tile_types};
use crate::aipsio::Encoder;
use crate::container::ContainerMut;
use crate::error::{Error, Result, ResultExt};
use crate::grid::{ChunkWrite, Grid, copy_box};
use crate::io::{ByteOrder, PagedMut, WriteAt};
use crate::stman::with_context::WithContext;
use crate::stman::{ColumnSpec, CreateArgs, LinkedCube, ManagerMut, TilePlace};
use crate::value::{BString, DataType, Field, Record, Region, Shape, Value, Values};

/// Page caches, a few MB each.
const PAGED_FILES: usize = 4;

/// Casacore numbers files of tiles with three digits.
const MAX_FILES: usize = 1000;

#[derive(Debug)]
struct TiledMut {
    kind: Type,
    files: Arc<dyn ContainerMut>,
    sequence: u32,
    columns: Vec<ColumnSpec>,
    roles: Vec<Role>,
    /// Position of each column's part in a tile; unused for id and coordinate columns.
    tile_places: Vec<usize>,
    rows: u64,
    cubes: Cubes<dyn WriteAt>,
    /// Shape of all data cells, fastest axis first, if it is fixed.
    fixed: Option<Shape>,
    /// Hypercubes whose row axis can grow, by the shape of their cells.
    growing: HashMap<Shape, usize>,
    wanted: Wanted,
    header: Arc<dyn WriteAt>,
    /// Page caches with the index of their file; the one used last is at the end.
    paged: Vec<(usize, PagedMut)>,
}

pub(super) fn create(args: &CreateArgs<'_>, kind: Type) -> Result<Box<dyn ManagerMut>> {
    WithContext::create(args, kind.name(), || TiledMut::new(args, kind))
}

impl TiledMut {
    fn new(args: &CreateArgs<'_>, kind: Type) -> Result<Self> {
        let roles = roles(args.columns, args.private_keywords, args.name, kind)?;
        let order = tile_order(args.columns, &roles);
        let data_types = tile_types(args.columns, &order).map_err(|error| Error::usage(error.to_string()))?;
        let fixed = check_data_columns(args.columns, &roles, kind)?;
        let defined = args.private_keywords.record(definition_key(args.name));
        let ndim = match defined.and_then(|definition| definition.integers("ndim")?.first().copied()) {
            Some(ndim) => usize::try_from(ndim).unwrap_or_default(),
            None => {
                let cell = order.first().map_or(0, |&first| cell_ndim(&args.columns[first]));
                if cell == 0 {
                    return Err(Error::usage(format!("scalars in a {} need a hypercolumn definition", kind.name())));
                }
                cell + usize::from(kind != Type::Cell)
            }
        };
        let cell_axes = cell_axes(kind, ndim, args.columns, &roles)?;
        if order.iter().any(|&column| cell_ndim(&args.columns[column]) != cell_axes) {
            return Err(Error::usage(format!("hypercubes of {ndim} axes do not suit the columns' number of axes")));
        }
        let wanted = Wanted::new(args.parameters)?;
        let header = Header {
            version: 0,
            name: args.name.to_owned(),
            cache: wanted.cache,
            ndim,
            files: Vec::new(),
            cubes: Vec::new(),
            lacking: None,
        };
        let map = match kind {
            Type::Column => RowMap::Column,
            Type::Cell => RowMap::Cell,
            Type::Shape | Type::Data => RowMap::Intervals(Vec::new()),
        };
        let place_in_tile = |column| order.iter().position(|&other| other == column).unwrap_or_default();
        let mut manager = TiledMut {
            kind,
            files: args.files.clone(),
            sequence: args.sequence,
            columns: args.columns.to_vec(),
            tile_places: (0..roles.len()).map(place_in_tile).collect(),
            roles,
            rows: 0,
            cubes: Cubes { header, order: args.order, files: Vec::new(), data_types, map, cell_axes },
            fixed,
            growing: HashMap::new(),
            wanted,
            header: args.file("")?,
            paged: Vec::new(),
        };
        manager.first_cubes(args.parameters)?;
        Ok(manager)
    }

    fn first_cubes(&mut self, parameters: &Record) -> Result<()> {
        let header = &mut self.cubes.header;
        match (self.kind, self.fixed.clone()) {
            // cells get their cube with the first rows, also those of fixed shape
            (Type::Shape, _) => {
                header.files.push(None);
                self.cubes.files.push(None);
                header.cubes.push(CubeEntry::undefined(None));
            }
            (Type::Column, Some(cell)) => {
                self.add_file()?;
                let tile = self.wanted.tile(&cell);
                self.add_cube(&cell.with_axis(0), &tile, true, 0)?;
            }
            (Type::Data, _) => {
                self.add_file()?;
                let (cubes, map) = parameters::restore(parameters, self.cubes.cell_axes)?;
                cubes.into_iter().try_for_each(|cube| self.add_given(cube))?;
                self.cubes.map = map;
            }
            _ => self.add_file()?,
        }
        Ok(())
    }

    fn add_file(&mut self) -> Result<()> {
        let sequence = self.cubes.files.len();
        if sequence == MAX_FILES {
            return Err(Error::limit(format!("more than {MAX_FILES} hypercubes that grow; casacore cannot open them")));
        }
        self.cubes.files.push(Some(self.files.create(&format!("table.f{}_TSM{sequence}", self.sequence))?));
        self.cubes.header.files.push(Some(FileEntry { sequence: sequence as u32, len: 0 }));
        Ok(())
    }

    /// Appends to a file of tiles. Extents in `wanted_tile` that are 0 or missing are chosen.
    fn add_cube(&mut self, shape: &Shape, wanted_tile: &[u64], extensible: bool, file: usize) -> Result<()> {
        let tile = tile_shape::choose(shape, wanted_tile, extensible);
        let mut cube = CubeEntry { extensible, shape: shape.clone(), tile, ..CubeEntry::undefined(Some(file)) };
        self.allot(&mut cube)?;
        self.cubes.header.cubes.push(cube);
        Ok(())
    }

    fn allot(&mut self, cube: &mut CubeEntry) -> Result<()> {
        if let Some(Some(entry)) = cube.file.and_then(|file| self.cubes.header.files.get_mut(file)) {
            cube.offset = entry.len;
            entry.len = cube_end(cube, &self.cubes.data_types)?;
        }
        Ok(())
    }

    fn add_given(&mut self, given: Given) -> Result<()> {
        let Given { shape, tile, extensible, values } = given;
        if shape.len() != self.cubes.header.ndim {
            let ndim = self.cubes.header.ndim;
            return Err(Error::usage(format!("a hypercube of shape {shape}, but the definition has {ndim} axes")));
        }
        let mut file = 0;
        if extensible {
            file = self.cubes.files.len();
            self.add_file()?;
            if shape.len() == self.cubes.cell_axes + 1 {
                let cell = Shape::from(&shape[..self.cubes.cell_axes]);
                self.growing.entry(cell).or_insert(self.cubes.header.cubes.len());
            }
        }
        self.add_cube(&shape, &tile, extensible, file)?;
        if let Some(cube) = self.cubes.header.cubes.last_mut() {
            cube.values = (!values.fields.is_empty()).then(|| Box::new(values));
        }
        Ok(())
    }

    /// The hypercube for more rows with cells of this shape, a new one if needed.
    fn growing_cube(&mut self, cell: &Shape) -> Result<usize> {
        if let Some(&cube) = self.growing.get(cell) {
            return Ok(cube);
        }
        let (file, cube) = (self.cubes.files.len(), self.cubes.header.cubes.len());
        self.add_file()?;
        let tile = self.wanted.tile(cell);
        self.add_cube(&cell.with_axis(0), &tile, true, file)?;
        self.growing.insert(cell.clone(), cube);
        Ok(cube)
    }

    /// Extends the row axis of the only hypercube in its file; returns the first new position.
    fn extend(&mut self, cube: usize, count: u64) -> Result<u64> {
        let Cubes { header, data_types, .. } = &mut self.cubes;
        let entry = &mut header.cubes[cube];
        let (cell, position) = entry.shape.split_last().ok_or_else(|| Error::usage("the hypercube has no row axis"))?;
        let longer = position.checked_add(count).filter(|&rows| rows <= i64::MAX as u64);
        // row maps have 32 bits
        let longer = longer.filter(|&rows| self.kind == Type::Column || rows <= u64::from(u32::MAX));
        let longer = longer
            .ok_or_else(|| Error::limit(format!("{count} rows are too many for a hypercube of {position} rows")))?;
        entry.shape = cell.with_axis(longer);
        let end = cube_end(entry, data_types)?;
        if let Some(Some(file)) = entry.file.map(|file| &mut header.files[file]) {
            file.len = end;
        }
        Ok(position)
    }

    fn add_to_cube(&mut self, rows: Range<u64>, cell: &Shape) -> Result<()> {
        if self.kind == Type::Shape && rows.end > u64::from(u32::MAX) + 1 {
            return Err(Error::limit(format!(
                "row {} cannot be added: TiledShapeStMan counts rows in 32 bits",
                rows.end - 1
            )));
        }
        let cube = self.growing_cube(cell)?;
        let position = self.extend(cube, rows.end - rows.start)?;
        self.cubes.map.assign(rows, cube, position);
        Ok(())
    }

    /// The file is extended to the length that the header states.
    fn pages(&mut self, file: usize) -> Result<&PagedMut> {
        let handle = self.cubes.files.get(file).cloned().flatten();
        let (Some(handle), Some(Some(entry))) = (handle, self.cubes.header.files.get(file)) else {
            return Err(Error::usage("the hypercube has no file"));
        };
        match self.paged.iter().position(|(known, _)| *known == file) {
            Some(found) => self.paged[found..].rotate_left(1),
            None => {
                if self.paged.len() == PAGED_FILES {
                    self.paged[0].1.flush()?;
                    self.paged.remove(0);
                }
                self.paged.push((file, PagedMut::new(handle)?));
            }
        }
        let pages = &self.paged[self.paged.len() - 1].1;
        pages.grow(entry.len);
        Ok(pages)
    }

    /// Also extends the files to hold tiles that were never written.
    fn flush_tiles(&mut self) -> Result<()> {
        for file in 0..self.cubes.files.len() {
            if self.cubes.files[file].is_some() {
                self.pages(file)?.flush()?;
            }
        }
        Ok(())
    }

    /// Writes `count` rows, or `region` of each, from `place` on; returns the elements written.
    fn write_at(
        &mut self,
        column: usize,
        place: &RowPlace,
        count: u64,
        region: Option<&Region>,
        values: &Values,
        first: usize,
    ) -> Result<usize> {
        let region = self.cubes.region(place, count, region)?;
        let elements = region.shape.elements()?;
        if first as u64 + elements > values.len() as u64 {
            return Err(Error::usage(format!("{} elements where {elements} more are expected", values.len() - first)));
        }
        if elements > 0 {
            let cube = self.cubes.column(place.cube, self.tile_places[column])?;
            let file = self.cubes.header.cubes[place.cube].file.unwrap_or_default();
            cube.write_region(self.pages(file)?, &region, values, first)?;
        }
        Ok(elements as usize)
    }

    /// Writes into the header record that all rows share; `axis` is `None` for an id.
    fn write_coordinates(
        &mut self,
        column: usize,
        axis: Option<usize>,
        row: u64,
        region: Option<&Region>,
        values: &Values,
        first: usize,
    ) -> Result<usize> {
        let shape = self.cubes.coordinate_shape(axis, row)?.ok_or_else(without_shape)?;
        let region = region.cloned().unwrap_or_else(|| Region::whole(&shape));
        region.check(&shape)?;
        let count = region.shape.elements()? as usize;
        if first + count > values.len() {
            return Err(Error::usage(format!("{} elements where {count} more are expected", values.len() - first)));
        }
        let mut new = Values::new(values.data_type());
        new.extend_from(values, first..first + count)?;
        let mut zeros = Values::new(values.data_type());
        zeros.extend_default(count);
        let Some(place) = self.cubes.locate(row)? else {
            // zeros are what the reader finds without a cube
            return if new == zeros { Ok(count) } else { Err(without_shape()) };
        };
        let start = region.start.first().copied().unwrap_or_default() + self.cubes.first_coordinate(axis, &place);
        let start = start as usize;
        let mut old = Values::new(new.data_type());
        let mut fits = true;
        self.cubes.header.cubes[place.cube].change_values(&self.columns[column], axis, |stored| {
            let missing = (start + count).saturating_sub(stored.len());
            stored.extend_default(missing);
            old.extend_from(stored, start..start + count)?;
            fits = old == new || old == zeros;
            if fits {
                let (all, count) = ([stored.len() as u64], [count as u64]);
                copy_box(&new, &count, &[0], stored, 0, &all, &[start as u64], &count);
            }
            Ok(())
        })?;
        if !fits {
            return Err(Error::usage(format!(
                "{} shares one value among the rows of a hypercube, and another row has another",
                self.kind.name()
            )));
        }
        Ok(count)
    }

    /// Zeros for ids and coordinates that were never written, in every hypercube with a shape.
    fn complete_coordinates(&mut self) -> Result<()> {
        for (spec, role) in self.columns.iter().zip(&self.roles) {
            let axis = match *role {
                Role::Data(_) => continue,
                Role::Coordinate(axis) => Some(axis),
                Role::Id => None,
            };
            for cube in self.cubes.header.cubes.iter_mut().filter(|cube| cube.is_defined()) {
                let extent = axis.and_then(|axis| cube.shape.get(axis).copied()).unwrap_or(1) as usize;
                cube.change_values(spec, axis, |values| {
                    values.extend_default(extent.saturating_sub(values.len()));
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn write(&mut self, column: usize, rows: Range<u64>, region: Option<&Region>, values: &Values) -> Result<()> {
        self.columns[column].check_write(&rows, self.rows, values)?;
        let mut done = 0;
        let mut row = rows.start;
        while row < rows.end {
            let mut count = 1;
            let mut write = || match self.roles[column] {
                Role::Data(_) => {
                    let place = self.cubes.locate(row)?.ok_or_else(without_shape)?;
                    count = place.stretch.min(rows.end - row);
                    self.write_at(column, &place, count, region, values, done)
                }
                Role::Coordinate(axis) => self.write_coordinates(column, Some(axis), row, region, values, done),
                Role::Id => self.write_coordinates(column, None, row, region, values, done),
            };
            let written = write();
            done += written.with_context(|| self.cell(column, row))?;
            row += count;
        }
        if done < values.len() {
            let message = format!("{} elements, {} more than there are", values.len(), values.len() - done);
            return Err(self.columns[column].misfit(rows.start, message));
        }
        Ok(())
    }

    fn cell(&self, column: usize, row: u64) -> String {
        format!("column {}, row {row}", self.columns[column].name)
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let mut e = Encoder::new(ByteOrder::Big);
        e.root(self.kind.name(), if self.kind == Type::Data { 2 } else { 1 });
        if matches!(self.kind, Type::Column | Type::Cell) {
            e.iposition(&self.wanted.default_tile);
        }
        self.cubes.header.encode(&mut e, self.cubes.order, self.sequence, self.rows, &self.columns)?;
        match self.kind {
            Type::Shape => {
                e.iposition(&self.wanted.default_tile);
                self.cubes.map.encode_shape(&mut e);
            }
            Type::Data => self.cubes.map.encode_data(&mut e),
            Type::Column | Type::Cell => {}
        }
        e.end();
        Ok(e.into_bytes())
    }
}

/// `wanted` if the stored chunks are also valid as tiles of that shape, else the chunk shape.
fn tile_of_block(wanted: &Shape, block: &LinkedCube) -> Shape {
    let (Some((shape, rows)), Some((tile, tile_rows)), Some((chunk, chunk_rows))) =
        (block.shape.split_last(), wanted.split_last(), block.chunk.split_last())
    else {
        return block.chunk.clone();
    };
    let end = |rows_of: u64| rows.div_ceil(rows_of.max(1)).saturating_mul(rows_of);
    let fits = tile == shape && chunk == shape && end(tile_rows) <= end(chunk_rows);
    if fits { wanted.clone() } else { block.chunk.clone() }
}

fn without_shape() -> Error {
    Error::usage("the cell has no shape yet")
}

/// Returns the fixed shape, which all must share; other columns need a fixed number of axes.
fn check_data_columns(columns: &[ColumnSpec], roles: &[Role], kind: Type) -> Result<Option<Shape>> {
    let mut fixed: Option<&ColumnSpec> = None;
    for (spec, role) in columns.iter().zip(roles) {
        if !matches!(role, Role::Data(_)) {
            continue;
        }
        let wrong = |message: &str| Err(Error::usage(format!("column {}: {message}", spec.name)));
        match &spec.shape {
            None if kind == Type::Column => {
                return wrong("its shape is not fixed, so it cannot be in a TiledColumnStMan");
            }
            None if spec.ndim < 1 => return wrong("its number of axes is not fixed, so it cannot be tiled"),
            Some(shape) if shape.contains(&0) => return wrong("cells without elements cannot be tiled"),
            Some(shape) if fixed.is_some_and(|other| other.shape.as_ref() != Some(shape)) => {
                return wrong("columns of different shapes cannot share hypercubes");
            }
            Some(_) => fixed = Some(spec),
            None => {}
        }
    }
    Ok(fixed.and_then(|spec| spec.shape.clone()))
}

/// 0 for scalars and if the number is not fixed.
fn cell_ndim(spec: &ColumnSpec) -> usize {
    match &spec.shape {
        Some(shape) => shape.len(),
        None => usize::try_from(spec.ndim).unwrap_or_default(),
    }
}

fn cube_end(cube: &CubeEntry, columns: &[DataType]) -> Result<u64> {
    let too_large = || {
        Error::limit(format!(
            "a hypercube of shape {} in tiles of {} is too large: the limit is 2^63 bytes",
            cube.shape, cube.tile
        ))
    };
    let (tile_bytes, _) = cube::layout(cube, columns, i64::MAX as u64).map_err(|_| too_large())?;
    // casacore counts the bytes of a tile in 32 bits
    u32::try_from(tile_bytes).map_err(|_| too_large())?;
    let tiles = Grid { shape: cube.shape.clone(), chunk: cube.tile.clone() }.counts().elements()?;
    Ok(cube.offset + tiles * tile_bytes)
}

impl CubeEntry {
    /// `change` gets an empty value if none was set yet.
    fn change_values(
        &mut self,
        spec: &ColumnSpec,
        axis: Option<usize>,
        change: impl FnOnce(&mut Values) -> Result<()>,
    ) -> Result<()> {
        let fields = &mut self.values.get_or_insert_default().fields;
        let found = fields.iter().position(|field| field.name == spec.name).unwrap_or_else(|| {
            let value = Value::Scalar(Values::new(spec.data_type));
            fields.push(Field { name: spec.name.clone(), comment: BString::default(), value });
            fields.len() - 1
        });
        let value = &mut fields[found].value;
        let mut values = match std::mem::replace(value, Value::Table(BString::default())) {
            Value::Scalar(values) | Value::Array(_, values) if values.data_type() == spec.data_type => values,
            _ => Values::new(spec.data_type),
        };
        let changed = change(&mut values);
        *value = match axis {
            Some(_) => Value::Array(Shape::from([values.len() as u64]), values),
            None => Value::Scalar(values),
        };
        changed
    }
}

impl ManagerMut for TiledMut {
    fn add_rows(&mut self, count: u64) -> Result<()> {
        let rows = self.rows..self.rows.saturating_add(count);
        match (self.kind, self.fixed.clone()) {
            (Type::Column, _) => {
                self.extend(0, count)?;
            }
            (Type::Shape, Some(cell)) if count > 0 => self.add_to_cube(rows.clone(), &cell)?,
            (Type::Cell, fixed) => {
                let cubes = &mut self.cubes.header.cubes;
                cubes.extend((0..count).map(|_| CubeEntry::undefined(Some(0))));
                if let Some(cell) = fixed {
                    self.rows = rows.end;
                    self.set_shape_of(rows.clone(), &cell)?;
                }
            }
            _ => {}
        }
        self.rows = rows.end;
        Ok(())
    }

    fn cell_shape(&self, column: usize, row: u64) -> Result<Option<Shape>> {
        self.columns[column].check_rows(&(row..row.saturating_add(1)), self.rows)?;
        match self.roles[column] {
            Role::Data(_) => Ok(self.cubes.locate(row)?.map(|place| self.cubes.cell_shape(place.cube))),
            Role::Coordinate(axis) => self.cubes.coordinate_shape(Some(axis), row),
            Role::Id => self.cubes.coordinate_shape(None, row),
        }
    }

    fn set_shape(&mut self, column: usize, row: u64, shape: &Shape) -> Result<()> {
        if self.cell_shape(column, row)?.is_some_and(|known| known == *shape) {
            return Ok(());
        }
        if !matches!(self.roles[column], Role::Data(_)) {
            let message = format!("shape {shape}, but the cells of a column of coordinates have that of their axis");
            return Err(self.columns[column].misfit(row, message));
        }
        self.columns[column].check_shape(row, shape)?;
        let set = self.set_shape_of(row..row + 1, shape);
        set.with_context(|| self.cell(column, row))
    }

    fn set_shapes(&mut self, column: usize, rows: Range<u64>, shape: &Shape) -> Result<()> {
        let is_new = |row| matches!(self.cell_shape(column, row), Ok(None));
        if rows.is_empty() || !rows.clone().all(is_new) || !matches!(self.roles[column], Role::Data(_)) {
            return rows.into_iter().try_for_each(|row| self.set_shape(column, row, shape));
        }
        self.columns[column].check_shape(rows.start, shape)?;
        let first = rows.start;
        self.set_shape_of(rows, shape).with_context(|| self.cell(column, first))
    }

    fn write_cell(&mut self, column: usize, row: u64, region: Option<&Region>, values: &Values) -> Result<()> {
        self.write(column, row..row + 1, region, values)
    }

    fn write_rows(&mut self, column: usize, rows: Range<u64>, values: &Values) -> Result<()> {
        self.write(column, rows, None, values)
    }

    fn cubes(&mut self, column: usize) -> Result<Vec<Box<dyn ChunkWrite + '_>>> {
        if !matches!(self.roles[column], Role::Data(_)) {
            return Ok(Vec::new());
        }
        // pages must not hide tiles that are written past them
        self.flush_tiles()?;
        self.paged.clear();
        let defined = self.cubes.header.cubes.iter().enumerate().filter(|(_, cube)| cube.is_defined());
        defined
            .map(|(cube, _)| {
                let chunks = self.cubes.column(cube, self.tile_places[column])?;
                Ok(Box::new(chunks) as Box<dyn ChunkWrite>)
            })
            .collect()
    }

    fn tile_places(&self, column: usize) -> Result<Vec<TilePlace>> {
        if !matches!(self.roles[column], Role::Data(_)) {
            return Ok(Vec::new());
        }
        let Cubes { header, .. } = &self.cubes;
        let defined = header.cubes.iter().enumerate().filter(|(_, cube)| cube.is_defined());
        let place = |(number, cube): (usize, &CubeEntry)| {
            let entry = cube.file.and_then(|file| header.files.get(file)?.as_ref());
            let entry = entry.ok_or_else(|| Error::usage("the hypercube has no file"))?;
            let (offset, stride, bytes) = self.cubes.column(number, self.tile_places[column])?.place();
            let file = format!("table.f{}_TSM{}", self.sequence, entry.sequence);
            Ok(TilePlace { file, offset, stride, bytes })
        };
        defined.map(place).collect()
    }

    fn link(&mut self, cubes: &[LinkedCube]) -> Result<Option<Vec<String>>> {
        let swapped = self.cubes.order != ByteOrder::Little && self.cubes.data_types.iter().any(|data| data.size() > 1);
        let is_bits = self.cubes.data_types.contains(&DataType::Bool);
        if self.columns.len() != 1 || !matches!(self.kind, Type::Column | Type::Shape) || swapped || is_bits {
            return Ok(None);
        }
        let header = &mut self.cubes.header;
        let defined = header.cubes.iter().filter(|cube| cube.is_defined()).count();
        let mut found = Vec::new();
        for linked in cubes {
            let number = header.cubes.iter().position(|cube| cube.is_defined() && cube.shape == linked.shape);
            let Some((number, file)) = number.and_then(|number| Some((number, header.cubes[number].file?))) else {
                return Ok(None);
            };
            let Some(sequence) = header.files[file].as_ref().map(|entry| entry.sequence) else { return Ok(None) };
            found.push((number, file, sequence));
        }
        if found.len() != defined {
            return Ok(None);
        }
        let mut names = Vec::new();
        for (linked, (number, file, sequence)) in cubes.iter().zip(found) {
            let cube = &mut header.cubes[number];
            cube.tile = tile_of_block(&cube.tile, linked);
            cube.offset = linked.offset;
            // casacore would write over what follows the block
            cube.extensible = false;
            let end = cube_end(cube, &self.cubes.data_types)?;
            if let Some(entry) = &mut header.files[file] {
                entry.len = end;
            }
            self.cubes.files[file] = None;
            self.paged.retain(|(known, _)| *known != file);
            names.push(format!("table.f{}_TSM{sequence}", self.sequence));
        }
        self.growing.clear();
        Ok(Some(names))
    }

    fn flush(&mut self) -> Result<Vec<u8>> {
        self.flush_tiles()?;
        self.complete_coordinates()?;
        let bytes = self.encode()?;
        self.header.write_at(0, &bytes)?;
        self.header.set_len(bytes.len() as u64)?;
        Ok(Vec::new())
    }
}

impl TiledMut {
    /// All `rows` have another shape or none yet; `shape` has the cells' number of axes.
    fn set_shape_of(&mut self, rows: Range<u64>, shape: &Shape) -> Result<()> {
        let wrong = |message: String| Err(Error::usage(message));
        if shape.contains(&0) {
            return wrong(format!("shape {shape}: cells without elements cannot be tiled"));
        }
        if let Some(fixed) = self.fixed.as_ref().filter(|fixed| *fixed != shape) {
            return wrong(format!("shape {shape}, but all cells of the manager have {fixed}"));
        }
        match self.kind {
            // all cells have the fixed shape since their rows were added
            Type::Column => Ok(()),
            Type::Shape => self.add_to_cube(rows, shape),
            Type::Cell => rows.into_iter().try_for_each(|row| {
                let tile = tile_shape::choose(shape, &self.wanted.tile(shape), false);
                let mut cube = CubeEntry { shape: shape.clone(), tile, ..CubeEntry::undefined(Some(0)) };
                self.allot(&mut cube)?;
                self.cubes.header.cubes[row as usize] = cube;
                Ok(())
            }),
            Type::Data => {
                let end = self.cubes.map.intervals().last().map_or(0, |last| last.end_row);
                if rows.start != end || self.cubes.header.ndim != self.cubes.cell_axes + 1 {
                    return wrong(format!("shape {shape}: rows of a TiledDataStMan get their hypercubes in order"));
                }
                self.add_to_cube(rows, shape)
            }
        }
    }
}
