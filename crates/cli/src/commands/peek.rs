//! `namecast peek`: one packet, or an object in segments, to standard output.

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use namecast_apps::live::watcher::Pin;
use namecast_apps::object::{NotFound, Reader, ReaderConfig, ReaderEvent, Unreadable};
use namecast_command::parse_duration;
use namecast_command::report::{ProgressLine, print_bytes, print_error, printable};
use namecast_net::{Handle, Node, NodeConfig, drive, random};
use namecast_packet::lp::NackReason;
use namecast_packet::{ContentType, Data, Name};
use namecast_units::{ByteSize, Duration};
use tokio::sync::mpsc;

use crate::asking::{Answer, Asker, Question, Verified};
use crate::connect::Connect;
use crate::key_check::parse_pin;
use crate::rules::Rules;

/// `namecast peek`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast peek /demo/32=metadata --can-be-prefix --must-be-fresh | xxd
  namecast peek /files/report.pdf --object > report.pdf        what namecast put, ndnd put or ndnputchunks serves
  namecast peek /files/report.pdf --object --key 5d41…         only if that key signed it

Exits with 1 where nothing comes, or what comes is forged.")]
pub struct Peek {
    /// Name of a packet, or with --object that of an object, with or without a version.
    pub name: Name,
    /// Put the segments of the newest version together.
    #[arg(long, conflicts_with_all = ["can_be_prefix", "must_be_fresh"])]
    pub object: bool,
    /// Take a packet whose name only begins so.
    #[arg(short = 'P', long)]
    pub can_be_prefix: bool,
    /// Take no packet from a cache that its producer calls outdated.
    #[arg(short = 'F', long)]
    pub must_be_fresh: bool,
    /// Print the content and no more, unless it was not verified.
    #[arg(long)]
    pub pipe: bool,
    /// How long an answer is waited for.
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = parse_duration)]
    pub lifetime: Duration,
    /// Print nothing unless this key signed it, or certified the key that did: 64 hexadecimal digits, or a certificate file.
    #[arg(long, value_name = "DIGEST|CERTIFICATE-FILE")]
    pub key: Option<String>,
    /// Which key may sign which name, by the anchor of --key.
    #[command(flatten)]
    pub rules: Rules,
    /// The forwarder to ask.
    #[command(flatten)]
    pub connect: Connect,
}

/// Fetches and prints it.
pub(super) async fn run(arguments: Peek) -> anyhow::Result<()> {
    let pin = arguments.key.as_deref().map(parse_pin).transpose()?;
    let node = Node::start(NodeConfig::of_program(ByteSize::mebibytes(1)));
    let face = arguments.connect.reach(&node).await?.face;
    node.add_route(Name::root(), face, 0).await?;
    let mut asker = Asker::new(&node).await?;
    let mut object = match arguments.object {
        true => Some(Object::open(&node, &arguments).await?),
        false => None,
    };
    let (first, last) = match &mut object {
        Some(object) => object.next().await?.context("the node has stopped")?,
        None => (one(&mut asker, &arguments).await?, Some(0)),
    };
    let key = arguments.key.as_deref();
    let verified = match arguments.rules.follow(&node, face, key).await? {
        Some(followed) => {
            let verified = followed.verify(&mut asker, &node, &first);
            verified.await?
        }
        None => {
            let verified = asker.verify(&first).await?;
            insist(&verified, pin.as_ref())?;
            verified
        }
    };
    let shown = arguments.object && !arguments.pipe;
    let mut output = Output {
        name: first.name().clone(),
        verified,
        progress: ProgressLine::new(shown),
        size: 0,
    };
    output.print(&first, last)?;
    if let Some(object) = &mut object {
        object.begin().await?;
        while let Some((packet, last)) = object.next().await? {
            output.print(&packet, last)?;
        }
    }
    output.finish(arguments.pipe);
    node.shutdown().await;
    Ok(())
}

/// An object that is read.
struct Object {
    name: Name,
    reader: Handle<Reader>,
    events: mpsc::Receiver<ReaderEvent>,
}

impl Object {
    /// Looks for the object of that name.
    async fn open(node: &Node, arguments: &Peek) -> anyhow::Result<Self> {
        let reader = Reader::new(ReaderConfig {
            name: arguments.name.clone(),
            timeout: arguments.lifetime,
            seed: u64::from_le_bytes(random()),
        });
        let face = node.application_face().await?;
        let (reader, events) = drive(node.clock(), face, reader).spawn(|| {});
        Ok(Self {
            name: arguments.name.clone(),
            reader,
            events,
        })
    }

    /// Requests the packets after the first.
    async fn begin(&self) -> anyhow::Result<()> {
        let begun = self.reader.call(|reader, now| reader.begin(now.monotonic));
        begun.await.context("the node has stopped")
    }

    /// Waits for the next packet, and the number of the last one where it is known; `None` after that.
    async fn next(&mut self) -> anyhow::Result<Option<(Data, Option<u64>)>> {
        match self.events.recv().await.context("the node has stopped")? {
            ReaderEvent::Packet(data, last) => Ok(Some((data, last))),
            ReaderEvent::Complete => Ok(None),
            ReaderEvent::Failed(Unreadable::NotFound(why)) => Err(not_found(&self.name, why)),
            ReaderEvent::Failed(why) => Err(why.into()),
        }
    }
}

fn not_found(name: &Name, why: NotFound) -> anyhow::Error {
    match why {
        NotFound::Denied => anyhow!("the producer of {name} says that there is no such thing"),
        NotFound::Refused(reason) => refusal(name, reason),
        NotFound::Silence => {
            anyhow!("no object is found under {name}: check the name, and that its producer runs")
        }
    }
}

/// Where content goes, and what is said of it.
struct Output {
    name: Name,
    verified: Verified,
    progress: ProgressLine,
    size: u64,
}

impl Output {
    /// Prints the content of a packet. `last`: number of the last one, where it is known.
    fn print(&mut self, packet: &Data, last: Option<u64>) -> anyhow::Result<()> {
        let holds = self.verified.holds_for(packet);
        ensure!(
            holds,
            "{} is forged or damaged: what was printed before it is whole",
            packet.name()
        );
        let content = packet.content().unwrap_or_default();
        self.size += content.len() as u64;
        let number = packet.name().last().and_then(|it| it.number());
        if let (Some(number), Some(last @ 1..)) = (number, last) {
            let percent = 100 * number / last;
            self.progress
                .show(&format!("{percent} %, {} kB", self.size / 1_000));
        }
        print_bytes(&content)
    }

    /// Says what was printed, unless it was verified and nobody wants to know.
    fn finish(mut self, is_quiet: bool) {
        self.progress.show("");
        drop(self.progress);
        if !is_quiet || matches!(self.verified, Verified::Not(_)) {
            let about = format!(
                "{}, {} bytes, {}",
                self.name,
                self.size,
                self.verified.text()
            );
            print_error(printable(&about));
        }
    }
}

/// Fetches one packet.
async fn one(asker: &mut Asker, arguments: &Peek) -> anyhow::Result<Data> {
    let name = &arguments.name;
    let question = Question {
        name: name.clone(),
        can_be_prefix: arguments.can_be_prefix,
        must_be_fresh: arguments.must_be_fresh,
        timeout: arguments.lifetime,
    };
    let advice = match arguments.can_be_prefix {
        true => "",
        false => {
            "; if the name goes on, as that of an object does, add --object or --can-be-prefix"
        }
    };
    let data = take(name, asker.ask(&question).await?);
    data.map_err(|error| anyhow!("{error}{advice}"))
}

/// The packet, if that is what came.
fn take(name: &Name, answer: Answer) -> anyhow::Result<Data> {
    match answer {
        Answer::Data(data) if data.content_type() == ContentType::Nack => {
            Err(not_found(name, NotFound::Denied))
        }
        Answer::Data(data) => Ok(data),
        Answer::Nack(reason) => Err(refusal(name, reason)),
        Answer::Silence => {
            bail!("no answer for {name}: check the name, and that its producer runs")
        }
    }
}

/// Why an Interest came back.
fn refusal(name: &Name, reason: NackReason) -> anyhow::Error {
    match reason {
        NackReason::NoRoute => anyhow!("no route to {name}: nobody publishes it here"),
        NackReason::None => anyhow!("{name} does not exist here"),
        reason => anyhow!("{name} was refused on the way: {reason:?}"),
    }
}

/// Refuses what is forged, and what another key signed than is wanted.
fn insist(verified: &Verified, pin: Option<&Pin>) -> anyhow::Result<()> {
    let is_wanted = match (verified, pin) {
        (Verified::Forged(_), _) => false,
        (_, None) => true,
        (Verified::Not(_), Some(_)) => false,
        (Verified::By(_, key), Some(Pin::Digest(digest))) => key.digest() == *digest,
        (Verified::By(certificate, key), Some(Pin::Certificate(pinned))) => {
            let pinned = pinned.public_key().context("the key that is wanted")?;
            pinned.digest() == key.digest() || certificate.data().verify(&pinned).is_ok()
        }
    };
    match is_wanted {
        true => Ok(()),
        false if matches!(verified, Verified::By(..)) => {
            bail!("another key is wanted: {}", verified.text())
        }
        false => bail!("{}", verified.text()),
    }
}
