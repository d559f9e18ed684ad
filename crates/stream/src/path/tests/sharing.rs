//! Clients that want the same names, against a twin that only keeps lists.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use namecast_packet::Name;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::{Config, RngSeed};

use super::*;
use crate::path::{Object, Retry};

const CLIENTS: u64 = 3;
const NAMES: u64 = 3;
const LIFETIME: Duration = ms(4_000);
/// So long after its Interest left, an object is requested again.
const RETRY_AFTER: Duration = ms(250);

/// Something that happens to a client, or to a name.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// By the numbers of client and name: whether it must be fresh, and how urgent it is.
    Want(u64, u64, bool, Kind),
    /// Whether it must be fresh, and whether longer names answer.
    Object(u64, u64, bool, bool),
    Forget(Token),
    WithdrawOne(u64, u64),
    WithdrawSample(u64, u64),
    WithdrawAll(u64),
    Data(u64),
    /// The Interest for a name that left so many before the last comes back.
    Nack(u64, usize, NackReason),
    Wait(u64),
    /// Everything goes over another path from now on.
    Move,
}

fn is_object(token: Token) -> bool {
    token.segment.sequence == u64::MAX
}

const fn prefix_object(client: u64, number: u64) -> Token {
    ClientId(client).object(NAMES + number)
}

fn step() -> impl Strategy<Value = Step> {
    let client = || 0..CLIENTS;
    let number = || 0..NAMES;
    let kind = prop_oneof![
        Just(Kind::Sound),
        Just(Kind::Repair),
        Just(Kind::Delta),
        Just(Kind::Probe)
    ];
    let reason = prop_oneof![
        Just(NackReason::Congestion),
        Just(NackReason::NoRoute),
        Just(NackReason::None)
    ];
    let forgotten = (client(), number(), 0..3).prop_map(|(client, number, which)| match which {
        0 => token(client, number, 0),
        1 => ClientId(client).object(number),
        _ => prefix_object(client, number),
    });
    prop_oneof![
        6 => (client(), number(), any::<bool>(), kind).prop_map(|(c, n, f, k)| Step::Want(c, n, f, k)),
        3 => (client(), number(), any::<bool>(), any::<bool>())
            .prop_map(|(c, n, f, p)| Step::Object(c, n, f, p)),
        2 => forgotten.prop_map(Step::Forget),
        1 => (client(), number()).prop_map(|(c, n)| Step::WithdrawOne(c, n)),
        1 => (client(), number()).prop_map(|(c, n)| Step::WithdrawSample(c, n)),
        1 => client().prop_map(Step::WithdrawAll),
        5 => number().prop_map(Step::Data),
        2 => (number(), 0..2_usize, reason).prop_map(|(n, b, r)| Step::Nack(n, b, r)),
        3 => (1..3_000_u64).prop_map(Step::Wait),
        1 => Just(Step::Move),
    ]
}

/// What Data `number` is called; all clients want the same.
fn data_name(number: u64) -> Name {
    prefix(number).builder().segment(0).finish()
}

fn prefix(number: u64) -> Name {
    format!("/demo/{number}").parse().unwrap()
}

/// An Interest that is out for certain.
#[derive(Clone, Debug)]
struct Out {
    interest: Interest,
    expires_at: Instant,
    owner: Token,
}

struct Twin {
    uplink: Uplink,
    now: Instant,
    /// What Data must answer, by its name or the prefix of it that answers.
    wanted: BTreeMap<Token, Name>,
    /// What it may answer: withdrawn, or given up.
    left: BTreeSet<Token>,
    out: Vec<Out>,
    /// Wants for which another one's Interest stands: if they are wanted once more, one of their own leaves.
    riding: BTreeSet<Token>,
    /// All Interests, in order.
    sent: Vec<Interest>,
}

impl Twin {
    fn new() -> Self {
        let mut uplink = uplink(UplinkConfig::default());
        let mut clients = uplink.new_clients();
        for number in 0..CLIENTS {
            assert_eq!(clients.draw(), ClientId(number));
        }
        Self {
            uplink,
            now: at(0),
            wanted: BTreeMap::new(),
            left: BTreeSet::new(),
            out: Vec::new(),
            riding: BTreeSet::new(),
            sent: Vec::new(),
        }
    }

    fn has_equal(&self, token: Token, like: &Interest) -> bool {
        self.out.iter().any(|out| {
            out.owner != token
                && out.expires_at > self.now
                && out.interest.name() == like.name()
                && out.interest.must_be_fresh() == like.must_be_fresh()
                && out.interest.can_be_prefix() == like.can_be_prefix()
        })
    }

    /// Takes all events; `object` was wanted just now. Returns how many Interests left.
    fn take_events(&mut self, object: Option<Token>) -> usize {
        let mut count = 0;
        let mut owner = None;
        while let Some(event) = self.uplink.poll_event() {
            match event {
                // An Interest for an object has no other owner.
                Event::Sent { token, .. } if is_object(token) => {}
                Event::Sent { token, nonce, .. } => {
                    let before = self.out.len();
                    self.out.retain(|out| out.owner != token);
                    let was_out = self.out.len() < before;
                    let is_again = self.riding.replace(token).is_some() || was_out;
                    owner = Some((token, nonce, is_again));
                }
                Event::Interest { interest, .. } => {
                    count += 1;
                    self.sent.push(interest.clone());
                    let want = owner.filter(|(_, nonce, _)| Some(*nonce) == interest.nonce());
                    if let Some((token, _, is_again)) = want {
                        self.riding.remove(&token);
                        let is_out = !is_again && self.has_equal(token, &interest);
                        assert!(!is_out, "{interest:?} is out already");
                    }
                    let want = want.map(|(token, ..)| token);
                    let Some(owner) = want.or(object) else {
                        continue;
                    };
                    let lifetime = want.map_or(RETRY_AFTER, |_| LIFETIME);
                    self.out.retain(|out| out.owner != owner);
                    self.out.push(Out {
                        interest,
                        expires_at: self.now + lifetime,
                        owner,
                    });
                }
                Event::Lost(token) => {
                    self.out.retain(|out| out.owner != token);
                    self.riding.remove(&token);
                }
                Event::Dropped(token) => {
                    self.wanted.remove(&token);
                    if token.segment.sequence < NAMES {
                        self.left.insert(token);
                    }
                }
                Event::PathGrew(_) | Event::PathShrank => {}
            }
        }
        count
    }

    fn want(&mut self, token: Token, number: u64, must_be_fresh: bool, kind: Kind) {
        let want = Want {
            name: data_name(number),
            must_be_fresh,
            lifetime: LIFETIME,
            ..super::want(token, kind)
        };
        self.left.remove(&token);
        self.wanted.insert(token, data_name(number));
        self.uplink.want(self.now, want);
    }

    fn object(&mut self, client: u64, number: u64, (fresh, is_prefix): (bool, bool)) {
        let (token, name) = match is_prefix {
            true => (prefix_object(client, number), prefix(number)),
            false => (ClientId(client).object(number), data_name(number)),
        };
        let mut interest = Interest::builder(name.clone());
        if fresh {
            interest = interest.must_be_fresh();
        }
        if is_prefix {
            interest = interest.can_be_prefix();
        }
        let retry = Retry {
            first_wait: RETRY_AFTER,
            max_wait: ms(2_000),
            max_interests: 4,
        };
        self.wanted.insert(token, name);
        let like = interest.clone().build(0.into());
        let is_out = self.has_equal(token, &like);
        let object = Object::new(token, interest, Some(retry));
        self.uplink.want_object(self.now, object);
        let left = self.take_events(Some(token));
        assert!(left <= usize::from(!is_out), "{like:?}");
    }

    fn data(&mut self, number: u64) {
        let name = data_name(number);
        self.uplink
            .handle_data(self.now, &name, &Received::new(SIZE, false));
        let answers = core::iter::from_fn(|| self.uplink.poll_answer());
        let answers: Vec<_> = answers.map(|answer| answer.token).collect();
        let found: BTreeSet<_> = answers.iter().copied().collect();
        assert_eq!(found.len(), answers.len(), "each is answered once");
        for (token, wanted) in &self.wanted {
            let is_answered = wanted.is_prefix_of(&name);
            assert_eq!(found.contains(token), is_answered, "{token:?}");
        }
        for token in &found {
            let may_be = self.wanted.contains_key(token) || self.left.contains(token);
            assert!(may_be, "{token:?} is not wanted");
        }
        let is_want = |token: &Token| token.segment.sequence < NAMES;
        for token in found.iter().filter(|token| is_want(token)) {
            self.wanted.remove(token);
            self.left.remove(token);
            self.riding.remove(token);
        }
        let answered = |out: &Out| out.interest.name().is_prefix_of(&name);
        self.out.retain(|out| !answered(out));
    }

    fn leave(&mut self, is_one: impl Fn(Token) -> bool) {
        let gone = self.wanted.extract_if(.., |token, _| is_one(*token));
        let gone: Vec<_> = gone.map(|(token, _)| token).collect();
        let is_want = |token: &Token| token.segment.sequence < NAMES;
        self.left.extend(gone.into_iter().filter(is_want));
        self.out.retain(|out| !is_one(out.owner));
        self.riding.retain(|token| !is_one(*token));
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Want(client, number, fresh, kind) => {
                self.want(token(client, number, 0), number, fresh, kind);
            }
            Step::Object(client, number, fresh, is_prefix) => {
                self.object(client, number, (fresh, is_prefix));
            }
            Step::Forget(token) => {
                self.uplink.forget(token);
                self.leave(|other| other == token);
                self.left.remove(&token);
            }
            Step::WithdrawOne(client, number) => {
                let token = token(client, number, 0);
                self.uplink.withdraw(&(token..=token));
                self.leave(|other| other == token);
            }
            Step::WithdrawSample(client, number) => {
                let sample = token(client, number, 0).sample();
                self.uplink.withdraw(&sample);
                self.leave(|other| sample.contains(&other));
            }
            Step::WithdrawAll(client) => {
                self.uplink.withdraw(&ClientId(client).tokens());
                self.leave(|other| other.client == ClientId(client));
            }
            Step::Data(number) => self.data(number),
            Step::Nack(number, before, reason) => {
                let name = data_name(number);
                let of_name = self.sent.iter().rev().filter(|it| *it.name() == name);
                let Some(interest) = of_name.clone().nth(before).cloned() else {
                    return;
                };
                for nacked in self.uplink.handle_nack(&interest) {
                    self.uplink.take_back(self.now, nacked, reason);
                    if nacked.is_latest && reason != NackReason::None {
                        self.riding.remove(&nacked.token);
                    }
                }
                let is_want = |out: &Out| out.owner.segment.sequence < NAMES;
                let stays = |out: &Out| is_want(out) && reason == NackReason::None;
                self.out
                    .retain(|out| out.interest.nonce() != interest.nonce() || stays(out));
            }
            Step::Wait(millis) => self.now += ms(millis),
            Step::Move => {
                let mut other = uplink(UplinkConfig::default());
                let all = Token::FIRST..=Token::LAST;
                self.uplink.move_to(self.now, &mut other, &all);
                assert_eq!(self.uplink.sizes(), (0, 0));
                self.uplink = other;
            }
        }
        self.take_events(None);
        self.uplink.handle_timeout(self.now);
        self.take_events(None);
    }
}

proptest! {
    #![proptest_config(Config {
        cases: 256,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x0075_706C),
        ..Config::default()
    })]

    /// Whatever is wanted, withdrawn, wanted again, answered twice, sent back or given up in any order: Data answers all that want
    /// its name and nobody else, and no Interest leaves for a want while an equal one is out for another client.
    #[test]
    fn names_that_several_clients_want_are_requested_once(steps in vec(step(), 1..120)) {
        let mut twin = Twin::new();
        steps.into_iter().for_each(|step| twin.take(step));
    }
}

#[test]
fn one_interest_is_for_all_that_want_its_name() {
    for (is_fresh, interests) in [(false, 1), (true, 2)] {
        let mut uplink = uplink(UplinkConfig::default());
        let [first, second] = [1, 2].map(|client| token(client, 1, 0));
        uplink.want(at(0), want(first, Kind::Delta));
        uplink.handle_timeout(at(0));
        let other = Want {
            name: name(first),
            must_be_fresh: is_fresh,
            ..want(second, Kind::Delta)
        };
        uplink.want(at(10), other);
        uplink.handle_timeout(at(10));
        assert_eq!(uplink.counters().interests, interests);
        uplink.handle_data(at(60), &name(first), &Received::new(SIZE, false));
        let answers = core::iter::from_fn(|| uplink.poll_answer());
        let answered: Vec<_> = answers.map(|it| it.token).collect();
        assert_eq!(answered, [first, second]);
        assert_eq!(uplink.sizes(), (0, 0));
    }
}

/// The first wants a million names and a million objects, and takes no report: it has what fits in its own queue. The second gets
/// what it wants.
#[test]
fn a_client_without_measure_fills_its_own_queue_alone() {
    let config = UplinkConfig {
        max_queued: 1_000,
        ..UplinkConfig::default()
    };
    let mut uplink = uplink(config);
    let [greedy, modest] = [uplink.new_client(), uplink.new_client()];
    let root: Name = "/greedy".parse().unwrap();
    for number in 0..1_000_000 {
        let name = root.builder().segment(number).finish();
        let wanted = Want {
            name: name.clone(),
            ..want(greedy.object(number), Kind::Delta)
        };
        uplink.want(at(0), wanted);
        let interest = Interest::builder(name);
        uplink.want_object(at(0), Object::new(greedy.object(number), interest, None));
    }
    assert_eq!(uplink.sizes(), (0, 1_000));
    assert_eq!(uplink.objects_out(greedy), 1_000);
    let tokens: Vec<_> = (0..20).map(|index| token(modest.0, 1, index)).collect();
    for token in &tokens {
        uplink.want(at(0), want(*token, Kind::Sound));
    }
    uplink.handle_timeout(at(0));
    let events: Vec<_> = core::iter::from_fn(|| uplink.poll_event()).collect();
    // 2 000 reports and 1 000 Interests for objects; and what left since.
    assert!(events.len() < 3_200, "{}", events.len());
    let sent = events.iter().filter_map(|event| match event {
        Event::Sent { token, .. } if token.client == modest => Some(*token),
        Event::Dropped(token) => {
            assert_eq!(token.client, greedy);
            None
        }
        _ => None,
    });
    assert_eq!(sent.collect::<Vec<_>>(), tokens);
    for token in tokens {
        let answer = answer(&mut uplink, at(60), token, &Received::new(SIZE, false));
        assert_eq!(answer.map(|it| it.token), Some(token));
    }
}
