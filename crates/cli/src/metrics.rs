//! A node's counters for Prometheus.

use core::fmt;

use namecast_net::management::StrategyCounts;
use namecast_net::{FaceStatus, NodeStatus, TrafficStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// What Prometheus is told that it reads.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All figures of `status` in OpenMetrics' text format.
///
/// # Errors
/// If memory ends.
pub(crate) fn openmetrics(status: NodeStatus) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("namecast");
    registry.register_collector(Box::new(Snapshot(status)));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

type Labels = Vec<(&'static str, String)>;

/// The figures of one moment.
#[derive(Debug)]
struct Snapshot(NodeStatus);

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_tables(&mut encoder)?;
        self.encode_counters(&mut encoder)?;
        self.encode_feedback(&mut encoder)?;
        self.encode_readvertising(&mut encoder)?;
        self.encode_traffic(&mut encoder)?;
        self.encode_strategies(&mut encoder)?;
        self.encode_faces(&mut encoder)
    }
}

impl Snapshot {
    fn encode_tables(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let node = &self.0;
        let figures = [
            (
                "uptime_seconds",
                "Time since the node started",
                node.uptime_seconds,
            ),
            ("faces", "Faces", node.faces.len() as f64),
            (
                "fib_prefixes",
                "Prefixes that have a next hop",
                node.routed_prefixes as f64,
            ),
            (
                "pit_interests",
                "Interests that wait for Data",
                node.pending_interests as f64,
            ),
            (
                "cached_packets",
                "Data packets in the content store",
                node.cached_packets as f64,
            ),
        ];
        gauges(encoder, figures)
    }

    fn encode_counters(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let node = &self.0;
        let figures = [
            (
                "cache_hits",
                "Interests that the content store answered",
                node.content_store_hits,
            ),
            (
                "cache_misses",
                "Interests that it could not answer",
                node.content_store_misses,
            ),
            (
                "aggregated_interests",
                "Interests that waited for an equal one's Data",
                node.aggregated,
            ),
            (
                "satisfied_interests",
                "Interests that Data satisfied",
                node.satisfied,
            ),
            (
                "unsatisfied_interests",
                "Interests that expired or were refused",
                node.unsatisfied,
            ),
            (
                "unsolicited_cached",
                "Data cached that nobody had asked for",
                node.unsolicited_cached,
            ),
            (
                "routes_learned",
                "Routes made from prefix announcements",
                node.routes_learned,
            ),
            (
                "announcements_refused",
                "Prefix announcements that nothing was made of",
                node.announcements_refused,
            ),
            (
                "announcements_out_of_period",
                "Of these, those outside of their period of validity",
                node.announcements_out_of_period,
            ),
        ];
        counters(encoder, &figures)
    }

    fn encode_feedback(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let feedback = &self.0.feedback;
        let figures = [
            (
                "rate_tags_set",
                "Data from the content store sent with the rate behind it",
                feedback.rate_tags_set,
            ),
            (
                "feedback_refused",
                "Rates, hop counts and sources of neighbours that make no sense",
                feedback.refused,
            ),
            (
                "feedback_flows_refused",
                "Data not measured since their neighbour has too many flows",
                feedback.flows_refused,
            ),
            (
                "path_labels_followed",
                "Interests sent where their path label says",
                feedback.labels_followed,
            ),
            (
                "path_labels_refused",
                "Path labels that lead nowhere",
                feedback.labels_refused,
            ),
            (
                "path_labels_aggregated",
                "Interests with path labels that waited for an equal one's Data",
                feedback.labels_aggregated,
            ),
            (
                "path_discoveries",
                "Interests sent to discover a path",
                feedback.discoveries,
            ),
            (
                "path_discoveries_refused",
                "Such Interests answered from the content store, as too many came",
                feedback.discoveries_refused,
            ),
        ];
        counters(encoder, &figures)
    }

    /// Nothing if a routing daemon is told nothing.
    fn encode_readvertising(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(status) = self.0.readvertising else {
            return Ok(());
        };
        let figures = [
            (
                "readvertise_daemons",
                "Whether a routing daemon is there",
                status.daemons,
            ),
            (
                "readvertise_prefixes",
                "Prefixes that a routing daemon is to spread",
                status.prefixes,
            ),
            (
                "readvertise_told",
                "Of these, those that it has agreed to",
                status.told,
            ),
        ];
        gauges(encoder, figures)?;
        let commands = [
            ("registered", status.registered),
            ("unregistered", status.unregistered),
            ("failed", status.failed),
        ];
        let samples =
            commands.map(|(outcome, count)| (vec![("outcome", outcome.to_owned())], count));
        let help = "Commands to the routing daemon";
        counter(encoder, "readvertise_commands", help, samples)
    }

    fn encode_traffic(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let node = &self.0;
        let none = Labels::new();
        let ways = [("in", &node.incoming), ("out", &node.outgoing)];
        counter(encoder, "packets", "Network packets", packets(&none, ways))?;
        counter(
            encoder,
            "frames",
            "Link packets",
            each(&none, ways, |way| way.frames),
        )?;
        counter(
            encoder,
            "octets",
            "Octets of link packets",
            each(&none, ways, |way| way.octets),
        )?;
        let bundles = by("what", &none, &node.bundles);
        counter(encoder, "bundles", "What became of bundles", bundles)?;
        let drops = by_reason(&none, &node.drops);
        counter(encoder, "drops", "What the forwarder dropped", drops)?;
        let drops = by_reason(&none, &node.link_drops);
        counter(
            encoder,
            "link_drops",
            "What links and listeners lost",
            drops,
        )?;
        let kernel = node.listeners.iter().filter_map(|listener| {
            let labels = vec![("listener", listener.uri.clone())];
            Some((labels, listener.kernel_drops?))
        });
        let help = "Datagrams that the kernel dropped, as a socket's buffer was full";
        counter(encoder, "kernel_drops", help, kernel)
    }

    /// A counter for each figure, labelled with the prefix that the strategy was chosen for.
    fn encode_strategies(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        type Figure = fn(&StrategyCounts) -> u64;
        let figures: [(&str, &str, Figure); 7] = [
            ("interests", "Interests that a strategy decided on", |of| {
                of.interests
            }),
            (
                "retransmissions",
                "Of these, sent again while pending",
                |of| of.retransmissions,
            ),
            (
                "suppressed",
                "Of these, held back as an equal one was on its way",
                |of| of.suppressed,
            ),
            (
                "rejected",
                "Of these, refused as there was no next hop",
                |of| of.rejected,
            ),
            ("satisfied", "Pending Interests that Data satisfied", |of| {
                of.satisfied
            }),
            ("timeouts", "Pending Interests whose time ran out", |of| {
                of.timeouts
            }),
            ("nacks", "Nacks from next hops", |of| of.nacks),
        ];
        for (name, help, figure) in figures {
            let samples = self.0.strategies.iter().map(|choice| {
                let labels = vec![
                    ("prefix", choice.prefix.to_string()),
                    ("strategy", choice.strategy.to_string()),
                ];
                (labels, figure(&choice.counts.unwrap_or_default()))
            });
            counter(encoder, &format!("strategy_{name}"), help, samples)?;
        }
        Ok(())
    }

    fn encode_faces(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let faces: Vec<_> = self
            .0
            .faces
            .iter()
            .map(|face| (labels(face), face))
            .collect();
        let all = |figures: fn(&Labels, &FaceStatus) -> Vec<(Labels, u64)>| {
            faces
                .iter()
                .flat_map(move |(labels, face)| figures(labels, face))
        };
        let named = all(|labels, face| packets(labels, ways(face)));
        counter(encoder, "face_packets", "Network packets of a face", named)?;
        let named = all(|labels, face| each(labels, ways(face), |way| way.octets));
        counter(
            encoder,
            "face_octets",
            "Octets of a face's link packets",
            named,
        )?;
        let named = all(|labels, face| by("what", labels, &face.bundles));
        counter(
            encoder,
            "face_bundles",
            "What became of a face's bundles",
            named,
        )?;
        let named = all(|labels, face| by_reason(labels, &face.drops));
        counter(
            encoder,
            "face_drops",
            "What the forwarder dropped of a face",
            named,
        )?;
        let named = all(|labels, face| by_reason(labels, &face.link_drops));
        counter(encoder, "face_link_drops", "What a face's link lost", named)
    }
}

fn labels(face: &FaceStatus) -> Labels {
    vec![
        ("face", face.id.to_string()),
        ("remote", face.remote.clone()),
    ]
}

const fn ways(face: &FaceStatus) -> [(&'static str, &TrafficStatus); 2] {
    [("in", &face.incoming), ("out", &face.outgoing)]
}

fn with(labels: &Labels, more: impl IntoIterator<Item = (&'static str, &'static str)>) -> Labels {
    let more = more.into_iter().map(|(key, value)| (key, value.to_owned()));
    labels.iter().cloned().chain(more).collect()
}

fn packets(labels: &Labels, ways: [(&'static str, &TrafficStatus); 2]) -> Vec<(Labels, u64)> {
    let kinds = |(way, traffic): (&'static str, &TrafficStatus)| {
        let kinds = [
            ("interest", traffic.interests),
            ("data", traffic.data),
            ("nack", traffic.nacks),
        ];
        kinds.map(|(kind, count)| (with(labels, [("direction", way), ("kind", kind)]), count))
    };
    ways.into_iter().flat_map(kinds).collect()
}

fn each(
    labels: &Labels,
    ways: [(&'static str, &TrafficStatus); 2],
    figure: fn(&TrafficStatus) -> u64,
) -> Vec<(Labels, u64)> {
    let labelled = ways.map(|(way, traffic)| (with(labels, [("direction", way)]), figure(traffic)));
    labelled.into()
}

fn by_reason(
    labels: &Labels,
    drops: &std::collections::BTreeMap<&'static str, u64>,
) -> Vec<(Labels, u64)> {
    by("reason", labels, drops)
}

/// Counts by a label of this name.
fn by(
    label: &'static str,
    labels: &Labels,
    counts: &std::collections::BTreeMap<&'static str, u64>,
) -> Vec<(Labels, u64)> {
    let labelled = |(&of, &count): (&&'static str, &u64)| (with(labels, [(label, of)]), count);
    counts.iter().map(labelled).collect()
}

fn gauges<N: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    figures: impl IntoIterator<Item = (&'static str, &'static str, N)>,
) -> fmt::Result {
    for (name, help, value) in figures {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)?;
    }
    Ok(())
}

fn counters(
    encoder: &mut DescriptorEncoder<'_>,
    figures: &[(&'static str, &'static str, u64)],
) -> fmt::Result {
    for &(name, help, value) in figures {
        let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)?;
    }
    Ok(())
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (Labels, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in samples {
        ConstCounter::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use namecast_net::management::{ReadvertisingStatus, StrategyChoice};
    use namecast_net::{FeedbackStatus, LinkState, Persistency};

    use super::*;

    fn traffic(interests: u64) -> TrafficStatus {
        TrafficStatus {
            interests,
            octets: 100 * interests,
            ..TrafficStatus::default()
        }
    }

    fn strategy() -> StrategyChoice {
        StrategyChoice {
            prefix: "/a".parse().unwrap(),
            strategy: "/s/v=1".parse().unwrap(),
            counts: Some(StrategyCounts {
                interests: 21,
                retransmissions: 22,
                suppressed: 23,
                rejected: 24,
                satisfied: 25,
                timeouts: 26,
                nacks: 27,
            }),
        }
    }

    fn status(face: FaceStatus) -> NodeStatus {
        NodeStatus {
            uptime_seconds: 1.5,
            faces: vec![face],
            listeners: Vec::new(),
            routes: Vec::new(),
            strategies: vec![strategy()],
            incoming: traffic(4),
            outgoing: traffic(1),
            routed_prefixes: 5,
            measured_prefixes: 16,
            pending_interests: 6,
            cached_packets: 7,
            content_store_hits: 8,
            content_store_misses: 9,
            unsolicited_cached: 10,
            aggregated: 11,
            satisfied: 12,
            unsatisfied: 13,
            routes_learned: 17,
            announcements_refused: 18,
            announcements_out_of_period: 16,
            feedback: FeedbackStatus {
                rate_tags_set: 41,
                labels_refused: 42,
                ..FeedbackStatus::default()
            },
            bundles: BTreeMap::from([("sent", 43)]),
            readvertising: Some(ReadvertisingStatus {
                daemons: 1,
                prefixes: 32,
                told: 31,
                registered: 33,
                unregistered: 34,
                failed: 35,
            }),
            drops: BTreeMap::from([("no_route", 14)]),
            link_drops: BTreeMap::from([("queue_full", 15)]),
        }
    }

    #[test]
    fn figures_are_in_the_text_format_with_escaped_labels() {
        let face = FaceStatus {
            id: 257,
            remote: "unix:///a\"b".to_owned(),
            local: None,
            speaks_extensions: None,
            is_local: true,
            persistency: Persistency::OnDemand,
            state: LinkState::Up,
            incoming: traffic(3),
            outgoing: traffic(0),
            bundles: BTreeMap::from([("joined", 44)]),
            drops: BTreeMap::from([("loop", 2)]),
            link_drops: BTreeMap::new(),
        };
        let text = openmetrics(status(face)).unwrap();
        for line in [
            "# TYPE namecast_packets counter",
            "namecast_uptime_seconds 1.5",
            "namecast_pit_interests 6.0",
            "namecast_cache_hits_total 8",
            "namecast_packets_total{direction=\"in\",kind=\"interest\"} 4",
            "namecast_octets_total{direction=\"out\"} 100",
            "namecast_routes_learned_total 17",
            "namecast_announcements_refused_total 18",
            "namecast_announcements_out_of_period_total 16",
            "namecast_rate_tags_set_total 41",
            "namecast_path_labels_refused_total 42",
            "namecast_bundles_total{what=\"sent\"} 43",
            "namecast_face_bundles_total{face=\"257\",remote=\"unix:///a\\\"b\",what=\"joined\"} 44",
            "namecast_readvertise_daemons 1",
            "namecast_readvertise_prefixes 32",
            "namecast_readvertise_told 31",
            "namecast_readvertise_commands_total{outcome=\"registered\"} 33",
            "namecast_readvertise_commands_total{outcome=\"unregistered\"} 34",
            "namecast_readvertise_commands_total{outcome=\"failed\"} 35",
            "namecast_strategy_interests_total{prefix=\"/a\",strategy=\"/s/v=1\"} 21",
            "namecast_strategy_retransmissions_total{prefix=\"/a\",strategy=\"/s/v=1\"} 22",
            "namecast_strategy_suppressed_total{prefix=\"/a\",strategy=\"/s/v=1\"} 23",
            "namecast_strategy_rejected_total{prefix=\"/a\",strategy=\"/s/v=1\"} 24",
            "namecast_strategy_satisfied_total{prefix=\"/a\",strategy=\"/s/v=1\"} 25",
            "namecast_strategy_timeouts_total{prefix=\"/a\",strategy=\"/s/v=1\"} 26",
            "namecast_strategy_nacks_total{prefix=\"/a\",strategy=\"/s/v=1\"} 27",
            "namecast_drops_total{reason=\"no_route\"} 14",
            "namecast_link_drops_total{reason=\"queue_full\"} 15",
            "namecast_face_drops_total{face=\"257\",remote=\"unix:///a\\\"b\",reason=\"loop\"} 2",
        ] {
            assert!(
                text.lines().any(|it| it == line),
                "{line} is not in\n{text}"
            );
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
