//! Tests of the promises of every container: the suite runs for each format in the registry, and
//! for a plain directory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{Container, ContainerMut, Directory, FORMATS, Format, FormatOptions, Memory};
use crate::error::{ErrorKind, Result};
use crate::h5::Compression;
use crate::hash::HashKind;
use crate::io::read_all;

/// The options of the second container have checksums.
fn options(format: &Format) -> Vec<FormatOptions> {
    let plain = FormatOptions {
        block_bytes: 256,
        checksums: false,
        compression: None,
        archive: false,
        hash: HashKind::Blake3,
        appendable: false,
    };
    let archive = FormatOptions { archive: true, checksums: true, ..plain };
    match format.name {
        "multifile" => vec![plain, archive, FormatOptions { checksums: true, ..plain }],
        "multifile1" => vec![plain],
        "multihdf5" => vec![plain, archive, FormatOptions { compression: Compression::gzip(3).into(), ..archive }],
        name => panic!("{name} is a format without a sample here"),
    }
}

struct Made {
    folder: tempfile::TempDir,
    /// `None` for a plain directory.
    format: Option<&'static Format>,
    options: Option<FormatOptions>,
    container: Arc<dyn ContainerMut>,
}

const NAME: &str = "c";

/// One reader knows all versions of MultiFile.
fn read_as(format: &Format) -> &'static str {
    if format.name == "multifile1" { "multifile" } else { format.name }
}

impl Made {
    /// A MultiFile of version 1 keeps the rest of its header in a second file.
    fn in_memory(&self) -> Memory {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap());
        let files =
            entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()));
        Memory::new(files.collect::<Vec<_>>().iter().map(|(name, bytes)| (name.as_str(), bytes.clone())))
    }

    fn name(&self) -> String {
        format!("{} {:?}", self.format.map_or("directory", |format| format.name), self.options)
    }

    fn open(&self) -> Result<Arc<dyn Container>> {
        let folder = Directory::new(self.folder.path());
        match self.format {
            Some(format) => (format.open)(&folder, NAME),
            None => folder.enter(NAME),
        }
    }
}

/// Empty containers of each format that can be changed, with each of its options, and a directory.
fn each() -> Vec<Made> {
    let mut made = Vec::new();
    for &format in FORMATS.list {
        let Some(create) = format.create else { continue };
        for options in options(format) {
            let folder = tempfile::tempdir().unwrap();
            let container = create(&folder.path().join(NAME), &options).unwrap();
            made.push(Made { folder, format: Some(format), options: Some(options), container });
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let container = Directory::new(folder.path()).create_nested(NAME).unwrap();
    made.push(Made { folder, format: None, options: None, container });
    made
}

fn fill(container: &dyn ContainerMut) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for len in [0, 1, 255, 256, 257, 3000] {
        let name = format!("table.f{len}");
        let bytes: Vec<u8> = (0..len).map(|at: u32| (at % 251) as u8).collect();
        container.create(&name).unwrap().write_at(0, &bytes).unwrap();
        files.insert(name, bytes);
    }
    files
}

fn files_of(container: &dyn Container) -> Result<BTreeMap<String, Vec<u8>>> {
    container.names()?.into_iter().map(|name| Ok((name.clone(), read_all(&*container.open(&name)?)?))).collect()
}

#[test]
fn files_and_nested_containers_round_trip() {
    for made in each() {
        let name = made.name();
        let expected = fill(&*made.container);
        let nested = made.container.create_nested("SUB").unwrap();
        let inner = nested.create("inner").unwrap();
        inner.write_at(5, b"bytes").unwrap();
        // as in a file of the file system
        inner.write_at(70, b"").unwrap();
        drop(inner);
        let innermost = nested.create_nested("SUBSUB").unwrap();
        innermost.create("x").unwrap().write_at(0, &[7; 700]).unwrap();
        let taken = made.container.create_nested("SUB").map(drop).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::Exists, "{name}");
        innermost.commit().unwrap();
        nested.commit().unwrap();
        made.container.commit().unwrap();
        for container in [made.open().unwrap(), made.container.clone() as Arc<dyn Container>] {
            assert!(files_of(&*container).unwrap() == expected, "{name}");
            assert_eq!(container.nested().unwrap(), ["SUB"], "{name}");
            let inner = container.enter("SUB").unwrap();
            assert_eq!(
                (inner.names().unwrap(), inner.nested().unwrap()),
                (vec!["inner".into()], vec!["SUBSUB".into()])
            );
            assert_eq!(read_all(&*inner.open("inner").unwrap()).unwrap(), b"\0\0\0\0\0bytes");
            let innermost = inner.enter("SUBSUB").unwrap();
            assert_eq!(files_of(&*innermost).unwrap(), BTreeMap::from([("x".to_owned(), vec![7; 700])]), "{name}");
            // any part of a file can be read, and nothing after its end
            let file = container.open("table.f3000").unwrap();
            let mut part = [0; 600];
            file.read_at(200, &mut part).unwrap();
            assert_eq!(part, expected["table.f3000"][200..800], "{name}");
            assert_eq!(file.read_at(2500, &mut part).unwrap_err().kind(), ErrorKind::Format, "{name}");
            assert_eq!(file.len().unwrap(), 3000);
            for file in expected.keys() {
                container.layout(file).unwrap();
            }
            assert_eq!(container.describe().format, made.format.map_or("directory", read_as));
        }
    }
}

#[test]
fn missing_files_are_not_found() {
    for made in each() {
        let name = made.name();
        fill(&*made.container);
        made.container.create_nested("SUB").unwrap().commit().unwrap();
        made.container.commit().unwrap();
        for container in [made.open().unwrap(), made.container.clone() as Arc<dyn Container>] {
            for missing in ["other", "table.f", "SUB/x"] {
                assert_eq!(
                    container.open(missing).map(drop).unwrap_err().kind(),
                    ErrorKind::NotFound,
                    "{name}: {missing}"
                );
                assert_eq!(container.layout(missing).map(drop).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
            }
            assert_eq!(container.enter("OTHER").map(drop).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
        }
        assert_eq!(made.container.edit("other").map(drop).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
        assert_eq!(made.container.remove("other").unwrap_err().kind(), ErrorKind::NotFound, "{name}");
        for wrong in ["", ".", "..", "a/b", "../c"] {
            assert!(made.container.create(wrong).is_err(), "{name}: {wrong:?}");
            assert!(made.container.create_nested(wrong).is_err(), "{name}: {wrong:?}");
        }
        let entries = std::fs::read_dir(made.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let beside: Vec<_> = entries.filter(|entry| entry != NAME && entry != "c_hdrext").collect();
        assert!(beside.is_empty(), "{name}: {beside:?}");
    }
}

#[test]
fn files_are_replaced_edited_and_removed() {
    for made in each() {
        let name = made.name();
        let mut expected = fill(&*made.container);
        made.container.commit().unwrap();
        made.container.create("table.f256").unwrap().write_at(0, b"new").unwrap();
        expected.insert("table.f256".into(), b"new".to_vec());
        made.container.edit("table.f255").unwrap().write_at(300, b"far").unwrap();
        let far = expected.get_mut("table.f255").unwrap();
        far.resize(300, 0);
        far.extend(b"far");
        made.container.edit("table.f3000").unwrap().set_len(10).unwrap();
        expected.get_mut("table.f3000").unwrap().truncate(10);
        made.container.remove("table.f1").unwrap();
        expected.remove("table.f1");
        if made.format.is_some() {
            // others see what was committed
            let before = files_of(&*made.open().unwrap()).unwrap();
            assert!(before.contains_key("table.f1") && before["table.f3000"].len() == 3000, "{name}");
        }
        assert!(files_of(&*made.container).unwrap() == expected, "{name}, before the commit");
        made.container.commit().unwrap();
        assert!(files_of(&*made.open().unwrap()).unwrap() == expected, "{name}");
    }
}

/// Bytes alone decide.
#[test]
fn formats_recognise_only_their_own_containers() {
    for made in each() {
        let Some(format) = made.format else { continue };
        fill(&*made.container);
        made.container.commit().unwrap();
        for &other in FORMATS.list {
            let is_own = other.name == read_as(format);
            assert_eq!(
                (other.recognise)(&made.in_memory(), NAME).unwrap(),
                is_own,
                "{} by {}",
                made.name(),
                other.name
            );
            for foreign in
                [&b""[..], b"short", &[0; 1000], b"\xbe\xbe\xbe\xbe and some more bytes of no container at all"]
            {
                assert!(
                    !(other.recognise)(&Memory::new([(NAME, foreign.to_vec())]), NAME).unwrap(),
                    "{foreign:?} by {}",
                    other.name
                );
            }
        }
        assert!((format.damage)(&made.in_memory(), NAME).unwrap().is_empty(), "{}", made.name());
    }
}

/// The error names the file, whatever the length.
#[test]
fn files_cut_short_are_errors() {
    for made in each() {
        let Some(format) = made.format else { continue };
        let expected = fill(&*made.container);
        made.container.commit().unwrap();
        let name = made.name();
        let path = made.folder.path().join(NAME);
        let bytes = std::fs::read(&path).unwrap();
        let mut failures = 0;
        let lengths: Vec<usize> = (0..bytes.len()).step_by(bytes.len() / 40 + 1).collect();
        for &len in &lengths {
            let folder = tempfile::tempdir().unwrap();
            let cut = folder.path().join(NAME);
            std::fs::write(&cut, &bytes[..len]).unwrap();
            let read = |path: &Path| {
                let folder = Directory::new(path.parent().unwrap());
                (format.open)(&folder, NAME).and_then(|container| files_of(&*container))
            };
            match read(&cut) {
                Ok(files) => assert!(files == expected, "{name}: other files in {len} bytes"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Format, "{name}, {len} bytes: {error}");
                    assert!(error.contexts().count() > 0, "{name}, {len} bytes: no place: {error}");
                    failures += 1;
                }
            }
        }
        assert!(failures + 2 >= lengths.len(), "{name}: {failures} of {} lengths fail", lengths.len());
        made.container.commit().unwrap();
    }
}

/// Memory is as good as the disk, for formats that do not need a file of the system.
#[test]
fn containers_open_in_memory_and_on_disk() {
    for made in each() {
        let Some(format) = made.format else { continue };
        let expected = fill(&*made.container);
        made.container.commit().unwrap();
        match (format.open)(&made.in_memory(), NAME) {
            Ok(container) => assert!(files_of(&*container).unwrap() == expected, "{}", made.name()),
            Err(error) => {
                assert_eq!(format.name, "multihdf5", "{error}");
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            }
        }
    }
}
