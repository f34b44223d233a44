//! JSON as Python writes it: `NaN`, `Infinity` and `-Infinity` are numbers.

use serde_json::Value;

use crate::error::{Error, Result};

/// Decodes JSON. Numbers that JSON does not have become the strings `NaN`, `Infinity` and `-Infinity`. Nothing but white space
/// is an empty object.
///
/// # Errors
/// `Format`.
pub(super) fn decode(bytes: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::format("the JSON is not UTF-8"))?;
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    let mut in_string = false;
    while let Some(first) = rest.chars().next() {
        let token = ["NaN", "Infinity", "-Infinity"].into_iter().find(|token| rest.starts_with(token));
        let len = match (in_string, first, token) {
            (true, '\\', _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (_, '"', _) => {
                in_string = !in_string;
                1
            }
            (false, _, Some(token)) => {
                out.extend(["\"", token, "\""]);
                rest = &rest[token.len()..];
                continue;
            }
            _ => first.len_utf8(),
        };
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    serde_json::from_str(&out).map_err(|error| Error::format(format!("not JSON: {error}")))
}
