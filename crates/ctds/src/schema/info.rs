//! The file `table.info`: type, subtype and readme of a table. formats/table.md 4.1.

use bstr::{BString, ByteSlice};

/// Content of the file `table.info` of a table; all fields are empty if the file is missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableInfo {
    /// Type of the table: `Measurement Set`, `Image` …
    pub table_type: BString,
    /// Subtype of the table, free text.
    pub sub_type: BString,
    /// Readme of the table: lines of free text, each ending in LF.
    pub readme: BString,
}

impl TableInfo {
    /// `Type = …`, `SubType = …`, an empty line and the readme. The text before each value is
    /// skipped without a check, as in casacore.
    #[doc(hidden)]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut lines = bytes.splitn(4, |&byte| byte == b'\n');
        let mut value = |prefix: usize| -> BString {
            lines.next().and_then(|line| line.get(prefix..)).unwrap_or(b"").as_bstr().into()
        };
        let table_type = value("Type = ".len());
        let sub_type = value("SubType = ".len());
        value(0);
        let readme = value(0);
        TableInfo { table_type, sub_type, readme }
    }
}

impl TableInfo {
    #[doc(hidden)]
    pub fn encode(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for part in [b"Type = ".as_slice(), &self.table_type, b"\nSubType = ", &self.sub_type, b"\n\n", &self.readme] {
            text.extend_from_slice(part);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untyped_and_typed() {
        assert_eq!(TableInfo::decode(b"Type = \nSubType = \n\n"), TableInfo::default());
        let info = TableInfo::decode(b"Type = Measurement Set\nSubType = UVFITS\n\nThis is\na readme\n");
        assert_eq!(info.table_type, "Measurement Set");
        assert_eq!(info.sub_type, "UVFITS");
        assert_eq!(info.readme, "This is\na readme\n");
        assert_eq!(info.encode(), b"Type = Measurement Set\nSubType = UVFITS\n\nThis is\na readme\n");
        assert_eq!(TableInfo::default().encode(), b"Type = \nSubType = \n\n");
        assert_eq!(TableInfo::decode(b""), TableInfo::default());
    }
}
