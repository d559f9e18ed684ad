use core::cell::RefCell;

use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Certificate, KeyLocator, Validity};

use super::super::Host;
use super::*;
use crate::trust::template::Template;
use crate::trust::{ChainConfig, Judgement, Member, Refusal, Revocation};

const WALL: u64 = 1_760_000_000_000_000;
const ROOT: &str = "/calls/fox";

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn now(millis: u64) -> Now {
    Now {
        monotonic: Instant::ZERO + Duration::from_millis(millis),
        wall: Timestamp::from_micros(WALL + millis * 1_000),
    }
}

fn pair(seed: u8, locator: &Name) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(locator.clone()))
}

fn validity() -> Validity {
    Validity::of_own_key(Timestamp::from_micros(WALL))
}

/// The anchor's certificate, by the key of `seed`.
fn anchor(seed: u8) -> Certificate {
    let pair = pair(seed, &name(ROOT));
    Certificate::self_signed(&name(ROOT), b"1", 1, validity(), &pair)
}

fn digest(seed: u8) -> [u8; 32] {
    pair(seed, &name("/")).public_key().digest()
}

/// The certificate of the member `id` with the key of `seed`.
fn member(id: &str, seed: u8, issuer: u8) -> Certificate {
    let uri = name(&format!("{ROOT}/{id}/KEY/1/fox/v=1"));
    let key = pair(seed, &uri).public_key();
    let issuer = pair(issuer, anchor(issuer).name());
    Certificate::issue(uri, &key, validity(), &[], &issuer).unwrap()
}

/// A schema of the template, in octets.
fn schema(template: Template) -> Bytes {
    let rules = template.rules(&name(ROOT));
    Schema::compile(&rules, &Limits::default())
        .unwrap()
        .encode()
}

fn roster(revoked: &[u8]) -> Bytes {
    let revocations = revoked.iter().map(|seed| Revocation {
        key_digest: digest(*seed),
        since: Timestamp::from_micros(WALL),
        certificate: Name::root(),
    });
    let ann = Member {
        certificate: member("ann", 2, 1).name().clone(),
        key_digest: digest(2),
        until: validity().not_after,
        role: "member".to_owned(),
        exchange_key: None,
        label: String::new(),
    };
    let roster = Roster {
        members: vec![ann],
        revocations: revocations.collect(),
    };
    roster.encode()
}

fn host(seed: u8) -> Host {
    let certificate = anchor(seed);
    let signer = Box::new(pair(seed, certificate.name()));
    Host::new(name(ROOT), signer, certificate).unwrap()
}

/// A reader that trusts the key of seed 1 for the room.
struct Reader {
    chains: SharedChains,
    bulletin: Bulletin,
    events: Vec<Event>,
}

impl Reader {
    fn new() -> Self {
        let anchor = Anchor::Digest(digest(1));
        let schema = Arc::new(Schema::nothing());
        let chains = Chains::new(schema, 0, anchor.clone(), ChainConfig::default());
        let chains = SharedChains::new(chains);
        let config = BulletinConfig {
            wall_at_zero: Timestamp::from_micros(WALL),
            ..BulletinConfig::new(Some(name(ROOT)), anchor)
        };
        Self {
            bulletin: Bulletin::new(config, chains.clone()),
            chains,
            events: Vec::new(),
        }
    }

    /// Runs it from `from` to `to`, in milliseconds, with `host` one step away.
    fn run(&mut self, host: &mut Host, from: u64, to: u64) {
        for millis in (from..to).step_by(10) {
            self.bulletin.handle_timeout(now(millis));
            let sent = RefCell::new(Vec::new());
            let drain = |reader: &mut Self| {
                while let Some(output) = reader.bulletin.poll_output() {
                    match output {
                        Output::Send(frame) => sent.borrow_mut().push(frame),
                        Output::Event(event) => reader.events.push(event),
                    }
                }
            };
            drain(self);
            while let Some(frame) = sent.borrow_mut().pop() {
                host.handle_frame(now(millis), frame);
            }
            while let Some(Output::Send(frame)) = host.poll_output() {
                self.bulletin.handle_frame(now(millis), frame);
            }
            drain(self);
        }
    }

    fn verdict(&self, packet: &Data) -> Result<(), Refusal> {
        let judged = self
            .chains
            .with(|it| it.judge(packet, Moment::Live(now(0).wall)));
        match judged {
            Judgement::Accepted { .. } => Ok(()),
            Judgement::Missing(_) => Err(Refusal::MissingCertificate),
            Judgement::Refused(why) => Err(why),
        }
    }
}

/// A host that publishes version 1 of schema and roster and Ann's certificate, and a reader that has read schema and roster.
fn followed() -> (Host, Reader) {
    let mut host = host(1);
    host.publish(Part::Schema, 1, schema(Template::Call))
        .unwrap();
    host.publish(Part::Roster, 1, roster(&[])).unwrap();
    assert!(host.add_certificate(&member("ann", 2, 1)));
    let mut reader = Reader::new();
    reader.run(&mut host, 0, 1_000);
    (host, reader)
}

fn lead(id: &str, seed: u8) -> Data {
    let certificate = member(id, seed, 1);
    let uri = format!("{ROOT}/{id}/video/1M/key/seq=1/data/seg=0");
    Data::builder(name(&uri)).sign(&pair(seed, certificate.name()))
}

/// Schema, roster and the certificate that a packet names: all by the digest of the anchor's key alone.
#[test]
fn a_reader_finds_rules_roster_and_certificates_by_the_anchors_digest() {
    let (mut host, mut reader) = followed();
    assert!(
        reader.events.contains(&Event::Schema(1)),
        "{:?}",
        reader.events
    );
    let packet = lead("ann", 2);
    assert_eq!(reader.verdict(&packet), Err(Refusal::MissingCertificate));
    reader.run(&mut host, 1_000, 2_000);
    assert_eq!(reader.verdict(&packet), Ok(()));
    // Nothing new, and nothing reported twice.
    let before = reader.events.len();
    reader.run(&mut host, 2_000, 12_000);
    assert_eq!(reader.events.len(), before, "{:?}", reader.events);
}

/// Within the interval of five seconds, with its packets accepted until then.
#[test]
fn a_revocation_is_in_force_after_the_next_look() {
    let (mut host, mut reader) = followed();
    let packet = lead("ann", 2);
    assert_eq!(reader.verdict(&packet), Err(Refusal::MissingCertificate));
    reader.run(&mut host, 1_000, 2_000);
    assert_eq!(reader.verdict(&packet), Ok(()));
    host.publish(Part::Roster, 2, roster(&[2])).unwrap();
    reader.run(&mut host, 2_000, 4_990);
    assert_eq!(reader.verdict(&packet), Ok(()));
    reader.run(&mut host, 4_990, 6_500);
    assert_eq!(reader.verdict(&packet), Err(Refusal::Revoked));
    let is_second = |event: &Event| matches!(event, Event::Roster(2, _));
    assert!(reader.events.iter().any(is_second), "{:?}", reader.events);
}

/// A relay, or a host restored from an old copy, offers version 1 after version 2.
#[test]
fn versions_set_back_are_refused_counted_and_reported_once() {
    let mut newer = host(1);
    newer
        .publish(Part::Schema, 2, schema(Template::Call))
        .unwrap();
    newer.publish(Part::Roster, 2, roster(&[2])).unwrap();
    newer.add_certificate(&member("ann", 2, 1));
    let mut reader = Reader::new();
    reader.run(&mut newer, 0, 1_000);
    let packet = lead("ann", 2);
    assert_eq!(reader.verdict(&packet), Err(Refusal::MissingCertificate));
    reader.run(&mut newer, 1_000, 2_000);
    assert_eq!(reader.verdict(&packet), Err(Refusal::Revoked));
    let mut older = host(1);
    older
        .publish(Part::Schema, 1, schema(Template::Tracks))
        .unwrap();
    older.publish(Part::Roster, 1, roster(&[])).unwrap();
    reader.run(&mut older, 2_000, 30_000);
    assert_eq!(reader.verdict(&packet), Err(Refusal::Revoked));
    let set_back = SetBack {
        offered: 1,
        known: 2,
    };
    for part in Part::ALL {
        let reports = reader.events.iter();
        let reports = reports.filter(|it| **it == Event::SetBack(part, set_back));
        assert_eq!(reports.count(), 1, "{part}: {:?}", reader.events);
    }
    let counted = reader
        .chains
        .with(|it| it.counters().refused(Refusal::SetBack));
    assert_eq!(counted, 2);
}

/// Names of members are theirs: the host is silent, so that Interests reach those who are there.
#[test]
fn a_host_neither_answers_nor_refuses_for_members() {
    let mut host = host(1);
    host.publish(Part::Schema, 1, schema(Template::Call))
        .unwrap();
    let mut ask = |uri: &str| {
        let interest = Interest::builder(name(uri)).can_be_prefix().build(1.into());
        host.handle_frame(now(0), interest.wire().clone());
        host.poll_output()
    };
    assert_eq!(ask("/calls/fox/ann/32=metadata"), None);
    assert_eq!(ask("/calls/fox/ann/KEY/9"), None);
    assert!(ask("/calls/fox/32=trust").is_some());
    assert!(ask("/calls/fox/32=roster/v=7").is_some(), "refused");
    assert!(ask("/calls/fox/KEY").is_some());
}

/// Somebody else answers under the root: neither rules nor roster are taken.
#[test]
fn another_anchors_rules_are_not_taken() {
    let mut other = host(9);
    other
        .publish(Part::Schema, 7, schema(Template::Call))
        .unwrap();
    other.publish(Part::Roster, 7, roster(&[])).unwrap();
    let mut reader = Reader::new();
    reader.run(&mut other, 0, 20_000);
    let failed = reader.events.iter();
    let is_failure = |it: &&Event| matches!(it, Event::Failed(_, Failure::NotAccepted(_)));
    assert!(
        failed.filter(is_failure).count() >= 2,
        "{:?}",
        reader.events
    );
    let is_set = |it: &Event| matches!(it, Event::Schema(_) | Event::Roster(..));
    assert!(!reader.events.iter().any(is_set), "{:?}", reader.events);
}

/// A malformed object of the anchor changes neither schema nor roster.
#[test]
fn what_cannot_be_read_is_reported_and_changes_nothing() {
    let (mut host, mut reader) = followed();
    host.publish(Part::Schema, 2, Bytes::from("no schema"))
        .unwrap();
    host.publish(Part::Roster, 2, Bytes::from("no roster"))
        .unwrap();
    let packet = lead("ann", 2);
    let _ = reader.verdict(&packet);
    reader.run(&mut host, 1_000, 7_000);
    for part in Part::ALL {
        let is_reported = |it: &Event| matches!(it, Event::Malformed(at, _) if *at == part);
        assert!(reader.events.iter().any(is_reported), "{:?}", reader.events);
    }
    assert_eq!(reader.verdict(&packet), Ok(()));
}
