//! Summarizes a MeasurementSet, a converted or a live file, and makes each of its plots:
//! `cargo run -p ms-look --example summarize testdata/demo/demo.ms`.

use std::env;
use std::error::Error;
use std::path::Path;

use ms_look::{Request, Session, Source, Summary, label, utc_of_mjd};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("give the path of a MeasurementSet")?;
    let summary = Summary::of(&Source::open(&path)?).ok_or("the table is not a MeasurementSet")?;
    println!("{} rows, {} antennas", summary.rows, summary.antennas.len());
    for field in &summary.fields {
        println!("field {}: {} rows", label(&field.name, field.id), field.rows);
    }
    for scan in &summary.scans {
        let begin = scan.time_range.map(|[begin, _]| utc_of_mjd(begin));
        println!("scan {} from {}", scan.number, begin.as_deref().unwrap_or("an unknown time"));
    }

    let mut session = Session::open(Path::new(&path))?;
    for kind in session.describe()?.plots {
        let request = Request::parse(kind, &[])?;
        // a call ends after a quarter of a second; the next one adds further rows
        let mut frame = session.frame(&request)?;
        while !frame.is_complete() && !frame.is_stopped() {
            frame = session.frame(&request)?;
        }
        println!("{}: {} by {}", frame.plot.title, frame.plot.y.label, frame.plot.x.label);
        for array in &frame.arrays {
            println!("  {} {:?}", array.name, array.shape);
        }
    }
    Ok(())
}
