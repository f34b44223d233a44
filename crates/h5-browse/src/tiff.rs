//! Writes the header of a TIFF file with one image; the numbers follow it uncompressed.

use ctds::error::{Error, Result};

use crate::number::{Form, Kind};

pub(crate) const HEADER: usize = 144;

/// Type code of fields.
const SHORT: u16 = 3;
/// Type code of fields.
const LONG: u16 = 4;

/// `Usage` for numbers and sizes that TIFF lacks.
pub(crate) fn header(form: Form, rows: u64, columns: u64) -> Result<Vec<u8>> {
    let sample_format = match form.kind {
        Kind::Bool | Kind::UInt => 1,
        Kind::Int => 2,
        Kind::Float => 3,
        Kind::Complex => 6,
    };
    let refused = |why: &str| Error::usage(format!("Unsupported encoding tiff for {why}"));
    if form.part() > 8 {
        return Err(refused("numbers of more than 64 bits"));
    }
    let bytes = rows.checked_mul(columns).and_then(|count| count.checked_mul(form.size as u64));
    let long = |number: u64| u32::try_from(number).map_err(|_| refused("more than 2^32 bytes"));
    let bytes = long(bytes.unwrap_or(u64::MAX))?;
    if bytes == 0 {
        return Err(refused("datasets without elements"));
    }
    let mut out = Vec::with_capacity(HEADER);
    let short = |out: &mut Vec<u8>, number: u16| {
        out.extend(if form.big_endian { number.to_be_bytes() } else { number.to_le_bytes() });
    };
    let word = |out: &mut Vec<u8>, number: u32| {
        out.extend(if form.big_endian { number.to_be_bytes() } else { number.to_le_bytes() });
    };
    out.extend(if form.big_endian { b"MM" } else { b"II" });
    short(&mut out, 42);
    word(&mut out, 8);
    // in the order of their numbers, as TIFF demands
    let fields = [
        (256, LONG, long(columns)?),        // ImageWidth
        (257, LONG, long(rows)?),           // ImageLength
        (258, SHORT, 8 * form.size as u32), // BitsPerSample
        (259, SHORT, 1),                    // Compression: none
        (262, SHORT, 1),                    // PhotometricInterpretation: zero is black
        (273, LONG, HEADER as u32),         // StripOffsets
        (277, SHORT, 1),                    // SamplesPerPixel
        (278, LONG, long(rows)?),           // RowsPerStrip
        (279, LONG, bytes),                 // StripByteCounts
        (339, SHORT, sample_format),        // SampleFormat
    ];
    short(&mut out, fields.len() as u16);
    for (tag, kind, value) in fields {
        short(&mut out, tag);
        short(&mut out, kind);
        word(&mut out, 1);
        if kind == SHORT {
            short(&mut out, value as u16);
            short(&mut out, 0);
        } else {
            word(&mut out, value);
        }
    }
    // no further image
    word(&mut out, 0);
    out.resize(HEADER, 0);
    Ok(out)
}
