//! Reads the coordinates of a MeasurementSet's axes (channel frequencies, correlations) from its
//! subtables, for HDF5 dimension scales.

use super::Source;
use crate::value::{DataType, Values};

/// CHAN_FREQ (Hz) of spectral windows as `chan`, CORR_TYPE (Stokes codes) of setups as `corr`.
pub(crate) fn coordinates(source: &Source) -> Vec<(String, Values)> {
    let frequencies = column(source, "SPECTRAL_WINDOW", "CHAN_FREQ", DataType::Double);
    let correlations = column(source, "POLARIZATION", "CORR_TYPE", DataType::Int);
    let known = frequencies.into_iter().map(|values| ("chan".to_owned(), values));
    known.chain(correlations.into_iter().map(|values| ("corr".to_owned(), values))).collect()
}

/// Defined cells of the first 10,000 rows; empty if one cannot be read.
fn column(source: &Source, table: &str, column: &str, data_type: DataType) -> Vec<Values> {
    let read = || -> Option<Vec<Values>> {
        let content = source.tables.iter().find(|other| other.name == table)?.content().ok()?;
        let index =
            content.columns().iter().position(|info| info.desc.name == column && info.data_type() == data_type)?;
        let cells = content.cells(index).ok()?;
        (0..content.rows().min(10_000))
            .filter(|&row| matches!(cells.cell_shape(row), Ok(Some(_))))
            .map(|row| {
                let mut values = Values::new(data_type);
                cells.read_cell(row, None, &mut values).ok()?;
                Some(values)
            })
            .collect()
    };
    read().unwrap_or_default()
}
