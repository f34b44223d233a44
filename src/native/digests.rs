//! The digests that a native file holds of its own content. docs/layout.md, "Digests".

use serde_json::{Value as Json, json};

use crate::h5::Attribute;
use crate::sha::{Sha, hex};

/// Of a table, in its group under `/_ctds`.
pub(crate) const ATTRIBUTE: &str = "digests";

/// The digests of a column: of its cells, if it has one, and of its keywords.
pub(crate) struct ColumnDigests<'a> {
    pub(crate) name: &'a str,
    pub(crate) sha256: Option<&'a Sha>,
    pub(crate) keywords_sha256: &'a Sha,
}

/// What the attribute says.
pub(crate) fn to_attribute<'a>(
    rows: u64,
    table: &Sha,
    keywords: &Sha,
    columns: impl Iterator<Item = ColumnDigests<'a>>,
) -> Attribute {
    let columns: serde_json::Map<String, Json> = columns
        .map(|column| {
            let sha256 = column.sha256.map(hex);
            (column.name.to_owned(), json!({"sha256": sha256, "keywords_sha256": hex(column.keywords_sha256)}))
        })
        .collect();
    let document = json!({
        "format": "CTFP-1",
        "nrow": rows,
        "sha256": hex(table),
        "keywords_sha256": hex(keywords),
        "columns": columns,
    });
    Attribute::string(document.to_string())
}
