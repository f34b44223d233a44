//! The checksum of a MultiFile's blocks and header, CRC-32/BZIP2. formats/table.md 5.6.

/// Polynomial 0x04C11DB7, most significant bit first, all ones at the start, inverted at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crc(u32);

/// Bytes per step.
const STEP: usize = 16;

/// `TABLES[n][b]` is the contribution of byte value `b` if `n` more bytes follow it.
static TABLES: [[u32; 256]; STEP] = tables();

const fn tables() -> [[u32; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut later = 1;
    while later < STEP {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[later - 1][byte];
            tables[later][byte] = crc << 8 ^ tables[0][(crc >> 24) as usize];
            byte += 1;
        }
        later += 1;
    }
    tables
}

impl Crc {
    pub(super) fn new() -> Self {
        Crc(u32::MAX)
    }

    pub(super) fn of(bytes: &[u8]) -> u32 {
        let mut crc = Crc::new();
        crc.update(bytes);
        crc.finish()
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        let mut crc = self.0;
        let (steps, rest) = bytes.as_chunks::<STEP>();
        for step in steps {
            let mut step = *step;
            for (byte, state) in step.iter_mut().zip(crc.to_be_bytes()) {
                *byte ^= state;
            }
            crc = 0;
            for (table, byte) in TABLES.iter().rev().zip(step) {
                crc ^= table[usize::from(byte)];
            }
        }
        for byte in rest {
            crc = crc << 8 ^ TABLES[0][usize::from((crc >> 24) as u8 ^ byte)];
        }
        self.0 = crc;
    }

    pub(super) fn zeros(&mut self, mut count: u64) {
        const ZEROS: [u8; 4096] = [0; 4096];
        while count > 0 {
            let part = count.min(ZEROS.len() as u64);
            self.update(&ZEROS[..part as usize]);
            count -= part;
        }
    }

    pub(super) fn finish(self) -> u32 {
        !self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value_of_the_catalogue() {
        assert_eq!(Crc::of(b"123456789"), 0xfc89_1918);
        assert_eq!(Crc::of(b""), 0);
    }

    #[test]
    fn pieces_and_steps_give_what_single_bytes_give() {
        let bytes: Vec<u8> = (0..1000_u32).map(|i| (i * i % 251) as u8).collect();
        let mut single = Crc::new();
        bytes.iter().for_each(|byte| single.update(&[*byte]));
        for cut in [0, 1, 15, 16, 17, 500, 999] {
            let mut crc = Crc::new();
            crc.update(&bytes[..cut]);
            crc.update(&bytes[cut..]);
            assert_eq!(crc, single);
        }
        let mut zeros = Crc::new();
        zeros.zeros(5000);
        assert_eq!(zeros.finish(), Crc::of(&[0; 5000]));
    }
}
