//! `namecast tracks watch` and `list`.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use namecast::{Frame, Node, Watch, Watched};
use namecast_apps::live::watcher::Event;
use namecast_apps::tracks::{
    HINT, HINTS_PER_SECOND, Hint, Person, Sample, TRACKS, Ticks, csv_header,
};
use namecast_command::Stop;
use namecast_command::report::{print, print_error, print_line};
use namecast_packet::Name;
use namecast_units::Timestamp;
use tokio::sync::mpsc;

use super::{Format, ListTracks, Problems, WatchTracks, connect};
use crate::key_check::KeyCheck;

/// People that are watched one by one; of more, everybody is received.
const MAX_SINGLE: usize = 8;
/// Ticks and news that wait to be printed; beyond, the node keeps some thousand of each publisher.
const MAX_WAITING: usize = 256;

pub(super) async fn watch(arguments: WatchTracks) -> anyhow::Result<()> {
    let mut stop = Stop::new(arguments.options.duration)?;
    let node = connect(&arguments.options).await?;
    let (to, mut arrived) = mpsc::channel(MAX_WAITING);
    let mut readers = Vec::new();
    for (at, name) in arguments.names.iter().enumerate() {
        let reader = Reader::new(&arguments, name)?;
        let watch = arguments.watch(&node, name)?.trust(reader.keys.trust());
        let (to, mut watching) = (to.clone(), watch.start().await?);
        tokio::spawn(async move {
            while let Some(watched) = watching.next().await {
                if to.send((at, watched)).await.is_err() {
                    break;
                }
            }
        });
        readers.push(reader);
    }
    drop(to);
    if matches!(arguments.format, Format::Csv) {
        print_line(csv_header())?;
    }
    loop {
        let (at, watched) = tokio::select! {
            arrived = arrived.recv() => arrived.context("the node has stopped")?,
            () = stop.wait() => break,
        };
        if let Some((tick, people)) = readers[at].handle(node.wall(), watched)? {
            print(arguments.lines(tick, &people))?;
        }
    }
    node.shutdown().await;
    Ok(())
}

/// One publisher that is watched.
struct Reader {
    keys: KeyCheck,
    max_people: usize,
    /// People to print; empty: everybody.
    ids: Vec<String>,
    /// Name of the publisher, if there are several.
    prefix: Option<String>,
    /// Of each stream.
    ticks: BTreeMap<Arc<str>, Ticks>,
    problems: Problems,
}

impl Reader {
    fn new(arguments: &WatchTracks, name: &Name) -> anyhow::Result<Self> {
        Ok(Self {
            keys: KeyCheck::new(name.clone(), &arguments.trusted)?,
            max_people: arguments.max_people,
            ids: arguments.id.clone(),
            prefix: (arguments.names.len() > 1).then(|| name.to_string()),
            ticks: BTreeMap::new(),
            problems: Problems::default(),
        })
    }

    /// Takes what arrived. Returns a tick and its people, if it is one.
    fn handle(
        &mut self,
        now: Timestamp,
        watched: Watched,
    ) -> anyhow::Result<Option<(u64, Vec<Person>)>> {
        match watched {
            Watched::Signer(signer) => print_error(self.keys.on_signer(&signer)),
            Watched::Discontinuity { .. } => self.ticks.clear(),
            Watched::Frame(frame) => return self.on_frame(now, frame),
            Watched::Event(Event::NothingKept { .. }) => {
                let publisher = self.publisher();
                print_error(format_args!(
                    "{publisher}nothing is kept of that time: what is live follows"
                ));
            }
            Watched::Event(_) | Watched::Catalogue(_) => {}
        }
        Ok(None)
    }

    fn on_frame(
        &mut self,
        now: Timestamp,
        frame: Frame,
    ) -> anyhow::Result<Option<(u64, Vec<Person>)>> {
        if let Some(text) = self.keys.on_verified()? {
            print_error(text);
        }
        let sample = Sample::decode(&frame.payload, self.max_people);
        let ticks = self.ticks.entry(frame.name).or_default();
        let sample = sample.and_then(|it| ticks.handle_tick(it.tick).map(|()| it));
        match sample {
            Ok(sample) => {
                let people = sample.people.into_iter();
                let is_wanted =
                    |person: &Person| self.ids.is_empty() || self.ids.contains(&person.id);
                let people = people
                    .filter(is_wanted)
                    .map(|person| self.prefixed(person))
                    .collect();
                Ok(Some((sample.tick, people)))
            }
            Err(error) => {
                let problem = format!("{}{error}", self.publisher());
                self.problems.print(now, &problem);
                Ok(None)
            }
        }
    }

    /// Returns which publisher a message is of, if there are several.
    fn publisher(&self) -> String {
        let name = self.prefix.as_deref().map(|name| format!("{name}: "));
        name.unwrap_or_default()
    }

    /// Names the publisher in the id, and as the clock unless there is another one.
    fn prefixed(&self, person: Person) -> Person {
        let Some(prefix) = &self.prefix else {
            return person;
        };
        Person {
            id: format!("{prefix}/{}", person.id),
            clock: person.clock.or_else(|| Some(prefix.clone())),
            ..person
        }
    }
}

impl WatchTracks {
    /// Returns what to watch of a publisher.
    fn watch(&self, node: &Node, name: &Name) -> anyhow::Result<Watch> {
        let watch = node.watch(&name.to_string())?.data();
        let watch = match self.id.len() {
            // An archive keeps everybody together.
            1..=MAX_SINGLE if self.from.is_none() => {
                self.id.iter().fold(watch, |it, id| it.member(TRACKS, id))
            }
            _ => watch.stream(TRACKS),
        };
        let watch = match self.rate {
            Some(most) => watch.at_most(most),
            None => watch,
        };
        Ok(match self.from {
            Some(from) => {
                let watch = watch.from(from.resolve(node.wall()));
                watch.speed(self.speed.unwrap_or_default())
            }
            None => watch,
        })
    }

    fn lines(&self, tick: u64, people: &[Person]) -> String {
        let lines = people.iter();
        let lines = lines.map(|person| match self.format {
            Format::Json => person.to_json(tick) + "\n",
            Format::Csv => person.to_csv(tick) + "\n",
        });
        lines.collect()
    }
}

pub(super) async fn list(arguments: ListTracks) -> anyhow::Result<()> {
    let mut stop = Stop::new(arguments.options.duration)?;
    let mut keys = KeyCheck::new(arguments.name.clone(), &arguments.trusted)?;
    let node = connect(&arguments.options).await?;
    let watch = node.watch(&arguments.name.to_string())?.data();
    let watch = watch.stream(HINT).at_most(HINTS_PER_SECOND);
    let mut watching = watch.trust(keys.trust()).start().await?;
    let frame = loop {
        let watched = tokio::select! {
            watched = watching.next() => watched.context("the node has stopped")?,
            () = stop.wait() => anyhow::bail!("no answer for {}: is it published?", arguments.name),
        };
        match watched {
            Watched::Signer(signer) => print_error(keys.on_signer(&signer)),
            Watched::Frame(frame) => break frame,
            _ => {}
        }
    };
    if let Some(text) = keys.on_verified()? {
        print_error(text);
    }
    let hint = Hint::decode(&frame.payload, arguments.max_people)?;
    let lines = hint.people.iter().map(|(id, since)| {
        let line = serde_json::json!({ "id": id, "since": since.as_micros() });
        format!("{line}\n")
    });
    print(lines.collect::<String>())?;
    node.shutdown().await;
    Ok(())
}
