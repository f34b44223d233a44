//! Which blocks hold a file of a MultiFile, as runs of consecutive block numbers.

use std::ops::Range;

use crate::aipsio::{Decoder, Encoder};
use crate::error::Result;

/// Entry i (from 0) is the block with the bytes [i·B, (i+1)·B) of the file, for blocks of B bytes.
/// Version 2 stores the number of items, then i64 items: a block number, or -k for the k numbers
/// after the last. Runs, because a damaged file may claim 2^60 blocks. formats/table.md 5.4.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Index {
    /// Ordered as the file's bytes; none is empty.
    runs: Vec<Run>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    /// Position of the first block among the file's blocks.
    entry: u64,
    blocks: Range<u64>,
}

impl Run {
    fn len(&self) -> u64 {
        self.blocks.end - self.blocks.start
    }
}

impl Index {
    /// Numbers must be above 0 and below `blocks`, the number of blocks in the MultiFile.
    pub(super) fn decode(d: &mut Decoder<'_>, what: &str, blocks: u64) -> Result<Self> {
        let mut index = Index::default();
        for _ in 0..count(d, what, 8)? {
            let start = d.position();
            let item = d.i64(what)?;
            let next = index.runs.last().map(|run| run.blocks.end);
            let range = match (u64::try_from(item), next) {
                (Ok(block), _) => Some(block..block.saturating_add(1)),
                (Err(_), Some(next)) => Some(next..next.saturating_add(item.unsigned_abs())),
                (Err(_), None) => None,
            };
            let Some(range) = range else {
                return Err(d.error_at(start, format!("{what}: {item} where the first block number is expected")));
            };
            index.push_checked(d, start, what, range, blocks)?;
        }
        Ok(index)
    }

    /// Version 1: a `Block` of i64, with the same limits as in [`decode`](Self::decode).
    pub(super) fn decode_block(d: &mut Decoder<'_>, what: &str, blocks: u64) -> Result<Self> {
        let start = d.position();
        let mut index = Index::default();
        for block in d.block_uint(what, true)? {
            index.push_checked(d, start, what, block..block.saturating_add(1), blocks)?;
        }
        Ok(index)
    }

    /// Version 1: the blocks one by one.
    pub(super) fn encode_block(&self, e: &mut Encoder) {
        e.start("Block", 1);
        e.u32(self.len() as u32);
        self.ranges().flatten().for_each(|block| e.u64(block));
        e.end();
    }

    fn push_checked(&mut self, d: &Decoder<'_>, start: u64, what: &str, range: Range<u64>, blocks: u64) -> Result<()> {
        if range.start == 0 || range.end > blocks {
            let message = match range.end - range.start {
                // 0: the number after it is none
                0 | 1 => {
                    format!("{what}: block {}, but there are blocks 1 to {}", range.start, blocks.saturating_sub(1))
                }
                count => format!(
                    "{what}: {count} blocks after block {} exceed the container, which has {blocks}",
                    range.start - 1
                ),
            };
            return Err(d.error_at(start, message));
        }
        self.push(range);
        if self.len() > blocks {
            return Err(d.error_at(start, format!("{what}: more than {blocks} blocks, but the container has no more")));
        }
        Ok(())
    }

    /// Version 2.
    pub(super) fn encode(&self, e: &mut Encoder) {
        let items: usize = self.runs.iter().map(|run| if run.len() == 1 { 1 } else { 2 }).sum();
        e.u64(items as u64);
        for run in &self.runs {
            e.u64(run.blocks.start);
            if run.len() > 1 {
                e.i64(-((run.len() - 1) as i64));
            }
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.entry + run.len())
    }

    /// Block numbers from `entry` to the end of its run; `None` after the file's last block.
    pub(super) fn find(&self, entry: u64) -> Option<Range<u64>> {
        let run = self.runs.get(self.runs.partition_point(|run| run.entry <= entry).checked_sub(1)?)?;
        let start = run.blocks.start + (entry - run.entry);
        (start < run.blocks.end).then_some(start..run.blocks.end)
    }

    /// Ordered as the file's bytes.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.runs.iter().map(|run| run.blocks.clone())
    }

    pub(super) fn push(&mut self, blocks: Range<u64>) {
        let entry = self.len();
        append(&mut self.runs, Run { entry, blocks });
    }

    /// Shortens the index to its first `entries` blocks; returns the numbers of the others.
    pub(super) fn truncate(&mut self, entries: u64) -> Vec<Range<u64>> {
        let keep = self.runs.partition_point(|run| run.entry < entries);
        let mut removed: Vec<_> = self.runs.drain(keep..).map(|run| run.blocks).collect();
        if let Some(last) = self.runs.last_mut() {
            let end = last.blocks.start + (entries - last.entry).min(last.len());
            if end < last.blocks.end {
                removed.push(end..last.blocks.end);
                last.blocks.end = end;
            }
        }
        removed
    }

    /// Replaces numbers one for one, from the file's block `entry` on.
    pub(super) fn replace(&mut self, entry: u64, blocks: Range<u64>) {
        let end = entry + (blocks.end - blocks.start);
        // with the neighbours, which may now continue in the new blocks or be continued by them
        let first = self.runs.partition_point(|run| run.entry + run.len() < entry);
        let behind = self.runs.partition_point(|run| run.entry <= end);
        let mut new = Some(Run { entry, blocks });
        let mut runs = Vec::with_capacity(4);
        for run in &self.runs[first..behind] {
            let at = |entry: u64| run.blocks.start + (entry.clamp(run.entry, run.entry + run.len()) - run.entry);
            append(&mut runs, Run { entry: run.entry, blocks: run.blocks.start..at(entry) });
            if run.entry + run.len() > entry
                && let Some(new) = new.take()
            {
                append(&mut runs, new);
            }
            append(&mut runs, Run { entry: run.entry.max(end), blocks: at(end)..run.blocks.end });
        }
        self.runs.splice(first..behind, runs);
    }
}

/// Merges the run with the last one if its numbers follow directly; ignores an empty run.
fn append(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        _ if run.blocks.is_empty() => {}
        Some(last) if last.blocks.end == run.blocks.start => last.blocks.end = run.blocks.end,
        _ => runs.push(run),
    }
}

/// Fails unless at least `bytes` bytes for each item follow.
pub(super) fn count(d: &mut Decoder<'_>, what: &str, bytes: u64) -> Result<u64> {
    let start = d.position();
    let count = d.u64(what)?;
    if count > d.remaining() / bytes {
        let message = format!("{what}: {count} items announced, but only {} bytes are left", d.remaining());
        return Err(d.error_at(start, message));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::ByteOrder;

    fn packed(items: &[i64]) -> Vec<u8> {
        let mut e = Encoder::new(ByteOrder::Big);
        e.i64(items.len() as i64);
        items.iter().for_each(|&item| e.i64(item));
        e.into_bytes()
    }

    fn decode(bytes: &[u8], blocks: u64) -> Result<Index> {
        Index::decode(&mut Decoder::new(&bytes, 0, ByteOrder::Big, "header")?, "index", blocks)
    }

    fn of(ranges: &[Range<u64>]) -> Index {
        let mut index = Index::default();
        ranges.iter().for_each(|range| index.push(range.clone()));
        index
    }

    #[test]
    fn example_of_the_format() {
        let index = decode(&packed(&[10, -3, 17]), 18).unwrap();
        assert_eq!(index, of(&[10..14, 17..18]));
        assert_eq!((index.len(), index.find(2), index.find(4), index.find(5)), (5, Some(12..14), Some(17..18), None));
        let mut e = Encoder::new(ByteOrder::Big);
        index.encode(&mut e);
        assert_eq!(e.into_bytes(), packed(&[10, -3, 17]));
    }

    #[test]
    fn damaged_indices_are_errors() {
        for (items, blocks, words) in [
            (vec![-3], 9, "-3 where the first block number is expected"),
            (vec![0], 9, "block 0, but there are blocks 1 to 8"),
            (vec![9], 9, "block 9, but there are blocks 1 to 8"),
            (vec![1, -(1 << 60)], 9, "1152921504606846976 blocks after block 1 exceed the container, which has 9"),
            (vec![1, i64::MIN], 9, "blocks after block 1"),
            (vec![1, -7, 1, -7], 9, "more than 9 blocks"),
        ] {
            let message = decode(&packed(&items), blocks).unwrap_err().to_string();
            assert!(message.contains(words) && message.contains("at byte"), "{message}");
        }
        let mut bytes = packed(&[1]);
        bytes[1] = 0x10;
        let message = decode(&bytes, 9).unwrap_err().to_string();
        assert!(message.contains("announced, but only 8 bytes are left"), "{message}");
    }

    #[test]
    fn entries_are_replaced_and_cut_off() {
        let plain = |index: &Index| index.ranges().flatten().collect::<Vec<_>>();
        let start = of(&[10..15, 20..22, 30..33]);
        for entry in 0..start.len() {
            for count in 1..=start.len() - entry {
                let mut index = start.clone();
                index.replace(entry, 100..100 + count);
                let mut expected = plain(&start);
                (0..count).for_each(|i| expected[(entry + i) as usize] = 100 + i);
                assert_eq!(plain(&index), expected, "{count} at {entry}");
                assert_eq!(index.len(), start.len());
            }
        }
        for entries in 0..12 {
            let mut index = start.clone();
            let mut removed: Vec<_> = index.truncate(entries).into_iter().flatten().collect();
            let mut all = plain(&index);
            assert_eq!(all, plain(&start)[..entries.min(10) as usize]);
            all.append(&mut removed);
            all.sort();
            assert_eq!(all, plain(&start));
        }
    }
}
