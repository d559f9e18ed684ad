//! Where watched frames go: a file, a pipe, or an ffmpeg that wraps them for a file, a directory of segments or a server.
//!
//! ```text
//!  Frame ─▶ Recorder ─ queue ─▶ writer thread ─ NUT ─▶ file, pipe
//!                                              ├─────▶ ffmpeg, copying ─▶ .mp4, .mkv, .ts, HLS, rtsp://, srt://, rtmp://
//!                                              └ captions beside HLS ─▶ WebVTT
//! ```
//!
//! A thread of its own writes, so that a slow reader holds nobody up: frames it has no room for are left out, up to the
//! next key frame. A file has pictures of one size: where that changes, the next file begins.

mod captions;
mod destination;
mod output;
mod timeline;
mod writer;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread::JoinHandle;

use namecast_apps::live::watcher::Frame;
use namecast_stream::{Catalogue, StreamInfo, StreamKind};
use namecast_units::Timestamp;

pub use destination::{Cut, Destination, TakesNot};

use output::{Wrapper, grace};
use writer::{Recorded, State, WAIT, Writer};

/// Frames that wait to be written: about three seconds.
const QUEUE: usize = 256;

/// Writes watched frames. Dropping it breaks the recording off; what is written by then plays.
#[derive(Debug)]
pub struct Recorder {
    destination: Destination,
    kinds: Vec<StreamKind>,
    wrapper: Arc<Wrapper>,
    thread: Option<Thread>,
    streams: Arc<[StreamInfo]>,
    began: Option<Timestamp>,
    has_ended: bool,
    /// Set while frames are left out up to the next key frame.
    waits_for_key: bool,
    /// Sound and captions before the first picture.
    early: VecDeque<Recorded>,
    /// Whether a picture was handed over.
    has_pictures: bool,
    /// Frames that were left out since the reader was too slow.
    pub left_out: u64,
}

#[derive(Debug)]
struct Thread {
    frames: SyncSender<Recorded>,
    notes: Receiver<String>,
    /// Closed when the thread ends.
    done: Receiver<()>,
    handle: JoinHandle<anyhow::Result<()>>,
}

impl Recorder {
    /// Will write to `destination`, pictures and if `audio` sound, once it knows what there is.
    pub fn new(destination: Destination, audio: bool) -> Self {
        let mut kinds = vec![StreamKind::Video];
        if audio && destination.container.takes_sound() {
            kinds.push(StreamKind::Audio);
        }
        Self {
            destination,
            kinds,
            wrapper: Arc::default(),
            thread: None,
            streams: Arc::new([]),
            began: None,
            has_ended: false,
            waits_for_key: true,
            early: VecDeque::new(),
            has_pictures: false,
            left_out: 0,
        }
    }

    /// Lets the recording's time start at `time` and not with its first frame, so that several have one time.
    #[must_use]
    pub const fn starting_at(mut self, time: Timestamp) -> Self {
        self.began = Some(time);
        self
    }

    /// Takes the catalogue that the frames from now on are of.
    ///
    /// # Errors
    /// If its pictures do not fit into the container.
    pub fn open(&mut self, catalogue: &Catalogue) -> Result<(), TakesNot> {
        self.streams = catalogue.streams.clone().into();
        let video = self.video();
        video.map_or(Ok(()), |video| {
            self.destination.container.check_video(video)
        })?;
        if self.thread.is_none() && !self.has_ended {
            self.thread = Some(self.start());
        }
        Ok(())
    }

    fn start(&self) -> Thread {
        let (frames, recorded) = sync_channel(QUEUE);
        let (note, notes) = channel();
        let (is_running, done) = channel();
        let writer = Writer {
            destination: self.destination.clone(),
            wrapper: Arc::clone(&self.wrapper),
            notes: note,
            kinds: self.kinds.clone(),
            state: State::beginning(self.began),
        };
        let handle = std::thread::spawn(move || {
            let _is_running: std::sync::mpsc::Sender<()> = is_running;
            writer.run(&recorded)
        });
        Thread {
            frames,
            notes,
            done,
            handle,
        }
    }

    fn video(&self) -> Option<&StreamInfo> {
        let mut streams = self.streams.iter();
        streams.find(|stream| stream.kind == StreamKind::Video)
    }

    /// Hands over one frame.
    ///
    /// # Errors
    /// If writing has failed, or the reader of the pipe has left.
    pub fn write(&mut self, frame: &Frame) -> anyhow::Result<()> {
        if self.thread.is_none() {
            return Ok(());
        }
        let recorded = Recorded {
            frame: frame.clone(),
            streams: Arc::clone(&self.streams),
        };
        let is_video = frame.stream == StreamKind::Video;
        if is_video && frame.key {
            self.waits_for_key = false;
            self.has_pictures = true;
            let began = self.began.unwrap_or_default();
            let mut held = core::mem::take(&mut self.early);
            // A container's header waits no longer for pictures.
            held.retain(|early| {
                early.frame.captured_at >= began && early.is_within(WAIT, &recorded)
            });
            // Sound that was captured after the picture may have come first, and would pass for a stream without pictures.
            let place = held.partition_point(|early| early.frame.captured_at < frame.captured_at);
            held.insert(place, recorded);
            return held.into_iter().try_for_each(|held| self.send(held));
        }
        // Sound alone would make a player wait for pictures.
        if self.waits_for_key && self.video().is_some() {
            self.hold(recorded);
            return Ok(());
        }
        self.send(recorded)
    }

    /// Keeps what comes before the first picture, which may take longer to arrive than sound that is captured with it.
    fn hold(&mut self, recorded: Recorded) {
        if self.has_pictures || recorded.frame.stream == StreamKind::Video {
            return;
        }
        if self.early.len() == QUEUE {
            self.early.pop_front();
        }
        self.early.push_back(recorded);
    }

    fn send(&mut self, recorded: Recorded) -> anyhow::Result<()> {
        let Some(thread) = &self.thread else {
            return Ok(());
        };
        let is_video = recorded.frame.stream == StreamKind::Video;
        match thread.frames.try_send(recorded) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => {
                self.left_out += 1;
                self.waits_for_key |= is_video;
                Ok(())
            }
            Err(TrySendError::Disconnected(_)) => self.finish(),
        }
    }

    /// The next sentence that people should read, if there is one: that sound is encoded, that a further file begins.
    pub fn note(&self) -> Option<String> {
        self.thread.as_ref()?.notes.try_recv().ok()
    }

    /// Whether whoever reads the output is still there.
    pub const fn is_open(&self) -> bool {
        !self.has_ended
    }

    /// Writes what is left, and closes the output. Whoever does not take it within seconds does not get it.
    ///
    /// # Errors
    /// If writing failed.
    pub fn finish(&mut self) -> anyhow::Result<()> {
        self.has_ended = true;
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let Thread {
            frames,
            done,
            handle,
            ..
        } = thread;
        drop(frames);
        let grace = grace(&self.destination.place);
        let is_hanging = || done.recv_timeout(grace) == Err(RecvTimeoutError::Timeout);
        if is_hanging() {
            self.wrapper.end();
            // A reader of standard output that neither reads nor leaves holds the thread until the process ends.
            anyhow::ensure!(
                !is_hanging(),
                "whoever reads {} reads no more",
                self.destination
            );
        }
        handle
            .join()
            .unwrap_or_else(|_| anyhow::bail!("the recorder failed"))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.wrapper.end();
            drop(thread);
        }
    }
}
