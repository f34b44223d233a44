//! Times reading a column of a table in several patterns, for `scripts/bench read` and
//! `scripts/bench columns`.
//!
//! `read_speed TABLE COLUMN ROUNDS STEP [PATTERN]` prints a line of JSON: for each pattern the
//! seconds of each round.

use std::path::Path;
use std::time::Instant;

use ctds_hdf5::convert::Source;
use ctds_hdf5::value::{BString, Complex32, Complex64, DataType, Element, Region};
use ctds_hdf5::{Column, Result};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, name, rounds, step, only @ ..] = &words[..] else {
        panic!("read_speed TABLE COLUMN ROUNDS STEP [PATTERN]")
    };
    let only = only.first().map(String::as_str);
    let (rounds, step) = (rounds.parse().expect("a number"), step.parse().expect("a number"));
    let data_type = Source::open(path)?.column(name)?.info().data_type();
    match data_type {
        DataType::Bool => time::<bool>(path.as_ref(), name, rounds, step, only),
        DataType::UChar => time::<u8>(path.as_ref(), name, rounds, step, only),
        DataType::Int => time::<i32>(path.as_ref(), name, rounds, step, only),
        DataType::Float => time::<f32>(path.as_ref(), name, rounds, step, only),
        DataType::Double => time::<f64>(path.as_ref(), name, rounds, step, only),
        DataType::Complex => time::<Complex32>(path.as_ref(), name, rounds, step, only),
        DataType::DComplex => time::<Complex64>(path.as_ref(), name, rounds, step, only),
        DataType::String => time::<BString>(path.as_ref(), name, rounds, step, only),
        other => panic!("{other} is not timed"),
    }
}

/// Reads a column in one of the patterns.
type Read<'a> = &'a dyn Fn(&Column<'_>) -> Result<()>;

fn time<T: Element>(path: &Path, name: &str, rounds: usize, step: usize, only: Option<&str>) -> Result<()> {
    let rows = Source::open(path)?.tables()[0].rows()?;
    let cell = Source::open(path)?.column(name)?.cell_shape(0)?.unwrap_or_default();
    // the middle of the slowest axis of the cell
    let channel = cell.split_last().map(|(rest, channels)| Region {
        start: rest.iter().map(|_| 0).chain([channels / 2]).collect(),
        shape: rest.with_axis(1),
    });
    let whole = |column: &Column<'_>| column.rows::<T>(0..rows).map(drop);
    let one_channel = |column: &Column<'_>| match &channel {
        Some(region) => column.parts::<T>(0..rows, region).map(drop),
        None => Ok(()),
    };
    let baseline: Vec<u64> = (0..rows).step_by(step).collect();
    let one_baseline = |column: &Column<'_>| column.rows_at::<T>(&baseline).map(drop);
    let scattered = |column: &Column<'_>| {
        (0..1000).try_for_each(|i: u64| column.cell::<T>(i.wrapping_mul(2_654_435_761) % rows).map(drop))
    };
    let patterns: [(&str, Read<'_>); 4] =
        [("whole", &whole), ("channel", &one_channel), ("baseline", &one_baseline), ("cells", &scattered)];
    let mut found = Vec::new();
    for (pattern, read) in patterns.into_iter().filter(|(pattern, _)| only.is_none_or(|only| only == *pattern)) {
        let mut seconds = Vec::new();
        for _ in 0..rounds {
            // a table of its own: what is cached belongs to the time, but opening the column does
            // not, for the peers neither
            let source = Source::open(path)?;
            let column = source.column(name)?;
            column.cell_shape(0)?;
            let start = Instant::now();
            read(&column)?;
            seconds.push(start.elapsed().as_secs_f64().to_string());
        }
        found.push(format!("\"{pattern}\": [{}]", seconds.join(", ")));
    }
    println!("{{{}}}", found.join(", "));
    Ok(())
}
