use serde_json::json;

use super::super::tables;
use super::*;

fn lines(command: &'static Command, figures: Value) -> Vec<String> {
    let text = openmetrics(command, figures).unwrap();
    assert!(text.ends_with("# EOF\n"));
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn assert_has(lines: &[String], expected: &[&str]) {
    for line in expected {
        let is_there = lines.iter().any(|it| it == line);
        assert!(is_there, "{line} is not in\n{}", lines.join("\n"));
    }
}

#[test]
fn a_node_s_figures_have_labels_that_are_escaped_and_base_units() {
    let mut counts = vec![0; Histogram::BOUNDS.len() + 1];
    (counts[3], counts[5]) = (2, 1);
    let node = json!({
        "uptime_seconds": 1.5,
        "pending_interests": 6,
        "content_store_hits": 8,
        "retrieval": { "buckets": counts, "sum_ns": 6_500_000 },
        "incoming": { "interests": 4, "octets": 400 },
        "outgoing": { "octets": 100 },
        "drops": { "no_route": 14 },
        "listeners": [{ "uri": "udp4://0.0.0.0:6363", "accepted": 9, "open": 2, "drops": { "too_many_faces": 1 }, "kernel_drops": 3 }],
        "readvertising": null,
        "faces": [
            { "id": 257, "remote": "unix:///a\"b", "state": "up", "incoming": { "octets": 7 } },
            { "id": 258, "remote": "tcp4://192.0.2.1:6363", "state": { "down": "refused" } },
        ],
    });
    let lines = lines(
        &tables::FORWARDER,
        json!({ "health": { "ok": false }, "node": node }),
    );
    let version = env!("CARGO_PKG_VERSION");
    let info = format!("namecast_build_info{{version=\"{version}\",command=\"forwarder\"}} 1");
    assert_has(
        &lines,
        &[
            &info,
            "namecast_healthy 0.0",
            "# TYPE namecast_packets counter",
            "# UNIT namecast_traffic_bytes bytes",
            "namecast_uptime_seconds 1.5",
            "namecast_pit_interests 6.0",
            "namecast_cache_hits_total 8",
            "namecast_packets_total{direction=\"in\",kind=\"interest\"} 4",
            "namecast_traffic_bytes_total{direction=\"out\"} 100",
            "namecast_drops_total{reason=\"no_route\"} 14",
            "namecast_kernel_drops_total{listener=\"udp4://0.0.0.0:6363\"} 3",
            "namecast_listener_accepted_total{listener=\"udp4://0.0.0.0:6363\"} 9",
            "namecast_listener_open{listener=\"udp4://0.0.0.0:6363\"} 2.0",
            "namecast_listener_drops_total{listener=\"udp4://0.0.0.0:6363\",reason=\"too_many_faces\"} 1",
            "namecast_face_bytes_total{direction=\"in\",face=\"257\",remote=\"unix:///a\\\"b\"} 7",
            "namecast_face_up{face=\"257\",remote=\"unix:///a\\\"b\"} 1.0",
            "namecast_retrieval_seconds_bucket{le=\"0.0005\"} 0",
            "namecast_retrieval_seconds_bucket{le=\"0.001\"} 2",
            "namecast_retrieval_seconds_bucket{le=\"+Inf\"} 3",
            "namecast_retrieval_seconds_count 3",
            "namecast_retrieval_seconds_sum 0.0065",
        ],
    );
    assert!(!lines.iter().any(|it| it.contains("readvertise")));
}

#[test]
fn figures_of_streams_are_in_seconds_and_bytes_per_second() {
    let watched = json!({
        "state": "starved", "rtt_ms": 20.5, "goodput_bps": 8_000, "controller_rate_bps": null,
        "video": { "received": 5, "buffer_ms": 40.0 },
    });
    let watcher = lines(&tables::WATCH, json!({ "own": watched }));
    assert_has(
        &watcher,
        &[
            "namecast_watcher_playing 0.0",
            "namecast_watcher_rtt_seconds 0.0205",
            "namecast_watcher_goodput_bytes_per_second 1000.0",
            "namecast_watcher_samples_total{stream=\"video\",outcome=\"received\"} 5",
            "namecast_watcher_buffer_seconds{stream=\"video\"} 0.04",
        ],
    );
    let streams = json!({ "/cam": { "frames_published": 9 } });
    let served = lines(
        &tables::SERVE,
        json!({ "own": { "refused_key": 2, "streams": streams } }),
    );
    assert_has(
        &served,
        &[
            "namecast_publisher_frames_total{name=\"/cam\"} 9",
            "namecast_push_refused_total{reason=\"key\"} 2",
        ],
    );
}

/// Every path leads to a figure of what commands report when they have counted nothing.
#[test]
fn no_metric_is_of_a_figure_that_does_not_exist() {
    let own = |command: &'static Command| (command.name, command.tables);
    let watched = serde_json::to_value(namecast_apps::live::Stats {
        video: Some(Default::default()),
        audio: Some(Default::default()),
        join_ms: Some(0.0),
        rtt_ms: Some(0.0),
        rtt_min_ms: Some(0.0),
        controller_rate_bps: Some(0),
        ..Default::default()
    });
    let archived = crate::archiving::ArchiveFigures {
        since: Some(0.0),
        ..Default::default()
    };
    let archived = serde_json::to_value(archived).unwrap();
    for (command, figures) in [
        (&tables::WATCH, watched.unwrap()),
        (&tables::ARCHIVE, archived),
    ] {
        let figures = json!({ "own": figures });
        let (name, tables) = own(command);
        for metric in tables.iter().flat_map(|table| table.metrics) {
            let path = metric.2.split(' ').next().unwrap_or_default();
            let mut samples = Vec::new();
            find(
                &figures,
                &format!("own.{path}"),
                &Labels::new(),
                &mut samples,
            );
            assert!(!samples.is_empty(), "{name} has no {path}");
        }
    }
}

fn commands() -> Vec<&'static Command> {
    vec![
        &tables::FORWARDER,
        &tables::PUBLISH,
        &tables::DEMO,
        &tables::SERVE,
        &tables::WATCH,
        &tables::ARCHIVE,
        &tables::EXCHANGE,
        &tables::TALK,
        &tables::REMOTE,
        &tables::PUT,
        &tables::PING,
        #[cfg(feature = "lab")]
        &tables::IMPAIR,
    ]
}

/// What Prometheus calls the metrics of all commands.
fn series() -> Vec<String> {
    let own = commands().into_iter().flat_map(|command| command.tables);
    let named = COMMON.iter().chain(own).flat_map(|table| {
        let suffixed = |metric: &Metric| {
            let suffixes = match metric.0 {
                Kind::Counter => &["_total"][..],
                Kind::Gauge => &[""],
                Kind::Histogram => &["_bucket", "_sum", "_count"],
            };
            let name = format!("namecast_{}{}", table.prefix, metric.1);
            suffixes.iter().map(move |suffix| format!("{name}{suffix}"))
        };
        table.metrics.iter().flat_map(suffixed)
    });
    named.chain(["namecast_build_info".to_owned()]).collect()
}

#[test]
fn the_board_and_the_documentation_name_metrics_that_exist() {
    let series = series();
    let texts = [
        include_str!("../../../../packaging/grafana/namecast.json"),
        include_str!("../../../../docs/recipes/operate.md"),
        include_str!("../../../../docs/forwarder.md"),
    ];
    for text in texts {
        let mut found = 0;
        let word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        for name in text.split(|it| !word(it)) {
            // A module of logs, and files of packages.
            let is_other = name == "namecast_net" || name.contains(|it: char| it.is_ascii_digit());
            if name.starts_with("namecast_") && !is_other {
                found += 1;
                assert!(series.iter().any(|it| it == name), "there is no {name}");
            }
        }
        assert!(found > 0);
    }
}

/// Prometheus' conventions: base units, one kind and one help for a name, counters apart from other names.
#[test]
fn names_are_used_once_and_have_help() {
    let series = series();
    for name in &series {
        let words: Vec<_> = name.split('_').collect();
        for word in ["octets", "ms", "bps", "millis", "kilobytes"] {
            assert!(!words.contains(&word), "{name} is not in base units");
        }
    }
    let own = commands().into_iter().flat_map(|command| command.tables);
    for table in COMMON.iter().chain(own) {
        let mut seen = Vec::new();
        for family in table.metrics.chunk_by(|a, b| a.1 == b.1) {
            assert!(!seen.contains(&family[0].1), "{} comes twice", family[0].1);
            assert!(!family[0].3.is_empty(), "{} has no help", family[0].1);
            assert!(family.iter().all(|metric| metric.0 == family[0].0));
            seen.push(family[0].1);
        }
    }
}
