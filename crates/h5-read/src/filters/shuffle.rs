//! Shuffle: first the first bytes of all elements, then all second bytes, and so on. Bytes that are
//! less than an element follow as they are.

use crate::error::{Error, Result};

/// Elements that are moved together, so that their bytes stay in the cache of the processor.
const BLOCK: usize = 1024;

pub(super) fn undo(parameters: &[u32], data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let Some(&size) = parameters.first().filter(|&&size| size > 0) else {
        return Err(Error::damaged("the parameters do not say the size of elements"));
    };
    let size = size as usize;
    let whole = data.len() - data.len() % size;
    out.resize(data.len(), 0);
    let (data, data_rest) = data.split_at(whole);
    let (out, out_rest) = out.split_at_mut(whole);
    out_rest.copy_from_slice(data_rest);
    match size {
        1 => out.copy_from_slice(data),
        2 => fixed::<2>(data, out),
        4 => fixed::<4>(data, out),
        8 => fixed::<8>(data, out),
        16 => fixed::<16>(data, out),
        _ => any(size, data, out),
    }
    Ok(())
}

fn fixed<const N: usize>(data: &[u8], out: &mut [u8]) {
    let (elements, _) = out.as_chunks_mut::<N>();
    let count = elements.len();
    for (number, block) in elements.chunks_mut(BLOCK).enumerate() {
        let start = number * BLOCK;
        let columns: [&[u8]; N] = std::array::from_fn(|byte| {
            let column = data.get(byte * count + start..).unwrap_or_default();
            column.get(..block.len()).unwrap_or_default()
        });
        for (at, element) in block.iter_mut().enumerate() {
            *element = std::array::from_fn(|byte| columns[byte].get(at).copied().unwrap_or_default());
        }
    }
}

fn any(size: usize, data: &[u8], out: &mut [u8]) {
    let count = out.len() / size;
    if count == 0 {
        return;
    }
    for (byte, column) in data.chunks_exact(count).enumerate() {
        for (element, &value) in out.chunks_exact_mut(size).zip(column) {
            if let Some(place) = element.get_mut(byte) {
                *place = value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_every_size() {
        for size in [1usize, 2, 3, 4, 7, 8, 16, 20] {
            for bytes in [0, 1, size, 5 * size + size / 2, 3000 * size + 1] {
                let plain: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 256) as u8).collect();
                let count = bytes / size;
                let mut shuffled: Vec<u8> =
                    (0..size).flat_map(|byte| (0..count).map(move |at| at * size + byte)).map(|at| plain[at]).collect();
                shuffled.extend(&plain[count * size..]);
                let mut out = Vec::new();
                undo(&[size as u32], &shuffled, &mut out).unwrap();
                assert_eq!(out, plain, "{bytes} bytes in elements of {size}");
            }
        }
        assert!(undo(&[], b"abc", &mut Vec::new()).is_err());
        assert!(undo(&[0], b"abc", &mut Vec::new()).is_err());
    }
}
