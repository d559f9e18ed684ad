//! The event loop.

use bytes::Bytes;
use namecast_apps::Output;
use namecast_forward::{FaceId, Transmit};
use namecast_netem::{self as netem, DropReason};
use namecast_packet::LpPacket;
use namecast_units::{Duration, Instant};

use super::livelock::{Called, Calls, MAX_CALLS_AT_INSTANT};
use super::{Attachment, Network, Part, Work};
use crate::topology::NodeIndex;
use crate::trace::{Event, EventKind, Sampler, Snapshot};

/// Number of the first face that a forwarder gives.
const FIRST_FACE: u64 = 256;

impl Network {
    /// Lets time pass until `end`, with all that happens up to and at that instant.
    pub fn run_until(&mut self, end: Instant) {
        while let Some((part, at)) = self.events.pop(end) {
            self.now = self.now.max(at);
            self.handle(part);
            self.work_off();
        }
        self.now = self.now.max(end);
    }

    /// Lets time pass until `end`, and shows each sampler every node at the end of each of its periods, counted from zero.
    ///
    /// A sampler with a period of zero is shown nothing.
    pub fn run_sampled(&mut self, end: Instant, samplers: &mut [&mut dyn Sampler]) {
        loop {
            let now = self.now;
            let next = |sampler: &&mut dyn Sampler| next_multiple(now, sampler.period());
            let due = samplers.iter().filter_map(next).min();
            let Some(due) = due.filter(|&due| due <= end) else {
                return self.run_until(end);
            };
            self.run_until(due);
            for sampler in &mut *samplers {
                if next_multiple(now, sampler.period()) == Some(due) {
                    for node in 0..self.nodes() {
                        let name = self.node_name(node);
                        sampler.sample(&Snapshot::of(due, node, name, self.node(node)));
                    }
                }
            }
        }
    }

    /// Lets `span` pass.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// When something happens next, if ever.
    pub fn next_event(&mut self) -> Option<Instant> {
        self.events.next()
    }

    /// Deadlines in the event queue.
    pub fn pending_events(&self) -> usize {
        self.events.len()
    }

    fn handle(&mut self, part: Part) {
        match part {
            Part::Direction(index) => {
                self.count(Called::Direction(index as usize), Calls::TIMEOUT);
                self.at_direction(index as usize, netem::Link::handle_timeout);
            }
            Part::Node(index) => {
                let index = index as usize;
                self.count(Called::Node(index), Calls::TIMEOUT);
                let node = &mut self.nodes[index];
                if node.is_up {
                    let now = node.clock.monotonic(self.now);
                    node.node.handle_timeout(now);
                    self.drain_node(index);
                }
            }
            Part::Application(index) => {
                let index = index as usize;
                self.count(Called::Application(index), Calls::TIMEOUT);
                let running = &mut self.applications[index];
                let node = &self.nodes[running.node];
                if node.is_up {
                    let now = node.clock.read(self.now);
                    running.application.handle_timeout(now);
                    self.drain_application(index);
                }
            }
            Part::Action(index) => {
                if let Some(action) = self.actions[index as usize].take() {
                    action(self);
                }
            }
        }
    }

    /// Hands over frames until nobody has any.
    pub(super) fn work_off(&mut self) {
        while let Some(work) = self.work.pop_front() {
            match work {
                Work::ToNode(index, face, frame) => self.deliver(index, face, frame),
                Work::ToApplication(index, frame) => {
                    self.count(Called::Application(index), Calls::FRAME);
                    let running = &mut self.applications[index];
                    let now = self.nodes[running.node].clock.read(self.now);
                    running.application.handle_frame(now, frame);
                    self.drain_application(index);
                }
            }
        }
    }

    /// Counts a call at this instant.
    ///
    /// # Panics
    /// If there have been so many that time would never pass.
    #[inline]
    fn count(&mut self, called: Called, call: Calls) {
        if let Some(calls) = self.tally.count(self.now, called, call) {
            self.check_calls(called, calls);
        }
    }

    #[cold]
    fn check_calls(&self, called: Called, calls: Calls) {
        let (who, faces) = match called {
            Called::Node(index) => {
                let faces = self.nodes[index].attachments.len();
                (format!("node '{}'", self.node_name(index)), faces)
            }
            Called::Application(index) => {
                let node = self.node_name(self.applications[index].node);
                (format!("application {index} of node '{node}'"), 1)
            }
            Called::Direction(index) => {
                let from = self.node_name(self.near_end(index).0);
                let to = self.node_name(self.directions[index].to.0);
                (format!("the link from '{from}' to '{to}'"), 1)
            }
        };
        let most = faces.max(1) as u64 * u64::from(MAX_CALLS_AT_INSTANT);
        let Calls { timeouts, frames } = calls;
        assert!(
            u64::from(calls.total()) <= most,
            "time stands still at {}: {who} had {timeouts} timeouts and {frames} frames at this instant at least, expected at most {most} together",
            self.now
        );
    }

    fn deliver(&mut self, index: NodeIndex, face: FaceId, frame: Bytes) {
        self.count(Called::Node(index), Calls::FRAME);
        if !self.nodes[index].is_up {
            return self.record(index, face, EventKind::Dropped(&frame, DropReason::Down));
        }
        self.record(index, face, EventKind::Received(&frame));
        let node = &mut self.nodes[index];
        let now = node.clock.monotonic(self.now);
        node.node.handle_frame(now, face, frame);
        self.drain_node(index);
    }

    /// Sends what a forwarder has for its faces, and sets its deadline.
    pub(super) fn drain_node(&mut self, index: NodeIndex) {
        while let Some(Transmit { face, frame }) = self.nodes[index].node.poll_output() {
            self.record(index, face, EventKind::Sent(&frame));
            let place = usize::try_from(face.number() - FIRST_FACE).expect("a face of ours");
            match self.nodes[index].attachments[place] {
                Attachment::Direction(direction) => {
                    let direction = direction as usize;
                    self.at_direction(direction, |link, now| link.handle_frame(now, frame));
                }
                Attachment::Application(application) => {
                    let application = application as usize;
                    self.work.push_back(Work::ToApplication(application, frame));
                }
            }
        }
        if !self.socket_buffers.is_empty() {
            for place in 0..self.nodes[index].attachments.len() {
                if let Attachment::Direction(direction) = self.nodes[index].attachments[place] {
                    self.fill_direction(direction as usize);
                }
            }
        }
        let node = &self.nodes[index];
        if let Some(at) = node.node.poll_timeout() {
            let at = node.clock.true_time(at).max(self.now);
            self.events.wake(node.part, at);
        }
    }

    /// Calls a direction, takes what arrived at its far end, and sets its deadline.
    pub(super) fn at_direction(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut netem::Link, Instant),
    ) {
        self.at_direction_alone(index, call);
        if !self.socket_buffers.is_empty() {
            self.fill_direction(index);
        }
    }

    fn at_direction_alone(&mut self, index: usize, call: impl FnOnce(&mut netem::Link, Instant)) {
        let link = &mut self.directions[index].link;
        link.exchange_buffer(&mut self.outputs);
        call(link, self.now);
        self.drain_direction(index);
        let link = &mut self.directions[index].link;
        link.exchange_buffer(&mut self.outputs);
    }

    /// Hands a direction the frames that wait in the node's own queue before it, as far as the system's buffer has room.
    fn fill_direction(&mut self, index: usize) {
        let (end, face) = self.near_end(index);
        loop {
            let Some(buffer) = self.socket_buffers.get_mut(&index) else {
                return;
            };
            let room = buffer.room(self.directions[index].link.queue_size());
            let node = &mut self.nodes[end];
            let now = node.clock.monotonic(self.now);
            let Some(frame) = node.node.poll_frame(now, face, room) else {
                break;
            };
            self.record(end, face, EventKind::Sent(&frame));
            self.at_direction_alone(index, |link, now| link.handle_frame(now, frame));
        }
        let is_waiting = (self.nodes[end].node.link(face)).is_some_and(|link| !link.is_empty());
        if let Some(buffer) = self.socket_buffers.get_mut(&index) {
            buffer.is_full |= is_waiting;
        }
        let direction = &self.directions[index];
        if let Some(at) = direction.link.poll_departure().filter(|_| is_waiting) {
            self.events.wake(direction.part, at.max(self.now));
        }
    }

    /// Takes what arrived at the far end of a direction, and sets its deadline.
    fn drain_direction(&mut self, index: usize) {
        let to = self.directions[index].to;
        while let Some(output) = self.directions[index].link.poll_output() {
            if let Some(sink) = &mut self.link_sink {
                sink.record(index / 2, index % 2 == 1, &output);
            }
            match output {
                netem::Output::Delivered {
                    frame,
                    congestion_marked,
                    ..
                } => {
                    self.hops += 1;
                    let frame = if congestion_marked {
                        LpPacket::marked(frame)
                    } else {
                        frame
                    };
                    self.work.push_back(Work::ToNode(to.0, to.1, frame));
                }
                netem::Output::Dropped { frame, reason, .. } => {
                    let from = self.near_end(index);
                    self.record(from.0, from.1, EventKind::Dropped(&frame, reason));
                }
            }
        }
        let direction = &self.directions[index];
        if let Some(at) = direction.link.poll_timeout() {
            self.events.wake(direction.part, at.max(self.now));
        }
    }

    /// Takes what an application sends, and sets its deadline.
    pub(super) fn drain_application(&mut self, index: usize) {
        let running = &self.applications[index];
        let (node, face) = (running.node, running.face);
        let is_up = self.nodes[node].is_up;
        while let Some(output) = self.applications[index].application.poll_output() {
            match output {
                Output::Send(frame) if is_up => {
                    self.work.push_back(Work::ToNode(node, face, frame));
                }
                Output::Send(_) => {}
                Output::Event(fetched) => self.record(node, face, EventKind::Fetched(fetched)),
            }
        }
        let running = &self.applications[index];
        if let Some(at) = running.application.poll_timeout() {
            let at = self.nodes[node].clock.true_time(at).max(self.now);
            self.events.wake(running.part, at);
        }
    }

    #[inline]
    fn record(&mut self, node: NodeIndex, face: FaceId, kind: EventKind<'_>) {
        if let Some(sink) = &mut self.sink {
            sink.record(&Event {
                at: self.now,
                node,
                face: face.number(),
                kind,
            });
        }
    }
}

/// The first multiple of `period` after `now`.
fn next_multiple(now: Instant, period: Duration) -> Option<Instant> {
    let period = u64::try_from(period.as_nanos()).ok()?;
    let periods = now.as_nanos().checked_div(period)? + 1;
    periods.checked_mul(period).map(Instant::from_nanos)
}
