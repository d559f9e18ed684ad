//! A stream that this program takes from somewhere and writes into a pipe, at whose other end ffmpeg reads.

use core::fmt;
use std::io::PipeReader;
use std::sync::{Arc, Mutex, PoisonError};

/// How pictures and sound are interleaved. ffmpeg is told, so that what strangers send is never taken for a playlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Flash Video, as RTMP carries it.
    Flv,
    /// MPEG transport stream, as SRT carries it.
    MpegTs,
    /// NUT, as this library writes it.
    Nut,
}

impl Container {
    /// ffmpeg's name of the demuxer.
    pub(in super::super) const fn demuxer(self) -> &'static str {
        match self {
            Self::Flv => "live_flv",
            Self::MpegTs => "mpegts",
            Self::Nut => "nut",
        }
    }
}

/// The reading end of a pipe, which is opened once.
#[derive(Clone, Debug)]
pub struct Pipe {
    container: Container,
    label: String,
    reader: Arc<Mutex<Option<PipeReader>>>,
}

impl Pipe {
    /// A pipe that carries `container`; `label` is what people call its source.
    pub fn new(reader: PipeReader, container: Container, label: String) -> Self {
        Self {
            container,
            label,
            reader: Arc::new(Mutex::new(Some(reader))),
        }
    }

    pub(in super::super) const fn container(&self) -> Container {
        self.container
    }

    /// The reading end; nothing from the second time on.
    pub(in super::super) fn take(&self) -> Option<PipeReader> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.take()
    }
}

impl PartialEq for Pipe {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.reader, &other.reader)
    }
}

impl Eq for Pipe {}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}
