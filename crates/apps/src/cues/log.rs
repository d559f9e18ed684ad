//! Reads the log of a show: the packets that desks and devices published, as they signed them, one after the other.
//!
//! ```text
//!  certificate │ lead of a message │ its other segments, if it has any │ lead │ …
//! ```
//!
//! A log thus says nothing that its publishers did not sign. Its octets are those that the network carried and that archives keep.

use std::collections::BTreeMap;

use core::ops::Range;

use bytes::Bytes;
use namecast_packet::tlv::Reader;
use namecast_packet::{Certificate, Data, KeyLocator, Name};
use namecast_stream::{Lead, RungNames, SegmentId, SegmentKind};
use namecast_units::Timestamp;

use super::cue::{Cue, Done, MAX_CUE};
use super::{ACKS, CUES, LIST, REFUSED};

/// Certificates of a log.
const MAX_CERTIFICATES: usize = 1_024;

/// Publisher of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Publisher {
    /// A desk of a show.
    Desk {
        /// The show.
        show: Name,
        /// The desk.
        name: String,
    },
    /// A device of a show.
    Device {
        /// The show.
        show: Name,
        /// The device.
        id: String,
    },
}

/// A message of a desk or device.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// What was pressed.
    Cue(Cue),
    /// What became of it.
    Done(Done),
}

/// Whose signature a message has.
#[derive(Clone, Debug, PartialEq)]
pub struct Signed {
    /// Its certificate.
    pub certificate: Certificate,
    /// SHA-256 digest of the public key.
    pub key_digest: [u8; 32],
}

/// One message of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// Its number in the log, from 1.
    pub line: u64,
    /// Its publisher.
    pub publisher: Publisher,
    /// When it was published, by the publisher's clock.
    pub at: Timestamp,
    /// The message.
    pub message: Message,
    /// Whose signature it has.
    pub signed: Signed,
}

/// Why a line of a log was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The file is no sequence of packets from here on.
    #[error("octet {0}: no packet")]
    Packet(usize),
    /// A packet belongs to no message.
    #[error("octet {0}: a packet of no desk's or device's message")]
    Unknown(usize),
    /// Segments of the message are missing or not those that its lead names.
    #[error("line {0}: not all segments of the message are there as they were signed")]
    Segments(u64),
    /// The signature is wrong.
    #[error("line {0}: the signature is not that of {1}")]
    Signature(u64, Name),
    /// The log has no certificate of the key.
    #[error("line {0}: the log has no certificate of its key")]
    Certificate(u64),
    /// The key is that of somebody else.
    #[error("line {0}: {1} may not sign for {2}")]
    Signer(u64, Name, Name),
    /// The message cannot be read.
    #[error("line {0}: {1}")]
    Message(u64, String),
    /// Messages before it are missing.
    #[error("line {line}: {missing} messages before it are missing")]
    Gap {
        /// The line.
        line: u64,
        /// Number of messages.
        missing: u64,
    },
}

/// Reads a log, line by line.
#[derive(Debug)]
pub struct Log {
    octets: Bytes,
    at: usize,
    line: u64,
    certificates: BTreeMap<Name, Certificate>,
    /// Position of the last message of each stream.
    positions: BTreeMap<Name, u64>,
    /// A line that was read and follows a gap.
    held: Option<LogLine>,
}

impl Publisher {
    /// The publisher of the streams under `root`.
    fn of(root: &Name) -> Option<(Self, Name)> {
        let text = |index: usize| {
            let component = root.get(index)?;
            String::from_utf8(component.value.to_vec()).ok()
        };
        let length = root.len();
        let device = length.checked_sub(2)?;
        if text(device)? == "device" {
            let (show, id) = (root.prefix(device), text(length - 1)?);
            (super::device_root(&show, &id) == *root).then_some(())?;
            return Some((Self::Device { show, id }, root.clone()));
        }
        let desk = length.checked_sub(3)?;
        if text(desk)? == "cues" && text(desk + 1)? == LIST {
            let (show, name) = (root.prefix(desk), text(length - 1)?);
            (super::desk_root(&show, &name) == *root).then_some(())?;
            let identity = super::desk_identity(&show, &name);
            return Some((Self::Desk { show, name }, identity));
        }
        None
    }

    /// Returns its name for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Desk { name, .. } => name,
            Self::Device { id, .. } => id,
        }
    }
}

impl Log {
    /// Reads the log in `octets`.
    pub const fn new(octets: Bytes) -> Self {
        Self {
            octets,
            at: 0,
            line: 0,
            certificates: BTreeMap::new(),
            positions: BTreeMap::new(),
            held: None,
        }
    }

    /// Returns the next packet, and where it begins.
    fn packet(&mut self) -> Option<Result<(usize, Data), LogError>> {
        let start = self.at;
        if start == self.octets.len() {
            return None;
        }
        let Some(range) = packet_at(&self.octets, start) else {
            // Nothing says where the next packet would begin.
            self.at = self.octets.len();
            return Some(Err(LogError::Packet(start)));
        };
        self.at = range.end;
        let data = Data::decode(self.octets.slice(range));
        Some(
            data.map(|data| (start, data))
                .map_err(|_| LogError::Packet(start)),
        )
    }

    fn take(&mut self, (start, data): (usize, Data)) -> Result<Option<LogLine>, LogError> {
        if let Ok(certificate) = Certificate::decode(data.clone()) {
            if self.certificates.len() < MAX_CERTIFICATES {
                self.certificates.insert(data.name().clone(), certificate);
            }
            return Ok(None);
        }
        let segment = RungNames::of_segment(data.name());
        let (rung, id) = segment.ok_or(LogError::Unknown(start))?;
        let (root, stream) = split(&rung).ok_or(LogError::Unknown(start))?;
        let (publisher, identity) = Publisher::of(&root).ok_or(LogError::Unknown(start))?;
        // A segment without its lead was damaged with it.
        if !id.is_lead() {
            return Err(LogError::Unknown(start));
        }
        self.line += 1;
        let line = self.line;
        let lead = Lead::decode(&data);
        let lead = lead.map_err(|error| LogError::Message(line, error.to_string()))?;
        let payload = self.payload(id, &lead).ok_or(LogError::Segments(line))?;
        let signed = self.signed(&data, &[&root, &identity])?;
        let header = lead.header();
        let message = match (&publisher, &*stream) {
            (Publisher::Desk { .. }, CUES) => Cue::decode(&payload).map(Message::Cue),
            (Publisher::Desk { .. }, REFUSED) | (Publisher::Device { .. }, ACKS) => {
                Done::decode(&payload).map(Message::Done)
            }
            _ => return Err(LogError::Unknown(start)),
        };
        let message = message.map_err(|error| LogError::Message(line, error.to_string()))?;
        let read = LogLine {
            line,
            publisher,
            at: header.captured_at,
            message,
            signed,
        };
        let last = self.positions.insert(rung, header.position);
        // A publisher that starts again counts from zero.
        let expected = last.map_or(header.position, |last| last.saturating_add(1));
        if header.position > expected {
            self.held = Some(read);
            let missing = header.position - expected;
            return Err(LogError::Gap { line, missing });
        }
        Ok(Some(read))
    }

    /// Collects the payload of a message, whose other segments follow. Passes over segments that are not as its lead names them.
    fn payload(&mut self, lead_id: SegmentId, lead: &Lead) -> Option<Vec<u8>> {
        let mut payload = lead.share().to_vec();
        let mut is_whole = true;
        for index in 1..lead.data_count() as u64 {
            let range = packet_at(&self.octets, self.at)?;
            let data = Data::decode(self.octets.slice(range.clone()));
            let Ok(data) = data else {
                self.at = range.end;
                is_whole = false;
                continue;
            };
            let (_, id) = RungNames::of_segment(data.name())?;
            if id != (SegmentId { index, ..lead_id }) {
                return None;
            }
            self.at = range.end;
            is_whole &= lead.vouches_for(SegmentKind::Data, index, &data);
            if payload.len() <= 2 * MAX_CUE {
                payload.extend_from_slice(&data.content().unwrap_or_default());
            }
        }
        (is_whole && payload.len() <= 2 * MAX_CUE).then_some(payload)
    }

    /// Verifies the signature of a message, by a certificate of the log.
    fn signed(&self, data: &Data, identities: &[&Name]) -> Result<Signed, LogError> {
        let line = self.line;
        let locator = data.signature_info().key_locator;
        let locator = locator.ok_or(LogError::Certificate(line))?;
        let certificate = self.certificate(&locator);
        let certificate = certificate.ok_or(LogError::Certificate(line))?;
        let key = certificate.public_key();
        let key = key.map_err(|_| LogError::Certificate(line))?;
        if data.verify(&key).is_err() {
            return Err(LogError::Signature(line, certificate.key_name()));
        }
        let signer = certificate.identity();
        if !identities.contains(&&signer) {
            let of = identities[0].clone();
            return Err(LogError::Signer(line, signer, of));
        }
        Ok(Signed {
            key_digest: key.digest(),
            certificate: certificate.clone(),
        })
    }

    fn certificate(&self, locator: &KeyLocator) -> Option<&Certificate> {
        let mut certificates = self.certificates.values();
        certificates.find(|certificate| certificate.matches(locator))
    }
}

/// Returns where the packet at `start` is.
fn packet_at(octets: &Bytes, start: usize) -> Option<Range<usize>> {
    let mut reader = Reader::within(octets, start..octets.len());
    let element = reader.element("packet").ok()??;
    Some(element.whole())
}

/// Returns the root and the stream of a rung.
fn split(rung: &Name) -> Option<(Name, String)> {
    let depth = rung.len().checked_sub(2)?;
    let stream = String::from_utf8(rung.get(depth)?.value.to_vec()).ok()?;
    Some((rung.prefix(depth), stream))
}

impl Iterator for Log {
    type Item = Result<LogLine, LogError>;

    /// Returns the next line, or the problem in its place.
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(held) = self.held.take() {
            return Some(Ok(held));
        }
        loop {
            let taken = self.packet()?.and_then(|packet| self.take(packet));
            if let Some(line) = taken.transpose() {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests;
