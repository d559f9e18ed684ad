//! Streams out.

use std::collections::BTreeSet;

use bytes::Bytes;
use namecast_apps::live::{EncodedFrame, Publisher, PublisherConfig};
use namecast_net::Handle;
use namecast_packet::{Certificate, Data, Name};
use namecast_stream::producer::RungId;
use namecast_stream::{ProducerConfig, Reading, Rung, SampleRate, StreamInfo, StreamKind};
use namecast_units::Bitrate;

use crate::error::Error;
use crate::node::{Node, parse_name};

/// What is to be published under one name. Add streams, then [`start`](Self::start).
#[derive(Clone, Debug)]
pub struct Publish {
    node: Node,
    root: Name,
    streams: Vec<StreamInfo>,
    /// X25519 keys of readers; `None`: samples are not sealed.
    readers: Option<BTreeSet<[u8; 32]>>,
    /// Whose certified key signs; `None`: the name's own key.
    certified: Option<Name>,
}

/// One bitrate of a video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoRung {
    /// Its name: `200k`, `1M`, …; 1 to 64 of `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// Rate of the encoded frames.
    pub bitrate: Bitrate,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl VideoRung {
    /// Describes a rung of that name, rate and size.
    pub fn new(name: &str, bitrate: Bitrate, width: u32, height: u32) -> Self {
        Self {
            name: name.to_owned(),
            bitrate,
            width,
            height,
        }
    }
}

impl Node {
    /// Begins to publish under `name`, such as `/studio/camera1`.
    ///
    /// # Errors
    /// If it is no name.
    pub fn publish(&self, name: &str) -> Result<Publish, Error> {
        Ok(Publish {
            node: self.clone(),
            root: parse_name(name)?,
            streams: Vec::new(),
            readers: None,
            certified: None,
        })
    }
}

impl Publish {
    /// Adds a stream of samples that stand alone: readings, positions, cues. There may be up to `samples_per_second`, of about
    /// `octets` each; both only help those who watch to request in time.
    #[must_use]
    pub fn data(self, name: &str, samples_per_second: u32, octets: u32) -> Self {
        self.stream(StreamInfo::data(name, samples_per_second, octets))
    }

    /// Adds a stream of events: cues, messages, changes of a state. They have no rhythm, and whoever watches gets each once and in
    /// order, however late. There may be up to `events_per_second` for a while, of about `octets` each.
    #[must_use]
    pub fn events(self, name: &str, events_per_second: u32, octets: u32) -> Self {
        self.stream(StreamInfo::events(name, events_per_second, octets))
    }

    /// Adds a stream of states, such as positions: whoever watches gets each as soon as it is there, unless a later one was. There are
    /// `samples_per_second`, of about `octets` each.
    #[must_use]
    pub fn newest(self, name: &str, samples_per_second: u32, octets: u32) -> Self {
        self.stream(StreamInfo::newest(name, samples_per_second, octets))
    }

    /// Adds a video that your encoder gives in `rungs`, with a key frame each `key_interval` frames. `codec` is the codec as
    /// WebCodecs names it, such as `avc1.42E01F` or `vp8`.
    #[must_use]
    pub fn video(
        self,
        codec: &str,
        frames_per_second: u32,
        key_interval: u32,
        rungs: impl IntoIterator<Item = VideoRung>,
    ) -> Self {
        let rung = |rung: VideoRung| Rung {
            name: rung.name,
            bitrate: rung.bitrate,
            width: Some(rung.width),
            height: Some(rung.height),
            rate: SampleRate::new(frames_per_second, 1),
            key_interval,
            reorder_delay: 0,
            codec_string: codec.to_owned(),
            sample_rate: None,
            channels: None,
            inter_frame: None,
            description: None,
        };
        let rungs = rungs.into_iter().map(rung).collect();
        self.stream(stream("video", StreamKind::Video, family(codec), rungs))
    }

    /// Adds sound that your encoder gives in Opus packets of 20 ms.
    #[must_use]
    pub fn audio(self, bitrate: Bitrate, channels: u32) -> Self {
        let rung = Rung {
            name: StreamInfo::ONLY_RUNG.to_owned(),
            bitrate,
            width: None,
            height: None,
            rate: SampleRate::new(50, 1),
            key_interval: 1,
            reorder_delay: 0,
            codec_string: "opus".to_owned(),
            sample_rate: Some(48_000),
            channels: Some(channels),
            inter_frame: None,
            description: None,
        };
        self.stream(stream("audio", StreamKind::Audio, "opus", vec![rung]))
    }

    /// Seals all samples, so that the holders of these X25519 keys alone can open them: watchers with [`Watch::reader`](crate::Watch::reader).
    #[must_use]
    pub fn sealed(mut self, readers: impl IntoIterator<Item = [u8; 32]>) -> Self {
        self.readers = Some(readers.into_iter().collect());
        self
    }

    /// Signs with the key that a certificate was installed for, of `identity` or of its longest prefix, so that consumers who go by the schema
    /// of a room accept it.
    #[must_use]
    pub fn certified(mut self, identity: Name) -> Self {
        self.certified = Some(identity);
        self
    }

    /// Adds a stream as a catalogue describes it.
    #[must_use]
    pub fn stream(mut self, stream: StreamInfo) -> Self {
        self.streams.push(stream);
        self
    }

    /// Publishes: whoever watches the name from now on joins. It is signed with the key of the name, which is made when it is
    /// first used.
    ///
    /// # Errors
    /// If a stream is not valid, there is no key or no certificate, or the node has stopped.
    pub async fn start(self) -> Result<Publication, Error> {
        let (signer, certificate) = match &self.certified {
            Some(identity) => self.node.certified(identity)?,
            None => self.node.identity(&self.root)?,
        };
        let config = PublisherConfig {
            root: self.root.clone(),
            streams: self.streams,
            producer: ProducerConfig::default(),
            shared_since: None,
        };
        let wall = self.node.inner().clock().wall();
        let mut publisher = Publisher::new(config, wall, signer, &certificate)?;
        if let Some(readers) = &self.readers {
            publisher = publisher.sealed(namecast_net::random(), readers)?;
        }
        let (handle, _) = self.node.run(Some(&self.root), publisher).await?;
        Ok(Publication {
            handle,
            certificate,
        })
    }
}

fn stream(name: &str, kind: StreamKind, codec: &str, rungs: Vec<Rung>) -> StreamInfo {
    StreamInfo {
        name: name.to_owned(),
        kind,
        codec: codec.to_owned(),
        rungs,
        segment_size: StreamInfo::SEGMENT_SIZE,
        parity_percent: StreamInfo::PARITY_PERCENT,
        reading: Reading::default(),
    }
}

/// The codec without its profile.
fn family(codec: &str) -> &str {
    match codec.split('.').next().unwrap_or(codec) {
        "avc1" | "avc3" => "h264",
        "vp09" => "vp9",
        "av01" => "av1",
        other => other,
    }
}

/// What is being published. It ends when this is dropped.
#[derive(Clone, Debug)]
pub struct Publication {
    handle: Handle<Publisher>,
    certificate: Certificate,
}

impl Publication {
    /// Publishes a sample of the data stream `stream`, captured now.
    ///
    /// # Errors
    /// If there is no such stream, the sample is too large, or the node has stopped.
    pub async fn send(&self, stream: &str, sample: impl Into<Bytes>) -> Result<(), Error> {
        let (stream, payload) = (stream.to_owned(), sample.into());
        let sent = self.handle.call(move |publisher, now| {
            rung_of(publisher, &stream, StreamInfo::ONLY_RUNG)?;
            Ok(publisher.publish_sample(now, &stream, payload)?)
        });
        sent.await.unwrap_or(Err(Error::Ended))
    }

    /// Publishes a frame or sound packet of `rung` of `stream`, as your encoder gave it.
    ///
    /// # Errors
    /// If there is no such rung, the frame needs a key frame that was not published or is too large, or the node has stopped.
    pub async fn send_frame(
        &self,
        stream: &str,
        rung: &str,
        frame: EncodedFrame,
    ) -> Result<(), Error> {
        let (stream, rung) = (stream.to_owned(), rung.to_owned());
        let sent = self.handle.call(move |publisher, now| {
            let rung = rung_of(publisher, &stream, &rung)?;
            Ok(publisher.publish_frame(now.monotonic, now.wall, rung, frame)?)
        });
        sent.await.unwrap_or(Err(Error::Ended))
    }

    /// Sets who may open samples of a [sealed](Publish::sealed) publication. Newcomers open the next sample; those who are left out are shut out
    /// within 0.8 s. Does nothing if it is not sealed.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn set_readers(
        &self,
        readers: impl IntoIterator<Item = [u8; 32]>,
    ) -> Result<(), Error> {
        let readers = readers.into_iter().collect();
        let set = self.handle.call(move |publisher, now| {
            publisher.set_readers(now.monotonic, &readers);
        });
        set.await.ok_or(Error::Ended)
    }

    /// Returns the certificate of the key that signs.
    pub const fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Returns the packets of the newest sample of the data stream `stream` as they were signed, for a log that others can verify.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn newest_sample(&self, stream: &str) -> Result<Vec<Data>, Error> {
        let stream = stream.to_owned();
        let packets = self
            .handle
            .call(move |publisher, _| publisher.newest_sample(&stream));
        packets.await.ok_or(Error::Ended)
    }

    /// The publisher, to call it or to read what it has counted.
    pub const fn handle(&self) -> &Handle<Publisher> {
        &self.handle
    }
}

fn rung_of(publisher: &Publisher, stream: &str, rung: &str) -> Result<RungId, Error> {
    let found = publisher.rung(stream, rung);
    found.ok_or_else(|| Error::NoSuchStream {
        stream: stream.to_owned(),
        rung: rung.to_owned(),
    })
}
