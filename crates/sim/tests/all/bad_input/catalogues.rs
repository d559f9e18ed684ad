//! Catalogues that change under way, and malformed ones.

use namecast_apps::live::watcher::{Event, RejoinReason, RungChoice, WatcherConfig};
use namecast_packet::Data;
use namecast_sim::live::{LivePublisher, LiveWatcherConfig, Media, MediaRung};
use namecast_sim::{ApplicationId, Now};
use namecast_stream::{Metadata, StreamKind};
use namecast_units::{Bitrate, Duration};

use crate::bad_input::stage::{LOSSES, Stage, viewer};
use crate::bad_input::studio::{Changed, right_key};
use crate::live_world::{ms, root};

/// Without a picture when a publisher starts again: it refuses the samples of the one before it, 0.1 s for the probe, and up to
/// 0.1 s for the key frame, less what is in the buffer.
const GAP: Duration = ms(250);

fn two_rungs() -> Media {
    Media {
        rungs: vec![
            MediaRung::new("1M", Bitrate::mbps(1)),
            MediaRung::new("3M", Bitrate::mbps(3)),
        ],
        ..Media::video()
    }
}

/// The publisher is started again with other streams at 10.4 s and, if said, with yet others at 15.4 s.
fn changed(
    loss: f64,
    config: LiveWatcherConfig,
    media: Vec<Media>,
    then: [Option<Vec<Media>>; 2],
) -> (Stage, ApplicationId) {
    let mut stage = Stage::new(loss, config);
    let publisher = stage.world.publish("P", media);
    for (at, media) in [ms(10_400), ms(15_400)].into_iter().zip(then) {
        if let Some(media) = media {
            let restart = move |publisher: &mut LivePublisher, now: Now| {
                publisher.restart_with(now, media);
            };
            stage.world.with_publisher(at, publisher, restart);
        }
    }
    stage.run_until(ms(25_000));
    (stage, publisher)
}

/// The rung that is watched disappears, and comes back.
#[test]
fn a_rung_that_disappears_is_left_for_another() {
    for loss in LOSSES {
        let then = [Some(vec![Media::video()]), Some(vec![two_rungs()])];
        let config = viewer();
        let config = LiveWatcherConfig {
            watcher: WatcherConfig {
                rung: RungChoice::Label("3M".to_owned()),
                ..config.watcher
            },
            ..config
        };
        let (stage, _) = changed(loss, config, vec![two_rungs()], then);
        let rungs = |from, to| {
            let shown = stage.shown(ms(from)..ms(to));
            shown
                .iter()
                .map(|r| r.rung.clone())
                .collect::<std::collections::BTreeSet<_>>()
        };
        for at in [ms(10_400), ms(15_400)] {
            let gap = stage.longest_gap(at - ms(1_000)..at + ms(3_000));
            assert!(gap <= GAP + stage.slack(), "{gap:?}");
        }
        assert_eq!(rungs(2_000, 10_400), ["3M".to_owned()].into());
        assert_eq!(rungs(12_000, 15_400), ["1M".to_owned()].into());
        assert_eq!(rungs(17_000, 24_500), ["3M".to_owned()].into());
        assert_eq!(stage.rejoined(RejoinReason::NewCatalogue).len(), 2);
        stage.assert_steady(ms(12_000)..ms(15_500));
        stage.assert_steady(ms(17_000)..ms(24_500));
        stage.assert_decodable();
    }
}

/// The video disappears and comes back. The watcher says so, and takes it up again.
#[test]
fn a_stream_that_comes_back_is_taken_up_again() {
    for loss in LOSSES {
        for left in [vec![Media::audio()], vec![]] {
            let count = left.len();
            let then = [Some(left), Some(vec![Media::video(), Media::audio()])];
            let media = vec![Media::video(), Media::audio()];
            let (stage, _) = changed(loss, viewer(), media, then);
            let gone = Event::NoSuchStream {
                stream: StreamKind::Video,
            };
            let told = stage.events(|event| *event == gone);
            assert!(
                matches!(told[..], [at] if at <= ms(11_100) + stage.slack()),
                "{told:?}"
            );
            // It is found by the probe of every 2 s, if nothing else is watched.
            let gap = stage.longest_gap(ms(15_400)..ms(24_500));
            assert!(gap <= ms(2_600) + stage.slack(), "{count} {gap:?}");
            assert_eq!(stage.stats().rejoins, 2);
            stage.assert_steady(ms(18_000)..ms(24_500));
            stage.assert_decodable();
        }
    }
}

/// Another segment size, another parity, another rate of frames.
#[test]
fn other_segments_are_taken_as_they_come() {
    for loss in LOSSES {
        let change = |segment_size, parity_percent| Media {
            segment_size,
            parity_percent,
            ..Media::video()
        };
        for media in [
            change(8_000, 20),
            change(256, 20),
            change(1_000, 0),
            change(1_000, 100),
        ] {
            let (stage, _) = changed(
                loss,
                viewer(),
                vec![Media::video()],
                [Some(vec![media.clone()]), None],
            );
            let gap = stage.longest_gap(ms(9_000)..ms(14_000));
            assert!(gap <= GAP + stage.slack(), "{gap:?}");
            stage.assert_steady(ms(13_000)..ms(24_500));
            assert_eq!(stage.stats().rejoins, 1);
            stage.assert_decodable();
        }
    }
}

/// From 10 s to 15 s, metadata names a catalogue that nobody can read, signed by the right key.
#[test]
fn a_malformed_catalogue_is_refused_and_named() {
    for loss in LOSSES {
        for content in [
            "{",
            "{}",
            "[]",
            "null",
            r#"{"version":1,"streams":[{}],"signer":""}"#,
        ] {
            let mut stage = Stage::new(loss, viewer());
            let config = namecast_sim::live::LivePublisherConfig::new(root(), vec![Media::video()]);
            let publisher = LivePublisher::new(config);
            let key = right_key();
            let change = move |now: Now, data: &Data| {
                let bad = ms(10_000)..ms(15_000);
                let metadata = data.content().and_then(|c| Metadata::decode(&c).ok());
                let at = now.monotonic.since(namecast_units::Instant::ZERO);
                match metadata.filter(|_| bad.contains(&at)) {
                    Some(metadata) => {
                        let bad = Metadata {
                            catalogue_name: "/demo/catalogue/v=77".parse().unwrap(),
                            catalogue: Some(content.into()),
                            ..metadata
                        };
                        let builder = Data::builder(data.name().clone());
                        let builder = builder.freshness(Duration::from_millis(10));
                        vec![builder.content(bad.encode()).sign(&key)]
                    }
                    None => vec![data.clone()],
                }
            };
            stage.produce(Changed::new(publisher, change));
            stage.run_until(ms(20_000));
            let told = stage.events(|event| matches!(event, Event::BadCatalogue(_)));
            stage.assert_steady(ms(2_000)..ms(19_500));
            assert_eq!(stage.stats().rejoins, 0);
            // Not at each probe.
            assert_eq!(told.len(), 1, "{told:?}");
            let taken = stage.events(|event| matches!(event, Event::Catalogue { .. }));
            assert_eq!(taken.len(), 1);
        }
    }
}
