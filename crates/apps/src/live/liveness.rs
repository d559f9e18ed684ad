//! Whether what is shown is live. Signed packets stay valid for ever, so packets alone do not tell: only who holds the key can
//! answer a request that carries something new, our Nonce or a name that nobody else requests.
//!
//! ```text
//!                          frames of now     frames of long ago   no frames
//!   answered, < 15 s ago   live              recorded             unconfirmed
//!   not answered           unconfirmed       recorded             unconfirmed
//! ```

use core::time::Duration;

use namecast_packet::Interest;
use namecast_stream::StreamNames;
use namecast_stream::path::{Object, Token};
use namecast_units::{Instant, Random, Timestamp};

/// A publisher whose last answer is so old is challenged.
const CHALLENGE_AFTER: Duration = Duration::from_secs(10);
/// One that never answered is challenged after this time, and again after twice as long, up to [`CHALLENGE_AFTER`].
const FIRST_CHALLENGE_AFTER: Duration = Duration::from_secs(1);
/// For so long an answer counts, from the moment at which its request left; and a frame, from when it was delivered.
const VALID_FOR: Duration = Duration::from_secs(15);
/// Frames that were captured longer ago than this and the playout target are not live, by the publisher's clock.
const MAX_BEHIND: Duration = Duration::from_secs(10);
/// The same by our clock, which may be wrong, where the publisher's is not known.
const MAX_BEHIND_BY_OUR_CLOCK: Duration = Duration::from_secs(60);
/// Nobody is told that nothing is confirmed before this time has passed.
const GRACE: Duration = Duration::from_secs(3);

/// Whether what is shown is what is published now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Liveness {
    /// It may be, or be a recording of a moment ago: the publisher did not answer us, or nothing is shown.
    #[default]
    Unconfirmed,
    /// It is: the publisher answered us at most 15 s ago.
    Live,
    /// It is not: the frame shown last was captured at this time, by the publisher's clock.
    Recorded(Timestamp),
}

impl Liveness {
    /// The state in a word: `unconfirmed`, `live`, `recorded`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unconfirmed => "unconfirmed",
            Self::Live => "live",
            Self::Recorded(_) => "recorded",
        }
    }
}

/// What is known of it.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    /// Token of the challenge.
    token: Token,
    random: Random,
    /// When the newest request left that was answered, and what the publisher's clock said then.
    answered: Option<(Instant, Timestamp)>,
    /// When the challenge left whose answer is expected.
    challenge: Option<Instant>,
    /// Challenges since the last answer.
    unanswered: u32,
    /// Since when an answer could have come.
    begun: Option<Instant>,
    /// When the newest frame was delivered, and when it was captured.
    frame: Option<(Instant, Timestamp)>,
    told: Option<&'static str>,
}

impl Proof {
    /// `seed` must not be known to others, who could ask for answers beforehand.
    pub(super) fn new(seed: u64, token: Token) -> Self {
        Self {
            token,
            random: Random::from_seed(seed),
            answered: None,
            challenge: None,
            unanswered: 0,
            begun: None,
            frame: None,
            told: None,
        }
    }

    /// The publisher's key is known from now on.
    pub(super) fn begin(&mut self, now: Instant) {
        self.begun.get_or_insert(now);
    }

    /// The publisher answered a request of ours that left at `sent`, and its clock said `served_at`.
    pub(super) fn on_answer(&mut self, sent: Instant, served_at: Timestamp) {
        if self.answered.is_none_or(|(before, _)| before < sent) {
            self.answered = Some((sent, served_at));
        }
        self.challenge = None;
        self.unanswered = 0;
    }

    /// A frame is delivered.
    pub(super) fn on_frame(&mut self, now: Instant, captured_at: Timestamp) {
        if self
            .frame
            .is_none_or(|(at, before)| at < now || before < captured_at)
        {
            self.frame = Some((now, captured_at));
        }
    }

    /// When the challenge left whose answer is expected.
    pub(super) const fn challenged_at(&self) -> Option<Instant> {
        self.challenge
    }

    /// Returns the token of the challenge.
    pub(super) const fn token(&self) -> Token {
        self.token
    }

    /// Returns the challenge that is due: a request for metadata under a name that nobody else requests.
    pub(super) fn poll_want(&mut self, now: Instant, names: &StreamNames) -> Option<Object> {
        self.challenge_at().filter(|at| *at <= now)?;
        let interest = Interest::builder(names.challenge(self.random.next_u64()));
        self.challenge = Some(now);
        self.unanswered = self.unanswered.saturating_add(1);
        Some(Object::new(self.token, interest, None))
    }

    fn challenge_at(&self) -> Option<Instant> {
        let wait = FIRST_CHALLENGE_AFTER * (1 << self.unanswered.min(4));
        let wait = wait.min(CHALLENGE_AFTER);
        match (self.challenge, self.answered) {
            (Some(sent), _) => Some(sent + wait),
            (None, Some((sent, _))) => Some(sent + CHALLENGE_AFTER),
            (None, None) => Some(self.begun? + wait),
        }
    }

    /// What is known; `wall` is our clock, `target` the playout target.
    pub(super) fn liveness(&self, now: Instant, wall: Timestamp, target: Duration) -> Liveness {
        let (there, most) = match self.answered {
            Some((sent, served_at)) => (served_at + now.since(sent), MAX_BEHIND + target),
            None => (wall, MAX_BEHIND_BY_OUR_CLOCK),
        };
        let Some((at, captured_at)) = self.frame else {
            return Liveness::Unconfirmed;
        };
        if there.since(captured_at) > most + now.since(at) {
            return Liveness::Recorded(captured_at);
        }
        match self.answered {
            Some(_) if now.since(at) < VALID_FOR => Liveness::Live,
            _ => Liveness::Unconfirmed,
        }
    }

    fn expires_at(&self) -> Option<Instant> {
        self.answered.map(|(sent, _)| sent + VALID_FOR)
    }

    /// Forgets an answer of long ago. Tells what is known now, if that is news.
    pub(super) fn news(
        &mut self,
        now: Instant,
        wall: Timestamp,
        target: Duration,
    ) -> Option<Liveness> {
        if self.expires_at().is_some_and(|at| at <= now) {
            self.answered = None;
        }
        let waits = self.told.is_none() && self.begun.is_none_or(|begun| now < begun + GRACE);
        let liveness = self.liveness(now, wall, target);
        if waits && liveness == Liveness::Unconfirmed || self.told == Some(liveness.word()) {
            return None;
        }
        self.told = Some(liveness.word());
        Some(liveness)
    }

    /// When there is something to do or to say next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let grace = self.begun.filter(|_| self.told.is_none());
        let grace = grace.map(|begun| begun + GRACE);
        let is_live = self.told == Some(Liveness::Live.word());
        let frame = self.frame.filter(|_| is_live);
        let stale = frame.map(|(at, _)| at + VALID_FOR);
        let times = [self.challenge_at(), grace, self.expires_at(), stale];
        times.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::client;

    const WALL: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
    const TARGET: Duration = Duration::from_millis(250);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A clock, right or wrong, `millis` after the beginning.
    fn wall(millis: u64) -> Timestamp {
        WALL + Duration::from_millis(millis)
    }

    fn proof() -> Proof {
        Proof::new(1, client().object(0))
    }

    fn names() -> StreamNames {
        StreamNames::new("/demo".parse().unwrap())
    }

    /// Times of the challenges until `end`, if none is answered.
    fn challenges(proof: &mut Proof, end: u64) -> Vec<u64> {
        let names = names();
        let times = (0..=end).step_by(100);
        times
            .filter(|millis| proof.poll_want(at(*millis), &names).is_some())
            .collect()
    }

    #[test]
    fn a_publisher_that_does_not_answer_is_challenged_ever_more_rarely() {
        let mut proof = proof();
        assert!(challenges(&mut proof, 5_000).is_empty());
        proof.begin(at(0));
        let expected = [1_000, 3_000, 7_000, 15_000, 25_000, 35_000];
        assert_eq!(challenges(&mut proof, 40_000), expected);
    }

    #[test]
    fn one_that_answered_is_challenged_ten_seconds_later_by_another_name() {
        let mut proof = proof();
        proof.begin(at(0));
        proof.on_answer(at(500), wall(510));
        assert!(challenges(&mut proof, 10_400).is_empty());
        let name = |challenge: Object| challenge.interest.build(1.into()).name().clone();
        let first = name(proof.poll_want(at(10_500), &names()).unwrap());
        assert_eq!(proof.challenged_at(), Some(at(10_500)));
        assert!(challenges(&mut proof, 12_400).is_empty());
        let second = name(proof.poll_want(at(12_500), &names()).unwrap());
        assert_ne!(first, second);
        assert_eq!(proof.challenged_at(), Some(at(12_500)));
        proof.on_frame(at(550), wall(500));
        // An answer to a request of before says nothing of later.
        proof.on_answer(at(400), wall(410));
        assert_eq!(proof.liveness(at(600), WALL, TARGET), Liveness::Live);
        proof.news(at(15_500), WALL, TARGET);
        assert_eq!(
            proof.liveness(at(15_500), WALL, TARGET),
            Liveness::Unconfirmed
        );
    }

    /// Captured 10.25 s before, by the publisher's clock, is live, and a little longer is not, whatever ours says.
    #[test]
    fn frames_are_judged_by_the_clock_that_is_confirmed() {
        for ours in [
            wall(20_000),
            WALL,
            Timestamp::default(),
            wall(1_000_000_000),
        ] {
            let mut proof = proof();
            proof.begin(at(20_000));
            proof.on_answer(at(20_000), wall(20_000));
            proof.on_frame(at(20_500), wall(10_250));
            assert_eq!(proof.liveness(at(20_500), ours, TARGET), Liveness::Live);
            // A picture that stays is not older than it was, but after a while nobody can say that it is live.
            assert_eq!(proof.liveness(at(34_999), ours, TARGET), Liveness::Live);
            let later = proof.liveness(at(35_500), ours, TARGET);
            assert_eq!(later, Liveness::Unconfirmed);
            proof.on_frame(at(20_500), wall(10_251));
            proof.on_frame(at(20_600), wall(10_349));
            let recorded = Liveness::Recorded(wall(10_349));
            assert_eq!(proof.liveness(at(20_600), ours, TARGET), recorded);
        }
    }

    #[test]
    fn without_an_answer_only_what_is_clearly_old_is_called_recorded() {
        let mut proof = proof();
        proof.begin(at(0));
        proof.on_frame(at(70_000), wall(10_000));
        let liveness = |proof: &Proof, ours| proof.liveness(at(70_000), ours, TARGET);
        assert_eq!(liveness(&proof, wall(70_000)), Liveness::Unconfirmed);
        let recorded = Liveness::Recorded(wall(10_000));
        assert_eq!(liveness(&proof, wall(70_001)), recorded);
    }

    /// Told are changes, and after a while that there is nothing to tell.
    #[test]
    fn news_are_told_once() {
        let mut proof = proof();
        let told = |proof: &mut Proof, millis| proof.news(at(millis), wall(millis), TARGET);
        assert_eq!(told(&mut proof, 0), None);
        proof.begin(at(1_000));
        assert_eq!(told(&mut proof, 3_999), None);
        assert_eq!(told(&mut proof, 4_000), Some(Liveness::Unconfirmed));
        assert_eq!(told(&mut proof, 4_001), None);
        proof.on_answer(at(5_000), wall(5_000));
        assert_eq!(told(&mut proof, 5_050), None);
        proof.on_frame(at(5_100), wall(5_000));
        assert_eq!(told(&mut proof, 5_100), Some(Liveness::Live));
        assert_eq!(proof.poll_timeout(), Some(at(15_000)));
        assert_eq!(told(&mut proof, 19_999), None);
        assert_eq!(told(&mut proof, 20_000), Some(Liveness::Unconfirmed));
    }
}
