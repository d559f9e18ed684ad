//! Sealed streams: samples that readers of the publisher's choice alone can open.
//!
//! ```text
//!  generation 0, random          somebody leaves            generation 1, random
//!  step 0 ─HKDF▶ step 1 ─HKDF▶ …  ───────────────▶  step 0 ─HKDF▶ …
//!    │ somebody comes ▲                               │
//!    │ a box for each reader (HPKE)                   │ a box for each reader who stays
//!    ▼
//!  HKDF(step, name up to the number) = key of ChaCha20-Poly1305;  nonce = number of the sample
//! ```
//!
//! A newcomer gets the secret of its first step, from which later secrets follow and earlier ones do not. A reader that leaves knows nothing of the
//! next generation. Samples are sealed before they are cut, so segments, parity, digests, caches and archives stay as they are.
//!
//! A key and a nonce are used together once: a generation's secret is drawn from a seed that each start of a publisher draws anew, a key is of one
//! generation, step and sequence, and a [`Sealer`] refuses numbers that do not grow.

mod box_server;
mod key_box;
mod opener;
mod schedule;
mod sealer;

pub use box_server::{BoxServer, BoxServerConfig, Requested};
pub use key_box::{
    BadKey, BoxEntry, MAX_ENTRIES, MAX_PACKETS, box_name, decode_entries, encode_entries,
    parse_box_name,
};
pub use namecast_stream::seal::{MAX_STEPS, Seal};
pub use opener::{Opener, OpenerConfig, Unopened};
pub use schedule::OVERHEAD;
pub use sealer::{KeyBox, Sealed, Sealer, SealerConfig, SealerEvent, Unsealed};

#[cfg(test)]
mod tests;
