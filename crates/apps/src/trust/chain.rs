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
use super::schema::{NamePattern, Schema};

/// Missing certificates that are remembered until somebody fetches them.
const MAX_MISSING: usize = 16;
/// Permissions remembered for one key: a stream has some twenty kinds of names, eight of which carry its leads.
const MAX_PERMISSIONS_OF_KEY: usize = 32;

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
    /// Number of permissions remembered, of all keys. At the limit, all are forgotten.
    #[default(16_384)]
    pub max_permissions: usize,
}

/// Time of a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It arrives now, at this time. A revoked key counts no more, whenever it was revoked.
    Live(Timestamp),
    /// It was recorded, and says that it was published at this time. Its key counts if it counts now, or did at that time: a certificate
    /// that has ended since and a key that was revoked later still count. A time to come is taken for now.
    Recorded(Timestamp),
    /// It leads to recordings, whatever its time. Its key counts if it counts now, or ever did.
    Ever,
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
    /// When keys were revoked, by the SHA-256 digests of their SubjectPublicKeyInfo.
    revoked: BTreeMap<[u8; 32], Timestamp>,
    revoked_version: u64,
    /// Number of permissions remembered.
    permissions: usize,
    /// Certificates that chains lacked.
    missing: BTreeSet<Name>,
    /// Time of the last judgement.
    wall: Timestamp,
    counters: Counters,
}

/// A certificate.
#[derive(Clone, Debug)]
struct Held {
    certificate: Certificate,
    key: Arc<PublicKey>,
    /// How the anchor vouches for it, once it was found to do so.
    vouched: Option<Vouched>,
    /// Names that the schema lets it sign, the frequent ones first.
    allowed: Vec<NamePattern>,
}

/// A chain that was judged.
#[derive(Clone, Copy, Debug)]
struct Vouched {
    /// Certificates from this one to the anchor, both counted.
    length: usize,
    /// When all of them are valid.
    from: Timestamp,
    to: Timestamp,
    /// When the first of them was revoked, if any was.
    revoked_at: Option<Timestamp>,
}

impl Vouched {
    /// Returns the chain of this certificate and those `above` it.
    fn under(&self, above: &Self) -> Self {
        let revoked = [self.revoked_at, above.revoked_at];
        Self {
            length: above.length + 1,
            from: self.from.max(above.from),
            to: self.to.min(above.to),
            revoked_at: revoked.into_iter().flatten().min(),
        }
    }

    /// Checks that the chain counts.
    fn check(&self, moment: Moment) -> Result<(), Refusal> {
        let wall = match moment {
            Moment::Live(wall) | Moment::Recorded(wall) => wall,
            Moment::Ever => self.from,
        };
        let is_live = matches!(moment, Moment::Live(_));
        let is_revoked = self.revoked_at.is_some_and(|at| is_live || at <= wall);
        if is_revoked {
            return Err(Refusal::Revoked);
        }
        let is_valid = (self.from..=self.to).contains(&wall);
        is_valid.then_some(()).ok_or(Refusal::NotValidNow)
    }
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
            revoked: BTreeMap::new(),
            revoked_version: 0,
            permissions: 0,
            missing: BTreeSet::new(),
            wall: Timestamp::default(),
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

    /// Returns the version of the schema in force.
    pub const fn schema_version(&self) -> u64 {
        self.schema_version
    }

    /// Returns the version of the list of revoked keys in force, which is the roster's.
    pub const fn roster_version(&self) -> u64 {
        self.revoked_version
    }

    /// Returns the certificate of this name, if one is kept.
    pub fn certificate(&self, name: &Name) -> Option<&Certificate> {
        self.certificates.get(name).map(|held| &held.certificate)
    }

    /// Returns the certificates from the issuer of the certificate of this name, which was judged before, to the anchor's.
    pub fn issuers(&self, certificate: &Name) -> Vec<Certificate> {
        let mut issuers: Vec<Certificate> = Vec::new();
        let mut held = self.certificates.get(certificate);
        while let Some(below) = held
            && issuers.len() < self.config.max_length
            && !is_self_signed(&below.certificate)
            && let Some(KeyLocator::Name(locator)) =
                &below.certificate.data().signature_info().key_locator
        {
            let names = self.certificates_of(locator).into_iter();
            let mut above = names.filter_map(|name| self.certificates.get(&name));
            held = above.find(|it| it.vouched.is_some());
            issuers.extend(held.map(|it| it.certificate.clone()));
        }
        issuers
    }

    /// Returns how packets were judged.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Puts another version of the schema in force. All chains are judged anew.
    ///
    /// # Errors
    /// If a newer version is in force; that is counted as [`Refusal::SetBack`].
    pub fn set_schema(&mut self, version: u64, schema: Arc<Schema>) -> Result<(), SetBack> {
        let grown = grow(&mut self.schema_version, version);
        if grown.is_ok() {
            self.schema = schema;
            self.forget();
        }
        self.count(grown)
    }

    /// Puts another version of the list of revoked keys in force: by the SHA-256 digests of their SubjectPublicKeyInfo, when each was
    /// revoked. All chains are judged anew.
    ///
    /// # Errors
    /// If a newer version is in force; that is counted as [`Refusal::SetBack`].
    pub fn set_revoked(
        &mut self,
        version: u64,
        revoked: BTreeMap<[u8; 32], Timestamp>,
    ) -> Result<(), SetBack> {
        let grown = grow(&mut self.revoked_version, version);
        if grown.is_ok() {
            self.revoked = revoked;
            self.forget();
        }
        self.count(grown)
    }

    fn count(&mut self, grown: Result<(), SetBack>) -> Result<(), SetBack> {
        if grown.is_err() {
            self.counters.refuse(Refusal::SetBack);
        }
        grown
    }

    /// Returns the next certificate that a chain lacked, until `None`: fetch it by this prefix, and pass it to [`offer`](Self::offer).
    pub fn poll_missing(&mut self) -> Option<Name> {
        self.missing.pop_first()
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

    /// Judges `packet`.
    pub fn judge(&mut self, packet: &Data, moment: Moment) -> Judgement {
        let length = self.config.max_length;
        match self.at(moment, |it, moment| it.chain(packet, moment, length)) {
            Ok((certificate, _)) => {
                self.counters.accepted += 1;
                let key = self.certificates[&certificate].key.clone();
                Judgement::Accepted { certificate, key }
            }
            Err(broken) => self.broken(broken),
        }
    }

    /// Judges a certificate: whether its key counts for the names that the schema lets it sign.
    pub fn judge_certificate(&mut self, certificate: &Data, moment: Moment) -> Judgement {
        if let Err(refusal) = self.offer(certificate.clone()) {
            return Judgement::Refused(refusal);
        }
        match self.at(moment, |it, moment| it.own_chain(certificate, moment)) {
            Ok(key) => {
                self.counters.accepted += 1;
                let certificate = certificate.name().detached();
                Judgement::Accepted { certificate, key }
            }
            Err(broken) => self.broken(broken),
        }
    }

    /// Judges whether the key of the first of `certificates` may sign `name`. Each other one is of the key that signed the one before it; those that
    /// are known already may be left out. Nothing is fetched. Returns the key.
    ///
    /// # Errors
    /// The reason to refuse it, which is counted.
    pub fn judge_shown(
        &mut self,
        name: &Name,
        certificates: &[Data],
        moment: Moment,
    ) -> Result<Arc<PublicKey>, Refusal> {
        self.tell(moment);
        let judged = self.shown(name, certificates, moment);
        match judged {
            Ok(_) => self.counters.accepted += 1,
            Err(refusal) => self.counters.refuse(refusal),
        }
        judged
    }

    fn shown(
        &mut self,
        name: &Name,
        certificates: &[Data],
        moment: Moment,
    ) -> Result<Arc<PublicKey>, Refusal> {
        let own = certificates.first().ok_or(Refusal::NoCertificateNamed)?;
        if certificates.len() > self.config.max_length {
            return Err(Refusal::TooLong);
        }
        // The first is kept last: others may take the room of those before.
        for certificate in certificates.iter().rev() {
            let certificate = Certificate::decode(certificate.clone());
            self.keep(certificate.map_err(|_| Refusal::NotACertificate)?)?;
        }
        let key = self.own_chain(own, moment).map_err(|broken| match broken {
            Broken::Refused(refusal) => refusal,
            Broken::Missing(_) => Refusal::MissingCertificate,
        })?;
        self.permit(name, own.name())?;
        Ok(key)
    }

    /// Returns the outcome of `judge` at `moment`: what was recorded is judged by now first, and if that is too late, by its own time.
    fn at<T>(
        &mut self,
        moment: Moment,
        judge: impl Fn(&mut Self, Moment) -> Result<T, Broken>,
    ) -> Result<T, Broken> {
        self.tell(moment);
        let then = match moment {
            Moment::Live(_) => return judge(self, moment),
            Moment::Recorded(at) => Moment::Recorded(at.min(self.wall)),
            Moment::Ever => moment,
        };
        match judge(self, Moment::Live(self.wall)) {
            Err(Broken::Refused(Refusal::NotValidNow | Refusal::Revoked)) => judge(self, then),
            judged => judged,
        }
    }

    /// Returns whether the chain of this certificate, which was judged before, counts now.
    pub fn counts_now(&self, certificate: &Name) -> bool {
        let held = self.certificates.get(certificate);
        let vouched = held.and_then(|held| held.vouched);
        vouched.is_some_and(|vouched| vouched.check(Moment::Live(self.wall)).is_ok())
    }

    /// Sets the time by which certificates that were judged before go on to count.
    pub const fn tell(&mut self, moment: Moment) {
        if let Moment::Live(wall) = moment {
            self.wall = wall;
        }
    }

    /// Checks that `key`, which was judged by the certificate of this name before, still counts and may sign `packet`. Costs a look-up,
    /// unless schema or revoked keys changed since, or no name like this one was checked before.
    pub(super) fn allow(
        &mut self,
        packet: &Name,
        certificate: &Name,
        key: &PublicKey,
    ) -> Result<(), Refusal> {
        let allowed = self.still_counts(certificate, key);
        let allowed = allowed.and_then(|()| self.permit(packet, certificate));
        if let Err(refusal) = allowed {
            self.counters.refuse(refusal);
        }
        allowed
    }

    fn still_counts(&mut self, certificate: &Name, key: &PublicKey) -> Result<(), Refusal> {
        let moment = Moment::Live(self.wall);
        let missing = match self.certificates.get(certificate) {
            Some(held) if *held.key != *key => return Err(Refusal::WrongSignature),
            Some(held) => {
                if let Some(vouched) = held.vouched {
                    return vouched.check(moment);
                }
                let data = held.certificate.data().clone();
                match self.own_chain(&data, moment) {
                    Ok(_) => return Ok(()),
                    Err(Broken::Refused(refusal)) => return Err(refusal),
                    Err(Broken::Missing(name)) => name,
                }
            }
            None => certificate.clone(),
        };
        self.note_missing(missing);
        Err(Refusal::MissingCertificate)
    }

    /// Finds the key of a certificate that was offered, if the certificate counts.
    fn own_chain(&mut self, certificate: &Data, moment: Moment) -> Result<Arc<PublicKey>, Broken> {
        let name = certificate.name();
        let held = &self.certificates[name];
        if held.certificate.data() != certificate {
            // The anchor vouches for another certificate of this name.
            return Err(Broken::Refused(Refusal::WrongSignature));
        }
        let key = held.key.clone();
        let mut vouched = self.alone(name);
        vouched.check(moment).map_err(Broken::Refused)?;
        if !self.is_anchor(name) {
            let left = self.config.max_length.saturating_sub(1);
            let (_, above) = self.chain(certificate, moment, left)?;
            vouched = vouched.under(&above);
        }
        if let Some(held) = self.certificates.get_mut(name) {
            held.vouched = Some(vouched);
        }
        Ok(key)
    }

    /// Counts what is refused.
    fn broken(&mut self, broken: Broken) -> Judgement {
        match broken {
            Broken::Missing(name) => {
                self.note_missing(name.clone());
                Judgement::Missing(name)
            }
            Broken::Refused(refusal) => {
                self.counters.refuse(refusal);
                Judgement::Refused(refusal)
            }
        }
    }

    fn note_missing(&mut self, name: Name) {
        if self.missing.len() < MAX_MISSING {
            self.missing.insert(name);
        }
    }

    /// Finds the certificate of the key that signed `packet`, and how the anchor vouches for it, by at most `left` certificates. Calls
    /// itself for each of them.
    fn chain(
        &mut self,
        packet: &Data,
        moment: Moment,
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
            match self.link(packet, &name, moment, left) {
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
        moment: Moment,
        left: usize,
    ) -> Result<Vouched, Broken> {
        self.permit(packet.name(), name).map_err(Broken::Refused)?;
        let held = &self.certificates[name];
        let (certificate, key) = (held.certificate.data().clone(), held.key.clone());
        let vouched = held.vouched.filter(|vouched| vouched.length <= left);
        let refuse = |refusal| Err(Broken::Refused(refusal));
        let own = self.alone(name);
        let counts = vouched.unwrap_or(own).check(moment);
        counts.map_err(Broken::Refused)?;
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
                let above = self.chain(&certificate, moment, left - 1);
                if let Err(Broken::Refused(Refusal::WrongSignature)) = above {
                    // Forged or damaged on its way: the right one may still be fetched.
                    self.certificates.remove(name);
                    self.count_permissions();
                }
                let (_, above) = above?;
                own.under(&above)
            }
        };
        if let Some(held) = self.certificates.get_mut(name) {
            held.vouched = Some(vouched);
        }
        Ok(vouched)
    }

    /// Checks that the schema lets the certificate sign `packet`.
    fn permit(&mut self, packet: &Name, certificate: &Name) -> Result<(), Refusal> {
        let held = self.certificates.get_mut(certificate);
        let allowed = held.map(|held| &mut held.allowed);
        if let Some(allowed) = allowed
            && let Some(at) = allowed.iter().position(|names| names.covers(packet))
        {
            allowed.swap(at, at.saturating_sub(1));
            self.counters.remembered += 1;
            return Ok(());
        }
        let permission = self.schema.check(packet, certificate);
        let permission = permission.map_err(|_| Refusal::TooManySteps)?;
        let names = permission.ok_or(Refusal::NotAllowed)?.names;
        self.remember(certificate, names);
        Ok(())
    }

    fn remember(&mut self, certificate: &Name, names: NamePattern) {
        if self.permissions >= self.config.max_permissions {
            let certificates = self.certificates.values_mut();
            certificates.for_each(|held| held.allowed.clear());
            self.permissions = 0;
        }
        let Some(held) = self.certificates.get_mut(certificate) else {
            return;
        };
        if held.allowed.len() == MAX_PERMISSIONS_OF_KEY {
            held.allowed.pop();
            self.permissions -= 1;
        }
        held.allowed.push(names);
        self.permissions += 1;
    }

    fn count_permissions(&mut self) {
        let certificates = self.certificates.values();
        self.permissions = certificates.map(|held| held.allowed.len()).sum();
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

    /// When the certificate `name` counts by our clock, as the end of a chain.
    fn alone(&self, name: &Name) -> Vouched {
        let held = &self.certificates[name];
        let validity = held.certificate.validity();
        let tolerance = self.config.clock_tolerance;
        let micros = u64::try_from(tolerance.as_micros()).unwrap_or(u64::MAX);
        let from = validity.not_before.as_micros().saturating_sub(micros);
        let to = validity.not_after.as_micros().saturating_add(micros);
        Vouched {
            length: 1,
            from: Timestamp::from_micros(from),
            to: Timestamp::from_micros(to),
            revoked_at: self.revoked.get(&held.key.digest()).copied(),
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
        }
        let held = Held {
            certificate,
            key: Arc::new(key),
            vouched: None,
            allowed: Vec::new(),
        };
        self.missing.retain(|missing| !missing.is_prefix_of(&name));
        self.certificates.insert(name, held);
        self.count_permissions();
        Ok(())
    }

    /// Lets all chains be judged anew.
    fn forget(&mut self) {
        self.permissions = 0;
        for held in self.certificates.values_mut() {
            held.vouched = None;
            held.allowed.clear();
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
