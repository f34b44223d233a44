//! RetypedArrayEngine, which this program knows and does not read. formats/engines.md 1.5.

use bstr::{BStr, ByteSlice};

use super::base::{STORED_COLUMN, STORED_COLUMN_PREFIX};
use crate::error::Error;
use crate::stman::Kind;
use crate::value::{Value, Values};

const RETYPED_PREFIX: &str = "_RetypedArrayEngine_";

/// Elements are objects of a C++ class made from those of another column, which can be read.
pub(crate) static RETYPED: Kind = Kind::engine(
    &["RetypedArrayEngine"],
    &[STORED_COLUMN_PREFIX, RETYPED_PREFIX],
    |args| {
        let keywords = args.column_keywords.first();
        let stored = keywords.and_then(|keywords| keywords.string(STORED_COLUMN));
        let shape = match keywords.and_then(|keywords| keywords.get("_RetypedArrayEngine_Shape")) {
            Some(Value::Array(_, Values::Int(shape))) => format!("{shape:?}"),
            Some(Value::Array(_, Values::Int64(shape))) => format!("{shape:?}"),
            _ => "(not stored)".to_owned(),
        };
        let arguments = args.type_name.split_once_str("<").map_or(&b""[..], |(_, arguments)| arguments);
        let class = arguments.split_str(",").next().unwrap_or_default().trim_ascii().as_bstr();
        Err(Error::unsupported(format!(
            "RetypedArrayEngine over column {}, element type {class}, element shape {shape}: objects of C++ classes are \
             not read",
            stored.unwrap_or(BStr::new("(unnamed)")),
        )))
    },
    None,
);
