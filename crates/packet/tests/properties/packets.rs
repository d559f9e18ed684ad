//! Packets that are built decode to what they were built from.

use std::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::{HmacSigner, HmacVerifier};
use namecast_packet::{
    Component, Data, Interest, KeyLocator, LpPacket, Name, Nonce, Signer as _, VerifyError,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};

use crate::generate::{link_packet, millis, name, name_of, octets, pair, pairs};
use crate::{bodies, config};

const KEY: &[u8] = b"a key that everybody knows";

fn signer() -> HmacSigner {
    HmacSigner::new(KEY, KeyLocator::Name("/key".parse().unwrap()))
}

#[derive(Clone, Debug)]
struct Request {
    name: Name,
    flags: (bool, bool),
    hints: Vec<Name>,
    lifetime: Option<Duration>,
    hops: Option<u8>,
    parameters: Option<Bytes>,
}

fn request() -> impl Strategy<Value = Request> {
    let hints = vec(name(), 0..3);
    let rest = (
        option::of(millis()),
        option::of(any::<u8>()),
        option::of(octets(300)),
    );
    (name(), any::<(bool, bool)>(), hints, rest).prop_map(|(name, flags, hints, rest)| Request {
        name,
        flags,
        hints,
        lifetime: rest.0,
        hops: rest.1,
        parameters: rest.2,
    })
}

fn build(request: &Request) -> namecast_packet::InterestBuilder {
    let mut builder = Interest::builder(request.name.clone());
    if request.flags.0 {
        builder = builder.can_be_prefix();
    }
    if request.flags.1 {
        builder = builder.must_be_fresh();
    }
    for hint in &request.hints {
        builder = builder.forwarding_hint(hint.clone());
    }
    if let Some(lifetime) = request.lifetime {
        builder = builder.lifetime(lifetime);
    }
    if let Some(hops) = request.hops {
        builder = builder.hop_limit(hops);
    }
    match &request.parameters {
        Some(parameters) => builder.parameters(parameters.clone()),
        None => builder,
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn interests_decode_to_what_was_built(request in request(), nonce in any::<[u8; 4]>()) {
        let interest = build(&request).build(Nonce(nonce));
        let decoded = Interest::decode(interest.wire().clone()).unwrap();
        prop_assert_eq!(&decoded, &interest);
        let bare = request.name.len();
        prop_assert_eq!(decoded.name().prefix(bare), request.name);
        prop_assert_eq!(decoded.name().len(), bare + usize::from(request.parameters.is_some()));
        prop_assert_eq!((decoded.can_be_prefix(), decoded.must_be_fresh()), request.flags);
        prop_assert_eq!(decoded.forwarding_hint(), request.hints);
        prop_assert_eq!(decoded.nonce(), Some(Nonce(nonce)));
        let lifetime = request.lifetime.unwrap_or(Interest::DEFAULT_LIFETIME);
        prop_assert_eq!(decoded.lifetime(), lifetime);
        prop_assert_eq!(decoded.hop_limit(), request.hops);
        prop_assert_eq!(decoded.parameters(), request.parameters);
        prop_assert_eq!(decoded.check_parameters_digest(), Ok(()));
        prop_assert_eq!(decoded.verify(&HmacVerifier::new(KEY)), Err(VerifyError::Unsigned));
        bodies::packet(interest.wire());
    }

    #[test]
    fn signed_interests_verify(request in request(), nonce in octets(16), time in millis()) {
        let mut info = signer().info();
        info.nonce = Some(nonce).filter(|nonce| !nonce.is_empty());
        info.time = Some(time);
        let interest = build(&request).sign(Nonce([1; 4]), &signer(), &info);
        let decoded = Interest::decode(interest.wire().clone()).unwrap();
        prop_assert_eq!(decoded.signature_info(), Some(&info));
        prop_assert_eq!(decoded.parameters(), Some(request.parameters.unwrap_or_default()));
        prop_assert_eq!(decoded.verify(&HmacVerifier::new(KEY)), Ok(()));
        let wrong = decoded.verify(&HmacVerifier::new(b"another"));
        prop_assert_eq!(wrong, Err(VerifyError::Wrong));
        bodies::packet(interest.wire());
    }

    #[test]
    fn data_decodes_to_what_was_built(
        pairs in pairs(), kind in any::<u64>(), freshness in millis(), last in option::of(pair()),
        content in option::of(octets(600)),
    ) {
        let name = name_of(&pairs);
        let last = last.map(|pair| name_of(&[pair]));
        let mut builder = Data::builder(name.clone()).content_type(kind.into()).freshness(freshness);
        if let Some(last) = &last {
            builder = builder.final_block(last.clone());
        }
        if let Some(content) = &content {
            builder = builder.content(content.clone());
        }
        let data = builder.sign(&signer());
        let decoded = Data::decode(data.wire().clone()).unwrap();
        prop_assert_eq!(&decoded, &data);
        prop_assert_eq!(decoded.name(), &name);
        prop_assert_eq!(decoded.content_type().number(), kind);
        prop_assert_eq!(decoded.freshness(), freshness);
        prop_assert_eq!(decoded.final_block(), last.as_ref());
        prop_assert_eq!(decoded.content(), content);
        prop_assert_eq!(decoded.verify(&HmacVerifier::new(KEY)), Ok(()));
        bodies::packet(data.wire());
    }

    /// The twin: the Interest's name against the full name, which ends with the implicit digest.
    #[test]
    fn matching_is_the_naive_one(
        pairs in vec(pair(), 1..5), cut in 1..7_usize, can_be_prefix in any::<bool>(), spoil in any::<bool>(),
    ) {
        let pairs: Vec<_> = pairs.into_iter().filter(|(kind, _)| *kind != 2).collect();
        let data = Data::builder(name_of(&pairs)).sign(&signer());
        let mut full = pairs.clone();
        full.push((Component::IMPLICIT_DIGEST, data.implicit_digest().to_vec()));
        let mut asked = full[..cut.min(full.len())].to_vec();
        if spoil && let Some(octet) = asked.last_mut().and_then(|(_, value)| value.last_mut()) {
            *octet ^= 1;
        }
        let mut builder = Interest::builder(name_of(&asked));
        if can_be_prefix {
            builder = builder.can_be_prefix();
        }
        let naive = asked == pairs || asked == full || can_be_prefix && full.starts_with(&asked);
        prop_assert_eq!(builder.build(Nonce([0; 4])).matches(&data), naive);
    }

    #[test]
    fn link_packets_decode_to_what_was_built(packet in link_packet()) {
        let wire = packet.encode_whole();
        prop_assert_eq!(LpPacket::decode(wire), Ok(packet));
    }

    #[test]
    fn no_octets_make_decoding_panic(octets in vec(any::<u8>(), 0..200)) {
        bodies::packet(&octets);
        bodies::lp(&octets);
        bodies::name_uri(&octets);
    }

    /// Octets that look like elements come further than random ones.
    #[test]
    fn no_elements_make_decoding_panic(elements in vec((0..46_u8, octets(20)), 0..8), outer in 5..8_u8) {
        let mut value = Vec::new();
        for (kind, octets) in elements {
            value.extend([kind, u8::try_from(octets.len()).unwrap()]);
            value.extend_from_slice(&octets);
        }
        let mut packet = vec![outer, u8::try_from(value.len()).unwrap()];
        packet.append(&mut value);
        bodies::packet(&packet);
        bodies::name_uri(&packet);
    }

    #[test]
    fn no_text_makes_parsing_panic(text in "(/[a-z0-9%=.+é]{0,8}){0,4}") {
        bodies::name_uri(text.as_bytes());
    }
}
