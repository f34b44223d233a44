//! Stores the exact bytes of column strings that HDF5 cannot hold, because they are not UTF-8 or
//! contain a NUL. docs/reference/layout.md, "Exact values".

use std::borrow::Cow;
use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::names::raw_strings_group;
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Group};
use crate::limits;
use crate::value::{Element, Field, Record, Region, Shape, Value, Values};

/// Cut at the first NUL, bytes that are not UTF-8 replaced; true if nothing was changed.
pub(crate) fn text(string: &BStr) -> (BString, bool) {
    let cut = string.find_byte(0).map_or(string, |nul| &string[..nul]);
    match cut.to_str() {
        Ok(_) => (cut.to_owned(), cut.len() == string.len()),
        Err(_) => (cut.to_str_lossy().into_owned().into(), false),
    }
}

/// Strings as [`text`] changes them; other values as they are.
pub(crate) fn readable(values: &Values) -> Cow<'_, Values> {
    match values {
        Values::String(strings) => {
            Cow::Owned(Values::String(strings.iter().map(|string| text(string.as_bstr()).0).collect()))
        }
        values => Cow::Borrowed(values),
    }
}

pub(crate) fn can_hold(string: &[u8]) -> bool {
    !string.contains(&0) && std::str::from_utf8(string).is_ok()
}

/// How many strings [`text`] changes.
pub(crate) fn changed_strings(values: &Values) -> u64 {
    match values {
        Values::String(strings) => strings.iter().filter(|string| !can_hold(string)).count() as u64,
        Values::Record(records) => records.iter().map(changed_keywords).sum(),
        _ => 0,
    }
}

/// [`changed_strings`] in a record and the records in it.
pub(crate) fn changed_keywords(record: &Record) -> u64 {
    let changed = |field: &Field| match &field.value {
        Value::Scalar(values) | Value::Array(_, values) => changed_strings(values),
        Value::Record(record) => changed_keywords(record),
        Value::Table(_) => 0,
    };
    record.fields.iter().map(changed).sum()
}

/// Changes the string as [`text`] does.
pub(crate) fn text_attribute(string: &BStr) -> Attribute {
    Attribute::string(text(string).0)
}

#[derive(Debug, Default)]
pub(crate) struct RawStrings(Vec<(u64, BString)>);

/// Elements of the strings.
const INDEX: &str = "index";
/// Start of each string in `bytes`, then the end of the last.
const OFFSET: &str = "offset";
const BYTES: &str = "bytes";

impl RawStrings {
    /// Replaces strings by the nearest that HDF5 can hold; `first` is the element of the first one.
    pub(crate) fn take_from(&mut self, strings: &mut [BString], first: u64) {
        for (number, string) in (first..).zip(strings) {
            let (clean, same) = text(string.as_bstr());
            if !same {
                self.0.push((number, std::mem::replace(string, clean)));
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// `exact` is the group `/_ctds/TABLE`.
    pub(crate) fn write(&self, exact: &Group, link: &str) -> Result<()> {
        let group = exact.create_group(&raw_strings_group(link))?;
        let write = |name: &str, values: Values| -> Result<()> {
            group.create_filled(name, &Shape::from([values.len() as u64]), &values).map(drop)
        };
        let mut offsets = vec![0];
        let mut bytes = Vec::new();
        for (_, string) in &self.0 {
            bytes.extend_from_slice(string);
            offsets.push(bytes.len() as i64);
        }
        write(INDEX, Values::Int64(self.0.iter().map(|&(index, _)| index as i64).collect()))?;
        write(OFFSET, Values::Int64(offsets))?;
        write(BYTES, Values::UChar(bytes))
    }

    /// Keys are elements; empty if the dataset holds all.
    pub(super) fn read(exact: &Group, link: &str) -> Result<HashMap<u64, BString>> {
        let name = raw_strings_group(link);
        if !exact.has(&name) {
            return Ok(HashMap::new());
        }
        let group = exact.group(&name)?;
        let read = || -> Result<HashMap<u64, BString>> {
            let index: Vec<i64> = all(&group, INDEX).context(INDEX)?;
            let offset: Vec<i64> = all(&group, OFFSET).context(OFFSET)?;
            let bytes: Vec<u8> = all(&group, BYTES).context(BYTES)?;
            if offset.len() != index.len() + 1 {
                return Err(Error::format(format!(
                    "found {} offsets for {} strings, expected one more than strings",
                    offset.len(),
                    index.len()
                )));
            }
            let string = |(index, ends): (&i64, &[i64])| {
                let range = Option::zip(usize::try_from(ends[0]).ok(), usize::try_from(ends[1]).ok());
                let string = range.and_then(|(start, end)| bytes.get(start..end));
                let element = u64::try_from(*index).ok();
                let found = element.zip(string).map(|(element, string)| (element, string.into()));
                found.ok_or_else(|| {
                    Error::format(format!(
                        "element {index} refers to bytes {} to {}, which do not exist",
                        ends[0], ends[1]
                    ))
                })
            };
            index.iter().zip(offset.windows(2)).map(string).collect()
        };
        read().with_context(|| format!("group {}", group.path()))
    }
}

/// Fails before it allocates much memory if the file stores too few bytes for the stated shape.
fn all<T: Element>(group: &Group, name: &str) -> Result<Vec<T>> {
    let dataset = group.dataset(name)?;
    let shape = dataset.shape()?;
    let bytes = shape.elements()?.saturating_mul(size_of::<T>() as u64);
    if bytes > dataset.stored_bytes() && dataset.filters()?.is_empty() {
        limits::unbacked_cell(bytes)?;
    }
    let mut values = Values::new(T::DATA_TYPE);
    dataset.read_region(&Region::whole(&shape), &mut values)?;
    // `values` were made for the type `T`
    Ok(T::of(values).unwrap_or_default())
}

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
