//! `namecast watch`: what is published under a name, to a file, a pipe or nowhere.

mod arguments;
mod ending;
mod package;

use std::path::{Path, PathBuf};

use namecast::{Handle, drive};
use namecast_apps::live::watcher::{Event, Frame, Liveness, RungChoice, Signer, Verdict, Watched};
use namecast_apps::live::{Player, Stats, Watcher, WatcherConfig};
use namecast_apps::sealed::Unopened;
use namecast_command::Stop;
use namecast_command::report::{ProgressLine, local, print_line, printable};
use namecast_media::record::{Destination, Recorder};
use namecast_media::streams::CAPTIONS;
use namecast_net::{Clock, Node, NodeConfig};
use namecast_packet::Name;
use namecast_stream::ladder::LadderConfig;
use namecast_stream::path::Control;
use namecast_stream::{StreamInfo, StreamKind};
use namecast_units::ByteSize;
use serde_json::json;
use tokio::sync::mpsc;

pub use arguments::PastTime;
pub(super) use arguments::Watch;
use ending::Ending;
use package::IsPackage;

use super::uplink::Uplink;
use super::{FIGURES_INTERVAL, WrongUse, key_store};
use crate::arguments::Keys;
use crate::hexadecimal::hex;
use crate::key_check::KeyCheck;
use crate::readers::advice;
use crate::rules::Rules;
use crate::telemetry::{Reporter, tables};

/// What the node keeps: enough for what was asked for and came too late.
const CACHE: ByteSize = ByteSize::mebibytes(1);

const TWO_OUTPUTS: &str = "--json and --output - would both write to standard output: write frames to a file, or what happens with --stats FILE";

/// Runs until interrupted, or the time is over, or whoever reads the output has left, or nothing comes.
pub(super) async fn run(arguments: Watch) -> anyhow::Result<()> {
    let prints_frames = arguments
        .output
        .as_ref()
        .is_some_and(Destination::is_standard);
    anyhow::ensure!(
        !(prints_frames && arguments.run.json),
        WrongUse(TWO_OUTPUTS)
    );
    let mut config = watcher_config(&arguments)?;
    let ending = Ending::new(arguments.name.clone(), config.rung.clone());
    let Watch {
        name,
        output,
        no_audio,
        controller,
        connect,
        run,
        observation,
        rules,
        trusted,
        keys: own,
        ..
    } = arguments;
    let mut stop = Stop::new(run.duration)?;
    let node = Node::start(NodeConfig::of_program(CACHE));
    let mut uplink = Uplink::new(&node, &connect).await?;
    let trusted = (&name, &trusted);
    let (keys, _followed) = rules.key_check(&node, uplink.face(), trusted).await?;
    config.trust = keys.trust();
    let sealed = set_reader(&mut config, &name, &rules, own)?;
    let film = output.as_ref().and_then(Destination::as_mp4);
    let mut session = Session {
        film: film.map(Path::to_owned),
        control: controller.unwrap_or_default(),
        recorder: output.map(|output| Recorder::new(output, !no_audio)),
        stats: Reporter::start(&tables::WATCH, &run, &observation).await?,
        keys,
        progress: ProgressLine::new(!run.quiet && !run.json),
        prints_json: run.json && !run.quiet,
        picture: None,
        sealed,
        wants_live: arguments.from.is_none(),
        streams: arguments.stream.clone(),
        prints_data: false,
        signer: None,
        liveness: Liveness::default(),
        clock: node.clock(),
        ending,
    };
    session.stats.observe(&node);
    node.add_route(name, uplink.face(), 0).await?;
    let application = node.application_face_with_local_fields().await?;
    let player = Player::new(Watcher::new(config));
    let (player, mut heard) = drive(node.clock(), application, player).spawn(|| {});
    if run.duration.is_none() {
        session.ending.give_up_after(node.clock().now());
    }
    let followed = session.follow(&player, &mut heard, &mut uplink, &mut stop);
    let followed = followed.await;
    let outcome = session.tell_last_figures(&player, followed).await;
    drop((player, heard));
    let outcome = match outcome {
        Err(error) => session.write_package(&node, error, &mut stop).await,
        Ok(()) => Ok(()),
    };
    let finished = session.finish(outcome, &uplink);
    node.shutdown().await;
    finished
}

/// Live was wanted, and a recording came.
#[derive(Debug, thiserror::Error)]
#[error(
    "what came last was not live, but recorded from {0}: to watch the past, say from when with --from"
)]
pub struct NotLive(String);

/// What keeps frames from coming, if anything does, and live ones if they are wanted.
fn problem(figures: &Stats, wants_live: bool) -> Option<String> {
    let name = &figures.name;
    let has_frames = figures.video.is_some() || figures.audio.is_some();
    match (figures.state, figures.liveness) {
        // Samples of data come when they come.
        ("playing" | "starved", _) if !has_frames => None,
        ("playing", "recorded") if wants_live => Some(format!("{name} is not live, but recorded")),
        ("playing", "unconfirmed") if wants_live => {
            Some(format!("the publisher of {name} does not answer"))
        }
        ("playing", _) => None,
        (state, _) => Some(format!("no frames of {name} come: {state}")),
    }
}

/// What happens, for people.
fn describe(event: &Event) -> String {
    match event {
        Event::Seeking { to } => format!("going to {}", local(*to)),
        Event::PlayingFrom { captured_at, .. } => format!("playing from {}", local(*captured_at)),
        Event::NothingKept { to, .. } => format!("nothing of {} can be played", local(*to)),
        Event::Liveness(Liveness::Recorded(captured_at)) => {
            format!("not live: recorded from {}", local(*captured_at))
        }
        event => event.to_string(),
    }
}

fn watcher_config(arguments: &Watch) -> anyhow::Result<WatcherConfig> {
    let clock = Clock::new();
    let mut config = WatcherConfig::of(arguments.name.clone(), arguments.profile);
    config.audio = !arguments.no_audio;
    config.streams.clone_from(&arguments.stream);
    config.data = !arguments.stream.is_empty();
    if let Some(output) = &arguments.output
        && output.captions_directory().is_some()
    {
        config.data = true;
        // Data that somebody wants to read goes before captions.
        if config.streams.is_empty() {
            config.streams.push(CAPTIONS.to_owned());
        }
    }
    if let Some(target) = arguments.target {
        config.target = target;
        config.adaptive_target = None;
    }
    config.past.from = arguments.from.map(|from| from.resolve(clock.wall()));
    let unless_told = arguments.output.as_ref().map_or("auto", |_| "highest");
    config.rung = RungChoice::from(arguments.rung.as_deref().unwrap_or(unless_told));
    config.control = arguments.controller.unwrap_or(config.control);
    if let (Some(_), LadderConfig::Live(ladder)) = (&arguments.output, &mut config.ladder) {
        // A file cannot take frames twice.
        ladder.catches_up = false;
    }
    if arguments.output.as_ref().is_some_and(Destination::is_kept) {
        config.prefer_completeness();
    }
    config.wall_at_zero = clock.wall_at_zero();
    // Whoever could foresee Nonces and challenges could have them answered beforehand.
    config.seed = u64::from_le_bytes(namecast_net::random());
    Ok(config)
}

/// Opens sealed samples with the keys of this machine's members, if the rules are a room's. Returns what to say to those who have none.
fn set_reader(
    config: &mut WatcherConfig,
    name: &Name,
    rules: &Rules,
    own: Keys,
) -> anyhow::Result<String> {
    let root = rules.root();
    if rules.schema.is_some() {
        // By a file the room's name is not known: that of its members begins with it.
        let of = root.clone().unwrap_or_else(|| name.parent());
        config.reader = key_store(own.keys)?.reader_secrets(&of)?;
    }
    let is_member = !config.reader.is_empty();
    Ok(advice(name, root.as_ref(), is_member))
}

/// What the command does with what the watcher says.
struct Session {
    recorder: Option<Recorder>,
    stats: Reporter,
    keys: KeyCheck,
    progress: ProgressLine,
    prints_json: bool,
    /// The rung that was told last, and why it is that.
    picture: Option<(String, &'static str)>,
    /// Advice where the stream is sealed for others.
    sealed: String,
    wants_live: bool,
    /// Streams that have to be there.
    streams: Vec<String>,
    /// Whether one of them is of data.
    prints_data: bool,
    /// Where segments go, if the stream is made of them, and what bounds requests for them.
    film: Option<PathBuf>,
    control: Control,
    /// Digest of the key that counts.
    signer: Option<[u8; 32]>,
    /// Whether what is shown is live, as told last.
    liveness: Liveness,
    clock: Clock,
    ending: Ending,
}

impl Session {
    /// Takes what comes until it is time to stop.
    async fn follow(
        &mut self,
        player: &Handle<Player>,
        heard: &mut mpsc::Receiver<Watched>,
        uplink: &mut Uplink,
        stop: &mut Stop,
    ) -> anyhow::Result<()> {
        let mut tick = tokio::time::interval(FIGURES_INTERVAL);
        while self.is_open() && !self.ending.is_given_up(self.clock.now()) {
            tokio::select! {
                watched = heard.recv() => match watched {
                    Some(watched) => self.hear(watched)?,
                    None => break,
                },
                _ = tick.tick() => {
                    if let Some(figures) = player.call(Player::stats).await {
                        self.stats.write(&figures, false)?;
                        let problem = problem(&figures, self.wants_live);
                        self.stats.set_problem("stream", problem);
                        self.show(&figures)?;
                    }
                }
                (is_up, text) = uplink.changed() => {
                    self.progress.say_once(&text);
                    if is_up {
                        player.try_call(Player::handle_link_change);
                    }
                }
                () = stop.wait() => break,
            }
        }
        Ok(())
    }

    /// Writes the figures at the end, whatever `outcome` there was before. Returns it, or the first failure.
    async fn tell_last_figures(
        &mut self,
        player: &Handle<Player>,
        outcome: anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if let Some(figures) = player.call(Player::stats).await {
            let written = self.stats.write(&figures, true);
            let printed = match self.prints_json {
                true => print_line(json!({ "final": true, "stats": figures })),
                false => Ok(()),
            };
            return outcome.and(written).and(printed);
        }
        outcome
    }

    /// Whether whoever reads the frames is there.
    fn is_open(&self) -> bool {
        self.recorder.as_ref().is_none_or(Recorder::is_open)
    }

    fn hear(&mut self, watched: Watched) -> anyhow::Result<()> {
        match watched {
            Watched::Frame(frame) if frame.stream == StreamKind::Data => {
                self.hear_sample(&frame)?;
            }
            Watched::Frame(frame) => {
                self.ending.on_frame();
                if let Some(recorder) = &mut self.recorder {
                    recorder.write(&frame)?;
                }
                while let Some(note) = self.recorder.as_ref().and_then(Recorder::note) {
                    self.tell("recording", &json!(note), &note)?;
                }
            }
            Watched::Catalogue(catalogue) => {
                // It is told only once it is verified.
                if let Some(text) = self.keys.on_verified()? {
                    self.tell("remembered", &json!(text), &text)?;
                }
                let is_printed = |it: &StreamInfo| {
                    it.kind == StreamKind::Data && self.streams.contains(&it.name)
                };
                self.prints_data = catalogue.streams.iter().any(is_printed);
                if self.prints_data {
                    // Its next sample may be hours away.
                    self.ending.on_frame();
                }
                self.ending.on_catalogue(&catalogue)?;
                let there = catalogue.streams.iter().map(|stream| stream.name.as_str());
                let there: Vec<_> = there.collect();
                if let Some(missing) = self.streams.iter().find(|it| !there.contains(&it.as_str()))
                {
                    anyhow::bail!(
                        "there is no stream {missing}: write --stream with one of {}",
                        there.join(", ")
                    );
                }
                if let Some(recorder) = &mut self.recorder {
                    recorder.open(&catalogue)?;
                }
                self.tell("catalogue", &json!(catalogue), "")?;
            }
            Watched::Signer(signer) => self.hear_signer(&signer)?,
            Watched::Event(Event::Liveness(liveness)) => self.hear_liveness(liveness)?,
            Watched::Event(Event::Unopened(Unopened::NotAReader)) => self.hear_sealed()?,
            Watched::Event(event) => {
                let text = match event.is_detail() {
                    true => {
                        tracing::debug!(%event, "watch");
                        String::new()
                    }
                    false => describe(&event),
                };
                self.tell("event", &json!(event.to_string()), &text)?;
                match event {
                    Event::PlayingFrom { .. } => self.ending.on_past(),
                    Event::NothingKept { to, unkept } => self.ending.on_unkept(to, unkept)?,
                    _ => {}
                }
            }
            Watched::Discontinuity { .. } => {}
        }
        Ok(())
    }

    /// A sample of data is printed if its stream was chosen.
    fn hear_sample(&mut self, frame: &Frame) -> anyhow::Result<()> {
        if let Some(recorder) = &mut self.recorder {
            recorder.write(frame)?;
        }
        if !self.prints_data {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&frame.payload);
        let (name, at) = (&*frame.name, frame.captured_at.as_micros());
        let sample = json!({ "stream": name, "captured_at": at, "text": line });
        match (self.prints_json, self.streams.len()) {
            (true, _) => self.tell("sample", &sample, ""),
            (false, 0 | 1) => print_line(printable(&line)),
            (false, _) => print_line(printable(&format!("{name}: {line}"))),
        }
    }

    /// Samples are sealed for others.
    fn hear_sealed(&mut self) -> anyhow::Result<()> {
        let text = self.sealed.clone();
        self.ending.on_sealed(&text);
        if self.prints_json {
            return self.tell("sealed", &json!({ "text": text }), &text);
        }
        self.progress.say_error(&text);
        Ok(())
    }

    /// Whoever is refused is named to those too who want to hear of errors only.
    fn hear_signer(&mut self, signer: &Signer) -> anyhow::Result<()> {
        let text = self.keys.on_signer(signer);
        let object = json!({
            "key_name": signer.key_name.to_string(),
            "key_digest": hex(&signer.key_digest),
            "verdict": signer.verdict.to_string(),
            "remembered_since": self.keys.remembered_since(),
            "text": text,
        });
        self.signer = Some(signer.key_digest);
        if matches!(signer.verdict, Verdict::Refused(_)) {
            self.signer = None;
            self.stats.on_trouble("signer", &text);
            self.ending.on_refusal(&text);
            if !self.prints_json {
                self.progress.say_error(&text);
                return Ok(());
            }
        }
        self.tell("signer", &object, &text)
    }

    /// That it is not live is said to those too who want to hear of errors only, unless they wanted the past.
    fn hear_liveness(&mut self, liveness: Liveness) -> anyhow::Result<()> {
        self.liveness = liveness;
        let object = json!(liveness.word());
        match liveness {
            Liveness::Recorded(captured_at) if self.wants_live && !self.prints_json => {
                let text = format!("Not live: recorded from {}", local(captured_at));
                self.progress.say_error(&text);
                Ok(())
            }
            _ => self.tell("liveness", &object, &describe(&Event::Liveness(liveness))),
        }
    }

    /// Writes the segments of a stream that has no frames, if `error` says that it is one, and a file is to be written.
    async fn write_package(
        &mut self,
        node: &Node,
        error: anyhow::Error,
        stop: &mut Stop,
    ) -> anyhow::Result<()> {
        match (error.downcast_ref(), &self.film, self.signer) {
            (Some(IsPackage { name }), Some(film), Some(digest)) => {
                let written = package::Written {
                    name,
                    digest,
                    path: film,
                    rung: self.ending.rung(),
                    control: self.control,
                };
                self.stats.set_problem("stream", None);
                let recording = package::record(node, written, &mut self.progress, stop);
                self.stats.touch_while(recording).await?;
                self.ending.on_frame();
                Ok(())
            }
            _ => Err(error),
        }
    }

    fn tell(&mut self, kind: &str, object: &serde_json::Value, text: &str) -> anyhow::Result<()> {
        if self.prints_json {
            return print_line(json!({ kind: object }));
        }
        if !text.is_empty() {
            self.progress.say(text);
        }
        Ok(())
    }

    fn show(&mut self, stats: &Stats) -> anyhow::Result<()> {
        let Some(video) = &stats.video else {
            return Ok(());
        };
        if let (Some(rung), Some(picture)) = (&stats.rung, stats.picture)
            && self.picture.as_ref() != Some(&(rung.clone(), picture))
        {
            self.picture = Some((rung.clone(), picture));
            let object = json!({ "rung": rung, "why": picture });
            self.tell("picture", &object, &format!("Quality {rung}: {picture}"))?;
        }
        let allowed = stats.controller_rate_bps;
        let allowed = allowed.map_or_else(String::new, |rate| {
            format!(" of up to {} ({})", rate / 1_000, stats.controller)
        });
        let reorder = match stats.reorder_ms {
            none if none <= 0.0 => String::new(),
            reorder => format!(" ({reorder:.0} ms of it for B-frames)"),
        };
        self.progress.show(&format!(
            "{}  {} frames, latency {:.0} ms{reorder}, buffer {:.0} ms, RTT {}, queueing {:.0} ms, {}{allowed} kbit/s, lost {}, bad {}",
            stats.rung.as_deref().unwrap_or("-"),
            video.received,
            stats.latency.p50_ms,
            video.buffer_ms,
            stats
                .rtt_ms
                .map_or_else(|| "-".to_owned(), |rtt| format!("{rtt:.1} ms")),
            stats.path.queueing_ms,
            stats.throughput_bps / 1_000,
            video.lost,
            stats.verification_failures,
        ));
        Ok(())
    }

    /// Closes the recording. Returns how it ended: as `outcome` says, or else by what came.
    fn finish(mut self, outcome: anyhow::Result<()>, uplink: &Uplink) -> anyhow::Result<()> {
        if let Some(recorder) = &mut self.recorder {
            recorder.finish()?;
            let left_out = recorder.left_out;
            if left_out > 0 {
                let text =
                    format!("{left_out} frames were left out, as they were not taken in time");
                self.tell("recording", &json!(text), &text)?;
            }
        }
        outcome?;
        uplink.ensure_was_up()?;
        self.ending.finish(uplink.remote())?;
        match self.liveness {
            Liveness::Recorded(captured_at) if self.wants_live => {
                Err(NotLive(local(captured_at)).into())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The publisher is gone: nothing comes, or an archive goes on in its place.
    #[test]
    fn a_watcher_without_its_publisher_is_not_well() {
        let told = |state, liveness, wants_live| {
            let stats = Stats {
                name: "/cam".to_owned(),
                state,
                liveness,
                video: Some(Default::default()),
                ..Stats::default()
            };
            problem(&stats, wants_live).unwrap_or_default()
        };
        assert_eq!(told("playing", "live", true), "");
        assert_eq!(
            told("starved", "live", true),
            "no frames of /cam come: starved"
        );
        assert_eq!(
            told("playing", "recorded", true),
            "/cam is not live, but recorded"
        );
        let silent = "the publisher of /cam does not answer";
        assert_eq!(told("playing", "unconfirmed", true), silent);
        for liveness in ["recorded", "unconfirmed"] {
            assert_eq!(told("playing", liveness, false), "");
        }
    }
}
