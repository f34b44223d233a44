//! Turns a picture of shapes into pixels, with smooth lines and letters.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::palette::{Colour, INK, PAPER, mix};
use super::scene::{Anchor, Area, Scene, Shape, Size};

/// Few shades blend edges into the background, so that a picture has at most 256 colours.
const SHADES: f64 = 6.;

/// Red, green and blue of each pixel, the upper line first.
pub(super) struct Pixels {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) bytes: Vec<u8>,
}

impl Size {
    fn raster(self) -> RasterHeight {
        match self {
            Size::Normal => RasterHeight::Size16,
            Size::Title => RasterHeight::Size20,
        }
    }

    pub(super) fn character(self) -> f64 {
        get_raster_width(FontWeight::Regular, self.raster()) as f64
    }
}

pub(super) fn draw(scene: &Scene) -> Pixels {
    let (width, height) = (scene.width, scene.height);
    let mut pixels = Pixels { width, height, bytes: PAPER.repeat(width * height) };
    for shape in &scene.shapes {
        match shape {
            Shape::Rectangle { area, colour, .. } => pixels.fill(area, *colour),
            Shape::Line { points, width, colour, .. } => {
                points.windows(2).for_each(|pair| pixels.line(pair[0], pair[1], *width, *colour));
            }
            Shape::Dots { points, radius, colour, .. } => {
                points.iter().for_each(|&at| pixels.line(at, at, 2. * radius, *colour));
            }
            Shape::Text { at, anchor, size, turned, text, .. } => pixels.text(*at, *anchor, *size, *turned, text),
            Shape::Image { area, columns, pixels: image } => pixels.image(area, *columns, image),
        }
    }
    pixels
}

impl Pixels {
    /// Mixes a colour into a pixel: `part` is the weight of the new colour, from 0 to 1.
    fn paint(&mut self, x: i64, y: i64, colour: Colour, part: f64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x >= self.width || y >= self.height {
            return;
        }
        let at = 3 * (y * self.width + x);
        let below = [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2]];
        let part = (part.clamp(0., 1.) * SHADES).round() / SHADES;
        self.bytes[at..at + 3].copy_from_slice(&mix(below, colour, part));
    }

    fn fill(&mut self, area: &Area, colour: Colour) {
        for y in area.top.round() as i64..area.bottom.round() as i64 {
            (area.left.round() as i64..area.right.round() as i64).for_each(|x| self.paint(x, y, colour, 1.));
        }
    }

    /// A straight line with round ends, `width` pixels wide.
    fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Colour) {
        let is_straight = from.0 == to.0 || from.1 == to.1;
        if width <= 1. && is_straight {
            // marks and frames are sharp
            let (left, right) = (from.0.min(to.0).floor(), from.0.max(to.0).floor());
            let (top, bottom) = (from.1.min(to.1).floor(), from.1.max(to.1).floor());
            return self.fill(&Area::new(left, right + 1., top, bottom + 1.), colour);
        }
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let square = dx * dx + dy * dy;
        if !square.is_finite() {
            return;
        }
        // from pixel to pixel along the longer side, and some pixels across
        let is_flat = dx.abs() >= dy.abs();
        let (start, end) = if is_flat { (from.0, to.0) } else { (from.1, to.1) };
        let reach = width / 2. + 1.;
        for along in (start.min(end) - reach).floor() as i64..=(start.max(end) + reach).ceil() as i64 {
            let part = if start == end { 0. } else { ((along as f64 + 0.5 - start) / (end - start)).clamp(0., 1.) };
            let centre = if is_flat { from.1 + dy * part } else { from.0 + dx * part };
            for across in (centre - 1.5 * reach).floor() as i64..=(centre + 1.5 * reach).ceil() as i64 {
                let (x, y) = if is_flat { (along, across) } else { (across, along) };
                let (px, py) = (x as f64 + 0.5 - from.0, y as f64 + 0.5 - from.1);
                let at = if square > 0. { ((px * dx + py * dy) / square).clamp(0., 1.) } else { 0. };
                let distance = (px - at * dx).hypot(py - at * dy);
                self.paint(x, y, colour, width / 2. + 0.5 - distance);
            }
        }
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, size: Size, turned: bool, text: &str) {
        let raster = size.raster();
        let step = size.character();
        let len = step * text.chars().count() as f64;
        let start = match anchor {
            Anchor::Start => 0.,
            Anchor::Middle => len / 2.,
            Anchor::End => len,
        };
        let glyph = |character: char| get_raster(character, FontWeight::Regular, raster);
        for (number, character) in text.chars().enumerate() {
            let letter = if character == 'λ' { 'y' } else { character };
            let Some(glyph) = glyph(letter).or_else(|| glyph('?')) else { continue };
            let along = (number as f64 * step - start).round() as i64;
            for (line, row) in glyph.rows().enumerate() {
                // the font has no Greek letters: an y upside down, from its head to the base line
                let line = if character == 'λ' { (glyph.height() * 9 / 8).saturating_sub(line) } else { line };
                let across = line as i64 - glyph.height() as i64 / 2;
                for (column, &shade) in row.iter().enumerate().filter(|(_, shade)| **shade > 0) {
                    let along = along + column as i64;
                    let (dx, dy) = if turned { (across, -along) } else { (along, across) };
                    self.paint(x.round() as i64 + dx, y.round() as i64 + dy, INK, f64::from(shade) / 255.);
                }
            }
        }
    }

    fn image(&mut self, area: &Area, columns: usize, image: &[u8]) {
        let lines = image.len() / (3 * columns.max(1));
        let range = |low: f64, high: f64| low.round() as i64..high.round() as i64;
        let (across, down) = (range(area.left, area.right), range(area.top, area.bottom));
        let place = |at: i64, range: &std::ops::Range<i64>, count: usize| {
            let fraction = (at - range.start) as f64 + 0.5;
            ((fraction / (range.end - range.start) as f64 * count as f64) as usize).min(count.saturating_sub(1))
        };
        for y in down.clone() {
            let line = place(y, &down, lines);
            for x in across.clone() {
                let at = 3 * (line * columns + place(x, &across, columns));
                if let Some(&[red, green, blue]) = image.get(at..at + 3).and_then(|found| found.first_chunk()) {
                    self.paint(x, y, [red, green, blue], 1.);
                }
            }
        }
    }
}
