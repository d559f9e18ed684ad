//! A session against a pusher made of the same library, in virtual time.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use str0m::change::{SdpAnswer, SdpPendingOffer};
use str0m::media::{Direction, Frequency, MediaKind, MediaTime, Mid};
use str0m::net::{Protocol, Receive};
use str0m::{Candidate, Event, Input, Rtc, RtcConfig};

use super::*;
use crate::nut::{NutClass, NutFrame, NutReader};

/// Parameter sets of 640×360, constrained baseline, as x264 writes them.
const PARAMETERS: &[u8] = &[
    0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0xd9, 0x00, 0xa0, 0x2f, 0xf9, 0x70, 0x11, 0, 0, 3, 0, 1, 0,
    0, 3, 0, 0x3c, 0x8f, 0x16, 0x2e, 0x48, 0, 0, 0, 1, 0x68, 0xcb, 0x83, 0xcb, 0x20,
];
const STEP: Duration = Duration::from_millis(5);

fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn credentials() -> Credentials {
    Credentials {
        user_fragment: "fragment".to_owned(),
        password: "a-password-of-22-chars".to_owned(),
    }
}

fn builder() -> RtcConfig {
    let provider = str0m::crypto::from_feature_flags();
    RtcConfig::new()
        .set_crypto_provider(provider.into())
        .clear_codecs()
}

/// Pushes pictures 30 times a second and sound 50 times, with key frames only where they are asked for.
struct Pusher {
    rtc: Rtc,
    video: Mid,
    audio: Mid,
    begun_at: Instant,
    /// Pictures and packets of sound so far.
    pictures: u32,
    sounds: u32,
    wants_key: bool,
    /// Payload type of the pictures.
    payload_type: u8,
    /// Pictures to push, each of them a key frame; none: drawn ones of H.264.
    clip: Vec<Bytes>,
}

impl Pusher {
    fn offer(now: Instant) -> (Self, SdpPendingOffer, String) {
        Self::offer_by(builder().enable_h264(true), now)
    }

    fn offer_by(config: RtcConfig, now: Instant) -> (Self, SdpPendingOffer, String) {
        let mut rtc = config.enable_opus(true, false).build(now);
        rtc.add_local_candidate(Candidate::host(address(1), Protocol::Udp).unwrap());
        let mut changes = rtc.sdp_api();
        let mut add = |kind| changes.add_media(kind, Direction::SendOnly, None, None, None);
        let (audio, video) = (add(MediaKind::Audio), add(MediaKind::Video));
        let (offer, pending) = changes.apply().unwrap();
        let pusher = Self {
            rtc,
            video,
            audio,
            begun_at: now,
            pictures: 0,
            sounds: 0,
            wants_key: true,
            payload_type: 0,
            clip: Vec::new(),
        };
        (pusher, pending, offer.to_sdp_string())
    }

    /// What is due: of the track, with this time.
    fn next(&mut self, now: Instant) -> Option<(Mid, MediaTime, Vec<u8>)> {
        let since = now - self.begun_at;
        if since >= Duration::from_millis(20) * self.sounds {
            let time = MediaTime::new(u64::from(self.sounds) * 960, Frequency::FORTY_EIGHT_KHZ);
            self.sounds += 1;
            return Some((self.audio, time, vec![0xf8, self.sounds as u8]));
        }
        if since < Duration::from_millis(1_000) * self.pictures / 30 {
            return None;
        }
        let time = MediaTime::new(u64::from(self.pictures) * 3_000, Frequency::NINETY_KHZ);
        if !self.clip.is_empty() {
            let frame = self.clip[self.pictures as usize % self.clip.len()].to_vec();
            self.pictures += 1;
            return Some((self.video, time, frame));
        }
        let key = core::mem::take(&mut self.wants_key);
        let mut frame = if key { PARAMETERS.to_vec() } else { Vec::new() };
        // Of several datagrams, and with its number in it.
        frame.extend([
            0,
            0,
            0,
            1,
            if key { 0x65 } else { 0x41 },
            self.pictures as u8,
        ]);
        frame.resize(frame.len() + if key { 20_000 } else { 3_000 }, 0x5a);
        self.pictures += 1;
        Some((self.video, time, frame))
    }

    fn write(&mut self, now: Instant, (mid, time, frame): (Mid, MediaTime, Vec<u8>)) {
        let Some(writer) = self.rtc.writer(mid) else {
            return;
        };
        let payload = writer.payload_params().next().unwrap().pt();
        if mid == self.video {
            self.payload_type = *payload;
        }
        writer.write(payload, now, time, frame).unwrap();
    }
}

/// Both ends, and what came out.
struct Pair {
    now: Instant,
    pusher: Pusher,
    session: Session,
    file: Vec<u8>,
    /// While set, media are lost on the way; those of before are not repeated.
    loses: bool,
    is_repeating: bool,
}

impl Pair {
    fn connected() -> Self {
        Self::connected_by(builder().enable_h264(true))
    }

    fn connected_by(config: RtcConfig) -> Self {
        let now = Instant::now();
        let (mut pusher, pending, offer) = Pusher::offer_by(config, now);
        let offer = Offer::parse(&offer).unwrap();
        let (session, answer) = Session::accept(offer, &credentials(), &[address(2)], now).unwrap();
        let answer = SdpAnswer::from_sdp_string(&answer).unwrap();
        pusher.rtc.sdp_api().accept_answer(pending, answer).unwrap();
        let mut pair = Self {
            now,
            pusher,
            session,
            file: Vec::new(),
            loses: false,
            is_repeating: true,
        };
        while !pair.pusher.rtc.is_connected() {
            pair.step();
            assert!(pair.now - now < Duration::from_secs(2), "not connected");
        }
        pair.pusher.begun_at = pair.now;
        pair
    }

    fn run(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while self.now < until {
            while let Some(frame) = self.pusher.next(self.now) {
                self.pusher.write(self.now, frame);
                self.exchange();
            }
            self.step();
        }
    }

    fn step(&mut self) {
        self.now += STEP;
        self.pusher
            .rtc
            .handle_input(Input::Timeout(self.now))
            .unwrap();
        if self.session.poll_timeout() <= self.now {
            self.session.handle_timeout(self.now);
        }
        self.exchange();
    }

    /// Carries what both have to say, until they have nothing to say.
    fn exchange(&mut self) {
        loop {
            let mut is_quiet = true;
            loop {
                match self.pusher.rtc.poll_output().unwrap() {
                    str0m::Output::Timeout(_) => break,
                    str0m::Output::Transmit(it) => {
                        is_quiet = false;
                        if !self.is_lost(&it.contents) {
                            self.session.handle_datagram(
                                self.now,
                                it.source,
                                it.destination,
                                &it.contents,
                            );
                        }
                    }
                    str0m::Output::Event(Event::KeyframeRequest(_)) => self.pusher.wants_key = true,
                    str0m::Output::Event(_) => {}
                }
            }
            while let Some(output) = self.session.poll_output() {
                is_quiet = false;
                match output {
                    Output::Media(octets) => self.file.extend(octets),
                    Output::Datagram(it) => {
                        let received = Receive {
                            proto: Protocol::Udp,
                            source: it.source,
                            destination: it.destination,
                            contents: (&it.payload[..]).try_into().unwrap(),
                        };
                        let input = Input::Receive(self.now, received);
                        self.pusher.rtc.handle_input(input).unwrap();
                    }
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    /// RTP has a first octet of 128 to 191 and a payload type that RTCP does not have (RFC 5761, section 4).
    fn is_lost(&self, datagram: &[u8]) -> bool {
        let kind = datagram[1] & 0x7f;
        let is_media = (128..192).contains(&datagram[0]) && !(64..96).contains(&kind);
        let is_repeat = is_media && datagram.len() > 100 && kind != self.pusher.payload_type;
        is_media && self.loses || is_repeat && !self.is_repeating
    }

    /// Everything that was put into the container, as its reader has it.
    fn read(&self) -> (NutReader, Vec<NutFrame>) {
        let mut reader = NutReader::default();
        reader.push(&self.file);
        let frames = core::iter::from_fn(|| reader.frame().unwrap()).collect();
        (reader, frames)
    }
}

/// Numbers, times in milliseconds and keys of pictures.
fn pictures(frames: &[NutFrame]) -> Vec<(u8, u64, bool)> {
    let pictures = frames.iter().filter(|frame| frame.stream == 0);
    let number = |frame: &NutFrame| match frame.key {
        true => frame.payload[PARAMETERS.len() + 5],
        false => frame.payload[5],
    };
    pictures
        .map(|frame| (number(frame), frame.time.ticks(1_000), frame.key))
        .collect()
}

#[test]
fn what_is_pushed_is_read_with_its_times_and_a_key_frame_each_two_seconds() {
    let mut pair = Pair::connected();
    pair.run(5_000);
    let (reader, frames) = pair.read();
    let classes: Vec<_> = reader.streams().iter().map(|it| it.class).collect();
    assert_eq!(
        classes,
        [NutClass::Video(640, 360), NutClass::Audio(48_000, 2)]
    );
    let pictures = pictures(&frames);
    assert!(pictures.len() >= 149, "{}", pictures.len());
    for (number, pair) in pictures.windows(2).enumerate() {
        assert_eq!(usize::from(pair[1].0), number + 1);
        assert!((32..=35).contains(&(pair[1].1 - pair[0].1)), "{pair:?}");
    }
    let keys: Vec<_> = pictures.iter().filter(|it| it.2).map(|it| it.1).collect();
    assert!(pictures[0].2 && keys.len() >= 3, "{keys:?}");
    assert!(
        keys.windows(2).all(|pair| pair[1] - pair[0] <= 2_000),
        "{keys:?}"
    );
    let sounds: Vec<_> = frames.iter().filter(|it| it.stream == 1).collect();
    assert!(sounds.len() >= 245 && sounds.iter().all(|it| it.key && it.payload[0] == 0xf8));
    // Both began together, and still are.
    let last = |stream| {
        let last = frames.iter().rfind(|it| it.stream == stream);
        last.unwrap().time.ticks(1_000)
    };
    assert!(last(0).abs_diff(last(1)) <= 40, "{} {}", last(0), last(1));
    assert_eq!(pair.session.counters().malformed, 0);
    assert_eq!(pair.session.ended(), None);
}

/// Browsers without H.264 push what they have, and each picture comes whole.
#[test]
fn codecs_without_h264_are_read() {
    for (options, config, tag, found) in [
        (
            "-c:v libvpx -deadline realtime",
            builder().enable_vp8(true),
            b"VP80",
            "VP8 320x180",
        ),
        (
            "-c:v libvpx-vp9 -deadline realtime -cpu-used 8",
            builder().enable_vp9(true),
            b"VP90",
            "VP9 profile 0 320x180",
        ),
        (
            "-c:v libsvtav1 -preset 12",
            builder().enable_av1(true),
            b"AV01",
            "AV1 Main 320x180",
        ),
    ] {
        let mut pair = Pair::connected_by(config);
        let line = format!(
            "-loglevel error -f lavfi -i testsrc2=size=320x180:rate=30 -frames:v 30 -pix_fmt yuv420p {options} -g 1 \
             -write_index 0 -f nut -"
        );
        let output = std::process::Command::new("ffmpeg")
            .args(line.split_whitespace())
            .output();
        let mut reader = NutReader::default();
        reader.push(&output.unwrap().stdout);
        let frames = core::iter::from_fn(|| reader.frame().unwrap());
        pair.pusher.clip = frames.map(|it| it.payload).collect();
        pair.run(1_000);
        let (reader, frames) = pair.read();
        let stream = &reader.streams()[0];
        assert_eq!(
            (&stream.codec[..], stream.class),
            (&tag[..], NutClass::Video(320, 180))
        );
        let pictures = frames.iter().filter(|it| it.stream == 0);
        assert!(pictures.count() >= 28, "{found}");
        let received = pair.session.received();
        assert_eq!(received.video.as_ref().unwrap().to_string(), found);
        let decoded = std::process::Command::new("ffmpeg")
            .args([
                "-loglevel",
                "error",
                "-f",
                "nut",
                "-i",
                "-",
                "-f",
                "null",
                "-",
            ])
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn();
        let mut decoded = decoded.unwrap();
        decoded
            .stdin
            .take()
            .unwrap()
            .write_all(&video_alone(&reader, &frames))
            .unwrap();
        let said = decoded.wait_with_output().unwrap().stderr;
        assert_eq!(String::from_utf8(said).unwrap(), "", "{found}");
    }
}

/// The pictures of a file, as a file.
fn video_alone(reader: &NutReader, frames: &[NutFrame]) -> Vec<u8> {
    let mut file = crate::nut::writer::file_header(&reader.streams()[..1]);
    for frame in frames.iter().filter(|it| it.stream == 0) {
        let micros = frame.time.ticks(1_000_000);
        crate::nut::writer::put_frame(&mut file, 0, micros, frame.key, &frame.payload);
    }
    file
}

#[test]
fn lost_packets_are_asked_for() {
    let mut pair = Pair::connected();
    pair.run(1_000);
    pair.loses = true;
    pair.run(100);
    pair.loses = false;
    pair.run(1_900);
    let pictures = pictures(&pair.read().1);
    assert!(
        pictures.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1),
        "{pictures:?}"
    );
    assert!(pictures.len() >= 88);
    assert_eq!(pair.session.counters().undecodable, 0);
}

/// What follows a picture that never came cannot be decoded, up to a key frame, which is asked for at once.
#[test]
fn after_a_loss_for_good_there_is_a_key_frame_first() {
    let mut pair = Pair::connected();
    pair.run(1_000);
    pair.is_repeating = false;
    pair.loses = true;
    pair.run(100);
    pair.loses = false;
    pair.run(3_900);
    let pictures = pictures(&pair.read().1);
    let gap = pictures.windows(2).find(|pair| pair[1].0 != pair[0].0 + 1);
    let gap = gap.expect("pictures are missing");
    assert!(gap[1].2 && gap[1].1 - gap[0].1 < 3_000, "{gap:?}");
    assert!(pictures.last().unwrap().0 >= 148);
}

#[test]
fn those_that_fall_silent_or_never_speak_are_gone() {
    let mut pair = Pair::connected();
    pair.run(500);
    let silent_from = pair.now;
    while pair.session.ended().is_none() {
        pair.now = pair.session.poll_timeout();
        pair.session.handle_timeout(pair.now);
    }
    assert_eq!(pair.session.ended(), Some(Ended::Silent));
    assert!(pair.now - silent_from <= Duration::from_millis(5_010));

    let now = Instant::now();
    let offer = Offer::parse(&Pusher::offer(now).2).unwrap();
    let (mut session, _) = Session::accept(offer, &credentials(), &[address(2)], now).unwrap();
    let mut steps = 0;
    while session.ended().is_none() && steps < 10_000 {
        session.handle_timeout(session.poll_timeout());
        steps += 1;
    }
    assert_eq!(session.ended(), Some(Ended::NoMedia));
}

#[test]
fn those_that_close_are_gone_at_once() {
    let mut pair = Pair::connected();
    pair.run(500);
    pair.pusher.rtc.close().unwrap();
    pair.exchange();
    assert_eq!(pair.session.ended(), Some(Ended::Left));
}

#[test]
fn garbage_harms_nobody() {
    let mut pair = Pair::connected();
    pair.run(200);
    let mut random = namecast_units::Random::from_seed(1);
    for first in 0..=255 {
        for length in [1, 12, 20, 100, 1_400] {
            let mut octets: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            octets[0] = first;
            for source in [address(1), address(9)] {
                pair.session
                    .handle_datagram(pair.now, source, address(2), &octets);
            }
            assert!(user_fragment(&octets).is_none());
        }
    }
    assert!(pair.session.counters().malformed > 1_000);
    pair.run(1_000);
    assert_eq!(pair.session.ended(), None);
    assert!(pictures(&pair.read().1).len() >= 35);
}

/// As Chromium offers them on a machine whose encoder has one profile only.
fn chromium(video: &str) -> String {
    let (_, _, offer) = Pusher::offer(Instant::now());
    let (before, section) = offer.split_at(offer.find("m=video").unwrap());
    let kept = section.lines().skip(1).filter(|line| {
        !["a=rtpmap", "a=fmtp", "a=rtcp-fb"]
            .iter()
            .any(|start| line.starts_with(start))
    });
    let kept: Vec<_> = kept.collect();
    let numbers = "m=video 9 UDP/TLS/RTP/SAVPF 102 103";
    format!(
        "{before}{numbers}\r\n{}\r\n{video}a=rtpmap:103 rtx/90000\r\na=fmtp:103 apt=102\r\n",
        kept.join("\r\n")
    )
}

fn answer(offer: &str) -> Result<String, OfferError> {
    let offer = Offer::parse(offer)?;
    let accepted = Session::accept(offer, &credentials(), &[address(2)], Instant::now());
    accepted.map(|(_, answer)| answer)
}

/// High alone, without cutting units, with a level of another kind; and browsers without H.264.
#[test]
fn answers_name_what_was_offered() {
    for parameters in [
        "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=64001f",
        "level-asymmetry-allowed=1;packetization-mode=0;profile-level-id=640c34",
        "packetization-mode=1;profile-level-id=4d0028",
        "packetization-mode=0;profile-level-id=42e01f",
        "packetization-mode=1;profile-level-id=42001f",
    ] {
        let offered = chromium(&format!(
            "a=rtpmap:102 H264/90000\r\na=rtcp-fb:102 nack pli\r\na=fmtp:102 {parameters}\r\n"
        ));
        let answer = answer(&offered).unwrap();
        assert!(!answer.contains("m=video 0"), "{parameters}: {answer}");
        assert!(answer.contains("a=rtpmap:102 H264/90000"), "{answer}");
        for parameter in parameters.split(';').filter(|it| !it.contains("asymmetry")) {
            assert!(answer.contains(parameter), "{parameter}: {answer}");
        }
        assert!(answer.contains("stereo=1"), "{answer}");
    }
    for codec in ["VP8", "VP9", "AV1"] {
        let offered = chromium(&format!("a=rtpmap:102 {codec}/90000\r\n"));
        let answer = answer(&offered).unwrap();
        assert!(
            answer.contains(&format!("a=rtpmap:102 {codec}/90000")),
            "{answer}"
        );
    }
    for (parameters, named) in [
        ("profile-level-id=6e0028", "H264 6e0028"),
        ("profile-level-id=zz", "H264 zz"),
    ] {
        let offered = chromium(&format!(
            "a=rtpmap:102 H264/90000\r\na=fmtp:102 {parameters}\r\n"
        ));
        assert_eq!(
            answer(&offered).unwrap_err(),
            OfferError::NoVideoCodec(named.to_owned())
        );
    }
}

#[test]
fn offers_that_cannot_be_taken_say_why() {
    let (_, _, offer) = Pusher::offer(Instant::now());
    let refused = |offer: &str| Offer::parse(offer).unwrap_err();
    assert!(Offer::parse(&offer).is_ok());
    let theora = refused(&offer.replace("H264", "theora"));
    assert_eq!(theora, OfferError::NoVideoCodec("theora".to_owned()));
    assert_eq!(refused(&offer.replace("opus", "PCMU")), OfferError::NoOpus);
    assert_eq!(
        refused(&offer.replace("a=sendonly", "a=recvonly")),
        OfferError::Nothing
    );
    let simulcast = offer.replace("a=sendonly", "a=sendonly\r\na=simulcast:send h;l");
    assert_eq!(refused(&simulcast), OfferError::Simulcast);
    let video = &offer[offer.find("m=video").unwrap()..];
    assert_eq!(
        refused(&format!("{offer}{video}")),
        OfferError::TooMany("video")
    );
    for bad in [
        "",
        "v=0\r\n",
        "m=video 9 x\r\na=rtpmap:1 H264/90000\r\n",
        "\u{1f980}",
    ] {
        assert!(matches!(refused(bad), OfferError::Malformed(_)), "{bad}");
    }
    assert_eq!(refused(&"a".repeat(MAX_OFFER + 1)), OfferError::TooLong);
    // Cut off or with octets that were not in it: refused or accepted, but never a panic.
    for at in (0..offer.len()).step_by(7) {
        let _ = Offer::parse(&offer[..at]);
        let mut changed = offer.clone().into_bytes();
        changed[at] = b'9';
        let parsed = Offer::parse(core::str::from_utf8(&changed).unwrap());
        let accept = |offer| Session::accept(offer, &credentials(), &[address(2)], Instant::now());
        let _ = parsed.map(accept);
    }
    // Digits changed at random, which gives payload types twice, parameters of others and numbers out of range.
    let mut random = namecast_units::Random::from_seed(3);
    let digits: Vec<_> = (0..offer.len())
        .filter(|&at| offer.as_bytes()[at].is_ascii_digit())
        .collect();
    for _ in 0..200 {
        let mut changed = offer.clone().into_bytes();
        for _ in 0..=random.below(6) {
            let at = digits[random.below(digits.len() as u64) as usize];
            changed[at] = b'0' + random.below(10) as u8;
        }
        let _ = answer(core::str::from_utf8(&changed).unwrap());
    }
}
