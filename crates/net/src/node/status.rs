//! A node's state, for people and for statistics.

use std::collections::BTreeMap;

use namecast_forward::{
    BundleCounters, Drops, FaceCounters, FaceId, FeedbackCounters, Forwarder, Scope,
    StrategyCounters, Traffic,
};
use namecast_packet::Name;
use namecast_units::{Duration, Histogram};
use serde::{Serialize, Serializer};

use super::face_table::FaceEntry;
use super::{LinkState, ListenerEntry, Persistency, Plane};
use crate::admission::Source;
use crate::link::{LinkCounters, LinkDrop, kernel_drops};
use crate::rights::RightCounters;
use crate::tickets::TicketCounters;

/// Everything a node counts, at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    /// How long the node has run, in seconds.
    pub uptime_seconds: f64,
    /// All faces, in the order they were made.
    pub faces: Vec<FaceStatus>,
    /// All listeners.
    pub listeners: Vec<ListenerStatus>,
    /// All routes that were made through the node or learned from prefix announcements.
    pub routes: Vec<RouteStatus>,
    /// The strategies that were chosen, and what became of their Interests.
    pub strategies: Vec<StrategyChoice>,
    /// Packets from all faces, also from those that are gone.
    pub incoming: TrafficStatus,
    /// Packets to all faces, also to those that are gone.
    pub outgoing: TrafficStatus,
    /// Prefixes that have a next hop.
    pub routed_prefixes: usize,
    /// Prefixes that strategies have measurements of.
    pub measured_prefixes: usize,
    /// Interests that wait for Data.
    pub pending_interests: usize,
    /// Data packets in the content store.
    pub cached_packets: usize,
    /// Interests that the content store answered.
    pub content_store_hits: u64,
    /// Interests that it could not answer.
    pub content_store_misses: u64,
    /// Data that nobody asked for and that were cached all the same.
    pub unsolicited_cached: u64,
    /// Interests that were not forwarded since an equal one was pending.
    pub aggregated: u64,
    /// Interests that Data satisfied.
    pub satisfied: u64,
    /// Interests that expired or were refused.
    pub unsatisfied: u64,
    /// Data retrieval delay: from an Interest that left to its Data.
    pub retrieval: Histogram,
    /// Routes made from prefix announcements.
    pub routes_learned: u64,
    /// Prefix announcements that were refused.
    pub announcements_refused: u64,
    /// Of these, those that came outside of their period of validity.
    pub announcements_out_of_period: u64,
    /// Rate feedback and path labels.
    pub feedback: FeedbackStatus,
    /// What became of bundles; counts of nothing are left out.
    pub bundles: BTreeMap<&'static str, u64>,
    /// Counters of requests for any next packets, by name; zeros are left out.
    pub any_next: BTreeMap<&'static str, u64>,
    /// What a routing daemon is told; nothing if it is told nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readvertising: Option<ReadvertisingStatus>,
    /// What became of tickets; nothing if none were issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tickets: Option<TicketCounters>,
    /// Registrations by right; nothing if no root is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rights: Option<RightCounters>,
    /// What the forwarder dropped, by reason; reasons that did not occur are left out.
    pub drops: BTreeMap<&'static str, u64>,
    /// What links and listeners lost, also those that are gone, by reason.
    pub link_drops: BTreeMap<&'static str, u64>,
    /// Where those come from who hold faces, at most 16 of them, those that hold most first.
    pub sources: Vec<SourceStatus>,
}

/// How many sources are listed.
pub(super) const MAX_SOURCES: usize = 16;

/// One source of faces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceStatus {
    /// Addresses: a /24 of IPv4, a /56 of IPv6, or `this machine`.
    pub source: String,
    /// Faces that datagrams and connections from there made.
    pub faces: usize,
}

impl From<(Source, usize)> for SourceStatus {
    fn from((source, faces): (Source, usize)) -> Self {
        Self {
            source: source.to_string(),
            faces,
        }
    }
}

/// What hops have made of the link header fields that tell consumers about paths; all zero without such hops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FeedbackStatus {
    /// Data from the content store that were sent with a rate.
    pub rate_tags_set: u64,
    /// Rates, hop counts and sources of neighbours that make no sense.
    pub refused: u64,
    /// Data of flows that found no place to be measured.
    pub flows_refused: u64,
    /// Interests that went where their label says.
    pub labels_followed: u64,
    /// Labels that lead nowhere.
    pub labels_refused: u64,
    /// Interests with labels that waited for another's Data.
    pub labels_aggregated: u64,
    /// Interests that were sent to discover a path.
    pub discoveries: u64,
    /// Such Interests that came too often, and were answered from the content store.
    pub discoveries_refused: u64,
}

impl From<FeedbackCounters> for FeedbackStatus {
    fn from(counters: FeedbackCounters) -> Self {
        Self {
            rate_tags_set: counters.rate_tags_set,
            refused: counters.refused,
            flows_refused: counters.flows_refused,
            labels_followed: counters.labels_followed,
            labels_refused: counters.labels_refused,
            labels_aggregated: counters.labels_aggregated,
            discoveries: counters.discoveries,
            discoveries_refused: counters.discoveries_refused,
        }
    }
}

/// One face.
#[derive(Clone, Debug, Serialize)]
pub struct FaceStatus {
    /// The face's number.
    pub id: u64,
    /// The peer's address.
    pub remote: String,
    /// This node's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// Whether the peer counts as local.
    pub is_local: bool,
    /// What ends the face.
    pub persistency: Persistency,
    /// Whether the peer can be reached.
    pub state: LinkState,
    /// Whether the peer speaks link header fields outside of NDNLPv2; nothing as long as nobody needed to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speaks_extensions: Option<bool>,
    /// Packets from the peer.
    pub incoming: TrafficStatus,
    /// Packets to the peer.
    pub outgoing: TrafficStatus,
    /// What became of bundles; counts of nothing are left out.
    pub bundles: BTreeMap<&'static str, u64>,
    /// What the forwarder dropped, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// What the link lost, by reason.
    pub link_drops: BTreeMap<&'static str, u64>,
}

/// Packets in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TrafficStatus {
    /// Interests.
    pub interests: u64,
    /// Data packets.
    pub data: u64,
    /// Nacks.
    pub nacks: u64,
    /// Frames, counting each fragment.
    pub frames: u64,
    /// Octets of all frames.
    pub octets: u64,
}

/// The strategy of one prefix, as `strategy-choice/list` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StrategyChoice {
    /// Names it is for.
    #[serde(serialize_with = "as_text")]
    pub prefix: Name,
    /// Name of the strategy.
    #[serde(serialize_with = "as_text")]
    pub strategy: Name,
    /// What became of their Interests; other forwarders do not tell.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub counts: Option<StrategyCounts>,
}

/// What became of the Interests that a strategy decided on, since it was chosen if these are numbers as forwarders tell them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StrategyCounts<N = u64> {
    /// Interests, retransmissions included, but not those that the content store answered.
    pub interests: N,
    /// Of these, sent again while the first was pending.
    pub retransmissions: N,
    /// Of these, held back since an equal one was on its way.
    pub suppressed: N,
    /// Of these, refused as there was no next hop.
    pub rejected: N,
    /// Pending Interests that Data satisfied.
    pub satisfied: N,
    /// Pending Interests whose time ran out.
    pub timeouts: N,
    /// Nacks from next hops.
    pub nacks: N,
}

/// How many numbers they are.
pub(crate) const STRATEGY_COUNTS: usize = 7;

impl<N: Copy> StrategyCounts<N> {
    /// All of them, in the order of the fields.
    pub const fn in_order(self) -> [N; STRATEGY_COUNTS] {
        [
            self.interests,
            self.retransmissions,
            self.suppressed,
            self.rejected,
            self.satisfied,
            self.timeouts,
            self.nacks,
        ]
    }

    /// All of them in that order, to be changed.
    pub const fn in_order_mut(&mut self) -> [&mut N; STRATEGY_COUNTS] {
        [
            &mut self.interests,
            &mut self.retransmissions,
            &mut self.suppressed,
            &mut self.rejected,
            &mut self.satisfied,
            &mut self.timeouts,
            &mut self.nacks,
        ]
    }
}

impl From<StrategyCounters> for StrategyCounts {
    fn from(counters: StrategyCounters) -> Self {
        Self {
            interests: counters.interests,
            retransmissions: counters.retransmissions,
            suppressed: counters.suppressed,
            rejected: counters.rejected,
            satisfied: counters.satisfied,
            timeouts: counters.timeouts,
            nacks: counters.nacks,
        }
    }
}

impl From<namecast_forward::StrategyChoice> for StrategyChoice {
    fn from(choice: namecast_forward::StrategyChoice) -> Self {
        Self {
            prefix: choice.prefix,
            strategy: choice.kind.name(),
            counts: Some(choice.counters.into()),
        }
    }
}

/// What a routing daemon is told, and how that stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReadvertisingStatus {
    /// 1 if there is a daemon, else 0.
    pub daemons: u64,
    /// Prefixes that it is to spread.
    pub prefixes: u64,
    /// Of these, those that it has agreed to.
    pub told: u64,
    /// Commands `register` that it carried out, repetitions included.
    pub registered: u64,
    /// Commands `unregister` that it carried out.
    pub unregistered: u64,
    /// Commands that it refused, or did not answer.
    pub failed: u64,
}

/// Who tells a routing daemon of prefixes.
pub(crate) trait Readvertises: core::fmt::Debug + Send + Sync {
    /// Returns what the daemon is told, and how that stands.
    fn status(&self) -> ReadvertisingStatus;
}

/// One listener.
#[derive(Clone, Debug, Serialize)]
pub struct ListenerStatus {
    /// Its address.
    pub uri: String,
    /// Peers that came and got a face.
    pub accepted: u64,
    /// Of these, those whose face is there still.
    pub open: usize,
    /// What it refused and lost, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Times that its task, or that of a peer, was started again after it had ended; `None`: it has no task of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// Why its task does not run at present; `None`: it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Datagrams that the kernel dropped since the socket's buffer was full, where the kernel tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_drops: Option<u64>,
}

/// One route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteStatus {
    /// Names it is for, as a URI.
    pub prefix: String,
    /// The face it leads to.
    pub face: u64,
    /// Which of several is taken: the lowest.
    pub cost: u64,
}

impl NodeStatus {
    /// What the forwarders counted; the rest is for the caller to fill in.
    pub(crate) fn new(uptime: Duration, plane: &Plane) -> Self {
        let counters = plane.counters();
        Self {
            uptime_seconds: uptime.as_secs_f64(),
            faces: Vec::new(),
            listeners: Vec::new(),
            routes: Vec::new(),
            strategies: (plane.strategies().into_iter())
                .map(StrategyChoice::from)
                .collect(),
            incoming: (&counters.incoming).into(),
            outgoing: (&counters.outgoing).into(),
            routed_prefixes: plane.look(Forwarder::routed_prefixes),
            measured_prefixes: plane.look(|forwarder| forwarder.measured().0),
            pending_interests: plane.sum(Forwarder::pending_interests),
            cached_packets: plane.sum(|forwarder| forwarder.content_store().packets()),
            content_store_hits: counters.content_store_hits,
            content_store_misses: counters.content_store_misses,
            unsolicited_cached: counters.unsolicited_cached,
            aggregated: counters.aggregated,
            satisfied: counters.satisfied,
            unsatisfied: counters.unsatisfied,
            retrieval: counters.retrieval,
            routes_learned: counters.routes_learned,
            announcements_refused: counters.announcements_refused,
            announcements_out_of_period: counters.announcements_out_of_period,
            feedback: counters.feedback.into(),
            bundles: counts(counters.bundles.iter()),
            any_next: counts(counters.any_next.iter()),
            readvertising: None,
            tickets: None,
            rights: None,
            drops: forwarder_drops(&counters.drops),
            link_drops: BTreeMap::new(),
            sources: Vec::new(),
        }
    }
}

impl FaceStatus {
    /// A face and its link.
    pub(crate) fn new(
        face: FaceId,
        (counters, bundled): (&FaceCounters, &BundleCounters),
        entry: &FaceEntry,
    ) -> Self {
        Self {
            id: face.number(),
            remote: entry.remote.to_string(),
            local: entry.local.as_ref().map(ToString::to_string),
            is_local: entry.scope == Scope::Local,
            persistency: entry.persistency,
            state: entry.state.borrow().clone(),
            speaks_extensions: (entry.sender).with_link(|link| link.meter().speaks_extensions()),
            incoming: (&counters.incoming).into(),
            outgoing: (&counters.outgoing).into(),
            bundles: counts(bundled.iter()),
            drops: forwarder_drops(&counters.drops),
            link_drops: link_drops(&entry.losses()),
        }
    }
}

impl ListenerStatus {
    /// A listener, of whose peers so many are there.
    pub(crate) fn new(entry: &ListenerEntry, open: usize) -> Self {
        let address = entry
            .socket
            .as_ref()
            .and_then(|socket| socket.local_address().ok());
        Self {
            uri: entry.uri.to_string(),
            accepted: entry.accepted,
            open,
            drops: link_drops(&entry.counters),
            restarts: entry.state.as_ref().map(|state| state.restarts()),
            problem: entry.state.as_ref().and_then(|state| state.problem()),
            kernel_drops: address.and_then(kernel_drops),
        }
    }
}

impl From<&Traffic> for TrafficStatus {
    fn from(traffic: &Traffic) -> Self {
        Self {
            interests: traffic.interests,
            data: traffic.data,
            nacks: traffic.nacks,
            frames: traffic.frames,
            octets: traffic.octets.as_bytes(),
        }
    }
}

/// Counts by name; zeros are left out.
fn counts(counters: impl Iterator<Item = (&'static str, u64)>) -> BTreeMap<&'static str, u64> {
    counters.filter(|&(_, count)| count > 0).collect()
}

fn forwarder_drops(drops: &Drops) -> BTreeMap<&'static str, u64> {
    counts(drops.iter().map(|(reason, count)| (reason.name(), count)))
}

/// What a link lost, by reason.
pub(crate) fn link_drops(counters: &LinkCounters) -> BTreeMap<&'static str, u64> {
    let all = LinkDrop::ALL.into_iter();
    counts(all.map(|reason| (reason.name(), counters.drops(reason))))
}

fn as_text<S: Serializer>(name: &Name, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(name)
}
