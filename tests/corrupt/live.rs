//! Live files that contradict themselves, or whose writer ended in an unusual way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ctds_hdf5::ErrorKind::{self, Exists, Format, Locked, NotFound, Unsupported, Usage};
use ctds_hdf5::live::{Block, ColumnSpec, CommitPolicy, Finalize, Follow, Reader, Schema, TableSpec, Writer, repair};
use ctds_hdf5::value::{BString, Shape, Values};
use ctds_hdf5::{ColumnDesc, NewTable, Result};
use hdf5::{File, FileBuilder, Group};
use tempfile::TempDir;

use super::native::{edit_text, replace};

/// A live file of 3 rows: TIME, NAME with 8 bytes, and VAR with cells [2], none and [1, 3].
struct Live {
    folder: TempDir,
    path: PathBuf,
}

fn create(path: &Path) -> Writer {
    let main = TableSpec::new("MAIN")
        .column(ColumnDesc::scalar::<f64>("TIME"))
        .column(ColumnDesc::scalar::<BString>("NAME").max_length(8))
        .column(ColumnSpec::from(ColumnDesc::array::<i16>("VAR")).shapes([Shape::from([2]), Shape::from([1, 3])]));
    let mut writer = Schema::new().table(main).commit(CommitPolicy::manual()).create(path).unwrap();
    append(&mut writer, Block::from(&[1., 2., 3.]), Block::from(&names("a")), &var(&[Some(0), None, Some(1)])).unwrap();
    writer.commit().unwrap();
    writer
}

fn names(name: &str) -> Vec<BString> {
    vec![name.into(); 3]
}

fn var<'a>(shapes: &'a [Option<usize>]) -> Block<'a> {
    Block::from(vec![1i16; 5]).with_shapes(shapes)
}

fn append(writer: &mut Writer, times: Block<'_>, names: Block<'_>, var: &Block<'_>) -> Result<()> {
    let mut rows = writer.table("MAIN")?.batch(3);
    rows.set("TIME", times)?.set("NAME", names)?.set("VAR", var.clone())?;
    rows.append()
}

#[track_caller]
fn fails<T>(result: Result<T>, kind: ErrorKind, words: &str) {
    let Err(error) = result else { panic!("no error, expected: {words}") };
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().ends_with(words), "{error}, expected {words}");
}

impl Live {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.h5");
        create(&path).close().unwrap();
        Live { folder, path }
    }

    /// A file that is changed by `change`, which is given the groups of the table and of its
    /// documents.
    fn changed(change: impl FnOnce(&Group, &Group)) -> Self {
        let live = Self::new();
        let file = File::open_rw(&live.path).unwrap();
        change(&file.group("MAIN").unwrap(), &file.group("_ctds/MAIN").unwrap());
        file.close().unwrap();
        live
    }

    fn read(&self) -> Result<()> {
        let reader = Reader::open(&self.path)?;
        reader.table("MAIN")?.cell("VAR", 0).map(drop)
    }
}

#[test]
fn blocks_and_reads_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.h5");
    let mut writer = create(&path);
    let times = || Block::from([1., 2., 3.]);
    let (short, shapes) = (names("a"), [Some(0), None, Some(1)]);
    let mut give = |times: Block<'_>, names: &[BString], var: &Block<'_>, words: &str| {
        fails(append(&mut writer, times, Block::from(names), var), Usage, words);
    };
    let no_shapes = Block::from(vec![1i16; 5]);
    give(times().with_shapes(&shapes), &short, &var(&shapes), "all cells have the same shape, none is asked for");
    give(times(), &short, &no_shapes, "which shape each cell has is not said");
    give(times(), &short, &var(&shapes[..2]), "2 shapes were given for 3 rows, expected one for each row");
    give(
        times(),
        &short,
        &var(&[Some(0), Some(7), None]),
        "a cell has shape number 7, but only 2 are declared, from 0",
    );
    give(times(), &names("123456789"), &var(&shapes), "\"123456789\" has 9 bytes, 8 are declared");
    give(times(), &names("a\0b"), &var(&shapes), "the string \"a\\0b\" is not UTF-8 without NUL, as HDF5 needs it");
    fails(Block::try_from(&Values::Record(Vec::new())), Unsupported, "cells that are records have no fixed size");
    fails(writer.table("MAIN").unwrap().rewrite("NONE", 0, 1, [1.]), Usage, "column NONE does not exist");

    let reader = Reader::open(&path).unwrap();
    fails(reader.table("MAINS"), NotFound, "no table MAINS; did you mean MAIN?");
    let main = reader.table("MAIN").unwrap();
    fails(main.rows::<f64>("TIMES", 0..1), NotFound, "no column TIMES; did you mean TIME?");
    fails(main.rows::<f32>("TIME", 0..1), Usage, "column TIME: the elements are of type double, not float");
    fails(main.rows::<i16>("VAR", 0..1), Unsupported, "column VAR: cells of several shapes are read one by one");
}

#[test]
fn files_that_contradict_themselves() {
    let cubes = |numbers: [i32; 3]| {
        Live::changed(move |main, _| main.dataset("VAR/row_cube").unwrap().write_raw(&numbers).unwrap())
    };
    let live = cubes([0, -1, 7]);
    fails(repair(&live.path), Format, "table MAIN: a cell refers to cube7, but there are 2 hypercubes");
    let live = cubes([5, -1, 1]);
    let words = "column VAR: row 0 refers to position 0 of hypercube 5, which does not exist";
    fails(live.read(), Format, words);
    let scalar = Live::changed(|main, _| replace(main, "TIME", &[], &[1.]));
    fails(scalar.read(), Format, "the dataset has no axes");
    let ragged = Live::changed(|_, exact| {
        edit_text(exact, "column.TIME", "\"form\":\"dense\"", "\"form\":\"ragged\"");
    });
    fails(ragged.read(), Unsupported, "group /MAIN: column TIME has no form that grows");

    let resized = |steps: &[usize]| {
        Live::changed(|main, _| steps.iter().for_each(|&rows| main.dataset("TIME").unwrap().resize(rows).unwrap()))
    };
    fails(repair(&resized(&[2]).path), Format, "dataset /MAIN/TIME: the dataset has 2 rows, but 3 are committed");
    fails(repair(&resized(&[0, 3]).path), Format, "dataset /MAIN/TIME: the dataset has 0 chunks, but 3 rows need 1");
    fails(
        Writer::reopen(&resized(&[5]).path, CommitPolicy::manual()),
        Format,
        "column TIME: the dataset has 5 rows, but 3 are committed; `h5bridge repair` cuts it to them",
    );
    repair(&resized(&[5]).path).unwrap();
}

#[test]
fn writers_that_ended_in_an_unusual_way() {
    let live = Live::new();
    // a copy while the writer has it open is what a killed writer leaves, here without the end of
    // the file
    let mut writer = Writer::reopen(&live.path, CommitPolicy::manual()).unwrap();
    append(&mut writer, Block::from([4., 5., 6.]), Block::from(&names("b")), &var(&[Some(0), None, Some(1)])).unwrap();
    writer.commit().unwrap();
    let cut = live.folder.path().join("cut.h5");
    let mut bytes = fs::read(&live.path).unwrap();
    let is_past_end = (0..200).any(|_| {
        bytes.truncate(bytes.len().saturating_sub(64));
        fs::write(&cut, &bytes).unwrap();
        let text = repair(&cut).map(drop).err().map(|error| error.to_string()).unwrap_or_default();
        text.contains("ends past the end of the file, byte")
    });
    assert!(is_past_end);
    writer.close().unwrap();

    // a file that was written as any other, and is copied before it is closed
    let open = live.folder.path().join("open.h5");
    let file = FileBuilder::new().with_fapl(|access| access.libver_v110()).create(&open).unwrap();
    file.flush().unwrap();
    let copy = live.folder.path().join("copy.h5");
    fs::copy(&open, &copy).unwrap();
    drop(file);
    fails(
        repair(&copy),
        Unsupported,
        "copy.h5: the file was written without SWMR when its writer ended: nothing in it can be relied on",
    );

    // a repair that was killed, after it has closed the file and before its rows are removed
    let resized = Live::changed(|main, _| main.dataset("TIME").unwrap().resize(5).unwrap());
    let file = File::open_rw(&resized.path).unwrap();
    fs::copy(&resized.path, &copy).unwrap();
    drop(file);
    let repaired = repair(&copy).unwrap();
    assert!(repaired.was_open && (repaired.tables[0].committed, repaired.tables[0].lost) == (3, 2));
    assert!(!repair(&copy).unwrap().was_open);

    let file = fs::OpenOptions::new().read(true).write(true).open(&live.path).unwrap();
    let mut other = Command::new("sleep").arg("60").stdin(file).spawn().unwrap();
    let words = format!("live.h5: process {} has the file open for writing", other.id());
    let repaired = repair(&live.path);
    other.kill().unwrap();
    other.wait().unwrap();
    fails(repaired, Locked, &words);
}

/// A table with `rows` rows, in which each of `columns` is a column of ints.
fn table(path: &Path, rows: u64, columns: &[&str]) {
    let new = columns.iter().fold(NewTable::new(), |table, name| table.column(ColumnDesc::scalar::<i32>(*name)));
    let mut table = new.create(path).unwrap();
    table.add_rows(rows).unwrap();
    table.close().unwrap();
}

#[test]
fn tables_that_cannot_be_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (a, live) = (folder.path().join("a.tab"), folder.path().join("live.h5"));
    table(&a, 3, &["A", "B"]);
    let other = |rows: u64, columns: &[&str]| {
        fs::remove_dir_all(&a).unwrap();
        table(&a, rows, columns);
    };
    // the files of another table under the names of this one
    let overwrite = |rows: u64, columns: &[&str]| {
        let b = folder.path().join("b.tab");
        table(&b, rows, columns);
        for entry in fs::read_dir(&b).unwrap().map(|entry| entry.unwrap()) {
            fs::copy(entry.path(), a.join(entry.file_name())).unwrap();
        }
        fs::remove_dir_all(&b).unwrap();
    };
    let follow = |change: &dyn Fn(), kind: ErrorKind, words: &str| {
        let mut follow = Follow::new(&a, &live).start().unwrap();
        while follow.committed_rows()[0].1 < 3 {
            follow.step().unwrap();
        }
        change();
        // the watch may need another look
        let last = (0..100).map(|_| follow.step()).find(Result::is_err);
        fails(last.unwrap_or(Ok(Default::default())), kind, words);
        drop(follow);
        fs::remove_file(&live).unwrap();
        other(3, &["A", "B"]);
    };
    let words = "a.tab: 2 rows, but there were 3: a live file cannot lose rows";
    follow(&|| overwrite(2, &["A", "B"]), Unsupported, words);
    follow(&|| overwrite(4, &["A"]), Unsupported, "a.tab: column B was removed: a live file cannot lose columns");
    let words = "a.tab: the table was removed and made again while it was followed: begin a new live file, with \
                 --overwrite or another name";
    follow(&|| other(4, &["A", "B"]), NotFound, words);

    Follow::new(&a, &live).start().unwrap().finish().unwrap();
    other(3, &["C"]);
    let words = "live.h5: the live file is of another table: this one MAIN has no such column A";
    fails(Follow::new(&a, &live).start(), Exists, words);
    let finalize = || Finalize::new(&live).source(&a).write(folder.path().join("archive.h5")).map(drop);
    let words = "live.h5: the source has no column A in table MAIN: it was not followed";
    fails(finalize(), Usage, words);
    other(2, &["A", "B"]);
    let words = "live.h5: the source has 2 rows in table MAIN, the live file 3: it was not followed";
    fails(finalize(), Usage, words);
}
