//! Private files of this machine's user. On Windows the permissions of the user's directory protect them.

use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Makes a directory for its owner only, with those above it.
///
/// # Errors
/// If the system refuses.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Options that make a new file for its owner only.
pub(crate) fn new_private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns where this program keeps data of this machine's user: `namecast` below `$XDG_DATA_HOME`, `~/.local/share`, or on Windows
/// `%LOCALAPPDATA%`. `None` if the environment names none of them.
pub fn data_directory() -> Option<PathBuf> {
    let data = environment("XDG_DATA_HOME").or_else(|| of_windows("LOCALAPPDATA"));
    let data = data.map(PathBuf::from);
    let data = data.or_else(|| Some(home()?.join(".local/share")));
    Some(data?.join("namecast"))
}

/// Returns the user's home directory: `$HOME`, on Windows `%USERPROFILE%`.
pub fn home() -> Option<PathBuf> {
    let home = environment("HOME").or_else(|| of_windows("USERPROFILE"));
    home.map(PathBuf::from)
}

/// Returns an environment variable that means something on Windows only.
fn of_windows(variable: &str) -> Option<OsString> {
    environment(variable).filter(|_| cfg!(windows))
}

/// Returns an environment variable; `None` if it is unset or empty.
pub fn environment(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}
