//! Quantiles of the normal distribution and the error function, from which the values of the
//! symbols of DyscoStMan are computed. formats/engines.md, appendix A.

/// Numerator and denominator of a quotient of polynomials, highest power first.
type Ratio = [[f64; 8]; 2];

const CENTRE: Ratio = [
    [
        2.509_080_928_730_122_6e3,
        3.343_057_558_358_813e4,
        6.726_577_092_700_87e4,
        4.592_195_393_154_987e4,
        1.373_169_376_550_946e4,
        1.971_590_950_306_551_3e3,
        1.331_416_678_917_843_8e2,
        3.387_132_872_796_366_5,
    ],
    [
        5.226_495_278_852_854e3,
        2.872_908_573_572_194_3e4,
        3.930_789_580_009_271e4,
        2.121_379_430_158_659_7e4,
        5.394_196_021_424_751e3,
        6.871_870_074_920_579e2,
        4.231_333_070_160_091e1,
        1.0,
    ],
];
const FLANK: Ratio = [
    [
        7.745_450_142_783_414e-4,
        2.272_384_498_926_918_4e-2,
        2.417_807_251_774_506e-1,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_5,
        5.769_497_221_460_691,
        4.630_337_846_156_546,
        1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        1.519_866_656_361_645_7e-2,
        1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
];
const TAIL: Ratio = [
    [
        2.010_334_399_292_288_1e-7,
        2.711_555_568_743_487_6e-5,
        1.242_660_947_388_078_4e-3,
        2.653_218_952_657_612_4e-2,
        2.965_605_718_285_048_7e-1,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        7.868_691_311_456_133e-4,
        1.487_536_129_085_061_5e-2,
        1.369_298_809_227_358e-1,
        5.998_322_065_558_88e-1,
        1.0,
    ],
];

fn ratio(of: &Ratio, r: f64) -> f64 {
    let horner = |terms: &[f64; 8]| terms.iter().fold(0.0, |sum, term| sum * r + term);
    horner(&of[0]) / horner(&of[1])
}

/// Quantile of the standard normal distribution, by Wichura's algorithm AS 241 (PPND16).
pub(super) fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * ratio(&CENTRE, 0.180625 - q * q);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt();
    let value = if r <= 5.0 { ratio(&FLANK, r - 1.6) } else { ratio(&TAIL, r - 5.0) };
    if q < 0.0 { -value } else { value }
}

/// A series without cancellation; relative accuracy about 1e-15.
pub(super) fn erf(x: f64) -> f64 {
    // beyond, the difference from 1 is less than the numbers can show; NaN falls through
    if x.abs() > 6.0 {
        return 1f64.copysign(x);
    }
    let mut term = x;
    let mut sum = x;
    let mut n = 1.0;
    while term.abs() > sum.abs() * 1e-17 {
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let near = |a: f64, b: f64| assert!((a - b).abs() <= b.abs() * 2e-15, "{a} {b}");
        near(erf(0.5), 0.520_499_877_813_046_5);
        near(erf(2.5), 0.999_593_047_982_555);
        near(erf(-1.0), -0.842_700_792_949_714_9);
        assert!(erf(f64::NAN).is_nan());
        assert_eq!(erf(f64::INFINITY), 1.0);
        near(quantile(0.975), 1.959_963_984_540_054);
        near(quantile(1e-3), -3.090_232_306_167_813);
        near(quantile(1e-12), -7.034_483_825_301_132);
        assert_eq!(quantile(0.5), 0.0);
    }
}
