//! Chooses the tile shape of a hypercube. formats/stman.md 6.4.

use crate::value::Shape;

/// Pixels of a tile without a request, as in casacore.
const TILE_PIXELS: f64 = 32768.;

/// Extents in `wanted` are limited to the axis length if the axis cannot grow; missing and zero
/// extents are chosen: casacore's wherever those axes have fewer than 4 * 32768 pixels in all, and
/// mostly beyond: there only experiments say how casacore weighs axes that cannot be cut evenly.
/// The last axis of an extensible cube has no extent yet.
pub(super) fn choose(cube: &Shape, wanted: &[u64], extensible: bool) -> Shape {
    let fixed = cube.len() - usize::from(extensible);
    let mut tile: Vec<u64> = (0..cube.len()).map(|axis| wanted.get(axis).copied().unwrap_or_default()).collect();
    for axis in 0..fixed {
        tile[axis] = tile[axis].min(cube[axis].max(1));
    }
    let open: Vec<usize> = (0..fixed).filter(|&axis| tile[axis] == 0).collect();
    let known: f64 = tile[..fixed].iter().filter(|&&extent| extent > 0).map(|&extent| extent as f64).product();
    cut(cube, &open, (TILE_PIXELS / known).max(1.), &mut tile);
    if extensible && tile[fixed] == 0 {
        let cell: f64 = tile[..fixed].iter().map(|&extent| extent as f64).product();
        tile[fixed] = (TILE_PIXELS / cell).round().max(1.) as u64;
    }
    tile.into_iter().collect()
}

/// Extents of the axes in `open`, with a product of about `pixels` and little padding.
fn cut(cube: &Shape, open: &[usize], pixels: f64, tile: &mut [u64]) {
    let total: f64 = open.iter().map(|&axis| cube[axis] as f64).product();
    if total < 4. * pixels {
        open.iter().for_each(|&axis| tile[axis] = cube[axis].max(1));
        return;
    }
    let mut open = open.to_vec();
    let mut pixels = pixels;
    while !open.is_empty() {
        // each axis is cut as often as the others; the one that this suits best comes first
        let left: f64 = open.iter().map(|&axis| cube[axis] as f64).product();
        let scale = (pixels / left).powf(1. / open.len() as f64).min(1.);
        let best = (0..open.len()).map(|i| (i, nearest_cut(cube[open[i]], cube[open[i]] as f64 * scale)));
        let misfit = |cut: u64, axis: usize| (cut as f64 / (cube[axis] as f64 * scale) - 1.).abs();
        let best = best.min_by(|a, b| misfit(a.1, open[a.0]).total_cmp(&misfit(b.1, open[b.0])));
        let Some((i, extent)) = best else { return };
        tile[open.remove(i)] = extent;
        pixels = (pixels / extent as f64).max(1.);
    }
}

/// The divisor of `axis` nearest to `ideal` (at most 50 % off), or else a nearly equal cut.
fn nearest_cut(axis: u64, ideal: f64) -> u64 {
    let (low, high) = ((0.5 * ideal).ceil().max(1.) as u64, (1.5 * ideal).floor().max(1.) as u64);
    // by the number of parts, of which there are few
    let parts = axis.div_ceil(high.max(1))..=axis / low.max(1);
    let divisors =
        parts.take(1 << 16).filter(|&parts| parts > 0 && axis.is_multiple_of(parts)).map(|parts| axis / parts);
    let distance = |extent: u64| (extent as f64 - ideal).abs();
    let nearest = divisors.min_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    nearest.unwrap_or_else(|| axis.div_ceil((axis as f64 / ideal).round().max(1.) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Choices of casacore 3.8.1.
    #[test]
    fn as_casacore() {
        let cell = |cube: &[u64], wanted: &[u64]| choose(&Shape::from(cube), wanted, false).to_vec();
        assert_eq!(cell(&[10], &[]), [10]);
        assert_eq!(cell(&[100_000], &[]), [100_000]);
        assert_eq!(cell(&[131_080], &[]), [32770]);
        assert_eq!(cell(&[200_000], &[]), [40_000]);
        assert_eq!(cell(&[1_000_000], &[]), [31250]);
        assert_eq!(cell(&[1_000_003], &[]), [32259]);
        assert_eq!(cell(&[300, 200], &[]), [300, 200]);
        assert_eq!(cell(&[1000, 1000], &[]), [200, 200]);
        assert_eq!(cell(&[997, 991], &[]), [200, 166]);
        assert_eq!(cell(&[600, 512], &[]), [200, 128]);
        assert_eq!(cell(&[64, 64, 64], &[]), [32, 32, 32]);
        assert_eq!(cell(&[100, 200, 300], &[]), [20, 40, 50]);
        assert_eq!(cell(&[127, 131, 137], &[]), [32, 33, 35]);
        assert_eq!(cell(&[4, 100_000], &[4]), [4, 10_000]);
        assert_eq!(cell(&[1000, 2000], &[0, 0]), [125, 250]);
        assert_eq!(cell(&[4, 100], &[8, 200, 10]), [4, 100]);
        let rows = |cell: &[u64], wanted: &[u64]| choose(&Shape::from(cell).with_axis(0), wanted, true).to_vec();
        assert_eq!(rows(&[10], &[]), [10, 3277]);
        assert_eq!(rows(&[4, 100], &[]), [4, 100, 82]);
        assert_eq!(rows(&[65537], &[]), [65537, 1]);
        assert_eq!(rows(&[100, 200], &[0, 10]), [100, 10, 33]);
        assert_eq!(rows(&[1000, 2000], &[10]), [10, 2000, 2]);
        assert_eq!(rows(&[4, 100], &[8, 200, 10]), [4, 100, 10]);
        assert_eq!(rows(&[4, 100], &[4, 10, 3, 7]), [4, 10, 3]);
        assert_eq!(rows(&[], &[]), [32768]);
    }
}
