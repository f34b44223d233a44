//! Reads the selected elements of a dataset, block by block.

use std::sync::Arc;

use ctds::error::{Error, ErrorKind, Result};
use ctds_hdf5::internals::{AnyDataset, AnyObject, Served, Steps, Unwritten, Visitor, has_pointers};
use h5_read::{Class, Datatype};

use crate::number::{Form, Kind, Number, decode_extended, decode_half};
use crate::resolve::{Found, Member, OpenFile, Target};
use crate::selection::{self, Blocks, Selected};
use crate::table::TableElements;

/// Read at a time if decoded chunks are kept: a block may then end within a chunk.
const BLOCK_BYTES: u64 = 1 << 20;

/// The same without kept chunks, which libhdf5 decodes again for each block that overlaps them.
const LARGE_BLOCK_BYTES: u64 = 4 << 20;

/// Bytes read at a time of strings or compounds, which are written as text one by one.
const VISITED_BYTES: u64 = 1 << 20;

/// Elements of variable length read at a time.
const VARIABLE_ELEMENTS: u64 = 1024;

/// Chunks read at a time: each costs a search in the index, however small it is.
const MAX_CHUNKS: u64 = 1 << 14;

/// Larger elements are refused.
const MAX_ELEMENT_BYTES: u64 = 64 << 20;

/// The selected elements of a dataset, and how they are converted.
pub(crate) struct Values {
    dataset: AnyDataset,
    /// Reader of a casacore table that is shown as an HDF5 file.
    in_table: Option<TableElements>,
    /// Keeps the file open.
    file: Arc<OpenFile>,
    selected: Selected,
    /// Selected elements in `MAX_CHUNKS` chunks.
    in_chunks: u64,
    /// Extents of the selection, slowest axis first, then of each element if it is an HDF5 array.
    /// `None` for a null dataspace.
    pub(crate) shape: Option<Vec<u64>>,
    /// If elements are HDF5 arrays, the type of their elements.
    pub(crate) element: Datatype,
    /// Axes of elements that are HDF5 arrays.
    pub(crate) array_axes: usize,
    pub(crate) number: Option<Number>,
}

/// `NotFound` for a link that leads nowhere, `Unsupported` for one that may not be followed,
/// `Usage` for another object than a dataset.
pub(crate) fn member(found: Found, path: &str) -> Result<Member> {
    let found = match found {
        Found::Target(Target::Member(member)) => member,
        Found::Target(Target::Root(_)) => return Err(not_a_dataset(path)),
        Found::Link(_, why) => return Err(unresolved(path, why)),
    };
    match found.open()? {
        AnyObject::Dataset(_) => Ok(found),
        AnyObject::Group(_) | AnyObject::Type(_) => Err(not_a_dataset(path)),
    }
}

fn not_a_dataset(path: &str) -> Error {
    Error::usage(format!("{path} is not a dataset"))
}

/// A link was not followed although its object is needed; `why` is the reason, if it is known.
pub(crate) fn unresolved(path: &str, why: Option<Error>) -> Error {
    match why {
        Some(why) if why.kind() != ErrorKind::NotFound => why.context(path.to_owned()),
        Some(why) => Error::not_found(format!("Cannot resolve the link at {path}: {}", why.message())).caused_by(why),
        None => Error::not_found(format!("Cannot resolve the link at {path}")),
    }
}

/// Slowest axis first; of a live file only committed rows. `None` for a null dataspace.
///
/// The number of committed rows is read first: a writer extends its datasets before it commits, so
/// every extent that is refreshed after that covers them. The other way round, rows committed in
/// between would be missing from this dataset alone.
pub(crate) fn extents(member: &Member, dataset: &AnyDataset) -> Result<Option<Vec<u64>>> {
    let committed = if dataset.grows()? { member.committed()? } else { None };
    if member.file.grows {
        dataset.refresh()?;
    }
    let mut extents = dataset.extents()?;
    if let (Some(first), Some(committed)) = (extents.as_mut().and_then(|extents| extents.first_mut()), committed) {
        *first = committed.min(*first);
    }
    Ok(extents)
}

impl Values {
    pub(crate) fn open(member: &Member, served: &Served<'_>, selection: Option<&str>) -> Result<Self> {
        let dataset = member.group.any_elements(&member.name, served)?;
        let mut element = dataset.element().clone();
        if element.size() > MAX_ELEMENT_BYTES {
            let message = format!("elements of {} bytes; the limit is {MAX_ELEMENT_BYTES}", element.size);
            return Err(Error::limit(message));
        }
        let extents = extents(member, &dataset)?;
        if extents.is_none() && selection.is_some() {
            return Err(Error::usage("the dataset has no dataspace, so that nothing can be selected"));
        }
        let selected = selection::parse(selection, extents.as_deref().unwrap_or_default())?;
        let mut shape = selected.shape.clone();
        let mut array_axes = 0;
        while let Class::Array { extents, base } = element.class {
            array_axes += extents.len();
            shape.extend(extents.into_iter().map(u64::from));
            element = *base;
        }
        let number = Number::of(&element);
        let shape = extents.map(|_| shape);
        let file = Arc::clone(&member.file);
        let place = file.table.as_ref().and_then(|table| table.place(&member.path()));
        let in_table = place.map(TableElements::new);
        let in_chunks =
            dataset.chunk()?.map_or(u64::MAX, |chunk| MAX_CHUNKS.saturating_mul(in_chunk(&selected.axes, &chunk)));
        Ok(Values { dataset, in_table, file, selected, in_chunks, shape, element, array_axes, number })
    }

    /// An element that is an HDF5 array counts once for each value in it.
    pub(crate) fn count(&self) -> u64 {
        self.shape.as_deref().map_or(0, selection::elements)
    }

    /// Bytes of the selection in the type of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.selected.elements().saturating_mul(self.dataset.element().size())
    }

    /// Strings or lists of variable length, or references: pointers to other places in the file.
    pub(crate) fn has_pointers(&self) -> bool {
        has_pointers(&self.element)
    }

    /// Fails if a dataset claims more bytes than the file can contain, as damaged files do.
    pub(crate) fn check_backed(&self) -> Result<()> {
        if self.in_table.is_some() {
            return Ok(());
        }
        self.dataset.check_backed(self.bytes().min(LARGE_BLOCK_BYTES.max(self.dataset.element().size())))
    }

    pub(crate) fn blocks(&self) -> Blocks {
        let bytes = if self.dataset.keeps_chunks() { BLOCK_BYTES } else { LARGE_BLOCK_BYTES };
        self.blocks_of(bytes / self.dataset.element().size().max(1))
    }

    pub(crate) fn visited_blocks(&self) -> Blocks {
        let elements = VISITED_BYTES / self.dataset.element().size().max(1);
        self.blocks_of(if self.has_pointers() { VARIABLE_ELEMENTS } else { elements })
    }

    fn blocks_of(&self, elements: u64) -> Blocks {
        Blocks::new(&self.selected.axes, elements.min(self.in_chunks))
    }

    /// Numbers in their numpy type, other elements as in the file.
    pub(crate) fn read(&self, block: &[Steps]) -> Result<Vec<u8>> {
        let bytes = match self.in_table() {
            Some((elements, table)) => elements.read_bytes(table, block)?,
            None => self.dataset.read_bytes(block)?,
        };
        match &self.number {
            Some(number) => number.standard(bytes),
            None => Ok(bytes),
        }
    }

    pub(crate) fn visit(&self, block: &[Steps], visitor: &mut dyn Visitor) -> Result<()> {
        match self.in_table() {
            Some((elements, table)) => elements.visit(table, block, visitor),
            None => self.dataset.visit(block, visitor),
        }
    }

    fn in_table(&self) -> Option<(&TableElements, &Unwritten)> {
        self.in_table.as_ref().zip(self.file.table.as_ref())
    }
}

/// Most selected elements in a chunk; extents of the chunk are slowest axis first.
fn in_chunk(axes: &[Steps], chunk: &[u64]) -> u64 {
    let on_axis = |(axis, extent): (&Steps, &u64)| axis.count.min(extent.div_ceil(axis.step)).max(1);
    axes.iter().zip(chunk).map(on_axis).fold(1, u64::saturating_mul)
}

/// The types differ in byte order or in the size of floating-point numbers.
pub(crate) fn convert(bytes: Vec<u8>, from: Form, to: Form) -> Vec<u8> {
    if from == to {
        return bytes;
    }
    let part = from.part();
    if part == to.part() {
        let mut bytes = bytes;
        if from.big_endian != to.big_endian {
            bytes.chunks_exact_mut(part).for_each(<[u8]>::reverse);
        }
        return bytes;
    }
    debug_assert!(matches!(from.kind, Kind::Float | Kind::Complex) && !to.big_endian);
    let mut out = Vec::with_capacity(bytes.len() / part * to.part());
    for bytes in bytes.chunks_exact(part) {
        match *bytes {
            [a, b] if from.big_endian => out.extend(decode_half(u16::from_be_bytes([a, b])).to_le_bytes()),
            [a, b] => out.extend(decode_half(u16::from_le_bytes([a, b])).to_le_bytes()),
            _ => out.extend(decode_extended(bytes, from.big_endian).to_le_bytes()),
        }
    }
    out
}

/// Files that the file of `member` names may be opened if `is_served` is true for them.
pub(crate) fn served<'a>(member: &'a Member, is_served: &'a dyn Fn(&std::path::Path) -> bool) -> Served<'a> {
    Served::new(member.file.directory(), is_served)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_elements_of_a_chunk() {
        let axis = |step, count| Steps { start: 0, step, count };
        assert_eq!(in_chunk(&[axis(1, 100), axis(1, 100)], &[1, 1]), 1);
        assert_eq!(in_chunk(&[axis(1, 100), axis(3, 5)], &[10, 64]), 50);
        assert_eq!(in_chunk(&[axis(7, 100)], &[10]), 2);
        assert_eq!(in_chunk(&[axis(1000, 100), axis(1, 0)], &[10, 10]), 1);
        assert_eq!(in_chunk(&[], &[]), 1);
    }
}
