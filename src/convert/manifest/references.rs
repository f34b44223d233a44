//! Writes the JSON of a manifest (kerchunk, version 1) entry by entry: memory does not grow with
//! the number of chunks.

use std::io::Write;

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use serde_json::{Map, Value as Json, json};

use crate::error::Result;
use crate::grid::Grid;

/// Member for this program, such as files to check later; other readers ignore it.
pub(super) const RECORD: &str = "h5bridge";

pub(super) struct References<W> {
    out: W,
    count: u64,
    /// Chunks written so far, as references or as bytes in base64.
    chunks: u64,
    /// Documents for `.zmetadata`: Zarr cannot list references to find members of groups.
    consolidated: Vec<Document>,
}

struct Document {
    /// Group of the described object, without a leading slash; empty for the root and its members.
    parent: String,
    key: String,
    document: Json,
}

/// Encoded as a JSON string.
#[derive(Debug, Clone)]
pub(super) struct FileName(String);

impl FileName {
    pub(super) fn new(path: &str) -> Self {
        FileName(Json::from(path).to_string())
    }
}

impl<W: Write> References<W> {
    /// `record` precedes all references.
    pub(super) fn begin(mut out: W, record: &Json) -> Result<Self> {
        write!(out, "{{\"version\":1,\"templates\":{{}},\"{RECORD}\":{record},\"refs\":{{")?;
        Ok(References { out, count: 0, chunks: 0, consolidated: Vec::new() })
    }

    fn key(&mut self, path: &str, name: &str) -> Result<()> {
        let separator = if self.count == 0 { "\n" } else { ",\n" };
        self.count += 1;
        // names of groups and datasets may have any character
        let key = Json::from(join(path, name));
        Ok(write!(self.out, "{separator}{key}:")?)
    }

    pub(super) fn document(&mut self, path: &str, name: &str, document: Json) -> Result<()> {
        self.text(path, name, &document)?;
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
        self.consolidated.push(Document { parent, key: join(path, name), document });
        Ok(())
    }

    fn text(&mut self, path: &str, name: &str, document: &Json) -> Result<()> {
        self.key(path, name)?;
        let text = Json::from(document.to_string());
        Ok(write!(self.out, "{text}")?)
    }

    /// `index` counts chunks on each axis, fastest first; `offset` is a byte of the file.
    pub(super) fn range(&mut self, array: &str, index: &[u64], file: &FileName, offset: u64, len: u64) -> Result<()> {
        self.chunks += 1;
        self.key(array, &chunk_key(index))?;
        Ok(write!(self.out, "[{},{offset},{len}]", file.0)?)
    }

    pub(super) fn inline(&mut self, array: &str, index: &[u64], bytes: &[u8]) -> Result<()> {
        self.chunks += 1;
        self.key(array, &chunk_key(index))?;
        self.out.write_all(b"\"base64:")?;
        write_base64(&mut self.out, bytes)?;
        Ok(self.out.write_all(b"\"")?)
    }

    /// Returns the output and the number of chunks in it.
    pub(super) fn end(mut self) -> Result<(W, u64)> {
        let mut documents = std::mem::take(&mut self.consolidated);
        // zarr expects the members of a group one after the other
        documents.sort_by(|one, other| one.parent.cmp(&other.parent));
        let documents: Map<String, Json> = documents.into_iter().map(|entry| (entry.key, entry.document)).collect();
        self.text("", ".zmetadata", &json!({ "zarr_consolidated_format": 1, "metadata": documents }))?;
        self.out.write_all(b"\n}}\n")?;
        self.out.flush()?;
        Ok((self.out, self.chunks))
    }
}

/// `path` is empty for the root.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

/// Positions joined by dots, slowest axis first; `index` has the fastest first.
fn chunk_key(index: &[u64]) -> String {
    let mut key = String::new();
    for (number, place) in index.iter().rev().enumerate() {
        if number > 0 {
            key.push('.');
        }
        key.push_str(itoa::Buffer::new().format(*place));
    }
    key
}

/// False for chunks of an array that grows, beyond its extents.
pub(super) fn is_inside(grid: &Grid, index: &[u64]) -> bool {
    let counts = grid.counts();
    index.len() == counts.len() && index.iter().zip(counts.iter()).all(|(index, count)| index < count)
}

/// Writes bytes as base64 text (RFC 4648 section 4) into the manifest.
fn write_base64(out: &mut impl Write, bytes: &[u8]) -> Result<()> {
    let mut encoder = EncoderWriter::new(out, &STANDARD);
    encoder.write_all(bytes)?;
    encoder.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_rfc() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            let mut out = Vec::new();
            write_base64(&mut out, bytes.as_bytes()).unwrap();
            assert_eq!(out, text.as_bytes());
        }
        let mut out = Vec::new();
        write_base64(&mut out, &[0xff; 9000]).unwrap();
        assert_eq!(out, [b'/'; 12000]);
    }

    #[test]
    fn a_document_is_json() {
        let mut references = References::begin(Vec::new(), &json!({ "files": [] })).unwrap();
        references.document("", ".zgroup", super::super::metadata::group()).unwrap();
        let file = FileName::new("/data/\"my\".ms/table.f3_TSM0");
        references.range("MAIN/A\"B", &[0, 0, 12], &file, 4096, 512).unwrap();
        references.inline("MAIN/NAME", &[1], b"foo").unwrap();
        let (bytes, chunks) = references.end().unwrap();
        let json: Json = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(chunks, 2);
        assert_eq!(json["refs"]["MAIN/A\"B/12.0.0"][0], "/data/\"my\".ms/table.f3_TSM0");
        assert_eq!(json["refs"]["MAIN/NAME/1"], "base64:Zm9v");
        assert_eq!(json["refs"][".zgroup"], r#"{"zarr_format":2}"#);
        let consolidated = r#"{"zarr_consolidated_format":1,"metadata":{".zgroup":{"zarr_format":2}}}"#;
        assert_eq!(json["refs"][".zmetadata"], consolidated);
    }
}
