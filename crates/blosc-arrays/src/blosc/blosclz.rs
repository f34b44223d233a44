//! Decoder of BloscLZ, which stores literal bytes and references to earlier bytes. Lengths are in
//! bytes.

/// References at least this far back have a distance field that is two bytes longer.
const FAR: usize = 8192;

/// Most literal bytes that follow one control byte.
const MAX_LITERALS: usize = 32;
/// Bytes that a reference copies at a time, if source and target do not overlap.
const PIECE: usize = 16;

/// `None` if the data are damaged, or longer than `out`; else the number of bytes.
pub(super) fn decode(data: &[u8], out: &mut [u8]) -> Option<usize> {
    let Some((first, mut rest)) = data.split_first() else { return Some(0) };
    let (mut control, mut end) = (usize::from(first & 31), 0);
    loop {
        if control < 32 {
            let (literals, after) = rest.split_at_checked(control + 1)?;
            // a copy of a fixed length is a few instructions, and later ones overwrite what is too
            // much of it
            match (rest.first_chunk::<MAX_LITERALS>(), out.get_mut(end..)?.first_chunk_mut()) {
                (Some(from), Some(to)) => *to = *from,
                _ => out.get_mut(end..end + literals.len())?.copy_from_slice(literals),
            }
            (rest, end) = (after, end + literals.len());
        } else {
            let (mut count, high) = ((control >> 5) - 1, (control & 31) << 8);
            if count == 6 {
                loop {
                    let more = next(&mut rest)?;
                    count += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let low = next(&mut rest)?;
            count += 3;
            let mut distance = high + low + 1;
            if low == 255 && high == 31 << 8 {
                distance = (next(&mut rest)? << 8 | next(&mut rest)?) + FAR;
            }
            let from = end.checked_sub(distance)?;
            if count > out.len() - end {
                return None;
            }
            if distance >= PIECE && out.len() - end - count >= PIECE {
                for done in (0..count).step_by(PIECE) {
                    out.copy_within(from + done..from + done + PIECE, end + done);
                }
            } else {
                // a copy that overlaps itself repeats what it began with
                let (mut done, mut step) = (0, distance);
                while done < count {
                    let len = step.min(count - done);
                    out.copy_within(from..from + len, end + done);
                    done += len;
                    step += len;
                }
            }
            end += count;
        }
        match rest.split_first() {
            Some((byte, after)) => (control, rest) = (usize::from(*byte), after),
            None => return Some(end),
        }
    }
}

fn next(rest: &mut &[u8]) -> Option<usize> {
    let (byte, after) = rest.split_first()?;
    *rest = after;
    Some(usize::from(*byte))
}
