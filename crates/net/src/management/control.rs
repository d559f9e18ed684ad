//! ControlParameters and ControlResponse, the two sides of a management command.
//!
//! NFD Management, "Control Command": a command's parameters are one component of its Interest's name, the response is
//! the Content of the Data packet that answers it.

use bytes::Bytes;
use namecast_packet::tlv::{self, Reader, Writer};
use namecast_packet::{DecodeError, Name, Problem};
use namecast_units::Duration;

const CONTROL_PARAMETERS: u32 = 104;
const FACE_ID: u32 = 105;
const COST: u32 = 106;
const FLAGS: u32 = 108;
const EXPIRATION_PERIOD: u32 = 109;
const ORIGIN: u32 = 111;
const CONTROL_RESPONSE: u32 = 101;
const STATUS_CODE: u32 = 102;
const STATUS_TEXT: u32 = 103;

/// Route flag: the route also serves longer prefixes that have routes of their own.
pub(crate) const CHILD_INHERIT: u64 = 1;

/// What a command is about; each command uses some of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlParameters {
    /// Prefix of the route.
    pub(crate) name: Option<Name>,
    /// Face of the route; none or 0: the one the command came in on.
    pub(crate) face: Option<u64>,
    /// Who made the route.
    pub(crate) origin: Option<u64>,
    /// Cost of the route.
    pub(crate) cost: Option<u64>,
    /// Flags of the route.
    pub(crate) flags: Option<u64>,
    /// After what time the route ends; none: never.
    pub(crate) expiration: Option<Duration>,
}

impl ControlParameters {
    /// Decodes the ControlParameters element that fills `wire` whole. Unknown elements are skipped, and any order is
    /// taken, as ndn-cxx does.
    ///
    /// # Errors
    /// On a malformed element or field.
    pub(crate) fn decode(wire: &Bytes) -> Result<Self, DecodeError> {
        let whole = Reader::new(wire).only("ControlParameters", CONTROL_PARAMETERS)?;
        Self::decode_fields(wire, Reader::within(wire, whole.value))
    }

    fn decode_fields(wire: &Bytes, mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        let mut parameters = Self::default();
        while let Some(field) = reader.element("ControlParameters")? {
            let number = |name| field.number(name, wire).map(Some);
            match field.element_type {
                tlv::NAME => parameters.name = Some(Name::from_element(wire, &field)?),
                FACE_ID => parameters.face = number("FaceId")?,
                ORIGIN => parameters.origin = number("Origin")?,
                COST => parameters.cost = number("Cost")?,
                FLAGS => parameters.flags = number("Flags")?,
                EXPIRATION_PERIOD => {
                    parameters.expiration = number("ExpirationPeriod")?.map(Duration::from_millis);
                }
                _ => {}
            }
        }
        Ok(parameters)
    }

    /// The ControlParameters element, fields in the order of ndn-cxx.
    pub(crate) fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        self.encode_to(&mut writer);
        writer.finish()
    }

    fn encode_to(&self, writer: &mut Writer) {
        writer.nested(CONTROL_PARAMETERS, |fields| {
            if let Some(name) = &self.name {
                name.encode(fields);
            }
            let expiration = self
                .expiration
                .map(|period| u64::try_from(period.as_millis()).unwrap_or(u64::MAX));
            for (element_type, value) in [
                (FACE_ID, self.face),
                (ORIGIN, self.origin),
                (COST, self.cost),
                (FLAGS, self.flags),
                (EXPIRATION_PERIOD, expiration),
            ] {
                if let Some(value) = value {
                    fields.number(element_type, value);
                }
            }
        });
    }
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ControlResponse {
    /// 200 if it was carried out.
    pub(crate) code: u64,
    /// The same for people.
    pub(crate) text: String,
    /// What was carried out. Always there, as some clients fail without.
    pub(crate) parameters: ControlParameters,
}

impl ControlResponse {
    /// Decodes the ControlResponse element that fills `wire` whole; a body that is missing reads as empty.
    ///
    /// # Errors
    /// On a malformed element, or if there is no status code.
    pub(crate) fn decode(wire: &Bytes) -> Result<Self, DecodeError> {
        let whole = Reader::new(wire).only("ControlResponse", CONTROL_RESPONSE)?;
        let mut reader = Reader::within(wire, whole.value);
        let (mut code, mut text) = (None, String::new());
        let mut parameters = ControlParameters::default();
        while let Some(field) = reader.element("ControlResponse")? {
            match field.element_type {
                STATUS_CODE => code = Some(field.number("StatusCode", wire)?),
                STATUS_TEXT => {
                    text = String::from_utf8_lossy(&wire[field.value.clone()]).into_owned();
                }
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
            text,
            parameters,
        })
    }

    /// The ControlResponse element.
    pub(crate) fn encode(&self) -> Bytes {
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
