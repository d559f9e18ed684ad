//! Segments of the newest version of an object, as `namecast put`, ndnd, NDNts and ndn-tools serve them.

use anyhow::{Context, bail, ensure};
use namecast_net::{Clock, random};
use namecast_packet::tlv::{self, Reader};
use namecast_packet::{Component, Data, Interest, Name};
use namecast_stream::names::METADATA;
use namecast_stream::path::{NumberedConfig, NumberedPaths, NumberedRequest, Received};
use namecast_stream::rate::RateControl;
use namecast_units::{ByteSize, Duration};

use super::{Peek, take};
use crate::asking::{Answer, Arrived, Asker, Question};

/// How long metadata is waited for, which not every producer has.
const METADATA_TIMEOUT: Duration = Duration::from_secs(1);
/// Content of all segments.
const MAX_SIZE: u64 = 256 << 20;
/// What a segment counts as at least, so that empty ones are bounded too.
const MIN_SEGMENT_SIZE: u64 = 256;
/// Segments that are under way at a time.
const MAX_IN_FLIGHT: usize = 1_024;
/// Time's worth of the allowed rate that may leave at once.
const BURST: Duration = Duration::from_millis(5);

/// Fetches all segments of an object.
///
/// # Errors
/// If it does not exist, stops coming, or is too large.
pub(super) async fn fetch(
    asker: &mut Asker,
    clock: Clock,
    arguments: &Peek,
) -> anyhow::Result<Vec<Data>> {
    let timeout = arguments.lifetime;
    let is_version = |name: &Name| is_last(name, Component::VERSION);
    let versioned = match is_version(&arguments.name) {
        true => arguments.name.clone(),
        false => match newest(asker, &arguments.name).await? {
            Some(versioned) => versioned,
            None => {
                let question = Question::newest(arguments.name.clone(), timeout);
                let found = take(&arguments.name, asker.ask(&question).await?)?;
                match is_last(found.name(), Component::SEGMENT) {
                    true => found.name().parent(),
                    false => return Ok(vec![found]),
                }
            }
        },
    };
    let name = versioned.builder().segment(0).finish();
    let question = Question::exact(name.clone(), timeout);
    let first = take(&name, asker.ask(&question).await?)?;
    let last = first.final_block().and_then(Name::last);
    let last = last.and_then(|last| last.number_of(Component::SEGMENT));
    let last = last.with_context(|| format!("{name} does not say which segment is the last"))?;
    let size = first.content().map_or(0, |content| content.len() as u64);
    ensure!(
        last.saturating_mul(size.max(MIN_SEGMENT_SIZE)) <= MAX_SIZE,
        "{versioned} is larger than {MAX_SIZE} bytes"
    );
    Segments::new(versioned, last, size)
        .fetch(asker, (clock, timeout), first)
        .await
}

/// The name with the newest version that the producer's metadata tells, if it has any.
async fn newest(asker: &mut Asker, name: &Name) -> anyhow::Result<Option<Name>> {
    let metadata = name.builder().keyword(METADATA).finish();
    let question = Question::newest(metadata, METADATA_TIMEOUT);
    let Answer::Data(data) = asker.ask(&question).await? else {
        return Ok(None);
    };
    let content = data.content().unwrap_or_default();
    let element = Reader::new(&content).element("Name").ok().flatten();
    let element = element.filter(|element| element.element_type == tlv::NAME);
    let told = element.and_then(|element| Name::from_element(&content, &element).ok());
    Ok(told.filter(|told| name.is_prefix_of(told)))
}

fn is_last(name: &Name, kind: u16) -> bool {
    name.last()
        .is_some_and(|last| last.number_of(kind).is_some())
}

/// The segments after the first.
struct Segments {
    versioned: Name,
    last: u64,
    requester: NumberedPaths,
    size: u64,
    came: Vec<Option<Data>>,
}

impl Segments {
    fn new(versioned: Name, last: u64, size: u64) -> Self {
        let config = NumberedConfig {
            first: 1,
            count: Some(last),
            control: RateControl::Cubic(Default::default()),
            retransmit: true,
            max_in_flight: MAX_IN_FLIGHT,
            burst: BURST,
            expected_size: ByteSize::bytes(size.max(1)),
            seed: u64::from_le_bytes(random()),
            ..NumberedConfig::default()
        };
        Self {
            versioned,
            last,
            requester: NumberedPaths::new(config),
            size: 0,
            came: Vec::new(),
        }
    }

    /// Fetches them, as fast as the path allows.
    async fn fetch(
        mut self,
        asker: &mut Asker,
        (clock, timeout): (Clock, Duration),
        first: Data,
    ) -> anyhow::Result<Vec<Data>> {
        self.came.push(Some(first));
        let mut heard_at = clock.now();
        self.requester.start(heard_at);
        while (self.came.len() as u64) <= self.last || self.came.contains(&None) {
            while let Some(NumberedRequest { number, nonce, .. }) = self.requester.poll_request() {
                let name = self.versioned.builder().segment(number).finish();
                asker.send(&Interest::builder(name).build(nonce)).await?;
            }
            let due = self.requester.poll_timeout();
            let pause = due.map_or(timeout, |due| due.since(clock.now()));
            let arrived = tokio::time::timeout(pause.min(timeout), asker.receive()).await;
            let now = clock.now();
            match arrived {
                Ok(Ok(Arrived::Data(data))) => {
                    if self.take(now, data)? {
                        heard_at = now;
                    }
                }
                Ok(Ok(Arrived::Nack(interest, _))) => {
                    if let Some(number) = self.number(interest.name()) {
                        self.requester
                            .handle_nack(now, number, interest.nonce(), false);
                    }
                }
                Ok(Err(error)) => return Err(error),
                Err(_) => self.requester.handle_timeout(now),
            }
            if now.since(heard_at) > timeout {
                bail!("{} stopped coming", self.versioned);
            }
        }
        Ok(self.came.into_iter().flatten().collect())
    }

    /// Takes a segment. Returns whether it was missing.
    fn take(&mut self, now: namecast_units::Instant, data: Data) -> anyhow::Result<bool> {
        let Some(number) = self.number(data.name()) else {
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
        let at = usize::try_from(number)?;
        if self.came.len() <= at {
            self.came.resize(at + 1, None);
        }
        self.size += data.content().map_or(0, |content| content.len() as u64);
        ensure!(
            self.size <= MAX_SIZE,
            "{} is larger than {MAX_SIZE} bytes",
            self.versioned
        );
        Ok(self.came[at].replace(data).is_none())
    }

    /// The number of a segment of this object.
    fn number(&self, name: &Name) -> Option<u64> {
        let number = name.last()?.number_of(Component::SEGMENT)?;
        (number <= self.last && name.parent() == self.versioned).then_some(number)
    }
}
