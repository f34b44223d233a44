//! Packed Bools: element `i` is bit `i % 8` of byte `i / 8`, least significant first, everywhere in
//! casacore's tables (CTDS, the casacore table data system).

pub fn packed_len(count: u64) -> u64 {
    count.div_ceil(8)
}

/// Appends `count` Bools from `first_bit` on, least significant bit of each byte first.
pub fn unpack(bits: &[u8], first_bit: usize, count: usize, out: &mut Vec<bool>) {
    let start = out.len();
    out.resize(start + count, false);
    let mut to = &mut out[start..];
    let mut bit = first_bit;
    while !to.is_empty() && !bit.is_multiple_of(8) {
        to[0] = bits[bit / 8] >> (bit % 8) & 1 != 0;
        to = &mut to[1..];
        bit += 1;
    }
    let (whole, rest) = to.as_chunks_mut::<8>();
    for (eight, &byte) in whole.iter_mut().zip(&bits[bit / 8..]) {
        *eight = SPREAD[usize::from(byte)];
    }
    bit += whole.len() * 8;
    for (i, value) in rest.iter_mut().enumerate() {
        *value = bits[bit / 8] >> i & 1 != 0;
    }
}

/// The eight bits of each value of a byte, least significant first.
static SPREAD: [[bool; 8]; 256] = {
    let mut table = [[false; 8]; 256];
    let mut at = 0;
    while at < 256 * 8 {
        table[at / 8][at % 8] = (at / 8) >> (at % 8) & 1 != 0;
        at += 1;
    }
    table
};

/// Least significant bit first; unused bits of the last byte are 0.
pub fn pack(values: &[bool], out: &mut Vec<u8>) {
    pack_bytes(bytemuck::cast_slice(values), out);
}

/// Like [`pack`], from bytes that are 0 for false.
pub fn pack_bytes(values: &[u8], out: &mut Vec<u8>) {
    let (whole, rest) = values.as_chunks::<8>();
    out.extend(whole.iter().map(|&eight| pack_eight(eight)));
    if !rest.is_empty() {
        let mut eight = [0; 8];
        eight[..rest.len()].copy_from_slice(rest);
        out.push(pack_eight(eight));
    }
}

/// Overwrites bits from `first_bit` on; the others keep their values.
pub fn pack_into(values: &[bool], bits: &mut [u8], first_bit: usize) {
    let set = |byte: &mut u8, bit: usize, value: bool| *byte = *byte & !(1 << bit) | u8::from(value) << bit;
    let lead = values.len().min((8 - first_bit % 8) % 8);
    let (lead, values) = values.split_at(lead);
    for (i, &value) in lead.iter().enumerate() {
        set(&mut bits[first_bit / 8], first_bit % 8 + i, value);
    }
    let bits = &mut bits[first_bit.div_ceil(8)..];
    let (whole, rest) = values.as_chunks::<8>();
    for (byte, eight) in bits.iter_mut().zip(whole) {
        *byte = pack_eight(eight.map(u8::from));
    }
    for (i, &value) in rest.iter().enumerate() {
        set(&mut bits[whole.len()], i, value);
    }
}

/// The bytes are 0 for false.
fn pack_eight(values: [u8; 8]) -> u8 {
    const LOW_SEVEN: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    let values = u64::from_le_bytes(values);
    // the highest bit of each byte becomes 1 if any of its bits is
    let ones = (((values & LOW_SEVEN) + LOW_SEVEN) | values) >> 7 & LOWEST;
    // the factor moves bit 8 i to bit 56 + i, and no two bits to the same place
    (ones.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_the_inverse() {
        let bits = [true, false, true, true, false, false, false, false, true];
        let mut packed = Vec::new();
        pack(&bits, &mut packed);
        assert_eq!(packed, [0x0d, 0x01]);
    }

    #[test]
    fn every_byte_but_0_is_true() {
        for pattern in 0..=255u8 {
            for value in [1, 2, 0x7f, 0x80, 0xff] {
                let bytes: Vec<u8> = (0..8).map(|bit| if pattern >> bit & 1 == 1 { value } else { 0 }).collect();
                for len in 0..=8 {
                    let mut packed = Vec::new();
                    pack_bytes(&bytes[..len], &mut packed);
                    let expected = (u32::from(pattern) & ((1 << len) - 1)) as u8;
                    assert_eq!(packed, vec![expected; len.min(1)], "{pattern} {value} {len}");
                }
            }
        }
    }

    #[test]
    fn packs_between_other_bits() {
        for background in [0x00, 0xff] {
            for first in 0..24 {
                for count in 0..=32 - first {
                    let values: Vec<bool> = (0..count).map(|i| i % 3 == 0).collect();
                    let mut bits = [background; 4];
                    pack_into(&values, &mut bits, first);
                    let mut expected = vec![background != 0; 32];
                    expected[first..first + count].copy_from_slice(&values);
                    let mut all = Vec::new();
                    unpack(&bits, 0, 32, &mut all);
                    assert_eq!(all, expected, "{first}+{count}");
                }
            }
        }
    }

    #[test]
    fn documented_example() {
        // formats/table.md 1.2: T F T T F F F F T is 0D 01
        let mut out = Vec::new();
        unpack(&[0x0d, 0x01], 0, 9, &mut out);
        assert_eq!(out, [true, false, true, true, false, false, false, false, true]);
    }

    #[test]
    fn any_start_and_length() {
        let bits = [0b1010_0110, 0b0101_1100, 0b1111_0000, 0b0011_0011];
        let all: Vec<bool> = (0..32).map(|i| bits[i / 8] >> (i % 8) & 1 != 0).collect();
        for first in 0..32 {
            for count in 0..=32 - first {
                let mut out = Vec::new();
                unpack(&bits, first, count, &mut out);
                assert_eq!(out, all[first..first + count], "{first}+{count}");
            }
        }
    }
}
