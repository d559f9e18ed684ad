use namecast_packet::signature::Ed25519Signer;
use namecast_packet::{Certificate, KeyLocator, Name};
use namecast_stream::ProducerConfig;

use super::super::cue::{Action, CueId, Outcome};
use super::super::{desk_identity, desk_root, device_root, stream};
use super::*;
use crate::fixtures::{name, now, validity};
use crate::live::PublisherConfig;

/// A desk or device that publishes, and what it appends to its log.
struct Side {
    publisher: crate::live::Publisher,
    stream: &'static str,
    log: Vec<u8>,
    sent: u64,
}

impl Side {
    /// Publishes under `root`, signed by `identity`.
    fn new(root: Name, identity: &Name, stream_name: &'static str) -> Self {
        let key = identity.builder().generic("KEY").generic("1").finish();
        let signer = Ed25519Signer::from_seed([7; 32], KeyLocator::Name(key));
        let certificate = Certificate::self_signed(identity, b"1", 9, validity(), &signer);
        let config = PublisherConfig {
            root,
            streams: vec![stream(stream_name)],
            producer: ProducerConfig::default(),
            shared_since: None,
        };
        let wall = now(0).wall;
        let publisher = crate::live::Publisher::new(config, wall, Box::new(signer), &certificate);
        Self {
            publisher: publisher.unwrap(),
            stream: stream_name,
            log: certificate.data().wire().to_vec(),
            sent: 0,
        }
    }

    /// Publishes a message, and returns its packets.
    fn send(&mut self, message: Vec<u8>) -> Vec<u8> {
        self.sent += 1;
        let at = now(self.sent * 1_000);
        self.publisher
            .publish_sample(at, self.stream, message)
            .unwrap();
        let packets = self.publisher.newest_sample(self.stream);
        packets
            .iter()
            .flat_map(|data| data.wire().to_vec())
            .collect()
    }
}

fn desk() -> Side {
    let show = name("/show");
    Side::new(
        desk_root(&show, "main"),
        &desk_identity(&show, "main"),
        CUES,
    )
}

fn cue(number: &str, text: usize) -> Cue {
    Cue {
        id: CueId([1; 16]),
        number: number.to_owned(),
        action: Action::Go,
        term: 0,
        at: now(0).wall,
        targets: Vec::new(),
        values: [("text".to_owned(), "x".repeat(text).into())]
            .into_iter()
            .collect(),
        rehearsal: false,
    }
}

fn read(log: &[u8]) -> Vec<Result<LogLine, LogError>> {
    Log::new(Bytes::copy_from_slice(log)).collect()
}

/// Cues of one packet and of several, and a device's report, are read as they were signed.
#[test]
fn a_log_says_who_pressed_and_did() {
    let mut desk = desk();
    let mut log = desk.log.clone();
    for cue in [cue("1", 0), cue("2", 3_000), cue("3", 0)] {
        log.extend(desk.send(cue.encode().unwrap()));
    }
    let root = device_root(&name("/show"), "light-1");
    let mut device = Side::new(root.clone(), &root, ACKS);
    log.extend(device.log.clone());
    let done = Done {
        outcome: Outcome::Executed,
        ..Done::refusal("")
    };
    log.extend(device.send(done.encode()));
    let lines: Vec<_> = read(&log).into_iter().map(Result::unwrap).collect();
    let numbers: Vec<_> = lines.iter().map(|line| line.line).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let Message::Cue(second) = &lines[1].message else {
        panic!("{:?}", lines[1]);
    };
    assert_eq!(*second, cue("2", 3_000));
    assert_eq!(lines[1].publisher.name(), "main");
    assert_eq!(lines[3].publisher.name(), "light-1");
    assert_eq!(lines[3].message, Message::Done(done));
    assert_eq!(lines[0].at, now(1_000).wall);
    assert_eq!(
        lines[0].signed.certificate.identity(),
        name("/show/desk/main")
    );
}

/// Each octet of a signed packet that is another is found, and named by its line or octet; so are a line that is missing, one that another
/// key signed, and an end that was cut off.
#[test]
fn a_line_that_was_changed_is_named() {
    let mut desk = desk();
    let parts: Vec<_> = ["1", "2", "3"]
        .map(|number| desk.send(cue(number, 2_000).encode().unwrap()))
        .to_vec();
    let whole = [&desk.log[..], &parts.concat()].concat();
    assert!(read(&whole).iter().all(Result::is_ok));
    let second = desk.log.len() + parts[0].len();
    for at in second..second + parts[1].len() {
        let mut wrong = whole.clone();
        wrong[at] ^= 1;
        let lines = read(&wrong);
        assert!(lines.iter().any(Result::is_err), "octet {at}");
        let numbers = lines.iter().flatten().map(|line| &line.message);
        let is_second =
            |message: &Message| matches!(message, Message::Cue(cue) if cue.number == "2");
        assert!(!numbers.into_iter().any(is_second), "octet {at}");
    }
    let mut forged = whole.clone();
    let text = whole
        .windows(3)
        .rposition(|octets| octets == b"xxx")
        .unwrap();
    forged[text] = b'y';
    let problems: Vec<_> = read(&forged).into_iter().filter_map(Result::err).collect();
    assert_eq!(problems, [LogError::Segments(3)]);
    // Without its second line.
    let missing = [&desk.log[..], &parts[0], &parts[2]].concat();
    let problems: Vec<_> = read(&missing).into_iter().filter_map(Result::err).collect();
    assert_eq!(
        problems,
        [LogError::Gap {
            line: 2,
            missing: 1
        }]
    );
    let unsigned = read(&parts[0]);
    assert_eq!(unsigned, [Err(LogError::Certificate(1))]);
    let cut = read(&whole[..whole.len() - 1]);
    assert_eq!(cut[2], Err(LogError::Segments(3)));
}

/// The key of a device signs no cue, and no key of another show does.
#[test]
fn a_key_signs_for_its_own_desk_alone() {
    let show = name("/show");
    for identity in [
        "/show/device/light-1",
        "/other/desk/main",
        "/show/desk/backup",
        "/",
    ] {
        let mut liar = Side::new(desk_root(&show, "main"), &name(identity), CUES);
        let message = liar.send(cue("1", 0).encode().unwrap());
        let log = [&liar.log[..], &message].concat();
        let expected = LogError::Signer(1, name(identity), desk_root(&show, "main"));
        assert_eq!(read(&log), [Err(expected)]);
    }
    // Its own key, without a room.
    let root = desk_root(&show, "main");
    let mut own = Side::new(root.clone(), &root, CUES);
    let message = own.send(cue("1", 0).encode().unwrap());
    assert!(read(&[&own.log[..], &message].concat())[0].is_ok());
}
