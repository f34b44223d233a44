//! Objects, attributes and types in JSON, in the form of h5grove.

use h5_read::{
    ByteOrder, Charset, Class, Dataset, Dataspace, Datatype, File, Filter, Group, Layout, Link, Object, ObjectKind,
    Padding, Reference, SpaceKind, Target, Value as Element,
};
use serde_json::{Map, Value, json};

use crate::error::{Refusal, Result};
use crate::number::Number;

/// Most members of a group that are described.
const MOST_MEMBERS: usize = 20_000;

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `None` for a null dataspace.
pub(crate) fn shape(space: &Dataspace) -> Option<&[u64]> {
    (space.kind != SpaceKind::Null).then_some(&space.extents)
}

/// An object with the members of a group.
pub(crate) fn object(file: &File, object: &Object, name: &str) -> Result<Value> {
    let mut described = owner(object, name)?;
    if let (ObjectKind::Group, Some(fields)) = (object.kind(), described.as_object_mut()) {
        let group = object.group()?;
        let mut links = group.links().whole()?;
        if links.len() > MOST_MEMBERS {
            let count = links.len();
            return Err(Refusal::new(format!("the group has {count} members, at most {MOST_MEMBERS} are listed")));
        }
        links.sort_by_key(|link| link.name.starts_with(b"_"));
        let member = |link: &Link| {
            let name = text(&link.name);
            let described = match target(file, &group, link) {
                Ok(Some(object)) => owner(&object, &name),
                Ok(None) => Ok(self::link(link)),
                Err(error) => Err(error),
            };
            described.unwrap_or_else(|error| json!({"kind": "other", "message": error.to_string(), "name": name}))
        };
        fields.insert("children".to_owned(), links.iter().map(member).collect());
    }
    Ok(described)
}

/// The object to which a link leads; `None` if that is in another file, or missing.
pub(crate) fn target(file: &File, group: &Group, link: &Link) -> Result<Option<Object>> {
    match &link.target {
        Target::Object(address) => Ok(Some(file.object(*address)?)),
        Target::Soft(path) => Ok(group.find(path).ok()),
        _ => Ok(None),
    }
}

/// A link that leads nowhere.
pub(crate) fn link(link: &Link) -> Value {
    let name = text(&link.name);
    match &link.target {
        Target::Soft(path) => json!({"kind": "soft_link", "name": name, "target_path": text(path)}),
        Target::External { file, path } => {
            json!({"kind": "external_link", "name": name, "target_file": text(file), "target_path": text(path)})
        }
        _ => json!({"kind": "other", "name": name}),
    }
}

fn owner(object: &Object, name: &str) -> Result<Value> {
    let mut attributes = object.attributes().whole()?;
    attributes.sort_by(|a, b| a.name.cmp(&b.name));
    let attributes = attributes.iter().map(|attribute| {
        json!({"name": text(&attribute.name), "shape": shape(&attribute.space), "type": datatype(&attribute.datatype)})
    });
    let attributes: Value = attributes.collect();
    Ok(match object.kind() {
        ObjectKind::Group => json!({"attributes": attributes, "kind": "group", "name": name}),
        ObjectKind::Dataset => {
            let dataset = object.dataset()?;
            json!({
                "attributes": attributes,
                "chunks": chunks(&dataset),
                "filters": filters(&dataset),
                "kind": "dataset",
                "shape": shape(dataset.space()),
                "type": datatype(dataset.datatype()),
                "name": name,
            })
        }
        ObjectKind::Type => {
            let of_type = datatype(&object.committed_type()?);
            json!({"attributes": attributes, "kind": "datatype", "type": of_type, "name": name})
        }
    })
}

fn chunks(dataset: &Dataset) -> Option<&[u64]> {
    match dataset.layout() {
        Layout::Chunked(chunked) => Some(&chunked.shape),
        _ => None,
    }
}

fn filters(dataset: &Dataset) -> Value {
    let name = |filter: &Filter| match filter.id {
        _ if !filter.name.is_empty() => text(&filter.name),
        1 => "deflate".to_owned(),
        2 => "shuffle".to_owned(),
        3 => "fletcher32".to_owned(),
        4 => "szip".to_owned(),
        5 => "nbit".to_owned(),
        6 => "scaleoffset".to_owned(),
        _ => "without a name".to_owned(),
    };
    match &dataset.pipeline().filters[..] {
        [] => Value::Null,
        filters => filters.iter().map(|filter| json!({"id": filter.id, "name": name(filter)})).collect(),
    }
}

/// Codes are those of the HDF5 library: `H5T_class_t`, `H5T_order_t`, `H5T_str_t`.
pub(crate) fn datatype(element: &Datatype) -> Value {
    let mut described = Map::new();
    let mut set = |name: &str, value: Value| drop(described.insert(name.to_owned(), value));
    set("class", json!(class_code(&element.class)));
    set("dtype", dtype(element));
    set("size", json!(memory_size(element)));
    match &element.class {
        Class::Integer { order, is_signed, .. } => {
            set("order", order_code(*order));
            set("sign", json!(i32::from(*is_signed)));
        }
        Class::Float(layout) => set("order", order_code(layout.order)),
        Class::Bitfield { order, .. } => set("order", order_code(*order)),
        Class::String(of) | Class::VariableString(of) => {
            set("cset", json!(i32::from(of.charset == Charset::Utf8)));
            set("strpad", padding_code(of.padding));
            set("vlen", json!(matches!(element.class, Class::VariableString(_))));
        }
        Class::Opaque { tag } => set("tag", json!(text(tag))),
        Class::Compound(members) => {
            let member = |member: &h5_read::Member| {
                let mut described = Map::from_iter([("name".to_owned(), json!(text(&member.name)))]);
                if let Value::Object(of_type) = datatype(&member.datatype) {
                    described.extend(of_type);
                }
                Value::Object(described)
            };
            set("members", members.iter().map(member).collect());
        }
        Class::Enum { base, values } => {
            let members: Map<_, _> = values.iter().map(|(name, value)| (text(name), enum_value(base, value))).collect();
            set("members", Value::Object(members));
            set("base", datatype(base));
        }
        Class::Sequence(base) | Class::Complex(base) => set("base", datatype(base)),
        Class::Array { extents, base } => {
            set("dims", json!(extents));
            set("base", datatype(base));
        }
        _ => {}
    }
    Value::Object(described)
}

/// Size in the memory of the HDF5 library: with pointers to elements of variable length.
fn memory_size(element: &Datatype) -> u64 {
    match &element.class {
        Class::VariableString(_) | Class::Reference(Reference::Object) => 8,
        Class::Sequence(_) => 16,
        Class::Reference(Reference::Region) => 12,
        Class::Reference(_) => 64,
        Class::Compound(members) => members.iter().fold(element.size(), |size, member| {
            (size + memory_size(&member.datatype)).saturating_sub(member.datatype.size())
        }),
        Class::Array { base, .. } => element.size() / base.size().max(1) * memory_size(base),
        _ => element.size(),
    }
}

fn class_code(class: &Class) -> i32 {
    match class {
        Class::Integer { .. } => 0,
        Class::Float(_) => 1,
        Class::Time { .. } => 2,
        Class::String(_) | Class::VariableString(_) => 3,
        Class::Bitfield { .. } => 4,
        Class::Opaque { .. } => 5,
        Class::Compound(_) => 6,
        Class::Reference(_) => 7,
        Class::Enum { .. } => 8,
        Class::Sequence(_) => 9,
        Class::Array { .. } => 10,
        Class::Complex(_) => 11,
        _ => -1,
    }
}

fn order_code(order: ByteOrder) -> Value {
    match order {
        ByteOrder::Little => json!(0),
        ByteOrder::Big => json!(1),
        ByteOrder::Vax => json!(2),
    }
}

fn padding_code(padding: Padding) -> Value {
    match padding {
        Padding::NulTerminated => json!(0),
        Padding::Nul => json!(1),
        Padding::Space => json!(2),
    }
}

fn enum_value(base: &Datatype, value: &[u8]) -> Value {
    match base.number(value) {
        Some(Element::Integer(number)) => {
            i64::try_from(number).map_or_else(|_| json!(u64::try_from(number).ok()), |number| json!(number))
        }
        _ => Value::Null,
    }
}

/// Numpy's name; of a compound a JSON object with the types of its members.
fn dtype(element: &Datatype) -> Value {
    if let Some(number) = Number::of(element) {
        return json!(number.form.dtype());
    }
    match &element.class {
        Class::VariableString(_) | Class::Sequence(_) | Class::Reference(_) => json!("|O"),
        Class::String(_) => json!(format!("|S{}", element.size)),
        Class::Compound(members) => {
            members.iter().map(|member| (text(&member.name), dtype(&member.datatype))).collect::<Map<_, _>>().into()
        }
        _ => json!(format!("|V{}", memory_size(element))),
    }
}
