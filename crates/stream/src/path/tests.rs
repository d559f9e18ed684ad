//! The uplink with hand-made wants and over a model link: what leaves and when, and what it finds out about the path.

mod history;
mod link;
mod measurements;
mod requests;
mod sharing;
mod tables;
mod uplinks;

use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, Nonce};
use namecast_units::Instant;

use super::*;
use link::{Bench, Link, SIZE, answer, ms, name, token, want};

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

fn uplink(config: UplinkConfig) -> Uplink {
    Uplink::new(config, Budget::live(LiveConfig::default()))
}

/// Does what is due, and returns what left.
fn sent(uplink: &mut Uplink, now: Instant) -> Vec<(Token, Nonce)> {
    uplink.handle_timeout(now);
    let events = core::iter::from_fn(|| uplink.poll_event());
    let of_sent = |event| match event {
        Event::Sent { token, nonce, .. } => Some((token, nonce)),
        _ => None,
    };
    events.filter_map(of_sent).collect()
}

/// The Interest for `token` that had `nonce` comes back.
fn nack(uplink: &mut Uplink, now: Instant, (token, nonce): (Token, Nonce), reason: NackReason) {
    let interest = Interest::builder(name(token)).build(nonce);
    for nacked in uplink.handle_nack(&interest) {
        uplink.take_back(now, nacked, reason);
    }
}
