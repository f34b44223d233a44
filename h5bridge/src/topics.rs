//! Pages of `h5bridge help TOPIC`. Their texts are in topics/; the documentation site has the same
//! pages.

use std::borrow::Cow;

use crate::exit::Status;

/// A page that is not about one verb.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Topic {
    /// `h5bridge help NAME`.
    pub(crate) name: &'static str,
    text: Text,
}

/// The first line is the page's title, the second is empty.
#[derive(Debug, Clone, Copy)]
enum Text {
    Written(&'static str),
    /// Made from `Status`.
    ExitCodes,
}

pub(crate) const TOPICS: &[Topic] = &[
    Topic { name: "formats", text: Text::Written(include_str!("topics/formats.txt")) },
    Topic { name: "layout", text: Text::Written(include_str!("topics/layout.txt")) },
    Topic { name: "selecting", text: Text::Written(include_str!("topics/selecting.txt")) },
    Topic { name: "compression", text: Text::Written(include_str!("topics/compression.txt")) },
    Topic { name: "containers", text: Text::Written(include_str!("topics/containers.txt")) },
    Topic { name: "live", text: Text::Written(include_str!("topics/live.txt")) },
    Topic { name: "damage", text: Text::Written(include_str!("topics/damage.txt")) },
    Topic { name: "exit-codes", text: Text::ExitCodes },
    Topic { name: "environment", text: Text::Written(include_str!("topics/environment.txt")) },
];

impl Topic {
    pub(crate) fn text(&self) -> Cow<'static, str> {
        match self.text {
            Text::Written(text) => text.into(),
            Text::ExitCodes => exit_codes().into(),
        }
    }

    pub(crate) fn title(&self) -> String {
        self.text().lines().next().unwrap_or_default().to_owned()
    }
}

fn exit_codes() -> String {
    let line = |status: &Status| format!("  {:3}  {:27} {}\n", status.code(), status.name(), status.meaning());
    let lines: String = Status::ALL.iter().map(line).collect();
    format!(
        "Exit codes\n\n{lines}\nMessages are on stderr, one line each, and begin with `h5bridge: `. With --json, the document\n\
         on stdout has `status` (the words above), `code`, `warnings` and, after a failure, `error`.\n\nMore: docs/reference/messages.md shows \
         messages of each\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_fit_a_terminal() {
        for topic in TOPICS {
            let text = topic.text();
            let mut lines = text.lines();
            assert!(!topic.title().is_empty() && lines.nth(1) == Some(""), "{}: a title and an empty line", topic.name);
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{}: a line is too long", topic.name);
            assert!(text.lines().count() <= 45, "{}: longer than a screen", topic.name);
            assert!(text.ends_with('\n') && text.contains("\nMore: docs/"), "{}", topic.name);
        }
    }
}
