//! Draws plots with characters: a raster in half blocks, two cells in each character, and lines in
//! Braille dots.

use super::marks::{fraction, label, marks, short, shortened};
use super::palette::{self, Colour, NOTHING};
use super::panel::{Axes, Panel, Raster, numbers, runs};

/// Width in characters for the texts of the y axis and its line.
const LEFT: usize = 11;
/// Lines above and below a plot, for title, labels and the x axis.
const WORDS: usize = 7;

/// Raster without colours, from the smallest value to the largest.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// Draws panels one below the other; the size is that of the terminal.
pub(super) fn text(panels: &[Panel], (columns, lines): (usize, usize), coloured: bool) -> String {
    let width = columns.clamp(40, 240);
    let height = (lines / panels.len().max(1)).saturating_sub(WORDS).clamp(6, 60);
    panels.iter().map(|panel| panel_text(panel, width, height, coloured)).collect()
}

/// Control characters become question marks, so that a file cannot control the terminal.
fn safe(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

fn panel_text(panel: &Panel, width: usize, height: usize, coloured: bool) -> String {
    let mut out = format!("{}\n{}\n", safe(&shortened(&panel.title(), width)), safe(&shortened(&panel.note(), width)));
    let across = width - LEFT - 1;
    let drawn = match panel.raster() {
        Some(mut raster) => {
            raster.fit((across as f64, 2. * height as f64), false);
            raster_lines(panel, &raster, (across, height), coloured)
        }
        None => braille(panel, (across, height), coloured),
    };
    let Some(drawn) = drawn else { return out + "nothing to show\n" };
    out.push_str(&format!("{}\n", safe(&drawn.y_label)));
    for (number, line) in drawn.lines.iter().enumerate() {
        let mark = drawn.y_marks.iter().find(|(at, _)| *at == number).map_or("", |(_, text)| text.as_str());
        out.push_str(&format!("{:>width$} │{line}\n", safe(&shortened(mark, LEFT - 2)), width = LEFT - 2));
    }
    let mut axis: Vec<char> = vec!['─'; across];
    let mut texts: Vec<char> = vec![' '; width];
    let mut free = 0;
    for (at, text) in &drawn.x_marks {
        if let Some(place) = axis.get_mut(*at) {
            *place = '┬';
        }
        let start = (LEFT + at).saturating_sub(text.chars().count() / 2);
        let end = start + text.chars().count();
        if start >= free && end <= width {
            texts[start..end].iter_mut().zip(safe(text).chars()).for_each(|(place, character)| *place = character);
            free = end + 1;
        }
    }
    out.push_str(&format!("{:>LEFT$}{}\n", "└", axis.iter().collect::<String>()));
    out.push_str(&format!("{}\n", texts.iter().collect::<String>().trim_end()));
    out.push_str(&format!("{:>LEFT$}{}   {}\n", "", safe(&drawn.x_label), drawn.key));
    out
}

/// A plot as lines of characters, with its marks and labels.
struct Drawn {
    lines: Vec<String>,
    /// Index in `lines`, and text.
    y_marks: Vec<(usize, String)>,
    /// Position in characters from the left edge of the plot, and text.
    x_marks: Vec<(usize, String)>,
    x_label: String,
    y_label: String,
    /// The colours, or the names of the lines.
    key: String,
}

fn foreground(colour: Colour, text: &str, coloured: bool) -> String {
    let [red, green, blue] = colour;
    if coloured { format!("\x1b[38;2;{red};{green};{blue}m{text}\x1b[0m") } else { text.to_owned() }
}

fn raster_lines(panel: &Panel, raster: &Raster, (width, height): (usize, usize), coloured: bool) -> Option<Drawn> {
    if raster.lines == 0 || raster.columns == 0 {
        return None;
    }
    let plot = &panel.frame.plot;
    let (x, y) = (&raster.x, &raster.y);
    let (columns, lines) = (raster.columns_at(width as f64), raster.lines_at(2. * height as f64));
    // half lines from above
    let colour = |half: usize, column: usize| -> Colour {
        let line = lines[(2 * height - 1 - half) * lines.len() / (2 * height)];
        raster.colour(line, columns[column * columns.len() / width])
    };
    let line = |number: usize| -> String {
        let cell = |column: usize| {
            let (upper, lower) = (colour(2 * number, column), colour(2 * number + 1, column));
            let [red, green, blue] = lower;
            match coloured {
                true => format!("{}\x1b[48;2;{red};{green};{blue}m▀", fore(upper)),
                false => shade(upper).to_string(),
            }
        };
        let cells: String = (0..width).map(cell).collect();
        if coloured { cells + "\x1b[0m" } else { cells }
    };
    let (left, right) = (*x.first()?, *x.last()?);
    let (bottom, top) = (*y.first()?, *y.last()?);
    let steps = 16;
    let bar: String = (0..steps)
        .map(|step| palette::scale(f64::from(step) / f64::from(steps - 1)))
        .map(|colour| if coloured { foreground(colour, "█", true) } else { shade(colour).to_string() })
        .collect();
    let key =
        format!("{} {} {bar} {}", safe(&label(&raster.z, None)), short(raster.value(0.)), short(raster.value(1.)));
    Some(Drawn {
        lines: (0..height).map(line).collect(),
        y_marks: vertical(&plot.y, bottom, top, height),
        x_marks: horizontal(&plot.x, left, right, width),
        x_label: label(&plot.x, Some((left, right))),
        y_label: label(&plot.y, Some((bottom, top))),
        key,
    })
}

fn fore([red, green, blue]: Colour) -> String {
    format!("\x1b[38;2;{red};{green};{blue}m")
}

/// `·` for cells without values or with only flagged data.
fn shade(colour: Colour) -> char {
    if colour == NOTHING || colour == palette::FLAGGED {
        return '·';
    }
    let step = |step: usize| palette::scale(step as f64 / 128.);
    let at = (0..=128).find(|&number| step(number) == colour).unwrap_or(0);
    SHADES[(at * SHADES.len() / 129).min(SHADES.len() - 1)]
}

fn horizontal(axis: &ms_look::Axis, low: f64, high: f64, width: usize) -> Vec<(usize, String)> {
    let place = |value: f64| ((value - low) / (high - low) * (width - 1) as f64).round() as usize;
    marks(axis, low.min(high), low.max(high), width / 14)
        .into_iter()
        .map(|(value, text)| (place(value), text))
        .collect()
}

fn vertical(axis: &ms_look::Axis, low: f64, high: f64, height: usize) -> Vec<(usize, String)> {
    let place = |value: f64| height - 1 - (fraction(axis, value, (low, high)) * (height - 1) as f64).round() as usize;
    marks(axis, low.min(high), low.max(high), height / 3)
        .into_iter()
        .map(|(value, text)| (place(value), text))
        .collect()
}

/// Bits of the dots of a Braille character (U+2800 + bits), by column and line.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

fn braille(panel: &Panel, (width, height): (usize, usize), coloured: bool) -> Option<Drawn> {
    let plot = &panel.frame.plot;
    let (x, y) = (numbers(&panel.frame, "x"), numbers(&panel.frame, "y"));
    let view = plot.view(&x, &y)?;
    let series = plot.series.as_deref().unwrap_or_default();
    let mut cells = vec![(0u32, 0usize); width * height];
    let mut dot = |across: f64, up: f64, number: usize| {
        let column = (across * (2 * width - 1) as f64).round().clamp(0., (2 * width - 1) as f64) as usize;
        let line = ((1. - up) * (4 * height - 1) as f64).round().clamp(0., (4 * height - 1) as f64) as usize;
        let cell = &mut cells[line / 4 * width + column / 2];
        *cell = (cell.0 | DOTS[column % 2][line % 4], number);
    };
    for number in 0..series.len() {
        for run in runs(&panel.frame, (&x, &y), number) {
            let mut before: Option<(f64, f64)> = None;
            for (x, value) in run {
                let (across, up) = view.fractions(x, value);
                let (from_across, from_up) = match plot.x.scale {
                    // a bar
                    "category" => (across, 0.),
                    _ => before.unwrap_or((across, up)),
                };
                let far = (across - from_across).abs() * 2. * width as f64;
                let steps = far.max((up - from_up).abs() * 4. * height as f64).ceil().clamp(1., 4096.) as usize;
                for step in 0..=steps {
                    let part = step as f64 / steps as f64;
                    dot(from_across + (across - from_across) * part, from_up + (up - from_up) * part, number);
                }
                before = Some((across, up)).filter(|_| plot.joins_points());
            }
        }
    }
    let line = |line: usize| -> String {
        let cell = |&(bits, number): &(u32, usize)| match bits {
            0 => " ".to_owned(),
            bits => {
                let character = char::from_u32(0x2800 + bits).unwrap_or(' ').to_string();
                foreground(palette::line(number, series.len()), &character, coloured)
            }
        };
        cells[line * width..(line + 1) * width].iter().map(cell).collect()
    };
    let name = |(number, name): (usize, &String)| {
        foreground(palette::line(number, series.len()), &format!("⠒ {}", safe(name)), coloured)
    };
    let shown = if plot.is_scatter() || series.len() > 8 { &[] } else { series };
    Some(Drawn {
        lines: (0..height).map(line).collect(),
        y_marks: vertical(&plot.y, view.low, view.high, height),
        x_marks: horizontal(&plot.x, view.left, view.right, width),
        x_label: label(&plot.x, Some((view.first, view.right))),
        y_label: label(&plot.y, Some((view.low, view.high))),
        key: shown.iter().enumerate().map(name).collect::<Vec<_>>().join("  "),
    })
}
