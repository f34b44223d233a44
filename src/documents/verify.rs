//! Documents of `verify` and `lint`.

use serde::{Deserialize, Serialize};

use super::shown;
use crate::blz::{ArrayComparison, ArrayDifference};
use crate::convert::{Comparison, Difference, ManifestCheck};
use crate::error::Error;
use crate::lint::{Finding, LintReport, Reader, Requirement};
use crate::pack::{ByteComparison, ByteDifference, Check};

/// The document of `verify A B` for tables, and of `verify A` for an HDF5 file with digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyTables {
    /// Whether no difference was found.
    pub equal: bool,
    /// Amount of content that was compared.
    pub compared: ComparedTables,
    /// The first difference of each column or table that differs.
    pub differences: Vec<Difference>,
}

impl From<&Comparison> for VerifyTables {
    fn from(result: &Comparison) -> Self {
        let Comparison { tables, columns, cells, files, .. } = *result;
        VerifyTables {
            equal: result.differences.is_empty(),
            compared: ComparedTables { tables, columns, cells, files },
            differences: result.differences.clone(),
        }
    }
}

/// Amount of content that `verify` has compared value by value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ComparedTables {
    /// Number of tables, with subtables.
    pub tables: u64,
    /// Number of columns of all tables.
    pub columns: u64,
    /// Number of cells of all columns.
    pub cells: u64,
    /// Number of original files that a restorable HDF5 file describes; 0 for any other source.
    pub files: u64,
}

/// The document of `verify A B --bytes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyBytes {
    /// Whether no difference was found.
    pub equal: bool,
    /// Amount of files that were compared.
    pub compared: ComparedFiles,
    /// The first difference of each file that differs.
    pub differences: Vec<ByteDifference>,
}

impl From<&ByteComparison> for VerifyBytes {
    fn from(result: &ByteComparison) -> Self {
        VerifyBytes {
            equal: result.differences.is_empty(),
            compared: ComparedFiles { files: result.files, bytes: result.bytes },
            differences: result.differences.clone(),
        }
    }
}

/// Amount of files that `verify` has compared byte by byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ComparedFiles {
    /// Number of files.
    pub files: u64,
    /// Size of these files.
    pub bytes: u64,
}

/// The document of `verify A B` for arrays of BLZ, bcolz or bloscpack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyArrays {
    /// Whether no difference was found.
    pub equal: bool,
    /// Amount of content that was compared.
    pub compared: ComparedArrays,
    /// The first difference of each array that differs.
    pub differences: Vec<ArrayDifference>,
}

impl From<&ArrayComparison> for VerifyArrays {
    fn from(result: &ArrayComparison) -> Self {
        VerifyArrays {
            equal: result.differences.is_empty(),
            compared: ComparedArrays { arrays: result.arrays as u64, bytes: result.bytes },
            differences: result.differences.clone(),
        }
    }
}

/// Amount of arrays that `verify` has compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ComparedArrays {
    /// Number of arrays that both sides have.
    pub arrays: u64,
    /// Size of these arrays, uncompressed.
    pub bytes: u64,
}

/// The document of `verify A` for a container with checksums.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyStored {
    /// Whether all bytes agree with their checksums; `None` if no checksum is stored, so that
    /// nothing was compared.
    pub intact: Option<bool>,
    /// Amount of content that was compared with checksums.
    pub checked: CheckedFiles,
    /// Places that differ from their checksum or cannot be read.
    pub damaged: Vec<DamagedFile>,
}

impl From<&Check> for VerifyStored {
    fn from(check: &Check) -> Self {
        let damaged = |(file, error): &(String, Error)| DamagedFile { file: file.clone(), error: error.to_string() };
        let Check { files, bytes, blocks, block_bytes, .. } = *check;
        let is_known = !check.damaged.is_empty() || files > 0 || blocks > 0;
        VerifyStored {
            intact: is_known.then_some(check.damaged.is_empty()),
            checked: CheckedFiles { files, bytes, blocks, block_bytes },
            damaged: check.damaged.iter().map(damaged).collect(),
        }
    }
}

/// Amount of content that `verify` has compared with the checksums in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckedFiles {
    /// Number of files with a checksum of their own.
    pub files: u64,
    /// Size of these files.
    pub bytes: u64,
    /// Number of blocks with a checksum.
    pub blocks: u64,
    /// Size of these blocks.
    pub block_bytes: u64,
}

/// A file or block that `verify` has found damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DamagedFile {
    /// Path of the file below the source, or the name of its container.
    pub file: String,
    /// The damage, one sentence.
    pub error: String,
}

/// The document of `verify A` for arrays of BLZ, bcolz or bloscpack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyStoredArrays {
    /// `Some(true)`; `None` if no array has checksums, so that nothing was compared. Damage is an
    /// error.
    pub intact: Option<bool>,
    /// Amount of content that was decoded.
    pub checked: CheckedArrays,
    /// Empty, since damage is an error.
    pub damaged: Vec<DamagedFile>,
}

impl VerifyStoredArrays {
    /// Makes the document of arrays whose chunks all decode.
    pub fn new(checked: CheckedArrays) -> Self {
        VerifyStoredArrays { intact: (checked.arrays > 0).then_some(true), checked, damaged: Vec::new() }
    }
}

/// Amount of arrays that `verify` has decoded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedArrays {
    /// Number of arrays with checksums.
    pub arrays: u64,
    /// Number of all arrays.
    pub decoded: u64,
    /// Size of all arrays, uncompressed.
    pub bytes: u64,
}

/// The document of `verify A` for a kerchunk manifest: compares files with their size and time of
/// modification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyManifest {
    /// Whether all files are as they were when the manifest was made.
    pub unchanged: bool,
    /// Amount of files that were compared.
    pub checked: CheckedManifest,
    /// Files that are missing or have changed.
    pub changed: Vec<ChangedFile>,
}

impl From<&ManifestCheck> for VerifyManifest {
    fn from(check: &ManifestCheck) -> Self {
        let changed =
            |file: &crate::convert::ChangedFile| ChangedFile { path: shown(&file.path), change: file.change.clone() };
        VerifyManifest {
            unchanged: check.changed.is_empty(),
            checked: CheckedManifest { files: check.files as u64, bytes: check.bytes },
            changed: check.changed.iter().map(changed).collect(),
        }
    }
}

/// Amount of files that a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckedManifest {
    /// Number of files.
    pub files: u64,
    /// Size of these files when the manifest was made; their bytes are not read.
    pub bytes: u64,
}

/// A file that has changed since a manifest was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChangedFile {
    /// Path of the file.
    pub path: String,
    /// The change, in words.
    pub change: String,
}

/// The document of `verify A` for a thin table, whose tiles are in an HDF5 file. A moved or
/// rewritten file is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyThin {
    /// `true`.
    pub thin: bool,
    /// `true`: the HDF5 file is the one to which the table was linked.
    pub unchanged: bool,
    /// Amount of links that were compared.
    pub checked: CheckedLinks,
}

impl VerifyThin {
    /// Makes the document of `links` files that lead to `bytes` bytes of an HDF5 file.
    pub fn new(links: u64, bytes: u64) -> Self {
        VerifyThin { thin: true, unchanged: true, checked: CheckedLinks { links, bytes } }
    }
}

/// Amount of links of a thin table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckedLinks {
    /// Number of files of the table that are links.
    pub links: u64,
    /// Size of the datasets to which they lead.
    pub bytes: u64,
}

/// The document of `lint`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Lint {
    /// Whether the file follows docs/reference/layout.md, also if some readers do not support
    /// everything in it.
    pub follows_layout: bool,
    /// Amount of objects that were checked.
    pub checked: CheckedObjects,
    /// Objects that break the layout or that some readers do not support.
    pub findings: Vec<LintFinding>,
}

impl From<&LintReport> for Lint {
    fn from(report: &LintReport) -> Self {
        let LintReport { groups, datasets, attributes, .. } = *report;
        Lint {
            follows_layout: report.follows_layout(),
            checked: CheckedObjects { groups, datasets, attributes },
            findings: report.findings.iter().map(LintFinding::from).collect(),
        }
    }
}

/// Amount of objects that `lint` has checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckedObjects {
    /// Number of groups.
    pub groups: u64,
    /// Number of datasets.
    pub datasets: u64,
    /// Number of attributes.
    pub attributes: u64,
}

/// A flaw of an object in an HDF5 file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LintFinding {
    /// Identifier of the rule, such as `chunk-index`.
    pub rule: String,
    /// Whether the object breaks docs/reference/layout.md, or only lacks support in some readers.
    pub breaks_layout: bool,
    /// HDF5 path of the object; `/` for the root group or the whole file.
    pub object: String,
    /// Name of the attribute that has the flaw; `None` if the object itself has it.
    pub attribute: Option<String>,
    /// The flaw, in words.
    pub found: String,
    /// Names of the readers that the flaw affects; empty for rules of the layout, which concern
    /// all.
    pub readers: Vec<String>,
    /// The reason why the flaw matters, one sentence.
    pub why: String,
    /// Advice, one sentence.
    pub next: String,
}

impl From<&Finding> for LintFinding {
    fn from(finding: &Finding) -> Self {
        let rule = finding.rule;
        LintFinding {
            rule: rule.name.to_owned(),
            breaks_layout: rule.requirement == Requirement::Layout,
            object: finding.object.clone(),
            attribute: finding.attribute.clone(),
            found: finding.found.clone(),
            readers: rule.readers.iter().map(|&reader| Reader::name(reader).to_owned()).collect(),
            why: rule.why.to_owned(),
            next: rule.next.to_owned(),
        }
    }
}
