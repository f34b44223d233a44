//! Properties of a container and of its files that only their format knows.

/// Named values that a format gives for a container or one of its files, in the order in which they are shown.
///
/// They are what another kind of container has to keep so that the first one can be made again; in HDF5 they are attributes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Properties {
    /// Identity of a file's bytes, such as a hash: two files of one container with the same identity have the same bytes.
    /// `None`: the format does not know.
    pub content: Option<String>,
    /// Name and value of each property. Names begin with that of the format: `sion_globalrank`.
    pub values: Vec<(String, Property)>,
}

/// The value of a property.
#[derive(Debug, Clone, PartialEq)]
pub enum Property {
    /// An integer.
    Int(i64),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A floating-point number.
    Float(f64),
    /// A text in UTF-8.
    Text(String),
}

impl Properties {
    /// Appends a property to the list.
    pub(crate) fn push(&mut self, name: &str, value: Property) {
        self.values.push((name.to_owned(), value));
    }

    /// The value of a property.
    pub(crate) fn get(&self, name: &str) -> Option<&Property> {
        self.values.iter().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// The value of a property that is one integer.
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Property::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of a property that is a list of integers.
    pub(crate) fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.get(name)? {
            Property::Ints(values) => Some(values),
            _ => None,
        }
    }

    /// The value of a property that is text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Property::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// All files of a container before the first one is written, for formats that have to know them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Announced {
    /// Properties of the source.
    pub(crate) properties: Properties,
    /// Files of the container, in the order in which they will be written.
    pub(crate) files: Vec<AnnouncedFile>,
    /// The containers in it, which are written after its files.
    pub(crate) nested: Vec<(String, Announced)>,
}

/// A file that is going to be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnnouncedFile {
    pub(crate) name: String,
    /// Length of the file in bytes.
    pub(crate) len: u64,
    pub(crate) properties: Properties,
}
