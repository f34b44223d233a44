//! Tables for managers that python-casacore cannot write.

use std::path::PathBuf;
use std::sync::OnceLock;

use ctds_hdf5::value::{Complex32, Element, Record, Shape, Value, Values};
use ctds_hdf5::{ColumnDesc, ManagerSpec, NewTable, Result};
use ndarray::{Array1, Array2};
use tempfile::TempDir;

const ROWS: u64 = 12;

/// Their paths; the tables stay for as long as the tests run.
pub fn tables() -> Vec<PathBuf> {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        scaled(&folder).unwrap();
        cubes_by_id(&folder).unwrap();
        folder
    });
    ["scaled", "cubes_by_id"].map(|name| folder.path().join(name).join("t.tab")).into()
}

fn one<T: Element>(value: T) -> Value {
    Value::Scalar(T::values(vec![value]))
}

fn ints(values: &[i32]) -> Value {
    Value::Array(Shape::from([values.len() as u64]), Values::Int(values.to_vec()))
}

fn record<const N: usize>(fields: [(&str, Value); N]) -> Record {
    let mut record = Record::default();
    fields.into_iter().for_each(|(name, value)| record.set(name, value));
    record
}

fn path(folder: &TempDir, name: &str) -> PathBuf {
    std::fs::create_dir(folder.path().join(name)).unwrap();
    folder.path().join(name).join("t.tab")
}

/// ScaledArrayEngine and ScaledComplexData: docs/reference/formats, virtual engines.
fn scaled(folder: &TempDir) -> Result<()> {
    let scaled = ColumnDesc::array::<f64>("SCALED")
        .ndim(1)
        .keyword("_BaseMappedArrayEngine_Name", Value::string("INTEGERS"))
        .keyword("_ScaledArrayEngine_Scale", one(0.5))
        .keyword("_ScaledArrayEngine_Offset", one(3.0))
        .keyword("_ScaledArrayEngine_ScaleName", Value::string(""))
        .keyword("_ScaledArrayEngine_OffsetName", Value::string(""))
        .keyword("_ScaledArrayEngine_FixedScale", one(true))
        .keyword("_ScaledArrayEngine_FixedOffset", one(true));
    let complex = ColumnDesc::array::<Complex32>("COMPLEX")
        .ndim(1)
        .keyword("_BaseMappedArrayEngine_Name", Value::string("PARTS"))
        .keyword("_ScaledComplexData_Scale", one(Complex32::new(2.0, 10.0)))
        .keyword("_ScaledComplexData_Offset", one(Complex32::new(0.5, -1.0)))
        .keyword("_ScaledComplexData_FixedScale", one(true))
        .keyword("_ScaledComplexData_FixedOffset", one(true));
    let mut table = NewTable::new()
        .column(ColumnDesc::array::<i32>("INTEGERS").ndim(1))
        .column(ColumnDesc::array::<i16>("PARTS").ndim(2))
        .column(ColumnDesc::scalar::<i32>("OTHER"))
        .column(scaled)
        .column(complex)
        .bind(ManagerSpec::standard("Stored"), ["INTEGERS", "PARTS"])
        .bind(ManagerSpec::incremental("Other"), ["OTHER"])
        .bind(ManagerSpec::new("ScaledArrayEngine<double  ,Int     >", "SCALED"), ["SCALED"])
        .bind(ManagerSpec::new("ScaledComplexData<Complex ,Short   >", "COMPLEX"), ["COMPLEX"])
        .create(path(folder, "scaled"))?;
    table.add_rows(ROWS)?;
    for row in 0..ROWS {
        let integers = Array1::from_iter((0..5).map(|i| i * 7 + row as i32));
        table.column("INTEGERS")?.put_cell(row, &integers.into_dyn())?;
        let parts = Array2::from_shape_fn((3, 2), |(i, part)| (i * 10 + part) as i16 + row as i16);
        table.column("PARTS")?.put_cell(row, &parts.into_dyn())?;
        table.column("OTHER")?.put_scalars(row, vec![row as i32 / 5])?;
    }
    table.close()
}

/// TiledDataStMan: two hypercubes of different cells, told apart by an id.
fn cubes_by_id(folder: &TempDir) -> Result<()> {
    let cube = |cell, rows, id| {
        Value::Record(record([
            ("CubeShape", ints(&[cell, rows])),
            ("TileShape", ints(&[3, 2])),
            ("CellShape", ints(&[cell])),
            ("ID", Value::Record(record([("ID", one(id))]))),
        ]))
    };
    let mut cubes = ManagerSpec::new("TiledDataStMan", "cubes");
    cubes.parameters = record([
        ("HYPERCUBES", Value::Record(record([("*1", cube(5, 8, 50)), ("*2", cube(7, 4, 70))]))),
        (
            "ROWMAP",
            Value::Record(record([
                ("ROWS", ints(&[0, 8])),
                ("CUBES", ints(&[0, 1])),
                ("POSITIONS", ints(&[0, 0])),
                ("END", one(ROWS as i32)),
            ])),
        ),
    ]);
    let mut table = NewTable::new()
        .column(ColumnDesc::array::<f32>("D").ndim(1))
        .column(ColumnDesc::scalar::<i32>("ID"))
        .column(ColumnDesc::scalar::<i32>("OTHER"))
        .hypercolumn("cubes", 2, &["D"], &[], &["ID"])
        .bind(cubes, ["D", "ID"])
        .create(path(folder, "cubes_by_id"))?;
    table.add_rows(ROWS)?;
    for row in 0..ROWS {
        let (cell, id) = if row < 8 { (5, 50) } else { (7, 70) };
        let cells = Array1::from_iter((0..cell).map(|i| (i * 100) as f32 + row as f32));
        table.column("D")?.put_cell(row, &cells.into_dyn())?;
        table.column("ID")?.put_scalars(row, vec![id])?;
        table.column("OTHER")?.put_scalars(row, vec![row as i32])?;
    }
    table.close()
}
