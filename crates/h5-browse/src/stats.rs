//! Computes statistics (minimum, maximum, mean, standard deviation) of the finite values in a
//! selection of a dataset.

use ctds::error::{Error, Result};
use serde_json::{Value, json};

use crate::number::{Form, Kind};
use crate::read::Values;
use crate::text::{Text, each};

#[derive(Debug, Default)]
struct Stats {
    count: u64,
    mean: f64,
    /// Squared deviations from the mean.
    deviations: f64,
    float: Extremes<f64>,
    integer: Extremes<i128>,
}

#[derive(Debug)]
struct Extremes<T> {
    min: Option<T>,
    max: Option<T>,
    positive_min: Option<T>,
    strict_positive_min: Option<T>,
}

impl<T> Default for Extremes<T> {
    fn default() -> Self {
        Extremes { min: None, max: None, positive_min: None, strict_positive_min: None }
    }
}

impl<T: PartialOrd + Copy + Default> Extremes<T> {
    fn add(&mut self, number: T) {
        let least = |known: &mut Option<T>| {
            if known.is_none_or(|known| number < known) {
                *known = Some(number);
            }
        };
        least(&mut self.min);
        if number >= T::default() {
            least(&mut self.positive_min);
        }
        if number > T::default() {
            least(&mut self.strict_positive_min);
        }
        if self.max.is_none_or(|known| number > known) {
            self.max = Some(number);
        }
    }
}

impl Stats {
    fn add(&mut self, form: Form, bytes: &[u8]) {
        let is_float = form.kind == Kind::Float;
        // of this block alone
        let (mut count, mut sum) = (0u64, 0f64);
        each!(form, bytes, number => {
            let value = number.value();
            if value.is_finite() {
                count += 1;
                sum += value;
                if is_float {
                    self.float.add(value);
                } else {
                    self.integer.add(number.integer());
                }
            }
        });
        if count == 0 {
            return;
        }
        let mean = sum / count as f64;
        let mut deviations = 0f64;
        each!(form, bytes, number => {
            let value = number.value();
            if value.is_finite() {
                deviations += (value - mean) * (value - mean);
            }
        });
        // Chan's rule for two sets
        let total = (self.count + count) as f64;
        let apart = mean - self.mean;
        self.deviations += deviations + apart * apart * (self.count as f64 / total) * count as f64;
        self.mean += apart * (count as f64 / total);
        self.count += count;
    }

    fn document(&self, form: Form) -> Value {
        // JSON has no number that is not finite
        let float = |number: Option<f64>| json!(number.filter(|number| number.is_finite()));
        let integer = |number: Option<i128>| match number {
            Some(number) => {
                i64::try_from(number).map_or_else(|_| json!(u64::try_from(number).ok()), |number| json!(number))
            }
            None => Value::Null,
        };
        let any = (self.count > 0).then_some(());
        let (strict, positive, min, max) = match form.kind {
            Kind::Float => {
                let Extremes { min, max, positive_min, strict_positive_min } = &self.float;
                (float(*strict_positive_min), float(*positive_min), float(*min), float(*max))
            }
            _ => {
                let Extremes { min, max, positive_min, strict_positive_min } = &self.integer;
                (integer(*strict_positive_min), integer(*positive_min), integer(*min), integer(*max))
            }
        };
        json!({
            "strict_positive_min": strict,
            "positive_min": positive,
            "min": min,
            "max": max,
            "mean": float(any.map(|()| self.mean)),
            "std": float(any.map(|()| (self.deviations / self.count as f64).sqrt())),
        })
    }
}

/// Minimum, maximum, mean, standard deviation, least number of 0 or more, least number above 0; an
/// error for more than `most_bytes` bytes, or for elements that are not real numbers.
pub(crate) fn stats(values: &Values, most_bytes: u64) -> Result<Value> {
    let real = values.number.as_ref().filter(|number| number.form.kind != Kind::Complex && values.shape.is_some());
    let Some(number) = real else {
        return Err(Error::usage("statistics are of real numbers, which the elements are not"));
    };
    if values.bytes() > most_bytes {
        return Err(Error::limit(format!(
            "statistics of {} bytes, of which {most_bytes} are allowed; choose less with selection",
            values.bytes()
        )));
    }
    values.check_backed()?;
    let mut stats = Stats::default();
    for block in values.blocks() {
        stats.add(number.form, &values.read(&block)?);
    }
    Ok(stats.document(number.form))
}
