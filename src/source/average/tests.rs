//! Tables that cannot be averaged, and cells that contradict each other.

use std::path::{Path, PathBuf};

use ndarray::ArrayD;

use super::Averaging;
use crate::convert::{Compare, ToHdf5};
use crate::error::{ErrorKind, Fails, Result};
use crate::source::{Content, Source};
use crate::value::{Element, Region, Shape, Values};
use crate::{ColumnDesc, NewTable};

/// The numbers that averaging needs.
fn ms() -> NewTable {
    let names = ["ANTENNA1", "ANTENNA2", "DATA_DESC_ID"];
    names.iter().fold(NewTable::new(), |table, name| table.column(ColumnDesc::scalar::<i32>(*name)))
}

/// Name, and the extents of its two cells, the slowest first.
type Cells<'a> = (&'a str, [&'a [usize]; 2]);

/// Two rows within a second; extents have the slowest first.
fn table(path: &Path, columns: &[Cells<'_>]) -> PathBuf {
    let desc = |name: &str| match name {
        "FLAG" => ColumnDesc::array::<bool>(name),
        "UVW" => ColumnDesc::array::<f64>(name),
        _ => ColumnDesc::array::<f32>(name),
    };
    let new = ms().column(ColumnDesc::scalar::<f64>("TIME"));
    let new = columns.iter().fold(new, |table, (name, _)| table.column(desc(name)));
    let mut table = new.create(path).unwrap();
    table.add_rows(2).unwrap();
    fn put<T: Element>(column: &mut crate::ColumnMut<'_>, row: u64, extents: &[usize]) {
        column.put_cell(row, &ArrayD::<T>::default(extents)).unwrap();
    }
    for (name, cells) in columns {
        let mut column = table.column(name).unwrap();
        for (row, extents) in (0..).zip(cells) {
            match *name {
                "FLAG" => put::<bool>(&mut column, row, extents),
                "UVW" => put::<f64>(&mut column, row, extents),
                _ => put::<f32>(&mut column, row, extents),
            }
        }
    }
    table.close().unwrap();
    path.to_owned()
}

/// Averaged over 10 s.
fn averaged(path: &Path) -> Result<Source> {
    let mut source = Source::open(path)?;
    source.average(Averaging::new().time(10.), None, 1 << 20, &())?;
    Ok(source)
}

fn read(content: &Content, column: &str, region: Option<&Region>) -> Result<()> {
    let index = content.columns().iter().position(|info| info.desc.name == column).unwrap();
    let cells = content.cells(index)?;
    let mut out = Values::new(content.columns()[index].data_type());
    cells.read_cell(0, region, &mut out)
}

#[test]
fn cells_that_contradict_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let (square, other): (&[usize], &[usize]) = (&[2, 2], &[3, 2]);
    let float = ("FLOAT_DATA", [square, square]);
    let cases: &[(&[Cells<'_>], &str, ErrorKind, &str)] = &[
        (
            &[("FLOAT_DATA", [&[4], &[4]])],
            "FLOAT_DATA",
            ErrorKind::Format,
            "the cell of row 0 has shape [4], expected [corr, chan]",
        ),
        (
            &[float, ("FLAG", [other, other])],
            "FLOAT_DATA",
            ErrorKind::Format,
            "row 0: the cell has shape [2, 2], that of FLAG [2, 3]",
        ),
        (
            &[float, ("WEIGHT_SPECTRUM", [other, other])],
            "FLOAT_DATA",
            ErrorKind::Format,
            "row 0: the cell has shape [2, 2], that of WEIGHT_SPECTRUM [2, 3]",
        ),
        (
            &[float, ("WEIGHT", [&[4], &[4]])],
            "FLOAT_DATA",
            ErrorKind::Format,
            "row 0: the cell has shape [2, 2], WEIGHT has 4 elements",
        ),
        (
            &[("FLOAT_DATA", [square, other])],
            "FLOAT_DATA",
            ErrorKind::Unsupported,
            "row 1: the cell has shape [2, 3], others of the same bin differ",
        ),
        (
            &[("UVW", [&[3], &[2]])],
            "UVW",
            ErrorKind::Unsupported,
            "row 1: the cell has shape [2], others of the same bin differ",
        ),
    ];
    for (number, &(columns, column, kind, words)) in cases.iter().enumerate() {
        let path = table(&folder.path().join(format!("{number}.tab")), columns);
        let source = averaged(&path).unwrap();
        read(source.tables()[0].content().unwrap(), column, None).fails(kind, words);
    }

    let path = table(&folder.path().join("parts.tab"), &[("UVW", [square, square])]);
    let source = averaged(&path).unwrap();
    let content = source.tables()[0].content().unwrap();
    let region = Region { start: Shape::from([0, 0]), shape: Shape::from([1, 1]) };
    read(content, "UVW", Some(&region))
        .fails(ErrorKind::Unsupported, "a part of a cell of shape [2, 2] cannot be read from averaged rows");
    let cells = content.cells(4).unwrap();
    cells.read_rows(0..1, &mut Values::Float(Vec::new())).fails(ErrorKind::Usage, "the cells are doubles");
}

#[test]
fn sources_that_are_not_averaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(&folder.path().join("a.tab"), &[("FLOAT_DATA", [&[2, 2], &[2, 2]])]);
    let average = |averaging: Averaging| Source::open(&path).unwrap().average(averaging, None, 1 << 20, &());
    average(Averaging::new()).fails(ErrorKind::Usage, "averaging needs time=SECONDS, chan=COUNT or both");
    average(Averaging::new().channels(2))
        .fails(ErrorKind::Usage, "averaging channels is for MeasurementSets: no table SPECTRAL_WINDOW");
    let mut damaged = Source::open(&path).unwrap();
    damaged.salvage(|_, _| true, &()).unwrap();
    damaged
        .average(Averaging::new().time(1.), None, 1 << 20, &())
        .fails(ErrorKind::Usage, "a damaged source is not averaged: convert it first, then average the file");
    let bare = folder.path().join("bare.tab");
    ms().column(ColumnDesc::scalar::<i32>("TIME")).create(&bare).unwrap().close().unwrap();
    averaged(&bare).fails(ErrorKind::Usage, "averaging needs a column TIME of doubles");

    let averages = folder.path().join("averages.h5");
    ToHdf5::new(&path).average(Averaging::new().time(10.)).write(&averages).unwrap();
    Compare::new(&path, &averages).run().fails(
        ErrorKind::Usage,
        "averages.h5: the rows were averaged (time=10s): averages cannot be compared with what they were made of; \
         `verify` with this file alone compares it with its digests",
    );
    Source::open(&path).unwrap().column_at(0, 9).fails(ErrorKind::NotFound, "column 9 of table 0 does not exist");
}

#[test]
fn parts_of_spectral_windows() {
    let folder = tempfile::tempdir().unwrap();
    let path = table(&folder.path().join("a.ms"), &[("FLOAT_DATA", [&[4, 2], &[4, 2]])]);
    let windows = NewTable::new().column(ColumnDesc::array::<f64>("CHAN_FREQ"));
    let mut windows = windows.create(path.join("SPECTRAL_WINDOW")).unwrap();
    windows.add_rows(1).unwrap();
    windows.column("CHAN_FREQ").unwrap().put_cell(0, &ArrayD::from_elem(vec![4], 1f64)).unwrap();
    windows.close().unwrap();
    let dat = path.join("table.dat");
    let mut bytes = std::fs::read(&dat).unwrap();
    let mut content = crate::schema::TableDat::decode(&bytes).unwrap();
    let crate::schema::Body::Plain(plain) = &mut content.body else { panic!("a plain table") };
    plain.0.keywords.set("SPECTRAL_WINDOW", crate::value::Value::Table("././SPECTRAL_WINDOW".into()));
    bytes = content.encode().unwrap();
    std::fs::write(&dat, bytes).unwrap();

    let mut source = Source::open(&path).unwrap();
    source.average(Averaging::new().channels(2), None, 1 << 20, &()).unwrap();
    let table = source.tables().iter().find(|table| table.name == "SPECTRAL_WINDOW").unwrap();
    let region = |start: u64| Region { start: Shape::from([start]), shape: Shape::from([2]) };
    read(table.content().unwrap(), "CHAN_FREQ", Some(&region(0))).unwrap();
    read(table.content().unwrap(), "CHAN_FREQ", Some(&region(1)))
        .fails(ErrorKind::Usage, "elements 1 to 3 exceed the cell, which has 2");
}
