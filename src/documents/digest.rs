//! Documents of `digest`.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Described;
use crate::error::Result;
use crate::hash::{Hash, HashKind};

/// The document of `digest` for tables: fingerprints of their content. It has no status; the exit
/// code of the program says whether all columns could be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Digest {
    /// Definition of the fingerprints, which names their hash: `CTFP-2` or `CTFP-1`.
    pub format: String,
    /// Fingerprints of each table, by the keywords that lead to it, such as `ANTENNA` or `A/B`; the
    /// main table, `.`, is first.
    pub tables: IndexMap<String, Described<TableDigest>>,
}

impl Digest {
    /// Makes the document of fingerprints by hashes of one kind.
    pub fn new(kind: HashKind, tables: &[(String, Result<crate::convert::TableDigest>)]) -> Self {
        let described = |table: &Result<crate::convert::TableDigest>| match table {
            Ok(table) => Described::Table(table.into()),
            Err(error) => Described::Unreadable { error: error.to_string() },
        };
        Digest {
            format: kind.fingerprint().to_owned(),
            tables: tables.iter().map(|(name, table)| (name.clone(), described(table))).collect(),
        }
    }
}

/// Fingerprints of a table. The members `sha256` hold digests of either hash, so that one program
/// compares both; [`Digest::format`] says which it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableDigest {
    /// Number of rows.
    pub nrow: u64,
    /// Fingerprint of the table, in hexadecimal digits.
    pub sha256: String,
    /// Fingerprint of the keywords of the table, in hexadecimal digits.
    pub keywords_sha256: String,
    /// Fingerprints of each column, by its name, in the order of the table.
    pub columns: IndexMap<String, ColumnDigest>,
    /// Error of the table's first data manager, if the table has managers and none of them can be
    /// opened; else missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl From<&crate::convert::TableDigest> for TableDigest {
    fn from(table: &crate::convert::TableDigest) -> Self {
        TableDigest {
            nrow: table.rows,
            sha256: table.hash.to_string(),
            keywords_sha256: table.keywords_hash.to_string(),
            columns: table.columns.iter().map(|column| (column.name.clone(), column.into())).collect(),
            error: table.error.as_ref().map(ToString::to_string),
        }
    }
}

/// Fingerprints of a column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ColumnDigest {
    /// Type of the elements, such as `Complex`.
    pub dtype: String,
    /// `scalar` or `array`.
    pub kind: String,
    /// Fingerprint of the cells, in hexadecimal digits; `None` if they cannot be read.
    pub sha256: Option<String>,
    /// Fingerprint of the keywords of the column, in hexadecimal digits.
    pub keywords_sha256: String,
    /// The reason why the cells cannot be read; missing if they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl From<&crate::convert::ColumnDigest> for ColumnDigest {
    fn from(column: &crate::convert::ColumnDigest) -> Self {
        ColumnDigest {
            dtype: column.data_type.name().to_owned(),
            kind: if column.is_array { "array" } else { "scalar" }.to_owned(),
            sha256: column.hash.as_ref().ok().map(Hash::to_string),
            keywords_sha256: column.keywords_hash.to_string(),
            error: column.hash.as_ref().err().map(ToString::to_string),
        }
    }
}

/// The document of `digest` for a container of other files, a file in a container, or arrays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DigestFiles {
    /// Name of the hash: `BLAKE3` or `SHA-256`.
    pub format: String,
    /// Hash of each file or array, in hexadecimal digits, by its path or name.
    pub files: IndexMap<String, String>,
}

impl DigestFiles {
    /// Makes the document of hashes of one kind, by the paths of files or the names of arrays.
    pub fn new(kind: HashKind, files: impl IntoIterator<Item = (String, Hash)>) -> Self {
        let files = files.into_iter().map(|(path, hash)| (path, hash.to_string())).collect();
        DigestFiles { format: kind.to_string(), files }
    }
}
