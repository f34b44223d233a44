//! How datasets are compressed: a codec and its level as one value.

use std::fmt;
use std::str::FromStr;

use super::codec::{self, CODECS, Codec};
use super::filter::{Filter, Pipeline};
use crate::error::{Error, Result};
use crate::suggest::similar;

/// How the chunks of a dataset are compressed: by one of the codecs of this program at a level, or
/// not at all.
///
/// ```
/// # use ctds_hdf5::Compression;
/// # fn main() -> Result<(), ctds_hdf5::Error> {
/// let compression = "gzip".parse::<Compression>()?;
/// assert_eq!(compression, Compression::gzip(4));
/// assert_eq!(compression.to_string(), "gzip:4");
/// assert!("none".parse::<Compression>()?.is_none());
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Compression(Option<(&'static dyn Codec, u8)>);

/// A filter plugin that HDF5 readers need for a dataset: the filter is not part of libhdf5.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Plugin {
    /// The number of the HDF5 filter that the plugin contains, in the registry of The HDF Group.
    pub id: i32,
    /// The name of the HDF5 filter that the plugin contains, such as `zstd`.
    pub filter: String,
    /// Python package that contains the plugin's filter, such as `hdf5plugin` or `h5py`; `None` if
    /// no package is known.
    pub package: Option<&'static str>,
}

/// How hard to compress data whose compression the user does not choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// The choice of `--compress auto`.
    Balanced,
    /// Small, for data that is written once and rarely read.
    Thorough,
    /// Data so small that the time does not matter.
    Most,
}

/// HDF5's number of the filter, and the level.
impl From<Compression> for Option<(i32, u8)> {
    fn from(compression: Compression) -> Self {
        compression.0.map(|(codec, level)| (codec.id(), level))
    }
}

impl Compression {
    /// No compression: bytes are stored as they are.
    pub const NONE: Compression = Compression(None);

    /// The texts that [`FromStr`] accepts, as a list for users: `none, gzip[:1-9], …`.
    pub fn forms() -> String {
        let of_codec = |codec: &dyn Codec| match codec.levels() {
            Some(levels) => format!("{}[:{}-{}]", codec.name(), levels.range.start(), levels.range.end()),
            None => codec.name().to_owned(),
        };
        let mut forms = vec!["none".to_owned()];
        forms.extend(writable().map(of_codec));
        let last = forms.pop().unwrap_or_default();
        format!("{} or {last}", forms.join(", "))
    }

    /// `Usage` for a filter that this program does not write.
    pub(crate) fn of_filter(filter: Option<(i32, u8)>) -> Result<Self> {
        let Some((id, level)) = filter else { return Ok(Self::NONE) };
        let codec = writable().find(|codec| codec.id() == id);
        let codec = codec.ok_or_else(|| Error::usage(format!("no data is written with the HDF5 filter {id}")))?;
        Ok(Compression(Some((codec, level))))
    }

    /// Whether datasets are not compressed: bytes are stored as they are.
    pub fn is_none(self) -> bool {
        self.0.is_none()
    }

    /// The plugin that other programs need to read datasets with this compression; `None` if every
    /// libhdf5 reads them.
    pub fn plugin(self) -> Option<Plugin> {
        let (codec, _) = self.0?;
        Some(Plugin { id: codec.id(), filter: codec.filter_name().to_owned(), package: Some(codec.plugin()?) })
    }

    /// The plugin that other programs need to read Blosc chunks. Such chunks are copied from arrays
    /// of other formats; no other data is compressed with Blosc.
    pub fn blosc_plugin() -> Plugin {
        let codec = codec::blosc();
        let package = codec.plugin();
        Plugin { id: codec.id(), filter: codec.filter_name().to_owned(), package }
    }

    /// The filters of a dataset of numbers with this compression, for users: `shuffle + deflate 4`;
    /// empty without compression.
    pub fn describe(self) -> String {
        match self.0 {
            None => String::new(),
            Some((codec, level)) if codec.levels().is_some() => format!("shuffle + {} {level}", codec.filter_name()),
            Some((codec, _)) => format!("shuffle + {}", codec.filter_name()),
        }
    }

    /// Compresses by shuffle, then gzip (deflate) at this level: 1 (fastest) to 9 (smallest); the
    /// nearest of these for other numbers. Every HDF5 library reads it.
    pub fn gzip(level: u8) -> Self {
        Self::of(codec::portable(), level)
    }

    /// The level of gzip, from 1 to 9; `None` for every other codec, and without compression.
    pub fn gzip_level(self) -> Option<u8> {
        self.0.filter(|(codec, _)| *codec == codec::portable()).map(|(_, level)| level)
    }

    /// Gzip, which every libhdf5 can read.
    pub(crate) fn portable(effort: Effort) -> Self {
        Self::gzip(match effort {
            Effort::Balanced => 4,
            Effort::Thorough => 6,
            Effort::Most => 9,
        })
    }

    /// Takes the nearest level that the codec has.
    pub(super) fn of(codec: &'static dyn Codec, level: u8) -> Self {
        let level = codec.levels().map_or(0, |levels| level.clamp(*levels.range.start(), *levels.range.end()));
        Compression(Some((codec, level)))
    }

    /// The codec without the shuffle that usually precedes it.
    pub(crate) fn filter(self) -> Option<Filter> {
        self.0.map(|(codec, level)| Filter::Codec { codec, level })
    }

    /// Shuffle, then the codec.
    pub(crate) fn pipeline(self, element_size: usize) -> Pipeline {
        let codec = self.filter();
        let shuffle = codec.is_some().then_some(Filter::Shuffle { element_size });
        Pipeline::new(shuffle.into_iter().chain(codec).collect())
    }
}

/// Ordered as in the command line's help.
fn writable() -> impl Iterator<Item = &'static dyn Codec> {
    let can_encode = |codec: &&'static dyn Codec| {
        let level = codec.levels().map_or(0, |levels| levels.default);
        codec.encoder(level).is_some()
    };
    CODECS.iter().copied().filter(can_encode)
}

impl Default for Compression {
    fn default() -> Self {
        Self::NONE
    }
}

impl FromStr for Compression {
    type Err = Error;

    /// Parses `none`, `gzip`, `gzip:6`; `Usage` names the codecs or levels that exist.
    fn from_str(text: &str) -> Result<Self> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        let (name, level) = text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level)));
        let known = writable().find(|codec| codec.name() == name);
        let codec = known.ok_or_else(|| {
            let meant = similar(name, writable().map(|codec| codec.name()));
            let meant = meant.map_or(String::new(), |name| format!("; did you mean {name}?"));
            Error::usage(format!("expected {}{meant}", Self::forms()))
        })?;
        let level = match (codec.levels(), level) {
            (Some(levels), None) => levels.default,
            (Some(levels), Some(text)) => {
                let level = text.parse().ok().filter(|level| levels.range.contains(level));
                let (first, last) = (levels.range.start(), levels.range.end());
                level.ok_or_else(|| Error::usage(format!("{name} has levels {first} to {last}")))?
            }
            (None, None) => 0,
            (None, Some(_)) => return Err(Error::usage(format!("{name} has no levels"))),
        };
        Ok(Compression(Some((codec, level))))
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("none"),
            Some((codec, level)) if codec.levels().is_some() => write!(f, "{}:{level}", codec.name()),
            Some((codec, _)) => f.write_str(codec.name()),
        }
    }
}

impl fmt::Debug for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compression({self})")
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} filter plugin ({})", self.filter, self.id)?;
        self.package.map_or(Ok(()), |package| write!(f, ", e.g. {package}"))
    }
}
