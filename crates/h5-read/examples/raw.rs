//! Reads all datasets: a line each with the path, the CRC-32 of the elements, the number of chunks
//! and the CRC-32 of their places. Lines with `!` are damage, or answers that contradict each
//! other: regions, single chunks, the whole.
//!
//!     cargo run -p h5-read --example raw FILE…

#[path = "support/inflate.rs"]
mod inflate;

use std::collections::HashSet;
use std::ops::Range;

use h5_read::{Chunk, Dataset, File, Group, Object, ObjectKind, Target};
use inflate::Inflate;

fn main() {
    for name in std::env::args().skip(1) {
        println!("# {name}");
        let opened = std::fs::File::open(&name).map_err(h5_read::Error::from).and_then(File::open);
        match opened.and_then(|file| Ok((file.root()?, file))) {
            Ok((root, file)) => group("", &file, &root, &mut HashSet::new()),
            Err(error) => println!("! {error}"),
        }
    }
}

fn group(path: &str, file: &File, group: &Group, seen: &mut HashSet<u64>) {
    if !seen.insert(group.object().address()) || seen.len() > 100_000 || path.len() > 500 {
        return;
    }
    let links = group.links();
    links.damage.iter().for_each(|error| println!("! {error}"));
    let mut links = links.items;
    links.sort_by(|a, b| a.name.cmp(&b.name));
    for link in links {
        let Target::Object(address) = link.target else { continue };
        let path = format!("{path}/{}", String::from_utf8_lossy(&link.name));
        match file.object(address) {
            Ok(object) => visit(&path, file, &object, seen),
            Err(error) => println!("! {path}: {error}"),
        }
    }
}

fn visit(path: &str, file: &File, object: &Object, seen: &mut HashSet<u64>) {
    match object.kind() {
        ObjectKind::Group => {
            if let Ok(child) = object.group() {
                group(path, file, &child, seen);
            }
        }
        ObjectKind::Dataset if seen.insert(object.address()) => match object.dataset() {
            Ok(dataset) => elements(path, &dataset),
            Err(error) => println!("! {path}: {error}"),
        },
        _ => {}
    }
}

fn elements(path: &str, dataset: &Dataset) {
    let chunks = dataset.chunks();
    chunks.damage.iter().for_each(|error| println!("! {path}: {error}"));
    let places: String = chunks.items.iter().map(place).collect();
    let whole: Vec<_> = dataset.space().extents.iter().map(|&extent| 0..extent).collect();
    match dataset.mappings() {
        Ok(mappings) => mappings.iter().for_each(|mapping| println!("= {path}: {mapping:?}")),
        Err(error) => println!("! {path}: {error}"),
    }
    let data = match dataset.read(&whole, &Inflate) {
        Ok(data) => data,
        Err(error) => return println!("! {path}: {error}"),
    };
    println!("{path}\t{:08x}\t{}\t{:08x}", crc(&data), chunks.items.len(), crc(places.as_bytes()));
    single_chunks(path, dataset, &chunks.items);
    regions(path, dataset, &data);
}

fn place(chunk: &Chunk) -> String {
    format!("{:?} {} {} {};", chunk.start, chunk.address, chunk.bytes, chunk.filter_mask)
}

/// Looks every chunk up alone, or 200 of them.
fn single_chunks(path: &str, dataset: &Dataset, chunks: &[Chunk]) {
    for chunk in chunks.iter().step_by(chunks.len().div_ceil(200).max(1)) {
        match dataset.chunk(&chunk.start) {
            Ok(Some(found)) if &found == chunk => {}
            found => println!("! {path}: {chunk:?} is found as {found:?}"),
        }
    }
}

fn regions(path: &str, dataset: &Dataset, data: &[u8]) {
    let extents = &dataset.space().extents;
    let size = dataset.datatype().size() as usize;
    let mut random = 1u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    if extents.contains(&0) {
        return;
    }
    for _ in 0..12 {
        let region: Vec<Range<u64>> = extents
            .iter()
            .map(|&extent| {
                let start = next(extent);
                start..start + next(extent - start + 1)
            })
            .collect();
        let mut expected = Vec::new();
        pick(data, size, extents, &region, 0, &mut expected);
        match dataset.read(&region, &Inflate) {
            Ok(found) if found == expected => {}
            Ok(_) => println!("! {path}: region {region:?} differs from the whole"),
            Err(error) => println!("! {path}: region {region:?}: {error}"),
        }
    }
}

fn pick(data: &[u8], size: usize, extents: &[u64], region: &[Range<u64>], at: usize, out: &mut Vec<u8>) {
    let (Some((extent, extents)), Some((range, region))) = (extents.split_first(), region.split_first()) else {
        out.extend(data.get(at * size..(at + 1) * size).unwrap_or_default());
        return;
    };
    for index in range.clone() {
        pick(data, size, extents, region, at * *extent as usize + index as usize, out);
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256u32)
        .map(|byte| (0..8).fold(byte, |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 }))
        .collect();
    !bytes.iter().fold(!0u32, |sum, &byte| sum >> 8 ^ table[usize::from(sum as u8 ^ byte)])
}
