//! Captions beside HLS in a directory: a playlist of WebVTT, and the playlist of both, with which players begin.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use namecast_stream::{Rung, StreamInfo};

use crate::hls::{self, PLAYLIST, Subtitles};

/// Playlist of the pictures where there are captions, and that of the captions.
pub(super) const PICTURES: &str = "pictures.m3u8";
const CAPTIONS: &str = "captions.m3u8";
/// Segments that stay after they left the playlist, as those of the pictures do.
const KEPT: usize = 4;

/// Writes captions beside the playlist of the pictures.
#[derive(Debug)]
pub(super) struct Captions {
    directory: PathBuf,
    pub(super) subtitles: Subtitles,
    /// Playlist of the pictures, as read last.
    playlist: String,
    /// Segments that are there, the oldest first.
    files: VecDeque<String>,
    /// Playlist of both, until it is written.
    multivariant: Option<String>,
}

impl Captions {
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            subtitles: Subtitles::default(),
            playlist: String::new(),
            files: VecDeque::new(),
            multivariant: None,
        }
    }

    /// Notes which pictures and sound they are beside from now on.
    pub(super) fn describe(&mut self, rung: &Rung, audio: Option<&StreamInfo>) {
        let path = |_: &Rung| PICTURES.to_owned();
        let text = hls::multivariant([rung], path, audio, Some(CAPTIONS));
        self.multivariant = Some(text);
    }

    /// Writes the captions of the segments that ffmpeg has listed since the last call.
    ///
    /// # Errors
    /// If the directory cannot be written to.
    pub(super) fn follow(&mut self) -> io::Result<()> {
        // There is none before the first segment ends.
        let Ok(playlist) = fs::read_to_string(self.directory.join(PICTURES)) else {
            return Ok(());
        };
        if playlist == self.playlist {
            return Ok(());
        }
        for (segment, text) in self.subtitles.follow(&playlist) {
            let file = beside(&segment);
            fs::write(self.directory.join(&file), text)?;
            self.files.push_back(file);
        }
        let captions = hls::captions_playlist(&playlist, beside);
        self.replace(CAPTIONS, &captions)?;
        if let Some(multivariant) = self.multivariant.take() {
            self.replace(PLAYLIST, &multivariant)?;
        }
        let kept = hls::files(&captions).count() + KEPT;
        while self.files.len() > kept
            && let Some(file) = self.files.pop_front()
        {
            // Somebody may have cleaned up.
            let _ = fs::remove_file(self.directory.join(file));
        }
        self.playlist = playlist;
        Ok(())
    }

    /// Writes a file that others may be reading.
    fn replace(&self, file: &str, text: &str) -> io::Result<()> {
        let unfinished = self.directory.join(format!("{file}.tmp"));
        fs::write(&unfinished, text)?;
        fs::rename(unfinished, self.directory.join(file))
    }
}

/// Returns the name of the captions beside a segment of pictures.
fn beside(segment: &str) -> String {
    let stem = segment.split_once('.').map_or(segment, |(stem, _)| stem);
    format!("{stem}.vtt")
}
