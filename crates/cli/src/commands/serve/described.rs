//! Description of a push, as a line for people and an object for programs.

use core::fmt;

use namecast_media::found::{FoundAudio, FoundVideo, Received};
use namecast_stream::{StreamInfo, StreamKind};
use serde_json::{Value, json};

/// Name of a rung that is what was pushed.
const COPY: &str = "copy";

/// Pictures and sound of a push.
#[derive(Debug, PartialEq)]
pub(super) struct Described {
    /// Pictures, and how many a second.
    video: Option<(FoundVideo, f64)>,
    audio: Option<FoundAudio>,
}

impl Described {
    /// By what the listener saw, if it looked, and by what is published, where that is what was pushed.
    pub(super) fn new(seen: Option<Received>, streams: &[StreamInfo]) -> Self {
        let seen = seen.unwrap_or_default();
        let of = |kind| streams.iter().find(|stream| stream.kind == kind);
        let video = of(StreamKind::Video).map(|stream| {
            let found = seen.video.filter(|it| it.width > 0);
            let rate = stream.rungs.first().map_or(0.0, |rung| {
                f64::from(rung.rate.num) / f64::from(rung.rate.den.max(1))
            });
            (found.unwrap_or_else(|| video(stream)), rate)
        });
        let audio = of(StreamKind::Audio).map(|stream| {
            let found = seen.audio.filter(|it| it.sample_rate > 0);
            found.unwrap_or_else(|| audio(stream))
        });
        Self { video, audio }
    }

    /// The same for programs, as properties `video` and `audio` of `object`.
    pub(super) fn put_into(&self, object: &mut Value) {
        object["video"] = json!(self.video.as_ref().map(|(video, rate)| {
            let mut video = json!(video);
            video["rate"] = json!(rate);
            video
        }));
        object["audio"] = json!(self.audio);
    }
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((video, rate)) = &self.video {
            write!(f, "{video} {} fps", (rate * 100.0).round() / 100.0)?;
        }
        if let Some(audio) = &self.audio {
            let comma = if self.video.is_some() { ", " } else { "" };
            write!(f, "{comma}{audio}")?;
        }
        Ok(())
    }
}

/// Pictures by the rung that is a copy of them; without one it is not known which codec was pushed.
fn video(stream: &StreamInfo) -> FoundVideo {
    let copy = stream.rungs.iter().find(|rung| rung.name == COPY);
    let shown = copy.or(stream.rungs.last());
    let (codec, profile) = match copy {
        None => ("video", ""),
        Some(rung) => match stream.codec.as_str() {
            "h264" => ("H.264", h264_profile(&rung.codec_string)),
            "av1" => ("AV1", ""),
            "vp9" => ("VP9", ""),
            codec => (codec, ""),
        },
    };
    FoundVideo {
        codec: codec.to_owned(),
        profile: profile.to_owned(),
        width: shown.and_then(|rung| rung.width).unwrap_or(0),
        height: shown.and_then(|rung| rung.height).unwrap_or(0),
    }
}

/// By the digits of `avc1.64001F`: profile, constraints, level.
fn h264_profile(codec_string: &str) -> &'static str {
    match codec_string.get(5..7) {
        Some("42") => "Baseline",
        Some("4D") => "Main",
        Some("64") => "High",
        Some("6E") => "High 10",
        _ => "",
    }
}

fn audio(stream: &StreamInfo) -> FoundAudio {
    let copy = stream.rungs.iter().find(|rung| rung.name == COPY);
    let codec = match (copy, stream.codec.as_str()) {
        (None, _) => "sound",
        (_, "aac") => "AAC",
        (_, "opus") => "Opus",
        (_, codec) => codec,
    };
    FoundAudio {
        codec: codec.to_owned(),
        sample_rate: copy.and_then(|rung| rung.sample_rate).unwrap_or(0),
        channels: copy.and_then(|rung| rung.channels).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use namecast_stream::catalogue::Rung;
    use namecast_stream::{Reading, SampleRate};
    use namecast_units::Bitrate;

    use super::*;

    fn stream(kind: StreamKind, codec: &str, name: &str) -> StreamInfo {
        let is_video = kind == StreamKind::Video;
        let side = |side| is_video.then_some(side);
        StreamInfo {
            name: "x".to_owned(),
            kind,
            codec: codec.to_owned(),
            rungs: vec![Rung {
                name: name.to_owned(),
                bitrate: Bitrate::mbps(1),
                width: side(1_920),
                height: side(1_080),
                rate: SampleRate::new(30_000, 1_001),
                reorder_delay: 0,
                key_interval: 30,
                codec_string: "avc1.640028".to_owned(),
                sample_rate: (!is_video).then_some(44_100),
                channels: (!is_video).then_some(2),
                inter_frame: None,
                description: None,
            }],
            segment_size: 1_000,
            parity_percent: 20,
            reading: Reading::default(),
        }
    }

    /// 30 000 / 1001 are 29.97.
    #[test]
    fn a_copy_tells_what_was_pushed() {
        let streams = [
            stream(StreamKind::Video, "h264", "copy"),
            stream(StreamKind::Audio, "aac", "copy"),
        ];
        let line = Described::new(None, &streams).to_string();
        assert_eq!(line, "H.264 High 1920x1080 29.97 fps, AAC 44.1 kHz stereo");
        let alone = Described::new(None, &streams[1..]).to_string();
        assert_eq!(alone, "AAC 44.1 kHz stereo");
    }

    #[test]
    fn what_the_listener_saw_counts_where_it_is_encoded_anew() {
        let streams = [stream(StreamKind::Video, "h264", "3M")];
        let unknown = Described::new(None, &streams).to_string();
        assert_eq!(unknown, "video 1920x1080 29.97 fps");
        let video = FoundVideo {
            codec: "HEVC".to_owned(),
            profile: "Main 10".to_owned(),
            width: 3_840,
            height: 2_160,
        };
        let received = Received {
            video: Some(video),
            ..Received::default()
        };
        let described = Described::new(Some(received), &streams);
        assert_eq!(described.to_string(), "HEVC Main 10 3840x2160 29.97 fps");
        let mut object = json!({});
        described.put_into(&mut object);
        assert_eq!(object["video"]["codec"], "HEVC");
        assert_eq!(object["audio"], Value::Null);
    }
}
