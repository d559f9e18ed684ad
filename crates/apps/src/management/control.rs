//! ControlParameters and ControlResponse, the two sides of a management command.
//!
//! NFD Management, "Control Command": a command's parameters are one component of its Interest's name, the response is
//! the Content of the Data packet that answers it.

use bytes::Bytes;
use namecast_packet::tlv::{self, Reader, Writer};
use namecast_packet::{DecodeError, Field, Name, Problem, tlv_fields};
use namecast_units::Duration;

use super::Item;
use super::numbers::*;

/// Route flag: the route also serves longer prefixes that have routes of their own.
pub const CHILD_INHERIT: u64 = 1;
/// Route flag: for names under its prefix, routes of shorter prefixes do not apply.
pub const CAPTURE: u64 = 2;
/// Route flag, ours: next hops that the prefix inherits come after this route, whatever their cost. Others ignore it.
pub const PRECEDE: u64 = 4;

/// What a command is about; each command uses some of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlParameters {
    /// Prefix of the route, of the strategy choice, or of the Data.
    pub name: Option<Name>,
    /// Face; none or 0: the one the command came in on.
    pub face: Option<u64>,
    /// The peer's address.
    pub uri: Option<String>,
    /// This node's address.
    pub local_uri: Option<String>,
    /// Who made the route.
    pub origin: Option<u64>,
    /// Cost of the route.
    pub cost: Option<u64>,
    /// Data packets that the content store may hold.
    pub capacity: Option<u64>,
    /// How many Data packets to erase, or how many were.
    pub count: Option<u64>,
    /// Flags of the route, the face or the content store.
    pub flags: Option<u64>,
    /// Which of the flags are meant.
    pub mask: Option<u64>,
    /// Name of a strategy.
    pub strategy: Option<Name>,
    /// After what time the route ends; none: never.
    pub expiration: Option<Duration>,
    /// What ends the face: 0 persistent, 1 on demand, 2 permanent.
    pub persistency: Option<u64>,
    /// First pause between congestion marks, in nanoseconds.
    pub base_congestion_marking_interval: Option<u64>,
    /// Queue from which on packets are marked, in octets.
    pub default_congestion_threshold: Option<u64>,
    /// Longest frame, in octets.
    pub mtu: Option<u64>,
}

impl ControlParameters {
    /// Decodes the ControlParameters element that fills `wire` whole. Unknown elements are skipped, and any order is
    /// taken, as ndn-cxx does.
    ///
    /// # Errors
    /// On a malformed element or field.
    pub fn decode(wire: &Bytes) -> Result<Self, DecodeError> {
        let whole = Reader::new(wire).only("ControlParameters", CONTROL_PARAMETERS)?;
        Self::decode_fields(wire, Reader::within(wire, whole.value))
    }

    /// What is wanted of a flag, if it is meant.
    pub fn flag(&self, flag: u64) -> Option<bool> {
        let is_meant = self.mask.unwrap_or(0) & flag != 0;
        is_meant.then(|| self.flags.unwrap_or(0) & flag != 0)
    }

    /// The ControlParameters element, fields in the order of ndn-cxx.
    pub fn encode(&self) -> Bytes {
        Item::encode(self)
    }
}

impl Item for ControlParameters {
    const TYPE: u32 = CONTROL_PARAMETERS;
    const WHAT: &'static str = "ControlParameters";

    tlv_fields! {
        tlv::NAME => name,
        FACE_ID => face,
        URI => uri,
        LOCAL_URI => local_uri,
        ORIGIN => origin,
        COST => cost,
        CAPACITY => capacity,
        COUNT => count,
        FLAGS => flags,
        MASK => mask,
        STRATEGY => strategy,
        EXPIRATION_PERIOD => expiration,
        FACE_PERSISTENCY => persistency,
        BASE_CONGESTION_MARKING_INTERVAL => base_congestion_marking_interval,
        DEFAULT_CONGESTION_THRESHOLD => default_congestion_threshold,
        MTU => mtu,
    }
}

/// Whole milliseconds.
pub fn millis(period: Duration) -> u64 {
    u64::try_from(period.as_millis()).unwrap_or(u64::MAX)
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlResponse {
    /// 200 if it was carried out.
    pub code: u64,
    /// The same for people.
    pub text: String,
    /// What was carried out. Always there, as some clients fail without.
    pub parameters: ControlParameters,
}

impl ControlResponse {
    /// Decodes the ControlResponse element that fills `wire` whole; a body that is missing reads as empty.
    ///
    /// # Errors
    /// On a malformed element, or if there is no status code.
    pub fn decode(wire: &Bytes) -> Result<Self, DecodeError> {
        let whole = Reader::new(wire).only("ControlResponse", CONTROL_RESPONSE)?;
        let mut reader = Reader::within(wire, whole.value);
        let (mut code, mut status_text) = (None, String::new());
        let mut parameters = ControlParameters::default();
        while let Some(field) = reader.element("ControlResponse")? {
            match field.element_type {
                STATUS_CODE => code = Some(field.number("StatusCode", wire)?),
                STATUS_TEXT => status_text = Field::read("StatusText", wire, &field)?,
                CONTROL_PARAMETERS => {
                    let body = Reader::within(wire, field.value.clone());
                    parameters = ControlParameters::decode_fields(wire, body)?;
                }
                _ => {}
            }
        }
        let code = code.ok_or(DecodeError::new("StatusCode", wire.len(), Problem::Missing))?;
        Ok(Self {
            code,
            text: status_text,
            parameters,
        })
    }

    /// The ControlResponse element.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.nested(CONTROL_RESPONSE, |response| {
            response.number(STATUS_CODE, self.code);
            response.element(STATUS_TEXT, self.text.as_bytes());
            self.parameters.encode_to(response);
        });
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> ControlParameters {
        ControlParameters {
            name: Some("/a".parse().unwrap()),
            face: Some(300),
            origin: Some(65),
            cost: Some(0),
            flags: Some(2),
            expiration: Some(Duration::from_secs(1_200)),
            ..ControlParameters::default()
        }
    }

    /// Written by hand from NFD's numbers: name, face 300, origin 65, cost 0, flags 2, 1 200 000 ms.
    #[test]
    fn parameters_are_encoded_in_the_order_of_ndn_cxx() {
        let wire = [
            104, 26, 7, 3, 8, 1, b'a', 105, 2, 1, 44, 111, 1, 65, 106, 1, 0, 108, 1, 2, 109, 4, 0,
            18, 79, 128,
        ];
        let mut expected = wire.to_vec();
        expected[1] = u8::try_from(wire.len() - 2).unwrap();
        assert_eq!(route().encode(), expected);
        assert_eq!(ControlParameters::decode(&route().encode()), Ok(route()));
    }

    #[test]
    fn unknown_fields_and_any_order_are_taken() {
        let wire = Bytes::from_static(&[104, 11, 106, 1, 7, 133, 1, 0, 7, 3, 8, 1, b'a']);
        let parameters = ControlParameters::decode(&wire).unwrap();
        assert_eq!(parameters.cost, Some(7));
        assert_eq!(parameters.name, Some("/a".parse().unwrap()));
    }

    #[test]
    fn responses_read_back() {
        let response = ControlResponse {
            code: 410,
            text: "no such face".to_owned(),
            parameters: route(),
        };
        assert_eq!(ControlResponse::decode(&response.encode()), Ok(response));
    }

    #[test]
    fn a_response_without_a_body_is_taken_and_one_without_a_code_is_not() {
        let bare = Bytes::from_static(&[101, 6, 102, 1, 200, 103, 1, b'k']);
        assert_eq!(ControlResponse::decode(&bare).unwrap().code, 200);
        let no_code = Bytes::from_static(&[101, 3, 103, 1, b'k']);
        let error = ControlResponse::decode(&no_code).unwrap_err();
        assert_eq!(
            (error.field, error.problem),
            ("StatusCode", Problem::Missing)
        );
    }
}
