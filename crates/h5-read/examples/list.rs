//! Lists the links and attributes of all objects, a line each, names and values as hexadecimal
//! digits.
//!
//!     cargo run -p h5-read --example list FILE…

use std::collections::HashSet;
use std::fmt::Write as _;

#[path = "support/inflate.rs"]
mod inflate;

use h5_read::{File, Object, ObjectKind, SpaceKind, Target};

fn main() {
    for name in std::env::args().skip(1) {
        let file = match std::fs::File::open(&name).map_err(h5_read::Error::from).and_then(File::open) {
            Ok(file) => file.with_filters(inflate::Inflate),
            Err(error) => {
                println!("! {error}");
                continue;
            }
        };
        list(&file);
    }
}

fn list(file: &File) {
    let mut todo = match file.root() {
        Ok(root) => vec![root.object().clone()],
        Err(error) => return println!("! {error}"),
    };
    let mut seen: HashSet<u64> = todo.iter().map(Object::address).collect();
    while let Some(object) = todo.pop() {
        let address = object.address();
        let kind = match object.kind() {
            ObjectKind::Group => "group",
            ObjectKind::Dataset => "dataset",
            ObjectKind::Type => "type",
        };
        println!("{address} {kind} {}", object.link_count().unwrap_or(0));
        for error in object.damage() {
            println!("! {error}");
        }
        attributes(&object);
        let Ok(group) = object.group() else { continue };
        let links = group.links();
        for error in &links.damage {
            println!("! {error}");
        }
        for link in &links.items {
            let order = link.order.map_or("-".to_string(), |order| order.to_string());
            println!("{address} link {} {order} {}", hex(&link.name), target(&link.target));
            match group.link(&link.name) {
                Ok(found) if &found == link => {}
                Ok(found) => println!("! {} is found as {found:?}", hex(&link.name)),
                Err(error) => println!("! {error}"),
            }
            if let Target::Object(address) = link.target
                && seen.insert(address)
            {
                match file.object(address) {
                    Ok(object) => todo.push(object),
                    Err(error) => println!("! {error}"),
                }
            }
        }
    }
}

fn attributes(object: &Object) {
    let attributes = object.attributes();
    for error in &attributes.damage {
        println!("! {error}");
    }
    for attribute in &attributes.items {
        let order = attribute.order.map_or("-".to_string(), |order| order.to_string());
        let extents: Vec<_> = attribute.space.extents.iter().map(u64::to_string).collect();
        let shape = match attribute.space.kind {
            SpaceKind::Null => "null".to_string(),
            SpaceKind::Scalar => "scalar".to_string(),
            SpaceKind::Simple => extents.join(","),
        };
        let (size, data) = (attribute.datatype.size, hex(&attribute.data));
        println!("{} attr {} {order} {shape} {size} {data}", object.address(), hex(&attribute.name));
        match object.attribute(&attribute.name) {
            Ok(found) if found.data == attribute.data => {}
            Ok(found) => println!("! {} is found as {found:?}", hex(&attribute.name)),
            Err(error) => println!("! {error}"),
        }
    }
}

fn target(target: &Target) -> String {
    match target {
        Target::Object(address) => format!("object {address}"),
        Target::Soft(path) => format!("soft {}", hex(path)),
        Target::External { file, path } => format!("external {} {}", hex(file), hex(path)),
        Target::User { kind, data } => format!("user {kind} {}", hex(data)),
        _ => "unknown".to_string(),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::from("x");
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
    out
}
