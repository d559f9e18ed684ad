//! Values that files write as their text.

use core::fmt::Display;
use core::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn deserialize<'de, T, D>(source: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(source)?;
    text.parse().map_err(D::Error::custom)
}

pub(super) fn serialize<T: Display, S: Serializer>(value: &T, sink: S) -> Result<S::Ok, S::Error> {
    sink.collect_str(value)
}

/// The same, if there is one.
pub(super) mod optional {
    use super::{Deserializer, Display, FromStr, Serializer};

    pub(in super::super) fn deserialize<'de, T, D>(source: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        super::deserialize(source).map(Some)
    }

    pub(in super::super) fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        sink: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, sink),
            None => sink.serialize_none(),
        }
    }
}
