//! Stores the exact bytes of column strings that HDF5 cannot hold, because they are not UTF-8 or contain a NUL. docs/layout.md,
//! "Exact values".

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::names::raw_strings_group;
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Compression, DatasetSpec, Group};
use crate::limits;
use crate::value::{Element, Region, Shape, Values};

/// The nearest string that HDF5 can hold: cut at the first NUL, bytes that are not UTF-8 replaced. The bool is true if nothing
/// was changed.
pub(crate) fn text(string: &BStr) -> (BString, bool) {
    let cut = string.find_byte(0).map_or(string, |nul| &string[..nul]);
    match cut.to_str() {
        Ok(_) => (cut.to_owned(), cut.len() == string.len()),
        Err(_) => (cut.to_str_lossy().into_owned().into(), false),
    }
}

/// Whether HDF5 can hold these bytes as a string without a change.
pub(crate) fn can_hold(string: &[u8]) -> bool {
    !string.contains(&0) && std::str::from_utf8(string).is_ok()
}

/// Makes a string attribute of `string`, cut at the first NUL and with bytes that are not UTF-8 replaced, because HDF5 cannot
/// hold these.
pub(crate) fn text_attribute(string: &BStr) -> Attribute {
    Attribute::string(text(string).0)
}

/// The exact strings that a column's dataset cannot hold, each with the number (from 0) of its element in the dataset.
#[derive(Debug, Default)]
pub(crate) struct RawStrings(Vec<(u64, BString)>);

/// Name of the dataset with the element numbers (from 0) of the strings that a column's dataset cannot hold.
const INDEX: &str = "index";
/// Name of the dataset with the start of each string that a column's dataset cannot hold, then the end of the last
/// string: offsets in bytes in the dataset `bytes`, which concatenates these strings.
const OFFSET: &str = "offset";
/// Name of the dataset with the exact bytes of the strings that a column's dataset cannot hold, concatenated.
const BYTES: &str = "bytes";

impl RawStrings {
    /// Replaces those of `strings` that HDF5 cannot hold by the nearest ones that it can, and keeps the exact ones. `first` is
    /// the number in the dataset (from 0) of the first string.
    pub(crate) fn take_from(&mut self, strings: &mut [BString], first: u64) {
        for (number, string) in (first..).zip(strings) {
            let (clean, same) = text(string.as_bstr());
            if !same {
                self.0.push((number, std::mem::replace(string, clean)));
            }
        }
    }

    /// Number of strings found so far that the dataset cannot hold.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes the exact strings that the dataset of the column `link` cannot hold (not UTF-8, or with a NUL) to `exact`, the group
    /// `/_ctds/TABLE` of the HDF5 file.
    pub(crate) fn write(&self, exact: &Group, link: &str) -> Result<()> {
        let group = exact.create_group(&raw_strings_group(link))?;
        let write = |name: &str, values: Values| -> Result<()> {
            let shape = Shape::from([values.len() as u64]);
            let spec = DatasetSpec {
                element: values.data_type(),
                shape: &shape,
                chunk: None,
                appendable: false,
                compression: Compression::NONE,
            };
            group.create_dataset(name, &spec)?.write_region(&Region::whole(&shape), &values)
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

    /// Reads the exact strings of the column `link` that its dataset cannot hold, by the element's number in the dataset (from
    /// 0); empty if it holds all.
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

/// Reads all elements of the dataset `name`. Fails before it allocates much memory if the file stores too few bytes for the
/// stated shape.
fn all<T: Element>(group: &Group, name: &str) -> Result<Vec<T>> {
    let dataset = group.dataset(name)?;
    let shape = dataset.shape()?;
    let bytes = shape.elements()?.saturating_mul(size_of::<T>() as u64);
    if bytes > dataset.stored_bytes() && dataset.filters()?.is_empty() {
        limits::unbacked_cell(bytes)?;
    }
    let mut values = Values::new(T::DATA_TYPE);
    dataset.read_region(&Region::whole(&shape), &mut values)?;
    // filled as what it was made for
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
