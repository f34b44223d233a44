//! The formats in which arrays of Blosc chunks are written: blz, bcolz and bloscpack.

use std::fmt;
use std::str::FromStr;

use crate::array::Array;
use crate::error::{Error, Result};

/// A format of arrays in Blosc chunks: blz, bcolz or bloscpack.
///
/// ```
/// use blosc_arrays::ArrayFormat;
///
/// assert_eq!("bcolz".parse::<ArrayFormat>()?, ArrayFormat::Bcolz);
/// # Ok::<(), blosc_arrays::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArrayFormat {
    /// A directory with a file for each chunk of the array, as blz 0.6 writes it.
    Blz,
    /// A directory with a file for each chunk of the array, as bcolz writes it: its JSON documents
    /// differ from those of blz.
    Bcolz,
    /// A single file with all chunks of the array and checksums, as bloscpack writes it.
    Bloscpack,
}

impl ArrayFormat {
    /// All formats in which arrays can be written.
    pub const ALL: [Self; 3] = [ArrayFormat::Blz, ArrayFormat::Bcolz, ArrayFormat::Bloscpack];

    /// Name of the array format on the command line: `blz`, `bcolz`, `bloscpack`.
    pub fn name(self) -> &'static str {
        match self {
            ArrayFormat::Blz => "blz",
            ArrayFormat::Bcolz => "bcolz",
            ArrayFormat::Bloscpack => "bloscpack",
        }
    }

    /// blz if the document `meta/storage` of the first array has the key `bparams`, else bcolz.
    pub(crate) fn of_storage(arrays: &[Array]) -> Self {
        let storage = arrays.first().and_then(|array| array.storage.as_ref());
        let is_blz = storage.is_some_and(|storage| storage.value.get("bparams").is_some());
        if is_blz { ArrayFormat::Blz } else { ArrayFormat::Bcolz }
    }
}

impl FromStr for ArrayFormat {
    type Err = Error;

    /// `blz`, `bcolz`, `bloscpack`; else `Usage`.
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
