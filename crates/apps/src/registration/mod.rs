//! Asking a neighbour to send Interests for a prefix here.
//!
//! One `rib/register` is not enough: the neighbour may restart, and forgets. So the command is repeated after every
//! reconnection, and from time to time. Where the neighbour learns routes, `rib/announce` follows it, so that the
//! neighbour's neighbours learn them too.
//!
//! ```text
//!  neighbour there ──▶ rib/register ──▶ [strategy-choice/list ──▶ rib/announce] ──▶ pause ─┐
//!                        ▲                                                                 │
//!                        └──────────── refresh, or backoff after a failure ────────────────┘
//!  cancel ──▶ rib/unregister [of the registration, of the announcement] ──▶ Ended
//! ```

mod announcer;
mod credential;
mod guard;

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::signature::DigestSigner;
use namecast_packet::{
    Component, Data, Interest, InterestBuilder, LpPacket, Name, Nonce, Packet, Signer, tlv,
    tlv_fields,
};
use namecast_units::{Duration, Instant, Random};
use serde::Serialize;
use smart_default::SmartDefault;

use crate::management::{
    Addressee, CAPTURE, CHILD_INHERIT, ControlParameters, ControlResponse, Item, ORIGIN_CLIENT,
    PREFIX_ANNOUNCEMENT, SegmentReader, decode_items, numbers, sign_command,
};
use crate::{Application, Now, Output, face};

pub use announcer::Announcer;
pub use credential::{Credential, Member};
pub use guard::{Claim, GuardEvent, NameGuard, Rival};

/// How often a datagram route is repeated during its lifetime: two repetitions may be lost.
const REPETITIONS: u32 = 3;

/// How a registration stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RegistrationState {
    /// The neighbour has not been asked yet.
    Pending,
    /// The neighbour sends Interests here.
    Registered,
    /// The neighbour does not answer; it is asked again.
    Unanswered,
    /// The neighbour refused, for the reason it gave; it is asked again.
    Refused(String),
    /// The face is gone, or the registration was taken back.
    Ended,
}

/// When a prefix is announced besides being registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Announcing {
    /// If the neighbour's strategy for the prefix, or for a longer one, learns routes; a neighbour on another machine, whose
    /// strategies cannot be asked for, is told in any case.
    #[default]
    WhereLearned,
    /// In any case.
    Always,
}

/// How often prefixes are registered.
#[derive(Clone, Debug, SmartDefault)]
pub struct RegistrationConfig {
    /// Pause between repetitions over a connection, whose end is noticed.
    #[default(Duration::from_secs(300))]
    pub refresh: Duration,
    /// Pause between repetitions over UDP, where nothing tells that the neighbour forgot.
    #[default(Duration::from_millis(1_500))]
    pub datagram_refresh: Duration,
    /// Pause between repetitions over a connection where the prefix is also announced: the neighbour may begin to learn
    /// routes at any time. Also where a member registers it: such routes end 30 s after they were registered last.
    #[default(Duration::from_secs(10))]
    pub announcement_refresh: Duration,
    /// Time an answer may take.
    #[default(Duration::from_secs(1))]
    pub timeout: Duration,
    /// First and longest pause after a failure.
    #[default((Duration::from_millis(250), Duration::from_millis(750)))]
    pub backoff: (Duration, Duration),
}

/// What is asked of a neighbour.
#[derive(Debug)]
pub struct Wanted {
    /// Names that Interests are wanted for.
    pub prefix: Name,
    /// Of several that ask, those with the lowest cost come first.
    pub cost: u64,
    /// Whether the prefix is answered here before whoever registered a shorter one, whatever the costs.
    pub captures: bool,
    /// What to announce, and when.
    pub announcement: Option<(Announcer, Announcing)>,
    /// What shows the neighbour that the prefix may be registered, where a neighbour needs to see that.
    pub credential: Credential,
}

impl Wanted {
    /// Returns a registration of `prefix` that is not announced, by nobody in particular.
    pub const fn new(prefix: Name, cost: u64) -> Self {
        Self {
            prefix,
            cost,
            captures: false,
            announcement: None,
            credential: Credential::None,
        }
    }
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Number of the face that leads there.
    pub face: u64,
    /// What commands to it are named.
    pub addressee: Addressee,
    /// Whether nothing tells when it is gone, as over UDP: then its routes have a lifetime.
    pub is_datagram: bool,
}

/// What a [`Registrar`] reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrationEvent {
    /// The registration stands otherwise than before.
    State(RegistrationState),
    /// The neighbour took the announcement, or refused for this reason, otherwise than the time before.
    Announced(Result<(), String>),
}

/// What the neighbour was asked, and until when it may answer.
#[derive(Debug)]
struct Exchange {
    step: Step,
    interest: Interest,
    expires_at: Instant,
}

#[derive(Debug)]
enum Step {
    Register,
    /// Which strategies the neighbour has.
    Strategies(SegmentReader),
    Announce,
    Unregister,
    /// Takes back what was announced.
    Withdraw,
}

/// Registers one prefix with one neighbour, for as long as both live.
///
/// It sends on a face of its own with local fields, as each of its packets names the face that leads to the neighbour.
#[derive(Debug)]
pub struct Registrar {
    config: RegistrationConfig,
    wanted: Wanted,
    random: Random,
    neighbour: Option<Neighbour>,
    exchange: Option<Exchange>,
    /// When to register next.
    due: Instant,
    failures: u32,
    state: RegistrationState,
    /// Whether the neighbour took the announcement when it was last told, or why not.
    announced: Option<Result<(), String>>,
    /// That of the last command; times grow.
    last_time: Duration,
    is_cancelled: bool,
    outputs: VecDeque<Output<RegistrationEvent>>,
}

impl Registrar {
    /// A registrar without a neighbour yet. `seed` gives Nonces, and is not to be foreseen.
    pub fn new(config: RegistrationConfig, wanted: Wanted, seed: u64) -> Self {
        Self {
            config,
            wanted,
            random: Random::from_seed(seed),
            neighbour: None,
            exchange: None,
            due: Instant::ZERO,
            failures: 0,
            state: RegistrationState::Pending,
            announced: None,
            last_time: Duration::ZERO,
            is_cancelled: false,
            outputs: VecDeque::new(),
        }
    }

    /// Asks `neighbour` from now on, or nobody while the way there is down.
    pub fn set_neighbour(&mut self, now: Now, neighbour: Option<Neighbour>) {
        if neighbour == self.neighbour {
            return;
        }
        self.neighbour = neighbour;
        self.exchange = None;
        self.failures = 0;
        self.due = now.monotonic;
        if self.is_cancelled {
            self.end();
        }
        self.handle_timeout(now);
    }

    /// Takes the registration back: the neighbour is told once, and not asked again.
    pub fn cancel(&mut self, now: Now) {
        if core::mem::replace(&mut self.is_cancelled, true) {
            return;
        }
        match self.neighbour {
            Some(_) => self.begin(now, Step::Unregister),
            None => self.end(),
        }
    }

    /// Registers again with another cost, in place of the one before.
    pub fn set_cost(&mut self, now: Now, cost: u64) {
        if core::mem::replace(&mut self.wanted.cost, cost) != cost && !self.is_cancelled {
            // An answer to the command before says nothing of this cost.
            self.exchange = None;
            self.due = now.monotonic;
            self.handle_timeout(now);
        }
    }

    /// How it stands now.
    pub const fn state(&self) -> &RegistrationState {
        &self.state
    }

    /// Sends the first packet of a step to the neighbour.
    fn begin(&mut self, now: Now, step: Step) {
        let Some(neighbour) = self.neighbour else {
            return;
        };
        let addressee = neighbour.addressee;
        let interest = match (&step, &mut self.wanted.announcement) {
            (Step::Strategies(_), _) => {
                let question = addressee.question("strategy-choice/list");
                question
                    .lifetime(self.config.timeout)
                    .build(Nonce::draw(&mut self.random))
            }
            (Step::Announce, Some((announcer, _))) => {
                let announcement = announcer.announcement(now.wall);
                let command = addressee.announce(announcement);
                self.signed(now, command)
            }
            (Step::Announce, None) => return,
            (Step::Register, _) => {
                let command = addressee.command("rib/register", &self.route(neighbour));
                self.signed_by_credential(now, command)
            }
            (Step::Unregister, _) => {
                let route = self.former(ORIGIN_CLIENT);
                self.signed_by_credential(now, addressee.command("rib/unregister", &route))
            }
            (Step::Withdraw, _) => {
                let route = self.former(PREFIX_ANNOUNCEMENT);
                self.signed(now, addressee.command("rib/unregister", &route))
            }
        };
        self.send(now, step, interest);
    }

    fn send(&mut self, now: Now, step: Step, interest: Interest) {
        let packet = LpPacket {
            next_hop_face: self.neighbour.map(|neighbour| neighbour.face),
            ..LpPacket::carrying(interest.wire().clone())
        };
        self.outputs.push_back(Output::Send(packet.encode()));
        self.exchange = Some(Exchange {
            step,
            interest,
            expires_at: now.monotonic + self.config.timeout,
        });
    }

    /// The route that is wanted.
    fn route(&self, neighbour: Neighbour) -> ControlParameters {
        let lifetime = self.refresh() * (REPETITIONS + 1);
        ControlParameters {
            cost: Some(self.wanted.cost),
            flags: Some(CHILD_INHERIT | if self.wanted.captures { CAPTURE } else { 0 }),
            expiration: neighbour.is_datagram.then_some(lifetime),
            ..self.former(ORIGIN_CLIENT)
        }
    }

    /// A route that is to go.
    fn former(&self, origin: u64) -> ControlParameters {
        ControlParameters {
            name: Some(self.wanted.prefix.clone()),
            origin: Some(origin),
            ..ControlParameters::default()
        }
    }

    fn signed(&mut self, now: Now, command: InterestBuilder) -> Interest {
        self.signed_by(now, command, &DigestSigner)
    }

    /// Signs a command for the registration itself, and shows why it may be carried out.
    fn signed_by_credential(&mut self, now: Now, command: InterestBuilder) -> Interest {
        let credential = core::mem::take(&mut self.wanted.credential);
        let command = match &credential {
            Credential::None => self.signed(now, command),
            Credential::Ticket(ticket) => self.signed(now, command.parameters(ticket.clone())),
            Credential::Member(member) => {
                let command = command.parameters(member.certificates().clone());
                self.signed_by(now, command, member.signer())
            }
        };
        self.wanted.credential = credential;
        command
    }

    fn signed_by(&mut self, now: Now, command: InterestBuilder, signer: &dyn Signer) -> Interest {
        let wall = Duration::from_micros(now.wall.as_micros());
        self.last_time = wall.max(self.last_time + Duration::from_millis(1));
        let nonces = (
            Nonce::draw(&mut self.random),
            self.random.next_u64().to_le_bytes(),
        );
        let timeout = self.config.timeout;
        sign_command(command, signer, self.last_time, timeout, nonces)
    }

    fn refresh(&self) -> Duration {
        let is_datagram = self.neighbour.is_some_and(|it| it.is_datagram);
        let is_member = matches!(self.wanted.credential, Credential::Member(_));
        if is_datagram {
            self.config.datagram_refresh
        } else if self.wanted.announcement.is_some() || is_member {
            self.config.refresh.min(self.config.announcement_refresh)
        } else {
            self.config.refresh
        }
    }

    /// Returns the pause after one more failure.
    fn backoff(&mut self) -> Duration {
        let (first, longest) = self.config.backoff;
        let pause = first * 2_u32.saturating_pow(self.failures);
        self.failures += 1;
        pause.min(longest)
    }

    fn handle_data(&mut self, now: Now, data: &Data) {
        let answered = |exchange: &mut Exchange| exchange.interest.matches(data);
        let Some(Exchange { step, .. }) = self.exchange.take_if(answered) else {
            return;
        };
        match step {
            Step::Strategies(reader) => self.handle_strategies(now, reader, data),
            step => self.settle(now, step, outcome(data)),
        }
    }

    /// Takes a segment of the neighbour's strategies. If they cannot be had, nothing is announced.
    fn handle_strategies(&mut self, now: Now, mut reader: SegmentReader, segment: &Data) {
        match reader.add(segment) {
            Ok(Some(next)) => {
                let interest = Interest::builder(next).lifetime(self.config.timeout);
                let interest = interest.build(Nonce::draw(&mut self.random));
                self.send(now, Step::Strategies(reader), interest);
            }
            Ok(None) if are_learning(&reader.finish(), &self.wanted.prefix) => {
                self.begin(now, Step::Announce);
            }
            _ => self.announced = None,
        }
    }

    /// Goes on after a step ended, or was not answered.
    fn settle(&mut self, now: Now, step: Step, outcome: Result<(), RegistrationState>) {
        match step {
            Step::Register => self.handle_registered(now, outcome),
            Step::Strategies(_) => self.announced = None,
            Step::Announce => self.handle_announced(outcome),
            Step::Unregister if matches!(self.announced, Some(Ok(()))) => {
                self.begin(now, Step::Withdraw);
            }
            // A neighbour that does not answer notices when the face ends.
            Step::Unregister | Step::Withdraw => self.end(),
        }
    }

    fn handle_registered(&mut self, now: Now, outcome: Result<(), RegistrationState>) {
        match outcome {
            Ok(()) => {
                self.failures = 0;
                self.due = now.monotonic + self.refresh();
                self.enter(RegistrationState::Registered);
                self.announce(now);
            }
            Err(state) => {
                self.due = now.monotonic + self.backoff();
                self.enter(state);
            }
        }
    }

    /// Announces the prefix if that is wanted. A neighbour that does not take it is no worse off than without.
    fn announce(&mut self, now: Now) {
        let is_local = self.neighbour.is_some_and(|it| it.addressee.is_local());
        match self.wanted.announcement {
            Some((_, Announcing::WhereLearned)) if is_local => {
                self.begin(now, Step::Strategies(SegmentReader::default()));
            }
            Some(_) => self.begin(now, Step::Announce),
            None => {}
        }
    }

    fn handle_announced(&mut self, outcome: Result<(), RegistrationState>) {
        let outcome = outcome.map_err(|state| match state {
            RegistrationState::Refused(reason) => reason,
            _ => "no answer".to_owned(),
        });
        if self.announced.as_ref() != Some(&outcome) {
            let event = RegistrationEvent::Announced(outcome.clone());
            self.outputs.push_back(Output::Event(event));
        }
        self.announced = Some(outcome);
    }

    fn end(&mut self) {
        self.neighbour = None;
        self.enter(RegistrationState::Ended);
    }

    fn enter(&mut self, state: RegistrationState) {
        if state != self.state {
            self.state = state.clone();
            let event = RegistrationEvent::State(state);
            self.outputs.push_back(Output::Event(event));
        }
    }
}

impl Application for Registrar {
    type Event = RegistrationEvent;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        match face::open(frame) {
            Ok(Some((Packet::Data(data), _))) => self.handle_data(now, &data),
            Ok(Some((Packet::Interest(nacked), link))) if link.nack.is_some() => {
                let is_it = |exchange: &mut Exchange| exchange.interest.name() == nacked.name();
                if let Some(exchange) = self.exchange.take_if(is_it) {
                    let reason = link.nack.map(|reason| format!("Nack {reason:?}"));
                    let reason = reason.unwrap_or_default();
                    let refused = format!("there is no management ({reason})");
                    let refused = RegistrationState::Refused(refused);
                    self.settle(now, exchange.step, Err(refused));
                }
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        let is_late = |exchange: &mut Exchange| exchange.expires_at <= now.monotonic;
        if let Some(exchange) = self.exchange.take_if(is_late) {
            self.settle(now, exchange.step, Err(RegistrationState::Unanswered));
        }
        if self.neighbour.is_some() && self.exchange.is_none() && self.due <= now.monotonic {
            self.begin(now, Step::Register);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.neighbour?;
        let expires_at = self.exchange.as_ref().map(|exchange| exchange.expires_at);
        Some(expires_at.unwrap_or(self.due))
    }

    fn poll_output(&mut self) -> Option<Output<RegistrationEvent>> {
        self.outputs.pop_front()
    }
}

/// What became of a command.
fn outcome(response: &Data) -> Result<(), RegistrationState> {
    let content = response.content().unwrap_or_default();
    let refused = match ControlResponse::decode(&content) {
        // NLSR has several ways to agree.
        Ok(ControlResponse { code: ..400, .. }) => return Ok(()),
        Ok(ControlResponse { code, text, .. }) => format!("{code} {text}"),
        Err(error) => format!("the answer cannot be read: {error}"),
    };
    Err(RegistrationState::Refused(refused))
}

/// A strategy of the neighbour's, of its `strategy-choice/list`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Choice {
    prefix: Name,
    strategy: Name,
}

impl Item for Choice {
    const TYPE: u32 = 128;
    const WHAT: &'static str = "StrategyChoice";

    tlv_fields! {
        tlv::NAME => prefix,
        numbers::STRATEGY => strategy,
    }
}

/// Whether the choice that holds for `prefix`, or one for a longer name, is self-learning, as NFD too calls it.
fn are_learning(list: &Bytes, prefix: &Name) -> bool {
    let choices = decode_items::<Choice>(list).unwrap_or_default();
    let learns =
        |choice: &&Choice| choice.strategy.get(3) == Some(Component::generic("self-learning"));
    let shorter = choices
        .iter()
        .filter(|choice| choice.prefix.is_prefix_of(prefix));
    let own = shorter.max_by_key(|choice| choice.prefix.len());
    let mut longer = choices
        .iter()
        .filter(|choice| prefix.is_prefix_of(&choice.prefix));
    own.as_ref().is_some_and(learns) || longer.any(|choice| learns(&choice))
}

#[cfg(test)]
mod tests;
