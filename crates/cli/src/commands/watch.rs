//! `namecast watch`: what is published under a name, to a file, a pipe or nowhere.

use anyhow::bail;
use namecast_apps::live::watcher::{Pin, RungChoice, Trust};
use namecast_apps::live::{Stats, Watcher, WatcherConfig};
use namecast_net::{Clock, LinkState, Node, NodeConfig};
use namecast_packet::Name;
use namecast_stream::ladder::LadderConfig;
use namecast_stream::path::Control;
use namecast_stream::rate::RateControl;
use namecast_units::ByteSize;
use serde_json::json;

use super::publish::describe_link;
use super::{FIGURES_INTERVAL, Stop};
use crate::arguments::Watch;
use crate::ingest::ladder::parse_bitrate;
use crate::page_server::hex;
use crate::pump::{self, Watched, WatcherPump};
use crate::record::Recorder;
use crate::report::{ProgressLine, StatsFile};

/// What the node keeps: enough for what was asked for and came too late.
const CACHE: ByteSize = ByteSize::mebibytes(1);

/// Runs until interrupted, or the time is over, or whoever reads the output has left.
pub(super) async fn run(arguments: Watch) -> anyhow::Result<()> {
    let config = watcher_config(&arguments)?;
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
        progress: ProgressLine::new(!run.quiet && !run.json),
        prints_json: run.json && !run.quiet,
        audio: !no_audio,
        is_open: true,
        picture: None,
    };
    let node = Node::start(NodeConfig::caching(CACHE));
    let face = node.connect(connect.connect.clone()).await?;
    node.add_route(name, face, 0).await?;
    let mut link = node.link_state(face).await?;
    let application = node.application_face_with_local_fields().await?;
    let (pump, mut heard) = WatcherPump::start(node.clock(), application, Watcher::new(config));
    let remote = connect.connect.to_string();
    let mut tick = tokio::time::interval(FIGURES_INTERVAL);
    while session.is_open {
        tokio::select! {
            watched = heard.recv() => match watched {
                Some(watched) => session.hear(watched)?,
                None => break,
            },
            _ = tick.tick() => {
                if let Some(figures) = pump.stats().await {
                    stats.write(&figures, false)?;
                    session.show(&figures);
                }
            }
            Ok(()) = link.changed() => {
                let state = link.borrow_and_update().clone();
                session.progress.say_once(&describe_link(&state, &remote));
                if matches!(state, LinkState::Up) {
                    pump.link_changed().await;
                }
            }
            () = stop.wait() => break,
        }
    }
    if let Some(figures) = pump.stats().await {
        stats.write(&figures, true)?;
        if session.prints_json {
            println!("{}", json!({ "final": true, "stats": figures }));
        }
    }
    drop((pump, heard));
    let finished = session.finish();
    node.shutdown().await;
    finished
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
    config.wall_at_zero = pump::wall_at_zero(clock);
    // Nonces only have to differ from those of other watchers.
    config.seed = clock.wall().as_micros() ^ u64::from(std::process::id()) << 40;
    if let Some(key) = &arguments.key {
        config.trust = Trust::Pinned(parse_pin(key)?);
    }
    Ok(config)
}

/// A controller's name, or a bitrate alone, which is `rate:` with it.
fn parse_controller(text: &str) -> anyhow::Result<Control> {
    match parse_bitrate(text) {
        Some(rate) => Ok(Control::Rate(RateControl::Rate { rate })),
        None => Ok(text.parse()?),
    }
}

/// A key's digest in hexadecimal, or its name.
pub(super) fn parse_pin(text: &str) -> anyhow::Result<Pin> {
    if text.starts_with('/') {
        return Ok(Pin::Name(text.parse::<Name>()?));
    }
    let mut digest = [0; 32];
    let is_digest = text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !is_digest {
        bail!(
            "'{text}' is no key: write the 64 hexadecimal digits that the publisher prints, or the key's name"
        );
    }
    for (octet, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        *octet = u8::from_str_radix(core::str::from_utf8(pair)?, 16)?;
    }
    Ok(Pin::Digest(digest))
}

/// What the command does with what the watcher says.
struct Session {
    recorder: Option<Recorder>,
    progress: ProgressLine,
    prints_json: bool,
    audio: bool,
    is_open: bool,
    /// The rung that was told last, and why it is that.
    picture: Option<(String, &'static str)>,
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
                if let Some(recorder) = &mut self.recorder {
                    recorder.open(&catalogue, self.audio)?;
                }
                self.tell("catalogue", &json!(catalogue), "");
            }
            Watched::Signer(signer) => {
                let digest = hex(&signer.key_digest);
                let text = format!(
                    "signed by {} ({}), key {}…",
                    signer.key_name,
                    signer.verdict,
                    &digest[..16]
                );
                self.tell("signer", &json!({
                    "key_name": signer.key_name.to_string(), "key_digest": digest, "verdict": signer.verdict.to_string(),
                }), &text);
            }
            Watched::Event(event) => {
                let text = event.to_string();
                self.tell("event", &json!(text), &text);
            }
            Watched::Discontinuity(_) => {}
        }
        Ok(())
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
        match &mut self.recorder {
            Some(recorder) => recorder.finish(),
            None => Ok(()),
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

    #[test]
    fn keys_are_digests_or_names() {
        let digest = "00ff".repeat(16);
        let Ok(Pin::Digest(octets)) = parse_pin(&digest) else {
            panic!("64 digits");
        };
        assert_eq!(octets[..4], [0, 255, 0, 255]);
        assert!(matches!(parse_pin("/demo/KEY/1"), Ok(Pin::Name(_))));
        assert!(
            parse_pin("12")
                .unwrap_err()
                .to_string()
                .contains("64 hexadecimal")
        );
        assert!(parse_pin(&"é".repeat(32)).is_err());
    }
}
