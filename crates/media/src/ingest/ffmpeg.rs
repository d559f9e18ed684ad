//! The machine's ffmpeg as child processes: found, started, listened to, and never left behind.

#[cfg(any(windows, test))]
mod connections;
#[cfg(unix)]
mod pipes;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;

use super::IngestError;
use super::description::{Description, OUTPUT};

#[cfg(windows)]
pub(crate) use connections::OutputReader;
#[cfg(windows)]
use connections::give_outputs;
#[cfg(unix)]
pub(crate) use pipes::OutputReader;
#[cfg(unix)]
use pipes::give_outputs;

/// Environment variable that names another ffmpeg than the one on the path.
const PROGRAM_VARIABLE: &str = "NAMECAST_FFMPEG";
/// Lines of a process's complaints that are kept for the error message.
const KEPT_LINES: usize = 8;
/// Longest line that is kept, in octets.
const MAX_LINE: u64 = 1_024;
/// File descriptor of the first extra pipe in a child, after the standard three.
const FIRST_PIPE: i32 = 3;
/// What Windows calls a process that has interrupts of its own (`CREATE_NEW_PROCESS_GROUP`).
#[cfg(windows)]
const NEW_PROCESS_GROUP: u32 = 0x200;
/// Size that a pipe for raw video is set to, in octets: the most that Linux allows everyone.
#[cfg(target_os = "linux")]
const VIDEO_PIPE: usize = 1 << 20;

/// Files that an ffmpeg may open which reads what strangers send.
#[cfg(target_os = "linux")]
const MAX_FILES: u64 = 256;

/// A running ffmpeg. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    complaints: Arc<Mutex<Complaints>>,
    listener: Option<thread::JoinHandle<()>>,
}

/// What a process complained of.
#[derive(Debug, Default)]
struct Complaints {
    /// Lines so far.
    count: u64,
    /// The last ones.
    kept: VecDeque<String>,
    /// Their number when ffmpeg began its output.
    before_output: Option<u64>,
    /// Its description of the input.
    description: Description,
}

impl Process {
    /// Starts ffmpeg with `arguments`; [`pipe_url`] of 0, 1, … in them are the outputs whose other ends come back.
    ///
    /// # Errors
    /// If there is no ffmpeg, or the system refuses a process or a pipe.
    pub(crate) fn start(
        arguments: &[OsString],
        outputs: usize,
    ) -> Result<(Self, Vec<OutputReader>), IngestError> {
        Self::start_with(arguments, outputs, Stdio::piped())
    }

    /// Does the same with another standard input than a pipe.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(crate) fn start_with(
        arguments: &[OsString],
        outputs: usize,
        stdin: Stdio,
    ) -> Result<(Self, Vec<OutputReader>), IngestError> {
        let mut command = Command::new(program());
        command
            .args(["-hide_banner", "-nostats", "-loglevel", "level+info"])
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        ignore_interrupts(&mut command);
        let given = give_outputs(&mut command, arguments, outputs);
        let (readers, running) = given.map_err(IngestError::Pipe)?;
        let mut child = spawn(command).map_err(IngestError::NoFfmpeg)?;
        let complaints = Arc::<Mutex<Complaints>>::default();
        let stderr = child.stderr.take().expect("stderr is piped");
        let kept = Arc::clone(&complaints);
        let listener = thread::spawn(move || {
            let _until_it_ends = running;
            listen(BufReader::new(stderr), &kept);
        });
        let process = Self {
            child,
            complaints,
            listener: Some(listener),
        };
        Ok((process, readers))
    }

    /// Bounds what the process may take, where it reads what strangers send: `max_memory` octets of its own, few open files, and no file
    /// that it writes. To be called before it is sent anything. Its time is not bounded, as a stream may last for days, nor are its
    /// threads, which the system counts by user.
    ///
    /// Linux only; a system that refuses leaves the process as it is.
    #[cfg_attr(not(target_os = "linux"), expect(clippy::unused_self))]
    pub(crate) fn confine(&self, max_memory: u64) {
        #[cfg(target_os = "linux")]
        confine(&self.child, max_memory);
        #[cfg(not(target_os = "linux"))]
        let _ = max_memory;
    }

    /// The pipe to the process's standard input; once.
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        let stdin = self.child.stdin.take().expect("taken once");
        enlarge(&stdin);
        stdin
    }

    /// Ends the process and gives the last it said.
    pub(crate) fn end(&mut self) -> String {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        let complaints = self.complaints();
        let lines: Vec<_> = complaints.kept.iter().map(String::as_str).collect();
        lines.join("\n")
    }

    /// How many lines it has said so far.
    pub(crate) fn lines_said(&self) -> u64 {
        self.complaints().count
    }

    /// How many of them it said before it began to hand over its input; so far, if it has not.
    pub(crate) fn lines_before_output(&self) -> u64 {
        let complaints = self.complaints();
        complaints.before_output.unwrap_or(complaints.count)
    }

    /// The last line it said.
    pub(crate) fn last_said(&self) -> Option<String> {
        self.complaints().kept.back().cloned()
    }

    /// Returns what it has said of its input so far.
    pub(crate) fn description(&self) -> Description {
        self.complaints().description.clone()
    }

    fn complaints(&self) -> MutexGuard<'_, Complaints> {
        self.complaints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the process to end by itself; its success and the last it said.
    pub(crate) fn finish(&mut self) -> (bool, String) {
        drop(self.child.stdin.take());
        let success = self.child.wait().is_ok_and(|status| status.success());
        (success, self.end())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// How ffmpeg's arguments name the `index`-th output.
pub(crate) fn pipe_url(index: usize) -> OsString {
    format!("pipe:{}", index + FIRST_PIPE as usize).into()
}

/// Returns a path as ffmpeg takes it, whatever its name: for no option, address or device.
pub(crate) fn local(path: &Path) -> OsString {
    let mut name = OsString::from("file:");
    name.push(path);
    name
}

/// Turns words into arguments.
pub(crate) fn words(text: &str) -> impl Iterator<Item = OsString> + '_ {
    text.split_whitespace().map(OsString::from)
}

/// Checks that there is an ffmpeg and that it has the encoders that are needed.
///
/// # Errors
/// What is missing.
pub(crate) fn check(encoders: &[&str]) -> Result<(), IngestError> {
    let listing = listing()?;
    let known = |encoder: &str| {
        listing
            .lines()
            .any(|line| line.split_whitespace().nth(1) == Some(encoder))
    };
    match encoders.iter().find(|encoder| !known(encoder)) {
        Some(missing) => Err(IngestError::NoEncoder((*missing).to_owned())),
        None => Ok(()),
    }
}

/// What ffmpeg lists of its encoders. It is asked once: a stream that is pushed waits for the answer.
fn listing() -> Result<&'static str, IngestError> {
    static LISTING: OnceLock<String> = OnceLock::new();
    if let Some(listing) = LISTING.get() {
        return Ok(listing);
    }
    let mut command = Command::new(program());
    command.args(["-hide_banner", "-loglevel", "error", "-encoders"]);
    let listed = output(command).map_err(IngestError::NoFfmpeg)?;
    let listing = String::from_utf8_lossy(&listed.stdout).into_owned();
    Ok(LISTING.get_or_init(|| listing))
}

/// Runs a program without input to its end.
///
/// # Errors
/// If the system does not start it.
pub(crate) fn output(mut command: Command) -> io::Result<Output> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    spawn(command)?.wait_with_output()
}

/// A process to start, and where to send it.
type Start = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a process that the system kills when this one ends, however this one ends: each child is started here. The death
/// of a parent is, to Linux, that of the thread that started the child, so one thread that never ends starts them all.
fn spawn(command: Command) -> io::Result<Child> {
    static STARTER: LazyLock<Mutex<mpsc::Sender<Start>>> = LazyLock::new(|| {
        let (sender, starts) = mpsc::channel::<Start>();
        thread::spawn(move || {
            for (command, reply) in starts {
                let child = ur_taking_me_with_you::spawn_dying_with_parent(command);
                // Dropped by nobody: whoever asked waits.
                let _ = reply.send(child);
            }
        });
        Mutex::new(sender)
    });
    let (reply, started) = mpsc::channel();
    let starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
    starter
        .send((command, reply))
        .map_err(|_| io::ErrorKind::BrokenPipe)?;
    drop(starter);
    started.recv().map_err(|_| io::ErrorKind::BrokenPipe)?
}

/// Runs ffmpeg to its end.
///
/// # Errors
/// The first that it complained of, if it failed.
pub(crate) fn run(line: &str) -> Result<(), String> {
    let mut command = Command::new(program());
    command
        .args(["-hide_banner", "-loglevel", "error"])
        .args(words(line));
    let output = output(command).map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty());
    match output.status.success() {
        true => Ok(()),
        false => Err(first.unwrap_or("it failed").trim().to_owned()),
    }
}

/// The ffmpeg to run.
pub(crate) fn program() -> OsString {
    std::env::var_os(PROGRAM_VARIABLE).unwrap_or_else(|| "ffmpeg".into())
}

/// The ffprobe that came with the ffmpeg.
pub(crate) fn probe_program() -> OsString {
    match std::env::var_os(PROGRAM_VARIABLE) {
        Some(path) => Path::new(&path).with_file_name("ffprobe").into(),
        None => "ffprobe".into(),
    }
}

/// A frame of raw video passes in few turns if the pipe is large; a system that refuses is only slower.
#[cfg(target_os = "linux")]
fn enlarge(pipe: &impl std::os::fd::AsFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, VIDEO_PIPE);
}
#[cfg(not(target_os = "linux"))]
const fn enlarge<T>(_: &T) {}

#[cfg(target_os = "linux")]
fn confine(child: &Child, max_memory: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    for (resource, most) in [
        (Resource::Data, max_memory),
        (Resource::Nofile, MAX_FILES),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        let limit = Rlimit {
            current: Some(most),
            maximum: Some(most),
        };
        if let Err(error) = prlimit(Some(pid), resource, limit) {
            tracing::warn!("ffmpeg's {resource:?} is not limited: {error}");
        }
    }
}

/// An interrupt typed at the terminal is for us: we end our children when our own work is done.
fn ignore_interrupts(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(windows)]
    std::os::windows::process::CommandExt::creation_flags(command, NEW_PROCESS_GROUP);
}

fn listen(mut stderr: impl BufRead, complaints: &Mutex<Complaints>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stderr).take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        tracing::debug!(target: "ffmpeg", "{text}");
        let mut complaints = complaints.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, info)) = text.split_once("[info] ") {
            if info.starts_with(OUTPUT) {
                complaints.before_output = complaints.before_output.or(Some(complaints.count));
            }
            complaints.description.read(info);
            continue;
        }
        let Some(text) = complaint(text) else {
            continue;
        };
        complaints.count += 1;
        if complaints.kept.back() == Some(&text) {
            continue;
        }
        if complaints.kept.len() == KEPT_LINES {
            complaints.kept.pop_front();
        }
        complaints.kept.push_back(text);
    }
}

/// Returns what people should read of a line that states its level: errors, and of warnings those of damaged input. The names of
/// ffmpeg's parts, with their addresses in memory, are left out.
fn complaint(line: &str) -> Option<String> {
    if line.contains("[warning] ") && !line.contains("corrupt input packet") {
        return None;
    }
    let mut rest = line;
    while let Some((part, after)) = rest.strip_prefix('[').and_then(|it| it.split_once("] ")) {
        let is_level = matches!(part, "warning" | "error" | "fatal");
        if !is_level && !part.contains(" @ 0x") {
            break;
        }
        rest = after.trim_start();
    }
    Some(rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of 236 MB, for a process that may take 200.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_confined_process_gets_no_more_memory() {
        use std::io::Write as _;
        let line =
            "-f rawvideo -video_size 15360x15360 -pix_fmt gray -i pipe:0 -frames:v 1 -f null -";
        let arguments: Vec<_> = words(line).collect();
        let decode = |max_memory| {
            let (mut process, _) = Process::start(&arguments, 0).unwrap();
            process.confine(max_memory);
            let mut stdin = process.stdin();
            let row = vec![0; 15_360];
            // One that ended reads no more.
            let mut rows = (0..15_360).map_while(|_| stdin.write_all(&row).ok());
            rows.by_ref().for_each(drop);
            drop(stdin);
            process.finish()
        };
        // ffmpeg hands on the part that it had memory for.
        let (_, said) = decode(200_000_000);
        assert!(said.contains("< expected frame_size 235929600"), "{said}");
        assert_eq!(decode(2_000_000_000), (true, String::new()));
    }

    #[test]
    fn warnings_are_kept_only_of_damage() {
        for (line, kept) in [
            (
                "[flv @ 0x5] [error] Packet mismatch 6 8",
                Some("Packet mismatch 6 8"),
            ),
            (
                "[warning] pipe:0: corrupt input packet in stream 0",
                Some("pipe:0: corrupt input packet in stream 0"),
            ),
            ("[fatal] no", Some("no")),
            ("no level", Some("no level")),
            ("[nut @ 0x5] [warning] Timestamps are unset", None),
        ] {
            assert_eq!(complaint(line).as_deref(), kept, "{line}");
        }
    }
}
