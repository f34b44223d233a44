//! Prints a column of scalars of a table, for example TIME:
//! `cargo run -p ctds --example print_column my.ms TIME`.

use std::env;
use std::error::Error;

use ctds::Table;

fn main() -> Result<(), Box<dyn Error>> {
    let (Some(path), Some(name)) = (env::args().nth(1), env::args().nth(2)) else {
        return Err("give the path of a table and the name of a column".into());
    };
    let table = Table::open(path)?;
    for value in table.column(&name)?.rows::<f64>(0..table.rows())? {
        println!("{value}");
    }
    Ok(())
}
