//! A glance at a stream: its title, what it consists of, and a picture, for lists of streams and previews of links.
//!
//! ```text
//!  request ─▶ known for less than 10 s? ─▶ answer
//!                 │ no
//!                 └─▶ watcher, lowest quality ─ catalogue, key frame ─▶ ffmpeg ─▶ JPEG ─▶ answer of all who wait
//! ```

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use namecast::drive;
use namecast_apps::live::watcher::{Pin, RungChoice, Verdict, Watched};
use namecast_apps::live::{Player, Watcher, WatcherConfig};
use namecast_media::thumbnail::{ThumbnailError, thumbnail};
use namecast_net::Node;
use namecast_net::admission::{Entrance, Place};
use namecast_packet::Name;
use namecast_stream::{Catalogue, StreamInfo, StreamKind};
use namecast_units::{Duration, Timestamp};
use tokio::sync::{Semaphore, watch};

use super::PageConfig;
use crate::arguments::{KnownKeysFile, Trusted};
use crate::hexadecimal::hex;
use crate::key_check::KeyCheck;
use crate::known_keys::parse_digest;

/// A glance counts for so long.
const KEPT: Duration = Duration::from_secs(10);
/// Names that are known at a time; the oldest gives way.
const MAX_KEPT: usize = 128;
/// Names that are looked at at a time.
const MAX_LOOKS: usize = 16;
/// How long a stream may take to answer and to send a picture.
const TIME_LIMIT: Duration = Duration::from_secs(4);
/// Pictures that are decoded at a time.
const MAX_DECODED: usize = 1;

/// Title, streams and picture of a root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Glance {
    /// Its title, if it has one.
    pub(super) title: Option<String>,
    /// Kinds of its streams.
    pub(super) kinds: Vec<StreamKind>,
    /// Digest of the key that signs it, in hexadecimal.
    pub(super) key: String,
    /// The newest key frame of its lowest quality as a JPEG, if it has pictures and the machine an ffmpeg.
    pub(super) picture: Option<Bytes>,
}

/// Why there is no glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoGlance {
    /// Nothing answers, or what does is not trusted.
    #[error("no stream of that name answers")]
    Nothing,
    /// Too many names are looked at.
    #[error("the server looks at too many other streams: try again in some seconds")]
    Full,
}

type Outcome = Result<Arc<Glance>, NoGlance>;

/// Glances at the streams of a node, for all who request them.
#[derive(Clone)]
pub(super) struct Glances {
    node: Node,
    /// A name with the only key that counts for it.
    own: Option<(Name, Pin)>,
    looks: Entrance,
    decodes: Arc<Semaphore>,
    kept: Arc<Mutex<BTreeMap<Moment, Kept>>>,
}

/// A stream, now or at a time of capture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    /// Name of the stream.
    pub(super) name: Name,
    /// Time of capture by the publisher's clock; `None`: now.
    pub(super) at: Option<Timestamp>,
}

/// A glance, or the one that is being taken.
struct Kept {
    since: Instant,
    outcome: watch::Receiver<Option<Outcome>>,
}

impl Kept {
    fn is_due(&self, now: Instant) -> bool {
        self.outcome.borrow().is_some() && now.duration_since(self.since) >= KEPT
    }
}

impl Glances {
    /// Looks at what `node` can watch. Of the name that `page` shows only what its key signed counts, if it has one.
    pub(super) fn new(node: Node, page: &PageConfig) -> Self {
        let name = page.name.as_ref().and_then(|name| name.parse().ok());
        let digest = page.key.as_deref().and_then(parse_digest);
        Self {
            node,
            own: name.zip(digest.map(Pin::Digest)),
            looks: Entrance::new(MAX_LOOKS),
            decodes: Arc::new(Semaphore::new(MAX_DECODED)),
            kept: Arc::default(),
        }
    }

    /// Returns what a stream looks like at a time, for a visitor at `address`. The past is what an archive or the publisher kept.
    ///
    /// # Errors
    /// If it does not answer in time, or too much is looked at.
    pub(super) async fn at(&self, moment: &Moment, address: Option<IpAddr>) -> Outcome {
        let mut outcome = self.begin(moment, address)?;
        // The sender is gone without an outcome if the look panicked.
        let outcome = outcome.wait_for(Option::is_some).await;
        let outcome = outcome.ok().and_then(|it| it.clone());
        outcome.unwrap_or(Err(NoGlance::Nothing))
    }

    /// Begins to look, unless somebody did lately.
    fn begin(
        &self,
        moment: &Moment,
        address: Option<IpAddr>,
    ) -> Result<watch::Receiver<Option<Outcome>>, NoGlance> {
        let now = Instant::now();
        let mut kept = lock(&self.kept);
        if let Some(known) = kept.get(moment)
            && !known.is_due(now)
        {
            return Ok(known.outcome.clone());
        }
        let address = address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let place = self.looks.admit(address).ok_or(NoGlance::Full)?;
        let (sender, outcome) = watch::channel(None);
        make_room(&mut kept, now);
        let entry = Kept {
            since: now,
            outcome: outcome.clone(),
        };
        kept.insert(moment.clone(), entry);
        let (glances, moment) = (self.clone(), moment.clone());
        tokio::spawn(async move {
            let outcome = glances.look(&moment, &place).await;
            sender.send_replace(Some(outcome.map(Arc::new)));
        });
        Ok(outcome)
    }

    async fn look(&self, moment: &Moment, place: &Place) -> Result<Glance, NoGlance> {
        let name = &moment.name;
        let mut glance = Glance::default();
        let looked = tokio::select! {
            looked = tokio::time::timeout(TIME_LIMIT, self.watch(moment, &mut glance)) => looked,
            () = place.gives_way() => return Err(NoGlance::Full),
        };
        match looked {
            Ok(Err(error)) => tracing::debug!("glance at {name}: {error:#}"),
            Err(_) => tracing::debug!("glance at {name}: no answer in {TIME_LIMIT:?}"),
            Ok(Ok(())) => {}
        }
        // A stream without a picture still has a title.
        match glance.kinds.is_empty() {
            true => Err(NoGlance::Nothing),
            false => Ok(glance),
        }
    }

    /// Watches until there is a picture, or it is clear that there will be none.
    async fn watch(&self, moment: &Moment, glance: &mut Glance) -> anyhow::Result<()> {
        let name = &moment.name;
        let own = self.own.as_ref().filter(|(own, _)| own == name);
        // Strangers must not make this node remember keys.
        let mut keys = match own {
            Some((_, pin)) => KeyCheck::pinned(name.clone(), pin.clone()),
            None => {
                let known = KnownKeysFile { known_keys: None };
                KeyCheck::new(name.clone(), &Trusted { key: None, known })?
            }
        };
        let mut config = WatcherConfig::new(name.clone());
        config.trust = keys.trust();
        (config.rung, config.audio) = (RungChoice::Lowest, false);
        config.past.from = moment.at;
        config.wall_at_zero = self.node.clock().wall_at_zero();
        // Whoever could foresee Nonces and challenges could have them answered beforehand.
        config.seed = u64::from_le_bytes(namecast_net::random());
        let application = self.node.application_face_with_local_fields().await?;
        let player = Player::new(Watcher::new(config));
        let (_player, mut heard) = drive(self.node.clock(), application, player).spawn(|| {});
        let mut catalogue = None;
        while let Some(watched) = heard.recv().await {
            match watched {
                Watched::Signer(signer) => {
                    let text = keys.on_signer(&signer);
                    let is_refused = matches!(signer.verdict, Verdict::Refused(_));
                    anyhow::ensure!(!is_refused, text);
                    glance.key = hex(&signer.key_digest);
                }
                Watched::Catalogue(new) => {
                    glance.describe(&new);
                    let Some(video) = video(&new) else {
                        return Ok(());
                    };
                    catalogue = Some(video.clone());
                }
                Watched::Frame(frame) if frame.key && frame.stream == StreamKind::Video => {
                    let Some(stream) = catalogue.take() else {
                        continue;
                    };
                    glance.picture = self.picture(stream, &frame.rung, frame.payload).await?;
                    return Ok(());
                }
                _ => {}
            }
        }
        anyhow::bail!("the node has stopped")
    }

    /// Returns the key frame `key` as a JPEG; `None` where no ffmpeg is.
    async fn picture(
        &self,
        stream: StreamInfo,
        rung: &str,
        key: Bytes,
    ) -> anyhow::Result<Option<Bytes>> {
        let Some(rung) = stream.rung(rung).cloned() else {
            return Ok(None);
        };
        let _turn = self.decodes.acquire().await?;
        let made = tokio::task::spawn_blocking(move || thumbnail(&stream, &rung, &key)).await?;
        match made {
            Ok(picture) => Ok(Some(picture.into())),
            Err(error @ ThumbnailError::Ffmpeg(_)) => {
                tracing::debug!("no thumbnails: {error}");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Glance {
    fn describe(&mut self, catalogue: &Catalogue) {
        self.title.clone_from(&catalogue.title);
        self.kinds = catalogue.streams.iter().map(|it| it.kind).collect();
        self.kinds.dedup();
    }
}

fn video(catalogue: &Catalogue) -> Option<&StreamInfo> {
    let mut streams = catalogue.streams.iter();
    streams.find(|stream| stream.kind == StreamKind::Video)
}

/// Forgets what is too old, and where there is no room, the oldest that is not being looked at: failures first.
fn make_room(kept: &mut BTreeMap<Moment, Kept>, now: Instant) {
    kept.retain(|_, known| !known.is_due(now));
    if kept.len() < MAX_KEPT {
        return;
    }
    let finished = kept.iter().filter_map(|(moment, known)| {
        let is_good = known.outcome.borrow().as_ref()?.is_ok();
        Some((is_good, known.since, moment.clone()))
    });
    if let Some((_, _, oldest)) = finished.min() {
        kept.remove(&oldest);
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namecast_net::NodeConfig;

    fn now(number: usize) -> Moment {
        Moment {
            name: format!("/{number}").parse().unwrap(),
            at: None,
        }
    }

    fn known(since: Instant, outcome: Option<Outcome>) -> Kept {
        let (_, outcome) = watch::channel(outcome);
        Kept { since, outcome }
    }

    /// A full table forgets a failure before an older glance, and never what is being looked at.
    #[test]
    fn failures_give_way_first() {
        let begun = Instant::now();
        let at = |millis| begun + Duration::from_millis(millis);
        let mut kept = BTreeMap::from([
            (now(0), known(at(0), None)),
            (now(1), known(at(1), Some(Ok(Arc::default())))),
            (now(2), known(at(3), Some(Err(NoGlance::Nothing)))),
            (now(3), known(at(2), Some(Err(NoGlance::Nothing)))),
        ]);
        for number in kept.len()..MAX_KEPT {
            kept.insert(now(number), known(at(4), Some(Ok(Arc::default()))));
        }
        for expected in [3, 2, 1] {
            make_room(&mut kept, at(5));
            assert!(!kept.contains_key(&now(expected)), "{expected}");
            assert_eq!(kept.len(), MAX_KEPT - 1);
            kept.insert(
                now(MAX_KEPT + expected),
                known(at(5), Some(Ok(Arc::default()))),
            );
        }
        // Ten seconds later all but the one that is being looked at are old.
        make_room(&mut kept, at(10_005));
        assert!(kept.keys().eq([&now(0)]));
    }

    /// Of names that nobody has, one source looks at 16 at a time; a visitor from elsewhere is not kept out.
    #[tokio::test]
    async fn names_that_nobody_has_keep_nobody_out() {
        let node = Node::start(NodeConfig::default());
        let glances = Glances::new(node, &PageConfig::default());
        let [hostile, other] = ["198.51.100.7", "203.0.113.9"].map(|it| it.parse().ok());
        for number in 0..MAX_LOOKS {
            assert!(glances.begin(&now(number), hostile).is_ok());
        }
        let refused = glances.begin(&now(MAX_LOOKS), hostile);
        assert_eq!(refused.err(), Some(NoGlance::Full));
        // The same name once more is no further look.
        assert!(glances.begin(&now(0), hostile).is_ok());
        assert!(glances.begin(&now(MAX_LOOKS), other).is_ok());
    }
}
