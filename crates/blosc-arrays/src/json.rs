//! Reads and writes the JSON metadata of arrays in the form of Python, in which `NaN`, `Infinity`
//! and `-Infinity` are numbers.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// JSON metadata of an array or table of BLZ, bcolz or bloscpack: the JSON value, and its text as
/// it was read or encoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub text: String,
    pub value: Value,
}

impl Document {
    /// Reads a document from JSON text as Python writes it; `NaN`, `Infinity` and `-Infinity`
    /// become strings in its value.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let value = decode(bytes)?;
        Ok(Document { text: String::from_utf8_lossy(bytes).into_owned(), value })
    }

    /// Makes a document of `value`, with its text as JSON. The caller ensures that all numbers are
    /// finite: JSON has no others.
    pub fn new(value: Value) -> Self {
        let mut text = String::new();
        encode(&value, &mut text);
        Document { text, value }
    }

    /// The members of the document, if it is a JSON object; `None` if not.
    pub fn members(&self) -> Option<&Map<String, Value>> {
        self.value.as_object()
    }
}

/// Appends a value in the form in which Python writes it.
fn encode(value: &Value, out: &mut String) {
    match value {
        Value::Array(list) => {
            out.push('[');
            for (number, item) in list.iter().enumerate() {
                out.push_str(if number > 0 { ", " } else { "" });
                encode(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (number, (name, item)) in members.iter().enumerate() {
                out.push_str(if number > 0 { ", " } else { "" });
                // writing to a string does not fail
                let _ = write!(out, "{}: ", Value::from(name.as_str()));
                encode(item, out);
            }
            out.push('}');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

/// `NaN`, `Infinity` and `-Infinity` become strings, white space alone an empty object.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value> {
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
    serde_json::from_str(&out).map_err(|error| Error::format(format!("the text is not JSON: {error}")))
}
