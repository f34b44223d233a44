//! Splits the text of a condition on rows into words: names, constants and operators.

use std::fmt;

use crate::error::{Error, Result};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Text(String),
    Int(i64),
    Float(f64),
    /// Operator, bracket or keyword, in one spelling: `<>` becomes `!=`, `and` becomes `&&`.
    Sign(&'static str),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) => write!(f, "{name}"),
            Token::Text(text) => write!(f, "{text:?}"),
            Token::Int(value) => write!(f, "{value}"),
            Token::Float(value) => write!(f, "{value}"),
            Token::Sign(sign) => write!(f, "'{sign}'"),
            Token::End => write!(f, "the end"),
        }
    }
}

/// Spellings with the parser's own; longer ones come first.
const SIGNS: [(&str, &str); 22] = [
    ("..=", "..="),
    ("..", ".."),
    ("~", "..="),
    ("==", "=="),
    ("!=", "!="),
    ("<>", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("&&", "&&"),
    ("||", "||"),
    ("=", "=="),
    ("<", "<"),
    (">", ">"),
    ("!", "!"),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    (",", ","),
    ("-", "-"),
    ("+", "+"),
    ("&", "&&"),
];

/// Keywords with the parser's operator or constant; also accepted in upper case.
const WORDS: [(&str, &str); 6] =
    [("and", "&&"), ("or", "||"), ("not", "!"), ("in", "in"), ("true", "true"), ("false", "false")];

/// `at` is a byte offset; the message has the number of the character, from 1.
pub(super) fn error_at(text: &str, at: usize, message: impl fmt::Display) -> Error {
    let character = text.get(..at).unwrap_or(text).chars().count() + 1;
    Error::usage(format!("condition {text:?}, at character {character}: {message}"))
}

/// The last one is `End`; each with its byte offset.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        let Some(first) = trimmed.chars().next() else {
            found.push((at, Token::End));
            return Ok(found);
        };
        let (token, bytes) = if first.is_ascii_digit() || first == '.' && !trimmed.starts_with("..") {
            number(trimmed).map_err(|message| error_at(text, at, message))?
        } else if first == '"' || first == '\'' {
            let end = trimmed[1..].find(first).ok_or_else(|| error_at(text, at, "a quote that is not closed"))?;
            (Token::Text(trimmed[1..=end].to_owned()), end + 2)
        } else if first.is_alphabetic() || first == '_' {
            let end = trimmed.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(trimmed.len());
            let name = &trimmed[..end];
            let word = WORDS.iter().find(|(word, _)| name == *word || name == word.to_ascii_uppercase());
            (word.map_or_else(|| Token::Name(name.to_owned()), |(_, sign)| Token::Sign(sign)), end)
        } else {
            let sign = SIGNS.iter().find(|(spelling, _)| trimmed.starts_with(spelling));
            let (spelling, sign) = sign.ok_or_else(|| error_at(text, at, format!("unexpected {first:?}")))?;
            (Token::Sign(sign), spelling.len())
        };
        found.push((at, token));
        at += bytes;
    }
}

/// The number and its length in bytes. Two dots after it are not part of it: they make a range.
fn number(text: &str) -> Result<(Token, usize), String> {
    let digits = |from: usize| text[from..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |end| from + end);
    let mut end = digits(0);
    let mut is_integer = true;
    if text[end..].starts_with('.') && !text[end..].starts_with("..") {
        is_integer = false;
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let after = digits(end + 1 + sign);
        if after > end + 1 + sign {
            is_integer = false;
            end = after;
        }
    }
    let number = &text[..end];
    if text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return Err(format!("{number} is followed by letters: names begin with a letter, dates are in quotes"));
    }
    let wrong = |error: &dyn fmt::Display| format!("{number}: {error}");
    let token = match is_integer {
        true => Token::Int(number.parse().map_err(|error| wrong(&error))?),
        false => Token::Float(number.parse().map_err(|error| wrong(&error))?),
    };
    Ok((token, end))
}
