//! Reads a column of complex or float cells of one shape, some rows at a time into one buffer, and
//! says how long that took.
//!
//! `read_column TABLE COLUMN ROWS_AT_A_TIME [FILE]`; FILE gets the elements as the machine holds
//! them.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use ctds_hdf5::value::{Complex32, DataType, Element};
use ctds_hdf5::{Column, Table};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [table, column, step, file @ ..] = args.as_slice() else {
        return Err("usage: read_column TABLE COLUMN ROWS_AT_A_TIME [FILE]".into());
    };
    let step = step.parse::<u64>()?.max(1);
    let file = file.first().map(File::create).transpose()?;
    let table = Table::open(table)?;
    let column = table.column(column)?;
    let start = Instant::now();
    let bytes = match column.info().data_type() {
        DataType::Complex => read::<Complex32>(&column, table.rows(), step, file)?,
        _ => read::<f32>(&column, table.rows(), step, file)?,
    };
    println!("{bytes} bytes in {} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Reads all `rows` cells of a column, `step` at a time, and writes them to `file` if there is one.
/// Returns the number of bytes of the cells.
fn read<T: Element + bytemuck::NoUninit>(
    column: &Column,
    rows: u64,
    step: u64,
    mut file: Option<File>,
) -> Outcome<usize> {
    let cell = column.shape(0..rows)?.elements()?;
    let mut block: Vec<T> = column.buffer(cell * step.min(rows))?;
    for first in (0..rows).step_by(step as usize) {
        let count = step.min(rows - first);
        let block = &mut block[..(cell * count) as usize];
        column.read_into(first..first + count, None, block)?;
        if let Some(file) = &mut file {
            file.write_all(bytemuck::cast_slice(block))?;
        }
    }
    Ok((cell * rows) as usize * size_of::<T>())
}
