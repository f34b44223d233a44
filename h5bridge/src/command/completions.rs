//! `completions`: what a shell needs to complete the words of a command line.

use std::io::Write;

use anyhow::Result;
use clap::{Command, ValueEnum};
use serde_json::json;

use crate::args::Global;
use crate::exit::Status;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge completions bash > ~/.local/share/bash-completion/completions/h5bridge
  h5bridge completions zsh > ~/.zfunc/_h5bridge
  h5bridge completions fish > ~/.config/fish/completions/h5bridge.fish")]
#[command(after_help = "Shells load these files when they start; create missing directories with mkdir -p. bash needs the package \
                        bash-completion. zsh looks in ~/.zfunc if ~/.zshrc has, before compinit: fpath+=(~/.zfunc). The wheel and \
                        the packages of Debian and conda have installed the files already.")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Shells that complete the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    /// Name of the file in the directory where the shell looks for completions.
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            Shell::Bash => "h5bridge",
            Shell::Zsh => "_h5bridge",
            Shell::Fish => "h5bridge.fish",
        }
    }

    /// The script that the shell reads; `command` is the command line of the program.
    pub(crate) fn script(self, mut command: Command) -> Vec<u8> {
        let shell = match self {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
            Shell::Fish => clap_complete::Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "h5bridge", &mut script);
        script
    }
}

/// Prints the script.
pub(crate) fn run(args: &Args, global: &Global, command: Command, out: &mut impl Write) -> Result<Status> {
    let script = args.shell.script(command);
    if global.json {
        writeln!(out, "{:#}", json!({"file": args.shell.file_name(), "script": String::from_utf8_lossy(&script)}))?;
    } else {
        out.write_all(&script)?;
    }
    Ok(Status::Done)
}
