//! Tests of appended rows, read back by this program and by libhdf5.

use hdf5::file::FileAccess;

use super::super::{File, LiveSpec, sys};
use super::*;
use crate::clock::Clock;
use crate::error::ErrorKind;
use crate::value::{Region, Values};

/// Depends on the chunks before and on flushes; a reader in this process sees flushed rows.
#[test]
fn rows_of_chunks_with_and_without_a_place_are_read_back() {
    const ROW: usize = 3;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("live.h5");
    let file = File::create_for_live(&path).unwrap();
    let element = Element::Number(DataType::Int);
    let root = file.root().unwrap();
    root.create_live("x", &LiveSpec { element, cell: &Shape::from([ROW as u64]), chunk_rows: 4 }).unwrap();
    drop(root);
    let file = file.go_live().unwrap();
    let dataset = file.dataset("/x").unwrap();
    let mut expected: Vec<i32> = Vec::new();
    let bytes = |values: &[i32]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
    let check = |opened: File, expected: &[i32]| {
        let mut found = Values::new(DataType::Int);
        let dataset = opened.root().unwrap().dataset("x").unwrap();
        let shape = Shape::from([ROW as u64, (expected.len() / ROW) as u64]);
        assert_eq!(dataset.shape().unwrap(), shape);
        dataset.read_region(&Region::whole(&shape), &mut found).unwrap();
        assert_eq!(found, Values::Int(expected.to_vec()));
    };
    let (mut next, mut without_libhdf5) = (0.., 0);
    for (number, rows) in [1usize, 2, 1, 9, 1, 1, 0, 3].into_iter().cycle().take(200).enumerate() {
        let values: Vec<i32> = next.by_ref().take(rows * ROW).collect();
        dataset.append(&bytes(&values)).unwrap();
        expected.extend(values);
        // earlier rows, over the end of a chunk
        if number % 7 == 3 {
            let first = expected.len() / ROW / 2;
            let values: Vec<i32> = next.by_ref().take(3 * ROW).collect();
            dataset.write(first as u64, &bytes(&values)).unwrap();
            expected[first * ROW..(first + 3) * ROW].copy_from_slice(&values);
        }
        // the newest row, which libhdf5 may not know of
        if number % 11 == 5 {
            let mut found = Vec::new();
            dataset.read(dataset.rows() - 1, 1, &mut found).unwrap();
            assert_eq!(found, bytes(&expected[expected.len() - ROW..]));
        }
        if number % 3 != 1 {
            without_libhdf5 += usize::from(!dataset.is_known_to_libhdf5());
            file.flush().unwrap();
            dataset.flush().unwrap();
            check(File::open_live(&path).unwrap(), &expected);
            // nor does libhdf5 share the memory of the writer with a program that opens the file by
            // it
            let plain = sys::open_file(&path, sys::Mode::ReadLive, &FileAccess::build().finish().unwrap()).unwrap();
            assert_eq!(plain.dataset("x").unwrap().shape(), [expected.len() / ROW, ROW]);
        }
    }
    assert!(dataset.rows() > 4 * 100, "chunks far from the first one");
    assert!(without_libhdf5 > 10, "{without_libhdf5}");
    drop(dataset);
    file.close().unwrap();
    check(File::open(&path).unwrap(), &expected);
}

#[test]
fn live_files_are_locked_while_they_are_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("live.h5");
    File::create_for_live(&path).unwrap().close().unwrap();
    let other = std::fs::File::open(&path).unwrap();
    other.lock().unwrap();
    assert_eq!(File::open_live(&path).unwrap_err().kind(), ErrorKind::Locked);
    other.unlock().unwrap();
    let _reader = File::open_live(&path).unwrap();
    other.try_lock().unwrap();
}

/// libhdf5 writes older rows before it is told of the row.
#[test]
fn rows_are_counted_whatever_libhdf5_writes_after_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("live.h5");
    let file = File::create_for_live(&path).unwrap();
    let root = file.root().unwrap();
    let element = Element::Number(DataType::Int);
    root.create_live("x", &LiveSpec { element, cell: &Shape::from([]), chunk_rows: 4 }).unwrap();
    drop(root);
    let file = file.go_live().unwrap();
    let dataset = file.dataset("/x").unwrap();
    let flush = || file.flush().and_then(|()| dataset.flush()).unwrap();
    // 40 chunks before: libhdf5 would take too long to find an old one for three rows, but not the
    // last for one row
    dataset.append(&[1; 4 * 161]).unwrap();
    flush();
    dataset.append(&[1; 4]).unwrap();
    assert!(!dataset.is_known_to_libhdf5());
    dataset.write(4 * 36, &[2; 4 * 3]).unwrap();
    assert!(dataset.is_known_to_libhdf5(), "libhdf5 has written");
    flush();
    let mut expected = vec![0x0101_0101; 162];
    expected[4 * 36..4 * 36 + 3].fill(0x0202_0202);
    let mut found = Values::new(DataType::Int);
    let reader = File::open_live(&path).unwrap().root().unwrap().dataset("x").unwrap();
    reader.read_region(&Region::whole(&Shape::from([162])), &mut found).unwrap();
    assert_eq!(found, Values::Int(expected));
}

/// The rest of a chunk is zeroed at once if rows are slow, but not if fast or very slow.
#[test]
fn chunks_of_slow_rows_are_filled() {
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;
    const ROW: u64 = 4096;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("live.h5");
    let file = File::create_for_live(&path).unwrap();
    let element = Element::Number(DataType::Int);
    let root = file.root().unwrap();
    root.create_live("x", &LiveSpec { element, cell: &Shape::from([ROW / 4]), chunk_rows: 64 }).unwrap();
    drop(root);
    let (mut file, clock) = (file.go_live().unwrap(), Clock::standing());
    file.set_clock(&clock);
    let dataset = file.dataset("/x").unwrap();
    let rows = vec![1; 48 * ROW as usize];
    // number of rows for which the file has no bytes, of the 64 rows of its last chunk
    let missing_after = |time: Duration| {
        clock.advance(time);
        dataset.append(&rows).unwrap();
        file.flush().unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        // the structure of the file is smaller than a row
        (metadata.len() + ROW / 2).saturating_sub(metadata.blocks() * 512) / ROW
    };
    let (fast, slow, rare) = (Duration::ZERO, Duration::from_millis(30), Duration::from_secs(20));
    assert_eq!([missing_after(fast), missing_after(fast)], [16, 32]);
    assert_eq!(missing_after(slow), 0, "16 rows of a chunk, and zeros");
    assert_eq!(
        [missing_after(rare), missing_after(rare)],
        [0, 16],
        "48 rows in the place of the zeros, then a new chunk"
    );
    drop(dataset);
    file.close().unwrap();
    let mut found = Values::new(DataType::Int);
    let shape = Shape::from([ROW / 4, 5 * 48]);
    let file = File::open(&path).unwrap();
    file.root().unwrap().dataset("x").unwrap().read_region(&Region::whole(&shape), &mut found).unwrap();
    assert_eq!(found, Values::Int(vec![0x0101_0101; 5 * 48 * ROW as usize / 4]));
}
