//! State vectors: the newest number of each member, for each of its starts.
//!
//! ```text
//!  StateVector 201 ─ StateVectorEntry 202 ─ Name 7, SeqNoEntry 210 ─ BootstrapTime 212, SeqNo 214
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_packet::tlv::{Element, Fields, NAME, Reader, Writer, number_size};
use namecast_packet::{DecodeError, Name, Problem};

const STATE_VECTOR: u32 = 201;
const ENTRY: u32 = 202;
const NUMBER_ENTRY: u32 = 210;
const BOOT: u32 = 212;
const NUMBER: u32 = 214;

/// Number of members that a vector may have.
pub const MAX_MEMBERS: usize = 64;
/// Number of starts of one member that a vector keeps: the latest ones.
pub const MAX_BOOTS: usize = 4;
/// Largest vector, in octets: an Interest has room for it, its signature and the names around it.
pub(super) const MAX_SIZE: usize = 7_000;

/// State vector of State Vector Sync v3: for each member, and for each of its starts in seconds since 1970, the number of its newest publication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateVector(BTreeMap<Name, BTreeMap<u64, u64>>);

impl StateVector {
    /// Returns the newest number of `member` since its start at `boot`; 0 if there is none.
    pub fn get(&self, member: &Name, boot: u64) -> u64 {
        let boots = self.0.get(member);
        boots
            .and_then(|boots| boots.get(&boot))
            .copied()
            .unwrap_or(0)
    }

    /// Returns member, start and number of each entry, in canonical order.
    pub fn entries(&self) -> impl Iterator<Item = (&Name, u64, u64)> {
        let all = self.0.iter();
        all.flat_map(|(name, boots)| {
            boots
                .iter()
                .map(move |(boot, number)| (name, *boot, *number))
        })
    }

    /// Raises the number of one start to `number`, if that is larger and there is room. Returns whether the vector changed.
    ///
    /// Starts before the latest four of a member are dropped: merging keeps the same four in every order.
    pub(super) fn raise(&mut self, member: &Name, boot: u64, number: u64) -> bool {
        if number <= self.get(member, boot) || !self.has_room(member, boot) {
            return false;
        }
        let boots = match self.0.get_mut(member) {
            Some(boots) => boots,
            None => self.0.entry(member.detached()).or_default(),
        };
        boots.insert(boot, number);
        if boots.len() > MAX_BOOTS {
            boots.pop_first();
        }
        boots.contains_key(&boot)
    }

    /// Returns whether there is room for this start of a member.
    pub(super) fn has_room(&self, member: &Name, boot: u64) -> bool {
        let boots = self.0.get(member);
        if boots.is_some_and(|it| it.contains_key(&boot)) {
            return true;
        }
        let has_slot = boots.is_some() || self.0.len() < MAX_MEMBERS;
        let new_name = boots.map_or_else(|| name_size(member), |_| 0);
        let all = self.0.iter();
        let sizes = all.map(|(name, boots)| {
            name_size(name) + boots.keys().copied().map(boot_size).sum::<usize>()
        });
        has_slot && sizes.sum::<usize>() + new_name + boot_size(boot) <= MAX_SIZE
    }

    /// Returns whether there is an entry of `member`.
    pub(super) fn has_member(&self, member: &Name) -> bool {
        self.0.contains_key(member)
    }

    /// Keeps the entries of members that `is_member` returns true for.
    pub(super) fn retain(&mut self, is_member: impl Fn(&Name) -> bool) {
        self.0.retain(|name, _| is_member(name));
    }

    /// Takes the larger number of each entry of both.
    pub(super) fn merge(&mut self, other: &Self) {
        for (member, boot, number) in other.entries() {
            self.raise(member, boot, number);
        }
    }

    /// Returns the vector as a StateVector element.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.nested(STATE_VECTOR, |writer| {
            for (name, boots) in &self.0 {
                writer.nested(ENTRY, |writer| {
                    name.encode(writer);
                    for (boot, number) in boots {
                        writer.nested(NUMBER_ENTRY, |writer| {
                            writer.number(BOOT, *boot).number(NUMBER, *number);
                        });
                    }
                });
            }
        });
        writer.finish()
    }

    /// Decodes a StateVector element that fills `octets` whole. Of a member with more than four starts the latest count; entries with the number 0
    /// say nothing.
    ///
    /// # Errors
    /// The first violation of the format, with field and offset; more than [`MAX_MEMBERS`] members.
    pub fn decode(octets: &Bytes) -> Result<Self, DecodeError> {
        const ORDER: [u32; 1] = [ENTRY];
        let whole = Reader::new(octets).only("StateVector", STATE_VECTOR)?;
        let reader = Reader::within(octets, whole.value);
        let mut fields = Fields::new(reader, "StateVector", &ORDER).repeating(ENTRY);
        let mut vector = Self::default();
        while let Some(entry) = fields.field()? {
            let (name, boots) = decode_entry(octets, &entry)?;
            if boots.is_empty() {
                continue;
            }
            let own = vector.0.entry(name).or_default();
            for (boot, number) in boots {
                let newest = own.entry(boot).or_default();
                *newest = number.max(*newest);
            }
            while own.len() > MAX_BOOTS {
                own.pop_first();
            }
            if vector.0.len() > MAX_MEMBERS {
                return Err(entry.error("StateVectorEntry", Problem::ValueOutOfRange));
            }
        }
        Ok(vector)
    }
}

/// Octets of a member's entry without its starts, at most.
fn name_size(name: &Name) -> usize {
    name.encoded_size() + 4
}

/// Octets of one start with a number below 2^32, at most.
const fn boot_size(boot: u64) -> usize {
    2 + 2 + number_size(boot) + 2 + 4
}

fn decode_entry(
    octets: &Bytes,
    entry: &Element,
) -> Result<(Name, BTreeMap<u64, u64>), DecodeError> {
    const FIELD: &str = "StateVectorEntry";
    const ORDER: [u32; 2] = [NAME, NUMBER_ENTRY];
    let reader = Reader::within(octets, entry.value.clone());
    let mut fields = Fields::new(reader, FIELD, &ORDER).repeating(NUMBER_ENTRY);
    let mut name = None;
    let mut boots = BTreeMap::new();
    while let Some(field) = fields.field()? {
        if field.element_type == NAME {
            name = Some(Name::from_element(octets, &field)?);
            continue;
        }
        let (boot, number) = decode_number_entry(octets, &field)?;
        if number > 0 {
            boots.insert(boot, number);
        }
        if boots.len() > MAX_BOOTS {
            boots.pop_first();
        }
    }
    let name = name.filter(|name| !name.is_empty());
    let name = name.ok_or(entry.error("Name", Problem::Missing))?;
    Ok((name.detached(), boots))
}

fn decode_number_entry(octets: &Bytes, entry: &Element) -> Result<(u64, u64), DecodeError> {
    const ORDER: [u32; 2] = [BOOT, NUMBER];
    let reader = Reader::within(octets, entry.value.clone());
    let mut fields = Fields::new(reader, "SeqNoEntry", &ORDER);
    let (mut boot, mut number) = (None, None);
    while let Some(field) = fields.field()? {
        match field.element_type {
            BOOT => boot = Some(field.number("BootstrapTime", octets)?),
            _ => number = Some(field.number("SeqNo", octets)?),
        }
    }
    let boot = boot.ok_or(entry.error("BootstrapTime", Problem::Missing))?;
    let number = number.ok_or(entry.error("SeqNo", Problem::Missing))?;
    Ok((boot, number))
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    fn vector(entries: &[(&str, u64, u64)]) -> StateVector {
        let mut vector = StateVector::default();
        for (name, boot, number) in entries {
            assert!(vector.raise(&name.parse().unwrap(), *boot, *number));
        }
        vector
    }

    /// Merging in any order, twice and in parts gives the same vector: that of a twin that sorts all entries and keeps the four latest starts.
    #[test]
    fn merging_has_no_order() {
        for seed in 0..200 {
            let mut random = Random::from_seed(seed);
            let mut parts = vec![StateVector::default(); 4];
            let mut twin: BTreeMap<Name, BTreeMap<u64, u64>> = BTreeMap::new();
            for _ in 0..40 {
                let name: Name = format!("/m/{}", random.below(5)).parse().unwrap();
                let (boot, number) = (random.below(9), 1 + random.below(9));
                parts[random.below(4) as usize].raise(&name, boot, number);
                let newest = twin.entry(name).or_default().entry(boot).or_default();
                *newest = number.max(*newest);
            }
            for boots in twin.values_mut() {
                while boots.len() > MAX_BOOTS {
                    boots.pop_first();
                }
            }
            let mut merged = vec![StateVector::default(); 3];
            for vector in &mut merged {
                for _ in 0..20 {
                    vector.merge(&parts[random.below(4) as usize]);
                }
                parts.iter().for_each(|part| vector.merge(part));
                assert_eq!(vector.0, twin, "seed {seed}");
                assert_eq!(StateVector::decode(&vector.encode()), Ok(vector.clone()));
            }
        }
    }

    #[test]
    fn vectors_have_a_bound() {
        let mut vector = StateVector::default();
        for member in 0..100 {
            let name: Name = format!("/m/{member}").parse().unwrap();
            assert_eq!(vector.raise(&name, 1, 1), member < 64);
        }
        // Numbers of members that are in it grow.
        assert!(vector.raise(&"/m/1".parse().unwrap(), 1, 2));
        // Long names fill it sooner.
        let mut vector = StateVector::default();
        for member in 0..64 {
            let name: Name = format!("/{}/{member}", "m".repeat(200)).parse().unwrap();
            for boot in 0..4 {
                vector.raise(&name, u64::MAX - boot, u32::MAX.into());
            }
        }
        let size = vector.encode().len();
        assert!((MAX_SIZE - 300..=MAX_SIZE).contains(&size), "{size}");
    }

    /// A vector of 10⁴ members, as TLV by hand: it is refused at the 65th.
    #[test]
    fn a_vector_with_ten_thousand_members_is_refused() {
        let mut writer = Writer::default();
        writer.nested(STATE_VECTOR, |writer| {
            for member in 0..10_000 {
                writer.nested(ENTRY, |writer| {
                    let name: Name = format!("/m/{member}").parse().unwrap();
                    name.encode(writer);
                    writer.nested(NUMBER_ENTRY, |writer| {
                        writer.number(BOOT, 1).number(NUMBER, 1);
                    });
                });
            }
        });
        let error = StateVector::decode(&writer.finish()).unwrap_err();
        assert_eq!(error.problem, Problem::ValueOutOfRange);
    }

    #[test]
    fn what_is_missing_is_named() {
        let whole = vector(&[("/m/1", 7, 9)]).encode();
        assert_eq!(
            &whole[..],
            b"\xc9\x12\xca\x10\x07\x06\x08\x01m\x08\x011\xd2\x06\xd4\x01\x07\xd6\x01\x09"
        );
        for (octets, field) in [
            (&b"\xc9\x04\xca\x02\x07\x00"[..], "Name"),
            (b"\xc9\x07\xca\x05\x07\x03\x08\x01m", ""),
            (
                b"\xc9\x0c\xca\x0a\x07\x03\x08\x01m\xd2\x03\xd4\x01\x07",
                "SeqNo",
            ),
            (
                b"\xc9\x0c\xca\x0a\x07\x03\x08\x01m\xd2\x03\xd6\x01\x07",
                "BootstrapTime",
            ),
        ] {
            let decoded = StateVector::decode(&Bytes::from_static(octets));
            match field {
                "" => assert_eq!(decoded, Ok(StateVector::default())),
                _ => assert_eq!(decoded.unwrap_err().field, field),
            }
        }
    }
}
