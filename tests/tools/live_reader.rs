//! Polls a live file that `live_writer` writes and checks every cell it reads against the number of
//! its row.
//!
//! `live_reader FILE POLLS SECONDS`; prints how many polls were made and the last number of rows.

use std::time::{Duration, Instant};

use ctds_hdf5::live::{Reader, TableReader};
use ctds_hdf5::value::{BString, Complex32, Shape, Values};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, polls, seconds] = words.as_slice() else { return Err("usage: live_reader FILE POLLS SECONDS".into()) };
    let (polls, limit) = (polls.parse::<u64>()?, Duration::from_secs_f64(seconds.parse()?));
    let reader = Reader::open(path)?;
    let main = reader.table("MAIN")?;
    let start = Instant::now();
    let (mut done, mut last) = (0, 0);
    while done < polls && start.elapsed() < limit {
        let rows = main.refresh()?;
        if rows < last {
            return Err(format!("{rows} rows after {last}").into());
        }
        check(main, rows.saturating_sub(100 + done % 200)..rows)?;
        (done, last) = (done + 1, rows);
    }
    println!("{done} {last}");
    Ok(())
}

fn check(main: &TableReader, rows: std::ops::Range<u64>) -> Result<(), Failure> {
    let small = |row: u64| (row % 65536) as f32;
    let times = main.rows::<f64>("TIME", rows.clone())?;
    let names = main.rows::<BString>("NAME", rows.clone())?;
    let data = main.rows::<Complex32>("DATA", rows.clone())?;
    let flags = main.rows::<bool>("FLAG", rows.clone())?;
    let cell = data.len() / names.len().max(1);
    for (number, row) in rows.clone().enumerate() {
        let elements = number * cell..(number + 1) * cell;
        let right = times[number] == row as f64 / 4.
            && names[number] == format!("row {row}")
            && data[elements.clone()].iter().zip(0..).all(|(value, i)| *value == Complex32::new(small(row), i as f32))
            && flags[elements].iter().zip(0..).all(|(&flag, i)| flag == ((row + i) % 3 == 0));
        if !right {
            return Err(format!("row {row} of {rows:?} is torn").into());
        }
    }
    for row in rows.clone().rev().take(6) {
        let values = |count| Values::Float((0..count).map(|i| small(row) + i as f32 / 8.).collect());
        let expected = match row % 3 {
            0 => None,
            1 => Some((Shape::from([2, 3]), values(6))),
            _ => Some((Shape::from([5]), values(5))),
        };
        if main.cell("VARIABLE", row)? != expected {
            return Err(format!("the cell of several shapes of row {row} of {rows:?} is torn").into());
        }
    }
    Ok(())
}
