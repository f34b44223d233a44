//! The digests that a native HDF5 file stores of its tables and columns, to verify its content later, by the rules of
//! CTFP-2 (BLAKE3) or, in older files, CTFP-1 (SHA-256), which do not depend on the storage. docs/layout.md, "Digests".

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::document::decode;
use super::json;
use super::names::CTDS;
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Group};
use crate::hash::HashKind;

/// Name of the HDF5 attribute with the digests of a table and its columns. It is on the group `/_ctds/TABLE`, in which
/// native HDF5 files keep what casacore knows of the table.
const ATTRIBUTE: &str = "digests";
/// Size in bytes of the attribute `digests` above which marks (digests of the beginnings of columns) are left out.
/// Object headers of HDF5 1.8 hold 64 KiB.
const LARGEST: usize = 60_000;

/// The digests of a table and its columns, as a native HDF5 file stores them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredDigests {
    format: String,
    #[serde(rename = "nrow")]
    pub(crate) rows: Option<u64>,
    /// Digest of the table: hash of its columns, in hexadecimal digits. `None` if the table has no digest.
    #[serde(rename = "blake3", alias = "sha256")]
    pub(crate) hash: Option<String>,
    #[serde(rename = "keywords_blake3", alias = "keywords_sha256")]
    pub(crate) keywords_hash: Option<String>,
    /// JSON objects with the digests of each column, by its name, in the order of the table.
    columns: Map<String, Json>,
}

/// The digests of a column, as a native HDF5 file stores them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredColumnDigests {
    /// Hash of the cells of the column in hexadecimal digits; `None` for columns without one (not converted, or strings that
    /// are not UTF-8).
    #[serde(rename = "blake3", alias = "sha256")]
    pub(crate) hash: Option<String>,
    #[serde(rename = "keywords_blake3", alias = "keywords_sha256")]
    pub(crate) keywords_hash: Option<String>,
    /// Digests of the beginning of the column, up to every multiple of a distance in bytes, which tell in which rows
    /// damage begins; `None` for columns under 256 KiB and in older files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) marks: Option<StoredMarks>,
}

/// Marks of a column: short digests of its first `every`, 2 × `every`, … bytes. The first one that differs tells in
/// which rows damage begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StoredMarks {
    /// Distance between two marks (digests of all bytes of a column's cells before a position), in bytes of the cells
    /// as they are hashed for the digest of the column.
    pub(crate) every: u64,
    /// For each multiple of `every` bytes (a mark): the first eight hexadecimal digits of the hash of all bytes of
    /// the column's cells before it; concatenated without separators.
    #[serde(rename = "blake3", alias = "sha256")]
    pub(crate) digits: String,
}

impl StoredMarks {
    /// The stored marks (digests of the beginnings of a column) as numbers of 32 bits; `None` if their text is not
    /// eight hexadecimal digits for each mark.
    pub(crate) fn numbers(&self) -> Option<Vec<u32>> {
        let digits = self.digits.as_bytes();
        if !digits.len().is_multiple_of(8) || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        digits.chunks(8).map(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).collect()
    }
}

impl StoredDigests {
    /// The hash of the digests that are written.
    pub(crate) const WRITTEN: HashKind = HashKind::Blake3;

    /// Begins the digests of a table with `rows` rows; those of its columns are added with `add`. `hash` covers the number of rows and
    /// the digests of all columns, `keywords_hash` the table's keywords; both as hexadecimal text.
    pub(crate) fn new(rows: u64, hash: String, keywords_hash: String) -> Self {
        let (hash, keywords_hash) = (Some(hash), Some(keywords_hash));
        let format = Self::WRITTEN.fingerprint().to_owned();
        StoredDigests { format, rows: Some(rows), hash, keywords_hash, columns: Map::new() }
    }

    /// The hash of these digests, by their format: `CTFP-1` of older files, or `CTFP-2`.
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

    /// Adds the digests of the next column, called `name`.
    pub(crate) fn add(&mut self, name: &str, digests: &StoredColumnDigests) -> Result<()> {
        let value = serde_json::to_value(digests).map_err(|error| Error::format(error.to_string()).caused_by(error))?;
        self.columns.insert(name.to_owned(), value);
        Ok(())
    }

    /// The name and the digests of each column, in the order of the table.
    pub(crate) fn columns(&self) -> Result<Vec<(&str, StoredColumnDigests)>> {
        let column = |(name, value)| {
            let digests = StoredColumnDigests::deserialize(value);
            let digests = digests.map_err(|error: serde_json::Error| Error::format(error.to_string()).caused_by(error));
            Ok((String::as_str(name), digests.with_context(|| format!("digests of column {name}"))?))
        };
        self.columns.iter().map(column).collect()
    }

    /// Writes the digests as an attribute of `exact`, the group `/_ctds/TABLE` of a native HDF5
    /// file (columns as datasets). If the attribute would exceed 60,000 bytes, the marks are left
    /// out.
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

    /// Reads the digests of a table from `exact`, its group `/_ctds/TABLE` in a native HDF5 file; `None` if the file
    /// stores no digests of the table.
    pub(super) fn read(exact: &Group) -> Result<Option<Self>> {
        let stored = exact.attribute(ATTRIBUTE)?;
        stored.map(|stored| decode(&stored).with_context(|| format!("{CTDS} attribute {ATTRIBUTE}"))).transpose()
    }
}
