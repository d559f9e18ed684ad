//! A track of subtitles: its packets, which ffmpeg copies, as text.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::super::super::ffmpeg::OutputReader;
use super::super::framecrc;
use super::Shown;

/// Cues that wait for their time, and cues that are shown together.
const MAX_WAITING: usize = 256;
const MAX_SHOWN: usize = 16;
/// Octets of a cue; the rest is left out.
const MAX_CUE: usize = 4_096;
/// How long a cue without duration is shown, in microseconds.
const DEFAULT_DURATION: u64 = 5_000_000;
/// Fields of a line of ASS before its text.
const ASS_FIELDS: usize = 8;

/// Codec of a track of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum TrackCodec {
    /// 3GPP timed text: a length, the text, and how it looks.
    TimedText,
    /// Advanced SubStation Alpha, as Matroska has it: fields with commas.
    SubStation,
    /// SubRip, WebVTT or plain text.
    Text,
}

impl TrackCodec {
    /// Returns the codec with this name of ffmpeg; `None`: its subtitles are pictures, or unknown.
    pub(in super::super) fn of(name: &str) -> Option<Self> {
        match name {
            "mov_text" => Some(Self::TimedText),
            "ass" | "ssa" => Some(Self::SubStation),
            "subrip" | "srt" | "webvtt" | "text" => Some(Self::Text),
            _ => None,
        }
    }

    /// Returns the text in a packet, without markup, with a line feed between rows.
    pub(super) fn text(self, octets: &[u8]) -> String {
        let octets = match (self, octets) {
            (Self::TimedText, [high, low, text @ ..]) => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                text.get(..length).unwrap_or(text)
            }
            (Self::TimedText, _) => &[],
            _ => octets,
        };
        let text = match octets {
            [0xfe, 0xff, utf16 @ ..] => {
                let (units, _) = utf16.as_chunks();
                let units: Vec<_> = units.iter().map(|it| u16::from_be_bytes(*it)).collect();
                String::from_utf16_lossy(&units)
            }
            _ => String::from_utf8_lossy(octets).into_owned(),
        };
        let text = match self {
            Self::TimedText => text,
            Self::SubStation => {
                let text = text.splitn(ASS_FIELDS + 1, ',').nth(ASS_FIELDS);
                let text = without(text.unwrap_or_default(), '{', '}');
                text.replace("\\N", "\n")
                    .replace("\\n", "\n")
                    .replace("\\h", " ")
            }
            Self::Text => plain(&without(&without(&text, '<', '>'), '{', '}')),
        };
        let rows = text.lines().map(str::trim).filter(|row| !row.is_empty());
        rows.collect::<Vec<_>>().join("\n")
    }
}

/// Removes what stands between these brackets. Without the closing one, the opening one is text.
fn without(text: &str, open: char, close: char) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once(open)
        && let Some((_, after)) = behind.split_once(close)
    {
        kept.push_str(before);
        rest = after;
    }
    kept + rest
}

/// Replaces the character references of WebVTT.
fn plain(text: &str) -> String {
    let references = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&nbsp;", " "),
        ("&lrm;", ""),
        ("&rlm;", ""),
        ("&amp;", "&"),
    ];
    references
        .iter()
        .fold(text.to_owned(), |text, (reference, character)| {
            text.replace(reference, character)
        })
}

/// Text with the times at which it is shown first and no longer, in microseconds of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Cue {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) text: String,
}

/// A track that is being read.
#[derive(Debug)]
pub(in super::super) struct Track {
    cues: Receiver<Cue>,
    /// Cues that are shown, or will be.
    known: VecDeque<Cue>,
}

impl Track {
    pub(super) fn new(cues: Receiver<Cue>) -> Self {
        Self {
            cues,
            known: VecDeque::new(),
        }
    }

    /// Reads packets from `octets`, whose sizes and times are in `lines`, on a thread of its own.
    pub(in super::super) fn read(
        codec: TrackCodec,
        octets: OutputReader,
        lines: OutputReader,
    ) -> Self {
        let (sender, cues) = sync_channel(MAX_WAITING);
        thread::spawn(move || read(codec, octets, lines, &sender));
        Self::new(cues)
    }

    /// Returns what is shown at `now`: all cues of that time, the one that begins first above.
    pub(super) fn at(&mut self, now: u64) -> Shown {
        while self.known.len() < MAX_SHOWN
            && let Ok(cue) = self.cues.try_recv()
        {
            self.known.push_back(cue);
        }
        let changes = self.known.iter().flat_map(|cue| [cue.begin, cue.end]);
        let since = changes.filter(|at| *at <= now).max().unwrap_or(now);
        self.known.retain(|cue| cue.end > now);
        let mut shown: Vec<_> = self.known.iter().filter(|cue| cue.begin <= now).collect();
        shown.sort_by_key(|cue| cue.begin);
        let rows: Vec<_> = shown.iter().map(|cue| cue.text.as_str()).collect();
        let text = rows.join("\n");
        Shown { since, text }
    }
}

/// Reads packets until the track ends. Cues for which there is no room are left out, as ffmpeg must not wait: it hands over pictures,
/// too.
fn read(codec: TrackCodec, mut octets: OutputReader, lines: OutputReader, cues: &SyncSender<Cue>) {
    framecrc::read(lines, |line| {
        let Ok(packet) = take(&mut octets, line.size) else {
            return false;
        };
        if let Some(begin) = line.decoded_at.and_then(|it| u64::try_from(it).ok()) {
            let duration = match line.duration {
                0 => DEFAULT_DURATION,
                duration => duration,
            };
            let (end, text) = (begin.saturating_add(duration), codec.text(&packet));
            if !text.is_empty() {
                // Dropped if there is no room.
                let _ = cues.try_send(Cue { begin, end, text });
            }
        }
        true
    });
}

/// Takes `size` octets, and returns the first of them.
fn take(octets: &mut impl Read, size: usize) -> io::Result<Vec<u8>> {
    let mut packet = vec![0; size.min(MAX_CUE)];
    octets.read_exact(&mut packet)?;
    let rest = size.saturating_sub(MAX_CUE) as u64;
    io::copy(&mut octets.take(rest), &mut io::sink())?;
    Ok(packet)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn text_comes_without_markup() {
        let text = |name, octets: &[u8]| TrackCodec::of(name).unwrap().text(octets);
        assert_eq!(
            text("subrip", b"<i>One</i> & {\\an8}two\r\n\r\n three"),
            "One & two\nthree"
        );
        assert_eq!(
            text("webvtt", b"<v Ann>a &lt; b &amp;lt; 1"),
            "a < b &lt; 1"
        );
        assert_eq!(text("text", b"3 < 4"), "3 < 4");
        let styled = b"1,0,Default,Ann,0,0,0,,{\\i1}a{\\i0}, b\\Nc";
        assert_eq!(text("ass", styled), "a, b\nc");
        assert_eq!(text("ass", b"1,0"), "");
        assert_eq!(text("mov_text", b"\x00\x02hi\x00\x00\x00\x16styl"), "hi");
        assert_eq!(text("mov_text", b"\x00\x06\xfe\xff\x00h\x00i"), "hi");
        assert_eq!(text("mov_text", b"\x00\x09hi"), "hi");
        assert_eq!(text("mov_text", b"\x00"), "");
        assert_eq!(TrackCodec::of("hdmv_pgs_subtitle"), None);
    }

    /// Two cues overlap; the second is too long to be kept whole, and the third has no duration.
    #[test]
    fn cues_are_shown_for_their_time() {
        let (octets, mut octets_end) = io::pipe().unwrap();
        let (lines, mut lines_end) = io::pipe().unwrap();
        let long = "x".repeat(MAX_CUE + 904);
        let text = format!(
            "#tb 0: 1/1000\n0, 1000, 1000, 2000, 3, 0x0\n0, 2000, 2000, 2000, {}, 0x0\n0, 9000, 9000, 0, 3, 0x0\n",
            long.len()
        );
        lines_end.write_all(text.as_bytes()).unwrap();
        octets_end
            .write_all(format!("one{long}two").as_bytes())
            .unwrap();
        drop((octets_end, lines_end));
        let (sender, cues) = sync_channel(MAX_WAITING);
        read(TrackCodec::Text, octets, lines, &sender);
        let mut track = Track::new(cues);
        let mut at = |second: u64| {
            let shown = track.at(second * 1_000_000);
            (shown.since / 1_000_000, shown.text)
        };
        assert_eq!(at(0), (0, String::new()));
        assert_eq!(at(1), (1, "one".to_owned()));
        assert_eq!(at(2), (2, format!("one\n{}", &long[..MAX_CUE])));
        assert_eq!(at(3), (3, long[..MAX_CUE].to_owned()));
        assert_eq!(at(5), (4, String::new()));
        assert_eq!(at(13), (9, "two".to_owned()));
        assert_eq!(at(14), (14, String::new()));
    }
}
