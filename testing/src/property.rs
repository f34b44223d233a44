//! Tests of properties: statements that hold for every value of a proptest strategy.

use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

/// How many times more values a long test run tries.
const LONG: u32 = 10;

/// Whether this is a run for the night: the environment variable `H5BRIDGE_LONG` is 1.
pub fn is_long() -> bool {
    std::env::var_os("H5BRIDGE_LONG").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Number of random values to try, if a normal run tries `normal`.
pub fn cases(normal: u32) -> u32 {
    if is_long() { normal.saturating_mul(LONG) } else { normal }
}

/// Step through a series of cases, such as the bytes of a header: a long run takes each, another
/// one each `normal`th.
pub fn step(normal: usize) -> usize {
    if is_long() { 1 } else { normal }
}

/// Tests a property: calls `test` with as many random values of `strategy` as [`cases`] says; it
/// panics where the property does not hold.
///
/// A value for which it panics is made as small as possible and reported. A normal run tries the
/// same values each time. A long run tries others; `PROPTEST_RNG_SEED` makes them those of an
/// earlier one, whose seed its report has.
///
/// # Panics
/// If `test` panics for one of the values.
#[track_caller]
pub fn property<S: Strategy>(normal: u32, strategy: S, test: impl Fn(S::Value))
where
    S::Value: Debug,
{
    let seed = match std::env::var("PROPTEST_RNG_SEED") {
        Ok(seed) => seed.parse().expect("PROPTEST_RNG_SEED is a number"),
        Err(_) if is_long() => std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos() as u64),
        Err(_) => 0,
    };
    let config = Config {
        cases: cases(normal),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_time: 60_000,
        max_shrink_iters: 4096,
        ..Config::default()
    };
    let tried = TestRunner::new(config).run(&strategy, |value| {
        test(value);
        Ok::<(), TestCaseError>(())
    });
    match tried {
        Ok(()) => {}
        Err(TestError::Fail(reason, value)) => panic!("{reason}\nPROPTEST_RNG_SEED={seed}, smallest value: {value:#?}"),
        Err(TestError::Abort(reason)) => panic!("{reason}\nPROPTEST_RNG_SEED={seed}"),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_failing_value_is_made_small_and_its_seed_is_told() {
        let failed = catch_unwind(|| {
            property(1000, proptest::collection::vec(0u32..1000, 0..50), |values| {
                assert!(values.iter().all(|&value| value < 900), "a large value");
            })
        });
        let message = *failed.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("a large value") && message.contains("PROPTEST_RNG_SEED="), "{message}");
        assert!(message.contains("[\n    900,\n]"), "{message}");
    }
}
