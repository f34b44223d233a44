//! Finds the kind of plot that `--x` and `--y` ask for, and the series that `--by` draws in one
//! plot, such as one for each antenna.

use ctds_hdf5::{Error, ErrorKind, Result};
use ms_look::{Antenna, Description, Kind, Session, label};

pub(super) const MAX_LINES: usize = 64;

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

/// Values of `--by`, one line for each.
pub(super) const BY: [&str; 6] = ["correlation", "antenna", "baseline", "field", "scan", "spw"];

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

/// A line of `--by`: its name, and the parameter that selects its data.
type Group = (String, (String, String));

/// `given`: parameters of the plot. `Usage` if it has no lines, or would have too many.
pub(super) fn groups(by: &str, kind: Kind, session: &Session, given: &[(String, String)]) -> Result<Vec<Group>> {
    if !matches!(kind, Kind::AmpTime | Kind::PhaseTime | Kind::Spectrum | Kind::FlagChannel | Kind::FlagTime) {
        return Err(Error::new(
            ErrorKind::Usage,
            format!("--by {by}: {} has no lines; amplitude or phase against time has", kind.name()),
        ));
    }
    let known = session.describe()?;
    let selects = |name: &str| given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let antennas = || known.antennas.iter().map(|antenna| antenna.name.as_str()).collect();
    let fields = || known.fields.iter().map(|field| field.name.as_str()).collect();
    let groups = match by {
        "antenna" => rows("antenna", antennas(), selects("antenna")),
        "field" => rows("field", fields(), selects("field")),
        "spw" => windows(&known, selects("spw")),
        "scan" => scans(session, selects("scan"))?,
        _ => match selects("baseline").filter(|words| !matches!(*words, "cross" | "auto" | "all")) {
            Some(pairs) => {
                words(pairs).map(|pair| (pair.to_owned(), ("baseline".to_owned(), pair.to_owned()))).collect()
            }
            None => pairs(&known, selects("baseline").unwrap_or("cross"), selects("antenna")),
        },
    };
    if groups.len() > MAX_LINES {
        let message = format!(
            "--by {by} makes more than {MAX_LINES} lines; select fewer with --antenna, --baseline, --field, --scan or --spw"
        );
        return Err(Error::new(ErrorKind::Usage, message));
    }
    Ok(groups)
}

fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim)
}

/// Whether a parameter selects the row `number` with this name; without the parameter all are.
fn is_selected(wanted: Option<&str>, name: &str, number: usize) -> bool {
    wanted.is_none_or(|wanted| words(wanted).any(|word| means(word, name, number)))
}

/// The rows of a subtable that `parameter` selects; shared names get the numbers of their rows.
fn rows(parameter: &str, names: Vec<&str>, wanted: Option<&str>) -> Vec<Group> {
    let is_shared = |name: &str| !name.is_empty() && names.iter().filter(|other| **other == name).count() > 1;
    let named = |number: usize, name: &str| match is_shared(name) {
        true => format!("{name} #{number}"),
        false => label(name, number),
    };
    let found = names.iter().enumerate().filter(|(number, name)| is_selected(wanted, name, *number));
    found.map(|(number, name)| (named(number, name), (parameter.to_owned(), format!("#{number}")))).collect()
}

fn windows(known: &Description, wanted: Option<&str>) -> Vec<Group> {
    let is_wanted = |name: &str, id: &str| wanted.is_none_or(|wanted| wanted == name || wanted == id);
    let windows = known.spectral_windows.iter().map(|window| (&window.name, window.id.to_string()));
    let windows = windows.filter(|(name, id)| is_wanted(name, id));
    windows.map(|(_, id)| (format!("spw {id}"), ("spw".to_owned(), id))).collect()
}

/// The scans, one more at most than can be drawn.
fn scans(session: &Session, wanted: Option<&str>) -> Result<Vec<Group>> {
    let scans = session.scans(MAX_LINES + 1)?.into_iter().map(|scan| scan.to_string());
    let scans = scans.filter(|scan| wanted.is_none_or(|wanted| words(wanted).any(|word| word == scan)));
    Ok(scans.map(|scan| (format!("scan {scan}"), ("scan".to_owned(), scan))).collect())
}

/// `which`: `auto`, `cross` or `all`. `antenna`: only baselines with one of these antennas. At most
/// `MAX_LINES` + 1, one more than can be drawn.
fn pairs(known: &Description, which: &str, antenna: Option<&str>) -> Vec<Group> {
    let is_wanted = |(number, row): (usize, &Antenna)| is_selected(antenna, &row.name, number);
    let is_wanted: Vec<bool> = known.antennas.iter().enumerate().map(is_wanted).collect();
    let count = known.antennas.len();
    let fits = |&(first, second): &(usize, usize)| {
        let is_kind = match which {
            "auto" => first == second,
            "all" => true,
            _ => first != second,
        };
        is_kind && (is_wanted[first] || is_wanted[second])
    };
    let named = |(first, second): (usize, usize)| {
        let name = |number: usize| label(&known.antennas[number].name, number);
        (format!("{}-{}", name(first), name(second)), ("baseline".to_owned(), format!("#{first}&#{second}")))
    };
    let all = (0..count).flat_map(|first| (first..count).map(move |second| (first, second)));
    all.filter(fits).take(MAX_LINES + 1).map(named).collect()
}

/// Whether `word` may mean the row; the session refuses a word with two meanings.
fn means(word: &str, name: &str, number: usize) -> bool {
    word == name || word.strip_prefix('#').unwrap_or(word) == number.to_string()
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
