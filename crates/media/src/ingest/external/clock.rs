//! When what comes from outside was captured, and when it can be presented evenly: as far as arrivals tell.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;

use namecast_units::{Duration, Timestamp};

use super::demuxer::Packet;
use crate::clock;

/// How far back the least delay of a live source is looked for: a source whose clock is slower or faster is followed this late.
const WINDOW: Duration = Duration::from_secs(2);
/// The same where pictures come out of order, and with that in bursts.
const REORDERED_WINDOW: Duration = Duration::from_secs(10);
/// A source that was held up by more than this begins anew, in microseconds.
const MAX_LAG: i64 = 1_000_000;
/// Streams whose delays differ by more than this go by clocks of their own, in microseconds.
const MAX_APART: u64 = 1_000_000;
/// A file that falls behind by more than this has a new beginning of time, rather than a growing delay.
const MAX_BEHIND: Duration = Duration::from_secs(1);
/// Longest sleep after which it is looked whether anybody still waits.
const MAX_SLEEP: Duration = Duration::from_millis(100);
/// A change of the least delay up to this is spread over time, so that pictures stay even, in microseconds: encoders that fill packets
/// before they send them vary by a frame or two.
const MAX_SPREAD: i64 = 100_000;
/// Share of the time that passes in which such a change proceeds.
const SPREAD_OVER: u64 = 250;
/// How long a delay must be less by more than that before it is followed, in microseconds: the last pictures of an encoder that is
/// stopped come at once. A delay that is less by more than [`MAX_LAG`] is followed at once: the source counts from another time.
const SETTLED: u64 = 1_000_000;
/// Stands for a time that is not known.
const UNKNOWN: i64 = i64::MIN;

/// The wall clock at a source's time zero, in microseconds; shared by whoever needs times of what left an encoder.
#[derive(Debug)]
pub(in super::super) struct Origin {
    captured: AtomicI64,
    presented: AtomicI64,
}

impl Default for Origin {
    fn default() -> Self {
        Self {
            captured: AtomicI64::new(0),
            presented: AtomicI64::new(UNKNOWN),
        }
    }
}

impl Origin {
    /// Returns when what is presented at `pts` microseconds of the source was captured.
    pub(super) fn at(&self, pts: u64) -> Timestamp {
        let micros = pts.saturating_add_signed(self.captured.load(Ordering::Relaxed));
        Timestamp::from_micros(micros)
    }

    /// Returns when what the source presents at `pts` microseconds is presented, if pictures come out of order.
    fn presented_at(&self, pts: u64) -> Option<Timestamp> {
        let ahead = self.presented.load(Ordering::Relaxed);
        (ahead != UNKNOWN).then(|| Timestamp::from_micros(pts.saturating_add_signed(ahead)))
    }

    /// Returns the times of a frame that is presented at `pts` microseconds of the source, was captured at `captured_at` and is handed
    /// over at `at`: when it was captured or decoded, and its composition offset. Where pictures come out of order, all are decoded
    /// when they are handed over, or when they are to be presented, if that is over.
    pub(in super::super) fn timed(
        &self,
        captured_at: Timestamp,
        pts: u64,
        at: Timestamp,
    ) -> (Timestamp, Duration) {
        let Some(presented_at) = self.presented_at(pts) else {
            return (captured_at, Duration::ZERO);
        };
        let decoded_at = at.min(presented_at);
        (decoded_at, presented_at.since(decoded_at))
    }

    fn set(&self, captured: i64, presented: Option<i64>) {
        self.captured.store(captured, Ordering::Relaxed);
        self.presented
            .store(presented.unwrap_or(UNKNOWN), Ordering::Relaxed);
    }
}

/// The least of the values of the last seconds.
#[derive(Debug, Default)]
struct Least {
    /// Times with values, growing both ways: the first is the least.
    values: VecDeque<(u64, i64)>,
}

impl Least {
    fn push(&mut self, at: u64, value: i64, window: Duration) {
        while self.values.back().is_some_and(|&(_, last)| last >= value) {
            self.values.pop_back();
        }
        self.values.push_back((at, value));
        let window = u64::try_from(window.as_micros()).unwrap_or(u64::MAX);
        while (self.values.front()).is_some_and(|&(then, _)| then.saturating_add(window) < at) {
            self.values.pop_front();
        }
    }

    fn get(&self) -> Option<i64> {
        self.values.front().map(|&(_, value)| value)
    }
}

/// Estimate, from the arrivals of one stream, of the offset of our clock from the source's.
///
/// A packet's delay on the way here varies; the least of the last seconds tells where the source's clock is, so that packets that
/// were held up keep their distances.
#[derive(Debug, Default)]
struct StreamClock {
    /// By decoding times, which go on evenly.
    decoded: Least,
    /// By presentation times.
    presented: Least,
    order: Reordering,
    /// Packets so far.
    count: u32,
    /// Whether packets come at their decoding times.
    is_paced: bool,
    /// Packets to come whose arrivals are known already.
    known: u32,
}

/// Packets after which arrivals have shown in which bursts pictures come.
const MIN_BURSTS: u32 = 16;

impl StreamClock {
    fn on_packet(&mut self, packet: &Packet, arrived: u64) {
        if let Some(known) = self.known.checked_sub(1) {
            self.known = known;
            return;
        }
        self.order.on_packet(packet);
        let window = match self.order.delay {
            0 => WINDOW,
            _ => REORDERED_WINDOW,
        };
        let ahead = difference(arrived, packet.dts);
        if self.decoded.get().is_some_and(|it| ahead - it > MAX_LAG) {
            (self.decoded, self.presented, self.count) = Default::default();
        }
        self.decoded.push(arrived, ahead, window);
        let ahead = difference(arrived, packet.pts);
        self.presented.push(arrived, ahead, window);
        self.count = self.count.saturating_add(1);
    }

    /// Returns by how much our clock is ahead of the source's presentation times when pictures can be presented evenly, if they come
    /// out of order: each has come by then, whether they come at their decoding times, or all together once the last of them can be
    /// encoded.
    fn latest(&self) -> Option<i64> {
        let Reordering {
            delay, min_offset, ..
        } = self.order;
        if delay == 0 {
            return None;
        }
        let by_decoding = self.decoded.get()? - signed(min_offset?);
        let in_bursts = self.presented.get()? + signed(delay);
        Some(match self.is_paced || self.count < MIN_BURSTS {
            true => by_decoding,
            false => by_decoding.max(in_bursts),
        })
    }
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}

/// Longest distance between the orders of decoding and presentation, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Reordering {
    latest_pts: u64,
    /// The most by which a picture is presented before one that is decoded before it.
    delay: u64,
    /// The least by which a picture is presented after it is decoded.
    min_offset: Option<u64>,
}

/// Sixteen pictures at 2 a second are the most that is reordered, in microseconds.
const MAX_REORDERING: u64 = 8_000_000;

impl Reordering {
    fn on_packet(&mut self, packet: &Packet) {
        self.latest_pts = self.latest_pts.max(packet.pts);
        let delay = self.latest_pts - packet.pts;
        // A longer distance is a jump.
        if delay <= MAX_REORDERING {
            self.delay = self.delay.max(delay);
        } else {
            self.latest_pts = packet.pts;
        }
        let offset = packet.pts.saturating_sub(packet.dts);
        let known = self.min_offset.unwrap_or(offset);
        self.min_offset = Some(known.min(offset));
    }
}

/// Follows the clocks of an input's pictures and sound.
#[derive(Debug, Default)]
pub(super) struct CaptureClock {
    pictures: StreamClock,
    sound: StreamClock,
    rate: ArrivalRate,
    captured: Even,
    presented: Even,
}

impl CaptureClock {
    /// Learns the order of pictures from the first of them, before they are due: they will come at their decoding times.
    pub(super) fn expect<'a>(&mut self, pictures: impl Iterator<Item = &'a Packet>) {
        self.pictures.is_paced = true;
        pictures.for_each(|packet| self.pictures.order.on_packet(packet));
        self.pictures.order.latest_pts = 0;
    }

    /// Learns from the first packets of pictures (`true`) and sound, which came while the input was opened, before they are taken: the
    /// earliest were held up the longest. The last of the three says whether a packet will be taken.
    pub(super) fn learn<'a>(&mut self, first: impl Iterator<Item = (bool, &'a Packet, bool)>) {
        (self.pictures.known, self.sound.known) = (0, 0);
        let (mut pictures, mut sound) = (0, 0);
        for (is_video, packet, is_taken) in first {
            let arrived = packet.arrived_at.as_micros();
            self.of(is_video).on_packet(packet, arrived);
            let taken = if is_video { &mut pictures } else { &mut sound };
            *taken += u32::from(is_taken);
        }
        (self.pictures.known, self.sound.known) = (pictures, sound);
    }

    fn of(&mut self, is_video: bool) -> &mut StreamClock {
        match is_video {
            true => &mut self.pictures,
            false => &mut self.sound,
        }
    }

    /// Returns when a picture by the clock of `origin` is decoded at the latest, which is handed over at `at`: no picture that is
    /// decoded later is presented before that.
    pub(super) fn decoded_by(&self, packet: &Packet, origin: &Origin, at: Timestamp) -> Timestamp {
        let earliest = packet.dts + self.pictures.order.min_offset.unwrap_or(0);
        origin.presented_at(earliest).map_or(at, |it| at.min(it))
    }

    /// Makes times follow arrivals, for raw pictures: theirs are made up by a rate that the source may not keep.
    pub(super) fn follow_rate(&mut self, packet: &mut Packet) {
        self.rate.correct(packet);
    }

    /// Takes a packet that came at `arrived`, and sets `origin` by it.
    ///
    /// The source's pictures and sound share one clock, unless their delays are so far apart that it must be two. Those of a file
    /// always share one: pictures of which one is shown a second after it is decoded seem as far apart from the sound.
    pub(super) fn on_packet(
        &mut self,
        is_video: bool,
        packet: &Packet,
        arrived: Timestamp,
        origin: &Origin,
    ) {
        self.of(is_video).on_packet(packet, arrived.as_micros());
        let Some(least) = self.of(is_video).presented.get() else {
            return;
        };
        let other = self.of(!is_video).presented.get();
        let is_file = self.pictures.is_paced;
        let together = other.filter(|other| is_file || other.abs_diff(least) <= MAX_APART);
        let latest = self.pictures.latest();
        let latest = latest.filter(|_| is_video || together.is_some());
        let captured = together.map_or(least, |other| other.min(least));
        let is_apart = other.is_some() && together.is_none();
        if is_file || is_apart {
            return origin.set(captured, latest);
        }
        let now = arrived.as_micros();
        let captured = self.captured.approach(captured, now);
        let presented = latest.map(|latest| self.presented.approach(latest, now));
        origin.set(captured, presented);
    }
}

/// Offset of our clock from the source's, which changes evenly.
#[derive(Debug, Default)]
struct Even {
    /// The last offset, and our time then.
    last: Option<(i64, u64)>,
    /// Since when a much smaller one has been wanted.
    smaller_since: Option<u64>,
}

impl Even {
    /// Returns the offset at `now` on the way to `wanted`.
    fn approach(&mut self, wanted: i64, now: u64) -> i64 {
        let offset = self.last.map_or(wanted, |(last, at)| {
            let by = wanted - last;
            if by < -MAX_SPREAD {
                self.smaller_since.get_or_insert(now);
            } else {
                self.smaller_since = None;
            }
            let settled = |since| now.saturating_sub(since) > SETTLED;
            let is_settled = self.smaller_since.is_some_and(settled);
            let step = signed(now.saturating_sub(at) / SPREAD_OVER);
            match is_settled || !(-MAX_LAG..=MAX_SPREAD).contains(&by) {
                true => wanted,
                false => last + by.clamp(-step, step),
            }
        });
        self.last = Some((offset, now));
        offset
    }
}

/// Packets over which a rate is measured, and how long they take at least.
const RATED: usize = 24;
const MIN_RATED: usize = 6;
const MIN_RATED_TIME: u64 = 500_000;
/// A rate that is further off than this is not kept.
const MAX_RATE_ERROR: f64 = 0.1;

/// Corrects times that count frames at a rate the source does not keep.
#[derive(Debug, Default)]
struct ArrivalRate {
    /// Arrival and stated decoding time of the last packets.
    packets: VecDeque<(u64, u64)>,
    /// Decoding time of the last packet, stated and corrected.
    last: Option<(u64, u64)>,
}

impl ArrivalRate {
    fn correct(&mut self, packet: &mut Packet) {
        let (arrived, stated) = (packet.arrived_at.as_micros(), packet.dts);
        self.packets.push_back((arrived, stated));
        if self.packets.len() > RATED {
            self.packets.pop_front();
        }
        let scale = |time: u64| (time as f64 * self.scale()) as u64;
        let dts = self.last.map_or(stated, |(before, corrected)| {
            corrected + scale(stated.saturating_sub(before))
        });
        packet.pts = dts + scale(packet.pts.saturating_sub(stated));
        packet.duration = scale(packet.duration);
        packet.dts = dts;
        self.last = Some((stated, dts));
    }

    /// Returns by how much longer packets take than they state.
    fn scale(&self) -> f64 {
        let ends = self.packets.front().zip(self.packets.back());
        let Some((&(came, stated), &(last_came, last_stated))) = ends else {
            return 1.0;
        };
        let took = last_came.saturating_sub(came);
        let should = last_stated.saturating_sub(stated);
        if self.packets.len() < MIN_RATED || took < MIN_RATED_TIME || should == 0 {
            return 1.0;
        }
        let scale = took as f64 / should as f64;
        match (scale - 1.0).abs() > MAX_RATE_ERROR {
            true => scale,
            false => 1.0,
        }
    }
}

fn difference(a: u64, b: u64) -> i64 {
    i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(i64::MAX)
}

/// Makes all tracks of a file play by one clock.
#[derive(Debug, Default)]
pub(in super::super) struct Playback {
    /// Wall-clock time of the input's beginning, in microseconds; zero: not begun.
    began: AtomicU64,
}

impl Playback {
    /// Waits until `offset` from the beginning is due, or `stop` is set. Begins at the first call. Returns when it is due.
    pub(in super::super) fn wait(&self, offset: Duration, stop: &AtomicBool) -> Timestamp {
        let now = clock::wall().as_micros();
        let offset = u64::try_from(offset.as_micros()).unwrap_or(u64::MAX);
        let fresh = now.saturating_sub(offset);
        let began =
            match self
                .began
                .compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => fresh,
                Err(began) => began,
            };
        let due = began.saturating_add(offset);
        if Duration::from_micros(now.saturating_sub(due)) > MAX_BEHIND {
            self.began.store(fresh, Ordering::Relaxed);
            return Timestamp::from_micros(now);
        }
        while let Some(left) = due.checked_sub(clock::wall().as_micros())
            && left > 0
            && !stop.load(Ordering::Relaxed)
        {
            thread::sleep(Duration::from_micros(left).min(MAX_SLEEP));
        }
        Timestamp::from_micros(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: u64 = 1_790_000_000_000_000;

    /// Decoded and presented at these milliseconds of the source, arrived at those.
    fn packet(dts: u64, pts: u64, arrived: u64) -> Packet {
        Packet {
            dts: dts * 1_000,
            pts: pts * 1_000,
            duration: 40_000,
            arrived_at: Timestamp::from_micros(WALL + arrived * 1_000),
            ..Packet::default()
        }
    }

    /// When packets were captured, and when they are presented after that, in milliseconds from [`WALL`].
    fn captured(clock: &mut CaptureClock, is_video: bool, packet: &Packet) -> (i64, Option<u64>) {
        let origin = Origin::default();
        clock.on_packet(is_video, packet, packet.arrived_at, &origin);
        let at = origin.at(packet.pts);
        assert!(difference(at.as_micros(), packet.arrived_at.as_micros()) <= MAX_SPREAD);
        let presented = origin.presented_at(packet.pts);
        let presented = presented.map(|it| it.since(at).as_micros() as u64 / 1_000);
        (difference(at.as_micros(), WALL) / 1_000, presented)
    }

    /// Held up by 30, 0, 50 and 10 ms: they keep their distances of 40 ms, but for what is on its way to the least delay.
    #[test]
    fn packets_that_were_held_up_keep_their_distances() {
        let mut clock = CaptureClock::default();
        let times = [(0, 30), (40, 40), (80, 130), (120, 130)].map(|(media, arrived)| {
            captured(
                &mut clock,
                true,
                &packet(7_000 + media, 7_000 + media, arrived),
            )
        });
        assert_eq!(times, [(30, None), (69, None), (109, None), (149, None)]);
    }

    /// Decoding and presentation times of I0 P4 B2 b1 b3, in frames; P4 is decoded before three that are shown before it.
    const ORDER: [(u64, u64); 5] = [(0, 2), (1, 6), (2, 4), (3, 3), (4, 5)];

    /// I0 comes at once, the others of a group when P4 is captured, at 160 ms: b1 can be presented 120 ms after its capture, so all
    /// are, once it is known in which bursts they come. Sound by the same clock waits as long.
    #[test]
    fn pictures_that_come_in_bursts_are_presented_evenly() {
        let mut clock = CaptureClock::default();
        let group = |clock: &mut CaptureClock, number: u64| {
            ORDER.map(|(dts, pts)| {
                let arrived = number * 200 + if dts == 0 { 0 } else { 160 };
                let [dts, pts] = [dts, pts].map(|it| number * 200 + it * 40);
                let (at, presented) = captured(clock, true, &packet(dts, pts, arrived));
                (at - number as i64 * 200, presented)
            })
        };
        (0..4).for_each(|number| {
            group(&mut clock, number);
        });
        let fifth = group(&mut clock, 4);
        assert_eq!(fifth.map(|(at, _)| at), [0, 160, 80, 40, 120]);
        assert!(
            fifth.iter().all(|&(_, after)| after == Some(120)),
            "{fifth:?}"
        );
        let sound = captured(&mut clock, false, &packet(1_080, 1_080, 1_000));
        assert_eq!(sound, (1_000, Some(120)));
    }

    /// Pictures that come at their decoding times are presented at their presentation times, from the first on.
    #[test]
    fn pictures_that_come_at_their_decoding_times_are_presented_evenly() {
        let mut clock = CaptureClock::default();
        let packets = ORDER.map(|(dts, pts)| packet(dts * 40, pts * 40, dts * 40 + 7));
        clock.expect(packets.iter());
        for packet in &packets {
            let origin = Origin::default();
            clock.on_packet(true, packet, packet.arrived_at, &origin);
            let at = origin.presented_at(packet.pts).unwrap();
            assert_eq!(at.as_micros(), WALL + packet.pts + 7_000);
            let handed_over = clock.decoded_by(packet, &origin, packet.arrived_at);
            let (decoded, offset) = origin.timed(at, packet.pts, handed_over);
            assert_eq!((decoded, decoded + offset), (packet.arrived_at, at));
            // Taken a second late, pictures are still decoded in order, each before it is presented.
            let late = packet.arrived_at + Duration::from_secs(1);
            let handed_over = clock.decoded_by(packet, &origin, late);
            let (decoded, offset) = origin.timed(at, packet.pts, handed_over);
            assert_eq!((decoded, decoded + offset), (packet.arrived_at, at));
        }
    }

    /// While the input is opened, 1.3 s of pictures and sound are held back, and come at once: they are as far apart as they
    /// were captured, before the first of them.
    #[test]
    fn pictures_that_were_held_back_by_the_opening_are_even() {
        for order in [ORDER, [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]] {
            let packets: Vec<_> = (0..45)
                .map(|number: u64| {
                    let (dts, pts) = order[number as usize % 5];
                    let group = number / 5 * 5;
                    let (dts, pts) = ((group + dts) * 40, (group + pts) * 40);
                    packet(dts, pts, dts.max(1_300) + 7)
                })
                .collect();
            let mut clock = CaptureClock::default();
            let both = packets.iter().enumerate();
            let both = both.flat_map(|(at, it)| [(true, it, at >= 5), (false, it, at >= 5)]);
            clock.learn(both);
            let (mut decoded_before, pictures, sound) = (0, Origin::default(), Origin::default());
            for packet in &packets[5..] {
                clock.on_packet(true, packet, packet.arrived_at, &pictures);
                clock.on_packet(false, packet, packet.arrived_at, &sound);
                let handed_over = clock.decoded_by(packet, &pictures, packet.arrived_at);
                let captured = pictures.at(packet.pts);
                let (decoded, offset) = pictures.timed(captured, packet.pts, handed_over);
                let presented = (decoded + offset).as_micros() - WALL;
                assert_eq!(presented, packet.pts + 7_000, "{order:?} {packet:?}");
                assert!(decoded.as_micros() >= decoded_before);
                decoded_before = decoded.as_micros();
            }
            assert_eq!((clock.pictures.known, clock.sound.known), (0, 0));
        }
    }

    /// A file of one picture a second, each shown one to three seconds after it is decoded: sound is presented with them.
    #[test]
    fn sound_of_a_file_keeps_its_distance_to_pictures_that_wait_long() {
        let mut clock = CaptureClock::default();
        let packets = ORDER.map(|(dts, pts)| packet(dts * 1_000, (pts + 1) * 1_000, dts * 1_000));
        clock.expect(packets.iter());
        for picture in &packets {
            let origins = [Origin::default(), Origin::default()];
            let sound = packet(
                picture.dts / 1_000,
                picture.dts / 1_000,
                picture.dts / 1_000,
            );
            for (is_video, packet) in [(true, picture), (false, &sound)] {
                let origin = &origins[usize::from(!is_video)];
                clock.on_packet(is_video, packet, packet.arrived_at, origin);
            }
            let [pictures, sound] = origins.map(|origin| origin.presented_at(10_000_000));
            assert!(sound.is_some() && sound == pictures, "{sound:?}");
        }
    }

    /// Sound counts from ten seconds later than the pictures that it belongs to: arrivals tell, for each.
    #[test]
    fn streams_with_clocks_of_their_own_do_not_disturb_each_other() {
        let mut clock = CaptureClock::default();
        for number in 0..50 {
            let at = number * 40;
            let picture = captured(&mut clock, true, &packet(at, at, at));
            let sound = captured(&mut clock, false, &packet(at + 10_000, at + 10_000, at + 5));
            assert_eq!((picture.0, sound.0), (at as i64, at as i64 + 5));
        }
    }

    /// One in a thousand slow, as from a clock that is 1000 ppm slow: after 100 s the delay seen is that of two seconds, 2 ms, not 100.
    #[test]
    fn a_source_whose_clock_is_slow_is_followed() {
        let (mut clock, origin) = (CaptureClock::default(), Origin::default());
        for number in 0..2_500_u64 {
            let packet = packet(number * 40, number * 40, 0);
            let arrived = Timestamp::from_micros(WALL + number * 40_040);
            clock.on_packet(true, &packet, arrived, &origin);
            let behind = difference(arrived.as_micros(), origin.at(packet.pts).as_micros());
            assert!((0..=2_100).contains(&behind), "{number}: {behind}");
        }
    }

    /// When pictures were captured, 40 ms apart by their own times, that arrive at these times; all in microseconds from [`WALL`].
    fn captured_by_arrival(arrivals: impl Iterator<Item = u64>) -> Vec<u64> {
        let (mut clock, origin) = (CaptureClock::default(), Origin::default());
        let arrivals = (0..).zip(arrivals);
        let times = arrivals.map(|(number, arrived)| {
            let packet = packet(number * 40, number * 40, 0);
            let arrived = Timestamp::from_micros(WALL + arrived);
            clock.on_packet(true, &packet, arrived, &origin);
            origin.at(packet.pts).as_micros() - WALL
        });
        times.collect()
    }

    /// The delay falls by 40 ms for good: ten seconds later pictures are captured that much earlier, none more than a few microseconds
    /// closer to the one before.
    #[test]
    fn a_small_change_of_the_delay_is_spread() {
        let held_up = |number| if number < 20 { 40_000 } else { 0 };
        let times = captured_by_arrival((0..300).map(|it| it * 40_000 + held_up(it)));
        assert_eq!(times[0], 40_000);
        assert_eq!(times[299], 299 * 40_000);
        let mut gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.all(|gap| (39_840..=40_000).contains(&gap)));
    }

    /// The last twenty pictures come at once, as those of an encoder that is stopped: they keep their distances.
    #[test]
    fn pictures_that_come_early_at_the_end_are_even() {
        let times = captured_by_arrival((0..120).map(|it: u64| it.min(100) * 40_000));
        assert!(times.into_iter().eq((0..120).map(|it| it * 40_000)));
    }

    /// A path becomes 300 ms shorter: pictures follow a second later.
    #[test]
    fn a_much_smaller_delay_is_followed_after_a_second() {
        let delay = |number| if number < 100 { 300_000 } else { 0 };
        let times = captured_by_arrival((0..150).map(|it| it * 40_000 + delay(it)));
        let times = (0..).zip(times);
        let behind: Vec<_> = times.map(|(number, at)| at - number * 40_000).collect();
        assert_eq!(behind[..100], [300_000; 100]);
        assert!(behind[124] > 290_000, "{}", behind[124]);
        assert_eq!(behind[126..], [0; 24]);
    }

    /// A source whose times jump two seconds ahead is followed at once: no picture is captured that long after its arrival.
    #[test]
    fn times_that_jump_ahead_are_followed_at_once() {
        let mut clock = CaptureClock::default();
        let mut at =
            |media, arrived: u64| captured(&mut clock, true, &packet(media, media, arrived)).0;
        assert_eq!(at(9_000, 0), 0);
        assert_eq!(at(11_040, 40), 40);
        assert_eq!(at(11_080, 80), 80);
    }

    /// A stall of two seconds: captured when it arrives.
    #[test]
    fn a_source_that_was_held_up_begins_anew() {
        let mut clock = CaptureClock::default();
        let mut at =
            |media, arrived: u64| captured(&mut clock, true, &packet(media, media, arrived)).0;
        assert_eq!(at(9_000, 0), 0);
        assert_eq!(at(9_040, 2_040), 2_040);
        assert_eq!(at(9_080, 2_080), 2_080);
    }

    /// 25 frames a second are stated, 8 come: after the first second, which is measured, they are 125 ms apart.
    #[test]
    fn raw_pictures_that_come_slower_than_stated_are_even() {
        let mut clock = CaptureClock::default();
        let times = (0..40_u64).map(|number| {
            let mut packet = packet(number * 40, number * 40, number * 125);
            clock.follow_rate(&mut packet);
            captured(&mut clock, true, &packet).0
        });
        let times: Vec<_> = times.collect();
        let gaps: Vec<_> = times[30..]
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .collect();
        assert!(gaps.iter().all(|gap| (124..=126).contains(gap)), "{gaps:?}");
        assert!(times.windows(2).all(|pair| pair[1] > pair[0]), "{times:?}");
        let exact = (0..40_u64).map(|number| {
            let mut packet = packet(number * 40, number * 40, number * 41);
            clock.rate.correct(&mut packet);
            packet.dts
        });
        assert!(exact.skip(30).is_sorted());
    }
}
