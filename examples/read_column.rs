//! Reads a column of complex or float cells of one shape, some rows at a time, and says how long that took.
//!
//! `read_column TABLE COLUMN ROWS_AT_A_TIME [FILE]`; FILE gets the elements as the machine holds them.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use ctds_hdf5::Table;
use ctds_hdf5::value::{Complex32, DataType};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [table, column, step, file @ ..] = args.as_slice() else {
        return Err("usage: read_column TABLE COLUMN ROWS_AT_A_TIME [FILE]".into());
    };
    let step: u64 = step.parse()?;
    let mut file = file.first().map(File::create).transpose()?;
    let table = Table::open(table)?;
    let column = table.column(column)?;
    let start = Instant::now();
    let mut total = 0;
    for first in (0..table.rows()).step_by(step.max(1) as usize) {
        let rows = first..table.rows().min(first + step);
        let bytes: Vec<u8> = match column.info().data_type() {
            DataType::Complex => {
                let cells = column.rows::<Complex32>(rows)?;
                total += cells.len() * size_of::<Complex32>();
                if file.is_none() {
                    continue;
                }
                cells.iter().flat_map(|value| [value.re, value.im]).flat_map(f32::to_ne_bytes).collect()
            }
            _ => {
                let cells = column.rows::<f32>(rows)?;
                total += cells.len() * size_of::<f32>();
                if file.is_none() {
                    continue;
                }
                cells.iter().copied().flat_map(f32::to_ne_bytes).collect()
            }
        };
        if let Some(file) = &mut file {
            file.write_all(&bytes)?;
        }
    }
    println!("{total} bytes in {} s", start.elapsed().as_secs_f64());
    Ok(())
}
