use std::fs;
use std::path::{Path, PathBuf};

use super::compare::compare;
use super::file_set::{FileSet, TABLE_DAT, Wanted};
use super::write::{LARGEST_BLOCK, PackOptions, SMALLEST_BLOCK, block_bytes};
use super::*;
use crate::io::read_all;
use crate::schema::{StorageOption, with_storage};
use crate::{Compression, ErrorKind, IfExists, OpenOptions, Result, Table};

fn pack(source: &FileSet, target: &Path, options: &PackOptions) -> Result<PackSummary> {
    super::write::pack(source, target, options, IfExists::Fail.into(), &())
}

fn unpack(source: &FileSet, target: &Path, if_exists: IfExists) -> Result<PackSummary> {
    super::write::unpack(source, target, if_exists.into(), &())
}

const ALL: [(PackFormat, bool); 4] = [
    (PackFormat::MULTI_FILE, false),
    (PackFormat::MULTI_HDF5, false),
    (PackFormat::MULTI_FILE, true),
    (PackFormat::MULTI_HDF5, true),
];

fn options((format, single_file): (PackFormat, bool)) -> PackOptions {
    let compression = Compression::NONE;
    PackOptions { format, block_bytes: Some(512), checksums: true, compression, single_file, dtype: None, hash: None }
}

fn source(folder: &Path) -> PathBuf {
    let source = folder.join("source.tab");
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/multifile");
    for (from, to) in [("m1", source.clone()), ("m5", source.join("SUB"))] {
        fs::create_dir(&to).unwrap();
        for entry in fs::read_dir(written.join(from).join("t.tab")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    source
}

fn open(path: &Path) -> FileSet {
    FileSet::open(path, Wanted::Table, OpenOptions::default()).unwrap()
}

#[test]
fn from_each_container_into_each() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = source(folder.path());
    let first = open(&last);
    for (number, form) in ALL.into_iter().enumerate() {
        let next = folder.path().join(number.to_string());
        let summary = pack(&open(&last), &next, &options(form)).unwrap();
        assert_eq!((summary.files, summary.bytes), (first.files(), first.bytes()));
        let packed = open(&next);
        assert_eq!(compare(&first, &packed, &()).unwrap().differences, []);
        assert_eq!(
            crate::open_table(&next).unwrap().rows(),
            Table::open(folder.path().join("source.tab")).unwrap().rows()
        );
        let mut check = Check::open(&next).unwrap();
        check.read(&()).unwrap();
        assert!(check.damaged.is_empty() && check.files > 0, "{check:?}");
        last = next;
    }
    let plain = folder.path().join("plain");
    unpack(&open(&last), &plain, IfExists::Fail).unwrap();
    assert!(plain.join("SUB/table.dat").is_file() && !plain.join("table.mf").exists());
    assert_eq!(compare(&first, &open(&plain), &()).unwrap().differences, []);

    fs::write(plain.join("SUB/table.info"), "Type = \nSubType = ?\n\n").unwrap();
    let differences = compare(&first, &open(&plain), &()).unwrap().differences;
    assert_eq!((differences[0].file.as_str(), differences[0].offset), ("SUB/table.info", Some(18)));
}

#[test]
fn pieces_fit_blocks_of_any_size() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    unpack(&open(&source(folder.path())), &plain, IfExists::Fail).unwrap();
    // as long as several pieces, and a file of a manager
    let large: Vec<u8> = (0..(5 << 20) + 17u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(plain.join("table.f0"), &large).unwrap();
    fs::write(plain.join("large"), &large).unwrap();
    let first = open(&plain);
    for (number, form) in ALL.into_iter().enumerate() {
        for block_bytes in [4096, 300_000, 1 << 20, 8 << 20] {
            for checksums in [false, true] {
                let packed = folder.path().join(format!("{number}-{block_bytes}-{checksums}"));
                let options = PackOptions { block_bytes: Some(block_bytes), checksums, ..options(form) };
                pack(&first, &packed, &options).unwrap();
                assert_eq!(compare(&first, &open(&packed), &()).unwrap().differences, [], "{options:?}");
                let mut check = Check::open(&packed).unwrap();
                check.read(&()).unwrap();
                assert!(check.damaged.is_empty(), "{check:?}");
                let unpacked = folder.path().join("unpacked");
                unpack(&open(&packed), &unpacked, IfExists::Replace).unwrap();
                assert_eq!(fs::read(unpacked.join("large")).unwrap(), large);
                assert_eq!(fs::read(unpacked.join("table.f0")).unwrap(), large);
            }
        }
    }
}

#[test]
fn an_odd_table_dat_comes_back_unless_the_table_changed() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    unpack(&open(&source(folder.path())), &plain, IfExists::Fail).unwrap();
    // version -3 without need
    let usual = fs::read(plain.join("table.dat")).unwrap();
    let mut odd = with_storage(&usual, StorageOption::MultiHdf5, Some(77)).unwrap();
    let option = odd.windows(8).position(|bytes| bytes == [0, 0, 0, 1, 0, 0, 0, 77]).unwrap();
    odd[option + 3] = 2;
    fs::write(plain.join("table.dat"), &odd).unwrap();

    let packed = folder.path().join("packed");
    pack(&open(&plain), &packed, &options(ALL[0])).unwrap();
    let dat =
        || read_all(&open(&packed).root.files.iter().find(|file| file.name == TABLE_DAT).unwrap().open().unwrap());
    assert_eq!(dat().unwrap(), odd);

    // another block size is as good as any other change
    let changed =
        with_storage(&fs::read(packed.join("table.dat")).unwrap(), StorageOption::MultiFile, Some(78)).unwrap();
    let mut rows = changed.clone();
    rows[changed.windows(4).position(|bytes| bytes == [0xff, 0xff, 0xff, 0xfd]).unwrap() + 11] += 1;
    fs::write(packed.join("table.dat"), rows).unwrap();
    assert_ne!(dat().unwrap(), odd);
    assert_eq!(dat().unwrap().len(), usual.len());
}

#[test]
fn paths_lead_into_files() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path());
    for form in [ALL[2], ALL[3]] {
        let packed = folder.path().join(format!("{form:?}"));
        pack(&open(&source), &packed, &options(form)).unwrap();
        for path in ["SUB", "./SUB/", "SUB/../SUB"] {
            let table = crate::open_table(packed.join(path)).unwrap();
            assert_eq!(table.rows(), crate::open_table(source.join("SUB")).unwrap().rows());
            assert_eq!(table.storage().unwrap().block_bytes, Some(512));
        }
        for path in ["NONE", "SUB/SUB", "..", "table.dat"] {
            assert_eq!(crate::open_table(packed.join(path)).unwrap_err().kind(), ErrorKind::NotFound, "{path}");
        }
    }
    assert_eq!(crate::open_table(source.join("table.info")).unwrap_err().kind(), ErrorKind::Format);
}

#[test]
fn targets_are_apart_from_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = source(folder.path());
    let plain = open(&path);
    for target in [path.clone(), path.join("inside"), folder.path().to_owned()] {
        assert_eq!(unpack(&plain, &target, IfExists::Replace).unwrap_err().kind(), ErrorKind::Usage);
    }
}

#[test]
fn small_tables_have_small_blocks() {
    let mut options = PackOptions { block_bytes: None, ..options(ALL[0]) };
    assert_eq!(block_bytes(&options, [900 << 20, 1000].into_iter()), LARGEST_BLOCK);
    assert_eq!(block_bytes(&options, std::iter::empty()), SMALLEST_BLOCK);
    assert_eq!(block_bytes(&options, [8 << 20, 8 << 20].into_iter()), 1 << 20);
    options.block_bytes = Some(777);
    assert_eq!(block_bytes(&options, [5].into_iter()), 777);
}

/// A toy container with the files of a directory; their bytes in a second file if `elsewhere`.
fn toy(directory: &Path, path: &Path, elsewhere: bool) {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| directory.join(name).is_file());
    names.sort();
    let (mut list, mut data) =
        (format!("toy container{}\n", if elsewhere { ", data elsewhere" } else { "" }), Vec::new());
    for name in names {
        let bytes = fs::read(directory.join(&name)).unwrap();
        list += &format!("{name} {}\n", bytes.len());
        data.extend(bytes);
    }
    list += "\n";
    if elsewhere {
        fs::write(format!("{}.data", path.display()), data).unwrap();
        fs::write(path, list).unwrap();
    } else {
        fs::write(path, [list.into_bytes(), data].concat()).unwrap();
    }
}

#[test]
fn a_format_that_is_only_read_needs_a_file_and_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table");
    unpack(&open(&source(folder.path())), &table, IfExists::Fail).unwrap();
    fs::remove_dir_all(table.join("SUB")).unwrap();
    let expected = open(&table);
    for elsewhere in [false, true] {
        let shelf = folder.path().join(format!("shelf {elsewhere}"));
        fs::create_dir(&shelf).unwrap();
        let path = shelf.join("table.toy");
        toy(&table, &path, elsewhere);

        let opened = crate::open_table(&path).unwrap();
        assert_eq!(opened.storage().unwrap().format, "toy");
        assert_eq!(opened.rows(), crate::open_table(&table).unwrap().rows());
        for column in opened.columns() {
            let name = column.desc.name.to_string();
            let both = [&path, &table].map(|path| crate::open_table(path).unwrap());
            for row in 0..opened.rows() {
                let [one, other] = both.each_ref().map(|table| table.column(&name).unwrap().cell_shape(row).unwrap());
                assert_eq!(one, other, "{name}");
            }
        }

        let listing = Listing::open(&path).unwrap();
        assert_eq!((listing.info.format, listing.files.len()), ("toy", expected.files()));
        // in its directory it is one container, however many files it has there
        let outer = Listing::open(&shelf).unwrap();
        assert_eq!((outer.files.len(), outer.nested.len()), (0, 1));
        assert_eq!(outer.nested[0].info.format, "toy");
        let mut check = Check::open(&path).unwrap();
        check.read(&()).unwrap();
        assert!(check.damaged.is_empty() && check.files == 0 && check.unchecked > 0, "{check:?}");

        let unpacked = folder.path().join(format!("unpacked {elsewhere}"));
        unpack(&open(&path), &unpacked, IfExists::Fail).unwrap();
        assert_eq!(compare(&expected, &open(&unpacked), &()).unwrap().differences, []);
        let packed = folder.path().join(format!("packed {elsewhere}"));
        pack(&open(&path), &packed, &options((PackFormat::MULTI_FILE, false))).unwrap();
        assert_eq!(compare(&expected, &open(&packed), &()).unwrap().differences, []);
    }
    // nothing can be packed into it
    assert!(PackFormat::all().all(|format| format.name() != "toy"));
    assert_eq!("toy".parse::<PackFormat>().unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn unsupported_packing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = open(&source(folder.path()));
    let dtype = PackOptions { dtype: Some("f4".to_owned()), ..options(ALL[0]) };
    let container = files.as_container().unwrap();
    for (error, kind, says) in [
        (
            pack(&files, &folder.path().join("out"), &dtype).map(drop),
            ErrorKind::Usage,
            "a type of the elements is for HDF5, not for multifile",
        ),
        (
            PackFormat::HDF5.in_table_directory().map(drop),
            ErrorKind::Usage,
            "casacore cannot open a table with a hdf5 container: pack it into a single file",
        ),
        (container.open("x").map(drop), ErrorKind::NotFound, "x: the file does not exist"),
        (container.enter("x").map(drop), ErrorKind::NotFound, "x: the directory does not exist"),
    ] {
        let error = error.expect_err(says);
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, says));
    }
    assert!(!folder.path().join("out").exists());
}
