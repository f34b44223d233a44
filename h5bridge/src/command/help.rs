//! `help` prints the help of a verb, or a page about a topic.

use std::io::Write;

use anyhow::Result;
use clap::Command;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::args::Global;
use crate::exit::Status;
use crate::topics::TOPICS;

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

/// Lets the argument of `help` be one of the verbs of `command` or a topic, so that shells complete
/// it and a misspelt word is recognised.
pub(crate) fn with_words(command: Command) -> Command {
    let verb = |verb: &Command| PossibleValue::new(verb.get_name().to_owned()).hide(verb.is_hide_set());
    let topics = TOPICS.iter().map(|topic| PossibleValue::new(topic.name));
    let words: Vec<_> = command.get_subcommands().map(verb).chain(topics).collect();
    command
        .mut_subcommand("help", |help| help.mut_arg("word", |word| word.value_parser(PossibleValuesParser::new(words))))
}

/// Runs `h5bridge help`: prints the help of a verb or the page about a topic; if none is named, the
/// help of the program and a list of the topics. `command` describes the command line of the
/// program.
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
