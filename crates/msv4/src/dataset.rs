//! Datasets of xarray as they are before their values are read: names, axes, attributes.

use ctds::value::{BString, DataType, Values};

/// A dataset: what xarray shows of one group of a data tree.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Dataset {
    /// Path below the processing set, such as `my_0/antenna_xds`.
    pub path: String,
    /// Attributes of the dataset, in their order.
    pub attributes: Vec<(String, Attribute)>,
    /// Coordinates, in their order.
    pub coordinates: Vec<Variable>,
    /// Data variables, in their order.
    pub variables: Vec<Variable>,
}

/// A variable of a dataset.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Variable {
    /// Name, such as `VISIBILITY`.
    pub name: String,
    /// Name of each axis, slowest first.
    pub axes: Vec<String>,
    /// Extent of each axis, slowest first.
    pub shape: Vec<u64>,
    /// Type of the elements.
    pub data_type: DataType,
    /// Attributes, in their order.
    pub attributes: Vec<(String, Attribute)>,
    /// The elements, or where they are.
    pub content: Content,
}

/// The elements of a variable.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// All elements, last axis fastest.
    Values(Values),
    /// Cells of a column of the main table, whose rows lie on a grid of times and baselines.
    Cells(CellsOf),
    /// The row of the main table of each place of the grid (from 0), -1 where there is none.
    Rows,
}

/// The column that the elements of a variable (time, baseline, …) are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellsOf {
    /// Name of the column.
    pub column: String,
    /// Whether the channels are in the opposite order.
    pub is_reversed: bool,
    /// Whether the cells have no channels: each is repeated for all of them.
    pub is_repeated: bool,
    /// Whether the elements are times, of which those of casacore begin at another day.
    pub is_time: bool,
}

/// Value of an attribute: a document as JSON has them, with numbers that need not be finite.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Attribute {
    /// A truth value.
    Bool(bool),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Attribute>),
    /// A dictionary, in its order.
    Dictionary(Vec<(String, Attribute)>),
}

impl Attribute {
    /// The text; `None` for other values.
    pub fn text(&self) -> Option<&str> {
        match self {
            Attribute::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Attribute::Text(text.to_owned())
    }
}

impl From<String> for Attribute {
    fn from(text: String) -> Self {
        Attribute::Text(text)
    }
}

impl From<bool> for Attribute {
    fn from(value: bool) -> Self {
        Attribute::Bool(value)
    }
}

impl From<f64> for Attribute {
    fn from(value: f64) -> Self {
        Attribute::Float(value)
    }
}

impl From<Vec<String>> for Attribute {
    fn from(texts: Vec<String>) -> Self {
        Attribute::List(texts.into_iter().map(Attribute::Text).collect())
    }
}

pub(crate) fn attributes<const N: usize>(pairs: [(&str, Attribute); N]) -> Vec<(String, Attribute)> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

pub(crate) fn quantity(units: &str) -> Vec<(String, Attribute)> {
    attributes([("type", "quantity".into()), ("units", units.into())])
}

/// One number with its attributes, as schemas nest it in those of a variable.
pub(crate) fn measured(value: f64, attributes_of: Vec<(String, Attribute)>) -> Attribute {
    Attribute::Dictionary(attributes([
        ("dims", Attribute::List(Vec::new())),
        ("data", value.into()),
        ("attrs", Attribute::Dictionary(attributes_of)),
    ]))
}

impl Variable {
    /// All elements, last axis fastest; panics unless they fit the axes.
    pub(crate) fn new(name: &str, axes: &[(&str, usize)], values: Values) -> Self {
        let places: usize = axes.iter().map(|(_, extent)| extent).product();
        assert_eq!(places, values.len(), "{name}: elements of {axes:?}");
        Variable {
            name: name.to_owned(),
            axes: axes.iter().map(|(axis, _)| (*axis).to_owned()).collect(),
            shape: axes.iter().map(|(_, extent)| *extent as u64).collect(),
            data_type: values.data_type(),
            attributes: Vec::new(),
            content: Content::Values(values),
        }
    }

    pub(crate) fn doubles(name: &str, axes: &[(&str, usize)], values: Vec<f64>) -> Self {
        Variable::new(name, axes, Values::Double(values))
    }

    pub(crate) fn texts(
        name: &str,
        axes: &[(&str, usize)],
        values: impl IntoIterator<Item = impl Into<BString>>,
    ) -> Self {
        Variable::new(name, axes, Values::String(values.into_iter().map(Into::into).collect()))
    }

    /// The coordinate of an axis with the labels of its places.
    pub(crate) fn labels(name: &str, labels: &[&str]) -> Self {
        Variable::texts(name, &[(name, labels.len())], labels.iter().copied())
    }

    pub(crate) fn with(mut self, attributes: Vec<(String, Attribute)>) -> Self {
        self.attributes = attributes;
        self
    }
}
