//! Interest packets: NDN Packet Format v0.3, section "Interest Packet".

mod builder;
mod template;

pub use builder::InterestBuilder;
pub use template::InterestTemplate;

use core::fmt;
use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;
use namecast_units::Random;
use sha2::{Digest, Sha256};

use crate::copy::patched;
use crate::data::{Data, required_name};
use crate::error::{DecodeError, Problem};
use crate::name::{Component, Name};
use crate::signature::{SignatureInfo, Verifier, VerifyError};
use crate::tlv::{self, Fields, Reader, Writer};

/// Tells one transmission of an Interest from another, so that loops are found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub [u8; 4]);

impl Nonce {
    /// Returns the Nonce of one more transmission.
    pub fn draw(random: &mut Random) -> Self {
        Self::from(random.next_u64() as u32)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

impl From<u32> for Nonce {
    fn from(number: u32) -> Self {
        Self(number.to_be_bytes())
    }
}

/// A decoded Interest; its fields share the memory of [`wire`](Self::wire).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interest {
    wire: Bytes,
    name: Name,
    body: Body,
}

/// What an Interest says besides its Name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Body {
    can_be_prefix: bool,
    must_be_fresh: bool,
    nonce: Option<Nonce>,
    lifetime: Option<Duration>,
    /// The number, and where its octet is.
    hop_limit: Option<(u8, usize)>,
    forwarding_hint: Vec<Name>,
    parameters: Option<Range<usize>>,
    /// What few Interests have must not make all of them large.
    signature: Option<Box<Signature>>,
}

/// The elements of a signature: both in a valid Interest, or neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Signature {
    info: Option<SignatureInfo>,
    value: Option<Range<usize>>,
}

/// What most Interests say, of which one can be made without decoding it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    pub(crate) nonce: Nonce,
    pub(crate) lifetime: Option<Duration>,
    /// Its octet is the last one.
    pub(crate) hop_limit: Option<u8>,
}

/// Fields of an Interest after its Name, in order.
const ORDER: [u32; 9] = [
    tlv::CAN_BE_PREFIX,
    tlv::MUST_BE_FRESH,
    tlv::FORWARDING_HINT,
    tlv::NONCE,
    tlv::INTEREST_LIFETIME,
    tlv::HOP_LIMIT,
    tlv::APPLICATION_PARAMETERS,
    tlv::INTEREST_SIGNATURE_INFO,
    tlv::INTEREST_SIGNATURE_VALUE,
];

impl Interest {
    /// Lifetime of an Interest that states none.
    pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(4);

    /// Starts an Interest for `name`.
    pub fn builder(name: Name) -> InterestBuilder {
        InterestBuilder::new(name)
    }

    /// Decodes the Interest that fills `wire` whole.
    ///
    /// The parameters digest must be there exactly if ApplicationParameters are, and last if the Interest is signed;
    /// whether it is right is for [`check_parameters_digest`](Self::check_parameters_digest), as forwarders do not look.
    ///
    /// # Errors
    /// The first violation of the packet format, with field and offset.
    pub fn decode(wire: Bytes) -> Result<Self, DecodeError> {
        let whole = Reader::new(&wire).only("Interest", tlv::INTEREST)?;
        let mut reader = Reader::within(&wire, whole.value);
        let name_at = reader.position();
        let (name, digests) = required_name(&wire, &mut reader)?;
        if name.is_empty() {
            return Err(DecodeError::new("Name", name_at, Problem::BadLength(0)));
        }
        let body = Body::decode(&wire, Fields::new(reader, "Interest", &ORDER))?;
        if digests != usize::from(body.parameters.is_some()) {
            return Err(digest_error(name_at));
        }
        if let Some(signature) = &body.signature {
            let missing = |field| Err(DecodeError::new(field, wire.len(), Problem::Missing));
            let is_digest = |last: Component<'_>| last.kind == Component::PARAMETERS_DIGEST;
            match (&signature.info, &signature.value) {
                (None, _) => return missing("InterestSignatureInfo"),
                (_, None) => return missing("InterestSignatureValue"),
                _ if body.parameters.is_none() => return missing("ApplicationParameters"),
                _ if !name.last().is_some_and(is_digest) => return Err(digest_error(name_at)),
                _ => {}
            }
        }
        Ok(Self { wire, name, body })
    }

    /// Returns the Interest that `wire` is: the components of its name, which were checked, and these parts.
    pub(crate) fn from_parts(wire: Bytes, name: Range<usize>, parts: Parts) -> Self {
        Self {
            name: Name::from_checked(wire.slice(name)),
            body: Body {
                can_be_prefix: parts.can_be_prefix,
                must_be_fresh: parts.must_be_fresh,
                nonce: Some(parts.nonce),
                lifetime: parts.lifetime,
                hop_limit: parts.hop_limit.map(|hops| (hops, wire.len() - 1)),
                ..Body::default()
            },
            wire,
        }
    }

    /// Returns the packet's octets.
    pub const fn wire(&self) -> &Bytes {
        &self.wire
    }

    /// Returns the octets and name in memory that `copy` makes, for tables that outlive the frame.
    pub fn detached(&self, copy: impl FnOnce(&[u8]) -> Bytes) -> (Bytes, Name) {
        const DECODED: &str = "decoded before";
        let wire = copy(&self.wire);
        let whole = Reader::new(&wire).only("Interest", tlv::INTEREST);
        let name = Reader::within(&wire, whole.expect(DECODED).value).element("Name");
        let name = name
            .expect(DECODED)
            .expect("an Interest starts with its name");
        let name = Name::from_checked(wire.slice(name.value));
        (wire, name)
    }

    /// Returns what is requested.
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// Returns whether Data with a longer name may answer.
    pub const fn can_be_prefix(&self) -> bool {
        self.body.can_be_prefix
    }

    /// Returns whether caches may answer with fresh Data only.
    pub const fn must_be_fresh(&self) -> bool {
        self.body.must_be_fresh
    }

    /// Returns the names whose routes to follow instead of the Interest's own.
    pub fn forwarding_hint(&self) -> &[Name] {
        &self.body.forwarding_hint
    }

    /// Returns the number of this transmission, if it has one.
    pub const fn nonce(&self) -> Option<Nonce> {
        self.body.nonce
    }

    /// Returns how long the Interest stays pending.
    pub fn lifetime(&self) -> Duration {
        self.body.lifetime.unwrap_or(Self::DEFAULT_LIFETIME)
    }

    /// Returns how many more nodes may receive the Interest, if that is limited.
    pub fn hop_limit(&self) -> Option<u8> {
        self.body.hop_limit.map(|(hops, _)| hops)
    }

    /// ApplicationParameters.
    pub fn parameters(&self) -> Option<Bytes> {
        let whole = self.body.parameters.clone()?;
        Some(self.value_of(whole))
    }

    /// Returns how the Interest is signed, if it is.
    pub const fn signature_info(&self) -> Option<&SignatureInfo> {
        match &self.body.signature {
            Some(signature) => signature.info.as_ref(),
            None => None,
        }
    }

    /// Returns the signature's octets, if the Interest is signed.
    pub fn signature_value(&self) -> Option<Bytes> {
        let whole = self.body.signature.as_ref()?.value.clone()?;
        Some(self.value_of(whole))
    }

    /// Sets the HopLimit to `hops`, if the Interest has one.
    pub fn set_hop_limit(&mut self, hops: u8) {
        if let Some((before, at)) = &mut self.body.hop_limit
            && *before != hops
        {
            *before = hops;
            self.wire = patched(&self.wire, |octets| octets[*at] = hops);
        }
    }

    /// Gives the Interest a Nonce, if it has none.
    ///
    /// Nodes that receive an Interest without one add it, since others drop such Interests.
    pub fn set_nonce(&mut self, nonce: Nonce) {
        if self.body.nonce.is_some() {
            return;
        }
        let mut value = Writer::with_capacity(self.wire.len() + 8);
        let whole = Reader::new(&self.wire)
            .only("Interest", tlv::INTEREST)
            .expect("decoded before");
        let mut reader = Reader::within(&self.wire, whole.value.clone());
        let mut at = whole.value.start;
        // The Nonce follows the last of these.
        let before = [
            tlv::NAME,
            tlv::CAN_BE_PREFIX,
            tlv::MUST_BE_FRESH,
            tlv::FORWARDING_HINT,
        ];
        while let Ok(Some(element)) = reader.element("Interest") {
            if before.contains(&element.element_type) {
                at = element.value.end;
            }
        }
        value.raw(&self.wire[whole.value.start..at]);
        value.element(tlv::NONCE, &nonce.0);
        value.raw(&self.wire[at..]);
        let mut wire = Writer::with_capacity(value.len() + 4);
        wire.element(tlv::INTEREST, value.as_slice());
        *self = Self::decode(wire.finish()).expect("a Nonce in its place leaves an Interest valid");
    }

    /// The same Interest as one more transmission: with `nonce` in place of its own.
    #[must_use]
    pub fn with_nonce(&self, nonce: Nonce) -> Self {
        let mut other = self.clone();
        let at = other.body.nonce.and_then(|_| self.nonce_at());
        let Some(at) = at else {
            other.set_nonce(nonce);
            return other;
        };
        other.body.nonce = Some(nonce);
        other.wire = patched(&self.wire, |octets| {
            octets[at..at + nonce.0.len()].copy_from_slice(&nonce.0);
        });
        other
    }

    /// Returns the Interest with other octets at the end of its name, and another Nonce, each with where it is.
    pub(crate) fn patched(
        &self,
        (number_at, number): (usize, &[u8]),
        (nonce_at, nonce): (usize, [u8; 4]),
    ) -> Self {
        let wire = patched(&self.wire, |octets| {
            octets[number_at..number_at + number.len()].copy_from_slice(number);
            octets[nonce_at..nonce_at + nonce.len()].copy_from_slice(&nonce);
        });
        let name_end = number_at + number.len();
        let name = wire.slice(name_end - self.name.value().len()..name_end);
        Self {
            name: Name::from_checked(name),
            wire,
            body: Body {
                nonce: Some(Nonce(nonce)),
                ..self.body.clone()
            },
        }
    }

    /// Returns where the Nonce's octets start.
    fn nonce_at(&self) -> Option<usize> {
        let whole = Reader::new(&self.wire).only("Interest", tlv::INTEREST);
        let mut reader = Reader::within(&self.wire, whole.ok()?.value);
        while let Ok(Some(element)) = reader.element("Interest") {
            if element.element_type == tlv::NONCE {
                return Some(element.value.start);
            }
        }
        None
    }

    /// Returns whether `data` answers this Interest, freshness aside.
    pub fn matches(&self, data: &Data) -> bool {
        if self.name == *data.name() {
            return true;
        }
        if self.body.can_be_prefix && self.name.is_prefix_of(data.name()) {
            return true;
        }
        let Some(last) = self.name.last() else {
            return self.body.can_be_prefix;
        };
        last.kind == Component::IMPLICIT_DIGEST
            && self.name.parent() == *data.name()
            && last.value == data.implicit_digest()
    }

    /// Checks that the name's parameters digest is that of the parameters.
    ///
    /// Refuses also what implementations digest differently: a field that stands out of place behind the parameters is
    /// covered by the text of the specification, but not by ndn-cxx.
    ///
    /// # Errors
    /// [`Problem::ParametersDigest`] if it is not, or other nodes would not agree.
    pub fn check_parameters_digest(&self) -> Result<(), DecodeError> {
        let Some(parameters) = &self.body.parameters else {
            return Ok(());
        };
        let digest = Sha256::digest(&self.wire[parameters.start..]);
        let stated = self
            .name
            .components()
            .find(|component| component.kind == Component::PARAMETERS_DIGEST);
        match stated {
            Some(stated) if stated.value == digest.as_slice() && self.is_tail_in_order() => Ok(()),
            _ => Err(digest_error(self.wire.len() - self.value_length())),
        }
    }

    /// Returns whether the fields from ApplicationParameters on are those that decoding took: ascending, as their types are.
    fn is_tail_in_order(&self) -> bool {
        let start = self
            .body
            .parameters
            .clone()
            .map_or(self.wire.len(), |p| p.start);
        let mut reader = Reader::within(&self.wire, start..self.wire.len());
        let mut last = 0;
        while let Ok(Some(element)) = reader.element("Interest") {
            if ORDER.contains(&element.element_type) {
                if element.element_type <= last {
                    return false;
                }
                last = element.element_type;
            }
        }
        true
    }

    /// Returns the octets that the Interest's signature covers: the name's components but the parameters digest, then
    /// everything from ApplicationParameters to the signature value. Empty if the Interest is not signed.
    pub fn signed_portion(&self) -> Vec<u8> {
        let signature = self.body.signature.as_ref();
        let value = signature.and_then(|signature| signature.value.as_ref());
        let (Some(parameters), Some(value)) = (&self.body.parameters, value) else {
            return Vec::new();
        };
        let mut portion = name_without_digest(&self.name).value().to_vec();
        portion.extend_from_slice(&self.wire[parameters.start..value.start]);
        portion
    }

    /// Checks parameters digest and signature.
    ///
    /// # Errors
    /// If the Interest is not signed, the digest or the signature is wrong, or the verifier cannot judge it.
    pub fn verify(&self, verifier: &dyn Verifier) -> Result<(), VerifyError> {
        self.check_parameters_digest()
            .map_err(|_| VerifyError::ParametersDigest)?;
        let info = self.signature_info().ok_or(VerifyError::Unsigned)?;
        let value = self.signature_value().ok_or(VerifyError::Unsigned)?;
        verifier.verify(info, &self.signed_portion(), &value)
    }

    /// Returns the octets of the packet's TLV-VALUE.
    fn value_length(&self) -> usize {
        let whole = Reader::new(&self.wire).only("Interest", tlv::INTEREST);
        whole.expect("decoded before").value.len()
    }

    fn value_of(&self, whole: Range<usize>) -> Bytes {
        let element = Reader::within(&self.wire, whole)
            .element("Interest")
            .expect("decoded before")
            .expect("an element is not empty");
        self.wire.slice(element.value)
    }
}

impl Body {
    fn decode(wire: &Bytes, mut fields: Fields<'_>) -> Result<Self, DecodeError> {
        let mut body = Self::default();
        while let Some(field) = fields.field()? {
            match field.element_type {
                tlv::CAN_BE_PREFIX => {
                    field.flag("CanBePrefix")?;
                    body.can_be_prefix = true;
                }
                tlv::MUST_BE_FRESH => {
                    field.flag("MustBeFresh")?;
                    body.must_be_fresh = true;
                }
                tlv::FORWARDING_HINT => {
                    body.forwarding_hint = decode_hint(wire, Reader::within(wire, field.value))?;
                }
                tlv::NONCE => body.nonce = Some(Nonce(field.array("Nonce", wire)?)),
                tlv::INTEREST_LIFETIME => {
                    let millis = field.number("InterestLifetime", wire)?;
                    body.lifetime = Some(Duration::from_millis(millis));
                }
                tlv::HOP_LIMIT => {
                    let [hops] = field.array("HopLimit", wire)?;
                    body.hop_limit = Some((hops, field.value.start));
                }
                // The digest in the name covers everything from here to the end of the packet.
                tlv::APPLICATION_PARAMETERS => body.parameters = Some(field.whole()),
                tlv::INTEREST_SIGNATURE_INFO => {
                    let info = SignatureInfo::decode(wire, &field)?;
                    body.signature.get_or_insert_default().info = Some(info);
                }
                _ => body.signature.get_or_insert_default().value = Some(field.whole()),
            }
        }
        Ok(body)
    }
}

const fn digest_error(name_at: usize) -> DecodeError {
    DecodeError::new("Name", name_at, Problem::ParametersDigest)
}

fn decode_hint(wire: &Bytes, mut reader: Reader<'_>) -> Result<Vec<Name>, DecodeError> {
    let at = reader.position();
    let mut names = Vec::new();
    while let Some(element) = reader.element("ForwardingHint")? {
        match element.element_type {
            tlv::NAME => names.push(Name::from_element(wire, &element)?),
            other if tlv::is_critical(other) => {
                return Err(element.error("ForwardingHint", Problem::Critical(other)));
            }
            _ => {}
        }
    }
    if names.is_empty() {
        return Err(DecodeError::new("ForwardingHint", at, Problem::Missing));
    }
    Ok(names)
}

fn name_without_digest(name: &Name) -> Name {
    let is_kept = |component: &Component<'_>| component.kind != Component::PARAMETERS_DIGEST;
    if name.components().all(|component| is_kept(&component)) {
        return name.clone();
    }
    name.components()
        .filter(is_kept)
        .fold(Name::root().builder(), |name, component| {
            name.component(component)
        })
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::{DigestSigner, Signer as _};

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    /// Worked by hand: the hint is 6 octets of Name in 8 of ForwardingHint.
    #[test]
    fn a_nonce_goes_behind_the_forwarding_hint() {
        let without = [
            &[5, 18, 7, 3, 8, 1, b'A', 33, 0, 30, 5, 7, 3, 8, 1, b'H'][..],
            &[12, 2, 0x03, 0xE8],
        ];
        let mut sent = Interest::decode(without.concat().into()).unwrap();
        let with = [
            &[5, 24, 7, 3, 8, 1, b'A', 33, 0, 30, 5, 7, 3, 8, 1, b'H'][..],
            &[10, 4, 1, 2, 3, 4],
            &[12, 2, 0x03, 0xE8],
        ];
        sent.set_nonce(Nonce([1, 2, 3, 4]));
        assert_eq!(sent.wire(), &with.concat());
        assert_eq!(sent.lifetime(), Duration::from_secs(1));
    }

    #[test]
    fn another_transmission_differs_in_its_nonce_only() {
        let build = |nonce| {
            Interest::builder(name("/a/%0a%04"))
                .hop_limit(3)
                .lifetime(Duration::from_secs(1))
                .build(nonce)
        };
        let (first, second) = (build(Nonce([9; 4])), build(Nonce([1, 2, 3, 4])));
        assert_eq!(first.with_nonce(Nonce([1, 2, 3, 4])), second);
        let decoded = Interest::decode(first.with_nonce(Nonce([1, 2, 3, 4])).wire().clone());
        assert_eq!(decoded.unwrap(), second);
    }

    #[test]
    fn a_hop_limit_changes_in_its_octet_only() {
        let build = |hops| {
            Interest::builder(name("/a"))
                .hop_limit(hops)
                .build(Nonce([9; 4]))
        };
        let mut limited = build(7);
        limited.set_hop_limit(6);
        assert_eq!(limited, build(6));
        let unlimited = Interest::builder(name("/a")).build(Nonce([9; 4]));
        let mut unchanged = unlimited.clone();
        unchanged.set_hop_limit(6);
        assert_eq!(unchanged, unlimited);
    }

    /// Also with a HopLimit that was counted down: that has changed the octets, and not the name's.
    #[test]
    fn detached_octets_are_the_same_in_other_memory() {
        for length in [1, 88, 300] {
            let interest = Interest::builder(name(&format!("/{}", "a".repeat(length))));
            let mut interest = interest.hop_limit(5).build(Nonce([9; 4]));
            interest.set_hop_limit(4);
            let (wire, copied) = interest.detached(Bytes::copy_from_slice);
            assert_eq!((&wire, &copied), (interest.wire(), interest.name()));
            assert_ne!(wire.as_ptr(), interest.wire().as_ptr());
            assert!(wire.as_ptr_range().contains(&copied.value().as_ptr()));
        }
    }

    #[test]
    fn parameters_digests_that_fit_nothing_are_taken_out() {
        let with = Interest::builder(name("/a"))
            .parameters("p")
            .build(Nonce([1; 4]));
        assert_eq!(with.name().len(), 2);
        let without = Interest::builder(with.name().clone()).build(Nonce([1; 4]));
        assert_eq!(*without.name(), name("/a"));
        let again = Interest::builder(with.name().clone()).parameters("p");
        assert_eq!(again.build(Nonce([1; 4])), with);
    }

    /// Such names come from the network, and must not bring a consumer down.
    #[test]
    fn an_interest_for_nothing_is_an_error() {
        let digest = with_digest_only();
        for name in [Name::root(), digest] {
            let error = Interest::builder(name)
                .try_build(Nonce([1; 4]))
                .unwrap_err();
            assert_eq!(
                (error.field, error.problem),
                ("Name", Problem::BadLength(0))
            );
        }
    }

    fn with_digest_only() -> Name {
        Name::root().child(Component {
            kind: Component::PARAMETERS_DIGEST,
            value: &[0; 32],
        })
    }

    #[test]
    fn a_signature_needs_parameters() {
        let info = DigestSigner.info();
        let signed = Interest::builder(name("/a")).sign(Nonce([1; 4]), &DigestSigner, &info);
        // Without the digest (34 octets of the name) and the empty parameters (2 octets, behind Nonce).
        let wire = signed.wire();
        let octets = [
            &[5, wire[1] - 36, 7, 3],
            &wire[4..7],
            &wire[41..47],
            &wire[49..],
        ]
        .concat();
        let error = Interest::decode(octets.into()).unwrap_err();
        let expected = ("ApplicationParameters", Problem::Missing);
        assert_eq!((error.field, error.problem), expected);
    }
}
