//! The file format of AntennaPairStMan, UvwStMan and StokesIStMan: a header and rows.
//! formats/engines.md 3.1.
//!
//! Little-endian, without regard to the table.
//!
//! | offset | type    | field                                                        |
//! |--------|---------|--------------------------------------------------------------|
//! | 0      | 4 bytes | `Crbf`                                                       |
//! | 4      | u32     | version, 0x0100; the second byte is the major version        |
//! | 8      | u32     | bytes of this header                                         |
//! | 12     | u64     | stride: bytes of a row                                       |
//! | 20     | u64     | bytes of the manager's own header, which follows             |
//!
//! The manager's header begins with 8 bytes that tell which manager it is; the rows follow it.

use std::sync::Arc;

use crate::error::{Context, Error, Result, ResultExt};
use crate::io::{ByteOrder, ReadAt, read_array, read_bytes};
use crate::stman::OpenArgs;

const MAGIC: &[u8; 4] = b"Crbf";
const HEADER_BYTES: u64 = 28;

#[derive(Debug)]
pub(super) struct RowFile {
    file: Arc<dyn ReadAt>,
    pub(super) place: Context,
    /// Byte of row 0.
    start: u64,
    /// Bytes of a row, by the header; 0 if nothing was ever written.
    pub(super) stride: u64,
    /// A row that the end of the file cuts off does not count.
    pub(super) rows: u64,
    /// Numbers of the second header, which belongs to the manager, after its 8-byte tag.
    fields: Vec<u64>,
}

impl RowFile {
    pub(super) fn open(args: &OpenArgs<'_>, manager: &str, tag: &[u8; 8], fields: usize) -> Result<Self> {
        let place = Context::managed(args.file_name(""), manager);
        let file = args.file("")?;
        Self::decode(file, place.clone(), tag, fields).context(place)
    }

    fn decode(file: Arc<dyn ReadAt>, place: Context, tag: &[u8; 8], fields: usize) -> Result<Self> {
        let order = ByteOrder::Little;
        let header: [u8; HEADER_BYTES as usize] = read_array(&file, 0)?;
        let u32_at = |at: usize| order.u32([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if header[..4] != *MAGIC {
            let found = bstr::BStr::new(&header[..4]);
            return Err(Error::format(format!("the file begins with {found:?}, not with `Crbf`")));
        }
        let version = u32_at(4);
        if (version >> 8) & 0xff > 1 {
            return Err(Error::unsupported(format!("version {version:#06x} of the file, known is 0x0100")));
        }
        let header_bytes = u64::from(u32_at(8));
        let [stride, own_bytes] = [12, 20].map(|at| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32);
        let expected = 8 + 8 * fields as u64;
        if header_bytes < HEADER_BYTES || own_bytes != expected {
            return Err(Error::format(format!(
                "headers of {header_bytes} and {own_bytes} bytes, {HEADER_BYTES} and {expected} are expected"
            )));
        }
        let own = read_bytes(&file, header_bytes, own_bytes)?;
        let (found, numbers) = own.split_at(8);
        if found != tag {
            return Err(Error::format(format!(
                "the manager's header begins with {:?}, not with {:?}",
                bstr::BStr::new(found),
                bstr::BStr::new(tag)
            )));
        }
        let fields = numbers.as_chunks().0.iter().map(|&number| order.u64(number)).collect();
        let start = header_bytes + own_bytes;
        let rows = file.len()?.saturating_sub(start).checked_div(stride).unwrap_or(0);
        Ok(RowFile { file, place, start, stride, rows, fields })
    }

    pub(super) fn field(&self, index: usize) -> u64 {
        self.fields[index]
    }

    /// Rows, if the file has any, must take `stride` bytes.
    pub(super) fn expect_stride(&self, stride: u64) -> Result<()> {
        if self.rows > 0 && self.stride != stride {
            return Err(
                Error::format(format!("rows of {} bytes, {stride} are expected", self.stride)).context(&self.place)
            );
        }
        Ok(())
    }

    pub(super) fn read(&self, first: u64, count: u64) -> Result<Vec<u8>> {
        let bytes = first.checked_mul(self.stride).zip(count.checked_mul(self.stride));
        let (offset, len) = bytes
            .ok_or_else(|| Error::format(format!("the offset of row {first} of {} exceeds 2^64 bytes", self.rows)))?;
        read_bytes(&self.file, self.start + offset, len).context(&self.place)
    }
}
