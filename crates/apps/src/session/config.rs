//! What an endpoint and its sessions are told.

use namecast_packet::Name;
use namecast_stream::rate::{RateControl, copa};
use namecast_units::Duration;
use smart_default::SmartDefault;

use super::known::KnownPeer;
use crate::discovery::Trust;

/// How the other side's packets come, and so how many Interests wait for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flow {
    /// One each `interval`, for an ear that does not wait: w = ⌈RTT / interval⌉ + 1.
    Steady {
        /// From one packet to the next.
        interval: Duration,
        /// A packet that others overtook is not waited for longer than this.
        give_up: Duration,
    },
    /// As they are written, all of them and in order: as many as a controller allows while the other side has more.
    Elastic {
        /// What decides how many.
        control: RateControl,
        /// Interests that wait while the other side has nothing.
        standing: u32,
        /// A message that nothing follows is followed by an empty packet, which shows at once that it was lost: for messages that
        /// are few and cannot wait.
        is_interactive: bool,
    },
}

impl Flow {
    /// Sound: 50 packets a second.
    pub const VOICE: Self = Self::Steady {
        interval: Duration::from_millis(20),
        give_up: Duration::from_millis(150),
    };

    /// Files: full links with short queues.
    pub fn bulk() -> Self {
        Self::Elastic {
            control: RateControl::Copa(copa::Config::default()),
            standing: 8,
            is_interactive: false,
        }
    }

    /// Keystrokes, and what they bring about.
    pub fn interactive() -> Self {
        Self::Elastic {
            control: RateControl::Copa(copa::Config::default()),
            standing: 6,
            is_interactive: true,
        }
    }
}

/// How a session behaves, within which bounds.
#[derive(Clone, Debug, SmartDefault)]
pub struct SessionConfig {
    /// How packets come, in both directions.
    #[default(Flow::bulk())]
    pub flow: Flow,
    /// Whether Interests for what is not due yet wait for the next Data, to be sent with it.
    #[default(true)]
    pub bundles: bool,
    /// Lifetime of Interests; those that wait are repeated before it ends.
    #[default(Duration::from_secs(1))]
    pub lifetime: Duration,
    /// Numbers from the first that is missing on which are requested, or answered, at most.
    #[default(1_024)]
    pub max_window: u64,
    /// Messages that wait to be sent.
    #[default(256)]
    pub max_queued: usize,
    /// How long messages may go unacknowledged by a packet of their own.
    #[default(Duration::from_millis(25))]
    pub acknowledgement_delay: Duration,
    /// After this time without a packet an empty one is sent.
    #[default(Duration::from_secs(5))]
    pub keep_alive: Duration,
    /// After this time a session has new keys.
    #[default(Duration::from_secs(3_600))]
    pub renew_after: Duration,
    /// A session in which nothing has come for this long is over.
    #[default(Duration::from_secs(30))]
    pub max_silence: Duration,
}

/// Bounds of what set-ups of others may cost.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub struct SetupLimits {
    /// Calls that were answered and not confirmed; the oldest of a stranger makes room.
    #[default(64)]
    pub max_half_open: usize,
    /// Of those, how many of one static key.
    #[default(2)]
    pub max_half_open_per_key: usize,
    /// Set-ups of strangers that are answered in a second; beyond, each has to solve a puzzle.
    #[default(20)]
    pub max_strangers: u32,
    /// Set-ups with a solved puzzle that are answered in a second.
    #[default(100)]
    pub max_solved: u32,
    /// Zero bits of the easiest puzzle, 22 at most: each bit doubles the callers' work.
    #[default(12)]
    pub min_difficulty: u8,
    /// Set-ups of known peers that are answered in a second; beyond, they are as strangers.
    #[default(200)]
    pub max_known_setups: u32,
    /// Of those, how many of one static key.
    #[default(4)]
    pub max_known_setups_per_key: u32,
    /// First messages whose static key is decrypted in a second, for a Diffie–Hellman exchange each; beyond, callers that are known
    /// have to solve a puzzle, too.
    #[default(4_000)]
    pub max_decrypted: u32,
    /// Calls that are remembered, so that a replayed one is refused.
    #[default(4_096)]
    pub max_remembered: usize,
    /// Peers that are known, at most.
    #[default(1_024)]
    pub max_known: usize,
}

/// Whose calls are taken, and within which bounds.
#[derive(Clone, Debug, SmartDefault)]
pub struct EndpointConfig {
    /// What all names start with: `/bob/talk`.
    #[default(Name::root())]
    pub root: Name,
    /// Whether others may call.
    pub answers: bool,
    /// Whose signature counts, of those who call.
    pub trust: Trust,
    /// The only root whose calls are taken; `None`: any.
    pub caller: Option<Name>,
    /// SHA-256 digests of the public keys whose calls are taken; `None`: all that `trust` accepts. Other callers get a refusal.
    pub authorised: Option<Vec<[u8; 32]>>,
    /// What sessions are like.
    pub session: SessionConfig,
    /// Calls that were confirmed.
    #[default(20)]
    pub max_calls: usize,
    /// Bounds of what strangers can make this endpoint do.
    pub limits: SetupLimits,
    /// How long a call may be half open.
    #[default(Duration::from_secs(5))]
    pub setup_timeout: Duration,
    /// How long an answer to one's own call is waited for.
    #[default(Duration::from_secs(60))]
    pub call_timeout: Duration,
    /// Peers that are known before they call or are called.
    pub known: Vec<KnownPeer>,
    /// Secret static X25519 key, which may be used for nothing else; `None`: drawn from `secret`, for this endpoint alone.
    pub static_key: Option<[u8; 32]>,
    /// 32 octets that nobody can guess: ephemeral keys are drawn from them.
    pub secret: [u8; 32],
    /// Seed of the Nonces.
    pub seed: u64,
}
