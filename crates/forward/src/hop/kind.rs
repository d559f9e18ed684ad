//! The strategies there are, and their names as management has them.

use namecast_packet::{Component, Name, NameBuilder};

use super::asf::AsfConfig;
use super::pcon::PconProfile;

/// The strategies there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StrategyKind {
    /// The cheapest next hop; retransmissions try the others. NFD's best-route, version 5.
    #[default]
    BestRoute,
    /// All next hops at once. NFD's multicast, version 5.
    Multicast,
    /// Any next hop, each as likely. NFD's random, version 1, which however sends every retransmission: here they are
    /// held back as in best-route.
    Random,
    /// Any next hop, with a likelihood in proportion to 1 / (1 + cost): costs of 0, 1 and 3 get four, two and one seventh.
    /// Not in NFD.
    Weighted,
    /// The next hop that answers fastest. NFD's adaptive SRTT-based forwarding, version 5.
    Asf(AsfConfig),
    /// Every neighbour where there is no route; routes are learned from announcements in the answers. NFD's self-learning,
    /// version 1.
    SelfLearning,
    /// Any next hop by its share, which falls with marks. After \[PCON\]; not in NFD.
    Pcon(PconProfile),
    /// A hop of the driver's, added with [`Forwarder::add_strategy`](crate::Forwarder::add_strategy).
    Own(OwnStrategy),
}

/// A strategy that a driver added to a forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnStrategy {
    /// Which of the forwarder's own ones.
    pub(crate) place: u16,
    /// Its word in names.
    pub(crate) word: &'static str,
}

/// Why a name is not that of a strategy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StrategyNameError {
    /// The name does not begin with `/localhost/nfd/strategy` and a word that we know.
    #[error("no such strategy")]
    Unknown,
    /// There is no such version yet.
    #[error("the newest version is {newest}")]
    Version {
        /// Newest version there is.
        newest: u64,
    },
    /// What follows the version must be `parameter~value`, with parameters that the strategy has.
    #[error("{0:?} is not a parameter of this strategy")]
    Parameter(String),
    /// The value is no number, or not in its range.
    #[error("{parameter} takes {expected}")]
    Value {
        /// Parameter.
        parameter: &'static str,
        /// What it takes.
        expected: &'static str,
    },
}

impl StrategyKind {
    /// What all names begin with, as NFD's.
    const PREFIX: [&'static str; 3] = ["localhost", "nfd", "strategy"];

    /// In force where nothing was chosen.
    pub(crate) const DEFAULT: Self = Self::BestRoute;

    /// Each strategy with its defaults.
    const ALL: [Self; 7] = [
        Self::BestRoute,
        Self::Multicast,
        Self::Random,
        Self::Weighted,
        Self::Asf(AsfConfig::DEFAULT),
        Self::SelfLearning,
        Self::Pcon(PconProfile::Published),
    ];

    /// Whether it makes routes from prefix announcements.
    pub(crate) const fn learns(&self) -> bool {
        matches!(self, Self::SelfLearning)
    }

    /// Whether pending Interests go to a next hop that appears later.
    pub(crate) const fn wants_new_next_hops(&self) -> bool {
        matches!(self, Self::Multicast)
    }

    /// The strategy that `name` stands for: `/localhost/nfd/strategy/asf/v=5/probing-interval~30000`.
    ///
    /// Without a version the newest is meant. An older one gives the newest as well: NFD looks for the next higher version
    /// too, although its strategies then refuse. Suppression of retransmissions is the node's, so NFD's parameters for
    /// that are refused.
    ///
    /// # Errors
    /// If there is no such strategy or version, or a parameter is not the strategy's.
    pub fn from_name(name: &Name) -> Result<Self, StrategyNameError> {
        Self::from_name_among(name, &[])
    }

    /// The same, where there are strategies of the driver's `own` besides.
    ///
    /// # Errors
    /// As those of [`from_name`](Self::from_name).
    pub fn from_name_among(name: &Name, own: &[Self]) -> Result<Self, StrategyNameError> {
        let mut components = name.components();
        for word in Self::PREFIX {
            if components.next() != Some(Component::generic(word)) {
                return Err(StrategyNameError::Unknown);
            }
        }
        let word = components.next().ok_or(StrategyNameError::Unknown)?;
        let known = Self::ALL.iter().chain(own).copied();
        let kind = known
            .map(|kind| (kind, kind.label()))
            .find(|(_, (known, _))| Component::generic(known) == word);
        let (mut kind, (_, newest)) = kind.ok_or(StrategyNameError::Unknown)?;
        if let Some(version) = components.next() {
            let version = version.number_of(Component::VERSION);
            if version.is_none_or(|version| version > newest) {
                return Err(StrategyNameError::Version { newest });
            }
        }
        for component in components {
            kind.set_parameter(component)?;
        }
        if let Self::Asf(asf) = kind {
            asf.check()?;
        }
        Ok(kind)
    }

    /// The strategy's name, with its version and those parameters that differ from their defaults.
    pub fn name(&self) -> Name {
        let (word, version) = self.label();
        let prefix = Self::PREFIX.into_iter();
        let name = prefix.fold(Name::root().builder(), |name, word| name.generic(word));
        let name = name.generic(word).version(version);
        let parameters = match self {
            Self::Asf(asf) => asf.parameters(),
            Self::Pcon(profile) => profile.parameters(),
            _ => Vec::new(),
        };
        let append = |name: NameBuilder, (parameter, value): (&str, String)| {
            name.generic(&format!("{parameter}~{value}"))
        };
        parameters.into_iter().fold(name, append).finish()
    }

    /// Its word and version in names.
    const fn label(&self) -> (&'static str, u64) {
        match self {
            Self::BestRoute => ("best-route", 5),
            Self::Multicast => ("multicast", 5),
            Self::Random => ("random", 1),
            Self::Weighted => ("weighted", 1),
            Self::Asf(_) => ("asf", 5),
            Self::SelfLearning => ("self-learning", 1),
            Self::Pcon(_) => ("pcon", 1),
            Self::Own(own) => (own.word, 1),
        }
    }

    fn set_parameter(&mut self, component: Component<'_>) -> Result<(), StrategyNameError> {
        let text = String::from_utf8_lossy(component.value);
        let unknown = || StrategyNameError::Parameter(text.to_string());
        let (parameter, value) = text.split_once('~').ok_or_else(unknown)?;
        match self {
            Self::Asf(asf) => asf.set(parameter, value).ok_or_else(unknown)?,
            Self::Pcon(profile) => profile.set(parameter, value).ok_or_else(unknown)?,
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use core::time::Duration;

    fn parse(uri: &str) -> Result<StrategyKind, StrategyNameError> {
        StrategyKind::from_name(&uri.parse().unwrap())
    }

    #[test]
    fn every_strategy_reads_its_own_name() {
        let tuned = StrategyKind::Asf(AsfConfig {
            probing_interval: Duration::from_secs(30),
            max_timeouts: 1,
            measurements_lifetime: Duration::from_millis(30_001),
        });
        let ndnsim = StrategyKind::Pcon(PconProfile::NdnSim);
        for kind in StrategyKind::ALL.into_iter().chain([tuned, ndnsim]) {
            assert_eq!(StrategyKind::from_name(&kind.name()), Ok(kind));
        }
        let names = StrategyKind::ALL.map(|kind| kind.name().to_string());
        let expected = [
            "best-route/v=5",
            "multicast/v=5",
            "random/v=1",
            "weighted/v=1",
            "asf/v=5",
            "self-learning/v=1",
            "pcon/v=1",
        ];
        assert_eq!(
            names,
            expected.map(|end| format!("/localhost/nfd/strategy/{end}"))
        );
        assert_eq!(
            tuned.name().to_string(),
            "/localhost/nfd/strategy/asf/v=5/probing-interval~30000/max-timeouts~1/measurements-lifetime~30001"
        );
    }

    #[test]
    fn names_without_version_or_with_an_older_one_mean_the_newest() {
        for uri in ["asf", "asf/v=4", "asf/v=5"] {
            let kind = parse(&format!("/localhost/nfd/strategy/{uri}"));
            assert_eq!(kind, Ok(StrategyKind::Asf(AsfConfig::DEFAULT)));
        }
        let multicast = parse("/localhost/nfd/strategy/multicast/v=4");
        assert_eq!(multicast, Ok(StrategyKind::Multicast));
    }

    /// NFD's bounds: probes once a second at most, and measurements outlive the interval.
    #[test]
    fn other_names_are_refused_and_say_why() {
        use StrategyNameError::{Parameter, Unknown, Value, Version};
        let refused = |end: &str| parse(&format!("/localhost/nfd/strategy{end}")).unwrap_err();
        for end in ["", "/fastest", "/32=asf", "/v=5"] {
            assert_eq!(refused(end), Unknown, "{end}");
        }
        assert_eq!(parse("/localhop/nfd/strategy/asf"), Err(Unknown));
        assert_eq!(refused("/asf/v=6"), Version { newest: 5 });
        assert_eq!(refused("/asf/max-timeouts~3"), Version { newest: 5 });
        for (end, parameter) in [
            ("/random/v=1/x~1", "x~1"),
            ("/self-learning/v=1/x~1", "x~1"),
            ("/pcon/v=1/x~1", "x~1"),
            (
                "/best-route/v=5/retx-suppression-max~9",
                "retx-suppression-max~9",
            ),
            ("/asf/v=5/probing-interval", "probing-interval"),
            ("/asf/v=5/x~1", "x~1"),
        ] {
            assert_eq!(refused(end), Parameter(parameter.to_owned()));
        }
        for (end, wrong) in [
            ("probing-interval~999", "probing-interval"),
            ("probing-interval~", "probing-interval"),
            ("probing-interval~-1", "probing-interval"),
            ("max-timeouts~x", "max-timeouts"),
            ("max-timeouts~0", "max-timeouts"),
            ("measurements-lifetime~60000", "measurements-lifetime"),
            ("probing-interval~300000", "measurements-lifetime"),
        ] {
            match refused(&format!("/asf/v=5/{end}")) {
                Value { parameter, .. } => assert_eq!(parameter, wrong, "{end}"),
                other => panic!("{end}: {other}"),
            }
        }
        assert!(parse("/localhost/nfd/strategy/asf/v=5/probing-interval~1000").is_ok());
    }
}
