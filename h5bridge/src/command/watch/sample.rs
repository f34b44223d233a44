//! What `watch` looks at: the number of rows, and the newest of them.

use std::path::Path;
use std::time::{Duration, SystemTime};

use ctds_hdf5::Result;
use ctds_hdf5::live::{CellShapes, Reader, TableReader};
use ctds_hdf5::value::{DataType, Shape, Values};

/// Bytes of the newest cells that are read of a column at a time, and rows at most.
const SAMPLE_BYTES: u64 = 4 << 20;
const SAMPLE_ROWS: u64 = 4096;

/// Cells of several shapes are read one by one.
const SAMPLE_CELLS: u64 = 256;

/// Columns whose amplitudes are shown: the first that is there.
const VISIBILITIES: [&str; 4] = ["DATA", "CORRECTED_DATA", "FLOAT_DATA", "MODEL_DATA"];

/// The lines of a waterfall, each of consecutive rows.
const WATERFALL: usize = 6;

/// The state of a live file at a moment.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) taken: SystemTime,
    /// Its writer has not closed it.
    pub(crate) is_open: bool,
    /// Of each table, those that are committed.
    pub(crate) rows: Vec<(String, u64)>,
    /// Bytes of the cells of all rows, about.
    pub(crate) bytes: f64,
    /// When the file was last written to.
    pub(crate) written: SystemTime,
    /// The newest TIME of the main table, in seconds of MJD.
    pub(crate) newest: Option<f64>,
    /// The fraction of the newest cells that are flagged.
    pub(crate) flagged: Option<f64>,
    pub(crate) amplitudes: Option<Amplitudes>,
}

/// Mean amplitudes of the newest rows.
#[derive(Debug)]
pub(crate) struct Amplitudes {
    pub(crate) column: &'static str,
    pub(crate) kind: Kind,
    /// One line by antenna, or several with the newest last; `None` where there is nothing that is not flagged.
    pub(crate) means: Vec<Vec<Option<f64>>>,
}

/// What amplitudes are by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The number of the antenna in ANTENNA1.
    Antenna,
    /// Time and channel.
    Waterfall,
}

/// A sample and its rates of change since the previous one.
#[derive(Debug)]
pub(crate) struct Tick {
    pub(crate) sample: Sample,
    /// Rows of all tables, and bytes of their cells, per second; `None` for the first sample.
    pub(crate) rows_per_second: Option<f64>,
    pub(crate) bytes_per_second: Option<f64>,
    /// Time since the newest commit.
    pub(crate) age: Duration,
}

impl Tick {
    pub(crate) fn rows(&self) -> u64 {
        self.sample.rows.iter().map(|(_, rows)| rows).sum()
    }
}

impl Sample {
    pub(crate) fn take(reader: &Reader, path: &Path) -> Result<Self> {
        let is_open = reader.is_being_written()?;
        let (mut rows, mut bytes) = (Vec::new(), 0.);
        for table in reader.tables() {
            let count = table.refresh()?;
            rows.push((table.name().to_owned(), count));
            bytes += count as f64 * row_bytes(table)?;
        }
        let written = path.metadata().and_then(|metadata| metadata.modified())?;
        let mut sample = Sample {
            taken: SystemTime::now(),
            is_open,
            rows,
            bytes,
            written,
            newest: None,
            flagged: None,
            amplitudes: None,
        };
        if let Some(main) = reader.tables().first().filter(|main| main.committed_rows() > 0) {
            sample.look(main)?;
        }
        Ok(sample)
    }

    fn look(&mut self, main: &TableReader) -> Result<()> {
        let has = |name: &str, fits: &dyn Fn(DataType) -> bool| {
            main.columns().any(|info| info.desc.name == name && fits(info.data_type()))
        };
        let rows = main.committed_rows();
        if has("TIME", &|data_type| data_type == DataType::Double) {
            let times = Newest::read(main, "TIME", SAMPLE_ROWS)?.numbers();
            self.newest = times.into_iter().flatten().filter(|time| time.is_finite()).max_by(f64::total_cmp);
        }
        let is_number = |data_type| !matches!(data_type, DataType::String | DataType::Record | DataType::Bool);
        let visibilities = VISIBILITIES.into_iter().find(|name| has(name, &is_number));
        let flags = ["FLAG", "FLAG_ROW"].into_iter().find(|name| has(name, &|data_type| data_type == DataType::Bool));
        // the same rows of each
        let wanted = [visibilities, flags].into_iter().flatten();
        let count = wanted.map(|name| sample_rows(main, name)).collect::<Result<Vec<_>>>()?;
        let count = count.into_iter().min().unwrap_or(0).min(rows);
        let flags = flags.map(|name| Newest::read(main, name, count)).transpose()?;
        if let Some(flags) = &flags {
            let numbers = flags.numbers().concat();
            self.flagged = (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64);
        }
        let Some(column) = visibilities else { return Ok(()) };
        let cells = Newest::read(main, column, count)?;
        let flags = flags.filter(|flags| flags.shapes == cells.shapes);
        let good = good(cells.numbers(), flags.map(|flags| flags.numbers()));
        self.amplitudes = Some(match has("ANTENNA1", &|data_type| data_type == DataType::Int) {
            true => {
                let antennas = main.rows::<i32>("ANTENNA1", rows - count..rows)?;
                Amplitudes { column, kind: Kind::Antenna, means: vec![by_antenna(&antennas, &good)] }
            }
            false => Amplitudes { column, kind: Kind::Waterfall, means: waterfall(&cells.shapes, &good) },
        });
        Ok(())
    }
}

/// Bytes that the cells of a row take: those of the newest row where they have several shapes.
fn row_bytes(table: &TableReader) -> Result<f64> {
    let mut bytes = 0;
    for info in table.columns() {
        let element = match info.data_type() {
            DataType::String => u64::from(info.desc.max_length),
            number => number.size() as u64,
        };
        let name = info.desc.name.to_string();
        let elements = match table.shapes(&name)? {
            CellShapes::One(shape) => shape.elements()?,
            CellShapes::Several(_) if table.committed_rows() == 0 => 0,
            CellShapes::Several(_) => {
                let cell = table.cell(&name, table.committed_rows() - 1)?;
                cell.map_or(Ok(0), |(shape, _)| shape.elements())?
            }
        };
        bytes += elements * element;
    }
    Ok(bytes as f64)
}

/// How many of the newest rows of a column are looked at.
fn sample_rows(table: &TableReader, column: &str) -> Result<u64> {
    let info = table.columns().find(|info| info.desc.name == column);
    let element = info.map_or(1, |info| info.data_type().size().max(1)) as u64;
    let rows = |shape: &Shape| Ok::<_, ctds_hdf5::Error>((SAMPLE_BYTES / (shape.elements()? * element).max(1)).max(1));
    Ok(match table.shapes(column)? {
        CellShapes::One(shape) => rows(&shape)?.min(SAMPLE_ROWS),
        CellShapes::Several(shapes) => {
            shapes.iter().map(rows).collect::<Result<Vec<_>>>()?.into_iter().fold(SAMPLE_CELLS, u64::min)
        }
    })
}

/// The newest cells of a column, each with its shape; an undefined one has no elements.
struct Newest {
    shapes: Vec<Shape>,
    values: Values,
}

impl Newest {
    fn read(table: &TableReader, column: &str, count: u64) -> Result<Self> {
        let end = table.committed_rows();
        let rows = end - count.min(end)..end;
        let info = table.columns().find(|info| info.desc.name == column);
        let mut newest =
            Newest { shapes: Vec::new(), values: Values::new(info.map_or(DataType::Double, |info| info.data_type())) };
        match table.shapes(column)? {
            CellShapes::One(shape) => {
                newest.shapes = vec![shape; (rows.end - rows.start) as usize];
                table.read(column, rows, &mut newest.values)?;
            }
            CellShapes::Several(_) => {
                for row in rows {
                    let Some((shape, values)) = table.cell(column, row)? else {
                        newest.shapes.push(Shape::from([0]));
                        continue;
                    };
                    newest.shapes.push(shape);
                    newest.values.extend_from(&values, 0..values.len())?;
                }
            }
        }
        Ok(newest)
    }

    /// The elements of each cell: amplitudes of complex numbers, 1 for true.
    fn numbers(&self) -> Vec<Vec<f64>> {
        let numbers: Vec<f64> = match &self.values {
            Values::Bool(v) => v.iter().map(|&v| f64::from(u8::from(v))).collect(),
            Values::UChar(v) => v.iter().map(|&v| v.into()).collect(),
            Values::Short(v) => v.iter().map(|&v| v.into()).collect(),
            Values::UShort(v) => v.iter().map(|&v| v.into()).collect(),
            Values::Int(v) => v.iter().map(|&v| v.into()).collect(),
            Values::UInt(v) => v.iter().map(|&v| v.into()).collect(),
            Values::Int64(v) => v.iter().map(|&v| v as f64).collect(),
            Values::Float(v) => v.iter().map(|&v| v.into()).collect(),
            Values::Double(v) => v.clone(),
            Values::Complex(v) => v.iter().map(|v| v.norm().into()).collect(),
            Values::DComplex(v) => v.iter().map(|v| v.norm()).collect(),
            Values::String(_) | Values::Record(_) => Vec::new(),
        };
        let mut rest = numbers.into_iter();
        let elements = |shape: &Shape| shape.elements().unwrap_or(0) as usize;
        self.shapes.iter().map(|shape| rest.by_ref().take(elements(shape)).collect()).collect()
    }
}

/// The numbers that are finite and not flagged.
fn good(cells: Vec<Vec<f64>>, flags: Option<Vec<Vec<f64>>>) -> Vec<Vec<Option<f64>>> {
    let of_cell = |(row, cell): (usize, Vec<f64>)| {
        let flags = flags.as_ref().map(|flags| &flags[row]);
        let is_good = |(index, number): (usize, f64)| {
            let flagged = flags.is_some_and(|flags| flags[index] != 0.);
            (number.is_finite() && !flagged).then_some(number.abs())
        };
        cell.into_iter().enumerate().map(is_good).collect()
    };
    cells.into_iter().enumerate().map(of_cell).collect()
}

/// A mean in the making.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, number: f64) {
        self.sum += number;
        self.count += 1;
    }

    fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

/// Antennas beyond are not shown.
const MAX_ANTENNAS: usize = 1024;

fn by_antenna(antennas: &[i32], cells: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let mut means = Vec::new();
    for (antenna, cell) in antennas.iter().zip(cells) {
        let Some(antenna) = usize::try_from(*antenna).ok().filter(|&antenna| antenna < MAX_ANTENNAS) else { continue };
        if means.len() <= antenna {
            means.resize(antenna + 1, Mean::default());
        }
        cell.iter().flatten().for_each(|&number| means[antenna].add(number));
    }
    means.into_iter().map(Mean::get).collect()
}

/// Consecutive rows make a line, of which the channels (the last axis of a cell) are the columns.
fn waterfall(shapes: &[Shape], cells: &[Vec<Option<f64>>]) -> Vec<Vec<Option<f64>>> {
    let per_line = cells.len().div_ceil(WATERFALL).max(1);
    let line = |(shapes, cells): (&[Shape], &[Vec<Option<f64>>])| {
        let channels = |shape: &Shape| shape.last().map_or(1, |&channels| channels as usize);
        let mut means = vec![Mean::default(); shapes.iter().map(channels).max().unwrap_or(0)];
        for (shape, cell) in shapes.iter().zip(cells) {
            let per_channel = (cell.len() / channels(shape).max(1)).max(1);
            for (channel, numbers) in cell.chunks(per_channel).enumerate() {
                numbers.iter().flatten().for_each(|&number| means[channel].add(number));
            }
        }
        means.into_iter().map(Mean::get).collect()
    };
    shapes.chunks(per_line).zip(cells.chunks(per_line)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_what_is_finite_and_not_flagged() {
        let cells = vec![vec![1., 3.], vec![5., f64::NAN], vec![-7., 9.]];
        let flags = vec![vec![0., 0.], vec![0., 0.], vec![0., 1.]];
        let good = good(cells, Some(flags));
        assert_eq!(by_antenna(&[0, 2, 2], &good), [Some(2.), None, Some(6.)]);
        assert_eq!(by_antenna(&[-1, i32::MAX, 0], &good), [Some(7.)]);
    }

    #[test]
    fn waterfalls_are_by_the_last_axis() {
        let cell = vec![Some(1.), Some(3.), Some(10.), None, Some(0.), Some(0.)];
        let shapes = vec![Shape::from([2, 3]); 7];
        let lines = waterfall(&shapes, &vec![cell; 7]);
        assert_eq!(lines.len(), 4, "two rows each");
        assert_eq!(lines[3], [Some(2.), Some(10.), Some(0.)]);
        assert!(waterfall(&[Shape::from([0])], &[vec![]]).iter().all(Vec::is_empty));
    }
}
