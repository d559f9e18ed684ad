//! What a link lost, and why.

use core::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::web::Refusal;

/// Why a link did not carry something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkDrop {
    /// The peer or the system takes frames slower than the node makes them.
    QueueFull,
    /// There is no connection at present.
    LinkDown,
    /// The frame is larger than the link takes.
    TooLarge,
    /// The system refused to send.
    SendFailed,
    /// A stream is not a sequence of elements, or a message no frame; a stream ends with it.
    Framing,
    /// A new peer came when there were as many as the node allows.
    TooManyFaces,
    /// A browser came under a name that is not this node's.
    ForeignHost,
    /// A page of another site came.
    ForeignOrigin,
    /// A datagram peer that has not shown yet that it is where it says it is was to be sent more than it may.
    Unproven,
    /// A peer came from where nobody may come from.
    Denied,
}

impl LinkDrop {
    /// All reasons.
    pub const ALL: [Self; 10] = [
        Self::QueueFull,
        Self::LinkDown,
        Self::TooLarge,
        Self::SendFailed,
        Self::Framing,
        Self::TooManyFaces,
        Self::ForeignHost,
        Self::ForeignOrigin,
        Self::Unproven,
        Self::Denied,
    ];

    /// The reason as statistics name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::LinkDown => "link_down",
            Self::TooLarge => "too_large",
            Self::SendFailed => "send_failed",
            Self::Framing => "framing",
            Self::TooManyFaces => "too_many_faces",
            Self::ForeignHost => "foreign_host",
            Self::ForeignOrigin => "foreign_origin",
            Self::Unproven => "unproven",
            Self::Denied => "denied",
        }
    }
}

impl From<&Refusal> for LinkDrop {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::NoHost | Refusal::ForeignHost(_) => Self::ForeignHost,
            Refusal::ForeignOrigin(_) => Self::ForeignOrigin,
        }
    }
}

/// Counters of one link, written by its tasks and read by the node.
#[derive(Debug, Default)]
pub(crate) struct LinkCounters {
    drops: [AtomicU64; LinkDrop::ALL.len()],
}

impl LinkCounters {
    /// Counts `frames` lost frames.
    pub(crate) fn dropped(&self, reason: LinkDrop, frames: u64) {
        self.drops[reason as usize].fetch_add(frames, Ordering::Relaxed);
    }

    /// Frames lost for `reason`.
    pub(crate) fn drops(&self, reason: LinkDrop) -> u64 {
        self.drops[reason as usize].load(Ordering::Relaxed)
    }

    /// Adds what `other` counted.
    pub(crate) fn add(&self, other: &Self) {
        for reason in LinkDrop::ALL {
            self.dropped(reason, other.drops(reason));
        }
    }
}
