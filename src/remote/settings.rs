//! Reads the settings of AWS: environment variables, then the files `~/.aws/credentials` and
//! `~/.aws/config`.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use crate::error::{Error, Result};

/// AWS keys, which are never printed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) key: String,
    pub(super) secret: String,
    /// Session token of temporary keys.
    pub(super) token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// `None` if requests are not signed.
    pub(super) credentials: Option<Credentials>,
    pub(super) region: String,
    /// URL of a server other than Amazon's.
    pub(super) endpoint: Option<String>,
}

type Section = HashMap<String, String>;

impl Settings {
    /// `Usage` if the profile that `AWS_PROFILE` names does not exist or holds no keys.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = set("HOME").map(PathBuf::from).unwrap_or_default();
        let file = |name: &str, default: &str| {
            let path = set(name).map_or_else(|| home.join(".aws").join(default), PathBuf::from);
            std::fs::read_to_string(path).unwrap_or_default()
        };
        let wanted = set("AWS_PROFILE");
        let profile = wanted.clone().unwrap_or_else(|| "default".to_owned());
        let keys = section(&file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), &profile);
        let config = file("AWS_CONFIG_FILE", "config");
        let config = section(&config, &format!("profile {profile}")).or_else(|| section(&config, &profile));
        if wanted.is_some() && keys.is_none() && config.is_none() {
            return Err(Error::usage(format!("AWS_PROFILE names the profile {profile}, which ~/.aws does not have")));
        }
        let (keys, config) = (keys.unwrap_or_default(), config.unwrap_or_default());
        let is_true = |value: String| matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes");
        let credentials = if set("AWS_SKIP_SIGNATURE").is_some_and(is_true) {
            None
        } else if let (Some(key), Some(secret)) = (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY")) {
            Some(Credentials { key, secret, token: set("AWS_SESSION_TOKEN") })
        } else {
            let of_profile = |name: &str| keys.get(name).or_else(|| config.get(name)).cloned();
            match (of_profile("aws_access_key_id"), of_profile("aws_secret_access_key")) {
                (Some(key), Some(secret)) => Some(Credentials { key, secret, token: of_profile("aws_session_token") }),
                _ if wanted.is_some() => {
                    return Err(Error::usage(format!(
                        "the profile {profile} holds no keys of its own: \
                         eval \"$(aws configure export-credentials --format env)\" puts them into the environment"
                    )));
                }
                _ => None,
            }
        };
        let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")).or_else(|| config.get("region").cloned());
        let endpoint = set("AWS_ENDPOINT_URL_S3")
            .or_else(|| set("AWS_ENDPOINT_URL"))
            .or_else(|| config.get("endpoint_url").cloned());
        Ok(Settings { credentials, region: region.unwrap_or_else(|| "us-east-1".to_owned()), endpoint })
    }
}

fn section(text: &str, name: &str) -> Option<Section> {
    let mut found: Option<Section> = None;
    let mut is_inside = false;
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(header) = trimmed.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            is_inside = header.0.trim() == name;
            if is_inside {
                found.get_or_insert_default();
            }
        } else if let (true, Some((key, value)), Some(members)) =
            // indented lines belong to a nested section, such as that of s3
            (
                is_inside && !line.starts_with([' ', '\t', '#', ';']),
                trimmed.split_once('='),
                found.as_mut(),
            )
        {
            members.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn read(folder: &std::path::Path, set: &[(&str, &str)]) -> Result<Settings> {
        Settings::read(|name| match (name, set.iter().find(|(known, _)| *known == name)) {
            (_, Some((_, value))) => Some((*value).to_owned()),
            ("HOME", None) => folder.to_str().map(str::to_owned),
            _ => None,
        })
    }

    #[test]
    fn files_and_variables() {
        let folder = tempfile::tempdir().unwrap();
        let none = read(folder.path(), &[]).unwrap();
        assert!(none.credentials.is_none() && none.endpoint.is_none() && none.region == "us-east-1");
        std::fs::create_dir(folder.path().join(".aws")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(".aws").join(name), text).unwrap();
        write(
            "credentials",
            "# keys\n[default]\naws_access_key_id = A\naws_secret_access_key=B=\n\n[other]\naws_access_key_id=C\naws_secret_access_key=D\naws_session_token=E\n",
        );
        write(
            "config",
            "[default]\nregion = eu-west-1\ns3 =\n  endpoint_url = no\n[profile other]\nendpoint_url=http://h:1\n[profile sso]\nsso_session = x\n",
        );
        let found = read(folder.path(), &[]).unwrap();
        let keys = |key: &str, secret: &str, token: Option<&str>| {
            Some(Credentials { key: key.into(), secret: secret.into(), token: token.map(str::to_owned) })
        };
        assert_eq!((found.credentials.clone(), found.region.as_str()), (keys("A", "B=", None), "eu-west-1"));
        assert_eq!(found.endpoint, None);
        assert_eq!(format!("{found:?}").matches("B=").count(), 0);
        let found = read(folder.path(), &[("AWS_PROFILE", "other"), ("AWS_REGION", "r")]).unwrap();
        assert_eq!((found.credentials, found.region.as_str()), (keys("C", "D", Some("E")), "r"));
        assert_eq!(found.endpoint.as_deref(), Some("http://h:1"));
        let set = [("AWS_ACCESS_KEY_ID", "X"), ("AWS_SECRET_ACCESS_KEY", "Y"), ("AWS_ENDPOINT_URL", "http://e")];
        let found = read(folder.path(), &set).unwrap();
        assert_eq!((found.credentials, found.endpoint.as_deref()), (keys("X", "Y", None), Some("http://e")));
        assert!(read(folder.path(), &[("AWS_SKIP_SIGNATURE", "true")]).unwrap().credentials.is_none());
        for profile in ["sso", "missing"] {
            assert_eq!(read(folder.path(), &[("AWS_PROFILE", profile)]).unwrap_err().kind(), ErrorKind::Usage);
        }
    }
}
