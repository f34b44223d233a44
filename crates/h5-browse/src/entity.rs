//! Describes HDF5 groups, datasets, named types and links in JSON, in the form of the HDF5 server
//! h5grove.

use std::sync::Arc;

use ctds::error::{Error, ErrorKind, Result};
use ctds_hdf5::internals::{AnyAttribute, AnyDataset, AnyNamedType, AnyObject, Group, Link};
use h5_read::Class;
use serde_json::{Map, Value, json};

use crate::data::push_elements;
use crate::json::JsonElements;
use crate::nest::Nest;
use crate::read;
use crate::resolve::{Found, LinkResolution, Member, OpenFile, Resolver, Target, join};
use crate::selection::elements;
use crate::types::describe;

pub(crate) enum Owner {
    Group(Arc<OpenFile>, Group),
    Dataset(Member, Box<AnyDataset>),
    Type(AnyNamedType),
}

impl Owner {
    pub(crate) fn open(target: Target) -> Result<Self> {
        Ok(match target {
            Target::Root(file) => {
                let root = file.root()?;
                Owner::Group(file, root)
            }
            Target::Member(member) => match member.open()? {
                AnyObject::Group(group) => Owner::Group(member.file, group),
                AnyObject::Dataset(dataset) => Owner::Dataset(member, dataset),
                AnyObject::Type(named) => Owner::Type(named),
            },
        })
    }

    /// Names in order of creation if the file keeps that, else sorted.
    fn attribute_names(&self) -> Result<Vec<String>> {
        match self {
            Owner::Group(_, group) => group.attributes(),
            Owner::Dataset(_, dataset) => Ok(dataset.attributes()),
            Owner::Type(named) => Ok(named.attributes()),
        }
    }

    fn attribute(&self, name: &str) -> Result<Option<AnyAttribute>> {
        match self {
            Owner::Group(_, group) => group.any_attribute(name),
            Owner::Dataset(_, dataset) => Ok(dataset.any_attribute(name)),
            Owner::Type(named) => Ok(named.any_attribute(name)),
        }
    }

    /// Names, shapes and types, sorted by name.
    fn described_attributes(&self) -> Result<Value> {
        let mut names = self.attribute_names()?;
        names.sort_unstable();
        let mut described = Vec::new();
        for name in names {
            if let Some(attribute) = self.attribute(&name)? {
                let (shape, of_type) = (attribute.extents(), describe(attribute.element()));
                described.push(json!({"name": name, "shape": shape, "type": of_type}));
            }
        }
        Ok(Value::Array(described))
    }

    /// Values of the attributes `keys`, or of all if it is empty, as a JSON object.
    pub(crate) fn attribute_values(&self, keys: &[String]) -> Result<Vec<u8>> {
        let names = if keys.is_empty() { self.attribute_names()? } else { keys.to_vec() };
        let mut out = vec![b'{'];
        for name in names {
            let Some(attribute) = self.attribute(&name)? else {
                if keys.is_empty() {
                    continue;
                }
                return Err(Error::not_found(format!("the object has no attribute {name}")));
            };
            if out.len() > 1 {
                out.push(b',');
            }
            crate::text::push_string(name.as_bytes(), &mut out);
            out.push(b':');
            push_value(&attribute, &mut out)?;
        }
        out.push(b'}');
        Ok(out)
    }
}

fn push_value(attribute: &AnyAttribute, out: &mut Vec<u8>) -> Result<()> {
    let Some(mut shape) = attribute.extents() else {
        out.extend_from_slice(b"null");
        return Ok(());
    };
    let (mut array_axes, mut element) = (0, attribute.element());
    while let Class::Array { extents, base } = &element.class {
        array_axes += extents.len();
        shape.extend(extents.iter().map(|&extent| u64::from(extent)));
        element = base;
    }
    if elements(&shape) == 0 {
        Nest::empty(&shape, out);
        return Ok(());
    }
    let (mut text, mut ends) = (Vec::new(), Vec::new());
    match attribute.visit(&mut JsonElements::new(&mut text, &mut ends, array_axes)) {
        Ok(()) => push_elements(&mut Nest::new(&shape), &text, &ends, out),
        // of a type that is not decoded
        Err(error) if error.kind() == ErrorKind::Unsupported => out.extend_from_slice(b"null"),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Members are listed without theirs, those whose names begin with `_` at the end; more than
/// `most_children` are an error.
pub(crate) fn describe_found(resolver: &Resolver<'_>, found: Found, path: &str, most_children: u64) -> Result<Value> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let target = match found {
        Found::Link(link, _) => return Ok(link_entity(&link, name)),
        Found::Target(target) => target,
    };
    let owner = Owner::open(target)?;
    let mut entity = owner_entity(&owner, name)?;
    if let (Owner::Group(file, group), Some(object)) = (&owner, entity.as_object_mut()) {
        let count = group.link_total()?;
        if count > most_children {
            return Err(Error::limit(format!(
                "{path} has {count} members, the limit is {most_children}: ask for a member by its path"
            )));
        }
        let mut names = group.link_names()?;
        names.sort_by_key(|name| name.starts_with('_'));
        let children = names.iter().map(|name| child_entity(resolver, file, group, name));
        object.insert("children".to_owned(), children.collect());
    }
    Ok(entity)
}

/// Leaves out the members of the member; has the error message if it cannot be opened.
fn child_entity(resolver: &Resolver<'_>, file: &Arc<OpenFile>, group: &Group, name: &str) -> Value {
    let describe = || -> Result<Value> {
        let path = join(group.path(), name);
        match resolver.member(file, group, name, LinkResolution::OnlyValid, &path)? {
            Found::Link(link, _) => Ok(link_entity(&link, name)),
            Found::Target(target) => owner_entity(&Owner::open(target)?, name),
        }
    };
    describe().unwrap_or_else(|error| json!({"kind": "other", "message": error.message(), "name": name}))
}

fn owner_entity(owner: &Owner, name: &str) -> Result<Value> {
    let mut entity = Map::new();
    let mut set = |name: &str, value: Value| {
        entity.insert(name.to_owned(), value);
    };
    set("attributes", owner.described_attributes()?);
    match owner {
        Owner::Group(..) => set("kind", json!("group")),
        Owner::Dataset(member, dataset) => {
            set("chunks", json!(dataset.chunk()?));
            let filters: Vec<_> =
                dataset.filters()?.into_iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
            set("filters", if filters.is_empty() { Value::Null } else { Value::Array(filters) });
            set("kind", json!("dataset"));
            set("shape", json!(read::extents(member, dataset)?));
            set("type", describe(dataset.element()));
        }
        Owner::Type(named) => {
            set("kind", json!("datatype"));
            set("type", describe(named.element()));
        }
    }
    set("name", json!(name));
    Ok(Value::Object(entity))
}

fn link_entity(link: &Link, name: &str) -> Value {
    match link {
        Link::Soft(target) => json!({"kind": "soft_link", "name": name, "target_path": target}),
        Link::External { file, path } => {
            json!({"kind": "external_link", "name": name, "target_file": file, "target_path": path})
        }
        Link::Hard | Link::UserDefined(_) => json!({"kind": "other", "name": name}),
    }
}
