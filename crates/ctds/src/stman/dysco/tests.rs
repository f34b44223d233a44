//! The golden files of formats/engines.md, appendix C, which casacore wrote, and damaged forms of
//! them.

use std::ops::Range;

use bstr::BStr;

use super::*;
use crate::container::Memory;
use crate::error::{Error, ErrorKind, Fails};
use crate::io::ByteOrder;
use crate::stman::samples::{args, bytes, column, damage, read_both_ways};
use crate::stman::{ColumnSpec, Columns, OtherColumn, Storage, TableContext};
use crate::value::{Record, Region, Shape, Values};

const ANTENNA_FREQUENCY: &str = "
    65000000350000000200000001000000440300000002000000330000000100000004030300000000000000000000000000000004400c0000002c000000020000
    000c00000007000000020000000000000000000000000000000000000000000000000000005aff263f6a67203ff12d8b3f14a62d3f09d2693f09d2693f3a249a
    3f3a249a3fe0703529601e7f400b6c1075d392df3e21f3013b8f213f1586093faf95523f2dd8133f4ea0503f4ea0503f10f7893f10f7893fe0d00990e4053e10
    ee4d9276cea42c3f952e02";
const ROW_FREQUENCY: &str = "
    650000003500000002000000010000004403000000020000003b0000000100000004030301000000000000000000000000000004400c00000034000000020000
    000c00000007000000020000000000000000000000000000000000000000000000000000000000803f0000803f0000803f0000803f0229253f8e89403f66500b
    3f06d27b3f81dd6e3f914af13ee180352a601d7f401a5e1074d392df3e21f3010000803f0000803f0000803f0000803f0b39913fb705453f6cdb0b3fb3c22b3f
    5552443f8570f43ec2c008a1d4053e10ed3e9376cea42c3f952e02";
const ROW: &str = "
    650000003500000002000000010000004403000000020000001f0000000100000004030302000000000000000000000000000004400c00000018000000020000
    000c00000007000000020000000000000000000000000000000000000000000000000000008e89403f06d27b3f81dd6e3fe180351b721e7f40296c0076d392df
    3e21f3010b39913fb3c22b3f5552443fc2b10882c5054e20ec4c9377cea42c3f952e02";
const DATA: [&str; 6] = [
    "bf7550de 3f7550de bfcccd6c 00000000 be9c2ffe bf268798 3ea95fc3 bf6f7a1c",
    "bf7550de bdb8c646 3fcccd6c bf91d18f 7fc00000 00000000 bfddb698 bf024257",
    "3ec7d06f bf7550de 3f5d3615 be1a4265 bfcc73a9 bf9191a5 bea95fc3 00000000",
    "bf3cf04f 3f3cf04f bf8cab24 3f484f9b 3e3c22aa bf7645aa bf9739a7 3e670d46",
    "be5e01e5 3f3cf04f be56ec33 bf8cab24 3f7645aa bec897d4 bf9739a7 bf5757f6",
    "3f3cf04f 3f3cf04f 3f484f9b bea549f0 bf050074 3e3c22aa bde3cf10 00000000",
];
const WEIGHTS: [&str; 6] = [
    "3d7f833a 3d7f833a 3e7f833a 3e7f833a",
    "3e7f833a 3e7f833a 3d7f833a 3d7f833a",
    "3edf92d3 3edf92d3 3e3fa26c 3e3fa26c",
    "3ef6a24b 3ef6a24b 3e454ea2 3e454ea2",
    "3e454ea2 3e454ea2 3f2ca4ce 3f2ca4ce",
    "3e454ea2 3e454ea2 3ec54ea2 3ec54ea2",
];
/// Length of the first: a header of 101 bytes, blocks of 44 + 7 bytes.
const LEN: usize = 203;

/// ANTENNA1 and ANTENNA2.
#[derive(Debug)]
struct Pairs([Vec<i32>; 2]);

impl Pairs {
    fn golden() -> Self {
        Pairs([vec![0, 0, 1, 0, 0, 1, 0, 0], vec![0, 1, 1, 0, 1, 1, 0, 0]])
    }
}

#[derive(Debug)]
struct Ints(Vec<i32>);

impl Manager for Ints {
    fn name(&self) -> &BStr {
        "ints".into()
    }

    fn column(&self, _index: usize) -> &dyn ColumnCells {
        self
    }
}

impl ColumnCells for Ints {
    fn cell_shape(&self, _row: u64) -> Result<Option<Shape>> {
        Ok(Some(Shape::scalar()))
    }

    fn read_cell(&self, row: u64, _region: Option<&Region>, out: &mut Values) -> Result<()> {
        out.extend_from(&Values::Int(self.0.clone()), row as usize..row as usize + 1)
    }
}

impl Columns for Pairs {
    fn rows(&self) -> u64 {
        self.0[0].len() as u64
    }

    fn keywords(&self) -> &Record {
        unreachable!("nothing here looks at keywords")
    }

    fn column(&self, name: &BStr) -> Result<OtherColumn> {
        let index = match name.as_bytes() {
            b"ANTENNA1" => 0,
            b"ANTENNA2" => 1,
            _ => return Err(Error::format("no such column")),
        };
        let spec = column("", DataType::Int, Storage::Scalar, None);
        Ok(OtherColumn { spec, manager: Arc::new(Ints(self.0[index].clone())), index: 0 })
    }
}

impl TableContext for Pairs {
    fn column_keywords(&self, _name: &BStr) -> Result<&Record> {
        Err(Error::format("no keywords"))
    }

    fn table(&self, _stored: &BStr) -> Result<Box<dyn Columns>> {
        Err(Error::not_found("no other table"))
    }
}

fn specs() -> Vec<ColumnSpec> {
    vec![
        column("DATA", DataType::Complex, Storage::Direct, Some(&[2, 2])),
        column("WEIGHT_SPECTRUM", DataType::Float, Storage::Direct, Some(&[2, 2])),
    ]
}

fn open_file(bytes: Vec<u8>, around: &Pairs) -> Result<Box<dyn Manager>> {
    let (files, specs) = (Memory::new([("table.f0", bytes)]), specs());
    // big-endian tables have little-endian files
    let args = OpenArgs { table: around, ..args(&files, ByteOrder::Big, around.rows(), &specs, &[]) };
    super::open(&args)
}

/// Bits of all elements, each cell as in the appendix.
fn cells(manager: &dyn Manager, index: usize, rows: Range<u64>) -> Vec<String> {
    let mut values = Values::new(specs()[index].data_type);
    let count = (rows.end - rows.start) as usize;
    manager.column(index).read_rows(rows, &mut values).unwrap();
    let bytes = values.le_bytes().unwrap();
    let words: Vec<String> =
        bytes.as_chunks::<4>().0.iter().map(|&word| format!("{:08x}", u32::from_le_bytes(word))).collect();
    words.chunks(words.len() / count).map(|cell| cell.join(" ")).collect()
}

#[test]
fn golden_files() {
    let pairs = Pairs::golden();
    let manager = open_file(bytes(ANTENNA_FREQUENCY), &pairs).unwrap();
    assert_eq!(manager.name(), "D");
    assert_eq!(cells(&*manager, 0, 0..6), DATA);
    assert_eq!(cells(&*manager, 1, 0..6), WEIGHTS);
    assert_eq!(cells(&*manager, 0, 2..5), DATA[2..5]);
    let manager = open_file(bytes(ROW_FREQUENCY), &pairs).unwrap();
    let data = cells(&*manager, 0, 0..6);
    assert_eq!(data[0], "bf4f1184 3f9169f9 bfa98498 3dff5d8b be5e2c4c beece273 3ec73003 bf37198a");
    assert_eq!(data[5], "3f762307 3facd98b 3f5736fe beaf4bdd bf0cca0c 3e840bb0 bda21a21 00000000");
    assert_eq!(cells(&*manager, 1, 0..6), WEIGHTS);
    let manager = open_file(bytes(ROW), &pairs).unwrap();
    let data = cells(&*manager, 0, 0..6);
    assert_eq!(data[0], "bf71646e 3fa98498 bfa98498 3dff5d8b be818017 bf0a134e 3f0a134e bf71646e");
    assert_eq!(data[5], "3f3ab2d5 3facd98b 3f3ab2d5 becb1a40 bf0cca0c 3e840bb0 00000000 00000000");
    assert_eq!(cells(&*manager, 1, 0..6), WEIGHTS);
}

#[test]
fn parts_of_cells() {
    let manager = open_file(bytes(ANTENNA_FREQUENCY), &Pairs::golden()).unwrap();
    for (index, data_type) in [(0, DataType::Complex), (1, DataType::Float)] {
        let column = manager.column(index);
        let mut whole = Values::new(data_type);
        column.read_cell(3, None, &mut whole).unwrap();
        for (start, shape) in [([0, 0], [2, 2]), ([0, 1], [2, 1]), ([1, 0], [1, 2]), ([1, 1], [1, 1]), ([1, 0], [0, 2])]
        {
            let region = Region { start: Shape::from(start), shape: Shape::from(shape) };
            let (mut part, mut expected) = (Values::new(data_type), Values::new(data_type));
            column.read_cell(3, Some(&region), &mut part).unwrap();
            crate::stman::read_part(Some(&region), &Shape::from([2, 2]), &mut expected, |out| {
                out.extend_from(&whole, 0..4)
            })
            .unwrap();
            assert_eq!(part, expected);
        }
        let outside = Region { start: Shape::from([1, 1]), shape: Shape::from([1, 2]) };
        assert_eq!(column.read_cell(3, Some(&outside), &mut whole).unwrap_err().kind(), crate::ErrorKind::Usage);
    }
}

#[test]
fn rows_without_a_block_are_zero() {
    let zeros = ["00000000"; 8].join(" ");
    let pairs = Pairs::golden();
    // rows 6 and 7 came later; the last block lacks its last byte, which is one of the weights
    let cut = &bytes(ANTENNA_FREQUENCY)[..LEN - 1];
    let manager = open_file(cut.to_vec(), &pairs).unwrap();
    let data = cells(&*manager, 0, 0..8);
    assert_eq!((&data[..6], &data[6..]), (&DATA.map(String::from)[..], &[zeros.clone(), zeros.clone()][..]));
    let weights = cells(&*manager, 1, 0..8);
    assert_eq!(weights[..3], WEIGHTS[..3]);
    assert!(weights[3..].iter().all(|cell| *cell == zeros[..35]));
    // nothing was ever written: an empty file, and a header that says so
    let mut unwritten = bytes(ANTENNA_FREQUENCY)[..101].to_vec();
    for (at, len) in [(17, 4), (25, 4), (57, 4), (69, 4)] {
        unwritten[at..at + len].fill(0);
    }
    for file in [Vec::new(), unwritten] {
        let manager = open_file(file, &pairs).unwrap();
        assert!(cells(&*manager, 0, 0..8).iter().all(|cell| *cell == zeros));
        assert_eq!(read_both_ways(manager.column(1), 8, DataType::Float).unwrap(), Values::Float(vec![0.; 32]));
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let good = bytes(ANTENNA_FREQUENCY);
    let error = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        open_file(bytes, &Pairs::golden()).map(drop).unwrap_err().to_string()
    };
    let place = "table.f0 (DyscoStMan): ";
    let data = format!("{place}column DATA: ");
    assert_eq!(error(8, 3), format!("{place}header: byte 8: 3 columns, but the table has 2 in this manager"));
    assert_eq!(error(29, 2), format!("{place}header: byte 29: version 2.0, only 1.0 is known"));
    assert_eq!(
        error(33, 5),
        format!("{data}header: byte 33: symbols of 5 bits, known are [2, 3, 4, 6, 8, 10, 12, 16]")
    );
    assert_eq!(error(35, 4), format!("{place}header: byte 35: distribution 4, known are 0 to 3"));
    assert_eq!(error(36, 3), format!("{place}header: byte 36: normalization 3, known are 0 to 2"));
    let size = "header: column records: 45 bytes in a block, but 3 rows of this shape take 44";
    assert_eq!(error(57, 45), format!("{data}{size}"));
    let (files, mut specs) = (Memory::new([("table.f0", good.clone())]), specs());
    specs[0].shape = Some(Shape::from([4]));
    let message = super::open(&args(&files, ByteOrder::Big, 6, &specs, &[])).unwrap_err().to_string();
    assert_eq!(message, format!("{data}cells of shape [4], but only matrices can be stored"));
}

#[test]
fn antennas_must_have_scales() {
    let mut pairs = Pairs::golden();
    pairs.0[1][4] = 2;
    let manager = open_file(bytes(ANTENNA_FREQUENCY), &pairs).unwrap();
    assert_eq!(cells(&*manager, 0, 0..4), DATA[..4]);
    let error = manager.column(0).read_cell(4, None, &mut Values::new(DataType::Complex)).unwrap_err();
    let found = "table.f0 (DyscoStMan): column DATA: ANTENNA2: antenna 2 in row 4, but the header has 2";
    assert_eq!(error.to_string(), found);
    // weights and other normalizations do without
    assert_eq!(cells(&*manager, 1, 0..6), WEIGHTS);
    let (files, specs) = (Memory::new([("table.f0", bytes(ANTENNA_FREQUENCY))]), specs());
    let manager = super::open(&args(&files, ByteOrder::Big, 6, &specs, &[])).unwrap();
    let error = manager.column(0).read_rows(0..6, &mut Values::new(DataType::Complex)).unwrap_err();
    assert_eq!(error.to_string(), "table.f0 (DyscoStMan): column DATA: column ANTENNA1 does not exist");
    assert_eq!(cells(&*manager, 1, 0..6), WEIGHTS);
}

#[test]
fn large_requests_are_shared_out() {
    // the two blocks of the golden file, again and again
    let good = bytes(ANTENNA_FREQUENCY);
    let times = 5000;
    let file: Vec<u8> = good[..101].iter().chain(good[101..].repeat(times).iter()).copied().collect();
    let antennas = Pairs::golden().0.map(|antennas| antennas[..6].repeat(times));
    let manager = open_file(file, &Pairs(antennas)).unwrap();
    for (index, expected) in [(0, DATA.as_slice()), (1, &WEIGHTS)] {
        let expected = expected.repeat(times);
        assert_eq!(cells(&*manager, index, 0..6 * times as u64), expected);
        assert_eq!(cells(&*manager, index, 7..29_000), expected[7..29_000]);
    }
}

#[test]
fn damaged_files() {
    for file in [ANTENNA_FREQUENCY, ROW_FREQUENCY, ROW] {
        damage(&bytes(file), |bytes| {
            let manager = open_file(bytes, &Pairs::golden())?;
            read_both_ways(manager.column(0), 8, DataType::Complex)?;
            read_both_ways(manager.column(1), 8, DataType::Float).map(drop)
        });
    }
}

#[test]
fn columns_that_no_block_holds() {
    let open = |spec: ColumnSpec| {
        let weights = column("WEIGHT_SPECTRUM", DataType::Float, Storage::Direct, Some(&[2, 2]));
        let (files, specs) = (Memory::new([("table.f0", bytes(ROW))]), [spec, weights]);
        let pairs = Pairs::golden();
        super::open(&OpenArgs { table: &pairs, ..args(&files, ByteOrder::Big, 8, &specs, &[]) })
    };
    let free = column("DATA", DataType::Complex, Storage::Indirect, None);
    open(free).fails(ErrorKind::Format, "no fixed shape, which all columns of this manager have");
    let large = column("DATA", DataType::Complex, Storage::Direct, Some(&[1 << 33, 1 << 33]));
    open(large).fails(ErrorKind::Format, "no block can hold cells of shape [8589934592, 8589934592]");
    let manager = open_file(bytes(ANTENNA_FREQUENCY), &Pairs::golden()).unwrap();
    manager
        .column(0)
        .read_rows(0..1, &mut Values::new(DataType::Int))
        .fails(ErrorKind::Usage, "int values where complex are stored");
}
