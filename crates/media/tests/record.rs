//! Recordings with the machine's ffmpeg, of frames that its encoders made.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use namecast_apps::live::watcher::{Frame, Stages};
use namecast_media::hls::PLAYLIST;
use namecast_media::ingest::{Ingest, IngestConfig, MediaEvent, MediaFrame};
use namecast_media::record::{Destination, Recorder};
use namecast_media::streams::{self, Cutting, describe};
use namecast_stream::{Catalogue, StreamKind};
use namecast_units::{Duration, Instant, Timestamp};

const TIMEOUT: Duration = Duration::from_secs(60);
/// Frames of the film: 2.6 s, which with its sound find room in a recorder's queue at once.
const PICTURES: usize = 78;
const SECOND: u64 = 1_000_000;

/// What is published: two sizes of the test picture, and its sound.
struct Film {
    catalogue: Catalogue,
    frames: Vec<Frame>,
}

impl Film {
    async fn shoot() -> Self {
        let mut config = IngestConfig::default();
        config.video.ladder = "200k@320x180,300k@480x270".parse().unwrap();
        let cutting = Cutting {
            segment_size: 1_000,
            parity_percent: 0,
        };
        let catalogue = Catalogue {
            version: 1,
            starts: Default::default(),
            title: None,
            streams: describe(Some(&config.video), config.audio.as_ref(), cutting),
            signer: String::new(),
        };
        let mut ingest = Ingest::start(&config).unwrap();
        let mut frames = Vec::new();
        let enough = |frames: &[Frame]| {
            let pictures = frames.iter().filter(|it| it.rung == "300k");
            pictures.count() >= PICTURES
        };
        while !enough(&frames) {
            let event = tokio::time::timeout(TIMEOUT, ingest.next()).await.unwrap();
            if let Some(MediaEvent::Frame(frame)) = event {
                frames.push(watched(&catalogue, &frame));
            }
        }
        Self { catalogue, frames }
    }

    /// Frames of the rung and the sound, in order.
    fn rung(&self, rung: &str) -> Vec<Frame> {
        let is_it = |frame: &&Frame| frame.stream == StreamKind::Audio || frame.rung == rung;
        self.frames.iter().filter(is_it).cloned().collect()
    }

    /// The film with a gap of 0.4 s behind a beep.
    fn with_gap(&self) -> Vec<Frame> {
        let at = |frame: &Frame| frame.captured_at.as_micros();
        let mut frames = self.rung("300k");
        let first = frames.iter().map(at).min().unwrap();
        let beep = (first + SECOND * 2 / 5).next_multiple_of(SECOND);
        let gap = beep + 200_000..beep + 600_000;
        let is_picture = |frame: &Frame| frame.stream == StreamKind::Video;
        let keys = frames.iter().filter(|it| it.key && is_picture(it)).map(at);
        let resumes = keys
            .min_by_key(|at| at.checked_sub(gap.end).unwrap_or(u64::MAX))
            .unwrap();
        frames.retain(|it| match is_picture(it) {
            true => at(it) < gap.start || at(it) >= resumes,
            false => !gap.contains(&at(it)),
        });
        frames
    }
}

fn watched(catalogue: &Catalogue, frame: &MediaFrame) -> Frame {
    let stream = catalogue.streams.iter().find(|it| it.kind == frame.stream);
    Frame {
        stream: frame.stream,
        name: stream.unwrap().name.as_str().into(),
        rung: stream.unwrap().rungs[frame.rung].name.clone(),
        position: frame.position,
        key: frame.key,
        payload: frame.payload.clone(),
        captured_at: frame.captured_at,
        composition_offset: frame.composition_offset,
        render_at: Instant::ZERO,
        complete_at: Instant::ZERO,
        late: false,
        catching_up: false,
        decode_only: false,
        stages: Stages::default(),
    }
}

/// Records `frames`; what people were told.
fn record(film: &Film, frames: &[Frame], output: &str) -> Vec<String> {
    let mut recorder = Recorder::new(output.parse().unwrap(), true);
    recorder.open(&film.catalogue).unwrap();
    for frame in frames {
        recorder.write(frame).unwrap();
    }
    let mut notes = Vec::new();
    // The writer has told all that it has to once it has written all.
    let pictures = frames.iter().filter(|it| it.stream == StreamKind::Video);
    let pictures: Vec<_> = pictures.collect();
    let changes = pictures
        .windows(2)
        .filter(|pair| pair[0].rung != pair[1].rung);
    let expected = changes.count();
    let deadline = std::time::Instant::now() + TIMEOUT;
    while notes.len() < expected && std::time::Instant::now() < deadline {
        notes.extend(recorder.note());
        std::thread::yield_now();
    }
    recorder.finish().unwrap();
    notes
}

fn run(program: &str, arguments: &[&str], file: &Path) -> (String, String) {
    let path = arguments
        .iter()
        .map(|it| it.replace("FILE", file.to_str().unwrap()));
    let output = Command::new(program).args(path).output().unwrap();
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

/// Times of a stream's packets, in seconds.
fn times(file: &Path, stream: &str) -> Vec<f64> {
    let arguments = [
        "-v",
        "error",
        "-select_streams",
        stream,
        "-show_entries",
        "packet=pts_time",
        "-of",
        "csv=p=0",
        "FILE",
    ];
    let (found, _) = run("ffprobe", &arguments, file);
    let numbers = found
        .lines()
        .filter_map(|line| line.trim_end_matches(',').parse().ok());
    numbers.collect()
}

fn width(file: &Path) -> String {
    let arguments = [
        "-v",
        "error",
        "-select_streams",
        "v",
        "-show_entries",
        "stream=width",
        "-of",
        "csv=p=0",
        "FILE",
    ];
    let (found, _) = run("ffprobe", &arguments, file);
    found.lines().next().unwrap_or_default().to_owned()
}

/// When sound begins after silence, in seconds of the file. Read without its pictures, a file may begin with its sound.
fn beeps(file: &Path) -> Vec<f64> {
    let arguments = [
        "-hide_banner",
        "-copyts",
        "-i",
        "FILE",
        "-af",
        "silencedetect=noise=-40dB:d=0.3",
        "-f",
        "null",
        "-",
    ];
    let (_, said) = run("ffmpeg", &arguments, file);
    let after = |line: &str| {
        let (_, found) = line.split_once("silence_end: ")?;
        found.split(' ').next()?.parse().ok()
    };
    // The end of the file ends a silence, too.
    let end = times(file, "a").last().unwrap() - 0.1;
    let found = said.lines().filter_map(after);
    found.filter(|at| *at < end).collect()
}

/// The same beep is heard in the first moment of each second of capture, also behind a gap, whatever encodes the sound.
fn sound_and_picture_stay_in_step(film: &Film, path: &Path) {
    let frames = film.with_gap();
    let first = frames
        .iter()
        .find(|it| it.stream == StreamKind::Video && it.key)
        .unwrap();
    let expected = frames
        .iter()
        .filter(|it| it.stream == StreamKind::Video && it.captured_at >= first.captured_at);
    let expected: Vec<_> = expected
        .map(|it| it.captured_at.micros_since(first.captured_at) as f64 / 1e6)
        .collect();
    record(film, &frames, path.to_str().unwrap());
    let found = times(path, "v");
    assert_eq!(found.len(), expected.len(), "{path:?}");
    for (found_at, expected_at) in found.iter().zip(&expected) {
        let difference = found_at - found[0] - expected_at;
        assert!(
            difference.abs() < 0.002,
            "{path:?}: {found_at} instead of {expected_at}"
        );
    }
    let beeps = beeps(path);
    assert!(!beeps.is_empty(), "{path:?}: no beep behind a silence");
    for at in beeps {
        let captured_at = first.captured_at.as_micros() as f64 / 1e6 + at - found[0];
        let off = captured_at - captured_at.round();
        assert!(
            off.abs() < 0.045,
            "{path:?}: sound is off by {off} s at {at}"
        );
    }
}

/// Pictures of the higher rung begin a second after the sound, which stays, as far before them as it was.
fn sound_before_the_first_picture_stays(film: &Film, path: &Path) {
    let mut frames = film.rung("300k");
    let is_picture = |frame: &Frame| frame.stream == StreamKind::Video;
    let begins = |it: &&Frame| is_picture(it) && it.key && it.position > 20;
    let begins = frames.iter().find(begins).unwrap().captured_at;
    frames.retain(|it| !is_picture(it) || it.captured_at >= begins);
    record(film, &frames, path.to_str().unwrap());
    let pictures = frames.iter().filter(|it| is_picture(it)).count();
    let found = times(path, "v");
    assert_eq!(found.len(), pictures, "{path:?}");
    assert_eq!(width(path), "480", "{path:?}");
    let sound = frames.iter().filter(|it| !is_picture(it));
    let first = sound.map(|it| it.captured_at).min().unwrap();
    let expected = begins.micros_since(first) as f64 / 1e6;
    let before = found[0] - times(path, "a")[0];
    assert!(
        expected > 0.5 && (before - expected).abs() < 0.03,
        "{path:?}: {before} instead of {expected}"
    );
}

/// All sound comes first, 2.6 s of it, as where the encoder of pictures begins late. Each picture is there, and decodes: in the first
/// fragment of an mp4 there is one alone, after which only its rate tells when the next one is.
fn pictures_that_come_after_their_sound_stay(film: &Film, path: &Path) {
    let mut frames = film.rung("300k");
    let is_picture = |frame: &Frame| frame.stream == StreamKind::Video;
    frames.sort_by_key(is_picture);
    record(film, &frames, path.to_str().unwrap());
    let pictures = frames.iter().filter(|it| is_picture(it)).count();
    assert_eq!(times(path, "v").len(), pictures, "{path:?}");
    let decode = "-v error -i FILE -map 0:v -fps_mode passthrough -f framecrc -";
    let (decoded, _) = run("ffmpeg", &decode.split(' ').collect::<Vec<_>>(), path);
    let decoded = decoded.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(decoded.count(), pictures, "{path:?}");
}

/// Where the size of the picture changes, the next file begins; times run on in HLS.
fn a_file_has_one_size(film: &Film, directory: &Path) {
    let change = film
        .frames
        .iter()
        .find(|it| it.key && it.stream == StreamKind::Video && it.position > 20);
    let change = change.unwrap().captured_at;
    let is_before = |at: Timestamp| at < change;
    let in_turn = |it: &&Frame| match it.rung.as_str() {
        "200k" => is_before(it.captured_at),
        "300k" => !is_before(it.captured_at),
        _ => true,
    };
    let frames: Vec<_> = film.frames.iter().filter(in_turn).cloned().collect();
    let path = directory.join("part.mp4");
    let notes = record(film, &frames, path.to_str().unwrap());
    let next = directory.join("part-2.mp4");
    assert_eq!(
        notes,
        [format!(
            "The picture is 480×270 from here on: going on in {}",
            next.display()
        )]
    );
    assert_eq!([width(&path), width(&next)], ["320", "480"]);
    let pictures = frames
        .iter()
        .filter(|it| it.stream == StreamKind::Video)
        .count();
    assert_eq!(times(&path, "v").len() + times(&next, "v").len(), pictures);

    let live = directory.join("live");
    let notes = record(film, &frames, &format!("hls:{}", live.display()));
    assert_eq!(notes[0], "Sound is encoded as AAC, which HLS takes");
    let playlist = live.join(PLAYLIST);
    assert!(
        std::fs::read_to_string(&playlist)
            .unwrap()
            .contains("init-2.mp4")
    );
    assert!(live.join("init-1.mp4").exists());
    assert_eq!(width(&playlist), "480");
    let first = frames.iter().map(|it| it.captured_at).min().unwrap();
    let begins = times(&playlist, "v")[0];
    // The recording's time starts half a second before its first frame.
    let expected = change.micros_since(first) as f64 / 1e6 + 0.5;
    assert!(
        (begins - expected).abs() < 0.05,
        "{begins} instead of {expected}"
    );
}

/// Captions come beside HLS in segments of the same times: here from 0.7 s to 1.7 s of the pictures.
fn captions_come_beside_hls(film: &Film, directory: &Path) {
    let mut catalogue = film.catalogue.clone();
    catalogue.streams.push(streams::captions());
    let mut frames = film.rung("300k");
    let first = frames
        .iter()
        .find(|it| it.stream == StreamKind::Video)
        .unwrap()
        .clone();
    for (millis, text) in [(700, "HELLO\nTHERE"), (1_700, "")] {
        let caption = Frame {
            stream: StreamKind::Data,
            name: streams::CAPTIONS.into(),
            captured_at: first.captured_at + Duration::from_millis(millis),
            payload: text.into(),
            ..first.clone()
        };
        let at = frames
            .iter()
            .position(|it| it.captured_at >= caption.captured_at);
        frames.insert(at.unwrap(), caption);
    }
    let live = directory.join("captions");
    let before = Frame {
        stream: StreamKind::Data,
        name: streams::CAPTIONS.into(),
        payload: "BEFORE".into(),
        ..first.clone()
    };
    frames.insert(0, before);
    let film = Film {
        catalogue,
        frames: Vec::new(),
    };
    record(&film, &frames, &format!("hls:{}", live.display()));
    let read = |name: &str| std::fs::read_to_string(live.join(name)).unwrap();
    let all = read(PLAYLIST);
    assert!(
        all.contains("SUBTITLES=\"captions\"\npictures.m3u8\n"),
        "{all}"
    );
    let durations = |name: &str| {
        let text = read(name);
        let lines = text.lines().filter(|it| it.starts_with("#EXTINF"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(durations("captions.m3u8"), durations("pictures.m3u8"));
    let playlist = read("captions.m3u8");
    let segments = playlist.lines().filter(|it| it.ends_with(".vtt"));
    let cues: String = segments.map(read).collect();
    let begin = times(&live.join("pictures.m3u8"), "v")[0];
    let shown = cues.lines().filter(|it| it.contains(" --> "));
    let shown: Vec<_> = shown
        .flat_map(|line| line.split(" --> ").map(seconds))
        .collect();
    // The caption that came before the pictures is shown from the first of them on.
    let changes = [shown[0], shown[1], shown[shown.len() - 1]].map(|it| it - begin);
    for (change, expected) in changes.into_iter().zip([0.0, 0.7, 1.7]) {
        assert!((change - expected).abs() < 0.002, "{begin}: {cues}");
    }
    assert!(cues.contains("BEFORE\n"), "{cues}");
    assert!(cues.contains("HELLO\nTHERE\n"), "{cues}");
}

/// Seconds of a time as WebVTT writes it.
fn seconds(clock: &str) -> f64 {
    clock
        .split(':')
        .fold(0.0, |sum, part| sum * 60.0 + part.parse::<f64>().unwrap())
}

/// A publisher that begins with pictures alone, goes on with sound, and then with that of one channel: each file begins with a key
/// frame, although new sound comes before and after it.
fn a_file_has_one_sound(film: &Film, directory: &Path) {
    let mut silent = film.catalogue.clone();
    silent.streams.retain(|it| it.kind == StreamKind::Video);
    let mut mono = film.catalogue.clone();
    let sound = mono
        .streams
        .iter_mut()
        .find(|it| it.kind == StreamKind::Audio);
    let channels = &mut sound.unwrap().rungs[0].channels;
    *channels = Some(3 - channels.unwrap());
    let path = directory.join("sound.nut");
    let mut recorder = Recorder::new(path.to_str().unwrap().parse().unwrap(), true);
    let frames = film.rung("300k");
    let is_key = |it: &&&Frame| it.key && it.stream == StreamKind::Video;
    let keys: Vec<_> = frames
        .iter()
        .enumerate()
        .filter(|(_, it)| is_key(&it))
        .collect();
    let [first, second, third] = [0, 1, 2].map(|at| keys[at].0);
    for (catalogue, part) in [
        (&silent, &frames[first..second - 1]),
        (&film.catalogue, &frames[second - 1..third - 1]),
        (&mono, &frames[third - 1..]),
    ] {
        recorder.open(catalogue).unwrap();
        for frame in part {
            if catalogue.streams.iter().any(|it| it.kind == frame.stream) {
                recorder.write(frame).unwrap();
            }
        }
    }
    recorder.finish().unwrap();
    let parts = ["sound.nut", "sound-2.nut", "sound-3.nut"].map(|name| directory.join(name));
    let pictures = |frames: &[Frame]| {
        let pictures = frames.iter().filter(|it| it.stream == StreamKind::Video);
        pictures.count()
    };
    let expected = [
        pictures(&frames[first..second]),
        pictures(&frames[second..third]),
        pictures(&frames[third..]),
    ];
    assert_eq!(parts.each_ref().map(|it| times(it, "v").len()), expected);
    let has_sound = parts.each_ref().map(|it| !times(it, "a").is_empty());
    assert_eq!(has_sound, [false, true, true]);
}

/// Neither a server that never answers nor a codec that does not fit holds anything up.
fn what_cannot_be_written_is_said(film: &Film) {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let silent: Destination = format!("rtsp://{address}/cam").parse().unwrap();
    let mut recorder = Recorder::new(silent, true);
    recorder.open(&film.catalogue).unwrap();
    for frame in film.rung("300k") {
        recorder.write(&frame).unwrap();
    }
    let error = recorder.finish().unwrap_err().to_string();
    assert!(error.contains(&format!("rtsp://{address}")), "{error}");

    drop(server);
    let mut recorder = Recorder::new(format!("rtmp://{address}/app/key").parse().unwrap(), true);
    recorder.open(&film.catalogue).unwrap();
    for frame in film.rung("300k") {
        // It fails at some frame, or at the end.
        if recorder.write(&frame).is_err() {
            break;
        }
    }
    let mut catalogue = film.catalogue.clone();
    catalogue.streams[0].codec = "vp9".to_owned();
    let mut recorder = Recorder::new("film.ts".parse().unwrap(), true);
    let error = recorder.open(&catalogue).unwrap_err().to_string();
    assert!(
        error.starts_with(".ts takes no pictures in vp9: these do: .mp4, .mkv"),
        "{error}"
    );
}

#[tokio::test]
async fn frames_become_files() {
    let film = Film::shoot().await;
    let directory = tempfile::tempdir().unwrap();
    let (film, directory) = (&film, directory.path());
    std::thread::scope(|scope| {
        for name in ["film.mp4", "film.mkv", "film.ts", "film.flv", "film.nut"] {
            scope.spawn(move || sound_and_picture_stay_in_step(film, &directory.join(name)));
        }
        for name in ["early.mp4", "early.mkv", "early.nut"] {
            scope.spawn(move || sound_before_the_first_picture_stays(film, &directory.join(name)));
        }
        for name in ["late.mp4", "late.mkv", "late.nut"] {
            let path = directory.join(name);
            scope.spawn(move || pictures_that_come_after_their_sound_stay(film, &path));
        }
        scope.spawn(|| a_file_has_one_size(film, directory));
        scope.spawn(|| captions_come_beside_hls(film, directory));
        scope.spawn(|| a_file_has_one_sound(film, directory));
        scope.spawn(|| what_cannot_be_written_is_said(film));
    });
}
