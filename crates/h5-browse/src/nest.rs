//! Writes the brackets and commas of nested JSON lists around elements that come in pieces.

use crate::selection::elements;

/// Position in an array that is written as nested JSON lists.
#[derive(Debug, Clone)]
pub(crate) struct Nest {
    shape: Vec<u64>,
    /// Next element, slowest axis first.
    at: Vec<u64>,
    /// Elements still to be written.
    left: u64,
}

impl Nest {
    /// `shape` has the slowest axis first. Nothing is written before [`elements`](Self::elements).
    pub(crate) fn new(shape: &[u64]) -> Self {
        Nest { shape: shape.to_vec(), at: vec![0; shape.len()], left: elements(shape) }
    }

    /// Lists of an array without elements: `[[],[]]`.
    pub(crate) fn empty(shape: &[u64], out: &mut Vec<u8>) {
        let Some((&extent, inner)) = shape.split_first() else { return };
        out.push(b'[');
        for number in 0..extent {
            if number > 0 {
                out.push(b',');
            }
            Self::empty(inner, out);
        }
        out.push(b']');
    }

    /// Lists, inner ones included, of an array without elements.
    pub(crate) fn empty_lists(shape: &[u64]) -> u64 {
        let mut lists = 1u64;
        let mut outer = 1u64;
        for &extent in shape {
            if extent == 0 {
                break;
            }
            outer = outer.saturating_mul(extent);
            lists = lists.saturating_add(outer);
        }
        lists
    }

    /// `write` gets runs in one innermost list: first element, from 0 in this call, and length.
    pub(crate) fn elements(
        &mut self,
        count: usize,
        out: &mut Vec<u8>,
        mut write: impl FnMut(usize, usize, &mut Vec<u8>),
    ) {
        let mut done = 0;
        while done < count && self.left > 0 {
            let Some((&extent, outer)) = self.shape.split_last() else {
                write(done, 1, out);
                self.left = 0;
                return;
            };
            let last = self.shape.len() - 1;
            let position = self.at[last];
            if position == 0 {
                // every list that begins here
                let opens = 1 + self.at[..last].iter().rev().take_while(|&&position| position == 0).count();
                let begun = self.at[..last].iter().any(|&position| position > 0);
                if begun {
                    out.push(b',');
                }
                out.extend(std::iter::repeat_n(b'[', opens));
            } else {
                out.push(b',');
            }
            let run = usize::try_from(extent - position).unwrap_or(usize::MAX).min(count - done);
            write(done, run, out);
            done += run;
            self.left -= run as u64;
            self.at[last] += run as u64;
            if self.at[last] == extent {
                // every list that ends here
                out.push(b']');
                self.at[last] = 0;
                for (axis, &extent) in outer.iter().enumerate().rev() {
                    self.at[axis] += 1;
                    if self.at[axis] < extent {
                        break;
                    }
                    self.at[axis] = 0;
                    out.push(b']');
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_close_where_they_should_however_the_pieces_fall() {
        for (shape, expected) in [
            (&[][..], "0"),
            (&[1], "[0]"),
            (&[3], "[0,1,2]"),
            (&[2, 3], "[[0,1,2],[3,4,5]]"),
            (&[2, 1, 2], "[[[0,1]],[[2,3]]]"),
            (&[2, 2, 1], "[[[0],[1]],[[2],[3]]]"),
        ] {
            let total = shape.iter().product::<u64>() as usize;
            for piece in 1..=total {
                let (mut nest, mut out, mut number) = (Nest::new(shape), Vec::new(), 0);
                for start in (0..total).step_by(piece) {
                    nest.elements(piece.min(total - start), &mut out, |_, run, out| {
                        let run: Vec<String> = (number..number + run).map(|number| number.to_string()).collect();
                        number += run.len();
                        out.extend(run.join(",").bytes());
                    });
                }
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{shape:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn lists_without_elements() {
        for (shape, expected) in [(&[0][..], "[]"), (&[0, 3], "[]"), (&[2, 0], "[[],[]]"), (&[2, 0, 5], "[[],[]]")] {
            let mut out = Vec::new();
            Nest::empty(shape, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert_eq!(Nest::empty_lists(shape), expected.matches('[').count() as u64);
        }
    }
}
