//! A watch of the page, and its objects.

use namecast_apps::live::watcher::WatchId;
use namecast_forward::FaceId;

use crate::files::Files;

/// Roots that a tab watches at a time: everyone in the largest room.
pub(crate) const MAX_WATCHES: usize = 16;

/// A watch, and the objects that the page fetches under its name.
#[derive(Debug)]
pub(crate) struct TabWatch {
    pub(crate) id: WatchId,
    pub(crate) files: Files,
    pub(crate) files_face: FaceId,
}
