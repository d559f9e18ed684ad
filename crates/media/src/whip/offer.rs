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
        "the offer has no H.264, which is the video codec that is accepted: choose it in the encoder's settings; browsers without it \
         are Firefox without its OpenH264 plug-in and Chromium builds without proprietary codecs"
    )]
    NoH264,
    /// The sound has no codec in common with ours.
    #[error(
        "the offer has no Opus, which is the audio codec that is accepted: choose it in the encoder's settings"
    )]
    NoOpus,
}

/// An offer that can be answered.
#[derive(Debug)]
pub struct Offer {
    pub(super) sdp: SdpOffer,
    pub(super) has_video: bool,
    pub(super) has_audio: bool,
}

/// What is looked at in one media section (RFC 8866, section 5.14).
#[derive(Debug, Default)]
struct Section<'a> {
    kind: &'a str,
    is_sent: bool,
    has_codec: bool,
    is_simulcast: bool,
}

impl Offer {
    /// Reads an offer.
    ///
    /// # Errors
    /// If it is malformed or does not send what is accepted: at most one H.264 and one Opus track.
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
        for (tracks, kind, missing) in [
            (&video, "video", OfferError::NoH264),
            (&audio, "audio", OfferError::NoOpus),
        ] {
            match tracks[..] {
                [_, _, ..] => return Err(OfferError::TooMany(kind)),
                [track] if track.is_simulcast => return Err(OfferError::Simulcast),
                [track] if !track.has_codec => return Err(missing),
                _ => {}
            }
        }
        let sdp = SdpOffer::from_sdp_string(text);
        let sdp = sdp.map_err(|error| OfferError::Malformed(error.to_string()))?;
        if video.is_empty() && audio.is_empty() {
            return Err(OfferError::Nothing);
        }
        Ok(Self {
            sdp,
            has_video: !video.is_empty(),
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

impl Section<'_> {
    fn note(&mut self, attribute: &str) {
        let codec = match self.kind {
            "video" => "H264/",
            _ => "opus/",
        };
        if let Some(mapping) = attribute.strip_prefix("rtpmap:") {
            let (_, name) = mapping.split_once(' ').unwrap_or_default();
            let name = name.get(..codec.len()).unwrap_or_default();
            self.has_codec |= name.eq_ignore_ascii_case(codec);
        } else if attribute == "recvonly" || attribute == "inactive" {
            self.is_sent = false;
        } else if attribute.starts_with("simulcast:") {
            self.is_simulcast = true;
        }
    }
}
