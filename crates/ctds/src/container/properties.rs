//! Properties: metadata of a container and its files that only the container's format has. A
//! container of another format that holds copies of the files also stores the properties, so that
//! the original can be made again.

/// Metadata of a container, or of one of its files, that only the format of this container has:
/// named values in the order in which they are shown.
///
/// They are what another kind of container has to keep so that the first one can be made again; in
/// HDF5 they are attributes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Properties {
    /// Identity of a file's bytes, such as a hash: two files of one container with the same
    /// identity have the same bytes. `None` if the format does not record one.
    pub content: Option<String>,
    /// Name and value of each property of the container or file. Names begin with the name of the
    /// format: `sion_globalrank`.
    pub values: Vec<(String, Property)>,
}

/// The value of a property of a container or of one of its files. Serialized, it is the value
/// alone.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum Property {
    /// A property of a container or file that is an integer.
    Int(i64),
    /// A property of a container or file that is a list of integers.
    Ints(Vec<i64>),
    /// A property of a container or file that is a floating-point number.
    Float(f64),
    /// A property of a container or file that is a text in UTF-8.
    Text(String),
}

impl Properties {
    #[doc(hidden)]
    pub fn push(&mut self, name: &str, value: Property) {
        self.values.push((name.to_owned(), value));
    }

    #[doc(hidden)]
    pub fn get(&self, name: &str) -> Option<&Property> {
        self.values.iter().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// `None` if the property is missing or of another type.
    #[doc(hidden)]
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Property::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// `None` if the property is missing or of another type.
    #[doc(hidden)]
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.get(name)? {
            Property::Ints(values) => Some(values),
            _ => None,
        }
    }

    /// `None` if the property is missing or of another type.
    #[doc(hidden)]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Property::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// All files of a future container: some formats need all names and lengths in advance.
#[derive(Debug, Clone, Default)]
pub struct Announced {
    pub properties: Properties,
    /// Files are written in this order.
    pub files: Vec<AnnouncedFile>,
    /// Written after the files of this one.
    pub nested: Vec<(String, Announced)>,
}

#[derive(Debug, Clone, Default)]
pub struct AnnouncedFile {
    pub name: String,
    pub len: u64,
    pub properties: Properties,
}
