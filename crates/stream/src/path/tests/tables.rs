//! Bounds, and what changes nothing.

use core::time::Duration;

use namecast_packet::lp::NackReason;
use namecast_units::{Bitrate, Random};

use super::*;

/// What an uplink makes of what happens to it, in an order that a seed decides.
struct Chaos {
    random: Random,
    uplink: Uplink,
    config: UplinkConfig,
    now: Instant,
    out: Vec<(Token, Nonce)>,
}

impl Chaos {
    fn new(seed: u64, control: &str) -> Self {
        let config = UplinkConfig {
            seed,
            max_in_flight: 24,
            max_queued: 40,
            ..UplinkConfig::default()
        };
        let control: Control = control.parse().unwrap();
        Self {
            random: Random::from_seed(seed),
            uplink: Uplink::new(config, control.build(at(0), Bitrate::mbps(2))),
            config,
            now: at(0),
            out: Vec::new(),
        }
    }

    fn token(&mut self) -> Token {
        let client = self.random.below(2);
        let sequence = self.random.below(40);
        token(client, sequence, self.random.below(8))
    }

    fn moment(&mut self) -> Option<Instant> {
        let at = self.now + Duration::from_micros(self.random.below(600_000));
        self.random.chance(0.7).then(|| at.saturating_sub(ms(200)))
    }

    fn want(&mut self) {
        let kinds = [
            Kind::Repair,
            Kind::Key,
            Kind::Delta,
            Kind::Parity,
            Kind::Probe,
        ];
        let kind = kinds[self.random.below(5) as usize];
        let token = self.token();
        let available_at = self.moment();
        let want = Want {
            lifetime: ms(10 + self.random.below(2_000)),
            available_at,
            not_before: available_at.filter(|_| self.random.chance(0.5)),
            due: self.moment(),
            deadline: self.moment(),
            ..want(token, kind)
        };
        self.uplink.want(self.now, want);
    }

    fn data(&mut self) {
        let token = match self.out.len() as u64 {
            0 => self.token(),
            count => {
                let index = self.random.below(count) as usize;
                self.out.swap_remove(index).0
            }
        };
        let is_marked = self.random.chance(0.1);
        let now = self.now;
        answer(
            &mut self.uplink,
            now,
            token,
            &Received::new(SIZE, is_marked),
        );
        match self.random.below(4) {
            0 => self.uplink.reject(token),
            1 => {
                let rtt = Duration::from_micros(self.random.below(100_000));
                self.uplink.on_round_trip(now, rtt);
            }
            _ => {}
        }
    }

    fn nack(&mut self) {
        let (token, nonce) = match self.out.pop() {
            Some((token, nonce)) if self.random.chance(0.7) => (token, nonce),
            _ => (self.token(), Nonce::from(self.random.next_u64() as u32)),
        };
        let reason = match self.random.chance(0.5) {
            true => NackReason::Congestion,
            false => NackReason::NoRoute,
        };
        nack(&mut self.uplink, self.now, (token, nonce), reason);
    }

    fn something(&mut self) {
        let token = self.token();
        match self.random.below(100) {
            0..65 => self.want(),
            65..75 => self.data(),
            75..80 => self.nack(),
            80..84 => self.uplink.withdraw(&token.sample()),
            84..88 => self.uplink.withdraw(&(token..=token)),
            88..91 => self.uplink.forget(token),
            91..96 => {
                let available_at = self.moment().unwrap_or(self.now);
                self.uplink.revise(self.now, &token.sample(), available_at);
            }
            96 => self.uplink.withdraw(&token.client.tokens()),
            97 => self.uplink.handle_link_change(),
            98 => {
                let limit = Limit {
                    rate: Bitrate::kbps(self.random.below(2_000)),
                    packet_size: SIZE,
                };
                let limit = Some(limit).filter(|_| self.random.chance(0.5));
                self.uplink.set_limit(token.client, limit);
            }
            _ => self.now += ms(self.random.below(3_000)),
        }
    }

    /// Handles what is due until `until`.
    fn settle(&mut self, until: Instant) {
        let mut calls = 0;
        while let Some(at) = self.uplink.poll_timeout()
            && at <= until
        {
            calls = if at > self.now { 0 } else { calls + 1 };
            assert!(calls <= 1, "no progress at {}", self.now);
            self.now = self.now.max(at);
            self.out.extend(sent(&mut self.uplink, self.now));
            self.check();
        }
        self.now = until;
    }

    fn check(&self) {
        let (in_flight, queued) = self.uplink.sizes();
        assert!(in_flight <= self.config.max_in_flight, "{in_flight}");
        assert!(queued <= 2 * self.config.max_queued, "{queued}");
        for client in [0, 1].map(ClientId) {
            assert!(self.uplink.wanted.queue.count_of(client) <= self.config.max_queued);
        }
        let path = self.uplink.path();
        let figures = [
            path.capacity(),
            path.fast_capacity(),
            path.carried(),
            path.quantile(0.5),
        ];
        assert!(figures.iter().all(|it| it.is_finite() && *it > 0.0));
        let now = self.now;
        let shares = [
            path.loss(now, ms(1_000)),
            path.congestive_loss(now, ms(1_000)),
            path.cross(now),
            path.marked(),
        ];
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)));
        assert!(path.queue_now() >= 0.0 && path.queued() >= 0.0 && path.jitter() >= 0.0);
        assert!(self.uplink.backlog(now, Weight::ONE) >= 0.0);
    }
}

/// Whatever happens in whatever order, tables stay within their bounds, figures are numbers, and time goes on: of calls at
/// one instant, the second leaves nothing to do.
#[test]
fn whatever_happens_stays_within_bounds() {
    for control in ["live", "window:50", "rate:2Mbps", "copa", "arc"] {
        let mut reached = (0, 0);
        for seed in 0..12 {
            let mut chaos = Chaos::new(seed, control);
            for _ in 0..600 {
                for _ in 0..chaos.random.below(10) {
                    chaos.something();
                }
                chaos.out.extend(sent(&mut chaos.uplink, chaos.now));
                chaos.check();
                let sizes = chaos.uplink.sizes();
                reached = (reached.0.max(sizes.0), reached.1.max(sizes.1));
                let until = chaos.now + Duration::from_micros(chaos.random.below(8_000));
                chaos.settle(until);
            }
            assert!(chaos.uplink.counters().interests > 100);
        }
        let is_full = reached.0 > 12 && reached.1 == 80;
        assert!(is_full, "{control} reached {reached:?} only");
    }
}

#[test]
fn no_more_wants_wait_than_may() {
    let config = UplinkConfig {
        max_queued: 10,
        ..UplinkConfig::default()
    };
    let mut uplink = uplink(config);
    for index in 0..15 {
        uplink.want(at(0), want(token(1, 1, index), Kind::Delta));
    }
    assert_eq!(uplink.sizes(), (0, 10));
    assert_eq!(uplink.counters().dropped, 5);
    for index in 10..15 {
        let dropped = Event::Dropped(token(1, 1, index));
        assert_eq!(uplink.poll_event(), Some(dropped));
    }
    assert_eq!(uplink.poll_event(), None);
    assert_eq!(sent(&mut uplink, at(0)).len(), 10);
}

#[test]
fn no_more_interests_are_out_than_may() {
    let config = UplinkConfig {
        max_in_flight: 5,
        ..UplinkConfig::default()
    };
    let mut uplink = uplink(config);
    for index in 0..15 {
        uplink.want(at(0), want(token(1, 1, index), Kind::Delta));
    }
    assert_eq!(sent(&mut uplink, at(0)).len(), 5);
    assert_eq!(uplink.sizes(), (5, 10));
    assert!(
        answer(
            &mut uplink,
            at(51),
            token(1, 1, 0),
            &Received::new(SIZE, false)
        )
        .is_some()
    );
    let next = sent(&mut uplink, at(51));
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].0, token(1, 1, 5));
}

#[test]
fn what_is_past_its_deadline_is_dropped_unsent() {
    let mut uplink = uplink(UplinkConfig::default());
    let over = Want {
        deadline: Some(at(10)),
        not_before: Some(at(1_000)),
        ..want(token(1, 1, 0), Kind::Delta)
    };
    uplink.want(at(0), over);
    assert_eq!(sent(&mut uplink, at(9)), []);
    assert_eq!(uplink.sizes(), (0, 1));
    uplink.handle_timeout(at(20));
    assert_eq!(uplink.poll_event(), Some(Event::Dropped(token(1, 1, 0))));
    assert_eq!(uplink.sizes(), (0, 0));
}

#[test]
fn a_nack_of_another_interest_changes_nothing() {
    let mut uplink = uplink(UplinkConfig::default());
    let this = token(1, 1, 0);
    uplink.want(at(0), want(this, Kind::Delta));
    let (_, nonce) = sent(&mut uplink, at(0))[0];
    let before = format!("{uplink:?}");
    let other = Nonce(nonce.0.map(|octet| !octet));
    for (token, nonce) in [
        (this, other),
        (token(1, 1, 1), nonce),
        (token(2, 1, 0), nonce),
    ] {
        nack(&mut uplink, at(10), (token, nonce), NackReason::Congestion);
        assert_eq!(format!("{uplink:?}"), before);
    }
    nack(&mut uplink, at(10), (this, nonce), NackReason::Congestion);
    assert_eq!(uplink.sizes(), (0, 0));
}

#[test]
fn a_nack_of_an_interest_before_the_last_changes_nothing() {
    let mut uplink = uplink(UplinkConfig::default());
    let this = token(1, 1, 0);
    let mut nonces = Vec::new();
    for millis in [0, 100] {
        uplink.want(at(millis), want(this, Kind::Repair));
        nonces.push(sent(&mut uplink, at(millis))[0].1);
    }
    nack(
        &mut uplink,
        at(110),
        (this, nonces[0]),
        NackReason::Congestion,
    );
    assert!(uplink.wanted.in_flight.get(this).is_some());
    nack(
        &mut uplink,
        at(110),
        (this, nonces[1]),
        NackReason::Congestion,
    );
    assert!(uplink.wanted.in_flight.get(this).is_none());
}

/// By a Nack without a reason, publishers refuse what they do not have.
#[test]
fn a_refusal_counts_as_not_answered() {
    let mut uplink = uplink(UplinkConfig::default());
    let this = token(1, 1, 0);
    uplink.want(at(0), want(this, Kind::Delta));
    let (_, nonce) = sent(&mut uplink, at(0))[0];
    let before = format!("{uplink:?}");
    nack(&mut uplink, at(10), (this, nonce), NackReason::None);
    assert_eq!(format!("{uplink:?}"), before);
}

#[test]
fn data_that_nobody_requested_changes_nothing() {
    let mut uplink = uplink(UplinkConfig::default());
    uplink.want(at(0), want(token(1, 1, 0), Kind::Delta));
    assert_eq!(sent(&mut uplink, at(0)).len(), 1);
    let before = format!("{uplink:?}");
    for token in [token(1, 1, 1), token(2, 1, 0), token(1, 2, 0)] {
        let found = answer(&mut uplink, at(60), token, &Received::new(SIZE, true));
        assert_eq!(found, None);
        assert_eq!(format!("{uplink:?}"), before);
    }
    let found = answer(
        &mut uplink,
        at(60),
        token(1, 1, 0),
        &Received::new(SIZE, true),
    );
    let answered = Answer {
        token: token(1, 1, 0),
        sent_at: Some(at(0)),
    };
    assert_eq!(found, Some(answered));
    // It is answered once.
    let again = answer(
        &mut uplink,
        at(60),
        token(1, 1, 0),
        &Received::new(SIZE, true),
    );
    assert_eq!(again, None);
}
