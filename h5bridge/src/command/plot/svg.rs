//! Writes a picture as SVG: shapes stay shapes, texts stay texts, and a raster is an embedded PNG
//! image with one pixel for each cell.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::palette::{Colour, INK, PAPER};
use super::png;
use super::scene::{Anchor, Scene, Shape, Size};

pub(super) fn encode(scene: &Scene) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\" font-size=\"12\" fill=\"{}\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        hex(INK),
        hex(PAPER),
    );
    scene.shapes.iter().for_each(|shape| element(&mut out, shape));
    out.push_str("</svg>\n");
    out
}

fn element(out: &mut String, shape: &Shape) {
    // writing to a string does not fail
    let _ = match shape {
        Shape::Rectangle { area, colour, class } => writeln!(
            out,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
            number(area.left),
            number(area.top),
            number(area.width()),
            number(area.height()),
            hex(*colour)
        ),
        Shape::Line { points, width, colour, class, title } => {
            let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
            writeln!(
                out,
                "<polyline class=\"{class}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\" \
                 points=\"{}\">{}</polyline>",
                hex(*colour),
                number(*width),
                points.join(" "),
                titled(title)
            )
        }
        Shape::Dots { points, radius, colour, class, title } => {
            let radius = number(*radius);
            let circle =
                |(x, y): &(f64, f64)| format!("<circle cx=\"{}\" cy=\"{}\" r=\"{radius}\"/>", number(*x), number(*y));
            let circles: String = points.iter().map(circle).collect();
            writeln!(out, "<g class=\"{class}\" fill=\"{}\">{}{circles}</g>", hex(*colour), titled(title))
        }
        Shape::Text { at, anchor, size, turned, text, class } => {
            let (x, y) = (number(at.0), number(at.1));
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let size = if *size == Size::Title { " font-size=\"16\"" } else { "" };
            let turned = if *turned { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            writeln!(
                out,
                "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" dy=\"0.35em\" text-anchor=\"{anchor}\"{size}{turned}>{}</text>",
                escaped(text)
            )
        }
        Shape::Image { area, columns, pixels } => writeln!(
            out,
            "<image class=\"raster\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" \
             style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>",
            number(area.left),
            number(area.top),
            number(area.width()),
            number(area.height()),
            STANDARD.encode(png::encode(*columns, pixels))
        ),
    };
}

fn titled(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(title)) }
}

fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Pixels, to a hundredth.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Also replaces characters that XML cannot contain, such as control characters, by `?`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('?'),
            character if character.is_control() => out.push('?'),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_file_cannot_add_elements() {
        assert_eq!(escaped("a<b>&\"\u{1b}[0m\u{0}λ"), "a&lt;b&gt;&amp;&quot;?[0m?λ");
        assert_eq!([number(1.), number(-0.126), number(30.5)], ["1", "-0.13", "30.5"]);
    }
}
