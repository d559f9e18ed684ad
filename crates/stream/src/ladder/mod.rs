//! Which rung of a stream to pull: the highest that is in time on the path as it is.
//!
//! ```text
//!            key sample due             lag grows              nothing helps
//!  Path ──▶ Ladder::pick ──▶ rung   Ladder::react ──▶ CatchUp(lower)  or  Blank
//!             ▲                          newest key of the lower rung and what follows it, from caches
//!             └── probe: what the next rung would add, before its key sample
//! ```
//!
//! Plain values: they read the path, and answer which rung to pull. Who pulls it is not their business.

pub mod challenge;
mod config;
mod down;
mod probe;
#[cfg(test)]
mod tests;
mod up;

use core::time::Duration;

use namecast_units::{Bitrate, Instant};
use smart_default::SmartDefault;

use crate::path::{Path, Weight};

pub use challenge::Challenge;
pub use config::{LadderConfig, LadderProfile};
pub use probe::Probe;

/// Constants of [`Ladder`]. What they were tuned on is in `docs/decisions`.
#[derive(Clone, Debug, PartialEq, SmartDefault)]
pub struct Config {
    /// Quantile of the capacity that a higher rung must fit.
    #[default(0.35)]
    pub up_quantile: f64,
    /// How much more than it needs a higher rung must find.
    #[default(1.065)]
    pub up_margin: f64,
    /// Share of the capacity beyond which a rung is left.
    #[default(0.97)]
    pub down_load: f64,
    /// A rung that had to be left is not tried again for four fifths of that, and for 1.6 times as long after each further failure.
    #[default(Duration::from_secs(8))]
    pub first_wait: Duration,
    /// What that grows to with each failure.
    #[default(Duration::from_secs(60))]
    pub max_wait: Duration,
    /// Most changes of rung upwards at a time.
    #[default(2)]
    pub max_step: usize,
    /// Whether a lower rung's group may be fetched from its key sample on in mid-group. What cannot take frames twice, a
    /// recording, changes at key samples only.
    #[default(true)]
    pub catches_up: bool,
}

/// One rung.
#[derive(Clone, Copy, Debug)]
struct Rung {
    /// What it takes on the wire, sound included, in bits per second.
    need: f64,
    barred_until: Instant,
    /// For how long it is barred next.
    wait: Duration,
}

/// What a ladder goes by.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The path.
    pub path: &'a Path,
    /// Bits that are published, and not requested for want of room.
    pub backlog: f64,
    /// Pictures of others over the same uplink.
    pub others: &'a [Neighbour],
    /// Weight of the own pictures beside them.
    pub weight: Weight,
    /// Rate of all sound on the wire where there are others: their needs and those of the rungs are without it then.
    pub sound: Bitrate,
    /// By how much the path's base delay exceeds what it was within the last minute.
    pub base_growth: Duration,
    /// Time until the next key sample is published.
    pub until_key: Duration,
    /// Time since the last one was.
    pub since_key: Duration,
}

/// Pictures that another watcher pulls over the same uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Weight beside others.
    pub weight: Weight,
    /// On the wire.
    pub need: Bitrate,
    /// The same at the next higher rung, if there is one.
    pub next: Option<Bitrate>,
}

/// What to do in mid-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Fetch this rung from its newest key sample on, and nothing more of the current one.
    CatchUp(usize),
    /// Fetch no video until the next key sample.
    Blank,
}

/// Chooses a rung by what is late, and by what the path carries.
#[derive(Clone, Debug)]
pub struct Ladder {
    config: Config,
    /// By bitrate.
    rungs: Vec<Rung>,
    current: usize,
    is_blank: bool,
    /// Groups in a row whose rest was not fetched.
    blank_groups: u32,
    /// The last reaction, and the rung before it.
    reacted_at: Option<Instant>,
    /// Times that this group was gone on with after nothing had been fetched.
    resumed: u32,
    rung_before: usize,
    prober: probe::Prober,
}

/// How much more than it needs a rung must find free, unless it was tried.
const FREE_MARGIN: f64 = 1.1;
/// How much larger than others a key sample is taken to be.
const KEY_FACTOR: f64 = 4.5;

impl Ladder {
    /// A ladder of rungs that take so much on the wire, sound included, lowest first, on number `current`.
    ///
    /// Returns `None` if there is no choice.
    pub fn new(now: Instant, config: Config, needs: &[Bitrate], current: usize) -> Option<Self> {
        let wait = config.first_wait;
        let is_ladder = needs.len() > 1 && needs.is_sorted() && current < needs.len();
        let rung = |need: &Bitrate| Rung {
            need: need.as_bps() as f64,
            barred_until: Instant::ZERO,
            wait,
        };
        is_ladder.then(|| Self {
            rungs: needs.iter().map(rung).collect(),
            current,
            is_blank: false,
            blank_groups: 0,
            reacted_at: None,
            resumed: 0,
            rung_before: 0,
            prober: probe::Prober::new(now),
            config,
        })
    }

    /// Returns the rung that is requested.
    pub const fn current(&self) -> usize {
        self.current
    }

    /// Returns whether nothing is requested until the next key sample.
    pub const fn is_blank(&self) -> bool {
        self.is_blank
    }

    /// Returns what the current rung takes on the wire.
    pub fn need(&self) -> Bitrate {
        Bitrate::bps(self.rungs[self.current].need as u64)
    }

    /// Takes another rung for the current one: somebody else has decided.
    pub fn set_current(&mut self, rung: usize) {
        self.current = rung.min(self.rungs.len() - 1);
        self.is_blank = false;
        self.blank_groups = 0;
    }

    /// Returns the rate of the next higher rung on the wire.
    pub fn next_need(&self) -> Option<Bitrate> {
        let next = self.rungs.get(self.current + 1)?;
        Some(Bitrate::bps(next.need as u64))
    }

    /// Returns the part of `capacity` for rung number `rung`, in bits per second: the rest that others leave, and a part by its weight
    /// at least. The lower goes first: others leave less if their next rung is no higher than this one, each by its weight.
    fn room(&self, capacity: f64, rung: usize, view: &View<'_>) -> f64 {
        let parts = |weight: Weight| f64::from(weight.parts());
        let own = self.rungs[rung].need / parts(view.weight);
        let claim = |other: &Neighbour| {
            let next = other.next.map(|next| next.as_bps() as f64);
            let next = next.filter(|next| *next / parts(other.weight) <= own);
            next.map_or(other.need.as_bps() as f64, |next| next * FREE_MARGIN)
        };
        let others: f64 = view.others.iter().map(claim).sum();
        let all: f64 = view.others.iter().map(|other| parts(other.weight)).sum();
        let capacity = capacity - view.sound.as_bps() as f64;
        let share = capacity * parts(view.weight) / (all + parts(view.weight));
        (capacity - others).max(share)
    }

    fn is_recent(&self, now: Instant, span: Duration) -> bool {
        self.reacted_at.is_some_and(|at| now.since(at) < span)
    }

    /// Returns the time behind the live edge, in seconds: what queues on the path, and what is published and was not requested.
    fn lag(&self, view: &View<'_>) -> f64 {
        let path = view.path;
        let fast = path.fast_capacity();
        path.queue_now().max(path.queued() / fast) + view.backlog / fast
    }

    /// Bits of the group that has begun, at rung number `rung`, from its key sample until now.
    fn group_bits(&self, rung: usize, view: &View<'_>) -> f64 {
        let (since, until) = (view.since_key.as_secs_f64(), view.until_key.as_secs_f64());
        let group = (since + until).max(1e-3);
        // A group of 60 in which the first counts for 4.5.
        let frames = 60.0;
        let share = (KEY_FACTOR + frames * since / group) / (KEY_FACTOR + frames);
        self.rungs[rung].need * group * share.min(1.0)
    }
}
