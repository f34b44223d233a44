//! Random damage to the bytes of a file, as a value that proptest can make smaller.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Numbers that often reveal wrong handling of counts, offsets and extents.
const SUSPECTS: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0xff,
    0xffff,
    0x0001_0000,
    0x00ff_ffff,
    0x1000_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
    1 << 60,
    u64::MAX,
];

/// One way to damage the bytes of any file, for tests.
#[derive(Debug, Clone)]
pub struct Mutation {
    place: Place,
    change: Change,
}

/// Where damage is put: headers are at the start of files, indices often at the end.
#[derive(Debug, Clone)]
enum Place {
    /// A random place in this many bytes at the start of the file.
    First(usize, Index),
    /// A random place in this many bytes at the end of the file.
    Last(usize, Index),
    Anywhere(Index),
}

#[derive(Debug, Clone)]
enum Change {
    Flip { bit: u8 },
    Byte(u8),
    Field { value: u64, width: usize, is_big: bool },
    Cut,
    Remove(Index),
    Double(Index),
}

/// Most bytes that one mutation removes or doubles.
const PIECE_BYTES: usize = 64;

/// A proptest strategy for one random mutation.
pub fn mutation() -> impl Strategy<Value = Mutation> {
    let place = prop_oneof![
        any::<Index>().prop_map(|index| Place::First(64, index)),
        any::<Index>().prop_map(|index| Place::First(700, index)),
        any::<Index>().prop_map(|index| Place::Last(300, index)),
        any::<Index>().prop_map(Place::Anywhere),
    ];
    let field = (select(&SUSPECTS[..]), prop_oneof![3 => Just(4), 1 => Just(8)], any::<bool>());
    let change = prop_oneof![
        3 => (0..8u8).prop_map(|bit| Change::Flip { bit }),
        2 => any::<u8>().prop_map(Change::Byte),
        4 => field.prop_map(|(value, width, is_big)| Change::Field { value, width, is_big }),
        1 => Just(Change::Cut),
        1 => any::<Index>().prop_map(Change::Remove),
        1 => any::<Index>().prop_map(Change::Double),
    ];
    (place, change).prop_map(|(place, change)| Mutation { place, change })
}

/// A proptest strategy for one to `most` random mutations, more often few.
pub fn mutations(most: usize) -> impl Strategy<Value = Vec<Mutation>> {
    prop_oneof![3 => vec(mutation(), 1), 1 => vec(mutation(), 1..=most)]
}

impl Mutation {
    /// Damages `bytes`, and returns a description of the damage.
    pub fn apply(&self, bytes: &mut Vec<u8>) -> String {
        if bytes.is_empty() {
            bytes.push(1);
            return "a byte in an empty file".into();
        }
        let len = bytes.len();
        let at = match &self.place {
            Place::First(most, index) => index.index(len.min(*most)),
            Place::Last(most, index) => len - 1 - index.index(len.min(*most)),
            Place::Anywhere(index) => index.index(len),
        };
        let piece = |index: &Index| at..at + 1 + index.index((len - at).min(PIECE_BYTES));
        match &self.change {
            Change::Flip { bit } => {
                bytes[at] ^= 1 << bit;
                format!("bit {bit} of byte {at} flipped")
            }
            Change::Byte(value) => {
                bytes[at] = *value;
                format!("byte {at} = {value:#04x}")
            }
            &Change::Field { value, width, is_big } => {
                let width = width.min(len - at);
                let mut field = value.to_le_bytes()[..width].to_vec();
                if is_big {
                    field.reverse();
                }
                bytes[at..at + width].copy_from_slice(&field);
                format!("{width} bytes at {at} = {value:#x} {}", if is_big { "big" } else { "little" })
            }
            Change::Cut => {
                bytes.truncate(at);
                format!("cut at {at}")
            }
            Change::Remove(index) => {
                let piece = piece(index);
                let count = piece.len();
                bytes.drain(piece);
                format!("{count} bytes at {at} removed")
            }
            Change::Double(index) => {
                let copied = bytes[piece(index)].to_vec();
                let count = copied.len();
                bytes.splice(at..at, copied);
                format!("{count} bytes at {at} doubled")
            }
        }
    }
}
