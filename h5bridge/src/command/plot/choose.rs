//! Finds the kind of plot that `--x` and `--y` ask for.

use ctds_hdf5::{Error, ErrorKind, Result};
use ms_look::Kind;

/// Names of x and y axis, kind of plot, and the quantity for kinds that have several.
const AXES: [(&str, &str, Kind, Option<&str>); 16] = [
    ("time", "amplitude", Kind::AmpTime, None),
    ("time", "phase", Kind::PhaseTime, None),
    ("time", "real", Kind::AmpTime, Some("real")),
    ("time", "imag", Kind::AmpTime, Some("imag")),
    ("time", "flagged", Kind::FlagTime, None),
    ("channel", "amplitude", Kind::Spectrum, None),
    ("channel", "phase", Kind::Spectrum, Some("phase")),
    ("channel", "real", Kind::Spectrum, Some("real")),
    ("channel", "imag", Kind::Spectrum, Some("imag")),
    ("channel", "flagged", Kind::FlagChannel, None),
    ("channel", "time", Kind::Waterfall, None),
    ("uvdist", "amplitude", Kind::AmpUvdist, None),
    ("uvdist", "phase", Kind::PhaseUvdist, None),
    ("u", "v", Kind::Uv, None),
    ("antenna", "flagged", Kind::FlagAntenna, None),
    ("antenna", "antenna", Kind::Baselines, None),
];

/// Synonyms for the axes.
const WORDS: [(&str, &str); 10] = [
    ("amp", "amplitude"),
    ("imaginary", "imag"),
    ("flags", "flagged"),
    ("chan", "channel"),
    ("freq", "channel"),
    ("frequency", "channel"),
    ("uv-distance", "uvdist"),
    ("uvdistance", "uvdist"),
    ("antenna1", "antenna"),
    ("antenna2", "antenna"),
];

/// Words for the quantities of visibilities, with their names in requests.
const QUANTITIES: [(&str, &str); 5] =
    [("amplitude", "amp"), ("phase", "phase"), ("real", "real"), ("imag", "imag"), ("flagged", "flagged")];

/// The plot of two axes.
#[derive(Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) kind: Kind,
    /// `None` for kinds that have one.
    pub(super) quantity: Option<&'static str>,
    /// Names and values of the parameters `x` and `y`.
    pub(super) axes: Vec<(String, String)>,
}

/// `None` is any axis. A pair of axes that no kind of plot has is one of the plot `xy`; `Usage` if
/// it cannot be.
pub(super) fn choice_of(x: Option<&str>, y: Option<&str>) -> Result<Choice> {
    let (usual_x, usual_y) = (x.map(usual), y.map(usual));
    let fits = |wanted: &Option<String>, axis: &str| wanted.as_ref().is_none_or(|wanted| wanted == axis);
    if let Some((_, _, kind, quantity)) = AXES.iter().find(|(x, y, ..)| fits(&usual_x, x) && fits(&usual_y, y)) {
        return Ok(Choice { kind: *kind, quantity: *quantity, axes: Vec::new() });
    }
    if [&usual_x, &usual_y].into_iter().flatten().any(|word| word == "channel") {
        let pairs: Vec<String> = AXES.iter().map(|(x, y, ..)| format!("{x} and {y}")).collect();
        let word = |word: Option<String>| word.unwrap_or_else(|| "any axis".to_owned());
        let (x, y) = (word(usual_x), word(usual_y));
        let message = format!("no plot has {x} across and {y} upwards; plots have {}", pairs.join(", "));
        return Err(Error::new(ErrorKind::Usage, message));
    }
    Ok(named(x, y))
}

/// The plot `xy` of these axes.
pub(super) fn named(x: Option<&str>, y: Option<&str>) -> Choice {
    let usual_y = y.map(usual);
    let quantity = QUANTITIES.iter().find(|(word, _)| usual_y.as_deref() == Some(word)).map(|(_, name)| *name);
    let axis = |name: &str, word: Option<&str>| word.map(|word| (name.to_owned(), word.trim().to_owned()));
    let axes = axis("x", x).into_iter().chain(axis("y", y.filter(|_| quantity.is_none()))).collect();
    Choice { kind: Kind::Xy, quantity, axes }
}

fn usual(word: &str) -> String {
    let word = word.trim().to_lowercase();
    WORDS.iter().find(|(other, _)| *other == word).map_or(word, |(_, usual)| (*usual).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_name_plots() {
        let kind = |x, y| choice_of(x, y).map(|choice| (choice.kind.name(), choice.quantity)).ok();
        assert_eq!(kind(Some("channel"), Some("amplitude")), Some(("spectrum", None)));
        assert_eq!(kind(Some("freq"), Some("Phase")), Some(("spectrum", Some("phase"))));
        assert_eq!(kind(Some("uvdist"), None), Some(("amp_uvdist", None)));
        assert_eq!(kind(None, Some("phase")), Some(("phase_time", None)));
        assert_eq!(kind(None, Some("v")), Some(("uv", None)));
        assert_eq!(kind(Some("chan"), Some("time")), Some(("waterfall", None)));
        assert_eq!(kind(Some("elevation"), None), Some(("xy", None)));
        assert_eq!(kind(Some("elevation"), Some("Amp")), Some(("xy", Some("amp"))));
        assert_eq!(kind(Some("chan"), Some("WEIGHT")), None);
    }

    #[test]
    fn other_axes_are_those_of_rows() {
        let axes = |x, y| choice_of(x, y).unwrap().axes;
        let pair = |name: &str, word: &str| (name.to_owned(), word.to_owned());
        assert_eq!(axes(Some("time"), Some("v")), [pair("x", "time"), pair("y", "v")]);
        assert_eq!(axes(Some("Elevation "), Some("amp")), [pair("x", "Elevation")]);
        assert_eq!(axes(None, Some("WEIGHT")), [pair("y", "WEIGHT")]);
    }
}
