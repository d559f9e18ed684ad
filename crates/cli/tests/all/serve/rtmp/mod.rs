//! An encoder that pushes what ffmpeg 5.1 cannot: Enhanced RTMP, with times of its choice.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const HANDSHAKE: usize = 1_536;
/// Chunks are so long, so that key frames take several.
const CHUNK_SIZE: usize = 1_000;
const AUDIO: u8 = 8;
const VIDEO: u8 = 9;
const FRAME: Duration = Duration::from_millis(40);

/// Pictures as FLV has them: what decoders need first, and half a minute of frames, each with its first octets.
pub(crate) struct Clip {
    config: Vec<u8>,
    frames: Vec<Vec<u8>>,
}

impl Clip {
    /// Encodes 320×180 pixels 25 times a second with a key frame each second; `config` is the box of MP4 with what decoders need.
    /// `four_cc` marks them as Enhanced RTMP does; without it they are marked as H.264 was before.
    pub(crate) fn encode(options: &str, config: &[u8; 4], four_cc: Option<&[u8; 4]>) -> Self {
        let line = format!(
            "-loglevel error -f lavfi -i testsrc2=size=320x180:rate=25 -t 30 -pix_fmt yuv420p {options} -g 25 \
             -movflags frag_every_frame+empty_moov+default_base_moof -f mp4 -"
        );
        let output = Command::new("ffmpeg")
            .args(line.split_whitespace())
            .output();
        let file = output.unwrap().stdout;
        let size = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        let found = file.windows(4).position(|it| it == config).unwrap();
        let body = &file[found + 4..found - 4 + size(found - 4)];
        let head = |is_config: bool, key: bool| match four_cc {
            Some(four_cc) => {
                let first = 0x80 | if key { 0x10 } else { 0x20 } | if is_config { 0 } else { 3 };
                [&[first], &four_cc[..]].concat()
            }
            None => vec![if key { 0x17 } else { 0x27 }, u8::from(!is_config), 0, 0, 0],
        };
        let config = [head(true, true), body.to_vec()].concat();
        let (mut frames, mut at) = (Vec::new(), 0);
        while at < file.len() {
            let end = at + size(at);
            if &file[at + 4..at + 8] == b"mdat" {
                let key = frames.len() % 25 == 0;
                frames.push([head(false, key), file[at + 8..end].to_vec()].concat());
            }
            at = end;
        }
        Self { config, frames }
    }

    /// The same without its key frames.
    pub(crate) fn without_keys(mut self) -> Self {
        self.frames.retain(|frame| frame[0] >> 4 & 7 != 1);
        self
    }
}

/// Pictures and sound, 10 s of them, as ffmpeg writes them into FLV: kind, time and body of each tag.
pub(crate) struct Tape(Vec<(u8, u32, Vec<u8>)>);

impl Tape {
    /// Encodes 320×180 pixels 25 times a second with a key frame each second, and a tone in AAC with so many samples a second and
    /// channels.
    pub(crate) fn encode(sample_rate: u32, channels: u32) -> Self {
        let line = format!(
            "-loglevel error -f lavfi -i testsrc2=size=320x180:rate=25 -f lavfi -i sine=sample_rate={sample_rate} -t 10 \
             -c:v libx264 -preset ultrafast -tune zerolatency -pix_fmt yuv420p -g 25 -c:a aac -ac {channels} -f flv -"
        );
        let output = Command::new("ffmpeg")
            .args(line.split_whitespace())
            .output();
        let file = output.unwrap().stdout;
        let (mut tags, mut at) = (Vec::new(), 13);
        while let Some(head) = file.get(at..at + 11) {
            let number = |at: usize| u32::from_be_bytes([0, head[at], head[at + 1], head[at + 2]]);
            let end = at + 11 + number(1) as usize;
            if matches!(head[0], AUDIO | VIDEO) {
                tags.push((head[0], number(4), file[at + 11..end].to_vec()));
            }
            at = end + 4;
        }
        Self(tags)
    }
}

fn text(text: &str) -> Vec<u8> {
    [&[2, 0, text.len() as u8], text.as_bytes()].concat()
}

fn number(number: f64) -> Vec<u8> {
    [&[0][..], &number.to_be_bytes()].concat()
}

/// A connection to a server.
pub(crate) struct Encoder {
    stream: TcpStream,
    /// Whether times of four octets are repeated in each further chunk.
    repeats: bool,
}

impl Encoder {
    /// Connects to `address`, as `127.0.0.1:1935`, and wants to push as `name`.
    pub(crate) fn connect(address: &str, name: &str, repeats: bool) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&[3]).unwrap();
        stream.write_all(&[0; HANDSHAKE]).unwrap();
        let mut theirs = [0; 1 + 2 * HANDSHAKE];
        stream.read_exact(&mut theirs).unwrap();
        stream.write_all(&theirs[1..=HANDSHAKE]).unwrap();
        let mut encoder = Self { stream, repeats };
        encoder.send(1, 0, &(CHUNK_SIZE as u32).to_be_bytes());
        let app = [&[3, 0, 3][..], b"app", &text("app"), &[0, 0, 9]].concat();
        encoder.send(20, 0, &[text("connect"), number(1.0), app].concat());
        let null = vec![5];
        let create = [text("createStream"), number(2.0), null.clone()];
        encoder.send(20, 0, &create.concat());
        let publish = [text("publish"), number(3.0), null, text(name), text("live")];
        encoder.send(20, 0, &publish.concat());
        let mut said = Vec::new();
        let start = b"NetStream.Publish.Start";
        while !said.windows(start.len()).any(|it| it == start) {
            let mut octets = [0; 1_024];
            let count = encoder.stream.read(&mut octets).unwrap();
            assert!(count > 0, "refused: {}", String::from_utf8_lossy(&said));
            said.extend(&octets[..count]);
        }
        encoder
    }

    /// Pushes a clip in real time, from `time` in milliseconds on, as long as the server takes it until it `is_over`. Returns what it said.
    pub(crate) fn push(mut self, clip: &Clip, time: u32, is_over: &AtomicBool) -> String {
        let codec = [&[0, 12][..], b"videocodecid", &number(7.0), &[0, 0, 9]].concat();
        let about = [text("onMetaData"), vec![3], codec].concat();
        self.send(18, 0, &about);
        self.send(VIDEO, 0, &clip.config);
        let began = Instant::now();
        let mut is_open = true;
        for (index, frame) in clip.frames.iter().enumerate() {
            let due = FRAME * index as u32;
            thread::sleep(due.saturating_sub(began.elapsed()));
            is_open = self.send(VIDEO, time.wrapping_add(due.as_millis() as u32), frame);
            if !is_open || is_over.load(Ordering::Relaxed) {
                break;
            }
        }
        let mut said = Vec::new();
        if is_open {
            // To say good-bye, so that the server does, too.
            let _ = self.stream.shutdown(std::net::Shutdown::Write);
        }
        let _ = self.stream.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Pushes tapes one after another in real time until it `is_over`.
    pub(crate) fn play(mut self, tapes: &[Tape], is_over: &AtomicBool) {
        let began = Instant::now();
        for (index, Tape(tags)) in tapes.iter().enumerate() {
            for (kind, time, body) in tags {
                let time = time + 10_000 * index as u32;
                let due = Duration::from_millis(time.into());
                thread::sleep(due.saturating_sub(began.elapsed()));
                if is_over.load(Ordering::Relaxed) || !self.send(*kind, time, body) {
                    return;
                }
            }
        }
    }

    /// Sends a message. Returns false if the server has closed the connection.
    fn send(&mut self, kind: u8, time: u32, payload: &[u8]) -> bool {
        let number = if kind == 1 { 2 } else { 4 };
        let is_long = time >= 0xff_ffff;
        let extended = time.to_be_bytes();
        let mut octets = vec![number];
        octets.extend(match is_long {
            true => [255; 3],
            false => [extended[1], extended[2], extended[3]],
        });
        octets.extend(&(payload.len() as u32).to_be_bytes()[1..]);
        octets.extend([kind, u8::from(matches!(kind, AUDIO | VIDEO)), 0, 0, 0]);
        octets.extend(extended.iter().filter(|_| is_long));
        for (index, chunk) in payload.chunks(CHUNK_SIZE).enumerate() {
            if index > 0 {
                octets.push(0xc0 | number);
                octets.extend(extended.iter().filter(|_| is_long && self.repeats));
            }
            octets.extend(chunk);
        }
        self.stream.write_all(&octets).is_ok()
    }
}
