//! Indices made by hand, with the smallest blocks and pages.

use super::*;
use crate::dataspace::SpaceKind;
use crate::testing::{START, file, seal};

const NONE: u64 = u64::MAX;

#[derive(Clone, Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn new(signature: &[u8; 4], bytes: &[u8]) -> Self {
        Fields([signature, bytes].concat())
    }

    fn words(mut self, words: &[u64]) -> Self {
        words.iter().for_each(|word| self.0.extend(word.to_le_bytes()));
        self
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn seal(self) -> Self {
        Fields(seal(self.0))
    }
}

/// Chunks of 2 by 1 elements of 1 byte; structures follow each other from [`START`] on.
fn list(index: ChunkIndex, extents: &[u64], max: &[Option<u64>], structures: &[Fields]) -> Listing<Chunk> {
    let structures: Vec<u8> = structures.iter().flat_map(|fields| fields.0.clone()).collect();
    let file = file(&structures);
    let layout = Chunked::new(vec![2, 1], 1, index, Some(START));
    let space = Dataspace { kind: SpaceKind::Simple, extents: extents.to_vec(), max: max.to_vec() };
    let chunks = Chunks::new(&file, &layout, &space, false).unwrap();
    let all = chunks.list(&chunks.all().unwrap());
    for chunk in &all.items {
        let at: Vec<_> = chunk.start.iter().map(|&at| at..at + 1).collect();
        let found = chunks.list(&chunks.window(&at).unwrap());
        assert_eq!(found.items, std::slice::from_ref(chunk));
    }
    // beyond the extents, edges are others
    let everything = starts(&chunks.list(&chunks.everything()));
    assert!(starts(&all).iter().all(|found| everything.contains(found)), "{everything:?}");
    all
}

fn everything(index: ChunkIndex, extents: &[u64], max: &[Option<u64>], structures: &[Fields]) -> Vec<([u64; 2], u64)> {
    let structures: Vec<u8> = structures.iter().flat_map(|fields| fields.0.clone()).collect();
    let file = file(&structures);
    let layout = Chunked::new(vec![2, 1], 1, index, Some(START));
    let space = Dataspace { kind: SpaceKind::Simple, extents: extents.to_vec(), max: max.to_vec() };
    let chunks = Chunks::new(&file, &layout, &space, false).unwrap();
    let found = chunks.list(&chunks.everything());
    assert!(found.damage.is_empty(), "{:?}", found.damage);
    starts(&found)
}

fn starts(listing: &Listing<Chunk>) -> Vec<([u64; 2], u64)> {
    listing.items.iter().map(|chunk| ([chunk.start[0], chunk.start[1]], chunk.address)).collect()
}

/// A fixed array of 5 entries in pages of 2, of which the second was never written.
fn fixed_array() -> Vec<Fields> {
    let header = Fields::new(b"FAHD", &[0, 0, 8, 1]).words(&[5, START + 28]).seal();
    let block = Fields::new(b"FADB", &[0, 0]).words(&[START]).bytes(&[0b1010_0000]).seal();
    let page = |entries: &[u64]| Fields::default().words(entries).seal();
    vec![header, block, page(&[1, NONE]), Fields(vec![9; 20]), page(&[5])]
}

#[test]
fn fixed_array_in_pages() {
    let max = [Some(10), Some(1)];
    let found = list(ChunkIndex::FixedArray, &[10, 1], &max, &fixed_array());
    assert_eq!((starts(&found), found.damage.len()), (vec![([0, 0], 1), ([8, 0], 5)], 0));
    // the number of entries is that of the greatest extents
    let found = list(ChunkIndex::FixedArray, &[3, 1], &max, &fixed_array());
    assert_eq!(starts(&found), [([0, 0], 1)]);
    let found = list(ChunkIndex::FixedArray, &[4, 1], &[Some(4), Some(1)], &fixed_array());
    assert!(found.damage[0].to_string().ends_with("the array has 5 entries, the dataset 2"), "{:?}", found.damage);
}

#[test]
fn damaged_page_costs_its_own_chunks() {
    let mut structures = fixed_array();
    structures[2].0[0] ^= 1;
    let found = list(ChunkIndex::FixedArray, &[10, 1], &[Some(10), Some(1)], &structures);
    assert_eq!((starts(&found), found.damage.len()), (vec![([8, 0], 5)], 1));
    assert!(found.damage[0].to_string().contains("page of a fixed array at address"));
    structures.truncate(4);
    let found = list(ChunkIndex::FixedArray, &[10, 1], &[Some(10), Some(1)], &structures);
    assert!(found.damage[1].to_string().ends_with("the file ends before"), "{:?}", found.damage);
}

/// An array with entry 0 in the index block, 2 and 3 in a data block, 14 and 15 in the last page of
/// a super block.
fn extensible_array() -> Vec<Fields> {
    let at = |sizes: &[u64]| START + sizes.iter().sum::<u64>();
    let (header, index, block, group) = (72, 66, 35, 37);
    let head = |signature, address: u64| Fields::new(signature, &[0, 0]).words(&[address]);
    vec![
        // 4 bits of an index, 1 entry in the index block, at least 1 in a block, 2 addresses, pages
        // of 2
        Fields::new(b"EAHD", &[0, 0, 8, 4, 1, 1, 2, 1]).words(&[0, 0, 0, 0, 16, 0, at(&[header])]).seal(),
        head(b"EAIB", START).words(&[100, NONE, at(&[header, index]), NONE, at(&[header, index, block]), NONE]).seal(),
        head(b"EADB", START).bytes(&[1]).words(&[NONE, 103]).seal(),
        head(b"EASB", START).bytes(&[7, 0b0001_0000, 0]).words(&[NONE, at(&[header, index, block, group])]).seal(),
        head(b"EADB", START).bytes(&[11]).seal(),
        Fields(vec![9; 20]),
        Fields::default().words(&[114, 115]).seal(),
    ]
}

#[test]
fn extensible_array_with_super_blocks_and_pages() {
    let structures = extensible_array();
    let sizes: Vec<_> = structures.iter().map(|fields| fields.0.len()).collect();
    assert_eq!(sizes, [72, 66, 35, 37, 19, 20, 20]);
    let found = list(ChunkIndex::ExtensibleArray, &[32, 1], &[None, Some(1)], &structures);
    assert_eq!(starts(&found), [([0, 0], 100), ([6, 0], 103), ([28, 0], 114), ([30, 0], 115)]);
    assert!(found.damage.is_empty(), "{:?}", found.damage);
    // the unlimited axis is the slowest in the array
    let found = list(ChunkIndex::ExtensibleArray, &[4, 8], &[Some(4), None], &structures);
    assert_eq!(starts(&found), [([0, 0], 100), ([0, 7], 114), ([2, 1], 103), ([2, 7], 115)]);
    let found = list(ChunkIndex::ExtensibleArray, &[32, 1], &[Some(32), Some(1)], &structures);
    assert_eq!(found.damage[0].message(), "chunks in an extensible array have no unlimited axis");
}

#[test]
fn chunks_beyond_the_extents_are_in_every_index() {
    let found = everything(ChunkIndex::ExtensibleArray, &[1, 1], &[None, Some(1)], &extensible_array());
    assert_eq!(found, [([0, 0], 100), ([6, 0], 103), ([28, 0], 114), ([30, 0], 115)]);
    let found = everything(ChunkIndex::FixedArray, &[0, 1], &[Some(10), Some(1)], &fixed_array());
    assert_eq!(found, [([0, 0], 1), ([8, 0], 5)]);
    let node = key(key(tree(b"TREE", 0, 2), [0, 0]).words(&[100]), [u64::MAX - 1, 0]).words(&[102]);
    let found = everything(ChunkIndex::BTree1, &[1, 1], &[None, None], &[key(node, [u64::MAX, 0])]);
    assert_eq!(found, [([0, 0], 100), ([u64::MAX - 1, 0], 102)]);
}

#[test]
fn damaged_super_block_leaves_the_rest() {
    let mut structures = extensible_array();
    structures[3].0[20] ^= 1;
    let found = list(ChunkIndex::ExtensibleArray, &[32, 1], &[None, Some(1)], &structures);
    assert_eq!((starts(&found), found.damage.len()), (vec![([0, 0], 100), ([6, 0], 103)], 1));
}

fn tree(signature: &[u8; 4], level: u8, entries: u8) -> Fields {
    Fields::new(signature, &[1, level, entries, 0]).words(&[NONE, NONE])
}

/// Key of a chunk of 2 bytes.
fn key(fields: Fields, start: [u64; 2]) -> Fields {
    fields.words(&[2, start[0], start[1], 0])
}

#[test]
fn old_tree_of_two_levels() {
    let node = 24 + 2 * 40 + 32;
    let root = key(tree(b"TREE", 1, 2), [0, 0]).words(&[START + node]);
    let root = key(key(root, [2, 1]).words(&[START + 2 * node]), [6, 0]);
    let first = key(key(tree(b"TREE", 0, 2), [0, 0]).words(&[100]), [2, 0]).words(&[101]);
    let second = key(key(tree(b"TREE", 0, 2), [2, 1]).words(&[102]), [5, 0]).words(&[103]);
    let structures = [root, key(first, [2, 1]), key(second, [6, 0])];
    let found = list(ChunkIndex::BTree1, &[6, 2], &[Some(6), Some(2)], &structures);
    assert_eq!(starts(&found), [([0, 0], 100), ([2, 0], 101), ([2, 1], 102)]);
    assert_eq!(found.damage[0].message(), "a chunk does not begin where chunks can");
}

#[test]
fn overlapping_chunks_are_damage() {
    let node = key(key(tree(b"TREE", 0, 3), [0, 0]).words(&[100]), [2, 0]).words(&[100]);
    let node = key(key(node, [4, 0]).words(&[104]), [6, 0]);
    let found = list(ChunkIndex::BTree1, &[6, 1], &[None, None], &[node]);
    assert_eq!(starts(&found), [([0, 0], 100), ([4, 0], 104)]);
    assert_eq!(found.damage[0].message(), "the block is part of two others, or of itself");
}

#[test]
fn new_tree_of_one_leaf() {
    let head = Fields::new(b"BTHD", &[0, 10, 64, 0, 0, 0, 24, 0, 0, 0, 100, 40]);
    let header = head.words(&[START + 38]).bytes(&[2, 0]).words(&[2]).seal();
    let leaf = Fields::new(b"BTLF", &[0, 10]).words(&[100, 0, 3, 101, 2, 1]).seal();
    let found = list(ChunkIndex::BTree2, &[6, 4], &[None, None], &[header, leaf, Fields(vec![0; 20])]);
    assert_eq!((starts(&found), found.damage.len()), (vec![([0, 3], 100), ([4, 1], 101)], 0));
}

#[test]
fn chunks_without_an_index_end_with_the_file() {
    let found = list(ChunkIndex::Implicit, &[6, 2], &[Some(6), Some(3)], &[Fields(vec![0; 12])]);
    assert_eq!(starts(&found)[..3], [([0, 0], START), ([0, 1], START + 2), ([2, 0], START + 6)]);
    assert_eq!(found.damage[0].message(), format!("the file ends before 2 chunks at address {START}"));
    let found = list(ChunkIndex::Single, &[2, 1], &[Some(2), Some(1)], &[]);
    assert_eq!(starts(&found), [([0, 0], START)]);
    let found = list(ChunkIndex::Single, &[3, 1], &[Some(3), Some(1)], &[]);
    assert_eq!((found.items.len(), found.damage.len()), (0, 1));
}
