//! `namecast watch`: what is published under a name, to a file, a pipe or nowhere.

mod arguments;

use namecast::drive;
use namecast_apps::live::watcher::{Event, Liveness, RungChoice, Signer, Verdict, Watched};
use namecast_apps::live::{Player, Stats, Watcher, WatcherConfig};
use namecast_command::Stop;
use namecast_command::report::{ProgressLine, StatsFile, calendar};
use namecast_media::record::Recorder;
use namecast_net::{Clock, LinkState, Node, NodeConfig};
use namecast_stream::ladder::LadderConfig;
use namecast_stream::path::Control;
use namecast_stream::rate::RateControl;
use namecast_units::{ByteSize, Timestamp};
use serde_json::json;

pub(super) use arguments::Watch;

use super::FIGURES_INTERVAL;
use super::publish::describe_link;
use crate::connect::Chosen;
use crate::key_check::KeyCheck;
use crate::page_server::hex;

/// What the node keeps: enough for what was asked for and came too late.
const CACHE: ByteSize = ByteSize::mebibytes(1);

/// Runs until interrupted, or the time is over, or whoever reads the output has left.
pub(super) async fn run(arguments: Watch) -> anyhow::Result<()> {
    let mut config = watcher_config(&arguments)?;
    let keys = KeyCheck::new(arguments.name.clone(), &arguments.trusted)?;
    config.trust = keys.trust();
    let Watch {
        name,
        output,
        no_audio,
        connect,
        run,
        ..
    } = arguments;
    let mut stop = Stop::new(run.duration)?;
    let mut stats = StatsFile::create(run.stats.as_deref())?;
    let mut session = Session {
        recorder: output.map(Recorder::new),
        keys,
        progress: ProgressLine::new(!run.quiet && !run.json),
        prints_json: run.json && !run.quiet,
        audio: !no_audio,
        is_open: true,
        picture: None,
        wants_live: arguments.from.is_none(),
        liveness: Liveness::default(),
    };
    let node = Node::start(NodeConfig::caching(CACHE));
    let Chosen { uri, face } = connect.keep(&node).await?;
    node.add_route(name, face, 0).await?;
    let mut link = node.link_state(face).await?;
    let application = node.application_face_with_local_fields().await?;
    let player = Player::new(Watcher::new(config));
    let (player, mut heard) = drive(node.clock(), application, player).spawn(|| {});
    let remote = uri.to_string();
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    while session.is_open {
        tokio::select! {
            watched = heard.recv() => match watched {
                Some(watched) => session.hear(watched)?,
                None => break,
            },
            _ = tick.tick() => {
                if let Some(figures) = player.call(Player::stats).await {
                    stats.write(&figures, false)?;
                    session.show(&figures);
                }
            }
            Ok(()) = link.changed() => {
                let state = link.borrow_and_update().clone();
                session.progress.say_once(&describe_link(&state, &remote));
                if matches!(state, LinkState::Up) {
                    player.try_call(Player::handle_link_change);
                }
            }
            () = stop.wait() => break,
        }
    }
    if let Some(figures) = player.call(Player::stats).await {
        stats.write(&figures, true)?;
        if session.prints_json {
            println!("{}", json!({ "final": true, "stats": figures }));
        }
    }
    drop((player, heard));
    let finished = session.finish();
    node.shutdown().await;
    finished
}

/// Live was wanted, and a recording came.
#[derive(Debug, thiserror::Error)]
#[error(
    "what came last was not live, but recorded from {0}: to watch the past, say from when with --from"
)]
pub struct NotLive(String);

/// A time as people read it.
fn utc(time: Timestamp) -> String {
    calendar(time).format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn watcher_config(arguments: &Watch) -> anyhow::Result<WatcherConfig> {
    let clock = Clock::new();
    let mut config = WatcherConfig::new(arguments.name.clone());
    config.audio = !arguments.no_audio;
    config.target = arguments.target;
    config.from = arguments.from.map(|from| from.resolve(clock.wall()));
    config.rung = RungChoice::from(arguments.rung.as_str());
    config.control = parse_controller(&arguments.controller)?;
    if let (Some(_), LadderConfig::Live(ladder)) = (&arguments.output, &mut config.ladder) {
        // A file cannot take frames twice.
        ladder.catches_up = false;
    }
    config.wall_at_zero = clock.wall_at_zero();
    // Whoever could foresee Nonces and challenges could have them answered beforehand.
    config.seed = u64::from_le_bytes(namecast_net::random());
    Ok(config)
}

/// A controller's name, or a bitrate alone, which is `rate:` with it.
fn parse_controller(text: &str) -> anyhow::Result<Control> {
    match text.parse() {
        Ok(rate) => Ok(Control::Rate(RateControl::Rate { rate })),
        Err(_) => Ok(text.parse()?),
    }
}

/// What the command does with what the watcher says.
struct Session {
    recorder: Option<Recorder>,
    keys: KeyCheck,
    progress: ProgressLine,
    prints_json: bool,
    audio: bool,
    is_open: bool,
    /// The rung that was told last, and why it is that.
    picture: Option<(String, &'static str)>,
    wants_live: bool,
    /// Whether what is shown is live, as told last.
    liveness: Liveness,
}

impl Session {
    fn hear(&mut self, watched: Watched) -> anyhow::Result<()> {
        match watched {
            Watched::Frame(frame) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.write(&frame)?;
                    self.is_open = recorder.is_open();
                }
            }
            Watched::Catalogue(catalogue) => {
                // It is told only once it is verified.
                if let Some(text) = self.keys.on_verified()? {
                    self.tell("remembered", &json!(text), &text);
                }
                if let Some(recorder) = &mut self.recorder {
                    recorder.open(&catalogue, self.audio)?;
                }
                self.tell("catalogue", &json!(catalogue), "");
            }
            Watched::Signer(signer) => self.hear_signer(&signer),
            Watched::Event(Event::Liveness(liveness)) => self.hear_liveness(liveness),
            Watched::Event(event) => {
                let text = event.to_string();
                self.tell("event", &json!(text), &text);
            }
            Watched::Discontinuity { .. } => {}
        }
        Ok(())
    }

    /// Whoever is refused is named to those too who want to hear of errors only.
    fn hear_signer(&mut self, signer: &Signer) {
        let text = self.keys.on_signer(signer);
        let object = json!({
            "key_name": signer.key_name.to_string(),
            "key_digest": hex(&signer.key_digest),
            "verdict": signer.verdict.to_string(),
            "remembered_since": self.keys.remembered_since(),
            "text": text,
        });
        match signer.verdict {
            Verdict::Refused(_) if !self.prints_json => self.progress.say_error(&text),
            _ => self.tell("signer", &object, &text),
        }
    }

    /// That it is not live is said to those too who want to hear of errors only, unless they wanted the past.
    fn hear_liveness(&mut self, liveness: Liveness) {
        self.liveness = liveness;
        let object = json!(liveness.word());
        match liveness {
            Liveness::Recorded(captured_at) if self.wants_live && !self.prints_json => {
                let text = format!("Not live: recorded from {}", utc(captured_at));
                self.progress.say_error(&text);
            }
            _ => self.tell("liveness", &object, &Event::Liveness(liveness).to_string()),
        }
    }

    fn tell(&mut self, kind: &str, object: &serde_json::Value, text: &str) {
        if self.prints_json {
            println!("{}", json!({ kind: object }));
        } else if !text.is_empty() {
            self.progress.say(text);
        }
    }

    fn show(&mut self, stats: &Stats) {
        let Some(video) = &stats.video else {
            return;
        };
        if let (Some(rung), Some(picture)) = (&stats.rung, stats.picture)
            && self.picture.as_ref() != Some(&(rung.clone(), picture))
        {
            self.picture = Some((rung.clone(), picture));
            let object = json!({ "rung": rung, "why": picture });
            self.tell("picture", &object, &format!("Quality {rung}: {picture}"));
        }
        let allowed = stats.controller_rate_bps;
        let allowed = allowed.map_or_else(String::new, |rate| {
            format!(" of up to {} ({})", rate / 1_000, stats.controller)
        });
        self.progress.show(&format!(
            "{}  {} frames, latency {:.0} ms, buffer {:.0} ms, RTT {}, queueing {:.0} ms, {}{allowed} kbit/s, lost {}, bad {}",
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
    }

    fn finish(mut self) -> anyhow::Result<()> {
        if let Some(recorder) = &mut self.recorder {
            recorder.finish()?;
        }
        match self.liveness {
            Liveness::Recorded(captured_at) if self.wants_live => {
                Err(NotLive(utc(captured_at)).into())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_have_names_and_a_bitrate_is_one() {
        let rate = namecast_units::Bitrate::mbps(5);
        for text in ["5M", "rate:5M"] {
            let control = Control::Rate(RateControl::Rate { rate });
            assert_eq!(parse_controller(text).unwrap(), control);
        }
        assert_eq!(parse_controller("live").unwrap(), Control::Live);
        assert!(parse_controller("unlimited").is_err());
        let error = parse_controller("fast").unwrap_err().to_string();
        assert!(error.contains("'fast' is no controller: write one of arc, "));
    }
}
