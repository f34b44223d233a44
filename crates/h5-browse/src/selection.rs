//! Parses selections in numpy's basic syntax: integers and slices, separated by commas.

use ctds::error::{Error, Result};
use ctds_hdf5::internals::Steps;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selected {
    /// Slowest axis first.
    pub(crate) axes: Vec<Steps>,
    /// Slowest axis first; axes that an integer selects are left out.
    pub(crate) shape: Vec<u64>,
}

impl Selected {
    pub(crate) fn elements(&self) -> u64 {
        elements(&self.shape)
    }
}

/// 2^64 - 1 if there are more.
pub(crate) fn elements(shape: &[u64]) -> u64 {
    if shape.contains(&0) { 0 } else { shape.iter().fold(1, |count, &extent| count.saturating_mul(extent)) }
}

/// `0,:,2:8:2`, slowest axis first; axes after those that `text` names are selected whole.
pub(crate) fn parse(text: Option<&str>, extents: &[u64]) -> Result<Selected> {
    let members: Vec<&str> = text.map(|text| text.split(',').collect()).unwrap_or_default();
    if members.len() > extents.len() {
        return Err(Error::usage(format!(
            "the selection {} has {} members, the dataset {} axes",
            text.unwrap_or_default(),
            members.len(),
            extents.len()
        )));
    }
    let mut selected = Selected { axes: Vec::with_capacity(extents.len()), shape: Vec::new() };
    for (axis, &extent) in extents.iter().enumerate() {
        let (steps, is_index) = match members.get(axis) {
            Some(member) => member_steps(member, extent).map_err(|error| {
                Error::usage(format!("the selection {member:?} on axis {axis}: {}", error.message()))
            })?,
            None => (Steps { start: 0, step: 1, count: extent }, false),
        };
        selected.axes.push(steps);
        if !is_index {
            selected.shape.push(steps.count);
        }
    }
    Ok(selected)
}

/// Indices on an axis of `extent` elements, and whether the part is an integer instead of a slice.
fn member_steps(member: &str, extent: u64) -> Result<(Steps, bool)> {
    let parts: Vec<&str> = member.split(':').collect();
    let number = |text: &str| -> Result<i128> {
        let parsed = text.trim().parse::<i64>().map(i128::from);
        parsed.map_err(|_| Error::usage(format!("{text:?} is not an integer")))
    };
    let optional = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
    let len = i128::from(extent);
    let from_end = |position: i128| if position < 0 { position + len } else { position };
    let (start, stop, step) = match parts[..] {
        [index] => {
            let index = from_end(number(index)?);
            if !(0..len).contains(&index) {
                return Err(Error::usage(format!("the index is outside of the axis, which has {extent} elements")));
            }
            return Ok((Steps { start: index as u64, step: 1, count: 1 }, true));
        }
        [start, stop] => (optional(start)?, optional(stop)?, None),
        [start, stop, step] => (optional(start)?, optional(stop)?, optional(step)?),
        _ => return Err(Error::usage("the selection has more than two colons")),
    };
    let step = step.unwrap_or(1);
    if step < 1 {
        return Err(Error::usage(format!("the step {step} is not positive")));
    }
    let clip = |position: i128| from_end(position).clamp(0, len);
    let (start, stop) = (clip(start.unwrap_or(0)), clip(stop.unwrap_or(len)));
    let count = (stop - start).max(0).unsigned_abs().div_ceil(step.unsigned_abs());
    let step = if count > 1 { step as u64 } else { 1 };
    Ok((Steps { start: start as u64, step, count: count as u64 }, false))
}

/// Cuts a selection into blocks, in the order of the elements.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    axes: Vec<Steps>,
    /// Axis that is cut, 0 for the slowest: whole faster axes, one index of each slower axis.
    axis: usize,
    /// Selected indices of a block on that axis; the last block may have fewer.
    extent: u64,
    /// Start of the next block in selected indices, from the slowest axis to the one that is cut.
    next: Option<Vec<u64>>,
}

impl Blocks {
    /// Blocks of 1 to `elements` elements; an empty selection has none.
    pub(crate) fn new(axes: &[Steps], elements: u64) -> Self {
        let is_empty = axes.iter().any(|axis| axis.count == 0);
        let (mut axis, mut inner) = (axes.len(), 1u64);
        while axis > 0 {
            let with = inner.saturating_mul(axes[axis - 1].count);
            if with > elements.max(1) {
                break;
            }
            inner = with;
            axis -= 1;
        }
        // whole axes from `axis` on fit; the one before is cut
        let (axis, extent) = match axis.checked_sub(1) {
            Some(cut) => (cut, (elements / inner).max(1)),
            None => (0, axes.first().map_or(1, |axis| axis.count)),
        };
        let next = (!is_empty).then(|| vec![0; axes.len().min(axis + 1)]);
        Blocks { axes: axes.to_vec(), axis, extent, next }
    }
}

impl Iterator for Blocks {
    type Item = Vec<Steps>;

    fn next(&mut self) -> Option<Vec<Steps>> {
        let next = self.next.as_mut()?;
        let mut block = self.axes.clone();
        for (position, (axis, steps)) in next.iter().zip(&mut block).enumerate() {
            let count = if position == self.axis { self.extent.min(steps.count - axis) } else { 1 };
            *steps = Steps { start: steps.start + axis * steps.step, step: steps.step, count };
        }
        // the odometer
        let mut axis = next.len();
        loop {
            if axis == 0 {
                self.next = None;
                break;
            }
            axis -= 1;
            next[axis] += if axis == self.axis { self.extent } else { 1 };
            if next[axis] < self.axes[axis].count {
                break;
            }
            next[axis] = 0;
        }
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str, extents: &[u64]) -> Option<Vec<u64>> {
        parse(Some(text), extents).ok().map(|selected| selected.shape)
    }

    fn elements_of(axes: &[Steps]) -> Vec<Vec<u64>> {
        let mut all = vec![vec![]];
        for axis in axes {
            let positions: Vec<u64> = (0..axis.count).map(|number| axis.start + number * axis.step).collect();
            all = all.iter().flat_map(|at: &Vec<u64>| positions.iter().map(|&p| [&at[..], &[p]].concat())).collect();
        }
        all
    }

    #[test]
    fn selections_are_those_of_numpy() {
        let extents = [6, 4];
        for (text, expected) in [
            ("0", Some(vec![4])),
            ("-6", Some(vec![4])),
            ("0,1", Some(vec![])),
            (" 1 , 2 ", Some(vec![])),
            ("0,:", Some(vec![4])),
            ("::2", Some(vec![3, 4])),
            ("1:6:4,1:3", Some(vec![2, 2])),
            ("5:2", Some(vec![0, 4])),
            ("0:100", Some(vec![6, 4])),
            ("-3:", Some(vec![3, 4])),
            ("-100:2", Some(vec![2, 4])),
            ("9", None),
            ("-7", None),
            ("0,0,0", None),
            ("...", None),
            ("", None),
            ("1,", None),
            ("0.5", None),
            ("::-1", None),
            ("0:1:0", None),
            ("0:1:1:1", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(shape(text, &extents), expected, "{text}");
        }
        assert_eq!(parse(None, &extents).unwrap().shape, extents);
        assert_eq!(parse(Some("1:6:4"), &[6]).unwrap().axes, [Steps { start: 1, step: 4, count: 2 }]);
        assert!(parse(None, &[]).unwrap().shape.is_empty());
        assert!(parse(Some(":"), &[]).is_err());
    }

    #[test]
    fn blocks_are_all_elements_in_order() {
        for text in ["", "0", "1,2,3", "::2,1:4:2", ":,:,2:3", "3:3", "1:2,::3,::5"] {
            let selected = parse(Some(text).filter(|text| !text.is_empty()), &[5, 4, 7]).unwrap();
            for most in [0, 1, 2, 3, 7, 8, 27, 28, 29, 60, 140, 1000] {
                let blocks: Vec<_> = Blocks::new(&selected.axes, most).collect();
                let together: Vec<_> = blocks.iter().flat_map(|block| elements_of(block)).collect();
                assert_eq!(together, elements_of(&selected.axes), "{text} {most}");
                assert!(blocks.iter().all(|block| elements_of(block).len() as u64 <= most.max(1)), "{text} {most}");
            }
        }
        assert_eq!(Blocks::new(&[], 10).collect::<Vec<_>>(), [vec![]]);
    }
}
