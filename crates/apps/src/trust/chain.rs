//! Chains of certificates: from a packet to the anchor.
//!
//! ```text
//!  packet ──▶ certificate ──▶ … ──▶ anchor     each link: the schema allows it, the signature is right,
//!                 │                            the certificate is valid now and was not revoked
//!                 └ missing: the caller fetches it
//! ```

use core::ops::Bound;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use namecast_packet::{Certificate, Data, KeyLocator, Name, PublicKey};
use namecast_units::Timestamp;

use super::refusal::{Counters, Refusal};
use super::schema::{Schema, Scope};

/// Trust anchor: the key that every chain ends at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// SHA-256 digest of the public key's SubjectPublicKeyInfo; its certificate is signed with the key itself.
    Digest([u8; 32]),
    /// This certificate.
    Certificate(Box<Certificate>),
}

/// Limits of chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct ChainConfig {
    /// Certificates from a packet to the anchor, which counts.
    #[default(4)]
    pub max_length: usize,
    /// Largest difference between our clock and an issuer's.
    #[default(Duration::from_secs(86_400))]
    pub clock_tolerance: Duration,
    /// Number of certificates kept. At the limit, those without a chain to the anchor are dropped first.
    #[default(4_096)]
    pub max_certificates: usize,
    /// Number of certificates tried for one KeyLocator.
    #[default(8)]
    pub max_alternatives: usize,
    /// Number of permissions remembered. At the limit, all are forgotten.
    #[default(16_384)]
    pub max_permissions: usize,
}

/// Verdict on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The schema allows the name, and a chain leads to the anchor.
    Accepted {
        /// Name of the certificate whose key signed it.
        certificate: Name,
        /// The key.
        key: Arc<PublicKey>,
    },
    /// A certificate is missing: fetch it by this prefix, pass it to [`Chains::offer`], and judge again.
    Missing(Name),
    /// The packet is refused.
    Refused(Refusal),
}

/// Refused update: its version is older than the one in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("version {offered} is older than version {known}, which is in force")]
pub struct SetBack {
    /// The version that was offered.
    pub offered: u64,
    /// The version in force.
    pub known: u64,
}

/// Judges packets by a schema.
#[derive(Clone, Debug)]
pub struct Chains {
    schema: Arc<Schema>,
    schema_version: u64,
    anchor: Anchor,
    config: ChainConfig,
    /// Certificates by name.
    certificates: BTreeMap<Name, Held>,
    /// Digests of public keys that were revoked.
    revoked: BTreeSet<[u8; 32]>,
    revoked_version: u64,
    /// Names that a certificate may sign.
    permissions: BTreeSet<(Scope, Name)>,
    counters: Counters,
}

/// A certificate.
#[derive(Clone, Debug)]
struct Held {
    certificate: Certificate,
    key: Arc<PublicKey>,
    /// How the anchor vouches for it, once it was found to do so.
    vouched: Option<Vouched>,
}

/// A chain that was judged.
#[derive(Clone, Copy, Debug)]
struct Vouched {
    /// Certificates from this one to the anchor, both counted.
    length: usize,
    /// When all of them are valid.
    from: Timestamp,
    to: Timestamp,
}

/// Why a chain does not lead to the anchor.
enum Broken {
    Missing(Name),
    Refused(Refusal),
}

impl Chains {
    /// Judges by `schema`, of which this is `version`, and `anchor`.
    pub fn new(schema: Arc<Schema>, version: u64, anchor: Anchor, config: ChainConfig) -> Self {
        let mut chains = Self {
            schema,
            schema_version: version,
            config,
            anchor,
            certificates: BTreeMap::new(),
            revoked: BTreeSet::new(),
            revoked_version: 0,
            permissions: BTreeSet::new(),
            counters: Counters::default(),
        };
        if let Anchor::Certificate(certificate) = &chains.anchor {
            // A certificate without a usable key vouches for nobody.
            let _ = chains.keep((**certificate).clone());
        }
        chains
    }

    /// Returns the schema in force.
    pub const fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns how packets were judged.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Puts another version of the schema in force. All chains are judged anew.
    ///
    /// # Errors
    /// If a newer version is in force.
    pub fn set_schema(&mut self, version: u64, schema: Arc<Schema>) -> Result<(), SetBack> {
        grow(&mut self.schema_version, version)?;
        self.schema = schema;
        self.forget();
        Ok(())
    }

    /// Puts another version of the list of revoked keys in force, by the SHA-256 digests of their SubjectPublicKeyInfo. All chains are
    /// judged anew.
    ///
    /// # Errors
    /// If a newer version is in force.
    pub fn set_revoked(
        &mut self,
        version: u64,
        digests: BTreeSet<[u8; 32]>,
    ) -> Result<(), SetBack> {
        grow(&mut self.revoked_version, version)?;
        self.revoked = digests;
        self.forget();
        Ok(())
    }

    /// Keeps a certificate, which may come from anybody, until it is needed.
    ///
    /// # Errors
    /// If it is no certificate, or its key cannot be used.
    pub fn offer(&mut self, certificate: Data) -> Result<(), Refusal> {
        let kept = Certificate::decode(certificate)
            .map_err(|_| Refusal::NotACertificate)
            .and_then(|certificate| self.keep(certificate));
        if let Err(refusal) = kept {
            self.counters.refuse(refusal);
        }
        kept
    }

    /// Judges `packet` at the time `wall`.
    pub fn judge(&mut self, packet: &Data, wall: Timestamp) -> Judgement {
        match self.chain(packet, wall, self.config.max_length) {
            Ok((certificate, _)) => {
                self.counters.accepted += 1;
                let key = self.certificates[&certificate].key.clone();
                Judgement::Accepted { certificate, key }
            }
            Err(broken) => self.broken(broken),
        }
    }

    /// Judges a certificate at the time `wall`: whether its key counts for the names that the schema lets it sign.
    pub fn judge_certificate(&mut self, certificate: &Data, wall: Timestamp) -> Judgement {
        if let Err(refusal) = self.offer(certificate.clone()) {
            return Judgement::Refused(refusal);
        }
        match self.own_chain(certificate, wall) {
            Ok(key) => {
                self.counters.accepted += 1;
                let certificate = certificate.name().detached();
                Judgement::Accepted { certificate, key }
            }
            Err(broken) => self.broken(broken),
        }
    }

    /// Finds the key of a certificate that was offered, if the certificate counts.
    fn own_chain(&mut self, certificate: &Data, wall: Timestamp) -> Result<Arc<PublicKey>, Broken> {
        let name = certificate.name();
        let held = &self.certificates[name];
        if held.certificate.data() != certificate {
            // The anchor vouches for another certificate of this name.
            return Err(Broken::Refused(Refusal::WrongSignature));
        }
        let key = held.key.clone();
        if self.revoked.contains(&key.digest()) {
            return Err(Broken::Refused(Refusal::Revoked));
        }
        let own = self.validity(name);
        if !(own.from..=own.to).contains(&wall) {
            return Err(Broken::Refused(Refusal::NotValidNow));
        }
        if !self.is_anchor(name) {
            let left = self.config.max_length.saturating_sub(1);
            self.chain(certificate, wall, left)?;
        }
        Ok(key)
    }

    /// Counts what is refused.
    fn broken(&mut self, broken: Broken) -> Judgement {
        match broken {
            Broken::Missing(name) => Judgement::Missing(name),
            Broken::Refused(refusal) => {
                self.counters.refuse(refusal);
                Judgement::Refused(refusal)
            }
        }
    }

    /// Finds the certificate of the key that signed `packet`, and how the anchor vouches for it, by at most `left` certificates. Calls
    /// itself for each of them.
    fn chain(
        &mut self,
        packet: &Data,
        wall: Timestamp,
        left: usize,
    ) -> Result<(Name, Vouched), Broken> {
        let Some(KeyLocator::Name(locator)) = &packet.signature_info().key_locator else {
            return Err(Broken::Refused(Refusal::NoCertificateNamed));
        };
        if left == 0 {
            return Err(Broken::Refused(Refusal::TooLong));
        }
        let names = self.certificates_of(locator);
        let mut broken = Broken::Missing(locator.detached());
        for name in names {
            match self.link(packet, &name, wall, left) {
                Ok(vouched) => return Ok((name, vouched)),
                // A missing certificate may still arrive.
                Err(missing @ Broken::Missing(_)) => return Err(missing),
                Err(refused) => broken = refused,
            }
        }
        Err(broken)
    }

    /// Judges `packet` as signed with the certificate `name`.
    fn link(
        &mut self,
        packet: &Data,
        name: &Name,
        wall: Timestamp,
        left: usize,
    ) -> Result<Vouched, Broken> {
        self.permit(packet.name(), name).map_err(Broken::Refused)?;
        let held = &self.certificates[name];
        let (certificate, key) = (held.certificate.data().clone(), held.key.clone());
        let vouched = held.vouched.filter(|vouched| vouched.length <= left);
        let refuse = |refusal| Err(Broken::Refused(refusal));
        if self.revoked.contains(&key.digest()) {
            return refuse(Refusal::Revoked);
        }
        let own = self.validity(name);
        let is_valid = |it: &Vouched| (it.from..=it.to).contains(&wall);
        if !is_valid(&vouched.unwrap_or(own)) {
            return refuse(Refusal::NotValidNow);
        }
        if packet.verify(&*key).is_err() {
            return refuse(Refusal::WrongSignature);
        }
        let vouched = match vouched {
            Some(vouched) => vouched,
            None if self.is_anchor(name) => own,
            None if is_self_signed(&self.certificates[name].certificate) => {
                return refuse(Refusal::OtherAnchor);
            }
            None => {
                let above = self.chain(&certificate, wall, left - 1);
                if let Err(Broken::Refused(Refusal::WrongSignature)) = above {
                    // Forged or damaged on its way: the right one may still be fetched.
                    self.certificates.remove(name);
                }
                let (_, above) = above?;
                Vouched {
                    length: above.length + 1,
                    from: own.from.max(above.from),
                    to: own.to.min(above.to),
                }
            }
        };
        if let Some(held) = self.certificates.get_mut(name) {
            held.vouched = Some(vouched);
        }
        Ok(vouched)
    }

    /// Checks that the schema lets the certificate sign `packet`.
    fn permit(&mut self, packet: &Name, certificate: &Name) -> Result<(), Refusal> {
        let scopes = self
            .schema
            .scopes(packet)
            .map_err(|_| Refusal::TooManySteps)?;
        for scope in scopes {
            // Sorted by scope, then by certificate.
            let wanted = (scope, certificate.clone());
            if self.permissions.contains(&wanted) {
                self.counters.remembered += 1;
                return Ok(());
            }
        }
        let permission = self.schema.check(packet, certificate);
        let permission = permission.map_err(|_| Refusal::TooManySteps)?;
        let scope = permission.ok_or(Refusal::NotAllowed)?.scope;
        if self.permissions.len() >= self.config.max_permissions {
            self.permissions.clear();
        }
        self.permissions.insert((scope, certificate.detached()));
        Ok(())
    }

    /// Names of certificates that `locator` may mean: that certificate, those of that key, or those without their version.
    fn certificates_of(&self, locator: &Name) -> Vec<Name> {
        let length = locator.len();
        let from = (Bound::Included(locator), Bound::Unbounded);
        let under = self
            .certificates
            .range::<Name, _>(from)
            .map(|(name, _)| name)
            .take_while(|name| locator.is_prefix_of(name))
            .filter(|name| name.len() <= length + 2 && name.len() >= length);
        under.take(self.config.max_alternatives).cloned().collect()
    }

    /// Returns whether the certificate `name` is the anchor's own.
    fn is_anchor(&self, name: &Name) -> bool {
        let held = &self.certificates[name];
        match &self.anchor {
            Anchor::Certificate(anchor) => **anchor == held.certificate,
            Anchor::Digest(digest) => {
                *digest == held.key.digest() && held.certificate.data().verify(&*held.key).is_ok()
            }
        }
    }

    /// When the certificate `name` is valid by our clock, as the end of a chain.
    fn validity(&self, name: &Name) -> Vouched {
        let validity = self.certificates[name].certificate.validity();
        let tolerance = self.config.clock_tolerance;
        let micros = u64::try_from(tolerance.as_micros()).unwrap_or(u64::MAX);
        let from = validity.not_before.as_micros().saturating_sub(micros);
        let to = validity.not_after.as_micros().saturating_add(micros);
        Vouched {
            length: 1,
            from: Timestamp::from_micros(from),
            to: Timestamp::from_micros(to),
        }
    }

    fn keep(&mut self, certificate: Certificate) -> Result<(), Refusal> {
        let key = certificate
            .public_key()
            .map_err(|_| Refusal::NotACertificate)?;
        let name = certificate.name().detached();
        let known = self.certificates.get(&name);
        // A forged one must not take the place of one that the anchor vouches for.
        if known.is_some_and(|held| held.vouched.is_some() || held.certificate == certificate) {
            return Ok(());
        }
        let anchor = match &self.anchor {
            Anchor::Certificate(anchor) => Some(anchor.name().clone()),
            Anchor::Digest(_) => None,
        };
        if self.certificates.len() >= self.config.max_certificates {
            let keeps =
                |name: &Name, held: &Held| held.vouched.is_some() || Some(name) == anchor.as_ref();
            self.certificates.retain(|name, held| keeps(name, held));
        }
        if self.certificates.len() >= self.config.max_certificates {
            // All are vouched for: they are fetched again as they are needed, but for the anchor's.
            self.certificates
                .retain(|name, _| Some(name) == anchor.as_ref());
            self.permissions.clear();
        }
        let held = Held {
            certificate,
            key: Arc::new(key),
            vouched: None,
        };
        self.certificates.insert(name, held);
        Ok(())
    }

    /// Lets all chains be judged anew.
    fn forget(&mut self) {
        self.permissions.clear();
        for held in self.certificates.values_mut() {
            held.vouched = None;
        }
    }
}

/// Returns whether a certificate names its own key as its signer.
fn is_self_signed(certificate: &Certificate) -> bool {
    let info = certificate.data().signature_info();
    let locator = info.key_locator.as_ref();
    locator.is_some_and(|locator| certificate.matches(locator))
}

/// Versions only grow.
const fn grow(known: &mut u64, offered: u64) -> Result<(), SetBack> {
    if offered < *known {
        return Err(SetBack {
            offered,
            known: *known,
        });
    }
    *known = offered;
    Ok(())
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
