//! Options, and the links that they stand for.

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    impair: Impair,
}

fn relay(line: &str) -> Result<RelayConfig, String> {
    let words = core::iter::once("impair").chain(line.split_whitespace());
    let parsed = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    parsed.impair.relay().map_err(|error| format!("{error:#}"))
}

#[test]
fn without_options_both_links_are_perfect() {
    let relay = relay("").unwrap();
    let perfect = netem::Config::default();
    assert_eq!((&relay.forward, &relay.backward), (&perfect, &perfect));
    assert_eq!(relay.listen.to_string(), "127.0.0.1:6464");
    assert_eq!(relay.to.to_string(), "127.0.0.1:6363");
}

#[test]
fn options_hold_in_both_directions() {
    let relay = relay(
        "--rate 10M --delay 8ms --jitter 1ms --reorder --loss 2% --burst 4 --codel --mark --queue 200 \
         --duplicate 0.1 --corrupt 0.5% --outage 8s..9s --outage 5s..6s --delay-at 40s=20ms --rate-at 30s=5M",
    )
    .unwrap();
    assert_eq!(relay.forward, relay.backward);
    let link = relay.forward;
    assert_eq!(link.rate, Some(Bitrate::mbps(10).into()));
    assert_eq!(link.delay, Duration::from_millis(8));
    assert!(link.jitter.reorder && link.jitter.spread == Duration::from_millis(1));
    assert_eq!(link.loss, netem::Loss::bursts(0.02, 4.0));
    assert_eq!(link.queue, netem::Queue::codel(200, true));
    assert_eq!((link.duplicate, link.corrupt), (0.1, 0.005));
    let starts: Vec<_> = link
        .outages
        .iter()
        .map(|outage| outage.from.as_secs())
        .collect();
    assert_eq!(starts, [5, 8]);
    let steps: Vec<_> = link
        .schedule
        .iter()
        .map(|step| (step.rate, step.delay))
        .collect();
    let delay = Some(Duration::from_millis(20));
    assert_eq!(steps, [(Some(Bitrate::mbps(5)), None), (None, delay)]);
}

#[test]
fn one_direction_may_differ() {
    let relay = relay(
        "--rate 10M --delay 8ms --queue 50 --loss 1% --burst 3 --backward rate=5M,queue-bytes=64KiB,loss=2% --forward reorder",
    )
    .unwrap();
    assert_eq!(relay.forward.rate, Some(Bitrate::mbps(10).into()));
    assert!(relay.forward.jitter.reorder && !relay.backward.jitter.reorder);
    assert_eq!(relay.forward.queue, netem::Queue::DropTail { packets: 50 });
    assert_eq!(relay.backward.rate, Some(Bitrate::mbps(5).into()));
    assert_eq!(relay.backward.delay, Duration::from_millis(8));
    let size = ByteSize::bytes(65_536);
    assert_eq!(relay.backward.queue, netem::Queue::DropTailBytes { size });
    assert_eq!(relay.backward.loss, netem::Loss::Random { share: 0.02 });
}

#[test]
fn the_rate_may_be_a_trace_or_a_model() {
    let rate_of = |line: &str| relay(line).unwrap().backward.rate.unwrap();
    let model = |kind, seed, mean| netem::Rate::Model(netem::Model { kind, seed, mean });
    assert_eq!(
        rate_of("--model lte"),
        model(netem::ModelKind::Lte, 1, None)
    );
    let wifi = model(netem::ModelKind::Wifi, 7, Some(Bitrate::mbps(9)));
    assert_eq!(rate_of("--model wifi --model-seed 7 --model-mean 9M"), wifi);
    // One direction's own replaces the common one, whatever it is.
    let both = relay("--rate 5M --rate-at 3s=1M --backward model=umts").unwrap();
    assert_eq!(both.forward.schedule.len(), 1);
    assert_eq!(both.forward.rate, Some(Bitrate::mbps(5).into()));
    assert!(both.backward.schedule.is_empty());
    let umts = model(netem::ModelKind::Umts, 1, None);
    assert_eq!(both.backward.rate, Some(umts));
    let both = relay("--model evdo --model-seed 2 --backward rate=2M").unwrap();
    assert_eq!(both.backward.rate, Some(Bitrate::mbps(2).into()));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.trace");
    std::fs::write(&path, "4\n9\n").unwrap();
    let schedule = netem::Schedule::from_deliveries(vec![4, 9]).unwrap();
    assert_eq!(
        rate_of(&format!("--trace {}", path.display())),
        schedule.into()
    );
}

#[test]
fn each_discipline_can_be_chosen() {
    for (option, queue) in [
        ("--queue 5", netem::Queue::DropTail { packets: 5 }),
        ("--red --queue 60", netem::Queue::red(60)),
        ("--ramp", netem::Queue::ramp(1_000)),
        ("--pi2", netem::Queue::pi2(1_000)),
        ("--codel", netem::Queue::codel(1_000, false)),
    ] {
        assert_eq!(relay(option).unwrap().backward.queue, queue, "{option}");
    }
}

#[test]
fn errors_say_what_to_write_instead() {
    for (line, expected) in [
        ("--loss 120%", "write 1%"),
        ("--outage 5s-6s", "write 5s..10s"),
        ("--outage 6s..5s", "outages.0.until"),
        ("--rate-at 5M", "write 30s=5M"),
        ("--rate fast", "write 10 Mbit/s"),
        ("--rate 0", "a rate above zero"),
        ("--burst 4", "--loss"),
        (
            "--model 5g",
            "write one of lte, umts, evdo, wifi, satellite",
        ),
        ("--model lte --rate 5M", "cannot be used with"),
        ("--trace x --model lte", "cannot be used with"),
        ("--trace x --rate-at 3s=5M", "cannot be used with"),
        ("--model-seed 3", "--model <NAME>"),
        ("--model lte --model-mean 1G", "10 kbit/s to 100 Mbit/s"),
        (
            "--trace /nonexistent.trace",
            "/nonexistent.trace: No such file",
        ),
        ("--loss 90% --burst 2", "a larger --burst"),
        ("--mark", "--codel"),
        ("--codel --red", "cannot be used with"),
        ("--queue 5 --queue-bytes 5", "cannot be used with"),
        ("--backward speed=5", "unexpected argument '--speed'"),
        ("--backward rate=fast", "write 10 Mbit/s"),
        ("--config x.toml --rate 5M", "cannot be used with"),
        ("--config x.toml --backward rate=5M", "cannot be used with"),
        (
            "--config /nonexistent.toml",
            "/nonexistent.toml: No such file",
        ),
    ] {
        let error = relay(line).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
    }
}
