//! A member of a group at a forwarder, for other implementations of State Vector Sync v3 to meet:
//! `cargo run -p namecast-net --example group -- /run/nfd/nfd.sock /demo/group /demo/group/ann 3`
//!
//! Publishes a number of times, and prints the state vector after each change. Signatures are digests.

use std::{collections::BTreeSet, env, error::Error, time::Duration};

use namecast_apps::Now;
use namecast_apps::group::{Gate, Group, GroupConfig, Status};
use namecast_net::{FaceUri, Node, NodeConfig, drive};
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Data, Name};

/// Lets in everybody.
struct Open;

impl Gate for Open {
    fn is_member(&self, _: &Name) -> bool {
        true
    }

    fn accepts(&self, _: Now, _: &Data) -> bool {
        true
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [socket, group, member, publications] = &arguments[..] else {
        return Err("expected SOCKET GROUP MEMBER PUBLICATIONS".into());
    };
    let publications: u64 = publications.parse()?;
    let config = GroupConfig {
        group: group.parse()?,
        member: member.parse()?,
        status: Status::default(),
        sealing: None,
        seed: u64::from_le_bytes(namecast_net::random()),
    };

    let node = Node::start(NodeConfig::default());
    let uplink = node.connect(FaceUri::Unix(socket.into())).await?;
    let face = node.application_face().await?;
    node.add_route(Name::root(), uplink, 0).await?;
    let mut registrations = Vec::new();
    for prefix in Group::prefixes(&config) {
        // State vectors go both ways.
        node.add_route(prefix.clone(), face.id(), 0).await?;
        node.add_route(prefix.clone(), uplink, 0).await?;
        registrations.push(node.register_prefix(uplink, prefix, 0));
    }

    let group = Group::new(config, Box::new(Open), Box::new(DigestSigner));
    let (group, mut events) = drive(node.clock(), face, group).spawn(|| {});
    tokio::spawn(async move { while events.recv().await.is_some() {} });
    let (mut published, mut printed) = (1, String::new());
    loop {
        let (line, is_published) = group
            .call(move |group, now| {
                let is_due = published < publications;
                let is_published = is_due && group.send(now, "hello").is_ok();
                let entries = group.vector().entries();
                let parts = entries.map(|(member, _, number)| format!(" {member}={number}"));
                let sorted: BTreeSet<String> = parts.collect();
                (sorted.into_iter().collect::<String>(), is_published)
            })
            .await
            .ok_or("the node stopped")?;
        published += u64::from(is_published);
        if line != printed {
            println!("vector{line}");
            printed = line;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
