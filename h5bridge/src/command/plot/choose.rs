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

/// `None` is any axis; the quantity is for kinds that have several. `Usage` for other pairs.
pub(super) fn kind_of(x: Option<&str>, y: Option<&str>) -> Result<(Kind, Option<&'static str>)> {
    let usual = |word: &str| -> String {
        let word = word.trim().to_lowercase();
        WORDS.iter().find(|(other, _)| *other == word).map_or(word, |(_, usual)| (*usual).to_owned())
    };
    let (x, y) = (x.map(usual), y.map(usual));
    let fits = |wanted: &Option<String>, axis: &str| wanted.as_ref().is_none_or(|wanted| wanted == axis);
    let found = AXES.iter().find(|(of_x, of_y, ..)| fits(&x, of_x) && fits(&y, of_y));
    found.map(|(_, _, kind, quantity)| (*kind, *quantity)).ok_or_else(|| {
        let pairs: Vec<String> = AXES.iter().map(|(x, y, ..)| format!("{x} and {y}")).collect();
        let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "any axis".to_owned());
        let (x, y) = (word(&x), word(&y));
        Error::new(ErrorKind::Usage, format!("no plot has {x} across and {y} upwards; plots have {}", pairs.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_name_plots() {
        let kind = |x, y| kind_of(x, y).map(|(kind, quantity)| (kind.name(), quantity)).ok();
        assert_eq!(kind(Some("channel"), Some("amplitude")), Some(("spectrum", None)));
        assert_eq!(kind(Some("freq"), Some("Phase")), Some(("spectrum", Some("phase"))));
        assert_eq!(kind(Some("uvdist"), None), Some(("amp_uvdist", None)));
        assert_eq!(kind(None, Some("phase")), Some(("phase_time", None)));
        assert_eq!(kind(None, Some("v")), Some(("uv", None)));
        assert_eq!(kind(Some("chan"), Some("time")), Some(("waterfall", None)));
        assert_eq!(kind(Some("time"), Some("v")), None);
        assert_eq!(kind(Some("colour"), None), None);
    }
}
