//! Names of the codes that MeasurementSets have for correlations and frames of frequencies.

/// Names of correlations by casacore's Stokes number, from 1 on.
const STOKES: [&str; 32] = [
    "I",
    "Q",
    "U",
    "V",
    "RR",
    "RL",
    "LR",
    "LL",
    "XX",
    "XY",
    "YX",
    "YY",
    "RX",
    "RY",
    "LX",
    "LY",
    "XR",
    "XL",
    "YR",
    "YL",
    "PP",
    "PQ",
    "QP",
    "QQ",
    "RCircular",
    "LCircular",
    "Linear",
    "Ptotal",
    "Plinear",
    "PFtotal",
    "PFlinear",
    "Pangle",
];

/// Frames of frequencies; the codes of casacore are the indices.
pub const FREQUENCY_FRAMES: [&str; 9] = ["REST", "LSRK", "LSRD", "BARY", "GEO", "TOPO", "GALACTO", "LGROUP", "CMB"];

/// Name of the correlation with this Stokes number; the number itself if casacore has no name for
/// it.
pub fn correlation(code: i64) -> String {
    let name = usize::try_from(code - 1).ok().and_then(|code| STOKES.get(code));
    name.map_or_else(|| code.to_string(), ToString::to_string)
}
