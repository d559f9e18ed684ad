use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{ContentType, SignatureInfo, Signer as _, Validity};
use namecast_units::Random;

use super::*;

/// Time at which certificates are judged, in the middle of their validity.
const NOW: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
const DAY: u64 = 86_400_000_000;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn key_pair(identity: &str, seed: u8) -> Ed25519Signer {
    let key_name = name(identity).builder().generic("KEY").generic("1");
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(key_name.finish()))
}

fn validity(days: core::ops::Range<i64>) -> Validity {
    let moment = |days: i64| NOW.as_micros().saturating_add_signed(days * DAY as i64);
    Validity {
        not_before: Timestamp::from_micros(moment(days.start)),
        not_after: Timestamp::from_micros(moment(days.end)),
    }
}

fn certificate(identity: &str, seed: u8, days: core::ops::Range<i64>) -> Certificate {
    let pair = key_pair(identity, seed);
    Certificate::self_signed(&name(identity), b"1", 1, validity(days), &pair)
}

/// A signer that says of itself what a certificate's signer has to.
struct Issuing<'a> {
    pair: &'a Ed25519Signer,
    info: SignatureInfo,
}

impl namecast_packet::Signer for Issuing<'_> {
    fn info(&self) -> SignatureInfo {
        self.info.clone()
    }

    fn sign(&self, portion: &[u8]) -> bytes::Bytes {
        self.pair.sign(portion)
    }
}

/// The key of `seed` as `/demo/cam`, certified by the key of `issuer`.
fn issued(seed: u8, issuer: u8) -> Data {
    let own = certificate("/demo/cam", seed, -1..1);
    let pair = key_pair("/demo", issuer);
    let mut info = own.data().signature_info().clone();
    info.key_locator = pair.info().key_locator;
    let issued = own.key_name().builder().generic("demo").version(1);
    Data::builder(issued.finish())
        .content_type(ContentType::Key)
        .freshness(own.data().freshness())
        .content(own.data().content().unwrap())
        .sign(&Issuing { pair: &pair, info })
}

fn verdict(trust: &Trust, data: Data) -> Verdict {
    let judge = Judge {
        root: &name("/demo/cam"),
        trust,
        known: None,
        wall: NOW,
        is_past: false,
    };
    judge.judge(data).expect("a certificate").0.verdict
}

fn own(seed: u8) -> Data {
    certificate("/demo/cam", seed, -1..1).data().clone()
}

fn digest(seed: u8) -> [u8; 32] {
    key_pair("/demo/cam", seed).public_key().digest()
}

fn pinned(certificate: Certificate) -> Trust {
    Trust::Pinned(Pin::Certificate(Box::new(certificate)))
}

/// Every pair of keys: what is remembered or pinned accepts itself and nothing else, and says which of the two it is.
#[test]
fn a_digest_accepts_its_own_key_alone() {
    for (seed, other) in (1..6).flat_map(|seed| (1..6).map(move |other| (seed, other))) {
        let remembered = verdict(&Trust::Remembered(digest(seed)), own(other));
        let pin = verdict(&Trust::Pinned(Pin::Digest(digest(seed))), own(other));
        let expected = match seed == other {
            true => (Verdict::Remembered, Verdict::Pinned),
            false => (
                Verdict::Refused(Refusal::ChangedKey),
                Verdict::Refused(Refusal::OtherKey),
            ),
        };
        assert_eq!((remembered, pin), expected, "{seed} {other}");
    }
}

/// Any flipped bit of a remembered digest is another key.
#[test]
fn a_digest_is_compared_to_its_last_bit() {
    for bit in 0..256 {
        let mut digest = digest(1);
        digest[bit / 8] ^= 1 << (bit % 8);
        let verdict = verdict(&Trust::Remembered(digest), own(1));
        assert_eq!(verdict, Verdict::Refused(Refusal::ChangedKey), "{bit}");
    }
}

#[test]
fn the_first_key_is_kept_until_the_end() {
    let (root, trust) = (name("/demo/cam"), Trust::FirstUse);
    let first = TrustedKey {
        key: Arc::new(key_pair("/demo/cam", 1).public_key()),
    };
    let judge = Judge {
        root: &root,
        trust: &trust,
        known: Some(&first),
        wall: NOW,
        is_past: false,
    };
    let verdict = |data| judge.judge(data).unwrap().0.verdict;
    assert_eq!(verdict(own(1)), Verdict::FirstUse);
    assert_eq!(verdict(own(2)), Verdict::Refused(Refusal::ChangedKey));
}

/// A certificate pins its key, and what that key certified; not another key with the same name, nor what that one certified.
#[test]
fn a_certificate_pins_itself_and_what_it_issued() {
    let itself = pinned(certificate("/demo/cam", 1, -1..1));
    assert_eq!(verdict(&itself, own(1)), Verdict::Pinned);
    let other = Verdict::Refused(Refusal::OtherKey);
    assert_eq!(verdict(&itself, own(2)), other);

    let issuer = pinned(certificate("/demo", 9, -1..1));
    assert_eq!(verdict(&issuer, issued(1, 9)), Verdict::Pinned);
    assert_eq!(verdict(&issuer, issued(2, 9)), Verdict::Pinned);
    let forged = Verdict::Refused(Refusal::BadCertificate);
    assert_eq!(verdict(&issuer, issued(1, 8)), forged);
    assert_eq!(verdict(&issuer, own(1)), other);

    let issued_itself = pinned(Certificate::decode(issued(1, 9)).unwrap());
    assert_eq!(verdict(&issued_itself, issued(1, 9)), Verdict::Pinned);
}

/// Who certifies must be above what is watched, and in force.
#[test]
fn an_issuer_elsewhere_or_expired_vouches_for_nothing() {
    let other = Verdict::Refused(Refusal::OtherKey);
    for elsewhere in ["/demo2", "/demo/cam/x", "/other"] {
        let issuer = pinned(certificate(elsewhere, 9, -1..1));
        assert_eq!(verdict(&issuer, issued(1, 9)), other, "{elsewhere}");
    }
    for days in [-2..-1, 1..2] {
        let issuer = pinned(certificate("/demo", 9, days));
        assert_eq!(verdict(&issuer, issued(1, 9)), other);
    }
    assert_eq!(
        verdict(&pinned(certificate("/", 9, -1..1)), issued(1, 9)),
        Verdict::Pinned
    );
}

/// Without the issuer's certificate nobody can tell whether the issuer signed, so it is not a first use either.
#[test]
fn an_unknown_issuer_is_not_trusted_on_first_use() {
    let forged = Verdict::Refused(Refusal::BadCertificate);
    assert_eq!(verdict(&Trust::FirstUse, issued(1, 9)), forged);
}

/// One flipped bit anywhere in an issued certificate: it is no certificate, or refused.
#[test]
fn a_damaged_certificate_is_not_vouched_for() {
    let issuer = pinned(certificate("/demo", 9, -1..1));
    let whole = issued(1, 9);
    let mut random = Random::from_seed(7);
    for _ in 0..300 {
        let mut wire = whole.wire().to_vec();
        let bit = random.below(wire.len() as u64 * 8) as usize;
        wire[bit / 8] ^= 1 << (bit % 8);
        let Ok(data) = Data::decode(wire.into()) else {
            continue;
        };
        let root = name("/demo/cam");
        let judge = Judge {
            root: &root,
            trust: &issuer,
            known: None,
            wall: NOW,
            is_past: false,
        };
        let refused = judge.judge(data).is_none_or(|(_, key)| key.is_none());
        assert!(refused, "bit {bit}");
    }
}

const RULES: &str = "#KEY: \"KEY\"/_/_/_\n#anchor: \"demo\"/#KEY\n#cam: \"demo\"/id/#KEY <= #anchor\n#lead: \"demo\"/id/\"lead\" <= #cam\n";

/// Chains to the anchor with the key of `seed`, whose certificate is known.
fn chains(seed: u8) -> SharedChains {
    let limits = crate::trust::schema::Limits::default();
    let schema = crate::trust::schema::Schema::compile(RULES, &limits).unwrap();
    let anchor = certificate("/demo", seed, -1..1);
    let digest = anchor.public_key().unwrap().digest();
    let mut chains = trust::Chains::new(
        Arc::new(schema),
        1,
        trust::Anchor::Digest(digest),
        trust::ChainConfig::default(),
    );
    chains.offer(anchor.data().clone()).unwrap();
    SharedChains::new(chains)
}

#[test]
fn a_schema_accepts_keys_that_the_anchor_certified() {
    let by_nine = Trust::Schema(chains(9));
    assert_eq!(verdict(&by_nine, issued(1, 9)), Verdict::Certified);
    let chain = |refusal| Verdict::Refused(Refusal::Chain(refusal));
    let forged = chain(trust::Refusal::WrongSignature);
    assert_eq!(verdict(&Trust::Schema(chains(9)), issued(1, 8)), forged);
    let own_word = chain(trust::Refusal::NotAllowed);
    assert_eq!(verdict(&by_nine, own(1)), own_word);
    let anchor = certificate("/demo", 9, -1..1).data().clone();
    assert_eq!(verdict(&by_nine, anchor.clone()), Verdict::Certified);

    let chains = chains(9);
    let revoked = [(digest(1), NOW)].into();
    chains.with(|it| it.set_revoked(1, revoked)).unwrap();
    let revoked = Trust::Schema(chains);
    let expected = chain(trust::Refusal::Revoked);
    assert_eq!(verdict(&revoked, issued(1, 9)), expected);
}

/// The issuer is named, so that it can be fetched; once it is here, the certificate counts.
#[test]
fn a_missing_issuer_is_named_and_counters_stay_from_one_certificate_to_the_next() {
    let limits = crate::trust::schema::Limits::default();
    let schema = crate::trust::schema::Schema::compile(RULES, &limits).unwrap();
    let anchor = certificate("/demo", 9, -1..1);
    let digest = anchor.public_key().unwrap().digest();
    let config = trust::ChainConfig::default();
    let anchored = trust::Anchor::Digest(digest);
    let chains = trust::Chains::new(Arc::new(schema), 1, anchored, config);
    let chains = SharedChains::new(chains);
    let trust = Trust::Schema(chains.clone());
    let issuer = key_pair("/demo", 9).info().key_locator;
    let Some(namecast_packet::KeyLocator::Name(issuer)) = issuer else {
        panic!("a key's name");
    };
    let missing = Verdict::Refused(Refusal::MissingIssuer(issuer.clone()));
    assert_eq!(verdict(&trust, issued(1, 9)), missing);
    assert_eq!(chains.with(trust::Chains::poll_missing), Some(issuer));
    chains.with(|it| it.offer(anchor.data().clone())).unwrap();
    assert_eq!(verdict(&trust, issued(1, 9)), Verdict::Certified);
    let refused = Verdict::Refused(Refusal::Chain(trust::Refusal::NotAllowed));
    for times in 1..=3 {
        assert_eq!(verdict(&trust, own(2)), refused);
        let counted = chains.with(|it| it.counters().refused(trust::Refusal::NotAllowed));
        assert_eq!(counted, times);
    }
}

/// The key of a camera that is trusted signs what the schema lets it, and nothing else.
#[test]
fn a_schema_is_asked_for_each_name() {
    let trust = Trust::Schema(chains(9));
    let issued = issued(1, 9);
    assert_eq!(verdict(&trust, issued.clone()), Verdict::Certified);
    let pair = key_pair("/demo/cam", 1);
    let key = Arc::new(pair.public_key());
    let verifier = verifier(&trust, issued.name(), key);
    let is_accepted = |uri: &str| {
        let data = Data::builder(name(uri)).sign(&pair);
        data.verify(&*verifier).is_ok()
    };
    assert!(is_accepted("/demo/cam/lead"));
    assert!(!is_accepted("/demo/other/lead"));
    assert!(!is_accepted("/demo/cam/metadata"));
}
