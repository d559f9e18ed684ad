//! The experiment files that there are: those of the binary, or those of a folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use thiserror::Error;

use super::file::FileLimits;

/// The files under `experiments/`: part of the binary, but read from disk in debug builds.
#[derive(rust_embed::RustEmbed)]
#[folder = "experiments"]
#[allow_missing = true]
struct Embedded;

/// Why there are no experiments to choose from.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// A file or folder cannot be read.
    #[error("{path}: {error}: expected a folder with files such as arc/figure05.toml", path = .path.display())]
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The name becomes part of commands and addresses.
    #[error("{path}: expected a name of letters, digits, '-' and '_'", path = .path.display())]
    Name {
        /// Which one.
        path: PathBuf,
    },
    /// It is not text, or longer than an experiment has reason to be.
    #[error("{path}: expected UTF-8 text of at most {most} octets", path = .path.display())]
    NotText {
        /// Which one.
        path: PathBuf,
        /// Limit.
        most: usize,
    },
    /// Nothing is called like this.
    #[error("no experiment is called '{pattern}': `namecast experiment list` shows their names")]
    Unknown {
        /// What was asked for.
        pattern: String,
    },
}

/// Experiment files by ID. The ID of `experiments/arc/figure05.toml` is `arc/figure05`.
#[derive(Debug)]
pub struct Library {
    files: BTreeMap<String, Text>,
    root: PathBuf,
    limits: FileLimits,
    /// Where the binary's files are while this lives.
    _unpacked: Option<TempDir>,
}

#[derive(Debug)]
struct Text {
    path: String,
    text: String,
}

impl Library {
    /// The files that are part of this binary. Those that scenarios refer to are unpacked into a folder that vanishes
    /// with the library.
    ///
    /// # Errors
    /// A file has a name that is not allowed, or the system gives no folder to unpack into.
    pub fn embedded() -> Result<Self, LibraryError> {
        let folder = tempfile::tempdir().map_err(|error| LibraryError::Unreadable {
            path: std::env::temp_dir(),
            error,
        })?;
        let write = |target: &Path, data: &[u8]| {
            target.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(target, data)
        };
        for name in Embedded::iter() {
            if let Some(file) = Embedded::get(&name) {
                let path = folder.path().join(&*name);
                write(&path, &file.data).map_err(|error| unreadable(&path, error))?;
            }
        }
        let mut library = Self::read_folder(folder.path(), Path::new("experiments"))?;
        library._unpacked = Some(folder);
        Ok(library)
    }

    /// The files of a folder.
    ///
    /// # Errors
    /// It cannot be read, or a file has a name that is not allowed.
    pub fn open(folder: &Path) -> Result<Self, LibraryError> {
        Self::read_folder(folder, folder)
    }

    /// Reads the files under `root`; messages show them under `shown`.
    fn read_folder(root: &Path, shown: &Path) -> Result<Self, LibraryError> {
        let limits = FileLimits::default();
        let mut files = BTreeMap::new();
        for slug in entries(root)? {
            if !slug.is_dir() {
                continue;
            }
            for path in entries(&slug)? {
                if path.extension().is_none_or(|extension| extension != "toml") {
                    continue;
                }
                let relative = path.strip_prefix(root).unwrap_or(&path).with_extension("");
                let path_shown = shown.join(path.strip_prefix(root).unwrap_or(&path));
                let id = id_of(&relative).ok_or_else(|| LibraryError::Name {
                    path: path_shown.clone(),
                })?;
                let text = fs::read(&path).map_err(|error| unreadable(&path_shown, error))?;
                let text = String::from_utf8(text).ok();
                let text = text.filter(|text| text.len() <= limits.octets);
                let text = text.ok_or_else(|| LibraryError::NotText {
                    path: path_shown.clone(),
                    most: limits.octets,
                })?;
                let path = path_shown.display().to_string();
                files.insert(id, Text { path, text });
            }
        }
        Ok(Self {
            files,
            root: root.to_owned(),
            limits,
            _unpacked: None,
        })
    }

    /// All IDs, in order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The IDs that one of `patterns` means, in order; all of them without any pattern.
    ///
    /// # Errors
    /// A pattern means none.
    pub fn select(&self, patterns: &[String]) -> Result<Vec<&str>, LibraryError> {
        for pattern in patterns {
            if !self.ids().any(|id| means(pattern, id)) {
                let pattern = pattern.clone();
                return Err(LibraryError::Unknown { pattern });
            }
        }
        Ok(self.ids().filter(|id| is_chosen(patterns, id)).collect())
    }

    /// Path to show, and text.
    pub(super) fn file(&self, id: &str) -> Option<(&str, &str)> {
        let file = self.files.get(id)?;
        Some((&file.path, &file.text))
    }

    /// Where the paths in the scenario of `id` start: the folder of its file.
    pub(super) fn base(&self, id: &str) -> PathBuf {
        let slug = id.split('/').next().unwrap_or_default();
        self.root.join(slug)
    }

    pub(super) const fn limits(&self) -> &FileLimits {
        &self.limits
    }
}

fn unreadable(path: &Path, error: io::Error) -> LibraryError {
    LibraryError::Unreadable {
        path: path.to_owned(),
        error,
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, LibraryError> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| Ok(entry?.path())).collect()
    };
    let mut paths = read().map_err(|error| unreadable(folder, error))?;
    paths.sort();
    Ok(paths)
}

fn id_of(relative: &Path) -> Option<String> {
    let id = relative.to_str()?.replace('\\', "/");
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/');
    id.chars().all(allowed).then_some(id)
}

/// Whether one of `patterns` means `id`; without patterns, all are meant.
pub(super) fn is_chosen(patterns: &[String], id: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| means(pattern, id))
}

/// Whether `pattern` means `id`: itself, the folder it is in, or with `*` for any characters but a slash.
fn means(pattern: &str, id: &str) -> bool {
    let folder = id.split('/').next().unwrap_or_default();
    pattern == folder || glob(pattern, id)
}

/// Whether `text` is `pattern` with something other than slashes for each `*`.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(before) else {
        return false;
    };
    let reach = rest.find('/').unwrap_or(rest.len());
    let starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts
        .take_while(|&at| at <= reach)
        .any(|at| glob(after, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_ids_folders_and_globs() {
        assert!(means("arc", "arc/figure05") && means("arc/figure05", "arc/figure05"));
        assert!(means("arc/*", "arc/figure05") && means("*/figure0*", "arc/figure05"));
        assert!(means("*/*5", "arc/figure05") && means("a*c/f*5", "arc/figure05"));
        assert!(!means("ar", "arc/figure05") && !means("*", "arc/figure05"));
        assert!(!means("arc/figure0", "arc/figure05") && !means("arc/figure05*x", "arc/figure05"));
    }

    #[test]
    fn a_folder_is_read_and_searched() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["arc/b.toml", "arc/a.toml", "arc/map.txt", "zoo/c.toml"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let library = Library::open(folder.path()).unwrap();
        assert_eq!(
            library.ids().collect::<Vec<_>>(),
            ["arc/a", "arc/b", "zoo/c"]
        );
        let select = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|&p| p.to_owned()).collect();
            let ids = library
                .select(&patterns)
                .map_err(|error| error.to_string())?;
            Ok::<_, String>(ids.join(" "))
        };
        assert_eq!(select(&[]).unwrap(), "arc/a arc/b zoo/c");
        assert_eq!(select(&["zoo", "arc/b"]).unwrap(), "arc/b zoo/c");
        assert!(select(&["arc", "nope"]).unwrap_err().contains("'nope'"));
        fs::write(folder.path().join("arc/no space.toml"), "").unwrap();
        let refused = Library::open(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("letters, digits"), "{refused}");
    }
}
