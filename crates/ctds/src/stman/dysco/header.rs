//! The header of a DyscoStMan file. formats/engines.md 2.2.

use bstr::BString;

use crate::error::{Error, Result, ResultExt};
use crate::io::{ReadAt, read_array, read_bytes};
use crate::value::{Record, Value, Values};

/// Bytes without the manager's name and the column records.
const FIXED_BYTES: u64 = 52;
/// Bytes of the known fields of a column record; a stored record may be longer.
const RECORD_BYTES: u32 = 12;

/// Little-endian whichever byte order the table has, and not aligned.
///
/// | field | type | meaning |
/// |----------------|------|----------------------------------------------------------------------|
/// | header_bytes | u32 | offset of block 0; there may be unused bytes before it |
/// | records | u32 | offset of the column records |
/// | columns | u32 | number of columns |
/// | name | u32 length, bytes | of the manager |
/// | rows_per_block | u32 | 0 until the first block is written |
/// | antennas | u32 | |
/// | block_bytes | u32 | of all columns together |
/// | version | u16, u16 | 1, 0 |
/// | data_bits | u8 | per symbol of data columns |
/// | weight_bits | u8 | per symbol of weight columns |
/// | distribution | u8 | 0 Gaussian, 1 uniform, 2 Student's t, 3 truncated Gaussian |
/// | normalization | u8 | 0 antenna and frequency, 1 row and frequency, 2 row |
/// | nu | f64 | degrees of freedom of Student's t |
/// | truncation | f64 | of the truncated Gaussian, in standard deviations |
/// | parts | per column: u32 bytes of this record, u32 bytes in a block, u32 antennas | |
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) header_bytes: u32,
    pub(super) name: BString,
    pub(super) rows_per_block: u32,
    pub(super) antennas: u32,
    pub(super) block_bytes: u32,
    pub(super) data_bits: u8,
    pub(super) weight_bits: u8,
    pub(super) distribution: Distribution,
    pub(super) normalization: Normalization,
    /// Bytes of each column in one block, ordered as in the table description.
    pub(super) parts: Vec<u32>,
}

/// Assumed distribution of the visibilities, which determines the values of symbols.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Distribution {
    Gaussian,
    Uniform,
    StudentT { nu: f64 },
    TruncatedGaussian { truncation: f64 },
}

/// Scale factors of each block; `DataScale` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Normalization {
    AntennaFrequency,
    RowFrequency,
    Row,
}

impl Header {
    /// Named as in casacore's data manager records.
    pub(super) fn parameters(&self) -> Record {
        let mut record = Record::default();
        let (distribution, extra) = match self.distribution {
            Distribution::Gaussian => ("Gaussian", None),
            Distribution::Uniform => ("Uniform", None),
            Distribution::StudentT { nu } => ("StudentT", Some(("studentTNu", nu))),
            Distribution::TruncatedGaussian { truncation } => {
                ("TruncatedGaussian", Some(("distributionTruncation", truncation)))
            }
        };
        let normalization = match self.normalization {
            Normalization::AntennaFrequency => "AF",
            Normalization::RowFrequency => "RF",
            Normalization::Row => "Row",
        };
        record.set("dataBitCount", Value::Scalar(Values::Int(vec![self.data_bits.into()])));
        record.set("weightBitCount", Value::Scalar(Values::Int(vec![self.weight_bits.into()])));
        record.set("distribution", Value::string(distribution));
        if let Some((name, value)) = extra {
            record.set(name, Value::Scalar(Values::Double(vec![value])));
        }
        record.set("normalization", Value::string(normalization));
        record
    }

    pub(super) fn decode(file: &dyn ReadAt, columns: usize) -> Result<Self> {
        let mut d = Fields { file, at: 0 };
        let header_bytes = d.u32("header size")?;
        let records = d.u32("offset of the column records")?;
        let stored = d.u32("number of columns")?;
        if stored as usize != columns {
            return Err(d.error(4, format!("{stored} columns, but the table has {columns} in this manager")));
        }
        let name_bytes = u64::from(d.u32("length of the name")?);
        let name = read_bytes(file, d.at, name_bytes).context("header: name")?.into();
        d.at += name_bytes;
        let rows_per_block = d.u32("rows per block")?;
        let antennas = d.u32("number of antennas")?;
        let block_bytes = d.u32("block size")?;
        let version = [d.u16("major version")?, d.u16("minor version")?];
        if version != [1, 0] {
            let [major, minor] = version;
            let place = format!("header: byte {}", d.at - 4);
            return Err(Error::unsupported(format!("version {major}.{minor}, only 1.0 is known")).context(place));
        }
        let data_bits = d.u8("bits of data")?;
        let weight_bits = d.u8("bits of weights")?;
        let distribution = d.u8("distribution")?;
        let distribution_at = d.at;
        let normalization = match d.u8("normalization")? {
            0 => Normalization::AntennaFrequency,
            1 => Normalization::RowFrequency,
            2 => Normalization::Row,
            code => return Err(d.error(1, format!("normalization {code}, known are 0 to 2"))),
        };
        let nu = d.f64("degrees of freedom")?;
        let truncation = d.f64("truncation")?;
        let distribution = match distribution {
            0 => Distribution::Gaussian,
            1 => Distribution::Uniform,
            2 => Distribution::StudentT { nu },
            3 => Distribution::TruncatedGaussian { truncation },
            code => {
                d.at = distribution_at;
                return Err(d.error(1, format!("distribution {code}, known are 0 to 3")));
            }
        };
        if u64::from(records) < d.at {
            let expected = FIXED_BYTES + name_bytes;
            let found = format!("column records at byte {records}, the fields before them take {expected} bytes");
            return Err(d.error(d.at - 4, found));
        }
        d.at = u64::from(records);
        let mut parts = Vec::with_capacity(columns);
        for _ in 0..columns {
            let start = d.at;
            let bytes = d.u32("size of a column record")?;
            parts.push(d.u32("bytes of a column")?);
            d.u32("antennas of a column")?;
            if bytes < RECORD_BYTES {
                let found = format!("column record of {bytes} bytes, its fields need {RECORD_BYTES}");
                return Err(d.error(u64::from(RECORD_BYTES), found));
            }
            d.at = start + u64::from(bytes);
        }
        if u64::from(header_bytes) < d.at {
            let found = format!("blocks from byte {header_bytes} on, but the column records end at {}", d.at);
            return Err(d.error(d.at, found));
        }
        Ok(Header {
            header_bytes,
            name,
            rows_per_block,
            antennas,
            block_bytes,
            data_bits,
            weight_bits,
            distribution,
            normalization,
            parts,
        })
    }

    /// Offset of `data_bits`; `weight_bits` follows it.
    pub(super) fn bits_offset(&self) -> u64 {
        32 + self.name.len() as u64
    }
}

struct Fields<'a> {
    file: &'a dyn ReadAt,
    at: u64,
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let bytes = read_array(self.file, self.at).with_context(|| format!("header: {what}"))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u8(&mut self, what: &str) -> Result<u8> {
        Ok(self.take::<1>(what)?[0])
    }

    fn u16(&mut self, what: &str) -> Result<u16> {
        self.take(what).map(u16::from_le_bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        self.take(what).map(u32::from_le_bytes)
    }

    fn f64(&mut self, what: &str) -> Result<f64> {
        self.take(what).map(f64::from_le_bytes)
    }

    /// Error about the field that starts `back` bytes before the next one.
    fn error(&self, back: u64, found: String) -> Error {
        Error::format(found).context(format!("header: byte {}", self.at - back))
    }
}
