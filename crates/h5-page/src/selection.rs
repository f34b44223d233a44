//! Selections in numpy's basic syntax: integers and slices, separated by commas.

use std::ops::Range;

use crate::error::{Refusal, Result};

/// Selected indices on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) start: u64,
    /// Distance of two indices, at least 1.
    pub(crate) step: u64,
    pub(crate) count: u64,
    /// An integer instead of a slice: the axis is not in the result.
    pub(crate) is_index: bool,
}

impl Axis {
    /// The indices from the first selected one to the last.
    pub(crate) fn range(&self) -> Range<u64> {
        let span = self.count.checked_sub(1).map_or(0, |last| last * self.step + 1);
        self.start..self.start + span
    }
}

/// `0,:,2:8:2`, slowest axis first; axes after those that `text` names are selected whole.
pub(crate) fn parse(text: Option<&str>, extents: &[u64]) -> Result<Vec<Axis>> {
    let members: Vec<&str> = text.map(|text| text.split(',').collect()).unwrap_or_default();
    if members.len() > extents.len() {
        let (members, axes) = (members.len(), extents.len());
        return Err(Refusal::new(format!("the selection has {members} members, the dataset {axes} axes")));
    }
    let parse = |(axis, &extent): (usize, &u64)| match members.get(axis) {
        Some(member) => self::axis(member, extent)
            .map_err(|error| error.within(&format!("the selection {member:?} on axis {axis}"))),
        None => Ok(Axis { start: 0, step: 1, count: extent, is_index: false }),
    };
    extents.iter().enumerate().map(parse).collect()
}

fn axis(member: &str, extent: u64) -> Result<Axis> {
    let len = i128::from(extent);
    let number = |text: &str| match text.trim() {
        "" => Ok(None),
        text => match text.parse::<i64>() {
            Ok(number) if number < 0 => Ok(Some(i128::from(number) + len)),
            Ok(number) => Ok(Some(number.into())),
            Err(_) => Err(Refusal::new(format!("{text:?} is not an integer"))),
        },
    };
    let parts: Vec<&str> = member.split(':').collect();
    let (start, stop, step) = match parts[..] {
        [index] => {
            let index = number(index)?.filter(|index| (0..len).contains(index));
            let outside = || Refusal::new(format!("no index of the axis, which has {extent} elements, is given"));
            return Ok(Axis { start: index.ok_or_else(outside)? as u64, step: 1, count: 1, is_index: true });
        }
        [start, stop] => (number(start)?, number(stop)?, ""),
        [start, stop, step] => (number(start)?, number(stop)?, step.trim()),
        _ => return Err(Refusal::new("the selection has more than two colons")),
    };
    let step = if step.is_empty() { Some(1) } else { step.parse().ok().filter(|&step: &i64| step > 0) };
    let step = step.ok_or_else(|| Refusal::new("the step is not a positive integer"))?.unsigned_abs();
    let (start, stop) = (start.unwrap_or(0).clamp(0, len), stop.unwrap_or(len).clamp(0, len));
    let count = ((stop - start).max(0) as u64).div_ceil(step);
    Ok(Axis { start: start as u64, step: if count > 1 { step } else { 1 }, count, is_index: false })
}

/// Appends the selected ones of the elements in `bytes`, which has those of the axes' ranges.
pub(crate) fn pick(axes: &[Axis], bytes: &[u8], out: &mut Vec<u8>) {
    let Some((axis, inner)) = axes.split_first() else { return out.extend_from_slice(bytes) };
    let range = axis.range();
    let part = bytes.len() / ((range.end - range.start) as usize).max(1);
    if part > 0 {
        bytes.chunks_exact(part).step_by(axis.step as usize).for_each(|bytes| pick(inner, bytes, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_those_of_numpy() {
        let extents = [6, 4];
        for (text, expected) in [
            ("0", Some("4")),
            ("-6", Some("4")),
            (" 1 , 2 ", Some("")),
            ("::2", Some("3 4")),
            ("1:6:4,1:3", Some("2 2")),
            ("5:2", Some("0 4")),
            ("-3:100", Some("3 4")),
            ("9", None),
            ("-7", None),
            ("0,0,0", None),
            ("", None),
            ("0.5", None),
            ("::-1", None),
            ("0:1:1:1", None),
        ] {
            let shape = parse(Some(text), &extents).ok().map(|axes| {
                let counts = axes.iter().filter(|axis| !axis.is_index).map(|axis| axis.count.to_string());
                counts.collect::<Vec<_>>().join(" ")
            });
            assert_eq!(shape.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn elements_at_steps() {
        let axes = parse(Some("1:6:2,::3"), &[6, 4]).unwrap();
        assert_eq!(axes.iter().map(Axis::range).collect::<Vec<_>>(), [1..6, 0..4]);
        let mut out = Vec::new();
        pick(&axes, &(4..24).collect::<Vec<u8>>(), &mut out);
        assert_eq!(out, [4, 7, 12, 15, 20, 23]);
    }
}
