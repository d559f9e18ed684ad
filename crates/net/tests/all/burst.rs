//! Many packets at once over UDP: all are accounted for.

use crate::common::{answer, data_of, interest, loopback, name, produce, soon, start, status_with};
use namecast_net::NodeStatus;
use std::time::Duration;

const PACKETS: u64 = 2_000;

/// Packets that got lost on the way to `receiver`, as far as it and the sender know.
fn lost(sender: &NodeStatus, receiver: &NodeStatus) -> u64 {
    let links = sender.link_drops.values().sum::<u64>() + receiver.link_drops.values().sum::<u64>();
    let kernel: u64 = receiver
        .listeners
        .iter()
        .filter_map(|listener| listener.kernel_drops)
        .sum();
    links + kernel
}

/// Interests go out as fast as they can be made; each arrives or is counted as lost.
#[tokio::test]
async fn a_burst_arrives_or_is_counted_as_lost() {
    let (sender, receiver) = (start(), start());
    let listener = receiver.listen_udp(loopback()).await.unwrap();
    let face = sender.connect(listener.uri().clone()).await.unwrap();
    sender.add_route(name("/burst"), face, 0).await.unwrap();
    let application = sender.application_face().await.unwrap();
    let (application, _answers) = application.split();
    let burst: Vec<_> = (0..PACKETS)
        .map(|index| interest(name(&format!("/burst/{index}")), Duration::from_secs(60)))
        .collect();
    for batch in burst.chunks(100) {
        application.send_batch(batch.to_vec()).await.unwrap();
    }
    let received = status_with(&sender, "all sent", |status| {
        status.outgoing.interests >= PACKETS
    })
    .await;
    assert_eq!(received.outgoing.interests, PACKETS);
    let accounted = async {
        loop {
            let at_receiver = receiver.status().await.unwrap();
            let at_sender = sender.status().await.unwrap();
            let sum = at_receiver.incoming.interests + lost(&at_sender, &at_receiver);
            if sum >= PACKETS {
                return (sum, at_receiver.incoming.interests);
            }
            tokio::task::yield_now().await;
        }
    };
    let (sum, arrived) = soon("every packet is accounted for", accounted).await;
    assert_eq!(sum, PACKETS);
    assert!(arrived > 0);
}

/// With no more than 64 requests under way, nothing gets lost: buffers hold more than that.
#[tokio::test]
async fn a_paced_stream_loses_nothing() {
    const WINDOW: u64 = 64;
    let (consumer, producer) = (start(), start());
    produce(&producer, "/stream", 1_000).await;
    let listener = producer.listen_udp(loopback()).await.unwrap();
    let face = consumer.connect(listener.uri().clone()).await.unwrap();
    consumer.add_route(name("/stream"), face, 0).await.unwrap();
    let mut application = consumer.application_face().await.unwrap();
    let ask = |index: u64| interest(name(&format!("/stream/{index}")), Duration::from_secs(60));
    for index in 0..WINDOW {
        application.send(ask(index)).await.unwrap();
    }
    for index in WINDOW..PACKETS + WINDOW {
        let frame = soon("Data", application.recv()).await.unwrap();
        assert!(data_of(frame).is_some());
        if index < PACKETS {
            application.send(ask(index)).await.unwrap();
        }
    }
    let status = consumer.status().await.unwrap();
    assert_eq!(status.satisfied, PACKETS);
    assert!(status.link_drops.is_empty(), "{status:?}");
}

/// Two applications of one node that ask for the same get one packet between them.
#[tokio::test]
async fn equal_interests_leave_the_node_once() {
    let (consumer, producer) = (start(), start());
    let listener = producer.listen_udp(loopback()).await.unwrap();
    let face = consumer.connect(listener.uri().clone()).await.unwrap();
    consumer.add_route(name("/one"), face, 0).await.unwrap();
    let mut application = producer.application_face().await.unwrap();
    producer
        .add_route(name("/one"), application.id(), 0)
        .await
        .unwrap();
    let mut first = consumer.application_face().await.unwrap();
    let mut second = consumer.application_face().await.unwrap();
    for watcher in [&first, &second] {
        let wanted = interest(name("/one/x"), Duration::from_secs(60));
        watcher.send(wanted).await.unwrap();
    }
    status_with(&consumer, "aggregated", |status| status.aggregated == 1).await;
    let asked = soon("Interest", application.recv()).await.unwrap();
    application.send(answer(asked, 10).unwrap()).await.unwrap();
    for watcher in [&mut first, &mut second] {
        let frame = soon("Data", watcher.recv()).await.unwrap();
        assert_eq!(data_of(frame).unwrap().name(), &name("/one/x"));
    }
    assert_eq!(producer.status().await.unwrap().outgoing.data, 1);
}
