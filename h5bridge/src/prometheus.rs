//! Numbers in the text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write};

pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics whose names begin with a common prefix.
pub(crate) struct Exposition {
    prefix: &'static str,
    text: String,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Never falls while the process runs.
    Counter,
    Gauge,
}

impl Exposition {
    pub(crate) fn new(prefix: &'static str) -> Self {
        Exposition { prefix, text: String::new() }
    }

    /// A metric with one sample for each value of `label`. Without samples nothing is written.
    pub(crate) fn labelled<L: Display, V: Display>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        label: &str,
        samples: impl IntoIterator<Item = (L, V)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_some() {
            self.head(kind, name, help);
        }
        for (of, value) in samples {
            let of = of.to_string().replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
            let _ = writeln!(self.text, "{}{name}{{{label}=\"{of}\"}} {value}", self.prefix);
        }
    }

    pub(crate) fn one(&mut self, kind: Kind, name: &str, help: &str, value: impl Display) {
        self.head(kind, name, help);
        let _ = writeln!(self.text, "{}{name} {value}", self.prefix);
    }

    fn head(&mut self, kind: Kind, name: &str, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let _ = writeln!(self.text, "# HELP {0}{name} {help}\n# TYPE {0}{name} {kind}", self.prefix);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut exposition = Exposition::new("h5bridge_");
        exposition.one(Kind::Counter, "requests_total", "Requests.", 3);
        exposition.labelled(Kind::Gauge, "rows", "Rows.", "file", [("a\"\\\n", 1.5)]);
        exposition.labelled(Kind::Gauge, "none", "None.", "file", [("", 0); 0]);
        let expected = "# HELP h5bridge_requests_total Requests.\n# TYPE h5bridge_requests_total counter\n\
            h5bridge_requests_total 3\n# HELP h5bridge_rows Rows.\n# TYPE h5bridge_rows gauge\n\
            h5bridge_rows{file=\"a\\\"\\\\\\n\"} 1.5\n";
        assert_eq!(exposition.finish(), expected);
    }
}
