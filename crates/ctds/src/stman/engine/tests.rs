//! Engines over columns in memory. Tables that casacore wrote are in testdata: compress_engines,
//! bitflags_engines, forward_columns, virtual_taql.

use crate::container::Memory;
use crate::error::{Fails, Result};
use crate::io::ByteOrder;
use crate::stman::samples::{self, Given, column};
use crate::stman::{self, ColumnSpec, Manager, OpenArgs, Storage};
use crate::value::{Complex32, DataType, Record, Region, Shape, Value, Values};

fn keywords(fields: &[(&str, Value)]) -> Record {
    let mut record = Record::default();
    for (name, value) in fields {
        record.set(*name, value.clone());
    }
    record
}

fn text(value: &str) -> Value {
    Value::string(value)
}

fn flag(value: bool) -> Value {
    Value::Scalar(Values::Bool(vec![value]))
}

fn double(value: f64) -> Value {
    Value::Scalar(Values::Double(vec![value]))
}

/// Two cells, with an undefined one between them.
fn stored(name: &str, first: (Shape, Values), last: (Shape, Values)) -> Given {
    let spec = column(name, first.1.data_type(), Storage::Indirect, None);
    Given::default().column(spec, Record::default(), vec![Some(first), None, Some(last)])
}

fn open(type_name: &str, spec: ColumnSpec, keywords: &Record, around: &Given) -> Result<Box<dyn Manager>> {
    let files = Memory::default();
    let columns = [spec];
    let args = samples::args(&files, ByteOrder::Big, around.rows, &columns, &[]);
    let args = OpenArgs { type_name: type_name.into(), column_keywords: &[keywords], table: around, ..args };
    stman::open(args.type_name, &args)
}

fn read(type_name: &str, data_type: DataType, keywords: &Record, around: &Given) -> Result<Values> {
    let spec = column("V", data_type, Storage::Indirect, None);
    let manager = open(type_name, spec, keywords, around)?;
    samples::read_both_ways(manager.column(0), around.rows, data_type)
}

fn scaled_keywords(scale: Value, offset: Value) -> Record {
    keywords(&[
        ("_BaseMappedArrayEngine_Name", text("D")),
        ("_ScaledArrayEngine_Scale", scale),
        ("_ScaledArrayEngine_Offset", offset),
        ("_ScaledArrayEngine_ScaleName", text("SC")),
        ("_ScaledArrayEngine_OffsetName", text("OF")),
        ("_ScaledArrayEngine_FixedScale", flag(true)),
        ("_ScaledArrayEngine_FixedOffset", flag(true)),
    ])
}

#[test]
fn scaled_arrays_in_the_type_of_c() {
    let cells = |values: Vec<i32>| (Shape::from([values.len() as u64]), Values::Int(values));
    let around = stored("D", cells(vec![0, (1 << 24) + 1]), cells(vec![-3]));
    let fixed = |scale, offset| scaled_keywords(double(scale), double(offset));
    // the blanks and the missing bracket are casacore's
    let float = |keywords| read("ScaledArrayEngine<float   ,Int     ", DataType::Float, &keywords, &around).unwrap();
    // an Int becomes a float before it is scaled
    assert_eq!(float(fixed(1., 0.)), Values::Float(vec![0., 16777216., -3.]));
    assert_eq!(float(fixed(2., 0.)), Values::Float(vec![0., 33554432., -6.]));
    assert_eq!(float(fixed(1., 1.)), Values::Float(vec![1., 16777216., -2.]));
    assert_eq!(float(fixed(0.5, 1.)), Values::Float(vec![1., 8388609., -0.5]));
    let double = read("ScaledArrayEngine<double  ,Int     >", DataType::Double, &fixed(1., 0.), &around).unwrap();
    assert_eq!(double, Values::Double(vec![0., 16777217., -3.]));
    let uchar = read("ScaledArrayEngine<uChar   ,Int     >", DataType::UChar, &fixed(2., 250.), &around).unwrap();
    assert_eq!(uchar, Values::UChar(vec![250, 252, 244]));
}

#[test]
fn an_offset_of_zero_is_not_added() {
    let around =
        stored("D", (Shape::from([1]), Values::Float(vec![-0.0])), (Shape::from([1]), Values::Float(vec![0.])));
    let bits = |scale: f64, offset: f64| {
        let keywords = scaled_keywords(double(scale), double(offset));
        match read("ScaledArrayEngine<double,float>", DataType::Double, &keywords, &around).unwrap() {
            Values::Double(values) => values.into_iter().map(f64::to_bits).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    let minus_zero = (-0.0f64).to_bits();
    assert_eq!(bits(1., 0.), [minus_zero, 0]);
    assert_eq!(bits(-1., 0.), [0, minus_zero]);
}

#[test]
fn scale_and_offset_of_each_row() {
    let cells = |values: Vec<i16>| (Shape::from([1, values.len() as u64]), Values::Short(values));
    let around = stored("D", cells(vec![1, 2, 3]), cells(vec![-32768, 10]))
        .scalars("SC", Values::Float(vec![2., 9., 0.5]))
        .scalars("OF", Values::Float(vec![1., 9., -1.]));
    let mut fields = keywords(&[
        ("_BaseMappedArrayEngine_Name", text("D")),
        ("_CompressFloat_Fixed", flag(false)),
        ("_CompressFloat_ScaleName", text("SC")),
        ("_CompressFloat_OffsetName", text("OF")),
    ]);
    let Values::Float(values) = read("CompressFloat", DataType::Float, &fields, &around).unwrap() else { panic!() };
    assert_eq!(values[..3], [3., 5., 7.]);
    assert_eq!((values[3].to_bits(), values[4]), (u32::MAX, 4.));

    let spec = column("V", DataType::Float, Storage::Indirect, None);
    let manager = open("CompressFloat", spec, &fields, &around).unwrap();
    let region = Region { start: Shape::from([0, 1]), shape: Shape::from([1, 2]) };
    let mut part = Values::new(DataType::Float);
    manager.column(0).read_cell(0, Some(&region), &mut part).unwrap();
    assert_eq!(part, Values::Float(vec![5., 7.]));
    let error = manager.column(0).read_cell(2, Some(&region), &mut part).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Usage);

    fields.set("_CompressFloat_ScaleName", text("D"));
    let error = read("CompressFloat", DataType::Float, &fields, &around).unwrap_err().to_string();
    assert_eq!(error, "CompressFloat: column D: float scalars are expected");
}

#[test]
fn both_parts_of_complex_numbers_are_scaled() {
    let cells = |shape: Shape, values: Vec<i16>| (shape, Values::Short(values));
    let around = stored("D", cells(Shape::from([2, 2]), vec![1, 2, 3, 4]), cells(Shape::from([2]), vec![5, 6]));
    let complex = |re, im| Value::Scalar(Values::Complex(vec![Complex32::new(re, im)]));
    let fields = |scale, offset| {
        keywords(&[
            ("_BaseMappedArrayEngine_Name", text("D")),
            ("_ScaledComplexData_Scale", scale),
            ("_ScaledComplexData_Offset", offset),
            ("_ScaledComplexData_FixedScale", flag(true)),
            ("_ScaledComplexData_FixedOffset", flag(true)),
        ])
    };
    let name = "ScaledComplexData<Complex ,Short   >";
    let found = read(name, DataType::Complex, &fields(complex(2., 10.), complex(0.5, -1.)), &around).unwrap();
    let expected = [(2.5, 19.), (6.5, 39.), (10.5, 59.)].map(|(re, im)| Complex32::new(re, im));
    assert_eq!(found, Values::Complex(expected.to_vec()));
    // the stored axis of length 2 goes
    let manager = open(
        name,
        column("V", DataType::Complex, Storage::Indirect, None),
        &fields(complex(1., 1.), complex(0., 0.)),
        &around,
    )
    .unwrap();
    assert_eq!(manager.column(0).cell_shape(0).unwrap(), Some(Shape::from([2])));
    assert_eq!(manager.column(0).cell_shape(2).unwrap(), Some(Shape::scalar()));
    let region = Region { start: Shape::from([1]), shape: Shape::from([1]) };
    let mut part = Values::new(DataType::Complex);
    manager.column(0).read_cell(0, Some(&region), &mut part).unwrap();
    assert_eq!(part, Values::Complex(vec![Complex32::new(3., 4.)]));

    let wrong = stored("D", cells(Shape::from([4]), vec![1, 2, 3, 4]), cells(Shape::from([2]), vec![5, 6]));
    let error = read(name, DataType::Complex, &fields(complex(1., 1.), complex(0., 0.)), &wrong).unwrap_err();
    let message = "ScaledComplexData: row 0: a stored cell of shape [4], a first axis of 2 is expected";
    assert_eq!(error.to_string(), message);
}

#[test]
fn masks_by_number_and_by_name() {
    let cell = |values: Vec<i16>| Some((Shape::from([values.len() as u64]), Values::Short(values)));
    let sets =
        keywords(&[("RFI", Value::Scalar(Values::Int(vec![4]))), ("HIGH", Value::Scalar(Values::UInt(vec![1 << 15])))]);
    let spec = column("B", DataType::Short, Storage::Indirect, None);
    let with_sets = keywords(&[("FLAGSETS", Value::Record(sets))]);
    let cells = || vec![cell(vec![1, 4, -32768, 0])];
    let with_sets = Given::default().column(spec.clone(), with_sets, cells());
    let without = Given::default().column(spec, Record::default(), cells());
    let fields = |keys: &[&str]| {
        let names: Vec<_> = keys.iter().map(|&key| key.into()).collect();
        keywords(&[
            ("_BaseMappedArrayEngine_Name", text("B")),
            ("_BitFlagsEngine_ReadMask", Value::Scalar(Values::Int(vec![1]))),
            ("_BitFlagsEngine_ReadMaskKeys", Value::Array(Shape::from([keys.len() as u64]), Values::String(names))),
        ])
    };
    let flags =
        |keys: &[&str], around: &Given| read("BitFlagsEngine<Short   ", DataType::Bool, &fields(keys), around).unwrap();
    assert_eq!(flags(&[], &with_sets), Values::Bool(vec![true, false, false, false]));
    assert_eq!(flags(&["RFI", "HIGH", "ABSENT"], &with_sets), Values::Bool(vec![false, true, true, false]));
    assert_eq!(flags(&["ABSENT"], &with_sets), Values::Bool(vec![false; 4]));
    assert_eq!(flags(&["RFI"], &without), Values::Bool(vec![true, false, false, false]));
}

#[test]
fn numbers_of_another_type() {
    let around =
        stored("D", (Shape::from([2]), Values::Double(vec![1e300, 0.1])), (Shape::from([0]), Values::Double(vec![])));
    let fields = keywords(&[("_BaseMappedArrayEngine_Name", text("D"))]);
    let found = read("MappedArrayEngine<float   ,double  >", DataType::Float, &fields, &around).unwrap();
    assert_eq!(found, Values::Float(vec![f32::INFINITY, 0.1]));
    let error = read("MappedArrayEngine<String  ,double  >", DataType::String, &fields, &around).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
}

#[test]
fn missing_keywords_and_columns_are_named() {
    let cells = |values: Vec<i32>| (Shape::from([values.len() as u64]), Values::Int(values));
    let around = stored("D", cells(vec![1]), cells(vec![2]));
    let error = |fields: &Record| read("CompressComplex", DataType::Complex, fields, &around).unwrap_err().to_string();
    assert_eq!(error(&Record::default()), "CompressComplex: the column keyword _BaseMappedArrayEngine_Name is missing");
    let mut fields = keywords(&[("_BaseMappedArrayEngine_Name", text("X"))]);
    assert_eq!(error(&fields), "CompressComplex: _BaseMappedArrayEngine_Name: column X does not exist");
    fields.set("_BaseMappedArrayEngine_Name", text("D"));
    assert_eq!(error(&fields), "CompressComplex: the column keyword _CompressComplex_Fixed is missing or not a Bool");
    fields.set("_CompressComplex_Fixed", flag(true));
    fields.set("_CompressComplex_Scale", text("wide"));
    assert_eq!(error(&fields), "CompressComplex: the column keyword _CompressComplex_Scale is missing or not a number");
    let error = read("CompressFloat", DataType::Float, &fields, &around).unwrap_err().to_string();
    assert_eq!(error, "CompressFloat: a column of float values cannot be stored as int in column D");
    // a column whose cells are all of one shape by its description must have them
    let fields = scaled_keywords(double(1.), double(0.));
    let spec = column("V", DataType::Double, Storage::Direct, Some(&[1]));
    let manager = open("ScaledArrayEngine<double,Int>", spec, &fields, &around).unwrap();
    let mut out = Values::new(DataType::Double);
    let error = manager.column(0).read_rows(0..3, &mut out).unwrap_err().to_string();
    assert_eq!(error, "ScaledArrayEngine: column D: the cell in row 1 is undefined");
}

#[test]
fn forwarded_columns() {
    let scalars = || Values::Int(vec![10, 20, 30]);
    let mut around = Given::default().scalars("V", scalars()).scalars("ROWS", Values::UInt(vec![2, 0, 1]));
    let table =
        |name| keywords(&[("_ForwardColumn_TableName", text(name)), ("_ForwardColumn_TableName_Row", text(name))]);
    let spec = |data_type| column("V", data_type, Storage::Scalar, None);
    let open_as = |name: &str, spec, fields: &Record, around: &Given| open(name, spec, fields, around);
    let plain = open_as("ForwardColumnEngine", spec(DataType::Int), &table("self"), &around).unwrap();
    assert_eq!(samples::read_both_ways(plain.column(0), 3, DataType::Int).unwrap(), scalars());
    let error = |name: &str, spec, fields: &Record, around: &Given| {
        let error = open_as(name, spec, fields, around).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Format);
        error.to_string()
    };
    assert_eq!(
        error("ForwardColumnEngine", spec(DataType::Int), &table("gone.tab"), &around),
        "ForwardColumnEngine: column V: the table gone.tab, which has its values, is missing: table gone.tab does not exist"
    );
    assert_eq!(
        error("ForwardColumnEngine", spec(DataType::Float), &table("self"), &around),
        "ForwardColumnEngine: column V: table self: the column has int scalars, float scalars are expected"
    );
    let indexed = "ForwardColumnIndexedRowEngine";
    assert_eq!(
        error(indexed, spec(DataType::Int), &table("self"), &around),
        "ForwardColumnIndexedRowEngine: the table keyword _ForwardColumn_RowName_0 is missing"
    );
    around.keywords.set("_ForwardColumn_RowName_0", text("ROWS"));
    let manager = open_as(indexed, spec(DataType::Int), &table("self"), &around).unwrap();
    let found = samples::read_both_ways(manager.column(0), 3, DataType::Int).unwrap();
    assert_eq!(found, Values::Int(vec![30, 10, 20]));

    let mut far = Given::default().scalars("V", scalars()).scalars("ROWS", Values::UInt(vec![0, 3, 1]));
    far.keywords = around.keywords.clone();
    let manager = open_as(indexed, spec(DataType::Int), &table("self"), &far).unwrap();
    let error = manager.column(0).cell_shape(1).unwrap_err().to_string();
    assert_eq!(
        error,
        "ForwardColumnIndexedRowEngine: column V: column ROWS: row 1 is row 3 of a table that has 3 rows"
    );
}

#[test]
fn refused_by_name() {
    let around = Given::default();
    let refuse = |name: &str, fields: &Record| {
        let spec = column("V", DataType::Double, Storage::Indirect, None);
        let error = open(name, spec, fields, &around).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
        error.to_string()
    };
    let fields = keywords(&[
        ("_BaseMappedArrayEngine_Name", text("D")),
        ("_RetypedArrayEngine_Shape", Value::Array(Shape::from([1]), Values::Int(vec![4]))),
    ]);
    assert_eq!(
        refuse("RetypedArrayEngine<StokesVector,double  >", &fields),
        "RetypedArrayEngine over column D, element type StokesVector, element shape [4]: objects of C++ classes are not read"
    );
    assert!(refuse("LofarStMan", &fields).starts_with("LofarStMan is a third-party manager"));
    assert_eq!(refuse("SomeVACEngine", &fields), "data manager SomeVACEngine is not supported yet");
}

fn expression(taql: &str) -> Record {
    keywords(&[("_VirtualTaQLEngine_CalcExpr", text(taql))])
}

#[test]
fn expressions_are_evaluated_in_the_type_of_the_column() {
    let cells = |values: Vec<i32>| (Shape::from([values.len() as u64]), Values::Int(values));
    let around = stored("D", cells(vec![1, 300]), cells(vec![-3])).scalars("A", Values::Int(vec![7, 8, 9]));
    let of = |data_type, text| read("VirtualTaQLColumn", data_type, &expression(text), &around);
    assert_eq!(of(DataType::UChar, "D + A").unwrap(), Values::UChar(vec![8, 51, 6]));
    assert_eq!(of(DataType::Float, "D / 2").unwrap(), Values::Float(vec![0.5, 150., -1.5]));
    let scalar = |data_type| column("V", data_type, Storage::Scalar, None);
    let short = ColumnSpec { max_length: 3, ..scalar(DataType::String) };
    let manager = open("VirtualTaQLColumn", short, &expression("'abc' + string(A)"), &around).unwrap();
    let mut texts = Values::new(DataType::String);
    manager.column(0).read_rows(0..3, &mut texts).unwrap();
    assert_eq!(texts, Values::String(vec!["abc".into(); 3]));
    // no cell is undefined: the second is empty
    let manager =
        open("VirtualTaQLColumn", column("V", DataType::Int, Storage::Indirect, None), &expression("D"), &around);
    assert_eq!(manager.unwrap().column(0).cell_shape(1).unwrap(), Some(Shape::from([0])));

    let refuse = |spec, text| {
        let error = open("VirtualTaQLColumn", spec, &expression(text), &around).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
        error.to_string()
    };
    assert_eq!(
        refuse(scalar(DataType::Double), "A%2==0"),
        "VirtualTaQLColumn: the expression A%2==0 is not evaluated: it gives Bool scalars, the column holds double \
         scalars: casacore does not open such a table"
    );
    assert_eq!(
        refuse(scalar(DataType::Double), "meas.azel(A)"),
        "VirtualTaQLColumn: the expression meas.azel(A) is not evaluated: the function meas.azel is not supported"
    );
    let failing = open("VirtualTaQLColumn", scalar(DataType::Int), &expression("1 % (A - 8)"), &around).unwrap();
    let error = failing.column(0).read_rows(0..3, &mut Values::new(DataType::Int)).unwrap_err();
    assert_eq!(error.to_string(), "row 1: an integer is divided by 0, expected another divisor");
}

#[test]
fn columns_that_do_not_fit_together() {
    use crate::ErrorKind::{Format, Usage};

    let cell = |len: u64, count: usize| (Shape::from([len]), Values::Int(vec![1; count]));
    let fields = scaled_keywords(double(1.), double(0.));
    let name = "ScaledArrayEngine<double  ,Int     >";
    let indirect = |data_type| column("V", data_type, Storage::Indirect, None);
    let around = stored("D", cell(3, 3), cell(1, 1));

    let (files, specs) = (Memory::default(), [indirect(DataType::Double), indirect(DataType::Double)]);
    let args = samples::args(&files, ByteOrder::Little, around.rows, &specs, &[]);
    let both = [&fields, &fields];
    stman::open(name.into(), &OpenArgs { type_name: name.into(), column_keywords: &both, table: &around, ..args })
        .fails(Format, "ScaledArrayEngine: the engine has 2 columns, expected one");

    let direct = column("V", DataType::Double, Storage::Direct, Some(&[1]));
    let manager = open(name, direct, &fields, &around).unwrap();
    let shape = manager.column(0).cell_shape(0);
    shape.fails(Format, "ScaledArrayEngine: row 0: a cell of shape [3], but the column's cells have shape [1]");

    // fewer elements than the shape has, and a scale of each row
    let scaled = |first| {
        stored("D", first, cell(1, 1))
            .scalars("SC", Values::Float(vec![1.; 3]))
            .scalars("OF", Values::Float(vec![0.; 3]))
    };
    let compressed = keywords(&[
        ("_BaseMappedArrayEngine_Name", text("D")),
        ("_CompressComplex_Fixed", flag(false)),
        ("_CompressComplex_ScaleName", text("SC")),
        ("_CompressComplex_OffsetName", text("OF")),
    ]);
    read("CompressComplex", DataType::Complex, &compressed, &scaled(cell(3, 2)))
        .fails(Format, "CompressComplex: column D: row 2 has fewer elements than its shape");

    // buffers of other elements
    let mut text_out = Values::new(DataType::String);
    let mut into_text = |name: &str, data_type, fields: &Record, around: &Given, words: &str| {
        let manager = open(name, indirect(data_type), fields, around).unwrap();
        manager.column(0).read_rows(0..1, &mut text_out).fails(Usage, words);
    };
    let words = "ScaledArrayEngine: string elements are read from a column of int elements";
    into_text(name, DataType::Double, &fields, &around, words);
    let words = "CompressComplex: elements are read into those of another type";
    into_text("CompressComplex", DataType::Complex, &compressed, &scaled(cell(3, 3)), words);
    let mapped = keywords(&[("_BaseMappedArrayEngine_Name", text("D"))]);
    let words = "MappedArrayEngine: numbers are read into numbers";
    into_text("MappedArrayEngine<double  ,Int     >", DataType::Double, &mapped, &around, words);
    let flags = keywords(&[
        ("_BaseMappedArrayEngine_Name", text("D")),
        ("_BitFlagsEngine_ReadMask", Value::Scalar(Values::Int(vec![1]))),
    ]);
    let words = "BitFlagsEngine: flags, which are stored in integers of up to 32 bits, are read into Bools";
    into_text("BitFlagsEngine<Int     ", DataType::Bool, &flags, &around, words);
}

#[test]
fn tables_that_columns_cannot_be_forwarded_to() {
    let table = keywords(&[("_ForwardColumn_TableName", text("self")), ("_ForwardColumn_TableName_Row", text("self"))]);
    let open_with = |name: &str, spec: ColumnSpec, around: &Given, rows| {
        let (files, specs, fields) = (Memory::default(), [spec], [&table]);
        let args = samples::args(&files, ByteOrder::Little, rows, &specs, &[]);
        stman::open(name.into(), &OpenArgs { type_name: name.into(), column_keywords: &fields, table: around, ..args })
    };
    let scalar = || column("V", DataType::Int, Storage::Scalar, None);
    let mut around = Given::default().scalars("V", Values::Int(vec![1, 2])).scalars("ROWS", Values::Int(vec![0, 1]));
    open_with("ForwardColumnEngine", scalar(), &around, 3)
        .fails(crate::ErrorKind::Format, "ForwardColumnEngine: column V: table self: 2 rows, this table has 3");
    around.keywords.set("_ForwardColumn_RowName_0", text("ROWS"));
    open_with("ForwardColumnIndexedRowEngine", scalar(), &around, 2).fails(
        crate::ErrorKind::Format,
        "_ForwardColumn_RowName_0: column ROWS: uInt scalars are expected, the column has int",
    );
    let cells = vec![Some((Shape::from([2]), Values::Int(vec![1, 2])))];
    let free = column("V", DataType::Int, Storage::Indirect, None);
    let around = Given::default().column(free, Record::default(), cells);
    let direct = column("V", DataType::Int, Storage::Direct, Some(&[2]));
    open_with("ForwardColumnEngine", direct, &around, 1)
        .fails(crate::ErrorKind::Format, "table self: the column's cells do not have the same fixed shape, [2]");
}
