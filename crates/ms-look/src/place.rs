//! Positions of antennas: metres from the centre of the Earth (ITRF), if they are on it.

/// Positions at one to two times this distance in metres from the origin are on the Earth (ITRF).
const ON_EARTH: f64 = 6e6;

/// Zeros without positions.
pub(crate) fn mean(positions: impl Iterator<Item = [f64; 3]> + Clone) -> [f64; 3] {
    let count = positions.clone().count().max(1) as f64;
    [0, 1, 2].map(|axis| positions.clone().map(|position| position[axis]).sum::<f64>() / count)
}

/// The mean of the positions that are on the Earth, in metres (ITRF); `None` if none is.
pub(crate) fn middle(positions: &[[f64; 3]]) -> Option<[f64; 3]> {
    let middle = mean(positions.iter().copied().filter(|position| is_on_earth(*position)));
    is_on_earth(middle).then_some(middle)
}

pub(crate) fn is_on_earth([x, y, z]: [f64; 3]) -> bool {
    (ON_EARTH..2. * ON_EARTH).contains(&x.hypot(y).hypot(z))
}
