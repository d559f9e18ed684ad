//! What may be typed after `namecast experiment`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use namecast_command::{number, parse_duration};
use namecast_media::ingest::codec::VideoCodec;
use namecast_media::ingest::ladder::LadderWish;
use namecast_units::Duration;

use super::Scale;

/// `namecast experiment`.
#[derive(Debug, Args)]
pub struct ExperimentArguments {
    /// What to do.
    #[command(subcommand)]
    pub what: What,
}

/// What to do with experiments.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Show which experiments there are.
    List(ListArguments),
    /// Run experiments; what was finished before is not run again.
    Run(RunArguments),
    /// Join results into one page.
    Report(ReportArguments),
    /// Show what differs between two folders of results: of two programs, or of two forms of an experiment.
    Compare(CompareArguments),
    /// Measure how good the pictures of a ladder are, by real encodes, for the streams of experiments.
    Quality(QualityArguments),
    /// Write down one run event by event: CSV, Parquet and ndnSIM's tables.
    Trace(TraceArguments),
}

/// Which experiments are meant.
#[derive(Clone, Debug, Args)]
pub struct Choice {
    /// arc/figure05 is one, arc all of that folder, 'arc/figure0*' some; none means all.
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Only those of them whose ID is like this, too; may be repeated.
    #[arg(long, value_name = "ID")]
    pub filter: Vec<String>,
    /// Folder of experiment files, instead of those that are part of the program.
    #[arg(long, value_name = "DIRECTORY")]
    pub experiments: Option<PathBuf>,
}

/// `namecast experiment list`.
#[derive(Clone, Debug, Args)]
pub struct ListArguments {
    /// Which.
    #[command(flatten)]
    pub choice: Choice,
    /// Results from which the time that a run takes is told.
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    pub out: PathBuf,
    /// Print one JSON array.
    #[arg(long)]
    pub json: bool,
}

/// `namecast experiment run`.
#[derive(Clone, Debug, Args)]
pub struct RunArguments {
    /// Which.
    #[command(flatten)]
    pub choice: Choice,
    /// Where results go.
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    pub out: PathBuf,
    /// From which the seeds of all runs follow.
    #[arg(long, default_value_t = 1, value_parser = number::<u64>(0..=u64::MAX))]
    pub seed: u64,
    /// Runs of each point, instead of as many as the experiment states.
    #[arg(long, value_parser = number::<u32>(1..=10_000))]
    pub runs: Option<u32>,
    /// Two short runs of each point: shows that everything works, and claims nothing.
    #[arg(long)]
    pub quick: bool,
    /// Threads, instead of one for each processor. Results do not depend on it.
    #[arg(long, value_parser = number::<u16>(1..=1_024))]
    pub threads: Option<u16>,
    /// Multiply the quantities at a path, as in topology.bottleneck.rate=0.8, to see whether a result depends on them; may be
    /// repeated. Results go where --out says, beside none of others.
    #[arg(long, value_name = "PATH=FACTOR", requires = "out")]
    pub scale: Vec<Scale>,
    /// Run everything again, even what was finished before.
    #[arg(long)]
    pub fresh: bool,
    /// Print one JSON object for each experiment.
    #[arg(long)]
    pub json: bool,
    /// Print errors only.
    #[arg(short, long)]
    pub quiet: bool,
}

/// `namecast experiment report`.
#[derive(Clone, Debug, Args)]
pub struct ReportArguments {
    /// Where results are; index.html is written there.
    #[arg(value_name = "DIRECTORY", default_value = "results")]
    pub folder: PathBuf,
    /// Only experiments whose ID is like this; may be repeated.
    #[arg(long, value_name = "ID")]
    pub filter: Vec<String>,
    /// Write a Markdown table of the papers' claims, too, and whether each came out; beside it, in a folder of the same name, a
    /// small file for each experiment.
    #[arg(long, value_name = "FILE.md", value_parser = parse_markdown)]
    pub claims: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `namecast experiment compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Verdicts of claims and checks that changed come first, then values: mean and 95 % interval of each, their difference, and how likely
one so large is by chance. That is by a t-test of the runs: paired where both have the same seeds, else Welch's. A star is at those
that are significant with one in twenty of them by chance at most (Benjamini and Hochberg).

Examples:
  namecast experiment run arc --out before     then change the program, or the files
  namecast experiment run arc --out after
  namecast experiment compare before after
  namecast experiment compare before/arc/figure05 after/mine/figure05    one experiment with another")]
pub struct CompareArguments {
    /// Folder of results, or of one experiment's.
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The other one, which is judged better or worse than A.
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Only experiments whose ID is like this; may be repeated.
    #[arg(long, value_name = "ID")]
    pub filter: Vec<String>,
    /// Show values that do not differ, too.
    #[arg(long)]
    pub all: bool,
    /// End with 1 if a verdict of B is worse than that of A.
    #[arg(long)]
    pub fail: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `namecast experiment quality`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Each rung is encoded as it would be published, scaled back and compared with what went in by ffmpeg's filters: PSNR of luma in dB from
the mean squared error, SSIM of luma, and VMAF if ffmpeg was built with it. The last two lines printed belong into a stream of an
experiment file, whose results then have the metrics quality-psnr, quality-ssim and quality-vmaf.

Examples:
  namecast experiment quality                                    the test picture at 200k, 1M and 3M
  namecast experiment quality --input film.mp4 --ladder 300k,1200k,5M@1280x720 --duration 30s")]
pub struct QualityArguments {
    /// A file that ffmpeg reads, or 'test': the test picture.
    #[arg(long, value_name = "FILE", default_value = "test")]
    pub input: PathBuf,
    /// Rungs, each a bitrate, with '@640x360' behind it to choose the picture's size.
    #[arg(
        long,
        value_name = "RUNG,RUNG,…",
        value_delimiter = ',',
        default_value = "200k,1M,3M"
    )]
    pub ladder: Vec<LadderWish>,
    /// How much of the input is encoded.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub duration: Duration,
    /// h264, vp8, vp9 or av1.
    #[arg(long, default_value_t)]
    pub codec: VideoCodec,
    /// Frames a second.
    #[arg(long, default_value_t = 30, value_parser = number::<u32>(1..=240))]
    pub fps: u32,
    /// Frames from one key frame to the next.
    #[arg(long, default_value_t = 30, value_parser = number::<u32>(1..=10_000))]
    pub gop: u32,
    /// Print one JSON array.
    #[arg(long)]
    pub json: bool,
}

/// `namecast experiment trace`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  namecast experiment trace arc/figure04                      which points there are
  namecast experiment trace arc/figure04 --point ARC          one of them, into trace/
  namecast experiment trace arc/figure05 --point 'ARC/8 ms'   one label for each sweep")]
pub struct TraceArguments {
    /// The experiment, such as arc/figure04.
    #[arg(value_name = "ID")]
    pub id: String,
    /// Labels of the point, one for each sweep, with slashes between.
    #[arg(long, value_name = "LABELS")]
    pub point: Option<String>,
    /// Where the files go.
    #[arg(long, value_name = "DIRECTORY", default_value = "trace")]
    pub out: PathBuf,
    /// The run's own seed, as a results file has it.
    #[arg(long, default_value_t = 1, value_parser = number::<u64>(0..=u64::MAX))]
    pub seed: u64,
    /// The short form of the experiment.
    #[arg(long)]
    pub quick: bool,
    /// Folder of experiment files, instead of those that are part of the program.
    #[arg(long, value_name = "DIRECTORY")]
    pub experiments: Option<PathBuf>,
}

/// Reads the name of a Markdown file, beside which there is a folder of the same name without its ending.
fn parse_markdown(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().is_some_and(|ending| ending == "md") {
        true => Ok(path),
        false => Err(format!(
            "'{text}' is no Markdown file: write a name that ends with .md, such as claims.md"
        )),
    }
}
