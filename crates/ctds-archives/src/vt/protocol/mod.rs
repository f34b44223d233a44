//! The protocol by which a vt store answers over a stream of bytes, such as a socket or the
//! standard input and output of a program: packets, and the requests to a store in them. It is that
//! of the Python packages cs.packetstream and cs.vt. docs/reference/formats/vt.md.
//!
//! ```text
//!   bsdata packet       tag, flags, channel, type of request, payload     [`packet`]
//!     └─ payload        of a request 0 to 8, or of its response           [`request`]
//! ```
//!
//! Both sides may send requests; a response has the tag of its request. A store only responds, and
//! its client only requests.

mod packet;
mod request;

pub(super) use packet::{Packet, PacketReader};
pub use request::HashRange;
pub(super) use request::{Request, Saved, decode_hash, decode_saved, encode_hash, encode_saved};
