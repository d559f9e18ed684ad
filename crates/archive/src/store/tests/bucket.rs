//! Machines that share a bucket. The bucket is a directory reached by URL, which is an object store like any other.

use super::*;

/// A machine's view of the bucket: what it has not sealed is on its own disk.
fn machine(bucket: &TempDir, spool: &TempDir, writer: u32) -> Config {
    let url = format!("file://{}/cams", bucket.path().display());
    Config {
        location: Location::parse(&url, spool.path()).unwrap(),
        ..config(bucket, writer)
    }
}

/// One machine writes what another reads: nothing before it is sealed, all of it after, and the bucket holds sealed
/// chunks and their indexes only.
#[tokio::test]
async fn what_one_machine_sealed_the_other_reads() {
    let [bucket, here, there] = [(); 3].map(|()| TempDir::new().unwrap());
    let one = Archive::open(machine(&bucket, &here, 1), moment(START))
        .await
        .unwrap();
    let two = Archive::open(machine(&bucket, &there, 2), moment(START))
        .await
        .unwrap();
    let writer = write(&one, 0..30).await;
    two.refresh(moment(START)).await.unwrap();
    assert_eq!(read(&one, 29).await, Some(sample(29)));
    assert_eq!(read(&two, 29).await, None);
    assert_eq!(files(here.path(), "open").len(), 1);

    writer.finish(at(30)).await.unwrap();
    one.maintain(at(30)).await.unwrap();
    two.refresh(moment(START)).await.unwrap();
    for archive in [&one, &two] {
        for position in 0..30 {
            assert_eq!(read(archive, position).await, Some(sample(position)));
        }
        assert_eq!(archive.counters().damaged, 0);
    }
    assert_eq!(files(here.path(), "open"), [] as [PathBuf; 0]);
    let chunks = files(bucket.path(), "chunk");
    assert_eq!(chunks.len() as u64, one.counters().sealed);
    assert_eq!(files(bucket.path(), "index").len(), chunks.len());
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk.parent().unwrap().ends_with("cams/demo"))
    );
}

/// A machine that crashed finds what it had not sealed on its own disk, and seals it.
#[tokio::test]
async fn what_a_crash_left_on_a_machine_reaches_the_bucket() {
    let [bucket, here, there] = [(); 3].map(|()| TempDir::new().unwrap());
    let crashed = Archive::open(machine(&bucket, &here, 1), moment(START))
        .await
        .unwrap();
    drop(write(&crashed, 0..3).await);
    drop(crashed);
    let again = Archive::open(machine(&bucket, &here, 2), moment(START))
        .await
        .unwrap();
    again.maintain(at(3)).await.unwrap();
    let two = Archive::open(machine(&bucket, &there, 3), moment(START))
        .await
        .unwrap();
    for position in 0..3 {
        assert_eq!(read(&two, position).await, Some(sample(position)));
    }
}

/// A bucket that cannot be written to keeps nothing from being read, and gets everything once it can.
#[tokio::test]
async fn an_unreachable_bucket_loses_nothing() {
    let [bucket, here] = [(); 2].map(|()| TempDir::new().unwrap());
    let archive = Archive::open(machine(&bucket, &here, 1), moment(START))
        .await
        .unwrap();
    let place = bucket.path().join("cams");
    // A file stands where the bucket's directory would be.
    fs::write(&place, "").unwrap();
    let writer = write_unmaintained(&archive, 0..30).await;
    writer.finish(at(30)).await.unwrap();
    archive.maintain(at(30)).await.unwrap_err();
    assert_eq!(archive.counters().store_failures, 1);
    assert_eq!(read(&archive, 0).await, Some(sample(0)));

    fs::remove_file(&place).unwrap();
    archive.maintain(at(31)).await.unwrap();
    assert_eq!(files(here.path(), "open"), [] as [PathBuf; 0]);
    for position in 0..30 {
        assert_eq!(read(&archive, position).await, Some(sample(position)));
    }
}

/// Writes samples that nobody seals.
async fn write_unmaintained(archive: &Archive, positions: core::ops::Range<u64>) -> Writer {
    let mut writer = Writer::new(archive.clone());
    for position in positions {
        writer.append(at(position), &sample(position)).unwrap();
    }
    writer.sync(at(0)).await.unwrap();
    writer
}

#[test]
fn an_address_that_is_none_is_refused() {
    let spool = TempDir::new().unwrap();
    let error = Location::parse("s3://", spool.path()).and_then(|at| at.open(&name("/demo")));
    assert!(error.unwrap_err().to_string().contains("s3://"));
    let error = Location::parse("://bucket", spool.path()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("'://bucket' is neither a directory nor"),
        "{error}"
    );
}
