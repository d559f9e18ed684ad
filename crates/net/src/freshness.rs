//! When signed commands count: within some time of now, and each once.

use std::collections::BTreeSet;

use bytes::Bytes;
use namecast_units::{Duration, Timestamp};

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It has no signature.
    #[error("the command is not signed")]
    Unsigned,
    /// Its digest is not that of its octets.
    #[error("the signature is wrong")]
    WrongSignature,
    /// Its key is not one of those that may command, or not at this time.
    #[error("the command is not signed with a key that may command this node")]
    Key,
    /// There is no time in its signature.
    #[error("the command's signature has no time")]
    NoTime,
    /// The time of its signature is too far from now.
    #[error(
        "the command was signed {by:?} {} this node's time, and {grace:?} are allowed: set both clocks", if *is_ahead { "after" } else { "before" }
    )]
    Clock {
        /// How far.
        by: Duration,
        /// After the node's time.
        is_ahead: bool,
        /// How far it may be.
        grace: Duration,
    },
    /// Its key signed it before this node's start, or before a command that the node no longer remembers.
    #[error("the command is older than the ones that this node remembers: sign it again")]
    Old,
    /// There is no nonce in its signature.
    #[error("the command's signature has no nonce")]
    NoNonce,
    /// It was carried out already.
    #[error("a command with this nonce was carried out before: sign it again")]
    Repeated,
}

impl Refusal {
    /// Whether the same command, signed again later, may be accepted.
    pub(crate) fn is_of_time(text: &str) -> bool {
        // NFD says no more than that.
        text == "authorization rejected" || text == Self::Old.to_string()
    }
}

/// Commands of a key, as long as they could be played again.
#[derive(Debug)]
pub(crate) struct Commands {
    /// Commands up to this time are refused. At first it is the start of the node, to the millisecond in which clients tell
    /// times: what was captured before a restart does not work after it.
    floor: Timestamp,
    /// Times and nonces of commands after that which it signed.
    seen: BTreeSet<(Timestamp, Bytes)>,
}

impl Commands {
    /// None yet, for a node that started at this time.
    pub(crate) const fn since(start: Timestamp) -> Self {
        let before = start.as_micros() - start.as_micros() % 1_000;
        Self {
            floor: Timestamp::from_micros(before.saturating_sub(1)),
            seen: BTreeSet::new(),
        }
    }

    /// Records a command, so that it is refused from now on.
    pub(crate) fn remember(
        &mut self,
        time: Timestamp,
        nonce: &Bytes,
        bound: usize,
    ) -> Result<(), Refusal> {
        if time <= self.floor {
            return Err(Refusal::Old);
        }
        // The nonce may be part of a larger buffer.
        if !self.seen.insert((time, Bytes::copy_from_slice(nonce))) {
            return Err(Refusal::Repeated);
        }
        while self.seen.len() > bound {
            let (oldest, _) = self.seen.pop_first().expect("longer than its bound");
            self.floor = oldest;
        }
        Ok(())
    }

    /// Returns the time of the newest command.
    pub(crate) fn newest(&self) -> Timestamp {
        self.seen.last().map_or(self.floor, |(time, _)| *time)
    }
}

/// Returns the time at which a command was signed, if that is within `grace` of now.
pub(crate) fn check_time(
    now: Timestamp,
    time: Option<Duration>,
    grace: Duration,
) -> Result<Timestamp, Refusal> {
    let micros = time.ok_or(Refusal::NoTime)?.as_micros();
    let time = Timestamp::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
    let by = time.since(now).max(now.since(time));
    match by > grace {
        true => Err(Refusal::Clock {
            by,
            is_ahead: time > now,
            grace,
        }),
        false => Ok(time),
    }
}
