//! Our own publications, and the answer that we are here.

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_packet::tlv::Writer;
use namecast_packet::{Data, Interest, Name, Signer};
use namecast_stream::names::METADATA;
use namecast_units::{Duration, Instant};

use super::member::HISTORY;
use super::pace::Pace;
use super::publication::{Publication, Status};
use super::sealing::OwnSealing;
use crate::Now;
use crate::trust::MAX_TEXT;

/// Freshness of the answer that we are here.
const ANSWER_FRESHNESS: Duration = Duration::from_millis(500);
/// Publications a second: others fetch no more.
pub(super) const MAX_PUBLICATIONS: usize = 4;

/// Publications of this member.
pub(super) struct Own {
    /// Prefix of all names below.
    prefix: Name,
    status: Status,
    pub(super) signer: Box<dyn Signer + Send>,
    /// What seals the publications, if members alone may read.
    pub(super) sealing: Option<OwnSealing>,
    /// Our start, in seconds since 1970, once we have published.
    boot: Option<u64>,
    /// Number of the newest publication, or a larger one that others claim.
    number: u64,
    published: BTreeMap<u64, Data>,
    /// Whether the state is to be published.
    has_news: bool,
    has_left: bool,
    /// The last answer that we are here: when it was made, and of which publication.
    answer: Option<(Instant, u64, Data)>,
    pace: Pace,
}

impl Own {
    /// Publishes under `prefix`; sealed, if there is a seed.
    pub(super) fn new(
        (prefix, status): (Name, Status),
        signer: Box<dyn Signer + Send>,
        seed: Option<[u8; 32]>,
    ) -> Self {
        let mut own = Self {
            sealing: seed.map(|seed| OwnSealing::new(prefix.clone(), seed)),
            prefix,
            status: Status::default(),
            signer,
            boot: None,
            number: 0,
            published: BTreeMap::new(),
            has_news: true,
            has_left: false,
            answer: None,
            pace: Pace::new(MAX_PUBLICATIONS),
        };
        own.set_status(status);
        own
    }

    pub(super) const fn prefix(&self) -> &Name {
        &self.prefix
    }

    pub(super) const fn has_left(&self) -> bool {
        self.has_left
    }

    pub(super) fn leave(&mut self) {
        self.has_left = true;
    }

    pub(super) const fn status(&self) -> &Status {
        &self.status
    }

    /// Shows another state. A long label is cut at a character.
    pub(super) fn set_status(&mut self, mut status: Status) {
        let label = &mut status.label;
        label.truncate(label.floor_char_boundary(MAX_TEXT));
        self.has_news |= status != self.status;
        self.status = status;
    }

    /// Publishes the state anew, for those who can read it now and could not before.
    pub(super) const fn show_again(&mut self) {
        self.has_news = true;
    }

    /// Returns whether a publication is allowed now, and counts it if so.
    pub(super) fn take_turn(&mut self, now: Instant) -> bool {
        self.pace.take(now)
    }

    /// Returns whether the state is to be published now, and counts it if so.
    pub(super) fn take_news(&mut self, now: Instant) -> bool {
        self.has_news && !self.has_left && self.pace.take(now)
    }

    /// Returns when [`take_news`](Self::take_news) returns true next, if ever.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let has_news = self.has_news && !self.has_left;
        has_news.then(|| self.pace.earliest(Instant::ZERO))
    }

    /// Publishes the state, and a text with it. Returns start and number.
    pub(super) fn publish(&mut self, now: Now, text: Option<String>) -> (u64, u64) {
        let boot = *self.boot.get_or_insert(now.wall.as_micros() / 1_000_000);
        self.has_news = false;
        self.number = self.number.saturating_add(1);
        let publication = Publication {
            status: self.status.clone(),
            has_left: self.has_left,
            text,
        };
        let number = self.number;
        let sequence = self.prefix.builder().timestamp(boot).finish();
        let content = match &mut self.sealing {
            None => Some(publication.encode()),
            Some(sealing) => sealing.seal(now.monotonic, (&sequence, number), &publication),
        };
        // Numbers grow, so each is sealed.
        let Some(content) = content else {
            return (boot, number);
        };
        let data = Data::builder(self.name(boot, number)).content(content);
        self.published.insert(number, data.sign(&self.signer));
        if self.published.len() as u64 > HISTORY {
            self.published.pop_first();
        }
        (boot, self.number)
    }

    /// Takes what others know of us. After another start in the same second, or somebody's claim, our numbers follow theirs.
    pub(super) fn on_claim(&mut self, boot: u64, number: u64) {
        if self.boot == Some(boot) {
            self.number = self.number.max(number);
        }
    }

    fn name(&self, boot: u64, number: u64) -> Name {
        let prefix = self.prefix.builder();
        prefix.timestamp(boot).sequence(number).finish()
    }

    /// Returns what answers an Interest.
    pub(super) fn data(&mut self, now: Now, interest: &Interest) -> Option<Data> {
        let metadata = self.prefix.builder().keyword(METADATA).finish();
        if *interest.name() == metadata {
            return self.answer(now, metadata).filter(|_| !self.has_left);
        }
        let mut published = self.published.values();
        published.find(|it| interest.matches(it)).cloned()
    }

    /// Returns the answer that we are here, which serves all who ask within half a second. Its versions grow, whatever the clock does.
    fn answer(&mut self, now: Now, metadata: Name) -> Option<Data> {
        let newest = *self.published.last_key_value()?.0;
        let (mut version, boot) = (now.wall.as_micros(), self.boot?);
        if let Some((made_at, number, data)) = &self.answer {
            if *number == newest && now.monotonic < *made_at + ANSWER_FRESHNESS {
                return Some(data.clone());
            }
            let last = data.name().last().and_then(|it| it.number());
            version = version.max(last.unwrap_or(0).saturating_add(1));
        }
        let data = Data::builder(metadata.builder().version(version).finish())
            .freshness(ANSWER_FRESHNESS)
            .content(encoded(&self.name(boot, newest)))
            .sign(&self.signer);
        self.answer = Some((now.monotonic, newest, data.clone()));
        Some(data)
    }
}

fn encoded(name: &Name) -> Bytes {
    let mut writer = Writer::default();
    name.encode(&mut writer);
    writer.finish()
}
