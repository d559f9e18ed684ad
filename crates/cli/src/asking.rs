//! Single packets, requested by commands that want one answer: until it comes, or for so long.

use bytes::Bytes;
use namecast_net::{ApplicationFace, Node, random};
use namecast_packet::lp::NackReason;
use namecast_packet::signature::DigestVerifier;
use namecast_packet::{
    Certificate, Data, Interest, KeyLocator, LpPacket, Name, Nonce, Packet, PublicKey,
    SignatureType,
};
use namecast_units::Duration;

use crate::hexadecimal::hex;

/// An Interest without an answer is sent again after this time.
const REPEAT: Duration = Duration::from_secs(1);
/// How long the certificate of a signer is waited for.
const CERTIFICATE_TIMEOUT: Duration = Duration::from_secs(2);

/// What is requested.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) name: Name,
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    /// How long an answer is waited for.
    pub(crate) timeout: Duration,
}

impl Question {
    /// The packet of exactly this name, from anywhere.
    pub(crate) const fn exact(name: Name, timeout: Duration) -> Self {
        Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            timeout,
        }
    }

    /// The newest packet whose name starts with this one.
    pub(crate) const fn newest(name: Name, timeout: Duration) -> Self {
        Self {
            name,
            can_be_prefix: true,
            must_be_fresh: true,
            timeout,
        }
    }

    fn interest(&self) -> Interest {
        let mut builder = Interest::builder(self.name.clone()).lifetime(self.timeout);
        if self.can_be_prefix {
            builder = builder.can_be_prefix();
        }
        if self.must_be_fresh {
            builder = builder.must_be_fresh();
        }
        builder.build(nonce())
    }
}

/// Returns a Nonce that nobody can foresee.
pub(crate) fn nonce() -> Nonce {
    Nonce::from(u32::from_le_bytes(random()))
}

/// What became of a question.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Data(Data),
    /// A node on the way, or the producer, sent it back.
    Nack(NackReason),
    Silence,
}

/// A packet that came.
pub(crate) enum Arrived {
    Data(Data),
    Nack(Interest, NackReason),
}

/// Requests packets on a face of its own.
pub(crate) struct Asker {
    face: ApplicationFace,
}

impl Asker {
    pub(crate) async fn new(node: &Node) -> anyhow::Result<Self> {
        Ok(Self {
            face: node.application_face().await?,
        })
    }

    /// Sends an Interest.
    pub(crate) async fn send(&self, interest: &Interest) -> anyhow::Result<()> {
        Ok(self.face.send(interest.wire().clone()).await?)
    }

    /// Waits for the next Data or Nack.
    pub(crate) async fn receive(&mut self) -> anyhow::Result<Arrived> {
        loop {
            let frame = self.face.recv().await;
            let frame = frame.ok_or_else(|| anyhow::anyhow!("the node has stopped"))?;
            if let Some(arrived) = read(frame) {
                return Ok(arrived);
            }
        }
    }

    /// Requests one packet, again and again until there is an answer or the time is over.
    pub(crate) async fn ask(&mut self, question: &Question) -> anyhow::Result<Answer> {
        let asking = tokio::time::timeout(question.timeout, self.ask_until_answered(question));
        asking.await.unwrap_or(Ok(Answer::Silence))
    }

    async fn ask_until_answered(&mut self, question: &Question) -> anyhow::Result<Answer> {
        loop {
            let interest = question.interest();
            self.send(&interest).await?;
            if let Ok(answer) = tokio::time::timeout(REPEAT, self.answer(&interest)).await {
                return answer;
            }
        }
    }

    /// Sends a signed Interest, again and again until Data answers it, or whoever it is for refuses it.
    pub(crate) async fn ask_signed(&mut self, interest: &Interest) -> anyhow::Result<Answer> {
        loop {
            self.send(&interest.with_nonce(nonce())).await?;
            let repeat_at = tokio::time::Instant::now() + REPEAT;
            match tokio::time::timeout_at(repeat_at, self.answer(interest)).await {
                // Nodes without a route may find one, and a host without room may have some.
                Ok(Ok(Answer::Nack(reason))) if reason != NackReason::None => {
                    tokio::time::sleep_until(repeat_at).await;
                }
                Ok(answer) => return answer,
                Err(_) => {}
            }
        }
    }

    async fn answer(&mut self, interest: &Interest) -> anyhow::Result<Answer> {
        loop {
            match self.receive().await? {
                Arrived::Data(data) if interest.matches(&data) => return Ok(Answer::Data(data)),
                Arrived::Nack(back, reason) if back.name() == interest.name() => {
                    return Ok(Answer::Nack(reason));
                }
                _ => {}
            }
        }
    }

    /// Verifies a packet with the certificate that it names.
    pub(crate) async fn verify(&mut self, packet: &Data) -> anyhow::Result<Verified> {
        let info = packet.signature_info();
        if info.signature_type == SignatureType::DigestSha256 {
            return Ok(match packet.verify(&DigestVerifier).is_ok() {
                true => Verified::Not("it carries a digest, which anybody can make".to_owned()),
                false => Verified::Forged("its digest is wrong".to_owned()),
            });
        }
        let Some(KeyLocator::Name(locator)) = info.key_locator else {
            return Ok(Verified::Not(
                "it names no key by which it is signed".to_owned(),
            ));
        };
        let question = Question {
            can_be_prefix: true,
            ..Question::exact(locator.clone(), CERTIFICATE_TIMEOUT)
        };
        let Answer::Data(certificate) = self.ask(&question).await? else {
            return Ok(Verified::Not(format!(
                "nobody has the certificate {locator}"
            )));
        };
        Ok(judge(packet, &locator, certificate))
    }
}

/// What is known of a signature.
#[derive(Clone, Debug)]
pub(crate) enum Verified {
    /// The key of this certificate signed it, under a name that is a prefix of its own.
    By(Box<Certificate>, PublicKey),
    /// Nobody can say, for this reason.
    Not(String),
    /// It is not what was signed.
    Forged(String),
}

impl Verified {
    /// Returns whether another packet of the same object is as good: signed by the same key, or whole if that is all there is to know.
    pub(crate) fn holds_for(&self, packet: &Data) -> bool {
        let has_digest = packet.signature_info().signature_type == SignatureType::DigestSha256;
        match self {
            Self::By(certificate, key) => {
                certificate.identity().is_prefix_of(packet.name()) && packet.verify(key).is_ok()
            }
            Self::Not(_) => !has_digest || packet.verify(&DigestVerifier).is_ok(),
            Self::Forged(_) => false,
        }
    }

    /// The same for people.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::By(certificate, key) => {
                let digest = hex(&key.digest());
                format!("signed by {}, key {digest}", certificate.key_name())
            }
            Self::Not(why) => format!("not verified: {why}"),
            Self::Forged(why) => format!("forged or damaged: {why}"),
        }
    }
}

/// Verifies `packet` with a certificate.
fn judge(packet: &Data, locator: &Name, certificate: Data) -> Verified {
    let not = |why: &str| Verified::Not(format!("the certificate {locator} {why}"));
    let Ok(certificate) = Certificate::decode(certificate) else {
        return not("is none");
    };
    let Ok(key) = certificate.public_key() else {
        return not("has a key of an unknown kind");
    };
    if !certificate.identity().is_prefix_of(packet.name()) {
        return not("belongs to another name");
    }
    match packet.verify(&key).is_ok() {
        true => Verified::By(Box::new(certificate), key),
        false => Verified::Forged(format!("{locator} did not sign it")),
    }
}

fn read(frame: Bytes) -> Option<Arrived> {
    let link = LpPacket::decode(frame).ok()?;
    match (Packet::decode(link.fragment?).ok()?, link.nack) {
        (Packet::Data(data), None) => Some(Arrived::Data(data)),
        (Packet::Interest(interest), Some(reason)) => Some(Arrived::Nack(interest, reason)),
        _ => None,
    }
}
