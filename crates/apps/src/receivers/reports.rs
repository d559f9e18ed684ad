//! Reports of receivers to the sender, and their rate.
//!
//! ```text
//!  Interest /NAME/v=…/32=report/<receiver>/<n>    parameters: received │ missing │ rate │ round trip
//!                                                             8          8         8      4   octets
//!  Data of the same name: pause until the next report, in milliseconds │ 1: acknowledge segments
//!                                                                   4              1   octets
//!  Interest /NAME/v=…/32=ack/<receiver>/<n>       parameters: numbers of the last four segments, the newest first, 8 octets each
//! ```
//!
//! All together report ten times a second at most: the pause grows with the receivers that are heard. One of them acknowledges, where the
//! sender wants that; acknowledgements are not answered.

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_packet::{Component, Interest, Name, Nonce};
use namecast_units::{Bitrate, Duration, Instant};

/// Keywords before a receiver's identifier.
const REPORT: &str = "report";
const ACKNOWLEDGEMENT: &str = "ack";
/// Lifetime of reports: answers wait in the longest queues.
const REPORT_LIFETIME: Duration = Duration::from_secs(4);
/// Lifetime of acknowledgements, which nobody answers.
const ACKNOWLEDGEMENT_LIFETIME: Duration = Duration::from_millis(100);
/// Segments that an acknowledgement names: three acknowledgements in a row may be lost.
pub(crate) const ACKNOWLEDGED: usize = 4;
/// Reports a second, of all receivers.
const MAX_RATE: u64 = 10;
/// Shortest pause between reports of one receiver.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// Longest, whatever a sender says.
const MAX_PAUSE: Duration = Duration::from_secs(600);
/// Receivers that are remembered: those heard longest ago are forgotten first.
const MAX_RECEIVERS: usize = 4_096;
/// Pauses without a report after which a receiver has left.
const MISSED_PAUSES: u32 = 3;
/// Octets of a report.
const REPORT_SIZE: usize = 28;

/// Identifies a receiver while it receives: random octets.
pub type ReceiverId = [u8; 8];

/// Report of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Segments that it has.
    pub received: u64,
    /// Segments that it needs yet.
    pub missing: u64,
    /// Rate of content since the report before.
    pub rate: Bitrate,
    /// Round-trip time of the last report that was answered.
    pub round_trip: Duration,
}

impl Report {
    /// Reads a report; `None` if it is none.
    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; REPORT_SIZE] = octets.try_into().ok()?;
        let (words, rest) = octets.as_chunks::<8>();
        let micros = u32::from_be_bytes(rest.try_into().ok()?);
        Some(Self {
            received: u64::from_be_bytes(words[0]),
            missing: u64::from_be_bytes(words[1]),
            rate: Bitrate::bps(u64::from_be_bytes(words[2])),
            round_trip: Duration::from_micros(micros.into()),
        })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(REPORT_SIZE);
        octets.extend(self.received.to_be_bytes());
        octets.extend(self.missing.to_be_bytes());
        octets.extend(self.rate.as_bps().to_be_bytes());
        let micros = u32::try_from(self.round_trip.as_micros()).unwrap_or(u32::MAX);
        octets.extend(micros.to_be_bytes());
        octets
    }

    /// Returns the Interest that carries this report.
    pub(crate) fn interest(
        &self,
        flow: &Name,
        (id, number): (ReceiverId, u64),
        nonce: Nonce,
    ) -> Interest {
        let name = name(flow, REPORT, (id, number));
        let interest = Interest::builder(name)
            .must_be_fresh()
            .lifetime(REPORT_LIFETIME);
        interest.parameters(self.encode()).build(nonce)
    }
}

fn name(flow: &Name, keyword: &str, (id, number): (ReceiverId, u64)) -> Name {
    let name = flow.builder().keyword(keyword).component(Component {
        kind: Component::GENERIC,
        value: &id,
    });
    name.sequence(number).finish()
}

/// Reads whose report an Interest of `flow` is; `None` if it is none.
pub(crate) fn reporter(flow: &Name, name: &Name) -> Option<ReceiverId> {
    receiver(flow, name, REPORT)
}

fn receiver(flow: &Name, name: &Name, keyword: &str) -> Option<ReceiverId> {
    let is_of_it =
        flow.is_prefix_of(name) && name.get(flow.len()) == Some(Component::keyword(keyword));
    let id = name.get(flow.len() + 1).filter(|_| is_of_it)?;
    id.value.try_into().ok()
}

/// Returns the Interest that acknowledges segments, the newest first.
pub(crate) fn acknowledgement(
    flow: &Name,
    numbers: impl IntoIterator<Item = u64>,
    (id, number): (ReceiverId, u64),
    nonce: Nonce,
) -> Interest {
    let octets: Vec<u8> = numbers.into_iter().flat_map(u64::to_be_bytes).collect();
    let name = name(flow, ACKNOWLEDGEMENT, (id, number));
    let interest = Interest::builder(name).lifetime(ACKNOWLEDGEMENT_LIFETIME);
    interest.parameters(octets).build(nonce)
}

/// Reads who acknowledges which segments of `flow`; `None` if it is no acknowledgement.
pub(crate) fn acknowledged(flow: &Name, interest: &Interest) -> Option<(ReceiverId, Vec<u64>)> {
    let id = receiver(flow, interest.name(), ACKNOWLEDGEMENT)?;
    let parameters = interest.parameters()?;
    let (words, rest) = parameters.as_chunks::<8>();
    let is_right = rest.is_empty() && (1..=ACKNOWLEDGED).contains(&words.len());
    let numbers = words.iter().map(|word| u64::from_be_bytes(*word));
    is_right.then(|| (id, numbers.collect()))
}

/// Makes the answer to a report.
pub(crate) fn answer(pause: Duration, acknowledges: bool) -> Bytes {
    let millis = u32::try_from(pause.as_millis()).unwrap_or(u32::MAX);
    let mut octets = millis.to_be_bytes().to_vec();
    octets.push(acknowledges.into());
    octets.into()
}

/// Reads the pause that a sender wants, and whether segments are to be acknowledged.
pub(crate) fn read_answer(content: &[u8]) -> Option<(Duration, bool)> {
    let (millis, acknowledges) = content.split_first_chunk()?;
    let pause = Duration::from_millis(u32::from_be_bytes(*millis).into());
    match acknowledges {
        [flag @ (0 | 1)] => Some((pause.clamp(MIN_PAUSE, MAX_PAUSE), *flag == 1)),
        _ => None,
    }
}

/// A receiver that reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Its last report.
    pub report: Report,
    /// When.
    pub at: Instant,
}

/// All receivers that report.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    heard: BTreeMap<ReceiverId, Heard>,
    /// Those that have reported all, forgotten ones included.
    complete: u64,
}

impl Receivers {
    /// Takes a report. Returns the pause until the receiver's next one.
    pub(crate) fn on_report(&mut self, now: Instant, id: ReceiverId, report: Report) -> Duration {
        let was_complete = self.heard.get(&id).is_some_and(|it| it.report.missing == 0);
        self.complete += u64::from(report.missing == 0 && !was_complete);
        let is_new = !self.heard.contains_key(&id);
        if is_new && self.heard.len() >= MAX_RECEIVERS {
            let oldest = self.heard.iter().min_by_key(|(_, heard)| heard.at);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.heard.remove(&oldest);
            }
        }
        self.heard.insert(id, Heard { report, at: now });
        self.pause()
    }

    fn pause(&self) -> Duration {
        let millis = self.heard.len() as u64 * 1_000 / MAX_RATE;
        Duration::from_millis(millis).max(MIN_PAUSE)
    }

    /// Returns the receivers heard lately, and those that have all.
    pub(crate) fn present(&self, now: Instant) -> impl Iterator<Item = (&ReceiverId, &Heard)> {
        let silence = self.pause() * MISSED_PAUSES;
        self.heard
            .iter()
            .filter(move |(_, heard)| heard.report.missing == 0 || now.since(heard.at) < silence)
    }

    pub(crate) const fn complete(&self) -> u64 {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORTED: Report = Report {
        received: 300,
        missing: 1 << 40,
        rate: Bitrate::mbps(3),
        round_trip: Duration::from_millis(70),
    };

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn reports_come_back_as_they_were() {
        let flow: Name = "/a/v=7".parse().unwrap();
        let interest = REPORTED.interest(&flow, ([9; 8], 3), Nonce([1; 4]));
        assert_eq!(reporter(&flow, interest.name()), Some([9; 8]));
        assert_eq!(reporter(&"/a/v=8".parse().unwrap(), interest.name()), None);
        let parameters = interest.parameters().unwrap();
        assert_eq!(Report::decode(&parameters), Some(REPORTED));
        assert_eq!(Report::decode(&parameters[1..]), None);
        let four_seconds = Duration::from_millis(4_096);
        assert_eq!(answer(four_seconds, true)[..], [0, 0, 0x10, 0, 1]);
        let read = [
            ([0, 0, 0x10, 0, 1], Some((four_seconds, true))),
            ([0, 0, 0, 0, 0], Some((MIN_PAUSE, false))),
            ([0xFF, 0xFF, 0xFF, 0xFF, 0], Some((MAX_PAUSE, false))),
            ([0, 0, 0x10, 0, 2], None),
        ];
        for (octets, expected) in read {
            assert_eq!(read_answer(&octets), expected);
        }
        assert_eq!(read_answer(&[0; 4]), None);
    }

    #[test]
    fn acknowledgements_come_back_as_they_were() {
        let flow: Name = "/a/v=7".parse().unwrap();
        let of = |numbers: &[u64]| {
            let numbers = numbers.iter().copied();
            acknowledgement(&flow, numbers, ([9; 8], 3), Nonce([1; 4]))
        };
        let right = of(&[7, 1 << 40, 0]);
        let expected = Some(([9; 8], vec![7, 1 << 40, 0]));
        assert_eq!(acknowledged(&flow, &right), expected);
        assert_eq!(reporter(&flow, right.name()), None);
        let wrong = [of(&[]), of(&[1; ACKNOWLEDGED + 1])];
        for interest in wrong {
            assert_eq!(acknowledged(&flow, &interest), None);
        }
    }

    /// 30 receivers at ten reports a second: each every 3 s.
    #[test]
    fn all_together_report_ten_times_a_second() {
        let mut receivers = Receivers::default();
        for id in 0..30 {
            let pause = receivers.on_report(at(1), [id; 8], REPORTED);
            let millis = (100 * (u64::from(id) + 1)).max(1_000);
            assert_eq!(pause, Duration::from_millis(millis));
        }
        assert_eq!(receivers.present(at(9)).count(), 30);
        assert_eq!(
            receivers.present(at(10)).count(),
            0,
            "three pauses without a report"
        );
        let done = Report {
            missing: 0,
            ..REPORTED
        };
        for _ in 0..2 {
            receivers.on_report(at(10), [4; 8], done);
        }
        assert_eq!(
            (receivers.complete(), receivers.present(at(99)).count()),
            (1, 1)
        );
    }

    #[test]
    fn a_flood_of_receivers_takes_no_more_room() {
        let mut receivers = Receivers::default();
        for id in 0..2 * MAX_RECEIVERS as u64 {
            receivers.on_report(at(id), id.to_be_bytes(), REPORTED);
        }
        assert_eq!(receivers.heard.len(), MAX_RECEIVERS);
        let last = 2 * MAX_RECEIVERS as u64 - 1;
        assert!(receivers.heard.contains_key(&last.to_be_bytes()));
    }
}
