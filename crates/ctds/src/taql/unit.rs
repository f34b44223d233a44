//! Units of values. Casacore converts between units where two values meet that have different ones;
//! here between those of [`SYMBOLS`].

use crate::error::{Error, Result};

/// A unit; none if the name is empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Unit {
    name: String,
    /// `None` if it cannot be converted.
    scale: Option<Scale>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Scale {
    /// Value in the basic units of the dimensions.
    factor: f64,
    /// Powers of time, angle, length, mass and temperature.
    powers: [i32; 5],
}

const TIME: [i32; 5] = [1, 0, 0, 0, 0];
const ANGLE: [i32; 5] = [0, 1, 0, 0, 0];
const LENGTH: [i32; 5] = [0, 0, 1, 0, 0];
const FREQUENCY: [i32; 5] = [-1, 0, 0, 0, 0];
const VELOCITY: [i32; 5] = [-1, 0, 1, 0, 0];
const FLUX: [i32; 5] = [-2, 0, 0, 1, 0];
const TEMPERATURE: [i32; 5] = [0, 0, 0, 0, 1];

const SYMBOLS: [(&str, f64, [i32; 5]); 27] = [
    ("s", 1.0, TIME),
    ("ms", 0.001, TIME),
    ("us", 1e-6, TIME),
    ("ns", 1e-9, TIME),
    ("min", 60.0, TIME),
    ("h", 3600.0, TIME),
    ("d", DAY, TIME),
    ("a", 31_557_600.0, TIME),
    ("rad", 1.0, ANGLE),
    ("mrad", 0.001, ANGLE),
    ("deg", 0.017_453_292_519_943_295, ANGLE),
    ("arcmin", 0.000_290_888_208_665_721_6, ANGLE),
    ("arcsec", 4.848_136_811_095_36e-6, ANGLE),
    ("mas", 4.848_136_811_095_36e-9, ANGLE),
    ("m", 1.0, LENGTH),
    ("km", 1000.0, LENGTH),
    ("cm", 0.01, LENGTH),
    ("mm", 0.001, LENGTH),
    ("Hz", 1.0, FREQUENCY),
    ("kHz", 1e3, FREQUENCY),
    ("MHz", 1e6, FREQUENCY),
    ("GHz", 1e9, FREQUENCY),
    ("m/s", 1.0, VELOCITY),
    ("km/s", 1000.0, VELOCITY),
    ("Jy", 1e-26, FLUX),
    ("mJy", 1.000_000_000_000_000_1e-29, FLUX),
    ("K", 1.0, TEMPERATURE),
];

const DAY: f64 = 86_400.0;

impl Unit {
    pub(super) fn new(name: &str) -> Self {
        let name = name.trim();
        let found = SYMBOLS.iter().find(|(symbol, ..)| *symbol == name);
        Unit { name: name.to_owned(), scale: found.map(|&(_, factor, powers)| Scale { factor, powers }) }
    }

    pub(super) fn is_none(&self) -> bool {
        self.name.is_empty()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn conforms(&self, other: &Unit) -> bool {
        match (self.scale, other.scale) {
            (Some(one), Some(other)) => one.powers == other.powers,
            _ => self.name == other.name,
        }
    }

    /// Factor from this unit to `other`; 1 if one is none; `Unsupported` if they do not conform.
    pub(super) fn factor(&self, other: &Unit) -> Result<f64> {
        if self.is_none() || other.is_none() || self.name == other.name {
            return Ok(1.0);
        }
        let failed = || Error::unsupported(format!("{} is not converted to {}", self.name, other.name));
        let (from, to) = (self.scale.ok_or_else(failed)?, other.scale.ok_or_else(failed)?);
        const TURN: f64 = 2.0 * std::f64::consts::PI;
        let ratio = to.factor / from.factor;
        match (from.powers, to.powers) {
            (from, to) if from == to => Ok(1.0 / ratio),
            (ANGLE, TIME) => Ok(1.0 / (ratio * (TURN / DAY))),
            (TIME, ANGLE) => Ok(1.0 / (ratio * (DAY / TURN))),
            _ => Err(failed()),
        }
    }

    pub(super) fn times(&self, other: &Unit) -> Unit {
        self.combined(other, '.', 1)
    }

    pub(super) fn over(&self, other: &Unit) -> Unit {
        self.combined(other, '/', -1)
    }

    /// Only products of basic units can be converted.
    fn combined(&self, other: &Unit, sign: char, power: i32) -> Unit {
        if other.is_none() {
            return self.clone();
        }
        if self.is_none() && power > 0 {
            return other.clone();
        }
        let basic = |unit: &Unit| if unit.is_none() { Some([0; 5]) } else { unit.basic() };
        let scale = basic(self).zip(basic(other)).map(|(mut powers, others)| {
            powers.iter_mut().zip(others).for_each(|(sum, other)| *sum += power * other);
            Scale { factor: 1.0, powers }
        });
        Unit { name: format!("{}{sign}{}", self.name, other.name), scale }
    }

    /// `None` if the unit is not a product of seconds, radians, metres and kelvins.
    fn basic(&self) -> Option<[i32; 5]> {
        self.scale.filter(|scale| scale.factor == 1.0).map(|scale| scale.powers)
    }

    /// `Unsupported` unless the unit is a square of basic units.
    pub(super) fn root(&self) -> Result<Unit> {
        if self.is_none() {
            return Ok(Unit::default());
        }
        let powers = self.basic().filter(|powers| powers.iter().all(|power| power % 2 == 0));
        let powers =
            powers.ok_or_else(|| Error::unsupported(format!("the root of the unit {} is not supported", self.name)))?;
        let found = SYMBOLS.iter().find(|(_, factor, known)| *factor == 1.0 && *known == powers.map(|power| power / 2));
        let name = found.map_or_else(|| format!("sqrt({})", self.name), |(symbol, ..)| (*symbol).to_owned());
        Ok(Unit { name, scale: Some(Scale { factor: 1.0, powers: powers.map(|power| power / 2) }) })
    }
}
