//! Makes plots (axes and arrays of numbers) from the sums that were accumulated over the rows of a table, with one
//! function for each kind of plot.

use super::accumulate::{Accumulator, Flags, LIGHT, OCTAVE, Part, State, Sum, UNITY};
use super::bins::{MAP, Times};
use super::describe::Description;
use super::fold::Fold;
use super::frame::{Array, Axis, Frame, Numbers, Plot};
use super::request::{Average, Kind, Quantity, Request, Statistic};
use super::selection::{Baselines, Selection};

/// State of the plotted table that is reported with a plot: revision (number of changes seen), number of rows, whether
/// cells were overwritten (`stale`), and whether reading has stopped at its limit of bytes (`stopped`).
pub(super) struct Progress {
    pub(super) session: u64,
    pub(super) revision: u64,
    pub(super) rows: u64,
    pub(super) stale: bool,
    pub(super) stopped: bool,
}

/// Axes and arrays of a plot while it is being made.
struct Drawing {
    x: Axis,
    y: Axis,
    z: Option<Axis>,
    series: Option<Vec<String>>,
    arrays: Vec<Array>,
}

pub(super) fn frame(request: &Request, fold: &Fold, known: &Description, progress: &Progress) -> Frame {
    let maker = Maker::new(request, fold, known);
    let Drawing { x, y, z, series, arrays } = maker.draw();
    let plot = Plot {
        kind: request.kind.name(),
        title: maker.title(),
        note: maker.note(),
        revision: progress.revision,
        rows: progress.rows,
        rows_used: fold.rows_used,
        complete: fold.is_complete(),
        stopped: progress.stopped,
        stale: progress.stale,
        selection: fold.selection.to_json(request, known, &maker.correlations()),
        x,
        y,
        z,
        series,
    };
    Frame { plot, arrays, session: progress.session }
}

struct Maker<'a> {
    request: &'a Request,
    selection: &'a Selection,
    sums: &'a Accumulator,
    known: &'a Description,
}

impl<'a> Maker<'a> {
    fn new(request: &'a Request, fold: &'a Fold, known: &'a Description) -> Self {
        Maker { request, selection: &fold.selection, sums: &fold.sums, known }
    }

    /// Names of the correlations in the plot; before any row is read, those that are expected from the selection and the
    /// subtables.
    fn correlations(&self) -> Vec<String> {
        let window = self.selection.spw.and_then(|spw| self.known.window(spw));
        let names = window.map_or(&[][..], |window| &window.correlations);
        let numbers = match &self.sums.part {
            Some(part) => part.correlations.clone(),
            None => self.selection.correlations(self.sums.sums, names, names.len()),
        };
        let name = |number: usize| names.get(number).cloned().unwrap_or_else(|| number.to_string());
        numbers.into_iter().map(name).collect()
    }

    fn unit(&self) -> &str {
        let at = self.known.columns.iter().position(|column| *column == self.selection.column);
        at.and_then(|at| self.known.units.get(at)).map_or("", String::as_str)
    }

    /// Axis of the plotted quantity, with its name, unit and scale (logarithmic for amplitudes).
    fn quantity_axis(&self) -> Axis {
        match self.request.quantity {
            Quantity::Amp => Axis::new("amplitude", self.unit(), "log"),
            Quantity::Phase => Axis::new("phase", "deg", "linear"),
            Quantity::Real => Axis::new("real part", self.unit(), "linear"),
            Quantity::Imag => Axis::new("imaginary part", self.unit(), "linear"),
            Quantity::Flagged => Axis::new("flagged", "%", "linear"),
        }
    }

    fn title(&self) -> String {
        let quantity = match (self.request.quantity, self.request.statistic) {
            (Quantity::Amp, Statistic::Max) => "Largest amplitude",
            (Quantity::Amp, _) => "Amplitude",
            (Quantity::Phase, _) => "Phase",
            (Quantity::Real, _) => "Real part",
            (Quantity::Imag, _) => "Imaginary part",
            (Quantity::Flagged, _) => "Flagged",
        };
        match self.request.kind {
            Kind::Waterfall => quantity.to_owned(),
            Kind::AmpTime | Kind::PhaseTime => format!("{quantity} against time"),
            Kind::Spectrum => format!("{quantity} against frequency"),
            Kind::AmpUvdist => "Amplitude against uv distance".to_owned(),
            Kind::PhaseUvdist => "Phase against uv distance".to_owned(),
            Kind::Uv => "uv coverage".to_owned(),
            Kind::Antennas => "Antennas".to_owned(),
            Kind::FlagAntenna => "Flagged, by antenna".to_owned(),
            Kind::FlagChannel => "Flagged, by channel".to_owned(),
            Kind::FlagTime => "Flagged, by time".to_owned(),
            Kind::Baselines => format!("{quantity}, by baseline"),
        }
    }

    fn note(&self) -> String {
        let pairs = match &self.selection.baselines {
            Baselines::Cross => "cross baselines".to_owned(),
            Baselines::Auto => "autocorrelations".to_owned(),
            Baselines::All if self.known.is_calibration => match &self.selection.antennas[..] {
                [] => "all antennas".to_owned(),
                [antenna] => usize::try_from(*antenna).map_or(String::new(), |number| self.known.antenna(number)),
                antennas => format!("{} antennas", antennas.len()),
            },
            Baselines::All => "all baselines".to_owned(),
            Baselines::Pairs(pairs) if pairs.len() == 1 => {
                let name =
                    |number: i64| usize::try_from(number).map_or(String::new(), |number| self.known.antenna(number));
                format!("baseline {}-{}", name(pairs[0].0), name(pairs[0].1))
            }
            Baselines::Pairs(pairs) => format!("{} baselines", pairs.len()),
        };
        let chosen = self.chosen();
        let average = match (self.request.quantity, self.request.statistic, self.request.average) {
            (Quantity::Flagged, ..) => "",
            (Quantity::Amp, Statistic::Max, _) => "largest of ",
            (Quantity::Amp, _, Average::Scalar) => "mean of ",
            _ => "vector mean of ",
        };
        let correlations = self.correlations().join(", ");
        let mut note = match self.request.kind {
            Kind::AmpUvdist | Kind::PhaseUvdist => format!("points of {pairs}, {correlations}"),
            Kind::Uv => format!("points of {pairs}, with conjugates"),
            Kind::Spectrum if self.request.time == (None, None) => format!("newest integration, {average}{pairs}"),
            Kind::AmpTime | Kind::PhaseTime | Kind::Spectrum => format!("{average}{pairs}"),
            _ => format!("{average}{pairs}, {correlations}"),
        };
        note.push_str(&chosen);
        if self.sums.part.is_none() {
            note.push_str("; no row is selected");
            if self.selection.baselines == Baselines::Cross {
                note.push_str(" (baseline=auto shows autocorrelations)");
            }
        } else if self.sums.part.as_ref().is_some_and(|part| part.correlations.is_empty() || part.channels.is_empty()) {
            note.push_str("; no correlation or channel is selected");
        }
        if self.sums.misfits > 0 {
            note.push_str(&format!("; {} rows with cells of another shape are left out", self.sums.misfits));
        }
        if self.sums.unshown > 0 {
            note.push_str(&format!("; {} rows of antennas beyond 1023 are left out", self.sums.unshown));
        }
        note
    }

    /// The antennas, fields and spectral window that were chosen, for the note of the picture.
    fn chosen(&self) -> String {
        let label = |number: &i64, of: &dyn Fn(usize) -> String| usize::try_from(*number).map_or(String::new(), of);
        let list = |what: &str, numbers: &[i64], of: &dyn Fn(usize) -> String| match numbers {
            [] => String::new(),
            [one] => format!("; {what} {}", label(one, of)),
            [first, .., last] => format!("; {} {what}s, {} to {}", numbers.len(), label(first, of), label(last, of)),
        };
        // the note of a calibration table names its antennas itself
        let antennas = if self.known.is_calibration { &[][..] } else { &self.selection.antennas[..] };
        let window = self.request.spw.as_ref().and(self.selection.spw);
        let window = window.map_or(String::new(), |id| {
            let name = self.known.window(id).map_or("", |window| &window.name);
            format!("; spectral window {}", if name.is_empty() { format!("#{id}") } else { format!("{name} (#{id})") })
        });
        let antennas = list("antenna", antennas, &|number| self.known.antenna(number));
        antennas + &list("field", &self.selection.fields, &|number| self.known.field(number)) + &window
    }

    fn draw(&self) -> Drawing {
        let empty = Part::default();
        let part = self.sums.part.as_ref().unwrap_or(&empty);
        match (&self.sums.state, self.request.kind) {
            (Some(State::Amplitudes(times)), _) => self.raster(times, part, |sum| match self.request.statistic {
                _ if sum.count == 0 => f32::NAN,
                Statistic::Max => sum.max,
                Statistic::Mean => (sum.sum / f64::from(sum.count)) as f32,
            }),
            (Some(State::Vectors(times)), _) => {
                self.raster(times, part, |sum| self.complex(sum.re, sum.im, u64::from(sum.count)))
            }
            (Some(State::Flagged(times)), Kind::Waterfall) => self.raster(times, part, percent),
            (Some(State::Flagged(times)), _) => {
                let y = times.iter().map(|sums| percent(&sums[0])).collect();
                flag_lines(time_axis(), times.starts(), y)
            }
            (Some(State::Series(times)), _) => self.series(times),
            (Some(State::Spectrum { sums, .. }), _) => self.spectrum(sums, part),
            (Some(State::UvDistance { map, reach }), _) => {
                let by_phase = self.request.kind == Kind::PhaseUvdist;
                let is_shown = |&line: &usize| by_phase || map.line(line).iter().any(|&count| count > 0);
                let lines: Vec<usize> = (0..MAP).filter(is_shown).collect();
                let lines =
                    lines.first().map_or(UNITY..UNITY, |&first| first..lines.last().map_or(first, |last| last + 1));
                let columns = (0..MAP).rev().find(|&column| lines.clone().any(|line| map.line(line)[column] > 0));
                let columns = columns.map_or(0, |column| column + 1);
                let raster = lines.clone().flat_map(|line| map.line(line)[..columns].to_vec()).collect();
                let x = (0..=columns).map(|column| reach * column as f64 / MAP as f64).collect();
                let edge = |line: usize| match by_phase {
                    true => (line as f64 / MAP as f64 - 0.5) * 360.,
                    false => (line as f64 - UNITY as f64) / OCTAVE,
                };
                let y = (lines.start..=lines.end).map(edge).collect();
                let has_frequencies = self.window_frequencies().is_some();
                let unit = if has_frequencies { "kλ" } else { "m" };
                let amplitude = format!("log2 amplitude{}", unit_in_words(self.unit()));
                let y_axis = match by_phase {
                    true => Axis::new("phase", "deg", "linear"),
                    false => Axis::new(&amplitude, "", "linear"),
                };
                points(Axis::new("uv distance", unit, "linear"), y_axis, raster, x, y)
            }
            (Some(State::Uv { map, reach }), _) => {
                let (scale, unit) = self.uv_scale();
                let edge = |place: usize| (place as f64 / (MAP / 2) as f64 - 1.) * reach * scale;
                let edges: Vec<f64> = (0..=MAP).map(edge).collect();
                let raster = (0..MAP).flat_map(|line| map.line(line).to_vec()).collect();
                let (x, y) = (Axis::new("u", unit, "linear"), Axis::new("v", unit, "linear"));
                points(x, y, raster, edges.clone(), edges)
            }
            (Some(State::List(list)), Kind::FlagChannel) => {
                let (axis, x, order) = self.channel_centres(part);
                flag_lines(axis, x, order.into_iter().map(|place| percent(&list[place])).collect())
            }
            (Some(State::List(list)), _) => {
                let count = list.len().max(self.known.antennas.len());
                let names = (0..count).map(|number| self.known.antenna(number)).collect();
                let y = (0..count).map(|number| list.get(number).map_or(f32::NAN, percent)).collect();
                flag_lines(Axis::named("antenna", names), (0..count).map(|number| number as f64).collect(), y)
            }
            (Some(State::Pairs(list)), _) => self.pairs(list.len(), |number| {
                let Some(sum) = list.get(number).filter(|sum| sum.count > 0) else { return f32::NAN };
                match (self.request.quantity, self.request.statistic, self.request.average) {
                    (Quantity::Amp, Statistic::Max, _) => sum.high[0],
                    (Quantity::Amp, _, Average::Scalar) => (sum.amplitude / sum.count as f64) as f32,
                    _ => self.complex(sum.re, sum.im, sum.count),
                }
            }),
            (Some(State::PairFlags(list)), _) => {
                self.pairs(list.len(), |number| list.get(number).map_or(f32::NAN, percent))
            }
            (None, Kind::Waterfall | Kind::AmpUvdist | Kind::PhaseUvdist | Kind::Uv | Kind::Baselines) => Drawing {
                x: Axis::new("", "", "linear"),
                y: Axis::new("", "", "linear"),
                z: Some(Axis { low: Some(None), high: Some(None), ..self.quantity_axis() }),
                series: None,
                arrays: vec![
                    Array::new("raster", [0, 0], Numbers::F32(Vec::new())),
                    Array::new("x", [1], Numbers::F64(vec![0.])),
                    Array::new("y", [1], Numbers::F64(vec![0.])),
                ],
            },
            (None, _) => Drawing {
                x: Axis::new("", "", "linear"),
                y: self.quantity_axis(),
                z: None,
                series: Some(Vec::new()),
                arrays: vec![
                    Array::new("x", [0], Numbers::F64(Vec::new())),
                    Array::new("y", [0, 0], Numbers::F32(Vec::new())),
                ],
            },
        }
    }

    /// The plotted quantity of the mean of `count` visibilities whose sum is `re` + i `im`: phase in degrees, or amplitude,
    /// real or imaginary part in the unit of the data; NaN if `count` is 0.
    fn complex(&self, re: f64, im: f64, count: u64) -> f32 {
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

    fn window_frequencies(&self) -> Option<(&[f64], &[f64])> {
        let window = self.selection.spw.and_then(|spw| self.known.window(spw))?;
        (!window.frequencies.is_empty()).then_some((&window.frequencies[..], &window.widths[..]))
    }

    /// Frequencies and widths in MHz of the channels that a plot uses (selected by `part`); `None` if the frequencies
    /// are unknown, or neither ascending nor descending.
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

    /// Frequency axis in MHz of the channels that a plot uses, or axis of channel numbers (from 0)
    /// if frequencies are unknown or unordered. Also the edges of its bins, ascending, and for each
    /// bin in this order the index (from 0) of its element in the list of sums by frequency bin,
    /// which is in the order of the channels.
    fn channel_edges(&self, part: &Part) -> (Axis, Vec<f64>, Vec<usize>) {
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

    /// Frequency axis in MHz of the channels that a plot uses, or axis of channel numbers (from 0)
    /// if frequencies are unknown or unordered. Also the centres of its bins, ascending, and for
    /// each bin in this order the index (from 0) of its element in the list of sums by frequency
    /// bin, which is in the order of the channels.
    fn channel_centres(&self, part: &Part) -> (Axis, Vec<f64>, Vec<usize>) {
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

    fn raster<T: super::bins::Merge>(&self, times: &Times<T>, part: &Part, value: impl Fn(&T) -> f32) -> Drawing {
        let (x, edges, places) = self.channel_edges(part);
        let is_empty = part.correlations.is_empty() || places.is_empty();
        let width = if is_empty { 0 } else { places.len() };
        let rows = if is_empty { 0 } else { times.len() };
        let sums = times.iter().take(rows);
        let raster: Vec<f32> =
            sums.flat_map(|sums| places.iter().map(|&place| value(&sums[place])).collect::<Vec<_>>()).collect();
        let z = with_ends(self.quantity_axis(), &raster);
        Drawing {
            x,
            y: time_axis(),
            z: Some(z),
            series: None,
            arrays: vec![
                Array::new("raster", [rows, width], Numbers::F32(raster)),
                Array::new("x", [width + 1], Numbers::F64(if is_empty { vec![0.] } else { edges })),
                Array::new("y", [rows + 1], Numbers::F64(if is_empty { vec![0.] } else { times.edges() })),
            ],
        }
    }

    /// Makes a plot of one line for each correlation. `sums` has, for each bin along `x`, the sums of the visibilities
    /// of each correlation; `places` is the position of each bin on the axis `x`. The lines show means (or maxima) and,
    /// except for phases, the smallest and largest value.
    fn lines(&self, x: Axis, places: Vec<f64>, sums: &[&[Sum]]) -> Drawing {
        let series = self.correlations();
        let with = |value: &dyn Fn(&Sum) -> f32| -> Vec<f32> {
            let line = |number: usize| sums.iter().map(move |sums| value(&sums[number])).collect::<Vec<_>>();
            (0..series.len()).flat_map(line).collect()
        };
        let shape = [series.len(), places.len()];
        let part = match self.request.quantity {
            Quantity::Amp => Some(0),
            Quantity::Real => Some(1),
            Quantity::Imag => Some(2),
            _ => None,
        };
        let extreme = |value: f32| if value.is_finite() { value } else { f32::NAN };
        let y = with(&|sum| match (self.request.quantity, self.request.statistic, self.request.average) {
            _ if sum.count == 0 => f32::NAN,
            (Quantity::Amp, Statistic::Max, _) => sum.high[0],
            (Quantity::Amp, _, Average::Scalar) => (sum.amplitude / sum.count as f64) as f32,
            _ => self.complex(sum.re, sum.im, sum.count),
        });
        let mut arrays =
            vec![Array::new("x", [places.len()], Numbers::F64(places)), Array::new("y", shape, Numbers::F32(y))];
        if let Some(part) = part {
            arrays.push(Array::new("low", shape, Numbers::F32(with(&|sum| extreme(sum.low[part])))));
            arrays.push(Array::new("high", shape, Numbers::F32(with(&|sum| extreme(sum.high[part])))));
        }
        if self.request.kind == Kind::Spectrum && self.request.quantity == Quantity::Amp {
            let phase = |sum: &Sum| match sum.count {
                0 => f32::NAN,
                _ => sum.im.atan2(sum.re).to_degrees() as f32,
            };
            arrays.push(Array::new("phase", shape, Numbers::F32(with(&phase))));
        }
        let y = Axis { scale: "linear", ..self.quantity_axis() };
        Drawing { x, y, z: None, series: Some(series), arrays }
    }

    fn series(&self, times: &Times<Sum>) -> Drawing {
        let sums: Vec<&[Sum]> = times.iter().collect();
        self.lines(time_axis(), times.starts(), &sums)
    }

    fn spectrum(&self, sums: &[Sum], part: &Part) -> Drawing {
        let (x, centres, places) = self.channel_centres(part);
        let count = part.correlations.len();
        let sums: Vec<&[Sum]> = places.into_iter().map(|place| &sums[place * count..(place + 1) * count]).collect();
        self.lines(x, centres, &sums)
    }

    /// Makes a symmetric image of antenna against antenna. `value` returns the plotted value of the baseline of
    /// antennas a and b (a <= b) for the index b (b + 1) / 2 + a; `pairs` is the number of indices with sums.
    fn pairs(&self, pairs: usize, value: impl Fn(usize) -> f32) -> Drawing {
        let seen = (0..).find(|antenna| antenna * (antenna + 1) / 2 >= pairs).unwrap_or(0);
        let count = seen.max(self.known.antennas.len().min(1024));
        let cell = |first: usize, second: usize| {
            let (low, high) = (first.min(second), first.max(second));
            value(high * (high + 1) / 2 + low)
        };
        let raster: Vec<f32> =
            (0..count).flat_map(|y| (0..count).map(move |x| (y, x))).map(|(y, x)| cell(y, x)).collect();
        let edges: Vec<f64> = (0..=count).map(|antenna| antenna as f64 - 0.5).collect();
        let names: Vec<String> = (0..count).map(|antenna| self.known.antenna(antenna)).collect();
        Drawing {
            x: Axis::named("antenna", names.clone()),
            y: Axis::named("antenna", names),
            z: Some(with_ends(self.quantity_axis(), &raster)),
            series: None,
            arrays: vec![
                Array::new("raster", [count, count], Numbers::F32(raster)),
                Array::new("x", [count + 1], Numbers::F64(edges.clone())),
                Array::new("y", [count + 1], Numbers::F64(edges)),
            ],
        }
    }

    /// Factor from metres to the unit of the u and v axes, and the name of the unit: kλ at the centre frequency if the
    /// request asks for it, otherwise m.
    fn uv_scale(&self) -> (f64, &'static str) {
        match self.window_frequencies().filter(|_| self.request.kilowavelengths) {
            Some((frequencies, _)) => {
                let extreme = |extreme: fn(f64, f64) -> f64| frequencies.iter().copied().reduce(extreme).unwrap_or(0.);
                ((extreme(f64::min) + extreme(f64::max)) / 2. / LIGHT / 1e3, "kλ")
            }
            None => (1., "m"),
        }
    }
}

fn time_axis() -> Axis {
    Axis::new("time", "UTC", "time")
}

fn unit_in_words(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" ({unit})") }
}

fn percent(flags: &Flags) -> f32 {
    if flags.all == 0 { f32::NAN } else { (100. * flags.flagged as f64 / flags.all as f64) as f32 }
}

fn flag_lines(axis: Axis, x: Vec<f64>, y: Vec<f32>) -> Drawing {
    Drawing {
        x: axis,
        y: Axis::new("flagged", "%", "linear"),
        z: None,
        series: Some(vec!["flagged".to_owned()]),
        arrays: vec![Array::new("x", [x.len()], Numbers::F64(x)), Array::new("y", [1, y.len()], Numbers::F32(y))],
    }
}

/// Makes an image of a two-dimensional histogram: `raster` is the number of points in each bin, x fastest; `x` and `y`
/// are the edges of the bins.
fn points(x_axis: Axis, y_axis: Axis, raster: Vec<u32>, x: Vec<f64>, y: Vec<f64>) -> Drawing {
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

/// Makes the axis a colour scale, whose ends are the 0.5 % and the 99.5 % quantile of the finite values.
pub(super) fn with_ends(axis: Axis, values: &[f32]) -> Axis {
    let mut finite: Vec<f32> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let mut quantile = |fraction: f64| {
        let at = ((finite.len().checked_sub(1)? as f64) * fraction).round() as usize;
        Some(f64::from(*finite.select_nth_unstable_by(at, f32::total_cmp).1))
    };
    let (low, high) = (quantile(0.005), quantile(0.995));
    Axis { low: Some(low), high: Some(high), ..axis }
}
