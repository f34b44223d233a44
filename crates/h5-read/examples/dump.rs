//! Prints each object of HDF5 files as a line of JSON: type, extents, layout, places of chunks,
//! filters, attributes, and checksums of elements. `tools/norm.py` of the tests prints the same by
//! h5py.
//!
//!     cargo run -p h5-read --example dump -- dump FILE…

#[path = "support/inflate.rs"]
mod inflate;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use h5_read::{
    Attribute, ByteOrder, Charset, Class, Dataset, Datatype, ErrorKind, File, FillValue, GlobalHeap, Group, Layout,
    Link, Listing, Object, ObjectKind, Padding, Reference, SpaceKind, Target,
};
use inflate::Inflate;

/// Most bytes of elements that are read of a dataset.
const MOST: u64 = 64 << 20;

fn main() {
    for name in std::env::args().skip(1).filter(|name| name != "dump") {
        if let Err(error) =
            std::fs::File::open(&name).map_err(Into::into).and_then(File::open).and_then(|file| dump(&file))
        {
            println!("{{\"path\":\"\",\"kind\":\"error\",\"error\":{},\"attrs\":{{}}}}", quoted(&error.to_string()));
        }
    }
}

struct Line {
    fields: String,
    attributes: BTreeMap<String, String>,
}

impl Line {
    fn new(path: &str, kind: &str) -> Self {
        let path = if path.is_empty() { "/" } else { path };
        Line { fields: format!("\"path\":{},\"kind\":\"{kind}\"", quoted(path)), attributes: BTreeMap::new() }
    }

    fn set(&mut self, name: &str, json: impl AsRef<str>) {
        let _ = write!(self.fields, ",\"{name}\":{}", json.as_ref());
    }

    fn print(self) {
        let attributes = self.attributes.iter().map(|(name, value)| format!("{}:{value}", quoted(name)));
        println!("{{{},\"attrs\":{{{}}}}}", self.fields, attributes.collect::<Vec<_>>().join(","));
    }

    /// Notes the first of the errors.
    fn damaged(&mut self, name: &str, damage: &[h5_read::Error]) {
        if let Some(error) = damage.first() {
            self.set(name, quoted(&format!("{error} ({} in all)", damage.len())));
        }
    }
}

fn dump(file: &File) -> h5_read::Result<()> {
    let root = file.root()?;
    let mut heap = GlobalHeap::new(file);
    let mut seen = HashSet::from([root.object().address()]);
    let mut groups = vec![(String::new(), open_group("", &root, &mut heap))];
    while let Some((path, (group, links))) = groups.last_mut() {
        let Some(link) = links.next() else {
            groups.pop();
            continue;
        };
        let name = String::from_utf8(link.name.clone())
            .unwrap_or_else(|_| link.name.iter().copied().map(char::from).collect());
        let path = format!("{path}/{name}");
        let object = match &link.target {
            Target::Object(address) => file.object(*address),
            Target::Soft(target) => group.find(target),
            _ => continue,
        };
        let object = match object {
            Ok(object) => object,
            // a link that leads nowhere, or round and round
            Err(_) if matches!(link.target, Target::Soft(_)) => continue,
            Err(error) => {
                let mut line = Line::new(&path, "error");
                line.set("error", quoted(&error.to_string()));
                line.print();
                continue;
            }
        };
        if !seen.insert(object.address()) {
            continue;
        }
        match object.kind() {
            ObjectKind::Group => {
                let opened = open_group(&path, &object.group()?, &mut heap);
                groups.push((path, opened));
            }
            ObjectKind::Dataset => dataset(&path, file, &object, &mut heap),
            ObjectKind::Type => {}
        }
    }
    Ok(())
}

/// Prints a group; returns it with its links by name.
fn open_group(path: &str, group: &Group, heap: &mut GlobalHeap) -> (Group, std::vec::IntoIter<Link>) {
    let mut line = Line::new(path, "group");
    attributes(&mut line, group.object(), heap);
    let Listing { mut items, damage } = group.links();
    line.damaged("error", &damage);
    line.print();
    items.sort_by(|a, b| a.name.cmp(&b.name));
    (group.clone(), items.into_iter())
}

fn dataset(path: &str, file: &File, object: &Object, heap: &mut GlobalHeap) {
    let mut line = Line::new(path, "dataset");
    match object.dataset() {
        Ok(dataset) => describe(&mut line, file, &dataset, heap),
        Err(error) => line.set("error", quoted(&error.to_string())),
    }
    attributes(&mut line, object, heap);
    line.print();
}

fn attributes(line: &mut Line, object: &Object, heap: &mut GlobalHeap) {
    let listing = object.attributes();
    line.damaged("attr_error", &listing.damage);
    line.damaged("header_error", object.damage());
    for attribute in listing.items {
        let Attribute { name, datatype, space, data, .. } = attribute;
        let rest = if space.kind == SpaceKind::Null {
            "null,null".to_owned()
        } else {
            let value = value(&datatype, &data, heap).unwrap_or_else(|error| quoted(&error.to_string()));
            format!("{},{value}", list(&space.extents))
        };
        let json = format!("[{},{rest}]", quoted(&type_name(&datatype)));
        line.attributes.insert(String::from_utf8_lossy(&name).into_owned(), json);
    }
}

fn describe(line: &mut Line, file: &File, dataset: &Dataset, heap: &mut GlobalHeap) {
    let (space, datatype) = (dataset.space(), dataset.datatype());
    line.set("dtype", quoted(&type_name(datatype)));
    line.set("shape", list(&space.extents));
    let max = space.max.iter().map(|max| max.map_or("-1".to_owned(), |max| max.to_string()));
    line.set("max", format!("[{}]", max.collect::<Vec<_>>().join(",")));
    if space.kind == SpaceKind::Null {
        line.set("null", "true");
    }
    let layout = match dataset.layout() {
        Layout::Compact { .. } => "compact",
        Layout::Contiguous { .. } => "contiguous",
        Layout::Chunked(layout) => {
            line.set("chunk", list(&layout.shape));
            chunks(line, file, dataset);
            "chunked"
        }
        _ => "virtual",
    };
    line.set("layout", quoted(layout));
    let filters =
        dataset.pipeline().filters.iter().map(|filter| format!("[{},{}]", filter.id, list(&filter.parameters)));
    let filters: Vec<_> = filters.collect();
    if !filters.is_empty() {
        line.set("filters", format!("[{}]", filters.join(",")));
    }
    if let Some(FillValue::Bytes(value)) = dataset.fill().map(|fill| &fill.value)
        && matches!(datatype.class, Class::Integer { .. } | Class::Float(_))
    {
        line.set("fill", crc(value));
    }
    elements(line, dataset, heap);
}

fn chunks(line: &mut Line, file: &File, dataset: &Dataset) {
    let Listing { items, damage } = dataset.chunks();
    line.damaged("index_error", &damage);
    let mut text = String::new();
    for chunk in &items {
        let offset = file.offset(chunk.address).unwrap_or(u64::MAX);
        let _ = write!(text, "{:?} {offset} {} {};", chunk.start, chunk.bytes, chunk.filter_mask);
    }
    line.set("nchunks", items.len().to_string());
    line.set("chunks", crc(text.as_bytes()));
}

fn elements(line: &mut Line, dataset: &Dataset, heap: &mut GlobalHeap) {
    match dataset.bytes() {
        Ok(bytes) if bytes > MOST => return line.set("data", "\"big\""),
        Ok(_) => {}
        Err(error) => return line.set("data_error", quoted(&error.to_string())),
    }
    let region: Vec<_> = dataset.space().extents.iter().map(|&extent| 0..extent).collect();
    match dataset.read(&region, &Inflate).and_then(|data| value(dataset.datatype(), &data, heap)) {
        Ok(json) => line.set("data", json),
        Err(error) if error.kind() == ErrorKind::Unsupported => line.set("unread", quoted(&error.to_string())),
        Err(error) => line.set("data_error", quoted(&error.to_string())),
    }
}

/// The checksum of elements; of those of variable length, with their lengths.
fn value(datatype: &Datatype, data: &[u8], heap: &mut GlobalHeap) -> h5_read::Result<String> {
    let size = match &datatype.class {
        Class::VariableString(_) => 1,
        Class::Sequence(base) if !has_heap(base) && !matches!(base.class, Class::Reference(_)) => base.size,
        _ if has_heap(datatype) => return Ok("\"nested\"".to_owned()),
        _ => return Ok(crc(data)),
    };
    let mut out = Vec::new();
    for element in data.chunks_exact(datatype.size as usize) {
        let mut bytes = heap.sequence(element, size)?;
        if let Class::VariableString(_) = datatype.class {
            bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        }
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
        if out.len() as u64 > 4 * MOST {
            return Ok("\"big\"".to_owned());
        }
    }
    Ok(crc(&out))
}

/// Whether h5py gives the elements in another form than the file.
fn has_heap(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::Reference(_) => reference_bytes(datatype) != Some(datatype.size),
        Class::Compound(members) => members.iter().any(|member| has_heap(&member.datatype)),
        Class::Array { base, .. } => has_heap(base),
        _ => datatype.is_variable(),
    }
}

fn reference_bytes(datatype: &Datatype) -> Option<u32> {
    match datatype.class {
        Class::Reference(Reference::Object) => Some(8),
        Class::Reference(Reference::Region) => Some(12),
        Class::Reference(_) => Some(64),
        _ => None,
    }
}

fn type_name(datatype: &Datatype) -> String {
    let size = datatype.size;
    let sign = |order: ByteOrder| match order {
        ByteOrder::Little => "<",
        ByteOrder::Big => ">",
        ByteOrder::Vax => "vax",
    };
    let charset = |charset: Charset| match charset {
        Charset::Ascii => "Ascii",
        Charset::Utf8 => "Utf8",
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match &datatype.class {
        Class::Integer { order, is_signed, .. } => {
            format!("{}{}{size}", sign(*order), if *is_signed { 'i' } else { 'u' })
        }
        Class::Float(float) => format!("{}f{size}", sign(float.order)),
        Class::Time { .. } => format!("o{size}"),
        Class::String(text) => {
            let padding = match text.padding {
                Padding::NulTerminated => "NullTerminate",
                Padding::Nul => "NullPad",
                Padding::Space => "SpacePad",
            };
            format!("s{size}{}{padding}", charset(text.charset))
        }
        Class::Bitfield { order, .. } => format!("{}b{size}", sign(*order)),
        Class::Opaque { tag } => format!("o{size}{}", text(tag)),
        Class::Compound(members) => {
            let members = members
                .iter()
                .map(|member| format!("{}@{}:{}", text(&member.name), member.offset, type_name(&member.datatype)));
            format!("c{size}{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Class::Reference(reference) => {
            let kind = if *reference == Reference::Object { 'o' } else { 'r' };
            format!("r{}{kind}", reference_bytes(datatype).unwrap_or_default())
        }
        Class::Enum { base, values } => {
            let values = values.iter().map(|(name, value)| format!("{}={}", text(name), hex(value)));
            format!("e({}){{{}}}", type_name(base), values.collect::<Vec<_>>().join(","))
        }
        Class::Sequence(base) => format!("v({})", type_name(base)),
        Class::VariableString(text) => format!("vs{}", charset(text.charset)),
        Class::Array { base, extents } => format!("a{extents:?}({})", type_name(base)),
        Class::Complex(_) => "class11".to_owned(),
        _ => "unknown".to_owned(),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => drop(write!(out, "\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out + "\""
}

fn list<T: ToString>(items: &[T]) -> String {
    format!("[{}]", items.iter().map(T::to_string).collect::<Vec<_>>().join(","))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// CRC-32 of zlib, quoted.
fn crc(bytes: &[u8]) -> String {
    let table: [u32; 256] = std::array::from_fn(|byte| {
        (0..8).fold(byte as u32, |crc, _| crc >> 1 ^ if crc & 1 != 0 { 0xedb8_8320 } else { 0 })
    });
    let crc = bytes.iter().fold(!0u32, |crc, &byte| crc >> 8 ^ table[usize::from(crc as u8 ^ byte)]);
    format!("\"{:08x}\"", !crc)
}
