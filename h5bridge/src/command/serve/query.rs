//! Decodes and encodes addresses: the path and the parameters of a request.

/// Decoded names and values, in order.
pub(super) type Query = [(String, String)];

/// `query` follows the question mark.
pub(super) fn parse(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(&name.replace('+', " ")), decode(&value.replace('+', " ")))
    };
    pairs.map(pair).collect()
}

/// The first value.
pub(super) fn value<'a>(query: &'a Query, name: &str) -> Option<&'a str> {
    query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// `%XX`; bytes that are not UTF-8 become U+FFFD.
pub(super) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| byte == b'%') {
            Some(code) => {
                decoded.push(code);
                at += 3;
            }
            None => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Everything but letters, digits and `-._~/` becomes `%XX`.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(byte.into());
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters() {
        let query = parse("file=a%20b%2Fc+d&path=%C3%A4%&&x=1%2&flag&x=2&y=%+1");
        let pairs = [("file", "a b/c d"), ("path", "ä%"), ("x", "1%2"), ("flag", ""), ("x", "2"), ("y", "% 1")];
        assert_eq!(query, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(value(&query, "x"), Some("1%2"));
        assert_eq!(value(&query, "z"), None);
        assert_eq!(decode("%FF"), "\u{fffd}");
        let odd = "odd näme %&+?/x";
        assert_eq!(decode(&encode(odd)), odd);
    }
}
