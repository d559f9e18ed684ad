//! Both links from a TOML file.

use std::path::{Path, PathBuf};

use namecast_netem::{Config, ConfigError};
use serde::Deserialize;

/// The file; a direction that is not there is a perfect link.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Links {
    forward: Config,
    backward: Config,
}

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{}:{line}: {problem}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: usize,
        /// What was found, and what was expected.
        problem: String,
    },
}

/// Reads the links `forward` and `backward`.
///
/// # Errors
/// If there is no such file, or with file, line and what was expected.
pub fn read(path: &Path) -> Result<(Config, Config), FileError> {
    let text = std::fs::read_to_string(path).map_err(|error| FileError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    parse(&text).map_err(|(line, problem)| FileError::Wrong {
        path: path.to_owned(),
        line,
        problem,
    })
}

fn parse(text: &str) -> Result<(Config, Config), (usize, String)> {
    let line_at = |offset: usize| 1 + text[..offset].bytes().filter(|&byte| byte == b'\n').count();
    let links: Links = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        (line_at(offset), error.message().to_owned())
    })?;
    for (name, config) in [("forward", &links.forward), ("backward", &links.backward)] {
        config.validate().map_err(|error| {
            let offset = place(text, name, &error).unwrap_or(0);
            (line_at(offset), format!("{name}.{error}"))
        })?;
    }
    Ok((links.forward, links.backward))
}

/// Where the value is that makes no sense; if it is not written down, the table that it belongs to.
fn place(text: &str, direction: &str, error: &ConfigError) -> Option<usize> {
    use toml::de::{DeTable, DeValue};
    let document = DeTable::parse(text).ok()?;
    let mut value = document.get_ref().get(direction)?;
    for part in error.field.split('.') {
        let inner = match value.get_ref() {
            DeValue::Table(table) => table.get(part),
            DeValue::Array(array) => part.parse().ok().and_then(|index: usize| array.get(index)),
            _ => None,
        };
        match inner {
            Some(inner) => value = inner,
            None => break,
        }
    }
    Some(value.span().start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namecast_units::Bitrate;

    #[test]
    fn both_directions_are_read_and_a_missing_one_is_perfect() {
        let (forward, backward) = parse("[forward]\nrate = \"1M\"\n").unwrap();
        assert_eq!(forward.rate, Some(Bitrate::mbps(1)));
        assert_eq!(backward, Config::default());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let refused = |text: &str| parse(text).unwrap_err();
        let (line, problem) = refused("[forward]\nrate = \"1M\"\ndelay = \"soon\"\n");
        assert_eq!(line, 3);
        assert!(problem.contains("write 100ms"), "{problem}");
        let (line, problem) = refused("[forward]\n\n[backward]\nspeed = 1\n");
        assert_eq!(line, 4);
        assert!(problem.contains("unknown field `speed`"), "{problem}");
        let (line, problem) = refused("[forward\n");
        assert_eq!(line, 1, "{problem}");
        assert_eq!(refused("[sideways]\n").0, 1);
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line() {
        let refused = |text: &str| parse(text).unwrap_err();
        let (line, problem) = refused("[forward]\nrate = \"1M\"\n\n[backward]\nduplicate = 1.5\n");
        assert_eq!(line, 5);
        assert_eq!(
            problem,
            "backward.duplicate: expected a share between 0 and 1"
        );
        let text =
            "[backward]\nschedule = [\n  { at = \"2s\", rate = \"1M\" },\n  { at = \"1s\" },\n]\n";
        assert_eq!(refused(text).0, 4);
        let text = "[forward.queue]\nkind = \"red\"\nmin = 20.0\n";
        assert_eq!(
            refused(text).0,
            1,
            "the value in question, 'max', is not written down"
        );
    }
}
