//! Both links from a TOML file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use namecast_netem::{Config, Schedule, TraceFile};
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
        error: io::Error,
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

/// Reads a trace of a link's rate; a relative path is looked for in `base_dir`.
///
/// # Errors
/// If there is no such file, or with file, line and what was expected.
pub fn read_trace(file: &TraceFile, base_dir: &Path) -> Result<Arc<Schedule>, FileError> {
    let path = base_dir.join(&file.trace);
    let unreadable = |error| FileError::Unreadable {
        path: path.clone(),
        error,
    };
    let opened = fs::File::open(&path).map_err(unreadable)?;
    let schedule = Schedule::read(io::BufReader::new(opened), file.format);
    schedule.map(Arc::new).map_err(|error| FileError::Wrong {
        line: error.line,
        problem: error.problem,
        path,
    })
}

/// Reads the links `forward` and `backward`. Their traces are looked for beside the file.
///
/// # Errors
/// If there is no such file, or with file, line and what was expected.
pub fn read(path: &Path) -> Result<(Config, Config), FileError> {
    let text = fs::read_to_string(path).map_err(|error| FileError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    let base_dir = path.parent().unwrap_or(Path::new(""));
    parse(&text, base_dir).map_err(|(line, problem)| FileError::Wrong {
        path: path.to_owned(),
        line,
        problem,
    })
}

fn parse(text: &str, base_dir: &Path) -> Result<(Config, Config), (usize, String)> {
    let line_at = |offset: usize| 1 + text[..offset].bytes().filter(|&byte| byte == b'\n').count();
    let mut links: Links = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        (line_at(offset), error.message().to_owned())
    })?;
    for (name, config) in [
        ("forward", &mut links.forward),
        ("backward", &mut links.backward),
    ] {
        let line_of = |field: &str| line_at(place(text, name, field).unwrap_or(0));
        let resolved = config.resolve_rate(|file| read_trace(file, base_dir));
        resolved.map_err(|error| (line_of("rate.trace"), format!("{name}.rate: {error}")))?;
        let sound = config.validate();
        sound.map_err(|error| (line_of(&error.field), format!("{name}.{error}")))?;
    }
    Ok((links.forward, links.backward))
}

/// Where the value is that makes no sense; if it is not written down, the table that it belongs to.
fn place(text: &str, direction: &str, field: &str) -> Option<usize> {
    use toml::de::{DeTable, DeValue};
    let document = DeTable::parse(text).ok()?;
    let mut value = document.get_ref().get(direction)?;
    for part in field.split('.') {
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
        let (forward, backward) = parse("[forward]\nrate = \"1M\"\n", Path::new("")).unwrap();
        assert_eq!(forward.rate, Some(Bitrate::mbps(1).into()));
        assert_eq!(backward, Config::default());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let refused = |text: &str| parse(text, Path::new("")).unwrap_err();
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
    fn traces_are_read_from_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("drive.trace", "3\n8\n");
        write("broken.csv", "0,5\n\n1,fast\n");
        let read_with = |rate: &str| {
            write(
                "links.toml",
                &format!("[forward]\n[backward]\nrate = {rate}\n"),
            );
            read(&folder.path().join("links.toml")).map_err(|error| error.to_string())
        };
        let (_, backward) = read_with("{ trace = \"drive.trace\" }").unwrap();
        let schedule = Schedule::from_deliveries(vec![3, 8]).unwrap();
        assert_eq!(backward.rate, Some(schedule.into()));
        for (rate, expected) in [
            (
                "{ trace = \"broken.csv\" }",
                "links.toml:3: backward.rate: ",
            ),
            (
                "{ trace = \"broken.csv\" }",
                "broken.csv:3: found '1,fast', expected",
            ),
            ("{ trace = \"none.trace\" }", "none.trace: No such file"),
            (
                "{ trace = \"drive.trace\", format = \"csv\" }",
                "drive.trace:1: found '3'",
            ),
            (
                "{ model = \"lte\", mean = \"1G\" }",
                "links.toml:3: backward.rate.mean: expected",
            ),
        ] {
            let error = read_with(rate).unwrap_err();
            assert!(error.contains(expected), "{rate}: {error}");
        }
        assert!(read_with("{ model = \"lte\" }").unwrap().1.rate.is_some());
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line() {
        let refused = |text: &str| parse(text, Path::new("")).unwrap_err();
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
