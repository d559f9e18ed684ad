//! Key boxes of sealed samples, recorded beside them: whose box was recorded can open the samples years later.

use std::collections::{BTreeSet, VecDeque};

use namecast_packet::{Component, Data, Interest, Name};
use namecast_stream::Seal;
use namecast_stream::path::{ClientId, Object, Retry, Token, Uplink};
use namecast_units::Instant;

use crate::samples;
use crate::sealed::{MAX_PACKETS, box_name};

/// Boxes that are remembered as recorded.
const MAX_KNOWN: usize = 4_096;
/// Boxes that wait to be fetched; the next sample names those beyond it again.
const MAX_QUEUED: usize = 256;

/// Fetches each box that samples name, once.
#[derive(Debug)]
pub(super) struct KeyBoxes {
    client: ClientId,
    /// Those recorded, on their way or queued.
    known: BTreeSet<Seal>,
    order: VecDeque<Seal>,
    queue: VecDeque<Seal>,
    /// The box on its way, and the segment of it.
    fetching: Option<(Seal, u64)>,
}

impl KeyBoxes {
    /// Fetches as `client`.
    pub(super) const fn new(client: ClientId) -> Self {
        Self {
            client,
            known: BTreeSet::new(),
            order: VecDeque::new(),
            queue: VecDeque::new(),
            fetching: None,
        }
    }

    const fn token(&self) -> Token {
        self.client.object(0)
    }

    /// Returns whether `token` requests a box.
    pub(super) fn has_requested(&self, token: Token) -> bool {
        self.fetching.is_some() && token == self.token()
    }

    /// Records that a sample was sealed so.
    pub(super) fn on_seal(&mut self, seal: &Seal) {
        if self.queue.len() >= MAX_QUEUED || !self.known.insert(*seal) {
            return;
        }
        self.order.push_back(*seal);
        self.queue.push_back(*seal);
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Requests the next box, unless one is on its way.
    pub(super) fn pull(&mut self, now: Instant, root: &Name, uplink: &mut Uplink, attempts: u32) {
        if self.fetching.is_none()
            && let Some(name) = self.queue.pop_front()
        {
            self.fetching = Some((name, 0));
            self.request(now, root, uplink, attempts);
        }
    }

    fn request(&self, now: Instant, root: &Name, uplink: &mut Uplink, attempts: u32) {
        let Some((name, segment)) = &self.fetching else {
            return;
        };
        let name = box_name(root, name).builder().segment(*segment).finish();
        let retry = Retry {
            max_interests: attempts,
            ..samples::RETRY
        };
        let object = Object::new(self.token(), Interest::builder(name), Some(retry));
        uplink.want_object(now, object);
    }

    /// Records that the packet on its way is recorded.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        (root, data): (&Name, &Data),
        (uplink, attempts): (&mut Uplink, u32),
    ) {
        uplink.forget(self.token());
        let Some((name, segment)) = self.fetching.take() else {
            return;
        };
        let last = data.final_block().and_then(Name::last);
        let last = last.and_then(|it| it.number_of(Component::SEGMENT));
        if last.is_some_and(|last| segment < last) && segment + 1 < MAX_PACKETS as u64 {
            self.fetching = Some((name, segment + 1));
            self.request(now, root, uplink, attempts);
        }
    }

    /// Does without the box on its way, until another sample names it.
    pub(super) fn give_up(&mut self) {
        if let Some((name, _)) = self.fetching.take() {
            self.known.remove(&name);
            self.order.retain(|it| *it != name);
        }
    }
}
