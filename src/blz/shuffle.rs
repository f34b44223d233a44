//! Blosc's shuffles, undone.

/// Appends the elements of which `planes` has first all first bytes, then all second ones. Bytes after the last whole element stay.
pub(super) fn unshuffle_bytes(planes: &[u8], typesize: usize, out: &mut Vec<u8>) {
    let elements = planes.len() / typesize;
    let start = out.len();
    out.resize(start + elements * typesize, 0);
    let target = &mut out[start..];
    match typesize {
        2 => fixed::<2>(planes, elements, target),
        4 => fixed::<4>(planes, elements, target),
        8 => fixed::<8>(planes, elements, target),
        16 => fixed::<16>(planes, elements, target),
        _ => {
            for (byte, plane) in planes.chunks_exact(elements.max(1)).take(typesize).enumerate() {
                for (element, &value) in plane.iter().enumerate() {
                    target[element * typesize + byte] = value;
                }
            }
        }
    }
    out.extend_from_slice(&planes[elements * typesize..]);
}

fn fixed<const N: usize>(planes: &[u8], elements: usize, target: &mut [u8]) {
    let plane: [&[u8]; N] = std::array::from_fn(|byte| &planes[byte * elements..(byte + 1) * elements]);
    for (element, out) in target.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        *out = std::array::from_fn(|byte| plane[byte][element]);
    }
}

/// Appends the elements of which `planes` has the bits in planes, one for each bit of an element. Bytes after the last whole
/// element stay, and so do all if the number of elements is not a multiple of 8.
pub(super) fn unshuffle_bits(planes: &[u8], typesize: usize, out: &mut Vec<u8>) {
    let elements = planes.len() / typesize;
    if !elements.is_multiple_of(8) || elements == 0 {
        out.extend_from_slice(planes);
        return;
    }
    let plane_bytes = elements / 8;
    let start = out.len();
    out.resize(start + elements * typesize, 0);
    let target = &mut out[start..];
    for byte in 0..typesize {
        for group in 0..plane_bytes {
            // the bits of one byte of eight elements: an 8 by 8 matrix, transposed
            let rows: [u8; 8] = std::array::from_fn(|bit| planes[(8 * byte + bit) * plane_bytes + group]);
            let columns = transpose(u64::from_le_bytes(rows)).to_le_bytes();
            for (element, value) in columns.into_iter().enumerate() {
                target[(8 * group + element) * typesize + byte] = value;
            }
        }
    }
    out.extend_from_slice(&planes[elements * typesize..]);
}

/// Transposes a matrix of 8 by 8 bits: bit 8 i + j becomes bit 8 j + i.
fn transpose(mut x: u64) -> u64 {
    let mut swap = |mask: u64, shift: u32| {
        let t = (x ^ (x >> shift)) & mask;
        x ^= t ^ (t << shift);
    };
    swap(0x00aa_00aa_00aa_00aa, 7);
    swap(0x0000_cccc_0000_cccc, 14);
    swap(0x0000_0000_f0f0_f0f0, 28);
    x
}
