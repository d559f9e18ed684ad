//! Finds the newest version of an object by its name, however its producer numbers versions and segments.
//!
//! ```text
//!  /name/32=metadata, prefix, fresh ──▶ the name with the version ───────────────▶ ┐
//!  /name, prefix, fresh ──────────────▶ a segment, if metadata does not answer ──▶ ├─ Found
//!  /name, prefix, from half the time ─▶ the same from a repository: not fresh ───▶ ┘
//! ```
//!
//! Data below the name that is no segment of the object, such as its signer's key, is passed over.

use core::time::Duration;

use namecast_packet::lp::NackReason;
use namecast_packet::tlv::{self, Reader};
use namecast_packet::{Component, ContentType, Data, Interest, InterestBuilder, Name};
use namecast_stream::names::METADATA;
use namecast_units::Instant;

/// First and longest wait before an Interest is repeated.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Least wait for metadata once a segment has come. It is waited for as long again as the segment took.
const METADATA_WAIT: Duration = Duration::from_millis(50);

/// How versions and segments are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// By the type of the component: NDN Naming Conventions, revision 3.
    Typed,
    /// By the first octet of a generic component: revision 1 of the same.
    Markers,
}

impl Numbering {
    const SEGMENT_MARKER: u8 = 0x00;
    const VERSION_MARKER: u8 = 0xfd;

    /// Returns the number of a segment, and how it is written.
    fn segment_of(component: &Component<'_>) -> Option<(u64, Self)> {
        Self::number_of(component, Component::SEGMENT, Self::SEGMENT_MARKER)
    }

    fn version_of(component: &Component<'_>) -> Option<(u64, Self)> {
        Self::number_of(component, Component::VERSION, Self::VERSION_MARKER)
    }

    fn number_of(component: &Component<'_>, kind: u16, marker: u8) -> Option<(u64, Self)> {
        if let Some(number) = component.number_of(kind) {
            return Some((number, Self::Typed));
        }
        let number = match component.value {
            [first, number @ ..] if component.kind == Component::GENERIC && *first == marker => {
                tlv::read_number(number)?
            }
            _ => return None,
        };
        Some((number, Self::Markers))
    }

    /// Returns the name of segment `number` of `object`.
    pub fn segment(self, object: &Name, number: u64) -> Name {
        match self {
            Self::Typed => object.builder().segment(number).finish(),
            Self::Markers => {
                let typed = Name::root().builder().segment(number).finish();
                let number = typed.last().map_or(&[][..], |it| it.value);
                object.child(Component {
                    kind: Component::GENERIC,
                    value: &[&[Self::SEGMENT_MARKER], number].concat(),
                })
            }
        }
    }

    /// Returns the number of the segment of `object` that `name` is of.
    pub fn number(object: &Name, name: &Name) -> Option<u64> {
        let (number, _) = Self::segment_of(&name.last()?)?;
        (name.parent() == *object).then_some(number)
    }
}

/// Object under a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// An object in segments, whose names begin so.
    Segments {
        /// Name of the object, with the version if it has any.
        name: Name,
        /// How segments are numbered.
        numbering: Numbering,
    },
    /// An object of one packet without a segment's number.
    Packet(Data),
}

impl Found {
    /// Returns the version and the object that `data` belongs to; `None`: another name than `name`'s.
    fn of(name: &Name, data: &Data) -> Option<(Option<u64>, Self)> {
        if !name.is_prefix_of(data.name()) {
            return None;
        }
        let rest: Vec<_> = data.name().components().skip(name.len()).collect();
        let packet = || Self::Packet(data.clone());
        let segments = |(_, numbering)| Self::Segments {
            name: data.name().parent().detached(),
            numbering,
        };
        match &rest[..] {
            [] => Some((None, packet())),
            [last] => match Numbering::version_of(last) {
                Some((version, _)) => Some((Some(version), packet())),
                None => Some((None, segments(Numbering::segment_of(last)?))),
            },
            [version, segment] => {
                let (version, _) = Numbering::version_of(version)?;
                Some((Some(version), segments(Numbering::segment_of(segment)?)))
            }
            _ => None,
        }
    }

    /// Returns the object whose name metadata of `name` tells.
    fn told(name: &Name, metadata: &Data) -> Option<Self> {
        let content = metadata.content()?;
        let element = Reader::new(&content).element("Name").ok().flatten()?;
        let told = Name::from_element(&content, &element).ok()?;
        let (_, numbering) = Numbering::version_of(&told.last()?)?;
        let is_ours = element.element_type == tlv::NAME && told.parent() == *name;
        is_ours.then(|| Self::Segments {
            name: told.detached(),
            numbering,
        })
    }
}

/// Why nothing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// No answer came in time, or none that is of the object.
    #[error("no answer")]
    Silence,
    /// All Interests came back.
    #[error("refused: {0:?}")]
    Refused(NackReason),
    /// The producer says that there is no such object.
    #[error("the producer says that there is no such thing")]
    Denied,
}

/// A question that is repeated until it is answered.
#[derive(Debug)]
struct Question {
    name: Name,
    must_be_fresh: bool,
    ask_at: Instant,
    wait: Duration,
    refused: Option<NackReason>,
}

impl Question {
    fn new(name: Name, must_be_fresh: bool, ask_at: Instant) -> Self {
        Self {
            name,
            must_be_fresh,
            ask_at,
            wait: FIRST_WAIT,
            refused: None,
        }
    }
}

/// Finds an object. Give it what arrives and the time, and send what [`poll_interest`](Self::poll_interest) returns, until there is an
/// [`outcome`](Self::outcome). Early and repeated calls are harmless.
#[derive(Debug)]
pub struct Finder {
    name: Name,
    started_at: Instant,
    deadline: Instant,
    /// For metadata, for fresh Data, and for any Data of the object.
    questions: [Question; 3],
    /// Newest version received so far, and when it becomes the outcome.
    candidate: Option<(Option<u64>, Found)>,
    decide_at: Instant,
    is_denied: bool,
    outcome: Option<Result<Found, NotFound>>,
}

/// Place of metadata in [`Finder::questions`].
const TELLING: usize = 0;

impl Finder {
    /// Looks for the object `name`, without a version, for as long as `timeout`.
    pub fn new(now: Instant, name: Name, timeout: Duration) -> Self {
        let metadata = name.builder().keyword(METADATA).finish();
        Self {
            started_at: now,
            deadline: now + timeout,
            questions: [
                Question::new(metadata, true, now),
                Question::new(name.clone(), true, now),
                Question::new(name.clone(), false, now + timeout / 2),
            ],
            name,
            candidate: None,
            decide_at: now + timeout,
            is_denied: false,
            outcome: None,
        }
    }

    /// Takes Data that arrived.
    pub fn handle_data(&mut self, now: Instant, data: &Data) {
        if self.outcome.is_some() {
            return;
        }
        let is_told = self.questions[TELLING].name.is_prefix_of(data.name());
        if is_told {
            if let Some(found) = Found::told(&self.name, data) {
                self.outcome = Some(Ok(found));
            }
            return;
        }
        let Some((version, found)) = Found::of(&self.name, data) else {
            return;
        };
        if data.content_type() == ContentType::Nack {
            self.is_denied = true;
            return;
        }
        if self
            .candidate
            .as_ref()
            .is_none_or(|(known, _)| *known < version)
        {
            self.candidate = Some((version, found));
            let waited = now.since(self.started_at).max(METADATA_WAIT);
            self.decide_at = self.decide_at.min(now + waited);
        }
        self.settle(now);
    }

    /// Takes an Interest that came back.
    pub fn handle_nack(&mut self, now: Instant, interest: &Interest, reason: NackReason) {
        let mut questions = self.questions.iter_mut();
        let asked = questions
            .find(|it| it.name == *interest.name() && it.must_be_fresh == interest.must_be_fresh());
        if let Some(question) = asked {
            // A node without a route may find one, and a queue may have room again.
            question.refused = Some(reason);
        }
        self.settle(now);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.settle(now);
    }

    fn settle(&mut self, now: Instant) {
        if self.outcome.is_some() {
            return;
        }
        let is_refused = |question: &Question| question.refused == Some(NackReason::None);
        let is_time = now >= self.decide_at.min(self.deadline);
        let found = self
            .candidate
            .take_if(|_| is_time || is_refused(&self.questions[TELLING]));
        if let Some((_, found)) = found {
            self.outcome = Some(Ok(found));
        } else if now >= self.deadline || self.are_all_refused() {
            self.outcome = Some(Err(self.reason()));
        }
    }

    /// Whether no question that has been asked may still be answered.
    fn are_all_refused(&self) -> bool {
        let asked = &self.questions[..2];
        let reasons = asked.iter().map(|it| it.refused);
        let is_final = |it| matches!(it, Some(NackReason::None | NackReason::NoRoute));
        reasons.clone().all(is_final)
    }

    fn reason(&self) -> NotFound {
        let reasons = self.questions.iter().filter_map(|it| it.refused);
        match reasons.last() {
            _ if self.is_denied => NotFound::Denied,
            Some(reason) => NotFound::Refused(reason),
            None => NotFound::Silence,
        }
    }

    /// Returns the next Interest to send, but for its Nonce, until `None`.
    pub fn poll_interest(&mut self, now: Instant) -> Option<InterestBuilder> {
        let left = self.deadline.since(now);
        if self.outcome.is_some() || left.is_zero() {
            return None;
        }
        let question = self.questions.iter_mut().find(|it| it.ask_at <= now)?;
        question.ask_at = now + question.wait;
        question.wait = MAX_WAIT.min(question.wait * 2);
        let interest = Interest::builder(question.name.clone()).can_be_prefix();
        let interest = match question.must_be_fresh {
            true => interest.must_be_fresh(),
            false => interest,
        };
        Some(interest.lifetime(left))
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) and [`poll_interest`](Self::poll_interest) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.outcome.is_some() {
            return None;
        }
        let asks = self.questions.iter().map(|it| it.ask_at);
        asks.chain([self.decide_at, self.deadline]).min()
    }

    /// Returns the result, once it is known.
    pub const fn outcome(&self) -> Option<&Result<Found, NotFound>> {
        self.outcome.as_ref()
    }
}

#[cfg(test)]
#[path = "finder_tests.rs"]
mod tests;
