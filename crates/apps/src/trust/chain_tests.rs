use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{ContentType, SignatureInfo, Signer, Validity};

use super::super::schema::Limits;
use super::super::{SchemaVerifier, SharedChains};
use super::*;

/// Time at which packets are judged, in the middle of certificates' validity.
const NOW: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
const LIVE: Moment = Moment::Live(NOW);
const HOUR: u64 = 3_600_000_000;
const RULES: &str = include_str!("../../tests/schemas/calls.trust");
/// Seed of the anchor's key.
const FOX: u8 = 1;
const ANN: u8 = 2;
const BOB: u8 = 3;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn schema(text: &str) -> Arc<Schema> {
    Arc::new(Schema::compile(text, &Limits::default()).unwrap())
}

/// A key pair that names `locator`.
fn pair(seed: u8, locator: &str) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(name(locator)))
}

struct WithInfo<'a>(&'a Ed25519Signer, SignatureInfo);

impl Signer for WithInfo<'_> {
    fn info(&self) -> SignatureInfo {
        self.1.clone()
    }

    fn sign(&self, portion: &[u8]) -> bytes::Bytes {
        self.0.sign(portion)
    }
}

/// The certificate `uri` of the key of `seed`, valid in these hours from now, signed by `issuer`, which names `locator`.
fn certificate(uri: &str, seed: u8, hours: [i64; 2], (issuer, locator): (u8, &str)) -> Data {
    let moment = |hours: i64| {
        let micros = NOW.as_micros().saturating_add_signed(hours * HOUR as i64);
        Timestamp::from_micros(micros)
    };
    let validity = Validity {
        not_before: moment(hours[0]),
        not_after: moment(hours[1]),
    };
    let own = pair(seed, uri);
    // Only its SignatureInfo is used.
    let template = Certificate::self_signed(&name("/x"), b"1", 1, validity, &own);
    let mut info = template.data().signature_info();
    info.key_locator = Some(KeyLocator::Name(name(locator)));
    let issuer = pair(issuer, locator);
    Data::builder(name(uri))
        .content_type(ContentType::Key)
        .freshness(Duration::from_secs(3_600))
        .content(own.public_key().to_spki())
        .sign(&WithInfo(&issuer, info))
}

const ANCHOR: &str = "/calls/fox/KEY/1/self/v=1";
const ANN_CERTIFICATE: &str = "/calls/fox/ann/KEY/1/fox/v=1";
const BOB_CERTIFICATE: &str = "/calls/fox/bob/KEY/1/fox/v=1";
const LEAD: &str = "/calls/fox/ann/video/1M/key/seq=3/data/seg=0";

fn anchor() -> Data {
    certificate(ANCHOR, FOX, [-1, 1], (FOX, "/calls/fox/KEY/1"))
}

fn member(uri: &str, seed: u8, hours: [i64; 2]) -> Data {
    certificate(uri, seed, hours, (FOX, ANCHOR))
}

fn digest(seed: u8) -> [u8; 32] {
    pair(seed, "/").public_key().digest()
}

fn chains(certificates: &[Data]) -> Chains {
    let anchor = Anchor::Digest(digest(FOX));
    let mut chains = Chains::new(schema(RULES), 1, anchor, ChainConfig::default());
    for certificate in certificates {
        chains.offer(certificate.clone()).unwrap();
    }
    chains
}

fn call() -> Chains {
    chains(&[
        anchor(),
        member(ANN_CERTIFICATE, ANN, [-1, 1]),
        member(BOB_CERTIFICATE, BOB, [-1, 1]),
    ])
}

fn packet(uri: &str, seed: u8, locator: &str) -> Data {
    Data::builder(name(uri)).sign(&pair(seed, locator))
}

fn refusal(chains: &mut Chains, packet: &Data) -> Refusal {
    let before = *chains.counters();
    let Judgement::Refused(refusal) = chains.judge(packet, LIVE) else {
        panic!("{packet:?} counts, or more is needed");
    };
    assert_eq!(
        chains.counters().refused(refusal),
        before.refused(refusal) + 1
    );
    assert_eq!(chains.counters().accepted, before.accepted);
    refusal
}

fn is_accepted(chains: &mut Chains, packet: &Data) -> bool {
    matches!(chains.judge(packet, LIVE), Judgement::Accepted { .. })
}

/// A locator is the certificate's name, its key's, or the former without version.
#[test]
fn members_count_under_their_own_names_however_they_name_their_key() {
    for locator in [
        ANN_CERTIFICATE,
        "/calls/fox/ann/KEY/1",
        "/calls/fox/ann/KEY/1/fox",
    ] {
        let mut chains = call();
        let judgement = chains.judge(&packet(LEAD, ANN, locator), LIVE);
        let expected = Judgement::Accepted {
            certificate: name(ANN_CERTIFICATE),
            key: Arc::new(pair(ANN, "/").public_key()),
        };
        assert_eq!(judgement, expected, "{locator}");
    }
    let mut chains = call();
    let by_identity = packet(LEAD, ANN, "/calls/fox/ann/KEY");
    let missing = Judgement::Missing(name("/calls/fox/ann/KEY"));
    assert_eq!(chains.judge(&by_identity, LIVE), missing);
}

#[test]
fn each_reason_refuses_what_it_should() {
    let mut chains = call();
    let wrong_key = packet(LEAD, BOB, ANN_CERTIFICATE);
    assert_eq!(refusal(&mut chains, &wrong_key), Refusal::WrongSignature);
    let other_name = packet(LEAD, BOB, BOB_CERTIFICATE);
    assert_eq!(refusal(&mut chains, &other_name), Refusal::NotAllowed);
    let by_anchor = packet(LEAD, FOX, ANCHOR);
    assert_eq!(refusal(&mut chains, &by_anchor), Refusal::NotAllowed);
    let by_digest =
        Ed25519Signer::from_seed([ANN; 32], KeyLocator::Digest(digest(ANN).to_vec().into()));
    let by_digest = Data::builder(name(LEAD)).sign(&by_digest);
    assert_eq!(
        refusal(&mut chains, &by_digest),
        Refusal::NoCertificateNamed
    );
    let no_certificate = packet(ANN_CERTIFICATE, FOX, ANCHOR);
    assert_eq!(chains.offer(no_certificate), Err(Refusal::NotACertificate));
    assert_eq!(chains.counters().refused(Refusal::NotACertificate), 1);
    assert!(is_accepted(
        &mut chains,
        &packet(LEAD, ANN, ANN_CERTIFICATE)
    ));
}

/// A certificate that another member, or a stranger with the same names, signed.
#[test]
fn certificates_of_others_than_the_anchor_do_not_count() {
    let by_bob = certificate(ANN_CERTIFICATE, ANN, [-1, 1], (BOB, BOB_CERTIFICATE));
    let mut forged = chains(&[anchor(), by_bob, member(BOB_CERTIFICATE, BOB, [-1, 1])]);
    let lead = packet(LEAD, ANN, ANN_CERTIFICATE);
    assert_eq!(refusal(&mut forged, &lead), Refusal::NotAllowed);

    let stranger = certificate(ANCHOR, 9, [-1, 1], (9, "/calls/fox/KEY/1"));
    let by_stranger = certificate(ANN_CERTIFICATE, ANN, [-1, 1], (9, ANCHOR));
    let mut other = chains(&[stranger, by_stranger]);
    assert_eq!(refusal(&mut other, &lead), Refusal::OtherAnchor);

    // The anchor's key, under the anchor's name, but signed by somebody else.
    let taken = certificate(ANCHOR, FOX, [-1, 1], (9, "/calls/fox/KEY/1"));
    let mut taken = chains(&[taken, member(ANN_CERTIFICATE, ANN, [-1, 1])]);
    assert_eq!(refusal(&mut taken, &lead), Refusal::OtherAnchor);
}

/// A day is what clocks may differ by, for each certificate of the chain.
#[test]
fn certificates_count_within_a_day_of_their_validity() {
    for (hours, is_valid) in [
        ([-1, 1], true),
        ([-30, -24], true),
        ([-30, -25], false),
        ([24, 30], true),
        ([25, 30], false),
    ] {
        let lead = packet(LEAD, ANN, ANN_CERTIFICATE);
        let mut own = chains(&[anchor(), member(ANN_CERTIFICATE, ANN, hours)]);
        let issuer = certificate(ANCHOR, FOX, hours, (FOX, "/calls/fox/KEY/1"));
        let mut above = chains(&[issuer, member(ANN_CERTIFICATE, ANN, [-1, 1])]);
        for chains in [&mut own, &mut above] {
            assert_eq!(is_accepted(chains, &lead), is_valid, "{hours:?}");
            if !is_valid {
                assert_eq!(refusal(chains, &lead), Refusal::NotValidNow);
            }
        }
    }
}

/// A chain that was accepted is refused once the anchor's certificate expires, although the member's is valid for longer.
#[test]
fn a_known_chain_ends_with_its_shortest_certificate() {
    let mut chains = chains(&[anchor(), member(ANN_CERTIFICATE, ANN, [-1, 900])]);
    let lead = packet(LEAD, ANN, ANN_CERTIFICATE);
    assert!(is_accepted(&mut chains, &lead));
    let at = |hours: u64| Timestamp::from_micros(NOW.as_micros() + hours * HOUR);
    assert!(matches!(
        chains.judge(&lead, Moment::Live(at(25))),
        Judgement::Accepted { .. }
    ));
    let late = chains.judge(&lead, Moment::Live(at(26)));
    assert_eq!(late, Judgement::Refused(Refusal::NotValidNow));
}

/// The verdict names the missing certificate nearest to the packet, and one certificate is fetched for all packets.
#[test]
fn missing_certificates_are_named_one_by_one() {
    let mut chains = chains(&[]);
    let lead = packet(LEAD, ANN, ANN_CERTIFICATE);
    let missing = |uri| Judgement::Missing(name(uri));
    assert_eq!(chains.judge(&lead, LIVE), missing(ANN_CERTIFICATE));
    chains.offer(member(ANN_CERTIFICATE, ANN, [-1, 1])).unwrap();
    assert_eq!(chains.judge(&lead, LIVE), missing(ANCHOR));
    chains.offer(anchor()).unwrap();
    assert!(is_accepted(&mut chains, &lead));
    // The lead's name, checked once for each of three judgements.
    assert_eq!(chains.counters().remembered, 1);
}

/// Rules for a chain of keys `/a/1`, `/a/2`, … each of which signs the next.
fn ladder(count: usize) -> (Chains, Data) {
    let mut rules = "#k0: \"a\"/\"0\"/\"KEY\"/_/_/_\n".to_owned();
    for it in 1..=count {
        rules += &format!("#k{it}: \"a\"/\"{it}\"/\"KEY\"/_/_/_ <= #k{}\n", it - 1);
    }
    rules += &format!("#data: \"a\"/\"data\" <= #k{count}\n");
    let uri = |it: usize| format!("/a/{it}/KEY/1/x/v=1");
    let seed = |it: usize| FOX + it as u8;
    let anchor = Anchor::Digest(digest(FOX));
    let mut chains = Chains::new(schema(&rules), 1, anchor, ChainConfig::default());
    for it in 0..=count {
        let above = it.saturating_sub(1);
        let certificate = certificate(&uri(it), seed(it), [-1, 1], (seed(above), &uri(above)));
        chains.offer(certificate).unwrap();
    }
    (chains, packet("/a/data", seed(count), &uri(count)))
}

#[test]
fn chains_of_four_certificates_count_and_longer_ones_do_not() {
    for (steps, expected) in [(0, true), (1, true), (3, true)] {
        let (mut chains, data) = ladder(steps);
        assert_eq!(is_accepted(&mut chains, &data), expected, "{steps}");
    }
    let (mut chains, data) = ladder(4);
    assert_eq!(refusal(&mut chains, &data), Refusal::TooLong);
    // Nor once the upper part is known.
    let (mut chains, data) = ladder(4);
    let upper = certificate(
        "/a/4/KEY/1/x/v=1",
        FOX + 4,
        [-1, 1],
        (FOX + 3, "/a/3/KEY/1/x/v=1"),
    );
    assert!(is_accepted(&mut chains, &upper));
    assert_eq!(refusal(&mut chains, &data), Refusal::TooLong);
}

/// Two keys that certify each other, as a schema of two patterns would allow.
#[test]
fn a_circle_of_certificates_is_too_long() {
    let rules = "#a: \"a\"/x/\"KEY\"/_/_/_ <= #b\n#b: \"b\"/x/\"KEY\"/_/_/_ <= #c\n#c: \"a\"/\"z\"/\"KEY\"/_/_/_\n#d: \"d\" <= #a";
    let uris = ["/a/z/KEY/1/x/v=1", "/b/z/KEY/1/x/v=1"];
    let anchor = Anchor::Digest(digest(FOX));
    let mut chains = Chains::new(schema(rules), 1, anchor, ChainConfig::default());
    for (own, other) in [(0, 1), (1, 0)] {
        let seed = |it: usize| ANN + it as u8;
        let data = certificate(uris[own], seed(own), [-1, 1], (seed(other), uris[other]));
        chains.offer(data).unwrap();
    }
    let data = packet("/d", ANN, uris[0]);
    assert_eq!(refusal(&mut chains, &data), Refusal::TooLong);
}

#[test]
fn a_revoked_key_counts_no_more_and_lists_only_grow() {
    let mut chains = call();
    let lead = packet(LEAD, ANN, ANN_CERTIFICATE);
    assert!(is_accepted(&mut chains, &lead));
    chains.set_revoked(2, [(digest(ANN), NOW)].into()).unwrap();
    assert_eq!(refusal(&mut chains, &lead), Refusal::Revoked);
    let back = chains.set_revoked(1, BTreeMap::new());
    assert_eq!(chains.counters().refused(Refusal::SetBack), 1);
    assert_eq!(
        back,
        Err(SetBack {
            offered: 1,
            known: 2
        })
    );
    assert_eq!(refusal(&mut chains, &lead), Refusal::Revoked);
    chains.set_revoked(3, [(digest(FOX), NOW)].into()).unwrap();
    assert_eq!(refusal(&mut chains, &lead), Refusal::Revoked);
    chains.set_revoked(4, BTreeMap::new()).unwrap();
    assert!(is_accepted(&mut chains, &lead));
}

#[test]
fn another_schema_is_in_force_at_once_and_never_an_older_one() {
    let mut chains = call();
    let lead = packet(LEAD, ANN, ANN_CERTIFICATE);
    assert!(is_accepted(&mut chains, &lead));
    let without_leads = RULES.split("#lead").next().unwrap();
    chains.set_schema(2, schema(without_leads)).unwrap();
    assert_eq!(refusal(&mut chains, &lead), Refusal::NotAllowed);
    let back = chains.set_schema(1, schema(RULES));
    assert_eq!(chains.counters().refused(Refusal::SetBack), 1);
    assert_eq!(
        back,
        Err(SetBack {
            offered: 1,
            known: 2
        })
    );
    assert_eq!(refusal(&mut chains, &lead), Refusal::NotAllowed);
}

/// Of 100 leads the first is checked by the schema, and Bob's key never gets what Ann's has.
#[test]
fn permissions_are_remembered_for_one_key_and_its_own_names() {
    let mut chains = call();
    for number in 0..100 {
        let lead = format!("/calls/fox/ann/video/1M/key/seq={number}/data/seg=0");
        assert!(is_accepted(
            &mut chains,
            &packet(&lead, ANN, ANN_CERTIFICATE)
        ));
        let stolen = packet(&lead, BOB, BOB_CERTIFICATE);
        assert_eq!(refusal(&mut chains, &stolen), Refusal::NotAllowed);
    }
    // The lead's; the certificate's is not asked again.
    assert_eq!(chains.counters().remembered, 99);
}

#[test]
fn a_pinned_certificate_is_the_anchor() {
    let pinned = Certificate::decode(anchor()).unwrap();
    let anchor = Anchor::Certificate(Box::new(pinned));
    let mut chains = Chains::new(schema(RULES), 1, anchor, ChainConfig::default());
    chains.offer(member(ANN_CERTIFICATE, ANN, [-1, 1])).unwrap();
    assert!(is_accepted(
        &mut chains,
        &packet(LEAD, ANN, ANN_CERTIFICATE)
    ));
}

/// Certificates from anybody do not push out those in use, nor take their place.
#[test]
fn a_flood_of_certificates_keeps_to_its_bound() {
    let config = ChainConfig {
        max_certificates: 10,
        ..ChainConfig::default()
    };
    let mut chains = Chains::new(schema(RULES), 1, Anchor::Digest(digest(FOX)), config);
    chains.offer(anchor()).unwrap();
    chains.offer(member(ANN_CERTIFICATE, ANN, [-1, 1])).unwrap();
    let lead = packet(LEAD, ANN, ANN_CERTIFICATE);
    assert!(is_accepted(&mut chains, &lead));
    for it in 0..100 {
        let uri = format!("/calls/fox/x{it}/KEY/1/fox/v=1");
        chains.offer(member(&uri, 9, [-1, 1])).unwrap();
        assert!(chains.certificates.len() <= 10);
    }
    let forged = certificate(ANN_CERTIFICATE, 9, [-1, 1], (9, ANCHOR));
    chains.offer(forged).unwrap();
    assert!(is_accepted(&mut chains, &lead));
}

#[test]
fn every_refusal_has_a_sentence_and_a_name() {
    let mut names: Vec<_> = Refusal::ALL.iter().map(|it| it.name()).collect();
    let sentences: BTreeSet<_> = Refusal::ALL.iter().map(ToString::to_string).collect();
    names.dedup();
    assert_eq!((names.len(), sentences.len()), (11, 11));
    for (index, refusal) in Refusal::ALL.into_iter().enumerate() {
        assert_eq!(refusal as usize, index);
    }
}

fn verifier(chains: &SharedChains, certificate: &Data, seed: u8) -> SchemaVerifier {
    let judged = chains.judge_certificate(certificate, LIVE);
    assert!(matches!(judged, Judgement::Accepted { .. }), "{judged:?}");
    let key = Arc::new(pair(seed, "/").public_key());
    chains.verifier(certificate.name(), key)
}

/// A pipeline that knows one signer still looks at each name, and costs a look-up for each name like one before.
#[test]
fn a_verifier_of_one_key_checks_each_name() {
    let chains = SharedChains::new(call());
    let ann = verifier(&chains, &member(ANN_CERTIFICATE, ANN, [-1, 1]), ANN);
    let verify = |uri: &str, seed| packet(uri, seed, ANN_CERTIFICATE).verify(&ann).is_ok();
    assert!(verify(LEAD, ANN));
    assert!(!verify(LEAD, BOB), "wrong key");
    let others = LEAD.replace("ann", "bob");
    assert!(!verify(&others, ANN), "another's name");
    assert!(verify("/calls/fox/ann/32=route", ANN));
    let remembered = |chains: &SharedChains| chains.with(|it| it.counters().remembered);
    let before = remembered(&chains);
    for number in 0..100 {
        assert!(verify(
            &LEAD.replace("seq=3", &format!("seq={number}")),
            ANN
        ));
    }
    assert_eq!(remembered(&chains), before + 100);
    let refused = chains.with(|it| it.counters().refused(Refusal::NotAllowed));
    assert_eq!(refused, 1, "the name of another");
}

/// Without a packet in between: revoked, allowed again, no longer allowed by the schema, expired.
#[test]
fn a_verifier_learns_of_new_versions_and_of_the_time() {
    let shared = SharedChains::new(call());
    let ann = verifier(&shared, &member(ANN_CERTIFICATE, ANN, [-1, 1]), ANN);
    let is_accepted = || packet(LEAD, ANN, ANN_CERTIFICATE).verify(&ann).is_ok();
    let refused = |refusal| shared.with(|it| it.counters().refused(refusal));
    assert!(is_accepted());
    let revoked = [(digest(ANN), NOW)].into();
    shared.with(|it| it.set_revoked(1, revoked)).unwrap();
    assert!(!is_accepted());
    assert_eq!(refused(Refusal::Revoked), 1);
    shared
        .with(|it| it.set_revoked(2, BTreeMap::new()))
        .unwrap();
    assert!(is_accepted());
    let without_leads = schema(RULES.split("#lead").next().unwrap());
    shared.with(|it| it.set_schema(2, without_leads)).unwrap();
    assert!(!is_accepted());
    assert_eq!(refused(Refusal::NotAllowed), 1);
    shared.with(|it| it.set_schema(3, schema(RULES))).unwrap();
    assert!(is_accepted());
    let late = Timestamp::from_micros(NOW.as_micros() + 26 * HOUR);
    shared.with(|it| it.tell(Moment::Live(late)));
    assert!(!is_accepted());
    assert_eq!(refused(Refusal::NotValidNow), 1);
}

/// A verifier whose certificate was evicted has it fetched again.
#[test]
fn a_verifier_without_its_certificate_says_which_one_is_missing() {
    let shared = SharedChains::new(call());
    let key = Arc::new(pair(9, "/").public_key());
    let uri = "/calls/fox/eve/KEY/1/fox/v=1";
    let eve = shared.verifier(&name(uri), key);
    let lead = packet(&LEAD.replace("ann", "eve"), 9, uri);
    assert!(lead.verify(&eve).is_err());
    assert_eq!(shared.with(Chains::poll_missing), Some(name(uri)));
    assert_eq!(shared.with(Chains::poll_missing), None);
    shared.with(|it| it.tell(LIVE));
    shared.with(|it| it.offer(member(uri, 9, [-1, 1]))).unwrap();
    assert!(lead.verify(&eve).is_ok());
    // The certificate of this name is now of another key.
    let other = shared.verifier(&name(uri), Arc::new(pair(ANN, "/").public_key()));
    assert!(lead.verify(&other).is_err());
}

/// A key that was revoked at noon has signed what was recorded before noon.
#[test]
fn recordings_are_judged_by_when_a_key_was_revoked() {
    let mut chains = call();
    let lead = packet(LEAD, ANN, ANN_CERTIFICATE);
    let at = |minutes: i64| {
        let micros = NOW.as_micros().saturating_add_signed(minutes * 60_000_000);
        Timestamp::from_micros(micros)
    };
    chains.set_revoked(1, [(digest(ANN), NOW)].into()).unwrap();
    chains.tell(Moment::Live(at(1)));
    for (moment, counts) in [
        (Moment::Ever, true),
        (Moment::Recorded(at(-1)), true),
        (Moment::Recorded(at(0)), false),
        (Moment::Recorded(at(1)), false),
        (Moment::Live(at(-1)), false),
        (Moment::Live(at(1)), false),
    ] {
        let judged = chains.judge(&lead, moment);
        let expected = matches!(judged, Judgement::Accepted { .. });
        assert_eq!(expected, counts, "{moment:?}: {judged:?}");
    }
}

/// Certificates end an hour from now. Ten years later, what says that it was published until a day after that still counts, nothing after that does, and a
/// time to come is taken for now. A key that was revoked before its certificate was valid never counted.
#[test]
fn recordings_outlive_certificates() {
    let mut chains = call();
    let lead = packet(LEAD, ANN, ANN_CERTIFICATE);
    let at = |hours: i64| {
        let micros = NOW.as_micros().saturating_add_signed(hours * HOUR as i64);
        Timestamp::from_micros(micros)
    };
    let later = at(10 * 365 * 24);
    let mut judge = |moment| {
        chains.tell(Moment::Live(later));
        match chains.judge(&lead, moment) {
            Judgement::Accepted { certificate, .. } => {
                assert!(!chains.counts_now(&certificate));
                Ok(())
            }
            Judgement::Refused(why) => Err(why),
            Judgement::Missing(name) => panic!("{name}"),
        }
    };
    let over = Err(Refusal::NotValidNow);
    assert_eq!(judge(Moment::Live(later)), over);
    assert_eq!(judge(Moment::Ever), Ok(()));
    for (hours, verdict) in [
        (-26, over),
        (-25, Ok(())),
        (0, Ok(())),
        (25, Ok(())),
        (26, over),
    ] {
        assert_eq!(judge(Moment::Recorded(at(hours))), verdict, "{hours} h");
    }
    assert_eq!(
        judge(Moment::Recorded(Timestamp::from_micros(u64::MAX))),
        over
    );
    chains
        .set_revoked(1, [(digest(ANN), at(-30))].into())
        .unwrap();
    for moment in [Moment::Ever, Moment::Recorded(at(0))] {
        let judged = chains.judge(&lead, moment);
        assert_eq!(judged, Judgement::Refused(Refusal::Revoked), "{moment:?}");
    }
}

/// python-ndn 0.5.2 (`derive_cert`) certified Ann's key with the anchor's: chains accept it, and not when an octet of it changed.
#[test]
fn a_certificate_that_python_ndn_signed_counts() {
    const WIRE: &str = "\
        06f50728080563616c6c730803666f780803616e6e08034b45590801310803666f783608000001a22925d8f0140918010219040036ee80152c302a300506032b6570\
        0321008139770ea87d175f56a35466c34c7ecccb8d8a91b4ee37a25df60f5b8fc9b394164e1b01051c1f071d080563616c6c730803666f7808034b45590801310804\
        73656c66360101fd00fd26fd00fe0f323032353130303954303835333230fd00ff0f32303236313030395430383533323017408aabbf9c590efc67b564ab34695c54\
        f5ee2dc5d254ac8d244db98def744bd428eaa1d1df64a1bd96e6f1a9f383740c29b2c199e0348ee6e01439a4799565d807";
    let wire = namecast_packet::hex_decode(WIRE).unwrap();
    let certificate = Data::decode(wire.clone().into()).unwrap();
    let locator = certificate.name().to_string();
    let mut chains = chains(&[anchor(), certificate]);
    assert!(is_accepted(&mut chains, &packet(LEAD, ANN, &locator)));
    let mut changed = wire;
    *changed.last_mut().unwrap() ^= 1;
    let changed = Data::decode(changed.into()).unwrap();
    let mut chains = self::chains(&[anchor(), changed]);
    let packet = packet(LEAD, ANN, &locator);
    assert_eq!(refusal(&mut chains, &packet), Refusal::WrongSignature);
}

/// A certificate is judged with its own key and validity, and counts as one of four.
#[test]
fn a_certificate_is_judged_like_what_its_key_signs() {
    let (fresh, stale) = (
        member(ANN_CERTIFICATE, ANN, [-1, 1]),
        member(ANN_CERTIFICATE, ANN, [30, 40]),
    );
    let mut chains = chains(&[anchor()]);
    let judged = chains.judge_certificate(&fresh, LIVE);
    let expected = Judgement::Accepted {
        certificate: name(ANN_CERTIFICATE),
        key: Arc::new(pair(ANN, "/").public_key()),
    };
    assert_eq!(judged, expected);
    chains.set_revoked(1, [(digest(ANN), NOW)].into()).unwrap();
    let refused = |refusal| Judgement::Refused(refusal);
    assert_eq!(
        chains.judge_certificate(&fresh, LIVE),
        refused(Refusal::Revoked)
    );
    assert_eq!(chains.counters().refused(Refusal::Revoked), 1);
    let mut others = self::chains(&[anchor()]);
    assert_eq!(
        others.judge_certificate(&stale, LIVE),
        refused(Refusal::NotValidNow)
    );
    let (mut ladder, _) = ladder(4);
    let last = certificate(
        "/a/4/KEY/1/x/v=1",
        FOX + 4,
        [-1, 1],
        (FOX + 3, "/a/3/KEY/1/x/v=1"),
    );
    assert_eq!(
        ladder.judge_certificate(&last, LIVE),
        refused(Refusal::TooLong)
    );
}

/// A forged certificate is forgotten once its signature was found wrong, so that the right one can be fetched.
#[test]
fn a_forged_certificate_makes_room_for_the_right_one() {
    let forged = certificate(ANN_CERTIFICATE, ANN, [-1, 1], (9, ANCHOR));
    let mut chains = chains(&[anchor(), forged]);
    let lead = packet(LEAD, ANN, ANN_CERTIFICATE);
    assert_eq!(refusal(&mut chains, &lead), Refusal::WrongSignature);
    let missing = Judgement::Missing(name(ANN_CERTIFICATE));
    assert_eq!(chains.judge(&lead, LIVE), missing);
    chains.offer(member(ANN_CERTIFICATE, ANN, [-1, 1])).unwrap();
    assert!(is_accepted(&mut chains, &lead));
}
