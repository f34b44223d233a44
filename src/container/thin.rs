//! Thin tables: casacore tables whose large files of tiles are symbolic links to an HDF5 file that
//! holds the tiles. docs/howto/share.md.

use std::path::Path;

pub(crate) use ctds::thin::*;

use crate::error::{Error, Result};
use crate::h5;

/// Fails if the datasets of the file `hdf5` are no longer where the links of a thin table lead.
/// Changed elements of datasets are allowed: the table reads its tiles from there.
pub(crate) fn check_hdf5(record: &Record, hdf5: &Path) -> Result<()> {
    let root = h5::File::open_shared(hdf5)?.root()?;
    for link in &record.links {
        let find = || -> Result<bool> {
            let dataset = root.dataset(link.dataset.trim_start_matches('/'))?;
            Ok(dataset.block()? == Some(link.address) && dataset.stored_bytes() == link.bytes)
        };
        if !find().unwrap_or(false) {
            return Err(Error::format(format!("{} is no longer at byte {}", link.dataset, link.address)));
        }
    }
    Ok(())
}
