//! Summary of a conversion of tables, in lines and in JSON.

use std::path::Path;

use ctds_hdf5::convert::{Hash, Hdf5Version, Prediction, Profile, ToHdf5Plan, ToHdf5Summary};
use serde_json::{Value as Json, json};

use super::describe::{
    averaged_json, averaged_lines, expected_json, profile_line, rounded, sharing_json, sharing_lines,
};
use crate::report;

/// A conversion that has been done.
pub(super) struct Written<'a> {
    pub(super) plan: &'a ToHdf5Plan<'a>,
    pub(super) summary: &'a ToHdf5Summary,
    pub(super) target: &'a Path,
    /// Names of the columns that were left uncompressed because their samples did not shrink
    /// enough.
    pub(super) left: Vec<String>,
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
        if !self.left.is_empty() {
            lines.push(format!("not compressed, because samples hardly shrank: {}", self.left.join(", ")));
        }
        lines
    }

    /// Members of the document of `--json`.
    pub(super) fn fields(&self) -> Json {
        let ToHdf5Summary { tables, columns, missing, rows, bytes, file_bytes, digest, .. } = self.summary;
        let mut fields = json!({
            "out": self.target.display().to_string(),
            "tables": tables,
            "columns": columns,
            "columns_missing": missing,
            "rows": rows,
            "bytes": bytes,
            "file_bytes": file_bytes,
            "seconds": self.seconds,
            "peak_memory": report::peak_memory(),
            "digest": digest.as_ref().map(Hash::to_string),
            "not_compressed": self.left,
            "expected": expected_json(&self.expected),
        });
        if let Some(averaged) = self.plan.averaged() {
            fields["averaged"] = averaged_json(averaged);
        }
        if self.plan.profile() == Profile::Cloud {
            fields["profile"] = "cloud".into();
        }
        if self.plan.hdf5() == Hdf5Version::V18 {
            fields["hdf5"] = "1.8".into();
        }
        if let Some(sharing) = &self.summary.sharing {
            fields["sharing"] = sharing_json(sharing, *file_bytes);
        }
        fields
    }
}
