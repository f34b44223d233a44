//! Mappings of virtual datasets: which elements are in which datasets of which files. HDF5 File
//! Format Specification 3.0, sections III.E.1 (block of mappings) and VIII.A (selections).
//!
//! An object of a global heap has a version, the number of mappings, the mappings and a checksum. A
//! mapping is the name of a file, that of a dataset in it, the elements of that dataset and those
//! of the virtual dataset. In version 1, of HDF5 2.0, flags come first, by which a name is that of
//! an earlier mapping, or the file is the same.

use std::sync::Arc;

use crate::bytes::Bytes;
use crate::checksum;
use crate::error::Result;

const SAME_FILE: u8 = 4;
const SHARED_FILE: u8 = 1;
const SHARED_DATASET: u8 = 2;

/// Flag of a selection of blocks: they repeat regularly.
const REGULAR: u8 = 1;

const MAX_RANK: u32 = 32;

/// Elements of a virtual dataset that are those of another dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Name of the file as stored, `.` for the file of the virtual dataset: not a path that may be
    /// opened without care. `%b` stands for the number of a block.
    pub file: Arc<[u8]>,
    /// Path of the dataset in the file.
    pub dataset: Arc<[u8]>,
    /// Elements of that dataset.
    pub source: Selection,
    /// Elements of the virtual dataset, as many and in the same order.
    pub target: Selection,
}

/// Some elements of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection {
    /// No elements.
    None,
    /// All elements.
    All,
    /// Single elements, each with one number for each axis.
    Points(Vec<Vec<u64>>),
    /// Boxes, each with its first and its last element.
    Blocks(Vec<(Vec<u64>, Vec<u64>)>),
    /// Boxes that repeat regularly: one item for each axis.
    Regular(Vec<Repeated>),
}

/// Blocks on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// First element.
    pub start: u64,
    /// Distance from one block to the next.
    pub stride: u64,
    /// Number of blocks; `None` without limit.
    pub count: Option<u64>,
    /// Elements of a block; `None` without limit.
    pub block: Option<u64>,
}

pub(crate) fn decode(fields: &mut Bytes<'_>) -> Result<Vec<Mapping>> {
    let all = fields.clone().rest();
    let before = fields.remaining();
    let version = fields.version(&[0, 1])?;
    let count = fields.length()?;
    let mut mappings: Vec<Mapping> = Vec::new();
    let dot: Arc<[u8]> = Arc::from(&b"."[..]);
    // each mapping has at least two names and two selections, so that the count cannot run far
    for _ in 0..count {
        let flags = if version == 0 { 0 } else { fields.u8()? };
        if flags & !(SAME_FILE | SHARED_FILE | SHARED_DATASET) != 0 {
            return Err(fields.unsupported(format!("a mapping with the unknown flags {flags:#x}")));
        }
        let file = match flags {
            flags if flags & SAME_FILE != 0 => dot.clone(),
            flags if flags & SHARED_FILE != 0 => earlier(fields, &mappings)?.file.clone(),
            _ => fields.text()?.into(),
        };
        let dataset = match flags & SHARED_DATASET {
            0 => fields.text()?.into(),
            _ => earlier(fields, &mappings)?.dataset.clone(),
        };
        mappings.push(Mapping { file, dataset, source: selection(fields)?, target: selection(fields)? });
    }
    let sealed = all.get(..before.saturating_sub(fields.remaining())).unwrap_or_default();
    checksum::check(fields.u32()?, sealed)?;
    Ok(mappings)
}

fn earlier<'m>(fields: &mut Bytes<'_>, mappings: &'m [Mapping]) -> Result<&'m Mapping> {
    let number = fields.length()?;
    let mapping = usize::try_from(number).ok().and_then(|number| mappings.get(number));
    mapping.ok_or_else(|| fields.error(format!("a mapping refers to mapping {number}, which is not before it")))
}

fn selection(fields: &mut Bytes<'_>) -> Result<Selection> {
    let kind = fields.u32()?;
    let version = fields.u32()?;
    match (kind, version) {
        (0 | 3, 1) => {
            fields.skip(8)?;
            Ok(if kind == 0 { Selection::None } else { Selection::All })
        }
        (1, 1 | 2) => points(fields, version),
        (2, 1..=3) => blocks(fields, version),
        _ => Err(fields.unsupported(format!("a selection of kind {kind} and version {version}"))),
    }
}

fn rank(fields: &mut Bytes<'_>) -> Result<usize> {
    match fields.u32()? {
        rank @ 1..=MAX_RANK => Ok(rank as usize),
        rank => Err(fields.error(format!("a selection has {rank} axes, 1 to {MAX_RANK} are possible"))),
    }
}

fn width(fields: &mut Bytes<'_>) -> Result<usize> {
    match fields.u8()? {
        width @ (2 | 4 | 8) => Ok(usize::from(width)),
        width => Err(fields.error(format!("numbers of a selection have {width} bytes"))),
    }
}

fn numbers(fields: &mut Bytes<'_>, rank: usize, width: usize) -> Result<Vec<u64>> {
    (0..rank).map(|_| fields.number(width)).collect()
}

fn points(fields: &mut Bytes<'_>, version: u32) -> Result<Selection> {
    let width = if version == 1 {
        fields.skip(8)?;
        4
    } else {
        width(fields)?
    };
    let rank = rank(fields)?;
    let count = fields.number(width)?;
    let mut points = Vec::new();
    for _ in 0..count {
        points.push(numbers(fields, rank, width)?);
    }
    Ok(Selection::Points(points))
}

fn blocks(fields: &mut Bytes<'_>, version: u32) -> Result<Selection> {
    let (flags, width) = match version {
        1 => {
            fields.skip(8)?;
            (0, 4)
        }
        2 => {
            let flags = fields.u8()?;
            fields.skip(4)?;
            (flags, 8)
        }
        _ => (fields.u8()?, width(fields)?),
    };
    if flags & !REGULAR != 0 {
        return Err(fields.unsupported(format!("a selection with the unknown flags {flags:#x}")));
    }
    let rank = rank(fields)?;
    if flags & REGULAR != 0 {
        let unlimited = u64::MAX >> (64 - 8 * width);
        let limit = |number| Some(number).filter(|&number| number != unlimited);
        let axis = |_| {
            let (start, stride) = (fields.number(width)?, fields.number(width)?);
            let (count, block) = (limit(fields.number(width)?), limit(fields.number(width)?));
            Ok(Repeated { start, stride, count, block })
        };
        return Ok(Selection::Regular((0..rank).map(axis).collect::<Result<_>>()?));
    }
    let count = fields.number(width)?;
    let mut blocks = Vec::new();
    for _ in 0..count {
        blocks.push((numbers(fields, rank, width)?, numbers(fields, rank, width)?));
    }
    Ok(Selection::Blocks(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Sizes;
    use crate::testing::seal;

    fn mappings(bytes: &[u8]) -> Result<Vec<Mapping>> {
        decode(&mut Bytes::new("mappings", 0, bytes, Sizes { address: 8, length: 2 }))
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn selections_of_every_kind() {
        let all = words(&[3, 1, 0, 0]);
        let points = words(&[1, 1, 0, 0, 2, 1, 5, 6]);
        let blocks = words(&[2, 1, 0, 0, 1, 1, 5, 6]);
        let regular = [&words(&[2, 3])[..], &[1, 2], &words(&[1]), &[1, 0, 2, 0, 0xff, 0xff, 3, 0]].concat();
        let first = [&b"\0\x02\0a.h5\0/x\0"[..], &all, &points, b".\0y\0", &blocks, &regular].concat();
        let found = mappings(&seal(first.clone())).unwrap();
        assert_eq!(
            (&*found[0].file, &*found[0].dataset, &found[0].source),
            (&b"a.h5"[..], &b"/x"[..], &Selection::All)
        );
        assert_eq!(found[0].target, Selection::Points(vec![vec![5, 6]]));
        assert_eq!(found[1].source, Selection::Blocks(vec![(vec![5], vec![6])]));
        let repeated = Repeated { start: 1, stride: 2, count: None, block: Some(3) };
        assert_eq!(found[1].target, Selection::Regular(vec![repeated]));
        let message = mappings(&[first, vec![0; 4]].concat()).unwrap_err().message().to_owned();
        assert!(message.starts_with("the checksum is 0x00000000"), "{message}");
    }

    #[test]
    fn names_of_earlier_mappings() {
        let all = words(&[3, 1, 0, 0]);
        let none = words(&[0, 1, 0, 0]);
        let bytes = [&b"\x01\x02\0\x04/x\0"[..], &all, &none, b"\x03\0\0\0\0", &all, &all].concat();
        let found = mappings(&seal(bytes)).unwrap();
        assert_eq!((&*found[1].file, &*found[1].dataset), (&b"."[..], &b"/x"[..]));
        let later = [&b"\x01\x01\0\x01\0\0/x\0"[..], &all, &all].concat();
        let message = mappings(&seal(later)).unwrap_err().message().to_owned();
        assert_eq!(message, "a mapping refers to mapping 0, which is not before it");
    }
}
