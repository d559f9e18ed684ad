//! Ingest with the machine's ffmpeg. One test, as it looks for this process's children.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;

use namecast_media::ingest::clip;
use namecast_media::ingest::codec::VideoCodec;
use namecast_media::ingest::ladder::LadderWish;
use namecast_media::ingest::source::{Container, Input, Pipe};
use namecast_media::ingest::{
    Ingest, IngestConfig, IngestError, MediaEvent, MediaFrame, Opening, StreamKind, VideoConfig,
    Wish,
};
use namecast_units::{Duration, Random};

/// No step takes this long, however loaded the machine is.
const TIMEOUT: Duration = Duration::from_secs(60);

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
    tokio::time::timeout(TIMEOUT, ingest.next())
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

/// The same for what comes from outside; no rungs: what suits it.
fn outside(input: Input, ladder: &str) -> IngestConfig {
    IngestConfig {
        input,
        wish: Wish {
            ladder: match ladder {
                "" => LadderWish::default(),
                ladder => ladder.parse().unwrap(),
            },
            ..Wish::default()
        },
        ..IngestConfig::default()
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
            _ => sounds.push(frame),
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

/// One second at 25 frames a second stays 25 frames; its sound stays the 43 packets of AAC, and what their encoder flushed.
async fn files_play_to_their_end(directory: &Path) {
    let film = directory.join("film.mp4");
    make_film(&film, true);
    let mut ingest = Ingest::start(&outside(Input::File(film), "200k")).unwrap();
    assert_eq!(ingest.video().unwrap().frames_per_second(), 25);
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
    assert!((24..=25).contains(&pictures), "{pictures} frames");
    assert!((43..=46).contains(&sounds), "{sounds} packets");
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
            _ => sounds += 1,
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
    let start = |input| Ingest::start(&outside(input, "200k")).unwrap_err();
    let missing = directory.join("missing.mp4");
    assert!(matches!(
        start(Input::File(missing)),
        IngestError::NoFile(_)
    ));
    let camera = "/dev/video99".to_owned();
    assert!(
        start(Input::Device("v4l2", camera))
            .to_string()
            .contains("plug one in")
    );
    let text = directory.join("text.mp4");
    std::fs::write(&text, "this is no film").unwrap();
    assert!(matches!(
        start(Input::File(text)),
        IngestError::Unreadable { .. }
    ));
    let film = directory.join("late.mp4");
    make_rung(&film, "300k", "15", "main");
    let mut config = outside(Input::File(film.clone()), "copy");
    config.wish.refuses_b_frames = true;
    let refused = Ingest::start(&config).unwrap_err();
    assert!(refused.to_string().contains("B-frames"), "{refused}");
    let refused = start(Input::File(directory.to_owned()));
    assert!(matches!(refused, IngestError::Folder(_)), "{refused}");
    let protected = directory.join("protected.mp4");
    let copied = "-c copy -encryption_scheme cenc-aes-ctr -encryption_kid 00112233445566778899aabbccddeeff -encryption_key 00112233445566778899aabbccddeeff";
    let mut command = Command::new("ffmpeg");
    command.args(["-loglevel", "error", "-i"]).arg(&film);
    let command = command.args(copied.split(' ')).arg(&protected);
    assert!(command.status().unwrap().success());
    let refused = start(Input::File(protected));
    assert!(matches!(refused, IngestError::Encrypted(_)), "{refused}");
}

/// Streams of the kinds that a file has: sound alone is published alone.
async fn sound_alone_is_published(directory: &Path) {
    let sound = directory.join("sound.wav");
    make_film(&sound, false);
    let mut ingest = Ingest::start(&outside(Input::File(sound), "")).unwrap();
    assert!(ingest.video().is_none() && ingest.audio().is_some());
    for position in 0..40 {
        let frame = next_frame(&mut ingest).await;
        assert_eq!(
            (frame.stream, frame.position),
            (StreamKind::Audio, position)
        );
    }
}

/// An upright film at 60 frames a second, as it is and with a low rung: the copy has each frame's units, both are numbered alike,
/// and are key frames together.
async fn films_are_passed_through(directory: &Path, (seconds, group): (usize, usize)) {
    let film = directory.join(format!("upright-{group}.mp4"));
    let sources = format!(
        "-loglevel error -f lavfi -i testsrc2=size=360x640:rate=60:duration={seconds} -f lavfi -i sine=duration={seconds}"
    );
    let codec = format!(
        "-c:v libx264 -preset veryfast -bf 0 -g {group} -b:v 1M -pix_fmt yuv420p -c:a aac -ac 2"
    );
    let mut command = Command::new("ffmpeg");
    let arguments = format!("{sources} {codec}");
    command.args(arguments.split(' ')).arg(&film);
    assert!(command.status().unwrap().success());
    let units = Command::new("ffmpeg")
        .args(["-loglevel", "error", "-i"])
        .arg(&film)
        .args(["-c:v", "copy", "-an", "-f", "h264", "-"])
        .output()
        .unwrap();
    let mut ingest = Ingest::start(&outside(Input::File(film), "")).unwrap();
    let video = ingest.video().unwrap().clone();
    let rungs = video.ladder.rungs();
    let names: Vec<_> = rungs.iter().map(|rung| rung.label.as_str()).collect();
    assert_eq!(names, ["300k", "copy"]);
    assert_eq!((rungs[1].size.width, rungs[1].size.height), (360, 640));
    assert_eq!(video.frames_per_second(), 60);
    assert_eq!(ingest.audio().unwrap().channels, 2);
    let mut frames: [BTreeMap<u64, MediaFrame>; 2] = Default::default();
    while let Some(event) = next(&mut ingest).await {
        match event {
            MediaEvent::Frame(frame) if frame.stream == StreamKind::Video => {
                assert!(frame.encoded_at >= frame.captured_at);
                frames[frame.rung].insert(frame.position, frame);
            }
            MediaEvent::Trouble(text) => {
                let is_long = group > 120 && text.contains("2 s between key frames");
                assert!(is_long, "{text}");
            }
            MediaEvent::Frame(_) => {}
            MediaEvent::Ended { error, .. } => assert!(error.is_none(), "{error:?}"),
        }
    }
    let [low, copy] = frames;
    assert_eq!(copy.len(), seconds * 60);
    let copied = copy
        .values()
        .flat_map(|frame| without_start_codes(&frame.payload));
    assert!(copied.eq(without_start_codes(&units.stdout)));
    // What a loaded machine does not encode in time is left out in whole groups.
    assert!(low.len() >= 60, "{} frames", low.len());
    for (position, frame) in &low {
        let same = &copy[position];
        assert_eq!((frame.key, frame.captured_at), (same.key, same.captured_at));
    }
}

/// A film with ffmpeg's defaults has B-frames:
/// each frame comes once, in decoding order, and is presented 40 ms after the one shown before it; no frame waits longer than
/// reordering takes. So does each that is encoded beside it.
async fn films_with_b_frames_play_at_their_speed(directory: &Path) {
    let film = directory.join("ordinary.mp4");
    let arguments = "-loglevel error -f lavfi -i testsrc2=size=640x360:rate=25:duration=3 -f lavfi -i sine=duration=3 \
                     -pix_fmt yuv420p -c:v libx264 -b:v 1M -g 50 -c:a aac";
    let mut command = Command::new("ffmpeg");
    command.args(arguments.split_whitespace()).arg(&film);
    assert!(command.status().unwrap().success());
    let mut ingest = Ingest::start(&outside(Input::File(film), "")).unwrap();
    let video = ingest.video().unwrap().clone();
    // P4 is decoded before B2, b1 and b3: b1 waits for it for three frames.
    assert_eq!(video.reorder_delay, Duration::from_millis(120));
    let mut frames: [Vec<MediaFrame>; 2] = Default::default();
    while let Some(event) = next(&mut ingest).await {
        match event {
            MediaEvent::Frame(frame) if frame.stream == StreamKind::Video => {
                frames[frame.rung].push(frame);
            }
            MediaEvent::Trouble(text) => panic!("{text}"),
            MediaEvent::Frame(_) => {}
            MediaEvent::Ended { error, .. } => assert!(error.is_none(), "{error:?}"),
        }
    }
    let [_, copy] = &frames;
    assert_eq!(copy.len(), 75);
    let positions = copy.iter().map(|frame| frame.position);
    assert!(positions.eq(0..75));
    let mut presented: Vec<_> = copy
        .iter()
        .map(|frame| (frame.captured_at + frame.composition_offset).as_micros())
        .collect();
    assert!(!presented.is_sorted());
    presented.sort_unstable();
    let gaps = presented.windows(2).map(|pair| pair[1] - pair[0]);
    // A machine that is held up for more than a second begins anew, all else keeps its time.
    let even = gaps.filter(|gap| (39_990..=40_010).contains(gap)).count();
    assert!(even >= 72, "{even}: {presented:?}");
    let longest = copy.iter().map(|frame| frame.composition_offset).max();
    assert!(longest <= Some(Duration::from_millis(201)), "{longest:?}");
}

/// The units of an H.264 stream, but for start codes.
fn without_start_codes(octets: &[u8]) -> Vec<Vec<u8>> {
    let mut units: Vec<Vec<u8>> = Vec::new();
    let mut at = 0;
    while at < octets.len() {
        if octets[at..].starts_with(&[0, 0, 1]) {
            units.push(Vec::new());
            at += 3;
        } else {
            if let Some(unit) = units.last_mut() {
                unit.push(octets[at]);
            }
            at += 1;
        }
    }
    // Parameter sets are repeated with each key frame.
    units.retain(|unit| !matches!(unit[0] & 0x1f, 7 | 8));
    for unit in &mut units {
        // The first octet of a long start code.
        if unit.last() == Some(&0) {
            unit.pop();
        }
    }
    units
}

/// Pushes a test picture of this size to `address` until it is killed.
fn push(address: &str, size: &str) -> Child {
    let source = format!("-loglevel quiet -re -f lavfi -i testsrc2=size={size}:rate=30");
    let codec = "-c:v libx264 -preset ultrafast -bf 0 -g 15 -pix_fmt yuv420p -f flv";
    let mut command = Command::new("ffmpeg");
    let arguments = format!("{source} {codec}");
    command
        .args(arguments.split(' '))
        .arg(address)
        .spawn()
        .unwrap()
}

/// The address of a pusher that nobody answers yet is tried until somebody does.
async fn push_until<T>(address: &str, size: &str, wanted: impl Future<Output = T>) -> (Child, T) {
    tokio::pin!(wanted);
    loop {
        let mut pusher = push(address, size);
        let ended = async {
            while pusher.try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::select! {
            got = &mut wanted => return (pusher, got),
            () = ended => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The next frame of the picture, after whatever else is said; positions go on.
async fn next_picture(ingest: &mut Ingest, said: &mut String) -> MediaFrame {
    loop {
        match next(ingest).await.expect("ingest goes on") {
            MediaEvent::Frame(frame) => return frame,
            MediaEvent::Trouble(text) => said.push_str(&text),
            MediaEvent::Ended { error, .. } => panic!("ended: {error:?}"),
        }
    }
}

/// One pusher after another is taken, however the one before ended; one with another picture is refused.
async fn pushers_come_and_go() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let config = outside(Input::Address(format!("rtmp://:{port}/app/key")), "copy");
    let opening = Opening::default();
    let (given_up, unwanted) = (opening.clone(), config.clone());
    let start = tokio::task::spawn_blocking(move || Ingest::start_by(&unwanted, &given_up));
    while children().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    opening.cancel();
    assert!(start.await.unwrap().is_err());
    assert_eq!(children(), Vec::<String>::new());

    let address = format!("rtmp://127.0.0.1:{port}/app/key");
    let start = tokio::task::spawn_blocking(move || Ingest::start(&config));
    let (mut pusher, ingest) = push_until(&address, "320x180", start).await;
    let mut ingest = ingest.unwrap().unwrap();
    let mut said = String::new();
    let mut last = next_picture(&mut ingest, &mut said).await.position;
    for (size, after_refusal) in [("320x180", false), ("160x90", false), ("320x180", true)] {
        pusher.kill().unwrap();
        pusher.wait().unwrap();
        said.clear();
        let wanted = async {
            loop {
                if size == "160x90" {
                    match next(&mut ingest).await.expect("ingest goes on") {
                        MediaEvent::Trouble(text) if text.contains("was refused") => return last,
                        MediaEvent::Frame(frame) => last = frame.position,
                        MediaEvent::Trouble(_) => {}
                        MediaEvent::Ended { error, .. } => panic!("ended: {error:?}"),
                    }
                    continue;
                }
                let frame = next_picture(&mut ingest, &mut said).await;
                assert_eq!(
                    (frame.stream, frame.position),
                    (StreamKind::Video, last + 1),
                    "{said}"
                );
                last = frame.position;
                if said.contains("The pusher left") || after_refusal {
                    assert!(frame.key);
                    return last;
                }
            }
        };
        (pusher, last) = push_until(&address, size, wanted).await;
    }
    drop(ingest);
    pusher.kill().unwrap();
    pusher.wait().unwrap();
}

/// What comes through a pipe is as late as its way, however long it took to find out what it is; a source that is much too fast
/// or slow stays so.
async fn pipes_are_live(directory: &Path) {
    for (rate, format) in [("300k", "mpegts"), ("1M", "h264")] {
        let pipe = directory.join(format!("pipe.{format}"));
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let source = "-loglevel error -re -f lavfi -i testsrc2=size=320x180:rate=30:duration=6 -c:v libx264 -tune zerolatency";
        let arguments = format!("-y {source} -g 30 -b:v {rate} -f {format}");
        let mut pusher = Command::new("ffmpeg")
            .args(arguments.split(' '))
            .arg(&pipe)
            .spawn()
            .unwrap();
        let address = Input::Address(format!("file://{}", pipe.display()));
        let config = outside(address, "copy");
        let start = tokio::task::spawn_blocking(move || Ingest::start(&config));
        let mut ingest = start.await.unwrap().unwrap();
        let mut delays = Vec::new();
        while delays.len() < 60 {
            let frame = next_frame(&mut ingest).await;
            // What had gathered before it was known what it is, is late.
            if frame.position < 30 {
                continue;
            }
            delays.push(frame.encoded_at.since(frame.captured_at));
        }
        delays.sort_unstable();
        // Half of them, as the machine may be busy.
        assert!(
            delays[20] < Duration::from_millis(100),
            "{rate}: {delays:?}"
        );
        drop(ingest);
        let _ = pusher.kill();
        let _ = pusher.wait();
    }
}

/// Sound and pictures that players take are published as they are, and described.
async fn other_codecs_are_passed_through(directory: &Path) {
    let inputs = "-nostdin -loglevel error -f lavfi -i testsrc2=size=320x180:rate=25:duration=1 \
                  -f lavfi -i sine=sample_rate=44100:duration=1 -ac 2";
    for (name, codecs, codec_string, sound_string) in [
        (
            "aac.ts",
            "-pix_fmt yuv420p -c:v libx264 -bf 0 -c:a aac",
            "avc1.",
            "mp4a.40.2",
        ),
        (
            "opus.mkv",
            "-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libopus",
            "vp09.00.",
            "opus",
        ),
        (
            "aac.mkv",
            "-c:v libaom-av1 -usage realtime -cpu-used 8 -c:a aac",
            "av01.0.",
            "mp4a.40.2",
        ),
    ] {
        let film = directory.join(name);
        let mut command = Command::new("ffmpeg");
        command
            .args(inputs.split_whitespace())
            .args(codecs.split(' '));
        assert!(command.arg(&film).status().unwrap().success());
        let mut ingest = Ingest::start(&outside(Input::File(film), "copy")).unwrap();
        let rung = &ingest.video().unwrap().ladder.rungs()[0];
        assert!(
            rung.copied.as_ref().unwrap().starts_with(codec_string),
            "{rung:?}"
        );
        let audio = ingest.audio().unwrap().clone();
        let copied = audio.copied.unwrap();
        assert_eq!((audio.channels, &*copied.codec_string), (2, sound_string));
        let (mut frames, mut packets) = (0, 0);
        while let Some(event) = next(&mut ingest).await {
            match event {
                MediaEvent::Frame(frame) if frame.stream == StreamKind::Video => frames += 1,
                MediaEvent::Frame(frame) => {
                    // Neither a header of its own, nor nothing.
                    assert!(!frame.payload.is_empty() && frame.payload[0] != 0xff);
                    assert_eq!(frame.position, packets);
                    packets += 1;
                }
                MediaEvent::Ended { error, .. } => assert!(error.is_none(), "{name}: {error:?}"),
                MediaEvent::Trouble(text) => panic!("{name}: {text}"),
            }
        }
        assert_eq!(frames, 25, "{name}");
        let per_second = f64::from(copied.rate.num) / f64::from(copied.rate.den);
        assert!(
            (packets as f64 - per_second).abs() < 4.0,
            "{name}: {packets}"
        );
    }
}

/// Ten frames a second of twenty-five, with a key frame each half second, in a picture of the wished size.
async fn wishes_are_heeded(directory: &Path) {
    let mut config = outside(Input::File(directory.join("film.mp4")), "");
    config.wish.rate = Some(10);
    config.wish.key_interval = Some(5);
    config.wish.size = Some("200x150".parse().unwrap());
    config.wish.channels = Some(2);
    let mut ingest = Ingest::start(&config).unwrap();
    let video = ingest.video().unwrap().clone();
    assert_eq!(video.ladder.largest().to_string(), "200x150");
    assert_eq!((video.frames_per_second(), video.key_interval), (10, 5));
    assert_eq!(ingest.audio().unwrap().channels, 2);
    let highest = video.ladder.rungs().len() - 1;
    let mut frames = Vec::new();
    while let Some(event) = next(&mut ingest).await {
        if let MediaEvent::Frame(frame) = event
            && (frame.stream, frame.rung) == (StreamKind::Video, highest)
        {
            frames.push((frame.position, frame.key));
        }
    }
    assert!((9..=11).contains(&frames.len()), "{frames:?}");
    let expected = (0..).map(|position| (position, position % 5 == 0));
    assert!(
        frames.iter().copied().eq(expected.take(frames.len())),
        "{frames:?}"
    );
    let refused = |change: fn(&mut IngestConfig)| {
        let mut config = outside(Input::File(directory.join("film.mp4")), "copy,200k");
        change(&mut config);
        Ingest::start(&config).unwrap_err().to_string()
    };
    let said = refused(|config| config.wish.rate = Some(10));
    assert!(said.contains("leave --fps and --gop out"), "{said}");
    let said = refused(|config| {
        config.wish.ladder = "200k".parse().unwrap();
        config.video.encoder = Some("h264_nothing".to_owned());
    });
    assert!(said.contains("no encoder h264_nothing"), "{said}");
}

/// Sound that a pipe announces, and that begins a second and a half after the picture.
async fn late_sound_is_published() {
    let (reader, writer) = std::io::pipe().unwrap();
    let sources = "-nostdin -loglevel error -re -f lavfi -i testsrc2=size=640x360:rate=30:duration=4 -itsoffset 1.5 -f lavfi -i sine=duration=2.5";
    let codec = "-c:v libx264 -preset ultrafast -tune zerolatency -pix_fmt yuv420p -g 30 -b:v 2500k -c:a aac -f mpegts -";
    let mut command = Command::new("ffmpeg");
    command
        .args(sources.split(' '))
        .args(codec.split(' '))
        .stdout(writer);
    let mut pusher = command.spawn().unwrap();
    // Its copy of the writing end would keep the pipe open.
    drop(command);
    let pipe = Pipe::new(reader, Container::MpegTs, "late".to_owned());
    let config = outside(Input::Pipe(pipe), "copy");
    let start = tokio::task::spawn_blocking(move || Ingest::start(&config));
    let mut ingest = start.await.unwrap().unwrap();
    let (mut pictures, mut sounds) = (0, 0);
    while let Some(event) = next(&mut ingest).await {
        match event {
            MediaEvent::Frame(frame) if frame.stream == StreamKind::Video => pictures += 1,
            MediaEvent::Frame(frame) => {
                assert_eq!(frame.position, sounds);
                sounds += 1;
            }
            MediaEvent::Ended { error, .. } => assert!(error.is_none(), "{error:?}"),
            MediaEvent::Trouble(text) => panic!("{text}"),
        }
    }
    pusher.wait().unwrap();
    assert!(pictures >= 60, "{pictures} pictures");
    assert!(sounds >= 100, "{sounds} sounds");
}

/// One second of H.264 in MPEG-TS, of this size.
fn transport_stream(size: &str) -> Vec<u8> {
    let source = format!("-loglevel error -f lavfi -i testsrc2=size={size}:rate=30:duration=1");
    let codec =
        "-c:v libx264 -preset ultrafast -tune zerolatency -pix_fmt yuv420p -g 15 -f mpegts -";
    let mut command = Command::new("ffmpeg");
    command.args(source.split(' ')).args(codec.split(' '));
    command.output().unwrap().stdout
}

/// A source that changes the size of its pictures, and then sends what is none before it goes on.
async fn changes_and_damage_are_said_and_counted() {
    let mut random = Random::from_seed(5);
    let garbage = core::iter::repeat_with(|| random.below(256) as u8).take(300_000);
    let large = transport_stream("640x360");
    let rest = [
        transport_stream("320x180"),
        garbage.collect(),
        transport_stream("320x180"),
    ];
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (has_begun, begun) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        writer.write_all(&large).unwrap();
        begun.recv().unwrap();
        writer.write_all(&rest.concat()).unwrap();
    });
    let pipe = Pipe::new(reader, Container::MpegTs, "pushed".to_owned());
    let config = outside(Input::Pipe(pipe), "copy,200k");
    let start = tokio::task::spawn_blocking(move || Ingest::start(&config));
    let mut ingest = start.await.unwrap().unwrap();
    let (mut said, mut frames) = (String::new(), BTreeMap::<usize, usize>::new());
    while let Some(event) = next(&mut ingest).await {
        match event {
            MediaEvent::Frame(frame) => {
                let _ = has_begun.try_send(());
                *frames.entry(frame.rung).or_default() += 1;
            }
            MediaEvent::Trouble(text) => said.push_str(&text),
            MediaEvent::Ended { error, .. } => assert!(error.is_none(), "{error:?}"),
        }
    }
    assert!(said.contains("from 640x360 to 320x180"), "{said}");
    assert!(said.contains("The input is damaged"), "{said}");
    let counters = ingest.counters();
    assert_eq!(counters.size_changes.load(Ordering::Relaxed), 1);
    assert!(counters.damages.load(Ordering::Relaxed) > 0);
    // What had gathered before it was known what it is, is passed over; of the rest nothing is lost but what the garbage hit.
    assert!(frames[&1] >= 60 && frames[&0] >= 50, "{frames:?}");
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
    let [directory, same] = [(); 2].map(|()| directory.path().to_owned());
    bad_inputs_are_explained(&directory);
    pushers_come_and_go().await;
    killed_encoders_come_back().await;
    // What plays in real time, two at a time. Each is a task of its own: none may keep the other from taking its frames.
    let of_files = tokio::spawn(async move {
        files_play_to_their_end(&directory).await;
        sound_alone_is_published(&directory).await;
        encoded_files_are_copied(&directory).await;
        wishes_are_heeded(&directory).await;
        pipes_are_live(&directory).await;
        other_codecs_come_the_same_way().await;
    });
    let of_streams = tokio::spawn(async move {
        rungs_are_aligned().await;
        for film in [(2, 30), (3, 170)] {
            films_are_passed_through(&same, film).await;
        }
        films_with_b_frames_play_at_their_speed(&same).await;
        other_codecs_are_passed_through(&same).await;
        late_sound_is_published().await;
        changes_and_damage_are_said_and_counted().await;
    });
    of_files.await.unwrap();
    of_streams.await.unwrap();
    let clips = clips_hold_every_frame_once_and_do_not_depend_on_the_time;
    tokio::task::spawn_blocking(clips).await.unwrap();
}
