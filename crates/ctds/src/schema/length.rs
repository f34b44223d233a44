//! Lengths of objects in `table.dat` that is rewritten in part.

/// Offset, in bytes from the start of `table.dat`, of the length of the object `Table`; the AipsIO magic precedes it.
pub(super) const LENGTH_OFFSET: usize = 4;

/// Number in place of an object's length in `table.dat`, stored by a writer that could not seek back to fill the length in.
const NO_LENGTH: u32 = crate::aipsio::MAGIC;

/// Adds `grown`, modulo 2^32, to the length of the object whose length field is at the byte `at`.
pub(super) fn add_to_length(bytes: &mut [u8], at: usize, grown: u32) {
    let length = &mut bytes[at..at + 4];
    let stored = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    if stored != NO_LENGTH {
        length.copy_from_slice(&stored.wrapping_add(grown).to_be_bytes());
    }
}
