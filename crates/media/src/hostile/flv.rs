//! RTMP pushes of any octets, as the tags of an FLV file.

use bytes::Bytes;

use crate::flv::{FlvError, Push};
use crate::ingest::source::Container;
use crate::nut::writer::put_frame;
use crate::nut::{MAX_FRAME, NutReader};
use crate::script::Script;

/// Octets before the first tag of a file, of the header of a tag, and after its body.
const FILE_HEADER: usize = 13;
const TAG_HEADER: usize = 11;
const TAG_END: usize = 4;
/// Kind of tags with metadata.
const SCRIPT_DATA: u8 = 18;

/// A push goes on, ends with a sentence for its pusher, or begins anew; what comes out of it is a container that reads whole and holds
/// no more frames than were pushed.
pub fn flv(octets: &[u8]) {
    let mut script = Script(octets);
    if octets.starts_with(b"FLV") {
        script.take(FILE_HEADER);
    }
    let mut push = Push::default();
    let mut output = Output::default();
    while let Some(kind) = script.octet() {
        let size = script.number(3) as usize;
        let time = (script.number(3) | script.number(1) << 24) as u32;
        script.take(3);
        let payload = Bytes::copy_from_slice(script.take(size));
        script.take(TAG_END);
        if kind == SCRIPT_DATA {
            push.announce(size & 1 == 0, size & 2 == 0);
            continue;
        }
        output.pushed += 1;
        let taken = push.take(kind, time, &payload);
        output.take(&mut push);
        match taken {
            Ok(()) => {}
            Err(FlvError::Changed(why)) => {
                assert!(!why.is_empty());
                output.finish();
                // Both headers and the tag.
                output = Output {
                    pushed: 3,
                    ..Output::default()
                };
                push = push.successor(kind);
                if push.take(kind, time, &payload).is_err() {
                    return;
                }
                output.take(&mut push);
            }
            Err(refused) => return assert!(!refused.to_string().is_empty()),
        }
    }
    output.finish();
}

/// What came out of a push.
#[derive(Default)]
struct Output {
    /// Tags that were pushed.
    pushed: usize,
    notes: usize,
    octets: Vec<u8>,
    container: Option<Container>,
}

impl Output {
    fn take(&mut self, push: &mut Push) {
        if push.container().is_some() {
            self.octets.extend(push.take_octets());
        }
        self.notes += push.take_notes().len();
        assert!(self.notes <= 1, "each sentence is said once");
        let container = push.container();
        assert!(self.container.is_none() || self.container == container);
        self.container = container;
        let received = push.received();
        assert!(received.key_frames <= received.pictures);
        if let Some(video) = &received.video {
            assert!(video.width <= 16_384 && video.height <= 16_384);
        }
    }

    fn finish(&self) {
        match self.container {
            Some(Container::Flv) => self.finish_flv(),
            Some(Container::Nut) => self.finish_nut(),
            Some(Container::MpegTs) => panic!("a push is no transport stream"),
            None => assert!(self.octets.is_empty()),
        }
    }

    fn finish_flv(&self) {
        let mut rest = Script(&self.octets);
        assert!(rest.take(FILE_HEADER).starts_with(b"FLV"));
        let mut tags = 0;
        while let Some(kind) = rest.octet() {
            assert!(matches!(kind, 8 | 9));
            let size = rest.number(3) as usize;
            rest.take(TAG_HEADER - 4);
            assert_eq!(rest.take(size).len(), size);
            assert_eq!(rest.number(TAG_END), (size + TAG_HEADER) as u64);
            tags += 1;
        }
        assert!(tags <= self.pushed);
    }

    fn finish_nut(&self) {
        if self.octets.is_empty() {
            return;
        }
        let mut octets = self.octets.clone();
        // Nothing incomplete is before it.
        put_frame(&mut octets, 0, 7, true, b"last");
        let mut reader = NutReader::default();
        reader.push(&octets);
        let mut frames = Vec::new();
        while let Some(frame) = reader.frame().expect("what is written reads") {
            assert!(frame.payload.len() <= MAX_FRAME);
            frames.push(frame);
        }
        let last = frames.pop().expect("the last one");
        assert_eq!(&last.payload[..], b"last");
        assert!(frames.len() <= self.pushed);
        assert!((1..=2).contains(&reader.streams().len()));
    }
}
