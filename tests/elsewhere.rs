//! A native file made by a stranger names files of the user as the place of its elements: no call
//! of the library opens them unless asked to, and then only below the file's own directory.
//!
//! tests/python/convert/test_external.py does this for every verb, and for links.

use std::fs;
use std::path::PathBuf;

use ctds_hdf5::convert::{Digest, ToTable};
use ctds_hdf5::{ErrorKind, Result, Table};
use hdf5::plist::DatasetCreateBuilder;
use hdf5::types::VarLenUnicode;
use tempfile::TempDir;

const ROWS: usize = 20;

/// `data/hand.h5` with a column X whose elements are elsewhere, and a file of the user beside
/// `data`.
struct Made {
    folder: TempDir,
}

impl Made {
    /// The column X has the storage that `storage` gives it.
    fn new(storage: impl Fn(&mut DatasetCreateBuilder) -> &mut DatasetCreateBuilder) -> Made {
        let made = Made { folder: TempDir::new().unwrap() };
        fs::create_dir(made.path("data")).unwrap();
        fs::write(made.path("secret"), elements(7.)).unwrap();
        let other = hdf5::File::create(made.path("other.h5")).unwrap();
        other.new_dataset_builder().with_data(&[8.; ROWS]).create("d").unwrap();
        drop(other);
        let file = hdf5::File::create(made.path("data/hand.h5")).unwrap();
        for (name, value) in [("format", "ctds-hdf5"), ("format_version", "1.0")] {
            let value: VarLenUnicode = value.parse().unwrap();
            file.new_attr::<VarLenUnicode>().create(name).unwrap().write_scalar(&value).unwrap();
        }
        let group = file.create_group("MAIN").unwrap();
        group.new_dataset_builder().with_data(&[1.; ROWS]).create("A").unwrap();
        group.new_dataset_builder().with_dcpl(storage).empty::<f64>().shape([ROWS]).create("X").unwrap();
        drop((group, file));
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// X after a conversion to a table.
    fn convert(&self, follow_external: bool) -> Result<Vec<f64>> {
        let target = self.path("out.tab");
        ToTable::new(self.path("data/hand.h5")).follow_external(follow_external).write(&target)?;
        let values = Table::open(&target)?.column("X")?.rows::<f64>(0..ROWS as u64)?;
        Ok(values.iter().copied().collect())
    }

    /// Every call that reads elements refuses, and names the dataset and the place.
    fn assert_refused(&self, follow_external: bool, named: &str) {
        let mut errors = vec![self.convert(follow_external).unwrap_err()];
        let digests = Digest::new(self.path("data/hand.h5")).follow_external(follow_external).run();
        match digests {
            Err(error) => errors.push(error),
            Ok(digests) => errors.extend(digests.into_iter().filter_map(|(_, digest)| digest.err())),
        }
        assert_eq!(errors.len(), 2, "a digest was made of the elements in {named}");
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(error.to_string().contains("X") && error.to_string().contains(named), "{error}");
        }
        assert!(!self.path("out.tab").exists());
    }
}

fn elements(value: f64) -> Vec<u8> {
    value.to_ne_bytes().repeat(ROWS)
}

#[test]
fn external_storage_is_refused() {
    let secret = TempDir::new().unwrap();
    let absolute = secret.path().join("secret");
    fs::write(&absolute, elements(9.)).unwrap();
    for name in [absolute.to_str().unwrap(), "../secret", "/etc/passwd"] {
        let made = Made::new(|creation| creation.external(name, 0, 8 * ROWS));
        made.assert_refused(false, name);
        // asked for, but not below the directory of the file
        made.assert_refused(true, name);
    }
}

#[test]
fn virtual_datasets_are_refused() {
    let made = Made::new(|creation| creation.virtual_map("../other.h5", "/d", ROWS, .., ROWS, ..));
    made.assert_refused(false, "../other.h5");
    made.assert_refused(true, "../other.h5");
}

#[test]
fn files_below_the_directory_are_followed_when_asked_for() {
    let made = Made::new(|creation| creation.external("raw.bin", 0, 8 * ROWS));
    fs::write(made.path("data/raw.bin"), elements(3.)).unwrap();
    made.assert_refused(false, "raw.bin");
    assert_eq!(made.convert(true).unwrap(), [3.; ROWS]);

    let made = Made::new(|creation| creation.virtual_map("other.h5", "/d", ROWS, .., ROWS, ..));
    fs::copy(made.path("other.h5"), made.path("data/other.h5")).unwrap();
    made.assert_refused(false, "other.h5");
    assert_eq!(made.convert(true).unwrap(), [8.; ROWS]);
}
