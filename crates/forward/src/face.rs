//! Faces: the forwarder's side of each link or application.

use core::fmt;

use crate::counters::{BundleCounters, FaceCounters};

/// Number of a face; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaceId(u64);

impl FaceId {
    /// No face; NFD's number.
    pub const NONE: Self = Self(0);
    /// Stands for the content store where an application asks which face Data came from; NFD's number.
    pub const CONTENT_STORE: Self = Self(254);
    /// The first face's; lower ones have meanings of their own in NFD.
    pub(crate) const FIRST: Self = Self(256);

    /// The face numbered `number`, as management and link headers write it.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Whether the other end is on this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Another host.
    #[default]
    NonLocal,
    /// An application on this host, which may use `/localhost`.
    Local,
}

/// Who hears what is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// One peer. Only such links carry Nacks.
    #[default]
    PointToPoint,
    /// All peers on the link hear each other.
    MultiAccess,
    /// Peers hear some of the others: what came in on the face may have to leave by it.
    AdHoc,
}

/// Whether link header fields outside of NDNLPv2 go to a neighbour, and are taken from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ExtensionFields {
    /// Never, and the neighbour is told nothing.
    Off,
    /// If the neighbour speaks them: it is asked when there are some for it.
    #[default]
    Auto,
    /// Always: it is known to speak them.
    On,
}

/// What a face is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaceConfig {
    /// Whether the other end is on this host.
    pub scope: Scope,
    /// Who hears what is sent.
    pub link_type: LinkType,
    /// Largest frame that the link takes, in octets; larger packets are fragmented. None: any, never fragment.
    pub mtu: Option<usize>,
    /// Whether frames are acknowledged and sent again if lost: NDNLPv2 reliability, which both ends must have.
    pub reliability: bool,
    /// Whether the peer wants IncomingFaceId and may choose faces by NextHopFaceId or avoid one. Only for local scope.
    pub local_fields: bool,
    /// Whether the neighbour hears extension fields and may say them. Of several peers on one link nobody is asked.
    pub extension_fields: ExtensionFields,
    /// For people: a URI or a purpose.
    pub description: String,
}

impl FaceConfig {
    /// An application of this process, which speaks what this crate speaks.
    pub fn application(description: impl Into<String>) -> Self {
        Self {
            scope: Scope::Local,
            extension_fields: ExtensionFields::On,
            description: description.into(),
            ..Self::default()
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.scope == Scope::Local
    }

    /// Whether the peer is trusted with fields that only local applications may use.
    pub(crate) fn has_local_fields(&self) -> bool {
        self.is_local() && self.local_fields
    }

    pub(crate) fn has_one_peer(&self) -> bool {
        self.link_type == LinkType::PointToPoint
    }

    /// Returns whether a link packet of so many octets is one frame as it is, which the link neither cuts nor numbers.
    pub fn takes_whole(&self, octets: usize) -> bool {
        !self.reliability && octets <= self.mtu.unwrap_or(usize::MAX)
    }
}

/// Smallest MTU a face may have, in octets: what every fragment's header needs, and something to carry. NFD's bound.
pub const MIN_MTU: usize = 64;

/// Why a face was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddFaceError {
    /// There are as many faces as the configuration allows.
    #[error("the node has its {0} faces already")]
    TooManyFaces(usize),
    /// The MTU leaves no room.
    #[error("an MTU of {0} octets is below the least of {MIN_MTU}")]
    MtuTooSmall(usize),
}

/// A face as others see it.
#[derive(Clone, Copy, Debug)]
pub struct FaceInfo<'a> {
    /// The face's number.
    pub id: FaceId,
    /// What it is.
    pub config: &'a FaceConfig,
    /// What it has seen.
    pub counters: &'a FaceCounters,
    /// What became of its bundles.
    pub bundles: BundleCounters,
}
