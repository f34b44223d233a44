//! Names, keywords as attributes, axes. docs/layout.md.

use std::collections::{BTreeMap, BTreeSet};

use bstr::{BStr, BString, ByteSlice};

use crate::h5::Attribute;
use crate::schema::TableInfo;
use crate::value::{Record, Shape, Value, Values};

/// The names taken in each group.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    /// Takes names that are not columns'.
    pub(crate) fn reserve(&mut self, group: &str, names: &[&str]) {
        self.0.entry(group.to_owned()).or_default().extend(names.iter().map(|&name| name.to_owned()));
    }

    /// Whether a column or group has the name.
    pub(crate) fn has(&self, group: &str, name: &str) -> bool {
        self.0.get(group).is_some_and(|taken| taken.contains(name))
    }

    /// Takes `wanted` in `group`, with `__2`, `__3` … if it is taken, and without what HDF5 cannot have in a name.
    pub(crate) fn unique(&mut self, group: &str, wanted: &str) -> String {
        let taken = self.0.entry(group.to_owned()).or_default();
        let name = unique(&link_name(wanted), |name| taken.contains(name));
        taken.insert(name.clone());
        name
    }
}

fn link_name(wanted: &str) -> String {
    let name = wanted.replace(['/', '\0'], "_");
    match name.as_str() {
        "" | "." | ".." => format!("_{name}"),
        _ => name,
    }
}

/// `wanted`, or with `__2`, `__3` … behind it if it is taken.
pub(crate) fn unique(wanted: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while taken(&name) {
        name = format!("{wanted}__{number}");
        number += 1;
    }
    name
}

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

/// Attributes of a column, and the fields of its MEASINFO that they show.
pub(crate) const MEASURE: [(&str, &str); 2] = [("measure_type", "type"), ("measure_ref", "Ref")];

/// Attributes of HDF5's and netCDF's own, which no keyword becomes.
pub(crate) const RESERVED: [&str; 9] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
    "_FillValue",
    "_nc3_strict",
];

/// The attributes of an object, in order, each name once.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<Readable>);

/// An attribute and what it says.
#[derive(Debug)]
pub(crate) struct Readable {
    pub(crate) name: String,
    pub(crate) value: Attribute,
    pub(crate) origin: Origin,
}

/// What an attribute says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Something of the object besides its keywords, by the name that the attribute has if it is free.
    Own(&'static str),
    /// A keyword, by the numbers of the fields that lead to it.
    Keyword(Vec<usize>),
    /// The shape of a keyword.
    Shape(Vec<usize>),
}

impl Attributes {
    /// Those of a table: its info and keywords; `table_path` gives the path of the group of a subtable.
    pub(crate) fn of_table(
        exact_name: Option<&BStr>,
        info: &TableInfo,
        keywords: &Record,
        table_path: &dyn Fn(&BStr) -> String,
    ) -> Self {
        let mut attributes = Attributes::default();
        if let Some(name) = exact_name {
            attributes.add("ctds_name", text_attribute(name));
        }
        attributes.add("table_type", text_attribute(info.table_type.as_bstr()));
        attributes.add("table_subtype", text_attribute(info.sub_type.as_bstr()));
        attributes.add("readme", text_attribute(info.readme.as_bstr()));
        attributes.add_nested("", &[], keywords, table_path);
        attributes
    }

    /// Those of a column.
    pub(crate) fn of_column(
        exact_name: Option<&BStr>,
        comment: &BStr,
        keywords: &Record,
        table_path: &dyn Fn(&BStr) -> String,
    ) -> Self {
        let mut attributes = Attributes::default();
        if let Some(name) = exact_name {
            attributes.add("ctds_name", text_attribute(name));
        }
        attributes.add_column(comment, keywords);
        attributes.add_nested("", &[], keywords, table_path);
        attributes
    }

    /// Adds an attribute that is no keyword, under another name if this one is taken.
    fn add(&mut self, name: &'static str, value: Attribute) {
        self.add_readable(name, value, Origin::Own(name));
    }

    fn add_readable(&mut self, name: &str, value: Attribute, origin: Origin) {
        let is_taken = |name: &str| RESERVED.contains(&name) || self.0.iter().any(|taken| taken.name == name);
        let name = unique(&link_name(name), is_taken);
        self.0.push(Readable { name, value, origin });
    }

    /// In the order in which they are written.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Readable> {
        self.0.iter()
    }

    fn add_nested(&mut self, prefix: &str, path: &[usize], record: &Record, table_path: &dyn Fn(&BStr) -> String) {
        for (number, field) in record.fields.iter().enumerate() {
            let name = format!("{prefix}{}", field.name.to_str_lossy());
            let path = [path, &[number]].concat();
            match &field.value {
                Value::Scalar(values) => self.add_readable(&name, readable(values, true), Origin::Keyword(path)),
                Value::Array(shape, values) if !values.is_empty() => {
                    self.add_readable(&name, readable(values, false), Origin::Keyword(path.clone()));
                    if shape.len() > 1 {
                        self.add_readable(&format!("{name}__shape"), extents(shape), Origin::Shape(path));
                    }
                }
                // HDF5 readers stumble over attributes without elements
                Value::Array(..) => {}
                Value::Record(nested) => self.add_nested(&format!("{name}."), &path, nested, table_path),
                Value::Table(stored) => {
                    let value = Attribute::string(format!("Table: {}", table_path(stored.as_bstr())));
                    self.add_readable(&name, value, Origin::Keyword(path));
                }
            }
        }
    }

    /// Adds what is said of a column beside its keywords: units, name, measure.
    fn add_column(&mut self, comment: &BStr, keywords: &Record) {
        let unit = keywords.strings("QuantumUnits").and_then(|units| units.first()).map(|unit| unit.as_bstr());
        if let Some(unit) = unit.or_else(|| keywords.string("UNIT")) {
            self.add("units", text_attribute(unit));
        }
        if !comment.is_empty() {
            self.add("long_name", text_attribute(comment));
        }
        if let Some(measure) = keywords.record("MEASINFO") {
            for (name, field) in MEASURE {
                if let Some(text) = measure.string(field) {
                    self.add(name, text_attribute(text));
                }
            }
        }
    }
}

fn extents(shape: &Shape) -> Attribute {
    Attribute::Array(Values::Int64(shape.reversed().iter().map(|&extent| extent as i64).collect()))
}

/// Numbers and strings as they are, complex numbers as pairs of floats.
fn readable(values: &Values, scalar: bool) -> Attribute {
    let pairs = match values {
        Values::Complex(v) => Values::Float(v.iter().flat_map(|c| [c.re, c.im]).collect()),
        Values::DComplex(v) => Values::Double(v.iter().flat_map(|c| [c.re, c.im]).collect()),
        Values::String(v) => {
            let texts = Values::String(v.iter().map(|string| text(string.as_bstr()).0).collect());
            return if scalar { Attribute::Scalar(texts) } else { Attribute::Array(texts) };
        }
        _ if scalar => return Attribute::Scalar(values.clone()),
        _ => return Attribute::Array(values.clone()),
    };
    Attribute::Array(pairs)
}

/// What the axes of a column mean; first axis fastest, the row axis not among them.
pub(crate) fn axis_roles(is_main_of_ms: bool, column: &str, axes: usize) -> Vec<&'static str> {
    let known: &[&str] = match column {
        "DATA"
        | "FLOAT_DATA"
        | "CORRECTED_DATA"
        | "MODEL_DATA"
        | "FLAG"
        | "WEIGHT_SPECTRUM"
        | "SIGMA_SPECTRUM"
        | "CORRECTED_WEIGHT_SPECTRUM"
        | "VIDEO_POINT" => &["corr", "chan"],
        "FLAG_CATEGORY" => &["corr", "chan", "category"],
        "WEIGHT" | "SIGMA" => &["corr"],
        "IMAGING_WEIGHT" => &["chan"],
        "UVW" => &["uvw"],
        _ => &[],
    };
    if is_main_of_ms && known.len() == axes { known.to_vec() } else { vec!["dim"; axes] }
}

/// Hands out the names of dimensions: one name has one length below a root group.
#[derive(Debug, Default)]
pub(crate) struct Dimensions {
    /// Role, length, and how many axes before it in the same dataset have both.
    known: BTreeMap<(String, u64, usize), String>,
    counts: BTreeMap<String, usize>,
}

impl Dimensions {
    /// The names for axes of these roles and lengths, none of them `taken`. Two equal axes of a dataset get two names.
    pub(crate) fn names(&mut self, axes: &[(&str, u64)], taken: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut names = Vec::new();
        for (i, &(role, len)) in axes.iter().enumerate() {
            let before = axes[..i].iter().filter(|&&axis| axis == (role, len)).count();
            let key = (role.to_owned(), len, before);
            let name = match self.known.get(&key) {
                Some(name) if !taken(name) => name.clone(),
                _ => {
                    let name = self.fresh(role, taken);
                    self.known.insert(key, name.clone());
                    name
                }
            };
            names.push(name);
        }
        names
    }

    /// The name of an axis that is like no other, not `taken`.
    pub(crate) fn fresh(&mut self, role: &str, taken: &dyn Fn(&str) -> bool) -> String {
        let count = self.counts.entry(role.to_owned()).or_default();
        let mut name = format!("{role}_{count}");
        while taken(&name) {
            *count += 1;
            name = format!("{role}_{count}");
        }
        *count += 1;
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_apart() {
        let mut names = Names::default();
        names.reserve("/MAIN", &["row"]);
        assert_eq!(names.unique("/MAIN", "row"), "row__2");
        assert_eq!(names.unique("/MAIN", "a/b"), "a_b");
        assert_eq!(names.unique("/MAIN", "a_b"), "a_b__2");
        assert_eq!(names.unique("/OTHER", "a_b"), "a_b");
        assert_eq!(names.unique("/OTHER", "."), "_.");
    }

    #[test]
    fn equal_axes_of_a_dataset_differ_in_name() {
        let mut dimensions = Dimensions::default();
        assert_eq!(dimensions.names(&[("dim", 2), ("dim", 2)], &|_| false), ["dim_0", "dim_1"]);
        assert_eq!(dimensions.names(&[("dim", 2)], &|_| false), ["dim_0"]);
        assert_eq!(dimensions.names(&[("corr", 4), ("chan", 64)], &|_| false), ["corr_0", "chan_0"]);
        assert_eq!(dimensions.names(&[("corr", 2), ("chan", 64)], &|_| false), ["corr_1", "chan_0"]);
        assert_eq!(dimensions.names(&[("chan", 64)], &|name| name == "chan_0"), ["chan_1"]);
    }

    #[test]
    fn strings_that_hdf5_cannot_have() {
        assert_eq!(text("é".into()), ("é".into(), true));
        assert_eq!(text("a\0b".into()), ("a".into(), false));
        assert_eq!(text(b"\xff".as_bstr()), ("\u{fffd}".into(), false));
    }
}
