//! `generate` writes manual pages and shell completions as files, for packages.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Command, ValueEnum};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use ctds_hdf5::documents::Generate;

use super::completions::Shell;
use crate::args::Global;
use crate::exit::Status;
use crate::report;

/// Command-line arguments of `h5bridge generate`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge generate man share/man/man1
  h5bridge generate bash share/bash-completion/completions")]
pub(crate) struct Args {
    /// Which files to write: manual pages, or completions of a shell
    what: What,
    /// The directory for the manual pages or completions, created if it is missing; the names of
    /// the files are those that man and the shells look for
    dir: PathBuf,
}

/// The kinds of files that `h5bridge generate` writes.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// A manual page of the program and one for each verb
    Man,
    /// Completions of the shell bash
    Bash,
    /// Completions of the shell zsh
    Zsh,
    /// Completions of the shell fish
    Fish,
}

pub(crate) fn run(args: &Args, global: &Global, command: Command, out: &mut impl Write) -> Result<Status> {
    let completions = |shell: Shell, command| vec![(shell.file_name().to_owned(), shell.script(command))];
    let files = match args.what {
        What::Man => pages(command)?,
        What::Bash => completions(Shell::Bash, command),
        What::Zsh => completions(Shell::Zsh, command),
        What::Fish => completions(Shell::Fish, command),
    };
    fs::create_dir_all(&args.dir).with_context(|| format!("{}: the directory cannot be made", args.dir.display()))?;
    let mut paths = Vec::new();
    for (name, content) in files {
        let path = args.dir.join(name);
        fs::write(&path, content).with_context(|| format!("{} cannot be written", path.display()))?;
        paths.push(path.display().to_string());
    }
    if global.json {
        report::write_document(&Generate { files: paths }, out)?;
    } else if !global.quiet {
        paths.iter().try_for_each(|path| writeln!(out, "{path}"))?;
    }
    Ok(Status::Done)
}

/// One page for the program and one for each verb, with the names of their files.
fn pages(mut command: Command) -> Result<Vec<(String, Vec<u8>)>> {
    command.build();
    let has_page = |verb: &&Command| !verb.is_hide_set() && verb.get_name() != "help";
    let verbs: Vec<&Command> = command.get_subcommands().filter(has_page).collect();
    let names: Vec<String> = verbs.iter().map(|verb| page_name(verb)).collect();
    let main = page_name(&command);
    let mut pages = vec![(format!("{main}.1"), page(&command, &names)?)];
    for verb in verbs {
        let parts: Vec<String> = verb.get_subcommands().map(page_name).collect();
        pages.push((format!("{}.1", page_name(verb)), page(verb, &[std::slice::from_ref(&main), &parts].concat())?));
        for part in verb.get_subcommands() {
            pages.push((format!("{}.1", page_name(part)), page(part, &[page_name(verb)])?));
        }
    }
    Ok(pages)
}

fn page_name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// Formats the manual page of the program or of a verb; it refers to the pages `related`.
fn page(command: &Command, related: &[String]) -> Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    // no date: the same version gives the same bytes
    writeln!(page, ".TH {} 1 \"\" \"h5bridge {}\" \"h5bridge\"", page_name(command), env!("CARGO_PKG_VERSION"))?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut roff = Roff::new();
    if let Some(examples) = command.get_before_help() {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.to_string().lines().filter(|line| line.starts_with("  ")) {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    roff.control("SH", ["EXIT STATUS"]);
    for status in Status::ALL {
        roff.control("TP", []).text([bold(status.code().to_string())]).text([roman(status.name())]);
    }
    roff.control("SH", ["SEE ALSO"]);
    let names = related.iter().flat_map(|name| [roman(", "), bold(name), roman("(1)")]).skip(1);
    roff.text(names.collect::<Vec<_>>());
    roff.to_writer(&mut page)?;
    let page = String::from_utf8(page)?;
    // groff reads ASCII; it has names for all other characters
    let escaped = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) };
    Ok(page.chars().map(escaped).collect::<String>().into_bytes())
}
