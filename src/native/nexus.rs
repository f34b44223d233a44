//! Attributes by which viewers of NeXus files, such as H5Web and silx, draw one dataset of a group,
//! with names and units at its axes. docs/reference/layout.md, "Viewers".

use crate::h5::Attribute;
use crate::value::Values;

/// Attribute of the root: path of the group that viewers open first.
pub(crate) const DEFAULT: &str = "default";
pub(super) const NX_CLASS: &str = "NX_class";
pub(super) const NX_DATA: &str = "NXdata";
const SIGNAL: &str = "signal";
const AXES: &str = "axes";
/// The attributes of a [`view`].
pub(super) const OF_VIEW: [&str; 3] = [NX_CLASS, SIGNAL, AXES];
/// Datasets beside the signal, of its shape and with its axes.
const AUXILIARY_SIGNALS: &str = "auxiliary_signals";
/// Names that viewers would not take for those of keywords.
pub(crate) const OF_VIEWERS: [&str; 4] = [NX_CLASS, SIGNAL, AXES, AUXILIARY_SIGNALS];

/// Columns of a main table that are drawn: the first that is one dataset of arrays.
pub(crate) const SIGNALS: [&str; 7] = ["DATA", "CORRECTED_DATA", "FLOAT_DATA", "MODEL_DATA", "CPARAM", "FPARAM", "map"];
/// Column with the values of the axis of rows.
pub(crate) const TIME: &str = "TIME";
/// Most rows of a table whose TIME is an axis: a viewer reads all values of an axis, even to draw
/// one row.
pub(crate) const MOST_ROWS: u64 = 1 << 20;

/// `axes` are datasets beside the signal, slowest axis first; `None` for an axis without values.
pub(crate) fn view<'a>(
    signal: &str,
    axes: impl IntoIterator<Item = Option<&'a str>>,
) -> [(&'static str, Attribute); 3] {
    let axes = texts(axes.into_iter().map(|axis| axis.unwrap_or(".")));
    [(NX_CLASS, Attribute::string(NX_DATA)), (SIGNAL, Attribute::string(signal)), (AXES, axes)]
}

pub(crate) fn auxiliary_signals<'a>(names: impl IntoIterator<Item = &'a str>) -> (&'static str, Attribute) {
    (AUXILIARY_SIGNALS, texts(names))
}

fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Attribute {
    Attribute::Array(Values::String(texts.into_iter().map(Into::into).collect()))
}
