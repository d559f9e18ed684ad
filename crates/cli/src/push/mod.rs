//! Streams that others push to this program, by whichever protocol.
//!
//! ```text
//!  RTMP ─┐
//!  SRT ──┼─▶ Gate: is the key right, the name free? ─▶ Event::Pushed ─▶ serve: published on a node
//!  WHIP ─┘                                          └▶ Event::Refused ─▶ a sentence, a counter
//! ```
//!
//! A listener that has heard a name and a key, and nothing else, asks [`Gate::admit`]; only then are media read. What it
//! [hands over](Gate::hand_over) is published until its octets end, or nobody reads them any more. A pusher whose network died is not
//! noticed at once: one that sends nothing gives way to one that comes.

pub mod keys;
pub mod rtmp;
#[cfg(feature = "srt")]
pub mod srt;
#[cfg(feature = "whip")]
pub mod whip;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namecast_media::found::Received;
use namecast_media::ingest::source::Container;
use namecast_media::ingest::{Exceeded, Limits};
use namecast_net::admission::Source;
use namecast_packet::{Component, Name};
use namecast_units::{Duration, Pauses};
use serde::Serialize;
use tokio::io::AsyncRead;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, timeout};

use keys::{PushKeys, Verdict};

/// Streams at a time; each has an ffmpeg or three.
pub const MAX_STREAMS: usize = 32;
/// Names in the life of a program; each gets a key pair.
const MAX_NAMES: usize = 1_024;
/// Characters of a name, and words of it.
const MAX_NAME_LEN: usize = 128;
const MAX_WORDS: usize = 8;
/// How long somebody waits for a name whose pusher has just died; longer than it takes to notice.
const MAX_WAIT: Duration = Duration::from_millis(800);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Names that forwarders keep to themselves.
const RESERVED: [&str; 2] = ["localhost", "localhop"];
/// If nothing of a stream is published so soon, a sentence says why.
pub const FIRST_FRAME: Duration = Duration::from_secs(2);
/// Events that wait to be heard. Whoever pushes waits where there are more; refusals are counted, and not told.
const MAX_EVENTS: usize = 64;

/// A stream that somebody pushes.
pub struct Pushed {
    /// Under which name.
    pub admitted: Admitted,
    /// What is pushed. It ends when the pusher leaves; it is dropped when nobody publishes it any more.
    pub octets: Box<dyn AsyncRead + Send + Unpin>,
    /// How pictures and sound are interleaved in it.
    pub container: Container,
    /// Protocol, for people: `RTMP`.
    pub protocol: &'static str,
    /// Who pushes.
    pub from: SocketAddr,
    /// Media received; `None`: the listener does not parse it.
    pub seen: Option<Seen>,
}

/// Media received of a stream, as last reported by its listener.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<Received>>);

impl Seen {
    /// Returns the media received.
    pub fn get(&self) -> Received {
        self.lock().clone()
    }

    /// Records what has arrived.
    pub fn set(&self, received: &Received) {
        let mut seen = self.lock();
        if *seen != *received {
            seen.clone_from(received);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Received> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What listeners report.
pub enum Event {
    /// Somebody was admitted, and pushes.
    Pushed(Pushed),
    /// Something is to be said of a stream.
    Noted {
        /// Name of the stream.
        name: Name,
        /// A sentence.
        sentence: String,
    },
    /// Somebody was turned away.
    Refused {
        /// Protocol, for people.
        protocol: &'static str,
        /// Who.
        from: SocketAddr,
        /// Why.
        why: Refusal,
    },
}

/// Why somebody is turned away. The texts are for them as well as for us: they say what to do, and nothing that is secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No key, or not ours.
    #[error("the key is missing or wrong: append ?key=… to the stream's name")]
    Key,
    /// The key is for other names.
    #[error("the key is not for this name: choose one that it is for")]
    OtherNames,
    /// Wrong keys came from there.
    #[error("wrong keys came from your network: try again in {0} s")]
    Paused(u64),
    /// Its encryption does not fit.
    #[error("the passphrase is missing or wrong: set the server's in the encoder")]
    Passphrase,
    /// Not a name.
    #[error(
        "the name is none: write letters, digits and - _ . ~, such as cam or studio/cam, {MAX_WORDS} words and {MAX_NAME_LEN} characters at most"
    )]
    Name,
    /// Somebody pushes under this name, or one above or below it.
    #[error("somebody pushes as {0} already: choose another name, or wait until they stop")]
    Taken(Name),
    /// Too many push at a time.
    #[error("{MAX_STREAMS} streams are pushed already: wait until one stops")]
    Full,
    /// All places for connections are taken, or this one is another source's now.
    #[error("there are {0} connections already: wait until one ends")]
    Connections(usize),
    /// Too many names were pushed.
    #[error("{MAX_NAMES} names were pushed already: choose one of them, or start the server again")]
    Names,
    /// Its pictures or sound cannot be read.
    #[error("{0}")]
    Codec(String),
    /// It costs more than a push may.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// What came breaks the protocol, or a bound.
    #[error("{0}")]
    Malformed(String),
}

impl Refusal {
    /// Returns the reason as metrics name it.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Key | Self::OtherNames => "key",
            Self::Paused(_) => "paused",
            Self::Passphrase => "passphrase",
            Self::Name => "name",
            Self::Taken(_) => "taken",
            Self::Full | Self::Connections(_) | Self::Names => "full",
            Self::Codec(_) => "codec",
            Self::Exceeded(Exceeded::Picture(..)) => "picture",
            Self::Exceeded(Exceeded::FrameRate(_)) => "frame_rate",
            Self::Exceeded(Exceeded::Bitrate(_)) => "bitrate",
            Self::Malformed(_) => "malformed",
        }
    }
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GateCounters {
    /// Streams that were admitted.
    pub admitted: u64,
    /// Of these, those that are pushed now.
    pub open: u64,
    /// Changes of codec or sound in mid-stream, and tracks that began later, each of which begins the stream anew.
    pub changed: u64,
    /// Refused, as their key is missing or wrong, or for other names.
    pub refused_key: u64,
    /// Refused without a look at their key, as wrong ones came from the same source.
    pub refused_paused: u64,
    /// Refused, as their passphrase is missing or wrong.
    pub refused_passphrase: u64,
    /// Refused, as their name is none.
    pub refused_name: u64,
    /// Refused, as somebody pushes under their name.
    pub refused_taken: u64,
    /// Refused, as there are too many streams or names.
    pub refused_full: u64,
    /// Ended, as their pictures or sound cannot be read.
    pub refused_codec: u64,
    /// Ended, as their pictures are larger than the largest.
    pub refused_picture: u64,
    /// Ended, as they have more pictures per second.
    pub refused_frame_rate: u64,
    /// Ended, as they have a higher bitrate.
    pub refused_bitrate: u64,
    /// Connections that broke their protocol or a bound, or did not get anywhere in time.
    pub malformed: u64,
}

/// Decides who may push, and under which name.
#[derive(Clone)]
pub struct Gate(Arc<Shared>);

struct Shared {
    prefix: Name,
    limits: Limits,
    /// From which pauses are counted.
    begun: Instant,
    state: Mutex<State>,
    events: mpsc::Sender<Event>,
}

struct State {
    keys: PushKeys,
    /// After wrong keys, by where they came from.
    pauses: Pauses<Source>,
    live: BTreeMap<Name, Arc<Holder>>,
    /// Those of the past as well.
    names: BTreeSet<Name>,
    counters: GateCounters,
}

impl State {
    /// Makes room for `name`, if need be in place of one that is silent.
    fn make_room(&mut self, name: &Name) -> Result<(), Refusal> {
        let overlaps = |live: &Name| live.is_prefix_of(name) || name.is_prefix_of(live);
        let is_heard = |holder: &Holder| !holder.is_silent.load(Ordering::Relaxed);
        let mut live = self.live.iter();
        if let Some((live, _)) = live.find(|(live, it)| overlaps(live) && is_heard(it)) {
            return Err(Refusal::Taken(live.clone()));
        }
        let silent = self.live.extract_if(.., |live, _| overlaps(live));
        silent.for_each(|(_, holder)| holder.given_away.notify_one());
        self.check_room(name)
    }

    /// Checks the bounds on streams and names. A stream that overlaps `name` is one that gives way.
    fn check_room(&self, name: &Name) -> Result<(), Refusal> {
        let overlaps = |live: &Name| live.is_prefix_of(name) || name.is_prefix_of(live);
        if self.live.len() == MAX_STREAMS && !self.live.keys().any(overlaps) {
            return Err(Refusal::Full);
        }
        if self.names.len() == MAX_NAMES && !self.names.contains(name) {
            return Err(Refusal::Names);
        }
        Ok(())
    }
}

/// Who holds a name.
#[derive(Debug)]
struct Holder {
    /// What was shown for it.
    path: String,
    key: Option<[u8; 32]>,
    is_silent: AtomicBool,
    given_away: Notify,
}

impl Gate {
    /// A gate to names under `prefix`, for whoever has one of `keys`; and what its listeners will report.
    pub fn new(prefix: Name, keys: PushKeys) -> (Self, mpsc::Receiver<Event>) {
        Self::limited(prefix, keys, Limits::default())
    }

    /// The same for pushes within `limits`.
    pub fn limited(prefix: Name, keys: PushKeys, limits: Limits) -> (Self, mpsc::Receiver<Event>) {
        let (events, heard) = mpsc::channel(MAX_EVENTS);
        let state = Mutex::new(State {
            keys,
            pauses: keys::pauses(),
            live: BTreeMap::new(),
            names: BTreeSet::new(),
            counters: GateCounters::default(),
        });
        let shared = Shared {
            prefix,
            limits,
            begun: Instant::now(),
            state,
            events,
        };
        (Self(Arc::new(shared)), heard)
    }

    /// Takes these keys from now on. Streams end whose keys are none of them, or are for other names; returns how many.
    pub fn set_keys(&self, keys: PushKeys) -> usize {
        let mut state = self.lock();
        let is_right = |holder: &Holder| keys.check(holder.key, &holder.path) == Verdict::Right;
        let ended = state.live.extract_if(.., |_, holder| !is_right(holder));
        let ended = ended.map(|(_, holder)| holder.given_away.notify_one());
        let ended = ended.count();
        state.keys = keys;
        ended
    }

    /// Admits somebody at `from` who shows `key` and wants to push as `path`, `cam` or `studio/cam`. Waits a moment where the name is taken:
    /// its pusher may turn out to be gone.
    ///
    /// # Errors
    /// Why not; for [`refuse`](Self::refuse), and for whoever asked.
    pub async fn admit(
        &self,
        path: &str,
        key: Option<&str>,
        from: IpAddr,
    ) -> Result<Admitted, Refusal> {
        let until_free = async {
            loop {
                match self.try_admit(path, key, from) {
                    Err(Refusal::Taken(_)) => sleep(LOOK_AGAIN).await,
                    outcome => return outcome,
                }
            }
        };
        match timeout(MAX_WAIT, until_free).await {
            Ok(outcome) => outcome,
            Err(_) => self.try_admit(path, key, from),
        }
    }

    /// Returns why nobody at `from` could push as `path` with `key` now, whoever holds the name; claims nothing.
    ///
    /// # Errors
    /// Why not; for [`refuse`](Self::refuse), and for whoever asked.
    pub fn check(&self, path: &str, key: Option<&str>, from: IpAddr) -> Result<(), Refusal> {
        let name = self.permitted(path, key, from)?;
        self.lock().check_room(&name)
    }

    /// Returns the name of `path` if `key` is right. A wrong one costs a pause.
    fn permitted(&self, path: &str, key: Option<&str>, from: IpAddr) -> Result<Name, Refusal> {
        let mut state = self.lock();
        let (now, source) = (self.0.begun.elapsed(), Source::of(from));
        let wait = state.pauses.remaining(now, source);
        if !wait.is_zero() && !state.keys.is_empty() {
            return Err(Refusal::Paused(wait.as_secs() + 1));
        }
        match state.keys.check(key.map(keys::digest), path) {
            Verdict::Right => state.pauses.forget(source),
            Verdict::OfOtherNames => return Err(Refusal::OtherNames),
            Verdict::Wrong => {
                if key.is_some() {
                    state.pauses.record(now, source);
                }
                return Err(Refusal::Key);
            }
        }
        drop(state);
        self.name(path).ok_or(Refusal::Name)
    }

    fn try_admit(&self, path: &str, key: Option<&str>, from: IpAddr) -> Result<Admitted, Refusal> {
        let name = self.permitted(path, key, from)?;
        let mut state = self.lock();
        state.make_room(&name)?;
        let holder = Arc::new(Holder {
            path: path.to_owned(),
            key: key.map(keys::digest),
            is_silent: AtomicBool::new(false),
            given_away: Notify::new(),
        });
        state.names.insert(name.clone());
        state.live.insert(name.clone(), Arc::clone(&holder));
        state.counters.admitted += 1;
        let gate = self.clone();
        Ok(Admitted(Arc::new(Claim { name, holder, gate })))
    }

    fn name(&self, path: &str) -> Option<Name> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let words: Vec<_> = path.split('/').collect();
        let is_good = |octet: u8| octet.is_ascii_alphanumeric() || b"-_.~".contains(&octet);
        // Words of dots alone have a meaning of their own in URIs.
        let is_word = |word: &&str| word.bytes().all(is_good) && word.bytes().any(|it| it != b'.');
        let is_reserved = self.0.prefix.is_empty() && RESERVED.contains(words.first()?);
        let is_short = path.len() <= MAX_NAME_LEN && words.len() <= MAX_WORDS;
        (is_short && !is_reserved && words.iter().all(is_word)).then(|| {
            let child = |name: Name, word: &&str| name.child(Component::generic(word));
            words.iter().fold(self.0.prefix.clone(), child)
        })
    }

    /// Has a stream published. Returns false if nobody does that any more.
    pub async fn hand_over(&self, pushed: Pushed) -> bool {
        self.0.events.send(Event::Pushed(pushed)).await.is_ok()
    }

    /// Has a sentence said of a stream.
    pub fn note(&self, name: &Name, sentence: String) {
        let name = name.clone();
        // A full queue drops the sentence rather than delay the stream.
        let _ = self.0.events.try_send(Event::Noted { name, sentence });
    }

    /// Returns the bounds of each push.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Counts and reports that somebody was turned away.
    pub fn refuse(&self, protocol: &'static str, from: SocketAddr, why: Refusal) {
        self.count(&why);
        let event = Event::Refused {
            protocol,
            from,
            why,
        };
        // It is counted even where nobody hears of it.
        let _ = self.0.events.try_send(event);
    }

    /// Counts that somebody was turned away.
    pub fn count(&self, why: &Refusal) {
        let mut state = self.lock();
        let counters = &mut state.counters;
        let counter = match why {
            Refusal::Key | Refusal::OtherNames => &mut counters.refused_key,
            Refusal::Paused(_) => &mut counters.refused_paused,
            Refusal::Passphrase => &mut counters.refused_passphrase,
            Refusal::Name => &mut counters.refused_name,
            Refusal::Taken(_) => &mut counters.refused_taken,
            Refusal::Full | Refusal::Connections(_) | Refusal::Names => &mut counters.refused_full,
            Refusal::Codec(_) => &mut counters.refused_codec,
            Refusal::Exceeded(Exceeded::Picture(..)) => &mut counters.refused_picture,
            Refusal::Exceeded(Exceeded::FrameRate(_)) => &mut counters.refused_frame_rate,
            Refusal::Exceeded(Exceeded::Bitrate(_)) => &mut counters.refused_bitrate,
            Refusal::Malformed(_) => &mut counters.malformed,
        };
        *counter += 1;
    }

    /// What happened so far.
    pub fn counters(&self) -> GateCounters {
        let state = self.lock();
        GateCounters {
            open: state.live.len() as u64,
            ..state.counters
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

/// A name that is somebody's until this and its clones are dropped, or it is given away.
#[derive(Clone, Debug)]
pub struct Admitted(Arc<Claim>);

#[derive(Debug)]
struct Claim {
    name: Name,
    holder: Arc<Holder>,
    gate: Gate,
}

impl Admitted {
    /// The name, with the prefix.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// Records whether nothing comes at the moment: then others may have the name.
    pub fn set_silent(&self, is_silent: bool) {
        self.0.holder.is_silent.store(is_silent, Ordering::Relaxed);
    }

    /// Counts that the stream begins anew, with other codecs or sound.
    pub fn count_change(&self) {
        self.0.gate.lock().counters.changed += 1;
    }

    /// Waits until the name is somebody else's.
    pub async fn given_away(&self) {
        self.0.holder.given_away.notified().await;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        let live = state.live.get(&self.name);
        if live.is_some_and(|holder| Arc::ptr_eq(holder, &self.holder)) {
            state.live.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn gate(prefix: &str, key: Option<&str>) -> Gate {
        let keys = key.map(|key| PushKeys::parse(key, false).unwrap());
        Gate::new(prefix.parse().unwrap(), keys.unwrap_or_default()).0
    }

    #[test]
    fn names_are_plain_words() {
        let open = gate("/", None);
        for good in ["cam", "/cam.1", "studio/cam_2", "~a-b"] {
            let admitted = open.try_admit(good, None, HERE).unwrap();
            let path = good.trim_start_matches('/');
            assert_eq!(admitted.name().to_string(), format!("/{path}"));
        }
        let long = "a".repeat(MAX_NAME_LEN + 1);
        let deep = ["a"; MAX_WORDS + 1].join("/");
        for bad in [
            "",
            "/",
            "a//b",
            "a/",
            "..",
            "a/...",
            "32=metadata",
            "a b",
            "a%00",
            "ä",
            "a?b",
            &long,
            &deep,
            "localhost/nfd",
        ] {
            assert_eq!(
                open.try_admit(bad, None, HERE).unwrap_err(),
                Refusal::Name,
                "{bad}"
            );
        }
        let studio = gate("/studio", None);
        let admitted = studio.try_admit("localhost", None, HERE).unwrap();
        assert_eq!(admitted.name().to_string(), "/studio/localhost");
    }

    /// A check claims no name, so it passes where one is taken.
    #[test]
    fn only_the_right_key_is_admitted() {
        let gate = gate("/", Some("secret"));
        let wrong = [None, Some(""), Some("Secret"), Some("secret ")];
        for (site, wrong) in (1..).zip(wrong) {
            let from = [[10, 0, site, 1], [10, 1, site, 1]].map(IpAddr::from);
            assert_eq!(gate.check("cam", wrong, from[0]), Err(Refusal::Key));
            let refusal = gate.try_admit("cam", wrong, from[1]).unwrap_err();
            assert_eq!(refusal, Refusal::Key);
        }
        // A wrong key costs its source a pause; a missing one does not.
        let paused = gate.check("cam", Some("secret"), [10, 0, 3, 9].into());
        assert!(matches!(paused, Err(Refusal::Paused(1..=2))));
        assert_eq!(
            gate.check("cam", Some("secret"), [10, 0, 1, 9].into()),
            Ok(())
        );
        assert_eq!(gate.check("c m", Some("secret"), HERE), Err(Refusal::Name));
        let _first = gate.try_admit("cam", Some("secret"), HERE).unwrap();
        assert_eq!(gate.check("cam", Some("secret"), HERE), Ok(()));
    }

    /// A stream ends whose key was taken back; one whose key is still for its name goes on.
    #[tokio::test]
    async fn a_key_that_is_taken_back_ends_its_streams() {
        let keys = |text: &str| PushKeys::parse(text, false).unwrap();
        let gate = Gate::new("/".parse().unwrap(), keys("first\nsecond\nthird")).0;
        let [first, second, third] =
            ["first", "second", "third"].map(|key| gate.try_admit(key, Some(key), HERE).unwrap());
        assert_eq!(gate.set_keys(keys("first /first\nsecond /other")), 2);
        second.given_away().await;
        third.given_away().await;
        assert_eq!(gate.counters().open, 1);
        drop(first);
        let other = gate.check("first", Some("second"), HERE);
        assert_eq!(other, Err(Refusal::OtherNames));
    }

    /// One above or below would take each other's Interests.
    #[test]
    fn a_name_is_one_pushers_until_it_is_dropped() {
        let gate = gate("/", None);
        let first = gate.try_admit("studio/cam", None, HERE).unwrap();
        for taken in ["studio/cam", "studio", "studio/cam/video"] {
            let refusal = gate.try_admit(taken, None, HERE).unwrap_err();
            assert_eq!(refusal, Refusal::Taken(first.name().clone()));
        }
        drop(gate.try_admit("studio/camera", None, HERE).unwrap());
        drop(first);
        assert!(gate.try_admit("studio", None, HERE).is_ok());
        assert_eq!(gate.counters().admitted, 3);
    }

    /// As long as it is silent; the one who held it learns so, and takes nothing along when it goes.
    #[tokio::test]
    async fn a_silent_pusher_gives_way() {
        let gate = gate("/", None);
        let first = gate.try_admit("cam", None, HERE).unwrap();
        first.set_silent(true);
        first.set_silent(false);
        assert!(gate.try_admit("cam", None, HERE).is_err());
        first.set_silent(true);
        let second = gate.admit("cam", None, HERE).await.unwrap();
        first.given_away().await;
        drop(first);
        assert!(gate.try_admit("cam", None, HERE).is_err());
        drop(second);
        assert!(gate.try_admit("cam", None, HERE).is_ok());
    }

    #[test]
    fn streams_and_names_are_bounded() {
        let gate = gate("/", None);
        let admit = |number: usize| gate.try_admit(&format!("cam{number}"), None, HERE);
        let live: Vec<_> = (0..MAX_STREAMS).map(|it| admit(it).unwrap()).collect();
        assert_eq!(admit(MAX_STREAMS).unwrap_err(), Refusal::Full);
        assert_eq!(gate.check("another", None, HERE), Err(Refusal::Full));
        assert_eq!(gate.check("cam0", None, HERE), Ok(()));
        drop(live);
        (MAX_STREAMS..MAX_NAMES).for_each(|it| drop(admit(it).unwrap()));
        assert_eq!(admit(MAX_NAMES).unwrap_err(), Refusal::Names);
        assert!(admit(0).is_ok());
    }

    #[tokio::test]
    async fn refusals_are_counted_and_reported() {
        let (gate, mut events) = Gate::new(Name::root(), PushKeys::default());
        let from = "127.0.0.1:9".parse().unwrap();
        for _ in 0..MAX_EVENTS + 5 {
            gate.refuse("RTMP", from, Refusal::Key);
        }
        assert_eq!(gate.counters().refused_key, MAX_EVENTS as u64 + 5);
        let heard = events.recv().await.unwrap();
        assert!(matches!(
            heard,
            Event::Refused {
                why: Refusal::Key,
                ..
            }
        ));
    }
}
