//! Serves a store over a stream: answers the requests of a client one after the other, so that no
//! more than one is in memory. A request that cannot be answered gets a message; a stream that is
//! not one of whole packets ends with an error.

use std::io::{Read, Write};

use ctds::error::{Error, Result};

use super::archive::{self, Line};
use super::blocks::Blocks;
use super::hash::BlockHash;
use super::protocol::{HashRange, Packet, PacketReader, Request, Saved, encode_hash, encode_saved};
use super::reference::BlockRef;
use super::text;
use super::update::date;

/// Most hashes in one response, or that one hash is made of.
const MAX_HASHES: usize = 1 << 16;

/// Answers until the client ends the stream.
///
/// # Errors
/// `Format` or `Limit` for bytes that are not packets; `Io` if the stream breaks off.
pub fn serve_store(store: &dyn Blocks, source: impl Read, mut target: impl Write) -> Result<()> {
    let mut packets = PacketReader::new(source);
    while let Some(packet) = packets.next()? {
        let answer = if packet.is_end() { Packet::end() } else { respond(store, &packet)? };
        let mut out = Vec::new();
        answer.encode(&mut out);
        target.write_all(&out)?;
        target.flush()?;
        if packet.is_end() {
            break;
        }
    }
    Ok(())
}

/// Fails if the packet is not a request.
fn respond(store: &dyn Blocks, packet: &Packet) -> Result<Packet> {
    let tag = packet.tag;
    let kind = match packet.request {
        Some(0) => return Err(Error::format(format!("the last packet has the tag {tag}, or flags or a payload"))),
        Some(kind) => kind - 1,
        None => return Err(Error::format(format!("found a response with the tag {tag}, expected a request"))),
    };
    if packet.channel != 0 {
        return Ok(packet.failure(&format!("channel {} is unknown, expected 0", packet.channel)));
    }
    let answer = Request::decode(kind, packet.flags, &packet.payload).and_then(|request| answer(store, request));
    Ok(match answer {
        Ok((flags, payload)) => packet.success(flags, payload),
        Err(error) => packet.failure(&error.to_string()),
    })
}

/// Flags and payload of the response.
fn answer(store: &dyn Blocks, request: Request) -> Result<(u64, Vec<u8>)> {
    let mut out = Vec::new();
    let flags = match request {
        Request::Add { kind, block } => {
            encode_hash(&mut out, &store.add(kind, &block)?);
            0
        }
        Request::Get(hash) => match store.get(&hash)? {
            Some(block) => {
                out = block.to_vec();
                1
            }
            None => 0,
        },
        Request::Contains(hash) => u64::from(store.contains(&hash)?),
        Request::Flush => {
            store.flush()?;
            0
        }
        Request::Hashes(range) => {
            each_hash(store, &range, &mut |hash| encode_hash(&mut out, hash))?;
            0
        }
        Request::HashOfHashes(range) => {
            let (mut joined, mut last) = (Vec::new(), None);
            each_hash(store, &range, &mut |hash| {
                joined.extend_from_slice(hash.as_bytes());
                last = Some(*hash);
            })?;
            // the original hashes the hash
            encode_hash(&mut out, &range.kind.hash(range.kind.hash(&joined).as_bytes()));
            last.iter().for_each(|last| encode_hash(&mut out, last));
            0
        }
        Request::ArchiveLast(archive) => match entries(store, &archive)?.last() {
            Some(line) => {
                encode_line(&mut out, line)?;
                1
            }
            None => 0,
        },
        Request::ArchiveList(archive) => {
            entries(store, &archive)?.iter().try_for_each(|line| encode_line(&mut out, line))?;
            0
        }
        Request::ArchiveUpdate { archive, saved } => {
            update(store, &archive, &saved)?;
            0
        }
    };
    Ok((flags, out))
}

fn each_hash(store: &dyn Blocks, range: &HashRange, each: &mut dyn FnMut(&BlockHash)) -> Result<()> {
    let mut count = 0;
    store.hashes(range, &mut |hash| {
        count += 1;
        if count > MAX_HASHES {
            return Err(Error::limit(format!("the range has more than {MAX_HASHES} hashes; ask for fewer at a time")));
        }
        each(hash);
        Ok(())
    })
}

fn entries(store: &dyn Blocks, archive: &str) -> Result<Vec<Line>> {
    let bytes = store.archive(archive)?;
    if archive::has_entries(&bytes) { archive::parse(&bytes) } else { Ok(Vec::new()) }
}

fn encode_line(out: &mut Vec<u8>, line: &Line) -> Result<()> {
    encode_saved(out, &Saved { seconds: line.seconds, entry: line.entry.clone()? })
}

/// Refuses an entry whose blocks are missing, or that a line of text cannot hold.
fn update(store: &dyn Blocks, archive: &str, saved: &Saved) -> Result<()> {
    for block in saved.entry.block.iter().chain(&saved.entry.earlier) {
        if let Some(hash) = named(block).filter(|hash| !store.contains(hash).is_ok_and(|is_there| is_there)) {
            return Err(Error::not_found(format!("the store does not have the block {hash} of the entry")));
        }
    }
    let microseconds = (saved.seconds.fract() * 1e6) as u32;
    let date = date(saved.seconds as u64, microseconds);
    let line = format!("{date} {:?} {}\n", saved.seconds, text::of_entry(&saved.entry)?);
    archive::parse(line.as_bytes())
        .map_err(|error| Error::unsupported(format!("the entry has no form as a line of an archive: {error}")))?;
    store.append(archive, &line)
}

/// The hash in a reference, if one block has its data.
fn named(block: &BlockRef) -> Option<&BlockHash> {
    match block {
        BlockRef::Hash { hash, .. } => Some(hash),
        BlockRef::Indirect { block, .. } | BlockRef::Sub { block, .. } => named(block),
        BlockRef::Rle { .. } | BlockRef::Literal(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ctds::ErrorKind;
    use ctds_hdf5_testing::{mutations, property};

    use super::*;
    use crate::vt::hash::HashKind;
    use crate::vt::on_disk::StoreOnDisk;
    use crate::vt::protocol::decode_saved;
    use crate::vt::text::Text;
    use crate::vt::wire::Cursor;

    fn stream(requests: &[Request]) -> Vec<u8> {
        let mut stream = Vec::new();
        for (tag, request) in (1..).zip(requests) {
            let (kind, flags, payload) = request.encode().unwrap();
            Packet::request(tag, kind, flags, payload).encode(&mut stream);
        }
        Packet::end().encode(&mut stream);
        stream
    }

    fn ask(store: &dyn Blocks, requests: &[Request]) -> Vec<Result<(u64, Vec<u8>)>> {
        let mut out = Vec::new();
        serve_store(store, &*stream(requests), &mut out).unwrap();
        let mut packets = PacketReader::new(&*out);
        let answers: Vec<_> = (1..=requests.len() as u64)
            .map(|tag| {
                let packet = packets.next().unwrap().unwrap();
                assert_eq!(packet.tag, tag);
                packet.answer()
            })
            .collect();
        assert!(packets.next().unwrap().unwrap().is_end() && packets.next().unwrap().is_none());
        answers
    }

    fn store(folder: &Path) -> StoreOnDisk {
        let path = folder.join("store");
        std::fs::create_dir_all(&path).unwrap();
        StoreOnDisk::open(path).unwrap()
    }

    fn encoded(hashes: &[BlockHash]) -> Vec<u8> {
        let mut out = Vec::new();
        hashes.iter().for_each(|hash| encode_hash(&mut out, hash));
        out
    }

    fn range(
        kind: HashKind,
        is_descending: bool,
        first: Option<BlockHash>,
        is_after: bool,
        most: Option<u64>,
    ) -> HashRange {
        HashRange { kind, is_descending, first, is_after, most }
    }

    #[test]
    fn added_blocks_are_found_and_listed_in_order() {
        for kind in [HashKind::Sha1, HashKind::Sha256] {
            let folder = tempfile::tempdir().unwrap();
            // the second round opens the store with its index; the third adds to it
            for (known, count) in [(0, 40u32), (40, 40), (40, 60)] {
                let served = store(folder.path());
                let blocks: Vec<Vec<u8>> = (0..count).map(|number| vec![number as u8; number as usize * 9]).collect();
                let mut hashes: Vec<_> = blocks.iter().map(|block| kind.hash(block)).collect();
                let contained = ask(&served, &hashes.iter().map(|&hash| Request::Contains(hash)).collect::<Vec<_>>());
                assert_eq!(contained.into_iter().map(|answer| answer.unwrap().0).sum::<u64>(), known);
                let add = |block: &Vec<u8>| Request::Add { kind, block: block.clone() };
                for (answer, hash) in ask(&served, &blocks.iter().map(add).collect::<Vec<_>>()).into_iter().zip(&hashes)
                {
                    assert_eq!(answer.unwrap(), (0, encoded(&[*hash])));
                }
                let answers = ask(&served, &hashes.iter().map(|&hash| Request::Get(hash)).collect::<Vec<_>>());
                for (answer, block) in answers.into_iter().zip(&blocks) {
                    assert_eq!(answer.unwrap(), (1, block.clone()));
                }
                let missing = kind.hash(b"missing");
                assert_eq!(ask(&served, &[Request::Get(missing)]).remove(0).unwrap(), (0, vec![]));
                hashes.sort_unstable();
                check_lists(&served, kind, &hashes);
                served.close().unwrap();
                assert!(ask(&served, &[Request::Flush])[0].is_err());
            }
        }
    }

    #[test]
    fn blocks_of_another_process_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (store(folder.path()), store(folder.path()));
        first.add(HashKind::Sha1, b"own").unwrap();
        let hash = second.add(HashKind::Sha1, b"of the other").unwrap();
        assert_eq!(first.get(&hash).unwrap(), None);
        second.flush().unwrap();
        assert_eq!(**first.get(&hash).unwrap().unwrap(), *b"of the other");
    }

    fn check_lists(served: &StoreOnDisk, kind: HashKind, hashes: &[BlockHash]) {
        let mut reversed = hashes.to_vec();
        reversed.reverse();
        let between = kind.hash(b"between");
        let split = hashes.partition_point(|&hash| hash < between);
        for (range, expected) in [
            (range(kind, false, None, false, None), hashes),
            (range(kind, true, None, false, Some(7)), &reversed[..7]),
            (range(kind, false, Some(hashes[5]), false, Some(3)), &hashes[5..8]),
            (range(kind, false, Some(hashes[5]), true, Some(3)), &hashes[6..9]),
            (range(kind, true, Some(hashes[5]), true, None), &reversed[hashes.len() - 5..]),
            (range(kind, false, Some(between), true, None), &hashes[split..]),
            (range(kind, true, Some(between), false, None), &reversed[hashes.len() - split..]),
        ] {
            let answers = ask(served, &[Request::Hashes(range), Request::HashOfHashes(range)]);
            assert_eq!(answers[0].as_ref().unwrap().1, encoded(expected), "{range:?}");
            let joined: Vec<u8> = expected.iter().flat_map(|hash| hash.as_bytes()).copied().collect();
            let joined = kind.hash(kind.hash(&joined).as_bytes());
            let with_last: Vec<_> = [joined].into_iter().chain(expected.last().copied()).collect();
            assert_eq!(answers[1].as_ref().unwrap().1, encoded(&with_last), "{range:?}");
        }
    }

    #[test]
    fn archives_are_listed_and_updated() {
        let folder = tempfile::tempdir().unwrap();
        let served = store(folder.path());
        let hash = served.add(HashKind::Sha1, b"entries").unwrap();
        let saved = |seconds: f64, hash| {
            let text = format!("D{{\"a \\u00e4\":meta:M{{a:\"o:rwx-\",m:1.5}},block:B{{hash:H{{{hash}}},span:7}}}}");
            Saved { seconds, entry: Text::new(&text).dirent().unwrap() }
        };
        let update = |archive: &str, saved| Request::ArchiveUpdate { archive: archive.into(), saved: Box::new(saved) };
        let list = |archive: &str| {
            let bytes = ask(&served, &[Request::ArchiveList(archive.into())]).remove(0).unwrap().1;
            let mut cursor = Cursor::new(&bytes, "test");
            let mut found = Vec::new();
            while !cursor.is_at_end() {
                found.push(decode_saved(&mut cursor).unwrap());
            }
            found
        };
        for (name, file) in [("", "store.vt"), ("x", "store-x.vt"), ("other.vt", "other.vt")] {
            assert_eq!(ask(&served, &[Request::ArchiveLast(name.into())])[0].as_ref().unwrap(), &(0, vec![]));
            assert_eq!(list(name), []);
            let (first, second) = (saved(1_600_000_000.25, hash), saved(1_600_000_001.0, hash));
            for saved in [&first, &second] {
                assert!(ask(&served, &[update(name, saved.clone())])[0].is_ok());
            }
            assert_eq!(list(name), [first, second.clone()]);
            let last = ask(&served, &[Request::ArchiveLast(name.into())]).remove(0).unwrap();
            assert_eq!((last.0, decode_saved(&mut Cursor::new(&last.1, "test")).unwrap()), (1, second));
            let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
            assert!(
                text.starts_with("2020-09-13T12:26:40.250000+00:00 1600000000.25 D{\"a \\u00e4\":meta:M{"),
                "{text}"
            );
        }
        for name in ["../x", "../x.vt", "a.b", "a/b", ".vt", "a\nb", "/etc/x.vt", &"x".repeat(300)] {
            for request in [Request::ArchiveList(name.into()), update(name, saved(1.0, hash))] {
                let error = ask(&served, &[request]).remove(0).unwrap_err();
                assert!(error.to_string().contains("is not the name of an archive"), "{error}");
            }
        }
        let error = ask(&served, &[update("x", saved(1.0, HashKind::Sha1.hash(b"missing")))]).remove(0).unwrap_err();
        assert!(error.to_string().contains("the store does not have the block sha1:"), "{error}");
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["other.vt", "store", "store-x.vt", "store.vt"]);
    }

    #[test]
    fn a_wrong_request_is_answered_and_a_wrong_packet_ends_the_stream() {
        let folder = tempfile::tempdir().unwrap();
        let served = store(folder.path());
        let request = Packet::request(1, 3, 0, vec![]);
        for (packet, message) in [
            (Packet { channel: 2, ..request.clone() }, "channel 2 is unknown"),
            (Packet { request: Some(77), ..request.clone() }, "the type of the request is 76"),
            (Packet { flags: 1, ..request.clone() }, "request 3 has the flags 0x1"),
        ] {
            let (mut bytes, mut out) = (Vec::new(), Vec::new());
            packet.encode(&mut bytes);
            request.encode(&mut bytes);
            serve_store(&served, &*bytes, &mut out).unwrap();
            let mut answers = PacketReader::new(&*out);
            let error = answers.next().unwrap().unwrap().answer().unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert!(answers.next().unwrap().unwrap().answer().is_ok());
        }
        for (packet, message) in [
            (Packet { request: None, ..request.clone() }, "found a response with the tag 1, expected a request"),
            (Packet { tag: 1, ..Packet::end() }, "the last packet has the tag 1"),
        ] {
            let mut bytes = Vec::new();
            packet.encode(&mut bytes);
            let error = serve_store(&served, &*bytes, std::io::sink()).unwrap_err();
            assert!(error.kind() == ErrorKind::Format && error.to_string().starts_with(message), "{error}");
        }
    }

    #[test]
    fn hostile_streams_end_in_an_error() {
        let hash = HashKind::Sha1.hash(b"block");
        let text = format!("D{{\"d\":block:B{{hash:H{{{hash}}},span:5}}}}");
        let saved = Saved { seconds: 1.5, entry: Text::new(&text).dirent().unwrap() };
        let requests = stream(&[
            Request::Add { kind: HashKind::Sha1, block: b"another".to_vec() },
            Request::Get(hash),
            Request::Hashes(range(HashKind::Sha1, false, Some(hash), true, Some(3))),
            Request::HashOfHashes(range(HashKind::Sha1, true, None, false, None)),
            Request::ArchiveUpdate { archive: "a".into(), saved: Box::new(saved) },
            Request::ArchiveList("a".into()),
        ]);
        property(2000, mutations(6), |mutations| {
            let folder = tempfile::tempdir().unwrap();
            let served = store(folder.path());
            assert_eq!(served.add(HashKind::Sha1, b"block").unwrap(), hash);
            let mut bytes = requests.clone();
            mutations.iter().for_each(|mutation| drop(mutation.apply(&mut bytes)));
            let mut out = Vec::new();
            if let Err(error) = serve_store(&served, &*bytes, &mut out) {
                assert!(matches!(error.kind(), ErrorKind::Format | ErrorKind::Limit), "{error}");
            }
            let mut answers = PacketReader::new(&*out);
            while let Some(answer) = answers.next().unwrap() {
                assert!(answer.request.is_none() || answer.is_end());
            }
            // every line of an archive can still be read
            for entry in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_file() {
                    archive::parse(&std::fs::read(&entry).unwrap()).unwrap();
                }
            }
        });
    }
}
