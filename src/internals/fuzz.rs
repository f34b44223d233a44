//! Fuzz targets: one function for each parser of bytes from other programs, which panics where the
//! parser breaks a promise. `fuzz/` gives them to libFuzzer, the tests below try them with damaged
//! files of testdata/.
//!
//! The promises: no panic; an error is of a kind that damage leads to, and one line; what can be
//! read can be written, and read again to the same.

use std::path::Path;
use std::sync::Arc;

use blosc_arrays::samples;
use bstr::ByteSlice;

use super::{managers, native_files};
use crate::aipsio::{Decoder, Encoder};
use crate::container::{
    Announced, AnnouncedFile, Container, ContainerMut, FormatOptions, MULTI_HDF5, Memory, MultiFile, MultiFileMut,
    MultiHdf5Mut, SION, VT, vt_archive_of,
};
use crate::error::{Error, ErrorKind, Result};
use crate::hash::HashKind;
use crate::io::{ByteOrder, read_all};
use crate::native;
use crate::schema::{Body, Sync, TableDat, TableInfo};
use crate::table::Table;
use crate::value::{DataType, Values};

pub(super) type File = (String, Vec<u8>);

pub struct Target {
    /// Also its file in `fuzz/fuzz_targets`.
    pub name: &'static str,
    run: fn(&[u8]) -> Result<()>,
    /// Valid input of the parser, made of the files of some tables.
    seeds: fn(&[Vec<File>]) -> Vec<Vec<u8>>,
}

pub static TARGETS: &[Target] = &[
    Target { name: "table_dat", run: table_dat, seeds: |tables| of_each(tables, |files| named(files, "table.dat")) },
    Target { name: "record", run: record, seeds: |tables| of_each(tables, record_seeds) },
    Target { name: "lock", run: lock, seeds: |tables| of_each(tables, |files| named(files, "table.lock")) },
    Target { name: "table", run: table, seeds: |tables| of_each(tables, |files| vec![pack(files)]) },
    Target {
        name: "manager",
        run: managers::any,
        seeds: |tables| of_each(tables, |files| managers::seeds(None, files)),
    },
    Target {
        name: "dysco",
        run: |bytes| managers::one("DyscoStMan", bytes),
        seeds: |tables| of_each(tables, |files| managers::seeds(Some("DyscoStMan"), files)),
    },
    Target {
        name: "sisco",
        run: |bytes| managers::one("SiscoStMan", bytes),
        seeds: |tables| of_each(tables, |files| managers::seeds(Some("SiscoStMan"), files)),
    },
    Target { name: "multifile", run: multifile, seeds: |tables| of_each(tables, |files| named(files, "table.mf")) },
    Target { name: "sion", run: sion, seeds: sion_seeds },
    Target { name: "blz", run: samples::read, seeds: |_| samples::files() },
    Target { name: "vt", run: vt, seeds: vt_seeds },
    Target { name: "seal", run: seal, seeds: seal_seeds },
    Target { name: "native_file", run: native_files::read, seeds: native_files::seeds },
    Target { name: "document", run: native::read_any, seeds: |tables| of_each(tables, document_seeds) },
];

pub fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("no target {name}"))
}

impl Target {
    /// Whether `bytes` are valid input.
    ///
    /// # Panics
    /// If a promise is broken.
    pub fn run(&self, bytes: &[u8]) -> bool {
        match (self.run)(bytes) {
            Ok(()) => true,
            Err(error) => {
                let text = error.to_string();
                assert!(is_of_damage(&error), "{}: not an error that damage leads to: {error:?}", self.name);
                assert!(!text.contains('\n') && text.len() < 20_000, "{}: not one short line: {text:?}", self.name);
                false
            }
        }
    }

    /// Valid input made of the tables below `testdata`.
    pub fn seeds(&self, testdata: &Path) -> Vec<Vec<u8>> {
        let mut seeds = (self.seeds)(&tables(testdata));
        seeds.sort_by_key(|seed| (seed.len(), seed.clone()));
        seeds.dedup();
        // tables that lead to others, and managers that need other columns, are not read alone
        seeds.retain(|seed| self.run(seed));
        seeds
    }
}

fn of_each(tables: &[Vec<File>], seeds: impl Fn(&[File]) -> Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    tables.iter().flat_map(|files| seeds(files)).collect()
}

fn is_of_damage(error: &Error) -> bool {
    use ErrorKind::{Format, Limit, NotFound, Unsupported};
    matches!(error.kind(), Format | Limit | NotFound | Unsupported)
}

/// Larger files, in bytes, are not used as seeds.
const SEED_BYTES: usize = 1 << 16;

/// Small tables only.
fn tables(folder: &Path) -> Vec<Vec<File>> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() {
                pending.push(path);
            } else if let (Some(name), Ok(bytes)) =
                (path.file_name().and_then(|name| name.to_str()), std::fs::read(&path))
            {
                files.push((name.to_owned(), bytes));
            }
        }
        let bytes: usize = files.iter().map(|file| file.1.len()).sum();
        if bytes <= SEED_BYTES && files.iter().any(|(name, _)| name == "table.dat") {
            found.push(files);
        }
    }
    found
}

pub(super) fn named(files: &[File], name: &str) -> Vec<Vec<u8>> {
    files.iter().filter(|file| file.0 == name).map(|file| file.1.clone()).collect()
}

/// Stays valid whatever a fuzzer does to it: for each file the length of its name, its name, the
/// length of its bytes in four bytes, its bytes.
pub(super) fn pack(files: &[File]) -> Vec<u8> {
    let mut packed = Vec::new();
    for (name, bytes) in files {
        packed.push(name.len() as u8);
        packed.extend(name.bytes());
        packed.extend((bytes.len() as u32).to_le_bytes());
        packed.extend(bytes);
    }
    packed
}

/// Leaves out what is missing at the end.
pub(super) fn unpack(mut packed: &[u8]) -> Vec<File> {
    let mut files = Vec::new();
    while let Some((&len, rest)) = packed.split_first() {
        let (name, rest) = rest.split_at(rest.len().min(len.into()));
        let (count, rest) = rest.split_at(rest.len().min(4));
        let count = count.iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        let (bytes, rest) = rest.split_at(rest.len().min(count));
        files.push((name.to_str_lossy().into_owned(), bytes.to_vec()));
        packed = rest;
    }
    files
}

pub(super) fn in_memory(files: &[File]) -> Arc<Memory> {
    Arc::new(Memory::new(files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone()))))
}

fn table_dat(bytes: &[u8]) -> Result<()> {
    let dat = TableDat::decode(&bytes)?;
    if let Body::Plain(_) = &dat.body
        && let Ok(encoded) = dat.encode()
    {
        let again = TableDat::decode(&encoded).and_then(|dat| dat.encode()).expect("what was written is read");
        assert!(again == encoded, "written, read and written, table.dat differs");
    }
    Ok(())
}

/// The first byte of the input selects the byte order.
fn record(bytes: &[u8]) -> Result<()> {
    let Some((order, bytes)) = bytes.split_first() else { return Ok(()) };
    let order = if order % 2 == 0 { ByteOrder::Big } else { ByteOrder::Little };
    let record = Decoder::new(&bytes, 0, order, "record")?.root_record()?;
    let mut e = Encoder::new(order);
    if e.root_record(&record).is_ok() {
        let encoded = e.into_bytes();
        let again = Decoder::new(&encoded, 0, order, "record")?.root_record().expect("what was written is read");
        // text, because a NaN differs from itself
        assert!(format!("{again:?}") == format!("{record:?}"), "written and read, a record differs");
    }
    Ok(())
}

/// Keywords of a table, encoded.
fn record_seeds(files: &[File]) -> Vec<Vec<u8>> {
    let dats = named(files, "table.dat");
    let dats = dats.iter().filter_map(|bytes| TableDat::decode(bytes).ok());
    let seed = |dat: TableDat| {
        let Body::Plain(plain) = dat.body else { return Vec::new() };
        let records = [plain.0.keywords.clone(), plain.0.private_keywords.clone()];
        let encode = |record| {
            let mut e = Encoder::new(ByteOrder::Big);
            e.root_record(record).ok()?;
            Some([vec![0], e.into_bytes()].concat())
        };
        records.iter().filter_map(encode).collect()
    };
    dats.flat_map(seed).collect()
}

fn lock(bytes: &[u8]) -> Result<()> {
    // any text is a table.info
    let info = TableInfo::decode(bytes);
    assert!(TableInfo::decode(&info.encode()) == TableInfo::decode(&TableInfo::decode(&info.encode()).encode()));
    if let Some(sync) = Sync::read(&bytes)? {
        let again = Sync::read(&sync.encode_file())?.expect("what was written is read");
        assert_eq!((again.rows, again.modify), (sync.rows, sync.modify));
    }
    Ok(())
}

/// Most rows that are read of a column: a table may claim 2^36 in a few bytes.
const ROWS: u64 = 300;
/// Largest cell, in elements, that is read whole.
const CELL_ELEMENTS: u64 = 1 << 16;

/// The input is the files of a table, as [`pack`] makes them.
fn table(bytes: &[u8]) -> Result<()> {
    let table = Table::in_container(in_memory(&unpack(bytes)))?;
    let mut result = Ok(());
    for (index, column) in table.columns().iter().enumerate() {
        let read = table.cells(index).and_then(|cells| read_column(cells, table.rows(), column.spec().data_type));
        result = result.and(read);
    }
    result
}

/// Reads the first and the last rows.
pub(super) fn read_column(cells: &dyn crate::stman::ColumnCells, rows: u64, data_type: DataType) -> Result<()> {
    let last = rows.saturating_sub(3).max(ROWS)..rows;
    let mut values = Values::new(data_type);
    for row in (0..rows.min(ROWS)).chain(last) {
        let Some(shape) = cells.cell_shape(row)? else {
            let error = cells.read_cell(row, None, &mut values).expect_err("an undefined cell has no elements");
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            continue;
        };
        if shape.elements()? <= CELL_ELEMENTS {
            values.clear();
            cells.read_cell(row, None, &mut values)?;
            assert_eq!(Some(values.len() as u64), shape.elements().ok(), "elements of a cell of shape {shape}");
        }
    }
    Ok(())
}

fn multifile(bytes: &[u8]) -> Result<()> {
    let inside = Memory::new([("table.mf", bytes.to_vec())]);
    let container = MultiFile::open(&inside, "table.mf")?;
    for name in container.names()?.iter().chain(&container.nested()?) {
        read_all(&*container.open(name)?)?;
        let layout = container.layout(name)?;
        assert!(layout.blocks * container.describe().block_bytes.unwrap_or(0) >= container.open(name)?.len()?);
    }
    // a container that opens for writing can be written
    let changed = MultiFileMut::edit(&inside, "table.mf")?;
    changed.create("new")?.write_at(5, &[1; 500])?;
    changed.commit()?;
    assert_eq!(MultiFile::open(&inside, "table.mf")?.open("new")?.len()?, 505);
    Ok(())
}

/// Streams, and those that are key-value records.
fn sion(bytes: &[u8]) -> Result<()> {
    let inside = Memory::new([("a.sion", bytes.to_vec())]);
    let container = match (SION.open)(&inside, "a.sion") {
        Ok(container) => container,
        Err(error) => SION.salvage.map_or(Err(error), |salvage| Ok(salvage(&inside, "a.sion")?.0))?,
    };
    container.properties()?;
    for name in container.names()? {
        let file = container.open(&name)?;
        assert!(container.layout(&name)?.stored_bytes >= file.len()?);
        container.file_properties(&name)?;
        read_all(&*file)?;
        if let Ok(keys) = container.enter(&format!("{name}.keys")) {
            keys.names()?.iter().try_for_each(|key| read_all(&*keys.open(key)?).map(drop))?;
        }
    }
    Ok(())
}

/// SION files with the files of each table.
fn sion_seeds(tables: &[Vec<File>]) -> Vec<Vec<u8>> {
    of_each(tables, |files| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let announced = Announced {
            files: files
                .iter()
                .map(|(name, bytes)| AnnouncedFile {
                    name: name.clone(),
                    len: bytes.len() as u64,
                    ..AnnouncedFile::default()
                })
                .collect(),
            ..Announced::default()
        };
        let options = FormatOptions {
            block_bytes: 512,
            checksums: false,
            compression: None,
            archive: true,
            hash: HashKind::Blake3,
            appendable: false,
        };
        let path = folder.path().join("a.sion");
        let container = SION.create_for(&path, &announced, &options).expect("a SION file of a table");
        for (name, bytes) in files {
            container.create(name).and_then(|file| file.write_at(0, bytes)).expect("a stream is written");
        }
        container.commit().expect("a SION file is finished");
        vec![std::fs::read(path).expect("it was written")]
    })
}

/// The input is an archive and the data file of its store.
fn vt(bytes: &[u8]) -> Result<()> {
    let mut files = unpack(bytes).into_iter().map(|(_, bytes)| bytes);
    let inside = Memory::new([("a.vt", files.next().unwrap_or_default())]);
    let data = inside.create_nested("store")?.create_nested("data")?;
    data.create("x.vtd")?.write_at(0, &files.next().unwrap_or_default())?;
    read_tree(&*(VT.open)(&inside, "a.vt")?)
}

/// Reads all files; of very many only the first and the last bytes.
fn read_tree(container: &dyn Container) -> Result<()> {
    container.properties()?;
    container.left_out()?;
    for name in container.names()? {
        let file = container.open(&name)?;
        container.file_properties(&name)?;
        let len = file.len()?;
        let mut piece = vec![0; len.min(1 << 16) as usize];
        file.read_at(0, &mut piece)?;
        file.read_at(len - piece.len() as u64, &mut piece)?;
    }
    container.nested()?.iter().try_for_each(|name| read_tree(&*container.enter(name)?))
}

fn vt_seeds(tables: &[Vec<File>]) -> Vec<Vec<u8>> {
    of_each(tables, |files| {
        let [archive, data] = vt_archive_of(files);
        vec![pack(&[("a.vt".to_owned(), archive), ("x.vtd".to_owned(), data)])]
    })
}

fn seal(bytes: &[u8]) -> Result<()> {
    for damage in (MULTI_HDF5.damage)(&Memory::new([("a.mfh5", bytes.to_vec())]), "a.mfh5")? {
        assert!(damage.bytes.start < damage.bytes.end && damage.bytes.end <= bytes.len() as u64, "{damage:?}");
    }
    Ok(())
}

/// Sealed archives with one file.
fn seal_seeds(tables: &[Vec<File>]) -> Vec<Vec<u8>> {
    let options = FormatOptions {
        block_bytes: 64,
        checksums: true,
        compression: None,
        archive: true,
        hash: HashKind::Blake3,
        appendable: false,
    };
    let make = |bytes: &Vec<u8>| -> Result<Vec<u8>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.mfh5");
        let container = MultiHdf5Mut::create(&path, &options)?;
        container.create("table.dat")?.write_at(0, bytes)?;
        container.commit()?;
        drop(container);
        Ok(std::fs::read(path)?)
    };
    let files = of_each(tables, |files| named(files, "table.dat"));
    files.iter().step_by(files.len() / 5 + 1).filter_map(|bytes| make(bytes).ok()).collect()
}

/// Documents of a table and its columns.
fn document_seeds(files: &[File]) -> Vec<Vec<u8>> {
    let documents = Table::in_container(in_memory(files)).and_then(|table| native::documents_of(&table));
    documents.unwrap_or_default().into_iter().map(String::into_bytes).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ctds_hdf5_testing::proptest::sample::select;
    use ctds_hdf5_testing::{Watch, mutations, peak_memory_mib, property, testdata};

    use super::*;

    /// Tries `changes` damaged inputs, made of `least` seeds at least.
    fn check(name: &str, least: usize, changes: u32) {
        let target = target(name);
        let seeds = target.seeds(&testdata());
        assert!(seeds.len() >= least, "{name}: {} seeds", seeds.len());
        let watch = Watch::new(Duration::from_secs(10));
        let before = peak_memory_mib();
        property(changes, (select(seeds), mutations(4)), |(mut bytes, mutations)| {
            let what: Vec<String> = mutations.iter().map(|mutation| mutation.apply(&mut bytes)).collect();
            watch.over(format!("{name}: {what:?}"), || target.run(&bytes));
        });
        let grown = peak_memory_mib() - before;
        assert!(grown < 1024, "{name}: {grown} MiB more");
    }

    /// Each target is tried, and has a file in fuzz/.
    macro_rules! targets {
        ($($name:ident: $least:literal seeds, $changes:literal changes;)*) => {
            $(#[test]
            fn $name() {
                check(stringify!($name), $least, $changes);
            })*

            #[test]
            fn all_targets_are_tried() {
                let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
                assert_eq!(names, [$(stringify!($name)),*]);
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/fuzz_targets");
                let mut files: Vec<String> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
                files.sort();
                let mut expected: Vec<_> = names.iter().map(|name| format!("{name}.rs")).collect();
                expected.sort();
                assert_eq!(files, expected);
            }
        };
    }

    targets! {
        table_dat: 150 seeds, 3000 changes;
        record: 20 seeds, 3000 changes;
        lock: 20 seeds, 3000 changes;
        table: 150 seeds, 3000 changes;
        manager: 200 seeds, 5000 changes;
        dysco: 6 seeds, 2000 changes;
        sisco: 1 seeds, 2000 changes;
        multifile: 3 seeds, 3000 changes;
        sion: 20 seeds, 3000 changes;
        blz: 13 seeds, 5000 changes;
        vt: 20 seeds, 3000 changes;
        seal: 3 seeds, 2000 changes;
        native_file: 4 seeds, 600 changes;
        document: 200 seeds, 3000 changes;
    }

    #[test]
    #[ignore = "makes fuzz/corpus, for scripts/fuzz"]
    fn write_seeds() {
        for target in TARGETS {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target.name);
            std::fs::create_dir_all(&folder).unwrap();
            for (number, seed) in target.seeds(&testdata()).iter().enumerate() {
                std::fs::write(folder.join(format!("seed-{number:03}")), seed).unwrap();
            }
        }
    }

    #[test]
    fn files_are_packed_and_unpacked() {
        let files = [("a".to_owned(), vec![1, 2, 3]), ("bc".to_owned(), vec![]), (String::new(), vec![9; 300])];
        assert_eq!(unpack(&pack(&files)), files);
        assert_eq!(unpack(&pack(&files)[..7]), [("a".to_owned(), vec![1])]);
        assert!(unpack(&[]).is_empty());
    }
}
