//! Reports of receivers to the sender, and their rate.
//!
//! ```text
//!  Interest /NAME/v=…/32=report/<receiver>/<n>    parameters: received │ missing │ rate │ round trip
//!                                                             8          8         8      4   octets
//!  Data of the same name: pause until the next report, in milliseconds, 4 octets
//! ```
//!
//! All together report ten times a second at most: the pause grows with the receivers that are heard.

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_packet::{Component, Interest, Name, Nonce};
use namecast_units::{Bitrate, Duration, Instant};

/// Keyword before a receiver's identifier.
pub(super) const REPORT: &str = "report";
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
    pub(super) fn decode(octets: &[u8]) -> Option<Self> {
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

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(REPORT_SIZE);
        octets.extend(self.received.to_be_bytes());
        octets.extend(self.missing.to_be_bytes());
        octets.extend(self.rate.as_bps().to_be_bytes());
        let micros = u32::try_from(self.round_trip.as_micros()).unwrap_or(u32::MAX);
        octets.extend(micros.to_be_bytes());
        octets
    }

    /// Returns the Interest that carries this report.
    pub(super) fn interest(
        &self,
        flow: &Name,
        (id, number): (ReceiverId, u64),
        nonce: Nonce,
    ) -> Interest {
        let name = flow.builder().keyword(REPORT).component(Component {
            kind: Component::GENERIC,
            value: &id,
        });
        let name = name.sequence(number).finish();
        let interest = Interest::builder(name).must_be_fresh().lifetime(MIN_PAUSE);
        interest.parameters(self.encode()).build(nonce)
    }
}

/// Reads whose report an Interest of `flow` is; `None` if it is none.
pub(super) fn reporter(flow: &Name, name: &Name) -> Option<ReceiverId> {
    let is_report =
        flow.is_prefix_of(name) && name.get(flow.len()) == Some(Component::keyword(REPORT));
    let id = name.get(flow.len() + 1).filter(|_| is_report)?;
    id.value.try_into().ok()
}

/// Reads the pause that a sender wants.
pub(super) fn pause(content: &[u8]) -> Option<Duration> {
    let millis = u32::from_be_bytes(content.try_into().ok()?);
    Some(Duration::from_millis(millis.into()).clamp(MIN_PAUSE, MAX_PAUSE))
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
pub(super) struct Receivers {
    heard: BTreeMap<ReceiverId, Heard>,
    /// Those that have reported all, forgotten ones included.
    complete: u64,
}

impl Receivers {
    /// Takes a report. Returns the pause until the receiver's next one.
    pub(super) fn on_report(&mut self, now: Instant, id: ReceiverId, report: Report) -> Bytes {
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
        let millis = u32::try_from(self.pause().as_millis()).unwrap_or(u32::MAX);
        Bytes::copy_from_slice(&millis.to_be_bytes())
    }

    fn pause(&self) -> Duration {
        let millis = self.heard.len() as u64 * 1_000 / MAX_RATE;
        Duration::from_millis(millis).max(MIN_PAUSE)
    }

    /// Returns the receivers heard lately, and those that have all.
    pub(super) fn present(&self, now: Instant) -> impl Iterator<Item = (&ReceiverId, &Heard)> {
        let silence = self.pause() * MISSED_PAUSES;
        self.heard
            .iter()
            .filter(move |(_, heard)| heard.report.missing == 0 || now.since(heard.at) < silence)
    }

    pub(super) const fn complete(&self) -> u64 {
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
        assert_eq!(pause(&[0, 0, 0x10, 0]), Some(Duration::from_millis(4_096)));
        assert_eq!(pause(&[0; 4]), Some(MIN_PAUSE));
        assert_eq!(pause(&[0xFF; 4]), Some(MAX_PAUSE));
        assert_eq!(pause(&[0; 3]), None);
    }

    /// 30 receivers at ten reports a second: each every 3 s.
    #[test]
    fn all_together_report_ten_times_a_second() {
        let mut receivers = Receivers::default();
        for id in 0..30 {
            let pause = receivers.on_report(at(1), [id; 8], REPORTED);
            let millis = u32::from_be_bytes(pause[..].try_into().unwrap());
            assert_eq!(millis, (100 * (u32::from(id) + 1)).max(1_000));
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
