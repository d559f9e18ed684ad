//! One connection of somebody who pushes, without sockets: octets in, octets and events out. Adobe's specification of RTMP 1.0.
//!
//! ```text
//!  handshake ─▶ connect ─▶ createStream ─▶ publish ─▶ Event::Publish ─ accept ─▶ Event::Media …
//!                                                                   └ refuse
//! ```

use std::collections::VecDeque;

use bytes::Bytes;

use super::amf::{self, Value};
use super::chunks::{self, ChunkReader, Message};

/// Octets of either half of the handshake, after the version.
const HANDSHAKE: usize = 1_536;
const VERSION: u8 = 3;
/// Octets that are taken until somebody was accepted: handshake and commands are a tenth of it.
const MAX_UNKNOWN: usize = 1 << 16;
/// Octets of a command.
const MAX_COMMAND: usize = 1 << 13;
/// Octets of metadata that are looked into.
const MAX_METADATA: usize = 1 << 16;
/// Octets after which their receipt is acknowledged, unless the peer sets another number, but never fewer than the second.
const WINDOW: u32 = 2_500_000;
const MIN_WINDOW: u32 = 1 << 16;
/// Size of our chunks.
const CHUNK_SIZE: u32 = 4_096;
/// The stream of messages that is pushed; control is on 0.
const PUSHED: u32 = 1;

/// Codecs of Enhanced RTMP that are taken.
const VIDEO_CODECS: [&str; 4] = ["avc1", "hvc1", "av01", "vp09"];
const AUDIO_CODECS: [&str; 4] = ["mp4a", "Opus", "fLaC", "ac-3"];
/// Bits of `FourCcInfoMask` and of `CapsExMask`.
const CAN_DECODE_AND_FORWARD: f64 = 5.0;
const MOD_EX: f64 = 4.0;

/// Kinds of messages: section 5.4, 6.2 and 7.1.
mod kind {
    pub(super) const SET_CHUNK_SIZE: u8 = 1;
    pub(super) const ABORT: u8 = 2;
    pub(super) const ACKNOWLEDGEMENT: u8 = 3;
    pub(super) const USER_CONTROL: u8 = 4;
    pub(super) const WINDOW_SIZE: u8 = 5;
    pub(super) const PEER_BANDWIDTH: u8 = 6;
    pub(super) const AUDIO: u8 = 8;
    pub(super) const VIDEO: u8 = 9;
    pub(super) const DATA_3: u8 = 15;
    pub(super) const COMMAND_3: u8 = 17;
    pub(super) const DATA: u8 = 18;
    pub(super) const COMMAND: u8 = 20;
}

/// Why a connection ends. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RtmpError {
    /// The first octet is no version.
    #[error("this is no RTMP: the first byte is {0}, not {VERSION}")]
    Version(u8),
    /// A chunk refers to none before it, or there are too many of its kind.
    #[error("a chunk of stream {0} is out of place")]
    ChunkStream(u32),
    /// No chunk has this size.
    #[error("{0} is no chunk size")]
    ChunkSize(u32),
    /// A message, or all that have begun, are too long.
    #[error("{0} bytes of messages are more than the {limit} that are taken", limit = chunks::MAX_MESSAGE)]
    TooLong(usize),
    /// A command or control message is cut off, too long or none at all.
    #[error("a command makes no sense")]
    Command,
    /// The connection is not used as one for pushing.
    #[error("much came before 'publish'")]
    Unknown,
    /// Somebody wants to watch by RTMP.
    #[error("nothing is played by RTMP: watch with the page, or namecast watch")]
    Play,
}

/// What somebody does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionEvent {
    /// Wants to push: an answer is due.
    Publish {
        /// The application, `live` of `rtmp://host/live/cam`.
        application: String,
        /// The stream, `cam` of it, with what follows a question mark.
        stream: String,
    },
    /// Pushes pictures or sound.
    Media {
        /// 8 for sound, 9 for pictures, as in FLV.
        kind: u8,
        /// In milliseconds.
        time: u32,
        payload: Bytes,
    },
    /// Announces what it will push.
    Metadata {
        /// Whether there will be pictures.
        video: bool,
        /// Whether there will be sound.
        audio: bool,
    },
    /// Has finished.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waits for so many more octets of the handshake.
    Hello,
    /// Waits for commands.
    Commands,
    /// An answer is due.
    Asked,
    Pushing,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session {
    stage: Stage,
    /// The handshake, as far as it has come.
    hello: Vec<u8>,
    chunks: ChunkReader,
    application: String,
    output: Vec<u8>,
    events: VecDeque<SessionEvent>,
    received: u32,
    acknowledged: u32,
    window: u32,
}

impl Session {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Hello,
            hello: Vec::new(),
            chunks: ChunkReader::default(),
            application: String::new(),
            output: Vec::new(),
            events: VecDeque::new(),
            received: 0,
            acknowledged: 0,
            window: WINDOW,
        }
    }

    /// Takes what came.
    ///
    /// # Errors
    /// If the connection cannot go on.
    pub(super) fn receive(&mut self, octets: &[u8]) -> Result<(), RtmpError> {
        let count = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        self.received = self.received.wrapping_add(count);
        if self.stage != Stage::Pushing && self.received as usize > MAX_UNKNOWN {
            return Err(RtmpError::Unknown);
        }
        match self.stage {
            Stage::Hello => self.greet(octets)?,
            _ => self.chunks.push(octets),
        }
        if self.stage == Stage::Hello {
            return Ok(());
        }
        while let Some(message) = self.chunks.next()? {
            self.handle(&message)?;
        }
        let unacknowledged = self.received.wrapping_sub(self.acknowledged);
        if unacknowledged >= self.window {
            self.acknowledged = self.received;
            self.control(kind::ACKNOWLEDGEMENT, &self.received.to_be_bytes());
        }
        Ok(())
    }

    /// The next thing that happened.
    pub(super) fn next_event(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    /// What is to be sent.
    pub(super) fn take_output(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.output)
    }

    /// Lets it push.
    pub(super) fn accept(&mut self) {
        self.stage = Stage::Pushing;
        // Stream begins.
        let event = [&[0, 0][..], &PUSHED.to_be_bytes()].concat();
        self.control(kind::USER_CONTROL, &event);
        self.status("status", "NetStream.Publish.Start", "Publishing");
    }

    /// Says why not. The connection is of no further use.
    pub(super) fn refuse(&mut self, why: &str) {
        let code = match self.stage {
            Stage::Pushing => "NetStream.Publish.Rejected",
            _ => "NetStream.Publish.BadName",
        };
        self.status("error", code, why);
    }

    /// The handshake without digests, section 5.2: theirs, ours, and ours of theirs. What they answer is passed over, as some write
    /// a time into it.
    fn greet(&mut self, octets: &[u8]) -> Result<(), RtmpError> {
        let had = self.hello.len();
        self.hello.extend_from_slice(octets);
        match self.hello.first() {
            Some(&version) if version != VERSION => return Err(RtmpError::Version(version)),
            _ => {}
        }
        let both = 1 + HANDSHAKE;
        if had < both && self.hello.len() >= both {
            self.output.push(VERSION);
            self.output.extend([0; HANDSHAKE]);
            self.output
                .extend_from_slice(self.hello.get(1..both).unwrap_or_default());
        }
        if let Some(rest) = self.hello.get(both + HANDSHAKE..) {
            self.chunks.push(rest);
            self.hello = Vec::new();
            self.stage = Stage::Commands;
        }
        Ok(())
    }

    fn handle(&mut self, message: &Message) -> Result<(), RtmpError> {
        let payload = &message.payload;
        match message.kind {
            kind::SET_CHUNK_SIZE => self.chunks.set_chunk_size(number(payload)?)?,
            kind::ABORT => self.chunks.abort(number(payload)?),
            kind::WINDOW_SIZE => self.window = number(payload)?.max(MIN_WINDOW),
            kind::AUDIO | kind::VIDEO if self.stage == Stage::Pushing => {
                self.events.push_back(SessionEvent::Media {
                    kind: message.kind,
                    time: message.time,
                    payload: message.payload.clone(),
                });
            }
            kind::DATA if self.stage == Stage::Pushing => self.metadata(payload),
            kind::DATA_3 if self.stage == Stage::Pushing => {
                self.metadata(payload.get(1..).unwrap_or_default());
            }
            kind::COMMAND => self.command(payload)?,
            // In AMF 3 commands begin with a zero, and go on in AMF 0.
            kind::COMMAND_3 => self.command(payload.get(1..).unwrap_or_default())?,
            // Acknowledgements of what little we send, pings.
            _ => {}
        }
        Ok(())
    }

    /// Looks into `onMetaData`. Nobody is refused for what is in it.
    fn metadata(&mut self, payload: &[u8]) {
        let values = Some(payload).filter(|it| it.len() <= MAX_METADATA);
        let values = values.and_then(|it| amf::read(it).ok()).unwrap_or_default();
        let is_metadata = |value: &Value| value.as_text() == Some("onMetaData");
        let Some(about) = values.iter().skip_while(|it| !is_metadata(it)).nth(1) else {
            return;
        };
        // Codecs have numbers or names; zero is none, but of sound it is PCM, which nobody pushes.
        let announces = |property: &str| match about.property(property)? {
            Value::Number(number) => Some(*number != 0.0),
            Value::Text(name) => Some(!name.is_empty()),
            _ => None,
        };
        let (video, audio) = (announces("videocodecid"), announces("audiocodecid"));
        if video.is_some() || audio.is_some() {
            self.events.push_back(SessionEvent::Metadata {
                video: video.unwrap_or(false),
                audio: audio.unwrap_or(false),
            });
        }
    }

    fn command(&mut self, payload: &[u8]) -> Result<(), RtmpError> {
        if payload.len() > MAX_COMMAND {
            return Err(RtmpError::Command);
        }
        let values = amf::read(payload)?;
        let name = values.first().and_then(Value::as_text);
        let transaction = values.get(1).and_then(Value::as_number).unwrap_or(0.0);
        match name.ok_or(RtmpError::Command)? {
            "connect" => {
                let application = values.get(2).and_then(|it| it.text("app"));
                application
                    .unwrap_or_default()
                    .clone_into(&mut self.application);
                self.welcome(transaction);
            }
            "createStream" => {
                let stream = Value::Number(PUSHED.into());
                self.answer(0, "_result", transaction, [Value::Null, stream]);
            }
            "publish" if self.stage == Stage::Commands => {
                let stream = values.get(3).and_then(Value::as_text);
                self.stage = Stage::Asked;
                self.events.push_back(SessionEvent::Publish {
                    application: self.application.clone(),
                    stream: stream.ok_or(RtmpError::Command)?.to_owned(),
                });
            }
            "publish" => return Err(RtmpError::Command),
            "play" | "play2" => return Err(RtmpError::Play),
            "FCUnpublish" | "deleteStream" | "closeStream" if self.stage == Stage::Pushing => {
                self.events.push_back(SessionEvent::Over);
            }
            // releaseStream, FCPublish, getStreamLength and what else encoders ask: nobody waits for an answer.
            _ => {}
        }
        Ok(())
    }

    /// Answers to `connect`.
    fn welcome(&mut self, transaction: f64) {
        self.control(kind::WINDOW_SIZE, &WINDOW.to_be_bytes());
        // By the peer's own judgement.
        let bandwidth = [&WINDOW.to_be_bytes()[..], &[2]].concat();
        self.control(kind::PEER_BANDWIDTH, &bandwidth);
        self.control(kind::SET_CHUNK_SIZE, &CHUNK_SIZE.to_be_bytes());
        let about = enhanced([("fmsVer".to_owned(), text("FMS/3,0,1,123"))]);
        let connected = properties([
            ("level", "status"),
            ("code", "NetConnection.Connect.Success"),
            ("description", "Connected"),
        ]);
        self.answer(0, "_result", transaction, [about, connected]);
    }

    fn status(&mut self, level: &str, code: &str, description: &str) {
        let status = properties([
            ("level", level),
            ("code", code),
            ("description", description),
        ]);
        self.answer(PUSHED, "onStatus", 0.0, [Value::Null, status]);
    }

    fn answer(&mut self, stream: u32, name: &str, transaction: f64, values: [Value; 2]) {
        let [first, second] = values;
        let name = Value::Text(name.to_owned());
        let payload = amf::write(&[name, Value::Number(transaction), first, second]);
        chunks::put(
            &mut self.output,
            kind::COMMAND,
            stream,
            &payload,
            CHUNK_SIZE as usize,
        );
    }

    fn control(&mut self, kind: u8, payload: &[u8]) {
        chunks::put(&mut self.output, kind, 0, payload, CHUNK_SIZE as usize);
    }
}

fn properties<const N: usize>(properties: [(&str, &str); N]) -> Value {
    Value::Object(
        properties
            .map(|(name, it)| (name.to_owned(), text(it)))
            .into(),
    )
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Appends what Enhanced RTMP takes beyond its older form ("Enhancing NetConnection connect Command").
fn enhanced(about: [(String, Value); 1]) -> Value {
    let list = |names: &[&str]| Value::List(names.iter().map(|it| text(it)).collect());
    let map = |names: &[&str]| {
        let masks = names
            .iter()
            .map(|it| ((*it).to_owned(), Value::Number(CAN_DECODE_AND_FORWARD)));
        Value::Object(masks.collect())
    };
    let more = [
        (
            "fourCcList",
            list(&[&VIDEO_CODECS[..], &AUDIO_CODECS].concat()),
        ),
        ("videoFourCcInfoMap", map(&VIDEO_CODECS)),
        ("audioFourCcInfoMap", map(&AUDIO_CODECS)),
        ("capsEx", Value::Number(MOD_EX)),
    ];
    let more = more.map(|(name, value)| (name.to_owned(), value));
    Value::Object(about.into_iter().chain(more).collect())
}

fn number(payload: &[u8]) -> Result<u32, RtmpError> {
    let octets = payload.first_chunk().ok_or(RtmpError::Command)?;
    Ok(u32::from_be_bytes(*octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an encoder sends, in one go.
    fn pusher(commands: &[&[Value]]) -> Vec<u8> {
        let mut octets = vec![VERSION];
        octets.extend((0..HANDSHAKE * 2).map(|it| it as u8));
        for values in commands {
            chunks::put(&mut octets, kind::COMMAND, 0, &amf::write(values), 128);
        }
        octets
    }

    fn connect() -> [Value; 3] {
        [
            text("connect"),
            Value::Number(1.0),
            properties([("app", "live"), ("tcUrl", "rtmp://h/live")]),
        ]
    }

    fn publish() -> [Value; 5] {
        [
            text("publish"),
            Value::Number(5.0),
            Value::Null,
            text("cam?key=k"),
            text("live"),
        ]
    }

    /// Messages that were sent, after the handshake.
    fn sent(session: &mut Session) -> Vec<Message> {
        let output = session.take_output();
        let mut reader = ChunkReader::default();
        reader.set_chunk_size(CHUNK_SIZE).unwrap();
        let after = output
            .get(1 + 2 * HANDSHAKE..)
            .filter(|_| output[0] == VERSION);
        reader.push(after.unwrap_or(&output));
        core::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    fn commands(session: &mut Session) -> Vec<Vec<Value>> {
        let messages = sent(session).into_iter();
        let commands = messages.filter(|it| it.kind == kind::COMMAND);
        commands.map(|it| amf::read(&it.payload).unwrap()).collect()
    }

    fn asked() -> Session {
        let create = [text("createStream"), Value::Number(4.0), Value::Null];
        let release = [
            text("releaseStream"),
            Value::Number(2.0),
            Value::Null,
            text("cam"),
        ];
        let octets = pusher(&[&connect(), &release, &create, &publish()]);
        let mut session = Session::new();
        // Cut where it hurts: in the handshake, in a header, in a payload.
        for octets in octets.chunks(7) {
            session.receive(octets).unwrap();
        }
        session
    }

    #[test]
    fn an_encoder_connects_and_pushes() {
        let mut session = asked();
        let output = session.output.clone();
        assert_eq!(
            (output[0], &output[1 + HANDSHAKE..][..4]),
            (VERSION, &[0, 1, 2, 3][..])
        );
        let answers = commands(&mut session);
        let results = answers.iter().map(|it| (it[0].clone(), it[1].clone()));
        let result = |number| (text("_result"), Value::Number(number));
        assert_eq!(results.collect::<Vec<_>>(), [result(1.0), result(4.0)]);
        assert_eq!(
            answers[0][3].text("code"),
            Some("NetConnection.Connect.Success")
        );
        let about = &answers[0][2];
        let codecs = about.property("videoFourCcInfoMap").unwrap();
        assert_eq!(codecs.property("av01"), Some(&Value::Number(5.0)));
        let Some(Value::List(names)) = about.property("fourCcList") else {
            panic!("no list: {about:?}");
        };
        assert!(names.contains(&text("hvc1")) && names.contains(&text("Opus")));
        assert_eq!(answers[1][3], Value::Number(1.0));
        let publish = SessionEvent::Publish {
            application: "live".to_owned(),
            stream: "cam?key=k".to_owned(),
        };
        assert_eq!(session.next_event(), Some(publish));

        // Before it is accepted, nothing that it pushes is taken.
        let mut media = Vec::new();
        chunks::put(&mut media, kind::VIDEO, 1, &[0x17, 0], 128);
        session.receive(&media).unwrap();
        assert_eq!(session.next_event(), None);
        session.accept();
        let answers = commands(&mut session);
        assert_eq!(answers[0][3].text("code"), Some("NetStream.Publish.Start"));
        session.receive(&media).unwrap();
        let pushed = SessionEvent::Media {
            kind: 9,
            time: 0,
            payload: Bytes::from_static(&[0x17, 0]),
        };
        assert_eq!(session.next_event(), Some(pushed));
        let mut over = Vec::new();
        let unpublish = [
            text("FCUnpublish"),
            Value::Number(6.0),
            Value::Null,
            text("cam"),
        ];
        chunks::put(&mut over, kind::COMMAND, 0, &amf::write(&unpublish), 128);
        session.receive(&over).unwrap();
        assert_eq!(session.next_event(), Some(SessionEvent::Over));
    }

    #[test]
    fn whoever_is_refused_hears_why() {
        let mut session = asked();
        session.take_output();
        session.refuse("the key is wrong");
        let status = &commands(&mut session)[0][3];
        assert_eq!(status.text("level"), Some("error"));
        assert_eq!(status.text("description"), Some("the key is wrong"));
    }

    /// As OBS and ffmpeg announce both, and ffmpeg pictures alone; metadata that make no sense are passed over.
    #[test]
    fn metadata_announce_what_will_come() {
        let mut session = asked();
        session.next_event();
        session.accept();
        let about = |codecs: &[(&str, Value)]| {
            let codecs = codecs
                .iter()
                .map(|(name, it)| ((*name).to_owned(), it.clone()));
            amf::write(&[
                text("@setDataFrame"),
                text("onMetaData"),
                Value::Object(codecs.collect()),
            ])
        };
        let video = ("videocodecid", Value::Number(7.0));
        let both = about(&[video.clone(), ("audiocodecid", text("mp4a"))]);
        let cut = &both[..both.len() - 4];
        let mut expected = Vec::new();
        for (payload, announced) in [
            (&both[..], Some((true, true))),
            (
                &about(&[video, ("audiocodecid", Value::Number(0.0))]),
                Some((true, false)),
            ),
            (&about(&[("width", Value::Number(1.0))]), None),
            (cut, None),
        ] {
            let mut octets = Vec::new();
            chunks::put(&mut octets, kind::DATA, 1, payload, 128);
            session.receive(&octets).unwrap();
            expected.extend(announced);
        }
        for (video, audio) in expected {
            assert_eq!(
                session.next_event(),
                Some(SessionEvent::Metadata { video, audio })
            );
        }
        assert_eq!(session.next_event(), None);
        session.refuse("the codec is not accepted");
        let status = commands(&mut session).pop().unwrap();
        assert_eq!(status[3].text("code"), Some("NetStream.Publish.Rejected"));
    }

    /// An octet more than the window that the encoder asked for.
    #[test]
    fn what_came_is_acknowledged() {
        let mut session = asked();
        session.accept();
        let mut octets = Vec::new();
        chunks::put(&mut octets, kind::WINDOW_SIZE, 0, &[0, 0, 0, 1], 128);
        chunks::put(&mut octets, kind::SET_CHUNK_SIZE, 0, &[0, 1, 0, 0], 128);
        session.receive(&octets).unwrap();
        session.take_output();
        let mut media = Vec::new();
        chunks::put(&mut media, kind::VIDEO, 1, &[0; 1 << 16], 1 << 16);
        session.receive(&media).unwrap();
        let messages = sent(&mut session);
        assert_eq!(messages[0].kind, kind::ACKNOWLEDGEMENT);
        assert_eq!(messages[0].payload[..], session.received.to_be_bytes());
        session.receive(&[4]).unwrap();
        assert!(session.take_output().is_empty());
    }

    #[test]
    fn what_is_no_push_is_refused() {
        let receive = |octets: &[u8]| Session::new().receive(octets);
        assert_eq!(receive(b"GET / HTTP/1.1"), Err(RtmpError::Version(b'G')));
        let play = [text("play"), Value::Number(5.0), Value::Null, text("cam")];
        let twice: &[&[Value]] = &[&connect(), &publish(), &publish()];
        let nameless = [Value::Number(1.0)];
        let long = [text(&"x".repeat(MAX_COMMAND))];
        for (octets, error) in [
            (pusher(&[&connect(), &play]), RtmpError::Play),
            (pusher(twice), RtmpError::Command),
            (pusher(&[&nameless]), RtmpError::Command),
            (pusher(&[&publish()[..3]]), RtmpError::Command),
            (pusher(&[&long]), RtmpError::Command),
            (vec![VERSION; MAX_UNKNOWN + 1], RtmpError::Unknown),
        ] {
            assert_eq!(receive(&octets), Err(error));
        }
    }

    /// A seeded flood of octets after the handshake, and whole sessions with octets changed: errors or nothing, but no panic.
    #[test]
    fn garbage_does_no_harm() {
        let mut state = 1_u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u8
        };
        let whole = pusher(&[&connect(), &publish()]);
        for _ in 0..2_000 {
            let mut session = Session::new();
            let mut octets = whole.clone();
            for _ in 0..3 {
                let at = usize::from(random()) * 256 + usize::from(random());
                let at = 1 + 2 * HANDSHAKE + at % (octets.len() - 1 - 2 * HANDSHAKE);
                octets[at] = random();
            }
            let _ = session.receive(&octets);
            session.accept();
            let garbage: Vec<u8> = (0..4_000).map(|_| random()).collect();
            let _ = session.receive(&garbage);
        }
    }
}
