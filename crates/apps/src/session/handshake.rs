//! Packets of a set-up, which carry the messages of a Noise handshake.

use bytes::Bytes;
use namecast_packet::signature::NullSigner;
use namecast_packet::tlv::{Fields, Reader, Writer};
use namecast_packet::{Data, Interest, Name, Nonce};
use namecast_units::Duration;
use zeroize::Zeroizing;

use super::identity::{Admission, Own, Peer, Refused, prologue};
use super::keys::SessionKeys;
use super::names::{self, CallId};
use super::noise::{self, KEY, Pattern};
use super::puzzle::{Puzzle, Solution};
use super::refusal::Refusal;

/// Elements of parameters and contents: all critical.
pub(super) const XX: u32 = 135;
pub(super) const IK: u32 = 137;
const SOLUTION: u32 = 139;
const OTHER_STATIC: u32 = 141;
const PUZZLE: u32 = 143;
pub(super) const PROOF: u32 = 145;

/// A set-up of this side's own.
pub(super) struct Outgoing {
    pattern: Pattern,
    prologue: Vec<u8>,
    /// The callee's static key, where it is known.
    remote: Option<[u8; KEY]>,
    seed: Zeroizing<[u8; 32]>,
    /// Payload of the first message: this side's certificate, or nothing.
    payload: Bytes,
    message: Vec<u8>,
}

impl Outgoing {
    /// Writes the first message to whoever has `prologue` in common, whose static key is `remote` if that is known.
    ///
    /// # Errors
    /// [`Refusal::WeakKey`] if `remote` is no key.
    pub(super) fn new(
        own: &Own,
        prologue: Vec<u8>,
        remote: Option<[u8; KEY]>,
        seed: Zeroizing<[u8; 32]>,
    ) -> Result<Self, Refusal> {
        let pattern = match remote {
            None => Pattern::Xx,
            Some(_) => Pattern::Ik,
        };
        let payload = match pattern {
            Pattern::Xx => Bytes::new(),
            Pattern::Ik => own.payload.clone(),
        };
        Self::write(own, (pattern, prologue), remote, (seed, payload))
    }

    /// Writes the first message of new keys for a session with the peer whose static key is `remote`. Who it is, is known.
    ///
    /// # Errors
    /// [`Refusal::WeakKey`] if `remote` is no key.
    pub(super) fn renewal(
        own: &Own,
        prologue: Vec<u8>,
        remote: [u8; KEY],
        seed: Zeroizing<[u8; 32]>,
    ) -> Result<Self, Refusal> {
        let payload = Bytes::new();
        Self::write(own, (Pattern::Ik, prologue), Some(remote), (seed, payload))
    }

    fn write(
        own: &Own,
        (pattern, prologue): (Pattern, Vec<u8>),
        remote: Option<[u8; KEY]>,
        (seed, payload): (Zeroizing<[u8; 32]>, Bytes),
    ) -> Result<Self, Refusal> {
        let side = own.side(pattern, &prologue, remote.as_ref(), &seed);
        let message = noise::write(&mut side.initiator(), &payload)?;
        Ok(Self {
            pattern,
            prologue,
            remote,
            seed,
            payload,
            message,
        })
    }

    /// Returns the public ephemeral key.
    pub(super) fn ephemeral(&self) -> [u8; KEY] {
        *self.message.first_chunk().expect("it begins with the key")
    }

    pub(super) fn message(&self) -> &[u8] {
        &self.message
    }

    /// Returns whether the callee's static key is taken for known.
    pub(super) const fn is_known(&self) -> bool {
        self.remote.is_some()
    }

    /// Returns the Interest that carries the first message to `callee`, with the solution of the puzzle that it has set.
    pub(super) fn interest(
        &self,
        own: &Own,
        callee: &Name,
        solution: Option<&Solution>,
        (lifetime, nonce): (Duration, Nonce),
    ) -> Interest {
        let mut parameters = Writer::default();
        parameters.element(element(self.pattern), &self.message);
        if let Some(Solution { seed, number }) = solution {
            let octets = [&seed[..], &number.to_be_bytes()].concat();
            parameters.element(SOLUTION, &octets);
        }
        Interest::builder(names::call(callee, &own.root))
            .parameters(parameters.finish())
            .lifetime(lifetime)
            .build(nonce)
    }

    /// Reads the callee's message: the keys, and who it is.
    ///
    /// # Errors
    /// If it is not the callee's, or the callee is not admitted.
    pub(super) fn read_answer(
        &self,
        own: &Own,
        callee: &Name,
        (pattern, message): (Pattern, &[u8]),
        admission: &Admission<'_>,
    ) -> Result<Answered, Refused> {
        if pattern != self.pattern {
            return Err(Refusal::Malformed.into());
        }
        let (mut state, payload) = self.read(own, message)?;
        let static_key = remote_static(&state, own)?;
        let peer = admission.judge(callee, static_key, &payload)?;
        let third = match pattern {
            Pattern::Xx => Some(noise::write(&mut state, &own.payload)?),
            Pattern::Ik => None,
        };
        let keys = SessionKeys::split(&mut state);
        Ok(Answered { peer, keys, third })
    }

    /// Reads the answer to a renewal: the new keys.
    ///
    /// # Errors
    /// If it is not the callee's.
    pub(super) fn read_renewal(&self, own: &Own, message: &[u8]) -> Result<SessionKeys, Refusal> {
        let (mut state, _) = self.read(own, message)?;
        Ok(SessionKeys::split(&mut state))
    }

    /// Reads the second message. Returns the handshake and the payload.
    fn read(&self, own: &Own, message: &[u8]) -> Result<(snow::HandshakeState, Vec<u8>), Refusal> {
        if message.starts_with(&self.ephemeral()) {
            return Err(Refusal::Reflected);
        }
        if message.len() < self.pattern.min_length(1) {
            return Err(Refusal::Cut);
        }
        let side = own.side(
            self.pattern,
            &self.prologue,
            self.remote.as_ref(),
            &self.seed,
        );
        let mut state = side.initiator();
        noise::write(&mut state, &self.payload)?;
        let payload = noise::read(&mut state, message)?;
        Ok((state, payload))
    }
}

/// The caller's result of the callee's answer.
pub(super) struct Answered {
    pub(super) peer: Peer,
    pub(super) keys: SessionKeys,
    /// The message that the callee waits for; `None` where the first one said all.
    third: Option<Vec<u8>>,
}

impl Answered {
    /// Returns the packet that shows the callee who calls, and that it has the session's keys.
    pub(super) fn confirm(&self, name: Name) -> Data {
        let mut content = Writer::default();
        if let Some(third) = &self.third {
            content.element(XX, third);
        }
        content.element(PROOF, &self.keys.prove(name.value()));
        Data::builder(name)
            .content(content.finish())
            .sign(&NullSigner)
    }
}

fn remote_static(state: &snow::HandshakeState, own: &Own) -> Result<[u8; KEY], Refusal> {
    let key = state.get_remote_static().and_then(|it| it.try_into().ok());
    let key: [u8; KEY] = key.ok_or(Refusal::Malformed)?;
    if key == own.static_public {
        return Err(Refusal::Reflected);
    }
    Ok(key)
}

const fn element(pattern: Pattern) -> u32 {
    match pattern {
        Pattern::Xx => XX,
        Pattern::Ik => IK,
    }
}

/// The first message of another's set-up.
pub(super) struct Incoming {
    pub(super) pattern: Pattern,
    prologue: Vec<u8>,
    message: Bytes,
}

impl Incoming {
    /// # Errors
    /// [`Refusal::Cut`].
    pub(super) fn new(
        pattern: Pattern,
        prologue: Vec<u8>,
        message: Bytes,
    ) -> Result<Self, Refusal> {
        if message.len() < pattern.min_length(0) {
            return Err(Refusal::Cut);
        }
        if pattern == Pattern::Xx && message.len() > KEY {
            return Err(Refusal::Malformed);
        }
        Ok(Self {
            pattern,
            prologue,
            message,
        })
    }

    /// Returns the caller's public ephemeral key.
    pub(super) fn ephemeral(&self) -> [u8; KEY] {
        let key = self.message.first_chunk();
        *key.expect("messages are no shorter")
    }

    /// Returns the caller's static key, if the message has it, for one Diffie–Hellman exchange.
    ///
    /// # Errors
    /// If the message is for somebody else, or comes from this endpoint.
    pub(super) fn peek(&self, own: &Own) -> Result<Option<[u8; KEY]>, Refusal> {
        if self.pattern == Pattern::Xx {
            return Ok(None);
        }
        let key = noise::peek(
            &self.prologue,
            (&own.static_key, &own.static_public),
            &self.message,
        )?;
        if key == own.static_public {
            return Err(Refusal::Reflected);
        }
        Ok(Some(key))
    }

    /// Reads the message, and writes the answer.
    ///
    /// # Errors
    /// If it was not made for this endpoint.
    pub(super) fn answer(&self, own: &Own, seed: &[u8; 32]) -> Result<Answer, Refusal> {
        self.write(own, seed, &own.payload)
    }

    /// Reads the message, and answers with new keys for a session.
    ///
    /// # Errors
    /// If it was not made for this endpoint and session.
    pub(super) fn answer_renewal(&self, own: &Own, seed: &[u8; 32]) -> Result<Answer, Refusal> {
        self.write(own, seed, &[])
    }

    fn write(&self, own: &Own, seed: &[u8; 32], said: &[u8]) -> Result<Answer, Refusal> {
        let side = own.side(self.pattern, &self.prologue, None, seed);
        let mut state = side.responder();
        let payload = noise::read(&mut state, &self.message)?;
        let message = noise::write(&mut state, said)?;
        Ok(Answer {
            state,
            payload,
            message,
        })
    }

    /// Reads the third message, where the pattern has one, after the first was answered with `seed`.
    ///
    /// # Errors
    /// If it is not the caller's, of this very set-up.
    pub(super) fn read_third(
        &self,
        own: &Own,
        seed: &[u8; 32],
        message: &[u8],
    ) -> Result<Introduced, Refusal> {
        if message.len() < self.pattern.min_length(2) {
            return Err(Refusal::Cut);
        }
        let mut answer = self.answer(own, seed)?;
        let payload = noise::read(&mut answer.state, message)?;
        Ok(Introduced {
            static_key: remote_static(&answer.state, own)?,
            payload,
            keys: SessionKeys::split(&mut answer.state),
        })
    }
}

/// An answer, before it is sent.
pub(super) struct Answer {
    state: snow::HandshakeState,
    /// Payload of the caller's first message.
    payload: Vec<u8>,
    pub(super) message: Vec<u8>,
}

impl Answer {
    /// Returns what is known of a caller whose first message says all.
    ///
    /// # Errors
    /// [`Refusal::Reflected`].
    pub(super) fn introduced(mut self, own: &Own) -> Result<Introduced, Refusal> {
        Ok(Introduced {
            static_key: remote_static(&self.state, own)?,
            payload: self.payload,
            keys: SessionKeys::split(&mut self.state),
        })
    }
}

/// What a caller has said of itself, not judged.
pub(super) struct Introduced {
    pub(super) static_key: [u8; KEY],
    pub(super) payload: Vec<u8>,
    pub(super) keys: SessionKeys,
}

/// The identifier of a call: the beginning of the digest of its parameters.
pub(super) fn call_id(interest: &Interest) -> Option<CallId> {
    let digest = interest.name().last()?.value;
    digest.get(..8)?.try_into().ok().map(CallId)
}

/// A call, before anything of it is checked.
pub(super) struct Knock {
    /// Who calls, by the Interest's name.
    pub(super) caller: Name,
    pub(super) incoming: Incoming,
    pub(super) solution: Option<Solution>,
}

/// Reads a call to `callee`.
///
/// # Errors
/// If it is none.
pub(super) fn read_call(callee: &Name, interest: &Interest) -> Result<Knock, Refusal> {
    let caller = names::caller(callee, interest.name()).ok_or(Refusal::Malformed)?;
    let parameters = interest.parameters().ok_or(Refusal::Malformed)?;
    (interest.check_parameters_digest()).map_err(|_| Refusal::Malformed)?;
    let read = Read::of(&parameters)?;
    let (pattern, message) = read.message.ok_or(Refusal::Malformed)?;
    let incoming = Incoming::new(pattern, prologue(callee, &caller), message)?;
    Ok(Knock {
        caller,
        incoming,
        solution: read.solution,
    })
}

/// Returns the packet that answers `name` with the second message.
pub(super) fn answer_packet(name: Name, pattern: Pattern, message: &[u8]) -> Data {
    let mut content = Writer::default();
    content.element(element(pattern), message);
    Data::builder(name)
        .content(content.finish())
        .sign(&NullSigner)
}

/// Returns the packet that has the caller of `name` call without a static key. Nobody vouches for it: it costs the caller a round
/// trip at most.
pub(super) fn other_static_packet(name: Name) -> Bytes {
    let mut content = Writer::default();
    content.element(OTHER_STATIC, &[]);
    Data::builder(name)
        .content(content.finish())
        .sign(&NullSigner)
        .wire()
        .clone()
}

/// Returns the packet that has the caller of `name` solve a puzzle first. Nobody vouches for it, either.
pub(super) fn puzzle_packet(name: Name, puzzle: Puzzle) -> Bytes {
    let mut content = Writer::default();
    content.element(PUZZLE, &[&puzzle.seed[..], &[puzzle.difficulty]].concat());
    Data::builder(name)
        .content(content.finish())
        .sign(&NullSigner)
        .wire()
        .clone()
}

/// What the answer to a call says.
pub(super) enum Reply {
    Message(Pattern, Bytes),
    /// The callee has another static key.
    OtherStatic,
    /// The callee answers once this is solved.
    Puzzle(Puzzle),
}

/// # Errors
/// [`Refusal::Malformed`].
pub(super) fn read_reply(data: &Data) -> Result<Reply, Refusal> {
    let read = Read::of(&data.content().unwrap_or_default())?;
    match (read.message, read.puzzle) {
        (Some((pattern, message)), _) => Ok(Reply::Message(pattern, message)),
        (None, Some(puzzle)) => Ok(Reply::Puzzle(puzzle)),
        (None, None) if read.is_other_static => Ok(Reply::OtherStatic),
        (None, None) => Err(Refusal::Malformed),
    }
}

/// Reads what the caller shows last: the third message, if there is one, and the proof of the keys.
///
/// # Errors
/// [`Refusal::Malformed`].
pub(super) fn read_confirmation(data: &Data) -> Result<(Option<Bytes>, Bytes), Refusal> {
    let read = Read::of(&data.content().unwrap_or_default())?;
    let message = match read.message {
        Some((Pattern::Ik, _)) => return Err(Refusal::Malformed),
        Some((Pattern::Xx, message)) => Some(message),
        None => None,
    };
    Ok((message, read.proof.ok_or(Refusal::Malformed)?))
}

/// The elements of parameters and contents.
#[derive(Default)]
struct Read {
    message: Option<(Pattern, Bytes)>,
    solution: Option<Solution>,
    is_other_static: bool,
    puzzle: Option<Puzzle>,
    proof: Option<Bytes>,
}

impl Read {
    fn of(octets: &Bytes) -> Result<Self, Refusal> {
        const ORDER: [u32; 6] = [XX, IK, SOLUTION, OTHER_STATIC, PUZZLE, PROOF];
        let mut read = Self::default();
        let mut fields = Fields::new(Reader::new(octets), "call", &ORDER);
        while let Some(field) = fields.field().map_err(|_| Refusal::Malformed)? {
            let value = octets.slice(field.value);
            match field.element_type {
                XX => read.message = Some((Pattern::Xx, value)),
                IK if read.message.is_some() => return Err(Refusal::Malformed),
                IK => read.message = Some((Pattern::Ik, value)),
                SOLUTION => {
                    let (seed, number) = split(&value)?;
                    let number = number.try_into().map_err(|_| Refusal::Malformed)?;
                    let number = u64::from_be_bytes(number);
                    read.solution = Some(Solution { seed, number });
                }
                OTHER_STATIC => read.is_other_static = true,
                PUZZLE => {
                    let (seed, difficulty) = split(&value)?;
                    let [difficulty] = difficulty.try_into().map_err(|_| Refusal::Malformed)?;
                    read.puzzle = Some(Puzzle { seed, difficulty });
                }
                _ => read.proof = Some(value),
            }
        }
        Ok(read)
    }
}

/// The seed of a puzzle, and what is behind it.
fn split(value: &[u8]) -> Result<([u8; 16], &[u8]), Refusal> {
    let (seed, rest) = value.split_first_chunk().ok_or(Refusal::Malformed)?;
    Ok((*seed, rest))
}
