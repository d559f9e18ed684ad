//! Publications of members: who they are, what they show, and what they write.
//!
//! ```text
//!  Label 128, HandUp 130 (flag), Muted 132 (flag), Left 134 (flag), Text 136
//!  or, of sealed ones: Seal 138, Sealed 140
//! ```
//!
//! Each has the member's whole state, so that the newest alone says all of it.

use bytes::Bytes;
use namecast_packet::tlv::{Element, Fields, Reader, Writer};
use namecast_packet::{DecodeError, Problem};
use namecast_stream::Seal;

use crate::trust::MAX_TEXT;

const LABEL: u32 = 128;
const HAND_UP: u32 = 130;
const MUTED: u32 = 132;
const LEFT: u32 = 134;
const TEXT: u32 = 136;
const SEAL: u32 = 138;
const SEALED: u32 = 140;

/// Longest message to the group, in octets.
pub const MAX_MESSAGE: usize = 4_096;

/// State that a member shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Name shown to people, of 64 octets at most.
    pub label: String,
    /// Whether the member wants to speak.
    pub has_hand_up: bool,
    /// Whether its sound is off.
    pub is_muted: bool,
}

/// One publication of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publication {
    /// State of the member.
    pub status: Status,
    /// Whether the member leaves with it.
    pub has_left: bool,
    /// Message to the group, of 4096 octets at most; `None`: the state alone.
    pub text: Option<String>,
}

impl Publication {
    /// Returns the publication as the content of its Data.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.element(LABEL, self.status.label.as_bytes());
        let flags = [
            (HAND_UP, self.status.has_hand_up),
            (MUTED, self.status.is_muted),
            (LEFT, self.has_left),
        ];
        for (kind, _) in flags.iter().filter(|(_, is_set)| *is_set) {
            writer.element(*kind, &[]);
        }
        if let Some(text) = &self.text {
            writer.element(TEXT, text.as_bytes());
        }
        writer.finish()
    }

    /// Decodes a publication that fills `octets` whole.
    ///
    /// # Errors
    /// The first violation of the format, with field and offset.
    pub fn decode(octets: &Bytes) -> Result<Self, DecodeError> {
        const ORDER: [u32; 5] = [LABEL, HAND_UP, MUTED, LEFT, TEXT];
        let mut publication = Self::default();
        let mut fields = Fields::new(Reader::new(octets), "Publication", &ORDER);
        while let Some(field) = fields.field()? {
            match field.element_type {
                LABEL => publication.status.label = text(octets, &field, ("Label", MAX_TEXT))?,
                HAND_UP => {
                    field.flag("HandUp")?;
                    publication.status.has_hand_up = true;
                }
                MUTED => {
                    field.flag("Muted")?;
                    publication.status.is_muted = true;
                }
                LEFT => {
                    field.flag("Left")?;
                    publication.has_left = true;
                }
                _ => publication.text = Some(text(octets, &field, ("Text", MAX_MESSAGE))?),
            }
        }
        Ok(publication)
    }
}

impl Publication {
    /// Returns a sealed publication as the content of its Data.
    pub(super) fn seal(seal: &Seal, sealed: &[u8]) -> Bytes {
        let mut writer = Writer::default();
        writer.element(SEAL, &seal.encode()).element(SEALED, sealed);
        writer.finish()
    }

    /// Returns the seal of a sealed publication, and what it seals; `None`: `octets` are none.
    pub(super) fn sealed(octets: &Bytes) -> Option<(Seal, Bytes)> {
        let mut fields = Fields::new(Reader::new(octets), "Publication", &[SEAL, SEALED]);
        let value = |it: Element| octets.slice(it.value);
        let seal = fields.field().ok()?.filter(|it| it.element_type == SEAL);
        let seal = Seal::decode(&value(seal?))?;
        let sealed = fields.field().ok()?.filter(|it| it.element_type == SEALED);
        Some((seal, value(sealed?)))
    }
}

fn text(
    octets: &Bytes,
    element: &Element,
    (field, max): (&'static str, usize),
) -> Result<String, DecodeError> {
    let value = &octets[element.value.clone()];
    if value.len() > max {
        return Err(element.error(field, Problem::BadLength(value.len())));
    }
    let text = core::str::from_utf8(value);
    let text = text.map_err(|_| element.error(field, Problem::Malformed))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publications_read_as_they_were_written() {
        let publication = Publication {
            status: Status {
                label: "Ann".to_owned(),
                has_hand_up: true,
                is_muted: true,
            },
            has_left: true,
            text: Some("bye".to_owned()),
        };
        let octets = publication.encode();
        let expected = b"\x80\x03Ann\x82\x00\x84\x00\x86\x00\x88\x03bye";
        assert_eq!(&octets[..], expected);
        assert_eq!(Publication::decode(&octets), Ok(publication));
        // Fields of later versions are skipped.
        let later = Bytes::from_static(b"\x80\x01B\x90\x02..");
        assert_eq!(Publication::decode(&later).unwrap().status.label, "B");
    }

    #[test]
    fn long_or_malformed_text_is_refused_by_its_field() {
        let of = |label: usize, message: usize| Publication {
            status: Status {
                label: "x".repeat(label),
                ..Status::default()
            },
            text: Some("x".repeat(message)),
            ..Publication::default()
        };
        let decode = |it: &Publication| Publication::decode(&it.encode());
        assert!(decode(&of(64, 4_096)).is_ok());
        assert_eq!(decode(&of(65, 0)).unwrap_err().field, "Label");
        assert_eq!(decode(&of(10_000, 0)).unwrap_err().field, "Label");
        assert_eq!(decode(&of(0, 65_536)).unwrap_err().field, "Text");
        for octets in [&b"\x80\x01\xff"[..], b"\x82\x01\x00"] {
            assert!(Publication::decode(&Bytes::from_static(octets)).is_err());
        }
    }
}
