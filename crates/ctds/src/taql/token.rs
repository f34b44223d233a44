//! Splits a TaQL expression into words: names, constants, operators.

use std::fmt;

use crate::error::{Error, Result};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// Column, keyword, function or unit; also with dots and `::`.
    Name(String),
    Text(String),
    Int(i64),
    Double(f64),
    /// `3i`.
    Imaginary(f64),
    /// `3km`.
    Quantity(f64, String),
    /// `~ p/…/` or `!~ p/…/`.
    Pattern {
        negated: bool,
        ignores_case: bool,
        pattern: String,
    },
    /// Operator, bracket or keyword, in one spelling: `and` becomes `&&`, `<>` becomes `!=`.
    Sign(&'static str),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) => write!(f, "{name}"),
            Token::Text(text) => write!(f, "{text:?}"),
            Token::Int(value) => write!(f, "{value}"),
            Token::Double(value) => write!(f, "{value}"),
            Token::Imaginary(value) => write!(f, "{value}i"),
            Token::Quantity(value, unit) => write!(f, "{value}{unit}"),
            Token::Pattern { pattern, .. } => write!(f, "the pattern {pattern:?}"),
            Token::Sign(sign) => write!(f, "'{sign}'"),
            Token::End => write!(f, "the end"),
        }
    }
}

/// Spellings with the parser's own; longer ones come first.
const SIGNS: [(&str, &str); 43] = [
    ("<:>", "<:>"),
    ("<:<", "<:<"),
    ("<:=", "<:="),
    ("=:<", "=:<"),
    ("=:=", "=:="),
    ("!~=", "!~="),
    ("<:", "<:"),
    (":<", ":<"),
    ("=:", "=:"),
    (":=", ":="),
    ("==", "=="),
    ("!=", "!="),
    ("<>", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("~=", "~="),
    ("&&", "&&"),
    ("||", "||"),
    ("**", "**"),
    ("//", "//"),
    ("=", "=="),
    ("<", "<"),
    (">", ">"),
    ("!", "!"),
    ("^", "^"),
    ("*", "*"),
    ("/", "/"),
    ("%", "%"),
    ("+", "+"),
    ("-", "-"),
    ("|", "|"),
    ("&", "&"),
    ("~", "~"),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    ("{", "{"),
    ("}", "}"),
    (",", ","),
    (":", ":"),
    (";", ";"),
    ("$", "$"),
];

/// Keywords, in lower case, with the parser's operator; any case is accepted.
const WORDS: [(&str, &str); 12] = [
    ("and", "&&"),
    ("or", "||"),
    ("not", "!"),
    ("xor", "^"),
    ("in", "in"),
    ("between", "between"),
    ("around", "around"),
    ("exists", "exists"),
    ("like", "like"),
    ("ilike", "ilike"),
    ("true", "true"),
    ("false", "false"),
];

/// `at` is a byte offset; the message has the number of the character, from 1.
pub(super) fn error_at(text: &str, at: usize, message: impl fmt::Display) -> Error {
    let character = text.get(..at).unwrap_or(text).chars().count() + 1;
    Error::unsupported(format!("at character {character}: {message}"))
}

/// The last one is `End`; each with its byte offset.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start_matches([' ', '\t', '\n']);
        at += rest.len() - trimmed.len();
        let Some(first) = trimmed.chars().next().filter(|&first| first != '#') else {
            found.push((at, Token::End));
            return Ok(found);
        };
        let failed = |message: String| error_at(text, at, message);
        let is_digit = |c: char| c.is_ascii_digit();
        let (token, bytes) = if is_digit(first) || first == '.' && trimmed[1..].starts_with(is_digit) {
            number(trimmed).map_err(failed)?
        } else if matches!(first, '"' | '\'') {
            quoted(trimmed).map_err(failed)?
        } else if let Some(length) = name_length(trimmed) {
            (name(&trimmed[..length]), length)
        } else if let Some(pattern) = pattern(trimmed) {
            pattern.map_err(failed)?
        } else {
            let sign = SIGNS.iter().find(|(spelling, _)| trimmed.starts_with(spelling));
            let (spelling, sign) = sign.ok_or_else(|| failed(format!("{first:?} is not expected")))?;
            (Token::Sign(sign), spelling.len())
        };
        found.push((at, token));
        at += bytes;
    }
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

fn letters(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len())
}

/// The number and its length in bytes.
fn number(text: &str) -> Result<(Token, usize), String> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    if let Some(rest) = hexadecimal
        && let length = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len())
        && length > 0
    {
        return Ok((Token::Int(i64::from_str_radix(&rest[..length], 16).unwrap_or(i64::MAX)), 2 + length));
    }
    let mut end = digits(text);
    let mut is_integer = true;
    if text[end..].starts_with('.') {
        is_integer = false;
        end += 1 + digits(&text[end + 1..]);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(&text[end + 1 + sign..]);
        if exponent > 0 {
            is_integer = false;
            end += 1 + sign + exponent;
        }
    }
    let unit = letters(&text[end..]);
    let date = date_length(text);
    if date > end + unit {
        return Err(format!("the date or time {} is not supported", &text[..date]));
    }
    let double = || text[..end].parse::<f64>().map_err(|error| format!("the number {}: {error}", &text[..end]));
    let token = match &text[end..end + unit] {
        "" if is_integer => Token::Int(text[..end].parse().unwrap_or(i64::MAX)),
        "" => Token::Double(double()?),
        "i" | "j" => Token::Imaginary(double()?),
        unit => Token::Quantity(double()?, unit.to_owned()),
    };
    Ok((token, end + unit))
}

/// Dates and sky positions: `9` a digit, `#` digits, `a` letters; other letters in either case.
const DATES: [&str; 9] = ["99-99-9999", "9999-99-99", "9999/99/99", "#a#", "#-a-#", "#h#m", "#d#m", "#.#.#", "#.#..#"];

/// Length of a date or time at the start of the text; 0 without one.
fn date_length(text: &str) -> usize {
    DATES.iter().filter_map(|form| form_length(text, form)).max().unwrap_or(0)
}

fn form_length(text: &str, form: &str) -> Option<usize> {
    let mut end = 0;
    for part in form.chars() {
        let rest = &text[end..];
        let length = match part {
            '9' => digits(rest).min(1),
            '#' => digits(rest),
            'a' => letters(rest),
            letter => usize::from(rest.starts_with([letter, letter.to_ascii_uppercase()])),
        };
        if length == 0 {
            return None;
        }
        end += length;
    }
    Some(end)
}

/// Strings that follow each other without a blank are one.
fn quoted(text: &str) -> Result<(Token, usize), String> {
    let (mut found, mut end) = (String::new(), 0);
    while let Some(quote) = text[end..].chars().next().filter(|first| matches!(first, '"' | '\'')) {
        let length = text[end + 1..].find([quote, '\n']);
        let length = length.filter(|&length| text[end + 1 + length..].starts_with(quote));
        let length = length.ok_or("the string has no closing quote")?;
        found.push_str(&text[end + 1..end + 1 + length]);
        end += length + 2;
    }
    Ok((Token::Text(found), end))
}

/// Length of letters, digits and underscores, and of characters after a backslash.
fn plain_name_length(text: &str) -> Option<usize> {
    let start = usize::from(text.starts_with('\\'));
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if !text[start..].starts_with(is_first) {
        return None;
    }
    let mut end = start;
    let mut rest = text[start..].chars();
    while let Some(c) = rest.next() {
        if c == '\\' {
            match rest.next() {
                Some(escaped) => end += 1 + escaped.len_utf8(),
                None => break,
            }
        } else if c.is_ascii_alphanumeric() || c == '_' {
            end += 1;
        } else {
            break;
        }
    }
    Some(end)
}

/// Length of `name`, `name.name…`, `::name.name…`, `name::name…`.
fn name_length(text: &str) -> Option<usize> {
    let joined = |start: usize, separator: &str| {
        let rest = text[start..].strip_prefix(separator)?;
        Some(start + separator.len() + plain_name_length(rest)?)
    };
    let mut end = plain_name_length(text).unwrap_or(0);
    while end > 0
        && let Some(longer) = joined(end, ".")
    {
        end = longer;
    }
    if let Some(longer) = joined(end, "::") {
        end = longer;
        while let Some(longer) = joined(end, ".") {
            end = longer;
        }
    }
    (end > 0).then_some(end)
}

fn name(text: &str) -> Token {
    let sign = match text {
        "T" => Some("true"),
        "F" => Some("false"),
        _ => WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, sign)| *sign),
    };
    sign.map_or_else(|| Token::Name(unescaped(text)), Token::Sign)
}

fn unescaped(text: &str) -> String {
    let mut name = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        name.push(if c == '\\' { rest.next().unwrap_or(c) } else { c });
    }
    name
}

/// A pattern with its operator, `~ p/*x*/i`; `None` if the text begins otherwise.
fn pattern(text: &str) -> Option<Result<(Token, usize), String>> {
    let negated = text.starts_with('!');
    let rest = text.strip_prefix('!').unwrap_or(text).strip_prefix('~')?.trim_start_matches([' ', '\t', '\n']);
    let kind = rest.chars().next().filter(|kind| matches!(kind, 'p' | 'f' | 'm' | 'd'))?;
    let delimiter = rest[1..].chars().next().filter(|delimiter| matches!(delimiter, '/' | '%' | '@'))?;
    let length = rest[2..].find(delimiter).filter(|&length| length > 0)?;
    if kind != 'p' {
        let name = if kind == 'd' { "string distance" } else { "regular expression" };
        return Some(Err(format!("the {name} {} is not supported", &rest[..3 + length])));
    }
    let ignores_case = rest[3 + length..].starts_with('i');
    let pattern = rest[2..2 + length].to_owned();
    let bytes = text.len() - rest.len() + 3 + length + usize::from(ignores_case);
    Some(Ok((Token::Pattern { negated, ignores_case, pattern }, bytes)))
}
