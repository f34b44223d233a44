//! Makes a small table such as a correlator would, and reads it again.
//!
//! `write_table PATH`

use ctds_hdf5::value::{BString, Complex32, Shape, Value};
use ctds_hdf5::{ColumnDesc, ManagerSpec, NewTable, Table};
use ndarray::ArrayD;

const CHANNELS: usize = 64;
const BASELINES: usize = 10;
const TIMES: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: write_table PATH")?;

    // description of the table; shapes list the first axis fastest: [corr, chan]
    let mut table = NewTable::new()
        .table_type("Measurement Set")
        .keyword("OBSERVER", Value::string("nobody"))
        .column(ColumnDesc::scalar::<f64>("TIME").unit("s").comment("Modified Julian Day"))
        .column(ColumnDesc::scalar::<i32>("ANTENNA1"))
        .column(ColumnDesc::array::<f64>("UVW").direct(Shape::from([3])).unit("m"))
        .column(ColumnDesc::array::<Complex32>("DATA").ndim(2))
        .column(ColumnDesc::array::<bool>("FLAG").ndim(2))
        // the time stays the same over many rows, visibilities go into tiles; the rest goes to a
        // StandardStMan
        .bind(ManagerSpec::incremental("Slow"), ["TIME"])
        .bind(ManagerSpec::tiled_shape("TiledData", &Shape::from([4, 64, 32])), ["DATA"])
        .bind(ManagerSpec::tiled_shape("TiledFlag", &Shape::from([4, 64, 256])), ["FLAG"])
        .create(&path)?;

    // a table inside it, and the keyword that names it
    let names: Vec<BString> = (0..4).map(|number| format!("A{number}").into()).collect();
    let antennas = NewTable::new().column(ColumnDesc::scalar::<BString>("NAME"));
    let mut antennas = table.subtable("ANTENNA", antennas)?;
    antennas.add_rows(names.len() as u64)?;
    antennas.column("NAME")?.put_scalars(0, names)?;
    antennas.close()?;

    for time in 0..TIMES {
        let first = table.rows();
        table.add_rows(BASELINES as u64)?;
        table.column("TIME")?.put_scalars(first, vec![5e9 + time as f64; BASELINES])?;
        table.column("ANTENNA1")?.put_scalars(first, (0..BASELINES as i32).collect())?;
        // arrays are in numpy's order, slowest axis first: (row, chan, corr)
        let data = ArrayD::from_elem(vec![BASELINES, CHANNELS, 4], Complex32::new(1., time as f32));
        table.column("DATA")?.put_rows(first, &data)?;
        table.column("FLAG")?.put_rows(first, &ArrayD::from_elem(vec![BASELINES, CHANNELS, 4], false))?;
    }
    table.close()?;

    let table = Table::open(&path)?;
    println!("{} rows, {} columns", table.rows(), table.columns().len());
    println!("DATA of the last row: {}", table.column("DATA")?.cell::<Complex32>(table.rows() - 1)?[[0, 0]]);
    Ok(())
}
