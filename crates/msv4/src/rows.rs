//! Rows of a subtable on the axes of a partition, and their cells as arrays.
//!
//! A slot is a place of an array that takes the cell of a row, such as an antenna at a time; slots
//! are counted with the last axis fastest. Of several rows in one slot the last one is taken. A
//! slot without a row, or whose cell is undefined or empty, has a missing value, such as NaN.

use ctds::value::{Complex32, Complex64, DataType, Shape, Values};
use ctds::{Error, Result};

use crate::dataset::{Attribute, Variable, quantity};
use crate::measures;
use crate::place::Place;
use crate::tables::{MAX_ELEMENTS, Subtable, doubles};

/// Most rows of a subtable that belong to a partition.
const MAX_ROWS: usize = 1 << 25;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// All; TIME is not read.
    Unread,
    All,
    /// Rows within the times of the partition; all if there are none.
    Near,
}

/// Rows of the antennas of a partition and, if the subtable has windows, of its window.
#[derive(Debug, Default)]
pub(crate) struct Picked {
    /// Ascending.
    pub(crate) rows: Vec<u64>,
    /// Place of the antenna of each row in the partition.
    pub(crate) antennas: Vec<usize>,
    /// TIME of each row, in seconds of MJD; 0 if it is not read.
    pub(crate) times: Vec<f64>,
    /// Whether the row is one of all windows, and its FEED_ID; empty if the subtable has neither.
    ranks: Vec<(bool, i64)>,
}

impl Picked {
    /// `None` without rows; `Format` if an index column is missing. A row of the window comes
    /// before one of all windows with the same antenna and time, and the lowest feed before others.
    pub(crate) fn of(place: &Place<'_>, table: &Subtable<'_>, times: Times) -> Result<Option<Self>> {
        let near = match times {
            Times::Near => widened(&place.part.grid.times),
            Times::Unread | Times::All => None,
        };
        let mut picked = Picked::read(place, table, times, near)?;
        if picked.rows.is_empty() && near.is_some() {
            picked = Picked::read(place, table, times, None)?;
        }
        picked.keep_first_of_slot();
        Ok(Some(picked).filter(|picked| !picked.rows.is_empty()))
    }

    fn read(place: &Place<'_>, table: &Subtable<'_>, times: Times, within: Option<(f64, f64)>) -> Result<Self> {
        let (antennas, window) = (&place.antennas, i64::try_from(place.window).unwrap_or(i64::MAX));
        // a missing column is read as another one, which is ignored
        let time = if times == Times::Unread { "ANTENNA_ID" } else { "TIME" };
        let has = |column| table.info(column).is_some();
        let (has_windows, has_feeds) = (has("SPECTRAL_WINDOW_ID"), has("FEED_ID"));
        let windows = if has_windows { "SPECTRAL_WINDOW_ID" } else { "ANTENNA_ID" };
        let feeds = if has_feeds { "FEED_ID" } else { "ANTENNA_ID" };
        let mut picked = Picked::default();
        table.blocks(["ANTENNA_ID", time, windows, feeds], |start, [ids, times_read, of_windows, of_feeds]| {
            let integers =
                |column: &str, values: &Values| values.integers().ok_or_else(|| table.other_type(column, "integers"));
            let ids = integers("ANTENNA_ID", ids)?;
            let seconds = doubles(times_read).ok_or_else(|| table.other_type(time, "numbers"))?;
            let (of_windows, of_feeds) = (integers(windows, of_windows)?, integers(feeds, of_feeds)?);
            for (row, (((id, second), of_window), feed)) in
                (start..).zip(ids.iter().zip(&seconds).zip(&of_windows).zip(&of_feeds))
            {
                let Some(antenna) = antennas.place(*id) else { continue };
                if has_windows && *of_window != window && *of_window != -1 {
                    continue;
                }
                if within.is_some_and(|(first, last)| !(first..=last).contains(second)) {
                    continue;
                }
                picked.rows.push(row);
                picked.antennas.push(antenna);
                picked.times.push(if times == Times::Unread { 0.0 } else { *second });
                if has_windows || has_feeds {
                    picked.ranks.push((has_windows && *of_window != window, if has_feeds { *feed } else { 0 }));
                }
            }
            if picked.rows.len() > MAX_ROWS {
                let message = format!("{}: more than {MAX_ROWS} rows belong to one partition", table.name);
                return Err(Error::limit(message));
            }
            Ok(())
        })?;
        Ok(picked)
    }

    fn keep_first_of_slot(&mut self) {
        if self.ranks.is_empty() {
            return;
        }
        let slot = |at: usize| (self.antennas[at], self.times[at].to_bits());
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        // the last one of equal rows comes first
        order.sort_unstable_by_key(|&at| (slot(at), self.ranks[at], std::cmp::Reverse(at)));
        order.dedup_by_key(|at| slot(*at));
        order.sort_unstable();
        self.keep(&order);
    }

    /// Keeps the rows at these places, which ascend.
    pub(crate) fn keep(&mut self, order: &[usize]) {
        self.rows = order.iter().map(|&at| self.rows[at]).collect();
        self.antennas = order.iter().map(|&at| self.antennas[at]).collect();
        self.times = order.iter().map(|&at| self.times[at]).collect();
        if !self.ranks.is_empty() {
            self.ranks = order.iter().map(|&at| self.ranks[at]).collect();
        }
    }

    /// Whether a row is one of all windows.
    pub(crate) fn is_general(&self, at: usize) -> bool {
        self.ranks.get(at).is_some_and(|rank| rank.0)
    }
}

/// The first and the last time, with a quarter of the shortest step around them.
fn widened(times: &[f64]) -> Option<(f64, f64)> {
    let steps = times.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0);
    let margin = steps.reduce(f64::min).map_or(1e-5, |step| step / 4.0);
    Some((times.first()? - margin, times.last()? + margin))
}

/// Extent of an axis of cells in the array, and what is done with cells that differ from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Exact(usize),
    /// Cells may be shorter.
    Padded(usize),
    /// Cells may be longer.
    Clipped(usize),
}

impl Extent {
    fn places(self) -> usize {
        match self {
            Extent::Exact(places) | Extent::Padded(places) | Extent::Clipped(places) => places,
        }
    }

    fn fits(self, found: u64) -> bool {
        let found = usize::try_from(found).unwrap_or(usize::MAX);
        match self {
            Extent::Exact(places) => found == places,
            Extent::Padded(places) => found <= places,
            Extent::Clipped(places) => found >= places,
        }
    }
}

/// The axes of cells, of which there are at most two, and their order in the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Inner {
    /// The first axis of a cell, which is the fastest, and the second.
    axes: [Extent; 2],
    is_first_fastest: bool,
}

impl Inner {
    pub(crate) const SCALAR: Inner = Inner { axes: [Extent::Exact(1); 2], is_first_fastest: true };

    pub(crate) fn vector(axis: Extent) -> Self {
        Inner { axes: [axis, Extent::Exact(1)], is_first_fastest: true }
    }

    /// Cells whose second axis is the slower one in the array as well.
    pub(crate) fn as_stored(first: Extent, second: Extent) -> Self {
        Inner { axes: [first, second], is_first_fastest: true }
    }

    /// Cells whose second axis is the faster one in the array.
    pub(crate) fn transposed(first: Extent, second: Extent) -> Self {
        Inner { axes: [first, second], is_first_fastest: false }
    }

    fn places(&self) -> Option<usize> {
        self.axes[0].places().checked_mul(self.axes[1].places())
    }

    fn steps(&self) -> [usize; 2] {
        if self.is_first_fastest { [1, self.axes[0].places()] } else { [self.axes[1].places(), 1] }
    }

    /// Both extents of a cell; a first axis of one place may be missing in the array.
    fn extents(&self, shape: &Shape) -> Option<[usize; 2]> {
        let found = match shape[..] {
            [] => [1, 1],
            [first] => [first, 1],
            [first, second] => [first, second],
            _ => return None,
        };
        let fits = |found: [u64; 2]| self.axes[0].fits(found[0]) && self.axes[1].fits(found[1]);
        let found = match found {
            found if fits(found) => found,
            [1, second] if fits([second, 1]) => [second, 1],
            _ => return None,
        };
        Some([usize::try_from(found[0]).ok()?, usize::try_from(found[1]).ok()?])
    }
}

pub(crate) struct Slots<'a> {
    table: &'a Subtable<'a>,
    rows: &'a [u64],
    of_row: Vec<usize>,
    count: usize,
}

impl<'a> Slots<'a> {
    /// Combines places on a slower and a faster axis; `Limit` if the slots are absurdly many.
    pub(crate) fn new(
        table: &'a Subtable<'a>,
        rows: &'a [u64],
        (slower, slow_places): (&[usize], usize),
        (faster, fast_places): (&[usize], usize),
    ) -> Result<Self> {
        let count = slow_places.checked_mul(fast_places).filter(|count| *count as u64 <= MAX_ELEMENTS);
        let count = count.ok_or_else(|| too_large(table, slow_places, fast_places))?;
        let of_row = slower.iter().zip(faster).map(|(slow, fast)| slow * fast_places + fast).collect();
        Ok(Slots { table, rows, of_row, count })
    }

    pub(crate) fn on(table: &'a Subtable<'a>, rows: &'a [u64], of_row: &[usize], count: usize) -> Self {
        Slots { table, rows, of_row: of_row.to_vec(), count }
    }

    /// NaN in slots without a cell; `None` if no row has one; `Format` for a cell of another shape
    /// or type, `Limit` for an absurdly large array.
    pub(crate) fn doubles(&self, column: &str, inner: Inner) -> Result<Option<Vec<f64>>> {
        self.fill(column, inner, f64::NAN, |values| {
            doubles(values).ok_or_else(|| self.table.other_type(column, "numbers"))
        })
    }

    /// As [`doubles`](Self::doubles), of truth values.
    pub(crate) fn bools(&self, column: &str, inner: Inner, missing: bool) -> Result<Option<Vec<bool>>> {
        self.fill(column, inner, missing, |values| match values {
            Values::Bool(values) => Ok(values.clone()),
            _ => Err(self.table.other_type(column, "truth values")),
        })
    }

    /// As [`doubles`](Self::doubles), in the precision of the column.
    pub(crate) fn complex(&self, column: &str, inner: Inner) -> Result<Option<Values>> {
        let is_double = self.table.info(column).is_some_and(|info| info.data_type() == DataType::DComplex);
        if is_double {
            let missing = Complex64::new(f64::NAN, f64::NAN);
            let filled = self.fill(column, inner, missing, |values| match values {
                Values::DComplex(values) => Ok(values.clone()),
                _ => Err(self.table.other_type(column, "complex numbers")),
            })?;
            return Ok(filled.map(Values::DComplex));
        }
        let filled = self.fill(column, inner, Complex32::new(f32::NAN, f32::NAN), |values| match values {
            Values::Complex(values) => Ok(values.clone()),
            _ => Err(self.table.other_type(column, "complex numbers")),
        })?;
        Ok(filled.map(Values::Complex))
    }

    /// Scalar column; empty where a cell is missing.
    pub(crate) fn texts(&self, column: &str) -> Result<Option<Vec<String>>> {
        let mut filled = vec![String::new(); self.count];
        let mut is_found = false;
        self.table.cells(column, self.rows, |places, shape, values| {
            let Values::String(texts) = values else { return Err(self.table.other_type(column, "strings")) };
            if !shape.is_empty() {
                return Err(self.other_shape(column, places.start, shape, Inner::SCALAR));
            }
            is_found = true;
            for (place, text) in places.zip(texts) {
                filled[self.of_row[place]] = text.to_string();
            }
            Ok(())
        })?;
        Ok(is_found.then_some(filled))
    }

    /// Axis 0 or 1; 0 if no cell is defined.
    pub(crate) fn longest(&self, column: &str, axis: usize) -> Result<usize> {
        let mut longest = 0;
        self.table.shapes(column, self.rows, |_, shape| {
            longest = longest.max(shape.get(axis).copied().unwrap_or(1));
            Ok(())
        })?;
        usize::try_from(longest)
            .map_err(|_| Error::limit(format!("{column} of {} has cells that are too large", self.table.name)))
    }

    fn fill<T: Copy>(
        &self,
        column: &str,
        inner: Inner,
        missing: T,
        typed: impl Fn(&Values) -> Result<Vec<T>>,
    ) -> Result<Option<Vec<T>>> {
        let mut filled: Option<Vec<T>> = None;
        let len = inner.places().and_then(|len| self.count.checked_mul(len));
        let len = len.filter(|len| *len as u64 <= MAX_ELEMENTS);
        self.table.cells(column, self.rows, |places, shape, values| {
            let extents = inner.extents(shape).ok_or_else(|| self.other_shape(column, places.start, shape, inner))?;
            let values = typed(values)?;
            let (Some(len), Some(cell)) = (len, inner.places()) else {
                return Err(too_large(self.table, self.count, inner.places().unwrap_or(usize::MAX)));
            };
            let filled = filled.get_or_insert_with(|| vec![missing; len]);
            let steps = inner.steps();
            let taken = [0, 1].map(|axis| extents[axis].min(inner.axes[axis].places()));
            for (place, values) in places.zip(values.chunks_exact(extents[0] * extents[1])) {
                let start = self.of_row[place] * cell;
                let slot = &mut filled[start..start + cell];
                for (second, line) in values.chunks_exact(extents[0]).take(taken[1]).enumerate() {
                    for (first, value) in line.iter().take(taken[0]).enumerate() {
                        slot[first * steps[0] + second * steps[1]] = *value;
                    }
                }
                // a later row with a shorter cell leaves nothing of an earlier one
                for second in 0..inner.axes[1].places() {
                    for first in 0..inner.axes[0].places() {
                        if first >= taken[0] || second >= taken[1] {
                            slot[first * steps[0] + second * steps[1]] = missing;
                        }
                    }
                }
            }
            Ok(())
        })?;
        Ok(filled)
    }

    fn other_shape(&self, column: &str, place: usize, shape: &Shape, inner: Inner) -> Error {
        let expected = match inner.axes {
            [Extent::Exact(1), Extent::Exact(1)] => "a scalar".to_owned(),
            [first, Extent::Exact(1)] => format!("[{}]", shown(first)),
            [first, second] => format!("[{}, {}]", shown(first), shown(second)),
        };
        let (name, row) = (self.table.name, self.rows.get(place).copied().unwrap_or_default());
        Error::format(format!("{column} of {name}, row {row}: the cell has shape {shape}, expected is {expected}"))
    }
}

fn shown(extent: Extent) -> String {
    match extent {
        Extent::Exact(places) => places.to_string(),
        Extent::Padded(places) => format!("at most {places}"),
        Extent::Clipped(places) => format!("at least {places}"),
    }
}

fn too_large(table: &Subtable<'_>, slots: usize, cell: usize) -> Error {
    Error::limit(format!("{}: an array of {slots} times {cell} elements; the limit is {MAX_ELEMENTS}", table.name))
}

/// The coordinate of times of a subtable, in the scale that it records.
pub(crate) fn times(place: &Place<'_>, table: &Subtable<'_>, name: &str, times: &[f64]) -> Variable {
    let mut variable = place.times(name, times);
    if let Some(scale) = table.measure("TIME").and_then(|measure| measures::scale(Some(measure))) {
        set(&mut variable, "scale", scale.into());
    }
    variable
}

/// Replaces an attribute.
pub(crate) fn set(variable: &mut Variable, name: &str, value: Attribute) {
    if let Some((_, old)) = variable.attributes.iter_mut().find(|(other, _)| other == name) {
        *old = value;
    }
}

/// A unit, the one that the schema has for it, and the factor between them.
const UNITS: [(&str, &str, f64); 10] = [
    ("hPa", "Pa", 100.0),
    ("mbar", "Pa", 100.0),
    ("kPa", "Pa", 1000.0),
    ("m-2", "/m^2", 1.0),
    ("m^-2", "/m^2", 1.0),
    ("deg", "rad", std::f64::consts::PI / 180.0),
    ("MHz", "Hz", 1e6),
    ("GHz", "Hz", 1e9),
    ("ms", "s", 1e-3),
    ("K.Jy-1", "K/Jy", 1.0),
];

/// A quantity in the unit of the schema, given in `found`. An unknown unit is kept.
pub(crate) fn quantities(
    name: &str,
    axes: &[(&str, usize)],
    mut values: Vec<f64>,
    found: &str,
    expected: &str,
) -> Variable {
    let known = UNITS.iter().find(|(from, to, _)| *from == found && *to == expected);
    if let Some((_, _, factor)) = known
        && *factor != 1.0
    {
        values.iter_mut().for_each(|value| *value *= factor);
    }
    let units = if found.is_empty() || known.is_some() { expected } else { found };
    Variable::doubles(name, axes, values).with(quantity(units))
}

#[cfg(test)]
mod tests {
    use ctds::ErrorKind;

    use super::*;
    use crate::testing::{Made, arrays};

    #[test]
    fn range_of_times_is_widened_by_a_quarter_step() {
        assert_eq!(widened(&[]), None);
        assert_eq!(widened(&[5.0]), Some((5.0 - 1e-5, 5.0 + 1e-5)));
        assert_eq!(widened(&[0.0, 4.0, 6.0]), Some((-0.5, 6.5)));
    }

    #[test]
    fn known_units_are_converted_and_others_kept() {
        let of = |found, expected| quantities("x", &[("a", 1)], vec![2.0], found, expected);
        let pressure = of("hPa", "Pa");
        assert_eq!(pressure, Variable::doubles("x", &[("a", 1)], vec![200.0]).with(quantity("Pa")));
        assert_eq!(of("", "K").attributes, quantity("K"));
        assert_eq!(of("degC", "K"), Variable::doubles("x", &[("a", 1)], vec![2.0]).with(quantity("degC")));
    }

    #[test]
    fn cells_fit_by_their_extents() {
        let inner = Inner::as_stored(Extent::Exact(2), Extent::Clipped(1));
        assert_eq!(inner.extents(&Shape::from([2])), Some([2, 1]));
        assert_eq!(inner.extents(&Shape::from([2, 3])), Some([2, 3]));
        assert_eq!(inner.extents(&Shape::from([1, 2])), Some([2, 1]));
        assert_eq!(inner.extents(&Shape::from([3, 1])), None);
        assert_eq!(inner.extents(&Shape::from([2, 1, 1])), None);
    }

    fn row(extents: [u64; 1], values: Vec<f64>) -> Option<([u64; 1], Vec<f64>)> {
        Some((extents, values))
    }

    #[test]
    fn last_row_of_a_slot_is_taken_whole() {
        let cells =
            vec![row([2], vec![1.0, 2.0]), row([1], vec![3.0]), None, row([2], vec![4.0, 5.0]), row([0], vec![])];
        let tables = Made::new().with("T", vec![arrays("A", cells)]);
        let table = Subtable::open(&tables, "T").unwrap();
        let rows = [0, 1, 2, 3, 4];
        let filled = Slots::on(&table, &rows, &[1, 1, 1, 0, 0], 3).doubles("A", Inner::vector(Extent::Padded(2)));
        let filled = filled.unwrap().unwrap();
        assert_eq!(filled[..3], [4.0, 5.0, 3.0]);
        assert!(filled[3..].iter().all(|value| value.is_nan()), "{filled:?}");
        let clipped = Slots::on(&table, &[0, 3], &[0, 1], 2).doubles("A", Inner::vector(Extent::Clipped(1)));
        assert_eq!(clipped.unwrap().unwrap(), [1.0, 4.0]);
        assert_eq!(Slots::on(&table, &[2, 4], &[0, 1], 2).doubles("A", Inner::SCALAR).unwrap(), None);
    }

    #[test]
    fn absurd_arrays_are_not_allocated() {
        let tables = Made::new().with("T", vec![arrays("A", vec![row([8], vec![0.0; 8])])]);
        let table = Subtable::open(&tables, "T").unwrap();
        for (slower, faster) in [(1 << 14, 1 << 13), (usize::MAX, 2)] {
            let error = Slots::new(&table, &[0], (&[0], slower), (&[0], faster)).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Limit);
        }
        let slots = Slots::new(&table, &[0], (&[0], 1 << 12), (&[0], 1 << 12)).unwrap();
        let error = slots.doubles("A", Inner::vector(Extent::Exact(8))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert_eq!(error.to_string(), "T: an array of 16777216 times 8 elements; the limit is 67108864");
    }
}
