//! How good the pictures of each rung are: encoded as they would be published, and compared with what went in by ffmpeg's filters.
//!
//! ```text
//!  test picture or file ─┬─ scale ─ encoder ─▶ rung.nut ─ scale ─┐
//!                        └────────────────────────────────────────┴─ psnr, ssim, libvmaf ─▶ a figure a frame
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use namecast_units::{Bitrate, Duration, Timestamp};
use serde::Deserialize;

use super::IngestError;
use super::codec::VideoCodec;
use super::external::Turn;
use super::ffmpeg::{self, Process, words};
use super::ladder::{PictureSize, Rung, RungWish};
use super::picture::TestPicture;
use super::source::{display_matrix, probe};

const MICROS: u64 = 1_000_000;
/// The PSNR of pictures without any difference, in dB, for which there is no number.
const MAX_PSNR: f64 = 100.0;
/// Largest square of a difference between two samples of eight bits.
const MAX_SQUARE: f64 = 255.0 * 255.0;

/// What to encode, and how.
#[derive(Clone, Debug)]
pub struct QualityConfig {
    /// The file; none: the test picture.
    pub input: Option<PathBuf>,
    /// Rungs to encode.
    pub rungs: Vec<RungWish>,
    /// Codec of all of them.
    pub codec: VideoCodec,
    /// Frames a second.
    pub rate: u32,
    /// Frames from one key frame to the next.
    pub key_interval: u32,
    /// How much of the input is encoded.
    pub length: Duration,
}

/// How good one rung is.
#[derive(Clone, Debug)]
pub struct RungQuality {
    /// The rung.
    pub rung: Rung,
    /// Rate that the encoder used.
    pub encoded: Bitrate,
    /// By measure, over all frames: `psnr` in dB, from the mean squared error of luma; `ssim` of luma; `vmaf`, if ffmpeg has it.
    pub measures: BTreeMap<&'static str, f64>,
}

/// A filter of ffmpeg that compares pictures.
struct Filter {
    measure: &'static str,
    name: &'static str,
    /// Its option that names a file for the figures of each frame.
    file: &'static str,
    /// Reads that file.
    read: fn(&str) -> Option<f64>,
}

const FILTERS: [Filter; 3] = [
    Filter {
        measure: "psnr",
        name: "psnr",
        file: "stats_file",
        read: |text| {
            let error = mean(text.lines().map(|line| field(line, "mse_y:")))?;
            Some((10.0 * (MAX_SQUARE / error).log10()).min(MAX_PSNR))
        },
    },
    Filter {
        measure: "ssim",
        name: "ssim",
        file: "stats_file",
        read: |text| mean(text.lines().map(|line| field(line, "Y:"))),
    },
    Filter {
        measure: "vmaf",
        name: "libvmaf",
        file: "log_fmt=csv:log_path",
        read: |text| {
            let (head, rows) = text.split_once('\n')?;
            let place = head.split(',').position(|column| column == "vmaf")?;
            mean(
                rows.lines()
                    .map(|row| row.split(',').nth(place)?.parse().ok()),
            )
        },
    },
];

/// Encodes each rung and compares it with what went in, both in the size of that. Files go into `scratch`, which is to be thrown away.
/// Blocks.
///
/// # Errors
/// If the input cannot be read, or ffmpeg is not there, lacks the encoder, or fails.
pub fn measure(config: &QualityConfig, scratch: &Path) -> Result<Vec<RungQuality>, IngestError> {
    ffmpeg::check(&[config.codec.encoder()])?;
    let (size, rungs) = match &config.input {
        Some(file) => {
            let size = size_of(file)?;
            (
                size,
                config.rungs.iter().map(|rung| rung.fit(size)).collect(),
            )
        }
        None => {
            let rungs: Vec<Rung> = config.rungs.iter().map(RungWish::standing_alone).collect();
            let sizes = rungs.iter().map(|rung| rung.size);
            let largest = sizes.max_by_key(|size| size.i420_len());
            (
                largest.unwrap_or(PictureSize::for_bitrate(Bitrate::ZERO)),
                rungs,
            )
        }
    };
    let filters = available()?;
    let job = Job {
        config,
        size,
        scratch,
        filters: &filters,
    };
    rungs.into_iter().map(|rung| job.measure(rung)).collect()
}

/// The filters that this ffmpeg has.
fn available() -> Result<Vec<&'static Filter>, IngestError> {
    let mut command = Command::new(ffmpeg::program());
    command.args(["-hide_banner", "-loglevel", "error", "-filters"]);
    let listed = ffmpeg::output(command).map_err(IngestError::NoFfmpeg)?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    let known = |filter: &&Filter| {
        let mut lines = listed.lines();
        lines.any(|line| line.split_whitespace().nth(1) == Some(filter.name))
    };
    Ok(FILTERS.iter().filter(known).collect())
}

struct Job<'a> {
    config: &'a QualityConfig,
    /// Of the pictures that go in, and in which they are compared.
    size: PictureSize,
    scratch: &'a Path,
    filters: &'a [&'static Filter],
}

impl Job<'_> {
    fn measure(&self, rung: Rung) -> Result<RungQuality, IngestError> {
        let encoded = self.scratch.join("rung.nut");
        self.encode(&rung, &encoded)?;
        let (frames, measures) = self.compare(&encoded)?;
        let octets = fs::metadata(&encoded).map_or(0, |file| file.len());
        let rate = octets * 8 * u64::from(self.config.rate) / frames.max(1);
        Ok(RungQuality {
            rung,
            encoded: Bitrate::bps(rate),
            measures,
        })
    }

    fn encode(&self, rung: &Rung, to: &Path) -> Result<(), IngestError> {
        let QualityConfig {
            codec,
            rate,
            key_interval,
            ..
        } = self.config;
        let PictureSize { width, height } = rung.size;
        let options = codec.options(rung, *rate, *key_interval);
        let mut arguments = self.input();
        let filter = format!("{},scale={width}:{height}:flags=bilinear", self.in_order());
        arguments.extend(words(&format!(
            "-an -vf {filter} {options} -fps_mode passthrough -f nut -y"
        )));
        arguments.push(to.into());
        self.run(&arguments)
    }

    /// Compares what was encoded with what went in: how many frames, and how good they are by each measure.
    fn compare(&self, encoded: &Path) -> Result<(u64, BTreeMap<&'static str, f64>), IngestError> {
        let count = self.filters.len();
        let ends = |letter: char| -> String {
            (0..count)
                .map(|place| format!("[{letter}{place}]"))
                .collect()
        };
        let mut graph = format!(
            "[0:v]{order},{size},split={count}{encoded};[1:v]{order},{size},split={count}{original}",
            order = self.in_order(),
            size = self.in_size(),
            encoded = ends('e'),
            original = ends('o'),
        );
        let mut outputs = Vec::new();
        for (place, filter) in self.filters.iter().enumerate() {
            let Filter { name, file, .. } = filter;
            let path = escaped(&self.log(filter));
            graph.push_str(&format!(
                ";[e{place}][o{place}]{name}={file}={path}[c{place}]"
            ));
            outputs.extend(words(&format!("-map [c{place}] -f null -")));
        }
        let mut arguments = vec!["-i".into(), encoded.into()];
        arguments.extend(self.input());
        arguments.extend(["-an".into(), "-filter_complex".into(), graph.into()]);
        arguments.extend(outputs);
        self.run(&arguments)?;
        let (mut frames, mut measures) = (u64::MAX, BTreeMap::new());
        for filter in self.filters {
            let log = fs::read_to_string(self.log(filter)).unwrap_or_default();
            // One has a line that heads the columns.
            frames = frames.min(log.lines().count() as u64);
            let figure = (filter.read)(&log).filter(|figure| figure.is_finite());
            let missing =
                || IngestError::Encoder(format!("it compared no frames by {}", filter.name));
            measures.insert(filter.measure, figure.ok_or_else(missing)?);
        }
        Ok((frames, measures))
    }

    fn log(&self, filter: &Filter) -> PathBuf {
        self.scratch.join(filter.name)
    }

    /// Frame n is at n over the rate, so that frames that belong together are compared, whatever times containers keep.
    fn in_order(&self) -> String {
        let rate = self.config.rate;
        format!("fps={rate},settb=1/{rate},setpts=N")
    }

    fn in_size(&self) -> String {
        let PictureSize { width, height } = self.size;
        format!("scale={width}:{height}:flags=bicubic,format=yuv420p")
    }

    /// ffmpeg's arguments for what goes in.
    fn input(&self) -> Vec<OsString> {
        match &self.config.input {
            Some(file) => {
                let length = format!("-t {} -i", self.config.length.as_secs_f64());
                words(&length).chain([file.into()]).collect()
            }
            None => {
                let (size, rate) = (self.size, self.config.rate);
                let line = format!(
                    "-f rawvideo -pix_fmt yuv420p -video_size {size} -framerate {rate} -i pipe:0"
                );
                words(&line).collect()
            }
        }
    }

    /// Runs ffmpeg to its end, and draws the pictures for it if they come from no file.
    fn run(&self, arguments: &[OsString]) -> Result<(), IngestError> {
        let draws = self.config.input.is_none();
        let stdin = if draws { Stdio::piped() } else { Stdio::null() };
        let (mut process, _) = Process::start_with(arguments, 0, stdin)?;
        if draws {
            let mut stdin = process.stdin();
            let picture = TestPicture::new(self.size);
            let rate = u64::from(self.config.rate);
            let frames = self.config.length.as_secs_f64() * rate as f64;
            let mut raw = Vec::new();
            for number in 0..frames as u64 {
                let at = Timestamp::from_micros(number * MICROS / rate);
                picture.draw(&mut raw, at, number);
                // Where it has ended, it says why.
                if stdin.write_all(&raw).is_err() {
                    break;
                }
            }
        }
        match process.finish() {
            (true, _) => Ok(()),
            (false, said) => Err(IngestError::Encoder(said)),
        }
    }
}

/// The size of a file's pictures as they are shown, in even numbers.
fn size_of(file: &Path) -> Result<PictureSize, IngestError> {
    #[derive(Deserialize)]
    struct Probed {
        streams: Vec<PictureSizeProbed>,
    }
    #[derive(Deserialize)]
    struct PictureSizeProbed {
        width: u32,
        height: u32,
    }
    if !file.exists() {
        return Err(IngestError::NoFile(file.to_owned()));
    }
    let entries = "-select_streams v:0 -show_entries stream=width,height";
    let probed: Probed = probe(file, entries)?;
    let first = probed.streams.first();
    let size = first.ok_or_else(|| IngestError::NoPictures(file.display().to_string()))?;
    let turn = display_matrix(file)
        .map(Turn::of_matrix)
        .unwrap_or_default();
    let (width, height) = match turn.swaps_sides() {
        true => (size.height, size.width),
        false => (size.width, size.height),
    };
    let even = |length: u32| (length / 2).max(1) * 2;
    Ok(PictureSize {
        width: even(width),
        height: even(height),
    })
}

/// A path within a filter graph, where colons end an option.
fn escaped(path: &Path) -> String {
    let path = path.display().to_string();
    format!("'{}'", path.replace('\\', "\\\\").replace(':', "\\:"))
}

/// The number behind `name` in a line of words.
fn field(line: &str, name: &str) -> Option<f64> {
    let mut words = line.split_whitespace();
    words.find_map(|word| word.strip_prefix(name))?.parse().ok()
}

/// The mean of those that are numbers; `None` if none is.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values.flatten() {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, log: &str) -> Option<f64> {
        let filter = FILTERS.iter().find(|filter| filter.name == name);
        (filter.expect("it is one of ours").read)(log)
    }

    /// Errors of 50 and 80 are 65 in the mean: 10 · log₁₀(65025 / 65) = 30.00 dB. The mean of both frames' figures would be 30.12.
    #[test]
    fn psnr_is_that_of_the_mean_error() {
        let log = "n:1 mse_avg:10.00 mse_y:50.00 mse_u:1.00 psnr_y:31.14 \n\
                   n:2 mse_avg:10.00 mse_y:80.00 mse_u:1.00 psnr_y:29.10 \n";
        let found = read("psnr", log).unwrap();
        assert!((found - 30.0).abs() < 0.01, "{found}");
        assert_eq!(read("psnr", "n:1 mse_y:0.00 psnr_y:inf \n"), Some(100.0));
        assert_eq!(read("psnr", ""), None);
    }

    #[test]
    fn ssim_and_vmaf_are_means_over_frames() {
        let log =
            "n:1 Y:0.90 U:0.99 V:0.99 All:0.93 (11.5)\nn:2 Y:0.96 U:0.99 V:0.99 All:0.97 (15.2)\n";
        let found = read("ssim", log).unwrap();
        assert!((found - 0.93).abs() < 1e-12, "{found}");
        let log = "Frame,integer_motion,vmaf,\n0,0.0,80.5,\n1,3.1,90.5,\n";
        assert_eq!(read("libvmaf", log), Some(85.5));
    }
}
