//! The header of a SION file, META1, at its start. docs/reference/formats/sion.md has the table of
//! its fields. `file_format` is the version of the format, 2 to 5.

use ctds::error::{Context, Error, Result, ResultExt};
use ctds::io::{ReadAt, read_bytes};
use ctds::value::ByteOrder;

use super::MAGIC;

const PREFIX_BYTES: usize = 1024;

/// First version of the format with two flag words, and the number of the file in its SION set.
const WITH_FILE_NUMBER: i32 = 3;

/// First version of the format whose chunk sizes are the space that chunks occupy; in older files
/// they are rounded up to whole blocks.
const STORED_SPACES: i32 = 4;

/// First version of the format that states whether the streams consist of key-value records.
const WITH_KEY_VALUES: i32 = 5;

/// META1 without 16 bytes for each task; SIONlib assumes it in all versions for the first chunk.
const NOMINAL_BYTES: u64 = 1088;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meta1 {
    /// Bytes 4 to 7 of the file, which tell the byte orders of metadata and data.
    pub(super) endianness: [u8; 4],
    /// SIONlib that wrote the file: 1000 times the major number, plus the minor one.
    pub(super) version: i32,
    pub(super) patch: i32,
    pub(super) file_format: i32,
    /// Size of the file system blocks to which chunks are aligned.
    pub(super) block_bytes: i32,
    pub(super) files: i32,
    pub(super) file_number: i32,
    /// The upper 32 bits tell, in version 5 of the format, whether the streams consist of key-value
    /// records.
    pub(super) flag1: i64,
    pub(super) flag2: i64,
    /// The name that was given to SIONlib, without zero padding.
    pub(super) prefix: Vec<u8>,
    /// Global rank of each task.
    pub(super) ranks: Vec<i64>,
    /// Chunk size of each task as stored; [`Self::spaces`] has the space of a chunk.
    pub(super) chunk_bytes: Vec<u64>,
    /// Number of blocks, each with one chunk of every task; 0 until the file is closed.
    pub(super) blocks: u32,
    /// Offset of META2; 0 until the file is closed.
    pub(super) meta2: u64,
}

struct Numbers<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl Numbers<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (first, rest) =
            self.bytes.split_first_chunk().ok_or_else(|| Error::format("META1 ends before all of its numbers"))?;
        self.bytes = rest;
        Ok(*first)
    }

    fn i32(&mut self) -> Result<i32> {
        Ok(self.order.u32(self.take()?) as i32)
    }

    fn i64(&mut self) -> Result<i64> {
        Ok(self.order.u64(self.take()?) as i64)
    }

    fn i64s(&mut self, count: usize) -> Result<Vec<i64>> {
        (0..count).map(|_| self.i64()).collect()
    }
}

/// Bytes 4 and 7 are equal in files of the library: 0 is little-endian, 1 big-endian. Documents
/// describe the word as the integer 1 in the order of the machine; then only one of them is 1.
pub(super) fn order_of(word: [u8; 4]) -> Result<ByteOrder> {
    match word {
        [0, data, same, 0] if data == same && data <= 1 => Ok(ByteOrder::Little),
        [1, data, same, 1] if data == same && data <= 1 => Ok(ByteOrder::Big),
        [1, 0, 0, 0] => Ok(ByteOrder::Little),
        [0, 0, 0, 1] => Ok(ByteOrder::Big),
        _ => {
            Err(Error::format(format!("the byte order is given as {word:02x?}, expected 1 as 32 bits in either order"))
                .context(Context::offset("META1", 4)))
        }
    }
}

pub(super) fn is_data_big(word: [u8; 4]) -> bool {
    if word[0] == word[3] { word[1] == 1 } else { word[3] == 1 }
}

impl Meta1 {
    /// Compares counts with the file's length before it allocates; `Format` if unknown or too
    /// short.
    pub(super) fn read(file: &dyn ReadAt) -> Result<Self> {
        let read = || {
            let start = read_bytes(file, 0, 32)?;
            if start[..4] != MAGIC {
                return Err(Error::format("a SION file begins with \"sion\", this one does not"));
            }
            let endianness = [start[4], start[5], start[6], start[7]];
            let mut numbers = Numbers { bytes: &start[8..], order: order_of(endianness)? };
            let (version, patch, file_format) = (numbers.i32()?, numbers.i32()?, numbers.i32()?);
            if !(2..=5).contains(&file_format) {
                let message = format!("file format {file_format}: 2 to 5 are known");
                return Err(Error::format(message));
            }
            let (block_bytes, tasks, files) = (numbers.i32()?, numbers.i32()?, numbers.i32()?);
            if block_bytes < 1 || tasks < 1 || files < 1 {
                let message =
                    format!("{tasks} tasks in {files} files with blocks of {block_bytes} bytes: expected 1 or more");
                return Err(Error::format(message));
            }
            let len = meta1_bytes(file_format, tasks as u64);
            if len > file.len()? {
                let message = format!("{tasks} tasks take {len} bytes, the file has {}", file.len()?);
                return Err(Error::format(message));
            }
            let rest = read_bytes(file, 32, len - 32)?;
            let mut numbers = Numbers { bytes: &rest, order: order_of(endianness)? };
            let with_number = file_format >= WITH_FILE_NUMBER;
            let file_number = if with_number { numbers.i32()? } else { 1 };
            let (flag1, flag2) = if with_number { (numbers.i64()?, numbers.i64()?) } else { (0, 0) };
            let prefix: [u8; PREFIX_BYTES] = numbers.take()?;
            let prefix = prefix.iter().copied().take_while(|&byte| byte != 0).collect();
            let (ranks, sizes) = (numbers.i64s(tasks as usize)?, numbers.i64s(tasks as usize)?);
            let size = |(task, &size): (usize, &i64)| {
                u64::try_from(size).map_err(|_| Error::format(format!("task {task} has chunks of {size} bytes")))
            };
            let chunk_bytes = sizes.iter().enumerate().map(size).collect::<Result<_>>()?;
            let (blocks, meta2) = (numbers.i32()?, numbers.i64()?);
            let [Ok(blocks), Ok(meta2)] = [u64::try_from(blocks), u64::try_from(meta2)] else {
                return Err(Error::format(format!(
                    "the number of blocks ({blocks}) or the offset of META2 ({meta2}) is negative"
                )));
            };
            let blocks = blocks as u32;
            Ok(Meta1 {
                endianness,
                version,
                patch,
                file_format,
                block_bytes,
                files,
                file_number,
                flag1,
                flag2,
                prefix,
                ranks,
                chunk_bytes,
                blocks,
                meta2,
            })
        };
        read().context(Context::offset("META1", 0))
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let order = order_of(self.endianness)?;
        let i32 = |value: i32| order.u32_bytes(value as u32);
        let i64 = |value: i64| order.u64_bytes(value as u64);
        let mut out = [MAGIC, self.endianness].concat();
        let tasks = self.ranks.len() as i32;
        for value in [self.version, self.patch, self.file_format, self.block_bytes, tasks, self.files] {
            out.extend(i32(value));
        }
        if self.file_format >= WITH_FILE_NUMBER {
            out.extend(i32(self.file_number));
            out.extend(i64(self.flag1));
            out.extend(i64(self.flag2));
        }
        let mut prefix = self.prefix.clone();
        prefix.resize(PREFIX_BYTES, 0);
        out.extend(prefix);
        self.ranks.iter().for_each(|&rank| out.extend(i64(rank)));
        self.chunk_bytes.iter().for_each(|&bytes| out.extend(i64(bytes as i64)));
        out.extend(i32(self.blocks as i32));
        out.extend(i64(self.meta2 as i64));
        Ok(out)
    }

    pub(super) fn order(&self) -> Result<ByteOrder> {
        order_of(self.endianness)
    }

    pub(super) fn len(&self) -> u64 {
        meta1_bytes(self.file_format, self.ranks.len() as u64)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.meta2 > 0
    }

    /// 50: no key-value records; 51: the streams consist of them.
    pub(super) fn key_value_mode(&self) -> i64 {
        match self.flag1 >> 32 {
            mode if self.file_format >= WITH_KEY_VALUES && mode != 0 => mode,
            _ => 50,
        }
    }

    /// Space of a chunk of each task in bytes; `Format` if one is larger than any file.
    pub(super) fn spaces(&self) -> Result<Vec<u64>> {
        let space = |(task, &bytes): (usize, &u64)| {
            let space = if self.file_format >= STORED_SPACES { Some(bytes) } else { self.round_up(bytes) };
            let space = space.filter(|&space| space <= i64::MAX as u64);
            space.ok_or_else(|| Error::format(format!("task {task} has chunks of {bytes} bytes")))
        };
        self.chunk_bytes.iter().enumerate().map(space).collect()
    }

    /// Offset of the first chunk, as SIONlib normally places it.
    pub(super) fn nominal_start(&self) -> u64 {
        (NOMINAL_BYTES + 16 * self.ranks.len() as u64).next_multiple_of(self.block_bytes.max(1) as u64)
    }

    fn round_up(&self, bytes: u64) -> Option<u64> {
        bytes.checked_next_multiple_of(self.block_bytes.max(1) as u64)
    }
}

fn meta1_bytes(file_format: i32, tasks: u64) -> u64 {
    let numbers = if file_format >= WITH_FILE_NUMBER { 20 } else { 0 };
    32 + numbers + PREFIX_BYTES as u64 + 16 * tasks + 12
}
