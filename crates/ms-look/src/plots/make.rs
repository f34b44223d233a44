//! Makes the frame of a plot: its title and its note, and what its sums draw.

use super::drawing::{Drawing, Maker};
use super::kind::{RowPlot, Words};
use crate::describe::Description;
use crate::fold::Fold;
use crate::frame::{Array, Frame, Numbers, Plot};
use crate::part::Part;
use crate::request::{Average, Quantity, Request, Statistic};
use crate::selection::Baselines;

/// State of the plotted table: revision (number of changes seen), number of rows, whether cells
/// were overwritten, and whether reading has stopped at its limit of bytes.
pub(crate) struct Progress {
    pub(crate) session: u64,
    pub(crate) revision: u64,
    pub(crate) rows: u64,
    pub(crate) stale: bool,
    pub(crate) stopped: bool,
}

pub(crate) fn frame(request: &Request, plot: &RowPlot, fold: &Fold, known: &Description, progress: &Progress) -> Frame {
    let maker = Maker { request, selection: &fold.selection, known, correlations: correlations(fold, known) };
    let Drawing { x, y, z, series, arrays } = match &fold.sums.begun {
        Some((part, sums)) => sums.draw(&maker, part),
        None => (plot.empty)(maker.quantity_axis()),
    };
    let has_values = |(part, _): &(Part, _)| !part.correlations.is_empty() && !part.channels.is_empty();
    let is_selected = fold.sums.begun.as_ref().is_some_and(has_values);
    let note = maker.note(plot, fold, progress.rows) + if is_selected { of_values(request, &arrays) } else { "" };
    let plot = Plot {
        kind: request.kind.name(),
        title: maker.title(plot.title),
        note,
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

/// Words for the note: that nothing is flagged, or that the rows have no values.
fn of_values(request: &Request, arrays: &[Array]) -> &'static str {
    let values = match arrays.iter().find(|array| matches!(array.name, "raster" | "y")).map(|array| &array.numbers) {
        Some(Numbers::F32(values)) => values,
        Some(Numbers::U32(counts)) if counts.iter().all(|&count| count == 0) => {
            return "; no points (flagged, 0 or no UVW)";
        }
        _ => return "",
    };
    let mut finite = values.iter().filter(|value| value.is_finite()).peekable();
    match (request.quantity, finite.peek().is_some()) {
        (Quantity::Flagged, true) if finite.all(|&value| value == 0.) => "; nothing flagged",
        (_, false) if !values.is_empty() => "; no values: all are flagged or not finite",
        _ => "",
    }
}

/// Indices in a cell; as selection and subtables suggest before any row is read.
fn correlations(fold: &Fold, known: &Description) -> Vec<usize> {
    let window = fold.selection.spw.and_then(|spw| known.window(spw));
    let names = window.map_or(&[][..], |window| &window.correlations);
    match &fold.sums.begun {
        Some((part, _)) => part.correlations.clone(),
        None => fold.selection.correlations(fold.sums.kind.correlations, names, names.len()),
    }
}

fn quantity(request: &Request) -> &'static str {
    match (request.quantity, request.statistic) {
        (Quantity::Amp, Statistic::Max) => "Largest amplitude",
        (Quantity::Amp, _) => "Amplitude",
        (Quantity::Phase, _) => "Phase",
        (Quantity::Real, _) => "Real part",
        (Quantity::Imag, _) => "Imaginary part",
        (Quantity::Flagged, _) => "Flagged",
    }
}

impl Maker<'_> {
    fn title(&self, title: &str) -> String {
        let quantity = quantity(self.request);
        let Some(axes) = &self.selection.axes else { return title.replace("{quantity}", quantity) };
        let y = axes.y.as_ref().map_or_else(|| quantity.to_owned(), |y| y.axis().label);
        let title = title.replace("{y}", &y).replace("{x}", &axes.x.axis().label);
        let mut letters = title.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    }

    fn note(&self, plot: &RowPlot, fold: &Fold, rows: u64) -> String {
        let average = match (self.request.quantity, self.request.statistic, self.request.average) {
            (Quantity::Flagged, ..) => "",
            (Quantity::Amp, Statistic::Max, _) => "largest of ",
            (Quantity::Amp, _, Average::Scalar) => "mean of ",
            _ => "vector mean of ",
        };
        let words = Words { average, baselines: self.baselines(), correlations: self.correlations().join(", ") };
        let mut note = if fold.sums.kind.newest { "newest integration, ".to_owned() } else { String::new() };
        note.push_str(&(plot.note)(&words));
        note.push_str(&self.chosen());
        match &fold.sums.begun {
            None if rows == 0 => note.push_str("; the table has no rows"),
            None => {
                note.push_str("; no row is selected");
                if self.selection.baselines == Baselines::Cross {
                    note.push_str(" (baseline=auto shows autocorrelations)");
                }
            }
            Some((part, _)) if part.correlations.is_empty() || part.channels.is_empty() => {
                note.push_str("; no correlation or channel is selected");
            }
            Some(_) => {}
        }
        if fold.sums.misfits > 0 {
            note.push_str(&format!("; {} rows with cells of another shape are left out", fold.sums.misfits));
        }
        match fold.sums.unshown().as_str() {
            "" => {}
            unshown => note.push_str(&format!("; {unshown} are left out")),
        }
        note
    }

    fn baselines(&self) -> String {
        match &self.selection.baselines {
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
        }
    }

    /// Chosen antennas and fields, or the only field, and the spectral window, for the note.
    fn chosen(&self) -> String {
        let label = |number: &i64, of: &dyn Fn(usize) -> String| usize::try_from(*number).map_or(String::new(), of);
        let list = |what: &str, numbers: &[i64], of: &dyn Fn(usize) -> String| match numbers {
            [] => String::new(),
            [one] => format!("; {what} {}", label(one, of)),
            [first, .., last] => format!("; {} {what}s, {} to {}", numbers.len(), label(first, of), label(last, of)),
        };
        // the note of a calibration table names its antennas itself
        let antennas = if self.known.is_calibration { &[][..] } else { &self.selection.antennas[..] };
        let window = self.selection.spw.map_or(String::new(), |id| {
            let name = self.known.window(id).map_or("", |window| &window.name);
            format!("; spectral window {}", if name.is_empty() { format!("#{id}") } else { format!("{name} (#{id})") })
        });
        let fields = match (&self.selection.fields[..], self.known.fields.len()) {
            ([], 1) => &[0][..],
            (fields, _) => fields,
        };
        let antennas = list("antenna", antennas, &|number| self.known.antenna(number));
        antennas + &list("field", fields, &|number| self.known.field(number)) + &window
    }
}
