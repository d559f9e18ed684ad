use namecast_sim::scenario::Scenario;

use super::*;

/// A scenario file's `[scenario]`, changed.
fn scenario(from: &str, to: &str) -> NetworkScenario {
    const FILE: &str = r#"
        kind = "network"
        medium = "sockets"
        duration = "2 s"
        measure = { from = "1 s" }
        bottleneck = "R1>R2"
        [topology]
        kind = "dumbbell"
        [[flows]]
        controller = "rate:2M"
    "#;
    assert!(FILE.contains(from), "{from}");
    let file = FILE.replacen(from, to, 1);
    match toml::from_str(&file) {
        Ok(Scenario::Network(network)) => *network,
        other => panic!("{other:?}"),
    }
}

/// Link delays of 1 + 8 + 1 ms each way; an Interest of 40 octets takes 0.32 µs on each access link and 32 µs on the
/// bottleneck, Data of 1074 octets 8.592 µs and 859.2 µs.
#[test]
fn the_emulated_link_has_the_delays_of_the_whole_path() {
    let scenario = scenario("rate:2M", "rate:2M");
    let stage = Stage::new(&scenario).unwrap();
    let [hop] = stage.layout.hops.as_slice() else {
        panic!("{stage:?}");
    };
    assert_eq!(hop.interests.delay, Duration::from_nanos(10_000_640));
    assert_eq!(hop.data.delay, Duration::from_nanos(10_017_184));
    let base = 10_000_640 + 32_000 + 10_017_184 + 859_200;
    assert_eq!(stage.base_rtt, Duration::from_nanos(base));
    for link in [&hop.interests, &hop.data] {
        assert_eq!(
            link.rate
                .as_ref()
                .and_then(namecast_netem::Rate::constant)
                .map(namecast_units::Bitrate::as_bps),
            Some(10_000_000)
        );
        assert_eq!(link.queue, namecast_netem::Queue::DropTail { packets: 50 });
    }
}

#[test]
fn what_sockets_cannot_do_is_refused_with_its_field() {
    let dumbbell = "kind = \"dumbbell\"";
    let cases = [
        (dumbbell, "kind = \"line\"\nnodes = 2", "topology.kind"),
        (dumbbell, "kind = \"dumbbell\"\nflows = 2", "topology.flows"),
        ("R1>R2", "R2>R1", "bottleneck"),
        ("rate:2M\"", "rate:2M\"\ncount = 2", "flows.0.count"),
        ("rate:2M\"", "rate:2M\"\n[[flows]]", "flows"),
        (
            "rate:2M\"",
            "rate:2M\"\nconsumer = \"R2\"",
            "flows.0.consumer",
        ),
        ("duration", "series = true\nduration", "series"),
        ("duration", "probes = { a = \"1 s\" }\nduration", "probes"),
        (
            "duration",
            "changes = [{ at = \"1 s\", link = \"R1-R2\", rate = \"5 Mbit/s\" }]\nduration",
            "changes",
        ),
        (
            "duration",
            "evictions = [{ at = \"1 s\", node = \"R1\" }]\nduration",
            "evictions",
        ),
        (
            "duration",
            "packet = { payload = 9000, wire = 9100 }\nduration",
            "packet.wire",
        ),
        (
            dumbbell,
            "kind = \"dumbbell\"\nconsumer-access = { rate = \"20 Mbit/s\" }",
            "topology.consumer-access",
        ),
        (
            dumbbell,
            "kind = \"dumbbell\"\nproducer-access = { jitter = { spread = \"1 ms\" } }",
            "topology.producer-access",
        ),
        (
            dumbbell,
            "kind = \"dumbbell\"\nbottleneck = { rate = \"1M\", schedule = [{ at = \"1 s\", rate = \"2M\" }] }",
            "topology.bottleneck.schedule",
        ),
        (
            dumbbell,
            "kind = \"dumbbell\"\nbottleneck = {}",
            "topology.bottleneck.rate",
        ),
    ];
    for (from, to, field) in cases {
        let refusal = validate(&scenario(from, to)).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some(field), "{refusal}");
        assert!(refusal.message.starts_with("over sockets, expected"));
    }
    assert_eq!(validate(&scenario("rate:2M", "arc")), Ok(()));
}

#[test]
fn the_agenda_is_in_order_of_time() {
    let seconds = Duration::from_secs;
    let agenda = agenda(seconds(2), Some(seconds(3)), &[seconds(1), seconds(4)]);
    use Item::{Read, Start, Stop};
    let expected = [(1, Read), (2, Start), (3, Stop), (4, Read)];
    assert!(
        agenda
            .into_iter()
            .eq(expected.map(|(at, item)| (seconds(at), item)))
    );
}
