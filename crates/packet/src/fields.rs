//! Structures whose elements are listed once, for reader and writer.

use bytes::Bytes;
use namecast_units::Duration;

use crate::tlv::{Element, NAME, Reader, Writer};
use crate::{DecodeError, Name};

/// What one element of a structure holds. An element that the structure may lack is an `Option`.
pub trait Field: Sized {
    /// Writes the element.
    fn write(&self, element_type: u32, writer: &mut Writer);

    /// Reads the element `field` of the structure `what`.
    ///
    /// # Errors
    /// On a malformed value.
    fn read(what: &'static str, wire: &Bytes, field: &Element) -> Result<Self, DecodeError>;
}

impl Field for u64 {
    fn write(&self, element_type: u32, writer: &mut Writer) {
        writer.number(element_type, *self);
    }

    fn read(what: &'static str, wire: &Bytes, field: &Element) -> Result<Self, DecodeError> {
        field.number(what, wire)
    }
}

/// Milliseconds.
impl Field for Duration {
    fn write(&self, element_type: u32, writer: &mut Writer) {
        let millis = u64::try_from(self.as_millis()).unwrap_or(u64::MAX);
        writer.number(element_type, millis);
    }

    fn read(what: &'static str, wire: &Bytes, field: &Element) -> Result<Self, DecodeError> {
        field.number(what, wire).map(Self::from_millis)
    }
}

impl Field for String {
    fn write(&self, element_type: u32, writer: &mut Writer) {
        writer.element(element_type, self.as_bytes());
    }

    fn read(_: &'static str, wire: &Bytes, field: &Element) -> Result<Self, DecodeError> {
        Ok(Self::from_utf8_lossy(&wire[field.value.clone()]).into_owned())
    }
}

/// A name is an element itself; within one of another type, it is all that this holds.
impl Field for Name {
    fn write(&self, element_type: u32, writer: &mut Writer) {
        match element_type {
            NAME => self.encode(writer),
            _ => drop(writer.nested(element_type, |inner| self.encode(inner))),
        }
    }

    fn read(what: &'static str, wire: &Bytes, field: &Element) -> Result<Self, DecodeError> {
        if field.element_type == NAME {
            return Self::from_element(wire, field);
        }
        let inner = Reader::within(wire, field.value.clone());
        Self::from_element(wire, &inner.only(what, NAME)?)
    }
}

impl<T: Field> Field for Option<T> {
    fn write(&self, element_type: u32, writer: &mut Writer) {
        if let Some(value) = self {
            value.write(element_type, writer);
        }
    }

    fn read(what: &'static str, wire: &Bytes, field: &Element) -> Result<Self, DecodeError> {
        T::read(what, wire, field).map(Some)
    }
}

/// The methods `encode_fields` and `read_field` of a structure, which has its name in `Self::WHAT`: writes its fields in the order of
/// the list, reads them in any, and passes over elements that are not in it. With `read:` before the list, `read_field` alone.
#[macro_export]
macro_rules! tlv_fields {
    (read: $vis:vis $($element_type:path => $field:ident),* $(,)?) => {
        $vis fn read_field(
            &mut self,
            wire: &::bytes::Bytes,
            field: &$crate::tlv::Element,
        ) -> Result<(), $crate::DecodeError> {
            match field.element_type {
                $($element_type => self.$field = $crate::Field::read(Self::WHAT, wire, field)?,)*
                _ => {}
            }
            Ok(())
        }
    };
    ($vis:vis $($element_type:path => $field:ident),* $(,)?) => {
        $vis fn encode_fields(&self, writer: &mut $crate::tlv::Writer) {
            $($crate::Field::write(&self.$field, $element_type, writer);)*
        }

        $crate::tlv_fields!(read: $vis $($element_type => $field),*);
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;

    #[derive(Debug, Default, PartialEq)]
    struct Entry {
        name: Name,
        strategy: Option<Name>,
        cost: u64,
        uri: String,
        expiration: Option<Duration>,
    }

    const STRATEGY: u32 = 107;
    const COST: u32 = 106;
    const URI: u32 = 114;
    const EXPIRATION: u32 = 109;

    impl Entry {
        const WHAT: &str = "Entry";

        tlv_fields! {
            NAME => name,
            STRATEGY => strategy,
            COST => cost,
            URI => uri,
            EXPIRATION => expiration,
        }

        fn decode(wire: &Bytes) -> Result<Self, DecodeError> {
            let (mut reader, mut entry) = (Reader::new(wire), Self::default());
            while let Some(field) = reader.element(Self::WHAT)? {
                entry.read_field(wire, &field)?;
            }
            Ok(entry)
        }
    }

    fn encoded(entry: &Entry) -> Bytes {
        let mut writer = Writer::default();
        entry.encode_fields(&mut writer);
        writer.finish()
    }

    #[test]
    fn one_list_writes_and_reads() {
        let name: Name = "/a".parse().unwrap();
        let mut entry = Entry {
            name: name.clone(),
            cost: 300,
            uri: "b".to_owned(),
            ..Entry::default()
        };
        let wire = [7, 3, 8, 1, b'a', 106, 2, 1, 44, 114, 1, b'b'];
        assert_eq!(encoded(&entry)[..], wire);
        entry.strategy = Some(name);
        entry.expiration = Some(Duration::from_millis(5));
        let wire = encoded(&entry);
        assert_eq!(wire[5..12], [107, 5, 7, 3, 8, 1, b'a']);
        assert!(wire.ends_with(&[109, 1, 5]));
        assert_eq!(Entry::decode(&wire).unwrap(), entry);
    }

    #[test]
    fn unknown_elements_are_passed_over_and_bad_ones_named() {
        let unknown = Bytes::from_static(&[200, 1, 0, 106, 1, 9]);
        assert_eq!(Entry::decode(&unknown).unwrap().cost, 9);
        let bad = Bytes::from_static(&[106, 3, 0, 0, 1]);
        let error = DecodeError::new("Entry", 0, Problem::BadLength(3));
        assert_eq!(Entry::decode(&bad), Err(error));
    }
}
