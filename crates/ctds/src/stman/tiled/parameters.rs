//! The parameters of a tiled manager (tile shapes, cache size, hypercubes): the fields of
//! casacore's `SPEC` record.
//!
//! | field            | type        | meaning                                                          |
//! |------------------|-------------|------------------------------------------------------------------|
//! | DEFAULTTILESHAPE | Int array   | of cubes that are given no other; 0 and what is missing: any     |
//! | MAXIMUMCACHESIZE | Int         | MiB, 0 any; a hint                                               |
//! | HYPERCUBES       | record      | `*1`, `*2` …: the cubes that have a shape                        |
//! | ROWMAP           | record      | TiledDataStMan; not in casacore's                                |
//!
//! | field of a cube | type      | meaning                                                     |
//! |-----------------|-----------|-------------------------------------------------------------|
//! | CubeShape       | Int array | rows last                                                   |
//! | TileShape       | Int array |                                                             |
//! | CellShape       | Int array |                                                             |
//! | ID              | record    | ids and coordinates                                         |
//! | Extensible      | Bool      | TiledDataStMan; not in casacore's                           |
//!
//! | field of the row map | type        | meaning                                             |
//! |----------------------|-------------|-----------------------------------------------------|
//! | ROWS                 | Int64 array | first row of each interval                          |
//! | CUBES                | Int64 array | from 0, in the order of `HYPERCUBES`                |
//! | POSITIONS            | Int64 array | of the first row, on the cube's last axis           |
//! | END                  | Int64       | rows from here on are undefined                     |

use std::collections::{HashMap, VecDeque};

use super::header::CubeEntry;
use super::row_map::{Interval, RowMap};
use super::{Tiled, Type};
use crate::error::{Error, Result, ResultExt};
use crate::value::{Record, Shape, Value, Values};

/// For another manager: [`Wanted::new`] reads tile shapes, [`restore`] cubes of a TiledDataStMan.
pub(super) fn describe(manager: &Tiled) -> Record {
    let cubes = &manager.cubes;
    let mut parameters = Record::default();
    parameters.set("DEFAULTTILESHAPE", extents(manager.default_tile.iter().copied()));
    parameters.set("MAXIMUMCACHESIZE", Value::Scalar(Values::Int(vec![cubes.header.cache as i32])));
    let defined = cubes.header.cubes.iter().filter(|cube| cube.is_defined());
    // as many cubes as there are rows say little if those of a shape are cut alike
    let mut tiles: HashMap<&[u64], Vec<&Shape>> = HashMap::new();
    for cube in defined.clone() {
        tiles.entry(&cube.shape[..cubes.cell_axes]).or_default().push(&cube.tile);
    }
    tiles.values_mut().filter(|tiles| tiles.windows(2).all(|pair| pair[0] == pair[1])).for_each(|tiles| tiles.clear());
    let mut hypercubes = Record::default();
    let mut told = std::collections::HashSet::new();
    for cube in defined {
        let cell = &cube.shape[..cubes.cell_axes];
        let first = told.insert(cell);
        if manager.kind != Type::Cell || first || tiles.get(cell).is_some_and(|tiles| !tiles.is_empty()) {
            let mut entry = Record::default();
            entry.set("CubeShape", shape(&cube.shape));
            entry.set("TileShape", shape(&cube.tile));
            entry.set("CellShape", shape(cell));
            entry.set("ID", Value::Record(cube.values.as_deref().cloned().unwrap_or_default()));
            if manager.kind == Type::Data {
                entry.set("Extensible", Value::Scalar(Values::Bool(vec![cube.extensible])));
            }
            hypercubes.set(format!("*{}", hypercubes.fields.len() + 1), Value::Record(entry));
        }
    }
    parameters.set("HYPERCUBES", Value::Record(hypercubes));
    if manager.kind == Type::Data {
        parameters.set("ROWMAP", Value::Record(describe_rows(&cubes.map, &cubes.header.cubes)));
    }
    parameters
}

fn describe_rows(map: &RowMap, cubes: &[CubeEntry]) -> Record {
    let intervals = map.intervals();
    // undefined cubes are not told
    let number = |cube: usize| cubes[..cube].iter().filter(|cube| cube.is_defined()).count() as i64;
    let column = |field: &dyn Fn(&Interval) -> i64| {
        Value::Array(Shape::from([intervals.len() as u64]), Values::Int64(intervals.iter().map(field).collect()))
    };
    let mut rows = Record::default();
    rows.set("ROWS", column(&|interval| interval.first_row as i64));
    rows.set("CUBES", column(&|interval| number(interval.cube.unwrap_or_default())));
    rows.set("POSITIONS", column(&|interval| interval.position as i64));
    let end = intervals.last().map_or(0, |last| last.end_row as i64);
    rows.set("END", Value::Scalar(Values::Int64(vec![end])));
    rows
}

fn shape(extents_of: &[u64]) -> Value {
    extents(extents_of.iter().map(|&extent| extent as i64))
}

/// An array of Int as in casacore, of Int64 if an extent exceeds 32 bits.
fn extents(values: impl ExactSizeIterator<Item = i64> + Clone) -> Value {
    let narrow: Result<Vec<i32>, _> = values.clone().map(i32::try_from).collect();
    let count = Shape::from([values.len() as u64]);
    Value::Array(count, narrow.map_or_else(|_| Values::Int64(values.collect()), Values::Int))
}

#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) default_tile: Vec<i64>,
    pub(super) cache: u32,
    /// Tile shapes by cell shape, in order of the hypercubes; the last is for all further ones.
    tiles: HashMap<Shape, VecDeque<Shape>>,
}

impl Wanted {
    pub(super) fn new(parameters: &Record) -> Result<Self> {
        let default_tile = parameters.integers("DEFAULTTILESHAPE").unwrap_or_default();
        let cache = parameters.integers("MAXIMUMCACHESIZE").and_then(|values| values.first().copied());
        let cache = cache.and_then(|cache| u32::try_from(cache).ok()).unwrap_or_default();
        let mut tiles: HashMap<Shape, VecDeque<Shape>> = HashMap::new();
        for (name, cube) in hypercubes(parameters) {
            let (cell, tile) = (extents_of(cube, "CellShape"), extents_of(cube, "TileShape"));
            let (cell, tile) = cell.and_then(|cell| Ok((cell, tile?))).with_context(|| format!("HYPERCUBES {name}"))?;
            tiles.entry(cell).or_default().push_back(tile);
        }
        Ok(Wanted { default_tile, cache, tiles })
    }

    /// Extents that are 0 or missing are left to the manager.
    pub(super) fn tile(&mut self, cell: &Shape) -> Shape {
        match self.tiles.get_mut(cell) {
            Some(tiles) if tiles.len() > 1 => tiles.pop_front().unwrap_or_default(),
            Some(tiles) => tiles.front().cloned().unwrap_or_default(),
            None => self.default_tile.iter().map(|&extent| u64::try_from(extent).unwrap_or_default()).collect(),
        }
    }
}

/// A hypercube that a new TiledDataStMan has before rows are added.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) shape: Shape,
    pub(super) tile: Shape,
    pub(super) extensible: bool,
    pub(super) values: Record,
}

/// Without a parameter `ROWMAP`, the rows fill one hypercube after the other.
pub(super) fn restore(parameters: &Record, cell_axes: usize) -> Result<(Vec<Given>, RowMap)> {
    let mut cubes = Vec::new();
    for (name, cube) in hypercubes(parameters) {
        let given = || -> Result<Given> {
            Ok(Given {
                shape: extents_of(cube, "CubeShape")?,
                tile: extents_of(cube, "TileShape")?,
                extensible: matches!(cube.get("Extensible"), Some(Value::Scalar(Values::Bool(v))) if v == &[true]),
                values: cube.record("ID").cloned().unwrap_or_default(),
            })
        };
        cubes.push(given().with_context(|| format!("HYPERCUBES {name}"))?);
    }
    let mut intervals = Vec::new();
    match parameters.record("ROWMAP") {
        Some(map) => {
            let field = |name: &str| {
                map.integers(name).ok_or_else(|| Error::usage(format!("ROWMAP without {name}, an array of integers")))
            };
            let (rows, numbers, positions, end) = (field("ROWS")?, field("CUBES")?, field("POSITIONS")?, field("END")?);
            if numbers.len() != rows.len() || positions.len() != rows.len() || end.len() != 1 {
                return Err(Error::usage("ROWMAP needs as many CUBES and POSITIONS as ROWS, and one END"));
            }
            let ends = rows.iter().skip(1).chain(&end);
            for (((&row, &end), &cube), &position) in rows.iter().zip(ends).zip(&numbers).zip(&positions) {
                let fits = row >= 0 && end >= row && position >= 0 && (0..cubes.len() as i64).contains(&cube);
                if !fits || u32::try_from(position).is_err() {
                    let message = format!("rows {row} to {end} at position {position} of cube {cube} in ROWMAP");
                    return Err(Error::usage(message));
                }
                let (first_row, end_row, position) = (row as u64, end as u64, position as u64);
                intervals.push(Interval { first_row, end_row, cube: Some(cube as usize), position });
            }
            if intervals.first().is_some_and(|first| first.first_row > 0) {
                return Err(Error::usage("ROWMAP does not begin with row 0"));
            }
        }
        None => {
            let mut first_row = 0;
            for (number, cube) in cubes.iter().enumerate() {
                let rows = Shape::from(cube.shape.get(cell_axes..).unwrap_or_default()).elements()?;
                let end_row = first_row + rows;
                intervals.push(Interval { first_row, end_row, cube: Some(number), position: 0 });
                first_row = end_row;
            }
        }
    }
    Ok((cubes, RowMap::Intervals(intervals)))
}

fn hypercubes(parameters: &Record) -> impl Iterator<Item = (&bstr::BString, &Record)> {
    let fields = parameters.record("HYPERCUBES").map_or(&[][..], |cubes| &cubes.fields);
    fields.iter().filter_map(|field| match &field.value {
        Value::Record(cube) => Some((&field.name, cube)),
        _ => None,
    })
}

fn extents_of(cube: &Record, name: &str) -> Result<Shape> {
    let extents = cube.integers(name).and_then(|extents| extents.into_iter().map(|e| u64::try_from(e).ok()).collect());
    extents.ok_or_else(|| Error::usage(format!("without {name}, an array of extents")))
}
