//! Points of a quantity of the visibilities, or of a number of each row, against another number of
//! each row: the axes of the request.

use super::drawing::{Drawing, Maker};
use super::kind::{PlotKind, RowPlot, Sums, SumsKind, Words};
use crate::bins::{Merge, Times};
use crate::frame::{Array, Axis, Numbers};
use crate::part::{Flags, Part, Row, Sum};
use crate::request::{Measure, Quantity, Request};
use crate::selection::Correlations;

/// Further places on the x axis make neighbouring ones merge.
const MAX_PLACES: usize = 4096;

pub(super) static PLOT: PlotKind = PlotKind {
    name: "xy",
    quantities: &[Quantity::Amp, Quantity::Phase, Quantity::Real, Quantity::Imag, Quantity::Flagged],
    rows: Some(RowPlot { sums: of, title: "{y} against {x}", note: Words::average, empty: Drawing::empty_lines }),
};

static VISIBILITIES: SumsKind = SumsKind::of_data("xy", |part, _| Points::<Sum>::begin(part.correlations.len()));

static FLAGS: SumsKind = SumsKind::of_flags("flags of xy", |_, _| Points::<Flags>::begin(1));

static ROWS: SumsKind = SumsKind {
    correlations: Correlations::ParallelHands,
    ..SumsKind::of_flags("rows of xy", |part, _| Points::<Mean>::begin(part.correlations.len()))
};

fn of(request: &Request) -> &'static SumsKind {
    match (&request.y, request.measure()) {
        (Some(_), _) => &ROWS,
        (None, Measure::Flags) => &FLAGS,
        (None, _) => &VISIBILITIES,
    }
}

#[derive(Debug)]
struct Points<T> {
    /// Sums of each correlation, or one, by the place on the x axis.
    sums: Times<T>,
    /// Rows without a number on an axis.
    unshown: u64,
}

/// Sums at a place on the x axis.
trait Place: Merge + std::fmt::Debug + Send + Sync + 'static {
    /// Returns whether the row has a number on the y axis.
    fn add(places: &mut [Self], row: &Row<'_>, part: &Part) -> bool;

    fn draw(maker: &Maker<'_>, x: (Axis, Vec<f64>), sums: &[&[Self]]) -> Drawing;
}

impl<T: Place> Points<T> {
    fn begin(width: usize) -> Box<dyn Sums> {
        Box::new(Points { sums: Times::<T>::new(MAX_PLACES, width.max(1)), unshown: 0 })
    }
}

impl<T: Place> Sums for Points<T> {
    fn add(&mut self, row: &Row<'_>, part: &Part) {
        let is_shown = match row.axes[0] {
            // zero and minus zero are one place
            [x] if x.is_finite() => T::add(self.sums.at(x + 0.), row, part),
            _ => false,
        };
        self.unshown += u64::from(!is_shown);
    }

    fn unshown(&self) -> String {
        match self.unshown {
            0 => String::new(),
            rows => format!("{rows} rows without a number on an axis"),
        }
    }

    fn bytes(&self) -> usize {
        self.sums.bytes()
    }

    fn draw(&self, maker: &Maker<'_>, _: &Part) -> Drawing {
        let sums: Vec<&[T]> = self.sums.iter().collect();
        let axis = maker.selection.axes.as_ref().map_or_else(Axis::default, |axes| axes.x.axis());
        T::draw(maker, (axis, self.sums.starts()), &sums)
    }
}

impl Place for Sum {
    fn add(places: &mut [Self], row: &Row<'_>, part: &Part) -> bool {
        part.good(row, |_, correlation, value| places[correlation].add(value));
        true
    }

    fn draw(maker: &Maker<'_>, (axis, x): (Axis, Vec<f64>), sums: &[&[Self]]) -> Drawing {
        let starts = vec![true; x.len()];
        maker.lines(axis, x, sums, &starts)
    }
}

impl Place for Flags {
    fn add(places: &mut [Self], row: &Row<'_>, part: &Part) -> bool {
        places[0].merge(&part.all_flags(row));
        true
    }

    fn draw(_: &Maker<'_>, x: (Axis, Vec<f64>), sums: &[&[Self]]) -> Drawing {
        let y = sums.iter().map(|flags| flags[0].percent()).collect();
        points(x, Axis::new("flagged", "%", "linear"), vec!["flagged".to_owned()], y)
    }
}

/// Mean of the numbers of rows, one for each correlation if their cells have several.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Merge for Mean {
    fn merge(&mut self, other: &Self) {
        self.sum += other.sum;
        self.count += other.count;
    }
}

impl Place for Mean {
    /// Leaves out rows of which all selected visibilities are flagged.
    fn add(places: &mut [Self], row: &Row<'_>, part: &Part) -> bool {
        let flags = part.all_flags(row);
        if flags.flagged == flags.all && !part.include_flagged {
            return true;
        }
        let numbers: Vec<f64> = match row.axes[1] {
            [only] => vec![*only],
            several if several.len() == part.cell.0 => part.correlations.iter().map(|&at| several[at]).collect(),
            _ => Vec::new(),
        };
        for (place, &number) in places.iter_mut().zip(&numbers).filter(|(_, number)| number.is_finite()) {
            place.merge(&Mean { sum: number, count: 1 });
        }
        numbers.iter().any(|number| number.is_finite())
    }

    fn draw(maker: &Maker<'_>, x: (Axis, Vec<f64>), sums: &[&[Self]]) -> Drawing {
        let axis = maker.selection.axes.as_ref().and_then(|axes| axes.y.as_ref()).map(|y| y.axis()).unwrap_or_default();
        let mut names = maker.correlations();
        let is_one = |name: usize| sums.iter().all(|means| means.iter().skip(name).all(|mean| mean.count == 0));
        if is_one(1) {
            names = vec![axis.label.clone()];
        }
        let mean = |mean: &Mean| if mean.count == 0 { f32::NAN } else { (mean.sum / mean.count as f64) as f32 };
        let y = (0..names.len()).flat_map(|name| sums.iter().map(move |means| mean(&means[name]))).collect();
        points(x, axis, names, y)
    }
}

/// `y` has the values of one line after the other.
fn points((axis, x): (Axis, Vec<f64>), y_axis: Axis, names: Vec<String>, y: Vec<f32>) -> Drawing {
    let shape = [names.len(), x.len()];
    // each point is a segment of its own: no line joins them
    let segments = (0..names.len()).flat_map(|_| 0..x.len() as u32).collect();
    Drawing {
        x: axis,
        y: y_axis,
        z: None,
        series: Some(names),
        arrays: vec![
            Array::new("x", [x.len()], Numbers::F64(x)),
            Array::new("y", shape, Numbers::F32(y)),
            Array::new("segment", shape, Numbers::U32(segments)),
        ],
    }
}
