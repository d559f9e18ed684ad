//! Playlists of HLS (RFC 8216), and captions in WebVTT beside them.
//!
//! ```text
//!   index.m3u8 ─┬─▶ media playlist of each rung ─▶ segments of pictures and sound
//!               └─▶ captions' media playlist    ─▶ segments of WebVTT, of the same times
//! ```

use std::collections::VecDeque;
use std::fmt::Write as _;

use namecast_stream::{Rung, StreamInfo};
use namecast_units::Bitrate;

/// The playlist that players begin with.
pub const PLAYLIST: &str = "index.m3u8";
/// What AAC takes in which ffmpeg encodes sound that HLS does not take as it is.
const SOUND_BITRATE: Bitrate = Bitrate::kbps(128);
/// HLS names codecs by RFC 6381: AAC-LC.
const AAC: &str = "mp4a.40.2";
/// Changes of captions that are remembered.
const MAX_SHOWN: usize = 4_096;

/// Returns the multivariant playlist of these rungs, whose media playlist is at `path`: RFC 8216, section 4.3.4.2. `captions` is the
/// path of the captions' media playlist.
pub(crate) fn multivariant<'a>(
    rungs: impl IntoIterator<Item = &'a Rung>,
    path: impl Fn(&Rung) -> String,
    audio: Option<&StreamInfo>,
    captions: Option<&str>,
) -> String {
    let mut text = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n".to_owned();
    let sound = audio.and_then(|audio| Some((audio, audio.rungs.first()?)));
    let (sound_rate, sound_codec) = match sound {
        None => (Bitrate::default(), None),
        Some((audio, rung)) if audio.codec == "aac" => (rung.bitrate, Some(&*rung.codec_string)),
        Some(_) => (SOUND_BITRATE, Some(AAC)),
    };
    // Writing to a string cannot fail.
    if let Some(captions) = captions {
        let _ = writeln!(
            text,
            "#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"captions\",NAME=\"Captions\",DEFAULT=YES,AUTOSELECT=YES,URI=\"{captions}\""
        );
    }
    for rung in rungs {
        let bandwidth = rung.bitrate.as_bps() + sound_rate.as_bps();
        let codecs = [Some(&*rung.codec_string), sound_codec].into_iter();
        let codecs: Vec<_> = codecs.flatten().collect();
        let codecs = codecs.join(",");
        let _ = write!(
            text,
            "#EXT-X-STREAM-INF:BANDWIDTH={bandwidth},CODECS=\"{codecs}\""
        );
        if let (Some(width), Some(height)) = (rung.width, rung.height) {
            let _ = write!(text, ",RESOLUTION={width}x{height}");
        }
        if captions.is_some() {
            text.push_str(",SUBTITLES=\"captions\"");
        }
        let _ = writeln!(text, "\n{}", path(rung));
    }
    text
}

/// Returns the qualities that a multivariant playlist lists, by bandwidth and name.
pub fn variants(playlist: &str) -> impl Iterator<Item = (u64, &str)> {
    let lines = playlist.lines().zip(playlist.lines().skip(1));
    lines.filter_map(|(stream, path)| {
        let attributes = stream.strip_prefix("#EXT-X-STREAM-INF:")?;
        let mut attributes = attributes.split(',');
        let bandwidth = attributes.find_map(|it| it.strip_prefix("BANDWIDTH="))?;
        let name = path.strip_suffix(PLAYLIST)?.strip_suffix('/')?;
        Some((bandwidth.parse().ok()?, name))
    })
}

/// Returns the files that a media playlist lists: the header first.
pub fn files(playlist: &str) -> impl Iterator<Item = &str> {
    playlist.lines().filter_map(|line| {
        let header = line.strip_prefix("#EXT-X-MAP:URI=\"");
        let header = header.and_then(|rest| rest.split('"').next());
        header.or_else(|| Some(line).filter(|line| is_file(line)))
    })
}

fn is_file(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

/// Captions in segments of the same times as those of a media playlist. Times are in microseconds of the recording.
#[derive(Debug, Default)]
pub(crate) struct Subtitles {
    /// Texts, and since when each is shown; the first is shown where the next segment begins.
    shown: VecDeque<(u64, String)>,
    /// Begin of the next segment; `None`: no picture has come.
    next: Option<u64>,
    /// Segment of pictures that was listed last.
    listed: Option<String>,
}

impl Subtitles {
    /// Notes when the first picture is presented: there the first segment begins.
    pub(crate) fn begin(&mut self, at: u64) {
        self.next.get_or_insert(at);
    }

    /// Shows `text` from `at` on. Text that arrives after the segment of its time is shown from the next segment on.
    pub(crate) fn show(&mut self, at: u64, text: String) {
        let last = self.shown.back().map_or(0, |(at, _)| *at);
        if self.shown.len() == MAX_SHOWN {
            self.shown.pop_front();
        }
        self.shown.push_back((at.max(last), text));
    }

    /// Returns the name and the captions of each segment that the media playlist of the pictures lists now and did not before.
    pub(crate) fn follow(&mut self, playlist: &str) -> Vec<(String, String)> {
        let segments: Vec<_> = segments(playlist).collect();
        let known = segments
            .iter()
            .rposition(|(name, _)| Some(*name) == self.listed.as_deref());
        let new = segments.get(known.map_or(0, |it| it + 1)..);
        let new = new.unwrap_or_default();
        let Some(mut begin) = self.next.filter(|_| !new.is_empty()) else {
            return Vec::new();
        };
        let captions = new.iter().map(|(name, duration)| {
            let end = begin + duration;
            let text = self.segment(begin, end);
            begin = end;
            ((*name).to_owned(), text)
        });
        let captions = captions.collect();
        self.next = Some(begin);
        self.listed = new.last().map(|(name, _)| (*name).to_owned());
        while self.shown.get(1).is_some_and(|(at, _)| *at <= begin) {
            self.shown.pop_front();
        }
        captions
    }

    /// Returns the captions between these times, as WebVTT with the times of the recording.
    fn segment(&self, begin: u64, end: u64) -> String {
        let mut text = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n".to_owned();
        let ends = self
            .shown
            .iter()
            .skip(1)
            .map(|(at, _)| *at)
            .chain([u64::MAX]);
        for ((shown_at, caption), ends_at) in self.shown.iter().zip(ends) {
            let (from, to) = (begin.max(*shown_at), end.min(ends_at));
            if from < to && !caption.is_empty() {
                let caption = escaped(caption);
                let _ = writeln!(text, "\n{} --> {}\n{caption}", clock(from), clock(to));
            }
        }
        text
    }
}

/// Returns the captions' media playlist beside `playlist`, that of the pictures, whose segments are called `name` there.
pub(crate) fn captions_playlist(playlist: &str, name: impl Fn(&str) -> String) -> String {
    let lines = playlist
        .lines()
        .filter(|line| !line.starts_with("#EXT-X-MAP:"));
    lines.fold(String::new(), |mut text, line| {
        match is_file(line) {
            true => text.push_str(&name(line)),
            false => text.push_str(line),
        }
        text + "\n"
    })
}

/// The segments of a media playlist, with their durations in microseconds.
fn segments(playlist: &str) -> impl Iterator<Item = (&str, u64)> {
    let mut duration = 0;
    playlist.lines().filter_map(move |line| {
        if let Some(seconds) = line.strip_prefix("#EXTINF:") {
            let seconds = seconds
                .split(',')
                .next()
                .and_then(|it| it.parse::<f64>().ok());
            duration = (seconds.unwrap_or(0.0) * 1e6).round() as u64;
        }
        is_file(line).then_some((line, duration))
    })
}

/// Text as WebVTT writes it, where some characters begin markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A time as WebVTT writes it.
fn clock(micros: u64) -> String {
    let millis = micros / 1_000;
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    format!(
        "{:02}:{:02}:{seconds:02}.{millis:03}",
        minutes / 60,
        minutes % 60
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use namecast_stream::StreamKind;

    use super::*;

    const PLAYLIST_OF_FFMPEG: &str = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n\
        #EXT-X-MAP:URI=\"init-1.mp4\"\n#EXTINF:4.000000,\nseq=7\n#EXTINF:4.000000,\nseq=8\n";

    /// A stream with rungs of these names and kbit/s.
    pub(crate) fn stream(kind: StreamKind, codec: &str, rungs: &[(&str, u64)]) -> StreamInfo {
        let only = StreamInfo::data("x", 30, 100);
        let rung = |&(name, kbps): &(&str, u64)| Rung {
            name: name.to_owned(),
            bitrate: Bitrate::kbps(kbps),
            codec_string: "avc1.42C01E".to_owned(),
            ..only.rungs[0].clone()
        };
        StreamInfo {
            name: codec.to_owned(),
            kind,
            codec: codec.to_owned(),
            rungs: rungs.iter().map(rung).collect(),
            ..only.clone()
        }
    }

    /// 300 and 128 kbit/s are 428.
    #[test]
    fn the_multivariant_playlist_lists_all_rungs_with_their_sound() {
        let video = stream(StreamKind::Video, "h264", &[("300k", 300), ("1M", 1_000)]);
        let path = |rung: &Rung| format!("{}/{PLAYLIST}", rung.name);
        let opus = stream(StreamKind::Audio, "opus", &[("64k", 64)]);
        let text = multivariant(&video.rungs, path, Some(&opus), None);
        let expected = "#EXT-X-STREAM-INF:BANDWIDTH=428000,CODECS=\"avc1.42C01E,mp4a.40.2\"\n300k/index.m3u8\n";
        assert!(text.contains(expected), "{text}");
        let listed: Vec<_> = variants(&text).collect();
        assert_eq!(listed, [(428_000, "300k"), (1_128_000, "1M")]);
        let text = multivariant(&video.rungs, path, None, Some("captions/index.m3u8"));
        let expected =
            "BANDWIDTH=1000000,CODECS=\"avc1.42C01E\",SUBTITLES=\"captions\"\n1M/index.m3u8\n";
        assert!(text.contains(expected), "{text}");
        assert!(
            text.contains("TYPE=SUBTITLES,GROUP-ID=\"captions\""),
            "{text}"
        );
    }

    #[test]
    fn the_header_and_segments_are_found_in_a_playlist() {
        let found: Vec<_> = files(PLAYLIST_OF_FFMPEG).collect();
        assert_eq!(found, ["init-1.mp4", "seq=7", "seq=8"]);
    }

    #[test]
    fn the_captions_playlist_lists_the_same_times() {
        let text = captions_playlist(PLAYLIST_OF_FFMPEG, |name| format!("{name}.vtt"));
        let expected = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:7\n\
            #EXTINF:4.000000,\nseq=7.vtt\n#EXTINF:4.000000,\nseq=8.vtt\n";
        assert_eq!(text, expected);
    }

    /// The first picture is at 0.5 s, so segment 7 ends at 4.5 s and segment 8 at 8.5 s: "a" is shown from 2 s, "b <" from 4 s to 5 s. "c"
    /// comes late, with a time within segment 8.
    #[test]
    fn captions_are_cut_as_the_pictures() {
        let mut subtitles = Subtitles::default();
        assert_eq!(subtitles.follow(PLAYLIST_OF_FFMPEG), []);
        subtitles.begin(500_000);
        for (at, text) in [(2_000_000, "a"), (4_000_000, "b <"), (5_000_000, "")] {
            subtitles.show(at, text.to_owned());
        }
        let head = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:0,LOCAL:00:00:00.000\n";
        let found = subtitles.follow(PLAYLIST_OF_FFMPEG);
        let expected = [
            (
                "seq=7",
                "\n00:00:02.000 --> 00:00:04.000\na\n\n00:00:04.000 --> 00:00:04.500\nb &lt;\n",
            ),
            ("seq=8", "\n00:00:04.500 --> 00:00:05.000\nb &lt;\n"),
        ];
        assert_eq!(
            found,
            expected.map(|(name, text)| (name.to_owned(), format!("{head}{text}")))
        );
        assert_eq!(subtitles.follow(PLAYLIST_OF_FFMPEG), []);
        subtitles.show(8_000_000, "c".to_owned());
        let next = PLAYLIST_OF_FFMPEG.to_owned() + "#EXTINF:2.5,\nseq=9\n";
        let late = format!("{head}\n00:00:08.500 --> 00:00:11.000\nc\n");
        assert_eq!(subtitles.follow(&next), [("seq=9".to_owned(), late)]);
        assert_eq!(subtitles.shown.len(), 1);
    }
}
