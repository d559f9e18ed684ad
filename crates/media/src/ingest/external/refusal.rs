//! Why an input cannot be read, in words of its own: what ffmpeg says of it stands behind.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::super::source::Input;

/// Messages of ffmpeg, and their meanings.
const MEANINGS: [(&str, &str); 13] = [
    (
        "Cannot allocate memory",
        "it takes more memory than a stranger's input may",
    ),
    ("exceeds max_streams", "it has more than 1000 streams"),
    ("width is not set", "its pictures have no valid size"),
    ("dimensions not set", "its pictures have no valid size"),
    ("Picture size", "its pictures have no valid size"),
    ("No decoder", "this ffmpeg has no decoder for it"),
    ("Decoder (codec", "this ffmpeg has no decoder for it"),
    (
        "Error while opening decoder",
        "this ffmpeg cannot decode it",
    ),
    ("Error while decoding", "what is in it cannot be decoded"),
    ("sample rate not set", "its sound does not say what it is"),
    ("Connection refused", "nobody answers there"),
    ("Server returned", "the server does not give it"),
    (
        "Invalid data found",
        "it has no format that ffmpeg knows, or is damaged",
    ),
];
/// First words of ffmpeg's advice about options that Namecast does not offer.
const ADVICE: &str = "Consider increasing";
/// An MP4 without an index.
const NO_INDEX: &str = "moov atom not found";

/// Returns why `input` cannot be read, of which ffmpeg said `said`, a line each.
pub(super) fn reason(input: &Input, said: &str) -> String {
    let path = match input {
        Input::File(path) => Some(path.as_path()),
        _ => None,
    };
    let is_told = |line: &&str| !line.is_empty() && !line.starts_with(ADVICE);
    let lines = || said.lines().map(str::trim).filter(is_told);
    let known = MEANINGS
        .iter()
        .find_map(|(words, meaning)| Some((lines().find(|it| it.contains(words))?, *meaning)));
    let (line, meaning) = match (path.and_then(of_file), known) {
        (Some(meaning), _) => (None, meaning),
        (None, _) if said.contains(NO_INDEX) => (Some(NO_INDEX), of_mp4(path)),
        (None, Some((line, meaning))) => (Some(line), meaning),
        (None, None) => match lines().next() {
            Some(line) => (None, line),
            None => (None, "there is nothing in it"),
        },
    };
    match line.map(|line| line.rsplit(": ").next().unwrap_or(line)) {
        Some(line) => format!("{meaning} (ffmpeg: {line})"),
        None => meaning.to_owned(),
    }
}

/// Returns the refusal that follows from the file itself, without its content.
fn of_file(path: &Path) -> Option<&'static str> {
    let metadata = path.metadata().ok()?;
    if !metadata.is_file() {
        return Some("it ended before it said what it is");
    }
    (metadata.len() == 0).then_some("the file is empty")
}

/// Returns what a missing index means: the first box says if the file is an MP4 at all.
fn of_mp4(path: Option<&Path>) -> &'static str {
    let mut head = [0; 8];
    let read = path.and_then(|path| File::open(path).ok()?.read_exact(&mut head).ok());
    match read.is_none() || &head[4..] == b"ftyp" {
        true => "it was cut off: its index is missing",
        false => "it has no format that ffmpeg knows",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ffmpeg_s_words_stand_behind_ours() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = directory.path().join(name);
            std::fs::write(&path, content).unwrap();
            Input::File(path)
        };
        let film = file("film.mp4", b"\0\0\0\x14ftypisom");
        for (input, said, expected) in [
            (&file("empty.mp4", b""), NO_INDEX, "the file is empty"),
            (
                &film,
                "moov atom not found\nfile:x: Invalid data found when processing input",
                "it was cut off: its index is missing (ffmpeg: moov atom not found)",
            ),
            (
                &file("letter.mp4", b"Dear reader,"),
                NO_INDEX,
                "it has no format that ffmpeg knows (ffmpeg: moov atom not found)",
            ),
            (
                &film,
                "width is not set\nwidth is not set\nConsider increasing",
                "its pictures have no valid size (ffmpeg: width is not set)",
            ),
            (
                &film,
                "file:/a: b: Invalid data found when processing input",
                "it has no format that ffmpeg knows, or is damaged (ffmpeg: Invalid data found when processing input)",
            ),
            (&film, "first\nsecond", "first"),
            (&film, "", "there is nothing in it"),
            (
                &Input::File(directory.path().to_owned()),
                "",
                "it ended before it said what it is",
            ),
        ] {
            assert_eq!(reason(input, said), expected);
        }
    }
}
