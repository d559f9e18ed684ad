//! Where a recording goes, and what the container there takes.

use core::fmt;
use core::str::FromStr;
use std::path::{Path, PathBuf};

use namecast_stream::StreamInfo;
use namecast_units::Duration;

use crate::hls::PLAYLIST;

/// How frames are wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// Not at all: the video alone.
    Bare,
    /// In NUT.
    Nut,
    /// By an ffmpeg, with these arguments.
    Ffmpeg(&'static str),
}

/// A container, with the codecs that it takes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Container {
    /// Ending of a file's name, scheme of an address, or `hls`.
    key: &'static str,
    /// As people call it.
    pub(super) name: &'static str,
    pub(super) wrapping: Wrapping,
    video: &'static [&'static str],
    /// Sound in another codec is encoded in the first of these.
    sound: &'static [&'static str],
}

/// Files of one recording that are looked for a free name.
const MAX_PARTS: usize = 10_000;
const ANY_VIDEO: &[&str] = &["h264", "vp8", "vp9", "av1"];
/// A fragment is written at each key frame, and once a second: what is there plays whenever the recording breaks off. The header
/// waits for both streams, or one that begins later than the other would be moved to the other's beginning.
const MP4: Wrapping = Wrapping::Ffmpeg(
    "-f mp4 -movflags +frag_keyframe+delay_moov+default_base_moof -frag_duration 1000000",
);
const MATROSKA: &str = "-f matroska -cluster_time_limit 1000";
const MPEG_TS: Wrapping = Wrapping::Ffmpeg("-f mpegts -muxdelay 0 -muxpreload 0");
const FLV: Wrapping = Wrapping::Ffmpeg("-f flv -flvflags no_duration_filesize");
/// Timestamps run on from one playlist to the next, and so do the numbers of segments. Without an index of its own, a segment may
/// begin with a picture that is shown later after its decoding than that of the first segment, as in open groups.
const HLS: Wrapping = Wrapping::Ffmpeg(
    "-copyts -f hls -hls_time 1 -hls_list_size 8 -hls_delete_threshold 4 -hls_segment_type fmp4 \
     -hls_segment_options movflags=+skip_sidx -hls_flags delete_segments+independent_segments+temp_file -hls_start_number_source epoch",
);

/// All of them; those that programs and devices take best come first.
const CONTAINERS: [Container; 13] = [
    container(
        "mp4",
        ".mp4",
        MP4,
        &["h264", "vp9", "av1"],
        &["opus", "aac"],
    ),
    container(
        "mkv",
        ".mkv",
        Wrapping::Ffmpeg(MATROSKA),
        ANY_VIDEO,
        &["opus", "aac"],
    ),
    container(
        "webm",
        ".webm",
        Wrapping::Ffmpeg("-f webm -cluster_time_limit 1000"),
        &["vp8", "vp9", "av1"],
        &["opus"],
    ),
    container("ts", ".ts", MPEG_TS, &["h264"], &["aac"]),
    container("nut", ".nut", Wrapping::Nut, ANY_VIDEO, &["opus", "aac"]),
    container("h264", ".h264", Wrapping::Bare, &["h264"], &[]),
    container("264", ".264", Wrapping::Bare, &["h264"], &[]),
    container("hls", "HLS", HLS, &["h264", "vp9", "av1"], &["aac"]),
    container(
        "rtsp",
        "RTSP",
        Wrapping::Ffmpeg("-f rtsp -rtsp_transport tcp"),
        &["h264", "vp8"],
        &["opus", "aac"],
    ),
    container("srt", "SRT", MPEG_TS, &["h264"], &["aac"]),
    container("rtmp", "RTMP", FLV, &["h264"], &["aac"]),
    container("rtmps", "RTMPS", FLV, &["h264"], &["aac"]),
    container("flv", ".flv", FLV, &["h264"], &["aac"]),
];

const fn container(
    key: &'static str,
    name: &'static str,
    wrapping: Wrapping,
    video: &'static [&'static str],
    sound: &'static [&'static str],
) -> Container {
    Container {
        key,
        name,
        wrapping,
        video,
        sound,
    }
}

/// Pictures that a container does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{container} takes no pictures in {codec}: {}", instead(.codec))]
pub struct TakesNot {
    container: &'static str,
    codec: String,
}

fn instead(codec: &str) -> String {
    let takes = CONTAINERS.iter().filter(|it| it.video.contains(&codec));
    let names: Vec<_> = takes.map(|it| it.name).collect();
    match names.is_empty() {
        true => "nor does any other".to_owned(),
        false => format!("these do: {}", names.join(", ")),
    }
}

impl Container {
    /// Returns whether it takes sound at all.
    pub(super) const fn takes_sound(&self) -> bool {
        !self.sound.is_empty()
    }

    /// Checks that it takes the pictures of `stream`.
    ///
    /// # Errors
    /// Which containers do, if it does not.
    pub(super) fn check_video(&self, stream: &StreamInfo) -> Result<(), TakesNot> {
        match self.video.contains(&stream.codec.as_str()) {
            true => Ok(()),
            false => Err(TakesNot {
                container: self.name,
                codec: stream.codec.clone(),
            }),
        }
    }

    /// Returns the codec that sound in `codec` has to be encoded in, if it is not taken as it is.
    pub(super) fn sound_instead(&self, codec: &str) -> Option<&'static str> {
        let first = self.sound.first().copied();
        first.filter(|_| !self.sound.contains(&codec))
    }
}

/// Where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Standard output.
    Standard,
    File(PathBuf),
    /// A directory of segments.
    Directory(PathBuf),
    /// A server that is pushed to.
    Server(String),
}

/// How HLS is cut into segments that are found by their number, `seq=7`, so that the next one can be asked for before it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Length of a segment; each ends before the next key frame.
    pub duration: Duration,
    /// Number of the first.
    pub first: u64,
    /// Segments in the playlist.
    pub listed: usize,
}

/// Where a recording goes: `-` for standard output, a file whose ending says the container, `hls:DIR`, or the address of a server
/// to push to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub(super) place: Place,
    pub(super) container: &'static Container,
    /// Of HLS, unless its segments are cut for one player.
    pub(super) cut: Option<Cut>,
    /// Of HLS: name of the playlist of pictures and sound.
    pub(super) playlist: &'static str,
}

impl Destination {
    /// HLS in `directory`, with the playlist [`PLAYLIST`].
    pub fn hls(directory: PathBuf) -> Self {
        let container = find("hls").expect("it is in the list");
        Self {
            place: Place::Directory(directory),
            container,
            cut: None,
            playlist: PLAYLIST,
        }
    }

    /// HLS in `directory`, cut as `cut` says.
    pub fn package(directory: PathBuf, cut: Cut) -> Self {
        Self {
            cut: Some(cut),
            ..Self::hls(directory)
        }
    }

    /// Checks that the container takes the pictures of `video`.
    ///
    /// # Errors
    /// Which containers do, if it does not.
    pub fn check(&self, video: &StreamInfo) -> Result<(), TakesNot> {
        self.container.check_video(video)
    }

    /// Returns the file, if it is one in fragmented MP4.
    pub fn as_mp4(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) if self.container.key == "mp4" => Some(path),
            _ => None,
        }
    }

    /// Returns the directory, if captions can be written beside what is there.
    pub fn captions_directory(&self) -> Option<&Path> {
        match &self.place {
            Place::Directory(path) if self.cut.is_none() => Some(path),
            _ => None,
        }
    }

    /// Returns whether it is standard output.
    pub fn is_standard(&self) -> bool {
        self.place == Place::Standard
    }

    /// Returns whether what is written is kept, in a file or a directory, and not played as it comes.
    pub const fn is_kept(&self) -> bool {
        matches!(self.place, Place::File(_) | Place::Directory(_))
    }

    /// The destination's file number `part`, which is 2 for the second: `film-2.mp4`, or the next of these that there is not yet.
    pub(super) fn part(&self, part: usize) -> Self {
        let mut next = self.clone();
        if let (Place::File(path), 2..) = (&mut next.place, part) {
            let stem = path.file_stem().unwrap_or_default().to_os_string();
            let extension = path.extension().map(ToOwned::to_owned);
            for number in part..part + MAX_PARTS {
                let mut name = stem.clone();
                name.push(format!("-{number}"));
                path.set_file_name(name);
                if let Some(extension) = &extension {
                    path.set_extension(extension);
                }
                if !path.exists() {
                    break;
                }
            }
        }
        next
    }
}

fn find(key: &str) -> Option<&'static Container> {
    CONTAINERS.iter().find(|container| container.key == key)
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const NUT: &str = "nut";
        let extension = Path::new(text).extension();
        let extension = extension.map_or(NUT.into(), |it| it.to_string_lossy().to_lowercase());
        let (place, key) = match (text, text.split_once("://"), text.strip_prefix("hls:")) {
            ("", ..) | (_, _, Some("")) => {
                return Err("write a file, '-', or hls: and a directory, as hls:live".to_owned());
            }
            ("-", ..) => (Place::Standard, NUT),
            (_, Some((scheme, _)), _) if matches!(scheme, "rtsp" | "srt" | "rtmp" | "rtmps") => {
                (Place::Server(text.to_owned()), scheme)
            }
            (_, Some((scheme, _)), _) => {
                return Err(format!(
                    "nothing is pushed to {scheme}://: write rtsp://, srt://, rtmp:// or rtmps://"
                ));
            }
            (_, _, Some(directory)) => (Place::Directory(directory.into()), "hls"),
            _ => (Place::File(text.into()), &*extension),
        };
        let container = find(key).filter(|_| {
            !matches!(
                (&place, key),
                (Place::File(_), "hls" | "rtsp" | "srt" | "rtmp" | "rtmps")
            )
        });
        let container = container.ok_or_else(|| {
            let files = CONTAINERS
                .iter()
                .map(|it| it.name)
                .filter(|name| name.starts_with('.'));
            let files: Vec<_> = files.collect();
            format!(
                "no container is called .{key}: write a file that ends in {}",
                files.join(", ")
            )
        })?;
        Ok(Self {
            place,
            container,
            cut: None,
            playlist: PLAYLIST,
        })
    }
}

impl fmt::Display for Destination {
    /// Without what only the server should read, such as a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Standard => f.write_str("standard output"),
            Place::File(path) | Place::Directory(path) => path.display().fmt(f),
            Place::Server(address) => {
                let (scheme, rest) = address.split_once("://").unwrap_or_default();
                let host = rest.split(['/', '?']).next().unwrap_or_default();
                let host = host.rsplit('@').next().unwrap_or_default();
                write!(f, "{scheme}://{host}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> &'static str {
        text.parse::<Destination>().unwrap().container.key
    }

    #[test]
    fn the_name_says_the_container() {
        assert_eq!(key("-"), "nut");
        assert_eq!(key("dir.d/film"), "nut");
        assert_eq!(key("dir.d/film.MP4"), "mp4");
        assert_eq!(key("hls:live"), "hls");
        assert_eq!(key("rtsp://127.0.0.1:8554/cam"), "rtsp");
        assert_eq!(key("srt://127.0.0.1:9000?streamid=publish:cam"), "srt");
        for (wrong, expected) in [
            ("film.xyz", ".mp4, .mkv"),
            ("film.hls", ".mp4, .mkv"),
            ("http://host/film.mp4", "rtsp://, srt://"),
            ("hls:", "hls:live"),
            ("", "'-'"),
        ] {
            let error = wrong.parse::<Destination>().unwrap_err();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }

    #[test]
    fn keys_and_passwords_are_not_shown() {
        let shown = |text: &str| text.parse::<Destination>().unwrap().to_string();
        assert_eq!(shown("rtsp://me:secret@host:8554/cam"), "rtsp://host:8554");
        assert_eq!(shown("rtmp://host/live/key"), "rtmp://host");
        assert_eq!(
            shown("srt://host:9000?passphrase=secret"),
            "srt://host:9000"
        );
        assert_eq!(shown("a/film.mp4"), "a/film.mp4");
    }

    #[test]
    fn further_files_take_the_next_free_number() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let first: Destination = path("film.mp4").to_str().unwrap().parse().unwrap();
        assert_eq!(first.part(1), first);
        assert_eq!(first.part(2).place, Place::File(path("film-2.mp4")));
        std::fs::write(path("film-2.mp4"), "kept").unwrap();
        assert_eq!(first.part(2).place, Place::File(path("film-3.mp4")));
        let bare: Destination = path("film").to_str().unwrap().parse().unwrap();
        assert_eq!(bare.part(2).place, Place::File(path("film-2")));
    }

    #[test]
    fn what_takes_a_codec_is_named() {
        let not = |key: &str, codec: &str| TakesNot {
            container: find(key).unwrap().name,
            codec: codec.to_owned(),
        };
        let text = not("ts", "vp9").to_string();
        assert_eq!(
            text,
            ".ts takes no pictures in vp9: these do: .mp4, .mkv, .webm, .nut, HLS"
        );
        assert!(
            not("ts", "smell")
                .to_string()
                .ends_with("nor does any other")
        );
    }
}
