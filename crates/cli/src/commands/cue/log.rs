//! `namecast cue log`: what was pressed and done, by the packets that desks and devices signed.

use std::collections::VecDeque;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use namecast_apps::cues::{Action, Cue, Done, Log, LogError, LogLine, Message, Publisher};
use namecast_apps::live::watcher::Pin;
use namecast_archive::{Archive, Config, Location, Moment};
use namecast_command::report::{local, print_error, print_line, printable};
use namecast_net::Clock;
use namecast_packet::{KeyLocator, Name};
use namecast_stream::{Lead, SampleClass};
use namecast_units::{Duration, Timestamp};
use serde_json::json;

use crate::hexadecimal::hex;
use crate::key_check::parse_pin;

/// Octets of a log that are read.
const MAX_LOG: u64 = 256 << 20;
/// Streams of desks and devices.
const STREAMS: [&str; 3] = [
    namecast_apps::cues::CUES,
    namecast_apps::cues::REFUSED,
    namecast_apps::cues::ACKS,
];

/// `namecast cue log`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  namecast cue log main.log light-1.log                what was pressed and done, in the order of time
  namecast cue log main.log --verify --key show.cert   end with an error if a line is not as it was signed, or by a key that is not certified
  namecast cue log --store /srv/archive /show/cues/main/main /show/device/light-1 --verify    from archives of these names

Desks and devices write logs with --log FILE: the packets that they publish, with their signatures. namecast archive keeps the same packets.")]
pub struct LogCommand {
    /// Logs; with --store, names of a desk and of devices.
    #[arg(required = true, value_name = "FILE|NAME")]
    pub sources: Vec<String>,
    /// Read what namecast archive keeps in this directory or bucket.
    #[arg(long, value_name = "DIRECTORY|URL")]
    pub store: Option<String>,
    /// End with an error if a line is missing, changed, or not signed by a key that counts.
    #[arg(long)]
    pub verify: bool,
    /// Key that counts, or whose certificates count: a digest, or a certificate file. May be repeated; without it, keys are only printed.
    #[arg(long, value_name = "DIGEST|CERTIFICATE-FILE")]
    pub key: Vec<String>,
    /// Print JSON, one object a line.
    #[arg(long)]
    pub json: bool,
}

/// Prints logs.
pub(super) async fn run(arguments: LogCommand) -> anyhow::Result<()> {
    let pins: Vec<_> = arguments
        .key
        .iter()
        .map(|key| parse_pin(key))
        .collect::<Result<_, _>>()?;
    let (mut lines, mut wrong) = (Vec::new(), 0_u64);
    for source in &arguments.sources {
        let octets = match &arguments.store {
            Some(store) => archived(store, source).await?,
            None => read_file(Path::new(source))?,
        };
        for line in Log::new(octets) {
            match line.and_then(|line| check(line, &pins)) {
                Ok(line) => lines.push(line),
                Err(problem) => {
                    wrong += 1;
                    print_error(printable(&format!("{source}: {problem}")));
                }
            }
        }
    }
    lines.sort_by_key(|line| line.at);
    for line in &lines {
        match arguments.json {
            true => print_line(as_json(line))?,
            false => print_line(printable(&as_text(line)))?,
        }
    }
    let count = lines.len();
    if arguments.verify {
        ensure!(
            wrong == 0,
            "{wrong} problems: the log is not as it was signed"
        );
        ensure!(count > 0, "nothing is in the log");
        print_error(format_args!("{count} lines, all as they were signed"));
    }
    Ok(())
}

/// Whether the key of a line counts.
fn check(line: LogLine, pins: &[Pin]) -> Result<LogLine, LogError> {
    let signed = &line.signed;
    let counts = |pin: &Pin| match pin {
        Pin::Digest(digest) => *digest == signed.key_digest,
        Pin::Certificate(issuer) => {
            let key = issuer.public_key().ok();
            key.is_some_and(|key| {
                key.digest() == signed.key_digest || signed.certificate.data().verify(&key).is_ok()
            })
        }
    };
    if pins.is_empty() || pins.iter().any(counts) {
        return Ok(line);
    }
    let key = hex(&signed.key_digest);
    let problem = format!("signed by the key {key}, which --key does not name or certify");
    Err(LogError::Message(line.line, problem))
}

fn as_text(line: &LogLine) -> String {
    let (at, name) = (local(line.at), line.publisher.name());
    match &line.message {
        Message::Cue(cue) => {
            let (word, number, term) = (cue.action.word(), &cue.number, cue.term);
            let rehearsal = if cue.rehearsal { ", rehearsal" } else { "" };
            format!("{at}  desk {name}: {word} {number} (term {term}{rehearsal})")
        }
        Message::Done(done) => {
            let (word, number) = (done.outcome.word(), &done.number);
            let late = done.late_us as f64 / 1e3;
            let why = done
                .why
                .as_ref()
                .map_or_else(String::new, |why| format!(": {why}"));
            let leader = done.leader.as_ref().map_or_else(String::new, |leader| {
                format!(" (obeys desk {}, term {})", leader.desk, leader.term)
            });
            let kind = match line.publisher {
                Publisher::Desk { .. } => "desk",
                Publisher::Device { .. } => "device",
            };
            format!(
                "{at}  {kind} {name}: {number} {word}, {late:.1} ms after its time{why}{leader}"
            )
        }
    }
}

fn as_json(line: &LogLine) -> serde_json::Value {
    let (desk, device) = match &line.publisher {
        Publisher::Desk { name, .. } => (Some(name), None),
        Publisher::Device { id, .. } => (None, Some(id)),
    };
    let (cue, done): (Option<&Cue>, Option<&Done>) = match &line.message {
        Message::Cue(cue) => (Some(cue), None),
        Message::Done(done) => (None, Some(done)),
    };
    json!({
        "at": line.at.as_micros(), "desk": desk, "device": device, "cue": cue, "done": done,
        "key": hex(&line.signed.key_digest),
    })
}

fn read_file(path: &Path) -> anyhow::Result<Bytes> {
    let shown = path.display();
    let about = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    let length = about.len();
    ensure!(
        length <= MAX_LOG,
        "{shown}: {length} octets, expected at most {MAX_LOG}"
    );
    let octets = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    Ok(octets.into())
}

/// Returns what an archive keeps of a desk or device, as a log.
async fn archived(store: &str, root: &str) -> anyhow::Result<Bytes> {
    let name: Name = root.parse().ok().with_context(|| {
        format!("'{root}' is no name: write that of a desk, such as /show/cues/main/main, or of a device, such as /show/device/light-1")
    })?;
    let location = Location::parse(store, Path::new(store))?;
    let clock = Clock::new();
    let now = Moment {
        monotonic: clock.now(),
        wall: clock.wall(),
    };
    let writer = u32::from_le_bytes(namecast_net::random());
    let archive = Archive::open(Config::new(name.clone(), location, writer), now).await?;
    let mut log = ArchivedLog {
        archive,
        certificates: Vec::new(),
        octets: Vec::new(),
    };
    for stream in STREAMS {
        log.read(&name.builder().generic(stream).finish()).await?;
    }
    ensure!(!log.octets.is_empty(), "{store} keeps nothing of {root}");
    Ok(log.octets.into())
}

struct ArchivedLog {
    archive: Archive,
    certificates: Vec<Name>,
    octets: Vec<u8>,
}

impl ArchivedLog {
    /// Appends all samples of a stream.
    async fn read(&mut self, stream: &Name) -> anyhow::Result<()> {
        let mut next = self.archive.since(stream).await?;
        while let Some(time) = next {
            let found = self.archive.find(stream, time).await?;
            let Some(found) = found.into_iter().next() else {
                return Ok(());
            };
            // Numbers follow each other until the publisher starts again.
            let mut sequence = found.sample.sequence;
            let mut last = time;
            while let Some(at) = self.append(&found.rung, sequence).await? {
                last = at.max(last);
                sequence += 1;
            }
            let found = self.archive.find(stream, last).await?;
            let after = found.into_iter().next().and_then(|found| found.next_key);
            next = after.map(|after| after.entry.captured_at);
        }
        Ok(())
    }

    /// Appends a sample, and first the certificate that it needs. Returns when it was published.
    async fn append(&mut self, rung: &Name, sequence: u64) -> anyhow::Result<Option<Timestamp>> {
        let packets = self
            .archive
            .sample(rung, SampleClass::Key, sequence)
            .await?;
        let Some(packets) = packets else {
            return Ok(None);
        };
        let Some(lead) = packets.first() else {
            return Ok(None);
        };
        if let Some(KeyLocator::Name(name)) = lead.signature_info().key_locator
            && !self.certificates.contains(&name)
        {
            if let Some(certificate) = self.archive.object(&name).await? {
                self.octets.extend_from_slice(certificate.wire());
            }
            self.certificates.push(name);
        }
        let at = Lead::decode(lead).map(|lead| lead.header().captured_at);
        for packet in &packets {
            self.octets.extend_from_slice(packet.wire());
        }
        if self.octets.len() as u64 > MAX_LOG {
            bail!("the archive keeps more than {MAX_LOG} octets");
        }
        Ok(Some(at.unwrap_or_default()))
    }
}

/// Cues of a log that are sent again, in a rehearsal.
#[derive(Debug, Default)]
pub(super) struct Replay {
    cues: VecDeque<Cue>,
    /// Time of the first cue, by its log and by our clock.
    started: Option<(Timestamp, Timestamp)>,
}

impl Replay {
    /// Reads the cues of the log at `path`.
    ///
    /// # Errors
    /// If a line of it is not as it was signed, or it has no cue.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let mut cues = Vec::new();
        for line in Log::new(read_file(path)?) {
            let line = line.with_context(|| shown.to_string())?;
            if let Message::Cue(cue) = line.message
                && !matches!(cue.action, Action::Lead | Action::Check)
            {
                cues.push(cue);
            }
        }
        ensure!(
            !cues.is_empty(),
            "{shown}: no cue is in the log: take that of a desk"
        );
        cues.sort_by_key(|cue| cue.at);
        Ok(Self {
            cues: cues.into(),
            started: None,
        })
    }

    /// Returns whether all cues were sent.
    pub(super) fn is_empty(&self) -> bool {
        self.cues.is_empty()
    }

    /// Begins.
    pub(super) fn start(&mut self, now: Timestamp) {
        let first = self.cues.front();
        self.started = first.map(|first| (first.at, now));
    }

    fn next_at(&self) -> Option<Timestamp> {
        let (first, began) = self.started?;
        Some(began + self.cues.front()?.at.since(first))
    }

    /// Returns the time until the next cue.
    pub(super) fn next_in(&self, now: Timestamp) -> Option<Duration> {
        self.next_at().map(|at| at.since(now))
    }

    /// Returns the next cue that is due at `now`.
    pub(super) fn next_due(&mut self, now: Timestamp) -> Option<Cue> {
        self.next_at().filter(|at| *at <= now)?;
        self.cues.pop_front()
    }
}
