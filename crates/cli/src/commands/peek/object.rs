//! Segments of the newest version of an object, as `namecast put`, ndnd, NDNts, python-ndn and ndn-tools serve them.
//!
//! ```text
//!  Finder: name, numbering ─▶ first segment, its signer ─▶ the others, as fast as the path allows ─▶ in order, verified ─▶ output
//! ```

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use namecast_apps::object::{Finder, Found, NotFound, Numbering};
use namecast_net::{Clock, random};
use namecast_packet::{Component, Data, Interest, Name};
use namecast_stream::path::{NumberedConfig, NumberedPaths, NumberedRequest, Received};
use namecast_stream::rate::RateControl;
use namecast_units::{ByteSize, Duration, Instant};

use super::{Peek, take};
use crate::asking::{Answer, Arrived, Asker, Question, nonce};

/// Segments that are under way at a time.
const MAX_IN_FLIGHT: usize = 1_024;
/// Time's worth of the allowed rate that may leave at once.
const BURST: Duration = Duration::from_millis(5);

/// An object whose first packet came.
pub(super) struct Object {
    /// Name of what segments belong to; of one packet, its own.
    name: Name,
    /// `None`: it has no segments.
    numbering: Option<Numbering>,
    pub(super) first: Data,
}

impl From<Data> for Object {
    /// An object of one packet.
    fn from(first: Data) -> Self {
        Self {
            name: first.name().clone(),
            numbering: None,
            first,
        }
    }
}

/// Finds an object, and fetches its first packet.
///
/// # Errors
/// If nobody has it.
pub(super) async fn find(
    asker: &mut Asker,
    clock: Clock,
    arguments: &Peek,
) -> anyhow::Result<Object> {
    let (name, timeout) = (&arguments.name, arguments.lifetime);
    let has_version = |name: &Name| {
        let last = name.last();
        last.is_some_and(|last| last.number_of(Component::VERSION).is_some())
    };
    let found = match has_version(name) {
        true => Found::Segments {
            name: name.clone(),
            numbering: Numbering::Typed,
        },
        false => look(asker, clock, arguments).await?,
    };
    match found {
        Found::Packet(first) => Ok(take(name, Answer::Data(first))?.into()),
        Found::Segments { name, numbering } => {
            let segment = numbering.segment(&name, 0);
            let question = Question::exact(segment.clone(), timeout);
            let first = take(&segment, asker.ask(&question).await?)?;
            Ok(Object {
                name,
                numbering: Some(numbering),
                first,
            })
        }
    }
}

/// Finds the object under the name.
async fn look(asker: &mut Asker, clock: Clock, arguments: &Peek) -> anyhow::Result<Found> {
    let name = &arguments.name;
    let mut finder = Finder::new(clock.now(), name.clone(), arguments.lifetime);
    loop {
        if let Some(outcome) = finder.outcome() {
            return outcome.clone().map_err(|why| explain(name, why));
        }
        while let Some(interest) = finder.poll_interest(clock.now()) {
            asker.send(&interest.build(nonce())).await?;
        }
        let due = finder.poll_timeout();
        let pause = due.map_or(Duration::ZERO, |due| due.since(clock.now()));
        match tokio::time::timeout(pause, asker.receive()).await {
            Ok(Ok(Arrived::Data(data))) => finder.handle_data(clock.now(), &data),
            Ok(Ok(Arrived::Nack(interest, reason))) => {
                finder.handle_nack(clock.now(), &interest, reason);
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => finder.handle_timeout(clock.now()),
        }
    }
}

fn explain(name: &Name, why: NotFound) -> anyhow::Error {
    match why {
        NotFound::Denied => {
            anyhow::anyhow!("the producer of {name} says that there is no such thing")
        }
        NotFound::Refused(reason) => super::refusal(name, reason),
        NotFound::Silence => anyhow::anyhow!(
            "no object is found under {name}: check the name, and that its producer runs"
        ),
    }
}

impl Object {
    /// Fetches the packets after the first, and hands all over in order.
    ///
    /// # Errors
    /// If they stop coming, or what `take` returns.
    pub(super) async fn fetch(
        self,
        asker: &mut Asker,
        (clock, timeout): (Clock, Duration),
        mut take: impl FnMut(&Data, Option<u64>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let last = last_of(&self.first);
        take(&self.first, last)?;
        match self.numbering {
            Some(numbering) if last != Some(0) => {
                let size = self
                    .first
                    .content()
                    .map_or(0, |content| content.len() as u64);
                let segments = Segments::new(self.name, numbering, last, size);
                segments.fetch(asker, (clock, timeout), take).await
            }
            _ => Ok(()),
        }
    }
}

/// Returns the number of the last segment, where a segment tells it.
fn last_of(segment: &Data) -> Option<u64> {
    let last = segment.final_block()?;
    Numbering::number(&last.parent(), last)
}

/// The segments after the first.
struct Segments {
    object: Name,
    numbering: Numbering,
    /// Some producers tell it with the last segment only.
    last: Option<u64>,
    requester: NumberedPaths,
    /// Number of the next to hand over, and those that came before it.
    next: u64,
    came: BTreeMap<u64, Data>,
}

impl Segments {
    fn new(object: Name, numbering: Numbering, last: Option<u64>, size: u64) -> Self {
        let config = NumberedConfig {
            first: 1,
            count: last,
            control: RateControl::Cubic(Default::default()),
            retransmit: true,
            max_in_flight: MAX_IN_FLIGHT,
            burst: BURST,
            expected_size: ByteSize::bytes(size.max(1)),
            seed: u64::from_le_bytes(random()),
            ..NumberedConfig::default()
        };
        Self {
            object,
            numbering,
            last,
            requester: NumberedPaths::new(config),
            next: 1,
            came: BTreeMap::new(),
        }
    }

    /// Fetches them, as fast as the path allows.
    async fn fetch(
        mut self,
        asker: &mut Asker,
        (clock, timeout): (Clock, Duration),
        mut take: impl FnMut(&Data, Option<u64>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut heard_at = clock.now();
        self.requester.start(heard_at);
        while self.last.is_none_or(|last| self.next <= last) {
            while let Some(NumberedRequest { number, nonce, .. }) = self.requester.poll_request() {
                let name = self.numbering.segment(&self.object, number);
                asker.send(&Interest::builder(name).build(nonce)).await?;
            }
            let due = self.requester.poll_timeout();
            let pause = due.map_or(timeout, |due| due.since(clock.now()));
            let arrived = tokio::time::timeout(pause.min(timeout), asker.receive()).await;
            let now = clock.now();
            match arrived {
                Ok(Ok(Arrived::Data(data))) => {
                    if self.keep(now, data)? {
                        heard_at = now;
                    }
                    while let Some(data) = self.came.remove(&self.next) {
                        self.next += 1;
                        take(&data, self.last)?;
                    }
                }
                Ok(Ok(Arrived::Nack(interest, _))) => {
                    if let Some(number) = Numbering::number(&self.object, interest.name()) {
                        self.requester
                            .handle_nack(now, number, interest.nonce(), false);
                    }
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => self.requester.handle_timeout(now),
            }
            if now.since(heard_at) > timeout {
                bail!(
                    "{} stopped coming before segment {}: its producer has left, or the path is down; try again",
                    self.object,
                    self.next
                );
            }
        }
        Ok(())
    }

    /// Keeps a segment. Returns whether it was missing.
    fn keep(&mut self, now: Instant, data: Data) -> anyhow::Result<bool> {
        let Some(number) = Numbering::number(&self.object, data.name()) else {
            return Ok(false);
        };
        let received = Received::new(ByteSize::of(data.wire()), false);
        // What was not requested, or came before, answers nothing.
        if (self.requester)
            .handle_data(now, number, &received)
            .is_err()
        {
            return Ok(false);
        }
        if let Some(last) = last_of(&data) {
            let known = *self.last.get_or_insert(last);
            ensure!(
                known == last,
                "segments of {} do not agree which is the last: {known} or {last}",
                self.object
            );
        }
        Ok(number >= self.next && self.came.insert(number, data).is_none())
    }
}
