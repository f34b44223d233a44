//! Opens the page of the server in a browser (`serve --open`).

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::guard;

#[cfg(target_os = "macos")]
const COMMAND: &str = "open";
#[cfg(not(target_os = "macos"))]
const COMMAND: &str = "xdg-open";

/// A temporary HTML file that redirects to the page, removed when dropped. The access token is in
/// the file, not on the browser's command line, which other users of the machine can see.
pub(super) struct Opener(PathBuf);

impl Opener {
    pub(super) fn open(url: &str) -> Result<Self> {
        let name = format!("h5bridge-{}.html", guard::new_token()?);
        let path = std::env::temp_dir().join(name);
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let opener = Opener(path);
        write!(file, "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0; url={url}\">")?;
        let mut command = Command::new(COMMAND);
        let command = command.arg(&opener.0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().context(COMMAND)?;
        // some browsers stay in it
        std::thread::spawn(move || child.wait());
        Ok(opener)
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        // one that is left does no harm once the token has ended
        let _ = fs::remove_file(&self.0);
    }
}
