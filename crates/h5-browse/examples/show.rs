//! Prints the objects of an HDF5 file, or of a casacore table that is shown as one, with the first
//! value of each dataset: `cargo run -p h5-browse --example show testdata/demo/demo.ms`.

use std::env;
use std::error::Error;
use std::path::Path;

use h5_browse::{Browser, DataOptions, Limits, LinkResolution, TableFile};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("give the path of an HDF5 file or of a casacore table")?;
    let path = Path::new(&path).canonicalize()?;
    // subtables, and files beside this one to which its links lead
    let directory = path.parent().unwrap_or(&path);
    let is_served = |other: &Path| other.starts_with(directory);
    let limits = Limits::default();
    let table = if path.is_dir() { Some(TableFile::open(&path, &is_served)?) } else { None };
    let browser = match &table {
        Some(table) => Browser::of_table(table, &is_served, &limits),
        None => Browser::open(&path, &is_served, &limits)?,
    };

    let paths: Vec<String> = serde_json::from_str(&browser.paths("/", LinkResolution::None)?)?;
    for path in paths {
        let entity: Value = serde_json::from_str(&browser.meta(&path, LinkResolution::OnlyValid)?)?;
        let kind = entity["kind"].as_str().unwrap_or_default();
        if kind != "dataset" {
            println!("{path}: {kind}");
            continue;
        }
        println!("{path}: {kind} of {}, shape {}", entity["type"]["dtype"], entity["shape"]);
        let axes = entity["shape"].as_array().map_or(0, Vec::len);
        let first = vec!["0:1"; axes].join(",");
        let selection = (axes > 0).then_some(first.as_str());
        let data = browser.data(&path, &DataOptions { selection, flatten: true, ..DataOptions::default() })?;
        let text: Vec<Vec<u8>> = data.pieces.collect::<Result<_, _>>()?;
        println!("  {}", String::from_utf8_lossy(&text.concat()));
    }
    Ok(())
}
