//! Parser of ffmpeg's description of an input and its streams, for values that NUT cannot carry.
//!
//! The lines have kept their form from ffmpeg 4 to 9. A line that is not understood leaves its value unknown.

use namecast_units::Duration;

/// Begins ffmpeg's description of its first output.
pub(super) const OUTPUT: &str = "Output #0";
/// Tracks of subtitles that are looked at.
const MAX_SUBTITLES: usize = 64;

/// Colour properties of a stream, by their names in ffmpeg.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Colours {
    /// `tv` or `pc`: limited or full range.
    pub(crate) range: Option<String>,
    /// Matrix from RGB.
    pub(crate) space: Option<String>,
    /// Primaries.
    pub(crate) primaries: Option<String>,
    /// Transfer characteristics.
    pub(crate) transfer: Option<String>,
}

impl Colours {
    /// Returns whether they are of a high dynamic range: PQ or HLG.
    pub(crate) fn is_high_dynamic_range(&self) -> bool {
        matches!(self.transfer.as_deref(), Some("smpte2084" | "arib-std-b67"))
    }
}

/// Pictures as the container describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Picture {
    /// The codec with its profile and tag, such as `h264 (High) (avc1 / 0x31637661)`.
    pub(crate) codec: String,
    /// ffmpeg's name of the pixel format, such as `yuv420p`.
    pub(crate) pixel_format: String,
    pub(crate) colours: Colours,
    /// Two fields of different times make a frame.
    pub(crate) is_interlaced: bool,
    /// Width of a pixel over its height.
    pub(crate) pixel_aspect: Option<(u32, u32)>,
    /// Degrees counterclockwise by which the picture is turned when it is shown.
    pub(crate) rotation: Option<i32>,
}

/// Description printed by ffmpeg so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Description {
    section: Section,
    /// Names of the container, such as `mov,mp4,m4a,3gp,3g2,mj2`.
    pub(crate) format: String,
    /// Length of the input; `None`: it has no end that anybody knows.
    pub(crate) duration: Option<Duration>,
    /// The stream of pictures that is taken.
    pub(crate) picture: Option<Picture>,
    /// Codecs of the tracks of subtitles.
    pub(crate) subtitles: Vec<String>,
}

/// Which part of ffmpeg's report a line belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Start,
    Input,
    /// The first output, whose first stream are the pictures.
    FirstOutput,
    End,
}

impl Description {
    /// Returns whether all of it was printed.
    pub(crate) fn is_whole(&self) -> bool {
        self.section == Section::End
    }

    /// Takes one line.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("Input #0, ") {
            self.section = Section::Input;
            self.format = rest.split(", from '").next().unwrap_or_default().to_owned();
        } else if line.starts_with(OUTPUT) {
            self.section = Section::FirstOutput;
        } else if line.starts_with("Stream mapping") && self.section == Section::Input {
            // ffmpeg may print the mapping before the outputs.
            self.section = Section::Start;
        } else if !line.starts_with(' ') && self.section == Section::FirstOutput {
            self.section = Section::End;
        }
        match self.section {
            Section::Input => self.read_input(line),
            Section::FirstOutput => self.read_output(line),
            Section::Start | Section::End => {}
        }
    }

    fn read_input(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("  Duration: ") {
            self.duration = rest.split(',').next().and_then(duration);
        }
        if line.trim_start().starts_with("Stream #0:")
            && let Some((_, codec)) = line.split_once(": Subtitle: ")
            && self.subtitles.len() < MAX_SUBTITLES
        {
            let codec = codec.split([' ', ',']).next();
            self.subtitles.push(codec.unwrap_or_default().to_owned());
        }
    }

    fn read_output(&mut self, line: &str) {
        if line.starts_with("  Stream #0:0") {
            self.picture = line.split_once(": Video: ").map(|(_, it)| picture(it));
            if self.picture.is_none() {
                self.section = Section::End;
            }
        } else if line.starts_with("  Stream #") {
            // Further lines belong to another stream.
            self.section = Section::End;
        }
        let rotation = line.split_once(": rotation of ").map(|(_, it)| it);
        if let (Some(picture), Some(rotation)) = (&mut self.picture, rotation) {
            let degrees = rotation.split(' ').next().and_then(|it| it.parse().ok());
            picture.rotation = degrees.map(|degrees: f64| degrees.round() as i32);
        }
    }
}

fn duration(text: &str) -> Option<Duration> {
    let mut parts = text.split(':').map(|part| part.parse::<f64>().ok());
    let [hours, minutes, seconds] = [parts.next()??, parts.next()??, parts.next()??];
    Duration::try_from_secs_f64(hours * 3_600.0 + minutes * 60.0 + seconds).ok()
}

/// Reads what follows `Video: `.
fn picture(text: &str) -> Picture {
    let parts = split(text);
    let mut picture = Picture {
        codec: parts.first().copied().unwrap_or_default().to_owned(),
        ..Picture::default()
    };
    if let Some(format) = parts.get(1) {
        let (name, details) = format.split_once('(').unwrap_or((format, ""));
        name.clone_into(&mut picture.pixel_format);
        for detail in split(details.trim_end_matches(')')) {
            match detail {
                "tv" | "pc" => picture.colours.range = known(detail),
                "progressive" => {}
                _ if detail.ends_with(" first") || detail.contains(" first (") => {
                    picture.is_interlaced = true;
                }
                _ => read_colours(&mut picture.colours, detail),
            }
        }
    }
    let aspect = text.split_once("SAR ").map(|(_, it)| it);
    picture.pixel_aspect = aspect.and_then(|it| {
        let (width, height) = it.split(' ').next()?.split_once(':')?;
        let aspect: (u32, u32) = (width.parse().ok()?, height.parse().ok()?);
        (aspect.0 > 0 && aspect.1 > 0).then_some(aspect)
    });
    picture
}

/// Reads `space/primaries/transfer`, or one name for all three.
fn read_colours(colours: &mut Colours, names: &str) {
    let names: Vec<_> = names.split('/').collect();
    let [space, primaries, transfer] = match names[..] {
        [all] => [all; 3],
        [space, primaries, transfer] => [space, primaries, transfer],
        _ => return,
    };
    colours.space = known(space);
    colours.primaries = known(primaries);
    colours.transfer = known(transfer);
}

fn known(name: &str) -> Option<String> {
    let is_name = name
        .chars()
        .all(|it| it.is_ascii_alphanumeric() || it == '-');
    (is_name && name != "unknown").then(|| name.to_owned())
}

/// Splits at commas that are not in brackets.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let parts = text.split(|it| {
        depth += match it {
            '(' | '[' => 1,
            ')' | ']' => -1,
            _ => 0,
        };
        it == ',' && depth <= 0
    });
    parts.map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(lines: &[&str]) -> Description {
        let mut description = Description::default();
        lines.iter().for_each(|line| description.read(line));
        description
    }

    /// As ffmpeg 5.1 and 9.0 print them; the title is a trap.
    #[test]
    fn what_an_input_is_follows_from_its_lines() {
        for side_data in ["displaymatrix", "Display Matrix"] {
            let rotation = format!("      {side_data}: rotation of -90.00 degrees");
            let description = described(&[
                "Input #0, mov,mp4,m4a,3gp,3g2,mj2, from 'a, from 'b.mp4':",
                "    title           :   Duration: 00:00:01.00",
                "  Duration: 01:00:10.50, start: 0.000000, bitrate: 322 kb/s",
                "  Stream #0:0[0x1](und): Video: hevc (Main 10) (hvc1 / 0x31766568), yuv420p, 1x1",
                "Output #0, nut, to 'pipe:3':",
                "  Stream #0:0: Video: hevc (Main 10) (HEVC / 0x43564548), yuv420p10le(tv, bt2020nc/bt2020/arib-std-b67, progressive), \
                 720x576 [SAR 64:45 DAR 16:9], q=2-31, 25 fps",
                &rotation,
                "  Stream #0:1: Audio: aac, 44100 Hz",
                "      displaymatrix: rotation of 5.00 degrees",
            ]);
            assert_eq!(description.format, "mov,mp4,m4a,3gp,3g2,mj2");
            assert_eq!(description.duration, Some(Duration::from_millis(3_610_500)));
            let picture = description.picture.unwrap();
            assert_eq!(picture.pixel_format, "yuv420p10le");
            assert_eq!(picture.pixel_aspect, Some((64, 45)));
            assert_eq!(picture.rotation, Some(-90));
            assert!(picture.colours.is_high_dynamic_range() && !picture.is_interlaced);
            assert_eq!(picture.colours.space.as_deref(), Some("bt2020nc"));
            assert_eq!(picture.colours.range.as_deref(), Some("tv"));
        }
    }

    #[test]
    fn what_is_not_stated_is_unknown() {
        let description = described(&[
            "Input #0, mpegts, from 'udp://x':",
            "  Duration: N/A, start: 1.440000, bitrate: N/A",
            "Output #0, nut, to 'pipe:3':",
            "  Stream #0:0: Video: mpeg2video (Main) (mpg2 / 0x3267706D), yuv420p(tv, unknown/bt709/unknown, bottom first), 720x576, 25 fps",
        ]);
        assert_eq!(description.duration, None);
        let picture = description.picture.unwrap();
        assert!(picture.is_interlaced);
        assert_eq!((picture.pixel_aspect, picture.rotation), (None, None));
        assert_eq!(picture.colours.primaries.as_deref(), Some("bt709"));
        assert_eq!(picture.colours.transfer, None);
        let sound = described(&["Output #0, nut, to 'pipe:3':", "  Stream #0:0: Audio: mp3"]);
        assert_eq!(sound.picture, None);
    }
}
