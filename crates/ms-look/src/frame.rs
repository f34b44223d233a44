//! Frames: a frame is a plot as arrays of numbers, with its title, axes and selection. It is
//! encoded as safetensors, npy, CSV or JSON.

use serde_json::{Map, Value as Json, json};

use crate::calendar::utc_of_mjd;

/// Elements of an array of a plot.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each variant is named for the type of its elements in safetensors")]
pub enum Numbers {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U32(Vec<u32>),
    U8(Vec<u8>),
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Numbers::F32(numbers) => numbers.len(),
            Numbers::F64(numbers) => numbers.len(),
            Numbers::U32(numbers) => numbers.len(),
            Numbers::U8(numbers) => numbers.len(),
        }
    }

    /// Element `index`, from 0, as a double; `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<f64> {
        match self {
            Numbers::F32(numbers) => numbers.get(index).map(|&number| number.into()),
            Numbers::F64(numbers) => numbers.get(index).copied(),
            Numbers::U32(numbers) => numbers.get(index).map(|&number| number.into()),
            Numbers::U8(numbers) => numbers.get(index).map(|&number| number.into()),
        }
    }

    /// Names of the element type: that of safetensors, `F32`, and that of numpy, `<f4`.
    fn names(&self) -> (&'static str, &'static str) {
        match self {
            Numbers::F32(_) => ("F32", "<f4"),
            Numbers::F64(_) => ("F64", "<f8"),
            Numbers::U32(_) => ("U32", "<u4"),
            Numbers::U8(_) => ("U8", "|u1"),
        }
    }

    fn extend_bytes(&self, out: &mut Vec<u8>) {
        match self {
            Numbers::F32(numbers) => numbers.iter().for_each(|number| out.extend(number.to_le_bytes())),
            Numbers::F64(numbers) => numbers.iter().for_each(|number| out.extend(number.to_le_bytes())),
            Numbers::U32(numbers) => numbers.iter().for_each(|number| out.extend(number.to_le_bytes())),
            Numbers::U8(numbers) => out.extend(numbers),
        }
    }

    /// `null` if the element is not finite.
    fn json(&self, index: usize) -> Json {
        match self {
            Numbers::F32(numbers) => numbers.get(index).map(|&number| Json::from(number)),
            Numbers::F64(numbers) => numbers.get(index).map(|&number| Json::from(number)),
            Numbers::U32(numbers) => numbers.get(index).map(|&number| Json::from(number)),
            Numbers::U8(numbers) => numbers.get(index).map(|&number| Json::from(number)),
        }
        .unwrap_or(Json::Null)
    }

    /// The shortest text without loss of precision; NaN is empty.
    fn text(&self, index: usize) -> String {
        match self {
            Numbers::F32(numbers) => numbers.get(index).filter(|number| !number.is_nan()).map(f32::to_string),
            Numbers::F64(numbers) => numbers.get(index).filter(|number| !number.is_nan()).map(f64::to_string),
            Numbers::U32(numbers) => numbers.get(index).map(u32::to_string),
            Numbers::U8(numbers) => numbers.get(index).map(u8::to_string),
        }
        .unwrap_or_default()
    }
}

/// A named array of numbers of a plot: its values, or the coordinates along an axis.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Array {
    /// Name of the array: `raster`, `flagged`, `x`, `y`, `segment`, `low`, `high`, `phase` or
    /// `beam`.
    pub name: &'static str,
    /// Extents of the array of the plot, slowest axis first.
    pub shape: Vec<usize>,
    /// Elements of the array of the plot, last axis fastest.
    pub numbers: Numbers,
}

impl Array {
    pub(crate) fn new(name: &'static str, shape: impl Into<Vec<usize>>, numbers: Numbers) -> Self {
        let shape = shape.into();
        debug_assert_eq!(shape.iter().product::<usize>(), numbers.len(), "{name}");
        Array { name, shape, numbers }
    }
}

/// An axis of a plot, or the colour scale of an image: label, unit and kind.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[non_exhaustive]
pub struct Axis {
    /// Quantity along the axis of the plot, for example `frequency`.
    pub label: String,
    /// Unit of the axis, for example `MHz`; empty if it has none.
    pub unit: String,
    /// Kind of the axis: `linear`, `log` (edges are values, whose logarithms are even), `time`
    /// (seconds of MJD) or `category` (indices into `names`).
    pub scale: &'static str,
    /// Names of the categories along the axis; `None` for an axis of numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// Lower end of a colour scale, below which 0.5 % of the finite values are; `None` for an axis
    /// that is not a colour scale, `Some(None)` without finite values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<Option<f64>>,
    /// Upper end of a colour scale, below which 99.5 % of the finite values are; `None` for an axis
    /// that is not a colour scale, `Some(None)` without finite values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<Option<f64>>,
}

impl Axis {
    /// Makes an axis of numbers; `scale` is `linear`, `log` or `time`.
    pub fn new(label: &str, unit: &str, scale: &'static str) -> Self {
        Axis { label: label.to_owned(), unit: unit.to_owned(), scale, ..Axis::default() }
    }

    pub(crate) fn named(label: &str, names: Vec<String>) -> Self {
        Axis { names: Some(names), ..Axis::new(label, "", "category") }
    }
}

/// Description of a plot: title, axes, the selection, and the amount of data read. A [`Frame`]
/// encoded as safetensors stores it as JSON in the metadata, under the key `plot`.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct Plot {
    /// Name of the kind of plot, as in requests: `waterfall`.
    pub kind: &'static str,
    /// Title of the plot, for example `Amplitude`.
    pub title: String,
    /// Text below the title: what is averaged and what is left out.
    pub note: String,
    /// Revision of the plotted file or table: number of changes seen since it was opened.
    pub revision: u64,
    /// Number of rows of the main table when the plot was made.
    pub rows: u64,
    /// Number of rows that were read for the plot, whether or not they are selected.
    pub rows_used: u64,
    /// Whether all rows of the main table were read for the plot.
    pub complete: bool,
    /// Whether reading stopped before all rows were read, because the maximum number of bytes was
    /// reached; a request with a larger parameter `more` continues.
    pub stopped: bool,
    /// Whether the plot may show outdated values, because cells were overwritten after they had
    /// been read.
    pub stale: bool,
    /// Parameters of the plot, including defaults; `field`, `scan`, `antenna`, `time` and `chan`
    /// only if they were given.
    pub selection: Json,
    /// The horizontal axis of the plot.
    pub x: Axis,
    /// The vertical axis of the plot.
    pub y: Axis,
    /// Colour scale of an image (raster); `None` for a plot of lines.
    pub z: Option<Axis>,
    /// Names of the lines (curves) of the plot; `None` for an image (raster).
    pub series: Option<Vec<String>>,
}

/// A plot as numbers: its description (title, axes, selection) and its arrays.
/// docs/reference/plots.md lists the arrays of each kind of plot.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Frame {
    /// Title, axes and selection of the plot.
    pub plot: Plot,
    /// The arrays of numbers of the plot.
    pub arrays: Vec<Array>,
    /// Unix time in milliseconds at which the session began, to tell equal revisions of different
    /// sessions apart; 0 for casacore images, whose plots are made without a session.
    pub(crate) session: u64,
}

impl Frame {
    /// Text for the HTTP header ETag of this plot. For one request, the text changes whenever the
    /// plot does, because more rows were read or the file changed, and it differs between two
    /// [`Session`](crate::Session)s of the same file.
    pub fn revision(&self) -> String {
        let Plot { revision, rows_used, stale, stopped, .. } = &self.plot;
        format!("{:x}-{revision}-{rows_used}-{}{}", self.session, u8::from(*stale), u8::from(*stopped))
    }

    /// Whether all rows of the main table were read for the plot.
    pub fn is_complete(&self) -> bool {
        self.plot.complete
    }

    /// Whether reading for the plot stopped before all rows were read, because the maximum number
    /// of bytes was reached.
    pub fn is_stopped(&self) -> bool {
        self.plot.stopped
    }

    /// The array of this plot whose name is `name`, such as `raster`, `x` or `y`; `None` if the
    /// plot lacks such an array.
    pub fn array(&self, name: &str) -> Option<&Array> {
        self.arrays.iter().find(|array| array.name == name)
    }

    /// The array with the values of the plot: `raster` of an image, or `y` of a plot of lines;
    /// `None` if it has neither.
    pub fn values(&self) -> Option<&Array> {
        self.array("raster").or_else(|| self.array("y"))
    }

    /// Encodes description and arrays as a safetensors document: the length of the header (8 bytes,
    /// little-endian), the header in JSON, and the bytes of all arrays.
    pub fn to_safetensors(&self) -> Vec<u8> {
        let mut header = Map::new();
        let plot = serde_json::to_string(&self.plot).unwrap_or_default();
        header.insert("__metadata__".into(), json!({ "plot": plot }));
        let mut data = Vec::new();
        // wide elements first: every array begins at a multiple of the size of its elements
        let mut arrays: Vec<&Array> = self.arrays.iter().collect();
        arrays.sort_by_key(|array| match array.numbers {
            Numbers::F64(_) => 0,
            Numbers::F32(_) | Numbers::U32(_) => 1,
            Numbers::U8(_) => 2,
        });
        for array in arrays {
            let start = data.len();
            array.numbers.extend_bytes(&mut data);
            let entry = json!({
                "dtype": array.numbers.names().0, "shape": array.shape, "data_offsets": [start, data.len()],
            });
            header.insert(array.name.into(), entry);
        }
        let mut header = Json::Object(header).to_string().into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        let mut document = (header.len() as u64).to_le_bytes().to_vec();
        document.extend(header);
        document.extend(data);
        document
    }

    /// Encodes the values of the plot, without axes, as a file in numpy's format npy.
    pub fn to_npy(&self) -> Vec<u8> {
        let mut data = Vec::new();
        let (shape, dtype) = match self.values() {
            Some(array) => {
                array.numbers.extend_bytes(&mut data);
                (array.shape.clone(), array.numbers.names().1)
            }
            None => (vec![0], "<f4"),
        };
        let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
        let comma = if extents.len() == 1 { "," } else { "" };
        let header =
            format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({}{comma}), }}", extents.join(", "));
        // magic, version and length are 10 bytes, and the header ends with a line feed at a
        // multiple of 64
        let len = (10 + header.len() + 1).next_multiple_of(64) - 10;
        let mut document = b"\x93NUMPY\x01\x00".to_vec();
        document.extend((len as u16).to_le_bytes());
        document.extend(format!("{header:len$}").into_bytes());
        if let Some(last) = document.last_mut() {
            *last = b'\n';
        }
        document.extend(data);
        document
    }

    /// Encodes the plot as CSV. A plot of lines has a column for x, then for each line its values
    /// and, if known, lowest and highest values and phases. An image has the edges of x in the
    /// first record and those of y in the first column; the last record is the last edge of y.
    /// Times are in UTC.
    pub fn to_csv(&self) -> String {
        let mut out = String::new();
        let quoted = |text: &str| match text.contains([',', '"', '\n']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_owned(),
        };
        let head = |axis: &Axis| match axis.unit.as_str() {
            "" => quoted(&axis.label),
            unit => quoted(&format!("{} ({unit})", axis.label)),
        };
        let coordinate =
            |axis: &Axis, numbers: &Numbers, index: usize| match (&axis.names, axis.scale, numbers.get(index)) {
                (Some(names), _, Some(number)) if number >= 0. && number.fract() == 0. => {
                    names.get(number as usize).map_or_else(|| numbers.text(index), |name| quoted(name))
                }
                (_, "time", Some(time)) => utc_of_mjd(time),
                _ => numbers.text(index),
            };
        let (Some(x), Some(values)) = (self.array("x"), self.values()) else { return out };
        let mut line = |cells: Vec<String>| {
            out.push_str(&cells.join(","));
            out.push_str("\r\n");
        };
        match (&self.plot.series, self.array("y")) {
            (Some(series), _) => {
                let n = x.numbers.len();
                let others = ["low", "high", "phase"].into_iter().filter_map(|name| self.array(name));
                let arrays: Vec<(&str, &Array)> =
                    std::iter::once(("", values)).chain(others.map(|array| (array.name, array))).collect();
                let names = series
                    .iter()
                    .flat_map(|name| arrays.iter().map(move |(what, _)| quoted(format!("{name} {what}").trim_end())));
                line(std::iter::once(head(&self.plot.x)).chain(names).collect());
                for index in 0..n {
                    let numbers = (0..series.len())
                        .flat_map(|number| arrays.iter().map(move |(_, array)| array.numbers.text(number * n + index)));
                    line(std::iter::once(coordinate(&self.plot.x, &x.numbers, index)).chain(numbers).collect());
                }
            }
            (None, Some(y)) => {
                let corner = format!("{} \\ {}", head(&self.plot.y), head(&self.plot.x));
                let edges = (0..x.numbers.len()).map(|index| coordinate(&self.plot.x, &x.numbers, index));
                line(std::iter::once(corner).chain(edges).collect());
                let width = values.shape.get(1).copied().unwrap_or(0);
                let height = values.shape.first().copied().unwrap_or(0);
                for index in 0..y.numbers.len() {
                    let row = if index < height { index * width..(index + 1) * width } else { 0..0 };
                    let numbers = row.map(|at| values.numbers.text(at));
                    line(std::iter::once(coordinate(&self.plot.y, &y.numbers, index)).chain(numbers).collect());
                }
            }
            (None, None) => {}
        }
        out
    }
}

impl Frame {
    /// Joins plots of lines, each with the name of its group (such as an antenna), to one plot with
    /// lines named after the groups; `by` says in the title what the groups are. A line is NaN at x
    /// values that only other plots have. `None` without frames, or if one is an image.
    pub fn joined(frames: Vec<(String, Frame)>, by: &str) -> Option<Frame> {
        let mut places: Vec<f64> = Vec::new();
        for (_, frame) in &frames {
            let x = frame.array("x")?;
            places.extend((0..x.numbers.len()).filter_map(|at| x.numbers.get(at)));
        }
        places.sort_unstable_by(f64::total_cmp);
        places.dedup();
        let (mut names, mut values, mut segments) = (Vec::new(), Vec::new(), Vec::new());
        for (group, frame) in &frames {
            let (x, y) = (frame.array("x")?, frame.array("y")?);
            let series = frame.plot.series.as_ref()?;
            let n = x.numbers.len();
            let find = |value: f64| places.binary_search_by(|place| place.total_cmp(&value)).ok();
            let at: Vec<usize> = (0..n).filter_map(|at| find(x.numbers.get(at)?)).collect();
            for (number, name) in series.iter().enumerate() {
                names.push(if series.len() == 1 { group.clone() } else { format!("{group} {name}") });
                let (mut line, mut of) = (vec![f32::NAN; places.len()], vec![0; places.len()]);
                for (from, &to) in at.iter().enumerate() {
                    line[to] = y.numbers.get(number * n + from).map_or(f32::NAN, |value| value as f32);
                    let segment = frame.array("segment").and_then(|array| array.numbers.get(number * n + from));
                    of[to] = segment.map_or(0, |segment| segment as u32);
                }
                values.append(&mut line);
                segments.append(&mut of);
            }
        }
        let notes: Vec<String> = frames.iter().map(|(_, frame)| frame.plot.note.clone()).collect();
        let mut first = frames.into_iter().next()?.1;
        let shape = [names.len(), places.len()];
        first.arrays = vec![
            Array::new("x", [places.len()], Numbers::F64(places)),
            Array::new("y", shape, Numbers::F32(values)),
            Array::new("segment", shape, Numbers::U32(segments)),
        ];
        first.plot.series = Some(names);
        first.plot.title = format!("{}, by {by}", first.plot.title);
        let average = first.plot.selection["average"].as_str().map_or(String::new(), |name| format!("{name} means"));
        let shared = notes.iter().skip(1).fold(pieces(&notes[0]), |shared, note| {
            let others = pieces(note);
            shared.into_iter().filter(|piece| others.contains(piece)).collect()
        });
        let is_said = shared.first().is_some_and(|piece| notes[0].starts_with(piece));
        let average = Some(average.as_str()).filter(|_| !is_said);
        first.plot.note = average.into_iter().chain(shared).collect::<Vec<_>>().join("; ");
        first.plot.selection["by"] = by.into();
        Some(first)
    }

    /// The arrays as a JSON object of nested lists, by name, the slowest axis outermost; `null` for
    /// numbers that are not finite.
    pub fn arrays_json(&self) -> Json {
        let array = |array: &Array| {
            let mut list: Vec<Json> = (0..array.numbers.len()).map(|at| array.numbers.json(at)).collect();
            for &extent in array.shape.iter().skip(1).rev() {
                list = match extent {
                    0 => Vec::new(),
                    _ => list.chunks(extent).map(|line| Json::from(line.to_vec())).collect(),
                };
            }
            (array.name.to_owned(), Json::from(list))
        };
        Json::Object(self.arrays.iter().map(array).collect())
    }
}

fn pieces(note: &str) -> Vec<&str> {
    note.split("; ").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(raster: bool) -> Frame {
        let z = Axis { low: Some(Some(1.)), high: Some(None), ..Axis::new("amplitude", "Jy", "log") };
        let plot = Plot {
            kind: "waterfall",
            title: "Amplitude".into(),
            note: String::new(),
            revision: 3,
            rows: 10,
            rows_used: 8,
            complete: false,
            stopped: false,
            stale: true,
            selection: json!({"corr": ["XX"]}),
            x: Axis::new("frequency", "MHz", "linear"),
            y: Axis::new("time", "UTC", if raster { "time" } else { "linear" }),
            z: raster.then_some(z),
            series: (!raster).then(|| vec!["XX".into(), "Y,Y".into()]),
        };
        let arrays = match raster {
            true => vec![
                Array::new("raster", [1, 2], Numbers::F32(vec![1.5, f32::NAN])),
                Array::new("x", [3], Numbers::F64(vec![1., 2., 3.])),
                Array::new("y", [2], Numbers::F64(vec![51544.5 * 86400., 51544.5 * 86400. + 1.])),
            ],
            false => vec![
                Array::new("x", [2], Numbers::F64(vec![0.1, 2.])),
                Array::new("y", [2, 2], Numbers::F32(vec![0.1, 2., 3., f32::NAN])),
            ],
        };
        Frame { plot, arrays, session: 255 }
    }

    #[test]
    fn safetensors_are_aligned() {
        let document = frame(true).to_safetensors();
        let len = u64::from_le_bytes(document[..8].try_into().unwrap()) as usize;
        assert_eq!(len % 8, 0);
        let header: Json = serde_json::from_slice(&document[8..8 + len]).unwrap();
        assert_eq!(header["x"], json!({"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}));
        assert_eq!(header["raster"], json!({"dtype": "F32", "shape": [1, 2], "data_offsets": [40, 48]}));
        assert_eq!(document.len(), 8 + len + 48);
        let plot: Json = serde_json::from_str(header["__metadata__"]["plot"].as_str().unwrap()).unwrap();
        assert_eq!((&plot["z"]["low"], &plot["z"]["high"], &plot["stale"]), (&json!(1.), &Json::Null, &json!(true)));
        assert!(plot["x"].get("low").is_none() && plot["x"].get("names").is_none());
        assert_eq!(frame(true).revision(), "ff-3-8-10");
    }

    #[test]
    fn numpy_headers_are_aligned() {
        for raster in [false, true] {
            let document = frame(raster).to_npy();
            let len = u16::from_le_bytes([document[8], document[9]]) as usize;
            assert_eq!(((10 + len) % 64, document[9 + len]), (0, b'\n'));
        }
    }

    #[test]
    fn text_has_names_and_edges() {
        let lines = "frequency (MHz),XX,\"Y,Y\"\r\n0.1,0.1,3\r\n2,2,\r\n";
        assert_eq!(frame(false).to_csv(), lines);
        let raster = "time (UTC) \\ frequency (MHz),1,2,3\r\n2000-01-01T12:00:00.0Z,1.5,\r\n2000-01-01T12:00:01.0Z\r\n";
        assert_eq!(frame(true).to_csv(), raster);
    }
}
