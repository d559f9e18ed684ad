//! Streams in.

use core::time::Duration;

use namecast_apps::Now;
use namecast_apps::live::watcher::{Frame, RungChoice, Seek, Speed, Trust, WatchId, Watched};
use namecast_apps::live::{self, Stats, WatcherConfig};
use namecast_apps::trust::ExchangeSecret;
use namecast_net::Handle;
use namecast_stream::path::Weight;
use namecast_units::Timestamp;
use tokio::sync::mpsc;

use crate::consumers::Consumers;
use crate::error::Error;
use crate::node::{Node, parse_name};

/// What is to be watched. Say how, then [`start`](Self::start).
#[derive(Clone, Debug)]
pub struct Watch {
    node: Node,
    config: WatcherConfig,
}

impl Node {
    /// Begins to watch `name`, such as `/studio/camera1`: video and sound of it, live, as good as the network carries.
    ///
    /// # Errors
    /// If it is no name.
    pub fn watch(&self, name: &str) -> Result<Watch, Error> {
        let clock = self.inner().clock();
        let mut config = WatcherConfig::new(parse_name(name)?);
        config.wall_at_zero = clock.wall_at_zero();
        // Whoever could foresee Nonces and challenges could have them answered beforehand.
        config.seed = u64::from_le_bytes(namecast_net::random());
        Ok(Watch {
            node: self.clone(),
            config,
        })
    }
}

impl Watch {
    /// Watches the first data stream, or those that [`stream`](Self::stream) names, and neither video nor sound.
    #[must_use]
    pub const fn data(mut self) -> Self {
        self.config.video = false;
        self.config.audio = false;
        self.config.data = true;
        self
    }

    /// Watches the stream of this name instead of the first one of its kind. Of data, all streams that are named are watched, and
    /// [`Frame::name`](namecast_apps::live::watcher::Frame::name) tells them apart. For several pictures, watch the name several
    /// times: one Interest serves equal requests.
    #[must_use]
    pub fn stream(mut self, name: &str) -> Self {
        self.config.streams.push(name.to_owned());
        self
    }

    /// Watches the member `member` of the family `family`, such as a person of tracks, instead of all of it. Its samples are published while somebody
    /// watches it. [`Frame::name`](namecast_apps::live::watcher::Frame::name) is `family/8=member`.
    #[must_use]
    pub fn member(self, family: &str, member: &str) -> Self {
        self.stream(&format!("{family}/8={member}"))
    }

    /// Takes at most this number of samples a second of data streams of which only the newest counts: of a stream with more, every k-th sample
    /// is requested, and nothing else.
    #[must_use]
    pub const fn at_most(mut self, samples_per_second: u32) -> Self {
        self.config.max_data_rate = Some(samples_per_second);
        self
    }

    /// Delays playback by `target` beyond the earliest moment at which a frame could be here: more of it repairs more losses.
    /// 100 ms unless said otherwise.
    #[must_use]
    pub const fn target(mut self, target: Duration) -> Self {
        self.config.target = target;
        self
    }

    /// Takes this bitrate of the video.
    #[must_use]
    pub fn rung(mut self, rung: impl Into<RungChoice>) -> Self {
        self.config.rung = rung.into();
        self
    }

    /// Begins with what was captured at this time, if an archive has it.
    #[must_use]
    pub const fn from(mut self, captured_at: Timestamp) -> Self {
        self.config.past.from = Some(captured_at);
        self
    }

    /// Plays what is [from the past](Self::from) slower or faster.
    #[must_use]
    pub const fn speed(mut self, speed: Speed) -> Self {
        self.config.past.speed = speed;
        self
    }

    /// Accepts only what this vouches for, instead of the first key that is seen.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.config.trust = trust;
        self
    }

    /// Opens sealed samples with this secret, whose public half the publisher names among its readers.
    #[must_use]
    pub fn reader(mut self, secret: ExchangeSecret) -> Self {
        self.config.reader.push(secret);
        self
    }

    /// Changes anything else.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut WatcherConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Joins as soon as the network answers. It shares the rate of the path with all other watches of the node.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn start(self) -> Result<Watching, Error> {
        let consumers = self.node.consumers().await?;
        let added = consumers.call(move |consumers, _| consumers.add(self.config));
        let (id, events) = added.await.ok_or(Error::Ended)?;
        Ok(Watching {
            consumers,
            id,
            events,
        })
    }
}

/// What is being watched. It ends when this is dropped.
#[derive(Debug)]
pub struct Watching {
    consumers: Handle<Consumers>,
    id: WatchId,
    events: mpsc::Receiver<Watched>,
}

impl Watching {
    /// Waits for what comes next: a frame, or news of the stream. `None` once the node has stopped.
    ///
    /// Frames wait for the reader, up to some thousand; then the oldest are left out.
    pub async fn next(&mut self) -> Option<Watched> {
        self.events.recv().await
    }

    /// Waits for the next frame, verified and in order. `None` once the node has stopped.
    pub async fn next_frame(&mut self) -> Option<Frame> {
        loop {
            if let Watched::Frame(frame) = self.next().await? {
                return Some(frame);
            }
        }
    }

    /// Moves the playout target. Frames that were not delivered yet are timed anew; none is lost.
    pub fn set_target(&self, target: Duration) {
        self.change(move |watch, now| watch.set_target(now.monotonic, target));
    }

    /// Changes to another bitrate at the next key frame.
    pub fn set_rung(&self, rung: impl Into<RungChoice>) {
        let rung = rung.into();
        self.change(move |watch, now| watch.set_rung(now.monotonic, rung));
    }

    /// Chooses whether video and sound are requested. A stream that is left out costs nothing.
    pub fn set_wanted(&self, video: bool, sound: bool) {
        self.change(move |watch, now| watch.set_wanted(now.monotonic, video, sound));
    }

    /// Sets the weight of its pictures beside those of other watches of the node, as of the speaker in a call. Where there is not room
    /// for all, those of heavier watches arrive first, and each takes a part of the room according to its weight.
    pub fn set_weight(&self, weight: Weight) {
        self.change(move |watch, now| watch.set_weight(now.monotonic, weight));
    }

    /// Goes to another time, if an archive or the publisher has it, or back to live.
    pub fn seek(&self, to: Seek) {
        self.change(move |watch, now| watch.seek(now.monotonic, to));
    }

    /// Returns delays, losses and rates so far; `None` once the node has stopped.
    pub async fn stats(&self) -> Option<Stats> {
        let id = self.id;
        let stats = self
            .consumers
            .call(move |consumers, now| consumers.stats(now, id));
        stats.await?
    }

    fn change(&self, change: impl FnOnce(&mut live::watcher::Watch, Now) + Send + 'static) {
        let id = self.id;
        self.consumers.try_call(move |consumers, now| {
            if let Some(watch) = consumers.get_mut(id) {
                change(watch, now);
            }
        });
    }
}
