//! Frames between the listener's process and its parent: a kind, a length, and a message in JSON or the octets of a connection.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest stream ID in octets: `CSrtConfig::MAX_SID_LENGTH` of libsrt.
pub const MAX_STREAM_ID: usize = 512;
/// Longest message in octets. A stream ID takes six for each of its own where JSON escapes it.
const MAX_MESSAGE: usize = 8_192;
/// Most octets of a connection in one frame: more than one SRT packet holds (1 456).
pub(crate) const MAX_OCTETS: usize = 2_048;
const _: () = assert!(MAX_MESSAGE > 6 * MAX_STREAM_ID + 1_024);

/// Kind and length.
const HEADER: usize = 5;
/// Number of a connection before its octets.
const ID: usize = 4;
const MESSAGE: u8 = 0;
const OCTETS: u8 = 1;

/// An order from the parent to the listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Listen; the first order, and once.
    Listen(Listen),
    /// Accept the connection that the listener asked about.
    Accept {
        /// Number of the connection.
        id: i32,
    },
    /// Reject it.
    Reject {
        /// Number of the connection.
        id: i32,
        /// One of [`reject`](crate::reject).
        code: i32,
    },
    /// Report this many more packets of a connection.
    Credit {
        /// Number of the connection.
        id: i32,
        /// Packets.
        packets: u32,
    },
    /// Close a connection.
    Close {
        /// Number of the connection.
        id: i32,
    },
}

/// Where and how to listen.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listen {
    /// Address; with port 0 on any port, which [`Report::Listening`] names.
    pub address: SocketAddr,
    /// Receiver latency in milliseconds; a pusher may ask for more.
    pub latency_ms: u32,
    /// Milliseconds of silence after which a pusher is gone.
    pub max_idle_ms: u32,
    /// Milliseconds that a connection may wait for credit.
    pub max_stall_ms: u32,
    /// Connections at a time.
    pub max_connections: usize,
    /// Passphrase of 10 to 79 characters that encrypts all connections; `None`: none is encrypted.
    pub passphrase: Option<String>,
}

impl core::fmt::Debug for Listen {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let is_encrypted = self.passphrase.is_some();
        f.debug_struct("Listen")
            .field("address", &self.address)
            .field("is_encrypted", &is_encrypted)
            .finish_non_exhaustive()
    }
}

/// A report from the listener to its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// It listens.
    Listening {
        /// Bound address.
        address: SocketAddr,
    },
    /// It cannot listen, and ends.
    Failed {
        /// Cause.
        cause: Failure,
        /// Sentence for people.
        text: String,
    },
    /// A pusher wants a connection. It waits for [`Order::Accept`] or [`Order::Reject`], and all connections wait with it.
    Asked {
        /// Number of the connection.
        id: i32,
        /// Address of the pusher.
        peer: SocketAddr,
        /// Stream ID, empty if there is none.
        stream_id: String,
    },
    /// The handshake of an accepted connection is complete. It is read once it has credit.
    Opened {
        /// Number of the connection.
        id: i32,
        /// Address of the pusher.
        peer: SocketAddr,
        /// Stream ID, empty if there is none.
        stream_id: String,
        /// Negotiated receiver latency in milliseconds.
        latency_ms: u32,
    },
    /// One packet of a connection.
    #[serde(skip)]
    Octets {
        /// Number of the connection.
        id: i32,
        /// Payload.
        payload: Bytes,
    },
    /// A connection ended.
    Closed {
        /// Number of the connection.
        id: i32,
        /// Cause.
        why: Closed,
    },
}

/// Cause of a listener's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// libsrt is not on this machine.
    NoLibrary,
    /// The address is not available.
    Bind,
    /// Anything else.
    Internal,
}

/// Cause of a connection's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Closed {
    /// The pusher closed it, the parent did, or the network broke: libsrt's text.
    Ended(String),
    /// It had no credit for [`Listen::max_stall_ms`].
    Stalled,
}

/// A message of either direction.
pub(crate) trait Message: Sized + DeserializeOwned {
    /// Makes the message of octets of a connection, if this direction has one.
    fn octets(id: i32, payload: Bytes) -> Option<Self>;
}

impl Message for Report {
    fn octets(id: i32, payload: Bytes) -> Option<Self> {
        Some(Self::Octets { id, payload })
    }
}

impl Message for Order {
    fn octets(_: i32, _: Bytes) -> Option<Self> {
        None
    }
}

/// Breach of the framing; the other process is not what it should be.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The first octet names no kind of frame.
    #[error("unknown kind of frame: {0}")]
    Kind(u8),
    /// The length exceeds the bound of its kind, or is too short for it.
    #[error("frame of {0} octets")]
    Length(usize),
    /// The message is not one of this direction.
    #[error("malformed message: {0}")]
    Message(#[from] serde_json::Error),
    /// Octets in a direction that has none.
    #[error("octets from the parent")]
    Octets,
}

/// Octets received, of which whole frames are taken.
#[derive(Debug, Default)]
pub struct Frames {
    /// Octets that have arrived. Holds at most one frame beyond what one read appends.
    pub received: BytesMut,
}

impl Frames {
    /// Takes the next report of a listener; `None`: it has not arrived whole.
    ///
    /// # Errors
    /// If it breaks the framing. Nothing can be read after it.
    pub fn report(&mut self) -> Result<Option<Report>, FrameError> {
        self.next()
    }

    /// Takes the next order of the parent; `None`: it has not arrived whole.
    ///
    /// # Errors
    /// If it breaks the framing.
    pub(crate) fn order(&mut self) -> Result<Option<Order>, FrameError> {
        self.next()
    }

    fn next<T: Message>(&mut self) -> Result<Option<T>, FrameError> {
        let Some((header, _)) = self.received.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let [kind, length @ ..] = *header;
        let length = u32::from_be_bytes(length) as usize;
        let bounds = match kind {
            MESSAGE => 1..=MAX_MESSAGE,
            OCTETS => ID..=ID + MAX_OCTETS,
            _ => return Err(FrameError::Kind(kind)),
        };
        if !bounds.contains(&length) {
            return Err(FrameError::Length(length));
        }
        if self.received.len() < HEADER + length {
            return Ok(None);
        }
        self.received.advance(HEADER);
        let mut body = &self.received.split_to(length)[..];
        if kind == MESSAGE {
            return Ok(Some(serde_json::from_slice(body)?));
        }
        let id = body.get_i32();
        // A copy: a packet that waits must not keep all that arrived with it.
        let body = Bytes::copy_from_slice(body);
        T::octets(id, body).map(Some).ok_or(FrameError::Octets)
    }
}

impl Order {
    /// Returns the frame of this order.
    pub fn frame(&self) -> Vec<u8> {
        message(self)
    }
}

impl Report {
    /// Returns the frame of this report.
    pub fn frame(&self) -> Vec<u8> {
        match self {
            Self::Octets { id, payload } => octets(*id, payload),
            message_only => message(message_only),
        }
    }
}

fn message(message: &impl Serialize) -> Vec<u8> {
    let body = serde_json::to_vec(message).expect("messages have no maps and no floats");
    frame(MESSAGE, &[], &body)
}

/// Returns the frame of one packet of a connection.
pub(crate) fn octets(id: i32, payload: &[u8]) -> Vec<u8> {
    frame(OCTETS, &id.to_be_bytes(), payload)
}

fn frame(kind: u8, head: &[u8], body: &[u8]) -> Vec<u8> {
    let length = head.len() + body.len();
    let mut frame = Vec::with_capacity(HEADER + length);
    frame.put_u8(kind);
    frame.put_u32(length as u32);
    frame.put_slice(head);
    frame.put_slice(body);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reports() -> Vec<Report> {
        let peer = "[2001:db8::1]:9".parse().unwrap();
        let worst = "\u{1}".repeat(MAX_STREAM_ID);
        vec![
            Report::Listening { address: peer },
            Report::Failed {
                cause: Failure::Bind,
                text: "taken".to_owned(),
            },
            Report::Asked {
                id: 7,
                peer,
                stream_id: worst.clone(),
            },
            Report::Opened {
                id: i32::MAX,
                peer,
                stream_id: worst,
                latency_ms: 120,
            },
            Report::Octets {
                id: -1,
                payload: Bytes::from(vec![5; MAX_OCTETS]),
            },
            Report::Octets {
                id: 0,
                payload: Bytes::new(),
            },
            Report::Closed {
                id: 7,
                why: Closed::Stalled,
            },
        ]
    }

    fn orders() -> Vec<Order> {
        let listen = Listen {
            address: "127.0.0.1:0".parse().unwrap(),
            latency_ms: 60,
            max_idle_ms: 5_000,
            max_stall_ms: 5_000,
            max_connections: 64,
            passphrase: Some("ten letters".to_owned()),
        };
        vec![
            Order::Listen(listen),
            Order::Accept { id: 1 },
            Order::Reject { id: 2, code: 1_401 },
            Order::Credit { id: 3, packets: 9 },
            Order::Close { id: 4 },
        ]
    }

    /// However the octets are cut.
    #[test]
    fn messages_survive_the_way() {
        for step in [1, 3, 4_096] {
            let sent: Vec<u8> = reports().iter().flat_map(Report::frame).collect();
            let (mut frames, mut heard) = (Frames::default(), Vec::new());
            for part in sent.chunks(step) {
                frames.received.extend_from_slice(part);
                while let Some(report) = frames.report().unwrap() {
                    heard.push(report);
                }
            }
            assert_eq!(heard, reports());
            assert!(frames.received.is_empty());
        }
        let mut frames = Frames::default();
        for order in orders() {
            frames.received.extend_from_slice(&order.frame());
            assert_eq!(frames.order().unwrap(), Some(order));
        }
    }

    #[test]
    fn frames_beyond_their_bounds_are_refused_before_they_arrive() {
        let error = |octets: &[u8]| {
            let mut frames = Frames::default();
            frames.received.extend_from_slice(octets);
            frames.report().unwrap_err()
        };
        assert!(matches!(error(&[2, 0, 0, 0, 1]), FrameError::Kind(2)));
        assert!(matches!(
            error(&[0, 0xff, 0xff, 0xff, 0xff]),
            FrameError::Length(_)
        ));
        assert!(matches!(error(&[0, 0, 0, 0, 0]), FrameError::Length(0)));
        assert!(matches!(error(&[1, 0, 0, 0, 3]), FrameError::Length(3)));
        assert!(matches!(
            error(&frame(OCTETS, &[0; ID], &[0; MAX_OCTETS + 1])),
            FrameError::Length(_)
        ));
        assert!(matches!(
            error(&frame(MESSAGE, &[], b"{}")),
            FrameError::Message(_)
        ));
        let mut frames = Frames::default();
        frames.received.extend_from_slice(&octets(1, b"media"));
        assert!(matches!(frames.order(), Err(FrameError::Octets)));
    }

    /// Every octet of every frame set to each of its neighbours: a message or an error, and no panic.
    #[test]
    fn damaged_frames_are_messages_or_errors() {
        let all = reports().into_iter().map(|it| it.frame());
        for sent in all.filter(|frame| frame.len() < 200) {
            for (at, bit) in (0..sent.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
                let mut damaged = sent.clone();
                damaged[at] ^= 1 << bit;
                let mut frames = Frames::default();
                frames.received.extend_from_slice(&damaged);
                while let Ok(Some(_)) = frames.report() {}
            }
        }
    }

    #[test]
    fn passphrases_are_not_shown() {
        let shown = format!("{:?}", orders());
        assert!(!shown.contains("ten letters"), "{shown}");
    }
}
