//! Ingest with the machine's ffmpeg. One test, as it looks for this process's children.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use namecast_media::ingest::clip;
use namecast_media::ingest::codec::VideoCodec;
use namecast_media::ingest::source::Input;
use namecast_media::ingest::{
    Ingest, IngestConfig, IngestError, MediaEvent, MediaFrame, StreamKind, VideoConfig,
};
use namecast_units::Duration;

/// No step takes this long, however loaded the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

fn config(input: Input, ladder: &str, codec: VideoCodec) -> IngestConfig {
    IngestConfig {
        input,
        video: VideoConfig {
            ladder: ladder.parse().unwrap(),
            codec,
            ..VideoConfig::default()
        },
        ..IngestConfig::default()
    }
}

async fn next(ingest: &mut Ingest) -> Option<MediaEvent> {
    tokio::time::timeout(PATIENCE, ingest.next())
        .await
        .expect("ingest hangs")
}

async fn next_frame(ingest: &mut Ingest) -> MediaFrame {
    loop {
        match next(ingest).await.expect("ingest goes on") {
            MediaEvent::Frame(frame) => return frame,
            MediaEvent::Trouble(_) => {}
            MediaEvent::Ended { error, .. } => panic!("ended: {error:?}"),
        }
    }
}

/// Processes that this one started.
fn children() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
    };
    let all: String = tasks.map(of_task).collect();
    all.split_whitespace().map(str::to_owned).collect()
}

/// A film of one second, 25 frames a second, with or without pictures.
fn make_film(path: &Path, pictures: bool) {
    let mut command = Command::new("ffmpeg");
    command.args(["-loglevel", "error", "-f", "lavfi", "-i", "sine=duration=1"]);
    if pictures {
        command.args([
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=400x300:rate=25:duration=1",
        ]);
    }
    assert!(command.arg(path).status().unwrap().success());
}

/// Keys are aligned over the rungs, each stands alone, and its parameters are those that the catalogue promises.
async fn rungs_are_aligned() {
    let config = config(Input::Test, "200k,500k", VideoCodec::H264);
    let mut ingest = Ingest::start(&config).unwrap();
    let mut frames: BTreeMap<usize, Vec<MediaFrame>> = BTreeMap::new();
    let mut sounds = Vec::new();
    while frames.get(&1).is_none_or(|frames| frames.len() < 65) {
        let frame = next_frame(&mut ingest).await;
        match frame.stream {
            StreamKind::Video => frames.entry(frame.rung).or_default().push(frame),
            StreamKind::Audio => sounds.push(frame),
        }
    }
    for (rung, frames) in &frames {
        for (index, frame) in frames.iter().enumerate() {
            assert_eq!(frame.position, index as u64, "rung {rung}");
            assert_eq!(
                frame.key,
                index.is_multiple_of(30),
                "rung {rung}, frame {index}"
            );
            assert!(frame.encoded_at >= frame.captured_at);
            if frame.key {
                // A start code, then a sequence parameter set: type 7, profile, constraints, level.
                let set = frame
                    .payload
                    .windows(5)
                    .position(|octets| octets == [0, 0, 0, 1, 0x67]);
                let set = set.expect("a key frame carries its parameters") + 5;
                let promised = config.video.ladder.rungs()[*rung].size;
                let promised = VideoCodec::H264.codec_string(promised, 30);
                let profile = &frame.payload[set..set + 3];
                let found = format!(
                    "avc1.{:02X}{:02X}{:02X}",
                    profile[0], profile[1], profile[2]
                );
                assert_eq!(found, promised);
            }
        }
    }
    for (index, sound) in sounds.iter().enumerate() {
        assert_eq!((sound.position, sound.key), (index as u64, true));
    }
    // Two thirds of what the frames' time has: encoders may lag behind on a loaded machine.
    assert!(
        sounds.len() > 65 * 50 / 30 * 2 / 3,
        "{} sound packets",
        sounds.len()
    );
}

/// Encoders that are killed are started again, and go on with key frames at later positions.
async fn killed_encoders_come_back() {
    let config = config(Input::Test, "200k", VideoCodec::H264);
    let mut ingest = Ingest::start(&config).unwrap();
    let before = next_frame(&mut ingest).await;
    for child in children() {
        assert!(
            Command::new("kill")
                .args(["-9", &child])
                .status()
                .unwrap()
                .success()
        );
    }
    let (mut troubles, mut after) = (0, None);
    while after.is_none() || troubles < 2 {
        match next(&mut ingest).await.expect("ingest goes on") {
            MediaEvent::Frame(frame) if frame.stream == StreamKind::Video && troubles > 0 => {
                after.get_or_insert(frame);
            }
            MediaEvent::Trouble(text) => {
                assert!(text.contains("starting it again"), "{text}");
                troubles += 1;
            }
            MediaEvent::Frame(_) => {}
            MediaEvent::Ended { error, .. } => panic!("ended: {error:?}"),
        }
    }
    let after = after.unwrap();
    assert!(after.key, "a new encoder starts with a key frame");
    assert!(after.position > before.position);
}

/// One second at 25 frames a second becomes 30 frames, and 50 sound packets and what the encoder flushes; the stretch
/// between the two is within a packet.
async fn files_play_to_their_end(directory: &Path) {
    let film = directory.join("film.mp4");
    make_film(&film, true);
    let mut ingest = Ingest::start(&config(Input::File(film), "200k", VideoCodec::H264)).unwrap();
    let (mut pictures, mut sounds, mut ends) = (0, 0, 0);
    while ends < 2 {
        match next(&mut ingest)
            .await
            .expect("both tracks say that they end")
        {
            MediaEvent::Frame(frame) if frame.stream == StreamKind::Video => pictures += 1,
            MediaEvent::Frame(_) => sounds += 1,
            MediaEvent::Ended { error, .. } => {
                assert!(error.is_none(), "{error:?}");
                ends += 1;
            }
            MediaEvent::Trouble(text) => panic!("{text}"),
        }
    }
    assert!((29..=31).contains(&pictures), "{pictures} frames");
    assert!((48..=53).contains(&sounds), "{sounds} packets");
}

async fn other_codecs_come_the_same_way() {
    for codec in [VideoCodec::Vp8, VideoCodec::Vp9, VideoCodec::Av1] {
        let mut config = config(Input::Test, "200k", codec);
        config.audio = None;
        let mut ingest = Ingest::start(&config).unwrap();
        for position in 0..32 {
            let frame = next_frame(&mut ingest).await;
            assert_eq!(
                (frame.position, frame.key),
                (position, position % 30 == 0),
                "{codec}"
            );
        }
    }
}

/// A second of 30 frames with a key frame every `key_interval`, and a tone.
fn make_rung(path: &Path, rate: &str, key_interval: &str, profile: &str) {
    let sources = "-loglevel error -f lavfi -i testsrc2=size=320x180:rate=30:duration=1 -f lavfi -i sine=duration=1";
    let codec = "-c:v libx264 -preset veryfast -pix_fmt yuv420p -profile:v";
    let arguments = format!("{sources} {codec} {profile} -g {key_interval} -b:v {rate}");
    let mut command = Command::new("ffmpeg");
    command.args(arguments.split(' ')).arg(path);
    assert!(command.status().unwrap().success());
}

/// Two files are played twice: their frames come together, numbered on, and those of one position are key frames together.
async fn encoded_files_are_copied(directory: &Path) {
    let file = |name: &str| directory.join(name);
    let files = [file("high.mp4"), file("low.mp4")];
    make_rung(&files[0], "800k", "15", "baseline");
    make_rung(&files[1], "100k", "15", "baseline");
    let audio = IngestConfig::default().audio;
    let mut ingest = Ingest::copy(&files, true, audio.as_ref()).unwrap();
    let video = ingest.video().unwrap().clone();
    assert_eq!((video.frames_per_second(), video.key_interval), (30, 15));
    let bitrates: Vec<_> = video
        .ladder
        .rungs()
        .iter()
        .map(|rung| rung.bitrate)
        .collect();
    assert!(
        bitrates.len() == 2 && bitrates[0] < bitrates[1],
        "{bitrates:?}"
    );
    let (mut pictures, mut sounds) = (Vec::new(), 0);
    while pictures.len() < 80 {
        let frame = next_frame(&mut ingest).await;
        match frame.stream {
            StreamKind::Video => pictures.push((frame.position, frame.rung, frame.key)),
            StreamKind::Audio => sounds += 1,
        }
    }
    let expected =
        (0..40).flat_map(|position| [0, 1].map(|rung| (position, rung, position % 15 == 0)));
    assert!(pictures.iter().copied().eq(expected), "{pictures:?}");
    assert!((55..=75).contains(&sounds), "{sounds} packets");

    let refused =
        |files: &[std::path::PathBuf]| Ingest::copy(files, false, None).unwrap_err().to_string();
    make_rung(&file("other.mp4"), "300k", "30", "baseline");
    make_rung(&file("main.mp4"), "300k", "15", "main");
    let cases = [
        (
            vec![files[0].clone(), file("other.mp4")],
            "a key frame every",
        ),
        (vec![file("main.mp4")], "-profile:v baseline"),
        (vec![files[0].clone(), files[0].clone()], "stands twice"),
        (vec![file("missing.mp4")], "there is no file"),
    ];
    for (files, expected) in cases {
        let said = refused(&files);
        assert!(said.contains(expected), "{said}");
    }
}

fn bad_inputs_are_explained(directory: &Path) {
    let start = |input| Ingest::start(&config(input, "200k", VideoCodec::H264)).unwrap_err();
    let missing = directory.join("missing.mp4");
    assert!(matches!(
        start(Input::File(missing)),
        IngestError::NoFile(_)
    ));
    let camera = "/dev/video99".into();
    assert!(
        start(Input::Camera(camera))
            .to_string()
            .contains("plug one in")
    );
    let text = directory.join("text.mp4");
    std::fs::write(&text, "this is no film").unwrap();
    assert!(matches!(
        start(Input::File(text)),
        IngestError::Unreadable { .. }
    ));
    let sound = directory.join("sound.wav");
    make_film(&sound, false);
    assert!(matches!(
        start(Input::File(sound)),
        IngestError::NoPictures(_)
    ));
}

/// Two seconds of two rungs at 30 a second and sound at 50, which is the same however often it is made.
fn clips_hold_every_frame_once_and_do_not_depend_on_the_time() {
    let config = config(Input::Test, "200k,500k", VideoCodec::H264);
    let make = || clip::encode(&config.video, config.audio.as_ref(), Duration::from_secs(2));
    let clip = make().unwrap();
    let of = |stream, rung| {
        let frames = clip.iter();
        frames.filter(move |frame| (frame.stream, frame.rung) == (stream, rung))
    };
    for (stream, rung, rate) in [
        (StreamKind::Video, 0, 30),
        (StreamKind::Video, 1, 30),
        (StreamKind::Audio, 0, 50),
    ] {
        let times = of(stream, rung).map(|frame| (frame.position, frame.captured_at.as_micros()));
        let expected = (0..2 * rate).map(|number| (number, number * 1_000_000 / rate));
        assert!(times.eq(expected), "{stream:?} {rung}");
        let keys = of(stream, rung).filter(|frame| frame.key).count();
        assert_eq!(keys, if rate == 30 { 2 } else { 100 });
    }
    assert!(clip.is_sorted_by_key(|frame| frame.captured_at));
    let payloads = |clip: &[MediaFrame]| -> Vec<_> {
        let video = clip.iter().filter(|it| it.stream == StreamKind::Video);
        video.map(|frame| frame.payload.clone()).collect()
    };
    assert_eq!(payloads(&clip), payloads(&make().unwrap()));
    assert_eq!(children(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn ingest_with_ffmpeg() {
    let directory = tempfile::tempdir().unwrap();
    bad_inputs_are_explained(directory.path());
    rungs_are_aligned().await;
    killed_encoders_come_back().await;
    files_play_to_their_end(directory.path()).await;
    encoded_files_are_copied(directory.path()).await;
    other_codecs_come_the_same_way().await;
    let clips = clips_hold_every_frame_once_and_do_not_depend_on_the_time;
    tokio::task::spawn_blocking(clips).await.unwrap();
}
