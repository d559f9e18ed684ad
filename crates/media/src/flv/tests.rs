//! Pushes of real encoders, marked as Enhanced RTMP marks them, and hand-made ones.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::clock::START;
use super::*;
use crate::nut::{NutClass, NutFrame, NutReader};

/// AAC LC, 44.1 kHz, stereo.
const AAC_CONFIG: &[u8] = &[0xaf, 0, 0x12, 0x10];
/// High, with a sequence parameter set of x264 for 320×180 that is passed on whatever it says.
const AVC_CONFIG: &[u8] =
    b"\x17\0\0\0\0\x01\x64\0\x0d\xff\xe1\0\x04\x67\x64\0\x0d\x01\0\x02\x68\xee";

/// Pictures of 320×180 pixels as `options` encode them: what decoders need first, and frames, of which every tenth is a key frame.
fn encoded(options: &str, config: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let line = format!(
        "-loglevel error -f lavfi -i testsrc2=size=320x180:rate=25 -frames:v 30 -pix_fmt yuv420p {options} -g 10 \
         -movflags frag_every_frame+empty_moov+default_base_moof -f mp4 -"
    );
    let words = line.split_whitespace();
    let output = Command::new("ffmpeg").args(words).output();
    let file = output.expect("ffmpeg is there").stdout;
    let found = file.windows(4).position(|it| it == config).expect("a box");
    let size = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let config = file[found + 4..found - 4 + size(found - 4)].to_vec();
    let (mut frames, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let end = at + size(at);
        if &file[at + 4..at + 8] == b"mdat" {
            frames.push(file[at + 8..end].to_vec());
        }
        at = end;
    }
    (config, frames)
}

/// The same as tags, 40 ms apart.
fn tags(four_cc: &[u8; 4], (config, frames): &(Vec<u8>, Vec<Vec<u8>>)) -> Vec<(u32, Bytes)> {
    let tag = |first: u8, body: &[u8]| Bytes::from([&[first], &four_cc[..], body].concat());
    let mut tags = vec![(0, tag(0x90, config))];
    for (number, frame) in frames.iter().enumerate() {
        // Without an offset: CodedFramesX.
        let first = if number % 10 == 0 { 0x93 } else { 0xa3 };
        tags.push((number as u32 * 40, tag(first, frame)));
    }
    tags
}

fn push(tags: &[(u32, Bytes)]) -> Push {
    let mut push = Push::default();
    push.announce(true, false);
    for (time, body) in tags {
        push.take(VIDEO, *time, body).unwrap();
    }
    push
}

fn frames(octets: &[u8]) -> (NutReader, Vec<NutFrame>) {
    let mut reader = NutReader::default();
    reader.push(octets);
    let frames = core::iter::from_fn(|| reader.frame().unwrap()).collect();
    (reader, frames)
}

/// Returns ffmpeg's output for `octets`, and its messages.
fn ffmpeg(arguments: &[&str], octets: &[u8]) -> (Vec<u8>, String) {
    let mut child = Command::new("ffmpeg")
        .args(["-loglevel", "error"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ffmpeg is there");
    let mut stdin = child.stdin.take().unwrap();
    let octets = octets.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&octets));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    (output.stdout, String::from_utf8(output.stderr).unwrap())
}

/// Pictures that ffmpeg decodes, and complaints.
fn decoded(octets: &[u8]) -> (usize, String) {
    let (lines, complaints) = ffmpeg(&["-f", "nut", "-i", "-", "-f", "framecrc", "-"], octets);
    let lines = String::from_utf8(lines).unwrap();
    let pictures = lines.lines().filter(|line| !line.starts_with('#')).count();
    (pictures, complaints)
}

const HEVC: (&str, &[u8], &[u8; 4]) = (
    "-c:v libx265 -preset ultrafast -x265-params log-level=none:bframes=0",
    b"hvcC",
    b"hvc1",
);
const AV1: (&str, &[u8], &[u8; 4]) = ("-c:v libsvtav1 -preset 12", b"av1C", b"av01");
const VP9: (&str, &[u8], &[u8; 4]) = (
    "-c:v libvpx-vp9 -deadline realtime -cpu-used 8",
    b"vpcC",
    b"vp09",
);

#[test]
fn enhanced_pictures_are_decoded_whole() {
    for ((options, config, four_cc), found) in [
        (HEVC, "HEVC Main 320x180"),
        (AV1, "AV1 Main 320x180"),
        (VP9, "VP9 profile 0 320x180"),
    ] {
        let mut push = push(&tags(four_cc, &encoded(options, config)));
        assert_eq!(push.container(), Some(Container::Nut));
        let octets = push.take_octets();
        let (reader, frames) = frames(&octets);
        assert_eq!(reader.streams()[0].class, NutClass::Video(320, 180));
        let times: Vec<_> = frames.iter().map(|it| it.time.ticks(1_000)).collect();
        let expected: Vec<_> = (0..30).map(|number| 10_000 + number * 40).collect();
        assert_eq!(times, expected);
        assert_eq!(frames.iter().filter(|it| it.key).count(), 3);
        assert_eq!(decoded(&octets), (30, String::new()), "{found}");
        let received = push.received();
        assert_eq!(received.video.as_ref().unwrap().to_string(), found);
        assert_eq!((received.pictures, received.key_frames), (30, 3));
        assert_eq!(received.malformed, 0);
    }
}

/// Another size from the next sequence header on, which is in the key frames as they are handed over.
#[test]
fn new_parameters_in_mid_stream_are_followed() {
    let (options, config, four_cc) = HEVC;
    let first = encoded(options, config);
    let second = encoded(&format!("-s 160x96 {options}"), config);
    let mut all = tags(four_cc, &first);
    all.extend(
        tags(four_cc, &second)
            .into_iter()
            .map(|(time, body)| (time + 1_200, body)),
    );
    let mut push = push(&all);
    assert_eq!(decoded(&push.take_octets()), (60, String::new()));
    let video = push.received().video.clone().unwrap();
    assert_eq!(video.to_string(), "HEVC Main 160x96");
}

/// As all encoders had them before: octet by octet, with times from ten seconds on. Headers get the time of the frames.
#[test]
fn tags_of_old_codecs_stay_as_they_are() {
    let mut push = Push::default();
    let avc = Bytes::from_static(AVC_CONFIG);
    let aac = Bytes::from_static(AAC_CONFIG);
    push.take(VIDEO, 0, &avc).unwrap();
    assert_eq!(push.container(), None);
    push.take(AUDIO, 0, &aac).unwrap();
    assert_eq!(push.container(), Some(Container::Flv));
    // After five hours: 18 000 000 ms.
    let picture = Bytes::from_static(&[0x17, 1, 0, 0, 0, 7]);
    push.take(VIDEO, 18_000_000, &picture).unwrap();
    let mut expected = FLV_HEADER.to_vec();
    put_tag(&mut expected, VIDEO, START, &avc);
    put_tag(&mut expected, AUDIO, START, &aac);
    put_tag(&mut expected, VIDEO, START, &picture);
    assert_eq!(push.take_octets(), expected);
    push.take(AUDIO, 18_000_023, &Bytes::from_static(&[0xaf, 1, 7]))
        .unwrap();
    let mut expected = Vec::new();
    put_tag(&mut expected, AUDIO, START + 23, &[0xaf, 1, 7]);
    assert_eq!(push.take_octets(), expected);
}

/// H.264 as FLV's first specification has it, 40 ms apart.
fn avc_tags((config, frames): &(Vec<u8>, Vec<Vec<u8>>)) -> Vec<(u32, Bytes)> {
    let tag = |head: [u8; 5], body: &[u8]| Bytes::from([&head, body].concat());
    let mut tags = vec![(0, tag([0x17, 0, 0, 0, 0], config))];
    for (number, frame) in frames.iter().enumerate() {
        let first = if number % 10 == 0 { 0x17 } else { 0x27 };
        tags.push((number as u32 * 40, tag([first, 1, 0, 0, 0], frame)));
    }
    tags
}

const AVC: (&str, &[u8]) = (
    "-c:v libx264 -preset ultrafast -tune zerolatency -x264-params repeat-headers=0",
    b"avcC",
);

/// Another size in the header alone, and back. ffmpeg copies as it does for ingest: what it has of later headers would be lost.
#[test]
fn new_headers_of_old_codecs_are_put_into_key_frames() {
    let (options, config) = AVC;
    let first = avc_tags(&encoded(options, config));
    let second = avc_tags(&encoded(&format!("-s 160x96 {options}"), config));
    let mut all = first.clone();
    for (times, clip) in [(1_200, &second), (2_400, &first)] {
        // Some encoders repeat their header before each key frame.
        let header = clip[0].clone();
        let parts = clip[1..]
            .chunks(10)
            .flat_map(|part| [std::slice::from_ref(&header), part]);
        let tags = parts
            .flatten()
            .map(|(time, body)| (time + times, body.clone()));
        all.extend(tags);
    }
    let mut push = push(&all);
    let copied = ffmpeg(
        &["-f", "flv", "-i", "-", "-c", "copy", "-f", "nut", "-"],
        &push.take_octets(),
    );
    assert_eq!(copied.1, "");
    assert_eq!(decoded(&copied.0), (90, String::new()));
    let video = push.received().video.clone().unwrap();
    assert_eq!(video.to_string(), "H.264 Constrained Baseline 320x180");
    assert_eq!(push.received().malformed, 0);
}

/// Another sample rate, mono, another codec in AAC's place, pictures of another codec: each begins anew with both headers, and
/// passes over what comes before a key frame.
#[test]
fn what_no_container_holds_has_a_successor() {
    let opened = || {
        let mut push = Push::default();
        for (kind, body) in [(VIDEO, AVC_CONFIG), (AUDIO, AAC_CONFIG)] {
            push.take(kind, 0, &Bytes::from_static(body)).unwrap();
        }
        push
    };
    let other = Bytes::from_static(&[0xaf, 0, 0x11, 0x88]);
    let mut push = opened();
    let why = push.take(AUDIO, 7_000, &other).unwrap_err();
    assert_eq!(
        why.to_string(),
        "the sound changed from AAC 44.1 kHz stereo to AAC 48 kHz mono"
    );
    let mut next = push.successor(AUDIO);
    next.take(AUDIO, 7_000, &other).unwrap();
    let sound = Bytes::from_static(&[0xaf, 1, 7]);
    let inter = Bytes::from_static(&[0x27, 1, 0, 0, 0, 7]);
    let key = Bytes::from_static(&[0x17, 1, 0, 0, 0, 7]);
    next.take(AUDIO, 7_000, &sound).unwrap();
    next.take(VIDEO, 7_010, &inter).unwrap();
    assert_eq!(next.container(), None);
    next.take(VIDEO, 7_050, &key).unwrap();
    next.take(AUDIO, 7_060, &sound).unwrap();
    assert_eq!(next.container(), Some(Container::Flv));
    let mut expected = FLV_HEADER.to_vec();
    put_tag(&mut expected, VIDEO, START, AVC_CONFIG);
    put_tag(&mut expected, AUDIO, START, &other);
    put_tag(&mut expected, AUDIO, START, &other);
    put_tag(&mut expected, VIDEO, START, &key);
    put_tag(&mut expected, AUDIO, START + 10, &sound);
    assert_eq!(next.take_octets(), expected);

    let why = |kind, body: &'static [u8]| {
        let taken = opened().take(kind, 0, &Bytes::from_static(body));
        taken.map_err(|error| error.to_string())
    };
    // The same again, and one without octets, change nothing.
    assert_eq!(why(AUDIO, AAC_CONFIG), Ok(()));
    assert_eq!(why(AUDIO, &[0xaf, 0]), Ok(()));
    let mp3 = "the sound changed from AAC to MP3";
    assert_eq!(why(AUDIO, &[0x2f, 1]), Err(mp3.to_owned()));
    let hevc = "the pictures changed from H.264 to HEVC";
    assert_eq!(why(VIDEO, b"\x90hvc1\x01"), Err(hevc.to_owned()));
    // Lengths of two octets, where ffmpeg reads four.
    let mut short = AVC_CONFIG.to_vec();
    short[9] = 0xfd;
    let cut = opened().take(VIDEO, 0, &short.into());
    assert!(matches!(cut, Err(FlvError::Changed(_))), "{cut:?}");
}

/// AV1 with Opus, whose header comes first.
#[test]
fn sound_is_beside_the_pictures() {
    let (options, config, four_cc) = AV1;
    let mut push = Push::default();
    let opus = Bytes::from_static(b"\x90OpusOpusHead\x01\x02\x78\0\x80\xbb\0\0\0\0\0");
    push.take(AUDIO, 0, &opus).unwrap();
    for (time, body) in tags(four_cc, &encoded(options, config)) {
        push.take(VIDEO, time, &body).unwrap();
        push.take(AUDIO, time, &Bytes::from_static(b"\x91Opus\xfc"))
            .unwrap();
    }
    let (reader, frames) = frames(&push.take_octets());
    assert_eq!(reader.streams()[1].class, NutClass::Audio(48_000, 2));
    assert_eq!(&reader.streams()[1].codec[..], b"Opus");
    // Sound received with the sequence header precedes the first picture.
    assert_eq!(frames.iter().filter(|it| it.stream == 1).count(), 30);
}

/// 320×180 in the headers of x264, x265, SVT-AV1 and libvpx, where 160×90 is the largest.
#[test]
fn pictures_that_are_too_large_are_refused() {
    let limits = Limits {
        picture: PictureSize {
            width: 160,
            height: 90,
        },
        ..Limits::default()
    };
    let pushed = |tags: &[(u32, Bytes)], limits| {
        let mut push = Push::limited(limits);
        push.announce(true, false);
        let mut tags = tags.iter();
        tags.try_for_each(|(time, body)| push.take(VIDEO, *time, body))
    };
    let (options, config) = AVC;
    let mut pushes = vec![avc_tags(&encoded(options, config))];
    for (options, config, four_cc) in [HEVC, AV1, VP9] {
        pushes.push(tags(four_cc, &encoded(options, config)));
    }
    for tags in pushes {
        let refused = pushed(&tags, limits);
        assert!(matches!(refused, Err(FlvError::Exceeded(_))), "{refused:?}");
        assert_eq!(pushed(&tags, Limits::default()), Ok(()));
    }
}

/// Until a key frame comes, nobody reads: headers that are repeated do not gather, and those that are too large are none.
#[test]
fn what_waits_for_a_key_frame_is_bounded() {
    let mut push = Push::default();
    for (kind, body) in [(VIDEO, AVC_CONFIG), (AUDIO, AAC_CONFIG)] {
        push.take(kind, 0, &Bytes::from_static(body)).unwrap();
    }
    let other = Bytes::from_static(&[0xaf, 0, 0x11, 0x88]);
    push.take(AUDIO, 0, &other).unwrap_err();
    let mut next = push.successor(AUDIO);
    for _ in 0..MAX_EARLY {
        next.take(AUDIO, 0, &other).unwrap();
    }
    assert!(next.received().malformed > 0);
    let large = Bytes::from([&AVC_CONFIG[..5], &vec![1; MAX_CONFIG + 1]].concat());
    let before = next.received().malformed;
    next.take(VIDEO, 0, &large).unwrap();
    assert!(next.received().malformed > before);
    assert_eq!(next.container(), None);
    assert!(next.take_octets().len() <= MAX_EARLY + 15);
}

/// Beside pictures that were announced alone: with a header, and once a packet is there. Without a header nobody could decode it.
#[test]
fn sound_that_begins_later_has_a_successor() {
    let (options, config, four_cc) = AV1;
    let av1 = tags(four_cc, &encoded(options, config));
    let (options, config) = AVC;
    let avc = avc_tags(&encoded(options, config));
    let opus = b"\x90OpusOpusHead\x01\x02\x78\0\x80\xbb\0\0\0\0\0";
    for (tags, header, packet, container, why) in [
        (
            &av1,
            &opus[..],
            &b"\x91Opus\xfc"[..],
            Container::Nut,
            "Opus 48 kHz stereo",
        ),
        (
            &avc,
            AAC_CONFIG,
            &[0xaf, 1, 7],
            Container::Flv,
            "AAC 44.1 kHz stereo",
        ),
        (&avc, &[], &[0x2f, 7], Container::Flv, "MP3"),
    ] {
        let mut push = push(&tags[..15]);
        let packet = Bytes::from_static(packet);
        if !header.is_empty() {
            push.take(AUDIO, 600, &packet).unwrap();
            push.take(AUDIO, 600, &Bytes::from_static(header)).unwrap();
        }
        let error = push.take(AUDIO, 600, &packet).unwrap_err();
        assert_eq!(error.to_string(), format!("the sound has begun, {why}"));
        let mut next = push.successor(AUDIO);
        for (time, body) in &tags[15..] {
            next.take(AUDIO, *time, &packet).unwrap();
            next.take(VIDEO, *time, body).unwrap();
        }
        assert_eq!(next.container(), Some(container));
        assert_eq!(next.received().audio.as_ref().unwrap().to_string(), why);
        // The key frame is the 20th picture, the 6th of these 15; ten follow, of which nine have sound before them.
        let octets = next.take_octets();
        if container == Container::Nut {
            let (reader, frames) = frames(&octets);
            assert_eq!(reader.streams().len(), 2);
            assert_eq!(frames.iter().filter(|it| it.stream == 0).count(), 10);
            assert_eq!(frames.iter().filter(|it| it.stream == 1).count(), 9);
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let refused = |tags: &[(u8, &'static [u8])]| {
        let mut push = Push::default();
        push.announce(true, true);
        let mut takes = tags
            .iter()
            .map(|&(kind, body)| push.take(kind, 0, &Bytes::from_static(body)));
        takes.find_map(Result::err).unwrap().to_string()
    };
    let vvc = refused(&[(VIDEO, b"\x90vvc1\x01"), (AUDIO, AAC_CONFIG)]);
    assert!(vvc.contains("vvc1 is not accepted"), "{vvc}");
    let mp3 = refused(&[(VIDEO, b"\x90av01\x81\0\0\0"), (AUDIO, &[0x2f, 1])]);
    assert!(mp3.contains("audio codec MP3"), "{mp3}");
}

/// A track that nobody announced is waited for half a second, one that was announced no longer, and nothing without end.
#[test]
fn tracks_that_never_come_hold_nobody_up() {
    let picture = |push: &mut Push, time| {
        let body = Bytes::from_static(&[0x17, 1, 0, 0, 0, 7]);
        push.take(VIDEO, time, &body).unwrap();
        push.container()
    };
    let mut unknown = Push::default();
    assert_eq!(picture(&mut unknown, 0), None);
    assert_eq!(picture(&mut unknown, 499), None);
    assert_eq!(picture(&mut unknown, 500), Some(Container::Flv));
    let mut alone = Push::default();
    alone.announce(true, false);
    assert_eq!(picture(&mut alone, 0), Some(Container::Flv));
    let mut announced = Push::default();
    announced.announce(true, true);
    assert_eq!(picture(&mut announced, 0), None);
    assert_eq!(picture(&mut announced, 500), Some(Container::Flv));
    let mut standing = Push::default();
    let taken = (0..MAX_HELD).find(|_| picture(&mut standing, 7).is_some());
    assert_eq!(taken, Some(MAX_HELD - 1));
}

/// Real tags cut off and changed anywhere, seeded: refused or passed over, but never a panic, and never more than there was.
#[test]
fn damaged_tags_do_no_harm() {
    let mut random = namecast_units::Random::from_seed(7);
    for (options, config, four_cc) in [HEVC, AV1, VP9] {
        let tags = tags(four_cc, &encoded(options, config));
        for _ in 0..200 {
            let mut push = Push::default();
            for (time, body) in tags.iter().take(14) {
                let mut body = body.to_vec();
                if random.below(4) == 0 {
                    body.truncate(random.below(body.len() as u64 + 1) as usize);
                }
                for _ in 0..random.below(3) {
                    let head = body.len().min(60) as u64;
                    if head > 0 {
                        body[random.below(head) as usize] = random.next_u64() as u8;
                    }
                }
                let kind = if random.below(9) == 0 { AUDIO } else { VIDEO };
                if push.take(kind, *time, &body.into()).is_err() {
                    break;
                }
            }
            let octets = push.take_octets();
            if push.container() == Some(Container::Nut) {
                let mut reader = NutReader::default();
                reader.push(&octets);
                while let Ok(Some(_)) = reader.frame() {}
            }
        }
    }
}
