//! Boxes of elements in arrays of several axes, slowest first.

use crate::error::Result;

/// A box that two arrays have in common, as runs of elements that are beside each other in both.
pub(crate) struct Runs {
    /// Axes that are not part of a run, slowest first.
    axes: Vec<Axis>,
    /// First element in the two arrays.
    from: u64,
    to: u64,
    elements: u64,
}

struct Axis {
    count: u64,
    /// Elements between neighbours in the two arrays.
    from: u64,
    to: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) shape: &'a [u64],
    pub(crate) start: &'a [u64],
}

impl Runs {
    /// Copies a box of `count` elements by axis, which is in both arrays. These have no more
    /// elements than there are numbers.
    pub(crate) fn new(from: Part<'_>, to: Part<'_>, count: &[u64]) -> Self {
        let mut runs = Runs { axes: Vec::new(), from: 0, to: 0, elements: 1 };
        let (mut from_stride, mut to_stride) = (1u64, 1u64);
        let all = from.shape.iter().zip(from.start).zip(to.shape.iter().zip(to.start)).zip(count);
        // axes join a run while those inside are whole in both arrays
        let mut is_joined = true;
        for (((&from_shape, &from_start), (&to_shape, &to_start)), &count) in all.rev() {
            runs.from = runs.from.saturating_add(from_start.saturating_mul(from_stride));
            runs.to = runs.to.saturating_add(to_start.saturating_mul(to_stride));
            if is_joined {
                runs.elements = runs.elements.saturating_mul(count);
                is_joined = count == from_shape && count == to_shape;
            } else {
                runs.axes.push(Axis { count, from: from_stride, to: to_stride });
            }
            from_stride = from_stride.saturating_mul(from_shape);
            to_stride = to_stride.saturating_mul(to_shape);
        }
        runs.axes.reverse();
        runs
    }

    /// The first element after the box in the array it comes from.
    pub(crate) fn end(&self) -> u64 {
        let last = self.axes.iter().map(|axis| axis.count.saturating_sub(1).saturating_mul(axis.from));
        last.fold(self.from.saturating_add(self.elements), u64::saturating_add)
    }

    /// `each` receives the first element of a run in both arrays, and its number of elements.
    pub(crate) fn visit(&self, each: &mut dyn FnMut(u64, u64, u64) -> Result<()>) -> Result<()> {
        if self.elements == 0 || self.axes.iter().any(|axis| axis.count == 0) {
            return Ok(());
        }
        let mut at = vec![0u64; self.axes.len()];
        let (mut from, mut to) = (self.from, self.to);
        loop {
            each(from, to, self.elements)?;
            let mut is_done = true;
            for (at, axis) in at.iter_mut().zip(&self.axes).rev() {
                *at += 1;
                from = from.wrapping_add(axis.from);
                to = to.wrapping_add(axis.to);
                if *at < axis.count {
                    is_done = false;
                    break;
                }
                from = from.wrapping_sub(axis.from.wrapping_mul(*at));
                to = to.wrapping_sub(axis.to.wrapping_mul(*at));
                *at = 0;
            }
            if is_done {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(from: (&[u64], &[u64]), to: (&[u64], &[u64]), count: &[u64]) -> Vec<(u64, u64, u64)> {
        let part = |(shape, start)| Part { shape, start };
        let runs = Runs::new(part(from), part(to), count);
        let mut found = Vec::new();
        runs.visit(&mut |from, to, elements| {
            found.push((from, to, elements));
            Ok(())
        })
        .unwrap();
        assert_eq!(runs.end(), found.last().map_or(runs.end(), |(from, _, elements)| from + elements));
        found
    }

    #[test]
    fn whole_inner_axes_are_one_run() {
        assert_eq!(runs((&[4, 3], &[1, 0]), (&[2, 3], &[0, 0]), &[2, 3]), [(3, 0, 6)]);
        assert_eq!(runs((&[], &[]), (&[], &[]), &[]), [(0, 0, 1)]);
        assert_eq!(runs((&[4, 3], &[1, 0]), (&[2, 3], &[0, 0]), &[0, 3]), []);
    }

    #[test]
    fn partial_axes_are_runs_of_their_own() {
        let found = runs((&[2, 4, 3], &[0, 1, 1]), (&[2, 2, 2], &[0, 0, 0]), &[2, 2, 2]);
        assert_eq!(found, [(4, 0, 2), (7, 2, 2), (16, 4, 2), (19, 6, 2)]);
    }
}
