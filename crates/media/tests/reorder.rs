//! Recordings of what x264 makes by default, of sound that begins late, and of publishers whose clock is set.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use namecast_apps::live::watcher::{Frame, Stages};
use namecast_media::hls::PLAYLIST;
use namecast_media::nut::{NutFrame, NutReader};
use namecast_media::record::Recorder;
use namecast_stream::{Catalogue, Rung, SampleRate, StreamInfo, StreamKind};
use namecast_units::{Bitrate, Duration, Instant, Timestamp};

const WALL: u64 = 1_800_000_000_000_000;
/// 25 pictures a second.
const PERIOD: u64 = 40_000;
/// Two pictures wait for others.
const DEPTH: u64 = 2;
/// P₄ is decoded as the second and shown as the fifth.
const MAX_OFFSET: u64 = 5;

fn catalogue(reorder_delay: u64) -> Catalogue {
    let only = StreamInfo::data("x", 25, 1_000);
    let rung = |codec_string: &str| Rung {
        codec_string: codec_string.to_owned(),
        ..only.rungs[0].clone()
    };
    let video = Rung {
        width: Some(320),
        height: Some(180),
        key_interval: 25,
        reorder_delay,
        ..rung("avc1.64000C")
    };
    let audio = Rung {
        rate: SampleRate::new(50, 1),
        sample_rate: Some(48_000),
        channels: Some(1),
        bitrate: Bitrate::kbps(64),
        ..rung("opus")
    };
    let stream = |name: &str, kind, codec: &str, rung| StreamInfo {
        name: name.to_owned(),
        kind,
        codec: codec.to_owned(),
        rungs: vec![rung],
        ..only.clone()
    };
    Catalogue {
        version: 1,
        starts: Default::default(),
        title: None,
        streams: vec![
            stream("video", StreamKind::Video, "h264", video),
            stream("audio", StreamKind::Audio, "opus", audio),
        ],
        signer: String::new(),
    }
}

/// Returns `seconds` of ffmpeg's test picture and a tone, in decoding order.
fn film(seconds: &str, x264: &str) -> Vec<NutFrame> {
    let line = "-v error -f lavfi -i testsrc2=size=320x180:rate=25 -f lavfi -i sine=sample_rate=48000 \
                -pix_fmt yuv420p -c:v libx264 -g 25 -bsf:v dump_extra=freq=keyframe -c:a libopus -ac 1";
    let mut command = Command::new("ffmpeg");
    command.args(line.split_whitespace());
    command.args(x264.split_whitespace());
    command.args(["-t", seconds, "-f", "nut", "pipe:1"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut reader = NutReader::default();
    reader.push(&output.stdout);
    core::iter::from_fn(|| reader.frame().unwrap()).collect()
}

/// Frames as a watcher delivers them: pictures are decoded a period apart and shown two periods after they could be; sound begins
/// `sound_after` microseconds after them.
fn watched(film: &[NutFrame], sound_after: u64) -> Vec<Frame> {
    let mut decoded = 0;
    let frames = film.iter().map(|packet| {
        let is_picture = packet.stream == 0;
        let presented = packet.time.ticks(1_000_000) + DEPTH * PERIOD;
        let (at, offset) = match is_picture {
            true => (decoded * PERIOD, presented - decoded * PERIOD),
            false => (presented + sound_after, 0),
        };
        let position = decoded;
        decoded += u64::from(is_picture);
        Frame {
            stream: if is_picture {
                StreamKind::Video
            } else {
                StreamKind::Audio
            },
            name: "one".into(),
            rung: "only".to_owned(),
            position,
            key: packet.key,
            payload: packet.payload.clone(),
            captured_at: Timestamp::from_micros(WALL + at),
            composition_offset: Duration::from_micros(offset),
            render_at: Instant::ZERO + Duration::from_micros(1_000_000 + at + offset),
            complete_at: Instant::ZERO,
            late: false,
            catching_up: false,
            decode_only: false,
            stages: Stages::default(),
        }
    });
    let mut frames: Vec<_> = frames.collect();
    frames.sort_by_key(|frame| frame.captured_at);
    frames
}

fn record(frames: &[Frame], output: &str) {
    let mut recorder = Recorder::new(output.parse().unwrap(), true);
    recorder.open(&catalogue(MAX_OFFSET * PERIOD)).unwrap();
    for frame in frames {
        recorder.write(frame).unwrap();
    }
    recorder.finish().unwrap();
    assert_eq!(recorder.left_out, 0, "the queue has room");
}

/// Times of a stream's packets in the file, in the order of the file: `pts` or `dts`.
fn times(file: &Path, stream: &str, field: &str) -> Vec<f64> {
    let entries = format!("packet={field}_time");
    let arguments = ["-v", "error", "-select_streams", stream, "-show_entries"];
    let output = Command::new("ffprobe")
        .args(arguments)
        .args([&entries, "-of", "default=nokey=1:noprint_wrappers=1"])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The times of all pictures are those of the film, in presentation order, and decoding times rise.
fn has_all_pictures(frames: &[Frame], file: &Path) {
    let pictures = frames.iter().filter(|it| it.stream == StreamKind::Video);
    let mut expected: Vec<_> = pictures
        .map(|it| it.presented_at().as_micros() - WALL)
        .collect();
    expected.sort_unstable();
    let mut found = times(file, "v", "pts");
    found.sort_by(f64::total_cmp);
    assert_eq!(found.len(), expected.len(), "{file:?}");
    for (found_at, expected_at) in found.iter().zip(&expected) {
        let after = (expected_at - expected[0]) as f64 / 1e6;
        let off = found_at - found[0] - after;
        assert!(off.abs() < 0.002, "{file:?}: {after} is off by {off}");
    }
    let decoded = times(file, "v", "dts");
    assert!(
        decoded.windows(2).all(|pair| pair[1] > pair[0]),
        "{file:?}: {decoded:?}"
    );
    // Sound began with the pictures.
    let sound = times(file, "a", "pts")[0];
    assert!(
        (sound - found[0]).abs() < 0.045,
        "{file:?}: {sound}, {}",
        found[0]
    );
}

#[test]
fn reordered_pictures_keep_their_times_in_every_container() {
    are_recorded_everywhere(&watched(&film("2.4", ""), 0));
}

#[test]
fn open_groups_keep_their_times_in_every_container() {
    let open = "-x264-params open-gop=1:min-keyint=25:scenecut=0";
    are_recorded_everywhere(&watched(&film("2.4", open), 0));
}

fn are_recorded_everywhere(frames: &[Frame]) {
    let reordered = frames
        .iter()
        .filter(|it| it.composition_offset.as_micros() > 0);
    assert!(reordered.count() > 30, "x264 makes B-frames by default");
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    std::thread::scope(|scope| {
        for name in ["film.mp4", "film.mkv", "film.ts", "film.flv", "film.nut"] {
            scope.spawn(move || {
                let file = directory.join(name);
                record(frames, file.to_str().unwrap());
                has_all_pictures(frames, &file);
            });
        }
        scope.spawn(move || {
            let live = directory.join("live");
            record(frames, &format!("hls:{}", live.display()));
            has_all_pictures(frames, &live.join(PLAYLIST));
        });
    });
}

/// Sound that begins 5 s after the pictures is there, at its time.
fn late_sound_is_recorded(film: &[NutFrame], file: &Path) {
    let mut frames = watched(film, 5_000_000);
    frames.retain(|it| {
        it.stream == StreamKind::Video || it.captured_at.as_micros() < WALL + 6_200_000
    });
    record(&frames, file.to_str().unwrap());
    let pictures = times(file, "v", "pts");
    let sound = times(file, "a", "pts");
    let first = pictures.iter().copied().fold(f64::INFINITY, f64::min);
    let begins = sound.iter().copied().find(|at| at - first > 1.0).unwrap();
    assert!(
        (begins - first - 5.0).abs() < 0.045,
        "{file:?}: {begins} {first}"
    );
    assert!(sound.last().unwrap() - first > 5.8, "{file:?}");
    let count = frames
        .iter()
        .filter(|it| it.stream == StreamKind::Video)
        .count();
    assert_eq!(pictures.len(), count, "{file:?}");
}

#[test]
fn sound_that_begins_late_is_recorded() {
    let film = film("6.2", "");
    let directory = tempfile::tempdir().unwrap();
    let (film, directory) = (&film, directory.path());
    std::thread::scope(|scope| {
        for name in ["film.mp4", "film.mkv", "film.ts"] {
            scope.spawn(move || late_sound_is_recorded(film, &directory.join(name)));
        }
    });
}

/// Set back by half an hour in mid-stream, in another moment forward by three seconds.
#[test]
fn a_publisher_whose_clock_is_set_is_recorded_evenly() {
    let film = film("2.4", "-bf 0");
    let even = watched(&film, 0);
    let directory = tempfile::tempdir().unwrap();
    let set: Vec<_> = even
        .iter()
        .map(|frame| {
            let micros = frame.captured_at.as_micros();
            let set_at = micros - WALL;
            let by = match set_at {
                0..1_000_000 => 0,
                1_000_000..1_700_000 => -1_800_000_000,
                _ => -1_797_000_000,
            };
            Frame {
                captured_at: Timestamp::from_micros(micros.saturating_add_signed(by)),
                payload: Bytes::clone(&frame.payload),
                ..frame.clone()
            }
        })
        .collect();
    let file = directory.path().join("film.mkv");
    record(&set, file.to_str().unwrap());
    has_all_pictures(&even, &file);
}
