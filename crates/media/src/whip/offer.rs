//! What a pusher offers, checked for what a stream is made of, so that refusals say what to change.

use str0m::change::SdpOffer;

/// Octets that an offer may have: browsers' have 2 to 8 thousand.
pub const MAX_OFFER: usize = 64 * 1024;

/// Why an offer is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// It is longer than any that would be accepted.
    #[error("the offer has more than {MAX_OFFER} bytes")]
    TooLong,
    /// It is not SDP of WebRTC.
    #[error("the offer is not a session description of WebRTC: {0}")]
    Malformed(String),
    /// Neither pictures nor sound are sent.
    #[error("the offer sends neither video nor audio: add a track before creating it")]
    Nothing,
    /// More than one stream of a kind.
    #[error("the offer has more than one {0} track: push each as a stream of its own")]
    TooMany(&'static str),
    /// Several qualities of one picture.
    #[error(
        "the offer has several qualities of one picture (simulcast): send one, lower ones are made from it"
    )]
    Simulcast,
    /// The pictures have no codec in common with ours.
    #[error(
        "the offer's video codecs are {0}, none of which is accepted: choose H.264 (Baseline, Main or High), VP9, AV1 or VP8"
    )]
    NoVideoCodec(String),
    /// A track that looks acceptable is not.
    #[error(
        "no form of the offered codecs is accepted: choose H.264 (Baseline, Main or High), VP9, AV1 or VP8 for video, Opus for audio"
    )]
    Unmatched,
    /// The sound has no codec in common with ours.
    #[error(
        "the offer has no Opus, which is the audio codec that is accepted: choose it in the encoder's settings"
    )]
    NoOpus,
}

impl OfferError {
    /// By the words of the library, without its addresses in memory.
    pub(super) fn malformed(error: &dyn core::error::Error) -> Self {
        let text = error.to_string();
        let lines = text.lines().filter(|line| !line.contains("PointerOffset"));
        Self::Malformed(lines.collect::<Vec<_>>().join("; "))
    }
}

/// Profiles of H.264 that are accepted, by `profile_idc` (RFC 6184, section 8.1): Baseline, Main, Extended and High.
const H264_PROFILES: [u32; 4] = [0x42, 0x4d, 0x58, 0x64];
/// Forms of H.264 that are answered: browsers offer eight.
const MAX_FORMS: usize = 16;

/// One form of H.264, as it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct H264Form {
    /// Profile, constraints and level, as `profile-level-id` has them.
    pub(super) profile_level: u32,
    /// Whether units may be cut and put together (packetization-mode 1).
    pub(super) is_fragmented: bool,
}

/// Which codec of pictures an answer names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VideoChoice {
    /// H.264 in each form that is offered and accepted.
    H264(Vec<H264Form>),
    Vp9,
    Av1,
    Vp8,
}

/// An offer that can be answered.
#[derive(Debug)]
pub struct Offer {
    pub(super) sdp: SdpOffer,
    /// None: no pictures are sent.
    pub(super) video: Option<VideoChoice>,
    pub(super) has_audio: bool,
}

/// What is looked at in one media section (RFC 8866, section 5.14).
#[derive(Debug, Default)]
struct Section<'a> {
    kind: &'a str,
    is_sent: bool,
    is_simulcast: bool,
    /// Payload types, the codec of each, and its parameters.
    codecs: Vec<(&'a str, &'a str, &'a str)>,
}

impl Offer {
    /// Reads an offer.
    ///
    /// # Errors
    /// If it is malformed or does not send what is accepted: at most one track of pictures and one of Opus.
    pub fn parse(text: &str) -> Result<Self, OfferError> {
        if text.len() > MAX_OFFER {
            return Err(OfferError::TooLong);
        }
        let sections = sections(text);
        let sent = |kind| {
            let sent = sections
                .iter()
                .filter(move |it| it.kind == kind && it.is_sent);
            sent.collect::<Vec<_>>()
        };
        let (video, audio) = (sent("video"), sent("audio"));
        for (tracks, kind) in [(&video, "video"), (&audio, "audio")] {
            match tracks[..] {
                [_, _, ..] => return Err(OfferError::TooMany(kind)),
                [track] if track.is_simulcast => return Err(OfferError::Simulcast),
                _ => {}
            }
        }
        let choice = match video.first() {
            None => None,
            Some(track) => {
                let refused = || OfferError::NoVideoCodec(track.codec_names());
                Some(track.video_choice().ok_or_else(refused)?)
            }
        };
        if audio.first().is_some_and(|track| !track.has("opus")) {
            return Err(OfferError::NoOpus);
        }
        let sdp = SdpOffer::from_sdp_string(text);
        let sdp = sdp.map_err(|error| OfferError::malformed(&error))?;
        if video.is_empty() && audio.is_empty() {
            return Err(OfferError::Nothing);
        }
        Ok(Self {
            sdp,
            video: choice,
            has_audio: !audio.is_empty(),
        })
    }
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(media) = line.strip_prefix("m=") {
            let mut words = media.split(' ');
            let kind = words.next().unwrap_or_default();
            sections.push(Section {
                kind,
                // Port zero: refused or stopped.
                is_sent: words.next() != Some("0"),
                ..Section::default()
            });
        } else if let (Some(attribute), Some(section)) =
            (line.strip_prefix("a="), sections.last_mut())
        {
            section.note(attribute);
        }
    }
    sections
}

impl<'a> Section<'a> {
    fn note(&mut self, attribute: &'a str) {
        if let Some(mapping) = attribute.strip_prefix("rtpmap:") {
            let (payload, name) = mapping.split_once(' ').unwrap_or_default();
            let (codec, _) = name.split_once('/').unwrap_or((name, ""));
            self.codecs.push((payload, codec, ""));
        } else if let Some(format) = attribute.strip_prefix("fmtp:") {
            let (payload, parameters) = format.split_once(' ').unwrap_or_default();
            let described = self.codecs.iter_mut().find(|it| it.0 == payload);
            if let Some((_, _, known)) = described {
                *known = parameters;
            }
        } else if attribute == "recvonly" || attribute == "inactive" {
            self.is_sent = false;
        } else if attribute.starts_with("simulcast:") {
            self.is_simulcast = true;
        }
    }

    fn has(&self, codec: &str) -> bool {
        let mut codecs = self.codecs.iter();
        codecs.any(|(_, name, _)| name.eq_ignore_ascii_case(codec))
    }

    /// H.264, which most can pass through, before the others.
    fn video_choice(&self) -> Option<VideoChoice> {
        let h264 = self.codecs.iter();
        let h264 = h264.filter(|(_, name, _)| name.eq_ignore_ascii_case("H264"));
        let mut forms: Vec<_> = h264.filter_map(|it| H264Form::of(it.2)).collect();
        forms.sort_by_key(H264Form::rank);
        forms.dedup();
        forms.truncate(MAX_FORMS);
        if !forms.is_empty() {
            return Some(VideoChoice::H264(forms));
        }
        let others = [
            ("VP9", VideoChoice::Vp9),
            ("AV1", VideoChoice::Av1),
            ("VP8", VideoChoice::Vp8),
        ];
        let mut others = others.into_iter();
        others.find_map(|(name, choice)| self.has(name).then_some(choice))
    }

    /// For people, without what only repeats packets.
    fn codec_names(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for (_, name, parameters) in &self.codecs {
            let is_repair = ["rtx", "red", "ulpfec", "flexfec-03"].contains(name);
            let profile = parameter(parameters, "profile-level-id");
            let name = match profile.filter(|_| name.eq_ignore_ascii_case("H264")) {
                Some(profile) => format!("{name} {profile}"),
                None => (*name).to_owned(),
            };
            if !is_repair && !names.contains(&name) && names.len() < MAX_FORMS {
                names.push(name);
            }
        }
        match names.is_empty() {
            true => "not named".to_owned(),
            false => names.join(", "),
        }
    }
}

impl H264Form {
    /// By the parameters of a payload type; `None` if the profile is not accepted.
    fn of(parameters: &str) -> Option<Self> {
        // Without it, Baseline is meant (RFC 6184, section 8.1).
        let profile_level = match parameter(parameters, "profile-level-id") {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => 0x42_00_1f,
        };
        let is_accepted = H264_PROFILES.contains(&(profile_level >> 16));
        is_accepted.then(|| Self {
            profile_level,
            is_fragmented: parameter(parameters, "packetization-mode") == Some("1"),
        })
    }

    /// Lower ones come first in an answer, and senders take the first: units that may be cut before those that may not, and of the
    /// profiles Baseline, as each browser encodes it.
    fn rank(&self) -> (bool, u32) {
        (!self.is_fragmented, self.profile_level >> 16)
    }
}

/// A parameter of `a=fmtp`.
fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    let mut parameters = parameters.split(';').filter_map(|it| it.split_once('='));
    let found = parameters.find(|(found, _)| found.trim().eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}
