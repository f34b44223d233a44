//! Conversion around damage on every storage manager: with a file lost, and with flipped bytes.
//!
//! The judge is the undamaged table. After a conversion around damage each of its columns is either
//! equal, by its CTFP-1 digest, or named with a reason; of a column of which rows are named, the
//! other rows are equal. A flipped byte may change values without any contradiction: such columns
//! are counted, must belong to the damaged file, and do not occur in a container with checksums.

mod generated;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ctds_hdf5::convert::{ColumnDigest, Damage, Digest, DigestPolicy, Source, SourceTable, ToHdf5, ToTable};
use ctds_hdf5::pack::Pack;
use ctds_hdf5::value::{BString, Complex32, Complex64, DataType, Record};
use ctds_hdf5::{ColumnKind, Compression, ErrorKind, Table, supported_managers};
use tempfile::TempDir;

use ctds_hdf5_testing::{copy_tree, tables_below, testdata};

/// Tables that are not used: of 2^32 rows, with managers that contradict each other, and with
/// strings that have no CTFP-1 digest.
const UNSUITABLE: [&str; 3] = ["rows64", "removed_rows_and_columns", "odd_strings"];

/// The manager of which no table is known, and which this library does not write.
const WITHOUT_TABLE: [&str; 1] = ["ForwardColumnIndexedRowEngine"];

/// Managers that compute their values from other columns.
const COMPUTED: [&str; 14] = [
    "ForwardColumnEngine",
    "MappedArrayEngine",
    "CompressFloat",
    "CompressComplex",
    "CompressComplexSD",
    "BitFlagsEngine",
    "VirtualTaQLColumn",
    "ScaledArrayEngine",
    "ScaledComplexData",
    "UvwStMan",
    "StokesIStMan",
    "SiscoStMan",
    "DyscoStMan",
    "AntennaPairStMan",
];

/// A column: the table, as `Damage::table`, and the name.
type Name = (String, String);

/// A manager's type without template arguments.
fn base(type_name: &[u8]) -> String {
    let name = String::from_utf8_lossy(type_name);
    name.split('<').next().unwrap().trim().to_owned()
}

/// The undamaged table.
struct Original {
    path: PathBuf,
    /// The digest of each column.
    columns: BTreeMap<Name, String>,
    /// The type of the manager of each column of the main table.
    managers: BTreeMap<String, String>,
    /// The columns whose cells lie in a file of arrays, if their manager has one.
    with_arrays: BTreeSet<String>,
    /// The type of the manager of each sequence number.
    sequences: BTreeMap<u32, String>,
}

impl Original {
    fn open(path: &Path) -> Self {
        let table = Table::open(path).unwrap();
        let managers = table.columns().iter().map(|info| (info.desc.name.to_string(), base(&info.manager)));
        let sequences = table.managers().map(|manager| (manager.sequence, base(manager.type_name)));
        let (managers, sequences) = (managers.collect(), sequences.collect());
        let indirect =
            table.columns().iter().filter(|info| info.desc.kind == ColumnKind::Array && !info.desc.is_direct());
        let with_arrays = indirect.map(|info| info.desc.name.to_string()).collect();
        Original { path: path.to_owned(), columns: digests(path), managers, with_arrays, sequences }
    }

    /// Whether damage in a file of the main table may show in a column.
    fn may_affect(&self, file: &str, (table, column): &Name) -> bool {
        let digits: String = file.trim_start_matches("table.f").chars().take_while(char::is_ascii_digit).collect();
        let manager = &self.managers[column];
        let owner = &self.sequences[&digits.parse::<u32>().unwrap()];
        // scalars and direct arrays do not lie in the file of arrays
        let is_in_file = !file.ends_with('i') || self.with_arrays.contains(column);
        table == "." && (manager == owner && is_in_file || COMPUTED.contains(&manager.as_str()))
    }
}

/// The digest of each column that has one.
fn digests(path: &Path) -> BTreeMap<Name, String> {
    let tables = Digest::new(path).run().unwrap();
    let tables = tables.into_iter().filter_map(|(name, table)| Some((name, table.ok()?)));
    let columns = tables.flat_map(|(table, found)| {
        let of_table = move |column: ColumnDigest| Some(((table.clone(), column.name), column.hash.ok()?.to_string()));
        found.columns.into_iter().filter_map(of_table)
    });
    columns.collect()
}

/// The columns that datasets hold.
fn present(native: &Source) -> BTreeSet<Name> {
    let of_table = |table: &SourceTable| {
        let columns = table.columns().unwrap().iter().enumerate();
        let columns = columns.filter(|(index, _)| !table.storage(*index).unwrap().is_empty());
        columns.map(|(_, info)| (table.name.clone(), info.desc.name.to_string())).collect::<Vec<_>>()
    };
    native.tables().iter().flat_map(of_table).collect()
}

/// Outcomes of conversions around damage.
#[derive(Debug, Default)]
struct Count {
    conversions: usize,
    equal: usize,
    /// Columns, or their tables, that are named and left out.
    named: usize,
    /// Columns of which rows are named.
    in_part: usize,
    /// Columns with other values that nothing contradicts.
    unnoticed: usize,
    /// Sources that could not be opened at all.
    refused: usize,
    /// The types of the managers of columns that were named.
    managers: BTreeSet<String>,
}

/// A table that was converted around its damage, into a native file and from there into a table.
struct Salvaged {
    damage: Vec<Damage>,
    /// Columns that the plan leaves out, and those that datasets hold.
    missing: BTreeSet<Name>,
    present: BTreeSet<Name>,
    digests: BTreeMap<Name, String>,
    /// Exists if rows of a column are damaged.
    table: PathBuf,
    _folder: TempDir,
}

/// Converts the table at `path`; plan, file and the way back name the same damage.
#[track_caller]
fn salvage(what: &str, path: &Path) -> Salvaged {
    let folder: TempDir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (native, table) = (folder.path().join("native.h5"), folder.path().join("table"));
    let convert =
        ToHdf5::new(path).salvage(true).compression(Compression::NONE).digest(DigestPolicy::Always).threads(1);
    let plan = convert.plan().unwrap_or_else(|error| panic!("{what}: {error}"));
    let damage = plan.write(&native).unwrap_or_else(|error| panic!("{what}: {error}")).damage;
    assert_eq!(plan.source().damage(), damage, "{what}: what the plan says");
    assert!(damage.iter().all(|damage| !damage.reason.is_empty()), "{what}: {damage:?}");
    let left_out = plan.tables().iter().flat_map(|table| {
        table.missing.iter().map(|column| (table.name.clone(), column.name.clone())).collect::<Vec<_>>()
    });
    let missing = left_out.collect();

    let salvaged = Source::open(&native).unwrap();
    assert_eq!(salvaged.damage(), damage, "{what}: what the file says of itself");
    if damage.iter().any(|damage| damage.rows.is_some()) {
        let summary = ToTable::new(&native).threads(1).write(&table).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(summary.damage, damage, "{what}: what the way back says");
    }
    Salvaged { damage, missing, present: present(&salvaged), digests: digests(&native), table, _folder: folder }
}

/// Converts the table at `path` around its damage, and compares the result with the undamaged
/// table. `may_affect` says which columns may be named or have other values.
#[track_caller]
fn check(
    what: &str,
    original: &Original,
    path: &Path,
    may_affect: &dyn Fn(&Name) -> bool,
    count: &mut Count,
) -> Vec<Damage> {
    let salvaged = salvage(what, path);
    let Salvaged { damage, missing, present, .. } = &salvaged;
    count.conversions += 1;
    for (name, digest) in &original.columns {
        let place = format!("{what}: {name:?}");
        let of_column =
            |damage: &&Damage| damage.table == name.0 && damage.column.as_ref().is_none_or(|column| *column == name.1);
        let of_column: Vec<&Damage> = damage.iter().filter(of_column).collect();
        let is_named = !of_column.is_empty() || missing.contains(name);
        assert!(!is_named || may_affect(name), "{place} is intact, but named: {of_column:?}");
        if !is_named && salvaged.digests.get(name) == Some(digest) {
            count.equal += 1;
            continue;
        }
        if let Some(manager) = original.managers.get(&name.1).filter(|_| is_named && name.0 == ".") {
            count.managers.insert(manager.clone());
        }
        if of_column.iter().any(|damage| damage.rows.is_some()) {
            assert_eq!(name.0, ".", "{place}");
            let damaged: Vec<u64> = of_column.iter().flat_map(|damage| damage.rows.clone().unwrap()).collect();
            let differing = differing_rows(&original.path, &salvaged.table, &name.1, &damaged);
            assert!(differing == 0 || what.contains("byte"), "{place}: {differing} rows differ, but are not named");
            count.in_part += 1;
            count.unnoticed += usize::from(differing > 0);
        } else if is_named {
            assert!(!present.contains(name), "{place} is named, but not left out");
            count.named += 1;
        } else {
            assert!(present.contains(name), "{place} is left out, but not named");
            assert!(may_affect(name), "{place} is intact, but has other values");
            count.unnoticed += 1;
        }
    }
    salvaged.damage
}

/// The number of rows of a column of the main table that differ, apart from `damaged` ones.
fn differing_rows(left: &Path, right: &Path, column: &str, damaged: &[u64]) -> usize {
    let (left, right) = (Table::open(left).unwrap(), Table::open(right).unwrap());
    let rows = (0..left.rows()).filter(|row| !damaged.contains(row));
    rows.filter(|&row| cell(&left, column, row) != cell(&right, column, row)).count()
}

/// The value of a cell, with every bit of it.
fn cell(table: &Table, name: &str, row: u64) -> String {
    let column = table.column(name).unwrap();
    let Some(shape) = column.cell_shape(row).unwrap() else { return "undefined".into() };
    macro_rules! cell {
        ($($variant:ident: $element:ty),*) => {
            match column.info().data_type() {
                $(DataType::$variant => {
                    let elements: Vec<$element> = column.cell(row).unwrap().into_iter().collect();
                    let values = <$element as ctds_hdf5::value::Element>::values(elements);
                    format!("{shape} {values:?}")
                })*
            }
        };
    }
    cell!(
        Bool: bool, UChar: u8, Short: i16, UShort: u16, Int: i32, UInt: u32, Int64: i64, Float: f32, Double: f64,
        Complex: Complex32, DComplex: Complex64, String: BString, Record: Record
    )
}

/// A copy of a table with links to the tables that lie beside it.
fn copy(table: &Path) -> (TempDir, PathBuf) {
    let folder: TempDir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = folder.path().join(table.file_name().unwrap());
    for sibling in fs::read_dir(table.parent().unwrap()).unwrap().map(|sibling| sibling.unwrap()) {
        let target = folder.path().join(sibling.file_name());
        match sibling.path() == table {
            true => copy_tree(table, &target),
            false => std::os::unix::fs::symlink(sibling.path(), target).unwrap(),
        }
    }
    (folder, path)
}

/// The two smallest tables, of different cases, for each manager, by the manager's type.
fn tables_by_manager() -> BTreeMap<String, Vec<PathBuf>> {
    let root = testdata();
    let mut found: BTreeMap<String, Vec<(u64, PathBuf)>> = BTreeMap::new();
    for path in tables_below(&root).into_iter().chain(generated::tables()) {
        let case = path.strip_prefix(&root).ok().and_then(|path| path.iter().next()?.to_str()).unwrap_or_default();
        let is_main = !path.parent().unwrap().join("table.dat").exists();
        let Ok(table) = Table::open(&path) else { continue };
        let is_plain = table.storage().is_none_or(|storage| storage.block_bytes.is_none());
        if !is_main || !is_plain || UNSUITABLE.contains(&case) || table.rows() < 2 {
            continue;
        }
        let files = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
        let bytes = files.filter(|file| file.is_file()).map(|file| file.len()).sum();
        let managers: BTreeSet<String> = table.managers().map(|manager| base(manager.type_name)).collect();
        for manager in managers {
            found.entry(manager).or_default().push((bytes, path.clone()));
        }
    }
    let smallest = |mut tables: Vec<(u64, PathBuf)>| {
        tables.sort();
        let mut cases = BTreeSet::new();
        tables.retain(|(_, path)| cases.insert(path.parent().unwrap().to_owned()));
        tables.into_iter().take(2).map(|(_, path)| path).collect()
    };
    found.into_iter().map(|(manager, tables)| (manager, smallest(tables))).collect()
}

/// The files of the managers of a table.
fn manager_files(table: &Path) -> Vec<String> {
    let names = fs::read_dir(table).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_of_manager =
        |name: &String| name.strip_prefix("table.f").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let mut names: Vec<String> = names.filter(is_of_manager).collect();
    names.sort();
    names
}

#[test]
fn tables_for_every_manager() {
    let known = tables_by_manager();
    let missing: BTreeSet<&str> = supported_managers().filter(|name| !known.contains_key(*name)).collect();
    assert_eq!(missing, WITHOUT_TABLE.into(), "managers without a table, which no test here covers");
}

#[test]
fn lost_files() {
    let mut count = Count::default();
    let tables: BTreeSet<PathBuf> = tables_by_manager().into_values().flatten().collect();
    for table in &tables {
        let original = Original::open(table);
        for file in manager_files(table) {
            let (_folder, path) = copy(table);
            fs::remove_file(path.join(&file)).unwrap();
            let what = format!("{} without {file}", table.display());
            let before = (count.named, count.in_part);
            let damage = check(&what, &original, &path, &|name| original.may_affect(&file, name), &mut count);
            assert_eq!(count.unnoticed, 0, "{what}: values that are not those of the table");
            assert!(before != (count.named, count.in_part) || is_spare(table, &file), "{what}: nothing is named");
            let names_file = |damage: &Damage| damage.reason.contains("table.f");
            assert!(damage.iter().all(names_file), "{what}: {damage:?}");
        }
    }
    println!("lost files: {count:?}");
    // MemoryStMan has no files, and what a ForwardColumnEngine reads lies in another table
    let others = ["MemoryStMan", "ForwardColumnEngine"];
    let all: BTreeSet<String> =
        tables_by_manager().into_keys().filter(|name| !others.contains(&name.as_str())).collect();
    assert_eq!(count.managers, all, "managers of which a column was named");
}

#[test]
fn lost_files_of_another_table() {
    let mut count = Count::default();
    let original = Original::open(&testdata().join("forward_columns/fwd.tab"));
    let folder = tempfile::tempdir().unwrap();
    for table in ["fwd.tab", "orig.tab"] {
        copy_tree(&testdata().join("forward_columns").join(table), &folder.path().join(table));
    }
    for file in manager_files(&folder.path().join("orig.tab")) {
        fs::remove_file(folder.path().join("orig.tab").join(&file)).unwrap();
    }
    let is_forwarded = |(_, column): &Name| original.managers[column] == "ForwardColumnEngine";
    let damage = check("forwarded", &original, &folder.path().join("fwd.tab"), &is_forwarded, &mut count);
    assert!(damage.iter().all(|damage| damage.reason.contains("orig.tab")), "{damage:?}");
    assert!(count.named > 0 && count.equal > 0 && count.unnoticed == 0, "{count:?}");
    assert_eq!(count.named, original.managers.values().filter(|manager| *manager == "ForwardColumnEngine").count());
}

/// A file without which nothing may be missing: the shapes of SiscoStMan, where all cells have the
/// same, and the tiles of a column without defined cells.
fn is_spare(table: &Path, file: &str) -> bool {
    file.ends_with("-shapes") || fs::metadata(table.join(file)).unwrap().len() == 0
}

#[test]
fn flipped_bytes() {
    let mut count = Count::default();
    let tables: BTreeSet<PathBuf> = tables_by_manager().into_values().map(|mut tables| tables.remove(0)).collect();
    for table in &tables {
        let original = Original::open(table);
        for file in manager_files(table) {
            let bytes = fs::read(table.join(&file)).unwrap();
            if bytes.is_empty() {
                continue;
            }
            let (_folder, path) = copy(table);
            // in the header, in the middle, and at the end, where indices are
            let places = [5, 40, bytes.len() / 3, bytes.len() / 2 + 1, bytes.len().saturating_sub(30)];
            for at in places.into_iter().filter(|&at| at < bytes.len()).collect::<BTreeSet<_>>() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0xff;
                fs::write(path.join(&file), damaged).unwrap();
                let what = format!("{} with byte {at} of {file} flipped", table.display());
                check(&what, &original, &path, &|name| original.may_affect(&file, name), &mut count);
            }
        }
    }
    println!("flipped bytes: {count:?}");
    assert!(count.conversions > 100 && count.named > 50 && count.equal > 500, "{count:?}");
    assert!(count.in_part > 5, "rows of columns: {count:?}");
    // plain files have no checksums
    assert!(count.unnoticed > 0, "{count:?}");
}

/// With checksums no changed value goes unnoticed.
#[test]
fn damaged_blocks_of_a_multifile() {
    let mut count = Count::default();
    for name in [
        "dtypes_all_managers/StandardStMan_little.tab",
        "r7_2/t.tab",
        "r7_21/t.tab",
        "strings_boundaries/IncrementalStMan_128.tab",
    ] {
        let original = Original::open(&testdata().join(name));
        let folder = tempfile::tempdir().unwrap();
        let packed = folder.path().join("packed.tab");
        Pack::new(&original.path).block_bytes(512).checksums(true).write(&packed).unwrap();
        let container = packed.join("table.mf");
        let bytes = fs::read(&container).unwrap();
        let blocks = bytes.len() / 512;
        for block in (0..blocks).step_by(3) {
            let mut damaged = bytes.clone();
            damaged[block * 512 + 17 * (block % 30)] ^= 0x10;
            fs::write(&container, damaged).unwrap();
            // the index of the container: nothing in it can be found then
            if Source::open(&packed).is_err() {
                count.refused += 1;
                continue;
            }
            let what = format!("{name}: block {block} of {blocks}");
            check(&what, &original, &packed, &|name| name.0 == ".", &mut count);
            assert_eq!(count.unnoticed, 0, "{what}: values that are not those of the table");
        }
    }
    println!("damaged blocks: {count:?}");
    assert!(count.conversions > 40 && count.named > 0 && count.in_part > 0 && count.equal > 100, "{count:?}");
    assert!(count.refused < count.conversions / 4, "{count:?}");
}

#[test]
fn damaged_subtables() {
    let table = testdata().join("demo/demo.ms");
    let original = Original::open(&table);
    let in_subtable = |subtable: &'static str| move |(table, _): &Name| table == subtable;

    // the arrays of a subtable: its other columns are intact
    let mut count = Count::default();
    let (_folder, path) = copy(&table);
    fs::remove_file(path.join("FEED/table.f0i")).unwrap();
    let damage = check("FEED without table.f0i", &original, &path, &in_subtable("FEED"), &mut count);
    let columns: BTreeSet<&str> = damage.iter().map(|damage| damage.column.as_deref().unwrap()).collect();
    let arrays = ["BEAM_OFFSET", "POLARIZATION_TYPE", "POL_RESPONSE", "RECEPTOR_ANGLE"];
    assert!(columns.is_subset(&arrays.into()) && columns.len() >= 3, "{columns:?}");
    assert!(damage.iter().all(|damage| damage.table == "FEED" && damage.rows.is_none()), "{damage:?}");
    assert_eq!(count.named, columns.len());

    // its description
    let mut count = Count::default();
    let (_folder, path) = copy(&table);
    fs::write(path.join("FEED/table.dat"), b"not a table").unwrap();
    let damage = check("FEED without description", &original, &path, &in_subtable("FEED"), &mut count);
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert_eq!((damage[0].table.as_str(), &damage[0].column), ("FEED", &None));
    assert!(damage[0].to_string().starts_with("subtable FEED: "), "{}", damage[0]);

    // its directory with everything in it, as in tables that are intact: absent, but not damaged
    let (_folder, path) = copy(&table);
    fs::remove_dir_all(path.join("FEED")).unwrap();
    let plan = ToHdf5::new(&path).salvage(true).plan().unwrap();
    assert!(plan.source().damage().is_empty(), "{:?}", plan.source().damage());
    assert!(plan.warnings().iter().any(|text| text.contains("FEED")), "{:?}", plan.warnings());
}

#[test]
fn restorable_files_are_not_salvaged() {
    let convert = ToHdf5::new(testdata().join("shapes/shapes.tab")).salvage(true).restorable(true);
    let error = convert.plan().err().expect("they exclude each other");
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}

/// An intact table stays as it is, without a message.
#[test]
fn intact_tables() {
    let mut count = Count::default();
    for name in ["demo/demo.ms", "dtypes_all_managers/StandardStMan_big.tab", "shapes/shapes.tab"] {
        let original = Original::open(&testdata().join(name));
        let damage = check(name, &original, &original.path, &|_| false, &mut count);
        assert!(damage.is_empty(), "{damage:?}");
    }
    assert_eq!((count.named, count.in_part, count.unnoticed), (0, 0, 0));
}
