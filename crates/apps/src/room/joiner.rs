//! A newcomer's end of an invitation: requests a certificate until the host answers, and checks the answer.
//!
//! ```text
//!  Requesting ── 32=join, each second ──▶ Checking ── certificate of the anchor ──▶ joined
//!      └ refused three times                  └ another key than the link's, or a wrong signature ──▶ failed
//! ```

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::signature::PublicKey;
use namecast_packet::{Certificate, Data, Interest, KeyLocator, Nonce, Packet, Signer};
use namecast_units::{Duration, Instant, Random};

use super::join::{InvitationSecret, Join, Link, Welcome, join_name};
use crate::{Application, Now, Output, face};

/// From one transmission of an Interest to the next, and how long each waits.
const REPEAT: Duration = Duration::from_secs(1);
const LIFETIME: Duration = Duration::from_secs(4);
/// Refusals after which the link counts as refused: the host may not have read it yet, which it does once a second.
const REFUSALS: u32 = 3;
/// Interests for the anchor's certificate.
const MAX_ATTEMPTS: u32 = 5;

/// Report of a joiner.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinEvent {
    /// There is no answer yet, for this reason. It is reported once for each reason, one after the other.
    Waiting(WaitReason),
    /// The host has certified the key. Nothing follows.
    Joined(Box<Joined>),
    /// It did not. Nothing follows.
    Failed(JoinFailure),
}

/// Reason why a newcomer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// The room has no host, or the path to it is down.
    HostAway,
    /// The request arrived, or is on its way: the host may have to say yes.
    Undecided,
    /// Too many are joining.
    Crowded,
}

/// Certificates of a newcomer who has joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// Its certificate, and the versions of schema and roster that the host knew.
    pub welcome: Welcome,
    /// The anchor's certificate.
    pub anchor: Certificate,
}

/// Reason why a newcomer cannot join.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinFailure {
    /// The host refuses the request.
    #[error(
        "the host refuses the link: it was used, has ended or is another room's, or the key was revoked. Ask for another link"
    )]
    Refused,
    /// Nobody has the anchor's certificate.
    #[error("nobody has the anchor's certificate, which the answer names")]
    NoAnchor,
    /// The answer was not signed by the anchor that the link names.
    #[error("the answer is signed by another key than the link names")]
    OtherAnchor,
    /// The answer is malformed, or certifies something else.
    #[error("the host's answer is no certificate for the key that requested it")]
    NotRequested,
}

/// What is requested now.
enum Step {
    Requesting { refusals: u32 },
    Checking { answer: Data, attempts: u32 },
    Done,
}

/// Joins a room with a link.
pub struct Joiner {
    link: Link,
    key: PublicKey,
    interest: Interest,
    step: Step,
    send_at: Instant,
    reason: Option<WaitReason>,
    /// Whether the last transmission came back.
    was_nacked: bool,
    nonces: Random,
    outputs: VecDeque<Output<JoinEvent>>,
}

impl core::fmt::Debug for Joiner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Joiner")
            .field("root", &self.link.root)
            .finish_non_exhaustive()
    }
}

impl Joiner {
    /// Requests a certificate with `link` for `key`, which `signer` signs with, and the X25519 key `exchange_key`. `label` is shown to people. `seed`
    /// gives Nonces, and is not to be foreseen.
    pub fn new(
        link: Link,
        (key, exchange_key): (PublicKey, [u8; 32]),
        label: String,
        signer: &dyn Signer,
        seed: u64,
    ) -> Self {
        let mut nonces = Random::from_seed(seed);
        let secret = InvitationSecret::of_token(&link.token);
        let place = (&link.root, &link.anchor);
        let join = Join::new(place, &secret, (key.clone(), exchange_key), label);
        // The same request has the same name: a cache may have the answer to one before the member left.
        let interest = Interest::builder(join_name(&link.root))
            .parameters(join.encode())
            .must_be_fresh()
            .lifetime(LIFETIME)
            .sign(Nonce::draw(&mut nonces), signer, &signer.info());
        Self {
            link,
            key,
            interest,
            step: Step::Requesting { refusals: 0 },
            send_at: Instant::ZERO,
            reason: None,
            was_nacked: false,
            nonces,
            outputs: VecDeque::new(),
        }
    }

    fn send(&mut self, interest: &Interest) {
        let interest = interest.with_nonce(Nonce::draw(&mut self.nonces));
        let packet = face::request(&interest, None);
        self.outputs.push_back(Output::Send(packet));
    }

    fn end(&mut self, event: JoinEvent) {
        self.step = Step::Done;
        self.outputs.push_back(Output::Event(event));
    }

    fn wait(&mut self, reason: WaitReason) {
        if self.reason.replace(reason) != Some(reason) {
            let event = Output::Event(JoinEvent::Waiting(reason));
            self.outputs.push_back(event);
        }
    }

    /// Returns the Interest for the certificate that `answer` names.
    fn question(&mut self, answer: &Data) -> Option<Interest> {
        let Some(KeyLocator::Name(locator)) = &answer.signature_info().key_locator else {
            return None;
        };
        let interest = Interest::builder(locator.detached()).can_be_prefix();
        Some(
            interest
                .lifetime(LIFETIME)
                .build(Nonce::draw(&mut self.nonces)),
        )
    }

    fn handle_data(&mut self, now: Instant, data: &Data) {
        match &self.step {
            Step::Requesting { .. } if self.interest.matches(data) => {
                self.step = Step::Checking {
                    answer: data.clone(),
                    attempts: 0,
                };
                self.send_at = now;
            }
            Step::Checking { answer, .. } => {
                let answer = answer.clone();
                let question = self.question(&answer);
                if question.is_some_and(|it| it.matches(data)) {
                    let event = match self.check(&answer, data) {
                        Ok(joined) => JoinEvent::Joined(Box::new(joined)),
                        Err(failure) => JoinEvent::Failed(failure),
                    };
                    self.end(event);
                }
            }
            _ => {}
        }
    }

    /// Checks that `anchor` is the certificate of the link's key, which signed `answer`, and that this is what was requested.
    fn check(&self, answer: &Data, anchor: &Data) -> Result<Joined, JoinFailure> {
        let anchor = Certificate::decode(anchor.clone()).ok();
        let anchor = anchor.ok_or(JoinFailure::OtherAnchor)?;
        let key = anchor.public_key().ok();
        let key = key.filter(|key| key.digest() == self.link.anchor);
        let key = key.ok_or(JoinFailure::OtherAnchor)?;
        let is_signed = |data: &Data| data.verify(&key).is_ok();
        if !is_signed(answer) || !is_signed(anchor.data()) {
            return Err(JoinFailure::OtherAnchor);
        }
        let content = answer.content().unwrap_or_default();
        let welcome = Welcome::decode(&content).ok();
        let welcome = welcome.filter(|welcome| {
            let certificate = &welcome.certificate;
            let is_own = certificate.public_key().is_ok_and(|key| key == self.key);
            is_own
                && self.link.root.is_prefix_of(&certificate.identity())
                && is_signed(certificate.data())
        });
        let welcome = welcome.ok_or(JoinFailure::NotRequested)?;
        Ok(Joined { welcome, anchor })
    }

    /// Takes the request back from the host, or from a node on the way.
    fn handle_nack(&mut self, reason: NackReason) {
        let Step::Requesting { refusals } = &mut self.step else {
            return;
        };
        self.was_nacked = true;
        match reason {
            NackReason::None => {
                *refusals += 1;
                if *refusals == REFUSALS {
                    self.end(JoinEvent::Failed(JoinFailure::Refused));
                }
            }
            NackReason::Congestion => self.wait(WaitReason::Crowded),
            _ => self.wait(WaitReason::HostAway),
        }
    }

    fn settle(&mut self, now: Instant) {
        if now < self.send_at {
            return;
        }
        let is_repeated = self.send_at > Instant::ZERO;
        match &mut self.step {
            Step::Requesting { .. } => {
                let interest = self.interest.clone();
                self.send(&interest);
                if is_repeated && !core::mem::take(&mut self.was_nacked) {
                    self.wait(WaitReason::Undecided);
                }
            }
            Step::Checking { answer, attempts } => {
                *attempts += 1;
                let (answer, attempts) = (answer.clone(), *attempts);
                match self.question(&answer) {
                    Some(interest) if attempts <= MAX_ATTEMPTS => self.send(&interest),
                    _ => self.end(JoinEvent::Failed(JoinFailure::NoAnchor)),
                }
            }
            Step::Done => return,
        }
        self.send_at = now + REPEAT;
    }
}

impl Application for Joiner {
    type Event = JoinEvent;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        match face::open(frame) {
            Ok(Some((Packet::Data(data), _))) => self.handle_data(now.monotonic, &data),
            Ok(Some((Packet::Interest(back), link))) => {
                let is_own = back.name() == self.interest.name();
                if let Some(reason) = link.nack.filter(|_| is_own) {
                    self.handle_nack(reason);
                }
            }
            _ => {}
        }
        self.settle(now.monotonic);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.settle(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!matches!(self.step, Step::Done)).then_some(self.send_at)
    }

    fn poll_output(&mut self) -> Option<Output<JoinEvent>> {
        self.outputs.pop_front()
    }
}

#[cfg(test)]
#[path = "joiner_tests.rs"]
mod tests;
