//! Tests: links and attributes of small files that testdata/h5-read/make.py made, whole and with
//! each byte changed.

use std::collections::HashSet;

use crate::checksum::tests::IGNORED;
use crate::error::ErrorKind;
use crate::file::File;
use crate::link::Target;
use crate::object::{Object, ObjectKind};

const OLD: &[u8] = include_bytes!("../../../testdata/h5-read/old.h5");
const COMPACT: &[u8] = include_bytes!("../../../testdata/h5-read/compact.h5");
const DENSE: &[u8] = include_bytes!("../../../testdata/h5-read/dense.h5");
const SHARED: &[u8] = include_bytes!("../../../testdata/h5-read/shared.h5");
const FILTERED: &[u8] = include_bytes!("../../../testdata/h5-read/filtered.h5");

fn open(bytes: &[u8]) -> File {
    File::open(bytes.to_vec()).unwrap()
}

fn links(file: &File) -> Vec<String> {
    file.root().unwrap().links().whole().unwrap().into_iter().map(|link| text(&link.name)).collect()
}

fn attributes(object: &Object) -> Vec<String> {
    object.attributes().whole().unwrap().into_iter().map(|attribute| text(&attribute.name)).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Reads all links and attributes; returns their number, and that of damaged parts.
fn walk(file: &File) -> (usize, usize) {
    let Ok(root) = file.root() else { return (0, 1) };
    let (mut items, mut damage) = (0, 0);
    let mut todo = vec![root.object().clone()];
    let mut seen: HashSet<u64> = todo.iter().map(Object::address).collect();
    while let Some(object) = todo.pop() {
        let attributes = object.attributes();
        items += attributes.items.len();
        damage += attributes.damage.len() + object.damage().len();
        let Ok(group) = object.group() else { continue };
        let links = group.links();
        items += links.items.len();
        damage += links.damage.len();
        for link in links.items {
            let Target::Object(address) = link.target else { continue };
            if seen.insert(address) {
                file.object(address).map_or_else(|_| damage += 1, |object| todo.push(object));
            }
        }
    }
    (items, damage)
}

#[test]
fn links_of_a_symbol_table_are_in_the_order_of_their_names() {
    let file = open(OLD);
    let names = "child dangling loop name.0 name.1 name.10 name.11 name.2 name.3 name.4 name.5 name.6 name.7 name.8 name.9 \
                 relative type";
    assert_eq!(links(&file).join(" "), names.replace("name.", "name "));
    assert_eq!(file.root().unwrap().link("relative").unwrap().target, Target::Soft(b"child/soft".to_vec()));
}

#[test]
fn links_of_headers_and_heaps_are_in_the_order_of_their_creation() {
    let first = ["child", "relative", "dangling", "loop", "other", "name 0"];
    assert_eq!(links(&open(COMPACT)), [&first[..], &["type"]].concat());
    let file = open(DENSE);
    let links = links(&file);
    assert_eq!((&links[..6], links.len()), (&first.map(String::from)[..], 18));
    let group = file.root().unwrap();
    for name in &links {
        assert_eq!(&text(&group.link(name).unwrap().name), name);
    }
    let external = Target::External { file: b"other.h5".to_vec(), path: b"/x".to_vec() };
    assert_eq!(group.link("other").unwrap().target, external);
}

#[test]
fn paths_lead_through_soft_links() {
    for bytes in [OLD, COMPACT, DENSE] {
        let file = open(bytes);
        let root = file.root().unwrap();
        let child = root.find("child").unwrap();
        for path in ["/child", "child/", "./child", "relative", "child/soft/soft", "/relative/soft//."] {
            assert_eq!(root.find(path).unwrap().address(), child.address(), "{path}");
        }
        assert_eq!(child.group().unwrap().find("/").unwrap().address(), root.object().address());
        let kind = |path: &str| root.find(path).unwrap_err().kind();
        assert_eq!(
            (kind("dangling"), kind("none"), kind("type/x")),
            (ErrorKind::Missing, ErrorKind::Missing, ErrorKind::Missing)
        );
        assert_eq!((kind("loop"), kind("loop/x")), (ErrorKind::Limit, ErrorKind::Limit));
    }
    let error = open(DENSE).root().unwrap().find("other/y").unwrap_err();
    assert_eq!(error.to_string(), "path \"other/y\": the link leads to \"/x\" in the file \"other.h5\"");
}

#[test]
fn attributes_have_types_extents_and_elements() {
    for bytes in [OLD, COMPACT, DENSE] {
        let root = open(bytes).root().unwrap().object().clone();
        let array = root.attribute("array").unwrap();
        let values: Vec<_> =
            array.data.chunks_exact(8).map(|value| f64::from_be_bytes(value.try_into().unwrap())).collect();
        assert_eq!((array.space.extents, values), (vec![2, 3], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
        assert_eq!(root.attribute("scalar").unwrap().data, (-7i32).to_le_bytes());
        assert_eq!(root.attribute("text").unwrap().data, b"text");
        assert_eq!(root.attribute("null").unwrap().data, b"");
        let typed = root.attribute("typed").unwrap();
        assert_eq!((typed.datatype.size, typed.data), (8, 5i64.to_le_bytes().to_vec()));
        assert_eq!(root.attribute("none").unwrap_err().kind(), ErrorKind::Missing);
    }
    assert_eq!(attributes(open(COMPACT).root().unwrap().object()).join(" "), "scalar array text null typed");
    let huge = open(DENSE).root().unwrap().object().attribute("huge").unwrap().data;
    assert!(huge.chunks_exact(2).map(|value| u16::from_le_bytes([value[0], value[1]])).eq(0..2100));
}

#[test]
fn shared_attributes_and_types() {
    let file = open(SHARED);
    let root = file.root().unwrap();
    let [a, b] = ["a", "b"].map(|path| root.find(path).unwrap());
    assert_eq!(attributes(&a).join(" "), "scalar array text null");
    assert_eq!(attributes(&b).len(), 13);
    for name in attributes(&a) {
        assert_eq!(a.attribute(&name).unwrap().data, b.attribute(&name).unwrap().data);
    }
    assert_eq!(b.attribute("name 8").unwrap().data, [8, 0]);
}

#[test]
fn links_in_filtered_blocks() {
    let group = open(FILTERED).root().unwrap().find("group").unwrap().group().unwrap();
    assert_eq!(group.links().whole().unwrap().len(), 12);
    assert_eq!(group.link("name 11").unwrap().target, Target::Soft(b"/group".to_vec()));
}

#[test]
fn objects_have_kinds_and_counts_of_links() {
    let root = open(DENSE).root().unwrap();
    let (child, committed) = (root.find("child").unwrap(), root.find("type").unwrap());
    assert_eq!((child.kind(), child.link_count().unwrap()), (ObjectKind::Group, 13));
    assert_eq!(committed.kind(), ObjectKind::Type);
    let error = committed.group().unwrap_err().to_string();
    assert!(error.ends_with("the object is a committed type, not a group"), "{error}");
}

#[test]
fn lost_block_of_a_heap_is_named_beside_the_rest() {
    let mut bytes = DENSE.to_vec();
    let block = bytes.windows(4).position(|window| window == b"FHDB").unwrap();
    bytes[block + 100] ^= 1;
    let file = open(&bytes);
    let whole = walk(&open(DENSE));
    let damaged = walk(&file);
    assert!(whole.1 == 0 && damaged.1 == 1 && damaged.0 < whole.0 && damaged.0 > 10, "{whole:?} {damaged:?}");
    let root = file.root().unwrap();
    let errors = [root.links().damage, root.object().attributes().damage].concat_texts();
    assert!(errors.contains("objects in the fractal heap at") && errors.contains("the checksum is"), "{errors}");
}

#[test]
fn damaged_index_by_name_is_replaced_by_the_index_by_order() {
    let mut bytes = DENSE.to_vec();
    // an index of links by name, whose records are of kind 5
    let leaf = bytes.windows(6).position(|window| window == b"BTLF\0\x05").unwrap();
    bytes[leaf + 20] ^= 1;
    let root = open(&bytes).root().unwrap();
    let links = root.links();
    assert_eq!((links.items.len(), links.damage.len()), (18, 1));
    assert_eq!(root.link("name 3").unwrap().name, b"name 3");
}

/// Readers that list in order of creation use this index.
#[test]
fn damaged_index_by_order_is_named() {
    let mut bytes = DENSE.to_vec();
    let leaf = bytes.windows(6).position(|window| window == b"BTLF\0\x06").unwrap();
    bytes[leaf + 20] ^= 1;
    let links = open(&bytes).root().unwrap().links();
    assert_eq!((links.items.len(), links.damage.len()), (18, 1), "{:?}", links.damage);
}

trait Texts {
    fn concat_texts(self) -> String;
}

impl Texts for [Vec<crate::Error>; 2] {
    fn concat_texts(self) -> String {
        self.into_iter().flatten().map(|error| format!("{error}\n")).collect()
    }
}

#[test]
fn budget_bounds_the_bytes_of_all_structures() {
    for bytes in [OLD, COMPACT, DENSE, SHARED, FILTERED] {
        let whole = walk(&open(bytes));
        let file = open(bytes).with_budget(16 * bytes.len() as u64);
        assert_eq!(walk(&file), whole);
        // bytes of earlier walks are spent
        let walks = (0..50).map(|_| walk(&file)).filter(|found| *found == whole).count();
        assert!(walks < 50);
        assert_eq!(open(bytes).with_budget(10).root().unwrap_err().kind(), ErrorKind::Limit);
    }
}

/// Bytes among zeros, which nothing reads.
fn is_gap(bytes: &[u8], at: usize) -> bool {
    bytes[at.saturating_sub(12)..bytes.len().min(at + 12)].iter().all(|&byte| byte == 0)
}

#[test]
fn every_changed_byte_ends_in_items_or_errors() {
    IGNORED.set(true);
    for file in [OLD, COMPACT, DENSE, SHARED, FILTERED] {
        let most = walk(&open(file)).0;
        let mut bytes = file.to_vec();
        for at in (0..bytes.len()).filter(|&at| !is_gap(file, at)) {
            let before = bytes[at];
            for value in [0, before ^ 1, before ^ 0x80, 0xff] {
                bytes[at] = value;
                if let Ok(file) = File::open(bytes.clone()) {
                    // a name may change, but nothing is found twice
                    assert!(walk(&file).0 <= most + 64, "byte {at} is {value}");
                }
            }
            bytes[at] = before;
        }
    }
}

#[test]
fn addresses_of_other_structures_end_in_items_or_errors() {
    IGNORED.set(true);
    for file in [OLD, COMPACT, DENSE, SHARED, FILTERED] {
        let starts = |name: &'static [u8]| {
            let found = file.windows(4).enumerate().filter(move |(_, window)| *window == name);
            found.map(|(at, _)| at as u64)
        };
        let names: [&[u8]; 12] = [
            b"OHDR", b"OCHK", b"FRHP", b"FHIB", b"FHDB", b"BTHD", b"BTIN", b"BTLF", b"SMTB", b"TREE", b"SNOD", b"HEAP",
        ];
        let mut starts: Vec<u64> = names.into_iter().flat_map(starts).collect();
        starts.extend([0, 1, 0xffff, 1 << 32, u64::MAX - 1, u64::MAX]);
        let mut bytes = file.to_vec();
        for at in (0..bytes.len() - 8).filter(|&at| !is_gap(file, at)) {
            let before: [u8; 8] = bytes[at..at + 8].try_into().unwrap();
            // each place is tried with some of the addresses
            for turn in 0..2 {
                let start = starts[(at * 2 + turn) % starts.len()];
                bytes[at..at + 8].copy_from_slice(&start.to_le_bytes());
                if let Ok(file) = File::open(bytes.clone()) {
                    walk(&file);
                }
            }
            bytes[at..at + 8].copy_from_slice(&before);
        }
    }
}
