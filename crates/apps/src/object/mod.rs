//! Named objects: byte strings of any length in signed segments, `/<name>/v=<version>/seg=<number>`.
//!
//! ```text
//!  put ──▶ Server ◀── Interest /name, may be a prefix, must be fresh ─── Fetcher ──▶ Fetched, Failed
//!            │  ──── Data /name/v=7/seg=0, FinalBlockId seg=9 ─────▶        │
//!            │ ◀──── Interest for the certificate ──────────────────        │
//!            └────── Data /name/v=7/seg=1 … seg=9, within the budget ─▶     ▼
//!                                                                    stream::path::Uplink
//! ```
//!
//! Those who know nothing but `/name` may also request `/name/32=metadata`, whose content is the newest version's name.
//!
//! Only the first segment has a FreshnessPeriod, so that no cache answers a request for the newest version with a segment
//! from the middle, and so that a segment that was forged can be requested past all caches.

mod by_name;
mod fetcher;
mod finder;
mod reader;
mod server;
pub mod transfer;

use namecast_packet::{Component, Name};

use fetcher::KnownSigner;
pub use fetcher::{
    Downloaded, Downloader, DownloaderConfig, Event, Failure, Fetched, Fetcher, FetcherConfig,
    FetcherCounters, Flow, TooMany,
};
pub(crate) use fetcher::{Fetch, Learned};
pub use finder::{Finder, Found, NotFound, Numbering};
pub use reader::{Reader, ReaderConfig, ReaderEvent, Unreadable};
pub use server::{Requested, Server, ServerConfig, ServerCounters, ServerError};

/// A name parted into the object's, its version and the number of the segment, as far as `name` has them.
fn parts(name: &Name) -> (Name, Option<u64>, Option<u64>) {
    let number = |name: &Name, kind| name.last().and_then(|last| last.number_of(kind));
    let segment = number(name, Component::SEGMENT);
    let name = segment.map_or_else(|| name.clone(), |_| name.parent());
    let version = number(&name, Component::VERSION);
    let name = version.map_or_else(|| name.clone(), |_| name.parent());
    (name, version, segment)
}

#[cfg(test)]
mod tests;
