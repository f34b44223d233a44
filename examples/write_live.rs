//! Writes rows to a live HDF5 file, which other programs read at the same time:
//! `cargo run --example write_live FILE`.

use std::time::Duration;

use ctds_hdf5::ColumnDesc;
use ctds_hdf5::live::{CommitPolicy, Schema, TableSpec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: write_live FILE")?;
    let main = TableSpec::new("MAIN")
        .column(ColumnDesc::scalar::<f64>("TIME").unit("s"))
        .column(ColumnDesc::array::<f64>("UVW").fixed_shape([3]).unit("m"));
    // others see data that are at most half a second old
    let commit = CommitPolicy::manual().every(Duration::from_millis(500));
    let mut writer = Schema::new().table(main).commit(commit).create(path)?;
    for integration in 0..1000 {
        let time = [f64::from(integration); 2];
        let uvw = [0., 1., 2., 3., 4., 5.].map(|u| u + f64::from(integration));
        let mut rows = writer.table("MAIN")?.batch(2);
        rows.set("TIME", time)?.set("UVW", uvw)?;
        rows.append()?;
    }
    writer.close()?;
    Ok(())
}
