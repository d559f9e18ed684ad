//! Choices that have names: what can be written on a command line or in a file.

/// A text that names none of several choices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is no {what}: write {}", listed(.names))]
pub struct ParseChoiceError {
    /// What was written.
    pub name: String,
    /// What it should have been.
    pub what: &'static str,
    /// What could have been written.
    pub names: &'static [&'static str],
}

fn listed(names: &[&str]) -> String {
    match names {
        [one, other] => format!("{one} or {other}"),
        names => format!("one of {}", names.join(", ")),
    }
}

/// Gives each variant of an enum a name, by which it is read and written.
macro_rules! choices {
    ($type:ident, $what:literal, $($variant:ident = $name:literal),+) => {
        impl $type {
            /// The names that can be written.
            pub const NAMES: &'static [&'static str] = &[$($name),+];
        }

        impl core::str::FromStr for $type {
            type Err = $crate::ParseChoiceError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    other => Err($crate::ParseChoiceError {
                        name: other.to_owned(),
                        what: $what,
                        names: Self::NAMES,
                    }),
                }
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $name,)+
                })
            }
        }
    };
}

pub(crate) use choices;

#[cfg(test)]
mod tests {
    use crate::Profile;
    use crate::consumer::{RecoveryProfile, StabilityClass, SynchroniserProfile};
    use crate::ladder::LadderProfile;

    /// All names of a choice are read and written alike.
    macro_rules! assert_read_back {
        ($($type:ident),+) => {$(
            for name in $type::NAMES {
                let read = name.parse::<$type>().unwrap();
                assert_eq!(read.to_string(), *name);
            }
        )+};
    }

    #[test]
    fn every_name_is_read_and_written_alike() {
        assert_read_back!(
            Profile,
            RecoveryProfile,
            StabilityClass,
            SynchroniserProfile,
            LadderProfile
        );
    }

    #[test]
    fn what_is_no_choice_gets_the_list() {
        let error = "Medium".parse::<StabilityClass>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'Medium' is no class of stability: write one of low, medium, high"
        );
        let error = "papers".parse::<RecoveryProfile>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'papers' is no recovery profile: write one of namecast, paper, timers"
        );
        let error = "paper".parse::<Profile>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'paper' is no profile: write namecast or rtsd"
        );
        let error = "ours".parse::<LadderProfile>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "'ours' is no ladder profile: write namecast or paper"
        );
        assert!("code".parse::<SynchroniserProfile>().is_err());
    }
}
