//! Runs a publisher or a watcher, which know neither clock nor socket, on an application face in real time.
//!
//! ```text
//!               frames, commands
//!                      │
//!   face ─ packets ─▶ state machine ─ poll_output ─▶ face, front-end
//!                      ▲
//!                      └ handle_timeout at poll_timeout
//! ```

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_apps::live::watcher::{Event, Frame, Output, RungChoice, Signer};
use namecast_apps::live::{EncodedFrame, Publisher, PublisherCounters, Stats, Watcher};
use namecast_net::{ApplicationFace, ApplicationSender, Clock};
use namecast_stream::producer::{ProducerCounters, RungId};
use namecast_stream::{Catalogue, StreamKind};
use namecast_units::{ByteSize, Duration, Instant, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

/// Packets taken from the face at once.
const BATCH: usize = 256;
/// Frames and commands that may wait for a pump.
const QUEUE: usize = 256;
/// Frames that wait for their time to be shown; more are shown unreported.
const MAX_SHOWN_LATER: usize = 1_024;
/// How long to sleep when no deadline is set.
const IDLE: Duration = Duration::from_secs(60);
/// How often the figures of a publisher are passed on.
const FIGURES_INTERVAL: Duration = Duration::from_millis(200);

/// Sleeps until `deadline`, or for long if there is none.
pub async fn sleep_until(clock: Clock, deadline: Option<Instant>) {
    sleep(deadline.map_or(IDLE, |at| at.since(clock.now()))).await;
}

/// Wall-clock time at the clock's zero, which a watcher needs to compare what it reads with its own time.
pub fn wall_at_zero(clock: Clock) -> Timestamp {
    let since_zero = clock.now().since(Instant::ZERO).as_micros();
    let since_zero = u64::try_from(since_zero).unwrap_or(u64::MAX);
    Timestamp::from_micros(clock.wall().as_micros().saturating_sub(since_zero))
}

/// What a publisher has counted.
#[derive(Clone, Debug, Default)]
pub struct PublisherFigures {
    /// Frames and packets.
    pub publisher: PublisherCounters,
    /// Interests and samples.
    pub producer: ProducerCounters,
    /// Interests held now.
    pub pending: usize,
    /// Memory that cached samples take.
    pub cache_size: ByteSize,
    /// The last frame that was refused, and why.
    pub last_refusal: Option<String>,
}

/// A handle on a publisher that runs.
#[derive(Clone, Debug)]
pub struct PublisherPump {
    frames: mpsc::Sender<(RungId, EncodedFrame)>,
    figures: watch::Receiver<PublisherFigures>,
}

impl PublisherPump {
    /// Runs `publisher` on `face` until the face or all handles are gone.
    pub fn start(clock: Clock, face: ApplicationFace, publisher: Publisher) -> Self {
        let (frames, queue) = mpsc::channel(QUEUE);
        let (shown, figures) = watch::channel(PublisherFigures::default());
        tokio::spawn(run_publisher(clock, face, publisher, queue, shown));
        Self { frames, figures }
    }

    /// Publishes one frame; false if the publisher has ended or is too busy.
    pub fn publish(&self, rung: RungId, frame: EncodedFrame) -> bool {
        self.frames.try_send((rung, frame)).is_ok()
    }

    /// What was counted, at most a fifth of a second ago.
    pub fn figures(&self) -> PublisherFigures {
        self.figures.borrow().clone()
    }
}

async fn run_publisher(
    clock: Clock,
    face: ApplicationFace,
    mut publisher: Publisher,
    mut frames: mpsc::Receiver<(RungId, EncodedFrame)>,
    figures: watch::Sender<PublisherFigures>,
) {
    let (sender, mut receiver) = face.split();
    let mut packets = Vec::with_capacity(BATCH);
    let mut last_refusal = None;
    let mut figures_at = clock.now();
    loop {
        let replies = core::iter::from_fn(|| publisher.poll_output()).collect();
        if !send_all(&sender, replies).await {
            return;
        }
        if clock.now() >= figures_at {
            figures_at = clock.now() + FIGURES_INTERVAL;
            figures.send_replace(PublisherFigures {
                publisher: *publisher.counters(),
                producer: publisher.producer_counters().clone(),
                pending: publisher.pending(),
                cache_size: publisher.cache_size(),
                last_refusal: last_refusal.clone(),
            });
        }
        let deadline = publisher
            .poll_timeout()
            .map_or(figures_at, |at| at.min(figures_at));
        tokio::select! {
            alive = receiver.recv_many(&mut packets, BATCH) => {
                if !alive {
                    return;
                }
                for packet in packets.drain(..) {
                    publisher.handle_packet(clock.now(), clock.wall(), packet);
                }
            }
            frame = frames.recv() => {
                let Some((rung, frame)) = frame else { return };
                if let Err(error) = publisher.publish_frame(clock.now(), clock.wall(), rung, frame) {
                    last_refusal = Some(error.to_string());
                }
            }
            () = sleep_until(clock, Some(deadline)) => {}
        }
        publisher.handle_timeout(clock.now());
    }
}

/// Hands packets to the node; false if it has stopped.
pub async fn send_all(sender: &ApplicationSender, packets: Vec<Bytes>) -> bool {
    packets.is_empty() || sender.send_batch(packets).await.is_ok()
}

/// What a watcher has to say, but its Interests.
#[derive(Clone, Debug)]
pub enum Watched {
    /// What is published, whenever that changes.
    Catalogue(Catalogue),
    /// Who signs it, and whether that counts.
    Signer(Signer),
    /// One complete and verified sample, in decoding order.
    Frame(Frame),
    /// The next frame of the stream is a key frame that does not follow the last one.
    Discontinuity(StreamKind),
    /// For people.
    Event(Event),
}

#[derive(Debug)]
enum Control {
    Target(Duration),
    Rung(RungChoice),
    LinkChange,
    Stats(oneshot::Sender<Stats>),
}

/// A handle on a watcher that runs.
#[derive(Clone, Debug)]
pub struct WatcherPump {
    controls: mpsc::Sender<Control>,
}

impl WatcherPump {
    /// Runs `watcher` on `face` until the face, all handles or the receiver of what it says are gone.
    ///
    /// Nothing decodes here, so each frame counts as shown when its time has come.
    pub fn start(
        clock: Clock,
        face: ApplicationFace,
        watcher: Watcher,
    ) -> (Self, mpsc::Receiver<Watched>) {
        let (controls, queue) = mpsc::channel(QUEUE);
        // Frames come in bursts while joining; a front-end that is slower for long makes the watcher wait, and skip.
        let (said, heard) = mpsc::channel(4 * QUEUE);
        let runner = WatcherRunner {
            clock,
            watcher,
            said,
            shown_later: VecDeque::new(),
        };
        tokio::spawn(runner.run(face, queue));
        (Self { controls }, heard)
    }

    /// Moves the playout target.
    pub async fn set_target(&self, target: Duration) {
        self.tell(Control::Target(target)).await;
    }

    /// Chooses another bitrate.
    pub async fn set_rung(&self, rung: RungChoice) {
        self.tell(Control::Rung(rung)).await;
    }

    /// Tells that the transport came back.
    pub async fn link_changed(&self) {
        self.tell(Control::LinkChange).await;
    }

    /// The watcher's figures; `None` once it has ended.
    pub async fn stats(&self) -> Option<Stats> {
        let (reply, answer) = oneshot::channel();
        self.tell(Control::Stats(reply)).await;
        answer.await.ok()
    }

    async fn tell(&self, control: Control) {
        // A watcher that has ended has nothing to be told.
        let _ = self.controls.send(control).await;
    }
}

struct WatcherRunner {
    clock: Clock,
    watcher: Watcher,
    said: mpsc::Sender<Watched>,
    /// Frames in order of their time, with that.
    shown_later: VecDeque<(Instant, StreamKind, u64)>,
}

impl WatcherRunner {
    async fn run(mut self, face: ApplicationFace, mut controls: mpsc::Receiver<Control>) {
        let (sender, mut receiver) = face.split();
        let mut packets = Vec::with_capacity(BATCH);
        self.watcher.handle_timeout(self.clock.now());
        loop {
            self.show_due();
            let (interests, said) = self.take_outputs();
            if !send_all(&sender, interests).await {
                return;
            }
            for watched in said {
                if self.said.send(watched).await.is_err() {
                    return;
                }
            }
            let show_at = self.shown_later.iter().map(|&(at, ..)| at).min();
            let deadlines = [self.watcher.poll_timeout(), show_at];
            tokio::select! {
                alive = receiver.recv_many(&mut packets, BATCH) => {
                    if !alive {
                        return;
                    }
                    for packet in packets.drain(..) {
                        self.watcher.handle_packet(self.clock.now(), packet);
                    }
                }
                control = controls.recv() => {
                    let Some(control) = control else { return };
                    self.control(control);
                }
                () = sleep_until(self.clock, deadlines.into_iter().flatten().min()) => {}
            }
            self.watcher.handle_timeout(self.clock.now());
        }
    }

    fn control(&mut self, control: Control) {
        let now = self.clock.now();
        match control {
            Control::Target(target) => self.watcher.set_target(now, target),
            Control::Rung(rung) => self.watcher.set_rung(now, rung),
            Control::LinkChange => self.watcher.handle_link_change(now),
            // Whoever asked may have given up.
            Control::Stats(reply) => drop(reply.send(self.watcher.stats(now))),
        }
    }

    fn take_outputs(&mut self) -> (Vec<Bytes>, Vec<Watched>) {
        let (mut interests, mut said) = (Vec::new(), Vec::new());
        while let Some(output) = self.watcher.poll_output() {
            said.push(match output {
                Output::Interest(interest) => {
                    interests.push(interest);
                    continue;
                }
                Output::Catalogue(catalogue) => Watched::Catalogue(catalogue),
                Output::Signer(signer) => Watched::Signer(signer),
                Output::Frame(frame) => {
                    if !frame.late && self.shown_later.len() < MAX_SHOWN_LATER {
                        let shown = (frame.render_at, frame.stream, frame.position);
                        self.shown_later.push_back(shown);
                    }
                    Watched::Frame(frame)
                }
                Output::Discontinuity { stream, .. } => Watched::Discontinuity(stream),
                Output::Event(event) => Watched::Event(event),
            });
        }
        (interests, said)
    }

    fn show_due(&mut self) {
        let now = self.clock.now();
        let watcher = &mut self.watcher;
        self.shown_later.retain(|&(at, stream, position)| {
            if at <= now {
                watcher.handle_rendered(now, stream, position);
            }
            at > now
        });
    }
}
