//! The link itself.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_units::{ByteSize, Duration, Instant};

use crate::config::{Config, Outage};
use crate::fate::{Chance, Fate};
use crate::flight::{Flight, Flying};
use crate::frame::Frame;
use crate::output::{Counters, DropReason, Output};
use crate::profile::Profile;
use crate::queue::{Arrival, Departure, Discipline, Room, Verdict};

/// One direction of a link.
///
/// Hand frames to [`handle_frame`](Self::handle_frame); take from [`poll_output`](Self::poll_output) until there is
/// nothing, and call [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) says so. Early or
/// repeated calls are harmless. The same calls with the same seed give the same outputs.
///
/// Outputs wait in the link until they are taken; take them after each call, and they are no more than what was under way.
// A simulation has tens of thousands of links, and what each frame touches comes first, as it is seldom in the caches.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Link<F = Bytes> {
    now: Instant,
    /// When the last frame that left the queue is serialised.
    free_at: Instant,
    waiting: VecDeque<Waiting<F>>,
    waiting_bytes: u64,
    flight: Flight<F>,
    output: VecDeque<Output<F>>,
    chance: Option<Box<Chance>>,
    discipline: Option<Box<Discipline>>,
    room: Room,
    max_in_flight: u32,
    /// Octets that each frame takes besides its own.
    headers: u32,
    out_until: Instant,
    is_up: bool,
    /// Whether frames can come to something when they leave the queue, so that this needs a timer of its own.
    departures_matter: bool,
    outages: Box<[Outage]>,
    profile: Profile,
    counters: Counters,
    outages_begun: usize,
}

/// A frame in the queue.
#[derive(Clone, Debug)]
struct Waiting<F> {
    since: Instant,
    frame: F,
    fate: Fate,
    is_marked: bool,
}

impl Link {
    /// A link for octets like `config` says; `seed` fixes its randomness.
    pub fn new(config: Config, seed: u64) -> Self {
        Self::carrying(config, seed)
    }
}

impl<F: Frame> Link<F> {
    /// A link for frames of any kind like `config` says; `seed` fixes its randomness.
    ///
    /// A configuration that [`Config::validate`] refuses gives a link that behaves in some way, and never panics: one whose
    /// trace was not read has no rate.
    pub fn carrying(config: Config, seed: u64) -> Self {
        let discipline = Discipline::new(&config.queue, seed);
        let drops = (discipline.as_ref()).is_some_and(|it| it.drops_at_departure());
        Self {
            profile: Profile::new(&config),
            chance: Chance::new(&config, seed),
            discipline,
            room: Room::new(&config.queue),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            free_at: Instant::ZERO,
            flight: Flight::new(config.jitter.reorder),
            max_in_flight: u32::try_from(config.max_in_flight).unwrap_or(u32::MAX),
            headers: u32::try_from(config.headers.as_bytes()).unwrap_or(u32::MAX),
            departures_matter: drops || config.jitter.reorder,
            outages: config.outages.into_boxed_slice(),
            outages_begun: 0,
            out_until: Instant::ZERO,
            is_up: true,
            output: VecDeque::new(),
            counters: Counters::default(),
            now: Instant::ZERO,
        }
    }

    /// Takes a frame to send.
    pub fn handle_frame(&mut self, now: Instant, frame: F) {
        self.handle_timeout(now);
        let fate = match &mut self.chance {
            Some(chance) => chance.next(frame.octets()),
            None => Fate::default(),
        };
        match self.admit(&frame, fate) {
            Ok(is_marked) => {
                self.counters.marked += u64::from(is_marked);
                self.waiting_bytes += self.charged(&frame);
                let frame = Waiting {
                    since: self.now,
                    frame,
                    fate,
                    is_marked,
                };
                if self.is_idle() {
                    // It leaves the queue as it enters it, so nobody need write it there.
                    self.serialise(self.now, frame);
                    self.deliver(self.now);
                } else {
                    self.waiting.push_back(frame);
                    self.work_off(self.now);
                }
            }
            Err(reason) => self.drop_frame(self.now, frame, reason),
        }
    }

    /// Works off what is due by `now`. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while let Some(outage) = self.next_outage()
            && Instant::ZERO + outage.from <= self.now
        {
            let from = Instant::ZERO + outage.from;
            self.work_off(from);
            self.lose_all(from);
            self.outages_begun += 1;
            self.out_until = Instant::ZERO + outage.until;
        }
        self.work_off(self.now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let arrival = self.flight.next_at();
        let mut next = match self.waiting.front() {
            // While a frame waits, another is being serialised, and so is in flight; or all wait for an opportunity.
            Some(head) if self.departures_matter || arrival.is_none() => {
                let start = self.start(head.since);
                arrival.map_or(start, |arrival| arrival.min(start))
            }
            _ => arrival?,
        };
        if let Some(outage) = self.next_outage() {
            next = next.min(Instant::ZERO + outage.from);
        }
        Some(next)
    }

    /// Returns the next thing that became of a frame, in order of time.
    #[inline]
    pub fn poll_output(&mut self) -> Option<Output<F>> {
        self.output.pop_front()
    }

    /// Exchanges the memory in which outputs wait for `buffer`, unless something waits in one of them.
    ///
    /// A driver of many links lends them all the same, before a call and again when it took what came out: that is in the
    /// processor's caches, which memory of each link's own would seldom be.
    #[inline]
    pub fn exchange_buffer(&mut self, buffer: &mut VecDeque<Output<F>>) {
        if self.output.is_empty() && buffer.is_empty() {
            core::mem::swap(&mut self.output, buffer);
        }
    }

    /// Takes the link down, which loses what is under way, or up again. Scripted outages come on top.
    pub fn set_up(&mut self, now: Instant, is_up: bool) {
        self.handle_timeout(now);
        self.is_up = is_up;
        if !is_up {
            self.lose_all(self.now);
        }
    }

    /// Returns what the link has seen.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Frames that wait, as of the last call that brought the time.
    pub fn queue_length(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the octets that wait, headers included, as of the last call that brought the time; a frame counts as at least one.
    pub const fn queue_size(&self) -> ByteSize {
        ByteSize::bytes(self.waiting_bytes)
    }

    /// Returns when the next frame leaves the queue, which nothing else need happen at; `None` if none waits.
    pub fn poll_departure(&self) -> Option<Instant> {
        self.waiting.front().map(|head| self.start(head.since))
    }

    /// Returns how long a frame would wait that was handed in at the last call that brought the time, if the rate stays, or for a
    /// schedule until all before it are served.
    pub fn queue_delay(&self) -> Duration {
        let from = self.free_at.max(self.now);
        self.profile.end(from, self.queue_size()).since(self.now)
    }

    /// Returns when a frame that came at `since` leaves the queue, if it is its head.
    #[inline]
    fn start(&self, since: Instant) -> Instant {
        self.profile.start(self.free_at.max(since))
    }

    /// Returns whether a frame that comes now leaves the queue as it enters it.
    #[inline]
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.start(self.now) <= self.now
    }

    fn next_outage(&self) -> Option<Outage> {
        self.outages.get(self.outages_begun).copied()
    }

    /// Returns whether a frame that comes now may wait, and if so, whether it is marked.
    fn admit(&mut self, frame: &F, fate: Fate) -> Result<bool, DropReason> {
        if !self.is_up || self.now < self.out_until {
            return Err(DropReason::Down);
        }
        if fate.is_lost {
            return Err(DropReason::Loss);
        }
        if self.flight.len() >= self.max_in_flight as usize {
            return Err(DropReason::InFlightFull);
        }
        let waiting = self.waiting.len();
        let octets = self.octets(frame);
        let is_marked = match &mut self.discipline {
            Some(discipline) => discipline.on_arrival(&Arrival {
                now: self.now,
                waiting,
                serialisation: self.profile.usual_serialisation(self.now, octets),
            }),
            None => false,
        };
        let charged = self.charged(frame);
        let fits = self.room.fits(waiting, self.waiting_bytes, charged);
        match fits || self.is_idle() {
            true => Ok(is_marked),
            false => Err(DropReason::QueueFull),
        }
    }

    /// Lets everything happen that happens until `until`.
    fn work_off(&mut self, until: Instant) {
        while let Some(head) = self.waiting.front() {
            let start = self.start(head.since);
            if start > until {
                break;
            }
            let head = self.waiting.pop_front().expect("just seen");
            self.serialise(start, head);
        }
        self.deliver(until);
    }

    /// Takes a frame out of the queue at `start`.
    #[inline]
    fn serialise(&mut self, start: Instant, head: Waiting<F>) {
        let Waiting {
            since,
            mut frame,
            fate,
            mut is_marked,
        } = head;
        let octets = self.octets(&frame);
        self.waiting_bytes -= self.charged(&frame);
        if let Some(discipline) = &mut self.discipline {
            let verdict = discipline.on_departure(&Departure {
                now: start,
                since,
                octets,
                bytes_left: self.waiting_bytes,
                waiting: self.waiting.len(),
            });
            match verdict {
                Verdict::Pass => {}
                Verdict::Mark => {
                    self.counters.marked += 1;
                    is_marked = true;
                }
                Verdict::Drop => {
                    // What arrived before comes first.
                    self.deliver(start);
                    self.drop_frame(start, frame, DropReason::ActiveQueue);
                    return;
                }
            }
        }
        self.free_at = self.profile.serialise(start, octets);
        if let Some(bit) = fate.flipped {
            frame.flip_bit(bit as usize);
        }
        self.flight.push(Flying {
            at: self.free_at + self.profile.delay(self.free_at) + fate.addition,
            frame,
            queued_for: start.since(since),
            is_marked,
            is_damaged: fate.flipped.is_some(),
            has_copy: fate.has_copy,
        });
    }

    /// Hands out what arrives until `until`: mostly nothing.
    #[inline]
    fn deliver(&mut self, until: Instant) {
        while let Some(flying) = self.flight.pop_until(until) {
            self.arrive(flying);
        }
    }

    /// Hands out a frame, twice if it was duplicated.
    fn arrive(&mut self, flying: Flying<F>) {
        let size = ByteSize::bytes(self.octets(&flying.frame) as u64);
        let queued = u64::try_from(flying.queued_for.as_nanos()).unwrap_or(u64::MAX);
        self.counters.delivered += 1;
        self.counters.delivered_size += size;
        self.counters.queued_nanos = self.counters.queued_nanos.saturating_add(queued);
        self.counters.corrupted += u64::from(flying.is_damaged);
        let copy = flying.has_copy.then(|| flying.frame.clone());
        let delivered = |frame| Output::Delivered {
            at: flying.at,
            frame,
            queued_for: flying.queued_for,
            congestion_marked: flying.is_marked,
        };
        self.output.push_back(delivered(flying.frame));
        if let Some(copy) = copy {
            self.counters.duplicated += 1;
            self.counters.delivered += 1;
            self.counters.delivered_size += size;
            self.output.push_back(delivered(copy));
        }
    }

    /// Loses everything under way at `at`, the oldest first.
    fn lose_all(&mut self, at: Instant) {
        while let Some(flying) = self.flight.pop() {
            self.drop_frame(at, flying.frame, DropReason::Down);
        }
        while let Some(waiting) = self.waiting.pop_front() {
            self.drop_frame(at, waiting.frame, DropReason::Down);
        }
        self.waiting_bytes = 0;
        self.free_at = self.free_at.min(at);
        self.flight.forget_order();
        self.profile.rewind();
        if let Some(discipline) = &mut self.discipline {
            discipline.on_loss_of_all(at);
        }
    }

    /// Returns what a frame takes on the link.
    #[inline]
    fn octets(&self, frame: &F) -> usize {
        frame.octets().saturating_add(self.headers as usize)
    }

    /// Returns what a frame takes of a queue's bytes: without its one at least, empty frames would have no bound.
    #[inline]
    fn charged(&self, frame: &F) -> u64 {
        (self.octets(frame) as u64).max(1)
    }

    fn drop_frame(&mut self, at: Instant, frame: F, reason: DropReason) {
        self.counters.count_drop(reason);
        self.output.push_back(Output::Dropped { at, frame, reason });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a driver that lends memory would lose what it did not take yet.
    #[test]
    fn memory_for_outputs_is_exchanged_only_while_nothing_waits_in_it() {
        let mut link = Link::new(Config::default(), 1);
        let mut buffer = VecDeque::with_capacity(16);
        link.exchange_buffer(&mut buffer);
        assert_eq!(buffer.capacity(), 0);

        link.handle_frame(Instant::ZERO, Bytes::from_static(b"frame"));
        link.handle_timeout(Instant::ZERO + Duration::from_secs(1));
        link.exchange_buffer(&mut buffer);
        assert_eq!(buffer.len(), 0);
        let output = link.poll_output();
        assert!(matches!(output, Some(Output::Delivered { .. })));

        link.exchange_buffer(&mut buffer);
        assert!(buffer.capacity() >= 16);
        buffer.extend(output);
        link.exchange_buffer(&mut buffer);
        assert!(buffer.len() == 1 && link.poll_output().is_none());
    }
}
