//! Storage managers that each serve one column of a MeasurementSet. formats/engines.md, Part 3.
//!
//! Casacore has had them since 3.7 and 3.8, in a folder `AlternateMans`; here the folder says what
//! they have in common. Their files are little-endian, whatever the table is, and never in a
//! container.
//!
//! | type                                   | values                                                    |
//! |----------------------------------------|-----------------------------------------------------------|
//! | AntennaPairStMan                       | ANTENNA1 and ANTENNA2, once for all time steps            |
//! | UvwStMan                               | UVW from a position for each antenna                      |
//! | StokesIStMan                           | one value for four correlations                           |
//! | SiscoStMan                             | visibilities, predicted from others and deflated          |
//! | LofarStMan, AsdmStMan, Adios2StMan     | refused                                                   |

mod antenna_pair;
mod row_file;
mod sisco;
mod stokes_i;
#[cfg(test)]
mod tests;
mod uvw;

use bstr::ByteSlice;

use super::Kind;
use crate::error::Error;

pub(super) use antenna_pair::KIND as ANTENNA_PAIR;
pub(super) use sisco::KIND as SISCO;
pub(super) use stokes_i::KIND as STOKES_I;
pub(super) use uvw::KIND as UVW;

pub(super) static THIRD_PARTY: Kind = Kind::new(&["LofarStMan", "AsdmStMan", "Adios2StMan"], |args| {
    Err(Error::unsupported(match args.type_name.to_str_lossy().trim() {
        "LofarStMan" => "LofarStMan is a third-party manager: raw files of the LOFAR correlator are not read",
        "AsdmStMan" => "AsdmStMan is a third-party manager: the ASDM that has the values is not read",
        _ => "Adios2StMan needs a third-party library: ADIOS2 files are not read",
    }))
});
