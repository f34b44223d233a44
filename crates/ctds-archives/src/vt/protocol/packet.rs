//! Packets: a length, and in that many bytes
//!
//! ```text
//!  bsuint tag       of the request; a response has that of its request
//!  bsuint flags     1: a channel follows, 2: a request; the flags of the request or response, times 4
//! [bsuint channel]  0 if absent
//! [bsuint type]     of the request, plus 1; 0 is in the last packet of a sender, `03 00 02 00`
//!  payload          the bytes that are left
//! ```
//!
//! Bit 0 of the flags of a response says that the request has succeeded; its own flags follow from
//! bit 1 on. The payload of one that has failed is a message.

use std::io::{BufReader, Read};

use ctds::error::{Context, Error, Result, ResultExt};

use crate::vt::records::LARGEST_BLOCK;
use crate::vt::wire::{Cursor, LONGEST_UINT, decode_uint, put_uint};

/// Longest packet that is read, in bytes: the largest block with the numbers before it.
pub(in crate::vt) const LONGEST_PACKET: u64 = LARGEST_BLOCK as u64 + 4096;

const CHANNEL: u64 = 1;
const REQUEST: u64 = 2;

const SUCCESS: u64 = 1;

#[derive(Debug, Clone, PartialEq)]
pub(in crate::vt) struct Packet {
    pub(in crate::vt) tag: u64,
    pub(in crate::vt) channel: u64,
    /// Type as it is stored, plus 1; `None` for a response.
    pub(in crate::vt) request: Option<u64>,
    pub(in crate::vt) flags: u64,
    pub(in crate::vt) payload: Vec<u8>,
}

impl Packet {
    pub(in crate::vt) fn request(tag: u64, kind: u64, flags: u64, payload: Vec<u8>) -> Self {
        Packet { tag, channel: 0, request: Some(kind + 1), flags, payload }
    }

    /// The last packet of a sender.
    pub(in crate::vt) fn end() -> Self {
        Packet { tag: 0, channel: 0, request: Some(0), flags: 0, payload: Vec::new() }
    }

    pub(in crate::vt) fn is_end(&self) -> bool {
        *self == Self::end()
    }

    /// The response to this request.
    pub(in crate::vt) fn success(&self, flags: u64, payload: Vec<u8>) -> Self {
        Packet { request: None, flags: flags << 1 | SUCCESS, payload, ..*self }
    }

    /// The response to this request, which has failed.
    pub(in crate::vt) fn failure(&self, message: &str) -> Self {
        Packet { request: None, flags: 0, payload: message.as_bytes().to_vec(), ..*self }
    }

    /// Flags and payload of a response; its message as an error if the request has failed.
    pub(in crate::vt) fn answer(self) -> Result<(u64, Vec<u8>)> {
        if self.flags & SUCCESS != 0 {
            return Ok((self.flags >> 1, self.payload));
        }
        let shown = &self.payload[..self.payload.len().min(SHOWN_BYTES)];
        let message: String = String::from_utf8_lossy(shown).replace(|next: char| next.is_control(), " ");
        Err(Error::format(format!("the store refuses the request: {message}")))
    }

    /// `bytes` are those after the length.
    fn decode(mut bytes: Vec<u8>) -> Result<Self> {
        let mut cursor = Cursor::new(&bytes, "head");
        let tag = cursor.uint()?;
        let flags = cursor.uint()?;
        let channel = if flags & CHANNEL != 0 { cursor.uint()? } else { 0 };
        let request = if flags & REQUEST != 0 { Some(cursor.uint()?) } else { None };
        let payload = cursor.rest().len();
        bytes.drain(..bytes.len() - payload);
        Ok(Packet { tag, channel, request, flags: flags >> 2, payload: bytes })
    }

    /// Appends the packet with its length.
    pub(in crate::vt) fn encode(&self, out: &mut Vec<u8>) {
        let mut head = Vec::with_capacity(4 * LONGEST_UINT);
        let has_channel = if self.channel == 0 { 0 } else { CHANNEL };
        let is_request = if self.request.is_some() { REQUEST } else { 0 };
        put_uint(&mut head, self.tag);
        put_uint(&mut head, self.flags << 2 | has_channel | is_request);
        if self.channel != 0 {
            put_uint(&mut head, self.channel);
        }
        if let Some(kind) = self.request {
            put_uint(&mut head, kind);
        }
        put_uint(out, (head.len() + self.payload.len()) as u64);
        out.extend(head);
        out.extend_from_slice(&self.payload);
    }
}

/// Bytes of the message of a response that an error repeats.
const SHOWN_BYTES: usize = 400;

/// Reads packets one after the other.
#[derive(Debug)]
pub(in crate::vt) struct PacketReader<R> {
    source: BufReader<R>,
    /// Offset in the stream at which the next packet begins.
    at: u64,
}

impl<R: Read> PacketReader<R> {
    pub(in crate::vt) fn new(source: R) -> Self {
        PacketReader { source: BufReader::new(source), at: 0 }
    }

    /// `None` if the stream ends before the packet. Memory is allocated as bytes arrive. `Limit`
    /// for a packet of more than [`LONGEST_PACKET`] bytes, `Format` for another one that is damaged
    /// or incomplete: where the next one begins is unknown then.
    pub(in crate::vt) fn next(&mut self) -> Result<Option<Packet>> {
        let place = Context::offset("packet", self.at);
        self.read().context(place)
    }

    fn read(&mut self) -> Result<Option<Packet>> {
        let Some(len) = self.len()? else { return Ok(None) };
        if len > LONGEST_PACKET {
            return Err(Error::limit(format!("a packet of {len} bytes; the limit is {LONGEST_PACKET}")));
        }
        let mut bytes = Vec::new();
        (&mut self.source).take(len).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != len {
            let message = format!("the stream ends in a packet of {len} bytes, of which {} arrived", bytes.len());
            return Err(Error::format(message));
        }
        self.at += len;
        Packet::decode(bytes).map(Some)
    }

    fn len(&mut self) -> Result<Option<u64>> {
        let mut bytes = Vec::with_capacity(LONGEST_UINT);
        loop {
            let mut next = [0];
            match self.source.read_exact(&mut next) {
                Ok(()) => bytes.extend(next),
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && bytes.is_empty() => return Ok(None),
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    return Err(Error::format("the stream ends in the length of a packet"));
                }
                Err(error) => return Err(error.into()),
            }
            if let Some((len, _)) = decode_uint(&bytes)? {
                self.at += bytes.len() as u64;
                return Ok(Some(len));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(mut bytes: &[u8]) -> Result<Vec<Packet>> {
        let mut reader = PacketReader::new(&mut bytes);
        std::iter::from_fn(|| reader.next().transpose()).collect()
    }

    #[test]
    fn packets_are_those_of_the_original() {
        let request = Packet::request(1, 0, 0, b"ab".to_vec());
        let with_channel = Packet { channel: 5, flags: 3, ..request.clone() };
        let success = request.success(1, b"c".to_vec());
        let failure = Packet { tag: 300, ..request.failure("no") };
        let mut out = Vec::new();
        for packet in [&Packet::end(), &request, &with_channel, &success, &failure] {
            packet.encode(&mut out);
        }
        let expected: [&[u8]; 5] = [
            &[3, 0, 2, 0],
            &[5, 1, 2, 1, b'a', b'b'],
            &[6, 1, 0x0f, 5, 1, b'a', b'b'],
            &[3, 1, 0x0c, b'c'],
            &[5, 0x82, 0x2c, 0, b'n', b'o'],
        ];
        assert_eq!(out, expected.concat());
        assert_eq!(read_all(&out).unwrap(), [Packet::end(), request, with_channel, success.clone(), failure.clone()]);
        assert!(read_all(&out).unwrap()[0].is_end());
        assert_eq!(success.answer().unwrap(), (1, b"c".to_vec()));
        assert_eq!(failure.answer().unwrap_err().message(), "the store refuses the request: no");
    }

    #[test]
    fn incomplete_and_oversized_packets_are_refused() {
        let mut out = Vec::new();
        Packet::request(1, 8, 0, vec![7; 200]).encode(&mut out);
        for len in 1..out.len() {
            assert_eq!(read_all(&out[..len]).unwrap_err().kind(), ctds::ErrorKind::Format, "{len}");
        }
        assert_eq!(read_all(&[]).unwrap(), []);
        for (bytes, message) in [
            (&[0][..], "packet at byte 0: head at byte 0: the bytes end in an integer"),
            (&[3, 0, 2, 0, 2, 0], "packet at byte 4: the stream ends in a packet of 2 bytes, of which 1 arrived"),
            (&[3, 0, 2, 0, 0x80], "packet at byte 4: the stream ends in the length of a packet"),
            (&[0xff; 12], "packet at byte 0: an integer exceeds 64 bits"),
            (&[1, 5], "packet at byte 0: head at byte 1: the bytes end in an integer"),
            (&[2, 5, 2], "packet at byte 0: head at byte 2: the bytes end in an integer"),
            (&[3, 5, 3, 7], "packet at byte 0: head at byte 3: the bytes end in an integer"),
        ] {
            let error = read_all(bytes).unwrap_err();
            assert_eq!(error.kind(), ctds::ErrorKind::Format);
            assert!(error.to_string().starts_with(message), "{error}");
        }
        let mut huge = Vec::new();
        put_uint(&mut huge, LONGEST_PACKET + 1);
        assert_eq!(read_all(&huge).unwrap_err().kind(), ctds::ErrorKind::Limit);
    }
}
