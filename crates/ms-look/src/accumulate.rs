//! Adds rows to the sums of a plot, whose size is bounded however many rows the table has.

use crate::part::{Part, Row};
use crate::plots::{Sums, SumsKind};
use crate::selection::Selection;

#[derive(Debug)]
pub(crate) struct Accumulator {
    pub(crate) kind: &'static SumsKind,
    /// `None` before the first row.
    pub(crate) begun: Option<(Part, Box<dyn Sums>)>,
    /// Channel frequencies in Hz; empty if unknown or not needed.
    frequencies: Vec<f64>,
    /// Rows that were left out because their cells have another shape than those of the first row.
    pub(crate) misfits: u64,
}

impl Accumulator {
    pub(crate) fn new(kind: &'static SumsKind, frequencies: &[f64]) -> Self {
        let frequencies = if kind.needs_uvw { frequencies.to_vec() } else { Vec::new() };
        Accumulator { kind, begun: None, frequencies, misfits: 0 }
    }

    pub(crate) fn wants(&self, time: f64) -> bool {
        self.begun.as_ref().is_none_or(|(_, sums)| sums.wants(time))
    }

    pub(crate) fn unshown(&self) -> String {
        self.begun.as_ref().map_or_else(String::new, |(_, sums)| sums.unshown())
    }

    fn begin(&self, row: &Row<'_>, selection: &Selection, names: &[String]) -> (Part, Box<dyn Sums>) {
        let channels = selection.channels(row.channels);
        let part = Part {
            cell: (row.correlations, row.channels),
            correlations: selection.correlations(self.kind.correlations, names, row.correlations),
            each: channels.len().div_ceil(self.kind.max_places).max(1),
            channels,
            include_flagged: selection.include_flagged,
        };
        let sums = (self.kind.begin)(&part, &self.frequencies);
        (part, sums)
    }

    /// `names` are the names of the correlations.
    pub(crate) fn add(&mut self, row: &Row<'_>, selection: &Selection, names: &[String]) {
        if self.begun.is_none() {
            self.begun = Some(self.begin(row, selection, names));
        }
        let Some((part, sums)) = &mut self.begun else { return };
        if part.cell != (row.correlations, row.channels) {
            self.misfits += 1;
            return;
        }
        sums.add(row, part);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.begun.as_ref().map_or(0, |(_, sums)| sums.bytes())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::any::Any;

    use ctds::value::Complex32;

    use super::*;
    use crate::request::Request;
    use crate::selection::{Baselines, RowKey};

    pub(crate) fn selection() -> Selection {
        Selection {
            column: "DATA".into(),
            spw: None,
            fields: vec![],
            scans: vec![],
            corr: None,
            baselines: Baselines::All,
            antennas: vec![],
            time: (None, None),
            chan: (None, None),
            include_flagged: false,
            axes: None,
        }
    }

    /// The value of element `i` of row `r` is 10 r + `i`.
    pub(crate) fn add(accumulator: &mut Accumulator, rows: std::ops::Range<usize>) {
        for row in rows {
            let data: Vec<Complex32> = (0..6).map(|i| Complex32::new((10 * row + i) as f32, 0.)).collect();
            let flags: Vec<bool> = (0..6).map(|i| i == 1).collect();
            let key =
                RowKey { time: (row / 2) as f64, antenna1: 0, antenna2: row as i64 % 3, spw: 0, field: 0, scan: 0 };
            let uvw = [row as f64, -2. * row as f64, 0.];
            let row = Row {
                key,
                flag_row: false,
                uvw,
                data: &data,
                flags: &flags,
                correlations: 2,
                channels: 3,
                axes: [&[]; 2],
            };
            accumulator.add(&row, &selection(), &[]);
        }
    }

    pub(crate) fn sums<T: 'static>(accumulator: &Accumulator) -> &T {
        let sums: &dyn Any = &*accumulator.begun.as_ref().unwrap().1;
        sums.downcast_ref().unwrap()
    }

    #[test]
    fn sums_have_a_fixed_size() {
        for (plot, average) in [
            ("waterfall", "vector"),
            ("waterfall", "scalar"),
            ("amp_time", "scalar"),
            ("amp_uvdist", "scalar"),
            ("uv", "scalar"),
            ("flag_time", "scalar"),
        ] {
            let request = Request::parse(plot, &[("average".to_owned(), average.to_owned())]).unwrap();
            let kind = (request.kind().plot().rows.as_ref().unwrap().sums)(&request);
            let mut accumulator = Accumulator::new(kind, &[]);
            let data = vec![Complex32::new(1., 1.); 600];
            for time in 0..6000 {
                let key = RowKey { time: time.into(), antenna1: 0, antenna2: 1, spw: 0, field: 0, scan: 0 };
                let row = Row {
                    key,
                    flag_row: false,
                    uvw: [0.; 3],
                    data: &data,
                    flags: &[],
                    correlations: 1,
                    channels: 600,
                    axes: [&[]; 2],
                };
                accumulator.add(&row, &selection(), &[]);
            }
            assert!(accumulator.bytes() <= 12 << 20, "{kind:?}: {}", accumulator.bytes());
        }
    }
}
