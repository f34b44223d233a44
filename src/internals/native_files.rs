//! Native HDF5 files as input of a fuzz target: damage whose checksums are right, which a reader
//! cannot see by them.
//!
//! The input is a file and the places of its checksums: 4 bytes for the offset of the bytes that a
//! checksum follows, 4 for their number. HDF5 File Format Specification 3.0: metadata of new
//! versions end with the lookup3 hash of the bytes before.

use std::path::Path;

use h5_read::lookup3;

use super::fuzz::{File, pack, unpack};
use crate::convert::{Digest, Hdf5Version, ToHdf5};
use crate::error::{Error, ErrorKind, Result};
use crate::lint::Lint;

const SIGNATURES: [&[u8; 4]; 14] = [
    b"OHDR", b"OCHK", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTIN", b"BTLF", b"FAHD", b"FADB", b"EAHD", b"EAIB",
    b"EASB", b"EADB",
];

/// Bytes before a checksum, at most; longer ones of the samples are left damaged.
const LONGEST: usize = 1100;
const LARGEST_SAMPLE: usize = 1 << 16;
const SAMPLES: usize = 8;

/// Reads all tables of the file after its checksums were made right.
pub(super) fn read(bytes: &[u8]) -> Result<()> {
    let mut parts = unpack(bytes).into_iter().map(|(_, bytes)| bytes);
    let (mut file, places) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    for [offset, len] in places.as_chunks::<4>().0.as_chunks::<2>().0 {
        seal(&mut file, u32::from_le_bytes(*offset) as usize, u32::from_le_bytes(*len) as usize);
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.h5");
    std::fs::write(&path, file)?;
    let linted = Lint::new(&path).run().map(drop);
    let digested =
        Digest::new(&path).run().and_then(|tables| tables.into_iter().try_for_each(|(_, table)| table.map(drop)));
    // a file may say that it is being written
    linted.and(digested).map_err(|error| match error.kind() {
        ErrorKind::Locked => Error::format("the file is marked as being written"),
        _ => error,
    })
}

/// Makes the checksum of `len` bytes from `offset` on right.
fn seal(file: &mut [u8], offset: usize, len: usize) {
    let Some(end) = offset.checked_add(len.min(LONGEST)) else { return };
    let Some(checksum) = file.get(offset..end).map(lookup3) else { return };
    if let Some(sealed) = file.get_mut(end..end + 4) {
        sealed.copy_from_slice(&checksum.to_le_bytes());
    }
}

/// The places of all checksums in a file.
fn places(file: &[u8]) -> Vec<u8> {
    let mut places = Vec::new();
    let starts = (0..file.len()).filter(|&at| at == 0 || SIGNATURES.iter().any(|sign| file[at..].starts_with(*sign)));
    for start in starts {
        let has_checksum = |len: &usize| {
            let end = start + len;
            file.get(end..end + 4) == Some(&lookup3(&file[start..end]).to_le_bytes())
        };
        let longest = LONGEST.min(file.len() - start);
        if let Some(len) = (8..longest).find(has_checksum) {
            places.extend((start as u32).to_le_bytes());
            places.extend((len as u32).to_le_bytes());
        }
    }
    places
}

/// Files made of some of the tables, with chunk indices of all kinds.
pub(super) fn seeds(tables: &[Vec<File>]) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let made = tables.iter().step_by(tables.len() / (4 * SAMPLES) + 1).enumerate().filter_map(|(number, files)| {
        let file = native_file(&folder.path().join(number.to_string()), files, number).ok()?;
        let places = places(&file);
        (file.len() <= LARGEST_SAMPLE).then(|| pack(&[("a.h5".to_owned(), file), (String::new(), places)]))
    });
    made.take(SAMPLES).collect()
}

fn native_file(folder: &Path, files: &[File], number: usize) -> Result<Vec<u8>> {
    let table = folder.join("table");
    std::fs::create_dir_all(&table)?;
    for (name, bytes) in files {
        std::fs::write(table.join(name), bytes)?;
    }
    let version = if number % 3 == 2 { Hdf5Version::V18 } else { Hdf5Version::V110 };
    let path = folder.join("a.h5");
    ToHdf5::new(&table).hdf5(version).appendable(number % 3 == 1).write(&path)?;
    Ok(std::fs::read(path)?)
}
