//! Tells `--version` the commit of a released program, in development nothing is built again for a
//! commit; and leaves the symbols out of it.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable, value| env::var(variable).is_ok_and(|found| found == value);
    if !is("PROFILE", "release") {
        return;
    }
    // cargo strips no program of a package with a profile of its own, as this one has
    if is("DEBUG", "false") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
    for path in ["../.git/HEAD", "../.git/logs/HEAD", ".cargo_vcs_info.json"] {
        if std::path::Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    if let Some(commit) = published().or_else(checked_out) {
        println!("cargo::rustc-env=H5BRIDGE_COMMIT={}", commit.chars().take(12).collect::<String>());
    }
}

/// From the file that `cargo package` adds.
fn published() -> Option<String> {
    let info = std::fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, rest) = info.split_once("\"sha1\": \"")?;
    Some(rest.split_once('"')?.0.to_owned())
}

/// Of this source tree, not of another one that it may lie in.
fn checked_out() -> Option<String> {
    std::fs::metadata("../.git").ok()?;
    let output = Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
