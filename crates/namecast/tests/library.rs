//! The library as its users have it: nodes of one process, connected by sockets on loopback.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use core::time::Duration;

use namecast::{ExchangeSecret, Node, Options, Watched};
use tempfile::TempDir;

/// A forwarder, and a node connected to it.
struct World {
    _keys: TempDir,
    options: Options,
    _forwarder: Node,
    address: String,
}

impl World {
    async fn new() -> Self {
        let keys = tempfile::tempdir().unwrap();
        let options = Options {
            keys: Some(keys.path().to_owned()),
            ..Options::default()
        };
        let forwarder = Node::start(options.clone());
        let address = forwarder.listen("udp://127.0.0.1:0").await.unwrap();
        Self {
            _keys: keys,
            options,
            _forwarder: forwarder,
            address: address.to_string(),
        }
    }

    async fn node(&self) -> Node {
        let node = Node::start(self.options.clone());
        node.connect(&self.address).await.unwrap();
        node
    }
}

/// Twenty samples, a tenth of a second apart: whoever joined in time gets them all, in order, as they were sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_data_stream_arrives_whole_and_in_order() {
    let world = World::new().await;
    let (publisher, watcher) = (world.node().await, world.node().await);
    let publication = publisher.publish("/lab/track").unwrap();
    let publication = publication.data("position", 20, 16).start().await.unwrap();
    let mut watching = watcher
        .watch("/lab/track")
        .unwrap()
        .data()
        .start()
        .await
        .unwrap();
    let feeding = tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        for number in 0_u32.. {
            tick.tick().await;
            let sample = format!("sample {number}");
            publication.send("position", sample).await.unwrap();
        }
    });
    let mut received = Vec::new();
    while received.len() < 20 {
        let frame = watching.next_frame().await.unwrap();
        let text = String::from_utf8(frame.payload.to_vec()).unwrap();
        let number: u64 = text.strip_prefix("sample ").unwrap().parse().unwrap();
        assert_eq!(number, frame.position);
        received.push(number);
    }
    let first = received[0];
    let expected: Vec<_> = (first..first + 20).collect();
    assert_eq!(received, expected);
    let stats = watching.stats().await.unwrap();
    assert_eq!(stats.verification_failures, 0);
    feeding.abort();
}

/// A sealed stream is opened by its reader, and by a second one once it is named; whoever has no key receives no frame.
#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_stream_is_opened_by_its_readers() {
    let world = World::new().await;
    let (publisher, node) = (world.node().await, world.node().await);
    let [ann, bob] = [1, 2].map(|seed| ExchangeSecret::of_seed(&[seed; 32]));
    let publication = publisher.publish("/lab/secret").unwrap();
    let publication = publication.data("position", 20, 16).sealed([ann.public()]);
    let publication = publication.start().await.unwrap();
    let watch = || node.watch("/lab/secret").unwrap().data();
    let mut first = watch().reader(ann.clone()).start().await.unwrap();
    let mut second = watch().reader(bob.clone()).start().await.unwrap();
    let stranger = watch().start().await.unwrap();
    let sending = publication.clone();
    let feeding = tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        loop {
            tick.tick().await;
            sending.send("position", "here").await.unwrap();
        }
    });
    for _ in 0..10 {
        assert_eq!(first.next_frame().await.unwrap().payload, "here");
    }
    let stats = second.stats().await.unwrap();
    assert_eq!(stats.sealed.opened, 0);
    assert!(stats.sealed.not_a_reader > 0);
    let readers = [ann.public(), bob.public()];
    publication.set_readers(readers).await.unwrap();
    assert_eq!(second.next_frame().await.unwrap().payload, "here");
    let stats = stranger.stats().await.unwrap();
    assert_eq!(stats.sealed.opened, 0);
    feeding.abort();
}

/// What was not announced is refused by name, and a publication that was dropped publishes nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named() {
    let world = World::new().await;
    let node = world.node().await;
    assert_eq!(
        node.publish("%zz").unwrap_err().to_string(),
        "'%zz' is no name: write it as /first/second"
    );
    let publication = node.publish("/lab/door").unwrap().data("open", 1, 1);
    let publication = publication.start().await.unwrap();
    let error = publication.send("closed", "x").await.unwrap_err();
    assert_eq!(error.to_string(), "closed/only is not published here");
    let error = node.listen("ws://127.0.0.1:1").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a node cannot listen on ws://127.0.0.1:1/: write udp://, tcp:// or unix://"
    );
}

/// The watcher reports who signs before the first sample, and the catalogue that lists the stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_reports_signer_and_catalogue_first() {
    let world = World::new().await;
    let (publisher, watcher) = (world.node().await, world.node().await);
    let publication = publisher.publish("/lab/bell").unwrap();
    let publication = publication.data("ring", 10, 4).start().await.unwrap();
    publication.send("ring", "ding").await.unwrap();
    let watch = watcher.watch("/lab/bell").unwrap().data();
    let mut watching = watch.start().await.unwrap();
    let mut seen = Vec::new();
    let frame = loop {
        match watching.next().await.unwrap() {
            Watched::Signer(signer) => {
                assert!(signer.key_name.to_string().starts_with("/lab/bell/KEY/"));
                seen.push("signer");
            }
            Watched::Catalogue(catalogue) => {
                assert_eq!(catalogue.streams[0].name, "ring");
                seen.push("catalogue");
            }
            Watched::Frame(frame) => break frame,
            Watched::Discontinuity { .. } | Watched::Event(_) => {}
        }
    };
    assert_eq!(&frame.payload[..], b"ding");
    assert_eq!(seen, ["signer", "catalogue"]);
}

/// Samples come when they come: none for seconds, twenty at once, one of a hundred packets. A reader that was there before the
/// publisher gets every one.
#[tokio::test(flavor = "multi_thread")]
async fn samples_need_not_keep_the_rate() {
    let world = World::new().await;
    let (publisher, watcher) = (world.node().await, world.node().await);
    let watch = watcher.watch("/lab/alarm").unwrap().data();
    let mut watching = watch.start().await.unwrap();
    let publication = publisher.publish("/lab/alarm").unwrap();
    let publication = publication.data("event", 10, 20).start().await.unwrap();
    publication.send("event", "0").await.unwrap();
    let mut received = vec![watching.next_frame().await.unwrap().position];
    let sending = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3)).await;
        for number in 1..=20 {
            publication.send("event", number.to_string()).await.unwrap();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        publication.send("event", vec![7; 100_000]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
    while received.last() < Some(&21) {
        let frame = watching.next_frame().await.unwrap();
        assert!(frame.position < 21 || frame.payload.len() == 100_000);
        received.push(frame.position);
    }
    let expected: Vec<_> = (0..=21).collect();
    assert_eq!(received, expected);
    sending.abort();
}

/// Two roots are read over one node. While nobody takes the samples of one, which soon fill all the room that its reader has, those of
/// the other arrive; and then the first one's are all there.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_takes_nothing_holds_up_nobody() {
    const SAMPLES: u64 = 1_500;
    let world = World::new().await;
    let (publisher, reader) = (world.node().await, world.node().await);
    let publish = async |root, rate| {
        let publication = publisher.publish(root).unwrap().data("x", rate, 4);
        publication.start().await.unwrap()
    };
    let (fast, slow) = (
        publish("/lab/fast", 500).await,
        publish("/lab/slow", 20).await,
    );
    let read = async |root| reader.watch(root).unwrap().data().start().await.unwrap();
    let (mut untaken, mut taken) = (read("/lab/fast").await, read("/lab/slow").await);
    fast.send("x", "0").await.unwrap();
    let first = untaken.next_frame().await.unwrap().position;
    let sending = tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        for number in 1..=SAMPLES {
            if number % 25 == 0 {
                tick.tick().await;
                slow.send("x", number.to_string()).await.unwrap();
            }
            fast.send("x", number.to_string()).await.unwrap();
        }
        (fast, slow)
    });
    let mut count = 0;
    while count < 50 {
        taken.next_frame().await.unwrap();
        count += 1;
    }
    let _publications = sending.await.unwrap();
    for position in first + 1..=SAMPLES {
        assert_eq!(untaken.next_frame().await.unwrap().position, position);
    }
}

/// Two data streams of one root are read over one node, each by its name.
#[tokio::test(flavor = "multi_thread")]
async fn streams_of_one_kind_are_read_by_name() {
    let world = World::new().await;
    let (publisher, reader) = (world.node().await, world.node().await);
    let publication = publisher.publish("/lab/room").unwrap();
    let publication = publication.data("celsius", 10, 8).data("lux", 10, 8);
    let publication = publication.start().await.unwrap();
    let read = async |stream| {
        let watch = reader.watch("/lab/room").unwrap().data();
        watch.stream(stream).start().await.unwrap()
    };
    let (mut celsius, mut lux) = (read("celsius").await, read("lux").await);
    for (degrees, light) in [("21.5", "400"), ("21.6", "401")] {
        publication.send("celsius", degrees).await.unwrap();
        publication.send("lux", light).await.unwrap();
        assert_eq!(celsius.next_frame().await.unwrap().payload, degrees);
        assert_eq!(lux.next_frame().await.unwrap().payload, light);
    }
}
