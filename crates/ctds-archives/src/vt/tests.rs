//! Tests with archives that the original program wrote, if they lie beside the project, and with
//! hostile ones made here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctds::container::{Container, ContainerMut, Directory, Memory, WriteOptions, Written};
use ctds::error::{Error, ErrorKind, Result};
use ctds::io::{ReadAt, read_all};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::dirent::{Dirent, EntryKind};
use super::hash::HashKind;
use super::reference::BlockRef;
use super::tree::Archive;
use super::wire::{put_data, put_uint};
use crate::open;

fn fixtures() -> Option<(PathBuf, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/vt");
    let Ok(manifest) = std::fs::read(folder.join("manifest.json")) else {
        eprintln!("{} is missing: archives that the original wrote are not read", folder.display());
        return None;
    };
    let mut manifest: Value = serde_json::from_slice(&manifest).unwrap();
    if cfg!(not(feature = "blake3")) {
        manifest["fixtures"].as_array_mut().unwrap().retain(|fixture| fixture["name"] != "vt_head_blake3");
    }
    Some((folder, manifest))
}

fn sha256(file: &dyn ReadAt) -> Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let (len, mut at) = (file.len()?, 0);
    let mut piece = vec![0; 100_000];
    while at < len {
        piece.truncate((len - at).min(100_000) as usize);
        file.read_at(at, &mut piece)?;
        hasher.update(&piece);
        at += piece.len() as u64;
    }
    let digits = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((len, digits))
}

/// Length and SHA-256 of each file; names of directories end in a slash.
fn tree(container: &dyn Container, prefix: &str, found: &mut BTreeMap<String, (u64, String)>) -> Result<()> {
    for name in container.names()? {
        found.insert(format!("{prefix}{name}"), sha256(&*container.open(&name)?)?);
    }
    for name in container.nested()? {
        found.insert(format!("{prefix}{name}/"), (0, String::new()));
        tree(&*container.enter(&name)?, &format!("{prefix}{name}/"), found)?;
    }
    Ok(())
}

/// The `tree` of a manifest; hard links are followed, symbolic ones left out.
fn expected_tree(entries: &serde_json::Map<String, Value>) -> BTreeMap<String, (u64, String)> {
    let mut found = BTreeMap::new();
    let file = |entry: &Value| (entry["size"].as_u64().unwrap(), entry["sha256"].as_str().unwrap().to_owned());
    for (name, entry) in entries {
        match entry["type"].as_str().unwrap() {
            "file" => drop(found.insert(name.clone(), file(entry))),
            "dir" => drop(found.insert(format!("{name}/"), (0, String::new()))),
            "indirect" => {
                let linked = entries.values().find(|other| other["type"] == "file" && other["uuid"] == entry["uuid"]);
                found.insert(name.clone(), file(linked.unwrap()));
            }
            other => assert_eq!(other, "symlink"),
        }
    }
    found
}

fn check_entries(archive: &dyn Container, expected: &Value) {
    for entry in expected["entries"].as_array().into_iter().flatten() {
        // seconds in the manifest, a date in the archive
        let when = entry["when"].as_f64().unwrap();
        let dates = archive.history().unwrap();
        let position = expected["entries"].as_array().unwrap().iter().position(|other| other["when"] == when).unwrap();
        let state = archive.enter(&dates[position]).unwrap();
        let mut found = BTreeMap::new();
        tree(&*state, "", &mut found).unwrap();
        assert_eq!(found, expected_tree(entry["tree"].as_object().unwrap()), "{}", entry["name"]);
    }
}

#[test]
fn archives_of_the_original_have_the_content_of_their_manifests() {
    let Some((folder, manifest)) = fixtures() else { return };
    let mut read = 0;
    for fixture in manifest["fixtures"].as_array().unwrap() {
        let (name, expected) = (fixture["name"].as_str().unwrap(), &fixture["expect"]);
        let Some(last) = expected["last"].as_object() else { continue };
        let path = folder.join(fixture["path"].as_str().unwrap()).join(fixture["archive"].as_str().unwrap());
        let archive = open(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut found = BTreeMap::new();
        tree(&*archive, "", &mut found).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found, expected_tree(last), "{name}");
        check_entries(&*archive, expected);
        read += 1;
    }
    assert!(read >= 11 + usize::from(cfg!(feature = "blake3")), "{read} archives");
}

#[test]
fn metadata_are_those_of_the_manifests() {
    let Some((folder, manifest)) = fixtures() else { return };
    let mut seen = 0;
    for fixture in manifest["fixtures"].as_array().unwrap() {
        let Some(last) = fixture["expect"]["last"].as_object() else { continue };
        let directory = Directory::new(folder.join(fixture["path"].as_str().unwrap()));
        let archive = Archive::open(&directory, fixture["archive"].as_str().unwrap()).unwrap();
        let entries = archive.all_entries().unwrap();
        assert_eq!(entries.len(), last.len(), "{}", fixture["name"]);
        for (path, expected) in last {
            let entry: &Dirent = &entries[path];
            let kind = match entry.kind {
                EntryKind::File => "file",
                EntryKind::Directory => "dir",
                EntryKind::Symlink => "symlink",
                EntryKind::HardLink => "indirect",
            };
            assert_eq!(expected["type"], kind, "{path}");
            if let Some(mode) = expected["mode"].as_str() {
                assert_eq!(format!("{:04o}", entry.meta.mode()), mode, "{path}");
            }
            if let Some(time) = expected["mtime"].as_f64() {
                assert!((entry.meta.modified().unwrap() - time).abs() < 1e-6, "{path}");
            }
            for (key, stored) in [("acl", "a"), ("u", "u"), ("g", "g"), ("target", "pathref")] {
                if let Some(text) = expected[key].as_str() {
                    assert_eq!(entry.meta.text(stored), Some(text), "{path}");
                    seen += 1;
                }
            }
            if expected["xattrs"].is_object() {
                assert_eq!(entry.meta.fields["x"], expected["xattrs"], "{path}");
            }
            if let Some(uuid) = expected["uuid"].as_str() {
                let digits: String = entry.uuid.unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(digits, uuid.replace('-', ""), "{path}");
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn archive_of_a_single_file_has_one_entry() {
    let Some((folder, manifest)) = fixtures() else { return };
    let fixture = manifest["fixtures"].as_array().unwrap().iter().find(|fixture| fixture["name"] == "doc_vt_text");
    let expected = &fixture.unwrap()["expect"];
    let archive = open(folder.join("doc_vt_text/archive.vt")).unwrap();
    let (names, files) = (expected["names"].as_array().unwrap(), expected["files"].as_array().unwrap());
    assert_eq!(names.len(), 9);
    for (name, file) in names.iter().zip(files) {
        let name = name.as_str().unwrap();
        let entry = archive.enter(name).unwrap();
        let found = sha256(&*entry.open(name).unwrap()).unwrap();
        assert_eq!(found, (file["size"].as_u64().unwrap(), file["sha256"].as_str().unwrap().to_owned()), "{name}");
    }
}

#[test]
fn bad_archives_are_refused_with_one_error() {
    let Some((folder, manifest)) = fixtures() else { return };
    let mut refused = 0;
    for fixture in manifest["fixtures"].as_array().unwrap() {
        let is_negative = fixture["negative"] == true;
        if !is_negative && fixture["name"] != "negative/truncated_vtd" {
            continue;
        }
        let path = folder.join(fixture["path"].as_str().unwrap()).join(fixture["archive"].as_str().unwrap());
        let read = open(&path).and_then(|archive| {
            let mut found = BTreeMap::new();
            tree(&*archive, "", &mut found).map(|()| found)
        });
        match read {
            Err(error) => {
                assert!(is_negative, "{}: {error}", fixture["name"]);
                assert_eq!(error.kind(), ErrorKind::Format, "{error}");
                refused += 1;
            }
            Ok(found) => {
                assert!(!is_negative, "{}", fixture["name"]);
                let (len, digits) = found.values().next().unwrap();
                let readable = &fixture["expect"]["readable"];
                assert_eq!(
                    (Some(*len), Some(digits.as_str())),
                    (readable["size"].as_u64(), readable["sha256"].as_str())
                );
                // the incomplete record is named where the store is checked
                let store = open(path.with_file_name("store")).unwrap();
                assert_eq!(store.describe().format, "vt-store");
                let error = store.check().unwrap_err().to_string();
                assert!(error.contains("data/a.vtd: block at byte 1503: the file ends in a record"), "{error}");
            }
        }
    }
    assert_eq!(refused, 6);
}

#[derive(Default)]
struct Made {
    vtd: Vec<u8>,
}

impl Made {
    fn put(&mut self, block: &[u8]) -> BlockRef {
        self.vtd.push(0);
        put_data(&mut self.vtd, block);
        BlockRef::Hash { hash: HashKind::Sha1.hash(block), span: Some(block.len() as u64) }
    }

    fn open(self, entry: &str) -> Result<Archive> {
        let memory = Memory::new([("a.vt", format!("2020-01-01T00:00:00 1.5 {entry}\n").into_bytes())]);
        let nested = memory.create_nested("store").unwrap();
        let data = nested.create_nested("data").unwrap();
        data.create("x.vtd").unwrap().write_at(0, &self.vtd).unwrap();
        Archive::open(&memory, "a.vt")
    }
}

fn encoded(flags: u64, span: u64, rest: &[u8]) -> Vec<u8> {
    let mut inner = Vec::new();
    put_uint(&mut inner, flags);
    put_uint(&mut inner, span);
    inner.extend(rest);
    let mut out = Vec::new();
    put_data(&mut out, &inner);
    out
}

fn error_of(result: Result<impl Sized>) -> Error {
    result.map(drop).unwrap_err()
}

#[test]
fn inconsistent_references_are_refused() {
    let mut made = Made::default();
    let block = made.put(&[7; 100]);
    let repeated = made.put(&encoded(2, 40, &[1, 65]));
    let cases = [
        // a part beyond the end of its block
        (format!("SubB{{block:{block},offset:90,span:11}}"), "11 bytes from byte 90 on of a block of 100 bytes"),
        (format!("SubB{{block:{block},offset:18446744073709551615,span:2}}"), "on of a block of 100 bytes"),
        // a list that is longer or shorter than its blocks
        (format!("I{{41:{repeated}}}"), "a reference of 41 bytes to blocks of 40 bytes"),
        (format!("I{{39:{repeated}}}"), "a reference of 39 bytes to blocks of 40 bytes"),
        // a list that is none
        (format!("I{{5:{block}}}"), "block of references at byte 0"),
    ];
    let vtd = made.vtd;
    for (reference, message) in cases {
        let archive = Made { vtd: vtd.clone() }.open(&format!("F{{\"f\":block:{reference}}}"));
        let error = error_of(archive.and_then(|archive| read_all(&archive.open("f")?)));
        assert!(error.to_string().contains(message), "{error}");
        assert_eq!(error.kind(), ErrorKind::Format);
    }
    let archive = Made { vtd }.open(&format!("F{{\"f\":block:I{{40:{repeated}}}}}")).unwrap();
    assert_eq!(read_all(&archive.open("f").unwrap()).unwrap(), [65; 40]);
}

/// Repeated bytes do not fill memory.
#[test]
fn repetitions_take_no_memory() {
    let mut made = Made::default();
    // each list has the one before it 100 times
    let mut list = encoded(2, 1 << 20, &[1, 0]);
    for level in 0..6 {
        let block = made.put(&list.repeat(100));
        let BlockRef::Hash { hash, .. } = block else { unreachable!() };
        list = encoded(1, (1 << 20) * 100u64.pow(level + 1), &[&[0][..], hash.as_bytes()].concat());
    }
    let end = (1u64 << 20) * 100u64.pow(6);
    let top = made.put(&list.repeat(20));
    let error = error_of(
        Made { vtd: made.vtd.clone() }
            .open(&format!("F{{\"f\":block:I{{{top}}}}}"))
            .and_then(|archive| archive.open("f")),
    );
    // 20 * 2^20 * 100^6 is more than 64 bits
    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
    let archive = Made::default().open(&format!("F{{\"f\":block:RLE{{span:{end},octet:41}}}}")).unwrap();
    let file = archive.open("f").unwrap();
    let mut piece = [0; 10];
    file.read_at(end - 10, &mut piece).unwrap();
    assert_eq!((file.len().unwrap(), piece), (end, [0x41; 10]));
    assert_eq!(error_of(file.read_at(end - 9, &mut piece)).kind(), ErrorKind::Format);
    // as a directory it is refused
    let error = error_of(Made::default().open(&format!("D{{\"d\":block:RLE{{span:{end},octet:00}}}}")));
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn depth_of_nested_lists_is_limited() {
    let mut made = Made::default();
    let mut reference = encoded(2, 3, &[2, b'a', b'b', b'c']);
    for level in 0..60 {
        let BlockRef::Hash { hash, .. } = made.put(&reference) else { unreachable!() };
        reference = encoded(1, 3, &[&[0][..], hash.as_bytes()].concat());
        let archive =
            Made { vtd: made.vtd.clone() }.open(&format!("F{{\"f\":block:I{{3:B{{hash:H{{{hash}}}}}}}}}")).unwrap();
        match read_all(&archive.open("f").unwrap()) {
            Ok(bytes) => assert!(bytes == b"abc" && level < 40, "{level}"),
            Err(error) => assert!(error.kind() == ErrorKind::Limit && level > 15, "{level}: {error}"),
        }
    }
}

/// A hard link to itself, a link to a link, and a link to a missing file.
#[test]
fn links_in_circles_are_refused() {
    let link = |name: &str, uuid: u8| [&[3, 2 | 4 | 8, name.len() as u8][..], name.as_bytes(), &[uuid; 16]].concat();
    let directory = [link("self", 1), link("other", 2), link("self2", 3)].concat();
    let mut made = Made::default();
    let block = made.put(&directory);
    let entry = format!("D{{\"d\":uuid:U{{{}}},block:{block}}}", "01".repeat(16));
    let archive = made.open(&entry).unwrap();
    assert_eq!(archive.names().unwrap(), ["other", "self", "self2"]);
    for name in ["self", "other", "self2"] {
        let error = error_of(archive.open(name));
        assert!(error.kind() == ErrorKind::Format && error.to_string().contains("hard link"), "{error}");
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let mut made = Made::default();
    let block = made.put(&(0..200).collect::<Vec<u8>>());
    let entry = format!("F{{\"f\":block:{block}}}");
    for at in 0..made.vtd.len() {
        for bit in [1, 0x80] {
            let mut vtd = made.vtd.clone();
            vtd[at] ^= bit;
            let error = error_of(Made { vtd }.open(&entry).and_then(|archive| read_all(&archive.open("f")?)));
            assert_eq!(error.kind(), ErrorKind::Format, "{at}: {error}");
            assert!(error.to_string().contains("block"), "{error}");
        }
    }
}

#[test]
fn two_entries_of_one_name_are_refused() {
    let mut directory = Vec::new();
    for _ in 0..2 {
        Dirent::encode(&mut directory, EntryKind::File, "x", "", &encoded(2, 1, &[2, b'x']));
    }
    let mut made = Made::default();
    let block = made.put(&directory);
    let error = error_of(made.open(&format!("D{{\"d\":block:{block}}}")));
    assert!(error.to_string().contains("two entries named \"x\""), "{error}");
}

/// A container in memory has no path, so that stores in it are opened each time.
#[test]
fn stores_with_a_path_are_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = Made::default();
    made.put(b"block");
    std::fs::create_dir_all(folder.path().join("store/data")).unwrap();
    std::fs::write(folder.path().join("store/data/x.vtd"), &made.vtd).unwrap();
    let directory = Directory::new(folder.path());
    let first = super::store::Store::open(&directory).unwrap();
    assert!(Arc::ptr_eq(&first, &super::store::Store::open(&directory).unwrap()));
    made.put(b"another");
    std::fs::write(folder.path().join("store/data/x.vtd"), &made.vtd).unwrap();
    assert!(!Arc::ptr_eq(&first, &super::store::Store::open(&directory).unwrap()));
}

/// Files of all sizes at which something changes.
fn sample() -> Memory {
    let mut state: u64 = 7;
    let mut noise = |len: usize| -> Vec<u8> {
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        std::iter::repeat_with(next).take(len).collect()
    };
    let memory = Memory::new([]);
    for len in [0, 1, 31, 32, 33, 2047, 16_383, 16_384, 50_000, (4 << 20) + 5] {
        memory.create(&format!("f{len}")).unwrap().write_at(0, &noise(len)).unwrap();
    }
    memory.create("zeros").unwrap().write_at(0, &vec![0; 9 << 20]).unwrap();
    let nested = memory.create_nested("ä nested").unwrap();
    nested.create("x").unwrap().write_at(0, &noise(70_000)).unwrap();
    nested.create_nested("empty").unwrap();
    memory
}

fn pack(source: &dyn Container, target: &Path, block_bytes: Option<u64>) -> Result<Written> {
    let options = WriteOptions { block_bytes };
    super::write::write_tree(source, target, &options, &())
}

fn tree_of(container: &dyn Container) -> BTreeMap<String, (u64, String)> {
    let mut found = BTreeMap::new();
    tree(container, "", &mut found).unwrap();
    found
}

#[test]
fn trees_round_trip_and_blocks_are_stored_once() {
    for block_bytes in [None, Some(128), Some(4096), Some(1 << 20)] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.vt");
        let source = sample();
        let first = pack(&source, &target, block_bytes).unwrap();
        assert!(first.warnings.is_empty() && first.stored_bytes > 4 << 20);
        assert_eq!(tree_of(&*open(&target).unwrap()), tree_of(&source), "{block_bytes:?}");
        // again: nothing but a line
        let second = pack(&source, &target, block_bytes).unwrap();
        assert!(second.stored_bytes < 300, "{second:?}");
        // a little more
        source.create("new").unwrap().write_at(0, &[9; 1000]).unwrap();
        let third = pack(&source, &target, block_bytes).unwrap();
        assert!(third.stored_bytes < 4000, "{third:?}");
        let archive = open(&target).unwrap();
        assert_eq!(tree_of(&*archive), tree_of(&source));
        let history = archive.history().unwrap();
        assert_eq!((history.len(), archive.describe().changes), (3, Some(3)));
        let before = tree_of(&*archive.enter(&history[0]).unwrap());
        assert!(before.len() + 1 == tree_of(&source).len() && !before.contains_key("new"));
        // without the index the same
        std::fs::remove_file(folder.path().join("store/index-sha1.h5bridge")).unwrap();
        assert_eq!(tree_of(&*open(&target).unwrap()), tree_of(&source));
        assert!(open(folder.path().join("store")).unwrap().check().unwrap());
    }
}

#[test]
fn check_names_the_file_of_a_changed_byte() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.vt");
    let source = Memory::new([("small", (0..250u8).cycle().take(3000).collect::<Vec<u8>>())]);
    pack(&source, &target, Some(128)).unwrap();
    let data = folder.path().join("store/data");
    let vtd = std::fs::read_dir(&data).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&vtd).unwrap();
    let expected = tree_of(&source);
    let mut named = 0;
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        std::fs::write(&vtd, changed).unwrap();
        let read = open(&target).and_then(|archive| {
            let mut found = BTreeMap::new();
            tree(&*archive, "", &mut found).map(|()| found)
        });
        match read {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Format, "{error}");
                let text = error.to_string();
                // a record whose first bytes are damaged is found before it is known which block
                // was wanted
                let of_record = ["the flags of a block are 0x", "an integer exceeds 64 bits"];
                let is_named = text.contains("block sha1:") || of_record.iter().any(|words| text.contains(words));
                assert!(is_named && text.contains("block at byte"), "{text}");
                named += 1;
            }
            // bits of a zlib stream that no reader looks at
            Ok(found) => assert!(found == expected, "byte {at}"),
        }
    }
    assert!(named + 64 > bytes.len(), "{named} of {}", bytes.len());
}

/// Blocks and lines of a killed process stay; the next one adds those that are missing.
#[test]
fn pack_continues_after_a_killed_one() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.vt");
    let source = sample();
    let whole = pack(&source, &target, None).unwrap().stored_bytes;
    let data = folder.path().join("store/data");
    let vtd = std::fs::read_dir(&data).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&vtd).unwrap();
    for share in [0, 1, 4, 9, 10] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("store/data");
        std::fs::create_dir_all(&data).unwrap();
        // killed before the index and the archive were written
        std::fs::write(data.join("left.vtd"), &bytes[..bytes.len() * share / 10]).unwrap();
        std::fs::write(folder.path().join("store/index-sha1.h5bridge.partial"), b"half of it").unwrap();
        let target = folder.path().join("a.vt");
        let added = pack(&source, &target, None).unwrap().stored_bytes;
        let missing = whole - whole * share as u64 / 10;
        assert!(added < missing + 40_000, "{share}: {added} of {whole}");
        assert_eq!(tree_of(&*open(&target).unwrap()), tree_of(&source));
        let added = pack(&source, &target, None).unwrap().stored_bytes;
        assert!(added < 300, "{added}");
    }
}

#[test]
fn processes_pack_into_one_store_concurrently() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.vt");
    std::fs::create_dir_all(folder.path().join("store/data")).unwrap();
    std::fs::write(folder.path().join("store/data/first.vtd"), b"").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| pack(&sample(), &target, None).unwrap());
        }
    });
    let archive = open(&target).unwrap();
    assert_eq!(archive.history().unwrap().len(), 4);
    for date in archive.history().unwrap() {
        assert_eq!(tree_of(&*archive.enter(&date).unwrap()), tree_of(&sample()));
    }
    assert!(pack(&sample(), &target, None).unwrap().stored_bytes < 300);
}

#[test]
fn other_files_are_not_overwritten_by_pack() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("notes.txt");
    std::fs::write(&target, "precious").unwrap();
    assert_eq!(pack(&sample(), &target, None).unwrap_err().kind(), ErrorKind::Exists);
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    assert_eq!(pack(&sample(), folder.path(), None).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(pack(&sample(), &folder.path().join("a.vt"), Some(5)).unwrap_err().kind(), ErrorKind::Usage);
    let odd = Memory::new([("..", vec![1])]);
    assert_eq!(pack(&odd, &folder.path().join("a.vt"), None).unwrap_err().kind(), ErrorKind::Format);
    for store in ["one", "two"] {
        std::fs::create_dir_all(folder.path().join(store).join("data")).unwrap();
        std::fs::write(folder.path().join(store).join("data/x.vtd"), b"").unwrap();
    }
    assert_eq!(pack(&sample(), &folder.path().join("a.vt"), None).unwrap_err().kind(), ErrorKind::Usage);
    pack(&sample(), &folder.path().join("one/a.vt"), None).unwrap();
    assert_eq!(tree_of(&*open(folder.path().join("one/a.vt")).unwrap()), tree_of(&sample()));
}

#[test]
fn limits_of_stores_and_wrong_names_are_reported() {
    // one more file than an index can number
    let memory = Memory::new([]);
    let data = memory.create_nested("store").unwrap().create_nested("data").unwrap();
    for number in 0..=super::index::MAX_FILES {
        data.create(&format!("{number}.vtd")).unwrap();
    }
    let error = error_of(super::store::Store::open(&memory));
    assert_eq!(
        error.to_string(),
        format!("the store has {0} data files; the limit is {1}", super::index::MAX_FILES + 1, super::index::MAX_FILES)
    );
    assert_eq!(error.kind(), ErrorKind::Limit);
    // a block that becomes larger than any
    let zeros = vec![0; super::records::LARGEST_BLOCK + 1];
    let mut record = vec![0; 2 << 20];
    let len = super::zlib::by_zlib_rs::deflate(&zeros, &mut record).unwrap();
    let mut vtd = vec![1];
    put_data(&mut vtd, &record[..len]);
    let error = error_of(super::records::read_block(&vtd, 0));
    assert_eq!(error.to_string(), "block at byte 0: a block is too large: the limit is 67108864 bytes");
    assert_eq!(error.kind(), ErrorKind::Limit);
    // names in an index have two bytes for their length
    let name = super::index::Indexed { name: "x".repeat(1 << 16), bytes: 0 };
    let target = ctds::io::MemoryFile::default();
    let error = error_of(super::index::write(&target, &[name], &[], &super::index::Index::new(Vec::new())));
    assert_eq!(error.to_string(), "the name of a data file is too long");
    // a store is not a container of files
    let memory = Memory::new([]);
    let store = memory.create_nested("store").unwrap();
    store.create_nested("data").unwrap().create("x.vtd").unwrap();
    store.create("readme").unwrap();
    let store = super::bare::BareStore::open(&memory, "store").unwrap();
    for (error, says) in [
        (error_of(store.open("readme")), "readme: a vt store has blocks, not files: name an archive (.vt)"),
        (error_of(store.enter("readme")), "readme: the file is not an archive"),
    ] {
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::NotFound, says));
    }
}
