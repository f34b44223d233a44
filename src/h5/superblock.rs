//! Reads the superblock of an HDF5 file, marks a file as closed whose writer did not close it, and
//! takes the times of day from the superblock's extension. HDF5 File Format Specification 3.0,
//! section II.A, superblock versions 2 and 3.
//!
//! | offset | bytes | field                                                                     |
//! |--------|-------|---------------------------------------------------------------------------|
//! | 0      | 8     | signature                                                                 |
//! | 8      | 1     | version                                                                   |
//! | 9      | 2     | size of offsets (here 8), size of lengths                                 |
//! | 11     | 1     | consistency flags: bit 0, open for writing; bit 2, and for readers besides |
//! | 12     | 16    | base address, address of the superblock's extension                       |
//! | 28     | 8     | end of the file, as far as the library knows                              |
//! | 36     | 8     | address of the root group                                                 |
//! | 44     | 4     | checksum of all before                                                    |
//!
//! libhdf5 refuses such files, so that this structure is decoded here. It is written when the
//! library flushes, so that the end of the file in it may be too small; a library that believes it
//! cuts the file there.

use h5_read::lookup3;

use super::header_block::HeaderBlock;
use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ReadAt, WriteAt};

const BYTES: usize = 48;
const FLAGS: usize = 11;
const EXTENSION: usize = 20;
const END: usize = 28;
const CHECKSUM: usize = 44;
const WRITTEN: u8 = 1;
const SHARED: u8 = 4;
/// The 48 bytes of version 2 or 3.
#[derive(Debug, Clone)]
pub(crate) struct Superblock([u8; BYTES]);

impl Superblock {
    /// `Unsupported` for a version of files that cannot be live, `Format` if it is damaged.
    pub(crate) fn read(file: &dyn ReadAt) -> Result<Self> {
        let read = || -> Result<_> {
            let mut bytes = [0; BYTES];
            if file.len()? < BYTES as u64 {
                return Err(Error::format(format!(
                    "the file has {} bytes, fewer than the superblock of HDF5",
                    file.len()?
                )));
            }
            file.read_at(0, &mut bytes)?;
            if !bytes.starts_with(b"\x89HDF\r\n\x1a\n") {
                return Err(Error::format("the file is not an HDF5 file"));
            }
            if !matches!(bytes[8], 2 | 3) || bytes[9] != 8 {
                let message =
                    format!("version {} with offsets of {} bytes, which no live file has", bytes[8], bytes[9]);
                return Err(Error::unsupported(message));
            }
            let stored = [0, 1, 2, 3].map(|byte| bytes[CHECKSUM + byte]);
            let (found, expected) = (u32::from_le_bytes(stored), lookup3(&bytes[..CHECKSUM]));
            if found != expected {
                return Err(Error::format(format!("checksum {found:#010x} where {expected:#010x} is expected")));
            }
            Ok(Superblock(bytes))
        };
        read().context(Context::offset("superblock", 0u64))
    }

    /// Marked as open for writing: a writer has it open, or exited without closing it.
    pub(crate) fn is_being_written(&self) -> bool {
        self.0[FLAGS] & WRITTEN != 0
    }

    /// Whether that writer allows concurrent readers (SWMR).
    pub(crate) fn is_live(&self) -> bool {
        self.0[FLAGS] & SHARED != 0
    }

    /// Offset that libhdf5 recorded at its last flush; the data may be longer.
    pub(crate) fn end(&self) -> u64 {
        self.number(END)
    }

    fn number(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(bytes)
    }

    /// Zeroes the times in the header of the extension, which libhdf5 cannot; the file is closed.
    pub(super) fn forget_times(&self, file: &dyn WriteAt) -> Result<()> {
        let at = self.number(EXTENSION);
        if at == u64::MAX {
            return Ok(());
        }
        let forget = || -> Result<()> {
            let Some(mut block) = HeaderBlock::read(file, at)? else { return Ok(()) };
            block.forget_times();
            block.write(file)
        };
        forget().context(Context::offset("extension of the superblock", at))
    }

    /// Marks `file` as closed at `end`, which is written before the mark; extends a shorter file.
    pub(crate) fn close(mut self, file: &dyn WriteAt, end: u64) -> Result<()> {
        if file.len()? < end {
            file.set_len(end)?;
        }
        self.0[END..END + 8].copy_from_slice(&end.to_le_bytes());
        self.write(file)?;
        self.0[FLAGS] &= !(WRITTEN | SHARED);
        self.write(file)
    }

    fn write(&mut self, file: &dyn WriteAt) -> Result<()> {
        let checksum = lookup3(&self.0[..CHECKSUM]);
        self.0[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        file.write_at(0, &self.0)?;
        file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::MemoryFile;

    /// Written by h5py 3.16, which had the file open with `swmr_mode`.
    const LIVE: [u8; 48] = [
        0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a, 0x03, 0x08, 0x08, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbf, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x39, 0x23, 0x1c, 0xed,
    ];

    #[test]
    fn closes_what_was_left_open() {
        let file = MemoryFile::new(LIVE.to_vec());
        let found = Superblock::read(&file).unwrap();
        assert!(found.is_being_written() && found.is_live());
        found.close(&file, 5000).unwrap();
        let closed = Superblock::read(&file).unwrap();
        assert!(!closed.is_being_written() && !closed.is_live());
        assert_eq!((closed.end(), file.len().unwrap()), (5000, 5000));
    }

    #[test]
    fn times_of_the_extension_are_forgotten() {
        let mut bytes = LIVE.to_vec();
        bytes[EXTENSION..EXTENSION + 8].copy_from_slice(&48_u64.to_le_bytes());
        for (flags, more) in [(0x20, 0), (0x31, 4), (0x00, 0)] {
            let mut header = b"OHDR\x02".to_vec();
            header.push(flags);
            header.extend(vec![7; if flags == 0 { 0 } else { 16 + more }]);
            header.extend(&[3, 0][..1 << (flags & 3)]);
            header.extend([9; 3]);
            header.extend(lookup3(&header).to_le_bytes());
            let file = MemoryFile::new([&bytes[..], &header, &[0; 34]].concat());
            Superblock(bytes.clone().try_into().unwrap()).forget_times(&file).unwrap();
            let mut found = vec![0; header.len()];
            file.read_at(48, &mut found).unwrap();
            if flags != 0 {
                header[6..22].fill(0);
                let end = header.len() - 4;
                let checksum = lookup3(&header[..end]);
                header[end..].copy_from_slice(&checksum.to_le_bytes());
            }
            assert_eq!(found, header);
        }
    }

    #[test]
    fn damage_is_an_error() {
        for byte in 0..LIVE.len() {
            let mut bytes = LIVE.to_vec();
            bytes[byte] ^= 1;
            assert!(Superblock::read(&MemoryFile::new(bytes)).is_err(), "byte {byte}");
        }
        assert!(Superblock::read(&MemoryFile::new(LIVE[..47].to_vec())).is_err());
    }
}
