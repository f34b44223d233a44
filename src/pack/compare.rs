//! Compares the files of two tables byte by byte, each taken out of its container if it is in one.

use std::collections::BTreeMap;

use super::copy::PIECE_BYTES;
use super::elsewhere::Elsewhere;
use super::file_set::{FileSet, SetFile};
use crate::error::{Context, Result, ResultExt};
use crate::progress::Progress;

/// Result of comparing the files of two tables byte by byte.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ByteComparison {
    /// Number of files that both tables have, and whose bytes were therefore compared.
    pub files: u64,
    /// Number of bytes that were compared in the files which both tables have.
    pub bytes: u64,
    /// The first difference of each file that differs.
    pub differences: Vec<ByteDifference>,
    /// Warnings for the user about either of the two tables, in sentences.
    pub warnings: Vec<String>,
    /// The tables that the tables of either side need, but that are not among the compared files.
    pub elsewhere: Vec<Elsewhere>,
}

/// A file that differs between two tables, and where.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ByteDifference {
    /// Path of the file below the table: `ANTENNA/table.f0`.
    pub file: String,
    /// Offset in bytes of the first byte that differs, or of the end of the shorter file if it is
    /// the beginning of the longer one; `None` if the file is missing on one side.
    pub offset: Option<u64>,
    /// Description of the left file at the first difference, for people: its byte there, its
    /// length, or that it is missing.
    pub left: String,
    /// Description of the right file at the first difference, for people: its byte there, its
    /// length, or that it is missing.
    pub right: String,
}

/// Files are outside of containers; `Interrupted` if `progress` says so.
pub(super) fn compare(left: &FileSet, right: &FileSet, progress: &dyn Progress) -> Result<ByteComparison> {
    let mut all = ByteComparison {
        warnings: [left.warnings(), right.warnings()].concat(),
        elsewhere: left.elsewhere()?,
        ..ByteComparison::default()
    };
    let others = right.elsewhere()?.into_iter().filter(|other| !all.elsewhere.contains(other)).collect::<Vec<_>>();
    all.elsewhere.extend(others);
    let places = (Context::path(left.path()), Context::path(right.path()));
    let (left, right) = (by_path(left), by_path(right));
    for (path, (table, file)) in &left {
        let difference = match right.get(path) {
            Some((_, other)) => {
                let progress = |bytes| {
                    progress.advance(bytes, table, &file.name);
                    progress.go_on()
                };
                let (bytes, difference) = compare_files(file, other, path, &places, progress)?;
                all.files += 1;
                all.bytes += bytes;
                difference
            }
            None => Some((None, describe(file), "no such file".to_owned())),
        };
        all.differences.extend(difference.map(|found| found.in_file(path)));
    }
    for (path, (_, file)) in right.iter().filter(|(path, _)| !left.contains_key(*path)) {
        all.differences.push((None, "no such file".to_owned(), describe(file)).in_file(path));
    }
    Ok(all)
}

fn by_path(plain: &FileSet) -> BTreeMap<String, (&str, &SetFile)> {
    let folders = plain.root.all().into_iter();
    folders
        .flat_map(|folder| {
            folder.files.iter().map(|file| (format!("{}{}", folder.prefix, file.name), (folder.name(), file)))
        })
        .collect()
}

fn describe(file: &SetFile) -> String {
    format!("a file of {} bytes", file.len)
}

/// First difference: offset (`None` if one file is missing), and descriptions of both files there.
type Found = (Option<u64>, String, String);

trait InFile {
    fn in_file(self, path: &str) -> ByteDifference;
}

impl InFile for Found {
    fn in_file(self, path: &str) -> ByteDifference {
        let (offset, left, right) = self;
        ByteDifference { file: path.to_owned(), offset, left, right }
    }
}

/// Number of compared bytes. `path` is below both tables; `places` names them in errors.
fn compare_files(
    left: &SetFile,
    right: &SetFile,
    path: &str,
    places: &(Context, Context),
    progress: impl Fn(u64) -> Result<()>,
) -> Result<(u64, Option<Found>)> {
    let (place, other_place) = ([Context::member(path), places.0.clone()], [Context::member(path), places.1.clone()]);
    let (a, b) = (left.open().in_contexts(&place)?, right.open().in_contexts(&other_place)?);
    let common = left.len.min(right.len);
    let piece = common.min(PIECE_BYTES as u64) as usize;
    let (mut x, mut y) = (vec![0; piece], vec![0; piece]);
    let mut at = 0;
    while at < common {
        let count = (common - at).min(piece as u64) as usize;
        a.read_at(at, &mut x[..count]).in_contexts(&place)?;
        b.read_at(at, &mut y[..count]).in_contexts(&other_place)?;
        if x[..count] != y[..count] {
            let first = x.iter().zip(&y).position(|(x, y)| x != y).unwrap_or_default();
            let show = |byte: u8| format!("{byte:#04x}");
            return Ok((at + first as u64, Some((Some(at + first as u64), show(x[first]), show(y[first])))));
        }
        at += count as u64;
        progress(count as u64)?;
    }
    let show = |len: u64| if len == common { format!("the end after {len} bytes") } else { format!("{len} bytes") };
    let shorter = left.len != right.len;
    Ok((common, shorter.then(|| (Some(common), show(left.len), show(right.len)))))
}
