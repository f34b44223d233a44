//! Shows pictures in a terminal: by the protocols of kitty, iTerm2 and sixel, or in Unicode
//! characters. Environment variables tell which of them the terminal supports.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::palette::Colour;
use super::pixels::Pixels;

/// The way in which a terminal shows a picture (`plot --show`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Show {
    /// The best way to show pictures that the terminal supports, judged by its environment
    /// variables
    Auto,
    /// The graphics protocol of kitty, Ghostty and Konsole
    Kitty,
    /// The inline images of iTerm2 and WezTerm
    Iterm2,
    /// Sixel graphics, which foot, mlterm, contour and xterm -ti vt340 support
    Sixel,
    /// Block and Braille characters in colours
    Unicode,
}

impl Show {
    /// `variable` returns the value of an environment variable.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Show {
        let is = |name: &str, words: &[&str]| {
            variable(name).is_some_and(|value| words.iter().any(|word| value.to_lowercase().contains(word)))
        };
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        if is_set("TMUX") || is("TERM", &["screen", "tmux", "dumb"]) {
            // terminal multiplexers and dumb terminals pass no pictures on
            Show::Unicode
        } else if is("TERM", &["kitty", "ghostty"]) || is_set("KITTY_WINDOW_ID") || is("TERM_PROGRAM", &["ghostty"]) {
            Show::Kitty
        } else if is("TERM_PROGRAM", &["iterm", "wezterm"]) || is("LC_TERMINAL", &["iterm"]) {
            Show::Iterm2
        } else if is_set("KONSOLE_VERSION") {
            Show::Kitty
        } else if is("TERM", &["sixel", "foot", "mlterm", "contour"]) {
            Show::Sixel
        } else {
            Show::Unicode
        }
    }
}

/// Base64, in pieces of at most 4096 bytes.
pub(super) fn kitty(png: &[u8]) -> String {
    let text = STANDARD.encode(png);
    let mut out = String::new();
    let mut rest = text.as_str();
    let mut begin = "f=100,a=T,q=2,";
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.len().min(4096));
        rest = more;
        out.push_str(&format!("\x1b_G{begin}m={};{piece}\x1b\\", u8::from(!rest.is_empty())));
        begin = "";
    }
    out + "\n"
}

pub(super) fn iterm2(png: &[u8]) -> String {
    format!("\x1b]1337;File=inline=1;size={};preserveAspectRatio=1:{}\x07\n", png.len(), STANDARD.encode(png))
}

/// Most colours of a picture in sixel.
const COLOURS: usize = 256;

/// Bands of six lines, with one pass for each colour. Of more than 256 colours, the rarest are
/// replaced by the nearest of the others.
pub(super) fn sixel(pixels: &Pixels) -> String {
    let colours: Vec<Colour> = pixels.bytes.chunks_exact(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    let mut counts: HashMap<Colour, usize> = HashMap::new();
    colours.iter().for_each(|&colour| *counts.entry(colour).or_default() += 1);
    let mut palette: Vec<Colour> = counts.keys().copied().collect();
    palette.sort_unstable_by_key(|colour| (std::cmp::Reverse(counts[colour]), *colour));
    palette.truncate(COLOURS);
    let distance = |a: Colour, b: Colour| -> u32 { (0..3).map(|at| u32::from(a[at].abs_diff(b[at])).pow(2)).sum() };
    let nearest = |colour: Colour| -> usize {
        (0..palette.len()).min_by_key(|&number| distance(palette[number], colour)).unwrap_or(0)
    };
    let numbers: HashMap<Colour, usize> = counts.keys().map(|&colour| (colour, nearest(colour))).collect();
    let mut out = format!("\x1bP0;1q\"1;1;{};{}", pixels.width, pixels.height);
    for (number, colour) in palette.iter().enumerate() {
        let [red, green, blue] = colour.map(|byte| (f64::from(byte) / 2.55).round() as u8);
        out.push_str(&format!("#{number};2;{red};{green};{blue}"));
    }
    for band in colours.chunks(6 * pixels.width.max(1)) {
        let places: Vec<usize> = band.iter().map(|colour| numbers[colour]).collect();
        let mut used = places.clone();
        used.sort_unstable();
        used.dedup();
        for (at, &number) in used.iter().enumerate() {
            out.push_str(&format!("{}#{number}", if at > 0 { "$" } else { "" }));
            let bits = |column: usize| -> u8 {
                let lines = places[column..].iter().step_by(pixels.width).enumerate();
                lines.filter(|(_, place)| **place == number).map(|(line, _)| 1 << line).sum()
            };
            let mut run: (u8, usize) = (0, 0);
            for column in 0..pixels.width {
                let bits = bits(column);
                if bits == run.0 {
                    run.1 += 1;
                } else {
                    push_run(&mut out, run);
                    run = (bits, 1);
                }
            }
            if run.0 != 0 {
                push_run(&mut out, run);
            }
        }
        out.push('-');
    }
    out + "\x1b\\\n"
}

fn push_run(out: &mut String, (bits, count): (u8, usize)) {
    let character = char::from(63 + bits);
    match count {
        0 => {}
        1..=3 => (0..count).for_each(|_| out.push(character)),
        _ => out.push_str(&format!("!{count}{character}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_known_by_their_environment() {
        let show = |variables: &[(&str, &str)]| {
            Show::of(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(show(&[("TERM", "xterm-256color")]), Show::Unicode);
        assert_eq!(show(&[("TERM", "xterm-kitty")]), Show::Kitty);
        assert_eq!(show(&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")]), Show::Unicode);
        assert_eq!(show(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")]), Show::Iterm2);
        assert_eq!(show(&[("TERM", "foot")]), Show::Sixel);
        assert_eq!(show(&[]), Show::Unicode);
    }
}
