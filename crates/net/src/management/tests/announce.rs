//! `rib/announce`.

use std::time::Duration;

use bytes::Bytes;
use namecast_forward::{Config, LearningConfig};
use namecast_packet::signature::{DigestSigner, Ed25519Signer, KeyPair, Signer};
use namecast_packet::{Interest, KeyLocator, Nonce, PrefixAnnouncement, Validity};
use namecast_units::Timestamp;

use super::super::{ControlParameters, ControlResponse};
use super::{about, assert_done, exchange, name, routes, verdict};
use crate::{ApplicationFace, Clock, Node, NodeConfig, RouteStatus, key_store};

const HOUR: Duration = Duration::from_secs(3_600);

/// Announces as ndn-cxx does: the announcement is the signed Interest's ApplicationParameters.
async fn announce(
    face: &mut ApplicationFace,
    prefix: &str,
    signer: &dyn Signer,
) -> ControlResponse {
    let announcement = PrefixAnnouncement::sign(&name(prefix), 1, HOUR, None, signer);
    announce_signed(face, &announcement).await
}

async fn announce_signed(
    face: &mut ApplicationFace,
    announcement: &PrefixAnnouncement,
) -> ControlResponse {
    let mut info = DigestSigner.info();
    info.nonce = Some(Bytes::copy_from_slice(&key_store::random::<8>()));
    info.time = Some(Duration::from_micros(Clock::new().wall().as_micros()));
    let command = Interest::builder(name("/localhost/nfd/rib/announce"))
        .parameters(announcement.data().wire().clone())
        .sign(Nonce(key_store::random()), &DigestSigner, &info);
    exchange(face, &command).await
}

#[tokio::test]
async fn an_announcement_makes_a_route_that_ends_with_it() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let id = face.id().number();
    let response = announce(&mut face, "/a", &DigestSigner).await;
    let expected = ControlParameters {
        face: Some(id),
        origin: Some(129),
        cost: Some(2_048),
        flags: Some(1),
        expiration: Some(HOUR),
        ..about("/a")
    };
    assert_done(&response, &expected);
    let route = RouteStatus {
        prefix: "/a".to_owned(),
        face: id,
        cost: 2_048,
    };
    assert_eq!(routes(&node).await, [route]);
    let long = announce(&mut face, &"/a".repeat(33), &DigestSigner).await;
    assert_eq!(long.code, 414);
}

/// Of an announcement that holds for an hour but is valid for a minute or two more, the latter counts; one that is not
/// valid any more makes no route.
#[tokio::test]
async fn a_period_of_validity_is_respected() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let now = node.clock().wall();
    let hour_ago = Timestamp::from_micros(now.as_micros() - 3_600_000_000);
    let within = |not_after| {
        let validity = Validity {
            not_before: hour_ago,
            not_after,
        };
        PrefixAnnouncement::sign(&name("/a"), 1, HOUR, Some(validity), &DigestSigner)
    };
    let past = within(hour_ago + Duration::from_secs(60));
    let response = announce_signed(&mut face, &past).await;
    assert_eq!(
        verdict(&response),
        (403, "the announcement is not valid now")
    );
    assert_eq!(routes(&node).await, []);
    let status = node.status().await.unwrap();
    assert_eq!(status.announcements_out_of_period, 1);
    let short = within(now + Duration::from_secs(120));
    let response = announce_signed(&mut face, &short).await;
    let left = response.parameters.expiration.unwrap();
    assert!(
        left > Duration::ZERO && left <= Duration::from_secs(121),
        "{left:?}"
    );
    assert_eq!(routes(&node).await.len(), 1);
}

#[tokio::test]
async fn with_keys_only_their_owners_announce() {
    let signer = |seed| {
        let locator = KeyLocator::Name(name("/k"));
        Ed25519Signer::from_seed([seed; 32], locator)
    };
    let learning = LearningConfig {
        keys: vec![signer(1).public_key()],
        ..LearningConfig::default()
    };
    let node = Node::start(NodeConfig {
        forwarder: Config {
            learning,
            ..Config::default()
        },
        ..NodeConfig::default()
    });
    let mut face = node.application_face().await.unwrap();
    let response = announce(&mut face, "/a", &signer(2)).await;
    let expected = (403, "the announcement's signer may not announce");
    assert_eq!(verdict(&response), expected);
    assert_eq!(routes(&node).await, []);
    assert_eq!(announce(&mut face, "/a", &signer(1)).await.code, 200);
    assert_eq!(routes(&node).await.len(), 1);
}
