//! Complex numbers, computed as casacore's compilers compute them: quotients by Smith's method, and
//! nothing repaired where parts are infinite.

use num_complex::Complex64;

pub(super) fn times(a: Complex64, b: Complex64) -> Complex64 {
    Complex64::new(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)
}

pub(super) fn over(a: Complex64, b: Complex64) -> Complex64 {
    if b.re.abs() < b.im.abs() {
        let ratio = b.re / b.im;
        let divisor = b.re * ratio + b.im;
        Complex64::new((a.re * ratio + a.im) / divisor, (a.im * ratio - a.re) / divisor)
    } else {
        let ratio = b.im / b.re;
        let divisor = b.im * ratio + b.re;
        Complex64::new((a.im * ratio + a.re) / divisor, (a.im - a.re * ratio) / divisor)
    }
}

pub(super) fn exp(c: Complex64) -> Complex64 {
    let size = c.re.exp();
    Complex64::new(size * c.im.cos(), size * c.im.sin())
}

pub(super) fn sin(c: Complex64) -> Complex64 {
    Complex64::new(c.im.cosh() * c.re.sin(), c.im.sinh() * c.re.cos())
}

pub(super) fn cos(c: Complex64) -> Complex64 {
    Complex64::new(c.im.cosh() * c.re.cos(), -(c.im.sinh() * c.re.sin()))
}

pub(super) fn sinh(c: Complex64) -> Complex64 {
    Complex64::new(c.re.sinh() * c.im.cos(), c.re.cosh() * c.im.sin())
}

pub(super) fn cosh(c: Complex64) -> Complex64 {
    Complex64::new(c.re.cosh() * c.im.cos(), c.re.sinh() * c.im.sin())
}

/// Square of the absolute value, by which casacore orders complex numbers.
pub(super) fn norm(c: Complex64) -> f64 {
    c.re * c.re + c.im * c.im
}

pub(super) fn abs(c: Complex64) -> f64 {
    c.re.hypot(c.im)
}

pub(super) fn arg(c: Complex64) -> f64 {
    c.im.atan2(c.re)
}
