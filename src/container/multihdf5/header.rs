//! The list of the files in a MultiHDF5 container: attributes of one group. formats/table.md 6.1,
//! 6.3.

use std::collections::HashSet;

use super::names::HEADER;
use crate::container::ContainerInfo;
use crate::error::{Error, Result, ResultExt};
use crate::h5::{Attribute, Bounds, Group};
use crate::value::Values;

/// Most file names that casacore reads; it cuts off further ones.
const MAX_NAMES: usize = 4000;

/// The header of a MultiHDF5 container: the content of its group `__MultiHDF5_Header__`.
///
/// | attribute    | type                                                                  |
/// |--------------|-----------------------------------------------------------------------|
/// | `blockSize`  | int64, the bytes of a file in a row of its dataset                    |
/// | `hdrCounter` | int64, goes up by one with every change                               |
/// | `names`      | variable-length strings; ASCII where casacore is to read them         |
/// | `sizes`      | int64, bytes of each file; 0 for a nested container                   |
/// | `archive`    | int64 1 in files that casacore must not change, else missing          |
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) block_bytes: u64,
    pub(super) counter: i64,
    pub(super) archive: bool,
    /// Name and size in bytes of each file; removed files are left out.
    pub(super) files: Vec<(String, u64)>,
}

impl Header {
    /// `Format` if the header is missing or contradicts itself.
    pub(super) fn read(container: &Group) -> Result<Self> {
        if !container.has(HEADER) {
            let path = container.path();
            let other = if path == "/" { "; `h5bridge info` shows what else the file is" } else { "" };
            return Err(Error::format(format!("group {path} is not a MultiHDF5 container: it has no {HEADER}{other}")));
        }
        let group = container.group(HEADER)?;
        let read = || -> Result<_> {
            let block_bytes = integer(&group, "blockSize")?;
            let block_bytes = u64::try_from(block_bytes).ok().filter(|&bytes| bytes > 0);
            let block_bytes = block_bytes.ok_or_else(|| Error::format("blockSize is not positive"))?;
            let (names, sizes) = (names(&group)?, integers(&group, "sizes")?);
            if names.len() != sizes.len() {
                return Err(Error::format(format!("{} names, but {} sizes", names.len(), sizes.len())));
            }
            let mut seen = HashSet::new();
            let mut files = Vec::new();
            for (name, size) in names.into_iter().zip(sizes) {
                let size = u64::try_from(size).map_err(|_| Error::format(format!("file {name:?} of {size} bytes")))?;
                // a file that casacore removed
                if name.is_empty() {
                    continue;
                }
                if !seen.insert(name.clone()) {
                    return Err(Error::format(format!("two files have the name {name:?}")));
                }
                files.push((name, size));
            }
            let archive = group.attribute("archive")?.is_some();
            Ok(Header { block_bytes, counter: integer(&group, "hdrCounter")?, archive, files })
        };
        read().with_context(|| format!("group {}", group.path()))
    }

    pub(super) fn write(&self, container: &Group) -> Result<()> {
        let bounds = if self.archive { Bounds::V110 } else { Bounds::Earliest };
        if container.has(HEADER) {
            container.remove(HEADER)?;
        }
        let group = container.create_group(HEADER)?;
        let set = |name: &str, value: Attribute| match bounds {
            Bounds::Earliest => group.set_ascii_attribute(name, &value),
            Bounds::V110 => group.set_attribute(name, &value),
        };
        set("blockSize", Attribute::Scalar(Values::Int64(vec![self.block_bytes as i64])))?;
        set("hdrCounter", Attribute::Scalar(Values::Int64(vec![self.counter])))?;
        if self.archive {
            set("archive", Attribute::Scalar(Values::Int64(vec![1])))?;
        }
        if self.files.is_empty() {
            // types of casacore: String, Int64
            for (name, casatype) in [("names", 11), ("sizes", 29)] {
                group.set_int_record(name, &[(EMPTY[0], 1), (EMPTY[1], 1), (EMPTY[2], casatype)])?;
            }
            return Ok(());
        }
        let (names, sizes) = self.files.iter().map(|(name, size)| (name.as_str().into(), *size as i64)).unzip();
        set("names", Attribute::Array(Values::String(names)))?;
        set("sizes", Attribute::Array(Values::Int64(sizes)))
    }

    /// `counter` is the number of changes.
    pub(super) fn info(block_bytes: u64, counter: i64) -> ContainerInfo {
        ContainerInfo {
            format: "multihdf5",
            block_bytes: Some(block_bytes),
            changes: u64::try_from(counter).ok(),
            ..ContainerInfo::default()
        }
    }

    /// Fails where casacore is to read the file: `name` is not ASCII, or beyond [`MAX_NAMES`].
    pub(super) fn check_room(count: usize, name: &str, bounds: Bounds) -> Result<()> {
        if bounds == Bounds::V110 {
            return Ok(());
        }
        if !name.is_ascii() {
            return Err(Error::usage(format!("{name:?} is not ASCII, as casacore's MultiHDF5 needs it")));
        }
        if count >= MAX_NAMES {
            return Err(Error::usage(format!("the container has {count} files, the most that casacore reads")));
        }
        Ok(())
    }
}

/// Paths of all files in the container, and in those nested in it.
pub(super) fn file_paths(container: &Group) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for (name, _) in Header::read(container)?.files {
        let inner = container.group(&name)?;
        match inner.has(HEADER) {
            true => paths.extend(file_paths(&inner)?.into_iter().map(|path| format!("{name}/{path}"))),
            false => paths.push(name),
        }
    }
    Ok(paths)
}

/// Fields of the compound that casacore stores in place of an empty array. formats/table.md 6.3.
const EMPTY: [&str; 3] = ["emptyarray", "rank", "casatype"];

fn is_empty_array(group: &Group, name: &str) -> Result<bool> {
    Ok(group.attribute_fields(name)? == EMPTY)
}

fn attribute(group: &Group, name: &str) -> Result<Attribute> {
    group.attribute(name)?.ok_or_else(|| Error::format(format!("group {HEADER} has no attribute {name}")))
}

fn names(group: &Group) -> Result<Vec<String>> {
    if is_empty_array(group, "names")? {
        return Ok(Vec::new());
    }
    let attribute = attribute(group, "names")?;
    let Values::String(names) = attribute.values() else {
        return Err(Error::format("the names are not strings"));
    };
    let name = |name: &bstr::BString| {
        String::from_utf8(name.to_vec()).map_err(|_| Error::format(format!("the name {name:?} is not UTF-8")))
    };
    names.iter().map(name).collect()
}

fn integers(group: &Group, name: &str) -> Result<Vec<i64>> {
    if is_empty_array(group, name)? {
        return Ok(Vec::new());
    }
    let integers = attribute(group, name)?.values().integers();
    integers.ok_or_else(|| Error::format(format!("attribute {name}: no integers")))
}

fn integer(group: &Group, name: &str) -> Result<i64> {
    match integers(group, name)?[..] {
        [value] => Ok(value),
        ref values => Err(Error::format(format!("attribute {name}: {} values, where one is expected", values.len()))),
    }
}
