//! The order of the bytes of a number in a file: big-endian or little-endian.

/// Byte order of the numbers in a file: which end of a number comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Big-endian: most significant byte first; casacore's "canonical" order.
    Big,
    /// Little-endian: least significant byte first.
    Little,
}

impl ByteOrder {
    #[doc(hidden)]
    pub const NATIVE: Self = if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big };

    /// Name of the byte order: `big` or `little`.
    pub fn name(self) -> &'static str {
        match self {
            ByteOrder::Big => "big",
            ByteOrder::Little => "little",
        }
    }

    #[doc(hidden)]
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Big => u32::from_be_bytes(bytes),
            ByteOrder::Little => u32::from_le_bytes(bytes),
        }
    }

    #[doc(hidden)]
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            ByteOrder::Big => u64::from_be_bytes(bytes),
            ByteOrder::Little => u64::from_le_bytes(bytes),
        }
    }

    #[doc(hidden)]
    pub fn u32_bytes(self, value: u32) -> [u8; 4] {
        match self {
            ByteOrder::Big => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        }
    }

    #[doc(hidden)]
    pub fn u64_bytes(self, value: u64) -> [u8; 8] {
        match self {
            ByteOrder::Big => value.to_be_bytes(),
            ByteOrder::Little => value.to_le_bytes(),
        }
    }
}

/// Reverses each unit of `width` bytes in place.
pub fn swap_bytes(bytes: &mut [u8], width: usize) {
    match width {
        0 | 1 => {}
        2 => bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|unit| unit.reverse()),
        4 => bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|unit| unit.reverse()),
        8 => bytes.as_chunks_mut::<8>().0.iter_mut().for_each(|unit| unit.reverse()),
        _ => bytes.chunks_exact_mut(width).for_each(|unit| unit.reverse()),
    }
}
