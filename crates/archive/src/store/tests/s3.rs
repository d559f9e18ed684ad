//! A bucket of a server that speaks S3, through a relay that takes it away. `scripts/s3.sh` starts one and runs this.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;

/// Longest time that anything may take while the bucket is away, for which it is asked again and again: mostly some seconds.
const AWAY: Duration = Duration::from_mins(6);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run scripts/s3.sh"))
}

fn machine(spool: &TempDir, writer: u32) -> Config {
    Config {
        location: Location::parse(&variable("NAMECAST_S3_BUCKET"), spool.path()).unwrap(),
        ..config(spool, writer)
    }
}

/// Passes on to the server what comes to the address in `AWS_ENDPOINT`, until it is dropped.
async fn relay() -> JoinSet<()> {
    let near = variable("AWS_ENDPOINT");
    let near: SocketAddr = near.trim_start_matches("http://").parse().unwrap();
    let far: SocketAddr = variable("NAMECAST_S3_SERVER").parse().unwrap();
    let listener = TcpListener::bind(near).await.unwrap();
    let mut relay = JoinSet::new();
    relay.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut near, _)) = listener.accept().await {
            connections.spawn(async move {
                if let Ok(mut far) = TcpStream::connect(far).await {
                    drop(tokio::io::copy_bidirectional(&mut near, &mut far).await);
                }
            });
        }
    });
    relay
}

async fn read_all(archive: &Archive, positions: core::ops::Range<u64>) {
    for position in positions {
        assert_eq!(read(archive, position).await, Some(sample(position)));
    }
    assert_eq!(archive.counters().damaged, 0);
}

/// What one machine writes the other reads once it is sealed; a crash loses nothing that was synced; while the server is
/// away all goes on, and is made up for; what is too old goes from the bucket.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: scripts/s3.sh"]
async fn two_machines_share_a_bucket_through_a_crash_and_an_outage() {
    let server = relay().await;
    let [here, there] = [(); 2].map(|()| TempDir::new().unwrap());
    let one = Archive::open(machine(&here, 1), moment(START))
        .await
        .unwrap();
    let two = Archive::open(machine(&there, 2), moment(START))
        .await
        .unwrap();
    let writer = write(&one, 0..30).await;
    two.refresh(moment(START)).await.unwrap();
    read_all(&two, 0..5).await;
    assert_eq!(read(&two, 29).await, None);

    drop((writer, one));
    let one = Archive::open(machine(&here, 3), moment(START))
        .await
        .unwrap();
    one.maintain(at(30)).await.unwrap();
    two.refresh(moment(START)).await.unwrap();
    read_all(&two, 0..30).await;
    assert_eq!(files(here.path(), "open"), [] as [PathBuf; 0]);

    drop(server);
    let mut writer = Writer::new(one.clone());
    for position in 30..60 {
        let now = at(position);
        writer.append(now, &sample(position)).unwrap();
        writer.sync(now).await.unwrap();
    }
    writer.finish(at(60)).await.unwrap();
    let refused = timeout(AWAY, one.maintain(at(60))).await;
    refused.expect("in time").unwrap_err();
    assert_eq!(one.counters().store_failures, 1);
    read_all(&one, 30..60).await;
    let (class, sequence, _) = numbers(0);
    let fresh = Archive::open(machine(&TempDir::new().unwrap(), 4), moment(START));
    let _: Error = timeout(AWAY, fresh).await.expect("in time").unwrap_err();
    let old = timeout(AWAY, two.sample(&rung(), class, sequence)).await;
    old.expect("in time").unwrap_err();
    assert_eq!(two.counters().damaged, 0);

    let _server = relay().await;
    one.maintain(at(61)).await.unwrap();
    two.refresh(moment(START)).await.unwrap();
    read_all(&two, 0..60).await;
    let config = Config {
        retention: keep(Duration::ZERO),
        ..machine(&here, 5)
    };
    let last = Archive::open(config, moment(START)).await.unwrap();
    assert_eq!(last.figures().chunks, two.figures().chunks);
    last.maintain(moment(captured_at(60) + Duration::from_secs(60)))
        .await
        .unwrap();
    two.refresh(moment(START)).await.unwrap();
    assert_eq!(two.figures().chunks, 0);
    assert_eq!(read(&two, 0).await, None);
}
