//! What an operator presses: a line of text, or an OSC message.

use core::str::FromStr;

/// Longest number of a cue, in octets.
const MAX_NUMBER: usize = 64;

/// Something that an operator presses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Press {
    /// Execute the cue of this number; `None`: the next one.
    Go(Option<String>),
    /// Prepare for it.
    Standby(Option<String>),
    /// Undo it.
    Undo(Option<String>),
    /// End all that runs, and execute no cue that waits for its time.
    Stop,
    /// Lead from now on.
    Take,
}

/// A line or message that is no press.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PressError {
    /// The first word is none of those.
    #[error("'{0}' is no command: write go, standby, undo or stop, and a cue's number, or take")]
    Unknown(String),
    /// A word follows the number, or one that has none.
    #[error("'{0}' is one word too many: write go, standby or undo, and one number")]
    TooMany(String),
    /// The number is too long.
    #[error("number: expected at most {MAX_NUMBER} octets")]
    TooLong,
}

impl FromStr for Press {
    type Err = PressError;

    /// Reads a line such as `go 12.5`; an empty one is `go`.
    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let mut words = line.split_whitespace();
        let (word, number) = (words.next().unwrap_or("go"), words.next());
        let press = Self::new(word, number)?;
        match words.next() {
            Some(extra) => Err(PressError::TooMany(shown(extra))),
            None => Ok(press),
        }
    }
}

impl Press {
    /// The press of a word, for the cue of a number.
    ///
    /// # Errors
    /// If there is no such word, or the number is too long.
    pub fn new(word: &str, number: Option<&str>) -> Result<Self, PressError> {
        if number.is_some_and(|number| number.len() > MAX_NUMBER) {
            return Err(PressError::TooLong);
        }
        let number = number.map(str::to_owned);
        match (word, number) {
            ("go", number) => Ok(Self::Go(number)),
            ("standby", number) => Ok(Self::Standby(number)),
            ("undo", number) => Ok(Self::Undo(number)),
            ("stop", None) => Ok(Self::Stop),
            ("take", None) => Ok(Self::Take),
            ("stop" | "take", Some(number)) => Err(PressError::TooMany(number)),
            (word, _) => Err(PressError::Unknown(shown(word))),
        }
    }
}

/// The beginning of a word that may be long, without control characters.
pub(super) fn shown(word: &str) -> String {
    let visible = word.chars().filter(|letter| !letter.is_control());
    visible.take(MAX_NUMBER).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_presses() {
        let read = |line: &str| line.parse::<Press>().map_err(|error| error.to_string());
        let number = || Some("12.5".to_owned());
        assert_eq!(read(""), Ok(Press::Go(None)));
        assert_eq!(read(" go  12.5\r"), Ok(Press::Go(number())));
        assert_eq!(read("standby 12.5"), Ok(Press::Standby(number())));
        assert_eq!(read("undo"), Ok(Press::Undo(None)));
        assert_eq!(read("stop"), Ok(Press::Stop));
        assert_eq!(read("take"), Ok(Press::Take));
        assert!(
            read("jump 1")
                .unwrap_err()
                .starts_with("'jump' is no command")
        );
        assert!(
            read("go 1 2")
                .unwrap_err()
                .starts_with("'2' is one word too many")
        );
        assert!(
            read("stop 1")
                .unwrap_err()
                .starts_with("'1' is one word too many")
        );
        assert!(
            read(&format!("go {}", "1".repeat(65)))
                .unwrap_err()
                .starts_with("number: ")
        );
        assert!(read(&"x".repeat(100_000)).unwrap_err().len() < 200);
    }
}
