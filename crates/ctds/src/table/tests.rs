//! Wrong calls and damaged tables, each with the error that it leads to.

use std::path::Path;
use std::sync::Arc;

use bstr::{BString, ByteSlice};
use ctds_hdf5_testing::{Copy, testdata};
use ndarray::ArrayD;

use super::{Column, ColumnInfo, ManagerSpec, NewTable, Table, TableWriter};
use crate::aipsio::Encoder;
use crate::error::{Context, ErrorKind, Fails, Result};
use crate::schema::{Body, ColumnDesc, ColumnKind, StorageOption, TableDat, with_storage};
use crate::stman::Columns;
use crate::stman::contradictory::Contradictory;
use crate::value::{ByteOrder, DataType, Region, Shape, Value, Values};

/// Scalars, arrays of fixed shape in tiles, arrays with two axes, and any arrays: 2 rows.
fn writer(directory: &Path) -> TableWriter {
    let mut pair = ColumnDesc::array::<f32>("PAIR");
    pair.ndim = 2;
    let mut text = ColumnDesc::scalar::<BString>("TEXT");
    text.max_length = 3;
    let table = NewTable::new()
        .column(ColumnDesc::scalar::<i32>("SCALAR"))
        .column(ColumnDesc::array::<f32>("FIXED").fixed_shape(Shape::from([3])))
        .column(pair)
        .column(ColumnDesc::array::<f32>("ANY"))
        .column(text)
        .bind(ManagerSpec::tiled_column("tiles", &Shape::from([3, 8])), ["FIXED"]);
    let mut table = table.create(directory.join("x.tab")).unwrap();
    table.add_rows(2).unwrap();
    table
}

#[test]
fn declarations_that_contradict_themselves() {
    let directory = tempfile::tempdir().unwrap();
    let scalar = || ColumnDesc::scalar::<i32>("A");
    let fixed = |shape: Shape| ColumnDesc::array::<f32>("A").fixed_shape(shape);
    let mut records = ColumnDesc::array::<f32>("A");
    records.data_type = DataType::Record;
    let mut axes = fixed(Shape::from([3]));
    axes.ndim = 2;
    let standard = ManagerSpec::standard;
    for (table, words) in [
        (NewTable::new().bind(standard("x"), ["B"]), "column B does not exist, but is assigned to a manager"),
        (
            NewTable::new().column(scalar()).bind(standard("x"), ["A"]).bind(standard("y"), ["A"]),
            "column A is put into two managers",
        ),
        (NewTable::new().column(records), "column A: the cells of an array cannot be records"),
        (NewTable::new().column_of_shape(fixed(Shape::from([3])), None), "column A: the shape is fixed, but not given"),
        (NewTable::new().column(fixed(Shape::scalar())), "column A: the fixed shape has no axes"),
        (NewTable::new().column(axes), "column A: the fixed shape is [3], but cells have 2 axes"),
        (NewTable::new().column(ColumnDesc::scalar::<i32>("")), "the name is empty"),
    ] {
        let path = directory.path().join("x.tab");
        table.create(&path).fails(ErrorKind::Usage, words);
        assert!(!path.exists());
    }
}

#[test]
fn writes_that_do_not_fit_the_column() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = writer(directory.path());
    table.column("ANY").unwrap().put_cell(1, &ArrayD::from_elem(vec![2], 1f32)).unwrap();
    let floats = |axes: &[usize]| ArrayD::from_elem(axes, 1f32);
    let shape = |extents: &[u64]| Shape::from(extents);
    let mut fails = |column: &str, write: &dyn Fn(&mut super::ColumnMut<'_>) -> Result<()>, words: &str| {
        let words = format!("x.tab: column {column}: {words}");
        write(&mut table.column(column).unwrap()).fails(ErrorKind::Usage, &words);
    };
    fails("ANY", &|column| column.put_rows(0, &floats(&[])), "an array without axes has no rows");
    fails(
        "ANY",
        &|column| column.put_part(1, &Region::c_order(&[0], &[2]), &floats(&[1])),
        "the array has shape [1], expected [2], the shape of the region",
    );
    fails(
        "ANY",
        &|column| column.put_values(0..2, &shape(&[2]), &Values::Float(vec![1.; 3])),
        "3 elements do not fill 2 cells of shape [2]",
    );
    fails(
        "ANY",
        &|column| column.put_part_values(1, &Region::c_order(&[0], &[1]), &Values::Float(vec![1.; 2])),
        "2 elements do not fill a region of shape [1]",
    );
    fails("SCALAR", &|column| column.put_scalars(1, vec![1, 2]), "rows 1..3 exceed the table, which has 2 rows");
    fails(
        "SCALAR",
        &|column| column.put_cell(0, &ArrayD::from_elem(vec![2], 1)),
        "a cell of shape [2], but the cells are scalars",
    );
    fails("ANY", &|column| column.put_scalar(0, 1f32), "a scalar, but the cells are arrays");
    fails("FIXED", &|column| column.put_cell(0, &floats(&[4])), "a cell of shape [4], but all have [3]");
    fails("PAIR", &|column| column.put_cell(0, &floats(&[4])), "a cell of shape [4], but all have 2 axes");
    fails("SCALAR", &|column| column.put_scalar(0, 1f32), "the elements are of type int, not float");
    fails(
        "TEXT",
        &|column| column.put_scalar(0, BString::from("abcd")),
        "a string of 4 bytes; the longest of this column has 3",
    );
    table.column("ANYY").fails(ErrorKind::NotFound, "no column ANYY; did you mean ANY?");
    table.subtable("a/b", NewTable::new()).fails(ErrorKind::Usage, "a subtable cannot be named \"a/b\"");

    let mut column = table.column("FIXED").unwrap();
    let cubes = column.hypercubes().unwrap();
    let tile = Values::Float(vec![1.; 24]);
    cubes[0].put_tile(&[0, 0], &tile).unwrap();
    cubes[0]
        .put_tile(&[0, 1], &tile)
        .fails(ErrorKind::Usage, "tile [0, 1] does not exist, the hypercube has [1, 1] tiles");
    cubes[0]
        .put_tile(&[0, 0], &Values::Double(vec![1.; 23]))
        .fails(ErrorKind::Usage, "23 elements of type double do not fill a tile, which has 24 of float");
}

#[test]
fn reads_that_do_not_fit_the_column() {
    let directory = tempfile::tempdir().unwrap();
    let mut table = writer(directory.path());
    let mut column = table.column("PAIR").unwrap();
    column.put_cell(0, &ArrayD::from_elem(vec![2, 2], 1f32)).unwrap();
    column.put_cell(1, &ArrayD::from_elem(vec![2, 3], 1f32)).unwrap();
    // without elements, and yet more than an array in memory can have
    table.column("ANY").unwrap().set_shape(1, &Shape::from([0, 1 << 30, 1 << 30, 1 << 30])).unwrap();
    table.close().unwrap();
    let table = Table::open(directory.path().join("x.tab")).unwrap();
    let column = |name: &str| table.column(name).unwrap();
    table.column("SCALARS").fails(ErrorKind::NotFound, "x.tab: no column SCALARS; did you mean SCALAR?");
    column("ANY").scalar::<f32>(0).fails(ErrorKind::Usage, "column ANY: the cells are arrays, not scalars");
    column("ANY").cell::<f32>(0).fails(ErrorKind::NotFound, "column ANY: the cell in row 0 is undefined");
    column("ANY").rows::<f32>(0..1).fails(ErrorKind::NotFound, "column ANY: the cell in row 0 is undefined");
    column("ANY").cell::<f32>(1).fails(
        ErrorKind::Limit,
        "column ANY: a cell of shape [0, 1073741824, 1073741824, 1073741824] is too large for an array in memory",
    );
    column("PAIR")
        .rows::<f32>(0..2)
        .fails(ErrorKind::Usage, "column PAIR: the cell in row 1 has shape [3, 2], others differ");
    column("SCALAR")
        .rows::<f32>(0..2)
        .fails(ErrorKind::Usage, "column SCALAR: the elements are of type int, not float");
    column("SCALAR")
        .cell_shape(2)
        .fails(ErrorKind::Usage, "column SCALAR: rows 2..3 exceed the table, which has 2 rows");
}

#[test]
fn cells_that_contradict_their_shapes() {
    let desc = ColumnDesc::array::<f32>("A");
    let info = ColumnInfo {
        desc,
        shape: None,
        manager: BString::default(),
        manager_name: BString::default(),
        may_be_undefined: false,
    };
    let column = |values| Column::opened(&info, 4, Context::table("x.tab"), Arc::new(Contradictory(values)));
    column(Values::Float(vec![1.; 3]))
        .rows::<f32>(0..4)
        .fails(ErrorKind::Format, "rows 0..4 have 3 elements, by their shapes 8");
    column(Values::Float(vec![1.; 3])).cell::<f32>(0).fails(ErrorKind::Format, "a cell of shape [2] has 3 elements");
    column(Values::Int(vec![1; 8]))
        .rows::<f32>(0..4)
        .fails(ErrorKind::Usage, "the elements are of type int, not float");
}

fn folder(name: &str) -> Copy {
    Copy::of_path(&testdata().join(name))
}

#[test]
fn views_of_other_tables_than_they_were_made_of() {
    let copy = folder("ref_tables");
    let view = || Table::open(copy.path().join("sel.ref"));
    let dat = copy.read("sel.ref/table.dat");
    copy.put("sel.ref/table.dat", dat.len() - 4, &[0xff; 4]);
    view().unwrap().column("I").unwrap().rows::<i32>(0..29).fails(
        ErrorKind::Format,
        "table.dat: the row number at byte 340 is 4294967295, but the root table has 40 rows",
    );
    // rows of the root, the order, and the rows selected are before the numbers
    copy.put("sel.ref/table.dat", dat.len() - 4 * 29 - 9, &[0, 0, 1, 0]);
    view().fails(ErrorKind::Format, "base.tab has 40 rows, but had 256 when rows were selected from it");

    let copy = folder("concat_tables");
    let view = || Table::open(copy.path().join("c.concat"));
    let first = view().unwrap().columns()[0].desc.name.clone();
    let part = copy.path().join("part2.tab");
    let replace_part = |column: ColumnDesc| {
        std::fs::remove_dir_all(&part).unwrap();
        NewTable::new().column(column).create(&part).unwrap().close().unwrap();
        view().unwrap().column(&first).unwrap().cell_shape(0).map(drop)
    };
    let gone = replace_part(ColumnDesc::scalar::<i32>("OTHER"));
    gone.fails(ErrorKind::Format, &format!("part2.tab: column {first} does not exist"));
    let other = replace_part(ColumnDesc::scalar::<BString>(first.clone()));
    other.fails(ErrorKind::Format, &format!("part2.tab: column {first} has another type than in the first table"));
    copy.edit("c.concat/table.dat", |bytes| {
        let mut e = Encoder::new(ByteOrder::Big);
        e.root("Table", 2);
        [0, 0].into_iter().for_each(|number| e.u32(number));
        e.string("ConcatTable");
        e.start("ConcatTable", 0);
        e.u32(0);
        e.block([""; 0].iter(), |e, name| e.string(name));
        e.end();
        e.end();
        *bytes = e.into_bytes();
    });
    view().fails(ErrorKind::Format, "c.concat: the concatenation has no tables");
}

/// A table with the columns A of integers and X of objects: a column of records has the same bytes
/// but for its class and code.
fn table_of_objects(path: &Path) -> Table {
    let records = ColumnDesc::new("X".into(), DataType::Record, ColumnKind::Scalar);
    let mut table = NewTable::new().column(ColumnDesc::scalar::<i32>("A")).column(records).create(path).unwrap();
    table.add_rows(2).unwrap();
    table.column("A").unwrap().put_scalars(0, vec![3, 4]).unwrap();
    table.close().unwrap();
    let (dat, class) = (path.join("table.dat"), b"ScalarRecordColumnDesc");
    let mut bytes = std::fs::read(&dat).unwrap();
    let at = bytes.find(class).unwrap();
    bytes[at..at + class.len()].copy_from_slice(b"ScalarColumnDesc<Spinr");
    // after the version, the name, the empty comment, and twice `StandardStMan`
    let code = at + class.len() + 4 + 5 + 4 + 17 + 17;
    assert_eq!(bytes[code..code + 4], 25u32.to_be_bytes());
    bytes[code + 3] = 26;
    std::fs::write(&dat, bytes).unwrap();
    Table::open(path).unwrap()
}

#[test]
fn columns_of_objects_are_named_and_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let table = table_of_objects(&folder.path().join("t.tab"));
    assert_eq!(table.column("A").unwrap().values(0..2).unwrap(), Values::Int(vec![3, 4]));
    let [known, objects] = table.columns() else { panic!("two columns") };
    assert_eq!([known, objects].map(|info| info.desc.type_name()), ["int", "other"]);
    let refusal = "objects of the C++ class Spinr are not read";
    table.column("X").unwrap().values(0..2).fails(ErrorKind::Unsupported, refusal);
    table.cells_in_part(1).fails(ErrorKind::Unsupported, refusal);
    Columns::column(&table, "X".into()).fails(ErrorKind::Unsupported, refusal);
    assert!(table.unreadable().is_none());
    let other = folder.path().join("other.tab");
    let written = NewTable::new().column(objects.desc.clone()).create(&other);
    written.fails(ErrorKind::Unsupported, "column X: objects of the C++ class Spinr are not read");
    assert!(!other.exists());
}

#[test]
fn tables_that_cannot_be_opened() {
    let copy = Copy::of("multifile/m2/t.tab");
    Table::open(copy.path().join("table.mf")).fails(
        ErrorKind::Format,
        "not a table: the container has no table.dat; if it is in a table directory, that is the table",
    );

    // a storage option whose container this crate does not read
    let copy = Copy::of("compress_engines/CompressFloat_fixed_little.tab");
    copy.edit("table.dat", |bytes| *bytes = with_storage(bytes, StorageOption::MultiHdf5, None).unwrap());
    Table::open(copy.path()).fails(ErrorKind::Unsupported, "is read by the crate ctds-hdf5: ctds_hdf5::open_table");

    // an engine whose stored column is its own
    let copy = Copy::of("compress_engines/CompressFloat_fixed_little.tab");
    copy.edit("table.dat", |bytes| {
        let mut dat = TableDat::decode(bytes).unwrap();
        let Body::Plain(plain) = &mut dat.body else { panic!("a plain table") };
        for column in &mut plain.0.columns {
            if column.keywords.string("_BaseMappedArrayEngine_Name").is_some() {
                let itself = Value::string(column.name.clone());
                column.keywords.set("_BaseMappedArrayEngine_Name", itself);
            }
        }
        *bytes = dat.encode().unwrap();
    });
    let table = Table::open(copy.path()).unwrap();
    let engine = table.columns().iter().find(|column| column.manager == "CompressFloat").unwrap();
    table
        .column(&engine.desc.name)
        .unwrap()
        .cell_shape(0)
        .fails(ErrorKind::Format, "the values of the column come from the column itself");
}

/// A table with the column A, and a column for each of `expressions`, computed from others.
fn computed(path: &Path, expressions: &[(String, String)]) -> Result<Table> {
    let mut table = NewTable::new().column(ColumnDesc::scalar::<i32>("A"));
    for (name, expression) in expressions {
        let desc = ColumnDesc::scalar::<i32>(name.as_str());
        let desc = desc.keyword("_VirtualTaQLEngine_CalcExpr", Value::string(expression.as_str()));
        table = table.column(desc).bind(ManagerSpec::new("VirtualTaQLColumn", name.as_str()), [name.as_str()]);
    }
    let mut writer = table.create(path)?;
    writer.add_rows(2)?;
    writer.column("A")?.put_scalars(0, vec![1i32, 2])?;
    writer.close()?;
    Table::open(path)
}

#[test]
fn expressions_of_expressions_end() {
    let directory = tempfile::tempdir().unwrap();
    let pair = |name: &str, expression: &str| (name.to_owned(), expression.to_owned());
    let chain = computed(&directory.path().join("chain.tab"), &[pair("V", "W * 2"), pair("W", "A + 1")]).unwrap();
    assert_eq!(chain.column("V").unwrap().scalar::<i32>(1).unwrap(), 6);

    let circle = computed(&directory.path().join("circle.tab"), &[pair("V", "W + 1"), pair("W", "V + 1")]).unwrap();
    circle.cells(1).map(|_| ()).fails(ErrorKind::Format, "the values of the column come from the column itself");

    // the reads double with each pair
    let mut pairs = vec![pair("V0", "A"), pair("W0", "A")];
    for number in 1..40 {
        let before = number - 1;
        pairs.push((format!("V{number}"), format!("V{before} + W{before}")));
        pairs.push((format!("W{number}"), format!("V{before} - W{before}")));
    }
    let crowd = computed(&directory.path().join("crowd.tab"), &pairs).unwrap();
    let last = crowd.columns().len() - 1;
    crowd.cells(last).map(|_| ()).fails(ErrorKind::Limit, "reads of other columns; the limit is 1000");
    assert!(crowd.cells(5).is_ok());
}
