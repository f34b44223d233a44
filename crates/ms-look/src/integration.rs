//! Summarizes the newest integration, the rows with the newest TIME, of a MeasurementSet: flagged
//! fraction by antenna, and mean amplitude.

use ctds::error::Result;
use ctds::value::{DataType, Values};

use crate::describe::Description;
use crate::rows::Rows;

/// Rows at the end to search for the first row; the next count if all have the same TIME.
const SEARCHED_ROWS: [u64; 3] = [64, 1024, 1 << 14];

/// Antennas with this number or a higher one are left out.
const MAX_ANTENNAS: usize = 1024;

/// Summary of the newest integration: of all rows with the newest TIME or, if they are too large
/// for one poll, of a part of them in which every antenna occurs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Integration {
    /// TIME of the integration in seconds of MJD.
    pub time: f64,
    /// Fraction of flagged visibilities of each antenna that has rows; empty if the table has
    /// neither FLAG nor FLAG_ROW.
    pub flagged: Vec<AntennaFlags>,
    /// Mean amplitude of those visibilities of cross-correlations that are finite and not flagged;
    /// `None` if all are excluded.
    pub amplitude: Option<f64>,
}

/// Fraction of flagged visibilities of one antenna, over all its baselines.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AntennaFlags {
    /// Number of the antenna, from 0: its row in ANTENNA.
    pub number: usize,
    /// Name of the antenna; its number in digits if it has none.
    pub name: String,
    /// Fraction of the antenna's visibilities that are flagged, from 0 to 1.
    pub fraction: f64,
}

/// The rows of the integration: the number of the first one, and the two antennas of each.
struct Baselines {
    first_row: u64,
    pairs: Vec<(usize, usize)>,
}

impl Integration {
    /// Reads at most `bytes` of each column; `None` without rows, TIME, ANTENNA1 or ANTENNA2.
    pub(crate) fn take(main: &Rows, known: &Description, bytes: u64) -> Result<Option<Self>> {
        let is = |name: &str, data_type: DataType| main.column(name).is_some_and(|info| info.data_type() == data_type);
        let has_antennas = ["ANTENNA1", "ANTENNA2"].iter().all(|name| main.column(name).is_some());
        if main.rows() == 0 || !has_antennas || !is("TIME", DataType::Double) {
            return Ok(None);
        }
        let (time, first_row) = beginning(main)?;
        let antennas = |name: &str| main.integers(name, first_row..main.rows());
        let number = |antenna: i64| usize::try_from(antenna).unwrap_or(usize::MAX);
        let pairs = antennas("ANTENNA1")?.into_iter().zip(antennas("ANTENNA2")?);
        let baselines = Baselines { first_row, pairs: pairs.map(|(a, b)| (number(a), number(b))).collect() };
        Ok(Some(Integration {
            time,
            flagged: baselines.flags(main, known, bytes)?,
            amplitude: baselines.amplitude(main, known, bytes)?,
        }))
    }
}

/// TIME of the last row in seconds of MJD, and first row of the run with this TIME at the end.
fn beginning(main: &Rows) -> Result<(f64, u64)> {
    let rows = main.rows();
    let mut found = (f64::NAN, rows);
    for searched in SEARCHED_ROWS {
        let start = rows - searched.min(rows);
        let times = main.doubles("TIME", start..rows)?;
        let newest = times.last().copied().unwrap_or(f64::NAN);
        let other = times.iter().rposition(|time| time.to_bits() != newest.to_bits());
        found = (newest, other.map_or(start, |other| start + other as u64 + 1));
        if other.is_some() || start == 0 {
            break;
        }
    }
    Ok(found)
}

impl Baselines {
    fn flags(&self, main: &Rows, known: &Description, bytes: u64) -> Result<Vec<AntennaFlags>> {
        let has = |name: &str| main.column(name).is_some_and(|info| info.data_type() == DataType::Bool);
        let Some(column) = ["FLAG", "FLAG_ROW"].into_iter().find(|name| has(name)) else { return Ok(Vec::new()) };
        let chosen = cover(&self.pairs, main.sample_rows(column, bytes)? as usize);
        let flags = self.read_flags(main, &chosen)?;
        let mut sums: Vec<(f64, f64)> = Vec::new();
        for (&row, flags) in chosen.iter().zip(&flags) {
            let (first, second) = self.pairs[row];
            let mut both = vec![first, second];
            both.dedup();
            for antenna in both.into_iter().filter(|&antenna| antenna < MAX_ANTENNAS) {
                if sums.len() <= antenna {
                    sums.resize(antenna + 1, (0., 0.));
                }
                sums[antenna].0 += flags.iter().sum::<f64>();
                sums[antenna].1 += flags.len() as f64;
            }
        }
        let of_antenna = |(number, (flagged, all)): (usize, (f64, f64))| {
            (all > 0.).then(|| AntennaFlags { number, name: known.antenna(number), fraction: flagged / all })
        };
        Ok(sums.into_iter().enumerate().filter_map(of_antenna).collect())
    }

    fn amplitude(&self, main: &Rows, known: &Description, bytes: u64) -> Result<Option<f64>> {
        let Some(column) = known.columns.first() else { return Ok(None) };
        let cross: Vec<usize> = (0..self.pairs.len()).filter(|&row| self.pairs[row].0 != self.pairs[row].1).collect();
        let pairs: Vec<(usize, usize)> = cross.iter().map(|&row| self.pairs[row]).collect();
        let chosen = cover(&pairs, main.sample_rows(column, bytes)? as usize);
        let chosen: Vec<usize> = chosen.into_iter().map(|at| cross[at]).collect();
        let flags = self.read_flags(main, &chosen)?;
        let (mut sum, mut count) = (0., 0_u64);
        for group in main.cells(column, &self.rows(&chosen))? {
            let numbers = group.numbers();
            let cells = numbers.chunks(group.shape.elements()?.max(1) as usize);
            for (&place, cell) in group.places.iter().zip(cells) {
                for (index, amplitude) in cell.iter().enumerate() {
                    let flagged = is_flagged(&flags[place], index);
                    if amplitude.is_finite() && !flagged {
                        sum += amplitude;
                        count += 1;
                    }
                }
            }
        }
        Ok((count > 0).then(|| sum / count as f64))
    }

    /// Flags, 0 or 1, of the rows at the indices `chosen`: the elements of FLAG, none for an
    /// undefined cell, or a single number without FLAG. If FLAG_ROW is set, all are 1, and an
    /// undefined cell has a single 1.
    fn read_flags(&self, main: &Rows, chosen: &[usize]) -> Result<Vec<Vec<f64>>> {
        let is_bool = |name: &str| main.column(name).is_some_and(|info| info.data_type() == DataType::Bool);
        let mut flags = vec![vec![0.]; chosen.len()];
        if is_bool("FLAG") {
            flags = vec![Vec::new(); chosen.len()];
            for group in main.cells("FLAG", &self.rows(chosen))? {
                let numbers = group.numbers();
                let cells = numbers.chunks(group.shape.elements()?.max(1) as usize);
                for (&place, cell) in group.places.iter().zip(cells) {
                    flags[place] = cell.to_vec();
                }
            }
        }
        if is_bool("FLAG_ROW")
            && let Values::Bool(rows) = main.all("FLAG_ROW", self.first_row..main.rows())?
        {
            let flagged = chosen.iter().zip(&mut flags).filter(|(row, _)| rows[**row]);
            flagged.for_each(|(_, flags)| *flags = vec![1.; flags.len().max(1)]);
        }
        Ok(flags)
    }

    fn rows(&self, chosen: &[usize]) -> Vec<u64> {
        chosen.iter().map(|&row| self.first_row + row as u64).collect()
    }
}

/// If `flags` has a single number, that applies to the whole cell.
fn is_flagged(flags: &[f64], index: usize) -> bool {
    flags.get(index).or(flags.first().filter(|_| flags.len() == 1)).is_some_and(|&flag| flag != 0.)
}

/// Chooses `count` of the baselines `pairs`, or all if they are fewer, so that every antenna occurs
/// about equally often; their indices in ascending order.
fn cover(pairs: &[(usize, usize)], count: usize) -> Vec<usize> {
    let mut left = count;
    if left >= pairs.len() {
        return (0..pairs.len()).collect();
    }
    let mut chosen = vec![false; pairs.len()];
    // antennas beyond those that are shown count as one
    let place = |antenna: usize| antenna.min(MAX_ANTENNAS);
    let mut uses = vec![0; MAX_ANTENNAS + 1];
    for most in 0.. {
        // pairs of two antennas that were used less often than others, then those with one
        for wanted in [2, 1] {
            for (at, &(first, second)) in pairs.iter().enumerate() {
                if left == 0 {
                    return (0..pairs.len()).filter(|&at| chosen[at]).collect();
                }
                let rare = |antenna: usize| usize::from(uses[place(antenna)] <= most);
                if !chosen[at] && rare(first) + rare(second) >= wanted {
                    chosen[at] = true;
                    left -= 1;
                    uses[place(first)] += 1;
                    uses[place(second)] += 1;
                }
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctds::ndarray::ArrayD;
    use ctds::schema::ColumnDesc;
    use ctds::table::NewTable;

    use super::*;

    /// Row 1 has no cell in FLAG, and is flagged by FLAG_ROW, like row 2.
    #[test]
    fn flag_row_flags_rows_without_flags() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ms");
        let table = NewTable::new()
            .column(ColumnDesc::array::<bool>("FLAG").ndim(2))
            .column(ColumnDesc::scalar::<bool>("FLAG_ROW"));
        let mut table = table.create(&path).unwrap();
        table.add_rows(4).unwrap();
        let cell = ArrayD::from_shape_vec(vec![2, 1], vec![false, true]).unwrap();
        for row in [0, 2] {
            table.column("FLAG").unwrap().put_cell(row, &cell).unwrap();
        }
        table.column("FLAG_ROW").unwrap().put_scalars(0, vec![false, true, true, false]).unwrap();
        table.close().unwrap();
        let rows = Rows::open(&path, Arc::new(|_| true)).unwrap();
        let integration = Baselines { first_row: 0, pairs: vec![(0, 1); 4] };
        let flags = integration.read_flags(&rows, &[0, 1, 2, 3]).unwrap();
        assert_eq!(flags, [vec![0., 1.], vec![1.], vec![1., 1.], vec![]]);
        let flagged: Vec<bool> = flags.iter().map(|flags| is_flagged(flags, 0)).collect();
        assert_eq!(flagged, [false, true, true, false]);
    }

    #[test]
    fn few_rows_have_every_antenna() {
        let pairs: Vec<(usize, usize)> = (0..64).flat_map(|a| (a..64).map(move |b| (a, b))).collect();
        for count in [64, 100, 500, pairs.len(), 1_000_000] {
            let chosen = cover(&pairs, count);
            assert_eq!(chosen.len(), count.min(pairs.len()));
            assert!(chosen.windows(2).all(|two| two[0] < two[1]));
            for antenna in 0..64 {
                let has = |&at: &usize| pairs[at].0 == antenna || pairs[at].1 == antenna;
                let uses = chosen.iter().filter(|at| has(at)).count();
                assert!(uses > 0 && uses <= 4 * count / 64, "antenna {antenna} occurs {uses} times in {count}");
            }
        }
        assert!(cover(&[], 5).is_empty() && cover(&pairs, 0).is_empty());
    }

    #[test]
    fn a_single_flag_applies_to_the_whole_row() {
        assert!(is_flagged(&[1.], 7) && !is_flagged(&[0.], 0) && !is_flagged(&[], 0));
        assert!(is_flagged(&[0., 1.], 1) && !is_flagged(&[0., 1.], 2));
    }
}
