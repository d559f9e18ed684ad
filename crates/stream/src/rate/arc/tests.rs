//! ARC against the paper's closed forms, and each switch by itself.

use namecast_units::Random;

use super::*;
use crate::rate::Loss;
use crate::rate::reports;

const MS: Duration = Duration::from_millis(1);
/// 20 ms, the RTT of the paper's first figures.
const BASE: u64 = 20_000;

/// A controller whose periods the test fills.
struct Bench {
    arc: Controller,
    now: Instant,
}

impl Bench {
    fn new(config: Config) -> Self {
        Self {
            arc: Controller::new(Instant::ZERO, config),
            now: Instant::ZERO,
        }
    }

    /// In the adaptive phase at `pps`, with an RTT of 20 ms known.
    fn adaptive(config: Config, pps: f64) -> Self {
        let initial_rate = pps * 2.0;
        let mut bench = Self::new(Config {
            initial_rate,
            ..config
        });
        // Loss, and an RTT above RTT_min + jitter_offset.
        bench.data(BASE);
        bench.lose(1, Loss::Gap);
        bench.data(BASE + 50_000);
        bench.end();
        assert_eq!(bench.arc.phase(), Phase::Adaptive);
        assert!((bench.arc.pps() - pps).abs() < 1e-9);
        bench
    }

    /// One Data packet with an RTT of `micros` arrives 1 µs from now.
    fn data(&mut self, micros: u64) {
        self.now += Duration::from_micros(1);
        let asked_at = Instant::from_nanos(1_000_000_000 + self.now.as_nanos());
        let arrival = Arrival {
            rtt: Some(Duration::from_micros(micros)),
            ..reports::arrival(self.now, asked_at)
        };
        self.arc.on_data(self.now, &arrival);
    }

    fn lose(&mut self, count: u32, kind: Loss) {
        for _ in 0..count {
            self.arc.on_loss(self.now, &reports::lost(self.now, kind));
        }
    }

    /// The period ends.
    fn end(&mut self) {
        let period = 10 * MS.as_nanos() as u64;
        let end = Instant::from_nanos((self.now.as_nanos() / period + 1) * period);
        self.now = end;
        self.arc.handle_timeout(end);
    }

    /// A period with one Data packet of this RTT.
    fn period(&mut self, micros: u64) -> f64 {
        self.data(micros);
        self.end();
        self.arc.pps()
    }

    fn seconds(&self) -> f64 {
        self.now.as_nanos() as f64 / 1e9
    }

    /// Seconds from where pps passes `from` to where it passes `to`, with RTTs from `rtt`.
    fn time(&mut self, to: f64, mut rtt: impl FnMut(u64) -> u64) -> f64 {
        let rises = to > self.arc.pps();
        let begin = self.seconds();
        for step in 0..100_000 {
            let pps = self.period(rtt(step));
            if (pps >= to) == rises {
                return self.seconds() - begin;
            }
        }
        panic!("stays at {}", self.arc.pps());
    }
}

/// pps of a payload bandwidth in Mbit/s, χ = 1024.
fn pps(mbps: f64) -> f64 {
    mbps * 1e6 / 8_192.0
}

/// dpps/dt = (α/P)/√pps, so T = ⅔·(b^1.5 − a^1.5)·P/α: 610 → 1160 takes 8.14 s, 610 → 1221 takes 9.19 s.
#[test]
fn increase_takes_as_long_as_the_closed_form_says() {
    for (to, seconds) in [(9.5, 8.14), (10.0, 9.19)] {
        let mut bench = Bench::adaptive(Config::resolved(), pps(5.0));
        let took = bench.time(pps(to), |_| BASE);
        assert!((seconds - 0.03..=seconds + 0.03).contains(&took), "{took}");
    }
}

/// T = 2·(√1221 − √610)·P/β = 0.409 s, and one period more that only arms congestion_sign.
#[test]
fn decrease_takes_as_long_as_the_closed_form_says() {
    let mut bench = Bench::adaptive(Config::resolved(), pps(10.0));
    bench.period(BASE);
    let before = bench.arc.pps();
    bench.period(BASE + 20_000);
    assert!((bench.arc.pps() - before).abs() < 1e-9);
    let took = bench.time(pps(5.0), |step| BASE + 20_001 + step);
    assert!((0.40..=0.425).contains(&took), "{took}");
}

/// δ/P · 8χ = 20/10 ms · 8192 bit = 16.384 Mbit/s in a second, from 100 pps = 0.8192 Mbit/s.
#[test]
fn the_start_phase_rises_in_a_straight_line() {
    let mut bench = Bench::new(Config::resolved());
    assert_eq!(bench.arc.target().rate, Some(Bitrate::bps(819_200)));
    for _ in 0..100 {
        bench.period(BASE);
    }
    assert_eq!(bench.arc.phase(), Phase::Start);
    assert_eq!(
        bench.arc.target().rate,
        Some(Bitrate::bps(819_200 + 16_384_000))
    );
}

/// I = 1/(k·pps), k = χ/s: 100 pps are 10 ms apart at s = χ, and 20 ms at s = 2χ, with the same bandwidth.
#[test]
fn larger_packets_are_asked_for_less_often() {
    let mut bench = Bench::new(Config::literal());
    assert_eq!(bench.arc.interval(), Some(10 * MS));
    let size = ByteSize::bytes(2_048);
    bench.arc = Controller::new(
        Instant::ZERO,
        Config {
            packet_size: PacketSize::Fixed(size),
            ..Config::literal()
        },
    );
    assert_eq!(bench.arc.interval(), Some(20 * MS));
    assert_eq!(bench.arc.target().packet_size, Some(size));
    assert_eq!(bench.arc.target().rate, Some(Bitrate::bps(819_200)));
}

/// 1000 first, then 2000: 0.9·1000 + 0.1·2000 = 1100, then 1190.
#[test]
fn the_packet_size_is_smoothed() {
    let mut arc = Controller::new(Instant::ZERO, Config::resolved());
    assert_eq!((arc.target().packet_size, arc.interval()), (None, None));
    let mut sizes = Vec::new();
    for size in [1_000, 2_000, 2_000] {
        let arrival = Arrival {
            size: ByteSize::bytes(size),
            ..reports::arrival(Instant::ZERO, Instant::ZERO)
        };
        arc.on_data(Instant::ZERO, &arrival);
        sizes.extend(arc.target().packet_size.map(ByteSize::as_bytes));
    }
    assert_eq!(sizes, [1_000, 1_100, 1_190]);
}

/// Balance of α/√p and γ·√p·(ℓ·p·P): p* = √(α/(γ·ℓ·P)) = 894, 632, 447, 283 pps. Independent simulations of the same
/// gave 895, 621, 433, 271.
#[test]
fn random_loss_holds_pps_at_the_balance() {
    for (percent, balance) in [(0.5, 894.4), (1.0, 632.5), (2.0, 447.2), (5.0, 282.8)] {
        let mut random = Random::from_seed(7);
        let mut bench = Bench::adaptive(Config::resolved(), balance);
        let (mut due, mut sum, mut periods) = (0.0, 0.0, 0.0);
        for _ in 0..40_000 {
            due += bench.arc.pps() * 0.01;
            while due >= 1.0 {
                due -= 1.0;
                if random.chance(percent / 100.0) {
                    bench.lose(1, Loss::Gap);
                } else {
                    bench.data(BASE);
                }
            }
            bench.end();
            sum += bench.arc.pps();
            periods += 1.0;
        }
        let mean = sum / periods;
        assert!(
            (balance * 0.94..=balance * 1.03).contains(&mean),
            "{percent} %: {mean}, not {balance}"
        );
    }
}

/// The inclusive loop finds the last packet again in every silent period, and takes it for a good one:
/// (1098^1.5 + 1.5·20·500)^⅔ = 1382.
#[test]
fn in_a_blackout_the_literal_reading_grows_and_the_resolved_holds() {
    let after_blackout = |config| {
        let mut bench = Bench::adaptive(config, 1_098.0);
        // Data, so that the newest packet is one of case 1.
        bench.period(BASE);
        let before = bench.arc.pps();
        bench.now += 500 * 10 * MS;
        bench.arc.handle_timeout(bench.now);
        (before, bench.arc.pps())
    };
    let (_, literal) = after_blackout(Config::literal());
    assert!((1_380.0..=1_384.0).contains(&literal), "{literal}");
    let (before, resolved) = after_blackout(Config::resolved());
    assert!((before - resolved).abs() < 1e-9);
    // The bounds of the loop alone make the difference only if silence is not held.
    let held = Config {
        hold_when_empty: true,
        ..Config::literal()
    };
    let (before, held) = after_blackout(held);
    assert!((before - held).abs() < 1e-9);
}

/// Interests that go on into a blackout time out one after the other. With a timer of 100 ms that doubles, those of 5 s count
/// six times, at 0, 0.1, 0.3, 0.7, 1.5 and 3.1 s: pps = (√1098 − 6·0.25)² or so. Without, each period counts.
#[test]
fn timeouts_of_a_blackout_count_once_a_timer() {
    let after_blackout = |config| {
        let mut bench = Bench::adaptive(config, 1_098.0);
        bench.period(BASE);
        for _ in 0..500 {
            bench.lose(1, Loss::Timeout);
            bench.end();
        }
        bench.arc.pps()
    };
    let resolved = after_blackout(Config::resolved());
    assert!((990.0..=1_010.0).contains(&resolved), "{resolved}");
    let mut config = Config::resolved();
    config.loss.timeouts_back_off = false;
    let without = after_blackout(config);
    assert!((1.0..=2.0).contains(&without), "{without}");
}

/// Once the base RTT has risen by more than jitter_offset, case 1 never holds again, and AvgRTT is compared with its
/// predecessor only. With jitter that is a coin toss: +α/√p and −β·√p come equally often, and pps goes to α/β = 40.
#[test]
fn jitter_after_a_path_change_takes_the_literal_reading_down() {
    let after = |config: Config, seconds: u64| {
        let mut random = Random::from_seed(11);
        let mut bench = Bench::adaptive(config, 1_160.0);
        let (mut due, mut sum, mut early) = (0.0, 0.0, 0.0);
        for step in 0..seconds * 100 {
            due += bench.arc.pps() * 0.01;
            while due >= 1.0 {
                due -= 1.0;
                bench.data(BASE * 2 + random.below(1_000));
            }
            bench.end();
            if step == 500 {
                early = bench.arc.pps();
            }
            if step >= (seconds - 20) * 100 {
                sum += bench.arc.pps();
            }
        }
        (early, sum / 2_000.0)
    };
    let (early, late) = after(Config::literal(), 60);
    assert!(early < 300.0, "{early}");
    assert!((20.0..=80.0).contains(&late), "{late}");
    // Ten seconds later RTT_min is that of the new way, and pps rises again.
    let (early, late) = after(Config::resolved(), 60);
    assert!(early < 300.0, "{early}");
    assert!(late > 1_000.0, "{late}");
    // With 500 packets as evidence it never falls far.
    let (early, late) = after(Config::with_source_rule(), 60);
    assert!(early > 1_000.0 && late > 1_500.0, "{early}, {late}");
}

/// 500 packets of 40 ms, then one of 30 ms again: RTT_min is 40 ms, then 20 ms as before, since 30 ms may be jitter.
#[test]
fn a_path_change_is_accepted_after_so_many_packets() {
    let mut bench = Bench::new(Config::with_source_rule());
    let least = |bench: &Bench| bench.arc.estimates().min_rtt.map(|rtt| rtt.as_millis());
    bench.data(BASE);
    for _ in 0..400 {
        bench.data(BASE * 2);
    }
    assert_eq!(least(&bench), Some(20));
    for _ in 0..100 {
        bench.data(BASE * 2);
    }
    assert_eq!(least(&bench), Some(40));
    bench.data(BASE + 10_000);
    assert_eq!(least(&bench), Some(20));
}

/// The paper's set-up of Fig. 12: the queue is shorter than jitter_offset, so every loss comes with case 1.
#[test]
fn as_printed_loss_alone_does_not_end_the_start_phase() {
    let phase = |start_while, rtt, lost| {
        let mut bench = Bench::new(Config {
            start_while,
            ..Config::literal()
        });
        bench.period(BASE);
        bench.lose(lost, Loss::Gap);
        bench.period(rtt);
        (bench.arc.phase(), bench.arc.pps())
    };
    let (low, high) = (BASE, BASE + 10_001);
    assert_eq!(phase(StartWhile::Either, low, 1), (Phase::Start, 140.0));
    // (high + BASE) / 2 would be case 1 again: the boundary packet counts in the average.
    assert_eq!(phase(StartWhile::Either, high, 0), (Phase::Start, 140.0));
    let far = BASE + 20_002;
    assert_eq!(phase(StartWhile::Either, far, 1), (Phase::Adaptive, 60.0));
    assert_eq!(phase(StartWhile::Both, low, 1), (Phase::Adaptive, 60.0));
    assert_eq!(phase(StartWhile::Both, far, 0), (Phase::Adaptive, 60.0));
    assert_eq!(phase(StartWhile::Both, far - 2, 0), (Phase::Start, 140.0));
}

/// RTTs 20 ms, then 40.002 ms: their mean is 30.001 ms, which is case 3 and halves pps; half-open bounds see 40.002 alone.
/// With 39.998 ms only the half-open reading sees a high RTT.
#[test]
fn inclusive_bounds_count_the_newest_packet_twice() {
    let phase = |loop_bounds, rtt| {
        let mut bench = Bench::new(Config {
            loop_bounds,
            ..Config::resolved()
        });
        bench.period(BASE);
        bench.period(rtt);
        bench.arc.phase()
    };
    assert_eq!(phase(LoopBounds::Inclusive, 40_002), Phase::Adaptive);
    assert_eq!(phase(LoopBounds::Inclusive, 39_998), Phase::Start);
    assert_eq!(phase(LoopBounds::HalfOpen, 39_998), Phase::Adaptive);
}

/// Without the rule for empty periods, 0/0 is case 3: the first arms the sign, each further one takes β·√pps.
#[test]
fn empty_periods_are_case_3_unless_held() {
    let mut bench = Bench::adaptive(
        Config {
            hold_when_empty: false,
            ..Config::resolved()
        },
        400.0,
    );
    bench.period(BASE);
    let before = bench.arc.pps();
    bench.end();
    assert!((bench.arc.pps() - before).abs() < 1e-9);
    bench.end();
    let expected = before - 0.5 * before.sqrt();
    assert!((bench.arc.pps() - expected).abs() < 1e-9);
}

#[test]
fn each_loss_signal_counts_its_own_kind() {
    use LossSignal::{Gap, GapOrTimeout, Timeout};
    let counts = |signal: LossSignal| {
        let kinds = [Loss::Gap, Loss::Timeout, Loss::Nack];
        kinds.map(|kind| (signal.counts(kind, false), signal.counts(kind, true)))
    };
    let (first, any, never) = ((true, false), (true, true), (false, false));
    assert_eq!(counts(Gap), [any, never, first]);
    assert_eq!(counts(GapOrTimeout), [first, first, first]);
    assert_eq!(counts(Timeout), [never, any, first]);

    let after = |signal, kind| {
        let mut config = Config::resolved();
        config.loss.signal = signal;
        let mut bench = Bench::adaptive(config, 400.0);
        bench.lose(3, kind);
        // 400 − 0.5·20 = 390, however many were lost; 400 + 20/20 = 401.
        bench.period(BASE)
    };
    assert!((after(Gap, Loss::Gap) - 390.0).abs() < 1e-9);
    assert!((after(Gap, Loss::Timeout) - 401.0).abs() < 1e-9);
    assert!((after(Timeout, Loss::Gap) - 401.0).abs() < 1e-9);
    assert!((after(GapOrTimeout, Loss::Timeout) - 390.0).abs() < 1e-9);
}

/// The first bad period arms, the second decreases; the first good one disarms, the second increases.
#[test]
fn the_congestion_sign_takes_two_periods_either_way() {
    let mut bench = Bench::adaptive(Config::resolved(), 400.0);
    bench.period(BASE);
    let start = bench.arc.pps();
    assert!((bench.period(BASE + 11_000) - start).abs() < 1e-9);
    let down = bench.period(BASE + 12_000);
    assert!((down - (start - 0.5 * start.sqrt())).abs() < 1e-9);
    assert!((bench.period(BASE + 12_000) - down).abs() < 1e-9);
    assert!((bench.period(BASE + 12_000) - (down + 20.0 / down.sqrt())).abs() < 1e-9);
}

/// Loss, then a good period: in the authors' code loss armed the sign, which the good period clears without increase.
#[test]
fn loss_arms_the_sign_only_in_the_authors_code() {
    let after = |sets_sign| {
        let mut config = Config::resolved();
        config.loss.sets_sign = sets_sign;
        let mut bench = Bench::adaptive(config, 400.0);
        // The loss that ended the start phase armed nothing.
        bench.lose(1, Loss::Gap);
        assert!((bench.period(BASE) - 390.0).abs() < 1e-9);
        bench.period(BASE)
    };
    assert!((after(false) - (390.0 + 20.0 / 390.0_f64.sqrt())).abs() < 1e-9);
    assert!((after(true) - 390.0).abs() < 1e-9);
}

/// The sign is armed; then an RTT that is low but higher than before: printed, it clears; in the code, it decreases.
#[test]
fn a_low_rtt_clears_the_sign_as_printed() {
    let after = |case1_with_sign| {
        let mut bench = Bench::adaptive(
            Config {
                case1_with_sign,
                ..Config::resolved()
            },
            400.0,
        );
        bench.period(BASE);
        bench.period(BASE + 11_000);
        bench.period(BASE + 1_000);
        let before = bench.arc.pps();
        // Falling: cleared in either.
        assert!(before > 400.0);
        bench.period(BASE + 11_000);
        bench.arc.average_rtt = Some(Duration::from_micros(BASE));
        bench.period(BASE + 1_000) - before
    };
    assert!(after(CaseOneWithSign::Clears).abs() < 1e-9);
    let decrease = after(CaseOneWithSign::Passes);
    assert!((-10.1..=-10.0).contains(&decrease), "{decrease}");
}

/// 100 packets fall by γ·√pps until the floor.
#[test]
fn pps_stays_within_its_bounds() {
    let mut bench = Bench::adaptive(Config::resolved(), 2.0);
    for _ in 0..100 {
        bench.lose(1, Loss::Gap);
        bench.end();
    }
    assert!((bench.arc.pps() - 1.0).abs() < 1e-9);
    let mut bench = Bench::new(Config {
        greatest_rate: 150.0,
        ..Config::resolved()
    });
    for _ in 0..10 {
        bench.period(BASE);
    }
    assert!((bench.arc.pps() - 150.0).abs() < 1e-9);
}

/// A live stream requests less than it may: pps neither rises nor, without congestion, falls.
#[test]
fn pps_does_not_run_away_from_a_stream_that_needs_less() {
    let mut arc = Controller::new(Instant::ZERO, Config::resolved());
    let mut pps = Vec::new();
    for step in 0..300 {
        let now = Instant::ZERO + 10 * MS * step;
        let arrival = Arrival {
            is_limiting: step < 100,
            ..reports::arrival(now, now.saturating_sub(2 * MS))
        };
        arc.on_data(now, &arrival);
        arc.handle_timeout(now + 10 * MS);
        pps.push(arc.pps());
    }
    assert!((pps[99] - 2_100.0).abs() < 1e-9 && (pps[299] - 2_100.0).abs() < 1e-9);
}

/// The late packet was counted as a gap in this period, and is here before its end. In the next period it is before
/// latest_seq(t−P), where no loop looks.
#[test]
fn a_packet_that_was_only_late_is_not_lost() {
    let late = |same_period: bool| {
        let mut bench = Bench::adaptive(Config::resolved(), 400.0);
        bench.period(BASE);
        let before = bench.arc.pps();
        let asked_at = Instant::from_nanos(1_000_000_000 + bench.now.as_nanos() + 500);
        bench.data(BASE);
        bench.lose(1, Loss::Gap);
        if !same_period {
            bench.end();
        }
        let arrival = Arrival {
            rtt: Some(Duration::from_secs(9)),
            was_lost: true,
            ..reports::arrival(bench.now, asked_at)
        };
        let arrival = Arrival {
            rtt: if same_period {
                Some(20 * MS)
            } else {
                arrival.rtt
            },
            ..arrival
        };
        bench.arc.on_data(bench.now, &arrival);
        bench.end();
        bench.arc.pps() - before
    };
    assert!(late(true) > 0.9);
    assert!(late(false) < -9.0);
}

/// Silence of hours is passed over at once, and the periods stay where they were.
#[test]
fn long_silence_costs_nothing() {
    for config in [Config::literal(), Config::resolved()] {
        let mut bench = Bench::new(config);
        bench.period(BASE);
        let later = Instant::ZERO + Duration::from_secs(100 * 3_600) + 3 * MS;
        let arrival = reports::arrival(later, later.saturating_sub(20 * MS));
        bench.arc.on_data(later, &arrival);
        assert_eq!(bench.arc.poll_timeout(), Some(later + 7 * MS));
    }
}

#[test]
fn a_controller_that_waits_for_data_needs_no_timer() {
    let mut bench = Bench::new(Config::resolved());
    assert_eq!(bench.arc.poll_timeout(), None);
    bench.data(BASE);
    assert_eq!(bench.arc.poll_timeout(), Some(Instant::ZERO + 10 * MS));
    // Early calls do nothing.
    bench.arc.handle_timeout(Instant::ZERO + 9 * MS);
    assert!((bench.arc.pps() - 100.0).abs() < 1e-9);
    bench.end();
    bench.arc.handle_timeout(bench.now);
    assert!((bench.arc.pps() - 120.0).abs() < 1e-9);
    assert_eq!(bench.arc.poll_timeout(), None);
}

/// RTT 20 ms: RTO = 20 + 4·10 = 60 ms, at least 100; at 100 pps and a factor of 2 the net is 20 Interests.
#[test]
fn the_window_is_a_net_below_the_pacing() {
    let mut bench = Bench::new(Config::resolved());
    bench.data(BASE);
    let target = bench.arc.target();
    assert_eq!((target.timeout, target.window), (Some(100 * MS), Some(20)));
    assert_eq!(Bench::new(Config::literal()).arc.target().window, None);
}
