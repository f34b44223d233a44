//! Managers for MeasurementSets and others that came after casacore 3.6. formats/engines.md, Part 3.
//!
//! Their files are little-endian whatever the table is.

use super::Kind;
use crate::error::Error;

macro_rules! refused {
    ($($name:ident: $text:literal),*) => {$(
        pub(super) static $name: Kind = Kind { names: &[$text], open: |args| Err(Error::unsupported(format!("{} later", args.type_name))) };
    )*};
}
refused!(ANTENNA_PAIR: "AntennaPairStMan", UVW: "UvwStMan", STOKES_I: "StokesIStMan", SISCO: "SiscoStMan", THIRD_PARTY: "LofarStMan");
