//! A panel, one of the pictures that `h5bridge plot` draws: a frame (the data of a plot), and for
//! waterfalls, images and grids a raster (cells with values) and its colours. Lines and columns
//! count from 0: line 0 is drawn at the bottom, column 0 at the left.

use std::path::Path;

use ms_look::{Axis, Frame, Numbers, Plot};

use super::palette::{self, Colour, FLAGGED, NOTHING, PAPER};

pub(super) struct Panel {
    pub(super) frame: Frame,
    source: String,
}

pub(super) struct Raster {
    pub(super) lines: usize,
    pub(super) columns: usize,
    /// Edges of the columns, in the unit of the x axis; one more than there are columns.
    pub(super) x: Vec<f64>,
    pub(super) y: Vec<f64>,
    /// The axis of the values, which the scale of colours shows.
    pub(super) z: Axis,
    /// Whether the edges of the lines are even on a logarithmic axis.
    is_log_y: bool,
    values: Vec<f64>,
    flagged: Vec<f64>,
    low: f64,
    high: f64,
    is_log: bool,
    is_count: bool,
}

/// Smallest size of a point in a map in pixels, by the part of its cells that have points: few
/// points have to be seen singly, and many show their density.
const POINTS: [(f64, f64); 2] = [(0.002, 5.), (0.1, 3.)];

/// Empty if the array is missing.
pub(super) fn numbers(frame: &Frame, name: &str) -> Vec<f64> {
    let array = frame.array(name);
    let count = array.map_or(0, |array| array.shape.iter().product());
    (0..count).filter_map(|index| array.and_then(|array| array.numbers.get(index))).collect()
}

impl Panel {
    pub(super) fn new(frame: Frame, source: &Path) -> Self {
        let source = source.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        Panel { frame, source }
    }

    pub(super) fn title(&self) -> String {
        match self.source.as_str() {
            "" => self.frame.plot.title.clone(),
            source => format!("{} - {source}", self.frame.plot.title),
        }
    }

    /// Text below the title: column, kind of average, and the selection.
    pub(super) fn note(&self) -> String {
        let plot = &self.frame.plot;
        match plot.selection["column"].as_str() {
            Some(column) => format!("{column}: {}", plot.note),
            None => plot.note.clone(),
        }
    }

    /// `None` if the panel shows lines or points.
    pub(super) fn raster(&self) -> Option<Raster> {
        let (raster, z) = (self.frame.array("raster")?, self.frame.plot.z.as_ref()?);
        let (low, high) = (z.low.flatten().unwrap_or(0.), z.high.flatten().unwrap_or(1.));
        let (x, y) = (numbers(&self.frame, "x"), numbers(&self.frame, "y"));
        let (mut lines, mut columns) = (raster.shape[0], raster.shape[1]);
        if x.len() != columns + 1 || y.len() != lines + 1 {
            (lines, columns) = (0, 0);
        }
        Some(Raster {
            values: numbers(&self.frame, "raster"),
            lines,
            columns,
            x,
            y,
            z: z.clone(),
            is_log_y: self.frame.plot.y.scale == "log",
            flagged: numbers(&self.frame, "flagged"),
            low,
            high,
            is_log: z.scale == "log" && low > 0.,
            // places without points are empty
            is_count: matches!(raster.numbers, Numbers::U32(_)),
        })
    }
}

/// Every `each`-th of these edges, and the last one.
fn thinned(edges: &[f64], each: usize) -> Vec<f64> {
    let last = edges.len().saturating_sub(1);
    (0..last).step_by(each).chain([last]).filter_map(|at| edges.get(at).copied()).collect()
}

impl Raster {
    /// Several cells in one pixel of this area become one with their largest value; points are at
    /// least as large as `POINTS` says if `enlarges`.
    pub(super) fn fit(&mut self, (width, height): (f64, f64), enlarges: bool) {
        if !self.is_count || self.lines == 0 || self.columns == 0 {
            return;
        }
        let each = |cells: usize, pixels: f64| cells.div_ceil((pixels as usize).max(1));
        let (across, up) = (each(self.columns, width), each(self.lines, height));
        if across > 1 || up > 1 {
            let (lines, columns) = (self.lines.div_ceil(up), self.columns.div_ceil(across));
            let mut found = vec![0f64; lines * columns];
            for (at, &value) in self.values.iter().enumerate() {
                let place = &mut found[at / self.columns / up * columns + at % self.columns / across];
                *place = place.max(value);
            }
            (self.x, self.y) = (thinned(&self.x, across), thinned(&self.y, up));
            (self.values, self.lines, self.columns) = (found, lines, columns);
        }
        let filled = self.values.iter().filter(|&&value| value > 0.).count() as f64 / self.values.len() as f64;
        let size = POINTS.into_iter().find(|(part, _)| filled < *part && enlarges).map_or(0., |(_, size)| size);
        let reach = |cells: usize, pixels: f64| ((size * cells as f64 / pixels - 1.) / 2.).ceil().max(0.) as usize;
        self.enlarge(reach(self.columns, width), reach(self.lines, height));
    }

    /// Gives each cell the largest value of those at most `across` columns and `up` lines away.
    fn enlarge(&mut self, across: usize, up: usize) {
        let mut found = vec![0f64; self.values.len()];
        for (at, &value) in self.values.iter().enumerate().filter(|(_, value)| **value > 0.) {
            let (line, column) = (at / self.columns, at % self.columns);
            for line in line.saturating_sub(up)..(line + up + 1).min(self.lines) {
                for column in column.saturating_sub(across)..(column + across + 1).min(self.columns) {
                    let place = &mut found[line * self.columns + column];
                    *place = place.max(value);
                }
            }
        }
        self.values = found;
    }

    /// Index of the column that each pixel of an image shows, which is `width` pixels wide.
    pub(super) fn columns_at(&self, width: f64) -> Vec<usize> {
        places(&self.x, width)
    }

    /// Lines count from below.
    pub(super) fn lines_at(&self, height: f64) -> Vec<usize> {
        match self.is_log_y {
            true => places(&self.y.iter().map(|edge| edge.log10()).collect::<Vec<_>>(), height),
            false => places(&self.y, height),
        }
    }

    fn at(&self, line: usize, column: usize) -> f64 {
        self.values.get(line * self.columns + column).copied().unwrap_or(f64::NAN)
    }

    fn is_nothing(&self, value: f64) -> bool {
        value.is_nan() || self.is_count && value == 0.
    }

    pub(super) fn colour(&self, line: usize, column: usize) -> Colour {
        match self.at(line, column) {
            value if self.is_nothing(value) => match self.flagged.get(line * self.columns + column) {
                Some(1.) => FLAGGED,
                _ if self.is_count => PAPER,
                _ => NOTHING,
            },
            value => palette::scale(self.fraction(value)),
        }
    }

    /// A position on the scale of colours, from 0 to 1.
    pub(super) fn fraction(&self, value: f64) -> f64 {
        let scaled = |value: f64| if self.is_log { value.log10() } else { value };
        match (self.high > self.low, self.is_log && value <= 0.) {
            (_, true) => 0.,
            (true, _) => (scaled(value) - scaled(self.low)) / (scaled(self.high) - scaled(self.low)),
            (false, _) => {
                if value > self.high {
                    1.
                } else {
                    0.
                }
            }
        }
    }

    pub(super) fn z_axis(&self) -> Axis {
        let mut axis = self.z.clone();
        axis.scale = if self.is_log { "log" } else { "linear" };
        axis
    }

    /// The inverse of [`Self::fraction`].
    pub(super) fn value(&self, fraction: f64) -> f64 {
        match self.is_log {
            true => self.low * (self.high / self.low).powf(fraction),
            false => self.low + (self.high - self.low) * fraction,
        }
    }

    fn any(&self, wanted: Colour) -> bool {
        (0..self.lines).any(|line| (0..self.columns).any(|column| self.colour(line, column) == wanted))
    }

    pub(super) fn has_flagged(&self) -> bool {
        self.flagged.contains(&1.) && self.any(FLAGGED)
    }

    pub(super) fn has_nothing(&self) -> bool {
        !self.is_count && self.any(NOTHING)
    }
}

/// Cell that each pixel shows, along one axis. The image has one pixel for each cell if all cells
/// have the same size, else `pixels` pixels.
fn places(edges: &[f64], pixels: f64) -> Vec<usize> {
    let cells = edges.len().saturating_sub(1);
    let (first, last) = (edges.first().copied().unwrap_or(0.), edges.last().copied().unwrap_or(0.));
    let each = (last - first) / cells.max(1) as f64;
    let is_even = |(number, edge): (usize, &f64)| (edge - first - number as f64 * each).abs() <= 1e-3 * each.abs();
    if edges.iter().enumerate().all(is_even) {
        return (0..cells).collect();
    }
    let count = (pixels as usize).max(1);
    let value = |pixel: usize| first + (last - first) * (pixel as f64 + 0.5) / count as f64;
    let is_descending = last < first;
    let place = |value: f64| {
        edges.partition_point(|&edge| if is_descending { edge >= value } else { edge <= value }).max(1) - 1
    };
    (0..count).map(|pixel| place(value(pixel)).min(cells.saturating_sub(1))).collect()
}

/// The finite points of line `number` of the frame, in runs: a line joins the points of a run.
pub(super) fn runs(frame: &Frame, (x, y): (&[f64], &[f64]), number: usize) -> Vec<Vec<(f64, f64)>> {
    let segments = frame.array("segment");
    let segment = |at: usize| segments.and_then(|array| array.numbers.get(number * x.len() + at));
    let mut found: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut before = None;
    for (at, &place) in x.iter().enumerate() {
        let Some(&value) = y.get(number * x.len() + at).filter(|value| value.is_finite()) else { continue };
        match found.last_mut().filter(|_| before == Some(segment(at))) {
            Some(run) => run.push((place, value)),
            None => found.push(vec![(place, value)]),
        }
        before = Some(segment(at));
    }
    found
}

/// The rectangle of x and y values that a plot of lines or points shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// The smallest x value of the data; times on the x axis are shown relative to it.
    pub(super) first: f64,
}

impl View {
    /// Fractions of the width from the left edge and of the height from the lower edge.
    pub(super) fn fractions(&self, x: f64, y: f64) -> (f64, f64) {
        let up = (y - self.low) / (self.high - self.low);
        ((x - self.left) / (self.right - self.left), up.clamp(0., 1.))
    }
}

/// Part of the values that rounding to 32 bits and sums may change.
const NOISE: f64 = 1e-6;

/// Phases within this many degrees are equal.
const LEAST_DEGREES: f64 = 1e-3;

/// The smallest and the largest finite value.
fn ends(list: &[f64]) -> Option<(f64, f64)> {
    let finite = list.iter().copied().filter(|value| value.is_finite());
    finite.fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    })
}

pub(super) trait Axes {
    /// Whether one unit has the same length on both axes, as in a plot of u and v.
    fn has_equal_axes(&self) -> bool;
    /// Whether points stand alone, without lines between them.
    fn is_scatter(&self) -> bool;
    /// Whether lines join points; phases are points, which no line joins through a wrap.
    fn joins_points(&self) -> bool;
    /// The rectangle that contains all points, and on axes of numbers of rows nothing else; `None`
    /// without finite values.
    fn view(&self, x: &[f64], y: &[f64]) -> Option<View>;
}

impl Axes for Plot {
    fn has_equal_axes(&self) -> bool {
        matches!(self.kind, "uv" | "antennas") || self.kind == "image" && self.x.unit == self.y.unit
    }

    fn is_scatter(&self) -> bool {
        self.kind == "antennas"
    }

    fn joins_points(&self) -> bool {
        !self.is_scatter() && self.y.label != "phase"
    }

    fn view(&self, x: &[f64], y: &[f64]) -> Option<View> {
        let is_point = |at: usize| y.iter().skip(at).step_by(x.len().max(1)).any(|value| value.is_finite());
        let places: Vec<f64> = match self.kind {
            "xy" => x.iter().enumerate().filter(|(at, _)| is_point(*at)).map(|(_, &place)| place).collect(),
            _ => x.to_vec(),
        };
        let ((first, last), (low, high)) = (ends(&places)?, ends(y)?);
        let wide = |low: f64, high: f64, part: f64, least: f64| match high - low {
            span if span > least => (low - part * span, high + part * span),
            // one value, but for the noise of rounding
            _ => (low - 0.5, high + 0.5),
        };
        let ((left, right), (low, high)) = if self.is_scatter() {
            let half = ((last - first).max(high - low) / 2.).max(0.5) * 1.12;
            let (x, y) = ((first + last) / 2., (low + high) / 2.);
            ((x - half, x + half), (y - half, y + half))
        } else {
            let across =
                if self.x.scale == "category" { (first - 0.6, last + 0.6) } else { wide(first, last, 0.01, 0.) };
            let up = match self.y.unit.as_str() {
                "%" => (0., (1.05 * high).clamp(1., 100.)),
                "deg" if high - low > 180. => (-190., 190.),
                "deg" if high - low < LEAST_DEGREES => (low - 1., high + 1.),
                _ => wide(low, high, 0.05, NOISE * low.abs().max(high.abs())),
            };
            (across, up)
        };
        Some(View { left, right, low, high, first })
    }
}
