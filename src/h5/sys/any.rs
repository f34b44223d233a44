//! Reads elements of any type. Strings and sequences of variable length, to which elements point,
//! get at most [`MAX_SEQUENCE_BYTES`] in a read of a dataset.

use std::ffi::{CStr, c_char, c_void};
use std::{ptr, slice};

use hdf5::Dataspace;
use hdf5::globals::H5P_DATASET_XFER;
use hdf5_sys::{h5d, h5p};

use super::super::any_type::{AnyClass, AnyType, Visitor};
use super::super::error::Hdf5Result;
use super::stored_type::StoredType;
use super::values::{Target, reclaim};
use crate::error::{Error, Result};

/// Largest number of bytes that the variable-length strings and sequences of one read may take;
/// more is an error.
const MAX_SEQUENCE_BYTES: usize = 64 << 20;

/// The memory for the strings and sequences of one read, which libhdf5 allocates through a
/// callback.
struct Arena {
    blocks: Vec<Vec<u64>>,
    bytes: usize,
    /// Whether an allocation was refused because it exceeded the limit.
    full: bool,
}

/// The callback by which libhdf5 allocates memory for the strings and sequences that it reads
/// (`H5MM_allocate_t`); null if the limit of the arena is exceeded.
///
/// # Safety
/// `arena` is an [`Arena`] that nothing else uses during the call.
unsafe extern "C" fn allocate(size: usize, arena: *mut c_void) -> *mut c_void {
    // SAFETY: as this function demands
    let arena = unsafe { &mut *arena.cast::<Arena>() };
    if arena.bytes.saturating_add(size) > MAX_SEQUENCE_BYTES {
        arena.full = true;
        return ptr::null_mut();
    }
    arena.bytes += size;
    let mut block = vec![0u64; size.div_ceil(8).max(1)];
    let start = block.as_mut_ptr();
    // the elements of a vector stay where they are when the vector itself moves
    arena.blocks.push(block);
    start.cast()
}

/// `H5MM_free_t`, by which libhdf5 frees memory. It does nothing: all memory of one read is freed
/// at once, with its [`Arena`].
unsafe extern "C" fn keep_block(_: *mut c_void, _: *mut c_void) {}

/// Elements that were read, with the strings and sequences they point to.
pub(crate) struct AnyValues<'a> {
    stored: &'a StoredType,
    /// Pointers in these bytes are null or lead into `memory`, which lives as long as this object.
    bytes: Vec<u8>,
    memory: PointerMemory,
}

/// The owner of the strings and sequences to which the elements point.
enum PointerMemory {
    /// The elements do not contain pointers.
    None,
    Arena {
        _arena: Box<Arena>,
    },
    /// Memory that libhdf5 allocated and must free, for which it needs the dataspace of the
    /// elements.
    Library(Dataspace),
}

impl Drop for AnyValues<'_> {
    fn drop(&mut self) {
        let PointerMemory::Library(space) = &self.memory else { return };
        // SAFETY: the pointers are null or were allocated by libhdf5, and are not used after this
        unsafe { reclaim(&self.stored.datatype, space, self.bytes.as_mut_ptr().cast()) };
    }
}

impl AnyValues<'_> {
    /// Only for types without pointers, because the memory that pointers lead to is freed.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn visit(&self, visitor: &mut dyn Visitor) {
        for element in self.bytes.chunks_exact(self.stored.element.size.max(1)) {
            // SAFETY: libhdf5 has filled `bytes` with elements of the type that `element`
            // describes; its pointers live
            unsafe { visit(&self.stored.element, element, visitor) };
        }
    }
}

/// Takes an element of the type `element` apart into its values and passes each to `visitor`.
///
/// # Safety
/// `bytes` is an element of the type, as libhdf5 has it in memory, and what its pointers lead to
/// lives.
unsafe fn visit(element: &AnyType, bytes: &[u8], visitor: &mut dyn Visitor) {
    const WORD: usize = size_of::<usize>();
    let word = |at: usize| -> usize {
        bytes.get(at..at + WORD).and_then(|word| word.try_into().ok()).map_or(0, usize::from_ne_bytes)
    };
    match &element.class {
        AnyClass::Text { variable: true, .. } => {
            let pointer = ptr::with_exposed_provenance::<c_char>(word(0));
            // SAFETY: as this function demands; libhdf5 ends such strings with NUL
            let text = if pointer.is_null() { &[][..] } else { unsafe { CStr::from_ptr(pointer) }.to_bytes() };
            visitor.text(text);
        }
        AnyClass::Sequence(inner) => {
            // hvl_t: the number of elements, the address of the first
            let (count, pointer) = (word(0), ptr::with_exposed_provenance::<u8>(word(WORD)));
            visitor.begin();
            if count > 0 && !pointer.is_null() && inner.size > 0 {
                // SAFETY: as this function demands: libhdf5 has allocated that many elements there
                let elements = unsafe { slice::from_raw_parts(pointer, count * inner.size) };
                for bytes in elements.chunks_exact(inner.size) {
                    // SAFETY: an element of the sequence is one of its type
                    unsafe { visit(inner, bytes, visitor) };
                }
            }
            visitor.end();
        }
        AnyClass::Compound(members) => {
            visitor.begin();
            for member in members {
                let bytes = &bytes[member.offset..member.offset + member.element.size];
                // SAFETY: a member of the element
                unsafe { visit(&member.element, bytes, visitor) };
            }
            visitor.end();
        }
        AnyClass::Array { extents, element } => {
            // SAFETY: the array is the element
            unsafe { visit_array(extents, element, bytes, visitor) };
        }
        AnyClass::Complex(part) => {
            visitor.begin();
            for bytes in bytes.chunks_exact(part.size.max(1)) {
                visitor.fixed(part, bytes);
            }
            visitor.end();
        }
        AnyClass::Reference(kind) => visitor.reference(*kind, bytes),
        _ => visitor.fixed(element, bytes),
    }
}

/// Passes the elements of an array to `visitor` as nested lists, one level per axis; `extents` has
/// the slowest axis first.
///
/// # Safety
/// As [`visit`], for each element of the array.
unsafe fn visit_array(extents: &[u64], element: &AnyType, bytes: &[u8], visitor: &mut dyn Visitor) {
    let Some((&extent, inner)) = extents.split_first() else {
        // SAFETY: without axes, the array is one element
        return unsafe { visit(element, bytes, visitor) };
    };
    visitor.begin();
    if extent > 0 && !bytes.is_empty() {
        for bytes in bytes.chunks_exact(bytes.len() / extent as usize) {
            // SAFETY: a part of the array
            unsafe { visit_array(inner, element, bytes, visitor) };
        }
    }
    visitor.end();
}

/// Reads all elements of an attribute, or the selected ones of a dataset, without conversion:
/// `stored` is their type in the file.
pub(crate) fn read_any<'a>(target: &Target<'_>, stored: &'a StoredType) -> Result<AnyValues<'a>> {
    let count = target.count()?;
    let bytes = count
        .checked_mul(stored.datatype.size())
        .ok_or_else(|| Error::format("the elements have 2^64 bytes or more"))?;
    if stored.element.is_opaque_to_us() {
        return Err(Error::unsupported("elements of this type are not decoded"));
    }
    let mut values = AnyValues { stored, bytes: vec![0u8; bytes], memory: PointerMemory::None };
    let buffer: *mut c_void = values.bytes.as_mut_ptr().cast();
    let has_pointers = stored.element.has_pointers();
    match target {
        Target::Dataset { dataset, memory, file } if has_pointers => {
            let transfer = create!(hdf5::PropertyList, h5p::H5Pcreate(*H5P_DATASET_XFER)).h5()?;
            let mut arena = Box::new(Arena { blocks: Vec::new(), bytes: 0, full: false });
            let info: *mut c_void = (&raw mut *arena).cast();
            call!(h5p::H5Pset_vlen_mem_manager(transfer.id(), Some(allocate), info, Some(keep_block), info)).h5()?;
            let (id, datatype) = (dataset.id(), stored.datatype.id());
            // the buffer was made for the elements of `memory`, and the arena outlives the call
            let read = call!(h5d::H5Dread(id, datatype, memory.id(), file.id(), transfer.id(), buffer));
            if arena.full {
                return Err(Error::limit(format!(
                    "strings or sequences of {count} elements have more than {MAX_SEQUENCE_BYTES} bytes"
                )));
            }
            read.h5()?;
            values.memory = PointerMemory::Arena { _arena: arena };
        }
        // SAFETY: the buffer was made for `count` elements of the type
        _ => unsafe { target.read(&stored.datatype, buffer) }.h5()?,
    }
    if let (Target::Attribute(attribute), true) = (target, has_pointers) {
        values.memory = PointerMemory::Library(attribute.space().h5()?);
    }
    Ok(values)
}
