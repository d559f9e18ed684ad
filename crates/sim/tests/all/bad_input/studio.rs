//! A publisher that counts as a script says, and one whose answers somebody changes.

use core::convert::Infallible;
use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::signature::Ed25519Signer;
use namecast_packet::tlv::Writer;
use namecast_packet::{Certificate, Data, KeyLocator, LpPacket, Packet, Validity};
use namecast_sim::live::Media;
use namecast_sim::{Application, ApplicationId, Now, Output};
use namecast_stream::producer::{Arrival, RungConfig, RungId};
use namecast_stream::segmenter::SegmenterConfig;
use namecast_stream::{Catalogue, Producer, ProducerConfig, Sample, SampleClass, SampleHeader};
use namecast_stream::{Lead, names::RungNames};
use namecast_units::{Duration, Instant, Timestamp};

use crate::bad_input::stage::{PERIOD, Stage};
use crate::live_world::root;

/// Frames from key to key.
const KEY_INTERVAL: u64 = 30;
/// Where a script's numbers begin.
pub(crate) const FIRST: u64 = 1_000;

/// The key of all publishers here, as the simulator's own have it.
pub(crate) fn right_key() -> Ed25519Signer {
    signer(1)
}

/// A key of the same name that nobody trusts.
pub(crate) fn wrong_key() -> Ed25519Signer {
    signer(99)
}

fn signer(seed: u8) -> Ed25519Signer {
    let name = root().builder().generic("KEY").generic("1").finish();
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(name))
}

/// Where an encoder is before its next frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoder {
    /// Next number, key and delta.
    pub(crate) next: [u64; 2],
    /// Next position.
    pub(crate) position: u64,
    /// Octets of the next frame instead of the usual.
    pub(crate) size: Option<usize>,
    /// The next frame is not published.
    pub(crate) is_dropped: bool,
}

/// Changes an encoder before the frame of that number.
type Script = Box<dyn FnMut(u64, &mut Encoder)>;

/// Gives what leaves instead of a packet.
type Change = Box<dyn FnMut(Now, &Data) -> Vec<Data>>;

/// Publishes one rung, 30 frames a second, with the numbers that a script says.
pub(crate) struct Studio {
    producer: Producer,
    rung: RungId,
    media: Media,
    frame: u64,
    encoder: Encoder,
    /// Key sample that delta samples depend on; none while it was refused.
    key: Option<u64>,
    script: Script,
    /// What the producer refused, and why.
    pub(crate) refused: Vec<String>,
    pub(crate) published: u64,
}

impl Studio {
    /// Publishes the usual video; `script` may change the encoder before each frame.
    pub(crate) fn new(media: Media, script: impl FnMut(u64, &mut Encoder) + 'static) -> Self {
        let key = right_key();
        let validity = Validity {
            not_before: Timestamp::from_micros(0),
            not_after: Timestamp::from_micros(u64::MAX / 2),
        };
        let certificate = Certificate::self_signed(&root(), b"1", 1, validity, &key);
        let info = media.info();
        let config = RungConfig {
            segmenter: SegmenterConfig {
                segment_size: info.segment_size as usize,
                parity_percent: info.parity_percent as usize,
            },
            first_sequence: FIRST,
            inter_frame: info.rungs[0].inter_frame,
            ..RungConfig::default()
        };
        let (stream, name) = (info.name.clone(), info.rungs[0].name.clone());
        let mut producer = Producer::new(root(), Box::new(key), ProducerConfig::default());
        let catalogue = Catalogue {
            version: 1,
            starts: Default::default(),
            title: None,
            streams: vec![info],
            signer: certificate.key_name().to_string(),
        };
        producer.add_object(certificate.data().clone()).unwrap();
        producer.set_catalogue(&catalogue).unwrap();
        let rung = producer.add_rung(&stream, &name, config).unwrap();
        let encoder = Encoder {
            next: [FIRST; 2],
            position: 0,
            size: None,
            is_dropped: false,
        };
        Self {
            producer,
            rung,
            media,
            frame: 0,
            encoder,
            key: None,
            script: Box::new(script),
            refused: Vec::new(),
            published: 0,
        }
    }

    fn due(&self) -> Instant {
        Instant::ZERO + self.media.captured_after(self.frame)
    }

    fn publish(&mut self, now: Now) {
        (self.script)(self.frame, &mut self.encoder);
        let is_key = self.frame.is_multiple_of(KEY_INTERVAL);
        let position = self.encoder.position;
        let usual = self.media.payload(&self.media.rungs[0], position);
        let payload = match self.encoder.size.take() {
            Some(size) => Bytes::from(vec![7; size]),
            None => usual,
        };
        self.frame += 1;
        self.encoder.position += 1;
        let [next_key, next_delta] = self.encoder.next;
        let (class, sequence, other_sequence) = match (is_key, self.key) {
            (true, _) => (SampleClass::Key, next_key, next_delta),
            (false, Some(key)) => (SampleClass::Delta, next_delta, key),
            (false, None) => return,
        };
        if core::mem::take(&mut self.encoder.is_dropped) {
            return;
        }
        let sample = Sample {
            class,
            sequence,
            other_sequence,
            position,
            captured_at: now.wall,
            composition_offset: Duration::ZERO,
            encoded_at: now.wall,
            payload,
            seal: None,
        };
        let published = self
            .producer
            .publish(now.monotonic, now.wall, self.rung, &sample);
        if let Err(error) = published {
            self.refused.push(error.to_string());
            self.key = None;
            return;
        }
        self.published += 1;
        self.encoder.next[class.index()] = sequence + 1;
        if is_key {
            self.key = Some(sequence);
        }
    }
}

impl Application for Studio {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        let Ok(link) = LpPacket::decode(frame) else {
            return;
        };
        if let Some(Ok(Packet::Interest(interest))) = link.fragment.map(Packet::decode) {
            self.producer
                .handle_interest(
                    now.monotonic,
                    now.wall,
                    &interest,
                    Arrival {
                        pit_token: link.pit_token,
                        face: None,
                    },
                )
                .ok();
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        while self.due() <= now.monotonic {
            self.publish(now);
        }
        self.producer.handle_timeout(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let expiry = self.producer.poll_timeout();
        [Some(self.due()), expiry].into_iter().flatten().min()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        let reply = self.producer.poll_output()?;
        let packet = LpPacket {
            pit_token: reply.pit_token,
            ..LpPacket::carrying(reply.data.wire().clone())
        };
        Some(Output::Send(packet.encode()))
    }
}

/// An application whose answers somebody changes before they leave.
pub(crate) struct Changed<A> {
    pub(crate) inner: A,
    now: Option<Now>,
    change: Change,
    outputs: VecDeque<Bytes>,
}

impl<A: Application> Changed<A> {
    /// `change` gives what leaves instead of each Data.
    pub(crate) fn new(inner: A, change: impl FnMut(Now, &Data) -> Vec<Data> + 'static) -> Self {
        Self {
            inner,
            now: None,
            change: Box::new(change),
            outputs: VecDeque::new(),
        }
    }

    fn drain(&mut self, now: Now) {
        self.now = Some(now);
        while let Some(Output::Send(frame)) = self.inner.poll_output() {
            let link = LpPacket::decode(frame.clone()).unwrap();
            let Ok(Packet::Data(data)) = Packet::decode(link.fragment.clone().unwrap()) else {
                // A Nack.
                self.outputs.push_back(frame);
                continue;
            };
            for data in (self.change)(now, &data) {
                let fragment = Some(data.wire().clone());
                let link = LpPacket {
                    fragment,
                    ..link.clone()
                };
                self.outputs.push_back(link.encode());
            }
        }
    }
}

impl<A: Application> Application for Changed<A> {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.inner.handle_frame(now, frame);
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.inner.handle_timeout(now);
        self.drain(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.inner.poll_timeout()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        self.outputs.pop_front().map(Output::Send)
    }
}

impl Stage {
    /// Adds an application that answers for `/demo` on P.
    pub(crate) fn produce(
        &mut self,
        application: impl Application<Event: 'static> + 'static,
    ) -> ApplicationId {
        let node = self.world.node("P");
        let towards = namecast_sim::topology::routes::towards(&self.world.topology, node);
        let network = &mut self.world.network;
        network
            .add_producer(node, &root(), application, &towards)
            .unwrap()
    }
}

/// The lead in `data`, if it is one of the video's.
pub(crate) fn lead_in(data: &Data) -> Option<(SampleClass, Lead)> {
    let names = RungNames::new("/demo/video/1M".parse().unwrap());
    let id = names.parse(data.name())?;
    let lead = Lead::decode(data).ok().filter(|_| id.is_lead())?;
    Some((id.class, lead))
}

/// When the frame of a script is published.
pub(crate) fn frame_at(frame: u32) -> Duration {
    PERIOD * frame
}

/// What a lead holds, as it is written: header, Digests element, share.
pub(crate) struct Written {
    pub(crate) header: SampleHeader,
    pub(crate) digests: Bytes,
    pub(crate) share: Bytes,
}

impl Written {
    /// Takes a lead apart.
    pub(crate) fn of(data: &Data) -> Self {
        let (content, lead) = (data.content().unwrap(), Lead::decode(data).unwrap());
        let header = lead.header().clone();
        let share = lead.share().clone();
        let digests = content.slice(header.encoded_size()..content.len() - share.len());
        Self {
            header,
            digests,
            share,
        }
    }

    /// A lead under the name of `data`, signed by `key`.
    pub(crate) fn sign(&self, data: &Data, key: &Ed25519Signer) -> Data {
        let mut writer = Writer::default();
        self.header.encode(&mut writer);
        writer.raw(&self.digests);
        writer.raw(&self.share);
        let builder = Data::builder(data.name().clone());
        builder.content(writer.finish()).sign(key)
    }
}
