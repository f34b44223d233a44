//! SiscoStMan stores visibilities as differences from predictions, made from earlier channels and
//! earlier rows of the baseline. formats/engines.md 3.5.
//!
//! [`file`] has the bytes, [`value`] the arithmetic of predictions, [`decode`] puts them together.
//! A cell is known only when all cells before it are, so a reader remembers where it is: rows in
//! ascending order cost the least.

mod decode;
mod file;
#[cfg(test)]
mod tests;
mod value;

use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use bstr::BStr;

use self::decode::{Decoder, cell_values};
use self::file::{SiscoFile, read_shapes};
use self::value::Level;
use crate::error::{Context, Error, ErrorKind, Result, ResultExt};
use crate::stman::antennas::key_column;
use crate::stman::{Access, ColumnCells, Kind, Manager, OpenArgs, OtherColumn, Storage, read_part, undefined};
use crate::sync::LockUnpoisoned;
use crate::value::{DataType, Region, Shape, Values};

pub(crate) static KIND: Kind = Kind::new(&["SiscoStMan"], open);

/// Equal in all rows of a baseline, from whose earlier rows values are predicted.
const KEYS: [&str; 4] = ["FIELD_ID", "DATA_DESC_ID", "ANTENNA1", "ANTENNA2"];

#[derive(Debug)]
struct Sisco {
    place: Context,
    file: SiscoFile,
    /// `None` for values without prediction.
    level: Option<Level>,
    shapes: Shapes,
    rows: u64,
    /// Columns [`KEYS`]; empty for values without prediction.
    keys: Vec<OtherColumn>,
    /// Declared as Direct: every cell must have a value.
    direct: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    decoder: Decoder,
    /// First row that cannot be decoded, nor can later ones, and why.
    damaged: Option<(u64, Error)>,
}

#[derive(Debug)]
enum Shapes {
    /// Shape `[correlations, channels]` of the first `written` rows; later rows have no value.
    Fixed { shape: [u64; 2], written: u64 },
    /// Rows with `None` and rows after the last have no value; the file has the first `held` rows.
    Each { shapes: Vec<Option<[u64; 2]>>, held: u64 },
}

fn open(args: &OpenArgs<'_>) -> Result<Box<dyn Manager>> {
    let place = Context::managed(args.file_name(""), "SiscoStMan");
    let file = args.file("")?;
    let open = || {
        let [spec] = args.columns else {
            return Err(Error::format(format!("the manager has {} columns, expected one", args.columns.len())));
        };
        if spec.data_type != DataType::Complex || spec.storage == Storage::Scalar {
            return Err(Error::format(format!("column {} does not have complex arrays", spec.name)));
        }
        let file = SiscoFile::open(file)?;
        let level = match (file.level, Level::new(file.level)) {
            (-1, _) => None,
            (_, Some(level)) => Some(level),
            (other, None) => return Err(Error::unsupported(format!("prediction level {other} is not known"))),
        };
        let keys = match level {
            Some(_) => KEYS.iter().map(|name| key_column(args.table, name)).collect::<Result<_>>()?,
            None => Vec::new(),
        };
        let shapes = Shapes::find(args, spec.shape.as_ref(), &file)?;
        Ok(Sisco {
            place: place.clone(),
            file,
            level,
            shapes,
            rows: args.rows,
            keys,
            direct: spec.storage == Storage::Direct,
            state: Mutex::default(),
        })
    };
    Ok(Box::new(open().context(&place)?))
}

impl Shapes {
    /// Some versions of casacore write shapes even for a column of fixed shape, and then nothing
    /// for skipped rows: the number of stored values tells which version wrote the file.
    fn find(args: &OpenArgs<'_>, fixed: Option<&Shape>, file: &SiscoFile) -> Result<Self> {
        let name = args.file_name("-shapes");
        let each = match args.files.open(&name) {
            Ok(shapes) => Some(read_shapes(&shapes).context(&name)?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let (mut each_values, mut held) = (0u64, 0);
        for shape in each.iter().flatten() {
            let values = shape.map_or(Ok(0), |shape| cell_values(file.mode, shape))?;
            each_values = each_values.saturating_add(values);
            held += u64::from(each_values <= file.values);
        }
        match (fixed, each) {
            (None, Some(shapes)) => Ok(Shapes::Each { shapes, held }),
            (None, None) if file.values == 0 => Ok(Shapes::Each { shapes: Vec::new(), held }),
            (None, None) => Err(Error::format(format!("the file {name} is missing"))),
            (Some(_), Some(shapes)) if each_values == file.values => Ok(Shapes::Each { shapes, held }),
            (Some(shape), _) => {
                let &[correlations, channels] = &**shape else {
                    return Err(Error::format(format!("cells of shape {shape}, 2 axes are expected")));
                };
                let shape = [correlations, channels];
                // cells without elements need none
                let written = file.values.checked_div(cell_values(file.mode, shape)?).unwrap_or(args.rows);
                Ok(Shapes::Fixed { shape, written })
            }
        }
    }

    /// Leading rows with a stored shape or values.
    fn rows(&self) -> u64 {
        match self {
            Shapes::Fixed { written, .. } => *written,
            Shapes::Each { shapes, .. } => shapes.len() as u64,
        }
    }

    /// Leading rows whose values, if they have any, are all in the file.
    fn held(&self) -> u64 {
        match self {
            Shapes::Fixed { written, .. } => *written,
            Shapes::Each { held, .. } => *held,
        }
    }

    fn get(&self, row: u64) -> Option<[u64; 2]> {
        match self {
            Shapes::Fixed { shape, written } => (row < *written).then_some(*shape),
            Shapes::Each { shapes, .. } => shapes.get(row as usize).copied().flatten(),
        }
    }
}

impl Sisco {
    fn shape(&self, row: u64) -> Result<Option<Shape>> {
        match self.shapes.get(row) {
            Some(shape) if row < self.shapes.held() => Ok(Some(Shape::from(shape))),
            Some(shape) => Err(self.too_short(row, shape)),
            None if self.direct => Err(Error::format(format!("row {row} was never written"))),
            None => Ok(None),
        }
    }

    fn too_short(&self, row: u64, shape: [u64; 2]) -> Error {
        match cell_values(self.file.mode, shape) {
            Ok(values) => Error::format(format!("row {row}: the file ends before its {values} values")),
            Err(error) => error,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // a decoder that panicked was taken out: there is another one at the start
        self.state.lock_unpoisoned()
    }

    fn read(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        let Values::Complex(out) = out else { return Err(Error::usage("visibilities are read into Complex")) };
        let mut state = self.state();
        if let Some((_, error)) = state.damaged.as_ref().filter(|(row, _)| *row < rows.end) {
            return Err(error.clone());
        }
        // taken, so that an error leaves a decoder at the start
        let mut decoder = std::mem::take(&mut state.decoder);
        let mut row = rows.start;
        // the last cell is kept, because it may be read in parts
        if decoder.row > row + 1 {
            decoder = Decoder::default();
        }
        while row < rows.end {
            while decoder.row <= row {
                let next = decoder.row;
                if let Err(error) = decoder.advance(self, self.shapes.get(next)) {
                    // otherwise each attempt to read a later row would decode all rows before it
                    if error.kind() == ErrorKind::Format {
                        state.damaged = Some((next, error.clone()));
                    }
                    return Err(error);
                }
            }
            self.shape(row)?;
            out.extend_from_slice(&decoder.cell);
            row += 1;
        }
        state.decoder = decoder;
        Ok(())
    }
}

impl Manager for Sisco {
    fn name(&self) -> &BStr {
        // the file does not have the name from creation
        BStr::new("")
    }

    fn column(&self, _index: usize) -> &dyn ColumnCells {
        self
    }
}

impl ColumnCells for Sisco {
    fn cell_shape(&self, row: u64) -> Result<Option<Shape>> {
        self.shape(row).context(&self.place)
    }

    fn read_cell(&self, row: u64, region: Option<&Region>, out: &mut Values) -> Result<()> {
        let shape = self.shape(row).context(&self.place)?.ok_or_else(|| undefined(row))?;
        read_part(region, &shape, out, |out| self.read(row..row + 1, out).context(&self.place))
    }

    fn read_rows(&self, rows: Range<u64>, out: &mut Values) -> Result<()> {
        self.read(rows, out).context(&self.place)
    }

    fn access(&self) -> Access {
        Access::InOrder
    }

    fn same_shape(&self, rows: &Range<u64>) -> Option<Shape> {
        let first = self.shapes.get(rows.start)?;
        let same = match &self.shapes {
            Shapes::Fixed { written, .. } => rows.end <= *written,
            Shapes::Each { shapes, held } => {
                let cells = shapes.get(rows.start as usize..rows.end as usize)?;
                rows.end <= *held && cells.iter().all(|shape| *shape == Some(first))
            }
        };
        same.then(|| Shape::from(first))
    }
}
