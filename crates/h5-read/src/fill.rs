//! Values of elements that were never written. HDF5 File Format Specification 3.0, sections
//! IV.A.2.e and IV.A.2.f.
//!
//! The old message has a size and a value. The new one adds when space is allocated and when the
//! value is written: in bytes of their own in versions 1 and 2, in flags in version 3.

use crate::bytes::Bytes;
use crate::error::Result;

/// Flags of version 3.
const UNDEFINED: u8 = 1 << 4;
const DEFINED: u8 = 1 << 5;

/// Value of elements that were never written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FillValue {
    /// None: such elements may have any value. Readers show zeros.
    Undefined,
    /// All bytes are 0.
    #[default]
    Zero,
    /// The bytes of an element.
    Bytes(Vec<u8>),
}

/// When space for elements is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationTime {
    /// When the dataset is created.
    Early,
    /// When elements are first written.
    Late,
    /// Space is allocated as chunks are written.
    Incremental,
    /// The file does not say.
    Unknown,
}

/// When the value is written to allocated space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillTime {
    /// Elements are filled on allocation.
    Allocation,
    /// Never.
    Never,
    /// Elements are filled on allocation if the value was set by the writer.
    IfSet,
    /// The file does not say.
    Unknown,
}

/// A fill value message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill {
    /// The value.
    pub value: FillValue,
    /// When space is allocated.
    pub allocated: AllocationTime,
    /// When the value is written.
    pub written: FillTime,
}

impl Fill {
    pub(crate) fn decode(fields: &mut Bytes<'_>) -> Result<Self> {
        let version = fields.version(&[1, 2, 3])?;
        let (allocated, written, is_undefined, has_value) = if version == 3 {
            let flags = fields.u8()?;
            if flags & UNDEFINED != 0 && flags & DEFINED != 0 {
                return Err(fields.error("the fill value is both defined and undefined"));
            }
            (flags & 3, flags >> 2 & 3, flags & UNDEFINED != 0, flags & DEFINED != 0)
        } else {
            let times = (fields.u8()?, fields.u8()?);
            let has_value = fields.u8()? != 0;
            (times.0, times.1, !has_value, has_value)
        };
        let value = match (is_undefined, has_value) {
            (true, _) => FillValue::Undefined,
            (false, false) => FillValue::Zero,
            (false, true) => value(fields, version < 3)?,
        };
        Ok(Fill { value, allocated: allocation(allocated), written: fill_time(written) })
    }

    pub(crate) fn decode_old(fields: &mut Bytes<'_>) -> Result<Self> {
        let value = match value(fields, false)? {
            FillValue::Zero => FillValue::Undefined,
            value => value,
        };
        Ok(Fill { value, allocated: AllocationTime::Unknown, written: FillTime::Unknown })
    }

    /// Puts the value into each element of `out`, whose elements have `size` bytes.
    ///
    /// # Errors
    /// `Damaged` if the value has another size.
    pub fn write(&self, size: u32, out: &mut [u8]) -> Result<()> {
        let FillValue::Bytes(value) = &self.value else {
            out.fill(0);
            return Ok(());
        };
        if value.len() as u64 != u64::from(size) {
            let bytes = value.len();
            return Err(crate::Error::damaged(format!("the fill value has {bytes} bytes, elements have {size}")));
        }
        match value.as_slice() {
            [] => {}
            &[byte, ref rest @ ..] if rest.iter().all(|&other| other == byte) => out.fill(byte),
            value => out.chunks_mut(value.len()).for_each(|place| place.copy_from_slice(&value[..place.len()])),
        }
        Ok(())
    }
}

/// A size and as many bytes. Versions 1 and 2 have signed sizes, -1 for a value that is undefined.
fn value(fields: &mut Bytes<'_>, is_signed: bool) -> Result<FillValue> {
    match fields.u32()? {
        0 => Ok(FillValue::Zero),
        u32::MAX if is_signed => Ok(FillValue::Undefined),
        size => Ok(FillValue::Bytes(fields.take(size as usize)?.to_vec())),
    }
}

fn allocation(time: u8) -> AllocationTime {
    match time {
        1 => AllocationTime::Early,
        2 => AllocationTime::Late,
        3 => AllocationTime::Incremental,
        _ => AllocationTime::Unknown,
    }
}

fn fill_time(time: u8) -> FillTime {
    match time {
        0 => FillTime::Allocation,
        1 => FillTime::Never,
        2 => FillTime::IfSet,
        _ => FillTime::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Sizes;

    fn fields(bytes: &[u8]) -> Bytes<'_> {
        Bytes::new("fill value", 0, bytes, Sizes { address: 8, length: 8 })
    }

    fn value(bytes: &[u8]) -> FillValue {
        Fill::decode(&mut fields(bytes)).unwrap().value
    }

    #[test]
    fn values_of_every_version() {
        let five = FillValue::Bytes(vec![5, 6]);
        assert_eq!(value(&[1, 2, 2, 1, 2, 0, 0, 0, 5, 6]), five);
        assert_eq!(value(&[2, 2, 2, 1, 2, 0, 0, 0, 5, 6]), five);
        assert_eq!(value(&[3, 0x2a, 2, 0, 0, 0, 5, 6]), five);
        assert_eq!(value(&[2, 2, 2, 1, 0, 0, 0, 0]), FillValue::Zero);
        assert_eq!(value(&[3, 0x0a]), FillValue::Zero);
        for undefined in [&[2, 2, 2, 0][..], &[2, 2, 2, 1, 0xff, 0xff, 0xff, 0xff], &[3, 0x1a]] {
            assert_eq!(value(undefined), FillValue::Undefined);
        }
        assert_eq!(Fill::decode_old(&mut fields(&[2, 0, 0, 0, 5, 6])).unwrap().value, five);
        assert_eq!(Fill::decode_old(&mut fields(&[0; 4])).unwrap().value, FillValue::Undefined);
        let times = Fill::decode(&mut fields(&[3, 0b1001])).unwrap();
        assert_eq!((times.allocated, times.written), (AllocationTime::Early, FillTime::IfSet));
        for bad in [&[3, 0x3a][..], &[3, 0x2a, 3, 0, 0, 0, 5, 6], &[2, 2, 2, 1, 0xfe, 0xff, 0xff, 0xff], &[4]] {
            assert!(Fill::decode(&mut fields(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn elements_are_filled() {
        let mut fill = Fill::decode(&mut fields(&[3, 0x2a, 2, 0, 0, 0, 5, 6])).unwrap();
        let mut out = [9; 5];
        fill.write(2, &mut out).unwrap();
        assert_eq!(out, [5, 6, 5, 6, 5]);
        assert!(fill.write(4, &mut out).is_err());
        fill.value = FillValue::Undefined;
        fill.write(2, &mut out).unwrap();
        assert_eq!(out, [0; 5]);
    }
}
