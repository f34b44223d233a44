//! Prints the partitions of a MeasurementSet with the variables of each:
//! `cargo run -p msv4 --example partitions my.ms`.

use std::env;
use std::error::Error;

use msv4::{MeasurementSet, Options, ProcessingSet};

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("give the path of a MeasurementSet")?;
    let options = Options { name: "ms".to_owned(), ..Options::default() };
    let set = ProcessingSet::read(&MeasurementSet::open(path)?, &options)?;
    for partition in &set.partitions {
        println!("{}: {} rows", partition.name, partition.grid.rows);
        for dataset in &partition.datasets {
            for variable in &dataset.variables {
                println!("  {}/{} {:?} {:?}", dataset.path, variable.name, variable.axes, variable.shape);
            }
        }
    }
    for warning in &set.warnings {
        println!("{warning}");
    }
    Ok(())
}
