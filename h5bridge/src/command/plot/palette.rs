//! Colours for the pictures of plots, chosen so that colour-blind readers can tell them apart. The
//! colour scale is viridis.

pub(super) type Colour = [u8; 3];

pub(super) const PAPER: Colour = [255, 255, 255];
pub(super) const INK: Colour = [40, 40, 40];
pub(super) const FAINT: Colour = [225, 225, 225];
/// Raster cells without values.
pub(super) const NOTHING: Colour = [236, 236, 236];
/// Raster cells all of whose data are flagged.
pub(super) const FLAGGED: Colour = [0xf0, 0xa0, 0x90];

/// viridis at even steps (Smith and van der Walt, CC0): lightness grows steadily.
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

/// Few enough that a picture with text and lines has at most 256 colours, the limit of sixel.
const STEPS: f64 = 128.;

/// Colours of lines (Okabe and Ito).
const LINES: [Colour; 7] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0xe6, 0x9f, 0x00],
    [0x56, 0xb4, 0xe9],
    [0x00, 0x00, 0x00],
];

/// The colour for a fraction from 0, dark, to 1, light.
pub(super) fn scale(fraction: f64) -> Colour {
    let at = (fraction.clamp(0., 1.) * STEPS).round() / STEPS * (VIRIDIS.len() - 1) as f64;
    let index = (at as usize).min(VIRIDIS.len() - 2);
    mix(VIRIDIS[index], VIRIDIS[index + 1], at - index as f64)
}

/// One of `LINES` for up to seven lines, else a step of the colour scale.
pub(super) fn line(number: usize, count: usize) -> Colour {
    match LINES.get(number).filter(|_| count <= LINES.len()) {
        Some(colour) => *colour,
        // yellow is too light for a line
        None => scale(number as f64 / count.max(2) as f64 * 0.95),
    }
}

/// `part` 0 is `from`, 1 is `to`.
pub(super) fn mix(from: Colour, to: Colour, part: f64) -> Colour {
    let byte = |number: usize| {
        let (from, to) = (f64::from(from[number]), f64::from(to[number]));
        (from + (to - from) * part).round() as u8
    };
    [byte(0), byte(1), byte(2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_the_scale() {
        assert_eq!([scale(0.), scale(0.5), scale(1.), scale(7.)], [VIRIDIS[0], VIRIDIS[4], VIRIDIS[8], VIRIDIS[8]]);
        // lightness grows
        let light =
            |fraction: f64| scale(fraction).iter().zip([2., 7., 1.]).map(|(&c, w)| f64::from(c) * w).sum::<f64>();
        assert!((0..32).all(|step| light(f64::from(step) / 32.) < light(f64::from(step + 1) / 32.)));
    }
}
