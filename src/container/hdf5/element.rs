//! Element types of files stored as HDF5 datasets: a dataset may hold little-endian numbers instead
//! of the single bytes of its file.

use crate::container::{Announced, Properties, Property};
use crate::error::{Context, Error, Result, ResultExt};
use crate::value::DataType;

/// The file property and HDF5 attribute with numpy's name of the element type, such as `f4`.
const DTYPE: &str = "dtype";

/// Each type after its short and its long name in numpy.
const TYPES: [(&str, &str, DataType); 10] = [
    ("u1", "uint8", DataType::UChar),
    ("i2", "int16", DataType::Short),
    ("u2", "uint16", DataType::UShort),
    ("i4", "int32", DataType::Int),
    ("u4", "uint32", DataType::UInt),
    ("i8", "int64", DataType::Int64),
    ("f4", "float32", DataType::Float),
    ("f8", "float64", DataType::Double),
    ("c8", "complex64", DataType::Complex),
    ("c16", "complex128", DataType::DComplex),
];

/// `name` is numpy's, such as `<f4` or `float32`; `None` if it is unknown or big-endian.
fn type_of(name: &str) -> Option<(&'static str, DataType)> {
    let plain = name.strip_prefix(['<', '|', '=']).unwrap_or(name);
    let found = TYPES.iter().find(|(short, long, _)| [*short, *long].contains(&plain));
    found.map(|&(short, _, element)| (short, element))
}

/// Includes files of nested containers; `Usage` for an unknown `name` or parts of elements.
pub(crate) fn set_dtype(files: &mut Announced, name: &str) -> Result<()> {
    let (short, element) = type_of(name).ok_or_else(|| {
        let known: Vec<_> = TYPES.iter().map(|(short, ..)| *short).collect();
        let known = known.join(", ");
        Error::usage(format!("the type {name:?} is unknown; known are {known}, and bytes are little-endian"))
    })?;
    for file in &mut files.files {
        let size = element.size() as u64;
        if !file.len.is_multiple_of(size) {
            let message = format!("{} bytes are not a whole number of {short}, which has {size}", file.len);
            return Err(Error::usage(message).context(Context::member(&file.name)));
        }
        file.properties.values.retain(|(name, _)| name != DTYPE);
        file.properties.push(DTYPE, Property::Text(short.to_owned()));
    }
    files
        .nested
        .iter_mut()
        .try_for_each(|(inner, files)| set_dtype(files, name).with_context(|| Context::member(&**inner)))
}

/// Bytes if the properties name no type, or `len` is not a multiple of its size.
pub(super) fn element_of(properties: &Properties, len: u64) -> DataType {
    let named = properties.text(DTYPE).and_then(type_of).map(|(_, element)| element);
    named.filter(|element| len.is_multiple_of(element.size() as u64)).unwrap_or(DataType::UChar)
}

/// Bytes always are; another type only if the attribute `dtype` names it.
pub(super) fn is_declared(properties: &Properties, found: DataType) -> bool {
    found == DataType::UChar || properties.text(DTYPE).and_then(type_of).is_some_and(|(_, element)| element == found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::AnnouncedFile;

    #[test]
    fn types_have_the_sizes_in_their_names() {
        for (short, long, element) in TYPES {
            assert_eq!(short[1..].parse(), Ok(element.size()));
            let bits = long.trim_start_matches(char::is_alphabetic).parse();
            assert_eq!(bits, Ok(8 * element.size()));
            assert_eq!(type_of(&format!("<{short}")), Some((short, element)));
            assert_eq!(type_of(long), Some((short, element)));
        }
        assert!([">f4", "f3", "", "<", "S4", "float"].iter().all(|name| type_of(name).is_none()));
    }

    #[test]
    fn a_file_is_a_whole_number_of_elements() {
        let file = |len| AnnouncedFile { name: "a".to_owned(), len, properties: Properties::default() };
        let mut files = Announced { files: vec![file(8), file(0)], ..Announced::default() };
        set_dtype(&mut files, "float64").unwrap();
        set_dtype(&mut files, "<f4").unwrap();
        assert!(files.files.iter().all(|file| file.properties.values.len() == 1));
        assert_eq!(element_of(&files.files[0].properties, 8), DataType::Float);
        assert_eq!(element_of(&files.files[0].properties, 9), DataType::UChar);
        files.files.push(file(7));
        assert!(set_dtype(&mut files, "f4").unwrap_err().to_string().contains("7 bytes"));
        let error = set_dtype(&mut files, ">f4").unwrap_err().to_string();
        assert!(error.starts_with("the type \">f4\" is unknown; known are u1, i2,"), "{error}");
    }
}
