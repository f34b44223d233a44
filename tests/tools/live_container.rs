//! Appends to two files of a MultiHDF5 container until it is killed, or so many times.
//! docs/reference/containers.md.
//!
//! `live_container PATH [COMMITS]`

use std::path::Path;

use ctds_hdf5::LiveContainer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: live_container PATH [COMMITS]")?;
    let commits = arguments.next().map_or(Ok(u64::MAX), |number| number.parse())?;
    let mut live = LiveContainer::create(Path::new(&path), 4096, &["table.f0", "table.f1"])?;
    println!("live");
    for commit in 0..commits {
        // a commit of both files: as many bytes in each, of values that tell where they belong
        let count = 1 + commit * 911 % 9973;
        live.append("table.f0", &vec![commit as u8; count as usize])?;
        live.append("table.f1", &vec![!(commit as u8); count as usize])?;
        live.commit()?;
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    Ok(live.close()?)
}
