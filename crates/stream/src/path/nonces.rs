//! Where Nonces are drawn, and nowhere else: `cargo xtask tidy` checks that.

use namecast_packet::Nonce;
use namecast_units::Random;

/// The Nonces of one uplink.
#[derive(Clone, Debug)]
pub(super) struct Nonces(Random);

impl Nonces {
    pub(super) fn from_seed(seed: u64) -> Self {
        Self(Random::from_seed(seed))
    }

    /// Returns the Nonce of the next transmission.
    pub(super) fn draw(&mut self) -> Nonce {
        Nonce::from(self.0.next_u64() as u32)
    }
}
