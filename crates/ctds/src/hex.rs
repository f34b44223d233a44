//! Bytes as hexadecimal digits, two for each byte.

use std::fmt;

/// Displays bytes as hexadecimal digits in lower case.
#[derive(Debug, Clone, Copy)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The bytes that `digits` stand for, in lower or upper case; `None` if `digits` is something else.
pub fn parse(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let value = |digit: u8| char::from(digit).to_digit(16);
    pairs.iter().map(|&[high, low]| Some((value(high)? << 4 | value(low)?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_as_they_are_written() {
        assert_eq!(Hex(&[0, 0x0f, 0xa0, 0xff]).to_string(), "000fa0ff");
        assert_eq!(parse("000fa0FF"), Some(vec![0, 0x0f, 0xa0, 0xff]));
        assert_eq!(parse(""), Some(Vec::new()));
        for text in ["0", "000", "0g", "+f", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
