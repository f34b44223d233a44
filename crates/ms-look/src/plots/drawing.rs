//! Axes and arrays that several kinds of plots have.

use crate::describe::Description;
use crate::frame::{Array, Axis, Numbers};
use crate::part::{Part, Sum};
use crate::request::{Average, Quantity, Request, Statistic};
use crate::selection::Selection;

/// Speed of light in metres per second.
pub(super) const LIGHT: f64 = 299_792_458.;

pub(crate) struct Drawing {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) z: Option<Axis>,
    pub(super) series: Option<Vec<String>>,
    pub(super) arrays: Vec<Array>,
}

impl Drawing {
    pub(super) fn empty_image(quantity: Axis) -> Self {
        Drawing {
            x: Axis::new("", "", "linear"),
            y: Axis::new("", "", "linear"),
            z: Some(Axis { low: Some(None), high: Some(None), ..quantity }),
            series: None,
            arrays: vec![
                Array::new("raster", [0, 0], Numbers::F32(Vec::new())),
                Array::new("x", [1], Numbers::F64(vec![0.])),
                Array::new("y", [1], Numbers::F64(vec![0.])),
            ],
        }
    }

    pub(super) fn empty_lines(quantity: Axis) -> Self {
        Drawing {
            x: Axis::new("", "", "linear"),
            y: quantity,
            z: None,
            series: Some(Vec::new()),
            arrays: vec![
                Array::new("x", [0], Numbers::F64(Vec::new())),
                Array::new("y", [0, 0], Numbers::F32(Vec::new())),
                Array::new("segment", [0, 0], Numbers::U32(Vec::new())),
            ],
        }
    }
}

/// The source of a plot, besides its sums.
pub(crate) struct Maker<'a> {
    pub(super) request: &'a Request,
    pub(super) selection: &'a Selection,
    pub(super) known: &'a Description,
    /// Indices of the plotted correlations in a cell.
    pub(super) correlations: Vec<usize>,
}

impl Maker<'_> {
    pub(super) fn correlations(&self) -> Vec<String> {
        let window = self.selection.spw.and_then(|spw| self.known.window(spw));
        let names = window.map_or(&[][..], |window| &window.correlations);
        let name = |&number: &usize| names.get(number).cloned().unwrap_or_else(|| number.to_string());
        self.correlations.iter().map(name).collect()
    }

    pub(super) fn unit(&self) -> &str {
        let at = self.known.columns.iter().position(|column| *column == self.selection.column);
        at.and_then(|at| self.known.units.get(at)).map_or("", String::as_str)
    }

    /// Logarithmic for amplitudes.
    pub(super) fn quantity_axis(&self) -> Axis {
        match self.request.quantity {
            Quantity::Amp => Axis::new("amplitude", self.unit(), "log"),
            Quantity::Phase => Axis::new("phase", "deg", "linear"),
            Quantity::Real => Axis::new("real part", self.unit(), "linear"),
            Quantity::Imag => Axis::new("imaginary part", self.unit(), "linear"),
            Quantity::Flagged => Axis::new("flagged", "%", "linear"),
        }
    }

    /// Plotted quantity of the mean, or the maximum, of a bin; NaN if it is empty.
    pub(super) fn value(&self, sum: &Sum) -> f32 {
        match (self.request.quantity, self.request.statistic, self.request.average) {
            _ if sum.count == 0 => f32::NAN,
            (Quantity::Amp, Statistic::Max, _) => sum.high[0],
            (Quantity::Amp, _, Average::Scalar) => (sum.amplitude / sum.count as f64) as f32,
            _ => self.complex(sum.re, sum.im, sum.count),
        }
    }

    /// Plotted quantity of the mean of `count` visibilities with the sum `re` + i `im`, in degrees
    /// or in the unit of the data; NaN if `count` is 0.
    pub(super) fn complex(&self, re: f64, im: f64, count: u64) -> f32 {
        let (re, im) = (re / count as f64, im / count as f64);
        let value = match self.request.quantity {
            _ if count == 0 => f64::NAN,
            Quantity::Phase => im.atan2(re).to_degrees(),
            Quantity::Real => re,
            Quantity::Imag => im,
            Quantity::Amp | Quantity::Flagged => re.hypot(im),
        };
        value as f32
    }

    /// Frequencies and widths in Hz; `None` if they are unknown.
    pub(super) fn window_frequencies(&self) -> Option<(&[f64], &[f64])> {
        let window = self.selection.spw.and_then(|spw| self.known.window(spw))?;
        (!window.frequencies.is_empty()).then_some((&window.frequencies[..], &window.widths[..]))
    }

    /// Frequencies and widths in MHz; `None` if unknown, or neither ascending nor descending.
    fn frequencies(&self, part: &Part) -> Option<(Vec<f64>, Vec<f64>)> {
        let (frequencies, widths) = self.window_frequencies()?;
        let of_part =
            |list: &[f64]| list.get(part.channels.clone()).map(|list| list.iter().map(|hz| hz / 1e6).collect());
        let found: Vec<f64> = of_part(frequencies)?;
        let ascending = found.windows(2).all(|pair| pair[0] < pair[1]);
        let descending = found.windows(2).all(|pair| pair[0] > pair[1]);
        let is_usable = found.iter().all(|frequency| frequency.is_finite()) && (ascending || descending);
        let spacing = found.windows(2).next().map_or(1., |pair| (pair[1] - pair[0]).abs());
        let widths: Vec<f64> = of_part(widths).unwrap_or_else(|| vec![spacing; found.len()]);
        let width = |width: &f64| if width.is_finite() && *width != 0. { width.abs() } else { spacing };
        let widths = widths.iter().map(width).collect();
        (is_usable && !found.is_empty()).then_some((found, widths))
    }

    /// Axis in MHz, or of channel numbers if frequencies are unknown or unordered; edges of its
    /// bins, ascending; for each bin the index of its sums, which are in the order of the channels.
    pub(super) fn channel_edges(&self, part: &Part) -> (Axis, Vec<f64>, Vec<usize>) {
        let places: Vec<usize> = (0..part.places()).collect();
        let last = part.channels.len();
        let Some((frequencies, widths)) = self.frequencies(part) else {
            let edge = |place: usize| (part.channels.start + (place * part.each).min(last)) as f64;
            return (Axis::new("channel", "", "linear"), (0..=places.len()).map(edge).collect(), places);
        };
        let axis = Axis::new("frequency", "MHz", "linear");
        let is_descending = frequencies.first() > frequencies.last();
        let sign = if is_descending { -1. } else { 1. };
        let begin = |channel: usize| frequencies[channel] - sign * widths[channel] / 2.;
        let end = |channel: usize| frequencies[channel] + sign * widths[channel] / 2.;
        let mut edges: Vec<f64> = places.iter().map(|place| begin(place * part.each)).collect();
        edges.extend((last > 0).then(|| end(last - 1)));
        if is_descending {
            edges.reverse();
            return (axis, edges, places.into_iter().rev().collect());
        }
        (axis, edges, places)
    }

    /// As [`Self::channel_edges`], with the centres of the bins.
    pub(super) fn channel_centres(&self, part: &Part) -> (Axis, Vec<f64>, Vec<usize>) {
        let mut places: Vec<usize> = (0..part.places()).collect();
        let range = |place: usize| place * part.each..((place + 1) * part.each).min(part.channels.len());
        let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
        match self.frequencies(part) {
            Some((frequencies, _)) => {
                if frequencies.first() > frequencies.last() {
                    places.reverse();
                }
                let centres = places.iter().map(|&place| mean(&frequencies[range(place)])).collect();
                (Axis::new("frequency", "MHz", "linear"), centres, places)
            }
            None => {
                let numbers: Vec<f64> = part.channels.clone().map(|channel| channel as f64).collect();
                let centres = places.iter().map(|&place| mean(&numbers[range(place)])).collect();
                (Axis::new("channel", "", "linear"), centres, places)
            }
        }
    }

    /// The bin is fastest; `sums` has the sums of the correlations for each bin.
    pub(super) fn by_correlation(&self, sums: &[&[Sum]], value: impl Fn(&Sum) -> f32) -> Vec<f32> {
        let value = &value;
        let line = |number: usize| sums.iter().map(move |sums| value(&sums[number]));
        (0..self.correlations.len()).flat_map(line).collect()
    }

    /// One line for each correlation, of means or maxima and, except for phases, extremes. `sums`
    /// has the sums of each correlation for each bin along `x`, at `places`; a run begins at each
    /// of `starts`.
    pub(super) fn lines(&self, x: Axis, places: Vec<f64>, sums: &[&[Sum]], starts: &[bool]) -> Drawing {
        let series = self.correlations();
        let shape = [series.len(), places.len()];
        let part = match self.request.quantity {
            Quantity::Amp => Some(0),
            Quantity::Real => Some(1),
            Quantity::Imag => Some(2),
            _ => None,
        };
        let extreme = |value: f32| if value.is_finite() { value } else { f32::NAN };
        let y = self.by_correlation(sums, |sum| self.value(sum));
        let segments = segments(&y, starts);
        let mut arrays = vec![
            Array::new("x", [places.len()], Numbers::F64(places)),
            Array::new("y", shape, Numbers::F32(y)),
            Array::new("segment", shape, Numbers::U32(segments)),
        ];
        if let Some(part) = part {
            let low = self.by_correlation(sums, |sum| extreme(sum.low[part]));
            let high = self.by_correlation(sums, |sum| extreme(sum.high[part]));
            arrays.push(Array::new("low", shape, Numbers::F32(low)));
            arrays.push(Array::new("high", shape, Numbers::F32(high)));
        }
        let y = Axis { scale: "linear", ..self.quantity_axis() };
        Drawing { x, y, z: None, series: Some(series), arrays }
    }
}

pub(super) fn time_axis() -> Axis {
    Axis::new("time", "UTC", "time")
}

/// For each value of lines one after the other the number of its segment: a line joins values of
/// one segment. A segment ends before the start of a run, and at a value that is not finite.
fn segments(y: &[f32], starts: &[bool]) -> Vec<u32> {
    let mut found = Vec::with_capacity(y.len());
    for line in y.chunks(starts.len().max(1)) {
        let mut number = 0;
        for (at, &value) in line.iter().enumerate() {
            let is_start = at > 0 && (starts[at] || !value.is_finite() || !line[at - 1].is_finite());
            number += u32::from(is_start);
            found.push(number);
        }
    }
    found
}

/// One line of percentages; a run begins at each of the `starts`.
pub(super) fn flag_line(axis: Axis, x: Vec<f64>, y: Vec<f32>, starts: &[bool]) -> Drawing {
    let segments = segments(&y, starts);
    let shape = [1, y.len()];
    Drawing {
        x: axis,
        y: Axis::new("flagged", "%", "linear"),
        z: None,
        series: Some(vec!["flagged".to_owned()]),
        arrays: vec![
            Array::new("x", [x.len()], Numbers::F64(x)),
            Array::new("y", shape, Numbers::F32(y)),
            Array::new("segment", shape, Numbers::U32(segments)),
        ],
    }
}

/// `raster`: number of points in each bin, x fastest; `x` and `y`: edges of the bins.
pub(super) fn points([x_axis, y_axis]: [Axis; 2], raster: Vec<u32>, x: Vec<f64>, y: Vec<f64>) -> Drawing {
    let shape = [y.len().saturating_sub(1), x.len().saturating_sub(1)];
    let counts: Vec<f32> = raster.iter().filter(|&&count| count > 0).map(|&count| count as f32).collect();
    Drawing {
        x: x_axis,
        y: y_axis,
        z: Some(with_ends(Axis::new("points", "", "log"), &counts)),
        series: None,
        arrays: vec![
            Array::new("raster", shape, Numbers::U32(raster)),
            Array::new("x", [x.len()], Numbers::F64(x)),
            Array::new("y", [y.len()], Numbers::F64(y)),
        ],
    }
}

/// Colour scale between the 0.5 % and the 99.5 % quantile of the finite values.
pub(crate) fn with_ends(axis: Axis, values: &[f32]) -> Axis {
    let mut finite: Vec<f32> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let mut quantile = |fraction: f64| {
        let at = ((finite.len().checked_sub(1)? as f64) * fraction).round() as usize;
        Some(f64::from(*finite.select_nth_unstable_by(at, f32::total_cmp).1))
    };
    let (low, high) = (quantile(0.005), quantile(0.995));
    Axis { low: Some(low), high: Some(high), ..axis }
}
