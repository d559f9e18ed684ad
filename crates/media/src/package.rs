//! A live ladder as HLS: playlists and segments that any player takes, made by an ffmpeg for each rung, which encodes no picture.
//!
//! ```text
//!  MediaFrame ─▶ Packager ─▶ Recorder of each rung ─ ffmpeg ─▶ RUNG/index.m3u8, RUNG/init-1.mp4, RUNG/seq=7 ─▶ Change
//! ```
//!
//! Segments have the same number and time in all rungs. Numbers count segments since 1970, so that a packager that starts again uses
//! none twice.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use namecast_apps::live::watcher::{Frame, Stages};
use namecast_stream::{Catalogue, Rung, StreamInfo, StreamKind};
use namecast_units::{Duration, Instant, Timestamp};
use tempfile::TempDir;

use crate::hls::{self, PLAYLIST, Subtitles, files};
use crate::ingest::MediaFrame;
use crate::record::{Cut, Destination, Recorder, TakesNot};
use crate::streams::is_captions;

/// Name of the stream under the root, and of its codec in the catalogue.
pub const HLS: &str = "hls";
/// Segments in a playlist.
const LISTED: usize = 6;
/// Segments that are kept after they left the playlist: somebody may be fetching them.
const KEPT: usize = 2;
/// Directory of the captions.
const CAPTIONS: &str = "captions";

/// Why streams cannot be packaged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// There is no video.
    #[error("HLS needs a video: add an input with pictures, or leave --package out")]
    NoVideo,
    /// There are several videos, or data.
    #[error("HLS takes one video with its sound, and no {0}: publish it under a name of its own")]
    Several(String),
    /// The pictures do not fit.
    #[error(transparent)]
    TakesNot(#[from] TakesNot),
    /// There is no place for the files.
    #[error("no directory for segments: {0}")]
    Directory(#[from] std::io::Error),
}

/// A file that appeared, changed or went. Paths are relative to the multivariant playlist's place, as in `1M/seq=7`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has this content now.
    Put(String, Bytes),
    /// It is of no use any more.
    Gone(String),
}

/// Packages a ladder. Dropping it ends its ffmpegs and removes its files.
#[derive(Debug)]
pub struct Packager {
    directory: TempDir,
    segment: Duration,
    video: StreamInfo,
    audio: Option<StreamInfo>,
    rungs: Vec<Packaged>,
    captions: Option<Captions>,
    /// Whether the multivariant playlist was given.
    is_listed: bool,
}

/// Captions, in segments of their own.
#[derive(Debug, Default)]
struct Captions {
    /// Time of capture where the recordings begin.
    began: Timestamp,
    subtitles: Subtitles,
    /// Segments that were given and did not go, the oldest first.
    files: VecDeque<String>,
}

/// One rung.
#[derive(Debug)]
struct Packaged {
    name: String,
    /// Never locked: it makes a packager something that threads can share.
    recorder: Mutex<Recorder>,
    directory: PathBuf,
    /// What the playlist says, as given last.
    playlist: Vec<u8>,
    /// Files that were given and did not go, the oldest first.
    files: VecDeque<String>,
}

impl Packager {
    /// A packager of one video with its sound and captions, in segments of `segment`.
    ///
    /// # Errors
    /// If HLS does not take the streams, or there is no place for files.
    pub fn new(streams: &[StreamInfo], segment: Duration) -> Result<Self, PackageError> {
        let of = |kind| streams.iter().find(move |stream| stream.kind == kind);
        let video = of(StreamKind::Video).ok_or(PackageError::NoVideo)?;
        let audio = of(StreamKind::Audio);
        let captions = streams.iter().find(|it| is_captions(it));
        let is_other = |it: &&StreamInfo| ![Some(video), audio, captions].contains(&Some(*it));
        if let Some(other) = streams.iter().find(is_other) {
            return Err(PackageError::Several(other.name.clone()));
        }
        let directory = tempfile::Builder::new()
            .prefix("namecast-package-")
            .tempdir()?;
        Destination::hls(directory.path().to_owned()).check(video)?;
        Ok(Self {
            directory,
            segment,
            video: video.clone(),
            audio: audio.cloned(),
            captions: captions.map(|_| Captions::default()),
            rungs: Vec::new(),
            is_listed: false,
        })
    }

    /// What the catalogue says of it: a stream of another kind, whose codec is [`HLS`].
    pub fn stream(&self) -> StreamInfo {
        StreamInfo {
            name: HLS.to_owned(),
            kind: StreamKind::Other,
            codec: HLS.to_owned(),
            ..self.video.clone()
        }
    }

    /// Takes a frame. The first key frame begins all rungs.
    ///
    /// # Errors
    /// If an ffmpeg does not take frames any more.
    pub fn write(&mut self, frame: &MediaFrame) -> anyhow::Result<()> {
        if self.rungs.is_empty() {
            if frame.stream != StreamKind::Video || !frame.key {
                return Ok(());
            }
            self.begin(frame)?;
        }
        let is_video = frame.stream == StreamKind::Video;
        let stream = match frame.stream {
            StreamKind::Video => Some(&self.video),
            StreamKind::Audio => self.audio.as_ref(),
            StreamKind::Data | StreamKind::Other => {
                if let Some(captions) = &mut self.captions {
                    captions.show(frame);
                }
                return Ok(());
            }
        };
        let rung = stream.and_then(|it| Some((it, it.rungs.get(frame.rung)?)));
        let Some((stream, rung)) = rung else {
            return Ok(());
        };
        let watched = watched(frame, (&stream.name, rung.name.clone()));
        for packaged in &mut self.rungs {
            if !is_video || packaged.name == rung.name {
                let recorder = packaged.recorder.get_mut();
                let recorder = recorder.unwrap_or_else(PoisonError::into_inner);
                recorder.write(&watched)?;
                anyhow::ensure!(recorder.is_open(), "ffmpeg has ended");
            }
        }
        Ok(())
    }

    fn begin(&mut self, first: &MediaFrame) -> anyhow::Result<()> {
        let at = first.captured_at;
        let micros = u64::try_from(self.segment.as_micros()).unwrap_or(u64::MAX);
        let cut = Cut {
            duration: self.segment,
            first: at.as_micros() / micros.max(1),
            listed: LISTED,
        };
        let streams = [Some(&self.video), self.audio.as_ref()];
        let catalogue = Catalogue {
            version: 0,
            starts: Default::default(),
            title: None,
            streams: streams.into_iter().flatten().cloned().collect(),
            signer: String::new(),
        };
        // Decoders begin before the first picture is shown, and times of HLS do not go below zero.
        let delays = self.video.rungs.iter().map(|rung| rung.reorder_delay);
        let delay = delays.max().unwrap_or(0);
        let began = Timestamp::from_micros(at.as_micros().saturating_sub(delay));
        if let Some(captions) = &mut self.captions {
            captions.began = began;
            let begin = captions.time(at + first.composition_offset);
            captions.subtitles.begin(begin);
        }
        for rung in &self.video.rungs {
            let directory = self.directory.path().join(&rung.name);
            let destination = Destination::package(directory.clone(), cut);
            let mut recorder = Recorder::new(destination, true).starting_at(began);
            recorder.open(&catalogue)?;
            self.rungs.push(Packaged {
                name: rung.name.clone(),
                recorder: Mutex::new(recorder),
                directory,
                playlist: Vec::new(),
                files: VecDeque::new(),
            });
        }
        Ok(())
    }

    /// Returns what changed since the last call: each segment before the playlist that lists it, and in the first place the
    /// multivariant playlist, once every rung has one. To be called a few times a second.
    pub fn changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for rung in &mut self.rungs {
            rung.look(&mut changes);
        }
        if let (Some(captions), Some(rung)) = (&mut self.captions, self.rungs.first()) {
            captions.follow(&rung.playlist, &mut changes);
        }
        let has_begun = self.rungs.iter().all(|rung| !rung.playlist.is_empty());
        if !self.is_listed && has_begun && !self.rungs.is_empty() {
            self.is_listed = true;
            let path = |rung: &Rung| format!("{}/{PLAYLIST}", rung.name);
            let captions = self
                .captions
                .as_ref()
                .map(|_| format!("{CAPTIONS}/{PLAYLIST}"));
            let rungs = &self.video.rungs;
            let text = hls::multivariant(rungs, path, self.audio.as_ref(), captions.as_deref());
            changes.push(Change::Put(PLAYLIST.to_owned(), text.into()));
        }
        changes
    }
}

impl Captions {
    fn time(&self, at: Timestamp) -> u64 {
        at.micros_since(self.began).try_into().unwrap_or(0)
    }

    fn show(&mut self, frame: &MediaFrame) {
        let text = String::from_utf8_lossy(&frame.payload).into_owned();
        self.subtitles.show(self.time(frame.captured_at), text);
    }

    /// Makes the captions of the segments that are new in the playlist of a rung.
    fn follow(&mut self, playlist: &[u8], changes: &mut Vec<Change>) {
        let playlist = String::from_utf8_lossy(playlist);
        let segments = self.subtitles.follow(&playlist);
        if segments.is_empty() {
            return;
        }
        let path = |file: &str| format!("{CAPTIONS}/{file}");
        for (file, text) in segments {
            changes.push(Change::Put(path(&file), text.into()));
            self.files.push_back(file);
        }
        let text = hls::captions_playlist(&playlist, str::to_owned);
        let listed = hls::files(&text).count();
        changes.push(Change::Put(path(PLAYLIST), text.into()));
        while self.files.len() > listed + KEPT
            && let Some(file) = self.files.pop_front()
        {
            changes.push(Change::Gone(path(&file)));
        }
    }
}

impl Packaged {
    fn look(&mut self, changes: &mut Vec<Change>) {
        // There is none before the first segment is over.
        let Ok(text) = fs::read(self.directory.join(PLAYLIST)) else {
            return;
        };
        if text == self.playlist {
            return;
        }
        let said = String::from_utf8_lossy(&text).into_owned();
        for file in files(&said) {
            if self.files.iter().any(|known| known == file) {
                continue;
            }
            // Whoever looks too rarely finds it gone, and the playlist that no longer lists it.
            if let Ok(content) = fs::read(self.directory.join(file)) {
                self.files.push_back(file.to_owned());
                changes.push(Change::Put(self.path(file), content.into()));
            }
        }
        changes.push(Change::Put(self.path(PLAYLIST), text.clone().into()));
        self.playlist = text;
        let listed: Vec<_> = files(&said).collect();
        let unlisted = |known: &String| !listed.contains(&known.as_str());
        while self.files.iter().filter(|it| unlisted(it)).count() > KEPT
            && let Some(oldest) = self.files.iter().position(unlisted)
            && let Some(file) = self.files.remove(oldest)
        {
            changes.push(Change::Gone(self.path(&file)));
        }
    }

    fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.name)
    }
}

/// The frame as a recorder takes it.
fn watched(frame: &MediaFrame, (name, rung): (&str, String)) -> Frame {
    Frame {
        stream: frame.stream,
        name: name.into(),
        rung,
        position: frame.position,
        key: frame.key,
        payload: frame.payload.clone(),
        captured_at: frame.captured_at,
        composition_offset: frame.composition_offset,
        render_at: Instant::ZERO,
        complete_at: Instant::ZERO,
        late: false,
        catching_up: false,
        decode_only: false,
        stages: Stages::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::hls::tests::stream;

    fn video() -> StreamInfo {
        stream(StreamKind::Video, "h264", &[("300k", 300), ("1M", 1_000)])
    }

    #[test]
    fn what_hls_does_not_take_is_refused() {
        let segment = Duration::from_secs(4);
        let refused =
            |streams: &[StreamInfo]| Packager::new(streams, segment).unwrap_err().to_string();
        assert!(refused(&[]).contains("add an input with pictures"));
        let lines = StreamInfo::data("gps", 1, 10);
        assert!(refused(&[video(), lines]).contains("no gps"));
        let vp8 = stream(StreamKind::Video, "vp8", &[("1M", 1_000)]);
        assert!(refused(&[vp8]).contains("no pictures in vp8"));
    }

    /// The header stays as long as it is listed; of segments that are not, two are kept.
    #[test]
    fn segments_come_before_their_playlist_and_go_a_while_after() {
        let mut packager = Packager::new(&[video()], Duration::from_secs(4)).unwrap();
        let directory = packager.directory.path().join("1M");
        fs::create_dir(&directory).unwrap();
        packager.rungs.push(Packaged {
            name: "1M".to_owned(),
            recorder: Mutex::new(Recorder::new(Destination::hls(directory.clone()), true)),
            directory: directory.clone(),
            playlist: Vec::new(),
            files: VecDeque::new(),
        });
        let mut publish = |numbers: core::ops::Range<u64>| {
            let mut text = "#EXT-X-MAP:URI=\"init-1.mp4\"\n".to_owned();
            fs::write(directory.join("init-1.mp4"), "header").unwrap();
            for number in numbers {
                fs::write(directory.join(format!("seq={number}")), "media").unwrap();
                let _ = writeln!(text, "seq={number}");
            }
            fs::write(directory.join(PLAYLIST), text).unwrap();
            let changes = packager.changes().into_iter();
            let changes = changes.map(|change| match change {
                Change::Put(path, _) => path,
                Change::Gone(path) => format!("-{path}"),
            });
            changes.collect::<Vec<_>>()
        };
        let all = [
            "1M/init-1.mp4",
            "1M/seq=1",
            "1M/seq=2",
            "1M/index.m3u8",
            "index.m3u8",
        ];
        assert_eq!(publish(1..3), all);
        assert_eq!(publish(1..3), [""; 0]);
        assert_eq!(publish(3..4), ["1M/seq=3", "1M/index.m3u8"]);
        assert_eq!(publish(4..5), ["1M/seq=4", "1M/index.m3u8", "-1M/seq=1"]);
    }
}
