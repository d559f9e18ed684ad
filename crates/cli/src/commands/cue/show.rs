//! One desk or device in a show: its node, the messages of the others, and the clock for all times.

use std::path::PathBuf;

use bytes::Bytes;
use namecast::{Node, Options, Publication, Watched, Watching};
use namecast_apps::cues::{self, Cue, DeskClock};
use namecast_apps::live::watcher::{Signer, Verdict};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration, Instant, Timestamp};
use tokio::sync::mpsc;

use super::ShowOptions;
use super::outlet::Outlet;
use crate::arguments::Trusted;
use crate::key_check::KeyCheck;
use crate::rules::Followed;

/// Memory of each side for packets: the other side requests them within seconds.
const CACHE: ByteSize = ByteSize::mebibytes(4);
/// Messages that wait for this process.
const MAX_HEARD: usize = 1_024;
/// From one look at whether a publisher answers to the next, where its silence counts.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The same where only refused packets are counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// Looks for a desk's clock, and from one to the next: for longer, a cue is stale.
const CLOCK_TRIES: u32 = 100;
const CLOCK_PAUSE: Duration = Duration::from_millis(20);

/// A message of a desk or device, or what became of it.
pub(super) struct Heard {
    /// Name of the desk or device.
    pub(super) from: String,
    /// Whether it is a desk: only these send cues, and only devices report.
    pub(super) is_desk: bool,
    pub(super) what: What,
}

/// A message, or what became of its publisher.
pub(super) enum What {
    /// A verified message, and the publisher's clock.
    Message(Bytes, TheirClock),
    /// Whose signature the publisher's messages have, and a sentence about it.
    Signer(Box<Signer>, String),
    /// Something to tell people.
    Text(String),
    /// Packets that were refused, as they are not what a trusted key signed.
    Refused(String),
    /// Nothing that the publisher signed arrived for the time after which this is to be told.
    Silence,
    /// It is not heard any more.
    Lost(anyhow::Error),
}

/// A publisher's clock, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct TheirClock(pub(super) Option<DeskClock>);

impl TheirClock {
    /// Returns the cue with its time by our clock.
    pub(super) fn to_ours(self, cue: Cue) -> Cue {
        let offset = self.0.map_or(0, |clock| clock.offset_us);
        let micros = cue.at.as_micros().saturating_add_signed(-offset);
        let at = Timestamp::from_micros(micros);
        Cue { at, ..cue }
    }
}

/// A show, through a node of this process.
pub(super) struct Show {
    pub(super) node: Node,
    name: Name,
    trusted: Trusted,
    pub(super) followed: Option<Followed>,
    log: Option<PathBuf>,
    /// Our clock at [`Instant::ZERO`], as it was at the start: later steps of the machine's clock move no cue.
    wall_at_zero: Timestamp,
    heard: mpsc::Sender<Heard>,
}

impl Show {
    /// Takes part in the show of `options`. Also returns what is heard of others.
    pub(super) async fn join(
        options: &ShowOptions,
    ) -> anyhow::Result<(Self, mpsc::Receiver<Heard>)> {
        let node = Node::start(Options {
            keys: options.keys.keys.clone(),
            cache: CACHE,
        });
        let uplink = options.connect.keep(node.inner()).await?.face;
        node.attach(uplink).await?;
        let anchor = options.trusted.key.as_deref();
        let followed = options.rules.follow(node.inner(), uplink, anchor).await?;
        let (sender, heard) = mpsc::channel(MAX_HEARD);
        let show = Self {
            wall_at_zero: node.inner().clock().wall_at_zero(),
            node,
            name: options.show.clone(),
            trusted: options.trusted.clone(),
            followed,
            log: options.log.clone(),
            heard: sender,
        };
        Ok((show, heard))
    }

    /// Returns the time by our clock.
    pub(super) fn now(&self) -> Timestamp {
        self.wall_at_zero + self.node.inner().clock().now().since(Instant::ZERO)
    }

    /// Publishes the cues of a desk, and what it refuses.
    pub(super) async fn publish_cues(&self, desk: &str) -> anyhow::Result<Outlet> {
        let root = cues::desk_root(&self.name, desk);
        let identity = cues::desk_identity(&self.name, desk);
        self.publish(&root, identity, &[cues::CUES, cues::REFUSED])
            .await
    }

    /// Publishes the reports of a device.
    pub(super) async fn publish_reports(&self, device: &str) -> anyhow::Result<Outlet> {
        let root = cues::device_root(&self.name, device);
        self.publish(&root, root.clone(), &[cues::ACKS]).await
    }

    async fn publish(
        &self,
        root: &Name,
        identity: Name,
        streams: &[&str],
    ) -> anyhow::Result<Outlet> {
        let mut publish = self.node.publish(&root.to_string())?;
        for stream in streams {
            publish = publish.stream(cues::stream(stream));
        }
        if self.followed.is_some() {
            publish = publish.certified(identity);
        }
        let publication: Publication = publish.start().await?;
        Outlet::new(publication, self.log.as_deref())
    }

    /// Hears a desk, and tells when it is silent for `silence`.
    pub(super) async fn hear_desk(
        &self,
        desk: &str,
        silence: Option<Duration>,
    ) -> anyhow::Result<()> {
        let root = cues::desk_root(&self.name, desk);
        self.hear(desk, (&root, cues::CUES), Some(silence)).await
    }

    /// Hears a device.
    pub(super) async fn hear_device(&self, device: &str) -> anyhow::Result<()> {
        let root = cues::device_root(&self.name, device);
        self.hear(device, (&root, cues::ACKS), None).await
    }

    /// Hears a device, or a desk with the time of silence to tell of, if any.
    async fn hear(
        &self,
        from: &str,
        (root, stream): (&Name, &str),
        desk: Option<Option<Duration>>,
    ) -> anyhow::Result<()> {
        let keys = match &self.followed {
            Some(followed) => KeyCheck::certified(root.clone(), followed.chains.clone()),
            None => KeyCheck::new(root.clone(), &self.trusted)?,
        };
        let watch = self.node.watch(&root.to_string())?.data().stream(stream);
        let watching = watch.trust(keys.trust()).start().await?;
        let tell = Tell {
            from: from.to_owned(),
            is_desk: desk.is_some(),
            heard: self.heard.clone(),
        };
        tokio::spawn(follow(watching, keys, tell, desk.flatten()));
        Ok(())
    }
}

/// Where what is heard of one publisher goes.
struct Tell {
    from: String,
    is_desk: bool,
    heard: mpsc::Sender<Heard>,
}

impl Tell {
    /// Returns whether anybody listens.
    async fn tell(&self, what: What) -> bool {
        let heard = Heard {
            from: self.from.clone(),
            is_desk: self.is_desk,
            what,
        };
        self.heard.send(heard).await.is_ok()
    }
}

async fn follow(mut watching: Watching, mut keys: KeyCheck, tell: Tell, silence: Option<Duration>) {
    let every = silence.map_or(COUNT_EVERY, |_| LOOK_EVERY);
    let mut look = tokio::time::interval(every);
    let mut wrong = 0;
    // A desk's clock is waited for, once: answers from caches tell none, and without it a cue could be executed early.
    let mut tries = if tell.is_desk { CLOCK_TRIES } else { 1 };
    loop {
        let what = tokio::select! {
            watched = watching.next() => match watched {
                Some(Watched::Signer(signer)) => {
                    let text = keys.on_signer(&signer);
                    match signer.verdict {
                        Verdict::Refused(_) => What::Refused(text),
                        _ => What::Signer(Box::new(signer), text),
                    }
                }
                Some(Watched::Frame(frame)) => match keys.on_verified() {
                    Ok(text) => {
                        if let Some(text) = text
                            && !tell.tell(What::Text(text)).await
                        {
                            return;
                        }
                        let clock = clock(&watching, tries).await;
                        if clock.0.is_none() {
                            tries = 1;
                        }
                        What::Message(frame.payload, clock)
                    }
                    Err(error) => What::Lost(error),
                },
                Some(_) => continue,
                None => What::Lost(anyhow::anyhow!("the node has stopped")),
            },
            _ = look.tick() => match looked(&watching, &mut wrong, silence).await {
                Some(what) => what,
                None => continue,
            },
        };
        let is_lost = matches!(what, What::Lost(_));
        if !tell.tell(what).await || is_lost {
            return;
        }
    }
}

/// Looks at figures of a publisher. `wrong`: packets that were refused until now.
async fn looked(watching: &Watching, wrong: &mut u64, silence: Option<Duration>) -> Option<What> {
    let stats = watching.stats().await?;
    let before = core::mem::replace(wrong, stats.verification_failures);
    if *wrong > before {
        let count = *wrong - before;
        return Some(What::Refused(format!(
            "{count} packets were refused: their signatures or digests are wrong"
        )));
    }
    let silent = stats.silent_ms.map(|ms| Duration::from_secs_f64(ms / 1e3));
    let is_silent = silence
        .zip(silent)
        .is_some_and(|(most, silent)| silent >= most);
    is_silent.then_some(What::Silence)
}

/// Returns the publisher's clock, for which it looks so often.
async fn clock(watching: &Watching, tries: u32) -> TheirClock {
    for number in 0..tries {
        if number > 0 {
            tokio::time::sleep(CLOCK_PAUSE).await;
        }
        let stats = watching.stats().await;
        let known = stats.and_then(|it| it.clock_offset_ms.zip(it.clock_offset_rtt_ms));
        if let Some((offset, round_trip)) = known {
            return TheirClock(Some(DeskClock {
                offset_us: (offset * 1e3) as i64,
                error_us: (round_trip * 500.0) as u64,
            }));
        }
    }
    TheirClock(None)
}
