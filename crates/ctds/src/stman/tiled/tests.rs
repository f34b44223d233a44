//! The samples of formats/stman.md 6, which casacore wrote.

use super::header::{CubeEntry, FileEntry};
use super::*;

/// 6.4: (SIGMA, WEIGHT) both float: WEIGHT first; (FLAG, F1, C1, F2, D1, FLAG2): D1, C1, F2, F1,
/// FLAG2, FLAG.
#[test]
fn larger_pixels_first_and_equal_ones_reversed() {
    let spec = |data_type| ColumnSpec {
        name: BString::default(),
        data_type,
        storage: crate::stman::Storage::Indirect,
        shape: None,
        ndim: 1,
        max_length: 0,
    };
    let order = |types: &[DataType]| {
        let columns: Vec<_> = types.iter().map(|&data_type| spec(data_type)).collect();
        let roles: Vec<_> = (0..types.len()).map(Role::Data).collect();
        tile_order(&columns, &roles)
    };
    use DataType::{Bool, Complex, Double, Float};
    assert_eq!(order(&[Float, Float]), [1, 0]);
    assert_eq!(order(&[Bool, Float, Complex, Float, Double, Bool]), [4, 2, 3, 1, 5, 0]);
}

mod written {
    use super::super::super::samples::{self, bytes, column, read_both_ways};
    use super::super::super::{CreateArgs, LinkedCube, ManagerMut, OpenArgs, Storage};
    use super::*;
    use crate::ErrorKind;
    use crate::aipsio::Encoder;
    use crate::container::{Container, ContainerMut, Memory};
    use crate::error::Fails;

    /// formats/stman.md 6.10.
    const HEADER: &str = "
        bebebebe 00000121 00000010 'TiledColumnStMan' 00000001
        00000025 00000009 'IPosition' 00000001 00000003 00000002 00000002 00000002
        000000e0 0000000a 'TiledStMan' 00000002 00 00000000 00000003 00000002 00000009 00000000
        00000009 'TiledData' 00000000 00000003
        00000001 01 00000001 00000000 00000104
        00000001 00000001
        00000030 00000006 'Record' 00000001 0000001a 0000000a 'RecordDesc' 00000002 00000000 00000001
        01 00000003
        00000025 00000009 'IPosition' 00000001 00000003 00000002 00000003 00000003
        00000025 00000009 'IPosition' 00000001 00000003 00000002 00000002 00000002
        00000000 00000000";

    fn contents(files: &Memory, name: &str) -> Vec<u8> {
        crate::io::read_all(&*files.open(name).unwrap()).unwrap()
    }

    fn integers(values: &[i32]) -> Value {
        Value::Array(Shape::from([values.len() as u64]), Values::Int(values.into()))
    }

    fn record<const N: usize>(fields: [(&str, Value); N]) -> Record {
        let mut record = Record::default();
        fields.into_iter().for_each(|(name, value)| record.set(name, value));
        record
    }

    fn sample_columns() -> [ColumnSpec; 2] {
        [
            column("DATA", DataType::Complex, Storage::Indirect, Some(&[2, 3])),
            column("FLAG", DataType::Bool, Storage::Direct, Some(&[2, 3])),
        ]
    }

    /// 3 rows of cells [2, 3].
    fn sample(files: &Arc<Memory>) -> Box<dyn ManagerMut> {
        let parameters = record([("DEFAULTTILESHAPE", integers(&[2, 2, 2]))]);
        let columns = sample_columns();
        let mut args = samples::create_args(files, ByteOrder::Little, &columns, &parameters);
        args.name = BStr::new("TiledData");
        let mut manager = write::create(&args, Type::Column).unwrap();
        manager.add_rows(3).unwrap();
        manager
    }

    fn sample_values() -> [Values; 2] {
        let pixels = || (0..3).flat_map(|r| (0..3).flat_map(move |c| (0..2).map(move |p| (p, c, r))));
        let data = pixels().map(|(p, c, r)| crate::value::Complex32::new((100 * r + 10 * c + p) as f32, 0.));
        let flags = pixels().map(|(p, c, r)| if p == 0 { r == 1 } else { c == 2 });
        [Values::Complex(data.collect()), Values::Bool(flags.collect())]
    }

    #[test]
    fn as_casacore_writes() {
        let files = Arc::new(Memory::default());
        let mut manager = sample(&files);
        for (column, values) in sample_values().iter().enumerate() {
            manager.write_rows(column, 0..3, values).unwrap();
        }
        manager.flush().unwrap();
        assert_eq!(contents(&files, "table.f0"), bytes(HEADER));
        let tiles = contents(&files, "table.f0_TSM0");
        assert_eq!(tiles.len(), 260);
        assert_eq!([tiles[0x40], tiles[0x81], tiles[0xc2], tiles[0x103]], [0x50, 0x32, 0x00, 0x02]);
        let first: Vec<u8> = [0., 1., 10., 11., 100., 101., 110., 111.]
            .iter()
            .flat_map(|&re: &f32| [re.to_le_bytes(), [0; 4]].concat())
            .collect();
        assert_eq!(tiles[..0x40], first);
    }

    #[test]
    fn forgotten_tiles_are_read_again() {
        let files = Arc::new(Memory::default());
        let mut manager = sample(&files);
        let [data, _] = sample_values();
        manager.write_rows(0, 0..3, &data).unwrap();
        manager.flush().unwrap();
        let columns = sample_columns();
        let opened = open(&samples::args(&*files, ByteOrder::Little, 3, &columns, &[]), Type::Column).unwrap();
        let cells = opened.column(0);
        let read = || {
            let mut cell = Values::new(DataType::Complex);
            cells.read_cell(1, None, &mut cell).unwrap();
            cell
        };
        // a tile is kept once several parts of it were asked for
        let before = [read(), read(), read()];
        files.edit("table.f0_TSM0").unwrap().write_at(0, &[0; 260]).unwrap();
        assert_eq!([read(), read(), read()], before);
        cells.forget();
        assert_eq!(read(), Values::Complex(vec![Default::default(); 6]));
    }

    /// Whole tiles, as elements or as bytes, and cells give the same files.
    #[test]
    fn tiles_and_cells() {
        let expected = Arc::new(Memory::default());
        let mut manager = sample(&expected);
        for (column, values) in sample_values().iter().enumerate() {
            manager.write_rows(column, 0..3, values).unwrap();
        }
        manager.flush().unwrap();
        let tiles = contents(&expected, "table.f0_TSM0");
        for raw in [false, true] {
            let files = Arc::new(Memory::default());
            let mut manager = sample(&files);
            // cells in pages must not hide the tiles, nor tiles the cells written into them later
            manager.write_rows(0, 0..3, &Values::Complex(vec![Default::default(); 18])).unwrap();
            for column in 0..2 {
                let cubes = manager.cubes(column).unwrap();
                let [cube] = &cubes[..] else { panic!("one cube") };
                assert_eq!(cube.raw_order(), (column == 0).then_some(ByteOrder::Little));
                for tile in 0..4usize {
                    let bytes = &tiles[tile * 65..][..65];
                    let index = [0, tile as u64 % 2, tile as u64 / 2];
                    let mut values = Values::new(cube.data_type());
                    match column {
                        0 if raw => {
                            cube.write_raw(tile as u64, &bytes[..64]).unwrap();
                            continue;
                        }
                        0 => values.extend_from_bytes(&bytes[..64], ByteOrder::Little),
                        _ => values.extend_from_bits(&bytes[64..], 0, 8),
                    }
                    cube.write_chunk(&index, &values).unwrap();
                }
                assert_eq!(
                    cube.write_chunk(&[0, 0, 0], &Values::Int(vec![0; 8])).unwrap_err().kind(),
                    ErrorKind::Usage
                );
                assert_eq!(cube.write_raw(3, &[0; 128]).unwrap_err().kind(), ErrorKind::Usage);
                assert_eq!(cube.write_raw(0, &[0; 63]).unwrap_err().kind(), ErrorKind::Usage);
            }
            let [data, _] = sample_values();
            let mut cell = Values::new(DataType::Complex);
            cell.extend_from(&data, 6..12).unwrap();
            manager.write_cell(0, 1, None, &cell).unwrap();
            manager.flush().unwrap();
            assert_eq!(contents(&files, "table.f0_TSM0"), tiles);
        }
    }

    /// Rows 0 to 5: [row axis of 3] at positions 1, 2 of cube 0; row 6: 0 of cube 1; row 7: none.
    fn data_parameters() -> Record {
        let cube = |shape: &[i32], tile: &[i32], id: i32, extensible: bool| {
            Value::Record(record([
                ("CubeShape", integers(shape)),
                ("TileShape", integers(tile)),
                ("CellShape", integers(&shape[..1])),
                ("ID", Value::Record(record([("ID", Value::Scalar(Values::Int(vec![id])))]))),
                ("Extensible", Value::Scalar(Values::Bool(vec![extensible]))),
            ]))
        };
        let cubes =
            record([("*1", cube(&[2, 3, 3], &[2, 2, 2], 5, false)), ("*2", cube(&[4, 1, 2], &[4, 1, 3], 7, true))]);
        let rows = record([
            ("ROWS", integers(&[0, 6])),
            ("CUBES", integers(&[0, 1])),
            ("POSITIONS", integers(&[1, 0])),
            ("END", Value::Scalar(Values::Int(vec![7]))),
        ]);
        record([("HYPERCUBES", Value::Record(cubes)), ("ROWMAP", Value::Record(rows))])
    }

    fn strings(names: &[&str]) -> Value {
        let values = names.iter().map(|&name| name.into()).collect();
        Value::Array(Shape::from([names.len() as u64]), Values::String(values))
    }

    fn definition() -> Record {
        let definition = record([
            ("ndim", Value::Scalar(Values::UInt(vec![3]))),
            ("data", strings(&["D"])),
            ("coord", strings(&["F", "", "T"])),
            ("id", strings(&["ID"])),
        ]);
        record([("Hypercolumn_Test", Value::Record(definition))])
    }

    fn data_columns() -> [ColumnSpec; 4] {
        let mut data = column("D", DataType::Short, Storage::Indirect, None);
        data.ndim = 1;
        let mut frequencies = column("F", DataType::Double, Storage::Indirect, None);
        frequencies.ndim = 1;
        let time = column("T", DataType::Float, Storage::Scalar, None);
        [data, frequencies, time, column("ID", DataType::Int, Storage::Scalar, None)]
    }

    fn write_data(parameters: &Record, keywords: &Record) -> (Arc<Memory>, Box<dyn ManagerMut>) {
        let files = Arc::new(Memory::default());
        let columns = data_columns();
        let args = samples::create_args(&files, ByteOrder::Big, &columns, parameters);
        let args = CreateArgs { private_keywords: keywords, ..args };
        let mut manager = write::create(&args, Type::Data).unwrap();
        manager.add_rows(8).unwrap();
        manager.write_rows(0, 0..6, &Values::Short((0..12).collect())).unwrap();
        manager.write_cell(0, 6, None, &Values::Short(vec![20, 21, 22, 23])).unwrap();
        manager.write_cell(1, 6, None, &Values::Double(vec![1., 2., 3., 4.])).unwrap();
        // row 7 has no cube, so no value but 0 either
        manager.write_rows(2, 0..8, &Values::Float(vec![1., 1., 1., 2., 2., 2., 9., 0.])).unwrap();
        manager.write_rows(3, 0..8, &Values::Int(vec![5, 5, 5, 5, 5, 5, 7, 0])).unwrap();
        manager.flush().unwrap();
        (files, manager)
    }

    #[test]
    fn hypercubes_with_several_row_axes() {
        let (parameters, keywords, columns) = (data_parameters(), definition(), data_columns());
        let (files, mut manager) = write_data(&parameters, &keywords);
        let args = OpenArgs { private_keywords: &keywords, ..samples::args(&*files, ByteOrder::Big, 8, &columns, &[]) };
        let reader = open(&args, Type::Data).unwrap();
        let read = |index: usize| read_both_ways(reader.column(index), 8, columns[index].data_type).unwrap();
        assert_eq!(read(0), Values::Short((0..12).chain(20..24).collect()));
        assert_eq!(read(1), Values::Double([&[0.; 12][..], &[1., 2., 3., 4.]].concat()));
        assert_eq!(read(2), Values::Float(vec![1., 1., 1., 2., 2., 2., 9., 0.]));
        assert_eq!(read(3), Values::Int(vec![5, 5, 5, 5, 5, 5, 7, 0]));
        assert_eq!(reader.column(0).cell_shape(7).unwrap(), None);
        // parameters of the reader make the same files
        let (again, _) = write_data(&reader.parameters(), &keywords);
        for name in files.names().unwrap() {
            assert_eq!(contents(&again, &name), contents(&files, &name), "{name}");
        }
        let message = |result: Result<()>| {
            let text = result.unwrap_err().to_string();
            text.strip_prefix("table.f0 (TiledDataStMan): ").unwrap_or_else(|| panic!("no place: {text}")).to_owned()
        };
        assert_eq!(
            message(manager.write_cell(3, 2, None, &Values::Int(vec![6]))),
            "column ID, row 2: TiledDataStMan shares one value among the rows of a hypercube, and another row has another"
        );
        assert_eq!(
            message(manager.write_cell(3, 7, None, &Values::Int(vec![6]))),
            "column ID, row 7: the cell has no shape yet"
        );
        // the next row gets a cube by its shape only where cubes have one row axis
        assert!(message(manager.set_shape(0, 7, &Shape::from([2]))).ends_with("get their hypercubes in order"));
    }

    #[test]
    fn impossible_parameters() {
        let (keywords, columns) = (definition(), data_columns());
        let create = |parameters: &Record| {
            let files = Arc::new(Memory::default());
            let args = samples::create_args(&files, ByteOrder::Big, &columns, parameters);
            write::create(&CreateArgs { private_keywords: &keywords, ..args }, Type::Data).map(drop)
        };
        create(&data_parameters()).unwrap();
        let change = |field: &str, name: &str, value: Value| {
            let mut parameters = data_parameters();
            let Some(Value::Record(inner)) =
                parameters.fields.iter_mut().find(|f| f.name == field).map(|f| &mut f.value)
            else {
                panic!("{field}")
            };
            inner.set(name, value);
            create(&parameters).unwrap_err().kind()
        };
        assert_eq!(change("ROWMAP", "CUBES", integers(&[0, 2])), ErrorKind::Usage);
        assert_eq!(change("ROWMAP", "ROWS", integers(&[1, 6])), ErrorKind::Usage);
        assert_eq!(change("ROWMAP", "ROWS", integers(&[0, 8])), ErrorKind::Usage);
        assert_eq!(change("ROWMAP", "END", integers(&[])), ErrorKind::Usage);
        assert_eq!(change("HYPERCUBES", "*1", Value::Record(Record::default())), ErrorKind::Usage);
        let huge = record([
            ("CubeShape", integers(&[i32::MAX; 3])),
            ("TileShape", integers(&[i32::MAX, 1, 1])),
            ("CellShape", integers(&[i32::MAX])),
        ]);
        assert_eq!(change("HYPERCUBES", "*1", Value::Record(huge)), ErrorKind::Limit);
    }

    #[test]
    fn columns_that_cannot_be_tiled() {
        let create = |kind, columns: &[ColumnSpec]| {
            let parameters = Record::default();
            let files = Arc::new(Memory::default());
            write::create(&samples::create_args(&files, ByteOrder::Big, columns, &parameters), kind)
        };
        let refused = |kind, spec| create(kind, &[spec]).unwrap_err().to_string();
        assert_eq!(
            refused(Type::Shape, column("S", DataType::String, Storage::Indirect, Some(&[2]))),
            "table.f0 (TiledShapeStMan): a string column, which cannot be tiled"
        );
        let mut free = column("V", DataType::Int, Storage::Indirect, None);
        assert!(
            refused(Type::Shape, free.clone())
                .ends_with("column V: its number of axes is not fixed, so it cannot be tiled")
        );
        free.ndim = 2;
        assert!(refused(Type::Column, free.clone()).contains("its shape is not fixed"));
        assert!(
            refused(Type::Column, column("I", DataType::Int, Storage::Scalar, None)).contains("hypercolumn definition")
        );
        let mut manager = create(Type::Shape, &[free]).unwrap();
        manager.add_rows(2).unwrap();
        let message = |result: Result<()>| {
            let text = result.unwrap_err().to_string();
            text.strip_prefix("table.f0 (TiledShapeStMan): ").unwrap_or_else(|| panic!("no place: {text}")).to_owned()
        };
        let values = Values::Int(vec![1, 2]);
        assert_eq!(message(manager.write_rows(0, 0..1, &values)), "column V, row 0: the cell has no shape yet");
        assert!(
            message(manager.set_shape(0, 1, &Shape::from([2]))).starts_with("column V, row 1: shape [2] for a column")
        );
        assert!(
            message(manager.set_shape(0, 1, &Shape::from([2, 0]))).contains("cells without elements cannot be tiled")
        );
        manager.set_shape(0, 1, &Shape::from([2, 3])).unwrap();
        assert!(message(manager.write_cell(0, 1, None, &values)).starts_with("column V, row 1: 2 elements where 6"));
        assert!(message(manager.write_cell(0, 1, None, &Values::Int(vec![0; 7]))).contains("7 elements, 1 more"));
        assert!(message(manager.write_rows(0, 1..3, &values)).starts_with("column V, row 2: the table has 2 rows"));
    }

    /// Errors without the manager's place before the words.
    #[test]
    fn declarations_that_do_not_fit() {
        use crate::ErrorKind::{Format, Usage};

        let nothing = Record::default();
        let create = |kind, columns: &[ColumnSpec], parameters: &Record, keywords: &Record| {
            let files = Arc::new(Memory::default());
            let args = samples::create_args(&files, ByteOrder::Little, columns, parameters);
            write::create(&CreateArgs { private_keywords: keywords, ..args }, kind)
        };
        let matrix = |name, shape: Option<&[u64]>| {
            let mut spec = column(name, DataType::Float, Storage::Indirect, shape);
            spec.ndim = 2;
            spec
        };
        // hypercolumns: none, one without the column, and some with other axes
        create(Type::Data, &data_columns(), &nothing, &nothing)
            .fails(Format, "the table description lacks Hypercolumn_Test, which says what its columns are");
        let mut columns = data_columns();
        columns[1].name = "G".into();
        let create_data = |columns: &[ColumnSpec]| create(Type::Data, columns, &nothing, &definition());
        create_data(&columns).fails(Format, "column G is not part of Hypercolumn_Test");
        let mut columns = data_columns();
        columns[0].ndim = 3;
        create_data(&columns).fails(Format, "hypercubes of 3 axes do not suit the columns");
        let axes = record([("ndim", Value::Scalar(Values::UInt(vec![2]))), ("data", strings(&["D"]))]);
        let axes = record([("Hypercolumn_Test", Value::Record(axes))]);
        create(Type::Shape, &[matrix("D", None)], &nothing, &axes)
            .fails(Usage, "hypercubes of 2 axes do not suit the columns' number of axes");

        // columns
        create(Type::Column, &[matrix("D", None)], &nothing, &nothing)
            .fails(Usage, "column D: its shape is not fixed, so it cannot be in a TiledColumnStMan");
        create(Type::Shape, &[matrix("D", Some(&[2, 3])), matrix("E", Some(&[3, 2]))], &nothing, &nothing)
            .fails(Usage, "column E: columns of different shapes cannot share hypercubes");

        // hypercubes
        let change = |field: &str, name: &str, value: Option<Value>| {
            let mut parameters = data_parameters();
            let mut changed = parameters.record(field).unwrap().clone();
            match value {
                Some(value) => changed.set(name, value),
                None => changed.fields.retain(|field| field.name != name),
            }
            parameters.set(field, Value::Record(changed));
            create(Type::Data, &data_columns(), &parameters, &definition())
        };
        let flat =
            record([("CubeShape", integers(&[2, 3])), ("TileShape", integers(&[2, 2])), ("CellShape", integers(&[2]))]);
        change("HYPERCUBES", "*1", Some(Value::Record(flat)))
            .fails(Usage, "a hypercube of shape [2, 3], but the definition has 3 axes");
        change("ROWMAP", "POSITIONS", None).fails(Usage, "ROWMAP without POSITIONS, an array of integers");
    }

    #[test]
    fn rows_and_shapes_that_do_not_fit() {
        use crate::ErrorKind::{Limit, Unsupported, Usage};

        let parameters = Record::default();
        let create = |kind, columns: &[ColumnSpec]| {
            let files = Arc::new(Memory::default());
            write::create(&samples::create_args(&files, ByteOrder::Little, columns, &parameters), kind).unwrap()
        };
        let matrix = |name, shape: Option<&[u64]>| {
            let mut spec = column(name, DataType::Float, Storage::Indirect, shape);
            spec.ndim = 2;
            spec
        };
        let mut manager = create(Type::Column, &[matrix("D", Some(&[2, 3]))]);
        manager.add_rows(5).unwrap();
        manager.add_rows(1 << 63).fails(Limit, "9223372036854775808 rows are too many for a hypercube of 5 rows");
        manager.remove_row(0).fails(Unsupported, "the data manager cannot remove rows");
        let mut manager = create(Type::Shape, &[matrix("D", Some(&[2, 3]))]);
        manager
            .add_rows((1 << 32) + 1)
            .fails(Limit, "row 4294967296 cannot be added: TiledShapeStMan counts rows in 32 bits");

        let mut manager = create(Type::Shape, &[matrix("D", Some(&[2, 3])), matrix("E", None)]);
        manager.add_rows(2).unwrap();
        manager
            .set_shape(1, 0, &Shape::from([3, 3]))
            .fails(Usage, "column E, row 0: shape [3, 3], but all cells of the manager have [2, 3]");

        let mut manager = create(Type::Shape, &[matrix("D", None)]);
        manager.add_rows(1001).unwrap();
        let mut set = |row| manager.set_shape(0, row, &Shape::from([1, row + 1]));
        // the first file has the undefined cells
        (0..999).for_each(|row| set(row).unwrap());
        set(999).fails(Limit, "column D, row 999: more than 1000 hypercubes that grow; casacore cannot open them");

        let (_, mut manager) = write_data(&data_parameters(), &definition());
        manager.set_shape(1, 0, &Shape::from([3])).fails(
            Usage,
            "column F, row 0: shape [3], but the cells of a column of coordinates have that of their axis",
        );

        // tiles that were left in another file
        let mut manager = create(Type::Column, &[matrix("D", Some(&[2, 3]))]);
        manager.add_rows(1).unwrap();
        let cube = LinkedCube { shape: Shape::from([2, 3, 1]), chunk: Shape::from([2, 3, 1]), offset: 512 };
        assert!(manager.link(&[cube]).unwrap().is_some());
        manager
            .write_rows(0, 0..1, &Values::Float(vec![1.; 6]))
            .fails(Usage, "table.f0 (TiledColumnStMan): column D, row 0: the hypercube has no file");
        let cubes = manager.cubes(0).unwrap();
        let tile = Values::Float(vec![1.; cubes[0].grid().chunk.elements().unwrap() as usize]);
        cubes[0].write_chunk(&[0, 0, 0], &tile).fails(ErrorKind::Format, "the hypercube has no file");
    }

    #[test]
    fn headers_that_contradict_themselves() {
        let columns = [
            column("DATA", DataType::Complex, Storage::Indirect, Some(&[2, 3])),
            column("FLAG", DataType::Bool, Storage::Direct, Some(&[2, 3])),
        ];
        let mut header = bytes(HEADER);
        let at = header.len() - 8;
        header[at..at + 4].copy_from_slice(&[0xff; 4]);
        let files = Memory::new([("table.f0", header), ("table.f0_TSM0", vec![0; 260])]);
        let args = samples::args(&files, ByteOrder::Little, 3, &columns, &[]);
        let read = |manager: Box<dyn Manager>| manager.column(0).read_rows(0..3, &mut Values::new(DataType::Complex));
        open(&args, Type::Column).and_then(read).fails(ErrorKind::Format, "hypercube of shape [2, 3, 3] has no file");
    }

    #[test]
    fn row_maps_that_contradict_themselves() {
        let mut e = Encoder::new(ByteOrder::Big);
        e.u64(9);
        e.block_uint(&[5, 3], true);
        e.block_u32(&[0, 0]);
        e.block_u32(&[0, 0]);
        let map = e.into_bytes();
        let mut d = Decoder::new(&map, 0, ByteOrder::Big, "row map").unwrap();
        RowMap::decode_data(&mut d, 2, 2).fails(ErrorKind::Format, "row map entry 0: first row 5 after row 3");

        let cube = |extents: &[u64]| CubeEntry { shape: Shape::from(extents), ..CubeEntry::undefined(Some(0)) };
        RowMap::Column.check(&[], 3).fails(ErrorKind::Format, "0 hypercubes where one is expected");
        RowMap::Cell.check(&[cube(&[2])], 3).fails(ErrorKind::Format, "1 hypercubes for 3 rows, expected one for each");
        let interval = row_map::Interval { first_row: 0, end_row: 3, cube: Some(0), position: 0 };
        let map = RowMap::Intervals(vec![interval]);
        map.locate(1, &[cube(&[2])], 1)
            .fails(ErrorKind::Format, "row 1 in hypercube 0 of shape [2], which has no row axis");
        map.locate(1, &[cube(&[2, 0, 3])], 1)
            .fails(ErrorKind::Format, "row 1 refers to hypercube 0, which has no cells: its shape is [2, 0, 3]");
    }

    /// formats/stman.md 6.13.
    #[test]
    fn large_numbers_take_newer_versions() {
        let cube = CubeEntry {
            shape: Shape::from([2_200_000_000]),
            tile: Shape::from([32768]),
            offset: 2_200_961_024,
            ..CubeEntry::undefined(Some(0))
        };
        let header = Header {
            version: 3,
            name: "X".into(),
            cache: 0,
            ndim: 1,
            files: vec![Some(FileEntry { sequence: 0, len: 4_401_922_058 })],
            cubes: vec![cube],
            lacking: None,
        };
        let columns = [column("X", DataType::Double, Storage::Indirect, None)];
        let mut e = Encoder::new(ByteOrder::Big);
        e.root("Test", 1);
        header.encode(&mut e, ByteOrder::Little, 0, 3_000_000_000, &columns).unwrap();
        e.end();
        let found = e.into_bytes();
        let expected = bytes(
            "00000003 00 00000000 00000000b2d05e00 00000001 00000008 00000001 'X' 00000000 00000001
             0000000000000001 01 00000002 00000000 000000010660000a 0000000000000001 00000002
             00000030 00000006 'Record' 00000001 0000001a 0000000a 'RecordDesc' 00000002 00000000 00000001
             00 00000001 00000021 00000009 'IPosition' 00000002 00000001 0000000083215600
             0000001d 00000009 'IPosition' 00000001 00000001 00008000 00000000 0000000083300000",
        );
        assert_eq!(found[found.len() - expected.len()..], expected);
        let files = Memory::default();
        let args = samples::args(&files, ByteOrder::Little, 3_000_000_000, &columns, &[]);
        let mut d = Decoder::new(&found, 0, ByteOrder::Big, "test").unwrap();
        d.root("Test", 1..=1).unwrap();
        let read = Header::decode(&mut d, &args).unwrap();
        assert_eq!(format!("{read:?}"), format!("{header:?}"));
    }
}
