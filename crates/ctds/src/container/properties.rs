//! Properties: metadata of a container and its files that only the container's format has. A container of another
//! format that holds copies of the files also stores the properties, so that the original can be made again.

/// Metadata of a container, or of one of its files, that only the format of this container has: named values in the order in
/// which they are shown.
///
/// They are what another kind of container has to keep so that the first one can be made again; in HDF5 they are attributes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Properties {
    /// Identity of a file's bytes, such as a hash: two files of one container with the same identity have the same bytes.
    /// `None` if the format does not record one.
    pub content: Option<String>,
    /// Name and value of each property of the container or file. Names begin with the name of the format: `sion_globalrank`.
    pub values: Vec<(String, Property)>,
}

/// The value of a property of a container or of one of its files.
#[derive(Debug, Clone, PartialEq)]
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
    /// Appends a property to the list of a container's or file's properties.
    #[doc(hidden)]
    pub fn push(&mut self, name: &str, value: Property) {
        self.values.push((name.to_owned(), value));
    }

    /// Value of the container's or file's property `name`; `None` if it is missing.
    #[doc(hidden)]
    pub fn get(&self, name: &str) -> Option<&Property> {
        self.values.iter().find(|(found, _)| found == name).map(|(_, value)| value)
    }

    /// Value of the container's or file's property `name` if it is a single integer; `None` if it is missing or of another type.
    #[doc(hidden)]
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.get(name)? {
            Property::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Value of the container's or file's property `name` if it is a list of integers; `None` if it is missing or of another
    /// type.
    #[doc(hidden)]
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.get(name)? {
            Property::Ints(values) => Some(values),
            _ => None,
        }
    }

    /// Value of the container's or file's property `name` if it is text; `None` if it is missing or of another type.
    #[doc(hidden)]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Property::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// List of all files that a container will hold, made before the first one is written: some formats need all names and lengths
/// in advance.
#[derive(Debug, Clone, Default)]
pub struct Announced {
    /// Properties of the container from which the files are copied, which the new container is to keep.
    pub properties: Properties,
    /// Files that the container will hold, in the order in which they will be written.
    pub files: Vec<AnnouncedFile>,
    /// Name of each nested container and the list of its files; nested containers are written after the files of this one.
    pub nested: Vec<(String, Announced)>,
}

/// A file that is going to be written to a container: its name, length and properties.
#[derive(Debug, Clone, Default)]
pub struct AnnouncedFile {
    pub name: String,
    /// Length in bytes of the file that is going to be written.
    pub len: u64,
    pub properties: Properties,
}
