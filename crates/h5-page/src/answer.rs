//! The requests: objects by their paths, attributes, values of datasets, statistics.

use std::collections::HashSet;

use h5_read::{Class, Datatype, ErrorKind, File, Group, Link, Object, SpaceKind, Target, Value as Element};
use serde_json::{Value, json};

use crate::describe::{self, shape, text};
use crate::elements::{nested, push_text};
use crate::error::{Refusal, Result};
use crate::filters::Codecs;
use crate::number::{Form, Kind, Number};
use crate::selection::{self, Axis};

/// Most bytes of a selection that are read.
const READ_BYTES: u64 = 256 << 20;
/// Most paths in a list.
const MOST_PATHS: usize = 100_000;

/// Answers a request of h5grove's: JSON, or the bytes that the parameter `format` asks for.
/// Parameters have names and values; the last one of a name counts, but of `attr_keys` each.
///
/// # Errors
/// Unknown requests, paths that lead nowhere, wrong parameters, answers that are too large, damaged
/// files.
pub fn answer(file: &File, request: &str, parameters: &[(String, String)]) -> Result<Vec<u8>> {
    let query = Query(parameters);
    let path = query.get("path").unwrap_or("/");
    let answered = match request {
        "meta" => meta(file, path),
        "attr" => attributes(file, path, &query),
        "paths" => paths(file, path),
        "data" => Selected::read(file, path, &query).and_then(|selected| selected.data(file, &query)),
        "stats" => Selected::read(file, path, &query).and_then(|selected| selected.stats()),
        _ => return Err(Refusal::new(format!("unknown request {request}"))),
    };
    answered.map_err(|error| error.within(path))
}

struct Query<'a>(&'a [(String, String)]);

impl Query<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The object at a path, or the link there that leads to none, with the name of the path.
enum Found {
    Object(Object),
    Link(Link),
}

fn find(file: &File, path: &str) -> Result<Found> {
    let invalid = |error: h5_read::Error| match error.kind() {
        ErrorKind::Missing => Refusal::new("the file has no such object: it is not a valid path"),
        _ => error.into(),
    };
    let path = path.trim_end_matches('/');
    let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
    let root = file.root()?;
    if matches!(name, "" | ".") {
        return Ok(Found::Object(root.find(parents).map_err(invalid)?));
    }
    let group = root.find(parents).and_then(|object| object.group()).map_err(invalid)?;
    let link = group.link(name).map_err(invalid)?;
    Ok(describe::target(file, &group, &link)?.map_or(Found::Link(link), Found::Object))
}

fn object(file: &File, path: &str) -> Result<Object> {
    match find(file, path)? {
        Found::Object(object) => Ok(object),
        Found::Link(_) => Err(Refusal::new("Cannot resolve the link: its target is missing or in another file")),
    }
}

fn meta(file: &File, path: &str) -> Result<Vec<u8>> {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let described = match find(file, path)? {
        Found::Object(object) => describe::object(file, &object, name)?,
        Found::Link(link) => describe::link(&link),
    };
    Ok(described.to_string().into_bytes())
}

fn attributes(file: &File, path: &str, query: &Query<'_>) -> Result<Vec<u8>> {
    let object = object(file, path)?;
    let wanted: Vec<_> = query.0.iter().filter(|(key, _)| key == "attr_keys").map(|(_, value)| value).collect();
    let attributes = match &wanted[..] {
        [] => object.attributes().whole()?,
        wanted => wanted.iter().map(|name| object.attribute(name.as_bytes())).collect::<h5_read::Result<_>>()?,
    };
    let mut out = vec![b'{'];
    for attribute in attributes {
        if out.len() > 1 {
            out.push(b',');
        }
        push_text(&attribute.name, &mut out);
        out.push(b':');
        match shape(&attribute.space) {
            Some(extents) => {
                let (datatype, shape) = flat(&attribute.datatype, extents.to_vec());
                out.append(&mut nested(file, datatype, &shape, &attribute.data)?);
            }
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    Ok(out)
}

/// The type of the elements of arrays, whose axes follow those of the shape.
fn flat(mut datatype: &Datatype, mut shape: Vec<u64>) -> (&Datatype, Vec<u64>) {
    while let Class::Array { extents, base } = &datatype.class {
        shape.extend(extents.iter().map(|&extent| u64::from(extent)));
        datatype = base;
    }
    (datatype, shape)
}

fn paths(file: &File, path: &str) -> Result<Vec<u8>> {
    let group = object(file, path)?.group()?;
    let mut seen = HashSet::from([group.object().address()]);
    let mut paths = vec![path.to_owned()];
    let mut open = vec![(path.trim_end_matches('/').to_owned(), descending(&group)?)];
    while let Some((base, links)) = open.last_mut() {
        let Some(link) = links.pop() else {
            open.pop();
            continue;
        };
        if paths.len() >= MOST_PATHS {
            return Err(Refusal::new(format!("more than {MOST_PATHS} objects are below the group")));
        }
        let path = format!("{base}/{}", text(&link.name));
        if let Target::Object(address) = link.target
            && let Ok(group) = file.object(address).and_then(|object| object.group())
            && seen.insert(address)
        {
            open.push((path.clone(), descending(&group)?));
        }
        paths.push(path);
    }
    Ok(Value::from(paths).to_string().into_bytes())
}

/// Links by name, the first last.
fn descending(group: &Group) -> Result<Vec<Link>> {
    let mut links = group.links().whole()?;
    links.sort_by(|a, b| b.name.cmp(&a.name));
    Ok(links)
}

/// Selected elements of a dataset.
struct Selected {
    /// Elements as the file has them.
    bytes: Vec<u8>,
    datatype: Datatype,
    /// Slowest axis first; `None` for a null dataspace.
    shape: Option<Vec<u64>>,
}

impl Selected {
    fn read(file: &File, path: &str, query: &Query<'_>) -> Result<Self> {
        let dataset = object(file, path)?.dataset()?;
        let axes = selection::parse(query.get("selection"), &dataset.space().extents)?;
        let size = dataset.datatype().size();
        let region: Vec<_> = axes.iter().map(Axis::range).collect();
        let count = region.iter().map(|range| range.end - range.start).fold(size, u64::saturating_mul);
        if count > READ_BYTES {
            return Err(Refusal::new(format!(
                "{count} bytes are selected, at most {READ_BYTES} are read: choose less"
            )));
        }
        let mut bytes = dataset.read(&region, &Codecs)?;
        if axes.iter().any(|axis| axis.step > 1) {
            let mut picked = Vec::new();
            selection::pick(&axes, &bytes, &mut picked);
            bytes = picked;
        }
        let shape = axes.iter().filter(|axis| !axis.is_index).map(|axis| axis.count).collect();
        let (datatype, shape) = flat(dataset.datatype(), shape);
        let has_elements = dataset.space().kind != SpaceKind::Null;
        Ok(Selected { bytes, datatype: datatype.clone(), shape: has_elements.then_some(shape) })
    }

    fn data(self, file: &File, query: &Query<'_>) -> Result<Vec<u8>> {
        let number = Number::of(&self.datatype);
        let to = match (query.get("dtype").unwrap_or("origin"), &number) {
            ("origin", number) => number.as_ref().map(|number| number.form),
            ("safe", Some(number)) => Some(number.form.safe()),
            (other, _) => return Err(Refusal::new(format!("Unsupported dtype {other} for these elements"))),
        };
        let format = query.get("format").unwrap_or("json");
        let Selected { bytes, datatype, shape } = self;
        let Some(shape) = shape else {
            return if format == "json" { Ok(b"null".to_vec()) } else { Err(unsupported(format)) };
        };
        match (format, number.zip(to)) {
            ("json", _) => {
                let is_flat = query.get("flatten").is_some_and(|text| text.eq_ignore_ascii_case("true"));
                let count = shape.iter().fold(1, |count: u64, &extent| count.saturating_mul(extent));
                let shape = if is_flat && !shape.is_empty() { vec![count] } else { shape };
                nested(file, &datatype, &shape, &bytes)
            }
            ("bin", Some((number, to))) => Ok(number.convert(bytes, to)),
            ("bin", None) if !has_pointers(&datatype) => Ok(bytes),
            ("npy", Some((number, to))) => Ok([npy_header(to, &shape), number.convert(bytes, to)].concat()),
            (format, _) => Err(unsupported(format)),
        }
    }

    fn stats(&self) -> Result<Vec<u8>> {
        let number = Number::of(&self.datatype).filter(|number| number.form.kind != Kind::Complex);
        let number =
            number.ok_or_else(|| Refusal::new("statistics are of real numbers, which the elements are not"))?;
        let (mut count, mut sum) = (0.0, 0.0);
        let [mut min, mut max, mut positive, mut strict] = [None; 4];
        self.finite(&number, |found| {
            count += 1.0;
            sum += found.value;
            let least = |known: Option<Finite>| known.filter(|known| !found.is_less(known)).or(Some(found));
            min = least(min);
            max = max.filter(|known: &Finite| !known.is_less(&found)).or(Some(found));
            if found.value >= 0.0 {
                positive = least(positive);
            }
            if found.value > 0.0 {
                strict = least(strict);
            }
        });
        let mean = sum / count;
        let mut deviations = 0.0;
        self.finite(&number, |found| deviations += (found.value - mean) * (found.value - mean));
        let document = json!({
            "strict_positive_min": strict.map(Finite::json),
            "positive_min": positive.map(Finite::json),
            "min": min.map(Finite::json),
            "max": max.map(Finite::json),
            "mean": mean,
            "std": f64::sqrt(deviations / count),
        });
        Ok(document.to_string().into_bytes())
    }

    fn finite(&self, number: &Number, mut each: impl FnMut(Finite)) {
        number.each(&self.bytes, |found| match found {
            Element::Integer(integer) => each(Finite { value: integer as f64, integer: Some(integer) }),
            Element::Float(value) if value.is_finite() => each(Finite { value, integer: None }),
            _ => {}
        });
    }
}

/// Whether elements have addresses in the file, which mean nothing elsewhere.
fn has_pointers(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Reference(_) => true,
        Class::Compound(members) => members.iter().any(|member| has_pointers(&member.datatype)),
        Class::Array { base, .. } => has_pointers(base),
        _ => datatype.is_variable(),
    }
}

/// A number for statistics.
#[derive(Clone, Copy)]
struct Finite {
    value: f64,
    /// The number with all digits, if it is an integer.
    integer: Option<i128>,
}

impl Finite {
    fn is_less(&self, other: &Finite) -> bool {
        match self.integer.zip(other.integer) {
            Some((left, right)) => left < right,
            None => self.value < other.value,
        }
    }

    fn json(self) -> Value {
        match self.integer {
            Some(integer) => {
                i64::try_from(integer).map_or_else(|_| json!(u64::try_from(integer).ok()), |integer| json!(integer))
            }
            None => json!(self.value),
        }
    }
}

fn unsupported(format: &str) -> Refusal {
    Refusal::new(format!("Unsupported encoding {format} for these elements"))
}

/// Version 1.0; `shape` has the slowest axis first.
fn npy_header(form: Form, shape: &[u64]) -> Vec<u8> {
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    let one = if shape.len() == 1 { "," } else { "" };
    let extents = extents.join(", ") + one;
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({extents}), }}", form.dtype());
    // magic, version, two bytes of length; the numbers begin at a multiple of 64
    let padding = 63 - (10 + text.len()) % 64;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
}
