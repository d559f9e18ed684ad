//! Objects that recordings are opened and verified by, recorded beside the samples: key boxes, and a room's schema and rosters.

use std::collections::{BTreeSet, VecDeque};

use namecast_packet::{Component, Data, Interest, Name};
use namecast_stream::Seal;
use namecast_stream::path::{ClientId, Object, Retry, Token, Uplink};
use namecast_units::Instant;

use crate::room::Part;
use crate::samples;
use crate::sealed::{self, box_name};

/// Objects that are remembered as recorded.
const MAX_KNOWN: usize = 4_096;
/// Objects that wait to be fetched; the next sample or roster names those beyond it again.
const MAX_QUEUED: usize = 256;
/// Segments of a schema or roster: 4 MiB in segments of 3,800 octets are 1,104.
const MAX_SEGMENTS: u64 = 2_048;
/// Of those, segments that later chunks of an archive begin with.
const MAX_REPEATED: u64 = 64;

/// Objects that a recorder fetches beside samples.
#[derive(Debug)]
pub(super) struct Supplements {
    /// Root of the room that the publisher is certified in, once that is known.
    pub(super) room: Option<Name>,
    /// Schema and rosters. Key boxes do not wait for them, as the host may be away.
    rules: ObjectQueue,
    pub(super) boxes: ObjectQueue,
}

impl Supplements {
    /// Fetches as these clients.
    pub(super) const fn new([rules, boxes]: [ClientId; 2]) -> Self {
        Self {
            room: None,
            rules: ObjectQueue::new(rules),
            boxes: ObjectQueue::new(boxes),
        }
    }

    /// Records which versions of schema and roster are in force. Rules of a file have none.
    pub(super) fn on_versions(&mut self, versions: [u64; 2]) {
        let Some(room) = &self.room else {
            return;
        };
        for (part, version) in Part::ALL.into_iter().zip(versions) {
            if version > 0 {
                self.rules.on_version(room, part, version);
            }
        }
    }

    /// Returns the queue whose packet `token` requests.
    pub(super) fn queue_of(&mut self, token: Token) -> Option<&mut ObjectQueue> {
        let mut queues = [&mut self.rules, &mut self.boxes].into_iter();
        queues.find(|queue| queue.has_requested(token))
    }

    /// Requests the next object of each queue that waits for none.
    pub(super) fn pull(&mut self, now: Instant, uplink: &mut Uplink, attempts: u32) {
        for queue in [&mut self.rules, &mut self.boxes] {
            queue.pull(now, uplink, attempts);
        }
    }
}

/// An object to fetch.
#[derive(Clone, Debug)]
struct Queued {
    /// With its version.
    name: Name,
    /// Common beginning of the names of all its versions.
    versions: Name,
    max_segments: u64,
}

/// Fetches objects, each once, one after the other.
#[derive(Debug)]
pub(super) struct ObjectQueue {
    client: ClientId,
    /// Those recorded, on their way or queued.
    known: BTreeSet<Name>,
    order: VecDeque<Name>,
    queue: VecDeque<Queued>,
    /// The object on its way, and the segment of it.
    fetching: Option<(Queued, u64)>,
    /// The seal of the last sample, whose box is known.
    last_seal: Option<Seal>,
}

impl ObjectQueue {
    /// Fetches as `client`.
    pub(super) const fn new(client: ClientId) -> Self {
        Self {
            client,
            known: BTreeSet::new(),
            order: VecDeque::new(),
            queue: VecDeque::new(),
            fetching: None,
            last_seal: None,
        }
    }

    const fn token(&self) -> Token {
        self.client.object(0)
    }

    /// Returns whether `token` requests a packet of it.
    pub(super) fn has_requested(&self, token: Token) -> bool {
        self.fetching.is_some() && token == self.token()
    }

    /// Records that a sample of `root` was sealed so.
    pub(super) fn on_seal(&mut self, root: &Name, seal: &Seal) {
        if self.last_seal != Some(*seal) {
            let name = box_name(root, seal);
            let is_known = self.push(Queued {
                versions: name.prefix(root.len() + 1),
                name,
                max_segments: sealed::MAX_PACKETS as u64,
            });
            self.last_seal = is_known.then_some(*seal);
        }
    }

    /// Records that this version of a part of the room `root` is in force.
    pub(super) fn on_version(&mut self, root: &Name, part: Part, version: u64) {
        let versions = part.name(root);
        self.push(Queued {
            name: versions.builder().version(version).finish(),
            versions,
            max_segments: MAX_SEGMENTS,
        });
    }

    /// Queues an object that is not known. Returns whether it is known now.
    fn push(&mut self, queued: Queued) -> bool {
        if self.known.contains(&queued.name) || self.queue.len() >= MAX_QUEUED {
            return self.known.contains(&queued.name);
        }
        self.known.insert(queued.name.clone());
        self.order.push_back(queued.name.clone());
        self.queue.push_back(queued);
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    /// Requests the next object, unless one is on its way.
    pub(super) fn pull(&mut self, now: Instant, uplink: &mut Uplink, attempts: u32) {
        if self.fetching.is_none()
            && let Some(queued) = self.queue.pop_front()
        {
            self.fetching = Some((queued, 0));
            self.request(now, uplink, attempts);
        }
    }

    fn request(&self, now: Instant, uplink: &mut Uplink, attempts: u32) {
        let Some((queued, segment)) = &self.fetching else {
            return;
        };
        let name = queued.name.builder().segment(*segment).finish();
        let retry = Retry {
            max_interests: attempts,
            ..samples::RETRY
        };
        let object = Object::new(self.token(), Interest::builder(name), Some(retry));
        uplink.want_object(now, object);
    }

    /// Records that the packet on its way is recorded. Returns under which name older versions are, if later chunks are to begin with the packet.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        data: &Data,
        (uplink, attempts): (&mut Uplink, u32),
    ) -> Option<Name> {
        uplink.forget(self.token());
        let (queued, segment) = self.fetching.take()?;
        let replaces = (segment < MAX_REPEATED).then(|| queued.versions.clone());
        let last = data.final_block().and_then(Name::last);
        let last = last.and_then(|it| it.number_of(Component::SEGMENT));
        if last.is_some_and(|last| segment < last) && segment + 1 < queued.max_segments {
            self.fetching = Some((queued, segment + 1));
            self.request(now, uplink, attempts);
        }
        replaces
    }

    /// Does without the object on its way, until another sample or roster names it.
    pub(super) fn give_up(&mut self) {
        if let Some((queued, _)) = self.fetching.take() {
            self.known.remove(&queued.name);
            self.order.retain(|it| *it != queued.name);
            self.last_seal = None;
        }
    }
}
