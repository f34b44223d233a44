//! Summary of a conversion of tables.

use std::path::Path;

use ctds_hdf5::convert::{Hash, Prediction, ToHdf5Plan, ToHdf5Summary};

use super::describe::{averaged_lines, profile_line, rounded, sharing_lines};
use crate::report;

pub(super) struct Written<'a> {
    pub(super) plan: &'a ToHdf5Plan<'a>,
    pub(super) summary: &'a ToHdf5Summary,
    pub(super) target: &'a Path,
    pub(super) expected: Prediction,
    pub(super) seconds: f64,
}

impl Written<'_> {
    pub(super) fn lines(&self) -> Vec<String> {
        let ToHdf5Summary { tables, columns, rows, bytes, file_bytes, digest, sharing, .. } = self.summary;
        let (target, size, stored) = (self.target.display(), report::bytes(*bytes), report::bytes(*file_bytes));
        let ratio = *file_bytes as f64 / (*bytes).max(1) as f64;
        let digest = digest.as_ref().map(Hash::to_string);
        let known = digest.map_or(String::new(), |digest| format!(", digest {}", &digest[..16]));
        let mut lines = vec![
            format!(
                "{target}: {tables} tables, {columns} columns, {rows} rows; {size} of data in {stored} ({ratio:.2})"
            ),
            format!(
                "{}{known}; expected: {} in {}",
                report::speed(*bytes, self.seconds),
                report::bytes(self.expected.file_bytes),
                rounded(self.expected.seconds)
            ),
        ];
        lines.extend(sharing.iter().flat_map(|sharing| sharing_lines(sharing, *file_bytes)));
        lines.extend(profile_line(self.plan));
        lines.extend(self.plan.averaged().map(averaged_lines).unwrap_or_default());
        let left = self.plan.left_uncompressed();
        if !left.is_empty() {
            lines.push(format!("not compressed, because samples hardly shrank: {}", left.join(", ")));
        }
        lines
    }
}
