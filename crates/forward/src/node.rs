//! A node for one thread: a forwarder, and a link for each face that needs one.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use namecast_units::{ByteSize, Instant};

use crate::config::Config;
use crate::counters::{Counters, FaceCounters};
use crate::face::{AddFaceError, FaceConfig, FaceId};
use crate::link::{Link, LinkCounters, SendQueueConfig};
use crate::pipeline::{Forwarder, Transmit};

/// A forwarder whose faces take and give the frames of their links.
///
/// Whatever a link delivered goes into [`handle_frame`](Self::handle_frame). After that, after a change of faces or
/// routes, and after [`handle_timeout`](Self::handle_timeout), take frames from [`poll_output`](Self::poll_output) until
/// there are none, and call `handle_timeout` when [`poll_timeout`](Self::poll_timeout) says so.
///
/// A face has a link from when it first needs one: where all frames are whole packets, that is never. A link takes every
/// frame at once, unless it has a [send queue](Self::set_send_queue).
#[derive(Debug)]
pub struct Node {
    /// The tables. Faces are added, changed and removed by the node itself.
    pub forwarder: Forwarder,
    seed: u64,
    /// Only where some face has needed a link.
    links: Option<Box<Links>>,
}

/// The links of a node.
#[derive(Debug, Default)]
struct Links {
    by_face: BTreeMap<FaceId, FaceLink>,
    /// When links are due.
    timers: BTreeSet<(Instant, FaceId)>,
    /// Frames of links without a send queue.
    output: VecDeque<Transmit>,
    /// What links have counted that are gone.
    past: LinkCounters,
}

#[derive(Debug)]
struct FaceLink {
    link: Link,
    /// When it is due, as the timers know it.
    timer: Option<Instant>,
    /// Whether frames wait for [`Node::poll_frame`].
    is_queued: bool,
}

impl Node {
    /// Returns a node without faces or routes.
    pub fn new(config: Config) -> Self {
        let seed = config.seed;
        Self::sharing(Arc::new(config), seed)
    }

    /// Returns a node without faces or routes whose configuration others share, all but the seed.
    pub fn sharing(config: Arc<Config>, seed: u64) -> Self {
        Self {
            forwarder: Forwarder::sharing(config, seed),
            seed,
            links: None,
        }
    }

    /// Adds a face; its number is given to no other face ever.
    ///
    /// # Errors
    /// If there are too many faces, or the MTU is too small.
    pub fn add_face(&mut self, config: FaceConfig) -> Result<FaceId, AddFaceError> {
        self.forwarder.add_face(config)
    }

    /// Removes a face with its link, its routes and its pending Interests. An unknown face is no error.
    pub fn remove_face(&mut self, now: Instant, face: FaceId) {
        self.forwarder.remove_face(now, face);
        let Some(links) = &mut self.links else {
            return;
        };
        links.output.retain(|transmit| transmit.face != face);
        if let Some(removed) = links.by_face.remove(&face) {
            links.past += removed.link.counters();
            if let Some(at) = removed.timer {
                links.timers.remove(&(at, face));
            }
        }
    }

    /// Changes what a face is, as [`Link::reconfigure`] does. An unknown face is no error.
    ///
    /// # Errors
    /// If the MTU is too small; then nothing changes.
    pub fn reconfigure_face(
        &mut self,
        face: FaceId,
        config: FaceConfig,
    ) -> Result<(), AddFaceError> {
        self.forwarder.reconfigure_face(face, config.clone())?;
        if let Some(links) = &mut self.links
            && let Some(entry) = links.by_face.get_mut(&face)
        {
            entry.link.reconfigure(&config);
            links.settle(self.forwarder.now, face);
        }
        Ok(())
    }

    /// Gives a face's link a send queue, from which [`poll_frame`](Self::poll_frame) takes frames. An unknown face is no
    /// error.
    pub fn set_send_queue(&mut self, face: FaceId, queue: SendQueueConfig) {
        self.enter(face, queue);
        if let Some(entry) = self.links.as_mut().and_then(|it| it.by_face.get_mut(&face)) {
            entry.is_queued = true;
        }
    }

    /// Takes what a link delivered. Bad frames are counted and dropped; nothing that arrives ends the face.
    pub fn handle_frame(&mut self, now: Instant, face: FaceId, frame: Bytes) {
        self.handle_link_timeouts(now);
        if !Link::concerns(&frame) {
            return self.forwarder.handle_frame(now, face, frame);
        }
        // Of an unknown face too: the forwarder counts what it is not there for.
        let Some(links) = self.enter(face, SendQueueConfig::default()) else {
            return self.forwarder.handle_frame(now, face, frame);
        };
        let link = links.by_face.get_mut(&face).map(|entry| &mut entry.link);
        let opened = link.and_then(|link| link.handle_frame(now, frame));
        links.settle(now, face);
        match opened {
            Some(packet) => self.forwarder.handle_packet(now, face, packet),
            None => self.forwarder.handle_timeout(now),
        }
    }

    /// Does what is due by `now`. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.forwarder.handle_timeout(now);
        self.handle_link_timeouts(now);
    }

    fn handle_link_timeouts(&mut self, now: Instant) {
        let Some(links) = &mut self.links else {
            return;
        };
        while let Some(&(at, face)) = links.timers.first()
            && at <= now
        {
            links.timers.pop_first();
            if let Some(entry) = links.by_face.get_mut(&face) {
                entry.timer = None;
                entry.link.handle_timeout(now);
                links.settle(now, face);
            }
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let links = self.links.as_ref();
        let link = links.and_then(|links| links.timers.first().map(|&(at, _)| at));
        self.forwarder.poll_timeout().into_iter().chain(link).min()
    }

    /// The next frame to send, in the order in which they came about, but for faces with a send queue.
    pub fn poll_output(&mut self) -> Option<Transmit> {
        loop {
            if let Some(links) = &mut self.links
                && let Some(transmit) = links.output.pop_front()
            {
                return Some(transmit);
            }
            let (transmit, is_whole) = self.forwarder.poll_output_for_link()?;
            let Transmit { face, frame } = transmit;
            if is_whole && !self.is_queued(face) {
                return Some(Transmit { face, frame });
            }
            let now = self.forwarder.now;
            if let Some(links) = self.enter(face, SendQueueConfig::default()) {
                if let Some(entry) = links.by_face.get_mut(&face) {
                    entry.link.enqueue(now, frame);
                }
                links.settle(now, face);
            }
        }
    }

    /// The next frame of a face with a send queue, if it has no more than `room` octets.
    pub fn poll_frame(&mut self, now: Instant, face: FaceId, room: ByteSize) -> Option<Bytes> {
        let entry = self.links.as_mut()?.by_face.get_mut(&face)?;
        entry.link.poll_frame(now, room)
    }

    /// Returns a face's link, if it has needed one.
    pub fn link(&self, face: FaceId) -> Option<&Link> {
        let entry = self.links.as_ref()?.by_face.get(&face)?;
        Some(&entry.link)
    }

    /// Returns what forwarder and links have seen.
    pub fn counters(&self) -> Counters {
        let mut sum = *self.forwarder.counters();
        if let Some(links) = &self.links {
            links.past.merge_into_node(&mut sum);
            for entry in links.by_face.values() {
                entry.link.counters().merge_into_node(&mut sum);
            }
        }
        sum
    }

    /// Returns what a face and its link have seen.
    pub fn face_counters(&self, face: FaceId) -> Option<FaceCounters> {
        let mut sum = *self.forwarder.face(face)?.counters;
        if let Some(link) = self.link(face) {
            link.counters().merge_into_face(&mut sum);
        }
        Some(sum)
    }

    fn is_queued(&self, face: FaceId) -> bool {
        let links = self.links.as_ref();
        let entry = links.and_then(|links| links.by_face.get(&face));
        entry.is_some_and(|entry| entry.is_queued)
    }

    /// The links, with that of a face among them; `None` if there is no such face.
    fn enter(&mut self, face: FaceId, queue: SendQueueConfig) -> Option<&mut Links> {
        let links = self.links.get_or_insert_default();
        if let Entry::Vacant(place) = links.by_face.entry(face) {
            let tables = &mut self.forwarder.tables;
            let entry = tables.faces.get_mut(face)?;
            let bounds = Arc::clone(&tables.config);
            let mut link = Link::new(bounds, &entry.config, queue, self.seed ^ face.number());
            link.set_meter(Arc::clone(entry.meter.get_or_insert_default()));
            place.insert(FaceLink {
                link,
                timer: None,
                is_queued: false,
            });
        }
        Some(links)
    }
}

impl Links {
    /// Takes what a link sends, unless it has a send queue, and sets its timer.
    fn settle(&mut self, now: Instant, face: FaceId) {
        let Some(entry) = self.by_face.get_mut(&face) else {
            return;
        };
        if !entry.is_queued {
            let unlimited = ByteSize::bytes(u64::MAX);
            while let Some(frame) = entry.link.poll_frame(now, unlimited) {
                self.output.push_back(Transmit { face, frame });
            }
        }
        let to = entry.link.poll_timeout();
        let from = core::mem::replace(&mut entry.timer, to);
        if from != to {
            if let Some(at) = from {
                self.timers.remove(&(at, face));
            }
            if let Some(at) = to {
                self.timers.insert((at, face));
            }
        }
    }
}
