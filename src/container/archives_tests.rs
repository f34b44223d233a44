//! Tests of the archives of the crate `ctds-archives` together with packing, HDF5 and tables.

use std::path::Path;

use super::{Container, VT, at_address, locate, vt_archive_of};
use crate::error::ErrorKind;
use crate::io::read_all;
use crate::pack::{CompareBytes, Pack, PackFormat, Unpack};
use crate::{ColumnDesc, NewTable, open_table};

fn vt() -> PackFormat {
    VT.name.parse().unwrap()
}

#[test]
fn path_like_names_are_never_written() {
    for name in ["..", "../x", "/etc/x", "a/b", "", "."] {
        let folder = tempfile::tempdir().unwrap();
        let [line, data] = vt_archive_of(&[(name.to_owned(), vec![b'x'])]);
        std::fs::create_dir_all(folder.path().join("in/store/data")).unwrap();
        std::fs::write(folder.path().join("in/store/data/x.vtd"), data).unwrap();
        let archive = folder.path().join("in/a.vt");
        std::fs::write(&archive, line).unwrap();
        let listed = locate(&archive).unwrap().names().unwrap();
        assert_eq!(listed, [name, "block"]);
        let error = Unpack::new(&archive).write(folder.path().join("in/out")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format, "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(folder.path().join("in")).unwrap().count(), 2);
    }
}

#[test]
fn addresses_in_files_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("marker");
    let path = std::path::PathBuf::from(format!("vt+exec:touch {}", marker.display()));
    // so is a path located that a table has
    assert!(locate(&path).unwrap().open("table.dat").is_err() && !marker.exists());
    // one that the caller was given runs its command
    assert!(at_address(&path).unwrap().open().is_err() && marker.exists());
}

/// Lists every file below a container with its bytes; names of directories end in a slash.
fn tree(container: &dyn Container, prefix: &str, found: &mut Vec<(String, Vec<u8>)>) {
    for name in container.names().unwrap() {
        found.push((format!("{prefix}{name}"), read_all(&*container.open(&name).unwrap()).unwrap()));
    }
    for name in container.nested().unwrap() {
        found.push((format!("{prefix}{name}/"), Vec::new()));
        tree(&*container.enter(&name).unwrap(), &format!("{prefix}{name}/"), found);
    }
}

fn tree_at(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    tree(&*locate(path).unwrap(), "", &mut found);
    found
}
/// The archive made again has the same tree, to the hash of its root.
#[test]
fn archives_round_trip_through_hdf5() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("my.dir");
    std::fs::create_dir_all(source.join("sub/empty")).unwrap();
    std::fs::write(source.join("a"), [5; 50_000]).unwrap();
    std::fs::write(source.join("sub/copy"), [5; 50_000]).unwrap();
    std::fs::write(source.join("sub/few"), b"few").unwrap();
    std::fs::write(source.join("none"), b"").unwrap();
    let [first, second] = ["one", "two"].map(|name| {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        folder.path().join(name).join("my.vt")
    });
    let hdf5 = folder.path().join("my.h5");
    Pack::new(&source).format(vt()).write(&first).unwrap();
    Pack::new(&first).format(PackFormat::HDF5).write(&hdf5).unwrap();
    assert!(std::fs::metadata(&hdf5).unwrap().len() < 90_000, "the same content is stored twice");
    Pack::new(&hdf5).format(vt()).write(&second).unwrap();
    assert_eq!(tree_at(&second), tree_at(&first));
    let root = |archive: &Path| {
        let line = std::fs::read_to_string(archive).unwrap();
        line[line.find("sha1:").unwrap()..].to_owned()
    };
    assert_eq!(root(&second), root(&first));
}

/// The table is opened by each of its names, and is the one that was packed.
#[test]
fn tables_are_opened_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut writer = NewTable::new().column(ColumnDesc::scalar::<f64>("TIME")).create(path("my.ms")).unwrap();
    writer.add_rows(3).unwrap();
    writer.close().unwrap();
    Pack::new(path("my.ms")).write(path("packed.ms")).unwrap();
    for (source, archive) in [("my.ms", "a.vt"), ("packed.ms", "b.vt")] {
        Pack::new(path(source)).format(vt()).write(path(archive)).unwrap();
        let date = locate(&path(archive)).unwrap().history().unwrap().remove(0);
        for below in [String::new(), source.to_owned(), date.clone(), format!("{date}/{source}")] {
            let place = if below.is_empty() { path(archive) } else { path(archive).join(below) };
            let table = open_table(&place).unwrap();
            assert_eq!(table.rows(), 3, "{}", place.display());
            assert!(CompareBytes::new(path("my.ms"), &place).run().unwrap().differences.is_empty());
        }
        let copy = path(&format!("{archive}.copy"));
        Unpack::new(path(archive)).write(&copy).unwrap();
        assert!(CompareBytes::new(path("my.ms"), &copy).run().unwrap().differences.is_empty());
    }
}
