use namecast_packet::Certificate;
use namecast_packet::signature::KeyPair;

use super::super::Host;
use super::*;
use crate::fixtures::{self, WALL, name, now, pair, validity};
use crate::trust::template::Template;
use crate::trust::{ChainConfig, Judgement, Refusal, Revocation};

const ROOT: &str = "/calls/fox";

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
    let roster = Roster {
        members: vec![fixtures::member(&member("ann", 2, 1))],
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
            let mut is_quiet = false;
            while !is_quiet {
                is_quiet = true;
                while let Some(output) = self.bulletin.poll_output() {
                    is_quiet = false;
                    match output {
                        Output::Send(frame) => host.handle_frame(now(millis), frame),
                        Output::Event(event) => self.events.push(event),
                    }
                }
                while let Some(Output::Send(frame)) = host.poll_output() {
                    is_quiet = false;
                    self.bulletin.handle_frame(now(millis), frame);
                }
            }
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

/// Ann's packet is accepted by a reader that has her certificate, until her key is revoked.
fn accepted(host: &mut Host, reader: &mut Reader) -> Data {
    let packet = lead("ann", 2);
    assert_eq!(reader.verdict(&packet), Err(Refusal::MissingCertificate));
    reader.run(host, 1_000, 2_000);
    assert_eq!(reader.verdict(&packet), Ok(()));
    packet
}

/// The Interest for the next roster waits at the host, which answers it as it publishes: the roster is in force with the first packet. Where the host
/// passes over a version, the reader looks for the newest at once.
#[test]
fn a_new_roster_is_in_force_at_once() {
    let (mut host, mut reader) = followed();
    let packet = accepted(&mut host, &mut reader);
    reader.run(&mut host, 2_000, 30_010);
    assert_eq!(reader.verdict(&packet), Ok(()));
    host.publish(Part::Roster, 2, roster(&[2])).unwrap();
    reader.run(&mut host, 30_010, 30_020);
    assert_eq!(reader.verdict(&packet), Err(Refusal::Revoked));
    let is_second = |event: &Event| matches!(event, Event::Roster(2, _));
    assert!(reader.events.iter().any(is_second), "{:?}", reader.events);
    reader.run(&mut host, 30_020, 31_000);
    host.publish(Part::Roster, 4, roster(&[])).unwrap();
    reader.run(&mut host, 31_000, 31_040);
    assert_eq!(reader.verdict(&packet), Ok(()));
}

/// The host starts again, and knows nothing of the Interest that waited: it has the next one 2 s later at most.
#[test]
fn a_new_roster_of_a_host_that_starts_again_is_in_force_soon() {
    let (mut host, mut reader) = followed();
    let packet = accepted(&mut host, &mut reader);
    let mut again = self::host(1);
    let rules = schema(Template::Call);
    again.publish(Part::Schema, 1, rules).unwrap();
    again.publish(Part::Roster, 2, roster(&[2])).unwrap();
    reader.run(&mut again, 2_000, 4_010);
    assert_eq!(reader.verdict(&packet), Err(Refusal::Revoked));
}

/// The next roster arrives from somebody else than the anchor: it is not in force, and the right one is with the next look.
#[test]
fn a_forged_next_roster_is_not_in_force() {
    let (mut host, mut reader) = followed();
    let packet = accepted(&mut host, &mut reader);
    let mut forger = self::host(9);
    forger.publish(Part::Roster, 1, roster(&[])).unwrap();
    // Its answer to the Interest that waits there.
    reader.run(&mut forger, 2_000, 4_900);
    forger.publish(Part::Roster, 2, roster(&[2])).unwrap();
    reader.run(&mut forger, 4_900, 4_910);
    assert_eq!(reader.verdict(&packet), Ok(()));
    host.publish(Part::Roster, 2, roster(&[2])).unwrap();
    reader.run(&mut host, 4_910, 10_500);
    assert_eq!(reader.verdict(&packet), Err(Refusal::Revoked));
}

/// A relay that refuses, or forwarders without a route: the Interest for the next roster is sent 30 times a minute, and newest versions are looked for every
/// 5 s, whoever refuses with whatever reason.
#[test]
fn refusals_do_not_hasten_the_next_request() {
    for reason in [NackReason::NoRoute, NackReason::None] {
        let (_, mut reader) = followed();
        let mut sent = [0; 2];
        for millis in (1_000..61_000).step_by(10) {
            reader.bulletin.handle_timeout(now(millis));
            while let Some(output) = reader.bulletin.poll_output() {
                let Output::Send(frame) = output else {
                    continue;
                };
                let Ok(Some((Packet::Interest(interest), _))) = face::open(frame) else {
                    continue;
                };
                let next = name(&format!("{ROOT}/32=roster/v=2/seg=0"));
                sent[usize::from(*interest.name() == next)] += 1;
                let refused = face::refusal(&interest, None, reason);
                reader.bulletin.handle_frame(now(millis), refused);
            }
        }
        let [others, next] = sent;
        assert!((11..=13).contains(&next), "{reason:?}: {next}");
        assert!(others <= 250, "{reason:?}: {others}");
    }
}

/// 2,000 Interests for the next roster, each with a PIT token of its own: those that there is room for are answered as it is published, once.
#[test]
fn interests_that_wait_for_a_roster_are_bounded() {
    let (mut host, _) = followed();
    let next = name(&format!("{ROOT}/32=roster/v=2/seg=0"));
    for number in 0..2_000_u32 {
        let interest = Interest::builder(next.clone()).build(number.into());
        let link = LpPacket {
            pit_token: Some(number.to_be_bytes().to_vec().into()),
            ..LpPacket::carrying(interest.wire().clone())
        };
        host.handle_frame(now(0), link.encode());
    }
    while host.poll_output().is_some() {}
    host.publish(Part::Roster, 2, roster(&[])).unwrap();
    assert_eq!(core::iter::from_fn(|| host.poll_output()).count(), 256);
    host.publish(Part::Roster, 3, roster(&[])).unwrap();
    assert_eq!(host.poll_output(), None);
    assert_eq!(Application::poll_timeout(&host), None);
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
