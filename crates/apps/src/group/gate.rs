//! Membership of a group, which its owner decides.

use std::collections::BTreeSet;

use namecast_packet::{Data, Name};

use crate::Now;
use crate::trust::{Judgement, Moment, Roster, SharedChains};

/// Judgements that a group leaves to its owner.
pub trait Gate: Send {
    /// Returns whether `member` belongs to the group. Entries of others are ignored.
    fn is_member(&self, member: &Name) -> bool;

    /// Returns whether the signature of `data` counts: a publication or answer of a member is to be signed by that member, and the Data of a Sync
    /// Interest, whose name is the group's and any last component, by any member.
    fn accepts(&self, now: Now, data: &Data) -> bool;

    /// Returns the X25519 keys of the members who may open sealed publications. Without an implementation, nobody may.
    fn readers(&self, _: Now) -> BTreeSet<[u8; 32]> {
        BTreeSet::new()
    }
}

/// Gate of a room: members are those of its roster whose keys were not revoked, and its schema says whose signatures count.
///
/// The group's name is the room's root. Pass a new gate to [`Group::set_gate`](super::Group::set_gate) for each new version of the roster.
#[derive(Debug)]
pub struct RoomGate {
    chains: SharedChains,
    roster: Roster,
    members: BTreeSet<Name>,
}

impl RoomGate {
    /// Lets in the members of `roster`, and judges by `chains`.
    pub fn new(chains: SharedChains, roster: Roster) -> Self {
        let revoked = roster.revoked();
        let members = roster.members.iter();
        let members = members.filter(|it| !revoked.contains_key(&it.key_digest));
        Self {
            chains,
            members: members.map(|it| it.identity().detached()).collect(),
            roster,
        }
    }
}

impl Gate for RoomGate {
    fn is_member(&self, member: &Name) -> bool {
        self.members.contains(member)
    }

    fn accepts(&self, now: Now, data: &Data) -> bool {
        let moment = Moment::Live(now.wall);
        let judgement = self.chains.with(|chains| chains.judge(data, moment));
        matches!(judgement, Judgement::Accepted { .. })
    }

    fn readers(&self, now: Now) -> BTreeSet<[u8; 32]> {
        self.roster.readers(now.wall)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use namecast_packet::signature::KeyPair;
    use namecast_packet::{Certificate, Packet};
    use namecast_units::Timestamp;

    use super::*;
    use crate::fixtures::{WALL, member, name, now as at, pair, validity};
    use crate::group::{Group, GroupConfig, Status};
    use crate::trust::schema::{Limits, Schema};
    use crate::trust::template::Template;
    use crate::trust::{Anchor, ChainConfig, Chains, Revocation};
    use crate::{Application, Output, face};

    const ROOT: &str = "/calls/fox";

    fn anchor() -> Certificate {
        let root = name(ROOT);
        Certificate::self_signed(&root, b"1", 1, validity(), &pair(1, &root))
    }

    fn certificate(id: &str, seed: u8) -> Certificate {
        let uri = name(&format!("{ROOT}/{id}/KEY/1/fox/v=1"));
        let key = pair(seed, &uri).public_key();
        let issuer = pair(1, anchor().name());
        Certificate::issue(uri, &key, validity(), &[], &issuer).unwrap()
    }

    const IDS: [(&str, u8); 3] = [("ann", 2), ("bob", 3), ("eve", 4)];

    /// Chains of the room's template, with everybody's certificates; Eve's key was revoked.
    fn gate() -> RoomGate {
        let rules = Template::Call.rules(&name(ROOT));
        let schema = Arc::new(Schema::compile(&rules, &Limits::default()).unwrap());
        let anchor = Anchor::Certificate(Box::new(anchor()));
        let mut chains = Chains::new(schema, 1, anchor, ChainConfig::default());
        let mut roster = Roster::default();
        for (id, seed) in IDS {
            let certificate = certificate(id, seed);
            chains.offer(certificate.data().clone()).unwrap();
            roster.members.push(member(&certificate));
        }
        roster.revocations.push(Revocation {
            key_digest: pair(4, &name("/")).public_key().digest(),
            since: Timestamp::from_micros(WALL),
            certificate: Name::root(),
        });
        chains.set_revoked(1, roster.revoked()).unwrap();
        RoomGate::new(SharedChains::new(chains), roster)
    }

    fn group(id: &str, seed: u8) -> Group {
        let config = GroupConfig {
            group: name(ROOT),
            member: name(&format!("{ROOT}/{id}")),
            status: Status::default(),
            sealing: None,
            seed: seed.into(),
        };
        let signer = pair(seed, certificate(id, seed).name());
        Group::new(config, Box::new(gate()), Box::new(signer))
    }

    /// Ann and Bob see each other by the template's rules. Eve's key was revoked, and Bob's key cannot sign for Ann.
    #[test]
    fn the_members_of_a_room_see_each_other() {
        let mut groups = IDS.map(|(id, seed)| group(id, seed));
        let mut flying: Vec<(usize, Bytes)> = Vec::new();
        for millis in 0..3_000 {
            for (from, frame) in core::mem::take(&mut flying) {
                let others = groups.iter_mut().enumerate();
                for (_, group) in others.filter(|(to, _)| *to != from) {
                    // Interests for others' names are ignored, and Data that nobody requested are dropped.
                    group.handle_frame(at(millis), frame.clone());
                }
            }
            for (from, group) in groups.iter_mut().enumerate() {
                group.handle_timeout(at(millis));
                while let Some(output) = group.poll_output() {
                    if let Output::Send(frame) = output {
                        flying.push((from, frame));
                    }
                }
            }
        }
        let here = groups
            .each_ref()
            .map(|it| it.here().cloned().collect::<Vec<_>>());
        assert_eq!(here[0], [name("/calls/fox/bob")]);
        assert_eq!(here[1], [name("/calls/fox/ann")]);
        let counters = groups[0].counters();
        assert!(counters.0.forged > 0, "{counters:?}");

        let gate = gate();
        let [ann, bob] = [("ann", 2), ("bob", 3)].map(|(id, seed)| {
            let signer = pair(seed, certificate(id, seed).name());
            move |uri: &str| Data::builder(name(uri)).content("").sign(&signer)
        });
        let publication = "/calls/fox/ann/calls/fox/t=1/seq=1";
        assert!(gate.accepts(at(0), &ann(publication)));
        assert!(!gate.accepts(at(0), &bob(publication)));
        let answer = "/calls/fox/ann/calls/fox/32=metadata/v=1";
        assert!(gate.accepts(at(0), &ann(answer)));
        assert!(!gate.accepts(at(0), &bob(answer)));
        assert!(gate.accepts(at(0), &bob("/calls/fox/v=3")));
        // All frames carry Data or an Interest.
        for (_, frame) in flying {
            assert!(matches!(
                face::open(frame),
                Ok(Some((Packet::Data(_) | Packet::Interest(_), _)))
            ));
        }
    }
}
