//! The controllers that a scenario names.

use core::fmt;
use core::marker::PhantomData;
use core::str::FromStr;

use namecast_stream::path::Control;
use namecast_stream::rate::{CustomControl, RateControl};
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use super::Scenario;

/// A controller as a scenario writes it: a table of parameters, or a name, which may be that of a [`CustomControl`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Choice<C> {
    /// A controller that is known.
    Known(C),
    /// A name that stands for nothing until [`Scenario::register`] finds what it names.
    Unknown(String),
}

impl<C: Copy + FromStr<Err: fmt::Display>> Choice<C> {
    /// Returns the controller.
    ///
    /// # Errors
    /// Nothing has the name; the message lists what could be named.
    pub fn get(&self) -> Result<C, String> {
        match self {
            Self::Known(control) => Ok(*control),
            Self::Unknown(name) => name.parse().map_err(|error: C::Err| error.to_string()),
        }
    }

    /// Replaces the name of `custom` by what it names.
    fn register(&mut self, custom: CustomControl, wrap: impl Fn(RateControl) -> C) {
        if matches!(self, Self::Unknown(name) if name == custom.name) {
            *self = Self::Known(wrap(RateControl::Custom(custom)));
        }
    }
}

impl<C: Default> Default for Choice<C> {
    fn default() -> Self {
        Self::Known(C::default())
    }
}

impl<'de, C: Deserialize<'de> + FromStr> Deserialize<'de> for Choice<C> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(ChoiceVisitor(PhantomData))
    }
}

struct ChoiceVisitor<C>(PhantomData<C>);

impl<'de, C: Deserialize<'de> + FromStr> Visitor<'de> for ChoiceVisitor<C> {
    type Value = Choice<C>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a controller's name, or a table with its kind and parameters")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Choice<C>, E> {
        Ok(match text.parse() {
            Ok(control) => Choice::Known(control),
            Err(_) => Choice::Unknown(text.to_owned()),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Choice<C>, A::Error> {
        C::deserialize(MapAccessDeserializer::new(map)).map(Choice::Known)
    }
}

impl Scenario {
    /// Lets the scenario name `custom` wherever it names a controller. The names of our own cannot be given away.
    pub fn register(&mut self, custom: CustomControl) {
        let (flows, watchers) = match self {
            Self::Network(network) => (&mut network.flows[..], &mut [][..]),
            Self::Stream(stream) => (&mut stream.flows[..], &mut stream.watchers[..]),
            Self::Evolution(evolution) => {
                evolution.controller.register(custom, |control| control);
                return;
            }
            Self::Exchange(_) | Self::Parameters(_) | Self::Topology(_) => return,
        };
        for flow in flows {
            flow.controller.register(custom, |control| control);
        }
        for watcher in watchers {
            if let Some(controller) = &mut watcher.controller {
                controller.register(custom, Control::Rate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use namecast_stream::rate::Unlimited;

    use super::*;

    fn custom(name: &'static str) -> CustomControl {
        CustomControl {
            name,
            build: |_| Box::new(Unlimited),
        }
    }

    #[test]
    fn a_name_stands_for_nothing_until_it_is_registered() {
        let mut choice: Choice<Control> = serde_json::from_str("\"mine\"").unwrap();
        choice.register(custom("yours"), Control::Rate);
        let error = choice.get().unwrap_err();
        assert!(error.starts_with("'mine' is no controller: write one of arc, "));
        choice.register(custom("mine"), Control::Rate);
        let expected = Control::Rate(RateControl::Custom(custom("mine")));
        assert_eq!(choice.get(), Ok(expected));
    }

    #[test]
    fn our_own_names_cannot_be_given_away() {
        let mut choice: Choice<RateControl> = serde_json::from_str("\"arc\"").unwrap();
        let ours = choice.get();
        choice.register(custom("arc"), |control| control);
        assert_eq!((choice.get(), ours.is_ok()), (ours, true));
    }

    #[test]
    fn a_table_is_refused_with_what_was_expected() {
        let read = |text| serde_json::from_str::<Choice<RateControl>>(text).unwrap_err();
        let error = read(r#"{"kind": "cubic", "alpha": 3}"#).to_string();
        assert!(error.contains("unknown field `alpha`"), "{error}");
    }
}
