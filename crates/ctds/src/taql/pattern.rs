//! Patterns that texts are compared with: those of SQL, and those of a shell.

/// A text matches if all parts, in their order, make it up. Bytes count as characters.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern {
    parts: Vec<Part>,
    ignores_case: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Byte(u8),
    Any,
    /// Any number of bytes.
    Many,
}

impl Pattern {
    /// `%` is any number of characters, `_` is one.
    pub(super) fn sql(pattern: &[u8], ignores_case: bool) -> Self {
        let part = |&byte: &u8| match byte {
            b'%' => Part::Many,
            b'_' => Part::Any,
            byte => Part::Byte(byte),
        };
        Pattern { parts: pattern.iter().map(part).collect(), ignores_case }
    }

    /// `*` is any number of characters, `?` one; `None` for brackets, braces and backslashes.
    pub(super) fn shell(pattern: &[u8], ignores_case: bool) -> Option<Self> {
        let part = |&byte: &u8| match byte {
            b'*' => Some(Part::Many),
            b'?' => Some(Part::Any),
            b'[' | b']' | b'{' | b'}' | b'\\' => None,
            byte => Some(Part::Byte(byte)),
        };
        Some(Pattern { parts: pattern.iter().map(part).collect::<Option<_>>()?, ignores_case })
    }

    /// Takes time proportional to both lengths: only the last of several `%` is tried again.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        let (mut part, mut at) = (0, 0);
        // the last `%` and the byte after those that it stands for
        let mut last = None;
        while at < text.len() {
            let is_equal = |byte: u8| match self.ignores_case {
                true => byte.eq_ignore_ascii_case(&text[at]),
                false => byte == text[at],
            };
            match self.parts.get(part) {
                Some(Part::Many) => {
                    last = Some((part, at));
                    part += 1;
                }
                Some(Part::Any) => (part, at) = (part + 1, at + 1),
                Some(Part::Byte(byte)) if is_equal(*byte) => (part, at) = (part + 1, at + 1),
                _ => {
                    let Some((before, end)) = last else { return false };
                    last = Some((before, end + 1));
                    (part, at) = (before + 1, end + 1);
                }
            }
        }
        self.parts[part..].iter().all(|part| *part == Part::Many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match_patterns() {
        let sql = |pattern: &str, text: &str| Pattern::sql(pattern.as_bytes(), false).matches(text.as_bytes());
        assert!(sql("%", "") && sql("a%c", "abbc") && sql("a_c", "abc") && sql("%b%b%", "abab") && sql("", ""));
        assert!(!sql("a", "ab") && !sql("a%c", "abcd") && !sql("_", "") && !sql("A", "a") && !sql("%bc", "abcb"));
        assert!(Pattern::shell(b"A*?", true).unwrap().matches(b"abc"));
        assert_eq!(Pattern::shell(b"[a]", false), None);
    }

    #[test]
    fn hostile_patterns_end_soon() {
        let (pattern, text) = ("%a".repeat(1000), "a".repeat(20_000) + "b");
        assert!(!Pattern::sql(pattern.as_bytes(), false).matches(text.as_bytes()));
    }
}
