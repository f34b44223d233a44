//! Packs a table directory into a vt archive, and lists the columns of the table in the archive:
//! `cargo run -p ctds-archives --example pack_table my.ms backup/my.vt`.

use std::env;
use std::error::Error;

use ctds::Directory;
use ctds_archives::{WriteOptions, open_table, pack_vt};

fn main() -> Result<(), Box<dyn Error>> {
    let (Some(directory), Some(archive)) = (env::args().nth(1), env::args().nth(2)) else {
        return Err("give the path of a table directory and of an archive, such as backup/my.vt".into());
    };
    let written = pack_vt(&Directory::new(directory), &archive, &WriteOptions::default(), &())?;
    println!("{} bytes added to the store", written.stored_bytes);
    let table = open_table(&archive)?;
    println!("{} rows", table.rows());
    for column in table.columns() {
        println!("{}", column.desc.name);
    }
    Ok(())
}
