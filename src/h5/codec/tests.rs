//! Tests that every codec passes: they walk [`CODECS`].

use super::{CODECS, Codec};
use crate::error::ErrorKind;
use crate::h5::{Compression, Effort, Filter, FilterScratch, Pipeline};

/// Chunks of no bytes, one, many that repeat, many that do not.
fn samples() -> Vec<Vec<u8>> {
    let noise = |i: u32| (i.wrapping_mul(2_654_435_761) >> 13) as u8;
    vec![
        Vec::new(),
        vec![7],
        vec![0; 100_000],
        (0..30_000u32).map(|i| (i / 100) as u8).collect(),
        (0..70_001u32).map(noise).collect(),
    ]
}

/// 0 for a codec without levels.
fn levels(codec: &dyn Codec) -> Vec<u8> {
    codec.levels().map_or(vec![0], |levels| levels.range.collect())
}

fn writable() -> impl Iterator<Item = &'static dyn Codec> {
    let codecs = CODECS.iter().copied().filter(|codec| codec.encoder(levels(*codec)[0]).is_some());
    assert!(codecs.clone().count() > 0);
    codecs
}

fn alone(codec: &'static dyn Codec, level: u8) -> Pipeline {
    Pipeline::new(vec![Filter::Codec { codec, level }])
}

#[test]
fn names_and_numbers_differ() {
    for (i, codec) in CODECS.iter().enumerate() {
        assert!((1..=65535).contains(&codec.id()));
        assert!(CODECS[..i].iter().all(|other| other.id() != codec.id() && other.name() != codec.name()));
        assert!(!["none", "auto"].contains(&codec.name()) && !codec.name().contains(':'));
    }
    // data written without a user's choice must be readable everywhere
    for effort in [Effort::Balanced, Effort::Thorough, Effort::Most] {
        assert_eq!(Compression::portable(effort).plugin(), None);
    }
}

#[test]
fn words_are_read_and_written() {
    for codec in writable() {
        let name = codec.name();
        for level in levels(codec) {
            let word = Compression::of(codec, level).to_string();
            assert_eq!(word.parse::<Compression>().unwrap(), Compression::of(codec, level));
            assert_eq!(word.parse::<Compression>().unwrap().to_string(), word);
        }
        let default = codec.levels().map_or(0, |levels| levels.default);
        assert_eq!(name.parse::<Compression>().unwrap(), Compression::of(codec, default));
        assert!(Compression::forms().contains(name));
        for wrong in [":", ":x", ":-1", ":255", ":1 ", ":1:1"] {
            let error = format!("{name}{wrong}").parse::<Compression>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains("levels"), "{error}");
        }
    }
    for wrong in ["", "lzma", "NONE", "none:1", "auto"] {
        let error = wrong.parse::<Compression>().unwrap_err();
        assert_eq!((error.kind(), error.to_string().contains("none, ")), (ErrorKind::Usage, true), "{error}");
    }
    assert_eq!("none".parse::<Compression>().unwrap(), Compression::NONE);
    assert_eq!(Compression::NONE.to_string(), "none");
}

#[test]
fn parameters_keep_the_level() {
    for codec in writable().filter(|codec| codec.levels().is_some()) {
        for level in levels(codec) {
            assert_eq!(codec.level(&codec.parameters(level)), Some(level), "{}", codec.name());
        }
        assert_eq!(codec.level(&[u32::MAX]), None, "{}", codec.name());
    }
}

#[test]
fn bytes_come_back() {
    for codec in writable() {
        let mut scratch = FilterScratch::default();
        for level in levels(codec) {
            for bytes in samples() {
                for pipeline in [alone(codec, level), Compression::of(codec, level).pipeline(8)] {
                    let (mut stored, mut back) = (vec![1; 5], vec![2; 7]);
                    pipeline.encode(&mut scratch, &bytes, &mut stored).unwrap();
                    assert!(codec.bound(stored.len() as u64) >= bytes.len() as u64);
                    pipeline.decode(&mut scratch, 0, &stored, bytes.len(), &mut back).unwrap();
                    assert!(back == bytes, "{pipeline}: {} bytes", bytes.len());
                }
            }
        }
    }
}

#[test]
fn the_same_bytes_every_time() {
    for codec in writable() {
        let pipeline = alone(codec, levels(codec)[0]);
        let (mut used, mut first, mut again) = (FilterScratch::default(), Vec::new(), Vec::new());
        for bytes in samples() {
            pipeline.encode(&mut FilterScratch::default(), &bytes, &mut first).unwrap();
            pipeline.encode(&mut used, &bytes, &mut again).unwrap();
            assert!(first == again, "{pipeline}: {} bytes", bytes.len());
        }
    }
}

#[test]
fn damage_is_a_format_error() {
    let bytes = samples().swap_remove(3);
    for codec in writable() {
        let pipeline = alone(codec, levels(codec)[0]);
        let (mut scratch, mut stored) = (FilterScratch::default(), Vec::new());
        pipeline.encode(&mut scratch, &bytes, &mut stored).unwrap();
        let mut decode = |stored: &[u8], len: usize| {
            let mut out = Vec::new();
            let decoded = pipeline.decode(&mut scratch, 0, stored, len, &mut out);
            if let Err(error) = &decoded {
                assert_eq!(error.kind(), ErrorKind::Format, "{pipeline}: {error}");
            }
            assert!(out.capacity() <= len.max(64), "{pipeline}: {} bytes allocated for {len}", out.capacity());
            decoded.map(|()| out)
        };
        assert!(decode(&stored, bytes.len()).unwrap() == bytes);
        for len in [0, 1, bytes.len() - 1, bytes.len() + 1] {
            assert!(decode(&stored, len).is_err(), "{pipeline}: {len}");
        }
        for cut in [0, 1, stored.len() / 2, stored.len() - 1] {
            assert!(decode(&stored[..cut], bytes.len()).is_err(), "{pipeline}: cut at {cut}");
        }
        assert!(decode(&[0xff; 100], bytes.len()).is_err());
        assert!(decode(&[0; 100], bytes.len()).is_err());
        // any byte changed: an error or other bytes of that length, never more memory
        for at in 0..stored.len() {
            for flip in [1, 0x80, 0xff] {
                stored[at] ^= flip;
                if let Ok(found) = decode(&stored, bytes.len()) {
                    assert_eq!(found.len(), bytes.len());
                }
                stored[at] ^= flip;
            }
        }
    }
}

#[test]
fn lengths_that_nothing_backs_are_refused() {
    for &codec in CODECS {
        let pipeline = alone(codec, levels(codec)[0]);
        let mut out = Vec::new();
        for len in [1 << 32, 1 << 40, usize::MAX] {
            let error = pipeline.decode(&mut FilterScratch::default(), 0, &[0; 16], len, &mut out).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format);
        }
        assert_eq!(out.capacity(), 0, "{}", codec.name());
    }
}
