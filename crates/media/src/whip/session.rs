//! One pusher, from its offer to its end.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use str0m::format::{Codec, FormatParams};
use str0m::ice::{IceCreds, StunMessage};
use str0m::media::{Frequency, KeyframeRequestKind, MediaData, MediaKind, Mid};
use str0m::net::{Protocol, Receive};
use str0m::rtp::Extension;
use str0m::{Candidate, Event, Input, Rtc, RtcConfig};

use super::offer::{Offer, OfferError, VideoChoice};
use super::program::{Fate, Frame, Program};
use crate::found::Received;

/// First payload type for pictures and that of sound; only the pusher's count in an answer.
const FIRST_PAYLOAD: u8 = 96;
const SOUND_PAYLOAD: u8 = 63;
/// A key frame is asked for so long after the last one: those who join wait at most 2 s, the answer's way included.
const KEY_INTERVAL: Duration = Duration::from_millis(1_700);
/// A request that was not answered is repeated after this.
const KEY_REPEAT: Duration = Duration::from_millis(300);
/// Sound that is missing is waited for so long before it is given up.
const MAX_WAIT_AUDIO: Duration = Duration::from_millis(100);
/// From the answer to the first frame at most.
const FIRST_MEDIA: Duration = Duration::from_secs(10);
/// A pusher from whom nothing came for this long is gone.
const SILENCE: Duration = Duration::from_secs(5);
/// The session's clock begins here, in microseconds, so that what was reordered has times, too.
const CLOCK_START: i64 = 1_000_000;

/// Secrets by which the pusher finds the session (RFC 8445, section 5.3): at least 24 and 128 random bits.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// What datagrams name the session by.
    pub user_fragment: String,
    /// What they are authenticated with.
    pub password: String,
}

/// What a session gives.
#[derive(Debug)]
pub enum Output {
    /// To be sent.
    Datagram(Datagram),
    /// The next octets of the container.
    Media(Bytes),
}

/// One UDP datagram.
#[derive(Debug)]
pub struct Datagram {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes to.
    pub destination: SocketAddr,
    /// What it holds.
    pub payload: Vec<u8>,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// It was closed by the pusher or here.
    #[error("the pusher left")]
    Left,
    /// Nothing came any more.
    #[error("nothing came for {} s", SILENCE.as_secs())]
    Silent,
    /// It never began.
    #[error(
        "no picture or sound came within {} s: the pusher reaches the web server, but UDP does not come through, or its track is muted",
        FIRST_MEDIA.as_secs()
    )]
    NoMedia,
    /// The connection's state does not allow to go on.
    #[error("the connection broke")]
    Broken,
}

/// What a session counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames put into the container.
    pub frames: u64,
    /// Pictures left out because one before them was lost.
    pub undecodable: u64,
    /// Datagrams and frames that broke the format.
    pub malformed: u64,
    /// Key frames asked for.
    pub key_requests: u64,
}

/// One pusher.
#[derive(Debug)]
pub struct Session {
    rtc: Rtc,
    program: Program,
    pictures: Option<Pictures>,
    started_at: Instant,
    heard_at: Instant,
    timeout: Instant,
    outputs: VecDeque<Output>,
    counters: Counters,
    ended: Option<Ended>,
}

/// The track of pictures, and its key frames.
#[derive(Debug)]
struct Pictures {
    mid: Mid,
    /// When the next key frame is asked for.
    ask_at: Instant,
}

impl Session {
    /// Accepts an offer. Returns the answer, too; the pusher finds the session at `addresses`.
    ///
    /// # Errors
    /// If the offer turns out to be malformed.
    pub fn accept(
        offer: Offer,
        credentials: &Credentials,
        addresses: &[SocketAddr],
        now: Instant,
    ) -> Result<(Self, String), OfferError> {
        let mut rtc = config(credentials, offer.video.as_ref()).build(now);
        for &address in addresses {
            if let Ok(candidate) = Candidate::host(address, Protocol::Udp) {
                rtc.add_local_candidate(candidate);
            }
        }
        let program = Program::new(offer.video.is_some(), offer.has_audio);
        let answer = rtc.sdp_api().accept_offer(offer.sdp);
        let answer = answer.map_err(|error| OfferError::malformed(&error))?;
        // Whatever was offered, nothing is sent from here (RFC 9725, section 4.2).
        let answer = answer.to_sdp_string().replace("a=sendrecv", "a=recvonly");
        // A section that is refused would be silence to its end.
        if answer.lines().any(is_refused) {
            return Err(OfferError::Unmatched);
        }
        let mut session = Self {
            rtc,
            program,
            pictures: None,
            started_at: now,
            heard_at: now,
            timeout: now,
            outputs: VecDeque::new(),
            counters: Counters::default(),
            ended: None,
        };
        session.drain(now);
        Ok((session, answer))
    }

    /// Takes a datagram that came to `destination`. Whatever is in it, the session goes on.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        source: SocketAddr,
        destination: SocketAddr,
        payload: &[u8],
    ) {
        let Ok(contents) = payload.try_into() else {
            self.counters.malformed += 1;
            return;
        };
        let received = Receive {
            proto: Protocol::Udp,
            source,
            destination,
            contents,
        };
        let input = Input::Receive(now, received);
        if !self.rtc.accepts(&input) {
            self.counters.malformed += 1;
            return;
        }
        self.heard_at = now;
        if self.rtc.handle_input(input).is_err() {
            self.counters.malformed += 1;
        }
        self.drain(now);
    }

    /// Does what is due. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now >= self.heard_at + SILENCE && self.counters.frames > 0 {
            self.end(Ended::Silent);
        } else if now >= self.started_at + FIRST_MEDIA && self.counters.frames == 0 {
            self.end(Ended::NoMedia);
        }
        self.ask_for_key(now);
        if self.rtc.handle_input(Input::Timeout(now)).is_err() {
            self.end(Ended::Broken);
        }
        self.drain(now);
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Instant {
        let bound = match self.counters.frames {
            0 => self.started_at + FIRST_MEDIA,
            _ => self.heard_at + SILENCE,
        };
        let key = self.pictures.as_ref().map_or(bound, |it| it.ask_at);
        self.timeout.min(bound).min(key)
    }

    /// What is to be sent or read next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Says good-bye to the pusher.
    pub fn close(&mut self, now: Instant) {
        if self.rtc.close().is_ok() {
            self.drain(now);
        }
        self.end(Ended::Left);
    }

    /// Why it is over, if it is.
    pub const fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Returns the media received.
    pub const fn received(&self) -> &Received {
        self.program.received()
    }

    /// What was counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    fn end(&mut self, why: Ended) {
        self.ended.get_or_insert(why);
    }

    /// Takes everything that the connection has to give.
    fn drain(&mut self, now: Instant) {
        while self.rtc.is_alive() {
            match self.rtc.poll_output() {
                Ok(str0m::Output::Timeout(at)) => {
                    // Never at once: a deadline that is past is due with the next millisecond.
                    self.timeout = at.max(now + Duration::from_millis(1));
                    return;
                }
                Ok(str0m::Output::Transmit(it)) => {
                    self.outputs.push_back(Output::Datagram(Datagram {
                        source: it.source,
                        destination: it.destination,
                        payload: it.contents.to_vec(),
                    }));
                }
                Ok(str0m::Output::Event(event)) => self.handle_event(event, now),
                Err(_) => return self.end(Ended::Broken),
            }
        }
        self.end(Ended::Left);
    }

    fn handle_event(&mut self, event: Event, now: Instant) {
        match event {
            Event::MediaAdded(added) if added.kind == MediaKind::Video => {
                self.pictures = Some(Pictures {
                    mid: added.mid,
                    ask_at: now + KEY_REPEAT,
                });
            }
            Event::MediaData(data) => self.handle_frame(&data, now),
            Event::Closed => self.end(Ended::Left),
            _ => {}
        }
    }

    fn handle_frame(&mut self, data: &MediaData, now: Instant) {
        let pictures = self.pictures.as_mut().filter(|it| it.mid == data.mid);
        let kind = match pictures {
            Some(_) => MediaKind::Video,
            None => MediaKind::Audio,
        };
        let key = data.is_keyframe();
        if let (Some(pictures), true) = (pictures, key) {
            pictures.ask_at = now + KEY_INTERVAL;
        }
        let since = data.network_time.saturating_duration_since(self.started_at);
        let fate = self.program.take(&Frame {
            kind,
            codec: data.params.spec().codec,
            key,
            is_next: data.contiguous,
            rtp: data.time,
            arrived: CLOCK_START.saturating_add_unsigned(since.as_micros() as u64),
            report: data.last_sender_info,
            payload: &data.data,
        });
        match fate {
            Fate::Written(octets) => {
                self.counters.frames += 1;
                self.outputs.push_back(Output::Media(octets));
            }
            Fate::NeedsKey => {
                self.counters.undecodable += 1;
                if let Some(pictures) = &mut self.pictures {
                    pictures.ask_at = pictures.ask_at.min(now + KEY_REPEAT);
                }
            }
            Fate::Early => {}
            Fate::Malformed => self.counters.malformed += 1,
        }
    }

    /// Requests a key frame if it is time, and again if none comes.
    fn ask_for_key(&mut self, now: Instant) {
        let Some(pictures) = self.pictures.as_mut().filter(|it| it.ask_at <= now) else {
            return;
        };
        pictures.ask_at = now + KEY_REPEAT;
        let Some(mut writer) = self.rtc.writer(pictures.mid) else {
            return;
        };
        // Before the first packet there is nobody to ask.
        if writer
            .request_keyframe(None, KeyframeRequestKind::Pli)
            .is_ok()
        {
            self.counters.key_requests += 1;
        }
    }
}

/// What a datagram names the session by that it is for, if it says so: those that find out whether a path works do (RFC 8445, section
/// 7.2.2).
pub fn user_fragment(datagram: &[u8]) -> Option<String> {
    let message = StunMessage::parse(datagram).ok()?;
    let (ours, _) = message.split_username()?;
    Some(ours.to_owned())
}

/// Whether this line of an answer refuses a track: its port is zero (RFC 3264, section 6).
fn is_refused(line: &str) -> bool {
    let media = line
        .strip_prefix("m=video ")
        .or(line.strip_prefix("m=audio "));
    media.is_some_and(|media| media.starts_with("0 "))
}

fn config(credentials: &Credentials, video: Option<&VideoChoice>) -> RtcConfig {
    // Without the extension for orientation, browsers turn pictures before they encode them.
    let mut config = RtcConfig::new()
        .set_ice_lite(true)
        .set_crypto_provider(str0m::crypto::from_feature_flags().into())
        .set_local_ice_credentials(IceCreds {
            ufrag: credentials.user_fragment.clone(),
            pass: credentials.password.clone(),
        })
        .clear_codecs()
        .clear_extension_map()
        .set_extension(1, Extension::TransportSequenceNumber)
        .set_extension(2, Extension::RtpMid)
        .set_reordering_timeout_audio(Some(MAX_WAIT_AUDIO));
    let codecs = config.codec_config();
    let sound = FormatParams {
        min_p_time: Some(10),
        use_inband_fec: Some(true),
        // Browsers send one channel to whoever does not ask for two.
        stereo: Some(true),
        ..FormatParams::default()
    };
    let rate = Frequency::FORTY_EIGHT_KHZ;
    codecs.add_config(
        SOUND_PAYLOAD.into(),
        None,
        Codec::Opus,
        rate,
        Some(2),
        sound,
    );
    match video {
        Some(VideoChoice::H264(forms)) => {
            for (payload, form) in (FIRST_PAYLOAD..126).step_by(2).zip(forms) {
                let repeats = Some((payload + 1).into());
                let (fragments, profile) = (form.is_fragmented, form.profile_level);
                codecs.add_h264(payload.into(), repeats, fragments, profile);
            }
        }
        Some(VideoChoice::Vp9) => codecs.enable_vp9(true),
        Some(VideoChoice::Av1) => codecs.enable_av1(true),
        Some(VideoChoice::Vp8) => codecs.enable_vp8(true),
        None => {}
    }
    config
}
