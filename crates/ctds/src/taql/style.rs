//! The style of TaQL that an expression is written in: first index, order of axes, ends of ranges.

use crate::error::{Error, Result};

/// How indices and ranges are counted. TaQL's own style is Glish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    /// First index, axis and row number.
    pub(super) origin: i64,
    pub(super) excludes_end: bool,
    /// Whether the slowest axis comes first.
    pub(super) c_order: bool,
}

impl Style {
    /// Styles are separated by commas; `time` and `trace`, without effect on values, are ignored.
    /// `Unsupported` if a style is unknown.
    pub(super) fn new(text: &str) -> Result<Self> {
        let glish = Style { origin: 1, excludes_end: false, c_order: false };
        let mut style = glish;
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name.to_ascii_lowercase().as_str() {
                "glish" => style = glish,
                "python" => style = Style { origin: 0, excludes_end: true, c_order: true },
                "base0" => style.origin = 0,
                "base1" => style.origin = 1,
                "fortranorder" => style.c_order = false,
                "corder" => style.c_order = true,
                "endincl" => style.excludes_end = false,
                "endexcl" => style.excludes_end = true,
                "time" | "notime" | "trace" | "notrace" => {}
                _ => return Err(Error::unsupported(format!("the style {name} is unknown"))),
            }
        }
        Ok(style)
    }
}
