//! Makes a plot of one plane (the two fastest axes) of a casacore image.

use std::path::Path;

use bstr::ByteSlice;
use ctds::error::{Context, Error, ErrorKind, Result, ResultExt};
use ctds::value::{Complex32, Complex64, DataType, Record, Region, Shape, Value, Values};
use ctds_hdf5::{Source, internals};
use serde_json::json;

use crate::frame::{Array, Axis, Frame, Numbers, Plot};
use crate::plots::with_ends;

/// Most pixels along an axis; those of a larger plane are means of squares of image pixels.
const MAX_PIXELS: u64 = 1024;

/// Most image pixels that are read at a time.
const STRIP: u64 = 1 << 20;

/// Keyword with the name of the default mask, which is applied to the plot.
const DEFAULT_MASK: &str = "Image_defaultmask";

/// Kinds of coordinates: with a number, fields of the keyword `coords` (`direction0`, `spectral1`).
const KINDS: [&str; 6] = ["direction", "spectral", "stokes", "linear", "tabular", "quality"];

/// A casacore image (a table with the column `map`), or the native HDF5 file of one, opened to be
/// plotted.
pub struct Image {
    source: Source,
    shape: Shape,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// Selects the plane of an image to plot, which has axes 0 and 1 of the image (axes from 0, fastest
/// first as in casacore). Element `i` of the list is an index (from 0) on axis `i + 2`. On axes
/// that the list does not reach, the index is 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plane(pub Vec<u64>);

/// Linear conversion of pixel numbers along one axis to world coordinates.
struct World {
    label: String,
    unit: String,
    /// Number of the reference pixel, from 0.
    pixel: f64,
    /// World coordinate of the reference pixel; 0 for directions, which are shown as offsets.
    value: f64,
    increment: f64,
}

impl Image {
    /// Opens an image for plotting; `None` if the main table of the file or directory is not an
    /// image of at least two axes.
    ///
    /// # Errors
    /// Those of opening the source.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        Self::of(Source::open_served(path, &|_| true)?)
    }

    /// Takes an opened file or table as an image; `None` if its main table is not an image of at
    /// least two axes.
    ///
    /// # Errors
    /// Those of reading its keywords.
    pub fn of(source: Source) -> Result<Option<Self>> {
        let main = &source.tables()[0];
        let is_image = main.keywords()?.record("coords").is_some()
            && main.rows()? > 0
            && main.columns()?.iter().any(|info| info.desc.name == "map");
        if !is_image {
            return Ok(None);
        }
        let shape = source.column("map")?.cell_shape(0)?;
        Ok(shape.filter(|shape| shape.len() >= 2).map(|shape| Image { source, shape }))
    }

    /// Name and number of pixels of each axis after the first two, along which planes are numbered.
    pub fn planes(&self) -> Vec<(String, u64)> {
        let coordinates = self.source.tables()[0].keywords().ok().and_then(|keywords| keywords.record("coords"));
        (2..self.shape.len()).map(|axis| (world(coordinates, axis).label, self.shape[axis])).collect()
    }

    /// Plots a plane of the image along its two fastest axes. Each pixel of the plot is the mean of
    /// the image pixels that it covers, without those that are not finite or that the default mask
    /// excludes.
    ///
    /// # Errors
    /// `Usage` if the image has no such plane; those of reading.
    pub fn frame(&self, plane: &Plane) -> Result<Frame> {
        self.frame_while(plane, &|| true)
    }

    /// [`frame`](Self::frame), given up when `is_wanted`, which is asked before each million of
    /// pixels, returns false.
    ///
    /// # Errors
    /// `Interrupted` if it did; those of [`frame`](Self::frame).
    pub fn frame_while(&self, plane: &Plane, is_wanted: &dyn Fn() -> bool) -> Result<Frame> {
        let others = &self.shape[2..];
        let mut start: Vec<u64> = vec![0, 0];
        for (axis, &len) in others.iter().enumerate() {
            let number = plane.0.get(axis).copied().unwrap_or(0);
            if number >= len {
                return Err(Error::usage(format!(
                    "the image has {len} planes along axis {}, not a plane {number}",
                    axis + 2
                )));
            }
            start.push(number);
        }
        if let Some(extra) = plane.0.get(others.len()) {
            let message = format!(
                "the image has {} axes after the first two; --plane has one more number, {extra}",
                others.len()
            );
            return Err(Error::usage(message));
        }
        let (width, height) = (self.shape[0], self.shape[1]);
        let each = width.max(height).div_ceil(MAX_PIXELS).max(1);
        let (columns, lines) = (width.div_ceil(each) as usize, height.div_ceil(each) as usize);
        let mut sums = vec![(0f64, 0u32); columns * lines];
        let mask = self.mask().and_then(|(_, place)| place);
        let (across, up) = (width.clamp(1, STRIP), (STRIP / width.max(1)).max(1));
        let corners =
            (0..height).step_by(up as usize).flat_map(|y| (0..width).step_by(across as usize).map(move |x| (x, y)));
        for (left, first) in corners {
            if !is_wanted() {
                return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
            }
            (start[0], start[1]) = (left, first);
            let columns_read = across.min(width - left);
            let extents = [columns_read, up.min(height - first)].into_iter().chain(others.iter().map(|_| 1)).collect();
            let region = Region { start: start.iter().copied().collect(), shape: extents };
            let good = match mask {
                Some((table, column)) => Some(
                    self.source.column_at(table, column)?.part::<bool>(0, &region)?.iter().copied().collect::<Vec<_>>(),
                ),
                None => None,
            };
            let is_shown = |at: usize, value: f64| value.is_finite() && good.as_ref().is_none_or(|good| good[at]);
            for (at, value) in self.read(&region)?.into_iter().enumerate().filter(|&(at, value)| is_shown(at, value)) {
                let (x, y) = (left + at as u64 % columns_read, first + at as u64 / columns_read);
                let sum = &mut sums[(y / each) as usize * columns + (x / each) as usize];
                *sum = (sum.0 + value, sum.1 + 1);
            }
        }
        let raster =
            sums.iter().map(|&(sum, count)| if count == 0 { f32::NAN } else { (sum / f64::from(count)) as f32 });
        self.frame_of(plane, raster.collect(), (columns, lines), each)
    }

    /// Name, and indices of the table and of the Bool column, true for valid pixels, with it. Outer
    /// `None`: no default mask; inner `None`: unreadable, or of another shape than the image.
    fn mask(&self) -> Option<(String, Option<(usize, usize)>)> {
        let keywords = self.source.tables()[0].keywords().ok()?;
        let name = keywords.string(DEFAULT_MASK)?.to_string();
        let place = || {
            let Value::Table(stored) = keywords.record("masks")?.record(&name)?.get("mask")? else { return None };
            let table = internals::find(&self.source, 0, stored)?;
            let columns = self.source.tables()[table].columns().ok()?;
            let column = columns.iter().position(|info| info.data_type() == DataType::Bool)?;
            let shape = self.source.column_at(table, column).ok()?.cell_shape(0).ok()?;
            (shape.as_ref() == Some(&self.shape)).then_some((table, column))
        };
        let place = place();
        Some((name, place)).filter(|(name, _)| !name.is_empty())
    }

    fn read(&self, region: &Region) -> Result<Vec<f64>> {
        let column = self.source.column("map")?;
        let context = || Context::column("map");
        Ok(match column.info().data_type() {
            DataType::Float => numbers(column.part::<f32>(0, region).with_context(context)?, f64::from),
            DataType::Double => numbers(column.part::<f64>(0, region).with_context(context)?, |value| value),
            DataType::Complex => {
                numbers(column.part::<Complex32>(0, region).with_context(context)?, |v| v.norm().into())
            }
            DataType::DComplex => numbers(column.part::<Complex64>(0, region).with_context(context)?, |v| v.norm()),
            other => return Err(Error::unsupported(format!("images of type {other} are not drawn"))),
        })
    }

    fn frame_of(&self, plane: &Plane, raster: Vec<f32>, (columns, lines): (usize, usize), each: u64) -> Result<Frame> {
        let keywords = self.source.tables()[0].keywords()?;
        let coordinates = keywords.record("coords");
        let unit = keywords.string("units").map_or(String::new(), |unit| unit.to_string());
        let (x, y) = (world(coordinates, 0), world(coordinates, 1));
        let edges = |axis: usize, world: &World, count: usize| -> Vec<f64> {
            let pixel = |place: usize| ((place as u64 * each).min(self.shape[axis]) as f64) - 0.5;
            (0..=count).map(|place| world.value + (pixel(place) - world.pixel) * world.increment).collect()
        };
        let (x_edges, y_edges) = (edges(0, &x, columns), edges(1, &y, lines));
        let mut note: Vec<String> = vec![format!("{} x {} pixels", self.shape[0], self.shape[1])];
        note.extend(centre(coordinates));
        let beam = keywords.record("imageinfo").and_then(|info| beam(info.record("restoringbeam")?));
        note.extend(beam.map(|[major, minor, angle]| {
            format!("beam {} x {} arcsec, {} deg", rounded(major), rounded(minor), rounded(angle))
        }));
        let others = (2..self.shape.len()).map(|axis| (axis, plane.0.get(axis - 2).copied().unwrap_or(0)));
        note.extend(others.filter(|(axis, _)| self.shape[*axis] > 1).map(|(axis, number)| {
            format!("plane {number} of {} along {}", self.shape[axis], world(coordinates, axis).label)
        }));
        if each > 1 {
            note.push(format!("means of {each} x {each} pixels"));
        }
        note.extend(self.mask().map(|(name, place)| match place {
            Some(_) => format!("without what {name} masks"),
            None => format!("{name} is not applied: it cannot be read, or has another shape"),
        }));
        let axis = |world: &World| Axis::new(&world.label, &world.unit, "linear");
        let plot = Plot {
            kind: "image",
            title: "Image".to_owned(),
            note: note.join(", "),
            revision: 0,
            rows: 1,
            rows_used: 1,
            complete: true,
            stopped: false,
            stale: false,
            selection: json!({"plane": plane.0}),
            x: axis(&x),
            y: axis(&y),
            z: Some(with_ends(Axis::new("brightness", &unit, "linear"), &raster)),
            series: None,
        };
        let mut arrays = vec![
            Array::new("raster", [lines, columns], Numbers::F32(raster)),
            Array::new("x", [columns + 1], Numbers::F64(x_edges)),
            Array::new("y", [lines + 1], Numbers::F64(y_edges)),
        ];
        let of_unit = ANGLES.into_iter().find(|(unit, _)| x.unit == *unit && y.unit == *unit);
        if let Some(([major, minor, angle], (_, each))) = beam.zip(of_unit) {
            arrays.push(Array::new("beam", [3], Numbers::F64(vec![major / each, minor / each, angle])));
        }
        Ok(Frame { plot, arrays, session: 0 })
    }
}

/// Units of the axes of directions, with their arc seconds.
const ANGLES: [(&str, f64); 3] = [("arcsec", 1.), ("arcmin", 60.), ("deg", 3600.)];

/// Major and minor axis in arc seconds, and position angle in degrees, from north to east.
fn beam(beam: &Record) -> Option<[f64; 3]> {
    let degrees = |name: &str| -> Option<f64> {
        let quantity = beam.record(name)?;
        let value = doubles(quantity, "value").first().copied().filter(|value| value.is_finite())?;
        Some(match quantity.string("unit")?.to_string().as_str() {
            "deg" => value,
            "'" | "arcmin" => value / 60.,
            "\"" | "arcsec" => value / 3600.,
            "rad" => value.to_degrees(),
            _ => return None,
        })
    };
    let (major, minor) = (3600. * degrees("major")?, 3600. * degrees("minor")?);
    (major > 0. && minor > 0.).then_some([major, minor, degrees("positionangle")?])
}

/// Rounded to a thousandth, without trailing zeros.
fn rounded(value: f64) -> f64 {
    (value * 1000.).round() / 1000.
}

fn numbers<T: Copy>(array: ctds::ndarray::ArrayD<T>, number: impl Fn(T) -> f64) -> Vec<f64> {
    array.iter().map(|&value| number(value)).collect()
}

/// The numbers in a field, a scalar or an array; empty if it is missing or not numeric.
fn doubles(record: &Record, name: &str) -> Vec<f64> {
    match record.get(name) {
        Some(Value::Scalar(Values::Double(values)) | Value::Array(_, Values::Double(values))) => values.clone(),
        Some(Value::Scalar(values) | Value::Array(_, values)) => {
            values.integers().unwrap_or_default().into_iter().map(|number| number as f64).collect()
        }
        _ => Vec::new(),
    }
}

fn strings(record: &Record, name: &str) -> Vec<String> {
    record.strings(name).unwrap_or_default().iter().map(|string| string.to_str_lossy().into_owned()).collect()
}

/// Kind and record of the coordinate that has this axis, if any, and index of the axis in it.
fn coordinate(coordinates: Option<&Record>, axis: usize) -> Option<(&str, &Record, usize)> {
    let coordinates = coordinates?;
    for field in &coordinates.fields {
        let Value::Record(record) = &field.value else { continue };
        let name = field.name.to_str().ok()?;
        let Some(kind) = KINDS.into_iter().find(|kind| name.starts_with(kind)) else { continue };
        let axes = doubles(coordinates, &format!("pixelmap{}", &name[kind.len()..]));
        if let Some(at) = axes.iter().position(|&other| other == axis as f64) {
            return Some((kind, record, at));
        }
    }
    None
}

/// The conversion of an image axis; for a direction, to offsets from the reference position. An
/// axis that is rotated or lacks a linear coordinate keeps pixel numbers.
fn world(coordinates: Option<&Record>, axis: usize) -> World {
    let pixels = |label: String| World { label, unit: String::new(), pixel: 0., value: 0., increment: 1. };
    let Some((kind, record, at)) = coordinate(coordinates, axis) else {
        return pixels(format!("pixel of axis {axis}"));
    };
    let name = match kind {
        "spectral" => "frequency".to_owned(),
        "stokes" => "stokes".to_owned(),
        _ => strings(record, "axes").get(at).map_or_else(|| format!("axis {axis}"), |name| name.to_lowercase()),
    };
    // the coordinates of frequencies are a record of their own
    let record = record.record("wcs").unwrap_or(record);
    let [value, pixel, increment] = ["crval", "crpix", "cdelt"].map(|name| doubles(record, name).get(at).copied());
    let turns = {
        let pc = doubles(record, "pc");
        let size = (pc.len() as f64).sqrt() as usize;
        let is_set = |line: usize, column: usize| pc.get(line * size + column).is_some_and(|&number| number != 0.);
        (0..size).any(|other| other != at && (is_set(at, other) || is_set(other, at)))
    };
    let (Some(value), Some(pixel), Some(increment)) = (value, pixel, increment) else { return pixels(name) };
    if turns || !value.is_finite() || !pixel.is_finite() || !increment.is_finite() || increment == 0. {
        return pixels(format!("pixel of {name}"));
    }
    let unit = match strings(record, "units").get(at).cloned().or_else(|| Some(record.string("unit")?.to_string())) {
        Some(unit) => unit,
        None if kind == "spectral" => "Hz".to_owned(),
        None => String::new(),
    };
    if kind != "direction" {
        return World { label: name, unit, pixel, value, increment };
    }
    let degrees = match unit.as_str() {
        "deg" => 1.,
        "'" | "arcmin" => 1. / 60.,
        "\"" | "arcsec" => 1. / 3600.,
        _ => 1f64.to_degrees(),
    };
    let (unit, factor) = match (increment * degrees).abs() {
        step if step < 0.1 / 60. => ("arcsec", 3600.),
        step if step < 0.1 => ("arcmin", 60.),
        _ => ("deg", 1.),
    };
    let label = format!("{name} offset");
    World { label, unit: unit.to_owned(), pixel, value: 0., increment: increment * degrees * factor }
}

/// Position from which direction offsets count; `None` if the first axis is not a direction.
fn centre(coordinates: Option<&Record>) -> Option<String> {
    let (_, record, _) = coordinate(coordinates, 0).filter(|(kind, ..)| *kind == "direction")?;
    let (values, units) = (doubles(record, "crval"), strings(record, "units"));
    let degrees = |at: usize| -> Option<f64> {
        let value = values.get(at)?;
        Some(match units.get(at).map_or("rad", String::as_str) {
            "deg" => *value,
            "'" | "arcmin" => value / 60.,
            "\"" | "arcsec" => value / 3600.,
            _ => value.to_degrees(),
        })
    };
    let (longitude, latitude) = (degrees(0)?.rem_euclid(360.), degrees(1)?);
    let system = record.string("system").map_or(String::new(), |system| format!(" {system}"));
    let projection = record.string("projection").map_or(String::new(), |projection| format!(" ({projection})"));
    Some(format!("centre {} {}{system}{projection}", sexagesimal(longitude / 15., 1), sexagesimal(latitude, 0)))
}

/// Hours or degrees as `12:30:49.4`; `digits` is the number of decimals of the seconds.
fn sexagesimal(value: f64, digits: usize) -> String {
    let sign = if value < 0. { "-" } else { "" };
    let scale = 10f64.powi(digits as i32);
    let all = (value.abs() * 3600. * scale).round();
    let (seconds, minutes) = (all % (60. * scale) / scale, (all / (60. * scale)).floor());
    let width = if digits == 0 { 2 } else { 3 + digits };
    format!("{sign}{:02}:{:02}:{seconds:0width$.digits$}", (minutes / 60.).floor(), minutes % 60.)
}

#[cfg(test)]
mod tests {
    use ctds::error::Fails;
    use ctds::schema::{ColumnDesc, ColumnKind};
    use ctds::table::NewTable;

    use super::*;

    #[test]
    fn angles_are_rounded_as_a_whole() {
        assert_eq!(sexagesimal(12.5, 1), "12:30:00.0");
        assert_eq!(sexagesimal(-0.9999999, 0), "-01:00:00");
        assert_eq!(sexagesimal(5.588_144_4, 1), "05:35:17.3");
    }

    #[test]
    fn missing_planes_and_pixels_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let image = |name: &str, data_type: DataType| {
            let path = folder.path().join(name);
            let map = ColumnDesc::new("map".into(), data_type, ColumnKind::Array);
            let table = NewTable::new().column(map).keyword("coords", Value::Record(Default::default()));
            let mut table = table.create(&path).unwrap();
            table.add_rows(1).unwrap();
            table.column("map").unwrap().set_shape(0, &Shape::from([4, 4, 2])).unwrap();
            table.close().unwrap();
            Image::open(&path).unwrap().unwrap()
        };
        let floats = image("floats.im", DataType::Float);
        floats.frame(&Plane(vec![1])).unwrap();
        floats.frame(&Plane(vec![2])).fails(ErrorKind::Usage, "the image has 2 planes along axis 2, not a plane 2");
        floats
            .frame(&Plane(vec![1, 5]))
            .fails(ErrorKind::Usage, "the image has 1 axes after the first two; --plane has one more number, 5");
        floats.frame_while(&Plane(vec![1]), &|| false).fails(ErrorKind::Interrupted, "interrupted");
        let integers = image("integers.im", DataType::Int);
        integers.frame(&Plane::default()).fails(ErrorKind::Unsupported, "images of type int are not drawn");
    }

    #[test]
    fn lines_longer_than_a_strip_are_averaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.im");
        let map = ColumnDesc::new("map".into(), DataType::Float, ColumnKind::Array);
        let table = NewTable::new().column(map).keyword("coords", Value::Record(Default::default()));
        let mut table = table.create(&path).unwrap();
        table.add_rows(1).unwrap();
        // 1024 places of 1025 pixels, and a line of more pixels than a strip
        let (width, height) = (1024 * 1025, 2);
        let value = |x: u64, y: u64| (x / 1025 + 10 * y) as f32;
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| value(x, y))).collect();
        let shape = Shape::from([width, height]);
        table.column("map").unwrap().put_values(0..1, &shape, &Values::Float(pixels)).unwrap();
        table.close().unwrap();
        let frame = Image::open(&path).unwrap().unwrap().frame(&Plane::default()).unwrap();
        let raster = &frame.values().unwrap().numbers;
        assert_eq!(frame.values().unwrap().shape, [1, 1024]);
        assert!((0..1024).all(|x| raster.get(x) == Some(x as f64 + 5.)), "{raster:?}");
    }
}
