//! Converts a table to HDF5, shows the plan first, and writes the table back:
//! `convert SOURCE OUT.h5 OUT.ms`.

use ctds_hdf5::convert::{Compare, ToHdf5, ToTable};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [source, file, back] = words.as_slice() else { return Err("usage: convert SOURCE OUT.h5 OUT.ms".into()) };

    let plan = ToHdf5::new(source).plan()?;
    for table in plan.tables() {
        println!("{}: {} columns, rows {:?}", table.group, table.columns.len(), table.rows);
    }
    let summary = plan.write(file)?;
    println!("{} bytes of data in {} bytes", summary.bytes, summary.file_bytes);
    for warning in &summary.warnings {
        println!("warning: {warning}");
    }

    ToTable::new(file).write(back)?;
    let compared = Compare::new(source, back).run()?;
    println!("{} cells compared, {} columns differ", compared.cells, compared.differences.len());
    Ok(())
}
