//! Documents of `ls`.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::blz::ChunkEntry;
use crate::hash::HashKind;
use crate::pack::Listing;
use ctds::{Properties, Property};

/// The document of `ls` for a table directory or a container. It has no status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct List {
    /// Path of the directory or container: as it was given, of a nested one below the outer one.
    pub name: String,
    /// Name of the format, such as `MultiFile`.
    pub format: String,
    /// Version of the format; `None` if it has none.
    pub version: Option<u32>,
    /// Size of a block; `None` if the container has no blocks of one size.
    pub block_size: Option<u64>,
    /// Number of blocks; `None` if the container has no blocks.
    pub blocks: Option<u64>,
    /// Number of blocks that no file uses; `None` if the container has no blocks.
    pub free_blocks: Option<u64>,
    /// Number of changes since the container was made, as it counts them; `None` if it does not.
    pub changes: Option<u64>,
    /// Kind of the checksums of its blocks or files; `None` if it has none.
    pub checksum: Option<String>,
    /// The files, without those of nested containers.
    pub files: Vec<ListedFile>,
    /// Containers and directories inside.
    pub nested: Vec<List>,
    /// Dates of the saved states in an archive of vt; empty if the member is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<String>,
    /// Entries that are not files, such as symbolic links in an archive; empty if the member is
    /// missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Metadata that only this format has, by name; empty if the member is missing.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub properties: IndexMap<String, Property>,
}

impl From<&Listing> for List {
    fn from(listing: &Listing) -> Self {
        let info = &listing.info;
        let left_out = |(name, what): &(String, String)| LeftOut { name: name.clone(), what: what.clone() };
        List {
            name: listing.name.clone(),
            format: info.format.to_owned(),
            version: info.version,
            block_size: info.block_bytes,
            blocks: info.blocks,
            free_blocks: info.free_blocks,
            changes: info.changes,
            checksum: info.checksum.map(str::to_owned),
            files: listing.files.iter().map(ListedFile::from).collect(),
            nested: listing.nested.iter().map(List::from).collect(),
            history: listing.history.clone(),
            left_out: listing.left_out.iter().map(left_out).collect(),
            properties: named(&listing.properties),
        }
    }
}

pub(super) fn named(properties: &Properties) -> IndexMap<String, Property> {
    properties.values.iter().cloned().collect()
}

/// A file in a container or table directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedFile {
    /// Path of the file below its container.
    pub name: String,
    /// Size of the file.
    pub size: u64,
    /// Bytes that it occupies, counted after compression and in whole blocks.
    pub stored_bytes: u64,
    /// Size of its blocks or chunks; `None` if it is stored in one piece.
    pub block_size: Option<u64>,
    /// Number of its blocks or chunks.
    pub blocks: u64,
    /// First and last number of each run of blocks, in the order of the file; empty if blocks are
    /// not numbered.
    pub block_numbers: Vec<[u64; 2]>,
    /// Name of the HDF5 index of its chunks; `None` outside of HDF5.
    pub index: Option<String>,
    /// Filters of its chunks, in words.
    pub filters: Vec<String>,
    /// Kind of the checksum of the file; `None` if it has none.
    pub checksum: Option<String>,
    /// BLAKE3 of the file that the container stores, in hexadecimal digits; `None` if it stores
    /// none.
    pub blake3: Option<String>,
    /// SHA-256 of the file that the container stores, in hexadecimal digits; `None` if it stores
    /// none.
    pub sha256: Option<String>,
    /// Metadata that only this format has, by name; empty if the member is missing.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub properties: IndexMap<String, Property>,
}

impl From<&crate::pack::ListedFile> for ListedFile {
    fn from(file: &crate::pack::ListedFile) -> Self {
        let layout = &file.layout;
        let hash_of = |kind| layout.hash.as_ref().filter(|(stored, _)| *stored == kind).map(|(_, hash)| hash.clone());
        ListedFile {
            name: file.name.clone(),
            size: file.len,
            stored_bytes: layout.stored_bytes,
            block_size: layout.block_bytes,
            blocks: layout.blocks,
            block_numbers: layout.block_numbers.iter().map(|run| [run.start, run.end - 1]).collect(),
            index: layout.index.clone(),
            filters: layout.filters.clone(),
            checksum: layout.checksum.map(str::to_owned),
            blake3: hash_of(HashKind::Blake3),
            sha256: hash_of(HashKind::Sha256),
            properties: named(&file.properties),
        }
    }
}

/// An entry of a container that is not a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Path of the entry in the container.
    pub name: String,
    /// Kind of the entry, in words.
    pub what: String,
}

/// The document of `ls` for arrays of BLZ, bcolz or bloscpack, with a line for each chunk. It has
/// no status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListChunks {
    /// Path of the source, as it was given.
    pub name: String,
    /// Format that the arrays come from: `blz`, `bcolz` or `bloscpack`; `None` for arrays of other
    /// origin.
    pub format: Option<String>,
    /// Names of the arrays.
    pub arrays: Vec<String>,
    /// The chunks of all arrays.
    pub chunks: Vec<Chunk>,
}

/// A stored chunk of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Chunk {
    /// Name of the array.
    pub array: String,
    /// Name of the file that holds the chunk, without its directory.
    pub file: String,
    /// Number of the chunk in its file.
    pub number: u64,
    /// Size of the elements, uncompressed.
    pub size: u64,
    /// Size as stored.
    pub stored_bytes: u64,
    /// Name of the codec, such as `lz4`.
    pub codec: String,
}

impl From<&ChunkEntry<'_>> for Chunk {
    fn from(chunk: &ChunkEntry<'_>) -> Self {
        Chunk {
            array: chunk.array.to_owned(),
            file: chunk.file.to_owned(),
            number: chunk.number,
            size: chunk.bytes,
            stored_bytes: chunk.stored_bytes,
            codec: chunk.codec.to_owned(),
        }
    }
}
