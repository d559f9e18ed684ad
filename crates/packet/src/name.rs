//! Names: sequences of typed components in canonical order.

mod uri;

pub use uri::{ParseNameError, hex_decode, percent_decode};

use core::cmp::Ordering;
use core::fmt;
use core::ops::Range;

use bytes::Bytes;

use crate::error::{DecodeError, Problem};
use crate::tlv::{self, Element, Reader, Writer};

/// One component of a [`Name`], borrowed from it.
///
/// Ordered canonically: by type, then by length, then by octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Component<'a> {
    /// Component type, 1 to 65535.
    pub kind: u16,
    /// Octets of the component.
    pub value: &'a [u8],
}

impl<'a> Component<'a> {
    /// SHA-256 digest of a whole Data packet; last in an Interest's name only.
    pub const IMPLICIT_DIGEST: u16 = 1;
    /// SHA-256 digest of an Interest's parameters.
    pub const PARAMETERS_DIGEST: u16 = 2;
    /// Any octets.
    pub const GENERIC: u16 = 8;
    /// A well-known word such as `metadata`.
    pub const KEYWORD: u16 = 32;
    /// Segment number.
    pub const SEGMENT: u16 = 50;
    /// Byte offset.
    pub const BYTE_OFFSET: u16 = 52;
    /// Version number.
    pub const VERSION: u16 = 54;
    /// Microseconds since 1970.
    pub const TIMESTAMP: u16 = 56;
    /// Sequence number.
    pub const SEQUENCE: u16 = 58;

    /// A generic component that holds `text`.
    pub const fn generic(text: &'a str) -> Self {
        Self {
            kind: Self::GENERIC,
            value: text.as_bytes(),
        }
    }

    /// A keyword component.
    pub const fn keyword(word: &'a str) -> Self {
        Self {
            kind: Self::KEYWORD,
            value: word.as_bytes(),
        }
    }

    /// Returns the value as a number, if it has the length of one.
    pub fn number(&self) -> Option<u64> {
        tlv::read_number(self.value)
    }

    /// Returns the value as a number, if the component has type `kind` and the length of a number.
    pub fn number_of(&self, kind: u16) -> Option<u64> {
        self.number().filter(|_| self.kind == kind)
    }
}

impl Ord for Component<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.kind, self.value.len(), self.value).cmp(&(other.kind, other.value.len(), other.value))
    }
}

impl PartialOrd for Component<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Types whose URI form is a word and a decimal number.
const NUMBERED: [(u16, &str); 5] = [
    (Component::SEGMENT, "seg"),
    (Component::BYTE_OFFSET, "off"),
    (Component::VERSION, "v"),
    (Component::TIMESTAMP, "t"),
    (Component::SEQUENCE, "seq"),
];
/// Types whose URI form is a word and hexadecimal octets.
const DIGESTS: [(u16, &str); 2] = [
    (Component::IMPLICIT_DIGEST, "sha256digest"),
    (Component::PARAMETERS_DIGEST, "params-sha256"),
];
const DIGEST_SIZE: usize = 32;

const fn is_digest(kind: u16) -> bool {
    matches!(
        kind,
        Component::IMPLICIT_DIGEST | Component::PARAMETERS_DIGEST
    )
}

impl fmt::Display for Component<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, word)) = DIGESTS.iter().find(|(kind, _)| *kind == self.kind) {
            write!(f, "{word}=")?;
            return self
                .value
                .iter()
                .try_for_each(|octet| write!(f, "{octet:02x}"));
        }
        let word = NUMBERED.iter().find(|(kind, _)| *kind == self.kind);
        // A number in a longer form than needed would not parse back to the same octets.
        let number = self
            .number()
            .filter(|&n| tlv::number_size(n) == self.value.len());
        if let (Some((_, word)), Some(number)) = (word, number) {
            return write!(f, "{word}={number}");
        }
        if self.kind != Component::GENERIC {
            write!(f, "{}=", self.kind)?;
        }
        if self.value.iter().all(|&octet| octet == b'.') {
            f.write_str("...")?;
        }
        self.value.iter().try_for_each(|&octet| match octet {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                write!(f, "{}", char::from(octet))
            }
            _ => write!(f, "%{octet:02X}"),
        })
    }
}

impl fmt::Debug for Component<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A hierarchical name.
///
/// Holds the TLV-VALUE octets, so that cloning is cheap and comparing is a memory comparison: with numbers in their
/// shortest form that is the canonical order (NDN Packet Format v0.3, "Canonical Order").
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    value: Bytes,
}

impl Name {
    /// The name without components, `/`.
    pub const fn root() -> Self {
        Self {
            value: Bytes::new(),
        }
    }

    /// Starts a name with this one's components.
    pub fn builder(&self) -> NameBuilder {
        let mut value = Writer::with_capacity(self.value.len() + 64);
        value.raw(&self.value);
        NameBuilder { value }
    }

    /// This name with one more component.
    pub fn child(&self, component: Component<'_>) -> Self {
        self.builder().component(component).finish()
    }

    /// Decodes the Name element that fills `wire` whole.
    ///
    /// # Errors
    /// If it is not a Name, or has an invalid component.
    pub fn decode(wire: &Bytes) -> Result<Self, DecodeError> {
        let element = Reader::new(wire).only("Name", tlv::NAME)?;
        Self::from_element(wire, &element)
    }

    /// The name in `element` of the packet `wire`.
    ///
    /// # Errors
    /// If a component is invalid.
    pub fn from_element(wire: &Bytes, element: &Element) -> Result<Self, DecodeError> {
        Self::with_digest_count(wire, element).map(|(name, _)| name)
    }

    /// Returns the name in `element` of the packet `wire`, and how many of its components are parameters digests.
    #[inline]
    pub(crate) fn with_digest_count(
        wire: &Bytes,
        element: &Element,
    ) -> Result<(Self, usize), DecodeError> {
        let digests = Self::check(wire, element)?;
        let value = wire.slice(element.value.clone());
        Ok((Self { value }, digests))
    }

    /// Checks the name in `element` of the packet `octets`; tells how many of its components are parameters digests.
    #[inline]
    pub(crate) fn check(octets: &[u8], element: &Element) -> Result<usize, DecodeError> {
        let mut rest = &octets[element.value.clone()];
        while let Some((component, after)) = tlv::split_short(rest)
            && !is_digest(component[0].into())
        {
            rest = after;
        }
        match rest.len() {
            0 => Ok(0),
            left => Self::check_rest(octets, element.value.end - left..element.value.end),
        }
    }

    /// As [`check`](Self::check), from the first component on that is not as most are.
    fn check_rest(octets: &[u8], range: Range<usize>) -> Result<usize, DecodeError> {
        let mut digests = 0;
        let mut reader = Reader::within(octets, range);
        while let Some(component) = reader.element("Name component")? {
            let error = |problem| component.error("Name component", problem);
            let Ok(kind) = u16::try_from(component.element_type) else {
                return Err(error(Problem::TypeOutOfRange(
                    component.element_type.into(),
                )));
            };
            if is_digest(kind) && component.value.len() != DIGEST_SIZE {
                return Err(error(Problem::BadLength(component.value.len())));
            }
            digests += usize::from(kind == Component::PARAMETERS_DIGEST);
        }
        Ok(digests)
    }

    /// The name whose TLV-VALUE octets are `value`, which was checked before.
    pub(crate) const fn from_checked(value: Bytes) -> Self {
        Self { value }
    }

    /// Returns the name's TLV-VALUE octets.
    pub fn value(&self) -> &Bytes {
        &self.value
    }

    /// Returns the name's components.
    pub fn components(&self) -> Components<'_> {
        Components {
            octets: &self.value,
        }
    }

    /// Returns the name's components, each as the element it is on the wire.
    #[inline]
    pub fn elements(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.value[..];
        core::iter::from_fn(move || {
            let element;
            (element, rest) = match tlv::split_short(rest) {
                Some(split) => split,
                None if rest.is_empty() => return None,
                None => split_long(rest),
            };
            Some(element)
        })
    }

    /// Returns the number of components.
    pub fn len(&self) -> usize {
        self.components().count()
    }

    /// Returns whether this is the name `/`.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// Component `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<Component<'_>> {
        self.components().nth(index)
    }

    /// Returns the last component.
    pub fn last(&self) -> Option<Component<'_>> {
        self.components().last()
    }

    /// The first `count` components, or all if there are fewer.
    pub fn prefix(&self, count: usize) -> Self {
        let mut rest = self.components();
        rest.by_ref().take(count).for_each(drop);
        self.head(self.value.len() - rest.octets.len())
    }

    /// All but the last component.
    pub fn parent(&self) -> Self {
        self.prefix(self.len().saturating_sub(1))
    }

    /// Returns every prefix from `/` to the name itself, shortest first.
    pub fn prefixes(&self) -> impl Iterator<Item = Self> + '_ {
        let mut rest = self.components();
        let mut done = false;
        core::iter::from_fn(move || {
            if done {
                return None;
            }
            let prefix = self.head(self.value.len() - rest.octets.len());
            done = rest.next().is_none();
            Some(prefix)
        })
    }

    /// Returns whether `other` starts with all components of this name.
    pub fn is_prefix_of(&self, other: &Self) -> bool {
        // Both hold whole elements, so equal octets end at a component's end.
        other.value.starts_with(&self.value)
    }

    /// Returns the octets of the Name element, type and length included.
    pub fn encoded_size(&self) -> usize {
        tlv::element_size(tlv::NAME, self.value.len())
    }

    /// Appends the Name element.
    pub fn encode(&self, writer: &mut Writer) {
        writer.element(tlv::NAME, &self.value);
    }

    /// A copy that shares no memory with the packet the name came in, for tables that outlive it.
    pub fn detached(&self) -> Self {
        Self {
            value: Bytes::copy_from_slice(&self.value),
        }
    }

    fn head(&self, length: usize) -> Self {
        Self {
            value: self.value.slice(..length),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("/");
        }
        self.components()
            .try_for_each(|component| write!(f, "/{component}"))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The components of a [`Name`], from the first to the last.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    octets: &'a [u8],
}

impl<'a> Iterator for Components<'a> {
    type Item = Component<'a>;

    #[inline]
    fn next(&mut self) -> Option<Component<'a>> {
        let mut reader = Reader::new(self.octets);
        let element = reader
            .element("Name component")
            .expect("a Name holds whole components")?;
        let component = Component {
            kind: u16::try_from(element.element_type).expect("checked when the Name was made"),
            value: &self.octets[element.value.clone()],
        };
        self.octets = &self.octets[element.value.end..];
        Some(component)
    }
}

/// Returns the first of a name's components, whatever its size, and those after it.
#[cold]
fn split_long(components: &[u8]) -> (&[u8], &[u8]) {
    let element = Reader::new(components).element("Name component");
    let element = element.ok().flatten();
    components.split_at(element.expect("a Name holds whole components").value.end)
}

/// Puts a [`Name`] together.
#[derive(Debug, Default)]
pub struct NameBuilder {
    value: Writer,
}

impl NameBuilder {
    /// Appends a component.
    ///
    /// # Panics
    /// If its type is 0, which no component can have.
    pub fn component(mut self, component: Component<'_>) -> Self {
        assert_ne!(component.kind, 0, "component types begin with 1");
        self.value
            .element(u32::from(component.kind), component.value);
        self
    }

    /// Appends a generic component.
    pub fn generic(self, text: &str) -> Self {
        self.component(Component::generic(text))
    }

    /// Appends a keyword component.
    pub fn keyword(self, word: &str) -> Self {
        self.component(Component::keyword(word))
    }

    /// Appends a segment number.
    pub fn segment(self, number: u64) -> Self {
        self.number(Component::SEGMENT, number)
    }

    /// Appends a version.
    pub fn version(self, number: u64) -> Self {
        self.number(Component::VERSION, number)
    }

    /// Appends a sequence number.
    pub fn sequence(self, number: u64) -> Self {
        self.number(Component::SEQUENCE, number)
    }

    /// Appends a timestamp, in microseconds since 1970.
    pub fn timestamp(self, micros: u64) -> Self {
        self.number(Component::TIMESTAMP, micros)
    }

    /// Appends the components of `name`.
    pub fn name(mut self, name: &Name) -> Self {
        self.value.raw(&name.value);
        self
    }

    /// Returns the name.
    pub fn finish(self) -> Name {
        Name {
            value: self.value.finish(),
        }
    }

    /// Appends a number as a component of type `kind`.
    ///
    /// # Panics
    /// If the type is 0, which no component can have.
    pub fn number(mut self, kind: u16, number: u64) -> Self {
        assert_ne!(kind, 0, "component types begin with 1");
        self.value.number(u32::from(kind), number);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    #[test]
    fn uris_read_and_print_the_same() {
        for uri in [
            "/",
            "/demo/video/1M/delta/seq=300/data/seg=0",
            "/32=metadata/v=1700000000000/t=5/off=7",
            "/a%20b/...../300=%00",
        ] {
            assert_eq!(name(uri).to_string(), uri);
        }
        assert_eq!(name("ndn://host/a//b").to_string(), "/a/b");
    }

    #[test]
    fn uris_that_are_no_names_are_refused() {
        for uri in [
            "/..",
            "/%4",
            "/%zz",
            "/0=a",
            "/65536=a",
            "/seg=x",
            "/seg=+1",
            "/seg=18446744073709551616",
            "/=a",
            "/1=short",
            "/sha256digest=00",
            "/08=a",
            "/+8=a",
        ] {
            assert!(uri.parse::<Name>().is_err(), "{uri}");
        }
    }

    #[test]
    fn order_is_by_type_then_length_then_octets_and_prefixes_come_first() {
        let ordered = [
            "/",
            "/1=%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00%00",
            "/A",
            "/A/A",
            "/B",
            "/AA",
            "/AA/A",
            "/32=A",
            "/seq=1",
            "/seq=256",
        ];
        for pair in ordered.windows(2) {
            assert!(name(pair[0]) < name(pair[1]), "{pair:?}");
        }
    }

    /// Lengths and types of one octet and of three, beside each other.
    #[test]
    fn components_stand_as_elements_whatever_their_size() {
        let (long, word) = ("b".repeat(252), "c".repeat(253));
        let name = name(&format!("/a/300=x/{long}/{word}/32={word}/seq=9/"));
        let elements: Vec<_> = name.elements().collect();
        let headers: Vec<_> = elements.iter().map(|it| &it[..it.len().min(4)]).collect();
        let expected: [&[u8]; 6] = [
            &[8, 1, b'a'],
            &[253, 1, 44, 1],
            &[8, 252, b'b', b'b'],
            &[8, 253, 0, 253],
            &[32, 253, 0, 253],
            &[58, 1, 9],
        ];
        assert_eq!(headers, expected);
        assert_eq!(elements.concat(), name.value()[..]);
        assert_eq!(Name::root().elements().count(), 0);
    }

    #[test]
    fn prefixes_run_from_root_to_the_whole_name() {
        let all: Vec<_> = name("/a/b").prefixes().map(|n| n.to_string()).collect();
        assert_eq!(all, ["/", "/a", "/a/b"]);
        assert_eq!(name("/a/b/c").prefix(2), name("/a/b"));
        assert_eq!(name("/a").prefix(9), name("/a"));
        assert_eq!(name("/a/b").parent(), name("/a"));
        assert!(name("/a").is_prefix_of(&name("/a/b")) && !name("/a").is_prefix_of(&name("/ab")));
    }
}
