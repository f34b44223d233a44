//! Suggests existing names in place of misspelt ones: of columns, tables, files and words of the
//! command line.

/// Names in a message if none is similar.
const LISTED: usize = 12;

/// Jaro-Winkler, from 0 to 1.
const SIMILAR: f64 = 0.8;

/// Names in damaged files may be of any length.
const LONGEST: usize = 255;

/// Ignores upper and lower case; `None` if none is similar.
pub fn similar<N: AsRef<str>>(word: &str, names: impl IntoIterator<Item = N>) -> Option<String> {
    let wanted = word.to_lowercase();
    let mut best = None::<(f64, N)>;
    for name in names {
        if word.len() > LONGEST || name.as_ref().len() > LONGEST {
            continue;
        }
        let similarity = strsim::jaro_winkler(&wanted, &name.as_ref().to_lowercase());
        if similarity >= SIMILAR && best.as_ref().is_none_or(|(most, _)| similarity > *most) {
            best = Some((similarity, name));
        }
    }
    best.map(|(_, name)| name.as_ref().to_owned())
}

/// The end of a message about `word`, which is none of the existing `names`: `; did you mean DATA?`
/// if a name is similar to it, else the first names, as in `; it has TIME, UVW`. Empty if `names`
/// is empty. Case does not matter.
///
/// ```
/// assert_eq!(ctds::instead("dat", ["TIME", "DATA"]), "; did you mean DATA?");
/// assert_eq!(ctds::instead("X", ["TIME", "DATA"]), "; it has TIME, DATA");
/// ```
pub fn instead<N: AsRef<str>>(word: &str, names: impl IntoIterator<Item = N>) -> String {
    let names: Vec<N> = names.into_iter().collect();
    let listed: Vec<&str> = names.iter().take(LISTED).map(AsRef::as_ref).collect();
    match similar(word, &names) {
        Some(name) => format!("; did you mean {name}?"),
        None if names.is_empty() => String::new(),
        None => format!("; it has {}{}", listed.join(", "), if names.len() > LISTED { " …" } else { "" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_suggested() {
        let columns = ["TIME", "TIME_CENTROID", "ANTENNA1", "ANTENNA2", "DATA", "FLAG"];
        for (word, name) in [
            ("DAT", "DATA"),
            ("data", "DATA"),
            ("TIM", "TIME"),
            ("ANTENA2", "ANTENNA2"),
            ("TIME_CENTROD", "TIME_CENTROID"),
        ] {
            assert_eq!(instead(word, columns), format!("; did you mean {name}?"), "{word}");
        }
    }

    #[test]
    fn without_a_similar_name_the_first_are_listed() {
        assert_eq!(instead("X", ["A", "B"]), "; it has A, B");
        assert_eq!(instead("X", [""; 0]), "");
        let many: Vec<String> = (0..20).map(|number| format!("C{number}")).collect();
        assert!(instead("ZZZ", &many).ends_with("C11 …"));
        let long = "X".repeat(300);
        assert_eq!(instead(&long, ["A"]), "; it has A");
    }
}
