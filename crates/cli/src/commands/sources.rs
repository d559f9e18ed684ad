//! What is published together: inputs with pictures and sound, and lines that are samples of data.

use core::future::poll_fn;
use core::task::{Context, Poll};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::thread;

use anyhow::Context as _;
use bytes::Bytes;
use namecast_media::ingest::ladder::Ladder;
use namecast_media::ingest::source::Input;
use namecast_media::ingest::{
    AudioConfig, Ingest, IngestConfig, IngestCounters, IngestError, MediaEvent, MediaFrame,
    Opening, StreamKind, VideoConfig, Wish,
};
use namecast_media::streams::{self, Cutting};
use namecast_stream::{SampleRate, StreamInfo};
use tokio::sync::mpsc;

use crate::arguments::{DataInput, Encoding, Media, Reading};

/// Longest line that is one sample, in octets; what is longer is cut.
const MAX_LINE: u64 = 65_536;
/// Lines that may wait.
const QUEUED_LINES: usize = 64;
/// Lines a second, and octets of one, that those who watch reckon with.
const LINES: (u32, u32) = (30, 200);

/// Gives inputs up that nobody waits for any more.
struct GivenUp(Vec<Opening>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        for opening in &self.0 {
            opening.cancel();
        }
    }
}

/// Everything that is published under one name.
pub(super) struct Sources {
    media: Vec<MediaSource>,
    data: Vec<DataSource>,
    /// What is published.
    pub(super) streams: Vec<StreamInfo>,
    /// Inputs that failed, and why the first did.
    pub(super) failed: u64,
    error: Option<IngestError>,
}

struct MediaSource {
    label: String,
    ingest: Ingest,
    /// Its streams, by their kind and name.
    streams: Vec<(StreamKind, String)>,
    is_over: bool,
}

struct DataSource {
    name: String,
    /// `None`: they are over.
    lines: Option<mpsc::Receiver<Bytes>>,
}

/// What comes from a source.
pub(super) enum Came {
    /// A frame of this stream.
    Frame(String, MediaFrame),
    /// A sample of this data stream.
    Sample(String, Bytes),
    /// Something for people.
    Trouble(String),
    /// All sources are over.
    Over(Result<(), IngestError>),
}

impl Sources {
    /// Opens all inputs, at the same time; returns once the last one is open.
    pub(super) async fn open(media: &Media) -> anyhow::Result<Self> {
        media.check()?;
        let configs = media.inputs().into_iter();
        let configs = configs.map(|input| ingest_config(input, media));
        let configs = configs.collect::<anyhow::Result<Vec<_>>>()?;
        let mut given_up = GivenUp(configs.iter().map(|_| Opening::default()).collect());
        let openings = configs.into_iter().zip(given_up.0.clone());
        let openings = openings.map(|(config, opening)| {
            let label = config.input.to_string();
            let open = move || Ingest::start_by(&config, &opening);
            (label, tokio::task::spawn_blocking(open))
        });
        let openings: Vec<_> = openings.collect();
        let mut opened = Vec::new();
        for (label, ingest) in openings {
            opened.push((label, ingest.await??));
        }
        if !media.encoded.is_empty() {
            let files = media.encoded.clone();
            let audio = wanted_audio(&media.encoding);
            let looped = media.looped;
            let copy = move || Ingest::copy(&files, looped, audio.as_ref());
            let ingest = tokio::task::spawn_blocking(copy).await??;
            opened.push((media.input_text(), ingest));
        }
        given_up.0.clear();
        let mut sources = Self {
            media: Vec::new(),
            data: Vec::new(),
            streams: Vec::new(),
            failed: 0,
            error: None,
        };
        let cutting = Cutting {
            segment_size: media.encoding.segment_size,
            parity_percent: media.encoding.fec,
        };
        for (label, ingest) in opened {
            sources.add(label, ingest, cutting);
        }
        for data in &media.data {
            sources.add_data(data, media.reading)?;
        }
        Ok(sources)
    }

    /// Lists the streams of an input; the second of a kind is `video-2`.
    fn add(&mut self, label: String, ingest: Ingest, cutting: Cutting) {
        let mut names = Vec::new();
        let mut described = streams::describe(ingest.video(), ingest.audio(), cutting);
        described.extend(ingest.has_captions().then(streams::captions));
        for mut stream in described {
            let before = self
                .streams
                .iter()
                .filter(|it| it.kind == stream.kind)
                .count();
            if before > 0 {
                stream.name = format!("{}-{}", stream.name, before + 1);
            }
            names.push((stream.kind, stream.name.clone()));
            self.streams.push(stream);
        }
        self.media.push(MediaSource {
            label,
            ingest,
            streams: names,
            is_over: false,
        });
    }

    fn add_data(&mut self, data: &DataInput, reading: Reading) -> anyhow::Result<()> {
        let (sender, lines) = mpsc::channel(QUEUED_LINES);
        let file: Box<dyn Read + Send> = match &data.path {
            Some(path) => Box::new(File::open(path).with_context(|| {
                format!("cannot read {}: name another with --data", path.display())
            })?),
            None => Box::new(io::stdin()),
        };
        thread::spawn(move || read_lines(file, &sender));
        let describe = match reading {
            Reading::Complete => StreamInfo::data,
            Reading::Events => StreamInfo::events,
            Reading::Newest => StreamInfo::newest,
        };
        self.streams.push(describe(&data.name, LINES.0, LINES.1));
        self.data.push(DataSource {
            name: data.name.clone(),
            lines: Some(lines),
        });
        Ok(())
    }

    /// The next thing that comes from any of them.
    pub(super) async fn next(&mut self) -> Came {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Came> {
        for at in 0..self.media.len() {
            while !self.media[at].is_over
                && let Poll::Ready(event) = self.media[at].ingest.poll_next(context)
            {
                if let Some(came) = self.handle(at, event) {
                    return Poll::Ready(came);
                }
            }
        }
        for source in &mut self.data {
            if let Some(lines) = &mut source.lines
                && let Poll::Ready(line) = lines.poll_recv(context)
            {
                match line {
                    Some(line) => return Poll::Ready(Came::Sample(source.name.clone(), line)),
                    None => source.lines = None,
                }
            }
        }
        let is_over =
            self.media.iter().all(|it| it.is_over) && self.data.iter().all(|it| it.lines.is_none());
        match is_over {
            true => Poll::Ready(Came::Over(self.error.take().map_or(Ok(()), Err))),
            false => Poll::Pending,
        }
    }

    /// Whether pictures or sound are still to come.
    pub(super) fn has_media(&self) -> bool {
        self.media.iter().any(|it| !it.is_over)
    }

    fn handle(&mut self, at: usize, event: Option<MediaEvent>) -> Option<Came> {
        let is_alone = self.media.len() + self.data.len() == 1;
        let source = &mut self.media[at];
        match event {
            Some(MediaEvent::Frame(frame)) => {
                let mut streams = source.streams.iter();
                let stream = streams.find(|(kind, _)| *kind == frame.stream)?;
                Some(Came::Frame(stream.1.clone(), frame))
            }
            Some(MediaEvent::Trouble(text)) if is_alone => Some(Came::Trouble(text)),
            Some(MediaEvent::Trouble(text)) => {
                Some(Came::Trouble(format!("{}: {text}", source.label)))
            }
            Some(MediaEvent::Ended {
                stream: StreamKind::Audio,
                error: None,
            }) => None,
            Some(MediaEvent::Ended { error: None, .. }) | None => {
                source.is_over = true;
                None
            }
            Some(MediaEvent::Ended {
                error: Some(error), ..
            }) => {
                source.is_over = true;
                self.failed += 1;
                let text = format!("{}: {error}; the other inputs go on", source.label);
                self.error.get_or_insert(error);
                (!is_alone).then_some(Came::Trouble(text))
            }
        }
    }

    /// What each input counts.
    pub(super) fn counters(&self) -> Vec<Arc<IngestCounters>> {
        let counters = self.media.iter().map(|it| it.ingest.counters());
        counters.map(Arc::clone).collect()
    }
}

/// Sends each line on, without its end, until they are over or nobody takes them.
fn read_lines(source: impl Read, to: &mpsc::Sender<Bytes>) {
    let mut source = BufReader::new(source);
    loop {
        let mut line = Vec::new();
        match (&mut source).take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        while matches!(line.last(), Some(b'\n' | b'\r')) {
            line.pop();
        }
        if to.blocking_send(line.into()).is_err() {
            return;
        }
    }
}

fn wanted_audio(encoding: &Encoding) -> Option<AudioConfig> {
    let default = AudioConfig::default();
    (!encoding.no_audio).then(|| AudioConfig {
        bitrate: encoding.audio_bitrate.unwrap_or(default.bitrate),
        channels: encoding.channels.unwrap_or(default.channels),
        ..default
    })
}

fn ingest_config(input: Input, media: &Media) -> anyhow::Result<IngestConfig> {
    let encoding = &media.encoding;
    let (codec, encoder) = (encoding.codec, &encoding.encoder);
    if let (Some(codec), Some(encoder)) = (codec, encoder)
        && codec != encoder.codec
    {
        let (name, made) = (&encoder.name, encoder.codec);
        anyhow::bail!("--encoder {name} makes {made}, not {codec}: leave --codec out");
    }
    let codec = codec.or(encoder.as_ref().map(|encoder| encoder.codec));
    let ladder = encoding.ladder.clone().unwrap_or_default();
    let default = VideoConfig::default();
    let rate = encoding
        .fps
        .map_or(default.rate, |rate| SampleRate::new(rate, 1));
    let drawn = match (&input, encoding.size) {
        (Input::Test, Some(size)) => {
            ladder.ladder()?;
            Ladder::of(ladder.fit(size))?
        }
        (Input::Test, None) => ladder.ladder()?,
        _ => Ladder::default(),
    };
    Ok(IngestConfig {
        input,
        looped: media.looped,
        limits: media.limits,
        video: VideoConfig {
            codec: codec.unwrap_or_default(),
            encoder: encoder.as_ref().map(|encoder| encoder.name.clone()),
            ladder: drawn,
            rate,
            key_interval: encoding.gop.unwrap_or(rate.num.div_ceil(rate.den)),
            ..VideoConfig::default()
        },
        wish: Wish {
            ladder,
            codec,
            refuses_b_frames: encoding.no_b_frames,
            rate: encoding.fps,
            key_interval: encoding.gop,
            size: encoding.size,
            channels: encoding.channels,
            encodes_sound: encoding.audio_bitrate.is_some(),
        },
        audio: wanted_audio(encoding),
    })
}
