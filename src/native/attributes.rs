//! Writes casacore keywords as plain HDF5 attributes that other programs show, and finds what a
//! user has changed in these attributes since the native HDF5 file was made.
//! docs/reference/layout.md, "Keywords" and "Edits".
//!
//! The attributes that the exact keywords give are computed once more and compared with the
//! existing ones.
//! Shapes are fastest axis first.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::names::{link_name, unique};
use super::nexus::{NX_CLASS, NX_DATA, OF_VIEW};
use super::raw_strings::{text as representable, text_attribute};
use crate::error::{Error, Result};
use crate::h5::{Attribute, Group, Header};
use crate::schema::TableInfo;
use crate::value::{Complex32, Complex64, DataType, Record, Shape, Value, Values};

/// Exact name of a table or column whose group or dataset has another name.
pub(super) const CTDS_NAME: &str = "ctds_name";
pub(super) const TABLE_TYPE: &str = "table_type";
pub(super) const TABLE_SUBTYPE: &str = "table_subtype";
pub(super) const README: &str = "readme";
pub(crate) const UNITS: &str = "units";
pub(crate) const LONG_NAME: &str = "long_name";
const MEASURE_TYPE: &str = "measure_type";
const MEASURE_REF: &str = "measure_ref";
/// Attributes that are not made from keywords.
pub(super) const OF_TABLE: [&str; 4] = [CTDS_NAME, TABLE_TYPE, TABLE_SUBTYPE, README];
/// Attributes beside those named like keywords; some show keywords as well: units and measures.
pub(super) const OF_COLUMN: [&str; 5] = [CTDS_NAME, UNITS, LONG_NAME, MEASURE_TYPE, MEASURE_REF];

/// `NAME__shape`: shape of the array in the keyword `name`, slowest axis first.
fn shape_of(name: &str) -> String {
    format!("{name}{SHAPE}")
}

const SHAPE: &str = "__shape";

/// Attribute of a table with the TaQL expression of a column, which has no dataset.
pub(crate) fn taql_of(name: &str) -> String {
    format!("{name}{TAQL}")
}

const TAQL: &str = "__taql";

/// xarray's mark of a dataset of int8 whose elements are Bools.
pub(super) const DTYPE: &str = "dtype";
pub(super) const BOOL: &str = "bool";

/// Attributes and the fields of MEASINFO that they show.
const MEASURE: [(&str, &str); 2] = [(MEASURE_TYPE, "type"), (MEASURE_REF, "Ref")];

/// By the HDF5 specification: the scales of each axis.
pub(crate) const DIMENSION_LIST: &str = "DIMENSION_LIST";

/// Names of HDF5 and netCDF; the attribute of such a keyword gets a suffix: `CLASS__2`.
const RESERVED: [&str; 9] = [
    "CLASS",
    "NAME",
    DIMENSION_LIST,
    "REFERENCE_LIST",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
    "_FillValue",
    "_nc3_strict",
];

/// Readable attributes in the order in which they are written; each name occurs once.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<Readable>);

#[derive(Debug)]
pub(crate) struct Readable {
    pub(crate) name: String,
    pub(crate) value: Attribute,
    pub(crate) origin: Origin,
}

/// Paths are indices: of the field in the keyword set, then in each nested record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Not a keyword, such as `units`: name of its attribute, before any suffix.
    Own(&'static str),
    Keyword(Vec<usize>),
    /// Shape of a keyword that is an array: path of the array.
    Shape(Vec<usize>),
}

impl Attributes {
    /// `table_path` returns the group of a subtable to which a keyword refers.
    pub(crate) fn of_table(
        exact_name: Option<&BStr>,
        info: &TableInfo,
        keywords: &Record,
        table_path: &dyn Fn(&BStr) -> String,
    ) -> Self {
        let mut attributes = Attributes::default();
        if let Some(name) = exact_name {
            attributes.add(CTDS_NAME, text_attribute(name));
        }
        attributes.add(TABLE_TYPE, text_attribute(info.table_type.as_bstr()));
        attributes.add(TABLE_SUBTYPE, text_attribute(info.sub_type.as_bstr()));
        attributes.add(README, text_attribute(info.readme.as_bstr()));
        attributes.add_nested("", &[], keywords, table_path);
        attributes
    }

    pub(crate) fn of_column(
        exact_name: Option<&BStr>,
        comment: &BStr,
        keywords: &Record,
        table_path: &dyn Fn(&BStr) -> String,
    ) -> Self {
        let mut attributes = Attributes::default();
        if let Some(name) = exact_name {
            attributes.add(CTDS_NAME, text_attribute(name));
        }
        attributes.add_column(comment, keywords);
        attributes.add_nested("", &[], keywords, table_path);
        attributes
    }

    /// `name__2`, `name__3` … if `name` is taken.
    fn add(&mut self, name: &'static str, value: Attribute) {
        self.add_readable(name, value, Origin::Own(name));
    }

    fn add_readable(&mut self, name: &str, value: Attribute, origin: Origin) {
        let is_taken = |name: &str| RESERVED.contains(&name) || self.0.iter().any(|taken| taken.name == name);
        let name = unique(&link_name(name), is_taken);
        self.0.push(Readable { name, value, origin });
    }

    pub(crate) fn write(&self, set: impl Fn(&str, &Attribute) -> Result<()>) -> Result<()> {
        self.0.iter().try_for_each(|attribute| set(&attribute.name, &attribute.value))
    }

    /// Returns the names of the removed ones, which are not written.
    pub(crate) fn remove_unless(&mut self, keep: impl Fn(&str, &Attribute) -> bool) -> Vec<String> {
        let removed = self.0.extract_if(.., |attribute| !keep(&attribute.name, &attribute.value));
        removed.map(|attribute| attribute.name).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Readable> {
        self.0.iter()
    }

    /// Keywords that refer to tables: names of their attributes, and the references as stored.
    pub(crate) fn tables<'a>(&'a self, keywords: &'a Record) -> impl Iterator<Item = (&'a str, &'a BString)> {
        self.0.iter().filter_map(|readable| match &readable.origin {
            Origin::Keyword(path) => match value_at(keywords, path) {
                Some(Value::Table(stored)) => Some((readable.name.as_str(), stored)),
                _ => None,
            },
            _ => None,
        })
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
                        self.add_readable(&shape_of(&name), extents_attribute(shape), Origin::Shape(path));
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

    /// `units`, `long_name`, `measure_type` and `measure_ref`.
    fn add_column(&mut self, comment: &BStr, keywords: &Record) {
        let unit = keywords.strings("QuantumUnits").and_then(|units| units.first()).map(|unit| unit.as_bstr());
        if let Some(unit) = unit.or_else(|| keywords.string("UNIT")) {
            self.add(UNITS, text_attribute(unit));
        }
        if !comment.is_empty() {
            self.add(LONG_NAME, text_attribute(comment));
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

fn extents_attribute(shape: &Shape) -> Attribute {
    Attribute::Array(Values::Int64(shape.reversed().iter().map(|&extent| extent as i64).collect()))
}

/// Strings lose bytes that HDF5 cannot hold, complex numbers become pairs of floats.
fn readable(values: &Values, scalar: bool) -> Attribute {
    let pairs = match values {
        Values::Complex(v) => Values::Float(v.iter().flat_map(|c| [c.re, c.im]).collect()),
        Values::DComplex(v) => Values::Double(v.iter().flat_map(|c| [c.re, c.im]).collect()),
        Values::String(v) => {
            let texts = Values::String(v.iter().map(|string| representable(string.as_bstr()).0).collect());
            return if scalar { Attribute::Scalar(texts) } else { Attribute::Array(texts) };
        }
        _ if scalar => return Attribute::Scalar(values.clone()),
        _ => return Attribute::Array(values.clone()),
    };
    Attribute::Array(pairs)
}

pub(crate) enum Object {
    Group(Group),
    Dataset(Header),
}

impl Object {
    /// Without those of HDF5 and netCDF.
    fn attributes(&self) -> Result<Found> {
        Ok(Found(self.names()?.into_iter().map(|name| self.found(name)).collect()))
    }

    fn names(&self) -> Result<Vec<String>> {
        let mut names = match self {
            Object::Group(group) => group.attributes()?,
            Object::Dataset(dataset) => dataset.attributes()?,
        };
        names.retain(|name| !RESERVED.contains(&name.as_str()));
        Ok(names)
    }

    fn found(&self, name: String) -> FoundAttribute {
        let read = match self {
            Object::Group(group) => group.shaped_attribute(&name),
            Object::Dataset(dataset) => dataset.shaped_attribute(&name),
        };
        let (value, extents) = read.map_or((None, Vec::new()), |(value, extents)| (Some(value), extents));
        FoundAttribute { axes: Some(Shape::from_reversed(&extents)).filter(|axes| axes.len() > 1), name, value }
    }

    /// Why attributes are missing, of a file that is salvaged.
    pub(super) fn damage(&self) -> Option<Error> {
        match self {
            Object::Group(group) => group.damage(),
            Object::Dataset(dataset) => dataset.damage(),
        }
    }

    /// All but `own`, and those of HDF5 and netCDF.
    pub(super) fn strangers(&self, own: &[&str]) -> Result<Vec<String>> {
        let mut names = self.names()?;
        names.retain(|name| !own.contains(&name.as_str()) && !self.is_mark_of_bool(&self.found(name.clone())));
        Ok(names)
    }

    pub(crate) fn attribute(&self, name: &str) -> Result<Option<Attribute>> {
        match self {
            Object::Group(group) => group.attribute(name),
            Object::Dataset(dataset) => dataset.attribute(name),
        }
    }
}

/// Edits that a user made to attributes: all keywords afterwards, changed properties, and notes.
pub(crate) struct Changes {
    pub(crate) keywords: Record,
    /// New values of `table_type`, `units`, …
    pub(crate) own: Vec<(&'static str, BString)>,
    pub(crate) notes: Vec<String>,
}

/// `expected` is made from the exact `keywords`; `own` are other properties, `others` neither.
pub(crate) fn diff(
    object: &Object,
    expected: &Attributes,
    keywords: &Record,
    own: &[&'static str],
    others: &[&str],
) -> Result<Changes> {
    let mut changes = Changes::none(keywords);
    let found = object.attributes()?;
    let written: HashMap<&str, &Readable> =
        expected.iter().map(|readable| (readable.name.as_str(), readable)).collect();
    // a keyword that was written has the attribute of its shape, if any, under the name that was
    // free then
    let shapes: HashMap<&[usize], &str> = expected
        .iter()
        .filter_map(|readable| match &readable.origin {
            Origin::Shape(path) => Some((path.as_slice(), readable.name.as_str())),
            _ => None,
        })
        .collect();
    for readable in expected.iter() {
        let shape = match &readable.origin {
            Origin::Keyword(path) => match shapes.get(path.as_slice()) {
                Some(name) => found.get(name).and_then(FoundAttribute::as_extents),
                // an edit of a keyword with one axis may give it more
                None => found.shape(&readable.name).filter(|_| !written.contains_key(&*shape_of(&readable.name))),
            },
            _ => None,
        };
        changes.compare(readable, &found, shape);
    }
    for attribute in found.0.iter().filter(|found| !written.contains_key(found.name.as_str())) {
        let name = attribute.name.as_str();
        if others.contains(&name) || found.is_shape(name) || found.is_view(name) || object.is_mark_of_bool(attribute) {
            continue;
        }
        let note = match (&attribute.value, own.iter().find(|own| **own == name && **own != CTDS_NAME)) {
            (None, _) => format!("attribute {name} is of a type that no keyword can have"),
            (Some(value), Some(own)) => match text(value) {
                Some(text) => {
                    changes.own.push((own, text));
                    format!("attribute {name} was added")
                }
                None => format!("attribute {name} is left out: it has to be one string"),
            },
            (Some(value), None) => {
                add(&mut changes.keywords, name, natural(value, attribute.shape(&found)));
                format!("attribute {name} was added")
            }
        };
        changes.notes.push(note);
    }
    Ok(changes)
}

struct FoundAttribute {
    name: String,
    /// `None` if it cannot be read.
    value: Option<Attribute>,
    /// The attribute's extents, fastest axis first, if it has several axes.
    axes: Option<Shape>,
}

impl FoundAttribute {
    /// The shape, fastest axis first, that the attribute states of another one.
    fn as_extents(&self) -> Option<Shape> {
        self.value.as_ref().and_then(extents)
    }

    /// The array's own shape, or the one of `NAME__shape`.
    fn shape(&self, found: &Found) -> Option<Shape> {
        self.axes.clone().or_else(|| found.shape(&self.name))
    }
}

struct Found(Vec<FoundAttribute>);

impl Found {
    fn get(&self, name: &str) -> Option<&FoundAttribute> {
        self.0.iter().find(|found| found.name == name)
    }

    /// Shape by `NAME__shape`, fastest axis first.
    fn shape(&self, name: &str) -> Option<Shape> {
        self.get(&shape_of(name))?.as_extents()
    }

    fn is_shape(&self, name: &str) -> bool {
        name.strip_suffix(SHAPE).is_some_and(|of| self.get(of).is_some_and(|of| of.axes.is_none()))
            && self.get(name).is_some_and(|shape| shape.as_extents().is_some())
    }

    /// Whether viewers draw the object by this attribute, which is not that of a keyword.
    fn is_view(&self, name: &str) -> bool {
        let class = || self.get(NX_CLASS).and_then(|class| class.value.as_ref()).and_then(text);
        OF_VIEW.contains(&name) && class().is_some_and(|class| class == NX_DATA)
    }
}

impl Object {
    fn is_mark_of_bool(&self, attribute: &FoundAttribute) -> bool {
        let value = || attribute.value.as_ref().and_then(text);
        matches!(self, Object::Dataset(_)) && attribute.name == DTYPE && value().is_some_and(|text| text == BOOL)
    }
}

impl Changes {
    pub(crate) fn none(keywords: &Record) -> Self {
        Changes { keywords: keywords.clone(), own: Vec::new(), notes: Vec::new() }
    }

    /// Applies a value that differs, if possible, and adds a note; `shape` is the recorded one.
    fn compare(&mut self, readable: &Readable, found: &Found, shape: Option<Shape>) {
        let name = &readable.name;
        let Some(FoundAttribute { value, axes, .. }) = found.get(name) else {
            // a file for HDF5 1.8 never had it
            if readable.value.fits_header(name) {
                self.notes.push(format!("attribute {name} is gone; what it said is kept"));
            }
            return;
        };
        // an attribute with several axes states its shape itself
        let is_shaped = axes.as_ref().is_none_or(|axes| self.has_shape(readable, axes));
        if is_shaped && value.as_ref().is_some_and(|value| same(&readable.value, value)) {
            return;
        }
        let edited = match value {
            Some(value) => self.edit(readable, value, axes.clone().or(shape)),
            None => Edit::Impossible,
        };
        self.notes.push(match edited {
            Edit::Done => format!("attribute {name} was edited"),
            Edit::Impossible => {
                format!("attribute {name} was edited to what cannot stand for it; what it said is kept")
            }
            Edit::DoneBefore => return,
        });
    }

    /// Whether the keyword is an array of this shape.
    fn has_shape(&mut self, readable: &Readable, axes: &Shape) -> bool {
        let Origin::Keyword(path) = &readable.origin else { return true };
        matches!(field(&mut self.keywords, path), Some(Value::Array(shape, _)) if shape == axes)
    }

    /// `shape` is that of `NAME__shape`, fastest axis first.
    fn edit(&mut self, readable: &Readable, value: &Attribute, shape: Option<Shape>) -> Edit {
        match &readable.origin {
            Origin::Own(CTDS_NAME) => Edit::Impossible,
            Origin::Own(own) => match text(value) {
                Some(text) => {
                    self.own.push((own, text));
                    Edit::Done
                }
                None => Edit::Impossible,
            },
            Origin::Keyword(path) => {
                let Some(old) = field(&mut self.keywords, path) else { return Edit::Impossible };
                let Some(new) = converted(old, value, shape) else { return Edit::Impossible };
                *old = new;
                Edit::Done
            }
            Origin::Shape(path) => {
                let Some(Value::Array(shape, _)) = field(&mut self.keywords, path) else { return Edit::Impossible };
                match extents(value) {
                    // as it became with the values
                    Some(new) if *shape == new => Edit::DoneBefore,
                    Some(new) if shape.elements().ok() == new.elements().ok() => {
                        *shape = new;
                        Edit::Done
                    }
                    _ => Edit::Impossible,
                }
            }
        }
    }
}

enum Edit {
    Done,
    /// An edited `NAME__shape` was applied together with `NAME`.
    DoneBefore,
    /// The keyword or property keeps its old value, for example because of the type.
    Impossible,
}

/// Notes name attributes that cannot be keywords.
pub(super) fn keywords(object: &Object, own: &[&str]) -> Result<(Record, Vec<String>)> {
    let found = object.attributes()?;
    let (mut keywords, mut notes) = (Record::default(), Vec::new());
    for attribute in &found.0 {
        let name = attribute.name.as_str();
        if own.contains(&name) || found.is_shape(name) || found.is_view(name) || object.is_mark_of_bool(attribute) {
            continue;
        }
        match &attribute.value {
            Some(value) => add(&mut keywords, name, natural(value, attribute.shape(&found))),
            None => notes.push(format!("attribute {name} is of a type that no keyword can have")),
        }
    }
    Ok((keywords, notes))
}

/// Applies `long_name` to the comment, `units`, `measure_type`, `measure_ref` to keywords.
pub(crate) fn apply_own(own: &[(&'static str, BString)], comment: &mut BString, keywords: &mut Record) {
    for (name, text) in own {
        if let Some((_, field)) = MEASURE.iter().find(|(attribute, _)| attribute == name) {
            let mut measure = keywords.record("MEASINFO").cloned().unwrap_or_default();
            measure.set(*field, Value::string(text.clone()));
            keywords.set("MEASINFO", Value::Record(measure));
        } else if *name == LONG_NAME {
            *comment = text.clone();
        } else if *name == UNITS {
            let mut units = keywords.strings("QuantumUnits").unwrap_or_default().to_vec();
            match (units.first_mut(), keywords.string("UNIT").is_some()) {
                (None, true) => keywords.set("UNIT", Value::string(text.clone())),
                (first, _) => {
                    match first {
                        Some(first) => *first = text.clone(),
                        None => units.push(text.clone()),
                    }
                    keywords
                        .set("QuantumUnits", Value::Array(Shape::from([units.len() as u64]), Values::String(units)));
                }
            }
        }
    }
}

/// `None` unless the attribute is a single string.
pub(crate) fn text(attribute: &Attribute) -> Option<BString> {
    match attribute.values() {
        Values::String(strings) if strings.len() == 1 => strings.first().cloned(),
        _ => None,
    }
}

/// Bit by bit; written Bools are compared as Shorts, the type in which HDF5 returns them.
fn same(written: &Attribute, found: &Attribute) -> bool {
    let as_found = |values: &Values| match values {
        Values::Bool(v) => Values::Short(v.iter().map(|&value| value.into()).collect()),
        _ => values.clone(),
    };
    as_found(written.values()).same_bits(found.values())
        && matches!(written, Attribute::Scalar(_)) == matches!(found, Attribute::Scalar(_))
}

fn extents(attribute: &Attribute) -> Option<Shape> {
    let extents: Option<Vec<u64>> =
        integers(attribute.values())?.into_iter().map(|extent| u64::try_from(extent).ok()).collect();
    Some(Shape::from_reversed(&extents?))
}

fn field<'a>(record: &'a mut Record, path: &[usize]) -> Option<&'a mut Value> {
    let (first, rest) = path.split_first()?;
    let value = &mut record.fields.get_mut(*first)?.value;
    match (rest, value) {
        ([], value) => Some(value),
        (rest, Value::Record(nested)) => field(nested, rest),
        _ => None,
    }
}

fn value_at<'a>(record: &'a Record, path: &[usize]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let value = &record.fields.get(*first)?.value;
    match (rest, value) {
        ([], value) => Some(value),
        (rest, Value::Record(nested)) => value_at(nested, rest),
        _ => None,
    }
}

/// `None` if the value does not fit the type of `old`; `shape` is the recorded one.
fn converted(old: &Value, found: &Attribute, shape: Option<Shape>) -> Option<Value> {
    let data_type = match old {
        Value::Scalar(values) | Value::Array(_, values) => values.data_type(),
        _ => return None,
    };
    let values = as_type(found.values(), data_type)?;
    let len = values.len() as u64;
    let fits = |shape: &Shape| shape.elements().ok() == Some(len);
    Some(match (old, found) {
        (Value::Scalar(_), _) if len == 1 => Value::Scalar(values),
        (Value::Array(old, _), _) if fits(old) && shape.as_ref().is_none_or(|shape| !fits(shape)) => {
            Value::Array(old.clone(), values)
        }
        _ => Value::Array(shape.filter(fits).unwrap_or(Shape::from([len])), values),
    })
}

/// Value of an added attribute, in its own type; `shape` is recorded, fastest axis first.
fn natural(found: &Attribute, shape: Option<Shape>) -> Value {
    let values = match found.values() {
        // no record of casacore's can hold these
        Values::UShort(v) => Values::Int(v.iter().map(|&value| value.into()).collect()),
        values => values.clone(),
    };
    let len = values.len() as u64;
    match found {
        Attribute::Scalar(_) if len == 1 => Value::Scalar(values),
        _ => {
            Value::Array(shape.filter(|shape| shape.elements().ok() == Some(len)).unwrap_or(Shape::from([len])), values)
        }
    }
}

/// Dots in the name lead into nested records, as in `MEASINFO.type`.
fn add(record: &mut Record, name: &str, value: Value) {
    match name.split_once('.') {
        Some((outer, inner)) if !outer.is_empty() && !inner.is_empty() => {
            let mut nested = record.record(outer).cloned().unwrap_or_default();
            add(&mut nested, inner, value);
            record.set(outer, Value::Record(nested));
        }
        _ => record.set(name, value),
    }
}

fn integers(values: &Values) -> Option<Vec<i64>> {
    match values {
        Values::Bool(v) => Some(v.iter().map(|&value| value.into()).collect()),
        _ => values.integers(),
    }
}

fn floats(values: &Values) -> Option<Vec<f64>> {
    match values {
        Values::Float(v) => Some(v.iter().map(|&value| value.into()).collect()),
        Values::Double(v) => Some(v.clone()),
        _ => integers(values).map(|v| v.into_iter().map(|value| value as f64).collect()),
    }
}

/// Pairs of reals become complex, doubles are rounded to floats; `None` if a value does not fit.
fn as_type(found: &Values, data_type: DataType) -> Option<Values> {
    fn narrow<T: TryFrom<i64>>(values: Vec<i64>) -> Option<Vec<T>> {
        values.into_iter().map(|value| T::try_from(value).ok()).collect()
    }
    let pairs =
        |v: Vec<f64>| v.len().is_multiple_of(2).then(|| v.chunks(2).map(|z| Complex64::new(z[0], z[1])).collect());
    Some(match (data_type, found) {
        (DataType::String, Values::String(v)) => Values::String(v.clone()),
        (DataType::String | DataType::Record, _) | (_, Values::String(_)) => return None,
        (DataType::Float, _) => Values::Float(floats(found)?.into_iter().map(|value| value as f32).collect()),
        (DataType::Double, _) => Values::Double(floats(found)?),
        (DataType::Complex, Values::Complex(v)) => Values::Complex(v.clone()),
        (DataType::Complex, Values::DComplex(v)) => {
            Values::Complex(v.iter().map(|z| Complex32::new(z.re as f32, z.im as f32)).collect())
        }
        (DataType::DComplex, Values::Complex(v)) => {
            Values::DComplex(v.iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect())
        }
        (DataType::DComplex, Values::DComplex(v)) => Values::DComplex(v.clone()),
        (DataType::Complex, _) => {
            let pairs: Vec<Complex64> = pairs(floats(found)?)?;
            Values::Complex(pairs.into_iter().map(|z| Complex32::new(z.re as f32, z.im as f32)).collect())
        }
        (DataType::DComplex, _) => Values::DComplex(pairs(floats(found)?)?),
        (DataType::Bool, _) => {
            let bools = integers(found)?.into_iter().map(|value| matches!(value, 0 | 1).then_some(value == 1));
            Values::Bool(bools.collect::<Option<_>>()?)
        }
        (DataType::UChar, _) => Values::UChar(narrow(integers(found)?)?),
        (DataType::Short, _) => Values::Short(narrow(integers(found)?)?),
        (DataType::UShort, _) => Values::UShort(narrow(integers(found)?)?),
        (DataType::Int, _) => Values::Int(narrow(integers(found)?)?),
        (DataType::UInt, _) => Values::UInt(narrow(integers(found)?)?),
        (DataType::Int64, _) => Values::Int64(integers(found)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_type_of_the_keyword() {
        let old = Value::Scalar(Values::Float(vec![1.5]));
        let int = Attribute::Scalar(Values::Int64(vec![3]));
        assert_eq!(converted(&old, &int, None), Some(Value::Scalar(Values::Float(vec![3.]))));
        let old = Value::Scalar(Values::Short(vec![1]));
        assert_eq!(converted(&old, &Attribute::Scalar(Values::Int64(vec![1 << 20])), None), None);
        assert_eq!(converted(&old, &Attribute::string("x"), None), None);
        let old = Value::Array(Shape::from([2, 1]), Values::Complex(vec![Complex32::new(0., 0.); 2]));
        let floats = Attribute::Array(Values::Double(vec![1., 2., 3., 4.]));
        let new = Values::Complex(vec![Complex32::new(1., 2.), Complex32::new(3., 4.)]);
        assert_eq!(converted(&old, &floats, None), Some(Value::Array(Shape::from([2, 1]), new)));
        let longer = Attribute::Array(Values::Int(vec![1, 2, 3]));
        let old = Value::Array(Shape::from([2, 1]), Values::Int(vec![1, 2]));
        assert_eq!(converted(&old, &longer, None), Some(Value::Array(Shape::from([3]), Values::Int(vec![1, 2, 3]))));
    }

    #[test]
    fn points_separate_records() {
        let mut record = Record::default();
        add(&mut record, "MEASINFO.type", Value::string("epoch"));
        add(&mut record, "MEASINFO.Ref", Value::string("UTC"));
        assert_eq!(record.record("MEASINFO").unwrap().string("Ref").unwrap(), "UTC");
        let mut comment = BString::default();
        apply_own(&[("measure_ref", "TAI".into()), ("units", "s".into())], &mut comment, &mut record);
        assert_eq!(record.record("MEASINFO").unwrap().string("Ref").unwrap(), "TAI");
        assert_eq!(record.strings("QuantumUnits").unwrap(), ["s"]);
    }
}
