//! Where chunks are kept: a directory, or a bucket by URL.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use namecast_packet::Name;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, parse_url_opts};
use url::Url;

/// Where chunks are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A bucket that several machines share.
    Bucket {
        /// Such as `s3://bucket/prefix`. Credentials come from the environment, as the store's own tools read them.
        url: Url,
        /// Directory for the chunk that is being written.
        spool: PathBuf,
    },
}

/// Why a location is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocationError {
    /// It is no URL.
    #[error("'{0}' is neither a directory nor the URL of a bucket: {1}")]
    Url(String, url::ParseError),
    /// The store refuses it, or support for it was not built in.
    #[error("cannot open '{0}': {1}")]
    Store(String, object_store::Error),
    /// The directory cannot be made.
    #[error("cannot make directory {0}: {1}")]
    Directory(PathBuf, std::io::Error),
}

/// A location that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub store: Arc<dyn ObjectStore>,
    /// Chunks and indexes are right below.
    pub prefix: Path,
    /// Directory of chunks that are not sealed: `<id>.open`, so that no root's directory is another's.
    pub open: PathBuf,
    /// Directory of sealed chunks, if files can simply be moved there.
    pub sealed: Option<PathBuf>,
}

impl Location {
    /// Reads a directory's path or a bucket's URL; `spool` is for buckets.
    ///
    /// # Errors
    /// [`LocationError::Url`].
    pub fn parse(text: &str, spool: &FilePath) -> Result<Self, LocationError> {
        if !text.contains("://") {
            return Ok(Self::Directory(text.into()));
        }
        let url = Url::parse(text).map_err(|error| LocationError::Url(text.to_owned(), error))?;
        Ok(Self::Bucket {
            url,
            spool: spool.to_owned(),
        })
    }

    /// Opens the place of the chunks of `root`.
    pub(crate) fn open(&self, root: &Name) -> Result<Opened, LocationError> {
        let parts = || root.components().map(|part| part.to_string());
        let opened = match self {
            Self::Directory(directory) => {
                make(directory)?;
                let text = directory.display().to_string();
                let refused = |error| LocationError::Store(text.clone(), error);
                let store = LocalFileSystem::new_with_prefix(directory).map_err(refused)?;
                // What is put is durable before anything that depends on it is done.
                let store = store.with_fsync(true);
                let prefix: Path = parts().collect();
                let sealed = store.path_to_filesystem(&prefix).map_err(refused)?;
                Opened {
                    store: Arc::new(store),
                    prefix,
                    open: sealed.clone(),
                    sealed: Some(sealed),
                }
            }
            Self::Bucket { url, spool } => {
                let text = url.to_string();
                // Others would be taken for options as well, such as TOKEN and TIMEOUT.
                let options = std::env::vars().filter(|(key, _)| key.starts_with("AWS_"));
                let (store, base) = parse_url_opts(url, options)
                    .map_err(|error| LocationError::Store(text, error))?;
                let prefix: Path = base
                    .parts()
                    .map(|part| part.as_ref().to_owned())
                    .chain(parts())
                    .collect();
                Opened {
                    store: Arc::from(store),
                    open: spool.join(prefix.as_ref()),
                    prefix,
                    sealed: None,
                }
            }
        };
        make(&opened.open)?;
        Ok(opened)
    }
}

/// Makes a directory, and those above it, that are still there after a power cut.
fn make(directory: &FilePath) -> Result<(), LocationError> {
    let made = || {
        let missing: Vec<_> = directory
            .ancestors()
            .take_while(|at| !at.exists())
            .collect();
        std::fs::create_dir_all(directory)?;
        let parents = missing.iter().filter_map(|made| made.parent());
        let mut named = parents.filter(|parent| !parent.as_os_str().is_empty());
        named.try_for_each(sync_directory)
    };
    made().map_err(|error| LocationError::Directory(directory.to_owned(), error))
}

/// Makes the names of files in a directory durable, where directories can be opened: not on Windows.
///
/// # Errors
/// If the system refuses.
pub fn sync_directory(directory: &FilePath) -> std::io::Result<()> {
    match cfg!(windows) {
        true => Ok(()),
        false => std::fs::File::open(directory)?.sync_all(),
    }
}
