//! Engines that are known and not read. formats/engines.md 1.5, 1.11.

use bstr::{BStr, ByteSlice};

use crate::error::Error;
use crate::stman::Kind;
use crate::value::{Value, Values};

/// Objects of a C++ class, each made from some elements of the stored column; that one is read like any other.
pub(crate) static RETYPED: Kind = Kind {
    names: &["RetypedArrayEngine"],
    packable: false,
    open: |args| {
        let keywords = args.column_keywords.first();
        let stored = keywords.and_then(|keywords| keywords.string("_BaseMappedArrayEngine_Name"));
        let shape = match keywords.and_then(|keywords| keywords.get("_RetypedArrayEngine_Shape")) {
            Some(Value::Array(_, Values::Int(shape))) => format!("{shape:?}"),
            Some(Value::Array(_, Values::Int64(shape))) => format!("{shape:?}"),
            _ => "(not stored)".to_owned(),
        };
        let arguments = args.type_name.split_once_str("<").map_or(&b""[..], |(_, arguments)| arguments);
        let class = arguments.split_str(",").next().unwrap_or_default().trim().as_bstr();
        Err(Error::unsupported(format!(
            "RetypedArrayEngine over column {}, element type {class}, element shape {shape}: objects of C++ classes are \
             not read",
            stored.unwrap_or(BStr::new("(not named)")),
        )))
    },
    create: None,
};

/// The result of a TaQL expression over columns of the table.
pub(crate) static TAQL: Kind = Kind {
    names: &["VirtualTaQLColumn"],
    packable: false,
    open: |args| {
        let keywords = args.column_keywords.first();
        let expression = keywords.and_then(|keywords| keywords.string("_VirtualTaQLEngine_CalcExpr"));
        let expression = expression.unwrap_or(BStr::new("(not stored)"));
        Err(Error::unsupported(format!("VirtualTaQLColumn: the expression {expression} is not evaluated")))
    },
    create: None,
};
