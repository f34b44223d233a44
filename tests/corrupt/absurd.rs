//! Sizes that no bytes back: refused, or worked through in blocks.

use std::time::{Duration, Instant};

use ctds_hdf5::convert::ToHdf5;
use ctds_hdf5::{ColumnDesc, ErrorKind, NewTable};
use ctds_hdf5_testing::{Copy, fields_of, step};
use ndarray::ArrayD;

use super::{convert, limit_memory, read_all};

/// The file is refused by reading and by converting, and soon.
#[track_caller]
fn is_refused(copy: &Copy) {
    limit_memory();
    let started = Instant::now();
    for result in [read_all(&copy.path()), convert(&copy.path(), &copy.beside("out.h5"))] {
        let error = result.expect_err("it is absurd");
        assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Limit | ErrorKind::NoSpace), "{error:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
}

/// Writes a row count of 64 bits into table.lock, in place of the record that is there.
fn set_lock_rows(copy: &Copy, rows: u64) {
    let mut fields = rows.to_be_bytes().to_vec();
    fields.extend((-1i32).to_be_bytes());
    fields.extend(1u32.to_be_bytes());
    let mut record = 0xbebe_bebeu32.to_be_bytes().to_vec();
    record.extend((fields.len() as u32 + 16).to_be_bytes());
    record.extend(b"\0\0\0\x04sync\0\0\0\x02");
    record.extend(fields);
    copy.edit("table.lock", |bytes| {
        bytes.truncate(260);
        bytes.extend((record.len() as u32).to_be_bytes());
        bytes.extend(record);
    });
}

#[test]
fn rows_beyond_reason() {
    for name in [
        "dtypes_all_managers/StandardStMan_big.tab",
        "dtypes_all_managers/IncrementalStMan_little.tab",
        "dtypes_all_managers/StManAipsIO_big.tab",
        "dtypes_tiled/TiledColumnStMan_float_little.tab",
        "dtypes_tiled/TiledCellStMan_float_little.tab",
        "dtypes_tiled/TiledShapeStMan_boolean_big.tab",
        "memory/memory.tab",
        "undefined/little.tab",
    ] {
        for rows in [1 << 40, 1 << 60, u64::MAX] {
            let copy = Copy::of(name);
            set_lock_rows(&copy, rows);
            is_refused(&copy);
        }
    }
}

#[test]
fn shapes_of_2_to_the_60() {
    // the first fixed shape of a column in table.dat: behind `IPosition`, its version and its
    // number of axes
    for name in ["StandardStMan_big", "IncrementalStMan_little", "StManAipsIO_big"] {
        let copy = Copy::of(&format!("dtypes_all_managers/{name}.tab"));
        let mut changed = false;
        copy.edit("table.dat", |bytes| {
            let mut at = 0;
            while let Some(found) = bytes[at..].windows(9).position(|window| window == b"IPosition") {
                at += found + 9;
                let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
                let (version, axes) = (word(at), word(at + 4));
                if version == 1 && axes >= 2 && word(at + 8) != u32::MAX {
                    bytes[at + 8..at + 16].copy_from_slice(&[0x40, 0, 0, 0, 0x40, 0, 0, 0]);
                    changed = true;
                }
            }
        });
        assert!(changed, "{name} has a fixed shape of two axes");
        is_refused(&copy);
    }
}

#[test]
fn arrays_of_2_to_the_60() {
    for name in ["StandardStMan_little", "IncrementalStMan_little"] {
        let copy = Copy::of(&format!("dtypes_all_managers/{name}.tab"));
        // version, reference count, axes, extents
        copy.edit("table.f0i", |bytes| {
            let mut at = 16;
            let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            while at + 16 < bytes.len() {
                if word(bytes, at) == 1 && word(bytes, at + 4) == 2 {
                    bytes[at + 8..at + 16].copy_from_slice(&[0, 0, 0, 0x40, 0, 0, 0, 0x40]);
                }
                at += 1;
            }
        });
        is_refused(&copy);
    }
}

#[test]
fn tiles_and_cubes_beyond_reason() {
    let copy = Copy::of("dtypes_tiled/TiledColumnStMan_float_little.tab");
    let header = copy.read("table.f0");
    // every IPosition in the header: default tile, cube, tile
    let places: Vec<usize> = (0..header.len() - 9).filter(|&at| header[at..].starts_with(b"IPosition")).collect();
    assert!(places.len() >= 3, "default tile, cube and tile shape");
    for &place in &places[1..] {
        for extent in [0u32, 1, 0x7fff_ffff, u32::MAX] {
            let copy = Copy::of("dtypes_tiled/TiledColumnStMan_float_little.tab");
            let axes = u32::from_be_bytes(header[place + 13..place + 17].try_into().unwrap()) as usize;
            for axis in 0..axes {
                copy.put("table.f0", place + 17 + 4 * axis, &extent.to_be_bytes());
            }
            if extent == 1 && place != places[1] {
                // another tile shape is legal, with other values, unless the file is too short for
                // it
                if let Err(error) = read_all(&copy.path()) {
                    assert_eq!(error.kind(), ErrorKind::Format, "{error}");
                }
            } else {
                is_refused(&copy);
            }
        }
    }
}

#[test]
fn counts_beyond_reason() {
    // all counts in table.dat are among its words
    let copy = Copy::of("dtypes_all_managers/StandardStMan_little.tab");
    let original = copy.read("table.dat");
    for at in (0..original.len() - 4).step_by(step(5)) {
        copy.put("table.dat", at, &0x7fff_ffffu32.to_be_bytes());
        super::check(&copy.path(), None).unwrap_or_else(|error| panic!("table.dat byte {at}: {error}"));
        copy.write("table.dat", &original);
    }
    // and in the managers' headers, in both byte orders
    for (name, file, object) in [
        ("dtypes_all_managers/StandardStMan_little.tab", "table.f0", "StandardStMan"),
        ("dtypes_all_managers/IncrementalStMan_big.tab", "table.f0", "IncrementalStMan"),
        ("dtypes_all_managers/StManAipsIO_big.tab", "table.f0", "StManAipsIO"),
        ("dtypes_tiled/TiledShapeStMan_float_big.tab", "table.f0", "TiledStMan"),
    ] {
        let copy = Copy::of(name);
        let original = copy.read(file);
        let start = fields_of(&original, object);
        for at in (start..(start + 80).min(original.len() - 4)).step_by(step(5)) {
            for value in [0x7fff_ffffu32, u32::MAX, 0x4000_0000] {
                for bytes in [value.to_be_bytes(), value.to_le_bytes()] {
                    copy.put(file, at, &bytes);
                    super::check(&copy.path(), None).unwrap_or_else(|error| panic!("{name} byte {at}: {error}"));
                    copy.write(file, &original);
                }
            }
        }
    }
}

#[test]
fn giant_tiles_of_an_empty_cube() {
    let copy = Copy::of("zero_rows/TiledColumnStMan.tab");
    copy.edit("table.f0", |header| {
        // the last shape of the header is the tile of the cube: behind `IPosition`, its version and
        // its number of axes
        let at = header.windows(9).rposition(|window| window == b"IPosition").unwrap();
        header[at + 17..at + 29].copy_from_slice(&[0x7f; 12]);
    });
    limit_memory();
    read_all(&copy.path()).unwrap();
    convert(&copy.path(), &copy.beside("out.h5")).unwrap();
}

/// Columns whose cells have more axes than HDF5 has are left out, and named.
#[test]
fn axes_beyond_reason() {
    limit_memory();
    let folder = tempfile::tempdir().unwrap();
    for (name, rows, ndim) in [("forty", 1, 40), ("none", 0, i32::MAX as u32)] {
        let path = folder.path().join(name);
        let column = ColumnDesc::array::<f32>("A").ndim(ndim);
        let mut table = NewTable::new().column(column).column(ColumnDesc::scalar::<i32>("B")).create(&path).unwrap();
        table.add_rows(rows).unwrap();
        for row in 0..rows {
            table.column("A").unwrap().put_cell(row, &ArrayD::from_elem(vec![1; 40], 1f32)).unwrap();
        }
        table.close().unwrap();
        let plan = ToHdf5::new(&path).plan().unwrap();
        let missing: Vec<_> = plan.tables()[0].missing.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(missing, ["A"]);
        let warnings = plan.warnings();
        assert!(warnings[0].contains(&format!("cells of {ndim} axes; in HDF5 they have at most 31")), "{warnings:?}");
        convert(&path, &folder.path().join("out.h5")).unwrap();
    }
}
