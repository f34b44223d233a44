//! Where workers of a conversion to a table write the tiles of a hypercube: the file, the offset of
//! the first tile, and the distance between consecutive tiles.

use std::path::{Component, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::io::ByteOrder;
use crate::table::TilePlace;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TileFile {
    /// Relative to the directory of the main table.
    pub(super) path: PathBuf,
    /// Byte of the column's part of tile 0: columns of one data manager share tiles.
    pub(super) offset: u64,
    pub(super) stride: u64,
    /// Stored bytes of the column's part of a tile.
    pub(super) bytes: u64,
    /// `big` or `little`; `None` for packed Bools.
    order: Option<String>,
    /// Consecutive tiles made at a time: of one chunk of the source, or with the same rows.
    pub(super) joined: u64,
}

impl TileFile {
    pub(super) fn new(path: PathBuf, place: &TilePlace, order: Option<ByteOrder>, joined: u64) -> Self {
        let order = order.map(|order| order.name().to_owned());
        TileFile { path, offset: place.offset, stride: place.stride, bytes: place.bytes, order, joined }
    }

    pub(super) fn order(&self) -> Result<Option<ByteOrder>> {
        let Some(name) = &self.order else { return Ok(None) };
        let found = [ByteOrder::Big, ByteOrder::Little].into_iter().find(|order| order.name() == name);
        found.map(Some).ok_or_else(|| Error::format(format!("{name:?} is not a byte order")))
    }

    /// Offsets and lengths in the file; `at` and `len` count only bytes of the column's tiles.
    pub(super) fn parts(&self, at: u64, len: u64) -> impl Iterator<Item = (u64, u64)> {
        let TileFile { offset, stride, bytes, .. } = *self;
        // one part where tiles follow each other
        let bytes = if stride == bytes { u64::MAX } else { bytes };
        let (mut at, end) = (at, at + len);
        std::iter::from_fn(move || {
            let (tile, within) = (at / bytes, at % bytes);
            let part = (bytes - within).min(end.checked_sub(at)?);
            at += part;
            (part > 0).then_some((offset + tile * stride + within, part))
        })
    }

    /// Fails if the numbers are impossible for `tiles` tiles, or the path leads out of the table.
    pub(super) fn check(&self, tiles: u64) -> Result<()> {
        let is_below = self.path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_below || self.path.as_os_str().is_empty() {
            return Err(Error::format(format!("the file of tiles {} is not below the table", self.path.display())));
        }
        let end = tiles.checked_mul(self.stride).and_then(|bytes| bytes.checked_add(self.offset));
        let together = self.joined.checked_mul(self.bytes);
        if self.bytes == 0 || self.stride < self.bytes || self.joined == 0 || end.is_none() || together.is_none() {
            let TileFile { offset, stride, bytes, joined, .. } = self;
            return Err(Error::format(format!(
                "tiles of {bytes} bytes, {stride} apart from byte {offset} on, {joined} at a time, are impossible"
            )));
        }
        self.order().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(stride: u64, bytes: u64) -> TileFile {
        let place = TilePlace { file: String::new(), offset: 1000, stride, bytes };
        TileFile::new(PathBuf::from("table.f1_TSM0"), &place, Some(ByteOrder::Big), 1)
    }

    #[test]
    fn tiles_that_follow_each_other_are_one_part() {
        assert_eq!(tiles(8, 8).parts(16, 24).collect::<Vec<_>>(), [(1016, 24)]);
        assert_eq!(tiles(20, 8).parts(8, 20).collect::<Vec<_>>(), [(1020, 8), (1040, 8), (1060, 4)]);
        assert_eq!(tiles(20, 8).parts(12, 0).count(), 0);
    }

    #[test]
    fn impossible_tiles_are_refused() {
        assert!(tiles(20, 8).check(3).is_ok());
        assert!(tiles(4, 8).check(3).is_err() && tiles(8, 0).check(3).is_err());
        assert!(tiles(u64::MAX / 2, 8).check(3).is_err());
        assert!(TileFile { joined: u64::MAX / 4, ..tiles(8, 8) }.check(3).is_err());
        for path in ["../x", "/x", "a/../../x", ""] {
            let file = TileFile { path: path.into(), ..tiles(8, 8) };
            assert!(file.check(1).is_err(), "{path}");
        }
    }
}
