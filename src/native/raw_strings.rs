//! Strings that HDF5 cannot hold: bytes that are not UTF-8, or with a NUL. docs/layout.md, "Exact values".

use bstr::{BStr, BString, ByteSlice};

use crate::h5::Attribute;

/// A string as HDF5 can have it: UTF-8, cut at a NUL. The bool says whether it is the same.
pub(crate) fn text(string: &BStr) -> (BString, bool) {
    let cut = string.find_byte(0).map_or(string, |nul| &string[..nul]);
    match cut.to_str() {
        Ok(_) => (cut.to_owned(), cut.len() == string.len()),
        Err(_) => (cut.to_str_lossy().into_owned().into(), false),
    }
}

/// A string attribute.
pub(crate) fn text_attribute(string: &BStr) -> Attribute {
    Attribute::string(text(string).0)
}

/// String elements that a dataset cannot hold, by their number in it.
#[derive(Debug, Default)]
pub(crate) struct RawStrings(pub(crate) Vec<(u64, BString)>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_that_hdf5_cannot_have() {
        assert_eq!(text("é".into()), ("é".into(), true));
        assert_eq!(text("a\0b".into()), ("a".into(), false));
        assert_eq!(text(b"\xff".as_bstr()), ("\u{fffd}".into(), false));
    }
}
