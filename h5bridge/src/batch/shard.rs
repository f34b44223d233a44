//! Shards of `h5bridge batch`: the shares of a manifest's items (jobs) that each of several
//! processes does. Every process computes the same division.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

use super::manifest::Manifest;

/// Share `number`, from 0, of `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shard {
    number: u32,
    count: u32,
}

impl Default for Shard {
    fn default() -> Self {
        Shard { number: 0, count: 1 }
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (number, count) = text.split_once('/')?;
            Some(Shard { number: number.parse().ok()?, count: count.parse().ok()? })
        };
        let shard = parse().filter(|shard| shard.number < shard.count);
        shard.ok_or_else(|| format!("expected K/N with K from 0 to N-1, found {text:?}"))
    }
}

impl Shard {
    /// Items of this shard, the largest source first. In this order all items are dealt out, each
    /// to the shard with the fewest bytes so far, and among equal ones to that with the fewest
    /// items.
    pub(crate) fn items(self, manifest: &Manifest) -> Vec<u32> {
        let mut order: Vec<u32> = (0..manifest.len() as u32).collect();
        order.sort_by_key(|&item| Reverse(manifest.bytes(item as usize)));
        if self.count == 1 {
            return order;
        }
        // where sizes are equal or unknown, the number of items decides
        let mut loads: BinaryHeap<_> = (0..self.count).map(|number| Reverse((0u64, 0u32, number))).collect();
        order.retain(|&item| {
            let Some(Reverse((bytes, items, number))) = loads.pop() else { return false };
            loads.push(Reverse((bytes.saturating_add(manifest.bytes(item as usize)), items + 1, number)));
            number == self.number
        });
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::item::Item;

    #[test]
    fn shards_are_disjoint_and_even() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.ndjson");
        let line = |number: u64| {
            let bytes = if number < 5 { 0 } else { number * 7919 % 1000 };
            let item = Item::new("verify".into(), format!("/{number}"), None, Vec::new(), bytes);
            serde_json::to_string(&item).unwrap() + "\n"
        };
        std::fs::write(&path, (0..500).map(line).collect::<String>()).unwrap();
        let manifest = Manifest::open(&path).unwrap();
        for count in [1, 2, 7] {
            let mut all = Vec::new();
            let mut loads = Vec::new();
            for number in 0..count {
                let items = format!("{number}/{count}").parse::<Shard>().unwrap().items(&manifest);
                loads.push(items.iter().map(|&item| manifest.bytes(item as usize)).sum::<u64>());
                all.extend(items);
            }
            all.sort_unstable();
            assert!(all.iter().copied().eq(0..500));
            assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() < 1000, "{loads:?}");
        }
        for wrong in ["1/1", "x/2", "3", "-1/2", "0/0"] {
            assert!(wrong.parse::<Shard>().is_err());
        }
    }
}
