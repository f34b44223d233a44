//! Round trips of every table of testdata through the library: to HDF5 and back to a table with
//! equal values, back to the original bytes, and into every kind of container and out again.
//!
//! Tables that cannot be read as a whole are converted as far as they can be, or refused with an
//! error of the source; which ones those are is listed below, so that none is left out by accident.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ctds_hdf5::convert::{
    Compare, Compress, Difference, Digest, DigestPolicy, Hash, Source, ToHdf5, ToOriginal, ToTable, Views,
};
use ctds_hdf5::pack::{Pack, PackFormat, Unpack};
use ctds_hdf5::{Compression, IfExists, Table, TableKind};
use tempfile::TempDir;

use ctds_hdf5_testing::{tables_below, testdata};

/// More than 2^32 rows: too many to read all.
const HUGE: &str = "rows64/t.tab";

/// Tables of which the managers have fewer rows than the table: they cannot be read, by casacore
/// neither.
const DAMAGED: [&str; 4] = [
    "removed_rows_and_columns/emptied_auto_StManAipsIO_big.tab",
    "removed_rows_and_columns/emptied_auto_StManAipsIO_little.tab",
    "removed_rows_and_columns/emptied_auto_StandardStMan_big.tab",
    "removed_rows_and_columns/emptied_auto_StandardStMan_little.tab",
];

/// A table with strings that are not UTF-8, for which CTFP-1 has no fingerprint; the values
/// themselves are compared.
const NOT_UTF8: &str = "odd_strings/odd.tab";

/// Managers that compute a column from other ones.
const ENGINES: [&str; 6] = [
    "BitFlagsEngine",
    "CompressFloat",
    "CompressComplex",
    "ForwardColumnEngine",
    "MappedArrayEngine",
    "VirtualTaQLColumn",
];

/// The main tables below testdata.
fn tables() -> Vec<String> {
    let root = testdata();
    let is_main = |path: &PathBuf| !path.parent().unwrap().join("table.dat").exists();
    let name = |path: PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    let names: Vec<String> = tables_below(&root).into_iter().filter(is_main).map(name).collect();
    assert!(names.len() > 200, "only {} tables are found", names.len());
    names
}

/// Calls `test` for every table, in parallel, with its name, its path, and a directory to write to.
fn for_each(test: impl Fn(&str, &Path, &Path) + Sync) {
    let tables = tables();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(name) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let folder: TempDir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
                    let run = || test(name, &testdata().join(name), folder.path());
                    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                        failed.lock().unwrap().push(name.clone());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "failed for {failed:?}");
}

fn to_hdf5(source: &Path, compress: Compress) -> ToHdf5<'static> {
    ToHdf5::new(source).compression(compress).digest(DigestPolicy::Always).threads(1)
}

/// Asserts equal values of all columns. `engines`: columns that an engine computed
/// in `left` and that are stored in `right`, which may have lost the engine's own keywords.
#[track_caller]
fn assert_equal(name: &str, left: &Path, right: &Path, engines: &BTreeSet<String>) {
    let compared = Compare::new(left, right).run().unwrap();
    let allowed = |found: &Difference| {
        let column = found.column.as_deref().unwrap_or_default();
        let is_keywords = found.row.is_none() && found.left.starts_with("keywords _") && found.right == "keywords ";
        is_keywords && engines.contains(column)
    };
    let differences: Vec<_> = compared.differences.iter().filter(|found| !allowed(found)).collect();
    assert!(differences.is_empty(), "{name}: {}: {differences:?}", right.display());
    assert!(compared.skipped.is_empty(), "{name}: not compared: {:?}", compared.skipped);
}

/// Of a table: the rows, the digest of the table keywords, and of each column the digests of its
/// cells and keywords.
type Digests = BTreeMap<String, (u64, Hash, BTreeMap<String, (Hash, Option<Hash>)>)>;

/// The CTFP-2 fingerprints of a source, without those of the keywords of `engines`.
fn digests(name: &str, path: &Path, engines: &BTreeSet<String>) -> Digests {
    let tables = Digest::new(path).run().unwrap().into_iter();
    let tables = tables.map(|(table_name, table)| {
        let table = table.unwrap();
        let columns = table.columns.into_iter().filter_map(|column| {
            let cells = match column.hash {
                Err(_) if name == NOT_UTF8 => return None,
                cells => cells.unwrap_or_else(|error| panic!("{name}: {error}")),
            };
            let keywords = (!engines.contains(&column.name)).then_some(column.keywords_hash);
            Some((column.name, (cells, keywords)))
        });
        (table_name, (table.rows, table.keywords_hash, columns.collect()))
    });
    tables.collect()
}

/// The columns that an engine computed in `source` and that are stored in `table`.
fn stored_now(source: &Path, table: &Path) -> BTreeSet<String> {
    let computed = |path: &Path| -> BTreeSet<String> {
        let source = Source::open(path).unwrap();
        let columns = source.tables().iter().flat_map(|table| table.columns().unwrap().to_vec());
        let computed =
            columns.filter(|column| ENGINES.iter().any(|engine| column.manager.starts_with(engine.as_bytes())));
        computed.map(|column| column.desc.name.to_string()).collect()
    };
    computed(source).difference(&computed(table)).cloned().collect()
}

/// All files below a directory, by relative path.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[track_caller]
fn assert_same_files(name: &str, left: &Path, right: &Path) {
    let (left, right) = (files(left), files(right));
    assert!(left.keys().eq(right.keys()), "{name}: {:?}, now {:?}", left.keys(), right.keys());
    for (file, bytes) in &left {
        assert!(*bytes == right[file], "{name}: {} is not what it was", file.display());
    }
}

/// To HDF5 and back to a table: the same values and fingerprints at each station.
#[test]
fn values() {
    for_each(|name, source, folder| {
        if name == HUGE {
            return;
        }
        let damaged = DAMAGED.contains(&name);
        let (native, table) = (folder.join("native.h5"), folder.join("table"));
        let written = to_hdf5(source, Compression::NONE.into()).write(&native);
        if damaged {
            assert!(written.is_err(), "{name}: is no longer damaged");
            assert!(!native.exists(), "{name}");
            return;
        }
        let summary = written.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(summary.missing, 0, "{name}");
        let none = BTreeSet::new();
        assert_equal(name, source, &native, &none);
        assert!(digests(name, source, &none) == digests(name, &native, &none), "{name}: other fingerprints in HDF5");

        ToTable::new(&native).threads(1).write(&table).unwrap_or_else(|error| panic!("{name}: {error}"));
        let engines = stored_now(source, &table);
        assert_equal(name, source, &table, &engines);
        let (expected, found) = (digests(name, source, &engines), digests(name, &table, &engines));
        assert!(expected == found, "{name}: other fingerprints in the table");
    });
}

/// Reference tables and concatenations whose tables are beside the HDF5 file come back as casacore
/// wrote them.
#[test]
fn views() {
    let mut count = 0;
    for case in ["ref_tables", "concat_tables"] {
        let copy = ctds_hdf5_testing::Copy::of_path(&testdata().join(case));
        let folder = copy.path().canonicalize().unwrap();
        for source in tables_below(&folder) {
            let kind = Table::open(&source).unwrap().kind().clone();
            if kind == TableKind::Plain {
                continue;
            }
            let name = source.file_name().unwrap().to_str().unwrap();
            let (native, back) = (folder.join(format!("{name}.h5")), folder.join(format!("back-{name}")));
            to_hdf5(&source, Compress::Auto).write(&native).unwrap();
            let summary = ToTable::new(&native).views(Views::Always).threads(1).write(&back).unwrap();
            assert_eq!(summary.warnings, [""; 0], "{name}");
            assert_eq!((summary.kind, summary.tables), (kind, 1), "{name}");
            assert_same_files(name, &source, &back);
            assert_equal(name, &source, &back, &BTreeSet::new());

            // a copy that refers to nothing, of the view itself and of its file
            for (number, from) in [&source, &native].into_iter().enumerate() {
                let plain = folder.join(format!("{number}-{name}"));
                let views = if number == 0 { Views::Auto } else { Views::Never };
                let summary = ToTable::new(from).views(views).threads(1).write(&plain).unwrap();
                assert_eq!(summary.kind, TableKind::Plain, "{name}");
                assert_equal(name, &source, &plain, &BTreeSet::new());
            }
            count += 1;
        }
    }
    assert_eq!(count, 12);
}

/// The cells of forwarded columns stay in the other table if that is beside the HDF5 file, or in
/// the directory that is named.
#[test]
fn forwarded_columns() {
    let folder = ctds_hdf5_testing::Copy::of_path(&testdata().join("forward_columns"));
    let (source, away) = (folder.path().join("fwd.tab"), folder.beside("away"));
    fs::create_dir(&away).unwrap();
    let is_forwarded = |table: &Path| {
        let table = Table::open(table).unwrap();
        table.managers().any(|manager| *manager.type_name == *"ForwardColumnEngine")
    };
    for (native, parts, expected) in [
        (folder.path().join("fwd.h5"), None, true),
        (away.join("fwd.h5"), None, false),
        (away.join("fwd.h5"), Some(folder.path()), true),
    ] {
        to_hdf5(&source, Compress::Auto).if_exists(IfExists::Replace).write(&native).unwrap();
        let back = native.with_extension("back");
        let to_table = ToTable::new(&native).if_exists(IfExists::Replace).threads(1);
        let to_table = parts.iter().fold(to_table, |to_table, directory| to_table.parts(directory));
        to_table.clone().write(&back).unwrap();
        assert_eq!(is_forwarded(&back), expected);
        assert_equal("fwd.tab", &source, &back, &stored_now(&source, &back));
        to_table.engines(false).write(&back).unwrap();
        assert!(!is_forwarded(&back));
    }
}

/// From a restorable file, with and without compression, the original files.
#[test]
fn exact() {
    for_each(|name, source, folder| {
        if name == HUGE || DAMAGED.contains(&name) {
            return;
        }
        for (number, compress) in
            [Compression::NONE.into(), Compress::Auto, "lz4".parse::<Compression>().unwrap().into()]
                .into_iter()
                .enumerate()
        {
            let (native, restored) = (folder.join(format!("{number}.h5")), folder.join(format!("{number}.ms")));
            let failed = |error: ctds_hdf5::Error| -> ! { panic!("{name}: {error}") };
            to_hdf5(source, compress).restorable(true).write(&native).unwrap_or_else(|error| failed(error));
            ToOriginal::new(&native).threads(1).write(&restored).unwrap_or_else(|error| failed(error));
            assert_same_files(name, source, &restored);
        }
    });
}

/// Into every kind of container and out again: the original files. The cells can also be read from
/// there.
#[test]
fn packed() {
    let forms = [
        (PackFormat::MULTI_FILE, false, false, Compression::NONE),
        (PackFormat::MULTI_FILE, true, true, Compression::NONE),
        (PackFormat::MULTI_HDF5, false, true, Compression::NONE),
        (PackFormat::MULTI_HDF5, true, false, Compression::gzip(6)),
        (PackFormat::MULTI_HDF5, true, true, "zstd".parse::<Compression>().unwrap()),
    ];
    for_each(|name, source, folder| {
        // a table may refer to those beside it
        for sibling in fs::read_dir(source.parent().unwrap()).unwrap() {
            let sibling = sibling.unwrap();
            std::os::unix::fs::symlink(sibling.path(), folder.join(sibling.file_name())).unwrap();
        }
        // a packed source comes out as the files that were put in
        let plain = folder.join("plain");
        let files = Unpack::new(source).write(&plain).unwrap().files;
        let is_plain = !["table.mf", "table.mfh5"].iter().any(|file| source.join(file).exists());
        if is_plain {
            assert_same_files(name, source, &plain);
        }
        for (number, (format, single_file, checksums, compression)) in forms.into_iter().enumerate() {
            let (packed, unpacked) = (folder.join(format!("{number}.packed")), folder.join(format!("{number}.plain")));
            let pack = Pack::new(source).format(format).checksums(checksums).compression(compression);
            let summary = pack.single_file(single_file).write(&packed).unwrap();
            assert_eq!(summary.files, files, "{name}");
            assert_eq!(packed.is_file(), single_file, "{name}");
            Unpack::new(&packed).write(&unpacked).unwrap();
            assert_same_files(name, &plain, &unpacked);
            if name != HUGE && !DAMAGED.contains(&name) {
                assert_equal(name, source, &packed, &BTreeSet::new());
            }
        }
    });
}
