//! `namecast list`: the live streams that a forwarder knows the way to.
//!
//! There is no directory to be kept: whatever has a route is asked for a stream's metadata, and what answers with a catalogue is
//! a stream. So it works with NFD and ndnd as well, and tells nothing that is not there.

use std::collections::BTreeSet;

use namecast_command::report::{self, print, print_error};
use namecast_net::management::FibEntry;
use namecast_packet::{Component, Data, Name};
use namecast_stream::catalogue::Catalogue;
use namecast_stream::metadata::Metadata;
use namecast_stream::names::METADATA;
use namecast_units::{Duration, Timestamp};
use serde::Serialize;
use tokio::task::JoinSet;

use super::arguments::List;
use super::connection::Forwarder;
use super::print_json;
use crate::asking::{Answer, Asker, Question, Verified};
use crate::hexadecimal::hex;

/// Prefixes that are asked, and how many at a time.
const MAX_PREFIXES: usize = 1_024;
const AT_A_TIME: usize = 32;
/// How long an answer is waited for: there may be many prefixes that are no streams.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Digits of a key that are shown.
const SHOWN_DIGITS: usize = 12;

/// A publisher.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Found {
    name: String,
    /// When it started, in microseconds since 1970.
    since: u64,
    streams: Vec<FoundStream>,
    /// Digest of the key that signed this, if that was verified.
    key: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct FoundStream {
    name: String,
    codec: String,
    rungs: Vec<String>,
}

/// Does what is asked for.
pub(super) async fn run(forwarder: &mut Forwarder, arguments: &List) -> anyhow::Result<()> {
    let entries: Vec<FibEntry> = forwarder.list("fib/list").await?;
    let roots = roots(&entries);
    if roots.len() == MAX_PREFIXES {
        print_error(format_args!(
            "namecast: of the routes of this forwarder only {MAX_PREFIXES} were asked"
        ));
    }
    let mut asking = JoinSet::new();
    let mut found = Vec::new();
    for root in roots {
        if asking.len() == AT_A_TIME
            && let Some(asked) = asking.join_next().await
        {
            found.extend(asked??);
        }
        asking.spawn(ask(forwarder.asker().await?, root));
    }
    while let Some(asked) = asking.join_next().await {
        found.extend(asked??);
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    match arguments.target.json {
        true => print_json(&found)?,
        false if found.is_empty() => {
            print_error(format_args!(
                "namecast: no live streams at {}",
                forwarder.uri()
            ));
        }
        false => print(table(&found))?,
    }
    Ok(())
}

/// The prefixes that may be a stream's root: the longest parts of routes that are no stream's inside, and not this machine's own.
fn roots(entries: &[FibEntry]) -> Vec<Name> {
    let is_inner = |name: &Name| {
        let first = name.get(0);
        first.is_none_or(|first| {
            ["localhost", "localhop"]
                .map(Component::generic)
                .contains(&first)
        }) || name.components().any(|it| it.kind != Component::GENERIC)
    };
    let names = entries.iter().map(|entry| entry.prefix.clone());
    let roots: BTreeSet<Name> = names.filter(|name| !is_inner(name)).collect();
    roots.into_iter().take(MAX_PREFIXES).collect()
}

/// Requests the catalogue of `root`.
async fn ask(mut asker: Asker, root: Name) -> anyhow::Result<Option<Found>> {
    let name = root.builder().keyword(METADATA).finish();
    let Answer::Data(data) = asker.ask(&Question::newest(name, TIMEOUT)).await? else {
        return Ok(None);
    };
    let Some(catalogue) = catalogue(&mut asker, &root, &data).await? else {
        return Ok(None);
    };
    let key = match asker.verify(&data).await? {
        Verified::By(_, key) => Some(hex(&key.digest())),
        Verified::Not(_) => None,
        Verified::Forged(_) => return Ok(None),
    };
    let streams = catalogue.streams.into_iter().map(|stream| FoundStream {
        name: stream.name,
        codec: stream.codec,
        rungs: stream.rungs.into_iter().map(|rung| rung.name).collect(),
    });
    Ok(Some(Found {
        name: root.to_string(),
        since: catalogue.version,
        streams: streams.collect(),
        key,
    }))
}

/// The catalogue, which most metadata hold.
async fn catalogue(
    asker: &mut Asker,
    root: &Name,
    data: &Data,
) -> anyhow::Result<Option<Catalogue>> {
    let metadata = data.content().and_then(|it| Metadata::decode(&it).ok());
    let Some(metadata) = metadata.filter(|it| root.is_prefix_of(&it.catalogue_name)) else {
        return Ok(None);
    };
    let json = match metadata.catalogue {
        Some(json) => json,
        None => {
            let name = metadata.catalogue_name.builder().segment(0).finish();
            let Answer::Data(data) = asker.ask(&Question::exact(name, TIMEOUT)).await? else {
                return Ok(None);
            };
            data.content().unwrap_or_default()
        }
    };
    Ok(Catalogue::decode(&json).ok())
}

/// A line for each stream.
fn table(found: &[Found]) -> String {
    let head = ["NAME", "STREAM", "CODEC", "RUNGS", "SINCE", "KEY"];
    let rows = found.iter().flat_map(|publisher| {
        publisher.streams.iter().map(|stream| {
            let since = report::local(Timestamp::from_micros(publisher.since));
            let key = publisher.key.as_ref();
            [
                publisher.name.clone(),
                stream.name.clone(),
                stream.codec.clone(),
                stream.rungs.join(" "),
                since,
                key.map_or_else(
                    || "not verified".to_owned(),
                    |key| format!("{}…", &key[..SHOWN_DIGITS]),
                ),
            ]
        })
    });
    report::table(head, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_be_a_stream_is_asked() {
        let entry = |prefix: &str| FibEntry {
            prefix: prefix.parse().unwrap(),
            next_hops: Vec::new(),
        };
        let entries = [
            "/",
            "/localhost/nfd",
            "/localhop/nfd",
            "/cam",
            "/cam/32=metadata",
            "/edu/cam",
            "/cam",
        ];
        let found = roots(&entries.map(entry));
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["/cam", "/edu/cam"]);
    }

    #[test]
    fn streams_are_shown_with_their_rungs() {
        let found = [Found {
            name: "/cam".to_owned(),
            since: 1_780_000_000_000_000,
            streams: vec![FoundStream {
                name: "video".to_owned(),
                codec: "h264".to_owned(),
                rungs: vec!["200k".to_owned(), "1M".to_owned()],
            }],
            key: Some("5d41402abc4b2a76b9719d911017c592".to_owned()),
        }];
        let since = report::local(Timestamp::from_micros(found[0].since));
        let head = format!("NAME  STREAM  CODEC  RUNGS    {:26}  KEY\n", "SINCE");
        let row = format!("/cam  video   h264   200k 1M  {since}  5d41402abc4b…\n");
        let expected = head + &row;
        assert_eq!(table(&found), expected);
    }
}
