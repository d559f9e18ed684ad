//! What management tells of faces: `faces/list`, `faces/query`, `faces/channels`.

use bytes::Bytes;
use namecast_apps::management::numbers::*;
use namecast_apps::management::{Item, millis};
use namecast_forward::{LinkType, Scope};
use namecast_packet::tlv::Reader;
use namecast_packet::{DecodeError, MAX_PACKET_SIZE, tlv_fields};
use namecast_units::Duration;
use serde::Serialize;

use crate::node::{FaceDescription, Node};

const IN_INTERESTS: u32 = 144;
const IN_DATA: u32 = 145;
const OUT_INTERESTS: u32 = 146;
const OUT_DATA: u32 = 147;
const IN_OCTETS: u32 = 148;
const OUT_OCTETS: u32 = 149;
const FACE_QUERY_FILTER: u32 = 150;
const IN_NACKS: u32 = 151;
const OUT_NACKS: u32 = 152;
/// Inside a filter only.
const URI_SCHEME: u32 = 131;

/// Face flag: the peer may see and choose faces.
pub const LOCAL_FIELDS: u64 = 1;
/// Face flag: frames are acknowledged, and sent again if lost.
pub const LP_RELIABILITY: u64 = 2;
/// Face flag: packets are marked when the face's queue is long.
pub const CONGESTION_MARKING: u64 = 4;

/// LocalUri of a face whose address on this side is not known. NFD requires one.
const UNKNOWN_URI: &str = "null://";

/// The faces that `filter` lets through; nothing if the node has stopped.
pub(super) async fn list(node: &Node, filter: &FaceQueryFilter) -> Option<Vec<FaceStatus>> {
    let all = node.faces().await.ok()?.into_iter().map(FaceStatus::from);
    Some(all.filter(|face| filter.matches(face)).collect())
}

/// All listeners; nothing if the node has stopped.
pub(super) async fn channels(node: &Node) -> Option<Vec<ChannelStatus>> {
    let status = node.status().await.ok()?;
    let uris = status.listeners.into_iter().map(|listener| listener.uri);
    Some(uris.map(|local_uri| ChannelStatus { local_uri }).collect())
}

/// One face, as `faces/list` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaceStatus {
    /// The face's number.
    pub face: u64,
    /// The peer's address.
    pub uri: String,
    /// This node's address.
    pub local_uri: String,
    /// When the face ends if the peer stays silent, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_millis: Option<u64>,
    /// 0: the peer is on another host, 1: on this one.
    pub scope: u64,
    /// What ends the face: 0 persistent, 1 on demand, 2 permanent.
    pub persistency: u64,
    /// 0: one peer, 1: several, 2: several that do not all hear each other.
    pub link_type: u64,
    /// First pause between congestion marks, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_congestion_marking_interval: Option<u64>,
    /// Queue from which on packets are marked, in octets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_congestion_threshold: Option<u64>,
    /// Longest frame, in octets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u64>,
    /// Interests from the peer.
    pub in_interests: u64,
    /// Data from the peer.
    pub in_data: u64,
    /// Nacks from the peer.
    pub in_nacks: u64,
    /// Interests to the peer.
    pub out_interests: u64,
    /// Data to the peer.
    pub out_data: u64,
    /// Nacks to the peer.
    pub out_nacks: u64,
    /// Octets from the peer.
    pub in_octets: u64,
    /// Octets to the peer.
    pub out_octets: u64,
    /// [`LOCAL_FIELDS`], [`LP_RELIABILITY`], [`CONGESTION_MARKING`].
    pub flags: u64,
}

impl Item for FaceStatus {
    const TYPE: u32 = 128;
    const WHAT: &'static str = "FaceStatus";

    tlv_fields! {
        FACE_ID => face,
        URI => uri,
        LOCAL_URI => local_uri,
        EXPIRATION_PERIOD => expiration_millis,
        FACE_SCOPE => scope,
        FACE_PERSISTENCY => persistency,
        LINK_TYPE => link_type,
        BASE_CONGESTION_MARKING_INTERVAL => base_congestion_marking_interval,
        DEFAULT_CONGESTION_THRESHOLD => default_congestion_threshold,
        MTU => mtu,
        IN_INTERESTS => in_interests,
        IN_DATA => in_data,
        IN_NACKS => in_nacks,
        OUT_INTERESTS => out_interests,
        OUT_DATA => out_data,
        OUT_NACKS => out_nacks,
        IN_OCTETS => in_octets,
        OUT_OCTETS => out_octets,
        FLAGS => flags,
    }
}

impl From<FaceDescription> for FaceStatus {
    fn from(face: FaceDescription) -> Self {
        Self {
            face: face.id.number(),
            uri: face.remote.to_string(),
            local_uri: local_uri(&face),
            expiration_millis: face.expires_in.map(millis),
            scope: match face.scope {
                Scope::NonLocal => 0,
                Scope::Local => 1,
            },
            persistency: face.persistency.number(),
            link_type: match face.link_type {
                LinkType::PointToPoint => 0,
                LinkType::MultiAccess => 1,
                LinkType::AdHoc => 2,
            },
            base_congestion_marking_interval: Some(nanos(face.congestion.interval)),
            default_congestion_threshold: Some(face.congestion.threshold.as_bytes()),
            mtu: Some(mtu(&face)),
            in_interests: face.incoming.interests,
            in_data: face.incoming.data,
            in_nacks: face.incoming.nacks,
            out_interests: face.outgoing.interests,
            out_data: face.outgoing.data,
            out_nacks: face.outgoing.nacks,
            in_octets: face.incoming.octets.as_bytes(),
            out_octets: face.outgoing.octets.as_bytes(),
            flags: flags(&face),
        }
    }
}

pub(super) fn local_uri(face: &FaceDescription) -> String {
    let known = face.local.as_ref().map(ToString::to_string);
    known.unwrap_or_else(|| UNKNOWN_URI.to_owned())
}

/// As NFD tells it: the longest packet where there is no limit.
fn mtu(face: &FaceDescription) -> u64 {
    face.mtu.unwrap_or(MAX_PACKET_SIZE).min(MAX_PACKET_SIZE) as u64
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn flags(face: &FaceDescription) -> u64 {
    let flag = |bit, is_set| if is_set { bit } else { 0 };
    flag(LOCAL_FIELDS, face.local_fields)
        | flag(LP_RELIABILITY, face.reliability)
        | flag(CONGESTION_MARKING, face.congestion_marking)
}

/// Which faces `faces/query` is about: those that are as all given fields say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaceQueryFilter {
    /// The face's number.
    pub face: Option<u64>,
    /// What either address begins with.
    pub uri_scheme: Option<String>,
    /// The peer's address.
    pub uri: Option<String>,
    /// This node's address.
    pub local_uri: Option<String>,
    /// As in [`FaceStatus::scope`].
    pub scope: Option<u64>,
    /// As in [`FaceStatus::persistency`].
    pub persistency: Option<u64>,
    /// As in [`FaceStatus::link_type`].
    pub link_type: Option<u64>,
}

impl FaceQueryFilter {
    const WHAT: &str = "FaceQueryFilter";

    tlv_fields! { read:
        FACE_ID => face,
        URI_SCHEME => uri_scheme,
        URI => uri,
        LOCAL_URI => local_uri,
        FACE_SCOPE => scope,
        FACE_PERSISTENCY => persistency,
        LINK_TYPE => link_type,
    }

    /// Decodes the FaceQueryFilter element that fills `wire` whole.
    ///
    /// # Errors
    /// On a malformed element or field.
    pub fn decode(wire: &Bytes) -> Result<Self, DecodeError> {
        let whole = Reader::new(wire).only(Self::WHAT, FACE_QUERY_FILTER)?;
        let mut reader = Reader::within(wire, whole.value);
        let mut filter = Self::default();
        while let Some(field) = reader.element(Self::WHAT)? {
            filter.read_field(wire, &field)?;
        }
        Ok(filter)
    }

    /// Whether the face is as all given fields say.
    pub(super) fn matches(&self, face: &FaceStatus) -> bool {
        let is = |wanted: &Option<u64>, number| wanted.is_none_or(|wanted| wanted == number);
        let reads = |wanted: &Option<String>, text: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == text)
        };
        let scheme = |uri: &str| uri.split("://").next().unwrap_or_default().to_owned();
        is(&self.face, face.face)
            && (reads(&self.uri_scheme, &scheme(&face.uri))
                || reads(&self.uri_scheme, &scheme(&face.local_uri)))
            && reads(&self.uri, &face.uri)
            && reads(&self.local_uri, &face.local_uri)
            && is(&self.scope, face.scope)
            && is(&self.persistency, face.persistency)
            && is(&self.link_type, face.link_type)
    }
}

/// One listener, as `faces/channels` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChannelStatus {
    /// Its address.
    pub local_uri: String,
}

impl Item for ChannelStatus {
    const TYPE: u32 = 130;
    const WHAT: &'static str = "ChannelStatus";

    tlv_fields! {
        LOCAL_URI => local_uri,
    }
}
