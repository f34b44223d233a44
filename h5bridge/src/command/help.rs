//! `help` prints the help of a verb, or a page about a topic. The help of the program has the verbs
//! in groups.

use std::io::Write;

use anyhow::Result;
use clap::Command;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::args::Global;
use crate::exit::Status;
use crate::topics::TOPICS;

const EVERYDAY: [&str; 6] = ["info", "to-hdf5", "to-ms", "verify", "plot", "serve"];

/// Every verb of the program stands in one group; README.md has the same.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Look", &["info", "plot", "serve", "ls", "watch"]),
    ("Convert", &["to-hdf5", "to-ms"]),
    ("Check", &["verify", "digest", "lint"]),
    ("Live", &["follow", "repair", "finalize"]),
    ("Archive", &["pack", "unpack", "vt"]),
    ("Share", &["link", "materialize", "manifest", "refs"]),
    ("Scale", &["batch", "shard", "join"]),
    ("Help", &["help", "completions"]),
];

/// Command-line arguments of `h5bridge help`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:
  h5bridge help
  h5bridge help to-hdf5
  h5bridge help formats")]
pub(crate) struct Args {
    /// A verb, or one of the topics that `h5bridge help` lists
    #[arg(value_name = "VERB|TOPIC", hide_possible_values = true)]
    word: Option<String>,
}

/// Gives `help` the verbs and topics as values: shells complete them, typos are recognised.
pub(crate) fn with_words(command: Command) -> Command {
    let verb = |verb: &Command| PossibleValue::new(verb.get_name().to_owned()).hide(verb.is_hide_set());
    let topics = TOPICS.iter().map(|topic| PossibleValue::new(topic.name));
    let words: Vec<_> = command.get_subcommands().map(verb).chain(topics).collect();
    command
        .mut_subcommand("help", |help| help.mut_arg("word", |word| word.value_parser(PossibleValuesParser::new(words))))
}

/// `-h` describes the everyday verbs and names the others, `--help` describes all.
pub(crate) fn with_groups(command: Command) -> Command {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let found = |verb: &&str| command.find_subcommand(verb).filter(|verb| !verb.is_hide_set());
    let described = |verb: &Command| {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        format!("{literal}{:12}{literal:#} {about}\n", verb.get_name())
    };
    let everyday: String = EVERYDAY.iter().filter_map(found).map(|verb| format!("  {}", described(verb))).collect();
    let (mut named, mut all) = (String::new(), String::new());
    for (group, verbs) in GROUPS {
        let verbs: Vec<_> = verbs.iter().filter_map(found).collect();
        let names: Vec<_> = verbs.iter().map(|verb| verb.get_name()).collect();
        named += &format!("  {group:8} {literal}{}{literal:#}\n", names.join(" "));
        let heads = std::iter::once(group).chain(std::iter::repeat(""));
        all.extend(verbs.iter().zip(heads).map(|(verb, head)| format!("  {head:8} {}", described(verb))));
    }
    // clap would give each option of the long help lines of its own
    let options = command.clone().help_template("{options}").render_help().ansi().to_string();
    let options = options.trim_end();
    let short = format!(
        "{header}Everyday commands:{header:#}\n{everyday}\n{header}All commands:{header:#}\n{named}\n{header}Options:{header:#}\n{options}"
    );
    let long = format!("{header}Commands:{header:#}\n{all}\n{header}Options:{header:#}\n{options}");
    command.after_help(short).after_long_help(long).help_template("{about}\n{usage-heading} {usage}{after-help}")
}

/// Without a name, prints the help of the program and a list of the topics.
pub(crate) fn run(args: &Args, global: &Global, command: Command, out: &mut impl Write) -> Result<Status> {
    let topic = TOPICS.iter().find(|topic| Some(topic.name) == args.word.as_deref());
    if let Some(topic) = topic {
        write!(out, "{}", topic.text())?;
        return Ok(Status::Done);
    }
    let words = ["h5bridge"].into_iter().chain(args.word.as_deref()).chain(["--help"]);
    if let Err(help) = command.try_get_matches_from(words) {
        let (shown, is_styled) = (help.render(), global.caller.is_none() && console::colors_enabled());
        if is_styled { write!(out, "{}", shown.ansi())? } else { write!(out, "{shown}")? }
    }
    if args.word.is_none() {
        writeln!(out, "\nTopics, shown by h5bridge help TOPIC:")?;
        TOPICS.iter().try_for_each(|topic| writeln!(out, "  {:12} {}", topic.name, topic.title()))?;
    }
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_verb_is_in_one_group() {
        let command = Cli::full_command();
        let grouped: Vec<_> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        let known: BTreeSet<_> =
            command.get_subcommands().map(Command::get_name).filter(|name| *name != "generate").collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(grouped.len(), known.len());
        assert!(EVERYDAY.iter().all(|verb| grouped.contains(verb)));
    }

    #[test]
    fn help_fits_a_screen() {
        for word in ["-h", "--help"] {
            let command = Cli::full_command().term_width(80);
            let help = command.try_get_matches_from(["h5bridge", word]).unwrap_err().render().to_string();
            assert!(help.lines().count() <= 40, "{word}: {} lines\n{help}", help.lines().count());
            assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        }
    }

    #[test]
    fn readme_has_the_groups() {
        let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
        let rows = readme.lines().filter(|line| line.starts_with("| **"));
        let rows: Vec<_> = rows.map(|row| row.split('|').nth(2).unwrap().replace(['`', ','], "")).collect();
        let groups = GROUPS.map(|(name, verbs)| (name, verbs.join(" ")));
        for (row, (name, verbs)) in rows.iter().zip(&groups) {
            assert_eq!(row.trim(), verbs, "{name}");
        }
        assert_eq!(rows.len(), groups.len());
    }
}
