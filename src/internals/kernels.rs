//! The loops in which conversions spend their time, each with made-up input, for
//! benches/kernels.rs.

use std::path::Path;
use std::sync::Arc;

use crate::container::{Memory, crc_of};
use crate::error::Result;
use crate::grid::copy_box;
use crate::hash::HashKind;
use crate::io::ByteOrder;
use crate::schema::ColumnDesc;
use crate::source::digest::{CellDigest, digest_column};
use crate::table::{ManagerSpec, NewTable, Table};
use crate::value::{Complex32, DataType, Shape, Values, bits};

/// A loop to be measured, and the bytes that it processes in one call.
pub struct Kernel {
    /// Elements that one call processes.
    pub bytes: u64,
    /// The result depends on all elements, so that the compiler leaves nothing out.
    pub run: Box<dyn FnMut() -> u64>,
}

impl Kernel {
    fn new(bytes: usize, run: impl FnMut() -> u64 + 'static) -> Self {
        Kernel { bytes: bytes as u64, run: Box::new(run) }
    }
}

/// Copies tiles in casacore's order into the rows of a block (four correlations, 64 of 256
/// channels, 32 rows).
pub fn tile_transpose() -> Kernel {
    let (tile, block) = (Shape::from([4, 64, 32]), Shape::from([4, 256, 32]));
    let elements = (0..4 * 64 * 32).map(|at| Complex32::new(at as f32, 1.)).collect();
    let from = Values::Complex(elements);
    let mut to = Values::new(DataType::Complex);
    to.extend_default(4 * 256 * 32);
    let zero = Shape::from([0, 0, 0]);
    Kernel::new(4 * 256 * 32 * 8, move || {
        for channel in [0, 64, 128, 192] {
            copy_box(&from, &tile, &zero, &mut to, 0, &block, &Shape::from([0, channel, 0]), &tile);
        }
        to.len() as u64
    })
}

/// Unpacks flags from bits that do not begin at a byte, and packs them again.
pub fn bool_bits() -> Kernel {
    let count = 1 << 17;
    let packed: Vec<u8> = (0..count / 8 + 1).map(|at| (at * 37) as u8).collect();
    let mut again = vec![0; packed.len()];
    let mut flags = Vec::with_capacity(count);
    Kernel::new(count, move || {
        flags.clear();
        bits::unpack(&packed, 3, count, &mut flags);
        bits::pack_into(&flags, &mut again, 3);
        u64::from(again[7]) + flags.len() as u64
    })
}

fn table(manager: ManagerSpec, column: ColumnDesc, rows: u64, shape: &Shape, values: &Values) -> Result<Table> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("t.tab");
    let order = ByteOrder::Little;
    let mut table = NewTable::new().byte_order(order).column(column).bind(manager, ["C"]).create(&path)?;
    table.add_rows(rows)?;
    table.column("C")?.put_values(0..rows, shape, values)?;
    table.close()?;
    in_memory(&path)
}

fn in_memory(path: &Path) -> Result<Table> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?));
    }
    Table::in_container(Arc::new(Memory::new(files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())))))
}

fn read_rows(table: Table, index: usize) -> Kernel {
    let (rows, data_type) = (table.rows(), table.columns()[index].data_type());
    let mut values = Values::new(data_type);
    let read = move |values: &mut Values| {
        values.clear();
        let read = table.cells(index).and_then(|cells| cells.read_rows(0..rows, values));
        read.expect("the column can be read");
        values.len() as u64
    };
    let bytes = read(&mut values) as usize * data_type.size();
    Kernel::new(bytes, move || read(&mut values))
}

/// The value changes every 40 rows.
pub fn incremental_decode() -> Kernel {
    let rows = 40_000;
    let values = Values::Double((0..rows).map(|row| (row / 40) as f64).collect());
    let spec = ManagerSpec::incremental("I").bucket_size(32_768);
    read_rows(
        table(spec, ColumnDesc::scalar::<f64>("C"), rows, &Shape::scalar(), &values).expect("the table can be made"),
        0,
    )
}

/// Visibilities of testdata/.
pub fn dysco_decode() -> Kernel {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/dysco/Gaussian_AF_6.tab");
    let table = in_memory(&path).expect("testdata/ is in the source tree");
    let index = table.columns().iter().position(|column| column.manager == "DyscoStMan");
    read_rows(table, index.expect("a column is compressed"))
}

/// Checksums of the blocks of a MultiFile.
pub fn crc() -> Kernel {
    let bytes: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    Kernel::new(bytes.len(), move || crc_of(&bytes).into())
}

/// The fingerprint (CTFP-2) of a column of visibilities.
pub fn digest() -> Kernel {
    let rows = 2000;
    let values = Values::Complex((0..rows * 4 * 64).map(|at| Complex32::new(at as f32, -1.)).collect());
    let shape = Shape::from([4, 64]);
    let column = ColumnDesc::array::<Complex32>("C").direct(shape.clone());
    let spec = ManagerSpec::tiled_column("T", &Shape::from([4, 64, 64]));
    let table = table(spec, column, rows, &shape, &values);
    let content = table.expect("the table can be made");
    Kernel::new(values.len() * 8, move || {
        let digest = digest_column(&content, 0, CellDigest::Wanted(HashKind::Blake3), &()).hash;
        u64::from(digest.expect("the column can be read").as_bytes()[0])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The benchmarks measure something: each kernel runs, and does the same each time.
    #[test]
    fn all_kernels_run() {
        let kernels = [tile_transpose, bool_bits, incremental_decode, dysco_decode, crc, digest];
        for (number, make) in kernels.into_iter().enumerate() {
            let mut kernel = make();
            let results = [(kernel.run)(), (kernel.run)()];
            assert!(kernel.bytes > 100 && results[0] == results[1] && results[0] > 0, "kernel {number}: {results:?}");
        }
    }
}
