//! A MeasurementSet as a processing set: partitions, and the datasets of each.

use ctds::measures::correlation;
use ctds::{Error, Result};

use crate::antenna;
use crate::dataset::Dataset;
use crate::field::Fields;
use crate::grid::Grid;
use crate::observation::telescope;
use crate::options::Options;
use crate::partition::{Part, partitions};
use crate::place::Place;
use crate::subtables;
use crate::tables::{MAIN, Subtable, Tables};
use crate::visibility::{self, Window, is_single_dish, time_scale};

/// A MeasurementSet in the schema MSv4.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ProcessingSet {
    /// The partitions in the order of the columns that separate them; empty without rows.
    pub partitions: Vec<Partition>,
    /// Sentences on what was left out or could not be said in the schema.
    pub warnings: Vec<String>,
}

/// The rows of one spectral window, polarization setup, observation, processor and intent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Partition {
    /// Name of its group, such as `my_0`.
    pub name: String,
    /// Where its rows are.
    pub grid: Grid,
    /// Columns by which it was split further, since rows would have shared a place or a time had
    /// several fields or scans; `occurrence` for rows that differ in no such column.
    pub split_by: Vec<&'static str>,
    /// The partition's own dataset, then those below it.
    pub datasets: Vec<Dataset>,
}

impl ProcessingSet {
    /// Reads the index columns of the main table and the subtables.
    ///
    /// # Errors
    /// `Unsupported` if the tables are not a MeasurementSet, the cells of a column differ in shape
    /// in a partition, or a column is missing that the schema needs; `Usage` if a name in the
    /// partition schema is unknown; those of reading.
    pub fn read(tables: &dyn Tables, options: &Options) -> Result<Self> {
        let parts = partitions(tables, &options.partition_schema)?;
        let width = parts.len().saturating_sub(1).to_string().len();
        let mut set = ProcessingSet { partitions: Vec::new(), warnings: Vec::new() };
        for (number, part) in parts.into_iter().enumerate() {
            let name = format!("{}_{number:0width$}", options.name);
            let mut warnings = Vec::new();
            let datasets = datasets(tables, &name, &part, options, &mut warnings)?;
            let Part { grid, split_by, varying, .. } = part;
            if grid.places() > grid.rows.saturating_mul(2) {
                let keys =
                    if varying.is_empty() { String::new() } else { format!("; less with {}", varying.join(" or ")) };
                warnings.push(format!("{} of {} places have no row{keys}", grid.places() - grid.rows, grid.places()));
            }
            set.warnings.extend(warnings.into_iter().map(|warning| format!("{name}: {warning}")));
            set.partitions.push(Partition { name, grid, split_by, datasets });
        }
        Ok(set)
    }
}

fn datasets(
    tables: &dyn Tables,
    name: &str,
    part: &Part,
    options: &Options,
    warnings: &mut Vec<String>,
) -> Result<Vec<Dataset>> {
    let description = Subtable::open(tables, "DATA_DESCRIPTION");
    let of = |column| -> Result<i64> {
        let all = description.map_or(Ok(None), |table| table.integers(column))?.unwrap_or_default();
        let row = part.shared.data_desc;
        let found = usize::try_from(row).ok().and_then(|row| all.get(row)).copied();
        found.ok_or_else(|| Error::format(format!("DATA_DESCRIPTION has no {column} of row {row}")))
    };
    let row = of("SPECTRAL_WINDOW_ID")?;
    let row = u64::try_from(row).map_err(|_| Error::format(format!("SPECTRAL_WINDOW has no row {row}")))?;
    let window = Window::read(Subtable::open(tables, "SPECTRAL_WINDOW"), row)?;
    let is_single_dish = is_single_dish(tables.columns(MAIN), &part.grid);
    let correlations = correlations(tables, of("POLARIZATION_ID").unwrap_or(-1), part, is_single_dish)?;
    let antennas = antenna::antennas(tables, part, telescope(tables, part.shared.observation)?)?;
    let receptors = antenna::receptors(tables, &antennas, row, &correlations)?;
    let place = Place {
        tables,
        part,
        path: name.to_owned(),
        window: row,
        correlations,
        is_single_dish,
        antennas,
        receptors,
        scale: time_scale(tables.columns(MAIN), warnings),
    };
    let fields = Fields::read(tables, part, is_single_dish, warnings)?;
    let mut found = vec![visibility::dataset(&place, &window, &fields, options, warnings)?];
    found.push(antenna::dataset(&place)?);
    found.push(fields.dataset(&place, warnings)?);
    found.extend(subtables::read_all(&place, warnings));
    Ok(found)
}

/// Row of POLARIZATION; any two receptors if it is missing.
fn correlations(tables: &dyn Tables, row: i64, part: &Part, is_single_dish: bool) -> Result<Vec<String>> {
    let table = Subtable::open(tables, "POLARIZATION");
    if let (Some(table), Ok(row)) = (table, u64::try_from(row))
        && row < table.rows
        && let Some((_, values)) = table.cell("CORR_TYPE", row)?
    {
        let codes = values.integers().ok_or_else(|| Error::format("CORR_TYPE of POLARIZATION has no integers"))?;
        return Ok(codes.into_iter().map(correlation).collect());
    }
    let column = tables.column(MAIN, if is_single_dish { "FLOAT_DATA" } else { "DATA" })?;
    let first = part.grid.runs().next().map_or(0, |run| run.start);
    let count = column.cell_shape(first)?.and_then(|shape| shape.first().copied()).unwrap_or(0);
    let names: &[&str] = match count {
        1 => &["I"],
        2 => &["PP", "QQ"],
        4 => &["PP", "PQ", "QP", "QQ"],
        _ => return Err(Error::format(format!("POLARIZATION has no row {row}, and cells have {count} correlations"))),
    };
    Ok(names.iter().map(ToString::to_string).collect())
}
