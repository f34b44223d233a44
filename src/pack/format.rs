//! The kinds of containers into which tables can be packed.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use crate::container::{self, Announced, CasacoreStorage, ContainerMut, Format, FormatOptions, WriteTree};
use crate::error::{Error, Result};
use crate::schema::StorageOption;

/// A kind of container that a table can be packed into.
///
/// ```
/// use ctds_hdf5::pack::PackFormat;
///
/// let names: Vec<_> = PackFormat::all().map(PackFormat::name).collect();
/// assert_eq!(names, ["multifile", "multifile1", "hdf5", "multihdf5", "vt", "sion"]);
/// assert_eq!("multihdf5".parse::<PackFormat>()?, PackFormat::MULTI_HDF5);
/// # Ok::<(), ctds_hdf5::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct PackFormat(&'static Format);

impl PackFormat {
    /// MultiFile version 2, the file `table.mf` in a table directory, which casacore 3.6 and later
    /// read.
    pub const MULTI_FILE: Self = PackFormat(&container::MULTI_FILE);

    /// MultiHDF5, the file `table.mfh5` in a table directory; casacore reads it if it was built
    /// with HDF5.
    pub const MULTI_HDF5: Self = PackFormat(&container::MULTI_HDF5);

    /// An HDF5 file with a dataset of bytes for each file, which every HDF5 reader opens.
    pub const HDF5: Self = PackFormat(&container::HDF5_FILES);

    /// All container formats that this program can write.
    pub fn all() -> impl Iterator<Item = Self> {
        container::FORMATS.list.iter().filter(|format| format.is_written()).map(|format| PackFormat(format))
    }

    /// Name of the format on the command line and in listings: `multifile`, `multihdf5`, `vt`
    /// (content-addressed archive).
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether casacore opens tables in containers of this format. Containers of other formats are
    /// single files that can hold any files.
    pub fn is_for_tables(self) -> bool {
        self.0.is_for_tables()
    }

    pub(super) fn create_for(
        self,
        path: &Path,
        files: &Announced,
        options: &FormatOptions,
    ) -> Result<Arc<dyn ContainerMut>> {
        self.0.create_for(path, files, options)
    }

    pub(super) fn create(self, path: &Path, options: &FormatOptions) -> Result<Arc<dyn ContainerMut>> {
        self.0.create(path, options)
    }

    /// `None` if files are added one by one.
    pub(super) fn write_tree(self) -> Option<WriteTree> {
        self.0.write_tree
    }

    /// Codes in casacore's table.dat; an error if casacore does not know the format.
    pub(super) fn in_table_directory(self) -> Result<(CasacoreStorage, StorageOption)> {
        let storage = self.0.casacore.and_then(|casacore| Some((casacore, StorageOption::of_code(casacore.option)?)));
        storage.ok_or_else(|| {
            let message =
                format!("casacore cannot open a table with a {} container: pack it into a single file", self.name());
            Error::usage(message)
        })
    }
}

impl FromStr for PackFormat {
    type Err = Error;

    /// Fails with `Usage` if no format that can be written has this name.
    fn from_str(name: &str) -> Result<Self> {
        Self::all().find(|format| format.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::all().map(Self::name).collect();
            Error::usage(format!("{name:?} is not a format that can be written; expected {}", known.join(" or ")))
        })
    }
}

impl fmt::Debug for PackFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PackFormat").field(&self.name()).finish()
    }
}

impl PartialEq for PackFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for PackFormat {}
