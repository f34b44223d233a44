//! Writes blocks of cells to the datasets of a table of a live file: checks them, converts them to
//! bytes, appends or overwrites.

use std::borrow::Cow;

use bstr::ByteSlice;

use super::block::Block;
use super::layout::{ColumnLayout, Growing, TableLayout};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{LiveDataset, LiveFile};
use crate::native::COMMITTED_ROWS;

/// A larger block is written at once: to collect it would take longer than the additional write.
const LARGE_BLOCK: usize = 128 << 10;

#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    row: Stream,
    pub(super) columns: Vec<Column>,
    pub(super) committed_rows: LiveDataset,
    /// Committed or not.
    pub(super) rows: u64,
    pub(super) committed: u64,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    string_bytes: usize,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    Dense(Box<Stream>),
    Cubes {
        /// The cells of each hypercube, and the scale that numbers them from 0.
        cubes: Vec<(Stream, Stream)>,
        /// `row_cube` and `row_index`: hypercube and position of each row's cell, -1 if undefined.
        map: Box<(Stream, Stream)>,
    },
}

#[derive(Debug)]
pub(super) struct Stream {
    dataset: LiveDataset,
    waiting: Vec<u8>,
}

impl Stream {
    fn new(file: &LiveFile, path: &str) -> Result<Self> {
        Ok(Stream { dataset: file.dataset(path)?, waiting: Vec::new() })
    }

    /// Includes rows in memory.
    fn rows(&self) -> u64 {
        self.dataset.rows() + (self.waiting.len() / self.dataset.row_bytes()) as u64
    }

    /// Collects small blocks in memory, up to `most_waiting` bytes, and writes large ones.
    fn push(&mut self, bytes: &[u8], most_waiting: usize) -> Result<()> {
        let is_large = bytes.len() > LARGE_BLOCK.min(most_waiting / 2);
        if is_large || self.waiting.len() + bytes.len() > most_waiting {
            self.drain()?;
        }
        if is_large {
            return self.dataset.append(bytes);
        }
        self.waiting.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn drain(&mut self) -> Result<()> {
        if !self.waiting.is_empty() {
            self.dataset.append(&self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Gives the file the number of rows of the dataset, whose elements must be in the file.
    pub(super) fn count(&self) -> Result<()> {
        self.dataset.flush()
    }

    /// Overwrites rows unless they already have these bytes; returns whether they differed.
    fn update(&mut self, first: u64, rows: u64, bytes: &[u8]) -> Result<bool> {
        let mut found = Vec::with_capacity(bytes.len());
        self.dataset.read(first, rows, &mut found)?;
        let differs = found != bytes;
        if differs {
            self.dataset.write(first, bytes)?;
        }
        Ok(differs)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Updated {
    pub(super) written: bool,
    /// Cells not overwritten, as their shape, or whether they are defined, would change.
    pub(super) refused: u64,
}

/// Stored bytes; for columns with several shapes the index of each cell's, `None` if undefined.
pub(super) type Checked<'a> = (Cow<'a, [u8]>, Option<&'a [Option<usize>]>);

impl Column {
    fn open(file: &LiveFile, layout: &ColumnLayout) -> Result<Self> {
        let stream = |path: &str| Stream::new(file, path);
        let parts = match layout.open(stream)? {
            Growing::Dense(data) => Parts::Dense(Box::new(data)),
            Growing::Cubes { cubes, row_cube, row_index } => {
                let cubes = cubes.into_iter().zip(layout.open_positions(stream)?).collect();
                Parts::Cubes { cubes, map: Box::new((row_cube, row_index)) }
            }
        };
        let desc = &layout.info.desc;
        Ok(Column { name: desc.name.to_str_lossy().into_owned(), string_bytes: desc.max_length as usize, parts })
    }

    fn streams(&mut self) -> Vec<&mut Stream> {
        match &mut self.parts {
            Parts::Dense(stream) => vec![stream],
            Parts::Cubes { cubes, map } => {
                let (row_cube, row_index) = &mut **map;
                let cubes = cubes.iter_mut().flat_map(|(cube, position)| [cube, position]);
                cubes.chain([row_cube, row_index]).collect()
            }
        }
    }

    /// Checks that a block has the column's type and shapes for `rows` rows.
    pub(super) fn check<'a>(&self, block: Block<'a>, rows: u64) -> Result<Checked<'a>> {
        let (data, expected) = match (&self.parts, block.shapes) {
            (Parts::Dense(stream), None) => (Some(stream.as_ref()), rows as usize * stream.dataset.row_bytes()),
            (Parts::Dense(_), Some(_)) => return Err(Error::usage("all cells have the same shape, none is asked for")),
            (Parts::Cubes { .. }, None) => return Err(Error::usage("which shape each cell has is not said")),
            (Parts::Cubes { cubes, .. }, Some(shapes)) => {
                if shapes.len() as u64 != rows {
                    return Err(Error::usage(format!(
                        "{} shapes were given for {rows} rows, expected one for each row",
                        shapes.len()
                    )));
                }
                let known = cubes.len();
                let bytes = shapes.iter().flatten().try_fold(0, |sum, &shape| match cubes.get(shape) {
                    Some((cube, _)) => Ok(sum + cube.dataset.row_bytes()),
                    None => {
                        let message = format!("a cell has shape number {shape}, but only {known} are declared, from 0");
                        Err(Error::usage(message))
                    }
                })?;
                (cubes.first().map(|(cube, _)| cube), bytes)
            }
        };
        if let Some(stream) = data {
            if let Some(stored) = stream.dataset.data_type().filter(|&stored| stored != block.data_type()) {
                return Err(Error::usage(format!("{} values where {stored} are declared", block.data_type())));
            }
            let own = stream.dataset.extents(rows);
            if let Some(extents) = block.extents.as_ref().filter(|extents| block.shapes.is_none() && **extents != own) {
                return Err(Error::usage(format!("a view of shape {extents:?} where {own:?} is expected")));
            }
        }
        let Block { elements, shapes, .. } = block;
        let bytes = elements.stored(self.string_bytes)?;
        if bytes.len() != expected {
            let message = format!("{} bytes for {rows} rows, which take {expected}", bytes.len());
            return Err(Error::usage(message));
        }
        Ok((bytes, shapes))
    }

    fn append(&mut self, (bytes, shapes): &Checked<'_>, most_waiting: usize, commits: bool) -> Result<()> {
        match (&mut self.parts, shapes) {
            // rows that are committed at once need not be copied; cells of several shapes come one
            // by one
            (Parts::Dense(stream), _) => stream.push(bytes, if commits { 0 } else { most_waiting }),
            (Parts::Cubes { cubes, map }, shapes) => {
                let (row_cube, row_index) = &mut **map;
                let mut rest = &bytes[..];
                for shape in shapes.unwrap_or_default() {
                    let mut place = (-1i32, -1i64);
                    if let Some(number) = *shape {
                        let (cube, position) = &mut cubes[number];
                        place = (number as i32, cube.rows() as i64);
                        let (cell, others) = rest.split_at(cube.dataset.row_bytes());
                        rest = others;
                        cube.push(cell, most_waiting)?;
                        position.push(&place.1.to_le_bytes(), most_waiting)?;
                    }
                    row_cube.push(&place.0.to_le_bytes(), most_waiting)?;
                    row_index.push(&place.1.to_le_bytes(), most_waiting)?;
                }
                Ok(())
            }
        }
    }

    /// Overwrites the cells that differ. Cells whose shape would change are counted instead.
    pub(super) fn update(&mut self, first: u64, rows: u64, cells: &Checked<'_>) -> Result<Updated> {
        self.streams().into_iter().try_for_each(Stream::drain)?;
        let (bytes, shapes) = cells;
        let mut updated = Updated::default();
        match &mut self.parts {
            Parts::Dense(stream) => updated.written = stream.update(first, rows, bytes)?,
            Parts::Cubes { cubes, map } => {
                let (mut cube_bytes, mut index_bytes) = (Vec::new(), Vec::new());
                map.0.dataset.read(first, rows, &mut cube_bytes)?;
                map.1.dataset.read(first, rows, &mut index_bytes)?;
                let places = cube_bytes.as_chunks::<4>().0.iter().zip(index_bytes.as_chunks::<8>().0);
                let mut rest = &bytes[..];
                for (wanted, (number, position)) in shapes.unwrap_or_default().iter().zip(places) {
                    let is = usize::try_from(i32::from_le_bytes(*number)).ok();
                    let cell = wanted.map(|wanted| rest.split_at(cubes[wanted].0.dataset.row_bytes()));
                    rest = cell.map_or(rest, |(_, others)| others);
                    match (is, cell) {
                        _ if is != *wanted => updated.refused += 1,
                        (Some(is), Some((cell, _))) => {
                            let position = i64::from_le_bytes(*position) as u64;
                            updated.written |= cubes[is].0.update(position, 1, cell)?;
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(updated)
    }

    /// Overwrites cells; `Unsupported`, and nothing is written, if one would get another shape.
    pub(super) fn rewrite(&mut self, first: u64, (bytes, shapes): &Checked<'_>) -> Result<()> {
        self.streams().into_iter().try_for_each(Stream::drain)?;
        match (&mut self.parts, shapes) {
            (Parts::Dense(stream), _) => stream.dataset.write(first, bytes),
            (Parts::Cubes { cubes, map }, shapes) => {
                let (row_cube, row_index) = &**map;
                let shapes = shapes.unwrap_or_default();
                let (mut cube_bytes, mut index_bytes) = (Vec::new(), Vec::new());
                row_cube.dataset.read(first, shapes.len() as u64, &mut cube_bytes)?;
                row_index.dataset.read(first, shapes.len() as u64, &mut index_bytes)?;
                let (numbers, _) = cube_bytes.as_chunks::<4>();
                let (positions, _) = index_bytes.as_chunks::<8>();
                let is = numbers.iter().map(|number| usize::try_from(i32::from_le_bytes(*number)).ok());
                if let Some(row) = is.zip(shapes).position(|(is, wanted)| is != *wanted) {
                    let row = first + row as u64;
                    return Err(Error::unsupported(format!("the cell of row {row} has another shape, which stays")));
                }
                let mut rest = &bytes[..];
                for (shape, position) in shapes.iter().zip(positions) {
                    if let Some(number) = *shape {
                        let (cube, _) = &cubes[number];
                        let (cell, others) = rest.split_at(cube.dataset.row_bytes());
                        rest = others;
                        cube.dataset.write(i64::from_le_bytes(*position) as u64, cell)?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl Table {
    pub(super) fn open(file: &LiveFile, layout: &TableLayout) -> Result<Self> {
        let committed_rows = file.dataset(&format!("{}/{COMMITTED_ROWS}", layout.path))?;
        let mut bytes = Vec::new();
        committed_rows.read(0, committed_rows.rows(), &mut bytes)?;
        let committed = bytes.as_chunks().0.first().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let row = Stream::new(file, &format!("{}/{}", layout.path, layout.row))?;
        let columns = layout.columns.iter().map(|column| Column::open(file, column)).collect::<Result<_>>()?;
        Ok(Table { name: layout.name.clone(), row, columns, committed_rows, rows: committed, committed })
    }

    /// Estimate: columns plus 1, although columns with several shapes have more.
    pub(super) fn datasets(&self) -> usize {
        self.columns.len() + 1
    }

    pub(super) fn streams(&mut self) -> impl Iterator<Item = &mut Stream> {
        std::iter::once(&mut self.row).chain(self.columns.iter_mut().flat_map(Column::streams))
    }

    pub(super) fn column(&mut self, name: &str) -> Result<&mut Column> {
        let found = self.columns.iter_mut().find(|column| column.name == name);
        found.ok_or_else(|| Error::usage(format!("column {name} does not exist")))
    }

    /// At most `most_waiting` bytes of each dataset wait. `commits`: a commit follows at once.
    pub(super) fn append(
        &mut self,
        rows: u64,
        cells: &[Checked<'_>],
        most_waiting: usize,
        commits: bool,
    ) -> Result<()> {
        for (column, cells) in self.columns.iter_mut().zip(cells) {
            column.append(cells, most_waiting, commits).with_context(|| Context::column(&column.name))?;
        }
        let numbers: Vec<u8> = (self.rows..self.rows + rows).flat_map(u64::to_le_bytes).collect();
        self.row.push(&numbers, if commits { 0 } else { most_waiting })?;
        self.rows += rows;
        Ok(())
    }

    /// Fails if a writer dropped without closing left uncommitted rows; ignores hypercubes.
    pub(super) fn check_extents(&self) -> Result<()> {
        let expect = |stream: &Stream, rows: u64| match stream.rows() {
            found if found == rows => Ok(()),
            found => Err(Error::format(format!(
                "the dataset has {found} rows, but {rows} are committed; `h5bridge repair` cuts it to them"
            ))),
        };
        expect(&self.row, self.committed)?;
        for column in &self.columns {
            match &column.parts {
                Parts::Dense(stream) => expect(stream, self.committed),
                Parts::Cubes { map, .. } => {
                    expect(&map.0, self.committed).and_then(|()| expect(&map.1, self.committed))
                }
            }
            .with_context(|| Context::column(&column.name))?;
        }
        Ok(())
    }
}
