//! What must hold for any octets: bodies of the fuzz targets (see `fuzz/`), run here on mutated vectors.

use bytes::Bytes;
use namecast_packet::signature::{DigestSigner, DigestVerifier};
use namecast_packet::{
    AnyNextRequest, Certificate, ChunksHad, Data, DecodeError, Extensions, Interest, LpPacket,
    Name, Nonce, Packet, PrefixAnnouncement,
};

/// Takes `octets` for a network-layer packet.
pub(crate) fn packet(octets: &[u8]) {
    match Packet::decode(Bytes::copy_from_slice(octets)) {
        Ok(Packet::Interest(interest)) => check_interest(&interest, octets),
        Ok(Packet::Data(data)) => {
            check_data(&data, octets);
            if let Ok(announcement) = PrefixAnnouncement::decode(data) {
                let name = announcement.data().name();
                assert!(announcement.prefix().is_prefix_of(name));
            }
        }
        Err(error) => check_error(&error, octets),
    }
}

/// Takes `octets` for a link packet.
pub(crate) fn lp(octets: &[u8]) {
    match LpPacket::decode(Bytes::copy_from_slice(octets)) {
        Ok(link) => {
            let again = LpPacket::decode(link.encode_whole());
            assert_eq!(again.as_ref(), Ok(&link));
            any_next(&link.extensions);
            if let Some(fragment) = &link.fragment {
                packet(fragment);
            }
        }
        Err(error) => check_error(&error, octets),
    }
}

/// Takes link header fields for those of any-next-packet delivery: what is read of them is written as it was.
fn any_next(fields: &Extensions) {
    for (_, value) in fields.iter() {
        if let Some(request) = AnyNextRequest::decode(value) {
            assert_eq!(request.encode()[1..], value[1..]);
        }
        let value = Bytes::copy_from_slice(value);
        if let Some(had) = ChunksHad::decode(&value) {
            assert!(had.ranges.len() <= ChunksHad::MAX_RANGES && had.chunk_size > 0);
            assert_eq!(ChunksHad::decode(&had.encode()).as_ref(), Some(&had));
        }
    }
}

/// Takes `octets` for a name: as URI, and as element.
pub(crate) fn name_uri(octets: &[u8]) {
    if let Ok(uri) = core::str::from_utf8(octets)
        && let Ok(name) = uri.parse()
    {
        check_name(&name);
    }
    match Name::decode(&Bytes::copy_from_slice(octets)) {
        Ok(name) => check_name(&name),
        Err(error) => check_error(&error, octets),
    }
}

/// An error points into the packet, or at its end.
fn check_error(error: &DecodeError, octets: &[u8]) {
    assert!(error.offset <= octets.len(), "{error}");
    assert!(!error.field.is_empty());
}

fn check_name(name: &Name) {
    assert_eq!(name.to_string().parse().as_ref(), Ok(name));
    let prefixes: Vec<_> = name.prefixes().collect();
    assert_eq!(prefixes.len(), name.len() + 1);
    assert!(prefixes.iter().all(|prefix| prefix.is_prefix_of(name)));
    assert!(prefixes.is_sorted());
}

fn check_interest(interest: &Interest, octets: &[u8]) {
    assert_eq!(interest.wire(), octets);
    assert!(!interest.name().is_empty());
    check_name(interest.name());
    let signed = interest.signature_info().is_some();
    assert_eq!(signed, interest.signature_value().is_some());
    assert_eq!(signed, !interest.signed_portion().is_empty());
    if interest.verify(&DigestVerifier).is_ok() {
        assert_eq!(interest.check_parameters_digest(), Ok(()));
    }

    let mut sent = interest.clone();
    sent.set_nonce(Nonce([7; 4]));
    assert!(sent.nonce().is_some());
    assert_eq!(sent.parameters(), interest.parameters());
    let hops = sent.hop_limit().map(|_| 9);
    sent.set_hop_limit(9);
    assert_eq!(sent.hop_limit(), hops);
    assert_eq!(Interest::decode(sent.wire().clone()), Ok(sent));
}

fn check_data(data: &Data, octets: &[u8]) {
    assert_eq!(data.wire(), octets);
    check_name(data.name());
    // The verdict is of no interest here, only that there is one.
    drop(data.verify(&DigestVerifier));
    if let Ok(certificate) = Certificate::decode(data.clone()) {
        check_name(&certificate.key_name());
        assert!(certificate.identity().is_prefix_of(&certificate.key_name()));
        drop(certificate.public_key());
    }

    let mut builder = Data::builder(data.name().clone())
        .content_type(data.content_type())
        .freshness(data.freshness());
    if let Some(id) = data.final_block() {
        builder = builder.final_block(id.clone());
    }
    if let Some(content) = data.content() {
        builder = builder.content(content);
    }
    let copy = builder.sign(&DigestSigner);
    assert_eq!(Data::decode(copy.wire().clone()).as_ref(), Ok(&copy));
    assert_eq!(copy.verify(&DigestVerifier), Ok(()));
    assert_eq!(copy.content(), data.content());

    let request = Interest::builder(data.name().clone()).try_build(Nonce([7; 4]));
    if let Ok(request) = request {
        assert_eq!(request.matches(data), request.name() == data.name());
    }
}
