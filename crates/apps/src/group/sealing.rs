//! Seals our publications, and opens those of others.
//!
//! ```text
//!  gate ── readers ──▶ Sealer ──▶ publications, sealed          the state is published anew whenever a reader comes
//!                        └── key boxes ──▶ BoxServer
//!
//!  publication ── sealed? ──▶ Opener ──▶ opened
//!                               │ box missing         ▲
//!                               ▼                     │
//!                              held, box fetched ── box
//! ```

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, Name, Signer};
use namecast_stream::producer::Arrival;
use namecast_stream::seal::Seal;
use namecast_units::{Duration, Instant};

use super::member::{HISTORY, Wanted};
use super::publication::Publication;
use crate::face;
use crate::sealed::{
    BoxEntry, BoxServer, BoxServerConfig, Opener, OpenerConfig, Requested, Sealer, SealerConfig,
    SealerEvent, Unopened,
};
use crate::trust::ExchangeSecret;

/// Pause between two looks who may read, as certificates end.
const READERS_PAUSE: Duration = Duration::from_secs(1);

/// Keys of a member whose publications members alone can open.
#[derive(Clone)]
pub struct Sealing {
    /// Seed of the keys of its publications. It must be drawn anew for each [`Group`](super::Group), from a source that nobody can foresee.
    pub seed: [u8; 32],
    /// Secrets by which the member opens what others publish.
    pub own: Vec<ExchangeSecret>,
}

impl core::fmt::Debug for Sealing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Sealing")
    }
}

/// Seals our publications.
pub(super) struct OwnSealing {
    sealer: Sealer,
    boxes: BoxServer,
    readers: BTreeSet<[u8; 32]>,
    /// When to look again who may read.
    readers_at: Instant,
}

impl OwnSealing {
    /// Seals publications under `prefix`.
    pub(super) fn new(prefix: Name, seed: [u8; 32]) -> Self {
        let sealer = Sealer::new(SealerConfig::new(prefix.clone()), seed);
        let boxes = BoxServer::new(prefix, sealer.start(), BoxServerConfig::default());
        Self {
            sealer,
            boxes,
            readers: BTreeSet::new(),
            readers_at: Instant::ZERO,
        }
    }

    /// Looks who may read at once, as the gate is another one.
    pub(super) const fn renew_readers(&mut self) {
        self.readers_at = Instant::ZERO;
    }

    /// Asks `readers` who may read, if it is time to. Returns whether somebody new may.
    pub(super) fn take_readers(
        &mut self,
        now: Instant,
        readers: impl FnOnce() -> BTreeSet<[u8; 32]>,
    ) -> bool {
        if self.readers_at > now {
            return false;
        }
        self.readers_at = now + READERS_PAUSE;
        let readers = readers();
        let has_more = readers.difference(&self.readers).next().is_some();
        self.sealer.set_readers(now, &readers);
        self.readers = readers;
        has_more
    }

    /// Does what is due. Returns answers to Interests that waited for a box.
    pub(super) fn settle(&mut self, now: Instant, signer: &dyn Signer) -> Vec<Bytes> {
        self.sealer.handle_timeout(now);
        self.boxes.handle_timeout(now);
        let mut frames = Vec::new();
        while let Some(event) = self.sealer.poll_event() {
            if let SealerEvent::Box(key_box) = event {
                let replies = self.boxes.publish(&key_box, |data| data.sign(signer));
                let answers = replies.into_iter();
                frames.extend(answers.map(|it| face::answer(it.data.wire().clone(), it.pit_token)));
            }
        }
        frames
    }

    /// Returns when to call [`settle`](Self::settle) and [`take_readers`](Self::take_readers) next.
    pub(super) fn poll_timeout(&self) -> Instant {
        let due = [self.sealer.poll_timeout(), self.boxes.poll_timeout()];
        let due = due.into_iter().flatten().min();
        due.map_or(self.readers_at, |due| due.min(self.readers_at))
    }

    /// Returns publication `number` of `sequence`, sealed.
    pub(super) fn seal(
        &mut self,
        now: Instant,
        (sequence, number): (&Name, u64),
        publication: &Publication,
    ) -> Option<Bytes> {
        let of = (number, &publication.encode()[..]);
        let sealed = self.sealer.seal(now, sequence, of).ok()?;
        Some(Publication::seal(&sealed.seal, &sealed.payload))
    }

    /// Takes an Interest. Returns what answers it at once, if it is one for a box.
    pub(super) fn handle_interest(
        &mut self,
        now: Instant,
        interest: &Interest,
        pit_token: &Option<Bytes>,
    ) -> Option<Option<Bytes>> {
        let arrival = Arrival {
            pit_token: pit_token.clone(),
            face: None,
        };
        let requested = self.boxes.handle_interest(now, interest, arrival)?;
        let pit_token = pit_token.clone();
        Some(match requested {
            Requested::Answer(data) => Some(face::answer(data.wire().clone(), pit_token)),
            Requested::Refused => Some(face::refusal(interest, pit_token, NackReason::None)),
            Requested::Held | Requested::Dropped => None,
        })
    }
}

/// A packet of a key box that is fetched.
#[derive(Debug)]
struct Missing {
    seal: Seal,
    segment: u64,
    wanted: Wanted,
}

/// Opens the publications of one member.
#[derive(Debug)]
pub(super) struct Unsealing {
    prefix: Name,
    opener: Opener,
    /// Sealed publications that wait for a box, by start and number.
    held: BTreeMap<(u64, u64), (Seal, Bytes)>,
    missing: Option<Missing>,
}

impl Unsealing {
    /// Opens publications under `prefix` with the secrets `own`.
    pub(super) fn new(prefix: Name, own: Vec<ExchangeSecret>) -> Self {
        Self {
            opener: Opener::new(prefix.clone(), own, OpenerConfig::default()),
            prefix,
            held: BTreeMap::new(),
            missing: None,
        }
    }

    /// Opens a publication. Those whose box is missing are held.
    pub(super) fn open(
        &mut self,
        place: (u64, u64),
        (seal, sealed): (Seal, Bytes),
    ) -> Result<Bytes, Unopened> {
        let sequence = self.prefix.builder().timestamp(place.0).finish();
        let opened = self.opener.open(&sequence, (place.1, &seal), &sealed);
        if matches!(opened, Err(Unopened::MissingBox(_))) {
            self.held.insert(place, (seal, sealed));
            if self.held.len() as u64 > HISTORY {
                self.held.pop_first();
            }
            self.missing.get_or_insert_with(|| Missing {
                seal,
                segment: 0,
                wanted: Wanted::default(),
            });
        }
        opened
    }

    /// Takes a sign of life: a box that could not be fetched meanwhile can be fetched now.
    pub(super) const fn on_alive(&mut self, now: Instant) {
        if let Some(missing) = &mut self.missing {
            missing.wanted.ask_at = now;
        }
    }

    /// Returns whether this packet of a box is waited for.
    pub(super) fn awaits(&self, (seal, segment): (Seal, u64)) -> bool {
        let missing = self.missing.as_ref();
        missing.is_some_and(|it| it.seal == seal && it.segment == segment && it.wanted.was_asked())
    }

    pub(super) const fn on_forged(&mut self) {
        if let Some(missing) = &mut self.missing {
            missing.wanted.was_forged = true;
        }
    }

    /// Takes the packet of a box that was waited for, the last one of which has number `last`. Returns the publications that waited, the oldest first, if
    /// they can be tried again.
    pub(super) fn on_box(
        &mut self,
        entries: &[BoxEntry],
        last: u64,
    ) -> Vec<((u64, u64), (Seal, Bytes))> {
        let Some(missing) = &mut self.missing else {
            return Vec::new();
        };
        let place = [missing.segment, last.saturating_add(1)];
        let place = place.map(|it| usize::try_from(it).unwrap_or(usize::MAX));
        if !self.opener.take(&missing.seal, entries, place.into()) {
            missing.segment += 1;
            missing.wanted = Wanted::default();
            return Vec::new();
        }
        self.missing = None;
        core::mem::take(&mut self.held).into_iter().collect()
    }

    /// Returns the packet of a box to request now, and whether caches are to be passed by.
    pub(super) fn poll_request(&mut self, now: Instant) -> Option<(Seal, u64, bool)> {
        let missing = self.missing.as_mut()?;
        let is_due = missing.wanted.ask_at <= now;
        is_due.then(|| {
            missing.wanted.ask(now);
            (missing.seal, missing.segment, missing.wanted.was_forged)
        })
    }

    /// Returns when a box is to be requested next, if ever.
    pub(super) fn ask_at(&self) -> Option<Instant> {
        self.missing.as_ref().map(|it| it.wanted.ask_at)
    }
}
