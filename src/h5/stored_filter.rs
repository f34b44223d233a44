//! The filters that an HDF5 file records for a dataset, whether or not this program can run them.

use std::fmt;

use super::codec;
use super::compression::Plugin;
use super::existing::text;
use super::filter::Filter;
use super::library;
use crate::error::{Error, Result};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredFilter {
    pub(super) id: i32,
    pub(super) parameters: Vec<u32>,
    /// The name in the file, or else that in libhdf5; empty if neither has a name.
    pub(super) name: String,
}

/// Advice for programs that lack a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Some builds of libhdf5 lack it.
    Library,
    /// The Python package hdf5plugin has it.
    Hdf5plugin,
    /// A plugin has it, but not hdf5plugin.
    Elsewhere,
}

/// Number in the registry of The HDF Group, common name, and where to find the filter.
const KNOWN: &[(i32, &str, Origin)] = &[
    (1, "deflate", Origin::Library),
    (2, "shuffle", Origin::Library),
    (3, "fletcher32", Origin::Library),
    (4, "szip", Origin::Library),
    (5, "nbit", Origin::Library),
    (6, "scaleoffset", Origin::Library),
    (305, "lzo", Origin::Elsewhere),
    (307, "bzip2", Origin::Hdf5plugin),
    (32000, "lzf", Origin::Elsewhere),
    (32001, "blosc", Origin::Hdf5plugin),
    (32002, "mafisc", Origin::Elsewhere),
    (32003, "snappy", Origin::Elsewhere),
    (32004, "lz4", Origin::Hdf5plugin),
    (32008, "bitshuffle", Origin::Hdf5plugin),
    (32013, "zfp", Origin::Hdf5plugin),
    (32015, "zstd", Origin::Hdf5plugin),
    (32017, "sz", Origin::Hdf5plugin),
    (32018, "fcidecomp", Origin::Hdf5plugin),
    (32019, "jpeg", Origin::Elsewhere),
    (32020, "vbz", Origin::Elsewhere),
    (32024, "sz3", Origin::Hdf5plugin),
    (32026, "blosc2", Origin::Hdf5plugin),
    (32028, "sperr", Origin::Hdf5plugin),
];

impl StoredFilter {
    pub(super) fn of(filter: &h5_read::Filter) -> Self {
        let (id, parameters) = (i32::from(filter.id), filter.parameters.clone());
        StoredFilter { id, parameters, name: text(&filter.name) }
    }

    pub(super) fn own(&self, element_size: usize) -> Option<Filter> {
        Filter::stored(self.id, &self.parameters, element_size)
    }

    /// The name in the file, or else libhdf5's, or else the common one.
    pub(super) fn id_and_name(&self) -> (i32, String) {
        (self.id, if self.name.is_empty() { self.label() } else { &self.name }.to_owned())
    }

    /// `Unsupported` if neither this program, nor libhdf5, nor a plugin has the filter.
    pub(super) fn check_available(&self) -> Result<()> {
        if self.own(1).is_some() || library::has_filter(self.id)? {
            return Ok(());
        }
        let advice = match self.known() {
            Some((_, Origin::Library)) => {
                "the libhdf5 of this program was built without it; copy the file with h5repack -f GZIP=4, or another \
                 program whose HDF5 has this filter"
            }
            Some((_, Origin::Hdf5plugin)) => {
                "install the HDF5 plugin, e.g. pip install hdf5plugin, and set HDF5_PLUGIN_PATH to its directory \
                 (hdf5plugin.PLUGIN_PATH in Python)"
            }
            _ => "install the HDF5 plugin that contains it, and set HDF5_PLUGIN_PATH to its directory",
        };
        let (name, id) = (self.label(), self.id);
        Err(Error::unsupported(format!(
            "stored with the filter {name} (number {id}), which is not installed: {advice}"
        )))
    }

    /// `None` for filters of libhdf5, even if some builds lack them.
    pub(super) fn plugin(&self) -> Option<Plugin> {
        let plugin = |package| Some(Plugin { id: self.id, filter: self.label().to_owned(), package });
        match (codec::find(self.id), self.known()) {
            (Some(codec), _) => codec.plugin().and_then(|package| plugin(Some(package))),
            (None, Some((_, Origin::Library))) => None,
            (None, Some((_, Origin::Hdf5plugin))) => plugin(Some("hdf5plugin")),
            (None, _) => plugin(None),
        }
    }

    fn known(&self) -> Option<(&'static str, Origin)> {
        KNOWN.iter().find(|(id, _, _)| *id == self.id).map(|&(_, name, origin)| (name, origin))
    }

    /// Common name; for an unknown filter the name in the file, or `without a name`.
    fn label(&self) -> &str {
        match self.known() {
            Some((name, _)) => name,
            None if self.name.is_empty() => "without a name",
            None => &self.name,
        }
    }
}

impl fmt::Display for StoredFilter {
    /// As `h5bridge info` shows it: `shuffle`, `deflate(4)`, `blosc`, `filter 4711`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.own(1), self.known()) {
            (Some(filter), _) => filter.fmt(f),
            (None, Some((name, _))) => f.write_str(name),
            (None, None) => write!(f, "filter {}", self.id),
        }
    }
}
