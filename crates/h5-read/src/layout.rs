//! Where the elements of a dataset are. HDF5 File Format Specification 3.0, sections IV.A.2.i
//! (layout) and IV.A.2.h (external files).
//!
//! | version | class                                                                                                 |
//! |---------|-------------------------------------------------------------------------------------------------------|
//! | 1, 2    | axes and class first, then the address and 4 bytes for each extent; chunks in a B-tree of version 1   |
//! | 3       | the class first; chunks in a B-tree of version 1                                                      |
//! | 4, 5    | as 3, chunks in five other indices, extents in as many bytes as a byte says; virtual datasets         |
//!
//! Extents of chunks end with the bytes of an element. Version 5, of HDF5 2.0, differs from 4 in
//! the indices alone: they have the stored bytes of a chunk in 8 bytes.

use crate::bytes::Bytes;
use crate::error::{Result, Within};
use crate::file::File;
use crate::global_heap::HeapId;
use crate::local_heap::LocalHeap;

/// Flags of a chunked layout of version 4.
const EDGES_ARE_PLAIN: u8 = 1;
const SINGLE_IS_FILTERED: u8 = 2;

/// Where the elements of a dataset are.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Layout {
    /// Elements are in the object header.
    Compact {
        /// The elements.
        data: Vec<u8>,
    },
    /// Elements are in one block of the file, or in [external files](External).
    Contiguous {
        /// `None` if nothing was written.
        address: Option<u64>,
        /// `None` in versions 1 and 2, which do not say.
        bytes: Option<u64>,
    },
    /// Elements are in chunks of one shape, which an index finds.
    Chunked(Chunked),
    /// Elements are in datasets of this file and of others.
    Virtual {
        /// Object of the global heap with the [mappings](crate::Dataset::mappings); `None` if there
        /// are none.
        mappings: Option<HeapId>,
    },
}

/// Shape of chunks, and the index that finds them.
#[derive(Debug, Clone)]
pub struct Chunked {
    /// Shape of a chunk in elements, slowest axis first; none is 0.
    pub shape: Vec<u64>,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Chunks that reach over the extents are stored without filters.
    pub edges_are_plain: bool,
    /// The kind of the index.
    pub index: ChunkIndex,
    /// Address of the index, or of the chunks; `None` without chunks.
    pub address: Option<u64>,
    /// Stored bytes and filter mask of the only chunk, if it is filtered.
    pub(crate) single: Option<(u64, u32)>,
}

/// Kinds of indices of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkIndex {
    /// B-tree of version 1.
    BTree1,
    /// The dataset is one chunk.
    Single,
    /// All chunks are beside each other.
    Implicit,
    /// Fixed array, of datasets that cannot grow without limit.
    FixedArray,
    /// Extensible array, of datasets with one unlimited axis.
    ExtensibleArray,
    /// B-tree of version 2, of datasets with several unlimited axes.
    BTree2,
}

impl Layout {
    pub(crate) fn decode(fields: &mut Bytes<'_>) -> Result<Self> {
        match fields.version(&[1, 2, 3, 4, 5])? {
            1 | 2 => Self::decode_old(fields),
            version => Self::decode_new(fields, version),
        }
    }

    fn decode_old(fields: &mut Bytes<'_>) -> Result<Self> {
        let axes = usize::from(fields.u8()?);
        let class = fields.u8()?;
        fields.skip(5)?;
        match class {
            0 => {
                fields.skip(4 * axes)?;
                let bytes = fields.u32()?;
                Ok(Layout::Compact { data: fields.take(bytes as usize)?.to_vec() })
            }
            1 => Ok(Layout::Contiguous { address: fields.address()?, bytes: None }),
            2 => {
                let address = fields.address()?;
                let (shape, element_bytes) = shape(fields, axes, 4)?;
                Ok(Layout::Chunked(Chunked::new(shape, element_bytes, ChunkIndex::BTree1, address)))
            }
            class => Err(fields.unsupported(format!("a layout of the unknown class {class}"))),
        }
    }

    fn decode_new(fields: &mut Bytes<'_>, version: u8) -> Result<Self> {
        match fields.u8()? {
            0 => {
                let bytes = fields.u16()?;
                Ok(Layout::Compact { data: fields.take(usize::from(bytes))?.to_vec() })
            }
            1 => Ok(Layout::Contiguous { address: fields.address()?, bytes: Some(fields.length()?) }),
            2 if version == 3 => {
                let axes = usize::from(fields.u8()?);
                let address = fields.address()?;
                let (shape, element_bytes) = shape(fields, axes, 4)?;
                Ok(Layout::Chunked(Chunked::new(shape, element_bytes, ChunkIndex::BTree1, address)))
            }
            2 => Chunked::decode(fields).map(Layout::Chunked),
            3 if version >= 4 => Ok(Layout::Virtual { mappings: HeapId::decode(fields)? }),
            class => Err(fields.unsupported(format!("a layout of the unknown class {class}"))),
        }
    }
}

impl Chunked {
    pub(crate) fn new(shape: Vec<u64>, element_bytes: u64, index: ChunkIndex, address: Option<u64>) -> Self {
        Chunked { shape, element_bytes, edges_are_plain: false, index, address, single: None }
    }

    fn decode(fields: &mut Bytes<'_>) -> Result<Self> {
        let flags = fields.u8()?;
        if flags & !(EDGES_ARE_PLAIN | SINGLE_IS_FILTERED) != 0 {
            return Err(fields.unsupported(format!("a chunked layout with the unknown flags {flags:#x}")));
        }
        let axes = usize::from(fields.u8()?);
        let width = usize::from(fields.u8()?);
        let (shape, element_bytes) = shape(fields, axes, width)?;
        let mut single = None;
        // parameters are also in the headers of the indices, which are used
        let (index, parameters) = match fields.u8()? {
            1 => {
                if flags & SINGLE_IS_FILTERED != 0 {
                    single = Some((fields.length()?, fields.u32()?));
                }
                (ChunkIndex::Single, 0)
            }
            2 => (ChunkIndex::Implicit, 0),
            3 => (ChunkIndex::FixedArray, 1),
            4 => (ChunkIndex::ExtensibleArray, 5),
            5 => (ChunkIndex::BTree2, 6),
            kind => return Err(fields.unsupported(format!("a chunk index of the unknown kind {kind}"))),
        };
        fields.skip(parameters)?;
        let edges_are_plain = flags & EDGES_ARE_PLAIN != 0;
        let address = fields.address()?;
        Ok(Chunked { edges_are_plain, single, ..Chunked::new(shape, element_bytes, index, address) })
    }

    /// Bytes of a chunk without filters; `None` if it is larger than all numbers.
    pub fn chunk_bytes(&self) -> Option<u64> {
        self.shape.iter().try_fold(self.element_bytes, |all, &extent| all.checked_mul(extent))
    }
}

/// Shape of a chunk and bytes of an element, which are the last of `axes` numbers.
fn shape(fields: &mut Bytes<'_>, axes: usize, width: usize) -> Result<(Vec<u64>, u64)> {
    if !(2..=33).contains(&axes) {
        return Err(fields.error(format!("chunks have {axes} extents, 2 to 33 are possible")));
    }
    if !(1..=8).contains(&width) {
        return Err(fields.error(format!("extents of chunks have {width} bytes, 1 to 8 are possible")));
    }
    let mut extents = (0..axes).map(|_| fields.number(width)).collect::<Result<Vec<_>>>()?;
    if extents.contains(&0) {
        return Err(fields.error(format!("the extents of chunks are {extents:?}, none of them can be 0")));
    }
    let element_bytes = extents.pop().unwrap_or_default();
    Ok((extents, element_bytes))
}

/// Files beside the HDF5 file that have the elements of a contiguous dataset, one after the other.
#[derive(Debug, Clone)]
pub struct External {
    /// Name as stored: not a path that may be opened without care.
    pub name: Vec<u8>,
    /// First byte of the elements in the file.
    pub offset: u64,
    /// Bytes of the elements in the file; `None` for all up to its end.
    pub bytes: Option<u64>,
}

impl External {
    /// Decodes a message of external files, whose names are in a local heap.
    pub(crate) fn decode(file: &File, fields: &mut Bytes<'_>) -> Result<Vec<Self>> {
        fields.version(&[1])?;
        fields.skip(3)?;
        let (slots, used) = (fields.u16()?, fields.u16()?);
        if used > slots {
            return Err(fields.error(format!("{used} of {slots} external files are used")));
        }
        let heap = fields.defined_address("the heap of names")?;
        let unlimited = u64::MAX >> (64 - 8 * fields.sizes().length.clamp(1, 8));
        let mut heap = LocalHeap::read(file, heap, &mut file.walk()?)?;
        let mut files = Vec::new();
        for number in 0..used {
            let at = fields.length()?;
            let (offset, bytes) = (fields.length()?, fields.length()?);
            let name = heap.copy(file, at).within(|| format!("name of external file {number}"))?;
            files.push(External { name, offset, bytes: Some(bytes).filter(|&bytes| bytes != unlimited) });
        }
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Sizes;
    use crate::testing::{START, file};

    fn decode(bytes: &[u8]) -> Result<Layout> {
        Layout::decode(&mut Bytes::new("layout", 0, bytes, Sizes { address: 4, length: 2 }))
    }

    fn chunked(bytes: &[u8]) -> Chunked {
        match decode(bytes).unwrap() {
            Layout::Chunked(chunked) => chunked,
            other => panic!("{other:?}"),
        }
    }

    fn message(bytes: &[u8]) -> String {
        decode(bytes).unwrap_err().message().to_owned()
    }

    #[test]
    fn layouts_of_old_versions() {
        let compact = [1, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 7, 8, 9];
        assert!(matches!(decode(&compact).unwrap(), Layout::Compact { data } if data == [7, 8, 9]));
        let contiguous = [2, 1, 1, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0];
        assert!(matches!(decode(&contiguous).unwrap(), Layout::Contiguous { address: None, bytes: None }));
        for old in [
            &[1, 2, 2, 0, 0, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0][..],
            &[3, 2, 2, 9, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0],
        ] {
            let chunked = chunked(old);
            assert_eq!((chunked.shape.as_slice(), chunked.element_bytes, chunked.address), (&[5][..], 4, Some(9)));
            assert_eq!((chunked.index, chunked.chunk_bytes()), (ChunkIndex::BTree1, Some(20)));
        }
    }

    #[test]
    fn every_index_of_version_4() {
        let single = chunked(&[4, 2, 2, 2, 1, 5, 4, 1, 17, 0, 1, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!((single.index, single.single, single.address), (ChunkIndex::Single, Some((17, 1)), Some(9)));
        let implicit = chunked(&[4, 2, 0, 2, 2, 5, 1, 4, 0, 2, 9, 0, 0, 0]);
        assert_eq!((implicit.index, implicit.shape[0]), (ChunkIndex::Implicit, 261));
        assert_eq!(chunked(&[4, 2, 0, 2, 1, 5, 4, 3, 10, 9, 0, 0, 0]).index, ChunkIndex::FixedArray);
        let growing = chunked(&[5, 2, 1, 2, 1, 5, 4, 4, 32, 4, 4, 16, 10, 9, 0, 0, 0]);
        assert!(growing.index == ChunkIndex::ExtensibleArray && growing.edges_are_plain);
        let tree = chunked(&[4, 2, 0, 3, 1, 5, 6, 4, 5, 0, 8, 0, 0, 100, 40, 9, 0, 0, 0]);
        assert_eq!((tree.index, tree.shape.as_slice(), tree.address), (ChunkIndex::BTree2, &[5, 6][..], Some(9)));
        assert!(matches!(
            decode(&[4, 3, 9, 0, 0, 0, 1, 0, 0, 0]).unwrap(),
            Layout::Virtual { mappings: Some(HeapId { address: 9, number: 1 }) }
        ));
    }

    #[test]
    fn impossible_layouts_are_refused() {
        assert_eq!(message(&[4, 2, 0, 2, 1, 0, 4]), "the extents of chunks are [0, 4], none of them can be 0");
        assert_eq!(message(&[4, 2, 0, 1, 1, 0, 4]), "chunks have 1 extents, 2 to 33 are possible");
        assert_eq!(message(&[4, 2, 0, 2, 9, 0, 4]), "extents of chunks have 9 bytes, 1 to 8 are possible");
        assert_eq!(message(&[4, 2, 4, 2]), "a chunked layout with the unknown flags 0x4");
        assert_eq!(message(&[4, 2, 0, 2, 1, 5, 4, 6]), "a chunk index of the unknown kind 6");
        assert_eq!(message(&[3, 3, 0, 2]), "a layout of the unknown class 3");
        assert_eq!(message(&[3, 0, 9, 0, 1]), "9 bytes are expected, 1 remain");
        assert_eq!(
            chunked(&[3, 2, 3, 9, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0]).chunk_bytes(),
            None
        );
    }

    #[test]
    fn external_files_are_named() {
        let mut heap = b"HEAP\0\0\0\0".to_vec();
        for field in [8u64, 0, START + 32] {
            heap.extend(field.to_le_bytes());
        }
        heap.extend(b"\0a.raw\0\0");
        let file = file(&heap);
        let mut bytes = vec![1, 0, 0, 0, 2, 0, 1, 0];
        for field in [START, 1, 5, u64::MAX] {
            bytes.extend(field.to_le_bytes());
        }
        let decode = |bytes: &[u8]| External::decode(&file, &mut Bytes::new("files", 0, bytes, file.sizes()));
        let found = decode(&bytes).unwrap();
        assert_eq!(
            (found.len(), found[0].name.as_slice(), found[0].offset, found[0].bytes),
            (1, &b"a.raw"[..], 5, None)
        );
        bytes[6] = 3;
        assert_eq!(decode(&bytes).unwrap_err().message(), "3 of 2 external files are used");
    }
}
