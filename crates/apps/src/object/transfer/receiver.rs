//! The receiving end: the table of contents, then segments until there are enough.
//!
//! ```text
//!  Table ──its signer counts──▶ Waiting ──begin──▶ Pulling ──nothing is needed──▶ whole, reports until it is finished, serves neighbours
//!    ▲ │                        for whoever keeps the segments
//!    └─┘ nobody has it yet
//! ```

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::Name;
use namecast_units::{Duration, Instant, Timestamp};

use super::pull::Pull;
use super::seal::is_sealed;
use super::{
    ContentKey, Contents, ContentsError, KeptSegments, MAX_TABLE_SIZE, SegmentSet, table_of,
};
use crate::discovery::{Signer, Trust};
use crate::object::{Event, Failure, Fetcher, FetcherConfig};
use crate::receivers::ReceiverId;
use crate::{Application, Now, Output};

/// Pause before the table is requested again where nobody has it.
const RETRY: Duration = Duration::from_secs(1);

/// Which object to receive, and how.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Name of the object, without a version.
    pub name: Name,
    /// Whose signature counts.
    pub trust: Trust,
    /// Wall clock at [`Instant::ZERO`].
    pub wall_at_zero: Timestamp,
    /// Key of a private object.
    pub key: Option<ContentKey>,
    /// Whether any next segments are requested, where nodes count such requests.
    pub any_next: bool,
    /// Identifies this receiver to the sender: random octets.
    pub id: ReceiverId,
    /// Seed of the Nonces.
    pub seed: u64,
}

/// Report of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub enum ReceiverEvent {
    /// Nobody has it so far: it is requested again.
    Waiting(Failure),
    /// Table of contents and its signer. Requests for segments start with [`Receiver::begin`].
    Contents(Box<Contents>, Signer),
    /// A segment, parity included, that was missing and is verified; and its signature.
    Segment(u64, Bytes, Bytes),
    /// Enough segments of each block are here. Call [`Receiver::finish`] once they are what the table says.
    Enough,
    /// The sender knows that all is here. Nothing follows, but neighbours get what they request.
    Reported,
    /// It cannot be received. Nothing follows.
    Failed(Refused),
}

/// Why an object cannot be received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The table cannot be fetched.
    #[error(transparent)]
    Table(Failure),
    /// The table is refused.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// The table is sealed, and the key is another one or missing.
    #[error("it is private: receive it with the ticket that the sender printed")]
    Sealed,
    /// There is a key, and the object is not sealed.
    #[error("the ticket is not for what is sent under this name")]
    NotSealed,
    /// The sender does not have this version any more.
    #[error("the sender does not offer this version any more: run the same command again")]
    Gone,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Segments that were of use.
    pub segments: u64,
    /// Of those, ones that came for requests of any next.
    pub any_next: u64,
    /// Of all, ones that were requested of neighbours while others came.
    pub from_neighbours: u64,
    /// Segments that neighbours got.
    pub served: u64,
    /// Segments that were here, or not needed.
    pub duplicates: u64,
    /// Segments whose signature or content is wrong.
    pub forged: u64,
    /// Segments with a congestion mark.
    pub marked: u64,
    /// Packets that break the format, or belong to nothing.
    pub unexpected: u64,
}

enum Stage {
    Table(Box<Fetcher>),
    /// Nobody has the table; when to request it again.
    Retry(Instant),
    /// Waits for `begin`.
    Ready(Box<Ready>),
    Pulling(Box<Pull>),
    Over,
}

/// State before segments are requested.
pub(super) struct Ready {
    pub(super) contents: Contents,
    pub(super) flow: Name,
    pub(super) signer: crate::object::KnownSigner,
}

/// Receives one object.
///
/// A plain value: the first call of `handle_timeout` starts; after each call take everything from `poll_output`.
pub struct Receiver {
    config: ReceiverConfig,
    stage: Stage,
    tries: u64,
    events: VecDeque<ReceiverEvent>,
}

impl core::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Receiver")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Receiver {
    /// A receiver that has requested nothing.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            config,
            stage: Stage::Retry(Instant::ZERO),
            tries: 0,
            events: VecDeque::new(),
        }
    }

    /// Requests all segments that are needed beside those that are `here`, which must be a set of this object's. Neighbours get what is
    /// `kept`.
    pub fn begin(&mut self, now: Instant, here: SegmentSet, kept: Box<dyn KeptSegments + Send>) {
        match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Ready(ready) => {
                let pull = Pull::new(now, &self.config, (*ready, here), kept);
                self.stage = Stage::Pulling(Box::new(pull));
                self.settle(now);
            }
            other => self.stage = other,
        }
    }

    /// Tells the sender that all is here.
    pub fn finish(&mut self, now: Instant) {
        if let Stage::Pulling(pull) = &mut self.stage {
            pull.finish(now);
        }
    }

    /// Returns since when nothing has come that was of use.
    pub fn heard_at(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Pulling(pull) => Some(pull.heard_at()),
            _ => None,
        }
    }

    /// Returns the segments that are needed yet, and whether any next ones are requested.
    pub fn progress(&self) -> Option<(u64, bool)> {
        match &self.stage {
            Stage::Pulling(pull) => Some((pull.needed(), pull.is_any_next())),
            _ => None,
        }
    }

    /// Returns what it counted.
    pub fn counters(&self) -> ReceiverCounters {
        match &self.stage {
            Stage::Pulling(pull) => *pull.counters(),
            _ => ReceiverCounters::default(),
        }
    }

    fn fetch_table(&mut self, now: Instant) {
        self.tries += 1;
        let mut fetcher = Box::new(Fetcher::new(FetcherConfig {
            trust: self.config.trust.clone(),
            wall_at_zero: self.config.wall_at_zero,
            seed: self.config.seed.wrapping_add(self.tries),
            max_size: MAX_TABLE_SIZE,
            max_attempts: 4,
            ..FetcherConfig::new(table_of(&self.config.name))
        }));
        fetcher.handle_timeout(now);
        self.stage = Stage::Table(fetcher);
    }

    /// Takes the reports of what fetches the table, or pulls segments.
    fn settle(&mut self, now: Instant) {
        match &mut self.stage {
            Stage::Table(fetcher) => {
                let events: Vec<_> = core::iter::from_fn(|| fetcher.poll_event()).collect();
                let signer = fetcher.known_signer();
                for event in events {
                    match event {
                        Event::Progress { .. } => {}
                        Event::Fetched(fetched) => {
                            let ready = self.read(&fetched.content, signer.clone());
                            self.on_table(ready);
                        }
                        Event::Failed(why) => self.on_failure(now, why),
                    }
                }
            }
            Stage::Pulling(pull) => {
                while let Some(event) = pull.poll_event() {
                    let is_end = matches!(event, ReceiverEvent::Failed(_));
                    self.events.push_back(event);
                    if is_end {
                        self.stage = Stage::Over;
                        return;
                    }
                }
            }
            Stage::Retry(_) | Stage::Ready(_) | Stage::Over => {}
        }
    }

    fn read(
        &self,
        table: &Bytes,
        signer: Option<crate::object::KnownSigner>,
    ) -> Result<Ready, Refused> {
        let foreign = Refused::Table(Failure::ForeignSigner);
        let signer = signer
            .filter(|it| it.may_sign(&self.config.name))
            .ok_or(foreign)?;
        let is_sealed = is_sealed(table);
        let contents = match &self.config.key {
            Some(_) if !is_sealed => return Err(Refused::NotSealed),
            Some(key) => Contents::decode(&key.open_table(table).ok_or(Refused::Sealed)?)?,
            None if is_sealed => return Err(Refused::Sealed),
            None => Contents::decode(table)?,
        };
        let flow = self
            .config
            .name
            .builder()
            .version(contents.version)
            .finish();
        Ok(Ready {
            contents,
            flow,
            signer,
        })
    }

    fn on_table(&mut self, ready: Result<Ready, Refused>) {
        match ready {
            Ok(ready) => {
                let contents = Box::new(ready.contents.clone());
                let event = ReceiverEvent::Contents(contents, ready.signer.signer.clone());
                self.events.push_back(event);
                self.stage = Stage::Ready(Box::new(ready));
            }
            Err(why) => {
                self.stage = Stage::Over;
                self.events.push_back(ReceiverEvent::Failed(why));
            }
        }
    }

    fn on_failure(&mut self, now: Instant, why: Failure) {
        match why {
            Failure::Unanswered | Failure::Refused(_) => {
                self.stage = Stage::Retry(now + RETRY);
                self.events.push_back(ReceiverEvent::Waiting(why));
            }
            why => self.on_table(Err(Refused::Table(why))),
        }
    }
}

impl Application for Receiver {
    type Event = ReceiverEvent;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        match &mut self.stage {
            Stage::Table(fetcher) => fetcher.handle_packet(now.monotonic, frame),
            Stage::Pulling(pull) => pull.handle_packet(now.monotonic, frame),
            Stage::Retry(_) | Stage::Ready(_) | Stage::Over => {}
        }
        self.settle(now.monotonic);
    }

    fn handle_timeout(&mut self, now: Now) {
        match &mut self.stage {
            Stage::Table(fetcher) => fetcher.handle_timeout(now.monotonic),
            Stage::Pulling(pull) => pull.handle_timeout(now.monotonic),
            Stage::Retry(at) if *at <= now.monotonic => self.fetch_table(now.monotonic),
            Stage::Retry(_) | Stage::Ready(_) | Stage::Over => {}
        }
        self.settle(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Table(fetcher) => fetcher.poll_timeout(),
            Stage::Pulling(pull) => pull.poll_timeout(),
            Stage::Retry(at) => Some(*at),
            Stage::Ready(_) | Stage::Over => None,
        }
    }

    fn poll_output(&mut self) -> Option<Output<ReceiverEvent>> {
        if let Some(event) = self.events.pop_front() {
            return Some(Output::Event(event));
        }
        let frame = match &mut self.stage {
            Stage::Table(fetcher) => fetcher.poll_output(),
            Stage::Pulling(pull) => pull.poll_output(),
            Stage::Retry(_) | Stage::Ready(_) | Stage::Over => None,
        };
        frame.map(Output::Send)
    }
}
