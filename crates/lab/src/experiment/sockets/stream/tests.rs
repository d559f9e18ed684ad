use namecast_sim::scenario::Scenario;

use super::stage::Viewer;
use super::*;

/// P – A – C, and P – B – C. The watcher's node asks both routers.
const FILE: &str = r#"
    kind = "stream"
    medium = "sockets"
    duration = "10 s"
    routes = "all"
    links = ["C>A", "P>B"]
    publishers = [{ streams = [{ kind = "video" }, { kind = "audio" }] }]
    watchers = [{ start = "1 s" }]
    [topology]
    kind = "explicit"
    node = [{ name = "P" }, { name = "A" }, { name = "B" }, { name = "C" }]
    link = [
      { ends = ["P", "A"], config = { delay = "1 ms" } },
      { ends = ["B", "P"], config = { delay = "2 ms" }, back = { delay = "20 ms", rate = "8 Mbit/s" } },
      { ends = ["A", "C"], config = { delay = "3 ms" } },
      { ends = ["C", "B"], config = { delay = "4 ms" }, back = { delay = "40 ms" } },
    ]
"#;

/// The file's scenario, changed.
fn scenario(from: &str, to: &str) -> StreamScenario {
    assert!(FILE.contains(from), "{from}");
    let file = FILE.replacen(from, to, 1);
    match toml::from_str(&file) {
        Ok(Scenario::Stream(stream)) => *stream,
        other => panic!("{other:?}"),
    }
}

/// Nodes 0 to 3 are P, A, B, C. Interests go the way that the lists spell against or along; Data comes back.
#[test]
fn links_become_hops_that_lead_to_the_publisher() {
    let scenario = scenario("1 s", "1 s");
    let stage = Stage::new(&scenario, Path::new(".")).unwrap();
    let millis = |link: &namecast_netem::Config| link.delay.as_millis();
    let hops = stage.layout.hops.iter();
    let hops: Vec<_> = hops
        .map(|hop| (hop.from, hop.to, millis(&hop.interests), millis(&hop.data)))
        .collect();
    assert_eq!(
        hops,
        [(1, 0, 1, 1), (2, 0, 2, 20), (3, 1, 3, 3), (3, 2, 4, 40)]
    );
    let told: Vec<_> = stage
        .told
        .iter()
        .map(|it| (it.hop, it.is_data, it.rate))
        .collect();
    assert_eq!(told, [(2, false, f64::INFINITY), (1, true, 8e6)]);
}

#[test]
fn shortest_routes_leave_links_out() {
    let scenario = scenario("routes = \"all\"", "routes = \"shortest\"");
    let stage = Stage::new(&scenario, Path::new("."));
    // Nothing takes the link from C to B, but nobody asks about it.
    assert_eq!(stage.unwrap().layout.hops.len(), 3);
}

/// The catalogue is the simulator's but for the codec.
#[test]
fn the_catalogue_has_the_names_and_sizes_of_the_scenario() {
    let to = "kind = \"video\", rungs = [\"200k\", \"1500k\"], segment-size = 900, parity = 40";
    let scenario = scenario("kind = \"video\"", to);
    let stage = Stage::new(&scenario, Path::new(".")).unwrap();
    for (spec, info) in scenario.publishers[0].streams.iter().zip(&stage.streams) {
        let simulated = spec.media(0).info();
        let rungs = |info: &namecast_stream::StreamInfo| {
            let rungs = info.rungs.iter();
            let rungs = rungs.map(|it| (it.name.clone(), it.bitrate, it.rate, it.key_interval));
            rungs.collect::<Vec<_>>()
        };
        assert_eq!(rungs(info), rungs(&simulated));
        assert_eq!(info.segment_size, simulated.segment_size);
        assert_eq!(info.parity_percent, simulated.parity_percent);
        assert_eq!((info.kind, &info.name), (simulated.kind, &simulated.name));
    }
}

/// Each file has a part of [`FILE`] put another way, which the simulator runs; `field` is at fault over sockets, if any.
fn assert_refused(cases: &[(&str, &str, &str)]) {
    for &(from, to, field) in cases {
        let scenario = scenario(from, to);
        let valid = Scenario::Stream(Box::new(scenario.clone())).validate(Path::new("."));
        assert_eq!(valid, Ok(()), "{to}");
        let refused = validate(&scenario, Path::new("."));
        let Err(refusal) = refused else {
            assert_eq!(field, "", "{to}");
            continue;
        };
        assert_eq!(refusal.field.as_deref(), Some(field), "{refusal}");
        assert!(refusal.message.starts_with("over sockets, "), "{refusal}");
    }
}

#[test]
fn publishers_that_sockets_cannot_have_are_refused_with_their_field() {
    let (start, video, audio) = ("[{ streams", "{ kind = \"video\" }", "{ kind = \"audio\" }");
    let two = "publishers = [{ prefix = \"/b\" }, ";
    assert_refused(&[
        ("publishers = [", two, "publishers"),
        (start, "[{ start = \"1 s\", streams", "publishers.0.start"),
        (start, "[{ stop = \"9 s\", streams", "publishers.0.stop"),
        (start, "[{ shared = true, streams", "publishers.0.shared"),
    ]);
    let of_video = |field: &str| format!("publishers.0.streams.0.{field}");
    assert_refused(&[
        (video, "{ key-factor = 4.0 }", &of_video("key-factor")),
        (video, "{ deviation = 0.1 }", &of_video("deviation")),
        (video, "{ key-interval = 60 }", ""),
        (video, "{ rungs = [\"1 kbit/s\"] }", &of_video("rungs")),
        (video, "{ rate = 25, key-interval = 25 }", ""),
    ]);
    let with = |field: &str| format!("{{ kind = \"audio\", {field} }}");
    let of_audio = |field: &str| format!("publishers.0.streams.1.{field}");
    assert_refused(&[
        (audio, &with("rate = 25"), &of_audio("rate")),
        (audio, &with("key-interval = 2"), &of_audio("key-interval")),
        (
            audio,
            &with("rungs = [\"64k\", \"32k\"]"),
            &of_audio("rungs"),
        ),
        (audio, &with("rungs = [\"1M\"]"), &of_audio("rungs")),
        (audio, &with("rungs = [\"64k\"]"), ""),
    ]);
}

#[test]
fn networks_and_changes_that_sockets_cannot_have_are_refused_with_their_field() {
    let change = |change: &str| format!("changes = [{{ at = \"1 s\", {change} }}]\nduration");
    let link = "{ ends = [\"A\"";
    assert_refused(&[
        ("duration", "series = true\nduration", "series"),
        ("[{ start", "[{ stop = \"9 s\", start", "watchers.0.stop"),
        (
            "[{ start",
            "[{ shared-uplink = true, start",
            "watchers.0.shared-uplink",
        ),
        (link, "{ mtu = 1400, ends = [\"A\"", "topology.link.2.mtu"),
        (
            link,
            "{ reliability = true, ends = [\"A\"",
            "topology.link.2.reliability",
        ),
        (
            "duration",
            &change("link = \"P-A\", up = false"),
            "changes.0",
        ),
        (
            "duration",
            &change("link = \"B>P\", spread = \"1 s\", rate = \"1M\""),
            "changes.0",
        ),
        ("duration", &change("node = \"A\", up = true"), "changes.0"),
        ("duration", &change("node = \"C\", up = false"), "changes.0"),
        (
            "duration",
            &change("publisher = 1, up = false"),
            "changes.0",
        ),
        ("duration", &change("node = \"A\", up = false"), ""),
    ]);
}

/// Interests take B>P, Data P>B.
#[test]
fn changes_of_a_link_are_in_its_schedule_and_caches_are_of_their_nodes() {
    let change = "changes = [{ at = \"3 s\", link = \"P>B\", rate = \"1M\" }]\ncaches = { A = \"1 MiB\" }\nduration";
    let scenario = scenario("duration", change);
    let stage = Stage::new(&scenario, Path::new(".")).unwrap();
    let steps = stage
        .layout
        .hops
        .iter()
        .map(|hop| (hop.interests.schedule.len(), hop.data.schedule.len()));
    assert!(steps.eq([(0, 0), (0, 1), (0, 0), (0, 0)]));
    let step = stage.layout.hops[1].data.schedule[0];
    assert_eq!(
        (step.at, step.rate),
        (
            Duration::from_secs(3),
            Some(namecast_units::Bitrate::mbps(1))
        )
    );
    let other = scenario.cache;
    assert_eq!(
        stage.layout.caches,
        [other, namecast_units::ByteSize::mebibytes(1), other, other]
    );
}

/// Watchers find the names of their own publishers, one after the other.
#[test]
fn one_video_is_published_under_several_names() {
    let to = "publishers = [{ count = 2, prefix = \"/s{}\", streams = [{ kind = \"video\" }] }]\nwatchers = [{ count = 2, prefix = \"/s{}\", stagger = \"3 s\", start = \"1 s\" }]\n";
    let file = FILE.replacen("watchers = [{ start = \"1 s\" }]\n", "", 1);
    let from = "publishers = [{ streams = [{ kind = \"video\" }, { kind = \"audio\" }] }]\n";
    let file = file.replacen(from, to, 1);
    let Ok(Scenario::Stream(scenario)) = toml::from_str(&file) else {
        panic!("{file}");
    };
    let stage = Stage::new(&scenario, Path::new(".")).unwrap();
    assert_eq!(
        stage.layout.prefixes,
        ["/s1", "/s2"].map(|root| root.parse().unwrap())
    );
    let seconds = |viewer: &Viewer<'_>| (viewer.root, viewer.start.as_secs_f64());
    assert_eq!(
        stage.watchers.iter().map(seconds).collect::<Vec<_>>(),
        [(0, 1.0), (1, 4.0)]
    );
}

/// A link that nobody's Interests take has no relay to ask.
#[test]
fn only_links_in_use_can_be_told_about() {
    let mut scenario = scenario("routes = \"all\"", "routes = \"shortest\"");
    scenario.links.push("C>B".to_owned());
    let refusal = validate(&scenario, Path::new(".")).unwrap_err();
    assert_eq!(refusal.field.as_deref(), Some("links.2"));
}

#[test]
fn the_agenda_is_in_order_of_time_and_reads_last() {
    let seconds = Duration::from_secs;
    let failures = [(seconds(2), 7)];
    let agenda = agenda(
        &[(seconds(1), 0), (seconds(2), 0)],
        &failures,
        &[seconds(0), seconds(2)],
    );
    let expected = [
        (0, Item::Read),
        (1, Item::Join(0)),
        (2, Item::Join(1)),
        (2, Item::Fail(7)),
        (2, Item::Read),
    ];
    assert_eq!(agenda, expected.map(|(at, item)| (seconds(at), item)));
}
