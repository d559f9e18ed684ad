//! Answers for every number.

use std::collections::VecDeque;

use core::convert::Infallible;
use core::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::tlv::{self, Reader};
use namecast_packet::{Data, DataTemplate, DecodeError, LpPacket, Name};
use namecast_units::Instant;
use smart_default::SmartDefault;

use crate::{Application, Now, Output, face};

/// What to answer for, and with what.
///
/// The default is 1024 octets under `/`: set [`prefix`](Self::prefix).
#[derive(Clone, Debug, SmartDefault)]
pub struct ServerConfig {
    /// Name before the number.
    #[default(Name::root())]
    pub prefix: Name,
    /// Octets of content in each Data packet.
    #[default(1_024)]
    pub content_size: usize,
    /// Octets of each packet, content included, whatever the number: the made-up signature has the length that this needs.
    /// `None`: no signature at all. Real signatures leave it unused.
    pub wire_size: Option<usize>,
    /// How long Data counts as fresh.
    pub freshness: Duration,
    /// Numbers from here on are not answered; `None`: all are.
    pub end: Option<u64>,
    /// Answers kept until they are polled, at most; Interests beyond that are dropped.
    #[default(65_536)]
    pub max_outputs: usize,
}

/// Why there can be no such server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// The packet's size leaves no room for content and name, or cannot be had, since lengths take more octets from 253.
    #[error(
        "a packet with {content} octets of content cannot have {wire} octets: at least {least}, and not all sizes above"
    )]
    WireSize {
        /// Octets of content.
        content: usize,
        /// Octets that the packet should have.
        wire: usize,
        /// Octets of the packet without a signature, for the largest number.
        least: usize,
    },
}

/// What a server counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Interests answered.
    pub answered: u64,
    /// Interests for another name, or a number past the end.
    pub unknown: u64,
    /// Packets that broke the format, or were no Interests.
    pub malformed: u64,
    /// Interests dropped because nobody polled.
    pub overflow: u64,
}

/// Answers Interests for `/<prefix>/seq=<n>`, for every n, with the same content.
///
/// A plain value without a deadline: give it packets, take the answers from [`poll_output`](Self::poll_output).
pub struct Server {
    config: ServerConfig,
    making: Making,
    outputs: VecDeque<Bytes>,
    counters: ServerCounters,
}

enum Making {
    /// By copying; one template for each length of a number.
    Templates(Box<[DataTemplate; 4]>),
    /// By signing each.
    Signing {
        content: Bytes,
        signer: Box<dyn Signer + Send>,
    },
}

impl core::fmt::Debug for Server {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Server")
            .field("config", &self.config)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// The smallest number of each length.
const NUMBERS: [u64; 4] = [0, 1 << 8, 1 << 16, 1 << 32];

impl Server {
    /// A server whose Data has no signature but zeros in its place.
    ///
    /// # Errors
    /// If no signature makes the packets as large as they should be.
    pub fn new(config: ServerConfig) -> Result<Self, ServerError> {
        let lengths = match config.wire_size {
            None => [0; 4],
            Some(wire) => signature_lengths(&config, wire)?,
        };
        let making = Making::Templates(Box::new(lengths.map(|length| template(&config, length))));
        Ok(Self::with(config, making))
    }

    /// A server that signs every packet when it is asked for.
    pub fn signing(config: ServerConfig, signer: Box<dyn Signer + Send>) -> Self {
        let content = vec![0; config.content_size].into();
        Self::with(config, Making::Signing { content, signer })
    }

    fn with(config: ServerConfig, making: Making) -> Self {
        Self {
            config,
            making,
            outputs: VecDeque::new(),
            counters: ServerCounters::default(),
        }
    }

    /// Takes a packet from the face.
    pub fn handle_packet(&mut self, _now: Instant, wire: Bytes) {
        if wire.first().copied().map(u32::from) == Some(tlv::INTEREST) {
            if let Some(data) = self.answer(&wire) {
                self.outputs.push_back(data);
            }
            return;
        }
        match LpPacket::decode(wire) {
            Ok(packet) if packet.nack.is_none() => self.on_link_packet(packet),
            Ok(_) => {}
            Err(_) => self.counters.malformed += 1,
        }
    }

    /// The answer takes the PIT token back.
    fn on_link_packet(&mut self, packet: LpPacket) {
        let Some(interest) = packet.fragment else {
            return;
        };
        if let Some(data) = self.answer(&interest) {
            let reply = face::answer(data, packet.pit_token);
            self.outputs.push_back(reply);
        }
    }

    /// The next packet to send, until `None`.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        self.outputs.pop_front()
    }

    /// What it counted.
    pub const fn counters(&self) -> &ServerCounters {
        &self.counters
    }

    fn answer(&mut self, wire: &Bytes) -> Option<Bytes> {
        let Ok(name) = name_of(wire) else {
            self.counters.malformed += 1;
            return None;
        };
        let number = super::number_in(&self.config.prefix, name.value());
        let end = self.config.end.unwrap_or(u64::MAX);
        let Some(number) = number.filter(|&number| number < end) else {
            self.counters.unknown += 1;
            return None;
        };
        if self.outputs.len() >= self.config.max_outputs {
            self.counters.overflow += 1;
            return None;
        }
        self.counters.answered += 1;
        Some(self.make(number, name))
    }

    /// Returns the Data of a number; `None` past the end.
    pub(super) fn data(&self, number: u64) -> Option<Bytes> {
        let name = self.config.prefix.builder().sequence(number).finish();
        let is_there = number < self.config.end.unwrap_or(u64::MAX);
        is_there.then(|| self.make(number, name))
    }

    fn make(&self, number: u64, name: Name) -> Bytes {
        let data = match &self.making {
            Making::Templates(templates) => {
                let width = tlv::number_size(number);
                templates[width.ilog2() as usize].build(name)
            }
            Making::Signing { content, signer } => Data::builder(name)
                .freshness(self.config.freshness)
                .content(content.clone())
                .sign(&**signer),
        };
        data.wire().clone()
    }
}

/// The name of an Interest, of which nothing else matters here.
pub(super) fn name_of(wire: &Bytes) -> Result<Name, DecodeError> {
    let whole = Reader::new(wire).only("Interest", tlv::INTEREST)?;
    let mut reader = Reader::within(wire, whole.value);
    let missing = DecodeError::new("Name", reader.position(), namecast_packet::Problem::Missing);
    let name = reader
        .element("Name")?
        .filter(|name| name.element_type == tlv::NAME);
    Name::from_element(wire, &name.ok_or(missing)?)
}

fn template(config: &ServerConfig, signature_length: usize) -> DataTemplate {
    Data::builder(Name::root())
        .freshness(config.freshness)
        .content(vec![0; config.content_size])
        .template(NullSigner.info(), signature_length)
}

/// Octets of signature, for each length of a number, with which packets have `wire` octets.
fn signature_lengths(config: &ServerConfig, wire: usize) -> Result<[usize; 4], ServerError> {
    let size = |number, length| {
        let name = config.prefix.builder().sequence(number).finish();
        template(config, length).build(name).wire().len()
    };
    let mut lengths = [0; 4];
    for (length, number) in lengths.iter_mut().zip(NUMBERS) {
        let bare = size(number, 0);
        // Each length that takes three octets instead of one moves the size by two: that of the packet, and that of the
        // signature.
        let most = wire.saturating_sub(bare);
        let found = (most.saturating_sub(4)..=most).find(|&length| size(number, length) == wire);
        *length = found.ok_or(ServerError::WireSize {
            content: config.content_size,
            wire,
            least: size(NUMBERS[3], 0),
        })?;
    }
    Ok(lengths)
}

impl Application for Server {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, _now: Now) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        Self::poll_output(self).map(Output::Send)
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::lp::NackReason;
    use namecast_packet::signature::{DigestSigner, DigestVerifier};
    use namecast_packet::{Interest, Nonce};

    use super::*;

    fn config() -> ServerConfig {
        ServerConfig {
            prefix: "/p/q".parse().unwrap(),
            ..ServerConfig::default()
        }
    }

    fn interest(name: &str) -> Bytes {
        let name: Name = name.parse().unwrap();
        Interest::builder(name)
            .build(Nonce([1, 2, 3, 4]))
            .wire()
            .clone()
    }

    fn ask(server: &mut Server, name: &str) -> Option<Data> {
        server.handle_packet(Instant::ZERO, interest(name));
        let answer = server.poll_output();
        assert_eq!(server.poll_output(), None);
        answer.map(|wire| Data::decode(wire).unwrap())
    }

    #[test]
    fn every_number_is_answered_with_packets_of_one_size() {
        for wire in [1_074, 1_100, 2_000] {
            let mut server = Server::new(ServerConfig {
                wire_size: Some(wire),
                ..config()
            })
            .unwrap();
            for number in [0, 255, 256, 65_535, 65_536, 1 << 32, u64::MAX - 1] {
                let name = format!("/p/q/seq={number}");
                let data = ask(&mut server, &name).unwrap();
                assert_eq!(data.name().to_string(), name);
                assert_eq!(data.wire().len(), wire);
                assert_eq!(data.content().unwrap().len(), 1_024);
            }
            assert_eq!(server.counters().answered, 7);
        }
    }

    /// Without a signature: 2 + 2 of Name, 3 + 3 of components, 4 + 1024 of Content, 5 of SignatureInfo, 2 of
    /// SignatureValue, 4 of Data.
    #[test]
    fn sizes_that_cannot_be_had_are_refused() {
        let size = |content_size, wire_size| {
            Server::new(ServerConfig {
                content_size,
                wire_size: Some(wire_size),
                ..config()
            })
            .map(|mut server| ask(&mut server, "/p/q/seq=1").unwrap().wire().len())
        };
        let least = 4 + 2 + 3 + 3 + 10 + 4 + 1_024 + 5 + 2;
        assert_eq!(
            size(1_024, 1_000),
            Err(ServerError::WireSize {
                content: 1_024,
                wire: 1_000,
                least
            })
        );
        assert_eq!(size(1_024, least), Ok(least));
        assert!(size(1_024, least - 1).is_err());
        // A signature of 252 octets takes 254, one of 253 takes 257, so with each length of a number two sizes are missing;
        // those of one and two octets, which differ by one, share a size.
        let gap = (least..least + 300).filter(|&wire| size(1_024, wire).is_err());
        assert_eq!(gap.count(), 7);
    }

    #[test]
    fn other_names_and_numbers_past_the_end_are_not_answered() {
        let mut server = Server::new(ServerConfig {
            end: Some(5),
            ..config()
        })
        .unwrap();
        assert!(ask(&mut server, "/p/q/seq=4").is_some());
        for name in ["/p/q/seq=5", "/p/q", "/p/q/v=1", "/x/q/seq=1"] {
            assert_eq!(ask(&mut server, name), None, "{name}");
        }
        assert_eq!(server.counters().unknown, 4);
    }

    #[test]
    fn a_token_comes_back_with_the_answer() {
        let mut server = Server::new(config()).unwrap();
        let token = Bytes::from_static(b"token");
        let asked = LpPacket {
            pit_token: Some(token.clone()),
            ..LpPacket::carrying(interest("/p/q/seq=1"))
        };
        server.handle_packet(Instant::ZERO, asked.encode());
        let answer = LpPacket::decode(server.poll_output().unwrap()).unwrap();
        assert_eq!(answer.pit_token, Some(token));
        assert!(Data::decode(answer.fragment.unwrap()).is_ok());
    }

    #[test]
    fn signed_answers_verify_and_are_fresh() {
        let config = ServerConfig {
            freshness: Duration::from_secs(1),
            ..config()
        };
        let mut server = Server::signing(config, Box::new(DigestSigner));
        let data = ask(&mut server, "/p/q/seq=70000").unwrap();
        assert_eq!(data.verify(&DigestVerifier), Ok(()));
        assert_eq!(data.freshness(), Duration::from_secs(1));
    }

    #[test]
    fn what_is_no_interest_is_counted() {
        let mut server = Server::new(ServerConfig {
            max_outputs: 1,
            ..config()
        })
        .unwrap();
        let data = Data::builder("/p/q/seq=1".parse().unwrap()).sign(&NullSigner);
        let whole = interest("/p/q/seq=1");
        for wire in [
            Bytes::new(),
            data.wire().clone(),
            whole.slice(..whole.len() - 1),
            Bytes::from_static(&[5, 0]),
            Bytes::from_static(&[5, 2, 6, 0]),
        ] {
            server.handle_packet(Instant::ZERO, wire);
        }
        assert_eq!(server.counters().malformed, 5);
        let nack = LpPacket {
            nack: Some(NackReason::NoRoute),
            ..LpPacket::carrying(whole.clone())
        };
        server.handle_packet(Instant::ZERO, nack.encode());
        assert_eq!(server.poll_output(), None);
        server.handle_packet(Instant::ZERO, whole.clone());
        server.handle_packet(Instant::ZERO, whole);
        assert_eq!(server.counters().overflow, 1);
        assert!(server.poll_output().is_some());
    }
}
