//! Documents of `plot`.

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

/// The document of `plot`: what is drawn, as numbers. `P` describes a plot; programs that parse the
/// document use [`DrawnPlot`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Plot<P = DrawnPlot> {
    /// The plot, or the first of several.
    #[serde(flatten)]
    pub first: Drawing<P>,
    /// Path of the file that was written; `None` without one.
    pub target: Option<String>,
    /// The other plots of the picture; empty if the member is missing.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Drawing<P>>,
}

impl<P> Plot<P> {
    /// Makes the document of one or several plots.
    pub fn new(first: Drawing<P>, target: Option<String>, more: Vec<Drawing<P>>) -> Self {
        Plot { first, target, more }
    }
}

/// One plot with its arrays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drawing<P = DrawnPlot> {
    /// Extents of the array of values, slowest axis first; empty if the plot has none.
    pub shape: Vec<u64>,
    /// Title, axes and selection.
    pub plot: P,
    /// An object with the arrays by name, as nested lists with null for numbers that are not
    /// finite; docs/reference/plots.md lists them. Missing in documents for the Python package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrays: Option<Json>,
}

/// Description of a plot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DrawnPlot {
    /// Name of the kind of plot, such as `waterfall`.
    pub kind: String,
    /// Title of the plot.
    pub title: String,
    /// Text below the title.
    pub note: String,
    /// Number of changes of the source since it was opened.
    pub revision: u64,
    /// Number of rows of the main table.
    pub rows: u64,
    /// Number of rows that were read for the plot.
    pub rows_used: u64,
    /// Whether all rows were read.
    pub complete: bool,
    /// Whether reading stopped at the limit of `--max-read`.
    pub stopped: bool,
    /// Whether cells were overwritten after they had been read.
    pub stale: bool,
    /// The selection and the parameters of the plot, by name.
    pub selection: IndexMap<String, Json>,
    /// The horizontal axis.
    pub x: PlotAxis,
    /// The vertical axis.
    pub y: PlotAxis,
    /// Colour scale of an image; `None` for a plot of lines.
    pub z: Option<PlotAxis>,
    /// Names of the lines; `None` for an image.
    pub series: Option<Vec<String>>,
}

/// An axis or colour scale of a plot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlotAxis {
    /// Quantity along the axis, such as `frequency`.
    pub label: String,
    /// Unit; empty if it has none.
    pub unit: String,
    /// `linear`, `log`, `time` for seconds of MJD, or `category` for indices into `names`.
    pub scale: String,
    /// Names of the categories; missing for an axis of numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// Lower end of a colour scale, `Some(None)` without finite values; missing for any other axis.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub low: Option<Option<f64>>,
    /// Upper end of a colour scale, `Some(None)` without finite values; missing for any other axis.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub high: Option<Option<f64>>,
}

/// Distinguishes null from a missing member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
