//! The seal: checksums of every byte of a MultiHDF5 container, stored after the end of the HDF5
//! file. docs/reference/containers.md.
//!
//! | bytes | field, numbers little-endian                                                                        |
//! |-------|-----------------------------------------------------------------------------------------------------|
//! | 16 r  | each region of the HDF5 file, in its order: length (8), owner (4), CRC-32 (4)                        |
//! | n     | the paths of the virtual files, each followed by a zero; owner 1 is the first, 0 is HDF5 itself      |
//! | 8     | length of the HDF5 file, which is before the seal                                                   |
//! | 8     | r                                                                                                   |
//! | 8     | n                                                                                                   |
//! | 8     | `ctdsseal`                                                                                          |
//! | 4     | CRC-32 of the seal before                                                                           |
//!
//! libhdf5 neither reads nor keeps what lies there: a program that changes the file cuts the seal
//! off. So there is none that is older than the file. It is compared without libhdf5, which some
//! damage sends round in circles.

use std::ops::Range;

use crc32fast::Hasher as Crc;
use rayon::prelude::*;

use super::checksums::BlockChecksums;
use super::header::file_paths;
use super::names::DATA;
use crate::container::Damage;
pub(super) use crate::container::seal_end::Seal;
use crate::container::seal_end::{ENTRY_BYTES, MAGIC};
use crate::error::{Context, Error, Result, ResultExt};
use crate::h5::{ChunkInfo, Group};
use crate::io::{ReadAt, WriteAt, read_bytes};

/// Largest region.
const REGION_BYTES: u64 = 1 << 22;
const PIECE_BYTES: u64 = 1 << 16;

/// Which bytes of the HDF5 file belong to which virtual file.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// Numbered from 1 in the seal.
    paths: Vec<String>,
    extents: Vec<Extent>,
}

#[derive(Debug, Clone)]
struct Extent {
    bytes: Range<u64>,
    /// Index in `Owners::paths`, from 0.
    owner: usize,
    /// CRC-32; `None` if it is not known from writing the bytes.
    checksum: Option<u32>,
}

impl Owners {
    /// The datasets tell; `written` has checksums of blocks from when they were written.
    pub(super) fn of(root: &Group, written: &BlockChecksums) -> Result<Self> {
        let mut owners = Owners { paths: file_paths(root)?, extents: Vec::new() };
        for (owner, path) in owners.paths.iter().enumerate() {
            let group = path.split('/').try_fold(root.clone(), |group, name| group.group(name))?;
            if group.has(DATA) {
                let add = |ChunkInfo { index, address, stored_bytes, .. }| {
                    let known = index.last().and_then(|&number| written.get(path, number));
                    let checksum = known.filter(|known| known.len == stored_bytes).map(|known| known.crc);
                    owners.extents.push(Extent { bytes: address..address + stored_bytes, owner, checksum });
                };
                group.dataset(DATA)?.each_chunk(add)?;
            }
        }
        Ok(owners)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    bytes: Range<u64>,
    /// Virtual file, from 1; 0 for HDF5 itself.
    owner: u32,
    /// CRC-32; 0 before it is computed.
    checksum: u32,
}

impl Seal {
    /// Appends checksums of all bytes of `file`; owners attribute damage to a virtual file.
    pub(super) fn put(file: &dyn WriteAt, Owners { paths, mut extents }: Owners) -> Result<()> {
        let len = file.len()?;
        extents.sort_unstable_by_key(|extent| extent.bytes.start);
        let mut regions = divide(len, &extents)?;
        extents.retain(|extent| extent.checksum.is_some());
        regions.par_iter_mut().try_for_each_init(Vec::new, |piece, region| {
            region.checksum = region.find_checksum(file, &extents, piece)?;
            Ok::<_, Error>(())
        })?;
        let mut seal = Vec::with_capacity(regions.len() * ENTRY_BYTES);
        for Region { bytes, owner, checksum } in &regions {
            seal.extend((bytes.end - bytes.start).to_le_bytes());
            seal.extend(owner.to_le_bytes());
            seal.extend(checksum.to_le_bytes());
        }
        let names_at = seal.len();
        paths.iter().for_each(|path| seal.extend(path.bytes().chain([0])));
        let names_bytes = seal.len() - names_at;
        seal.extend([len, regions.len() as u64, names_bytes as u64].into_iter().flat_map(u64::to_le_bytes));
        seal.extend(MAGIC);
        seal.extend(crc32fast::hash(&seal).to_le_bytes());
        file.write_at(len, &seal)
    }

    /// Damaged ranges; empty if all bytes match or without a seal. `Format` if the seal is damaged.
    pub(super) fn damage(file: &dyn ReadAt) -> Result<Vec<Damage>> {
        Self::find(file)?.map_or(Ok(Vec::new()), |seal| seal.check(file))
    }

    fn check(self, file: &dyn ReadAt) -> Result<Vec<Damage>> {
        let (regions, paths) = self.read(file).with_context(|| Context::offset("seal", self.len))?;
        let mut found: Vec<Damage> = Vec::new();
        for Region { bytes, owner, .. } in damaged(file, regions)? {
            let file = (owner as usize).checked_sub(1).and_then(|owner| paths.get(owner)).cloned();
            match found.last_mut() {
                Some(last) if last.file == file && last.bytes.end == bytes.start => last.bytes.end = bytes.end,
                _ => found.push(Damage { file, bytes }),
            }
        }
        Ok(found)
    }

    /// Whether `file` has a seal. `Format` for damaged bytes outside of all virtual files, on which
    /// libhdf5 may crash or loop; not for a damaged seal, of which nothing is known.
    pub(super) fn check_structure(file: &dyn ReadAt) -> Result<bool> {
        let Some(seal) = Self::find(file)? else { return Ok(false) };
        let Ok((mut regions, _)) = seal.read(file) else { return Ok(true) };
        regions.retain(|region| region.owner == 0);
        match damaged(file, regions)?.into_iter().next() {
            Some(Region { bytes, .. }) => Err(Error::format(Damage { file: None, bytes }.to_string())),
            None => Ok(true),
        }
    }

    /// Regions, and paths of the virtual files.
    fn read(self, file: &dyn ReadAt) -> Result<(Vec<Region>, Vec<String>)> {
        let file_len = file.len()?;
        if !self.fits(file_len) {
            let message = format!("a file of {} bytes was sealed, but with the seal the file has {file_len}", self.len);
            return Err(Error::format(message));
        }
        let bytes = read_bytes(file, self.len, file_len - self.len - 4)?;
        let found = crc32fast::hash(&bytes);
        if found != self.checksum || self.magic != MAGIC {
            return Err(Error::format(format!(
                "CRC {:08x} stored, but the bytes have {found:08x}: the seal is damaged",
                self.checksum
            )));
        }
        let (entries, rest) = bytes.split_at(self.regions as usize * ENTRY_BYTES);
        let (mut regions, mut start) = (Vec::new(), 0_u64);
        for entry in entries.as_chunks::<ENTRY_BYTES>().0 {
            let number = |at| u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
            let bytes = u64::from(number(0)) | u64::from(number(4)) << 32;
            let end = start.checked_add(bytes).filter(|&end| end <= self.len);
            let end = end.ok_or_else(|| Error::format("the regions of the seal are longer than the file before it"))?;
            regions.push(Region { bytes: start..end, owner: number(8), checksum: number(12) });
            start = end;
        }
        if start != self.len {
            return Err(Error::format(format!("the regions of the seal have {start} bytes, expected {}", self.len)));
        }
        let names = rest[..self.names_bytes as usize].split(|&byte| byte == 0);
        let names = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        Ok((regions, names))
    }
}

/// Regions within one virtual file or outside of all. `extents` are sorted; `Format` on overlap.
fn divide(len: u64, extents: &[Extent]) -> Result<Vec<Region>> {
    let mut runs: Vec<Region> = Vec::new();
    let mut add = |bytes: Range<u64>, owner: u32| match runs.last_mut() {
        _ if bytes.is_empty() => {}
        Some(last) if last.owner == owner => last.bytes.end = bytes.end,
        _ => runs.push(Region { bytes, owner, checksum: 0 }),
    };
    let mut at = 0;
    for Extent { bytes, owner, .. } in extents.iter().filter(|extent| !extent.bytes.is_empty()) {
        if bytes.start < at || bytes.end > len {
            return Err(Error::format(format!("bytes {bytes:?} are in two blocks or beyond the end at {len}")));
        }
        add(at..bytes.start, 0);
        at = bytes.end;
        add(
            bytes.clone(),
            u32::try_from(owner + 1)
                .map_err(|_| Error::usage("the container has 2^32 files or more, which a seal cannot number"))?,
        );
    }
    add(at..len, 0);
    let parts = |Region { bytes, owner, checksum }: Region| {
        let starts = (bytes.start..bytes.end).step_by(REGION_BYTES as usize);
        starts.map(move |start| Region { bytes: start..(start + REGION_BYTES).min(bytes.end), owner, checksum })
    };
    Ok(runs.into_iter().flat_map(parts).collect())
}

/// The regions that differ from their checksums.
fn damaged(file: &dyn ReadAt, regions: Vec<Region>) -> Result<Vec<Region>> {
    let compare = |piece: &mut Vec<u8>, region: Region| match region.find_checksum(file, &[], piece) {
        Ok(found) if found == region.checksum => None,
        Ok(_) => Some(Ok(region)),
        Err(error) => Some(Err(error)),
    };
    regions.into_par_iter().map_init(Vec::new, compare).flatten().collect()
}

impl Region {
    /// `known` is sorted by the start of extents; other bytes are read into `piece`.
    fn find_checksum(&self, file: &dyn ReadAt, known: &[Extent], piece: &mut Vec<u8>) -> Result<u32> {
        let (mut crc, mut at) = (Crc::new(), self.bytes.start);
        let mut read = |crc: &mut Crc, bytes: Range<u64>| {
            bytes.clone().step_by(PIECE_BYTES as usize).try_for_each(|start| {
                piece.resize((bytes.end - start).min(PIECE_BYTES) as usize, 0);
                file.read_at(start, piece)?;
                crc.update(piece);
                Ok::<_, Error>(())
            })
        };
        let first = known.partition_point(|extent| extent.bytes.start < at);
        for Extent { bytes, checksum, .. } in &known[first..] {
            let (Some(checksum), true) = (checksum, bytes.end <= self.bytes.end) else { break };
            read(&mut crc, at..bytes.start)?;
            crc.combine(&Crc::new_with_initial_len(*checksum, bytes.end - bytes.start));
            at = bytes.end;
        }
        read(&mut crc, at..self.bytes.end)?;
        Ok(crc.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::MemoryFile;

    fn extent(bytes: Range<u64>, owner: usize) -> Extent {
        Extent { bytes, owner, checksum: None }
    }

    fn sealed(len: usize, paths: &[&str], extents: Vec<Extent>) -> Vec<u8> {
        let file = MemoryFile::new((0..len).map(|at| (at * at % 251) as u8).collect());
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        Seal::put(&file, Owners { paths, extents }).unwrap();
        file.bytes()
    }

    fn check(bytes: &[u8]) -> Result<Vec<Damage>> {
        Seal::find(&bytes)?.ok_or_else(|| Error::not_found("no seal"))?.check(&bytes)
    }

    #[test]
    fn seal_follows_the_file() {
        let bytes = sealed(9, &["A/f"], vec![extent(0..9, 0)]);
        let (file, seal) = bytes.split_at(9);
        assert_eq!(file, [0, 1, 4, 9, 16, 25, 36, 49, 64]);
        // python: zlib.crc32(bytes(i * i for i in range(9)))
        assert_eq!(seal[..16], [9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x62, 0x46, 0xd7, 0x3b]);
        assert_eq!(seal[16..20], *b"A/f\0");
        assert_eq!(seal[20..44], [9, 1, 4].map(u64::to_le_bytes).concat());
        assert_eq!((&seal[44..52], seal.len()), (&b"ctdsseal"[..], 56));
        assert_eq!(check(&bytes).unwrap(), []);
    }

    #[test]
    fn check_names_the_owner_of_every_flipped_byte() {
        let bytes = sealed(1000, &["a", "b"], vec![extent(600..700, 0), extent(100..300, 0), extent(300..400, 1)]);
        let regions =
            [(0..100, None), (100..300, Some("a")), (300..400, Some("b")), (400..600, None), (600..700, Some("a"))];
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            if at >= 1000 {
                let error = check(&damaged).unwrap_err().to_string();
                assert!(error.contains("seal at byte "), "{at}: {error}");
                continue;
            }
            let region = regions.iter().find(|(range, _)| range.contains(&(at as u64)));
            let (range, file) = region.cloned().unwrap_or((700..1000, None));
            assert_eq!(check(&damaged).unwrap(), [Damage { file: file.map(str::to_owned), bytes: range }], "{at}");
        }
    }

    #[test]
    fn long_extents_are_divided_and_damage_is_merged() {
        let long = 2 * REGION_BYTES + 5;
        let mut bytes = sealed(long as usize + 7, &["a"], vec![extent(3..long + 3, 0)]);
        bytes[3] ^= 1;
        bytes[REGION_BYTES as usize + 3] ^= 1;
        bytes[long as usize + 3] ^= 1;
        let (a, end) = (Some("a".to_owned()), long + 3..long + 7);
        let expected = [Damage { file: a, bytes: 3..2 * REGION_BYTES + 3 }, Damage { file: None, bytes: end }];
        assert_eq!(check(&bytes).unwrap(), expected);
    }

    #[test]
    fn invalid_extents_are_rejected() {
        for bad in [vec![extent(0..5, 0), extent(4..6, 1)], vec![extent(5..11, 0)]] {
            assert!(divide(10, &bad).is_err());
        }
        assert_eq!(divide(0, &[]).unwrap(), []);
    }

    #[test]
    fn checksums_of_blocks_are_used_instead_of_reading_them() {
        let len = REGION_BYTES + 10_000;
        let file = MemoryFile::new((0..len).map(|at| (at * at % 251) as u8).collect());
        let bytes = file.bytes();
        // gaps before, between and after, one across the end of a region
        let ranges =
            [7..100, 100..5000, 6000..6000, 6001..70_000, REGION_BYTES - 50..REGION_BYTES + 50, len - 9..len - 2];
        let extents = |with: &dyn Fn(&[u8]) -> Option<u32>| -> Vec<Extent> {
            let extent = |bytes_of: &Range<u64>| {
                let part = &bytes[bytes_of.start as usize..bytes_of.end as usize];
                Extent { bytes: bytes_of.clone(), owner: 0, checksum: with(part) }
            };
            ranges.iter().map(extent).collect()
        };
        let checksums = |extents: &[Extent]| -> Vec<u32> {
            let regions = divide(len, extents).unwrap();
            regions.iter().map(|region| region.find_checksum(&file, extents, &mut Vec::new()).unwrap()).collect()
        };
        let read = checksums(&extents(&|_| None));
        assert_eq!(checksums(&extents(&|part| Some(crc32fast::hash(part)))), read);
        assert_ne!(checksums(&extents(&|_| Some(1))), read, "they are not read again");
    }

    #[test]
    fn files_without_a_seal_are_recognised() {
        for bytes in [vec![], b"short".to_vec(), vec![0; 100]] {
            assert_eq!(Seal::find(&bytes).unwrap(), None);
        }
        let mut bytes = sealed(100, &[], vec![]);
        bytes.pop();
        assert_eq!(Seal::find(&bytes).unwrap(), None);
    }
}
