//! Live HLS with the machine's ffmpeg, of frames that its encoders made.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_media::ingest::{Ingest, IngestConfig, MediaEvent};
use namecast_media::package::{Change, Packager};
use namecast_media::streams::{Cutting, describe};
use namecast_units::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
const SEGMENT: Duration = Duration::from_secs(1);

/// The numbers of the segments that a playlist lists.
fn listed(playlist: &Bytes) -> Vec<u64> {
    let text = String::from_utf8_lossy(playlist).into_owned();
    let numbers = text.lines().filter_map(|line| line.strip_prefix("seq="));
    numbers.map(|number| number.parse().unwrap()).collect()
}

/// Segments of all rungs begin at once, so numbers and times (`tfdt`) agree.
#[tokio::test(flavor = "multi_thread")]
async fn rungs_are_cut_alike() {
    let mut config = IngestConfig::default();
    config.video.ladder = "200k@320x180,300k@480x270".parse().unwrap();
    let cutting = Cutting {
        segment_size: 1_000,
        parity_percent: 0,
    };
    let streams = describe(Some(&config.video), config.audio.as_ref(), cutting);
    let mut packager = Packager::new(&streams, SEGMENT).unwrap();
    let mut ingest = Ingest::start(&config).unwrap();
    let mut files: BTreeMap<String, Bytes> = BTreeMap::new();
    let enough = |files: &BTreeMap<String, Bytes>| {
        let has_two = |rung: &str| {
            let playlist = files.get(&format!("{rung}/index.m3u8"));
            playlist.is_some_and(|playlist| listed(playlist).len() >= 2)
        };
        files.contains_key("index.m3u8") && has_two("200k") && has_two("300k")
    };
    while !enough(&files) {
        let event = tokio::time::timeout(TIMEOUT, ingest.next()).await.unwrap();
        if let Some(MediaEvent::Frame(frame)) = event {
            packager.write(&frame).unwrap();
        }
        for change in packager.changes() {
            if let Change::Put(path, content) = change {
                files.insert(path, content);
            }
        }
    }
    let first = listed(&files["200k/index.m3u8"])[0];
    assert_eq!(listed(&files["300k/index.m3u8"])[0], first);
    let times = ["200k", "300k"].map(|rung| {
        assert!(files.contains_key(&format!("{rung}/init-1.mp4")));
        let segment = &files[&format!("{rung}/seq={first}")];
        let at = segment.windows(4).position(|it| it == b"tfdt").unwrap();
        segment.slice(at..at + 16)
    });
    assert_eq!(times[0], times[1]);
}
