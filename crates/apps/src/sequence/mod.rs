//! Numbered objects: Data `/<prefix>/seq=<n>`, one packet each, fetched in order under a rate controller.
//!
//! ```text
//!  Fetcher ── Interest /p/seq=7 ──▶ … ──▶ Server
//!     ▲   ◀──── Data /p/seq=7 ──── … ◀──
//!     │
//!  RateController: how fast, how many at a time
//! ```
//!
//! What a measurement of rate control needs and no more: the numbers go on for ever or to a known end, nothing depends on
//! the content, and what is lost is left out or retransmitted, as the configuration says.

mod fetcher;
mod provider;
mod server;

use namecast_packet::{Component, Name, tlv};

pub use fetcher::{
    Delivery, Ended, Ending, Fetched, Fetcher, FetcherConfig, Figures, Repair, Sample, Segment,
};
pub use provider::{Provider, ProviderConfig};
pub use server::{Server, ServerConfig, ServerCounters, ServerError};

/// The number in a name whose TLV-VALUE is `name`, if the name is `prefix` and a sequence number in its shortest form.
fn number_in(prefix: &Name, name: &[u8]) -> Option<u64> {
    let component = name.strip_prefix(&prefix.value()[..])?;
    let (&[kind, length], value) = component.split_first_chunk()?;
    let is_number = u16::from(kind) == Component::SEQUENCE && usize::from(length) == value.len();
    let number = tlv::read_number(value).filter(|_| is_number)?;
    (tlv::number_size(number) == value.len()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shortest_form_of_a_number_under_the_prefix_counts() {
        let prefix: Name = "/p/q".parse().unwrap();
        for number in [0, 7, 255, 256, 65_536, 1 << 32, u64::MAX] {
            let name = prefix.builder().sequence(number).finish();
            assert_eq!(number_in(&prefix, name.value()), Some(number));
        }
        let refused = [
            "/p/q",
            "/p/q/v=1",
            "/p/q/seg=1",
            "/p/r/seq=1",
            "/p/q/seq=1/seq=2",
            "/p/q/58=%00%01",
            "/p/q/58=...",
            "/p",
            "/",
        ];
        for uri in refused {
            let name: Name = uri.parse().unwrap();
            assert_eq!(number_in(&prefix, name.value()), None, "{uri}");
        }
    }
}
