//! Hashes of data: BLAKE3 and SHA-256, their values, and how both are computed.

use std::fmt;

use crate::hex::{self, Hex};

/// Number of bytes from which a piece is divided among the threads of a pool: dividing less costs
/// more than it gains.
const SHARED_BYTES: usize = 128 << 10;

pub use ctds::HashKind;

impl Hash {
    pub(crate) fn of(kind: HashKind, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(kind);
        hasher.update(bytes);
        hasher.finish()
    }
}

/// The hash of some data, with its kind. It is printed as `b3sum` and `sha256sum` do: 64
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash {
    kind: HashKind,
    bytes: [u8; 32],
}

impl Hash {
    /// The function that gave this hash.
    pub fn kind(&self) -> HashKind {
        self.kind
    }

    /// The 256 bits of this hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// The hash of the kind `kind` that `digits`, 64 hexadecimal digits, stand for; `None` if they
    /// are something else.
    pub fn parse(kind: HashKind, digits: &str) -> Option<Self> {
        Some(Hash { kind, bytes: hex::parse(digits)?.try_into().ok()? })
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Hex(&self.bytes))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{self}", self.kind.name())
    }
}

/// Computes a hash of bytes that are added one piece after the other.
#[derive(Clone)]
pub(crate) struct Hasher(State);

#[derive(Clone)]
enum State {
    Blake3(Box<blake3::Hasher>),
    // two to three times as fast as the crate sha2 without SHA instructions, as fast with them
    Sha256(Box<ring::digest::Context>),
}

impl Hasher {
    pub(crate) fn new(kind: HashKind) -> Self {
        Hasher(match kind {
            HashKind::Blake3 => State::Blake3(Box::default()),
            HashKind::Sha256 => State::Sha256(Box::new(ring::digest::Context::new(&ring::digest::SHA256))),
        })
    }

    /// Adds `bytes`. On a thread of a pool, BLAKE3 divides a large piece among the threads of the
    /// pool that have nothing to do.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            // elsewhere it would wait for the global pool, which knows nothing of the number of
            // threads that is wanted
            State::Blake3(hasher) if bytes.len() >= SHARED_BYTES && rayon::current_thread_index().is_some() => {
                hasher.update_rayon(bytes);
            }
            State::Blake3(hasher) => {
                hasher.update(bytes);
            }
            State::Sha256(context) => context.update(bytes),
        }
    }

    /// The hash of all bytes that were added so far; more can be added after it.
    pub(crate) fn finish(&self) -> Hash {
        match &self.0 {
            State::Blake3(hasher) => Hash { kind: HashKind::Blake3, bytes: hasher.finalize().into() },
            State::Sha256(context) => {
                let mut bytes = [0; 32];
                bytes.copy_from_slice(context.clone().finish().as_ref());
                Hash { kind: HashKind::Sha256, bytes }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as in BLAKE3's test vectors.
    fn input(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn values_are_those_of_b3sum_and_sha256sum() {
        let of = |kind: HashKind, bytes: &[u8]| Hash::of(kind, bytes).to_string();
        assert_eq!(of(HashKind::Blake3, b""), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
        assert_eq!(
            of(HashKind::Blake3, &input(102_400)),
            "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"
        );
        assert_eq!(of(HashKind::Sha256, b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn pieces_and_threads_do_not_change_a_hash() {
        let bytes = input(1_000_003);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for kind in HashKind::ALL {
            let whole = Hash::of(kind, &bytes);
            for piece in [1000, SHARED_BYTES, 300_001] {
                let mut hasher = Hasher::new(kind);
                bytes.chunks(piece).for_each(|piece| pool.install(|| hasher.update(piece)));
                assert_eq!(hasher.finish(), whole, "{piece}");
            }
        }
    }

    #[test]
    fn only_64_digits_are_a_hash() {
        let hash = Hash::of(HashKind::Blake3, b"x");
        assert_eq!(Hash::parse(HashKind::Blake3, &hash.to_string()), Some(hash));
        assert_ne!(Hash::parse(HashKind::Sha256, &hash.to_string()), Some(hash));
        for digits in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64), &"+1".repeat(32)] {
            assert_eq!(Hash::parse(HashKind::Blake3, digits), None, "{digits}");
        }
    }
}
