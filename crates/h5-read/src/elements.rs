//! Tests: elements of small files that testdata/h5-read/make_datasets.py made, whole and with bytes
//! changed.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::checksum::tests::IGNORED;
use crate::chunks::Chunk;
use crate::dataset::Dataset;
use crate::error::{Error, ErrorKind, Result};
use crate::file::File;
use crate::filters::NoFilters;
use crate::layout::{ChunkIndex, Layout};
use crate::storage::Storage;

const OLD: &[u8] = include_bytes!("../../../testdata/h5-read/datasets_old.h5");
const NEW: &[u8] = include_bytes!("../../../testdata/h5-read/datasets_new.h5");

fn datasets(bytes: &[u8]) -> Vec<(String, Dataset)> {
    let file = File::open(bytes.to_vec()).unwrap();
    let root = file.root().unwrap();
    let links = root.links().whole().unwrap().into_iter();
    links
        .map(|link| {
            let dataset = root.find(&link.name).unwrap().dataset().unwrap();
            (String::from_utf8(link.name).unwrap(), dataset)
        })
        .collect()
}

fn dataset(bytes: &[u8], name: &str) -> Dataset {
    File::open(bytes.to_vec()).unwrap().root().unwrap().find(name).unwrap().dataset().unwrap()
}

fn whole(dataset: &Dataset) -> Vec<Range<u64>> {
    dataset.space().extents.iter().map(|&extent| 0..extent).collect()
}

fn read(dataset: &Dataset, region: &[Range<u64>]) -> Vec<u16> {
    let bytes = dataset.read(region, &NoFilters).unwrap();
    bytes.as_chunks().0.iter().map(|&element| u16::from_be_bytes(element)).collect()
}

#[test]
fn elements_of_every_layout_and_index() {
    let mut indices = Vec::new();
    for (name, dataset) in datasets(OLD).into_iter().chain(datasets(NEW)) {
        let found = read(&dataset, &whole(&dataset));
        let expected: Vec<u16> = (1..=dataset.space().elements().unwrap() as u16).collect();
        match name.as_str() {
            "unwritten" => assert_eq!(found, [7; 6]),
            name if name.starts_with("fixed") || name == "filtered tree" => {
                let partial = [7, 7, 7, 7, 5, 6, 7, 7, 9, 10, 7, 7, 13, 14, 7, 7, 17, 18, 7, 7];
                assert_eq!(found, partial, "{name}");
            }
            name => assert_eq!(found, expected, "{name}"),
        }
        if let Layout::Chunked(layout) = dataset.layout() {
            indices.push(layout.index);
        }
    }
    for index in [ChunkIndex::BTree1, ChunkIndex::Single, ChunkIndex::Implicit] {
        assert!(indices.contains(&index), "{index:?}");
    }
    for index in [ChunkIndex::FixedArray, ChunkIndex::ExtensibleArray, ChunkIndex::BTree2] {
        assert!(indices.contains(&index), "{index:?}");
    }
}

#[test]
fn every_region_is_part_of_the_whole() {
    for (name, dataset) in datasets(OLD).into_iter().chain(datasets(NEW)) {
        let &[rows, columns] = dataset.space().extents.as_slice() else { continue };
        let all = read(&dataset, &whole(&dataset));
        for (first, end) in (0..=rows).flat_map(|first| (first..=rows).map(move |end| (first, end))) {
            for (left, right) in (0..=columns).flat_map(|left| (left..=columns).map(move |right| (left, right))) {
                let row = |row: u64| &all[(row * columns + left) as usize..(row * columns + right) as usize];
                let expected: Vec<u16> = (first..end).flat_map(row).copied().collect();
                assert_eq!(read(&dataset, &[first..end, left..right]), expected, "{name}");
            }
        }
    }
}

#[test]
fn regions_beyond_the_extents_are_refused() {
    let dataset = dataset(NEW, "tree");
    let refused = |region: &[Range<u64>]| dataset.read(region, &NoFilters).unwrap_err().kind();
    #[expect(clippy::reversed_empty_ranges, reason = "the range is wrong on purpose")]
    for region in [&[][..], &[0..5, 0..5], &[0..5, 3..2], &[0..5, 0..4, 0..1]] {
        assert_eq!(refused(region), ErrorKind::Missing);
    }
    assert_eq!(dataset.chunk(&[5, 0]).unwrap_err().kind(), ErrorKind::Missing);
    let error = dataset.read_into(&whole(&dataset), &NoFilters, &mut [0; 39]).unwrap_err();
    assert_eq!(error.message(), "the elements have 40 bytes, the buffer has 39");
}

#[test]
fn chunks_have_their_places_and_filters() {
    let plain = dataset(NEW, "late plain edges");
    let chunks = plain.chunks().whole().unwrap();
    let starts: Vec<_> = chunks.iter().map(|chunk| chunk.start.as_slice()).collect();
    assert_eq!((starts[0], starts[1], starts[11]), (&[0, 0, 0][..], &[0, 0, 3][..], &[2, 1, 6][..]));
    let filtered: Vec<_> = chunks.iter().map(|chunk| chunk.is_filtered).collect();
    assert_eq!(filtered, [[true; 6], [false; 6]].concat());
    for chunk in &chunks {
        assert_eq!(plain.chunk(&chunk.start).unwrap().as_ref(), Some(chunk));
        assert_eq!(plain.read_chunk(chunk, &NoFilters).unwrap().len(), 12);
    }
    assert_eq!(dataset(NEW, "fixed").chunk(&[4, 3]).unwrap(), None);
    assert_eq!(dataset(NEW, "compact").chunk(&[0, 0]).unwrap_err().kind(), ErrorKind::Missing);
}

#[test]
fn damaged_chunk_is_lost_alone() {
    let chunk: Chunk = dataset(OLD, "filtered tree").chunk(&[2, 1]).unwrap().unwrap();
    let mut bytes = OLD.to_vec();
    bytes[chunk.address as usize] ^= 1;
    let dataset = dataset(&bytes, "filtered tree");
    let error = dataset.read(&whole(&dataset), &NoFilters).unwrap_err();
    assert!(error.to_string().contains("chunk [2, 0]: filter fletcher32: the checksum is"), "{error}");
    let (mut out, mut damage) = (vec![9; 40], Vec::new());
    dataset.salvage_into(&whole(&dataset), &NoFilters, &mut out, &mut damage).unwrap();
    let found: Vec<u16> = out.as_chunks().0.iter().map(|&element| u16::from_be_bytes(element)).collect();
    assert_eq!(found, [7, 7, 7, 7, 5, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 17, 18, 7, 7]);
    assert_eq!(damage.len(), 1);
}

fn visit(bytes: Vec<u8>) -> Result<()> {
    let file = File::open(bytes)?;
    let root = file.root()?;
    for link in root.links().items {
        let Ok(dataset) = root.find(&link.name).and_then(|object| object.dataset()) else { continue };
        for chunk in dataset.chunks().items.iter().take(3) {
            let _ = (dataset.chunk(&chunk.start), dataset.read_chunk(chunk, &NoFilters));
        }
        let region: Vec<_> = dataset.space().extents.iter().map(|&extent| extent / 2..extent.min(40)).collect();
        let _ = dataset.read(&region, &NoFilters);
    }
    Ok(())
}

#[test]
fn any_changed_byte_ends() {
    IGNORED.set(true);
    for (original, step) in [(OLD, 3), (NEW, 11)] {
        for at in (0..original.len()).step_by(step) {
            let mut bytes = original.to_vec();
            bytes[at] = if at % 2 == 0 { 0xff } else { bytes[at].wrapping_add(1) };
            let _ = visit(bytes);
        }
    }
    IGNORED.set(false);
}

/// A file whose bytes beyond `from` are wrong in some of the reads, as those of a writer can be.
struct Torn {
    bytes: Vec<u8>,
    from: u64,
    reads: AtomicU32,
}

impl Storage for Torn {
    fn len(&self) -> io::Result<u64> {
        Storage::len(&self.bytes)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.bytes.read_at(offset, out)?;
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        if offset >= self.from && read.wrapping_mul(0x9e37_79b9) >> 30 == 0 {
            out.iter_mut().for_each(|byte| *byte ^= 0x55);
        }
        Ok(())
    }
}

/// The file of new datasets, as if a writer had it open.
fn live(from: u64) -> Result<File> {
    let mut bytes = NEW.to_vec();
    assert_eq!((bytes[8], bytes[9]), (3, 8));
    bytes[11] = 5;
    let sealed = crate::testing::seal(bytes[..44].to_vec());
    bytes[..48].copy_from_slice(&sealed);
    File::open(Torn { bytes, from, reads: AtomicU32::new(0) })
}

#[test]
fn torn_structures_of_a_live_file_are_read_again() {
    let file = live(48).unwrap();
    assert!(file.superblock().is_live());
    let root = file.root().unwrap();
    for name in ["extensible filtered", "late filtered", "tree filtered", "fixed filtered", "single filtered"] {
        let dataset = root.find(name).unwrap().dataset().unwrap().refreshed().unwrap();
        let expected = self::dataset(NEW, name);
        assert_eq!(dataset.chunks().items, expected.chunks().items, "{name}");
    }
}

#[test]
fn structures_that_stay_damaged_are_given_up_soon() {
    let begin = std::time::Instant::now();
    let mut bytes = NEW.to_vec();
    bytes[11] = 5;
    let sealed = crate::testing::seal(bytes[..44].to_vec());
    bytes[..48].copy_from_slice(&sealed);
    bytes[48..].iter_mut().for_each(|byte| *byte ^= 0x55);
    let file = File::open(bytes).unwrap();
    for address in 48..1048 {
        let error: Error = file.object(address).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Damaged | ErrorKind::Unsupported));
    }
    assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
}
