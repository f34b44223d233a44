//! Lengths of objects in `table.dat` that is rewritten in part.

/// Length of the object `Table`, after the AipsIO magic.
pub(super) const LENGTH_OFFSET: usize = 4;

/// Replaces a length that a writer could not seek back to fill in.
const NO_LENGTH: u32 = crate::aipsio::MAGIC;

/// Modulo 2^32.
pub(super) fn add_to_length(bytes: &mut [u8], at: usize, grown: u32) {
    let length = &mut bytes[at..at + 4];
    let stored = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    if stored != NO_LENGTH {
        length.copy_from_slice(&stored.wrapping_add(grown).to_be_bytes());
    }
}
