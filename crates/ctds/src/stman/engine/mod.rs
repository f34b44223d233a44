//! Virtual column engines: columns whose values come from other columns. formats/engines.md, Part
//! 1.
//!
//! They have no file and nothing in table.dat but keywords. [`base`] has what all engines share
//! that compute a column from one stored column of the same table; the stored one may be virtual
//! itself.
//!
//! | type                                | values from                                         | here         |
//! |-------------------------------------|-----------------------------------------------------|--------------|
//! | ScaledArrayEngine, ScaledComplexData| numbers, times scale plus offset                    | `scaled`     |
//! | CompressFloat, CompressComplex(SD)  | 16-bit integers, times scale plus offset            | `compress`   |
//! | MappedArrayEngine                   | numbers of another type                             | `mapped`     |
//! | BitFlagsEngine                      | bits of integers                                    | `bit_flags`  |
//! | ForwardColumn(IndexedRow)Engine     | the column of the same name in another table        | `forward`    |
//! | RetypedArrayEngine                  | a C++ class made from numbers: refused              | `refused`    |
//! | VirtualTaQLColumn                   | a TaQL expression over columns of the table         | `expression` |

mod base;
mod bit_flags;
mod compress;
mod expression;
mod forward;
mod mapped;
mod refused;
mod scaled;
mod scaling;
#[cfg(test)]
mod tests;
mod write;

pub(super) use base::STORED_COLUMN;
pub(super) use bit_flags::KIND as BIT_FLAGS;
pub(super) use compress::{COMPLEX as COMPRESS_COMPLEX, FLOAT as COMPRESS_FLOAT, SINGLE_DISH as COMPRESS_COMPLEX_SD};
pub(super) use expression::KIND as TAQL;
pub use forward::FORWARD_TABLES;
pub(super) use forward::{INDEXED as FORWARD_ROWS, KIND as FORWARD};
pub(super) use mapped::KIND as MAPPED;
pub(super) use refused::RETYPED;
pub(super) use scaled::{ARRAY as SCALED_ARRAY, COMPLEX as SCALED_COMPLEX};
