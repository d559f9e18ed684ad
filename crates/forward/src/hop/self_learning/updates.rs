//! What one forwarder of a node learns, told to the others, so that all go by the same routes.
//!
//! Told are announcements when they come, when the use of their route has put off its end by a good part of its lifetime, and
//! when a route is given up. That the time of a route has come each forwarder notices by itself.

use bytes::Bytes;
use namecast_packet::Name;
use namecast_units::{Duration, Instant};

use super::SelfLearning;
use super::learned::Heard;
use crate::face::FaceId;
use crate::name_hash::NameHashes;
use crate::table::Tables;

/// In how many parts a route's lifetime is cut: others are told that it was used once in each.
const PARTS: u32 = 8;

/// Something that one forwarder has learned, for the others of its node to [adopt](super::Learning::adopt).
#[derive(Clone, Debug)]
pub struct LearnedNews {
    prefix: Name,
    face: FaceId,
    /// None: the route to the face was given up.
    announced: Option<Announced>,
}

#[derive(Clone, Debug)]
struct Announced {
    wire: Bytes,
    until: Instant,
    expiry: Instant,
    is_route: bool,
}

impl SelfLearning {
    /// What this one has learned since it was last asked. Nothing where it is the only one of its node.
    pub(crate) fn take_news(&mut self) -> Vec<LearnedNews> {
        core::mem::take(&mut self.news)
    }

    /// Takes over what another forwarder of the node has learned. The same again changes nothing.
    pub(super) fn adopt(&mut self, now: Instant, tables: &mut Tables, news: &LearnedNews) {
        let LearnedNews {
            prefix,
            face,
            announced,
        } = news;
        let has_face = tables.faces.get(*face).is_some();
        let Some(learned) = &mut self.heard else {
            return;
        };
        let known = learned.get_mut(prefix, *face);
        let Some(new) = announced else {
            if known.is_some_and(|known| known.is_route) {
                learned.remove(prefix, *face);
                tables.fib.remove(prefix, *face);
            }
            return;
        };
        if !has_face || new.expiry <= now {
            return;
        }
        let is_same = |known: &&mut Heard| known.wire == new.wire && known.is_route >= new.is_route;
        match known.filter(is_same) {
            Some(known) => {
                known.timeouts = 0;
                known.expiry = known.expiry.max(new.expiry);
            }
            None => {
                let heard = Heard::new(*face, new.wire.clone(), new.until, new.expiry);
                // Where there is no room, it is as if this one had heard it.
                let _ = self.keep(tables, prefix, heard, new.is_route);
            }
        }
    }

    /// Has the others told of an announcement as it is here now, or of its end.
    pub(super) fn broadcast(&mut self, tables: &Tables, prefix: &Name, face: FaceId) {
        let config = &tables.config;
        // Nobody asks for more news than there can be routes.
        if config.shard.count <= 1 || self.news.len() >= config.learning.max_routes {
            return;
        }
        let learned = self.heard.as_mut();
        let heard = learned.and_then(|learned| learned.get_mut(prefix, face));
        let announced = heard.map(|heard| Announced {
            wire: heard.wire.clone(),
            until: heard.until,
            expiry: heard.expiry,
            is_route: heard.is_route,
        });
        self.news.push(LearnedNews {
            prefix: prefix.detached(),
            face,
            announced,
        });
    }

    /// Data called `name` came by a learned route to `face`, which so stays.
    pub(super) fn route_was_used(
        &mut self,
        now: Instant,
        tables: &Tables,
        (name, hashes): (&Name, &NameHashes),
        face: FaceId,
    ) {
        let lifetime = tables.config.learning.route_lifetime;
        let Some(learned) = &mut self.heard else {
            return;
        };
        let Some((before, after)) = learned.on_used((name, hashes), face, now, lifetime) else {
            return;
        };
        let is_alone = tables.config.shard.count <= 1;
        if is_alone || part_of(before, lifetime) == part_of(after, lifetime) {
            return;
        }
        if let Some(prefix) = learned.longest_prefix(name, hashes) {
            self.broadcast(tables, &prefix, face);
        }
    }
}

/// In which part of a lifetime, counted from the start of time, a moment is.
fn part_of(at: Instant, lifetime: Duration) -> u64 {
    let part = u64::try_from((lifetime / PARTS).as_nanos()).unwrap_or(u64::MAX);
    at.as_nanos() / part.max(1)
}
