//! An input as its packets: one ffmpeg opens it, once, and hands over what is inside without decoding it.
//!
//! ```text
//!  file, pipe, address ─▶ ffmpeg, copying ─ NUT ─ reader thread ─ Packet, with the time it came ─▶
//! ```

use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use namecast_units::{Duration, Timestamp};

use super::super::ffmpeg::{Process, pipe_url, words};
use super::super::source::Input;
use super::super::{IngestError, VideoConfig};
use super::Reading;
use crate::clock;
use crate::nut::{NutClass, NutError, NutReader, NutStream};

/// Packets read ahead: a second of pictures and sound.
const AHEAD: usize = 96;
/// Octets read from the pipe at once.
const READ_SIZE: usize = 1 << 16;
/// How long a live input is listened to before it is known, once its first packet is here.
const LISTEN: Duration = Duration::from_millis(500);
/// Pictures that are listened to at least, and at most.
const MIN_PICTURES: usize = 2;
const MAX_PICTURES: usize = 16;

/// Pictures or sound of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// Which stream of the input it is of.
    pub(super) stream: usize,
    /// When it is shown, by the source's clock, in microseconds.
    pub(super) media: u64,
    /// Whether it decodes by itself.
    pub(super) key: bool,
    pub(super) payload: Bytes,
    pub(super) arrived_at: Timestamp,
}

/// An input that is open.
#[derive(Debug)]
pub(super) struct Demuxer {
    reading: Arc<Reading>,
    packets: Receiver<Packet>,
    headers: Receiver<Vec<NutStream>>,
    label: String,
}

/// What an input turned out to be.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) demuxer: Demuxer,
    pub(super) streams: Vec<NutStream>,
    /// The first packets.
    pub(super) first: Vec<Packet>,
}

impl Opened {
    /// Number and description of the first stream of pictures, or of sound.
    pub(super) fn stream(&self, is_video: bool) -> Option<(usize, &NutStream)> {
        let is_it = |stream: &&NutStream| match stream.class {
            NutClass::Video(..) => is_video,
            NutClass::Audio(..) => !is_video,
            NutClass::Other => false,
        };
        let streams = self.streams.iter().enumerate();
        streams.clone().find(|(_, stream)| is_it(stream))
    }
}

impl Demuxer {
    /// Opens `input`, and waits until it is known what it holds. Files begin again at their end if `looped`.
    ///
    /// # Errors
    /// If it cannot be opened or holds neither pictures nor sound, or ffmpeg is missing.
    pub(super) fn open(
        input: &Input,
        looped: bool,
        camera: &VideoConfig,
        reading: &Arc<Reading>,
    ) -> Result<Opened, IngestError> {
        let arguments = arguments(input, looped, camera);
        let stdin = match input {
            Input::StandardInput => Stdio::inherit(),
            Input::Pipe(pipe) => pipe.take(),
            _ => Stdio::null(),
        };
        let (process, pipes) = Process::start_with(&arguments, 1, stdin)?;
        let (header_sender, headers) = sync_channel(1);
        let (sender, packets) = sync_channel(AHEAD);
        if let Some(pipe) = pipes.into_iter().next() {
            thread::spawn(move || read(pipe, &header_sender, &sender));
        }
        reading.hold(process);
        let demuxer = Self {
            reading: Arc::clone(reading),
            packets,
            headers,
            label: input.to_string(),
        };
        demuxer.listen()
    }

    fn listen(mut self) -> Result<Opened, IngestError> {
        let Ok(streams) = self.headers.recv() else {
            return Err(self.unreadable());
        };
        let is_video = |packet: &Packet| {
            let class = streams.get(packet.stream).map(|stream| stream.class);
            matches!(class, Some(NutClass::Video(..)))
        };
        let mut first: Vec<Packet> = Vec::new();
        let mut until = None;
        let has_video = (streams.iter()).any(|it| matches!(it.class, NutClass::Video(..)));
        loop {
            let pictures = first.iter().filter(|it| is_video(it)).count();
            let left = until.map_or(LISTEN, |until: Instant| {
                until.saturating_duration_since(Instant::now())
            });
            let has_enough = pictures >= MIN_PICTURES || !has_video;
            if pictures >= MAX_PICTURES || first.len() == AHEAD || has_enough && left.is_zero() {
                break;
            }
            let wait = if has_enough || until.is_none() {
                left
            } else {
                LISTEN
            };
            match self.packets.recv_timeout(wait) {
                Ok(packet) => {
                    until.get_or_insert_with(|| Instant::now() + LISTEN);
                    first.push(packet);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if first.is_empty() {
            return Err(self.unreadable());
        }
        Ok(Opened {
            demuxer: self,
            streams,
            first,
        })
    }

    /// The next packet; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Packet> {
        self.packets.recv().ok()
    }

    /// Waits until ffmpeg has ended.
    ///
    /// # Errors
    /// If it failed; what it said last is in the error.
    pub(super) fn end(self) -> Result<(), IngestError> {
        let process = self.reading.take();
        match process.map(|mut process| process.finish()) {
            Some((false, said)) => Err(IngestError::Broken(said)),
            _ => Ok(()),
        }
    }

    /// Why there is nothing.
    fn unreadable(&mut self) -> IngestError {
        let process = self.reading.take();
        let said = process.map(|mut process| process.end()).unwrap_or_default();
        let said = match said.is_empty() {
            true => "there is nothing in it".to_owned(),
            false => said,
        };
        let input = self.label.clone();
        IngestError::Unreadable { input, said }
    }
}

/// How ffmpeg is told to open an input, and to hold nothing back.
fn arguments(input: &Input, looped: bool, camera: &VideoConfig) -> Vec<OsString> {
    // Enough to see the parameters of each track that an input announces, and no more than a second of it.
    const LIVE: &str = "-probesize 65536 -analyzeduration 1000000";
    let mut arguments: Vec<OsString> = match input {
        Input::File(path) => {
            let looped = if looped { "-stream_loop -1 -i" } else { "-i" };
            words(looped).chain([path.into()]).collect()
        }
        Input::Address(address) => {
            let options = listening(address).or(pulling(address));
            let options = format!("{LIVE} {} -i", options.unwrap_or_default());
            words(&options).chain([address.into()]).collect()
        }
        Input::Camera(path) => {
            let (rate, size) = (camera.frames_per_second(), camera.source_size());
            let options =
                format!("-fflags nobuffer -f v4l2 -framerate {rate} -video_size {size} -i");
            words(&options).chain([path.into()]).collect()
        }
        Input::Pipe(pipe) => {
            let demuxer = pipe.container().demuxer();
            let options = format!("{LIVE} -protocol_whitelist pipe -f {demuxer} -i pipe:0");
            words(&options).collect()
        }
        Input::StandardInput | Input::Test => {
            let options = format!("{LIVE} -i pipe:0");
            words(&options).collect()
        }
    };
    let output = "-map 0:v:0? -map 0:a:0? -c copy -copyts -max_interleave_delta 1 -write_index 0 -flush_packets 1 -f nut";
    arguments.extend(words(output));
    arguments.push(pipe_url(0));
    arguments
}

/// Options for an address without a host, such as `rtmp://:1935/key`: it is listened on.
pub(super) fn listening(address: &str) -> Option<&'static str> {
    let (scheme, rest) = address.split_once("://")?;
    match scheme {
        "rtmp" | "rtmps" if rest.starts_with(':') => Some("-listen 1"),
        "srt" if rest.starts_with(':') => Some("-mode listener"),
        _ => None,
    }
}

/// How ffmpeg is told to fetch from a camera: by TCP, as UDP loses what does not fit its buffers, and without waiting for ever for
/// one that is gone. In microseconds.
pub(super) fn pulling(address: &str) -> Option<&'static str> {
    let options = "-rtsp_transport tcp -timeout 5000000";
    address.starts_with("rtsp://").then_some(options)
}

/// Reads what ffmpeg hands over, until it or whoever takes the packets ends.
fn read(mut pipe: PipeReader, headers: &SyncSender<Vec<NutStream>>, packets: &SyncSender<Packet>) {
    let mut reader = NutReader::default();
    let mut octets = vec![0; READ_SIZE];
    let mut is_known = false;
    loop {
        match pipe.read(&mut octets) {
            Ok(0) => return,
            Ok(count) => reader.push(&octets[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        }
        let arrived_at = clock::wall();
        loop {
            let frame = match reader.frame() {
                Ok(frame) => frame,
                Err(error) => return complain(error),
            };
            if !is_known && reader.is_known() {
                is_known = true;
                // There is room for the only one.
                let _ = headers.try_send(reader.streams().to_vec());
            }
            let Some(frame) = frame else { break };
            let packet = Packet {
                stream: frame.stream,
                media: frame.time.ticks(1_000_000),
                key: frame.key,
                payload: frame.payload,
                arrived_at,
            };
            if packets.send(packet).is_err() {
                return;
            }
        }
    }
}

fn complain(error: NutError) {
    tracing::warn!("what ffmpeg hands over: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_a_host_are_listened_on() {
        assert_eq!(listening("rtmp://:1935/key"), Some("-listen 1"));
        assert_eq!(listening("srt://:9000"), Some("-mode listener"));
        assert_eq!(listening("rtmp://server/app"), None);
        assert_eq!(listening("rtsp://:8554/x"), None);
        assert!(pulling("rtsp://camera/x").is_some() && pulling("rtmp://server/app").is_none());
    }
}
