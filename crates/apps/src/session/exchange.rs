//! Two files that cross: each side offers one or none, says from where on it needs the other's, and whether it has it whole.
//!
//! ```text
//! Offer: digest, size, name     Nothing     Want: offset     Chunk: octets     Result: whole or not
//! ```
//!
//! What a side has of an earlier attempt it need not have again: whoever runs this keeps it, and says how much it is.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

const OFFER: u8 = 0;
const NOTHING: u8 = 1;
const WANT: u8 = 2;
const CHUNK: u8 = 3;
const RESULT: u8 = 4;

/// Octets of a file in one message, with which a packet and the next Interest fit in a datagram of 1400 octets.
pub const CHUNK_SIZE: usize = 1_000;
/// Longest name of a file, in octets.
const MAX_NAME: usize = 255;

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What it is called, without a directory.
    pub name: String,
    /// Octets.
    pub size: u64,
    /// SHA-256 of its content.
    pub digest: [u8; 32],
}

impl Offer {
    fn encode(&self) -> Bytes {
        let mut octets = BytesMut::from(&[OFFER][..]);
        octets.extend_from_slice(&self.digest);
        octets.extend_from_slice(&self.size.to_be_bytes());
        octets.extend_from_slice(self.name.as_bytes());
        octets.freeze()
    }

    fn decode(body: &[u8]) -> Option<Self> {
        let (digest, rest) = body.split_first_chunk()?;
        let (size, name) = rest.split_first_chunk()?;
        let name = core::str::from_utf8(name).ok()?;
        // It becomes a file's name on this machine; what else may not be in one there, whoever writes it replaces.
        let is_name = !name.is_empty()
            && name.len() <= MAX_NAME
            && !name.starts_with('.')
            && !name.contains(['/', '\\', '\0']);
        is_name.then(|| Self {
            name: name.to_owned(),
            size: u64::from_be_bytes(*size),
            digest: *digest,
        })
    }
}

/// What the other side says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It has this file: answer with [`want`](Exchange::want).
    Offers(Offer),
    /// It has no file.
    Nothing,
    /// It needs this side's file from this octet on.
    Wants(u64),
    /// The next octets of its file.
    Chunk(Bytes),
    /// It has this side's file whole, or something else.
    Result(bool),
}

/// A message that makes no sense, or not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other side sent what makes no sense here")]
pub struct Senseless;

/// One side of an exchange.
#[derive(Debug)]
pub struct Exchange {
    own: Option<Offer>,
    /// From where on the other side needs it, as far as it is sent.
    sent: Option<u64>,
    own_result: Option<bool>,
    other: Option<Option<Offer>>,
    received: u64,
    is_wanted: bool,
    other_result: Option<bool>,
    messages: VecDeque<Bytes>,
}

impl Exchange {
    /// An exchange that offers `own`.
    pub fn new(own: Option<Offer>) -> Self {
        let hello = own.as_ref().map(Offer::encode);
        let hello = hello.unwrap_or_else(|| Bytes::from_static(&[NOTHING]));
        Self {
            own,
            sent: None,
            own_result: None,
            other: None,
            received: 0,
            is_wanted: false,
            other_result: None,
            messages: VecDeque::from([hello]),
        }
    }

    /// The next message to send, but for chunks.
    pub fn poll_message(&mut self) -> Option<Bytes> {
        self.messages.pop_front()
    }

    /// Takes a message.
    ///
    /// # Errors
    /// If it makes no sense: the exchange is over then.
    pub fn handle_message(&mut self, message: &Bytes) -> Result<Said, Senseless> {
        let kind = *message.first().ok_or(Senseless)?;
        let body = message.slice(1..);
        match kind {
            OFFER if self.other.is_none() => {
                let offer = Offer::decode(&body).ok_or(Senseless)?;
                self.other = Some(Some(offer.clone()));
                Ok(Said::Offers(offer))
            }
            NOTHING if self.other.is_none() => {
                self.other = Some(None);
                Ok(Said::Nothing)
            }
            WANT => {
                let offset = body[..].try_into().map(u64::from_be_bytes);
                let offset = offset.map_err(|_| Senseless)?;
                let size = self.own.as_ref().map(|own| own.size).ok_or(Senseless)?;
                if offset > size || self.sent.is_some() {
                    return Err(Senseless);
                }
                self.sent = Some(offset);
                Ok(Said::Wants(offset))
            }
            CHUNK => {
                let offer = self.other.as_ref().and_then(Option::as_ref);
                let size = offer.filter(|_| self.is_wanted).ok_or(Senseless)?.size;
                self.received += body.len() as u64;
                if self.received > size || body.is_empty() {
                    return Err(Senseless);
                }
                Ok(Said::Chunk(body))
            }
            RESULT if self.sent.is_some() && self.own_result.is_none() => {
                let is_whole = body[..] == [1];
                self.own_result = Some(is_whole);
                Ok(Said::Result(is_whole))
            }
            _ => Err(Senseless),
        }
    }

    /// Has the other side send its file from `offset` on, as much as is here already.
    pub fn want(&mut self, offset: u64) {
        let mut message = BytesMut::from(&[WANT][..]);
        message.extend_from_slice(&offset.to_be_bytes());
        (self.received, self.is_wanted) = (offset, true);
        self.messages.push_back(message.freeze());
    }

    /// Says whether the other side's file is here whole.
    pub fn finish(&mut self, is_whole: bool) {
        self.other_result = Some(is_whole);
        let message = Bytes::copy_from_slice(&[RESULT, u8::from(is_whole)]);
        self.messages.push_back(message);
    }

    /// The message with the next octets of this side's file.
    pub fn chunk(&mut self, octets: &[u8]) -> Bytes {
        let mut message = BytesMut::from(&[CHUNK][..]);
        message.extend_from_slice(octets);
        self.sent = self.sent.map(|sent| sent + octets.len() as u64);
        message.freeze()
    }

    /// Octets of this side's file that are still to be sent; `None` before the other side has said what it needs.
    pub fn unsent(&self) -> Option<u64> {
        let size = self.own.as_ref()?.size;
        Some(size.saturating_sub(self.sent?))
    }

    /// Octets of the other side's file that are here.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Octets of this side's file that were sent, or that the other side had.
    pub fn sent(&self) -> u64 {
        self.sent.unwrap_or(0)
    }

    /// What the other side offers, once it has said so.
    pub fn offered(&self) -> Option<&Offer> {
        self.other.as_ref()?.as_ref()
    }

    /// Whether both sides have what they were to have, or know that they have not.
    pub fn is_done(&self) -> bool {
        let is_given = self.own.is_none() || self.own_result.is_some();
        let is_taken = match &self.other {
            None => false,
            Some(None) => true,
            Some(Some(_)) => self.other_result.is_some(),
        };
        is_given && is_taken && self.messages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(name: &str) -> Offer {
        Offer {
            name: name.to_owned(),
            size: 3_500,
            digest: [7; 32],
        }
    }

    /// Passes on what both have to say, and returns what each heard.
    fn talk(ends: &mut [Exchange; 2]) -> [Vec<Said>; 2] {
        let mut heard = [Vec::new(), Vec::new()];
        for side in [0, 1, 0, 1] {
            while let Some(message) = ends[side].poll_message() {
                let said = ends[1 - side].handle_message(&message).unwrap();
                heard[1 - side].push(said);
            }
        }
        heard
    }

    #[test]
    fn both_files_cross_and_what_is_there_is_left_out() {
        let mut ends = [
            Exchange::new(Some(offer("a"))),
            Exchange::new(Some(offer("b"))),
        ];
        let heard = talk(&mut ends);
        assert_eq!(heard[1], [Said::Offers(offer("a"))]);
        ends[1].want(3_000);
        ends[0].want(3_500);
        assert_eq!(
            talk(&mut ends),
            [vec![Said::Wants(3_000)], vec![Said::Wants(3_500)]]
        );
        assert_eq!((ends[0].unsent(), ends[1].unsent()), (Some(500), Some(0)));
        let chunk = ends[0].chunk(&[1; 500]);
        let heard = ends[1].handle_message(&chunk);
        assert_eq!(heard, Ok(Said::Chunk(vec![1; 500].into())));
        assert_eq!((ends[0].unsent(), ends[1].received()), (Some(0), 3_500));
        assert_eq!(ends[1].handle_message(&chunk), Err(Senseless), "too much");
        ends[0].finish(true);
        ends[1].finish(false);
        assert!(!ends[0].is_done());
        assert_eq!(
            talk(&mut ends),
            [vec![Said::Result(false)], vec![Said::Result(true)]]
        );
        assert!(ends[0].is_done() && ends[1].is_done());
    }

    #[test]
    fn one_side_may_have_nothing() {
        let mut ends = [Exchange::new(Some(offer("a"))), Exchange::new(None)];
        assert_eq!(talk(&mut ends)[0], [Said::Nothing]);
        ends[1].want(0);
        assert_eq!(talk(&mut ends)[0], [Said::Wants(0)]);
        ends[1].finish(true);
        talk(&mut ends);
        assert!(ends[0].is_done() && ends[1].is_done());
    }

    #[test]
    fn names_stay_in_their_directory() {
        for name in [
            "",
            ".",
            "..",
            ".bashrc",
            "a/b",
            "../x",
            "a\\b",
            "a\0b",
            &"x".repeat(256),
        ] {
            let message = offer(name).encode();
            let heard = Exchange::new(None).handle_message(&message);
            assert_eq!(heard, Err(Senseless), "{name:?}");
        }
        for name in ["übung 1.pdf", "a\nb", "con:", "\u{202e}fdp.exe"] {
            let message = offer(name).encode();
            assert!(Exchange::new(None).handle_message(&message).is_ok());
        }
    }

    #[test]
    fn what_comes_out_of_turn_is_refused() {
        let fresh = || Exchange::new(Some(offer("a")));
        for message in [
            &[][..],
            &[CHUNK, 1],
            &[RESULT, 1],
            &[WANT, 0, 0],
            &[WANT, 0, 0, 0, 0, 0, 0, 14, 0],
            &[9],
            &[OFFER, 1],
        ] {
            let heard = fresh().handle_message(&Bytes::copy_from_slice(message));
            assert_eq!(heard, Err(Senseless), "{message:?}");
        }
        let mut twice = fresh();
        let nothing = Bytes::from_static(&[NOTHING]);
        assert_eq!(twice.handle_message(&nothing), Ok(Said::Nothing));
        assert_eq!(twice.handle_message(&nothing), Err(Senseless));
    }
}
