//! Configurations as they are written, and what is refused.

use std::sync::Arc;

use namecast_netem::{
    Config, Jitter, JitterShape, Loss, Model, ModelKind, Outage, Queue, Rate, Schedule, Step,
    TraceFile, TraceFormat,
};
use namecast_units::{Bitrate, ByteSize, Duration};

fn read(text: &str) -> Result<Config, String> {
    toml::from_str(text).map_err(|error| error.to_string())
}

const ALL: &str = r#"
rate = "10 Mbit/s"
delay = "8 ms"
headers = "28 B"
jitter = { spread = "0.5 ms", shape = "normal", reorder = true }
loss = { kind = "gilbert-elliott", good-to-bad = 0.01, bad-to-good = 0.25 }
outages = [{ from = "5s", until = "10s" }]
schedule = [{ at = "30s", rate = "5M" }, { at = "40s", delay = "20ms" }]
queue = { kind = "codel", packets = 200, mark = true }
duplicate = 0.01
corrupt = 0.02
max-in-flight = 1000
"#;

#[test]
fn everything_can_be_written() {
    let ms = Duration::from_millis;
    let s = Duration::from_secs;
    let expected = Config {
        rate: Some(Bitrate::mbps(10).into()),
        delay: ms(8),
        headers: ByteSize::bytes(28),
        jitter: Jitter {
            spread: Duration::from_micros(500),
            shape: JitterShape::Normal,
            reorder: true,
        },
        loss: Loss::GilbertElliott {
            good_to_bad: 0.01,
            bad_to_good: 0.25,
            loss_good: 0.0,
            loss_bad: 1.0,
        },
        outages: vec![Outage {
            from: s(5),
            until: s(10),
        }],
        schedule: vec![
            Step {
                at: s(30),
                rate: Some(Bitrate::mbps(5)),
                delay: None,
            },
            Step {
                at: s(40),
                rate: None,
                delay: Some(ms(20)),
            },
        ],
        queue: Queue::CoDel {
            packets: 200,
            target: ms(5),
            interval: ms(100),
            mark: true,
        },
        duplicate: 0.01,
        corrupt: 0.02,
        max_in_flight: 1_000,
    };
    assert_eq!(read(ALL), Ok(expected.clone()));
    assert_eq!(expected.validate(), Ok(()));
    assert_eq!(read(""), Ok(Config::default()));
}

#[test]
fn a_rate_may_be_a_trace_or_a_model() {
    let rate = |text: &str| read(&format!("rate = {text}")).map(|it| it.rate.unwrap());
    let trace = |format| {
        let trace = "some/lte.trace".into();
        Ok(Rate::Trace(TraceFile { trace, format }))
    };
    assert_eq!(rate("{ trace = \"some/lte.trace\" }"), trace(None));
    assert_eq!(
        rate("{ trace = \"some/lte.trace\", format = \"csv\" }"),
        trace(Some(TraceFormat::Csv))
    );
    let model = |kind, seed, mean| Ok(Rate::Model(Model { kind, seed, mean }));
    assert_eq!(
        rate("{ model = \"wifi\" }"),
        model(ModelKind::Wifi, 1, None)
    );
    let mean = Some(Bitrate::mbps(3));
    assert_eq!(
        rate("{ mean = \"3M\", seed = 7, model = \"lte\" }"),
        model(ModelKind::Lte, 7, mean)
    );
    for kind in ModelKind::ALL {
        assert_eq!(
            rate(&format!("{{ model = {:?} }}", kind.name())),
            model(kind, 1, None)
        );
    }
}

/// A trace is read by whoever can, and until then the link is refused; a model needs nobody.
#[test]
fn traces_and_models_become_schedules() {
    let schedule = Arc::new(Schedule::from_deliveries(vec![1, 5]).unwrap());
    let mut config = read("rate = { trace = \"x\" }").unwrap();
    assert_eq!(config.validate().unwrap_err().field, "rate.trace");
    let missing = config.resolve_rate(|file| Err(file.trace.clone()));
    assert_eq!(missing, Err("x".into()));
    let resolved = config.resolve_rate(|_| Ok::<_, ()>(Arc::clone(&schedule)));
    assert_eq!((resolved, config.validate()), (Ok(()), Ok(())));
    assert_eq!(config.rate, Some(Rate::Schedule(schedule)));

    let mut config = read("rate = { model = \"evdo\", seed = 3 }").unwrap();
    assert_eq!(config.validate(), Ok(()));
    let drawn = config.rate.as_ref().and_then(Rate::schedule).unwrap();
    config.resolve_rate(|_| Err("no file")).unwrap();
    assert_eq!(config.rate, Some(Rate::Schedule(drawn)));

    let mut config = read("rate = \"1M\"").unwrap();
    config.resolve_rate(|_| Err("no file")).unwrap();
    assert_eq!(config.rate, Some(Bitrate::mbps(1).into()));
}

#[test]
fn a_model_has_a_mean_within_bounds_and_no_steps_of_rate() {
    let model = |mean| Model {
        kind: ModelKind::Lte,
        seed: 1,
        mean: Some(mean),
    };
    for mean in [Bitrate::bps(9_999), Bitrate::bps(100_000_001)] {
        assert_eq!(
            refused(|it| it.rate = Some(model(mean).into())),
            "rate.mean"
        );
    }
    let step = |rate, delay| Step {
        at: Duration::ZERO,
        rate,
        delay,
    };
    let change = |step| {
        move |it: &mut Config| {
            it.rate = Some(model(Bitrate::mbps(1)).into());
            it.schedule = vec![step];
        }
    };
    let faster = step(Some(Bitrate::mbps(2)), None);
    assert_eq!(refused(change(faster)), "schedule.0.rate");
    let mut config = Config::default();
    change(step(None, Some(Duration::ZERO)))(&mut config);
    assert_eq!(config.validate(), Ok(()));
}

#[test]
fn every_queue_has_the_defaults_of_its_source() {
    let queue = |text: &str| read(&format!("queue = {{ kind = \"{text} }}")).map(|it| it.queue);
    assert_eq!(queue("codel\""), Ok(Queue::codel(1_000, false)));
    assert_eq!(queue("red\", packets = 50"), Ok(Queue::red(50)));
    assert_eq!(queue("pi2\", packets = 50"), Ok(Queue::pi2(50)));
    assert_eq!(queue("ramp\", packets = 50"), Ok(Queue::ramp(50)));
    let size = ByteSize::bytes(65_536);
    let bytes = Queue::DropTailBytes { size };
    assert_eq!(queue("drop-tail-bytes\", size = \"64 KiB\""), Ok(bytes));
    let gentle = queue("red\", max-probability = 0.02, gentle = true").unwrap();
    let Queue::Red {
        max_probability,
        gentle: true,
        min,
        ..
    } = gentle
    else {
        panic!("{gentle:?}");
    };
    assert!((max_probability, min) == (0.02, 5.0), "{gentle:?}");
}

#[test]
fn what_is_not_known_is_refused() {
    for (text, expected) in [
        ("speed = 5", "unknown field `speed`"),
        ("rate = \"fast\"", "write 10 Mbit/s"),
        (
            "jitter = { reordering = true }",
            "unknown field `reordering`",
        ),
        (
            "loss = { kind = \"random\", share = 0.1, burst = 3 }",
            "unknown field `burst`",
        ),
        ("queue = { kind = \"fq\" }", "unknown variant `fq`"),
        ("rate = 5", "expected \"6 Mbit/s\", { trace = \"file\" } or"),
        ("rate = {}", "expected 'trace' or 'model'"),
        ("rate = { file = \"x\" }", "unknown field `file`"),
        ("rate = { model = \"5g\" }", "expected one of `lte`"),
        ("rate = { model = \"lte\", trace = \"x\" }", "not both"),
        ("rate = { trace = \"x\", seed = 1 }", "belong to 'model'"),
        (
            "rate = { model = \"lte\", format = \"csv\" }",
            "belongs to 'trace'",
        ),
        (
            "rate = { trace = \"x\", format = \"pcap\" }",
            "unknown variant `pcap`",
        ),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// The field that is refused after `change` to a good configuration.
fn refused(change: impl FnOnce(&mut Config)) -> String {
    let mut config = Config::default();
    change(&mut config);
    let error = config.validate().expect_err("it makes no sense");
    error.field
}

#[test]
fn shares_and_rates_that_make_no_sense_are_named() {
    assert_eq!(refused(|it| it.rate = Some(Bitrate::ZERO.into())), "rate");
    assert_eq!(refused(|it| it.duplicate = 1.1), "duplicate");
    assert_eq!(refused(|it| it.corrupt = f64::NAN), "corrupt");
    assert_eq!(refused(|it| it.max_in_flight = 0), "max-in-flight");
    let headers = ByteSize::mebibytes(1);
    assert_eq!(refused(|it| it.headers = headers), "headers");
    let loss = Loss::Random { share: -0.1 };
    assert_eq!(refused(|it| it.loss = loss), "loss.share");
    let loss = Loss::bursts(0.9, 2.0);
    assert_eq!(refused(|it| it.loss = loss), "loss.good-to-bad");
    let error = Config {
        corrupt: 2.0,
        ..Config::default()
    };
    let error = error.validate().unwrap_err().to_string();
    assert_eq!(error, "corrupt: expected a share between 0 and 1");
}

#[test]
fn schedules_out_of_order_are_named() {
    let step = |at, rate| Step {
        at: Duration::from_secs(at),
        rate: Some(Bitrate::mbps(rate)),
        delay: None,
    };
    for (field, schedule) in [
        ("schedule.1.at", vec![step(2, 1), step(1, 1)]),
        ("schedule.0.rate", vec![step(2, 0)]),
    ] {
        assert_eq!(refused(|it| it.schedule = schedule), field);
    }
    let outage = |from, until| Outage {
        from: Duration::from_secs(from),
        until: Duration::from_secs(until),
    };
    for (field, outages) in [
        ("outages.0.until", vec![outage(2, 2)]),
        ("outages.1.from", vec![outage(2, 5), outage(4, 6)]),
    ] {
        assert_eq!(refused(|it| it.outages = outages), field);
    }
}

#[test]
fn queues_that_make_no_sense_are_named() {
    let red = |min, max, max_probability, weight| Queue::Red {
        packets: 1,
        min,
        max,
        max_probability,
        weight,
        gentle: false,
    };
    let pi2 = |millis, alpha, beta| Queue::Pi2 {
        packets: 1,
        target: Duration::ZERO,
        update: Duration::from_millis(millis),
        alpha,
        beta,
    };
    for (field, queue) in [
        ("queue.min", red(-1.0, 3.0, 0.1, 0.1)),
        ("queue.max", red(3.0, 3.0, 0.1, 0.1)),
        ("queue.max-probability", red(1.0, 3.0, 1.1, 0.1)),
        ("queue.weight", red(1.0, 3.0, 0.1, 0.0)),
        ("queue.update", pi2(0, 0.1, 0.1)),
        ("queue.alpha", pi2(16, -0.1, 0.1)),
        ("queue.beta", pi2(16, 0.1, f64::INFINITY)),
    ] {
        assert_eq!(refused(|it| it.queue = queue), field);
    }
}

/// What is written out reads back as the same.
#[test]
fn a_configuration_survives_being_written() {
    let config = read(ALL).unwrap();
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
    for rate in [
        "{ trace = \"x\", format = \"mahimahi\" }",
        "{ model = \"lte\", seed = 4, mean = \"2M\" }",
    ] {
        let config = read(&format!("rate = {rate}")).unwrap();
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), config);
    }
}
