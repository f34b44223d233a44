//! The axes of the plot `xy`: numbers of each row, from a column of the main table or from where
//! the field stands in the sky.

use std::ops::Range;
use std::sync::Arc;

use ctds::error::{Context, Error, Result};
use ctds::suggest::similar;
use ctds::value::DataType;

use crate::frame::Axis;
use crate::plots::Kind;
use crate::request::Request;
use crate::rows::Rows;
use crate::sky::Sky;

/// Most elements in a cell on an axis: one number for each correlation.
const MAX_ELEMENTS: u64 = 64;

/// Names of the axes beside columns, with labels and units.
const NAMED: [(&str, AxisKind, &str, &str); 6] = [
    ("elevation", AxisKind::Elevation, "elevation", "deg"),
    ("hour_angle", AxisKind::HourAngle, "hour angle", "h"),
    ("uvdist", AxisKind::UvDistance, "uv distance", "m"),
    ("u", AxisKind::Uvw(0), "u", "m"),
    ("v", AxisKind::Uvw(1), "v", "m"),
    ("w", AxisKind::Uvw(2), "w", "m"),
];

/// Shorter names of axes.
const WORDS: [(&str, &str); 8] = [
    ("time", "TIME"),
    ("el", "elevation"),
    ("ha", "hour_angle"),
    ("hourangle", "hour_angle"),
    ("hour angle", "hour_angle"),
    ("uv-distance", "uvdist"),
    ("scan", "SCAN_NUMBER"),
    ("field", "FIELD_ID"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum AxisKind {
    Elevation,
    HourAngle,
    UvDistance,
    Uvw(usize),
    Column,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowAxis {
    kind: AxisKind,
    /// Empty unless the axis is a column.
    column: String,
    /// Empty if the axis is a column.
    name: &'static str,
    axis: Axis,
}

#[derive(Debug, Clone)]
pub(crate) struct Axes {
    pub(crate) x: RowAxis,
    /// `None`: a quantity of the visibilities.
    pub(crate) y: Option<RowAxis>,
    /// Needed for elevations and hour angles.
    sky: Option<Arc<Sky>>,
}

impl PartialEq for Axes {
    /// The sky has to be the same one: its directions may be NaN, which differs from itself.
    fn eq(&self, other: &Self) -> bool {
        let sky = |axes: &Self| axes.sky.as_ref().map(Arc::as_ptr);
        self.x == other.x && self.y == other.y && sky(self) == sky(other)
    }
}

impl Axes {
    /// The axes that `request` names; `None` unless it is for the plot `xy`. `sky` is read if it is
    /// needed and not known. `Usage` if the source lacks one of them.
    pub(crate) fn of(request: &Request, rows: &Rows, sky: &mut Option<Arc<Sky>>) -> Result<Option<Self>> {
        if request.kind() != Kind::Xy {
            return Ok(None);
        }
        let x = RowAxis::of("x", request.x.as_deref().unwrap_or("time"), rows)?;
        let y = request.y.as_deref().map(|word| RowAxis::of("y", word, rows)).transpose()?;
        if y.as_ref().is_some_and(|y| y.axis.scale == "time") {
            return Err(Error::usage("y: TIME is an axis for x"));
        }
        let mut axes = Axes { x, y, sky: None };
        if axes.each().any(RowAxis::is_in_the_sky) {
            if sky.is_none() {
                *sky = Some(Arc::new(read_sky(rows)?));
            }
            axes.sky = sky.clone();
        }
        Ok(Some(axes))
    }

    pub(crate) fn needs_uvw(&self) -> bool {
        self.each().any(|axis| matches!(axis.kind, AxisKind::UvDistance | AxisKind::Uvw(_)))
    }

    pub(crate) fn needs_fields(&self) -> bool {
        self.sky.is_some()
    }

    fn each(&self) -> impl Iterator<Item = &RowAxis> {
        std::iter::once(&self.x).chain(&self.y)
    }

    /// Reads the numbers of the rows `selected` of a block, which are counted from its start.
    pub(crate) fn read(&self, rows: &Rows, block: &BlockRows<'_>) -> Result<[Lists; 2]> {
        let read = |axis: &RowAxis| match axis.kind {
            AxisKind::Column => Lists::of_column(&axis.column, rows, block),
            _ => axis.computed(self.sky.as_deref(), block),
        };
        Ok([read(&self.x)?, self.y.as_ref().map_or(Ok(Lists::default()), read)?])
    }
}

fn read_sky(rows: &Rows) -> Result<Sky> {
    let measure = rows.column("TIME").and_then(|info| info.desc.keywords.record("MEASINFO"));
    let scale = measure.and_then(|measure| measure.string("Ref")).map_or_else(|| "UTC".to_owned(), ToString::to_string);
    if scale != "UTC" {
        let message = format!("the times are in {scale}; elevations and hour angles are computed from UTC");
        return Err(Error::unsupported(message).context(Context::column("TIME")));
    }
    rows.with_tables(Sky::of)?
}

impl RowAxis {
    /// `parameter` is `x` or `y`, for error messages.
    fn of(parameter: &str, word: &str, rows: &Rows) -> Result<Self> {
        let lower = word.to_lowercase();
        let usual = WORDS.iter().find(|(other, _)| *other == lower).map_or(word, |(_, usual)| usual);
        if let Some((name, kind, label, unit)) = NAMED.iter().find(|(name, ..)| name.eq_ignore_ascii_case(usual)) {
            if !matches!(kind, AxisKind::Elevation | AxisKind::HourAngle) && rows.column("UVW").is_none() {
                return Err(Error::usage(format!("{parameter}: {word} needs the column UVW, which the table lacks")));
            }
            return Ok(RowAxis { kind: *kind, column: String::new(), name, axis: Axis::new(label, unit, "linear") });
        }
        let columns = rows.columns();
        let info = columns.iter().find(|info| info.desc.name == usual);
        let info = info.or_else(|| columns.iter().find(|info| info.desc.name.eq_ignore_ascii_case(usual.as_bytes())));
        let Some(info) = info else { return Err(unknown(parameter, word, rows)) };
        let name = info.desc.name.to_string();
        if matches!(info.data_type(), DataType::String | DataType::Record) {
            let message = format!("{parameter}: the cells of {name} are of type {}, not numbers", info.data_type());
            return Err(Error::usage(message));
        }
        // declared, or as in the newest row, so that large cells are never read
        let elements = match (&info.shape, rows.rows()) {
            (Some(shape), _) => shape.elements()?,
            (None, 0) => 1,
            (None, count) => rows.cell_bytes(&name, count - 1)? / info.data_type().size().max(1) as u64,
        };
        check_elements(&name, elements, if parameter == "x" { 1 } else { MAX_ELEMENTS })?;
        let axis = match name.as_str() {
            "TIME" => Axis::new("time", "UTC", "time"),
            _ => Axis::new(&name, &rows.unit(&name), "linear"),
        };
        Ok(RowAxis { kind: AxisKind::Column, column: name, name: "", axis })
    }

    /// Name in requests.
    pub(crate) fn name(&self) -> &str {
        if self.name.is_empty() { &self.column } else { self.name }
    }

    pub(crate) fn axis(&self) -> Axis {
        self.axis.clone()
    }

    fn is_in_the_sky(&self) -> bool {
        matches!(self.kind, AxisKind::Elevation | AxisKind::HourAngle)
    }

    fn computed(&self, sky: Option<&Sky>, block: &BlockRows<'_>) -> Result<Lists> {
        let mut lists = Lists::new(block.keys.len());
        let mut observer = sky.map(Sky::observer);
        for &row in block.selected {
            let (time, field) = block.keys[row];
            let uvw = |axis: usize| block.uvw.get(3 * row + axis).copied().unwrap_or(f64::NAN);
            let number = match (self.kind, &mut observer) {
                (AxisKind::UvDistance, _) => uvw(0).hypot(uvw(1)),
                (AxisKind::Uvw(axis), _) => uvw(axis),
                (_, Some(observer)) => {
                    let standing = observer.standing(field, time)?;
                    if self.kind == AxisKind::Elevation { standing.elevation } else { standing.hour_angle }
                }
                (_, None) => f64::NAN,
            };
            lists.set(row, &[number]);
        }
        Ok(lists)
    }
}

fn check_elements(column: &str, found: u64, most: u64) -> Result<()> {
    if found <= most {
        return Ok(());
    }
    let more = if most == 1 { "" } else { ", or one for each correlation" };
    Err(Error::usage(format!(
        "the cells of {column} have {found} elements; this axis takes one number of each row{more}"
    )))
}

/// The numeric columns of the table are in the message.
fn unknown(parameter: &str, word: &str, rows: &Rows) -> Error {
    let is_number = |data_type| !matches!(data_type, DataType::String | DataType::Record);
    let columns = rows.columns().into_iter().filter(|info| is_number(info.data_type()));
    let columns: Vec<String> = columns.map(|info| info.desc.name.to_string()).collect();
    let mut names: Vec<&str> = NAMED.iter().map(|(name, ..)| *name).collect();
    names.extend(columns.iter().map(String::as_str));
    let meant = similar(word, &names).map_or(String::new(), |name| format!("; did you mean {name}?"));
    Error::usage(format!("{parameter}: {word:?}, where {} can be{meant}", names.join(", ")))
}

/// The rows of a block, and those of them that a plot selects.
pub(crate) struct BlockRows<'a> {
    pub(crate) range: &'a Range<u64>,
    /// TIME and FIELD_ID of each row.
    pub(crate) keys: &'a [(f64, i64)],
    /// Empty if not read.
    pub(crate) uvw: &'a [f64],
    /// Offsets from the start of `range`.
    pub(crate) selected: &'a [usize],
}

/// A list of numbers for each row of a block; empty for rows that are not selected, and for those
/// whose cells are undefined.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    numbers: Vec<f64>,
    at: Vec<(usize, usize)>,
}

impl Lists {
    fn new(rows: usize) -> Self {
        Lists { numbers: Vec::new(), at: vec![(0, 0); rows] }
    }

    fn set(&mut self, row: usize, numbers: &[f64]) {
        self.at[row] = (self.numbers.len(), numbers.len());
        self.numbers.extend(numbers);
    }

    pub(crate) fn get(&self, row: usize) -> &[f64] {
        let (start, len) = self.at.get(row).copied().unwrap_or_default();
        self.numbers.get(start..start + len).unwrap_or_default()
    }

    /// Amplitudes of complex numbers, 1 for true.
    fn of_column(name: &str, rows: &Rows, block: &BlockRows<'_>) -> Result<Self> {
        let wanted: Vec<u64> = block.selected.iter().map(|&row| block.range.start + row as u64).collect();
        let mut lists = Lists::new(block.keys.len());
        for group in rows.cells(name, &wanted)? {
            let elements = group.shape.elements()?;
            check_elements(name, elements, MAX_ELEMENTS)?;
            let numbers = group.numbers();
            for (number, place) in group.places.iter().enumerate() {
                let cell = number * elements as usize..(number + 1) * elements as usize;
                lists.set(block.selected[*place], numbers.get(cell).unwrap_or_default());
            }
        }
        Ok(lists)
    }
}
