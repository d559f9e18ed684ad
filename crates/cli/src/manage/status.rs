//! `namecast status`: all that a forwarder tells of itself.

use namecast_command::report::{columns, local, print, printable};
use namecast_net::management::{
    ChannelStatus, CsInfo, FaceStatus, FibEntry, GeneralStatus, RibEntry, StrategyChoice,
};
use namecast_units::{Duration, Timestamp};
use serde::Serialize;

use super::arguments::Target;
use super::connection::Forwarder;
use super::{cs, face, print_json, route, strategy};

const CHANNELS_TIMEOUT: Duration = Duration::from_secs(1);

/// Everything together.
#[derive(Debug, Default, Serialize)]
struct Status {
    general: GeneralStatus,
    /// ndnd does not tell them.
    channels: Option<Vec<ChannelStatus>>,
    faces: Vec<FaceStatus>,
    fib: Vec<FibEntry>,
    rib: Vec<RibEntry>,
    strategies: Vec<StrategyChoice>,
    cs: Option<CsInfo>,
}

/// Prints it once.
pub(super) async fn run(forwarder: &mut Forwarder, target: &Target) -> anyhow::Result<()> {
    let general = forwarder.client().status().await;
    let general = general.map_err(|error| forwarder.explain("status/general", error))?;
    let cs: Vec<CsInfo> = forwarder.list("cs/info").await?;
    let status = Status {
        faces: forwarder.list("faces/list").await?,
        fib: forwarder.list("fib/list").await?,
        rib: forwarder.list("rib/list").await?,
        strategies: forwarder.list("strategy-choice/list").await?,
        cs: cs.into_iter().next(),
        channels: channels(forwarder).await,
        general,
    };
    match target.json {
        true => print_json(&status)?,
        false => print(describe(&status))?,
    }
    Ok(())
}

/// ndnd does not answer, and should not be waited for as others are.
async fn channels(forwarder: &mut Forwarder) -> Option<Vec<ChannelStatus>> {
    let asking = forwarder.client().list("faces/channels");
    tokio::time::timeout(CHANNELS_TIMEOUT, asking)
        .await
        .ok()?
        .ok()
}

fn describe(status: &Status) -> String {
    let general = &status.general;
    let uptime = general.current_millis.saturating_sub(general.start_millis);
    let uptime = Duration::from_secs(uptime / 1_000);
    let mut text = format!(
        "{}, up {uptime:?}, since {}\n\
         in   {} Interests, {} Data, {} Nacks\n\
         out  {} Interests, {} Data, {} Nacks\n\
         {} Interests pending, {} satisfied, {} not\n\
         {} prefixes with next hops, {} measured\n",
        printable(&general.version),
        local(Timestamp::from_micros(
            general.start_millis.saturating_mul(1_000)
        )),
        general.in_interests,
        general.in_data,
        general.in_nacks,
        general.out_interests,
        general.out_data,
        general.out_nacks,
        general.pit_entries,
        general.satisfied_interests,
        general.unsatisfied_interests,
        general.fib_entries,
        general.measurements_entries,
    );
    if let Some(told) = &general.readvertising {
        text.push_str(&format!(
            "routing daemon {}: told {} of {} prefixes; {} commands failed\n",
            if told.daemons == 0 {
                "not there"
            } else {
                "there"
            },
            told.told,
            told.prefixes,
            told.failed,
        ));
    }
    let mut section = |title: &str, body: &str| {
        text.push_str(&format!("\n{title}\n{body}"));
    };
    let channels = status.channels.iter().flatten();
    let channels: String = channels
        .map(|channel| format!("{}\n", printable(&channel.local_uri)))
        .collect();
    if !channels.is_empty() {
        section("Listening on", &channels);
    }
    section(
        "Faces (packets: Interests / Data / Nacks)",
        &face::table(&status.faces),
    );
    section("Routes", &route::table(&status.rib, &status.faces));
    section("Next hops", &next_hops(&status.fib));
    section("Strategies", &strategy::table(&status.strategies));
    if let Some(cs) = &status.cs {
        section("Content store", &cs::describe(cs));
    }
    text
}

fn next_hops(fib: &[FibEntry]) -> String {
    let line = |entry: &FibEntry| {
        let hops = entry.next_hops.iter();
        let hops: Vec<_> = hops
            .map(|hop| format!("face {} (cost {})", hop.face, hop.cost))
            .collect();
        [entry.prefix.to_string(), hops.join(", ")]
    };
    let rows: Vec<_> = fib.iter().map(line).collect();
    columns(&rows)
}

#[cfg(test)]
mod tests {
    use namecast_net::management::ReadvertisingStatus;

    use super::*;

    #[test]
    fn a_status_has_all_its_parts() {
        let status = Status {
            general: GeneralStatus {
                version: "namecast-0".to_owned(),
                start_millis: 1_000,
                current_millis: 63_500,
                in_interests: 5,
                readvertising: Some(ReadvertisingStatus {
                    daemons: 1,
                    prefixes: 3,
                    told: 2,
                    failed: 7,
                    ..ReadvertisingStatus::default()
                }),
                ..GeneralStatus::default()
            },
            channels: Some(vec![ChannelStatus {
                local_uri: "tcp4://127.0.0.1:6363".to_owned(),
            }]),
            cs: Some(CsInfo::default()),
            ..Status::default()
        };
        let text = describe(&status);
        assert!(text.starts_with("namecast-0, up 62s, since 19"), "{text}");
        let daemon = "routing daemon there: told 2 of 3 prefixes; 7 commands failed\n";
        assert!(text.contains(daemon), "{text}");
        for title in [
            "Listening on\ntcp4://",
            "\nFaces",
            "\nRoutes",
            "\nNext hops",
            "\nStrategies",
            "\nContent store",
        ] {
            assert!(text.contains(title), "{text}");
        }
    }
}
