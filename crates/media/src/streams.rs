//! What ingest makes, as the catalogue describes it.

use bytes::Bytes;
use namecast_stream::catalogue::SEGMENT_SIZES;
use namecast_stream::segmenter::SegmenterConfig;
use namecast_stream::{InterFrameFec, Reading, Rung, SampleRate, StreamInfo, StreamKind};
use namecast_units::Duration;

use crate::ingest::ladder::{COPY, label};
use crate::ingest::{self, AudioConfig, CopiedAudio, VideoConfig};

/// Name of the video stream under the root.
const VIDEO: &str = "video";
/// Name of the audio stream under the root.
const AUDIO: &str = "audio";
/// Name of the stream of captions under the root, and its codec: each sample is the text on the screen from its time of capture on, in
/// UTF-8, with a line feed between rows; an empty one clears it.
pub const CAPTIONS: &str = "captions";
const TEXT: &str = "text";
/// Octets of captions that watchers expect.
const CAPTION_SIZE: u32 = 60;

/// Inter-frame FEC of sound, whose packets have no parity of their own: with 20 ms each, a lost one is back after 60 ms at most, and 10 %
/// of losses leave one in a hundred (`rtsd/across`). None is made unless somebody requests it. Frames of video take longer than
/// playback waits, and most have parity of their own.
const SOUND_INTER_FRAME: InterFrameFec = InterFrameFec {
    samples: 4,
    parity: 2,
};

/// How samples are cut and protected.
#[derive(Clone, Copy, Debug)]
pub struct Cutting {
    /// Octets of Content that segments aim at.
    pub segment_size: u32,
    /// Parity segments per hundred data segments.
    pub parity_percent: u32,
}

/// The catalogue's streams for these encoders.
pub fn describe(
    video: Option<&VideoConfig>,
    audio: Option<&AudioConfig>,
    cutting: Cutting,
) -> Vec<StreamInfo> {
    let video = video.map(|video| describe_video(video, cutting));
    let mut streams: Vec<_> = video.into_iter().collect();
    streams.extend(audio.map(|audio| describe_audio(audio, cutting)));
    streams
}

fn describe_video(video: &VideoConfig, cutting: Cutting) -> StreamInfo {
    let rung = |rung: &ingest::ladder::Rung| Rung {
        name: rung.label.clone(),
        bitrate: rung.bitrate,
        width: Some(rung.size.width),
        height: Some(rung.size.height),
        rate: video.rate,
        key_interval: video.key_interval,
        reorder_delay: micros(video.reorder_delay),
        codec_string: video.codec_string(rung),
        sample_rate: None,
        channels: None,
        inter_frame: None,
        description: None,
    };
    StreamInfo {
        name: VIDEO.to_owned(),
        kind: StreamKind::Video,
        codec: video.codec.name().to_owned(),
        rungs: video.ladder.rungs().iter().map(rung).collect(),
        segment_size: cutting.carrying(video.max_frame),
        parity_percent: cutting.parity_percent,
        reading: Reading::default(),
    }
}

impl Cutting {
    /// Returns the segment size that carries frames of `max_frame` octets, or the largest there is.
    fn carrying(self, max_frame: usize) -> u32 {
        let config = SegmenterConfig {
            segment_size: self.segment_size as usize,
            parity_percent: self.parity_percent as usize,
        };
        let carrying = config.carrying(max_frame);
        let size = carrying.and_then(|it| u32::try_from(it.segment_size).ok());
        size.unwrap_or(*SEGMENT_SIZES.end())
    }
}

fn describe_audio(audio: &AudioConfig, cutting: Cutting) -> StreamInfo {
    let encoded = || CopiedAudio {
        codec: CopiedAudio::OPUS,
        codec_string: CopiedAudio::OPUS.to_owned(),
        sample_rate: AudioConfig::SAMPLE_RATE,
        rate: SampleRate::new(AudioConfig::PACKETS_PER_SECOND, 1),
        description: Bytes::new(),
    };
    let form = audio.copied.clone().unwrap_or_else(encoded);
    let digits = form.description.iter().map(|octet| format!("{octet:02x}"));
    StreamInfo {
        name: AUDIO.to_owned(),
        kind: StreamKind::Audio,
        codec: form.codec.to_owned(),
        rungs: vec![Rung {
            name: match audio.copied {
                Some(_) => COPY.to_owned(),
                None => label(audio.bitrate),
            },
            bitrate: audio.bitrate,
            width: None,
            height: None,
            rate: form.rate,
            key_interval: 1,
            reorder_delay: 0,
            codec_string: form.codec_string,
            sample_rate: Some(form.sample_rate),
            channels: Some(audio.channels),
            inter_frame: Some(SOUND_INTER_FRAME),
            description: (!form.description.is_empty()).then(|| digits.collect()),
        }],
        segment_size: cutting.segment_size,
        parity_percent: cutting.parity_percent,
        reading: Reading::default(),
    }
}

/// The catalogue's stream of captions.
pub fn captions() -> StreamInfo {
    StreamInfo {
        codec: TEXT.to_owned(),
        ..StreamInfo::data(CAPTIONS, ingest::CAPTIONS_PER_SECOND, CAPTION_SIZE)
    }
}

/// Returns whether a stream is one of captions.
pub fn is_captions(stream: &StreamInfo) -> bool {
    stream.kind == StreamKind::Data && stream.codec == TEXT
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
