//! A frame as a picture: axes with marks, a raster in colours or lines, and the words beside it.

use ctds_hdf5::look::{Axis, Frame, Numbers, utc_of_mjd};
use font8x8::UnicodeFonts;

use super::png;

type Colour = [u8; 3];

const PAPER: Colour = [255, 255, 255];
const INK: Colour = [40, 40, 40];
const FAINT: Colour = [225, 225, 225];
/// Colour where a raster has no value.
const NOTHING: Colour = [240, 240, 240];

/// Viridis at even steps (Smith and van der Walt, CC0): lightness grows steadily, also for colour-blind readers.
const VIRIDIS: [Colour; 9] = [
    [0x44, 0x01, 0x54],
    [0x47, 0x2d, 0x7b],
    [0x3b, 0x52, 0x8b],
    [0x2c, 0x72, 0x8e],
    [0x21, 0x91, 0x8c],
    [0x28, 0xae, 0x80],
    [0x5e, 0xc9, 0x62],
    [0xad, 0xdc, 0x30],
    [0xfd, 0xe7, 0x25],
];

/// Colours of lines that colour-blind readers tell apart (Okabe and Ito).
const LINES: [Colour; 7] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0xe6, 0x9f, 0x00],
    [0x56, 0xb4, 0xe9],
    [0x00, 0x00, 0x00],
];

/// Pixels of a character.
const GLYPH: usize = 8;

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    fn set(&mut self, x: usize, y: usize, colour: Colour) {
        if x < self.width && y < self.height {
            self.pixels[3 * (y * self.width + x)..][..3].copy_from_slice(&colour);
        }
    }

    fn fill(&mut self, x: std::ops::Range<usize>, y: std::ops::Range<usize>, colour: Colour) {
        y.for_each(|y| x.clone().for_each(|x| self.set(x, y, colour)));
    }

    /// Text from its upper left corner on, with characters of 8 times `scale` pixels.
    fn text(&mut self, x: usize, y: usize, scale: usize, text: &str) {
        for (number, character) in text.chars().enumerate() {
            let basic = font8x8::BASIC_FONTS.get(character);
            let glyph = basic.or_else(|| font8x8::GREEK_FONTS.get(character)).or_else(|| font8x8::BASIC_FONTS.get('?'));
            for (line, bits) in glyph.unwrap_or_default().into_iter().enumerate() {
                for column in (0..GLYPH).filter(|column| bits >> column & 1 == 1) {
                    let (x, y) = (x + (number * GLYPH + column) * scale, y + line * scale);
                    self.fill(x..x + scale, y..y + scale, INK);
                }
            }
        }
    }

    /// Text that ends at `x`.
    fn text_before(&mut self, x: usize, y: usize, text: &str) {
        self.text(x.saturating_sub(GLYPH * text.chars().count()), y, 1, text);
    }

    /// Text with its middle at `x`.
    fn text_around(&mut self, x: usize, y: usize, text: &str) {
        self.text(x.saturating_sub(GLYPH * text.chars().count() / 2), y, 1, text);
    }

    /// A line of two pixels.
    fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: Colour) {
        let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil().clamp(1., 1e5) as usize;
        for step in 0..=steps {
            let fraction = step as f64 / steps as f64;
            let x = (from.0 + (to.0 - from.0) * fraction).max(0.) as usize;
            let y = (from.1 + (to.1 - from.1) * fraction).max(0.) as usize;
            self.fill(x..x + 2, y..y + 2, colour);
        }
    }
}

/// Pixels within which the plot lies.
struct Area {
    left: usize,
    right: usize,
    top: usize,
    bottom: usize,
}

impl Area {
    /// The pixel of a fraction of the horizontal axis.
    fn x(&self, fraction: f64) -> f64 {
        self.left as f64 + fraction * (self.right - self.left) as f64
    }

    /// The pixel of a fraction of the vertical axis, which points upwards.
    fn y(&self, fraction: f64) -> f64 {
        self.bottom as f64 - fraction * (self.bottom - self.top) as f64
    }
}

/// A frame in pixels, as a PNG file.
pub(super) fn picture(frame: &Frame, (width, height): (usize, usize)) -> Vec<u8> {
    let mut canvas = Canvas { width, height, pixels: PAPER.repeat(width * height) };
    let plot = &frame.plot;
    let is_raster = plot.series.is_none();
    let right = if is_raster { width - 110 } else { width - 24 };
    let area = Area { left: 96, right, top: 70, bottom: height - 52 };
    canvas.text(area.left, 12, 2, &plot.title);
    let spw = plot.selection["spw"].as_i64().map_or(String::new(), |spw| format!(", spw {spw}"));
    let column = plot.selection["column"].as_str().unwrap_or_default();
    canvas.text(area.left, 34, 1, &shortened(&format!("{column}{spw}: {}", plot.note), (width - area.left) / GLYPH));
    match is_raster {
        true => raster(&mut canvas, &area, frame),
        false => lines(&mut canvas, &area, frame),
    }
    for (x, y) in [(area.left - 1, area.top), (area.right, area.top)] {
        canvas.fill(x..x + 1, y..area.bottom, INK);
    }
    for y in [area.top - 1, area.bottom] {
        canvas.fill(area.left - 1..area.right + 1, y..y + 1, INK);
    }
    canvas.text_around((area.left + area.right) / 2, height - 16, &words(&plot.x));
    canvas.text(8, area.top - 16, 1, &words(&plot.y));
    png::encode(width, &canvas.pixels)
}

fn shortened(text: &str, len: usize) -> String {
    if text.chars().count() <= len {
        text.to_owned()
    } else {
        text.chars().take(len.saturating_sub(3)).collect::<String>() + "..."
    }
}

fn words(axis: &Axis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, axis.unit) }
}

fn numbers(frame: &Frame, name: &str) -> Vec<f64> {
    let array = frame.array(name);
    let count = array.map_or(0, |array| array.shape.iter().product());
    (0..count).filter_map(|index| array.and_then(|array| array.numbers.get(index))).collect()
}

/// Values at which marks stand, and their texts.
fn marks(axis: &Axis, low: f64, high: f64, count: usize) -> Vec<(f64, String)> {
    let span = high - low;
    if !span.is_finite() || span <= 0. {
        return Vec::new();
    }
    let rough = span / count.max(1) as f64;
    let size = 10f64.powf(rough.log10().floor());
    let step = [1., 2., 5., 10.].into_iter().map(|step| step * size).find(|&step| step >= rough).unwrap_or(rough);
    let times =
        [1., 2., 5., 10., 15., 30., 60., 120., 300., 600., 900., 1800., 3600., 7200., 10800., 21600., 43200., 86400.];
    let step = match (axis.scale, &axis.names) {
        ("time", _) => times.into_iter().find(|&step| step >= rough).unwrap_or((rough / 86400.).ceil() * 86400.),
        (_, Some(_)) => step.max(1.),
        _ => step,
    };
    let first = (low / step).ceil();
    let value = |number: usize| (first + number as f64) * step;
    let text = |value: f64| match (axis.scale, &axis.names) {
        ("time", _) => time_of(value, step),
        (_, Some(names)) => names.get(value as usize).map_or(String::new(), |name| shortened(name, 8)),
        _ => number_text(value, step),
    };
    let values = (0..64).map(value).take_while(|value| *value <= high + step * 1e-9);
    values.map(|value| (value, text(value))).collect()
}

fn number_text(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).max(0.) as usize;
    if value != 0. && (value.abs() >= 1e6 || step < 1e-5) {
        format!("{value:.2e}")
    } else {
        format!("{value:.digits$}")
    }
}

/// The time of a day, or the day if the marks are that far apart.
fn time_of(mjd_seconds: f64, step: f64) -> String {
    let text = utc_of_mjd(mjd_seconds);
    match text.split_once('T') {
        Some((day, _)) if step >= 86400. => day.to_owned(),
        Some((_, time)) if step < 1. => time.trim_end_matches('Z').to_owned(),
        Some((_, time)) => time.chars().take(8).collect(),
        None => text,
    }
}

/// The colour of a fraction.
fn colour(fraction: f64) -> Colour {
    let at = fraction.clamp(0., 1.) * (VIRIDIS.len() - 1) as f64;
    let (index, part) = ((at as usize).min(VIRIDIS.len() - 2), at.fract());
    let part = if at >= (VIRIDIS.len() - 1) as f64 { 1. } else { part };
    let mix = |byte: usize| {
        let (from, to) = (f64::from(VIRIDIS[index][byte]), f64::from(VIRIDIS[index + 1][byte]));
        (from + (to - from) * part).round() as u8
    };
    [mix(0), mix(1), mix(2)]
}

fn raster(canvas: &mut Canvas, area: &Area, frame: &Frame) {
    let plot = &frame.plot;
    let (Some(raster), Some(z)) = (frame.array("raster"), &plot.z) else { return };
    let (x, y) = (numbers(frame, "x"), numbers(frame, "y"));
    let (height, width) = (raster.shape[0], raster.shape[1]);
    let (low, high) = (z.low.flatten().unwrap_or(0.), z.high.flatten().unwrap_or(1.));
    let is_log = z.scale == "log" && low > 0.;
    let scaled = |value: f64| if is_log { value.log10() } else { value };
    let (bottom, top) = (scaled(low), scaled(high));
    let span = if top > bottom { top - bottom } else { 1. };
    if height == 0 || width == 0 || x.len() != width + 1 || y.len() != height + 1 {
        canvas.text_around((area.left + area.right) / 2, (area.top + area.bottom) / 2, "nothing to show");
        return;
    }
    // times follow one another without their gaps: lines of one height
    let by_number = plot.y.scale == "time";
    let is_count = matches!(raster.numbers, Numbers::U32(_));
    let place = |edges: &[f64], fraction: f64, by_number: bool| -> usize {
        let cells = edges.len() - 1;
        let value = edges[0] + (edges[cells] - edges[0]) * fraction;
        let found = if by_number {
            (fraction * cells as f64) as usize
        } else {
            edges.partition_point(|&edge| edge <= value).max(1) - 1
        };
        found.min(cells - 1)
    };
    let columns: Vec<usize> = (area.left..area.right)
        .map(|pixel| place(&x, (pixel - area.left) as f64 / (area.right - area.left) as f64, false))
        .collect();
    for pixel in area.top..area.bottom {
        let fraction = (area.bottom - 1 - pixel) as f64 / (area.bottom - area.top) as f64;
        let line = place(&y, fraction, by_number);
        for (number, &column) in columns.iter().enumerate() {
            let value = raster.numbers.get(line * width + column).unwrap_or(f64::NAN);
            let shown = match value {
                value if value.is_nan() || is_count && value == 0. => NOTHING,
                value if is_log && value <= 0. => colour(0.),
                value => colour((scaled(value) - bottom) / span),
            };
            canvas.set(area.left + number, pixel, shown);
        }
    }
    horizontal_marks(canvas, area, &plot.x, x[0], x[width]);
    match by_number {
        true => {
            let count = 8.min(height);
            for line in (0..count).map(|mark| mark * height / count) {
                let pixel = area.y(line as f64 / height as f64) as usize;
                vertical_mark(canvas, area, pixel, &time_of(y[line], if y[height] - y[0] < 8. { 0.1 } else { 1. }));
            }
        }
        false => vertical_marks(canvas, area, &plot.y, y[0], y[height]),
    }
    colour_bar(canvas, area, z, (low, high), is_log);
}

fn colour_bar(canvas: &mut Canvas, area: &Area, z: &Axis, (low, high): (f64, f64), is_log: bool) {
    let (left, right) = (area.right + 16, area.right + 32);
    for pixel in area.top..area.bottom {
        let fraction = (area.bottom - 1 - pixel) as f64 / (area.bottom - area.top) as f64;
        canvas.fill(left..right, pixel..pixel + 1, colour(fraction));
    }
    for number in 0..=4 {
        let fraction = f64::from(number) / 4.;
        let value = if is_log { low * (high / low).powf(fraction) } else { low + (high - low) * fraction };
        let text = match value.abs() {
            0. => "0".to_owned(),
            size if (0.01..1e4).contains(&size) => {
                format!("{value:.*}", (3. - size.log10().floor()).clamp(0., 4.) as usize)
            }
            _ => format!("{value:.1e}"),
        };
        canvas.text(right + 4, area.y(fraction) as usize - GLYPH / 2, 1, &text);
    }
    canvas.text_before(canvas.width - 4, area.top - 16, &words(z));
}

fn horizontal_marks(canvas: &mut Canvas, area: &Area, axis: &Axis, low: f64, high: f64) {
    for (value, text) in marks(axis, low, high, (area.right - area.left) / 110) {
        let pixel = area.x((value - low) / (high - low)) as usize;
        canvas.fill(pixel..pixel + 1, area.bottom..area.bottom + 5, INK);
        canvas.text_around(pixel, area.bottom + 10, &text);
    }
}

fn vertical_mark(canvas: &mut Canvas, area: &Area, pixel: usize, text: &str) {
    canvas.fill(area.left - 5..area.left, pixel..pixel + 1, INK);
    canvas.text_before(area.left - 9, pixel.saturating_sub(GLYPH / 2), text);
}

fn vertical_marks(canvas: &mut Canvas, area: &Area, axis: &Axis, low: f64, high: f64) {
    for (value, text) in marks(axis, low, high, (area.bottom - area.top) / 70) {
        vertical_mark(canvas, area, area.y((value - low) / (high - low)) as usize, &text);
    }
}

fn lines(canvas: &mut Canvas, area: &Area, frame: &Frame) {
    let plot = &frame.plot;
    let (x, y) = (numbers(frame, "x"), numbers(frame, "y"));
    let series = plot.series.as_deref().unwrap_or_default();
    let finite = |list: &[f64]| {
        let list = list.iter().copied().filter(|value| value.is_finite());
        list.fold(None, |ends: Option<(f64, f64)>, value| {
            Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })
    };
    let (Some((left, right)), Some((low, high))) = (finite(&x), finite(&y)) else {
        canvas.text_around((area.left + area.right) / 2, (area.top + area.bottom) / 2, "nothing to show");
        return;
    };
    let is_category = plot.x.names.is_some();
    let beside = if is_category {
        0.6
    } else if right > left {
        0.01 * (right - left)
    } else {
        0.5
    };
    let (left, right) = (left - beside, right + beside);
    let (low, high) = match plot.y.unit.as_str() {
        "%" => (0., 100.),
        _ if high > low => (low - 0.05 * (high - low), high + 0.05 * (high - low)),
        _ => (low - 0.5, high + 0.5),
    };
    for (value, _) in marks(&plot.y, low, high, (area.bottom - area.top) / 70) {
        let pixel = area.y((value - low) / (high - low)) as usize;
        canvas.fill(area.left..area.right, pixel..pixel + 1, FAINT);
    }
    let place = |x: f64, y: f64| {
        let y = ((y - low) / (high - low)).clamp(0., 1.);
        (area.x((x - left) / (right - left)), area.y(y) - 1.)
    };
    for (number, name) in series.iter().enumerate() {
        let shade = LINES[number % LINES.len()];
        let values = y.get(number * x.len()..(number + 1) * x.len()).unwrap_or_default();
        let mut before: Option<(f64, f64)> = None;
        for (&at, &value) in x.iter().zip(values) {
            let point = value.is_finite().then(|| place(at, value));
            match (before, point) {
                (_, Some((right, top))) if is_category => {
                    let half = (area.right - area.left) as f64 / x.len().max(1) as f64 * 0.35;
                    canvas.fill(
                        (right - half).max(0.) as usize..(right + half) as usize + 1,
                        top as usize..area.bottom,
                        shade,
                    );
                }
                (Some(before), Some(point)) => canvas.line(before, point, shade),
                (None, Some(point)) => canvas.line(point, point, shade),
                _ => {}
            }
            before = point;
        }
        if series.len() > 1 || name != "flagged" {
            let column = area.left + 12 + 72 * number;
            canvas.fill(column..column + 16, area.top + 11..area.top + 14, shade);
            canvas.text(column + 22, area.top + 8, 1, &shortened(name, 6));
        }
    }
    horizontal_marks(canvas, area, &plot.x, left, right);
    vertical_marks(canvas, area, &plot.y, low, high);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_scale() {
        assert_eq!([colour(0.), colour(0.5), colour(1.), colour(7.)], [VIRIDIS[0], VIRIDIS[4], VIRIDIS[8], VIRIDIS[8]]);
        // lightness grows
        let light =
            |fraction: f64| colour(fraction).iter().zip([2., 7., 1.]).map(|(&c, w)| f64::from(c) * w).sum::<f64>();
        assert!((0..32).all(|step| light(f64::from(step) / 32.) < light(f64::from(step + 1) / 32.)));
    }

    #[test]
    fn marks_are_round() {
        let texts = |scale, low, high| {
            let axis = Axis::new("", "", scale);
            marks(&axis, low, high, 5).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(texts("linear", 0.03, 1.01), "0.2 0.4 0.6 0.8 1.0");
        assert_eq!(texts("linear", -10., 40.), "-10 0 10 20 30 40");
        assert_eq!(texts("time", 51544.5 * 86400., 51544.5 * 86400. + 100.), "12:00:00 12:00:30 12:01:00 12:01:30");
        assert_eq!(texts("linear", 1., 1.), "");
        assert_eq!(texts("linear", f64::NAN, 1.), "");
    }
}
