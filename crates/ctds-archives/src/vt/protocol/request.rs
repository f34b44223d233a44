//! Requests to a store, and the values in them and their responses.
//!
//! | type | request          | payload                                    | response                                     |
//! |------|------------------|--------------------------------------------|----------------------------------------------|
//! | 0    | add              | bsuint kind of hash, bsdata block          | hash                                         |
//! | 1    | get              | hash                                       | flag 1 and the block; no flag if missing     |
//! | 2    | contains         | hash                                       | flag 1 if the store has the block            |
//! | 3    | flush            |                                            |                                              |
//! | 4    | hashes           | bsstring kind, hash with flag 4, bsuint number | hashes, one after the other              |
//! | 5    | hash of hashes   | the same                                   | hash of the hashes, last hash if there is one |
//! | 6    | last entry       | bsstring archive                           | flag 1 and the entry; no flag if it is empty |
//! | 7    | update           | bsstring archive, entry                    |                                              |
//! | 8    | entries          | bsstring archive                           | entries, one after the other                 |
//!
//! A hash is a bsuint, its kind, and its bytes. An entry is a bsstring, its time in seconds since
//! 1970 as decimal text (bssfloat), and a directory entry. Flags of requests 4 and 5: 1 descending,
//! 2 without the first hash if it is the given one, 4 a first hash is given; 0 is any number.

use ctds::error::{Error, Result, ResultExt};

use crate::vt::dirent::Dirent;
use crate::vt::hash::{BlockHash, HashKind};
use crate::vt::wire::{Cursor, put_data, put_uint};

const ADD: u64 = 0;
const GET: u64 = 1;
const CONTAINS: u64 = 2;
const FLUSH: u64 = 3;
const HASHES: u64 = 4;
const HASH_OF_HASHES: u64 = 5;
const ARCHIVE_LAST: u64 = 6;
const ARCHIVE_UPDATE: u64 = 7;
const ARCHIVE_LIST: u64 = 8;

const DESCENDING: u64 = 1;
const AFTER: u64 = 2;
const FIRST: u64 = 4;

#[derive(Debug, Clone, PartialEq)]
pub(in crate::vt) enum Request {
    Add { kind: HashKind, block: Vec<u8> },
    Get(BlockHash),
    Contains(BlockHash),
    Flush,
    Hashes(HashRange),
    HashOfHashes(HashRange),
    ArchiveLast(String),
    ArchiveUpdate { archive: String, saved: Box<Saved> },
    ArchiveList(String),
}

/// Which of the hashes of a store, in order, are asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HashRange {
    pub kind: HashKind,
    pub is_descending: bool,
    /// `None`: from the smallest, or the largest if descending.
    pub first: Option<BlockHash>,
    /// Without `first` itself.
    pub is_after: bool,
    /// `None` for all.
    pub most: Option<u64>,
}

/// A saved state of a directory, as an archive has it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::vt) struct Saved {
    /// Since 1970; 0 to [`LATEST_SECONDS`].
    pub(in crate::vt) seconds: f64,
    pub(in crate::vt) entry: Dirent,
}

/// End of the year 9999.
const LATEST_SECONDS: f64 = 253_402_300_799.0;

impl Request {
    /// `Format` for another type, for flags and bytes that the request does not have, and for
    /// values that are none; `Limit` for references that are nested too deeply.
    pub(in crate::vt) fn decode(kind: u64, flags: u64, payload: &[u8]) -> Result<Self> {
        let known = if matches!(kind, HASHES | HASH_OF_HASHES) { DESCENDING | AFTER | FIRST } else { 0 };
        if flags & !known != 0 {
            return Err(Error::format(format!("request {kind} has the flags {flags:#x}, expected {known:#x} at most")));
        }
        let mut cursor = Cursor::new(payload, "request");
        let request = match kind {
            ADD => Request::Add { kind: HashKind::of_code(cursor.uint()?)?, block: cursor.data()?.to_vec() },
            GET => Request::Get(decode_hash(&mut cursor)?),
            CONTAINS => Request::Contains(decode_hash(&mut cursor)?),
            FLUSH => Request::Flush,
            HASHES => Request::Hashes(HashRange::decode(flags, &mut cursor)?),
            HASH_OF_HASHES => Request::HashOfHashes(HashRange::decode(flags, &mut cursor)?),
            ARCHIVE_LAST => Request::ArchiveLast(cursor.string()?.to_owned()),
            ARCHIVE_UPDATE => {
                let archive = cursor.string()?.to_owned();
                Request::ArchiveUpdate { archive, saved: Box::new(decode_saved(&mut cursor)?) }
            }
            ARCHIVE_LIST => Request::ArchiveList(cursor.string()?.to_owned()),
            _ => return Err(Error::format(format!("the type of the request is {kind}, expected 0 to 8"))),
        };
        if !cursor.is_at_end() {
            let place = cursor.place();
            let message = format!("{} bytes follow request {kind}, none are expected", cursor.rest().len());
            return Err(Error::format(message).context(place));
        }
        Ok(request)
    }

    /// Type, flags and payload. Fails for an entry that does not say how long its data are.
    pub(in crate::vt) fn encode(&self) -> Result<(u64, u64, Vec<u8>)> {
        let mut out = Vec::new();
        let (kind, flags) = match self {
            Request::Add { kind, block } => {
                put_uint(&mut out, kind.code());
                put_data(&mut out, block);
                (ADD, 0)
            }
            Request::Get(hash) | Request::Contains(hash) => {
                encode_hash(&mut out, hash);
                (if matches!(self, Request::Get(_)) { GET } else { CONTAINS }, 0)
            }
            Request::Flush => (FLUSH, 0),
            Request::Hashes(range) => (HASHES, range.encode(&mut out)),
            Request::HashOfHashes(range) => (HASH_OF_HASHES, range.encode(&mut out)),
            Request::ArchiveLast(archive) | Request::ArchiveList(archive) => {
                put_data(&mut out, archive.as_bytes());
                (if matches!(self, Request::ArchiveLast(_)) { ARCHIVE_LAST } else { ARCHIVE_LIST }, 0)
            }
            Request::ArchiveUpdate { archive, saved } => {
                put_data(&mut out, archive.as_bytes());
                encode_saved(&mut out, saved)?;
                (ARCHIVE_UPDATE, 0)
            }
        };
        Ok((kind, flags, out))
    }
}

impl HashRange {
    fn decode(flags: u64, cursor: &mut Cursor<'_>) -> Result<Self> {
        let kind = HashKind::of_name(cursor.string()?)?;
        let first = if flags & FIRST != 0 { Some(decode_hash(cursor)?) } else { None };
        if let Some(first) = first.filter(|first| first.kind() != kind) {
            let message = format!("the first hash is {first}; expected one of the kind {}", kind.name());
            return Err(Error::format(message));
        }
        if first.is_none() && flags & AFTER != 0 {
            return Err(Error::format("hashes after a first one are asked for, but none is given"));
        }
        let most = Some(cursor.uint()?).filter(|&most| most > 0);
        Ok(HashRange { kind, is_descending: flags & DESCENDING != 0, first, is_after: flags & AFTER != 0, most })
    }

    /// Returns the flags.
    fn encode(&self, out: &mut Vec<u8>) -> u64 {
        put_data(out, self.kind.name().as_bytes());
        if let Some(first) = &self.first {
            encode_hash(out, first);
        }
        put_uint(out, self.most.unwrap_or(0));
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        flag(self.is_descending, DESCENDING) | flag(self.is_after, AFTER) | flag(self.first.is_some(), FIRST)
    }
}

pub(in crate::vt) fn decode_hash(cursor: &mut Cursor<'_>) -> Result<BlockHash> {
    let kind = HashKind::of_code(cursor.uint()?)?;
    BlockHash::new(kind, cursor.take(kind.bytes() as u64)?)
}

pub(in crate::vt) fn encode_hash(out: &mut Vec<u8>, hash: &BlockHash) {
    put_uint(out, hash.kind().code());
    out.extend_from_slice(hash.as_bytes());
}

pub(in crate::vt) fn decode_saved(cursor: &mut Cursor<'_>) -> Result<Saved> {
    let place = cursor.place();
    let text = cursor.string()?;
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=LATEST_SECONDS).contains(seconds));
    let seconds = seconds.ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Error::format(format!("the time {shown:?} is not one from 1970 to 9999, in seconds"))
    });
    Ok(Saved { seconds: seconds.context(place)?, entry: Dirent::decode(cursor)? })
}

/// Fails for an entry that does not say how long its data are.
pub(in crate::vt) fn encode_saved(out: &mut Vec<u8>, saved: &Saved) -> Result<()> {
    // with a decimal point, as Python writes it
    put_data(out, format!("{:?}", saved.seconds).as_bytes());
    saved.entry.encode_whole(out)
}

#[cfg(test)]
mod tests {
    use ctds::ErrorKind;
    use ctds_hdf5_testing::proptest::collection::vec;
    use ctds_hdf5_testing::proptest::prelude::*;
    use ctds_hdf5_testing::{mutations, property};

    use super::*;
    use crate::vt::protocol::packet::{Packet, PacketReader};
    use crate::vt::text::{self, Text};

    fn hash() -> BlockHash {
        BlockHash::new(HashKind::Sha1, &[0xab; 20]).unwrap()
    }

    fn saved(text: &str) -> Saved {
        Saved { seconds: 1.5, entry: Text::new(text).dirent().unwrap() }
    }

    /// A request of each type, with its flags and payload as the original writes them.
    fn samples() -> Vec<(Request, u64, u64, Vec<u8>)> {
        let kind = HashKind::Sha1;
        let ab = [&[0][..], &[0xab; 20]].concat();
        let all = HashRange { kind, is_descending: false, first: None, is_after: false, most: None };
        let some = HashRange { kind, is_descending: true, first: Some(hash()), is_after: true, most: Some(300) };
        let entry = [b"\x03" as &[u8], b"1.5", &[1, 2, 1, b'd', 23, 0, 7], &ab].concat();
        let text = format!("D{{\"d\":block:B{{hash:H{{{}}},span:7}}}}", hash());
        vec![
            (Request::Add { kind, block: b"xyz".to_vec() }, 0, 0, b"\0\x03xyz".to_vec()),
            (Request::Get(hash()), 1, 0, ab.clone()),
            (Request::Contains(hash()), 2, 0, ab.clone()),
            (Request::Flush, 3, 0, vec![]),
            (Request::Hashes(all), 4, 0, b"\x04sha1\0".to_vec()),
            (Request::HashOfHashes(some), 5, 7, [b"\x04sha1", &ab[..], b"\x82\x2c"].concat()),
            (Request::ArchiveLast("a".into()), 6, 0, b"\x01a".to_vec()),
            (
                Request::ArchiveUpdate { archive: "a".into(), saved: Box::new(saved(&text)) },
                7,
                0,
                [b"\x01a", &entry[..]].concat(),
            ),
            (Request::ArchiveList(String::new()), 8, 0, b"\0".to_vec()),
        ]
    }

    #[test]
    fn requests_are_those_of_the_original() {
        for (request, kind, flags, payload) in samples() {
            assert_eq!(request.encode().unwrap(), (kind, flags, payload.clone()), "{request:?}");
            assert_eq!(Request::decode(kind, flags, &payload).unwrap(), request);
            for len in 0..payload.len() {
                assert!(Request::decode(kind, flags, &payload[..len]).is_err(), "{request:?}, {len} bytes");
            }
            let longer = [&payload[..], &[0]].concat();
            assert_eq!(Request::decode(kind, flags, &longer).unwrap_err().kind(), ErrorKind::Format, "{request:?}");
            assert!(Request::decode(kind, flags | 8, &payload).is_err());
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let other = [b"\x06sha256\0" as &[u8], &[0xab; 20], &[0]].concat();
        let time = |text: &[u8]| [b"\x01a", &[text.len() as u8][..], text, &[0, 4]].concat();
        for (kind, flags, payload, message) in [
            (9, 0, vec![], "the type of the request is 9"),
            (0, 0, vec![7, 0], "the hash type is 7"),
            (0, 1, vec![0, 0], "request 0 has the flags 0x1"),
            (4, 2, b"\x04sha1\0".to_vec(), "none is given"),
            (4, 0, b"\x03md5\0".to_vec(), "hash type \"md5\""),
            (5, 4, other, "expected one of the kind sha256"),
            (6, 0, vec![1, 0xff], "not UTF-8"),
            (7, 0, time(b"nan"), "the time \"nan\" is not one"),
            (7, 0, time(b"-1"), "is not one"),
            (7, 0, time(b"1e300"), "is not one"),
            (7, 0, time(b""), "is not one"),
        ] {
            let error = Request::decode(kind, flags, &payload).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Format);
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn entries_of_every_kind_round_trip() {
        let (hash, uuid) = (hash(), "12345678-1234-5678-1234-567812345670");
        for text in [
            format!("F{{\"f\":meta:M{{a:\"o:rw-x\",m:1.5}},uuid:U{{{uuid}}},block:I{{900:B{{hash:H{{{hash}}}}}}}}}"),
            format!("D{{block:B{{hash:H{{{hash}}},span:0}},prevblock:B{{hash:H{{{hash}}},span:9}}}}"),
            "F{\"f\":block:LB{6162}}".to_owned(),
            "F{\"f\":block:RLE{span:5,octet:41}}".to_owned(),
            "F{\"f\":block:SubB{block:RLE{span:9,octet:00},offset:2,span:3}}".to_owned(),
            "F{\"f\":block:I{4:LB{0300020000}}}".to_owned(),
            format!("Indirect{{\"h\":uuid:U{{{uuid}}}}}"),
            "SymLink{\"s\":meta:M{pathref:\"to\"}}".to_owned(),
        ] {
            let mut out = Vec::new();
            encode_saved(&mut out, &saved(&text)).unwrap();
            let found = decode_saved(&mut Cursor::new(&out, "test")).unwrap();
            assert_eq!(found, saved(&text), "{text}");
            // and as the line of an archive
            let line = text::of_entry(&found.entry).unwrap();
            assert_eq!(Text::new(&line).dirent().unwrap(), found.entry, "{line}");
        }
        for text in [format!("F{{block:B{{hash:H{{{hash}}}}}}}"), "F{block:I{3:RLE{span:5,octet:41}}}".to_owned()] {
            assert_eq!(encode_saved(&mut Vec::new(), &saved(&text)).unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }

    /// Ten thousand damaged streams at a push, a hundred thousand in the night.
    #[test]
    fn damaged_packets_end_in_an_error() {
        let mut stream = Vec::new();
        for (tag, (request, ..)) in samples().iter().enumerate() {
            let (kind, flags, payload) = request.encode().unwrap();
            Packet::request(tag as u64 + 1, kind, flags, payload).encode(&mut stream);
        }
        Packet::end().encode(&mut stream);
        property(10_000, mutations(6), |mutations| {
            let mut bytes = stream.clone();
            mutations.iter().for_each(|mutation| drop(mutation.apply(&mut bytes)));
            decode_stream(&bytes);
        });
        property(2_000, vec(any::<u8>(), 0..200), |bytes| decode_stream(&bytes));
    }

    /// Every decoded request is encoded to the same bytes.
    fn decode_stream(bytes: &[u8]) {
        let mut reader = PacketReader::new(bytes);
        let is_expected =
            |error: &Error| matches!(error.kind(), ErrorKind::Format | ErrorKind::Limit | ErrorKind::Unsupported);
        loop {
            let packet = match reader.next() {
                Ok(Some(packet)) => packet,
                Ok(None) => return,
                Err(error) => return assert!(is_expected(&error), "{error}"),
            };
            assert!(packet.payload.capacity() <= 2 * bytes.len() + 64);
            let Some(kind) = packet.request.and_then(|kind| kind.checked_sub(1)) else { continue };
            match Request::decode(kind, packet.flags, &packet.payload) {
                Ok(request) => {
                    // an entry may be one that cannot be encoded, such as a list in repeated bytes
                    let Ok((kind, flags, payload)) = request.encode() else { continue };
                    let again = Request::decode(kind, flags, &payload).unwrap();
                    assert_eq!(format!("{again:?}"), format!("{request:?}"));
                }
                Err(error) => assert!(is_expected(&error) && !error.to_string().contains('\n'), "{error}"),
            }
        }
    }
}
