//! Signs requests that read an S3 object (AWS Signature Version 4).

use std::time::{SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use super::settings::Credentials;
use crate::calendar::Moment;
use crate::hex::Hex;

pub(super) const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// GET without a query. `headers` are sorted by names in lower case; `path` is encoded.
pub(super) fn authorization(
    credentials: &Credentials,
    region: &str,
    date: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> String {
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let request = format!("GET\n{path}\n\n{lines}\n{names}\n{EMPTY_SHA256}");
    let day = date.get(..8).unwrap_or_default();
    let scope = format!("{day}/{region}/s3/aws4_request");
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", Hex(&Sha256::digest(&request)));
    let first = format!("AWS4{}", credentials.secret).into_bytes();
    let key = [day, region, "s3", "aws4_request"].iter().fold(first, |key, part| mac(&key, part));
    let signature = mac(&key, &to_sign);
    format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={}",
        credentials.key,
        Hex(&signature)
    )
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Formats a time in UTC as AWS signatures spell it: `20130524T000000Z`.
pub(super) fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
    let Moment { year, month, day, hour, minute, second } = Moment::of_unix(seconds as i64);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Everything but unreserved characters and slashes becomes `%XX`.
pub(super) fn encode(path: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Amazon S3, "Signature Calculations for the Authorization Header", "GET Object".
    #[test]
    fn example_of_the_documentation() {
        let credentials = Credentials {
            key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            token: None,
        };
        let headers = [
            ("host", "examplebucket.s3.amazonaws.com"),
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", EMPTY_SHA256),
            ("x-amz-date", "20130524T000000Z"),
        ];
        let found = authorization(&credentials, "us-east-1", "20130524T000000Z", "/test.txt", &headers);
        assert_eq!(
            found,
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,\
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
    }

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (1_369_353_600, "20130524T000000Z"),
            (1_709_251_199, "20240229T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn encoded_paths() {
        assert_eq!(encode("/a b/ü+~.h5"), "/a%20b/%C3%BC%2B~.h5");
    }
}
