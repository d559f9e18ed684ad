//! Traces of real networks and of made-up events, read back by others' readers.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use namecast_apps::sequence::Fetched;
use namecast_forward::{Counters, FaceCounters, Traffic};
use namecast_netem::{self as netem, DropReason, Queue};
use namecast_packet::{Interest, LpPacket, Name, Nonce};
use namecast_sim::topology::{Dumbbell, Limits, routes};
use namecast_sim::trace::ndnsim::{
    AppDelayTable, CacheTable, DEFAULT_PERIOD, DropTable, RateTable,
};
use namecast_sim::trace::{
    CsvTrace, Event, EventKind, FaceSnapshot, Fingerprint, Frame, ParquetConfig, ParquetTrace,
    Sampler, Sink, Snapshot, Tee,
};
use namecast_sim::workload::{Choice, Requester, RequesterConfig, Responder, Spacing};
use namecast_sim::{Application, Network, NodeConfig, Now, Output};
use namecast_units::{Bitrate, ByteSize, Instant};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

const SECOND: Duration = Duration::from_secs(1);

fn at(span: Duration) -> Instant {
    Instant::ZERO + span
}

/// Asks like a requester, and says what it got and when it had asked.
struct Fetcher {
    requester: Requester,
    now: Instant,
    asked: BTreeMap<String, Instant>,
    fetched: VecDeque<Fetched>,
}

fn name_of(frame: &Bytes) -> String {
    let name = Frame::read(frame).name();
    name.expect("only packets are exchanged").to_string()
}

impl Application for Fetcher {
    type Event = Fetched;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.now = now.monotonic;
        let name = name_of(&frame);
        let delay = self.now.since(self.asked[&name]);
        let (_, sequence) = name.rsplit_once("seq=").expect("names are numbered");
        self.fetched.push_back(Fetched {
            sequence: sequence.parse().expect("a number"),
            delay,
            full_delay: delay,
            transmissions: 1,
            size: ByteSize::ZERO,
        });
        self.requester.handle_frame(now, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.now = now.monotonic;
        self.requester.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.requester.poll_timeout()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        let output = self.requester.poll_output();
        if let Some(Output::Send(frame)) = &output {
            self.asked.insert(name_of(frame), self.now);
        }
        // What the requester reports itself, this test works out by its own means.
        match output {
            Some(Output::Send(frame)) => Some(Output::Send(frame)),
            _ => self.fetched.pop_front().map(Output::Event),
        }
    }
}

/// 1000 packets a second from P1 to C1 over a link for half of them, with a queue of ten packets.
fn overloaded() -> Network {
    let shape = Dumbbell {
        bottleneck: netem::Config {
            rate: Some(Bitrate::mbps(4).into()),
            delay: Duration::from_millis(8),
            queue: Queue::DropTail { packets: 10 },
            ..netem::Config::default()
        },
        ..Dumbbell::default()
    };
    let mut topology = shape.build(&Limits::default()).expect("the shape is sound");
    topology.nodes[0].name = "San+Jose,+CA\"R1\"".to_owned();
    let mut network = Network::new(&topology, 1, |_| NodeConfig::default());
    let producer = topology.node("P1").expect("the dumbbell has it");
    let prefix: Name = "/p/,1".parse().expect("a good name");
    let responder = Responder::new(1_024, Duration::ZERO);
    let towards = routes::towards(&topology, producer);
    network
        .add_producer(producer, &prefix, responder, &towards)
        .expect("tables are large enough");
    let config = RequesterConfig {
        prefix,
        interval: Duration::from_millis(1),
        spacing: Spacing::Even,
        choice: Choice::Sequence,
        lifetime: SECOND,
        start: Duration::ZERO,
        seed: 7,
    };
    let consumer = topology.node("C1").expect("the dumbbell has it");
    let fetcher = Fetcher {
        requester: Requester::new(config),
        now: Instant::ZERO,
        asked: BTreeMap::new(),
        fetched: VecDeque::new(),
    };
    network.add_application(consumer, fetcher);
    network
}

fn names(network: &Network) -> Vec<String> {
    let names = (0..network.nodes()).map(|node| network.node_name(node).to_owned());
    names.collect()
}

/// Runs the network for two seconds with `sink`, and gives the sink back.
fn run<S: Sink + 'static>(mut network: Network, sink: S) -> S {
    let handle = Rc::new(RefCell::new(sink));
    network.set_sink(Box::new(Rc::clone(&handle)));
    network.run_until(at(2 * SECOND));
    drop(network);
    let sink = Rc::into_inner(handle).expect("the network was the only other one to have it");
    sink.into_inner()
}

/// The rows of a CSV trace, by a reader that refuses lines of another length.
fn csv_rows(octets: &[u8]) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(false)
        .from_reader(octets);
    let fields = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
    let header = fields(reader.headers().expect("there is a header"));
    let rows = reader
        .records()
        .map(|row| fields(&row.expect("every line is sound")));
    (header, rows.collect())
}

/// The rows of a Parquet file as the CSV would say them, and the number of row groups.
fn parquet_rows(octets: Vec<u8>) -> (Vec<String>, Vec<Vec<String>>, usize) {
    let reader = SerializedFileReader::new(Bytes::from(octets)).expect("a sound file");
    let groups = reader.num_row_groups();
    let columns = reader
        .metadata()
        .file_metadata()
        .schema()
        .get_fields()
        .iter();
    let header = columns.map(|column| column.name().to_owned()).collect();
    let text = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::ULong(number) => number.to_string(),
        other => panic!("a type that is not in the schema: {other:?}"),
    };
    let rows = reader.get_row_iter(None).expect("a sound file").map(|row| {
        let row = row.expect("a sound row");
        row.get_column_iter()
            .map(|(_, field)| text(field))
            .collect()
    });
    let rows = rows.collect();
    (header, rows, groups)
}

#[test]
fn csv_and_parquet_say_the_same_and_what_happened() {
    let network = overloaded();
    let names = names(&network);
    let config = ParquetConfig {
        rows_per_group: 1_000,
        ..ParquetConfig::default()
    };
    let csv = CsvTrace::new(Vec::new(), names.clone());
    let parquet = ParquetTrace::new(Vec::new(), names, config);
    let Tee(csv, parquet) = run(network, Tee(csv, parquet));
    let (header, rows) = csv_rows(&csv.finish().expect("memory takes everything"));
    let expected = "time_ns node face event packet name octets reason sequence delay_ns full_delay_ns transmissions \
                    congestion_mark";
    assert_eq!(header, expected.split(' ').collect::<Vec<_>>());
    let (parquet_header, parquet_rows, groups) =
        parquet_rows(parquet.finish().expect("memory takes everything"));
    assert_eq!(parquet_header, header);
    assert_eq!(parquet_rows.len(), rows.len());
    assert!(parquet_rows == rows, "the rows differ");
    assert_eq!(groups, rows.len().div_ceil(1_000));

    // C1's forwarder gets 2000 Interests from its application and hands on each; the link lets through about half of the
    // Data that they ask for.
    let count = |node: &str, event: &str, packet: &str| {
        let found = |row: &&Vec<String>| row[1] == node && row[3] == event && row[4] == packet;
        rows.iter().filter(found).count()
    };
    for event in ["received", "sent"] {
        let interests = count("C1", event, "interest");
        assert!((1_999..=2_001).contains(&interests), "{interests}");
    }
    let dropped = count("San+Jose,+CA\"R1\"", "dropped", "data");
    let fetched = rows.iter().filter(|row| row[3] == "fetched").count();
    assert!((900..=1_100).contains(&dropped), "{dropped}");
    assert!((850..=1_000).contains(&fetched), "{fetched}");
    for row in &rows {
        row[0].parse::<u64>().expect("a time");
        row[2].parse::<u64>().expect("a face");
        match row[3].as_str() {
            "fetched" => {
                // 20 ms of delay there and back, and up to ten packets of queue at 2.2 ms each.
                let delay: u64 = row[9].parse().expect("a delay");
                assert!((20_000_000..=48_000_000).contains(&delay), "{delay}");
                assert_eq!(row[10], row[9]);
                assert_eq!(row[11], "1");
                assert!(row[4..8].iter().all(String::is_empty) && row[12].is_empty());
            }
            event => {
                assert!(row[5].starts_with("/p/%2C1/"), "{}", row[5]);
                assert_eq!(event == "dropped", row[7] == "queue_full");
                assert!(row[8..12].iter().all(String::is_empty));
                assert_eq!(row[12], "0");
            }
        }
    }
    assert!(rows.is_sorted_by_key(|row| row[0].parse::<u64>().expect("a time")));
}

/// What was taken from the output before, and the footer of now, are a whole file.
#[test]
fn a_footer_makes_a_whole_file_of_the_groups_before_it() {
    let network = overloaded();
    let trace = ParquetTrace::new(Vec::new(), names(&network), ParquetConfig::default());
    let mut trace = run(network, trace);
    let first = trace.footer().expect("memory takes everything");
    let groups = core::mem::take(trace.output_mut().expect("there was no error"));
    let (_, rows, _) = parquet_rows([&groups[..], &first].concat());
    assert!(rows.len() > 10_000, "{}", rows.len());
    let mut trace = run(overloaded(), trace);
    let second = trace.footer().expect("memory takes everything");
    let more = trace.output_mut().expect("there was no error");
    let (_, twice, _) = parquet_rows([&groups[..], more, &second].concat());
    assert!(twice[..rows.len()] == rows && twice[rows.len()..] == rows);
}

#[test]
fn row_groups_end_when_there_is_much_text() {
    let config = ParquetConfig {
        rows_per_group: 1_000_000,
        text_per_group: 10_000,
    };
    let network = overloaded();
    let trace = ParquetTrace::new(Vec::new(), names(&network), config);
    let trace = run(network, trace);
    let (_, rows, groups) = parquet_rows(trace.finish().expect("memory takes everything"));
    // A row has some 35 octets of text, so a group has some 280 rows.
    let each = rows.len() / groups;
    assert!((150..=600).contains(&each), "{each}");
}

#[test]
fn the_same_run_has_the_same_fingerprint_and_the_same_files() {
    let record = || {
        let network = overloaded();
        let names = names(&network);
        let parquet = ParquetTrace::new(Vec::new(), names.clone(), ParquetConfig::default());
        let csv = CsvTrace::new(Vec::new(), names);
        let Tee(Tee(csv, parquet), print) =
            run(network, Tee(Tee(csv, parquet), Fingerprint::default()));
        let octets = (csv.finish(), parquet.finish());
        let (csv, parquet) = (octets.0.expect("memory"), octets.1.expect("memory"));
        (csv, parquet, print.events(), print.hex())
    };
    let (first, second) = (record(), record());
    assert!(first == second);
    assert!(first.2 > 10_000, "{}", first.2);
}

/// Fails after some octets.
#[derive(Debug)]
struct Full(usize);

impl Write for Full {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(octets.len())
            .ok_or(io::ErrorKind::StorageFull)?;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_at_the_end() {
    let network = overloaded();
    let names = names(&network);
    for room in [0, 3, 100_000] {
        let small = ParquetConfig {
            rows_per_group: 100,
            ..ParquetConfig::default()
        };
        let csv = CsvTrace::new(Full(room), names.clone());
        let parquet = ParquetTrace::new(Full(room), names.clone(), small);
        let delays = AppDelayTable::new(Full(room.min(3)), names.clone());
        let Tee(Tee(csv, parquet), delays) = run(overloaded(), Tee(Tee(csv, parquet), delays));
        let refused = |error: io::Error| {
            error.to_string().contains("storage") || error.to_string().contains("space")
        };
        assert!(refused(csv.finish().expect_err("no room")));
        assert!(refused(parquet.finish().expect_err("no room")));
        assert!(refused(delays.finish().expect_err("no room")));
    }
}

/// Frames that are no packets, at nodes that have no name.
#[test]
fn damaged_frames_are_other() {
    let names = vec!["a".to_owned()];
    let csv = CsvTrace::new(Vec::new(), names.clone());
    let parquet = ParquetTrace::new(Vec::new(), names, ParquetConfig::default());
    let rates = RateTable::new(Vec::new(), DEFAULT_PERIOD);
    let drops = DropTable::new(Vec::new(), DEFAULT_PERIOD);
    let mut all = Tee(Tee(csv, parquet), Tee(rates, drops));
    let idle = LpPacket {
        acks: vec![1],
        ..LpPacket::default()
    };
    let name: Name = "/a".parse().expect("a good name");
    let whole = Interest::builder(name).build(Nonce::from(1)).wire().clone();
    let mut frames = vec![Bytes::new(), Bytes::from_static(&[255; 9]), idle.encode()];
    frames.extend((1..whole.len()).map(|length| whole.slice(..length)));
    for frame in &frames {
        for kind in [
            EventKind::Received(frame),
            EventKind::Sent(frame),
            EventKind::Dropped(frame, DropReason::Down),
        ] {
            let event = Event {
                at: Instant::ZERO,
                node: 7,
                face: 1,
                kind,
            };
            all.record(&event);
        }
    }
    let Tee(Tee(csv, parquet), _) = all;
    let (_, rows) = csv_rows(&csv.finish().expect("memory takes everything"));
    assert_eq!(rows.len(), 3 * frames.len());
    assert!(
        rows.iter()
            .all(|row| row[1] == "7" && row[4] == "other" && row[5].is_empty())
    );
    assert_eq!(rows[2][7], "down");
    assert_eq!(
        parquet_rows(parquet.finish().expect("memory takes everything")).1,
        rows
    );
}

/// A table's header, and its rows split as `loadtxt` splits them.
fn table(octets: Vec<u8>) -> (String, Vec<Vec<String>>) {
    let text = String::from_utf8(octets).expect("text");
    let (header, rows) = text.split_once('\n').expect("a header");
    assert!(rows.is_empty() || rows.ends_with('\n'));
    let split = |row: &str| row.split('\t').map(str::to_owned).collect();
    (header.to_owned(), rows.lines().map(split).collect())
}

#[test]
fn app_delays_are_as_ndnsim_writes_them() {
    let names = vec!["two words #1".to_owned()];
    let mut delays = AppDelayTable::new(Vec::new(), names);
    for (node, delay, full) in [(0, 23_456_789, 1_023_456_789), (3, 1_000_000, 1_000_000)] {
        let fetched = Fetched {
            sequence: 41,
            delay: Duration::from_nanos(delay),
            full_delay: Duration::from_nanos(full),
            transmissions: 2,
            size: ByteSize::ZERO,
        };
        delays.record(&Event {
            at: Instant::from_nanos(12_345_678_900),
            node,
            face: 257,
            kind: EventKind::Fetched(fetched),
        });
    }
    let text = String::from_utf8(delays.finish().expect("memory takes everything"));
    let expected = "Time\tNode\tAppId\tSeqNo\tType\tDelayS\tDelayUS\tRetxCount\tHopCount\n\
        12.3457\ttwo_words__1\t257\t41\tLastDelay\t0.0234568\t23456.8\t1\t0\n\
        12.3457\ttwo_words__1\t257\t41\tFullDelay\t1.02346\t1.02346e+06\t2\t0\n\
        12.3457\t3\t257\t41\tLastDelay\t0.001\t1000\t1\t0\n\
        12.3457\t3\t257\t41\tFullDelay\t0.001\t1000\t2\t0\n";
    assert_eq!(text.expect("text"), expected);
}

/// Shows a sampler two faces, of which one has seen Interests.
fn show(sampler: &mut dyn Sampler, millis: u64, interests: u64, counters: &Counters) {
    let used = FaceCounters {
        incoming: Traffic {
            interests,
            ..Traffic::default()
        },
        ..FaceCounters::default()
    };
    let idle = FaceCounters::default();
    let face = |id, description, counters| FaceSnapshot {
        id,
        description,
        counters,
    };
    sampler.sample(&Snapshot {
        at: at(Duration::from_millis(millis)),
        node: 0,
        name: "r1",
        faces: vec![face(256, "to r2", used), face(257, "", idle)],
        counters: *counters,
    });
}

fn interest() -> Bytes {
    let name: Name = "/a".parse().expect("a good name");
    Interest::builder(name).build(Nonce::from(1)).wire().clone()
}

/// Worked by hand, periods of half a second. First 100 Interests, 0.8 · 100 / 0.5 = 160 a second, then 50 more,
/// 0.8 · 50 / 0.5 + 0.2 · 160 = 112. In the first period 64 of them were seen as events, of 13 octets each without link headers:
/// 0.8125 KiB, which makes 0.8 · 0.8125 / 0.5 = 1.3 KiB a second; in the second none: 0.2 · 1.3 = 0.26.
#[test]
fn rates_are_smoothed_as_in_ndnsim() {
    let mut rates = RateTable::new(Vec::new(), DEFAULT_PERIOD);
    let bare = interest();
    let wrapped = LpPacket {
        congestion_mark: 1,
        ..LpPacket::carrying(bare.clone())
    };
    let wrapped = wrapped.encode();
    assert_eq!(bare.len(), 13);
    for frame in [&bare, &wrapped].repeat(32) {
        let kind = EventKind::Received(frame);
        let at = Instant::ZERO;
        rates.record(&Event {
            at,
            node: 0,
            face: 256,
            kind,
        });
    }
    let counters = Counters {
        satisfied: 10,
        ..Counters::default()
    };
    show(&mut rates, 500, 100, &counters);
    show(&mut rates, 1_000, 150, &counters);
    let (header, rows) = table(rates.finish().expect("memory takes everything"));
    assert_eq!(
        header,
        "Time\tNode\tFaceId\tFaceDescr\tType\tPackets\tKilobytes\tPacketRaw\tKilobytesRaw"
    );
    // Ten rows for the face with traffic, two for the node; the idle face has none.
    assert_eq!(rows.len(), 24);
    let row = |at: usize| rows[at].join(" ");
    assert_eq!(row(0), "0.5 r1 256 to_r2 InInterests 160 1.3 100 0.8125");
    assert_eq!(row(12), "1 r1 256 to_r2 InInterests 112 0.26 50 0");
    assert_eq!(row(10), "0.5 r1 -1 all SatisfiedInterests 16 0 10 0");
    assert_eq!(row(22), "1 r1 -1 all SatisfiedInterests 3.2 0 0 0");
}

#[test]
fn rates_have_ndnsims_types_in_its_order() {
    let mut rates = RateTable::new(Vec::new(), SECOND);
    let direction = |interests, data, nacks| Traffic {
        interests,
        data,
        nacks,
        ..Traffic::default()
    };
    let counters = FaceCounters {
        incoming: direction(1, 3, 5),
        outgoing: direction(2, 4, 6),
        satisfied_in: 7,
        expired_in: 8,
        satisfied_out: 9,
        expired_out: 10,
        ..FaceCounters::default()
    };
    let node = Counters {
        satisfied: 11,
        expired: 12,
        unsatisfied: 99,
        ..Counters::default()
    };
    rates.sample(&Snapshot {
        at: at(SECOND),
        node: 0,
        name: "a",
        faces: vec![FaceSnapshot {
            id: 1,
            description: "x",
            counters,
        }],
        counters: node,
    });
    let (_, rows) = table(rates.finish().expect("memory takes everything"));
    let rows: Vec<_> = rows
        .iter()
        .map(|row| format!("{} {}", row[4], row[7]))
        .collect();
    assert_eq!(
        rows.join(", "),
        "InInterests 1, OutInterests 2, InData 3, OutData 4, InNacks 5, OutNacks 6, InSatisfiedInterests 7, \
         InTimedOutInterests 8, OutSatisfiedInterests 9, OutTimedOutInterests 10, SatisfiedInterests 11, \
         TimedOutInterests 12"
    );
}

#[test]
fn caches_count_by_period() {
    let mut caches = CacheTable::new(Vec::new(), SECOND);
    let mut counters = Counters::default();
    for (second, hits, misses) in [(1, 5, 1), (2, 7, 1)] {
        counters.content_store_hits = hits;
        counters.content_store_misses = misses;
        show(&mut caches, second * 1_000, 0, &counters);
    }
    let text = String::from_utf8(caches.finish().expect("memory takes everything"));
    let expected = "Time\tNode\tType\tPackets\t\n1\tr1\tCacheHits\t5\n1\tr1\tCacheMisses\t1\n2\tr1\tCacheHits\t2\n\
                    2\tr1\tCacheMisses\t0\n";
    assert_eq!(text.expect("text"), expected);
}

/// Two drops of 512 octets by queues: 0.8 · 2 / 0.5 = 3.2 a second, 1.6 KiB a second; losses on the way do not count.
#[test]
fn drops_are_those_of_queues() {
    let mut drops = DropTable::new(Vec::new(), DEFAULT_PERIOD);
    let frame = Bytes::from_static(&[0; 512]);
    for reason in [
        DropReason::QueueFull,
        DropReason::Loss,
        DropReason::ActiveQueue,
        DropReason::Down,
    ] {
        let kind = EventKind::Dropped(&frame, reason);
        let at = Instant::ZERO;
        drops.record(&Event {
            at,
            node: 0,
            face: 256,
            kind,
        });
    }
    show(&mut drops, 500, 0, &Counters::default());
    show(&mut drops, 1_000, 0, &Counters::default());
    let text = String::from_utf8(drops.finish().expect("memory takes everything"));
    let expected = "Time\tNode\tInterface\tType\tPackets\tKilobytes\tPacketsRaw\tKilobytesRaw\n\
                    0.5\tr1\tcombined\tDrop\t3.2\t1.6\t2\t1\n1\tr1\tcombined\tDrop\t0.64\t0.32\t0\t0\n";
    assert_eq!(text.expect("text"), expected);
}

/// What the tables say of a real run adds up to what its events and counters say.
#[test]
fn tables_of_a_run_add_up() {
    let mut network = overloaded();
    let names = names(&network);
    let rates = Rc::new(RefCell::new(RateTable::new(Vec::new(), DEFAULT_PERIOD)));
    let drops = Rc::new(RefCell::new(DropTable::new(Vec::new(), SECOND)));
    let csv = Rc::new(RefCell::new(CsvTrace::new(Vec::new(), names)));
    network.set_sink(Box::new(Tee(
        Tee(Rc::clone(&rates), Rc::clone(&drops)),
        Rc::clone(&csv),
    )));
    let mut shown = (Rc::clone(&rates), Rc::clone(&drops));
    // In two pieces that end between two samples.
    for end in [700, 2_000] {
        let end = at(Duration::from_millis(end));
        network.run_sampled(end, &mut [&mut shown.0, &mut shown.1]);
        assert_eq!(network.now(), end);
    }
    let incoming = network.node(3).counters().incoming;
    let consumer = network.node_name(3).to_owned();
    drop((network, shown));
    let finish = "memory takes everything";
    let rates = Rc::into_inner(rates)
        .expect("the only one left")
        .into_inner();
    let (_, rates) = table(rates.finish().expect(finish));
    let drops = Rc::into_inner(drops)
        .expect("the only one left")
        .into_inner();
    let (_, drops) = table(drops.finish().expect(finish));
    let csv = Rc::into_inner(csv).expect("the only one left").into_inner();
    let (_, events) = csv_rows(&csv.finish().expect(finish));

    let number = |text: &str| text.parse::<f64>().expect("a number");
    let sum = |rows: &[Vec<String>], kind: &str, column: usize| -> f64 {
        let rows = rows
            .iter()
            .filter(|row| row[1] == consumer && row[4] == kind);
        rows.map(|row| number(&row[column])).sum()
    };
    assert_eq!(consumer, "C1");
    // The consumer's router side and its application side both count.
    assert!((sum(&rates, "InData", 7) - incoming.data as f64).abs() < 0.5);
    assert!((sum(&rates, "InInterests", 7) - incoming.interests as f64).abs() < 0.5);
    let size: f64 = events
        .iter()
        .filter(|row| row[1] == consumer && row[3] == "received" && row[4] == "data")
        .map(|row| number(&row[6]))
        .sum();
    // Kilobytes have six digits.
    assert!((sum(&rates, "InData", 8) - size / 1024.0).abs() < 0.1);
    let times: Vec<_> = rates.iter().map(|row| row[0].as_str()).collect();
    assert!(
        ["0.5", "1", "1.5", "2"]
            .iter()
            .all(|time| times.contains(time))
    );
    // One row for each of four nodes and two seconds.
    assert_eq!(drops.len(), 8);
    let dropped: f64 = drops.iter().map(|row| number(&row[6])).sum();
    let events = events.iter().filter(|row| row[3] == "dropped").count();
    assert!((dropped - events as f64).abs() < 0.5 && events > 0);
}

#[test]
fn sampling_with_no_period_or_no_sampler_runs_on() {
    let mut network = overloaded();
    let mut never = DropTable::new(Vec::new(), Duration::ZERO);
    network.run_sampled(at(SECOND), &mut [&mut never]);
    network.run_sampled(at(2 * SECOND), &mut []);
    assert_eq!(network.now(), at(2 * SECOND));
    let written = never.finish().expect("memory takes everything");
    assert_eq!(table(written).1.len(), 0);
}
