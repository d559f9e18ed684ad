//! Interest packets: NDN Packet Format v0.3, section "Interest Packet".

use core::fmt;
use core::ops::Range;
use core::time::Duration;

use bytes::{Bytes, BytesMut};
use sha2::{Digest, Sha256};

use crate::data::{Data, required_name};
use crate::error::{DecodeError, Problem};
use crate::name::{Component, Name};
use crate::signature::{SignatureInfo, Signer, Verifier, VerifyError};
use crate::tlv::{self, Fields, Reader, Writer};

/// Tells one transmission of an Interest from another, so that loops are found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub [u8; 4]);

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
    can_be_prefix: bool,
    must_be_fresh: bool,
    forwarding_hint: Vec<Name>,
    nonce: Option<Nonce>,
    lifetime: Option<Duration>,
    hop_limit: Option<(u8, usize)>,
    parameters: Option<Range<usize>>,
    signature_info: Option<SignatureInfo>,
    signature_value: Option<Range<usize>>,
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
        InterestBuilder {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: Vec::new(),
            lifetime: None,
            hop_limit: None,
            parameters: None,
        }
    }

    /// Decodes the Interest that fills `wire` whole.
    ///
    /// The parameters digest must be there exactly if ApplicationParameters are; whether it is right is for
    /// [`check_parameters_digest`](Self::check_parameters_digest), as forwarders do not look.
    ///
    /// # Errors
    /// The first violation of the packet format, with field and offset.
    pub fn decode(wire: Bytes) -> Result<Self, DecodeError> {
        let whole = Reader::new(&wire).only("Interest", tlv::INTEREST)?;
        let mut reader = Reader::within(&wire, whole.value);
        let name_at = reader.position();
        let name = required_name(&wire, &mut reader)?;
        if name.is_empty() {
            return Err(DecodeError::new("Name", name_at, Problem::BadLength(0)));
        }
        let fields = Fields::new(reader, "Interest", &ORDER);
        let mut interest = Self {
            wire: wire.clone(),
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: Vec::new(),
            nonce: None,
            lifetime: None,
            hop_limit: None,
            parameters: None,
            signature_info: None,
            signature_value: None,
        };
        interest.decode_fields(fields)?;
        let digests = interest
            .name
            .components()
            .filter(|component| component.kind == Component::PARAMETERS_DIGEST)
            .count();
        if digests != usize::from(interest.parameters.is_some()) {
            return Err(DecodeError::new("Name", name_at, Problem::ParametersDigest));
        }
        Ok(interest)
    }

    fn decode_fields(&mut self, mut fields: Fields<'_>) -> Result<(), DecodeError> {
        let wire = self.wire.clone();
        while let Some(field) = fields.field()? {
            match field.element_type {
                tlv::CAN_BE_PREFIX => {
                    field.flag("CanBePrefix")?;
                    self.can_be_prefix = true;
                }
                tlv::MUST_BE_FRESH => {
                    field.flag("MustBeFresh")?;
                    self.must_be_fresh = true;
                }
                tlv::FORWARDING_HINT => {
                    self.forwarding_hint =
                        decode_hint(&wire, Reader::within(&wire, field.value.clone()))?;
                }
                tlv::NONCE => self.nonce = Some(Nonce(field.array("Nonce", &wire)?)),
                tlv::INTEREST_LIFETIME => {
                    let millis = field.number("InterestLifetime", &wire)?;
                    self.lifetime = Some(Duration::from_millis(millis));
                }
                tlv::HOP_LIMIT => {
                    let [hops] = field.array("HopLimit", &wire)?;
                    self.hop_limit = Some((hops, field.value.start));
                }
                // The digest in the name covers everything from here to the end of the packet.
                tlv::APPLICATION_PARAMETERS => self.parameters = Some(field.whole()),
                tlv::INTEREST_SIGNATURE_INFO => {
                    self.signature_info = Some(SignatureInfo::decode(&wire, &field)?);
                }
                _ => self.signature_value = Some(field.whole()),
            }
        }
        Ok(())
    }

    /// The packet's octets.
    pub const fn wire(&self) -> &Bytes {
        &self.wire
    }

    /// What is asked for.
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// Whether Data with a longer name may answer.
    pub const fn can_be_prefix(&self) -> bool {
        self.can_be_prefix
    }

    /// Whether caches may answer with fresh Data only.
    pub const fn must_be_fresh(&self) -> bool {
        self.must_be_fresh
    }

    /// Names whose routes to follow instead of the Interest's own.
    pub fn forwarding_hint(&self) -> &[Name] {
        &self.forwarding_hint
    }

    /// Number of this transmission, if it has one.
    pub const fn nonce(&self) -> Option<Nonce> {
        self.nonce
    }

    /// How long the Interest stays pending.
    pub fn lifetime(&self) -> Duration {
        self.lifetime.unwrap_or(Self::DEFAULT_LIFETIME)
    }

    /// How many more nodes may receive the Interest, if that is limited.
    pub fn hop_limit(&self) -> Option<u8> {
        self.hop_limit.map(|(hops, _)| hops)
    }

    /// ApplicationParameters.
    pub fn parameters(&self) -> Option<Bytes> {
        let whole = self.parameters.clone()?;
        Some(self.value_of(whole))
    }

    /// How the Interest is signed, if it is.
    pub const fn signature_info(&self) -> Option<&SignatureInfo> {
        self.signature_info.as_ref()
    }

    /// The signature's octets, if the Interest is signed.
    pub fn signature_value(&self) -> Option<Bytes> {
        let whole = self.signature_value.clone()?;
        Some(self.value_of(whole))
    }

    /// The same Interest with its HopLimit set to `hops`; unchanged if it has none.
    #[must_use]
    pub fn with_hop_limit(self, hops: u8) -> Self {
        let Some((before, at)) = self.hop_limit else {
            return self;
        };
        if before == hops {
            return self;
        }
        let mut octets = BytesMut::from(&self.wire[..]);
        octets[at] = hops;
        Self {
            wire: octets.freeze(),
            hop_limit: Some((hops, at)),
            ..self
        }
    }

    /// The same Interest with a Nonce; unchanged if it has one.
    ///
    /// Nodes that receive an Interest without one add it, since others drop such Interests.
    #[must_use]
    pub fn with_nonce(self, nonce: Nonce) -> Self {
        if self.nonce.is_some() {
            return self;
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
        Self::decode(wire.finish()).expect("a Nonce in its place leaves an Interest valid")
    }

    /// Whether `data` answers this Interest, freshness aside.
    pub fn matches(&self, data: &Data) -> bool {
        if self.name == *data.name() {
            return true;
        }
        if self.can_be_prefix && self.name.is_prefix_of(data.name()) {
            return true;
        }
        let Some(last) = self.name.last() else {
            return self.can_be_prefix;
        };
        last.kind == Component::IMPLICIT_DIGEST
            && self.name.parent() == *data.name()
            && last.value == data.implicit_digest()
    }

    /// Checks that the name's parameters digest is that of the parameters.
    ///
    /// # Errors
    /// [`Problem::ParametersDigest`] if it is not.
    pub fn check_parameters_digest(&self) -> Result<(), DecodeError> {
        let Some(parameters) = &self.parameters else {
            return Ok(());
        };
        let digest = Sha256::digest(&self.wire[parameters.start..]);
        let stated = self
            .name
            .components()
            .find(|component| component.kind == Component::PARAMETERS_DIGEST);
        match stated {
            Some(stated) if stated.value == digest.as_slice() => Ok(()),
            _ => Err(DecodeError::new("Name", 0, Problem::ParametersDigest)),
        }
    }

    /// The octets that the Interest's signature covers: the name's components but the parameters digest, then
    /// everything from ApplicationParameters to the signature value. Empty if the Interest is not signed.
    pub fn signed_portion(&self) -> Vec<u8> {
        let (Some(parameters), Some(value)) = (&self.parameters, &self.signature_value) else {
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
        let info = self.signature_info.as_ref().ok_or(VerifyError::Unsigned)?;
        let value = self.signature_value().ok_or(VerifyError::Unsigned)?;
        verifier.verify(info, &self.signed_portion(), &value)
    }

    fn value_of(&self, whole: Range<usize>) -> Bytes {
        let element = Reader::within(&self.wire, whole)
            .element("Interest")
            .expect("decoded before")
            .expect("an element is not empty");
        self.wire.slice(element.value)
    }
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
    name.components()
        .filter(|component| component.kind != Component::PARAMETERS_DIGEST)
        .fold(Name::root().builder(), |name, component| {
            name.component(component)
        })
        .finish()
}

/// Puts an [`Interest`] together.
#[derive(Clone, Debug)]
pub struct InterestBuilder {
    name: Name,
    can_be_prefix: bool,
    must_be_fresh: bool,
    forwarding_hint: Vec<Name>,
    lifetime: Option<Duration>,
    hop_limit: Option<u8>,
    parameters: Option<Bytes>,
}

impl InterestBuilder {
    /// Lets Data with a longer name answer.
    pub const fn can_be_prefix(mut self) -> Self {
        self.can_be_prefix = true;
        self
    }

    /// Lets caches answer with fresh Data only.
    pub const fn must_be_fresh(mut self) -> Self {
        self.must_be_fresh = true;
        self
    }

    /// Adds a name whose routes to follow instead of the Interest's own.
    pub fn forwarding_hint(mut self, delegation: Name) -> Self {
        self.forwarding_hint.push(delegation);
        self
    }

    /// How long the Interest stays pending (whole milliseconds).
    pub const fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// How many nodes may receive the Interest.
    pub const fn hop_limit(mut self, hops: u8) -> Self {
        self.hop_limit = Some(hops);
        self
    }

    /// Sets ApplicationParameters; their digest becomes the name's last component.
    pub fn parameters(mut self, parameters: impl Into<Bytes>) -> Self {
        self.parameters = Some(parameters.into());
        self
    }

    /// Encodes the Interest for one transmission.
    pub fn build(self, nonce: Nonce) -> Interest {
        let mut tail = Writer::default();
        if let Some(parameters) = &self.parameters {
            tail.element(tlv::APPLICATION_PARAMETERS, parameters);
        }
        self.finish(nonce, &tail)
    }

    /// Signs the Interest with `signer` and encodes it. `info` is the signer's, to which the caller has added what
    /// protects against replay: SignatureNonce, SignatureTime or SignatureSeqNum.
    pub fn sign(mut self, nonce: Nonce, signer: &dyn Signer, info: &SignatureInfo) -> Interest {
        self.name = name_without_digest(&self.name);
        let parameters = self.parameters.get_or_insert_with(Bytes::new);
        let mut tail = Writer::default();
        tail.element(tlv::APPLICATION_PARAMETERS, parameters);
        info.encode(tlv::INTEREST_SIGNATURE_INFO, &mut tail);
        let mut portion = self.name.value().to_vec();
        portion.extend_from_slice(tail.as_slice());
        tail.element(tlv::INTEREST_SIGNATURE_VALUE, &signer.sign(&portion));
        self.finish(nonce, &tail)
    }

    /// Encodes the Interest; `tail` holds everything from ApplicationParameters on.
    fn finish(self, nonce: Nonce, tail: &Writer) -> Interest {
        let name = if tail.is_empty() {
            self.name
        } else {
            let digest = Sha256::digest(tail.as_slice());
            name_without_digest(&self.name).child(Component {
                kind: Component::PARAMETERS_DIGEST,
                value: &digest,
            })
        };
        let mut wire = Writer::with_capacity(name.value().len() + tail.len() + 40);
        wire.nested(tlv::INTEREST, |body| {
            name.encode(body);
            if self.can_be_prefix {
                body.element(tlv::CAN_BE_PREFIX, &[]);
            }
            if self.must_be_fresh {
                body.element(tlv::MUST_BE_FRESH, &[]);
            }
            if !self.forwarding_hint.is_empty() {
                body.nested(tlv::FORWARDING_HINT, |hint| {
                    self.forwarding_hint
                        .iter()
                        .for_each(|name| name.encode(hint));
                });
            }
            body.element(tlv::NONCE, &nonce.0);
            if let Some(lifetime) = self.lifetime.filter(|&l| l != Interest::DEFAULT_LIFETIME) {
                let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
                body.number(tlv::INTEREST_LIFETIME, millis);
            }
            if let Some(hops) = self.hop_limit {
                body.element(tlv::HOP_LIMIT, &[hops]);
            }
            body.raw(tail.as_slice());
        });
        Interest::decode(wire.finish())
            .expect("what the builder writes is valid unless the name is empty")
    }
}
