//! The version of HDF5 for which a file is written.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::h5::{Attribute, Bounds};

/// The oldest version of HDF5 that can read a converted file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Hdf5Version {
    /// The file can be read by HDF5 1.8, and by readers that know its structures only: superblock
    /// 0, symbol tables, version 1 B-trees.
    V18,
    /// The file can be read by HDF5 1.10 and later.
    #[default]
    V110,
}

impl Hdf5Version {
    pub(crate) fn bounds(self) -> Bounds {
        match self {
            Hdf5Version::V18 => Bounds::Earliest,
            Hdf5Version::V110 => Bounds::V110,
        }
    }

    /// If not, the keyword is still in the JSON document of the table or column.
    pub(super) fn holds(self, name: &str, value: &Attribute) -> bool {
        self == Hdf5Version::V110 || value.fits_header(name)
    }

    /// Returns `index` for 1.10, `btree_v1` for 1.8; `none` (without chunks) is unchanged.
    pub(super) fn chunk_index(self, index: &'static str) -> &'static str {
        if self == Hdf5Version::V18 && index != "none" { "btree_v1" } else { index }
    }
}

impl FromStr for Hdf5Version {
    type Err = Error;

    /// Parses a version of HDF5 to write for: `1.8` or `1.10`.
    ///
    /// # Errors
    /// `Usage` for any other text.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "1.8" => Ok(Hdf5Version::V18),
            "1.10" => Ok(Hdf5Version::V110),
            _ => Err(Error::usage(format!("{text:?} is not a version of HDF5 to write for: expected 1.8 or 1.10"))),
        }
    }
}

impl fmt::Display for Hdf5Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hdf5Version::V18 => "1.8",
            Hdf5Version::V110 => "1.10",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn only_two_versions_are_written_for() {
        for word in ["1.8", "1.10"] {
            assert_eq!(word.parse::<Hdf5Version>().unwrap().to_string(), word);
        }
        let error = "2.0".parse::<Hdf5Version>().unwrap_err();
        let says = "\"2.0\" is not a version of HDF5 to write for: expected 1.8 or 1.10";
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Usage, says));
    }
}
