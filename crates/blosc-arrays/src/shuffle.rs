//! Shuffles data for compression: sorts the bytes of elements by their position in the element.
//! Reverses shuffles of bytes and of bits. Plane `k` of shuffled bytes has byte `k` of all
//! elements.

/// Elements that are shuffled at a time: the bytes at the same position of each make a 64-bit word.
const BLOCK: usize = 8;

/// Shuffles `input` into `out`, which is as long: first the first bytes of all elements of `size`
/// bytes, then the second bytes, and so on. Bytes after the last whole element stay in place.
pub fn shuffle(size: usize, input: &[u8], out: &mut [u8]) {
    match size {
        2 => transpose::<2>(input, out),
        4 => transpose::<4>(input, out),
        8 => transpose::<8>(input, out),
        16 => transpose::<16>(input, out),
        // unshuffling "elements" of count bytes is shuffling
        _ if size > 1 && input.len() / size > 1 => {
            let count = input.len() / size;
            for (i, element) in input.chunks_exact(size).enumerate() {
                element.iter().enumerate().for_each(|(byte, &value)| out[byte * count + i] = value);
            }
            out[count * size..].copy_from_slice(&input[count * size..]);
        }
        _ => out.copy_from_slice(input),
    }
}

/// Reverses [`shuffle`]: fills `out`, as long as `input`, with elements of `size` bytes.
pub fn unshuffle(size: usize, input: &[u8], out: &mut [u8]) {
    match size {
        2 => gather::<2>(input, out),
        4 => gather::<4>(input, out),
        8 => gather_words::<8>(input, out),
        16 => gather_words::<16>(input, out),
        _ if size > 1 && input.len() / size > 1 => {
            let count = input.len() / size;
            for (i, element) in out.chunks_exact_mut(size).enumerate() {
                element.iter_mut().enumerate().for_each(|(byte, value)| *value = input[byte * count + i]);
            }
            out[count * size..].copy_from_slice(&input[count * size..]);
        }
        _ => out.copy_from_slice(input),
    }
}

fn transpose<const SIZE: usize>(input: &[u8], out: &mut [u8]) {
    let (elements, rest) = input.as_chunks::<SIZE>();
    let (planes, out_rest) = out.split_at_mut(elements.len() * SIZE);
    let mut planes = planes.chunks_exact_mut(elements.len().max(1));
    let mut planes: [&mut [u8]; SIZE] = std::array::from_fn(|_| planes.next().unwrap_or_default());
    let (blocks, last) = elements.as_chunks::<BLOCK>();
    let width = SIZE.min(8);
    for (number, block) in blocks.iter().enumerate() {
        for first in (0..SIZE).step_by(8) {
            let words = transpose_words(std::array::from_fn(|element| {
                let mut word = [0; 8];
                word[..width].copy_from_slice(&block[element][first..first + width]);
                u64::from_le_bytes(word)
            }));
            for (plane, word) in planes[first..].iter_mut().zip(words) {
                plane[BLOCK * number..][..BLOCK].copy_from_slice(&word.to_le_bytes());
            }
        }
    }
    for (at, element) in (BLOCK * blocks.len()..).zip(last) {
        planes.iter_mut().zip(element).for_each(|(plane, &byte)| plane[at] = byte);
    }
    out_rest.copy_from_slice(rest);
}

/// Reverses a byte shuffle of elements of `SIZE` bytes: element n consists of byte n of each plane.
/// Compilers make vector code of this loop if `SIZE` is small.
fn gather<const SIZE: usize>(input: &[u8], out: &mut [u8]) {
    let (elements, out_rest) = out.as_chunks_mut::<SIZE>();
    let (planes, rest) = input.split_at(elements.len() * SIZE);
    let planes = planes_of::<SIZE>(planes, elements.len());
    for (i, element) in elements.iter_mut().enumerate() {
        *element = std::array::from_fn(|byte| planes[byte][i]);
    }
    out_rest.copy_from_slice(rest);
}

/// Elements that [`gather_words`] unshuffles at a time.
const GATHERED: usize = 64;

/// Elements of 8 or 16 bytes: joins four planes to words first, then the words to elements.
fn gather_words<const SIZE: usize>(input: &[u8], out: &mut [u8]) {
    let (elements, out_rest) = out.as_chunks_mut::<SIZE>();
    let (planes, rest) = input.split_at(elements.len() * SIZE);
    let planes = planes_of::<SIZE>(planes, elements.len());
    let (blocks, last) = elements.as_chunks_mut::<GATHERED>();
    let mut words = [[0; GATHERED]; 4];
    let words = &mut words[..SIZE / 4];
    let mut first = 0;
    for block in blocks {
        for (words, planes) in words.iter_mut().zip(planes.as_chunks::<4>().0) {
            let planes: [&[u8]; 4] = planes.map(|plane| &plane[first..first + GATHERED]);
            for (i, word) in words.iter_mut().enumerate() {
                *word = u32::from_le_bytes(planes.map(|plane| plane[i]));
            }
        }
        for (i, element) in block.iter_mut().enumerate() {
            for (number, words) in words.iter().enumerate() {
                element[4 * number..4 * number + 4].copy_from_slice(&words[i].to_le_bytes());
            }
        }
        first += GATHERED;
    }
    for (at, element) in (first..).zip(last) {
        *element = std::array::from_fn(|byte| planes[byte][at]);
    }
    out_rest.copy_from_slice(rest);
}

/// Splits shuffled bytes into planes of `len` bytes each.
fn planes_of<const SIZE: usize>(planes: &[u8], len: usize) -> [&[u8]; SIZE] {
    std::array::from_fn(|byte| &planes[byte * len..][..len])
}

/// Byte `i` of word `j` becomes byte `j` of word `i`; byte 0 is the least significant.
fn transpose_words(mut words: [u64; 8]) -> [u64; 8] {
    // halves of words change places with halves of the words 4 away, then quarters, then bytes
    const STEPS: [(usize, u32, u64); 3] =
        [(4, 32, 0x0000_0000_ffff_ffff), (2, 16, 0x0000_ffff_0000_ffff), (1, 8, 0x00ff_00ff_00ff_00ff)];
    for (distance, bits, mask) in STEPS {
        for i in (0..8).filter(|i| i & distance == 0) {
            let differing = (words[i] >> bits ^ words[i + distance]) & mask;
            words[i + distance] ^= differing;
            words[i] ^= differing << bits;
        }
    }
    words
}

/// Reverses a bit shuffle: `planes` holds the lowest bit of the first byte of all elements of
/// `typesize` bytes, then the next higher bit of all, and so on, byte after byte; `out`, as long,
/// receives the elements. Bytes after the last whole element are copied, and all bytes if the
/// number of elements is not a multiple of 8.
pub fn unshuffle_bits(typesize: usize, planes: &[u8], out: &mut [u8]) {
    let elements = planes.len() / typesize.max(1);
    if !elements.is_multiple_of(8) || elements == 0 {
        out.copy_from_slice(planes);
        return;
    }
    let plane_bytes = elements / 8;
    let (target, rest) = out.split_at_mut(elements * typesize);
    for byte in 0..typesize {
        for group in 0..plane_bytes {
            // the bits of one byte of eight elements: an 8 by 8 matrix, transposed
            let rows: [u8; 8] = std::array::from_fn(|bit| planes[(8 * byte + bit) * plane_bytes + group]);
            let columns = transpose_bits(u64::from_le_bytes(rows)).to_le_bytes();
            for (element, value) in columns.into_iter().enumerate() {
                target[(8 * group + element) * typesize + byte] = value;
            }
        }
    }
    rest.copy_from_slice(&planes[elements * typesize..]);
}

/// Transposes a matrix of 8 by 8 bits in a word: bit 8 i + j becomes bit 8 j + i.
fn transpose_bits(mut x: u64) -> u64 {
    let mut swap = |mask: u64, shift: u32| {
        let t = (x ^ (x >> shift)) & mask;
        x ^= t ^ (t << shift);
    };
    swap(0x00aa_00aa_00aa_00aa, 7);
    swap(0x0000_cccc_0000_cccc, 14);
    swap(0x0000_0000_f0f0_f0f0, 28);
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_is_by_byte_planes() {
        let mut out = [0; 9];
        shuffle(4, &[1, 2, 3, 4, 5, 6, 7, 8, 99], &mut out);
        assert_eq!(out, [1, 5, 2, 6, 3, 7, 4, 8, 99]);
    }

    #[test]
    fn words_and_bytes_shuffle_alike() {
        let bytes: Vec<u8> = (0..2200u32).map(|i| ((i * i) >> 2) as u8).collect();
        for size in [2, 4, 8, 16] {
            for len in [0, 1, size, 7 * size + 1, 8 * size, 17 * size + size / 2, 64 * size, 131 * size + 1] {
                let (mut out, mut back) = (vec![0; len], vec![0; len]);
                shuffle(size, &bytes[..len], &mut out);
                let count = len / size;
                let expected = |at: usize| match at < count * size {
                    true => bytes[at % count * size + at / count],
                    false => bytes[at],
                };
                assert_eq!(out, (0..len).map(expected).collect::<Vec<_>>(), "{len} bytes of {size}");
                unshuffle(size, &out, &mut back);
                assert_eq!(back, bytes[..len], "{len} bytes of {size}");
            }
        }
    }

    #[test]
    fn bits_are_put_together() {
        // eight elements of one byte: plane b has their bits b
        let mut out = [1; 9];
        unshuffle_bits(1, &[0b0000_0001, 0, 0, 0, 0, 0, 0, 0b1000_0000], &mut out[..8]);
        assert_eq!(out[..8], [1, 0, 0, 0, 0, 0, 0, 128]);
        unshuffle_bits(1, &[1, 2, 3], &mut out[..3]);
        assert_eq!(out[..3], [1, 2, 3], "not a multiple of 8 elements");
    }
}
