//! `namecast serve`: whatever others push here is published, each stream under a name of its own.

mod described;
mod key_ring;
mod limits;
mod outlet;
mod publication;
#[cfg(feature = "srt")]
mod srt;
#[cfg(feature = "whip")]
mod whip;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use namecast_command::report::{ProgressLine, print_line};
use namecast_command::{Run, Stop};
use namecast_net::FaceUri;
use namecast_net::log_limit::LeftOut;
use namecast_net::supervision::ListenerState;
use namecast_net::web::{ANY_ORIGIN, is_origin};
use namecast_packet::Name;
use namecast_units::LogLimit;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::FIGURES_INTERVAL;
use super::forwarder::Socket;
use super::page::network_addresses;
use crate::arguments::{Encoding, Keys, PagePort};
use crate::push::rtmp::RtmpListener;
#[cfg(feature = "srt")]
use crate::push::srt::SrtListener;
use crate::push::{Event, Gate, Refusal};
use crate::telemetry::{Observation, Reporter, Telemetry, tables};
use key_ring::KeyRing;
use outlet::Outlet;
use publication::{Publication, ServeFigures, Streams};

/// `namecast serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast serve
  ffmpeg -re -i film.mp4 -c copy -f flv rtmp://127.0.0.1/app/film      in another terminal; then open the printed address
  namecast serve --rtmp 0.0.0.0:1935 --key-file key.txt --listen     from other devices: OBS, server rtmp://HOST/app, stream
                                                                     key cam?key=SECRET
  namecast serve --connect tcp4://192.0.2.1                          through a forwarder")]
pub struct Serve {
    /// Accept RTMP here, for rtmp://ADDRESS:PORT/app/NAME, and RTMPS with --tls-cert; 'off' for not at all.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:1935")]
    pub rtmp: Socket,
    /// SRT.
    #[cfg(feature = "srt")]
    #[command(flatten)]
    pub srt: srt::Srt,
    /// Names of streams begin with this: with /studio, what is pushed as cam is published as /studio/cam.
    #[arg(long, value_name = "NAME", default_value = "/")]
    pub prefix: Name,
    /// What pushers have to show, as in cam?key=SECRET: 16 characters or more where others on the network can guess it. Other users of this
    /// machine can read it here; with --key-file they cannot. Without either, one is made where others can push.
    #[arg(long = "key", value_name = "SECRET", conflicts_with = "push_key_file")]
    pub push_key: Option<String>,
    /// Keys, each on a line, and after it the names that it is for, or none for all: SECRET /studio/* /cam. Read again on SIGHUP: pushes
    /// whose keys are gone end.
    #[arg(long = "key-file", value_name = "FILE")]
    pub push_key_file: Option<PathBuf>,
    /// What a push may cost.
    #[command(flatten)]
    pub limits: limits::PushLimits,
    /// How it is published.
    #[command(flatten)]
    pub encoding: Encoding,
    /// Publish through this forwarder; the page and WHIP are here all the same: unix:///PATH, tcp://HOST:PORT, udp://HOST:PORT, ws:// or wss://.
    #[arg(long, value_name = "FACE-URI")]
    pub connect: Option<FaceUri>,
    /// Take over names from other publishers; without this, a push of a name that is published already ends.
    #[arg(long, requires = "connect")]
    pub take_over: bool,
    /// The page.
    #[command(flatten)]
    pub page: PagePort,
    /// Pages from elsewhere whose visitors may push by WHIP, such as https://studio.example.
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    pub allow_origin: Vec<String>,
    /// UDP port of WHIP; if it is taken, any.
    #[cfg(feature = "whip")]
    #[arg(long, value_name = "PORT", default_value_t = crate::push::whip::DEFAULT_UDP_PORT, value_parser = namecast_command::number::<u16>(0..=65_535))]
    pub whip_port: u16,
    /// How long, and what is told.
    #[command(flatten)]
    pub run: Run,
    /// Who looks on.
    #[command(flatten)]
    pub observation: Observation,
    /// Where keys are.
    #[command(flatten)]
    pub keys: Keys,
}

/// Sentences that wait to be told.
const MAX_TOLD: usize = 64;

/// Runs until interrupted, or the time is over.
pub(super) async fn run(arguments: Serve) -> anyhow::Result<()> {
    let mut stop = Stop::new(arguments.run.duration)?;
    let mut stats = Reporter::start(&tables::SERVE, &arguments.run, &arguments.observation).await?;
    let mut teller = Teller::new(&arguments.run);
    let mut keys = KeyRing::of(&arguments)?;
    if keys.hang_ups.is_some() {
        stop.leave_hang_ups();
    }
    let limits = arguments.limits.limits();
    let (gate, mut events) = Gate::limited(arguments.prefix.clone(), keys.read()?, limits);
    let streams = Streams::default();
    let mut outlet = Outlet::open(&arguments, &gate, &mut stats).await?;
    let listeners = Listeners::bind(&arguments, &gate, &stats.telemetry()).await?;
    teller.introduce(&outlet, &listeners, &keys)?;
    let (told, mut sentences) = mpsc::channel(MAX_TOLD);
    let mut publications = JoinSet::new();
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    loop {
        tokio::select! {
            Some(event) = events.recv() => match event {
                Event::Pushed(pushed) => {
                    let publication = Publication {
                        place: outlet.place(pushed.admitted.name()),
                        gate: gate.clone(),
                        encoding: arguments.encoding.clone(),
                        keys: arguments.keys.clone(),
                        takes_over: arguments.take_over,
                        streams: streams.clone(),
                        told: told.clone(),
                    };
                    publications.spawn(publication.run(pushed));
                }
                Event::Noted { name, sentence } => teller.tell(&Told::trouble(&name.to_string(), &sentence))?,
                Event::Refused { protocol, from, why } => teller.tell(&Told::refused(protocol, &from.to_string(), &why))?,
            },
            Some(sentence) = sentences.recv() => teller.tell(&sentence)?,
            Some(_) = publications.join_next() => {}
            () = keys.hang_up() => teller.tell(&keys.read_again(&gate))?,
            Some(sentence) = outlet.link_changed() => teller.progress.say_once(&sentence),
            _ = tick.tick() => {
                let figures = ServeFigures::new(&gate, &streams);
                stats.write(&figures, false)?;
                teller.progress.show(&figures.line());
            }
            () = stop.wait() => break,
        }
    }
    teller.progress.say("Stopping.");
    stats.write(&ServeFigures::new(&gate, &streams), true)?;
    drop(listeners);
    publications.shutdown().await;
    outlet.close().await
}

/// Reads the origin of a page, as browsers write it.
fn parse_origin(text: &str) -> Result<String, String> {
    match text == ANY_ORIGIN || is_origin(text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "'{text}' is not an origin: write scheme and host without a path, as in https://studio.example, or *"
        )),
    }
}

/// Where others push. They end when this is dropped.
struct Listeners {
    rtmp: Option<RtmpListener>,
    /// RTMPS is accepted at the same port.
    has_tls: bool,
    #[cfg(feature = "srt")]
    srt: Option<SrtListener>,
    /// Why one is missing that was not asked for, for people.
    remarks: Vec<String>,
}

impl Listeners {
    async fn bind(arguments: &Serve, gate: &Gate, telemetry: &Telemetry) -> anyhow::Result<Self> {
        let (mut rtmp, mut has_tls) = (None, false);
        if let Some(address) = arguments.rtmp.0 {
            let state = ListenerState::new("rtmp");
            let tls = arguments.page.tls.read()?;
            has_tls = tls.is_some();
            let listener = RtmpListener::bind(address, tls, gate.clone(), state.clone()).await;
            rtmp = Some(listener.with_context(|| not_had("rtmp", address))?);
            telemetry.observe_listener(&state);
        }
        #[cfg(feature = "srt")]
        let (srt, remarks) = match arguments.srt.listen(gate, telemetry).await? {
            Ok(srt) => (srt, Vec::new()),
            Err(remark) => (None, vec![remark]),
        };
        Ok(Self {
            rtmp,
            has_tls,
            #[cfg(feature = "srt")]
            srt,
            #[cfg(feature = "srt")]
            remarks,
            #[cfg(not(feature = "srt"))]
            remarks: Vec::new(),
        })
    }

    /// Where to push, by protocol.
    fn addresses(&self) -> Vec<(&'static str, String)> {
        let mut addresses = Vec::new();
        if let Some(rtmp) = &self.rtmp {
            let address = reachable(rtmp.address());
            addresses.push(("rtmp", format!("rtmp://{address}/app/")));
            if self.has_tls {
                addresses.push(("rtmps", format!("rtmps://{address}/app/")));
            }
        }
        #[cfg(feature = "srt")]
        if let Some(srt) = &self.srt {
            let address = reachable(srt.address());
            addresses.push(("srt", format!("srt://{address}?streamid=")));
        }
        addresses
    }
}

/// An address that others can write down, where it is this machine's any.
fn reachable(address: SocketAddr) -> SocketAddr {
    let networks = network_addresses().into_iter();
    let first = networks
        .take_while(|_| address.ip().is_unspecified())
        .next();
    SocketAddr::new(first.unwrap_or(address.ip()), address.port())
}

fn not_had(option: &str, address: SocketAddr) -> String {
    format!("cannot listen on {address}: choose another address with --{option}, or --{option} off")
}

/// Something that happened to a stream: a sentence for people, and an object for programs. Strangers can cause them, so one a second
/// of each kind is shown.
#[derive(Debug)]
struct Told {
    /// Kind of the event, and the stream or the reason that it is about.
    reason: (&'static str, String),
    sentence: String,
    object: Value,
}

impl Told {
    fn trouble(name: &str, what: &str) -> Self {
        Self {
            reason: ("trouble", format!("{name}: {what}")),
            sentence: format!("{name}: {what}"),
            object: json!({ "event": "trouble", "name": name, "what": what }),
        }
    }

    fn refused(protocol: &str, from: &str, refusal: &Refusal) -> Self {
        let (reason, why) = (refusal.reason(), refusal.to_string());
        Self {
            reason: ("refused", reason.to_owned()),
            sentence: format!("{protocol} from {from} refused: {why}"),
            object: json!({ "event": "refused", "protocol": protocol, "from": from, "reason": reason, "why": why }),
        }
    }
}

/// Tells people or programs, as they wish.
struct Teller {
    progress: ProgressLine,
    json: bool,
    limit: LogLimit<(&'static str, String)>,
    begun: Instant,
}

impl Teller {
    fn new(run: &Run) -> Self {
        Self {
            progress: ProgressLine::new(!run.quiet && !run.json),
            json: run.json && !run.quiet,
            limit: LogLimit::new(),
            begun: Instant::now(),
        }
    }

    fn tell(&mut self, told: &Told) -> anyhow::Result<()> {
        let reason = told.reason.clone();
        let Some(left_out) = self.limit.admit(self.begun.elapsed(), reason) else {
            return Ok(());
        };
        let end = LeftOut(left_out);
        self.progress.say(&format!("{}{end}", told.sentence));
        self.print(&told.object)
    }

    fn print(&self, object: &Value) -> anyhow::Result<()> {
        if self.json {
            print_line(object)?;
        }
        Ok(())
    }

    /// Says what there is, and where.
    fn introduce(
        &mut self,
        outlet: &Outlet,
        listeners: &Listeners,
        keys: &KeyRing,
    ) -> anyhow::Result<()> {
        let mut object = outlet.object();
        if let Some(key) = keys.made() {
            object["key"] = json!(key);
        }
        for (protocol, address) in listeners.addresses() {
            object[protocol] = json!(address);
        }
        for line in outlet.lines().iter().chain(&listeners.remarks) {
            self.progress.say(line);
        }
        let key = keys.suffix();
        for (_, address) in listeners.addresses() {
            self.progress.say(&format!("Push to: {address}NAME{key}"));
        }
        self.progress.say("Waiting for streams. Ctrl-C ends it.");
        self.print(&object)
    }
}
