//! One desk or device in a show: its node, the messages of the others, and the clock for all times.

use bytes::Bytes;
use namecast::{Node, Options, Publication, Watched, Watching};
use namecast_apps::cues::{self, Cue};
use namecast_packet::Name;
use namecast_units::{ByteSize, Duration, Instant, Timestamp};
use tokio::sync::mpsc;

use super::ShowOptions;
use crate::arguments::Trusted;
use crate::key_check::KeyCheck;
use crate::rules::Followed;

/// Memory of each side for packets: the other side requests them within seconds.
const CACHE: ByteSize = ByteSize::mebibytes(4);
/// Messages that wait for this process.
const MAX_HEARD: usize = 1_024;
/// From one look at whether a publisher answers to the next.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A message of a desk or device, or what became of it.
pub(super) struct Heard {
    /// Name of the desk or device.
    pub(super) from: String,
    pub(super) what: What,
}

/// A message, or what became of its publisher.
pub(super) enum What {
    /// A verified message, and the publisher's clock.
    Message(Bytes, TheirClock),
    /// Something to tell people.
    Text(String),
    /// Nothing that the publisher signed arrived for the time after which this is to be told.
    Silence,
    /// It is not heard any more.
    Lost(anyhow::Error),
}

/// A publisher's clock less ours, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct TheirClock(i64);

impl TheirClock {
    /// Returns the cue with its time by our clock.
    pub(super) fn to_ours(self, cue: Cue) -> Cue {
        let micros = cue.at.as_micros().saturating_add_signed(-self.0);
        let at = Timestamp::from_micros(micros);
        Cue { at, ..cue }
    }
}

/// A show, through a node of this process.
pub(super) struct Show {
    pub(super) node: Node,
    name: Name,
    trusted: Trusted,
    followed: Option<Followed>,
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
            heard: sender,
        };
        Ok((show, heard))
    }

    /// Returns the time by our clock.
    pub(super) fn now(&self) -> Timestamp {
        self.wall_at_zero + self.node.inner().clock().now().since(Instant::ZERO)
    }

    /// Publishes the cues of a desk.
    pub(super) async fn publish_cues(&self, desk: &str) -> anyhow::Result<Publication> {
        let root = cues::desk_root(&self.name, desk);
        let identity = cues::desk_identity(&self.name, desk);
        self.publish(&root, identity, cues::CUES).await
    }

    /// Publishes the reports of a device.
    pub(super) async fn publish_reports(&self, device: &str) -> anyhow::Result<Publication> {
        let root = cues::device_root(&self.name, device);
        self.publish(&root, root.clone(), cues::ACKS).await
    }

    async fn publish(
        &self,
        root: &Name,
        identity: Name,
        stream: &str,
    ) -> anyhow::Result<Publication> {
        let publish = self.node.publish(&root.to_string())?;
        let publish = publish.stream(cues::stream(stream));
        let publish = match &self.followed {
            Some(_) => publish.certified(identity),
            None => publish,
        };
        Ok(publish.start().await?)
    }

    /// Hears a desk, and tells when it is silent for `silence`.
    pub(super) async fn hear_desk(
        &self,
        desk: &str,
        silence: Option<Duration>,
    ) -> anyhow::Result<()> {
        let root = cues::desk_root(&self.name, desk);
        self.hear(desk, (&root, cues::CUES), silence).await
    }

    /// Hears a device.
    pub(super) async fn hear_device(&self, device: &str) -> anyhow::Result<()> {
        let root = cues::device_root(&self.name, device);
        self.hear(device, (&root, cues::ACKS), None).await
    }

    async fn hear(
        &self,
        from: &str,
        (root, stream): (&Name, &str),
        silence: Option<Duration>,
    ) -> anyhow::Result<()> {
        let keys = match &self.followed {
            Some(followed) => KeyCheck::certified(root.clone(), followed.chains.clone()),
            None => KeyCheck::new(root.clone(), &self.trusted)?,
        };
        let watch = self.node.watch(&root.to_string())?.data().stream(stream);
        let watching = watch.trust(keys.trust()).start().await?;
        let tell = Tell {
            from: from.to_owned(),
            heard: self.heard.clone(),
        };
        tokio::spawn(follow(watching, keys, tell, silence));
        Ok(())
    }
}

/// Where what is heard of one publisher goes.
struct Tell {
    from: String,
    heard: mpsc::Sender<Heard>,
}

impl Tell {
    /// Returns whether anybody listens.
    async fn tell(&self, what: What) -> bool {
        let from = self.from.clone();
        self.heard.send(Heard { from, what }).await.is_ok()
    }
}

async fn follow(mut watching: Watching, mut keys: KeyCheck, tell: Tell, silence: Option<Duration>) {
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        let what = tokio::select! {
            watched = watching.next() => match watched {
                Some(Watched::Signer(signer)) => What::Text(keys.on_signer(&signer)),
                Some(Watched::Frame(frame)) => match keys.on_verified() {
                    Ok(text) => {
                        if let Some(text) = text
                            && !tell.tell(What::Text(text)).await
                        {
                            return;
                        }
                        What::Message(frame.payload, clock(&watching).await)
                    }
                    Err(error) => What::Lost(error),
                },
                Some(_) => continue,
                None => What::Lost(anyhow::anyhow!("the node has stopped")),
            },
            _ = look.tick(), if silence.is_some() => match silent_for(&watching).await {
                time if time.is_some() && time >= silence => What::Silence,
                _ => continue,
            },
        };
        let is_lost = matches!(what, What::Lost(_));
        if !tell.tell(what).await || is_lost {
            return;
        }
    }
}

async fn clock(watching: &Watching) -> TheirClock {
    let stats = watching.stats().await;
    let millis = stats.and_then(|stats| stats.clock_offset_ms);
    TheirClock(millis.map_or(0, |millis| (millis * 1e3) as i64))
}

async fn silent_for(watching: &Watching) -> Option<Duration> {
    let silent_ms = watching.stats().await?.silent_ms?;
    Some(Duration::from_secs_f64(silent_ms / 1e3))
}
