//! What nodes on a path say of Data, in link header fields.

use namecast_packet::{Extensions, PathLabel};
use namecast_units::{Bitrate, ByteSize};

/// What nodes on the path said of one Data packet. Each of it is missing where a node on the path does not speak of it, and may
/// be a lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Nodes passed on the way from the one that answered, 255 at most.
    pub hop_count: Option<u8>,
    /// Rate at which Data comes to the cache that answered, of whole packets: what there is beyond it.
    pub offered: Option<Bitrate>,
    /// Who answered.
    pub source: Option<Source>,
    /// The path that the Data came.
    pub label: Option<PathLabel>,
    /// Requests for any next packets that were left over, at the node on the path that had fewest.
    pub spare: Option<u16>,
}

/// What is known of a Data packet before anybody looks into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its size: what rates count, all of it or its content.
    pub size: ByteSize,
    /// A node on the path saw its queue build up.
    pub congestion_marked: bool,
    /// What nodes on the path say. The rate is counted as `size` is.
    pub feedback: Feedback,
}

impl Received {
    /// A packet of which no node says more than whether a queue builds up.
    pub fn new(size: ByteSize, congestion_marked: bool) -> Self {
        Self {
            size,
            congestion_marked,
            feedback: Feedback::default(),
        }
    }
}

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The node of the Data's producer.
    Producer,
    /// A content store.
    Cache,
}

impl Feedback {
    /// What `extensions` say. Fields that make no sense are left out: a rate of zero, a label that is too long.
    pub fn read(extensions: &Extensions) -> Self {
        if extensions.is_empty() {
            return Self::default();
        }
        let number = |field| extensions.number(field);
        let source = match number(Extensions::SOURCE) {
            Some(Extensions::FROM_PRODUCER) => Some(Source::Producer),
            Some(Extensions::FROM_CONTENT_STORE) => Some(Source::Cache),
            _ => None,
        };
        Self {
            hop_count: number(Extensions::HOP_COUNT)
                .map(|hops| u8::try_from(hops).unwrap_or(u8::MAX)),
            offered: number(Extensions::RATE_TAG)
                .filter(|&rate| rate > 0)
                .map(Bitrate::bps),
            source,
            label: extensions
                .get(Extensions::PATH_LABEL)
                .and_then(PathLabel::decode),
            spare: number(Extensions::MIN_PENDING_REQUESTS)
                .map(|spare| u16::try_from(spare).unwrap_or(u16::MAX)),
        }
    }

    /// Returns the same with the rate in octets of content, `content` of each packet of `whole`.
    #[must_use]
    pub fn of_content(self, content: ByteSize, whole: ByteSize) -> Self {
        let share = content.as_bytes() as f64 / whole.as_bytes().max(1) as f64;
        let scaled = |rate: Bitrate| Bitrate::bps((rate.as_bps() as f64 * share.min(1.0)) as u64);
        Self {
            offered: self.offered.map(scaled),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_make_sense_are_read() {
        let mut extensions = Extensions::default();
        assert_eq!(Feedback::read(&extensions), Feedback::default());
        extensions.set_number(Extensions::HOP_COUNT, 300);
        extensions.set_number(Extensions::RATE_TAG, 5_000_000);
        extensions.set_number(Extensions::SOURCE, 2);
        let label = PathLabel::EMPTY.behind([1, 2, 3]);
        extensions.set(Extensions::PATH_LABEL, vec![0, 1, 2, 3]);
        let read = Feedback::read(&extensions);
        let expected = Feedback {
            hop_count: Some(255),
            offered: Some(Bitrate::mbps(5)),
            source: Some(Source::Cache),
            label,
            spare: None,
        };
        assert_eq!(read, expected);
        // 8000 octets of 10 000.
        let content = read.of_content(ByteSize::bytes(8_000), ByteSize::bytes(10_000));
        assert_eq!(content.offered, Some(Bitrate::mbps(4)));
    }

    #[test]
    fn fields_that_make_none_are_left_out() {
        let mut extensions = Extensions::default();
        extensions.set_number(Extensions::RATE_TAG, 0);
        extensions.set_number(Extensions::SOURCE, 3);
        extensions.set(Extensions::HOP_COUNT, &b"none"[..3]);
        extensions.set(Extensions::PATH_LABEL, vec![0; 33]);
        assert_eq!(Feedback::read(&extensions), Feedback::default());
    }
}
