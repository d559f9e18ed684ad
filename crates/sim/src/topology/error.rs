//! Why there is no topology.

use std::io;
use std::path::PathBuf;

use namecast_netem::{ConfigError, TraceError};

/// Why there is no topology.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The file could not be read.
    #[error("{}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file is not what its format says.
    #[error("{file}:{line}{}: found {found}, expected {expected}", column.map_or_else(String::new, |column| format!(":{column}")))]
    Syntax {
        /// The file.
        file: String,
        /// Its line, from 1.
        line: usize,
        /// The character in the line, from 1, where one is to blame.
        column: Option<usize>,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// A trace of a link's rate is wrong.
    #[error("{}:{}: {}", file.display(), error.line, error.problem)]
    Trace {
        /// The file.
        file: PathBuf,
        /// Its line, and what is wrong there.
        error: TraceError,
    },
    /// A link cannot be like that.
    #[error("{link}: {error}")]
    Link {
        /// Which link, by the names of its ends.
        link: String,
        /// What is wrong with it.
        error: ConfigError,
    },
    /// A value makes no sense.
    #[error("{field}: found {found}, expected {expected}")]
    Value {
        /// Which value, as configuration files spell it.
        field: String,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
}

impl TopologyError {
    pub(crate) fn value(
        field: impl Into<String>,
        found: impl ToString,
        expected: impl Into<String>,
    ) -> Self {
        Self::Value {
            field: field.into(),
            found: found.to_string(),
            expected: expected.into(),
        }
    }
}
