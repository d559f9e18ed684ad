//! What becomes of faces, as it happens: the notification stream `faces/events`.
//!
//! Notifications are numbered, and each is Data of its own: `/localhost/nfd/faces/events/seq=<number>`. A client requests
//! the newest one, and from then on for the next, which waits until there is one.

use bytes::Bytes;
use namecast_apps::management::Item;
use namecast_apps::management::numbers::*;
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Component, Data, Interest, LpPacket, Name, tlv_fields};
use namecast_units::Instant;
use serde::Serialize;
use tokio::sync::watch;

use super::{FaceStatus, Manager, PREFIX_COMPONENTS, RESPONSE_FRESHNESS};
use crate::node::{FaceEvent, FaceEventKind};

const FACE_EVENT_KIND: u32 = 193;

/// What became of a face, as `faces/events` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaceEventNotification {
    /// 1: created, 2: destroyed, 3: its peer can be reached, 4: it cannot any more.
    pub kind: u64,
    /// The face's number.
    pub face: u64,
    /// The peer's address.
    pub uri: String,
    /// This node's address.
    pub local_uri: String,
    /// As in [`FaceStatus::scope`].
    pub scope: u64,
    /// As in [`FaceStatus::persistency`].
    pub persistency: u64,
    /// As in [`FaceStatus::link_type`].
    pub link_type: u64,
    /// As in [`FaceStatus::flags`].
    pub flags: u64,
}

impl Item for FaceEventNotification {
    const TYPE: u32 = 192;
    const WHAT: &'static str = "FaceEventNotification";

    tlv_fields! {
        FACE_EVENT_KIND => kind,
        FACE_ID => face,
        URI => uri,
        LOCAL_URI => local_uri,
        FACE_SCOPE => scope,
        FACE_PERSISTENCY => persistency,
        LINK_TYPE => link_type,
        FLAGS => flags,
    }
}

impl From<FaceEvent> for FaceEventNotification {
    fn from(event: FaceEvent) -> Self {
        let face = FaceStatus::from(event.face);
        Self {
            kind: match event.kind {
                FaceEventKind::Created => 1,
                FaceEventKind::Destroyed => 2,
                FaceEventKind::Up => 3,
                FaceEventKind::Down => 4,
            },
            face: face.face,
            uri: face.uri,
            local_uri: face.local_uri,
            scope: face.scope,
            persistency: face.persistency,
            link_type: face.link_type,
            flags: face.flags,
        }
    }
}

/// Who is told, and how far.
#[derive(Debug)]
pub(super) struct Subscription {
    /// The number of the next event.
    next: watch::Receiver<u64>,
    /// The first event that was not told.
    untold: u64,
    /// Until when somebody waits for the next one.
    awaited_until: Instant,
}

impl Subscription {
    pub(super) fn new(next: watch::Receiver<u64>) -> Self {
        Self {
            next,
            untold: 0,
            awaited_until: Instant::ZERO,
        }
    }

    /// Waits for an event that was not told. Does not return once there will be none any more.
    pub(super) async fn changed(&mut self) {
        if self.next.changed().await.is_err() {
            core::future::pending().await
        }
    }
}

/// Whether a question is about notifications, and not about a dataset.
pub(super) fn is_about(name: &Name) -> bool {
    let word = |index| name.get(index).map(|component| component.value);
    word(PREFIX_COMPONENTS - 2) == Some(b"faces") && word(PREFIX_COMPONENTS - 1) == Some(b"events")
}

impl Manager {
    /// The notification that was asked for, if it is there; if it is still to come, it is sent when it comes.
    pub(super) async fn handle_event_question(&mut self, question: &Interest) -> Option<Data> {
        let name = question.name();
        let now = self.node.clock().now();
        let number = name.get(PREFIX_COMPONENTS);
        let number = match number {
            None if question.can_be_prefix() => None,
            None => return None,
            Some(component) => Some(component.number_of(Component::SEQUENCE)?),
        };
        let events = self.node.face_events(number.unwrap_or(0)).await.ok()?;
        let found = match number {
            Some(number) => events.into_iter().find(|event| event.number == number),
            None => events.into_iter().next_back().filter(|newest| {
                !question.must_be_fresh() || now.since(newest.at) <= RESPONSE_FRESHNESS
            }),
        };
        if found.is_none() && number.is_none_or(|number| number >= self.events.untold) {
            let longest = self.node.config().forwarder.pit.max_lifetime;
            let until = now + question.lifetime().min(longest);
            self.events.awaited_until = self.events.awaited_until.max(until);
        }
        Some(notification(&name.prefix(PREFIX_COMPONENTS), found?))
    }

    /// What is to be sent to those who wait for the events that there are now.
    pub(super) async fn take_notifications(&mut self) -> Vec<Bytes> {
        let first = self.events.untold;
        self.events.untold = *self.events.next.borrow_and_update();
        if self.node.clock().now() > self.events.awaited_until {
            return Vec::new();
        }
        let Ok(events) = self.node.face_events(first).await else {
            return Vec::new();
        };
        let prefix = Name::root().builder();
        let words = ["localhost", "nfd", "faces", "events"].into_iter();
        let prefix = words.fold(prefix, |name, word| name.generic(word)).finish();
        let packets = events.into_iter().map(|event| LpPacket {
            no_cache: true,
            ..LpPacket::carrying(notification(&prefix, event).wire().clone())
        });
        packets.map(|packet| packet.encode()).collect()
    }
}

fn notification(prefix: &Name, event: FaceEvent) -> Data {
    let name = prefix.builder().sequence(event.number).finish();
    Data::builder(name)
        .freshness(RESPONSE_FRESHNESS)
        .content(FaceEventNotification::from(event).encode())
        .sign(&DigestSigner)
}
