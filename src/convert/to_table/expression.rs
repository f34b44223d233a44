//! Finds the column names in TaQL expressions of virtual columns. Casacore does not open a table
//! with an expression that names a missing column.

/// Words of TaQL that are neither columns nor functions, in lower case.
const WORDS: [&str; 17] = [
    "and", "around", "as", "between", "cone", "exists", "f", "false", "ilike", "in", "incone", "like", "not", "or",
    "t", "to", "true",
];

/// First name that may be a column and that `is_column` does not know; in doubt a word is a column,
/// but not quoted text, functions, keywords (`::NAME`), units and words of the language.
pub(super) fn unknown_column(expression: &str, is_column: impl Fn(&str) -> bool) -> Option<&str> {
    // functions of libraries have names like `meas.azel`
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    let mut rest = expression;
    let mut before = Before::Other;
    while let Some(first) = rest.chars().next() {
        if matches!(first, '\'' | '"') {
            // after a quote that is not closed, nothing can be a column
            let end = rest[1..].find(first)?;
            rest = &rest[end + 2..];
            before = Before::Other;
            continue;
        }
        if !is_word(first) {
            before = match (first, before) {
                (':', Before::Colon) => Before::Colons,
                (':', _) => Before::Colon,
                (' ', Before::Number) => Before::Number,
                _ => Before::Other,
            };
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let is_number = first.is_ascii_digit();
        let is_keyword_or_unit = matches!(before, Before::Colons | Before::Number);
        before = if is_number { Before::Number } else { Before::Other };
        let is_call = after.trim_start().starts_with('(');
        let is_language = WORDS.contains(&&*word.to_ascii_lowercase());
        if !(is_number || is_keyword_or_unit || is_call || is_language || is_column(word)) {
            return Some(word);
        }
    }
    None
}

/// Context of a word: after a number it is a unit, after two colons a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Number,
    Colon,
    Colons,
    Other,
}

#[cfg(test)]
mod tests {
    use super::unknown_column;

    #[test]
    fn only_columns_that_are_missing_are_found() {
        let unknown = |expression| unknown_column(expression, |name| matches!(name, "TIME" | "DATA_2"));
        for expression in [
            "TIME + 3",
            "1.5e3 * TIME[1:2]",
            "iif(TIME in [1, 2], T, False)",
            "mean ( DATA_2 )",
            "'FLAG' + \"it's FLAG\"",
            "meas.azel(TIME, 'WSRT') + 5deg - 3 h",
            "TIME * ::SCALE + DATA_2::OFFSET",
            "rownr() + 0x1f",
            "",
        ] {
            assert_eq!(unknown(expression), None, "{expression}");
        }
        assert_eq!(unknown("TIME + FLAG"), Some("FLAG"));
        assert_eq!(unknown("sum(FLAG_ROW)"), Some("FLAG_ROW"));
        assert_eq!(unknown("TIME::A + B"), Some("B"));
        assert_eq!(unknown("DATA + DATA_2"), Some("DATA"));
        assert_eq!(unknown("[select X from other.tab]"), Some("select"));
        assert_eq!(unknown("TIME[1:M]"), Some("M"));
        assert_eq!(unknown("TIME in [3 , m]"), Some("m"));
    }
}
