//! What is published as HLS, to a file: its segments one after another, each requested before it exists.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use bytes::Bytes;
use namecast::{Handle, drive};
use namecast_apps::live::watcher::{Pin, RungChoice, Trust};
use namecast_apps::object::{
    Downloaded, Downloader, DownloaderConfig, Event, Failure, FetcherConfig,
};
use namecast_command::Stop;
use namecast_command::report::ProgressLine;
use namecast_media::hls::{PLAYLIST, files, variants};
use namecast_media::package::HLS;
use namecast_net::Node;
use namecast_packet::Name;
use namecast_stream::path::Control;
use tokio::sync::mpsc;

/// Interests for one packet, a second apart: a segment that does not exist yet is waited for longer than any lasts.
const MAX_ATTEMPTS: u32 = 40;

/// `name` is published as segments.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name} is HLS: write it with --output film.mp4, or open the page of a node with ?name={name}"
)]
pub(super) struct IsPackage {
    pub(super) name: Name,
}

/// What is written where.
pub(super) struct Written<'a> {
    /// Name of the stream.
    pub(super) name: &'a Name,
    /// Digest of the key that signs it.
    pub(super) digest: [u8; 32],
    /// The file.
    pub(super) path: &'a Path,
    /// The quality that is wanted.
    pub(super) rung: &'a RungChoice,
    /// What bounds requests.
    pub(super) control: Control,
}

/// Writes segments from now on, until it is time to stop, or none comes any more.
pub(super) async fn record(
    node: &Node,
    written: Written<'_>,
    progress: &mut ProgressLine,
    stop: &mut Stop,
) -> anyhow::Result<()> {
    let Written {
        name,
        digest,
        path,
        rung,
        control,
    } = written;
    let cannot_write = || format!("cannot write to {}: name another file", path.display());
    let mut segments = Segments::start(node, name, digest, control).await?;
    let found = tokio::select! {
        found = segments.find(rung) => found?,
        () = stop.wait() => bail!("nothing of {name} came in this time: give it longer"),
    };
    let Found { rung, next, header } = found;
    let mut file = File::create(path).with_context(cannot_write)?;
    file.write_all(&header).with_context(cannot_write)?;
    progress.say(&format!(
        "Writing quality {rung} of {name} to {}",
        path.display()
    ));
    for number in next.. {
        let path_of_segment = format!("{rung}/seq={number}");
        let fetched = tokio::select! {
            fetched = segments.fetch(&path_of_segment) => fetched,
            () = stop.wait() => return Ok(()),
        };
        match fetched {
            Ok(content) => file.write_all(&content).with_context(cannot_write)?,
            Err(failure) if number > next => {
                progress.say(&format!("Segment {number} did not come: {failure}"));
                return Ok(());
            }
            Err(failure) => bail!("no segment of {name} came: {failure}"),
        }
        progress.show(&format!("{} segments", number - next + 1));
    }
    Ok(())
}

/// A quality.
struct Found {
    rung: String,
    /// Number of its newest segment.
    next: u64,
    /// What a decoder needs first.
    header: Bytes,
}

/// Fetches what is under `NAME/hls`.
struct Segments {
    prefix: Name,
    downloader: Handle<Downloader>,
    reports: mpsc::Receiver<Downloaded>,
    next: u64,
}

impl Segments {
    async fn start(
        node: &Node,
        name: &Name,
        digest: [u8; 32],
        control: Control,
    ) -> anyhow::Result<Self> {
        let fetcher = FetcherConfig {
            trust: Trust::Pinned(Pin::Digest(digest)),
            wall_at_zero: node.clock().wall_at_zero(),
            seed: u64::from_le_bytes(namecast_net::random()),
            max_attempts: MAX_ATTEMPTS,
            control,
            ..FetcherConfig::new(Name::root())
        };
        let config = DownloaderConfig {
            fetcher,
            max_objects: 1,
        };
        let face = node.application_face_with_local_fields().await?;
        let (downloader, reports) = drive(node.clock(), face, Downloader::new(config)).spawn(|| {});
        Ok(Self {
            prefix: name.builder().generic(HLS).finish(),
            downloader,
            reports,
            next: 0,
        })
    }

    /// Chooses a quality.
    async fn find(&mut self, rung: &RungChoice) -> anyhow::Result<Found> {
        let playlist = self.text(PLAYLIST).await?;
        let mut found: Vec<_> = variants(&playlist).collect();
        found.sort_unstable();
        let names: Vec<_> = found.iter().map(|(_, name)| *name).collect();
        let chosen = match rung {
            RungChoice::Lowest => names.first(),
            RungChoice::Highest | RungChoice::Auto => names.last(),
            RungChoice::Label(wanted) => names.iter().find(|name| **name == wanted.as_str()),
        };
        let chosen = chosen.with_context(|| {
            let there = names.join(", ");
            format!("there is no such quality: write --rung with {there}, highest or lowest")
        })?;
        let playlist = self.text(&format!("{chosen}/{PLAYLIST}")).await?;
        let listed: Vec<_> = files(&playlist).collect();
        let numbers = listed.iter().filter_map(|it| it.strip_prefix("seq="));
        let newest = numbers.filter_map(|number| number.parse().ok()).max();
        let header = listed.iter().find(|it| it.starts_with("init-"));
        let (Some(header), Some(next)) = (header, newest) else {
            bail!("{chosen}/{PLAYLIST} lists no segments as namecast publish makes them");
        };
        let header = self.fetch(&format!("{chosen}/{header}")).await?;
        Ok(Found {
            rung: (*chosen).to_owned(),
            next,
            header,
        })
    }

    async fn text(&mut self, path: &str) -> anyhow::Result<String> {
        let content = self.fetch(path).await.with_context(|| path.to_owned())?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    /// Fetches one object.
    async fn fetch(&mut self, path: &str) -> Result<Bytes, Failure> {
        let Ok(name) = format!("{}/{path}", self.prefix).parse::<Name>() else {
            return Err(Failure::Malformed);
        };
        self.next += 1;
        let number = self.next;
        let begun = self.downloader.call(move |downloader, now| {
            // There is room: what was fetched before is over.
            downloader.fetch(now.monotonic, number, name)
        });
        if !matches!(begun.await, Some(Ok(()))) {
            return Err(Failure::Unanswered);
        }
        while let Some(Downloaded(of, event)) = self.reports.recv().await {
            match event {
                Event::Fetched(fetched) if of == number => return Ok(fetched.content),
                Event::Failed(failure) if of == number => return Err(failure),
                _ => {}
            }
        }
        Err(Failure::Unanswered)
    }
}
