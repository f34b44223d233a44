//! The digests that a native HDF5 file stores of its tables and columns, to verify its content
//! later, by the rules of CTFP-2 (BLAKE3) or, in older files, CTFP-1 (SHA-256), which do not depend
//! on the storage. docs/reference/layout.md, "Digests".

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::document::decode;
use super::json;
use super::names::CTDS;
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Group};
use crate::hash::HashKind;

/// Attribute of the group `/_ctds/TABLE`.
const ATTRIBUTE: &str = "digests";
/// Marks are left out of a longer attribute: object headers of HDF5 1.8 hold 64 KiB.
const LARGEST: usize = 60_000;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredDigests {
    format: String,
    #[serde(rename = "nrow")]
    pub(crate) rows: Option<u64>,
    #[serde(rename = "blake3", alias = "sha256")]
    pub(crate) hash: Option<String>,
    #[serde(rename = "keywords_blake3", alias = "keywords_sha256")]
    pub(crate) keywords_hash: Option<String>,
    /// JSON by name, in the order of the table.
    columns: Map<String, Json>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredColumnDigests {
    /// Hexadecimal digits; `None` for columns not converted, or with strings not in UTF-8.
    #[serde(rename = "blake3", alias = "sha256")]
    pub(crate) hash: Option<String>,
    #[serde(rename = "keywords_blake3", alias = "keywords_sha256")]
    pub(crate) keywords_hash: Option<String>,
    /// `None` for columns under 256 KiB and in older files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) marks: Option<StoredMarks>,
}

/// Digests of a column's first `every`, 2 × `every`, … bytes: the first to differ locates damage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredMarks {
    /// Bytes of cells as they are hashed.
    pub(crate) every: u64,
    /// Eight hexadecimal digits for each mark, without separators.
    #[serde(rename = "blake3", alias = "sha256")]
    pub(crate) digits: String,
}

impl StoredMarks {
    /// `None` if the text is not eight hexadecimal digits for each mark.
    pub(crate) fn numbers(&self) -> Option<Vec<u32>> {
        let digits = self.digits.as_bytes();
        if !digits.len().is_multiple_of(8) || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        digits.chunks(8).map(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).collect()
    }
}

impl StoredDigests {
    pub(crate) const WRITTEN: HashKind = HashKind::Blake3;

    /// Hexadecimal; `hash` covers the rows and all columns. Columns follow by `add`.
    pub(crate) fn new(rows: u64, hash: String, keywords_hash: String) -> Self {
        let (hash, keywords_hash) = (Some(hash), Some(keywords_hash));
        let format = Self::WRITTEN.fingerprint().to_owned();
        StoredDigests { format, rows: Some(rows), hash, keywords_hash, columns: Map::new() }
    }

    /// `CTFP-1` of older files, or `CTFP-2`.
    pub(crate) fn kind(&self) -> Result<HashKind> {
        let found = HashKind::ALL.into_iter().find(|kind| kind.fingerprint() == self.format);
        found.ok_or_else(|| {
            let message = format!(
                "the digests have the format {:?}; CTFP-1 and CTFP-2 are known: use a newer h5bridge",
                self.format
            );
            Error::unsupported(message).context(format!("{CTDS} attribute {ATTRIBUTE}"))
        })
    }

    pub(crate) fn add(&mut self, name: &str, digests: &StoredColumnDigests) -> Result<()> {
        let value = serde_json::to_value(digests).map_err(|error| Error::format(error.to_string()).caused_by(error))?;
        self.columns.insert(name.to_owned(), value);
        Ok(())
    }

    pub(crate) fn columns(&self) -> Result<Vec<(&str, StoredColumnDigests)>> {
        let column = |(name, value)| {
            let digests = StoredColumnDigests::deserialize(value);
            let digests = digests.map_err(|error: serde_json::Error| Error::format(error.to_string()).caused_by(error));
            Ok((String::as_str(name), digests.with_context(|| format!("digests of column {name}"))?))
        };
        self.columns.iter().map(column).collect()
    }

    /// Marks are left out if the attribute would exceed 60,000 bytes.
    pub(crate) fn write(mut self, exact: &Group) -> Result<()> {
        let mut text = json::encode(&self)?;
        if text.len() > LARGEST {
            for column in self.columns.values_mut().filter_map(Json::as_object_mut) {
                column.shift_remove("marks");
            }
            text = json::encode(&self)?;
        }
        exact.set_attribute(ATTRIBUTE, &Attribute::string(text))
    }

    /// `None` if no digests of the table are stored.
    pub(super) fn read(exact: &Group) -> Result<Option<Self>> {
        let stored = exact.attribute(ATTRIBUTE)?;
        stored.map(|stored| decode(&stored).with_context(|| format!("{CTDS} attribute {ATTRIBUTE}"))).transpose()
    }
}
