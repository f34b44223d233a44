//! Layout of `h5bridge info` for a terminal: sections with columns side by side, long lists
//! shortened.

use std::io::{self, IsTerminal, Write};

use console::{Alignment, Term, measure_text_width, pad_str, style};

/// Used where the output is not a terminal.
const WIDTH: usize = 100;

/// The default view is shortened to fit on a terminal.
pub(super) const LINES: usize = 40;

/// Longer warnings are cut.
const SENTENCE_LINES: usize = 3;

const GAP: usize = 2;

/// Columns are not shortened below this.
const NARROW: usize = 6;

pub(super) fn width() -> usize {
    match Term::stdout().size_checked() {
        Some((_, columns)) if io::stdout().is_terminal() => usize::from(columns).max(40),
        _ => WIDTH,
    }
}

/// A title with lines below it, aligned in columns if they have several cells.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// May be empty.
    pub(super) title: String,
    /// One that begins with `>` is aligned on the right; may be empty.
    pub(super) heads: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// Option that shows all lines; `None` if the section is never shortened.
    pub(super) all: Option<String>,
    /// Lines are sentences, continued on further lines.
    pub(super) is_warning: bool,
}

impl Section {
    /// Lines for `shown` rows; `width` `None` is unlimited.
    fn lines(&self, shown: usize, width: Option<usize>) -> usize {
        let fixed = usize::from(!self.title.is_empty()) + usize::from(!self.heads.is_empty());
        let rows = match self.is_warning {
            true => self.rows[..shown].iter().map(|row| sentence_lines(row, width).len()).sum(),
            false => shown,
        };
        fixed + rows + usize::from(shown < self.rows.len())
    }

    fn is_right(&self, column: usize) -> bool {
        self.heads.get(column).is_some_and(|head| head.starts_with('>'))
    }

    fn head(&self, column: usize) -> &'static str {
        self.heads.get(column).map_or("", |head| head.trim_start_matches('>'))
    }

    /// Shortens the widest columns until lines have `width` characters, or all are `NARROW`.
    fn widths(&self, shown: usize, width: Option<usize>) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).chain([self.heads.len()]).max().unwrap_or(0);
        let widest = |column: usize| {
            let cells =
                self.rows[..shown].iter().filter_map(|row| row.get(column)).map(|cell| measure_text_width(cell));
            cells.chain([measure_text_width(self.head(column))]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns).map(widest).collect();
        let Some(width) = width else { return widths };
        while widths.iter().sum::<usize>() + GAP * columns > width {
            match widths.iter_mut().max() {
                Some(widest) if *widest > NARROW => *widest -= 1,
                _ => break,
            }
        }
        widths
    }

    fn print(&self, shown: usize, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        let cut = |text: &str, room: usize| match width {
            Some(width) => console::truncate_str(text, width.saturating_sub(room), "…").into_owned(),
            None => text.to_owned(),
        };
        if !self.title.is_empty() {
            writeln!(out, "{}", style(cut(&self.title, 0)).bold())?;
        }
        let widths = self.widths(shown, width);
        let line = |cell: &dyn Fn(usize) -> String| {
            let pad = |(column, &width): (usize, &usize)| {
                let alignment = if self.is_right(column) { Alignment::Right } else { Alignment::Left };
                pad_str(&cell(column), width, alignment, Some("…")).into_owned()
            };
            let cells: Vec<String> = widths.iter().enumerate().map(pad).collect();
            cut(cells.join("  ").trim_end(), GAP)
        };
        if !self.heads.is_empty() {
            writeln!(out, "  {}", style(line(&|column| self.head(column).to_owned())).dim())?;
        }
        for row in &self.rows[..shown] {
            if self.is_warning {
                let lines = sentence_lines(row, width);
                lines.iter().try_for_each(|line| writeln!(out, "  {}", style(line).yellow()))?;
                continue;
            }
            writeln!(out, "  {}", line(&|column| row.get(column).cloned().unwrap_or_default()))?;
        }
        if let Some(all) = self.all.as_ref().filter(|_| shown < self.rows.len()) {
            let more = format!("... {} more; {all}", self.rows.len() - shown);
            writeln!(out, "  {}", style(cut(&more, GAP)).dim())?;
        }
        Ok(())
    }
}

/// Breaks into `SENTENCE_LINES` lines or fewer; one line if `width` is `None`.
fn sentence_lines(row: &[String], width: Option<usize>) -> Vec<String> {
    let text = row.concat();
    let Some(width) = width.map(|width| width.saturating_sub(2 * GAP)) else { return vec![text] };
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let count = lines.len();
        let Some(line) = lines.last_mut() else { break };
        let is_full = measure_text_width(line) + measure_text_width(word) >= width;
        if is_full && !line.is_empty() && count < SENTENCE_LINES {
            lines.push(format!("  {word}"));
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.iter().map(|line| console::truncate_str(line, width + GAP, "…").into_owned()).collect()
}

/// The longest lists are shortened until everything fits into `lines`.
pub(super) fn print(
    mut sections: Vec<Section>,
    lines: Option<usize>,
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    for section in &mut sections {
        let texts = section.rows.iter_mut().flatten().chain([&mut section.title]);
        // texts come from files and may hold terminal commands
        texts.filter(|text| text.contains(char::is_control)).for_each(|text| *text = format!("{text:?}"));
    }
    let shown = fit(&sections, lines, width);
    sections.iter().zip(shown).try_for_each(|(section, shown)| section.print(shown, width, out))
}

/// Rows of each section that fit into `lines` lines of `width` characters.
fn fit(sections: &[Section], lines: Option<usize>, width: Option<usize>) -> Vec<usize> {
    let mut shown: Vec<usize> = sections.iter().map(|section| section.rows.len()).collect();
    let Some(lines) = lines else { return shown };
    // no section can show more than all lines
    for (section, shown) in sections.iter().zip(&mut shown).filter(|(section, _)| section.all.is_some()) {
        *shown = if section.rows.len() > lines { lines } else { *shown };
    }
    loop {
        let total: usize = sections.iter().zip(&shown).map(|(section, &shown)| section.lines(shown, width)).sum();
        let longest = sections.iter().zip(&mut shown).filter(|(section, shown)| section.all.is_some() && **shown > 1);
        match longest.max_by_key(|(_, shown)| **shown) {
            Some((_, shown)) if total > lines => *shown -= 1,
            _ => return shown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(rows: usize, all: bool) -> Section {
        let rows = (0..rows).map(|row| vec![row.to_string(), "x".repeat(200)]).collect();
        let all = all.then(|| "--all lists them".to_owned());
        Section { title: "T".to_owned(), heads: vec![">N", "X"], rows, all, is_warning: false }
    }

    #[test]
    fn lists_are_shortened_to_a_screen() {
        let sections = vec![section(10_000, true), section(3, false), section(20, true), section(1, true)];
        let mut out = Vec::new();
        assert_eq!(fit(&sections, None, None), [10_000, 3, 20, 1]);
        print(sections, Some(40), Some(100), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 40);
        assert!(text.lines().all(|line| measure_text_width(line) <= 100), "{text}");
        assert_eq!(text.matches(" more; --all lists them").count(), 2, "{text}");
    }

    #[test]
    fn sentences_are_continued() {
        let row = ["one two ".repeat(60)];
        let lines = sentence_lines(&row, Some(60));
        assert_eq!(lines.len(), SENTENCE_LINES);
        assert!(lines[1].starts_with("  one") || lines[1].starts_with("  two"), "{lines:?}");
        assert!(lines[2].ends_with('…') && lines.iter().all(|line| measure_text_width(line) <= 58), "{lines:?}");
        assert_eq!(sentence_lines(&row, None).len(), 1);
        assert_eq!(sentence_lines(&["x".repeat(200)], Some(60)), ["x".repeat(57) + "…"]);
    }

    #[test]
    fn fitting_sections_are_whole() {
        let sections = [section(10, true), section(3, false)];
        assert_eq!(fit(&sections, Some(17), None), [10, 3]);
        assert_eq!(fit(&sections, Some(16), None), [8, 3]);
    }
}
