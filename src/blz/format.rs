//! The formats that arrays are written in.

use std::fmt;
use std::str::FromStr;

use super::array::Array;
use crate::error::{Error, Result};

/// A format of arrays in Blosc chunks.
///
/// ```
/// use ctds_hdf5::blz::ArrayFormat;
///
/// assert_eq!("bcolz".parse::<ArrayFormat>()?, ArrayFormat::Bcolz);
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArrayFormat {
    /// A directory with a file for each chunk, as blz 0.6 writes it.
    Blz,
    /// The same with other documents, as bcolz writes it.
    Bcolz,
    /// A single file with checksums.
    Bloscpack,
}

impl ArrayFormat {
    /// All formats of arrays.
    pub const ALL: [Self; 3] = [ArrayFormat::Blz, ArrayFormat::Bcolz, ArrayFormat::Bloscpack];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ArrayFormat::Blz => "blz",
            ArrayFormat::Bcolz => "bcolz",
            ArrayFormat::Bloscpack => "bloscpack",
        }
    }

    /// The format of directories: their documents differ in a key.
    pub(super) fn of_storage(arrays: &[Array]) -> Self {
        let storage = arrays.first().and_then(|array| array.storage.as_ref());
        let is_blz = storage.is_some_and(|storage| storage.value.get("bparams").is_some());
        if is_blz { ArrayFormat::Blz } else { ArrayFormat::Bcolz }
    }
}

impl FromStr for ArrayFormat {
    type Err = Error;

    /// Finds a format by its name.
    ///
    /// # Errors
    /// `Usage` if none has it.
    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            Error::usage(format!("{name:?} is not a format of arrays; expected blz, bcolz or bloscpack"))
        })
    }
}

impl fmt::Display for ArrayFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
