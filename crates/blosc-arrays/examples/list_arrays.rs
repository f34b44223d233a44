//! Lists the arrays of a BLZ, bcolz or bloscpack source and verifies them:
//! `cargo run -p blosc-arrays --example list_arrays PATH`. Without a path, a bcolz array made in a
//! temporary directory is shown.

use std::env;
use std::error::Error;
use std::path::Path;

use blosc_arrays::{ArrayFormat, Arrays, Writer};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = env::args().nth(1) {
        return list(Path::new(&path));
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("numbers.bcolz");
    let numbers: Vec<u8> = (0..10_000).flat_map(|number| f64::from(number).to_le_bytes()).collect();
    let arrays = Arrays::of_bytes("float64", &[1000, 10], 256, numbers)?;
    Writer::new(&arrays).format(ArrayFormat::Bcolz).write(&path, &())?;
    list(&path)
}

fn list(path: &Path) -> Result<(), Box<dyn Error>> {
    let arrays = Arrays::open(path)?;
    for array in arrays.list()? {
        let codec = array.codec.as_deref().unwrap_or("no chunks");
        println!("{}: {} {:?}, {} bytes, {codec}", array.name, array.dtype, array.shape, array.bytes);
    }
    arrays.check(&())?;
    println!("all chunks are intact");
    Ok(())
}
