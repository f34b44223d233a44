//! `completions` prints the completion script of a shell for the command line of `h5bridge`.

use std::io::Write;

use anyhow::Result;
use clap::{Command, ValueEnum};
use ctds_hdf5::documents::Completions;

use crate::args::Global;
use crate::exit::Status;
use crate::report;

/// Command-line arguments of `h5bridge completions`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge completions bash > ~/.local/share/bash-completion/completions/h5bridge
  h5bridge completions zsh > ~/.zfunc/_h5bridge
  h5bridge completions fish > ~/.config/fish/completions/h5bridge.fish")]
pub(crate) struct Args {
    /// The shell that reads the completions
    shell: Shell,
}

/// Shells for which completion scripts can be made.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    /// Name of the completion file in the directory where the shell looks for completions.
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            Shell::Bash => "h5bridge",
            Shell::Zsh => "_h5bridge",
            Shell::Fish => "h5bridge.fish",
        }
    }

    pub(crate) fn script(self, mut command: Command) -> Vec<u8> {
        let shell = match self {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
            Shell::Fish => clap_complete::Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "h5bridge", &mut script);
        match self {
            Shell::Bash => with_files(&String::from_utf8_lossy(&script)).into_bytes(),
            Shell::Fish => [script, words(&command).into_bytes()].concat(),
            Shell::Zsh => script,
        }
    }
}

/// Lines for fish with the fixed values of positional arguments, which clap's script lacks.
fn words(command: &Command) -> String {
    let mut lines = String::new();
    for verb in command.get_subcommands() {
        for (number, argument) in verb.get_positionals().enumerate() {
            let values = argument.get_possible_values();
            let names: Vec<&str> =
                values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name()).collect();
            if !names.is_empty() {
                // where paths come before, they are completed too
                let only = if number == 0 { " -f" } else { "" };
                let (verb, names) = (verb.get_name(), names.join(" "));
                lines += &format!(
                    "complete -c h5bridge -n \"__fish_h5bridge_using_subcommand {verb}\"{only} -a \"{names}\"\n"
                );
            }
        }
    }
    lines
}

/// Verbs whose arguments are words, which bash does not complete with file names.
const OF_WORDS: [&str; 3] = ["help", "completions", "generate"];

/// Offers files where nothing is typed yet; clap's script for bash offers all options.
fn with_files(script: &str) -> String {
    let (mut patched, mut takes_files) = (String::new(), false);
    for line in script.lines() {
        patched.push_str(line);
        patched.push('\n');
        let text = line.trim();
        if let Some(verb) = text.strip_prefix("h5bridge__subcmd__").and_then(|label| label.strip_suffix(')')) {
            takes_files = !OF_WORDS.contains(&verb);
        } else if takes_files && text.starts_with("opts=") {
            patched.push_str("            [[ -z ${cur} && ${prev} != -* ]] && return 0\n");
        }
    }
    patched
}

pub(crate) fn run(args: &Args, global: &Global, command: Command, out: &mut impl Write) -> Result<Status> {
    let script = args.shell.script(command);
    if global.json {
        let script = String::from_utf8_lossy(&script).into_owned();
        report::write_document(&Completions { file: args.shell.file_name().to_owned(), script }, out)?;
    } else {
        out.write_all(&script)?;
    }
    Ok(Status::Done)
}
