//! For the tests of the managers: bytes from formats/stman.md, and what to open them with.

use std::panic::Location;
use std::sync::LazyLock;

use super::{ColumnSpec, OpenArgs, Storage};
use crate::container::Container;
use crate::error::Result;
use crate::io::ByteOrder;
use crate::value::{DataType, Record, Shape};

static NO_KEYWORDS: LazyLock<Record> = LazyLock::new(Record::default);

/// Bytes from their notation: hexadecimal digits, `'text'`, and `00*12` for a repeated byte.
pub(super) fn bytes(notation: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, part) in notation.split('\'').enumerate() {
        if index % 2 == 1 {
            bytes.extend_from_slice(part.as_bytes());
            continue;
        }
        for word in part.split_whitespace() {
            let (digits, times) = word.split_once('*').unwrap_or((word, "1"));
            for _ in 0..times.parse().unwrap() {
                bytes.extend(
                    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()),
                );
            }
        }
    }
    bytes
}

pub(super) fn column(name: &str, data_type: DataType, storage: Storage, shape: Option<&[u64]>) -> ColumnSpec {
    let scalar = storage == Storage::Scalar;
    let shape = if scalar { Some(Shape::scalar()) } else { shape.map(Shape::from) };
    ColumnSpec { name: name.into(), data_type, storage, shape, ndim: if scalar { 0 } else { -1 }, max_length: 0 }
}

pub(super) fn args<'a>(
    files: &'a dyn Container,
    order: ByteOrder,
    rows: u64,
    columns: &'a [ColumnSpec],
    info: &'a [u8],
) -> OpenArgs<'a> {
    OpenArgs { files, sequence: 0, rows, order, columns, info, private_keywords: &NO_KEYWORDS }
}

/// Reads `good`, which must work, and every damaged form of it, which must return.
#[track_caller]
pub(super) fn damage(good: &[u8], read: impl Fn(Vec<u8>) -> Result<()>) {
    read(good.to_vec()).unwrap_or_else(|error| panic!("{}: {error}", Location::caller()));
    for len in 0..good.len() {
        let _ = read(good[..len].to_vec());
    }
    for at in 0..good.len() {
        for flip in [0x01, 0x04, 0x80, 0xff] {
            let mut bytes = good.to_vec();
            bytes[at] ^= flip;
            let _ = read(bytes);
        }
    }
}
