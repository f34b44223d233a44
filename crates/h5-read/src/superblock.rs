//! The superblock: versions of the format, sizes of addresses, place of the root group.
//! HDF5 File Format Specification 3.0, section II.A.
//!
//! | version | after the signature                                                                |
//! |---------|-------------------------------------------------------------------------------------|
//! | 0, 1    | versions, sizes, orders of B-trees, flags; base, free space, end, driver; root entry |
//! | 2, 3    | sizes, flags; base, extension, end, root; checksum                                  |

use crate::bytes::{Bytes, Sizes};
use crate::checksum;
use crate::error::{Error, ErrorKind, Result, Within};
use crate::storage::Storage;

const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
const STRUCTURE: &str = "superblock";

/// Most bytes of a superblock: version 1 with addresses of 8 bytes.
const MAX_BYTES: usize = 104;

/// Versions up to this one may be those of later releases; greater ones are damage.
const LAST_PLAUSIBLE: u8 = 15;

/// Sizes where version 3 has its flags.
const WRITTEN: u8 = 1;
const SHARED: u8 = 4;

/// The superblock of a file.
#[derive(Debug, Clone)]
pub struct Superblock {
    /// 0 to 3.
    pub version: u8,
    /// Offset of the superblock: the user block before it has as many bytes.
    pub start: u64,
    /// Addresses count from here, bytes from the start of the file.
    pub(crate) base: u64,
    pub(crate) sizes: Sizes,
    /// Most entries of a symbol table node and of a group's B-tree node are twice these.
    pub(crate) flags: u8,
    /// End of the HDF5 data as the last flush recorded it, counted from the start of the storage.
    /// A file that is being written may be longer.
    pub end: u64,
    /// Address of the root group.
    pub root: u64,
    /// Object header of the superblock's extension.
    pub(crate) extension: Option<u64>,
}

impl Superblock {
    /// A writer has the file open, or did not close it.
    pub fn is_being_written(&self) -> bool {
        self.version == 3 && self.flags & WRITTEN != 0
    }

    /// Readers may have the file open while a writer appends (SWMR).
    pub fn is_live(&self) -> bool {
        self.is_being_written() && self.flags & SHARED != 0
    }

    /// Bytes of an address in the file.
    pub fn address_bytes(&self) -> usize {
        self.sizes.address
    }

    /// Finds the superblock at byte 0, 512, 1024, 2048 …
    pub(crate) fn find(storage: &dyn Storage) -> Result<Self> {
        let len = storage.len()?;
        let starts =
            std::iter::successors(Some(0u64), |&start| if start == 0 { Some(512) } else { start.checked_mul(2) });
        for start in starts.take_while(|start| start.checked_add(8).is_some_and(|end| end <= len)) {
            let mut bytes = [0; MAX_BYTES];
            storage.read_at(start, &mut bytes[..8])?;
            if bytes[..8] != SIGNATURE {
                continue;
            }
            let have = MAX_BYTES.min(usize::try_from(len - start).unwrap_or(MAX_BYTES));
            storage.read_at(start, &mut bytes[..have])?;
            return Self::decode(start, &bytes[..have]).within(|| format!("{STRUCTURE} at byte {start}"));
        }
        Err(Error::damaged("the file is not HDF5: it has no signature at byte 0, 512, 1024 …"))
    }

    fn decode(start: u64, bytes: &[u8]) -> Result<Self> {
        let unknown = Sizes { address: 8, length: 8 };
        let mut fields = Bytes::new(STRUCTURE, start, bytes, unknown);
        fields.skip(SIGNATURE.len())?;
        if fields.clone().u8()? > LAST_PLAUSIBLE {
            return Err(fields.error("the version is not that of a superblock"));
        }
        match fields.version(&[0, 1, 2, 3])? {
            version @ (0 | 1) => Self::decode_old(version, start, bytes),
            version => Self::decode_new(version, start, bytes),
        }
    }

    fn decode_old(version: u8, start: u64, bytes: &[u8]) -> Result<Self> {
        let sizes = sizes(bytes, 13)?;
        let mut fields = Bytes::new(STRUCTURE, start, bytes, sizes);
        // signature, five versions with a gap, sizes, gap, orders of B-trees, flags
        fields.skip(24 + if version == 1 { 4 } else { 0 })?;
        let base = fields.defined_address("the first byte")?;
        let _free_space = fields.address()?;
        let end = fields.defined_address("the end of the file")?;
        let _driver = fields.address()?;
        let _name = fields.length()?;
        let root = fields.defined_address("the root group")?;
        Ok(Superblock { version, start, base: base_of(base, start), sizes, flags: 0, end, root, extension: None })
    }

    fn decode_new(version: u8, start: u64, bytes: &[u8]) -> Result<Self> {
        let sizes = sizes(bytes, 9)?;
        let mut fields = Bytes::new(STRUCTURE, start, bytes, sizes);
        fields.skip(11)?;
        let flags = fields.u8()?;
        let base = fields.defined_address("the first byte")?;
        let extension = fields.address()?;
        let end = fields.defined_address("the end of the file")?;
        let root = fields.defined_address("the root group")?;
        let sealed = &bytes[..fields.position()];
        checksum::check(fields.u32()?, sealed)?;
        Ok(Superblock { version, start, base: base_of(base, start), sizes, flags, end, root, extension })
    }
}

/// Programs that put a user block before a file leave the base address at 0.
fn base_of(stored: u64, start: u64) -> u64 {
    if stored == start { stored } else { start }
}

fn sizes(bytes: &[u8], at: usize) -> Result<Sizes> {
    let size = |at: usize| match bytes.get(at) {
        Some(&size @ (2 | 4 | 8)) => Ok(usize::from(size)),
        Some(size) => Err(Error::new(ErrorKind::Unsupported, format!("addresses of {size} bytes are not read"))),
        None => Err(Error::damaged("the file ends in the superblock")),
    };
    Ok(Sizes { address: size(at)?, length: size(at + 1)? })
}
