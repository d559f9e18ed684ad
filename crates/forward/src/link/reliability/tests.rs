use std::collections::{BTreeMap, BTreeSet};

use namecast_units::Random;

use core::time::Duration;

use namecast_units::ByteSize;

use super::*;

const fn ms(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// Piece `index` of `count` of a packet whose first Sequence is `first`.
fn piece(first: u64, index: u64, count: u64) -> LpPacket {
    LpPacket {
        sequence: Some(first.wrapping_add(index)),
        fragment_index: index,
        fragment_count: (count > 1).then_some(count),
        fragment: Some(Bytes::from(vec![7; 100])),
        ..LpPacket::default()
    }
}

fn decode(frame: Bytes) -> LpPacket {
    LpPacket::decode(frame).unwrap()
}

/// What Acks tell.
fn acks(numbers: &[u64]) -> LpPacket {
    LpPacket {
        acks: numbers.to_vec(),
        ..LpPacket::default()
    }
}

/// One end, whose peer is known to acknowledge.
fn end() -> Reliability {
    let mut this = Reliability::new(ReliabilityConfig::default(), Some(1_400));
    this.sender.hear_peer();
    this
}

/// Sends a packet of `count` fragments at `now`; returns their TxSequences.
fn send(this: &mut Reliability, now: Instant, first: u64, count: u64) -> Vec<u64> {
    (0..count)
        .map(|index| {
            decode(this.send(now, piece(first, index, count)))
                .tx_sequence
                .unwrap()
        })
        .collect()
}

/// What it sends by itself at `now`.
fn outputs(this: &mut Reliability, now: Instant) -> Vec<LpPacket> {
    core::iter::from_fn(|| this.poll_output(now))
        .map(decode)
        .collect()
}

/// Sequences and TxSequences of what it sends again at `now`.
fn again(this: &mut Reliability, now: Instant) -> Vec<(u64, u64)> {
    let outputs = outputs(this, now);
    let numbers = outputs
        .iter()
        .map(|p| (p.sequence.unwrap(), p.tx_sequence.unwrap()));
    numbers.collect()
}

#[test]
fn the_third_ack_for_later_ones_loses_a_transmission() {
    let mut this = end();
    assert_eq!(send(&mut this, ms(0), 50, 7), [0, 1, 2, 3, 4, 5, 6]);
    // 0 arrived, 1 and 5 did not; 5 has one later one only.
    for ack in [0, 2, 3] {
        this.handle_packet(ms(40), &acks(&[ack]));
        assert_eq!(again(&mut this, ms(40)), []);
    }
    this.handle_packet(ms(40), &acks(&[3, 3, 4]));
    assert_eq!(again(&mut this, ms(40)), [(51, 7)]);
    this.handle_packet(ms(41), &acks(&[6]));
    assert_eq!(again(&mut this, ms(41)), []);
    // The retransmission's Ack and two more make three for 5.
    this.handle_packet(ms(80), &acks(&[7]));
    send(&mut this, ms(80), 57, 1);
    this.handle_packet(ms(120), &acks(&[8]));
    assert_eq!(again(&mut this, ms(120)), [(55, 9)]);
    this.handle_packet(ms(160), &acks(&[9]));
    assert_eq!((this.poll_timeout(), this.sender.sizes().0), (None, 0));
    assert_eq!(this.sender.sizes().1, 0);
    let counters = this.counters();
    assert_eq!((counters.acknowledged, counters.retransmitted), (8, 2));
}

/// 40 ms give an RTO of 40 + 4 · 20 = 120 ms.
#[test]
fn the_last_ones_are_lost_when_their_time_is_up() {
    let mut this = end();
    send(&mut this, ms(0), 0, 1);
    this.handle_packet(ms(40), &acks(&[0]));
    send(&mut this, ms(100), 1, 2);
    assert_eq!(this.poll_timeout(), Some(ms(220)));
    this.handle_timeout(ms(219));
    assert_eq!(again(&mut this, ms(219)), []);
    this.handle_timeout(ms(220));
    assert_eq!(again(&mut this, ms(220)), [(1, 3), (2, 4)]);
    // In silence the time doubles, and an Ack ends that: 40 ms again give 40 + 4 · 15 = 100 ms.
    assert_eq!(this.poll_timeout(), Some(ms(220 + 240)));
    this.handle_packet(ms(260), &acks(&[3]));
    assert_eq!(this.poll_timeout(), Some(ms(320)));
}

/// An Ack for a transmission that counts as lost tells that the fragment is there, and how long the link really takes.
#[test]
fn a_late_ack_is_worth_as_much_as_one_in_time() {
    let mut this = end();
    send(&mut this, ms(0), 0, 1);
    this.handle_timeout(ms(250));
    assert_eq!(again(&mut this, ms(250)), [(0, 1)]);
    this.handle_packet(ms(400), &acks(&[0]));
    assert_eq!(
        (this.poll_timeout(), this.counters().acknowledged),
        (None, 1)
    );
    // 400 + 4 · 200, of which the bound allows 1000; a second such sample 400 + 4 · 150.
    send(&mut this, ms(1_000), 1, 1);
    assert_eq!(this.poll_timeout(), Some(ms(2_200)));
    this.handle_packet(ms(1_400), &acks(&[2]));
    send(&mut this, ms(2_000), 2, 1);
    assert_eq!(this.poll_timeout(), Some(ms(3_000)));
}

/// A fragment that does not arrive in 1 + 7 transmissions takes its packet along, and no other.
#[test]
fn a_packet_is_given_up_with_its_fragments_after_so_many_retransmissions() {
    let mut this = end();
    send(&mut this, ms(0), 0, 3);
    let other = send(&mut this, ms(0), 3, 1);
    this.handle_packet(ms(10), &acks(&other));
    let (mut now, mut transmissions) = (ms(10), 3);
    let mut next = 4;
    loop {
        now += Duration::from_millis(1);
        this.handle_timeout(now);
        for (sequence, transmission) in again(&mut this, now) {
            transmissions += 1;
            next = next.max(transmission + 1);
            assert!(sequence < 3);
            // The peer lives, and lacks the second fragment alone.
            if sequence != 1 {
                this.handle_packet(now, &acks(&[transmission]));
            }
        }
        // Something else keeps the link busy.
        if this.sender.sizes().0 == 0 {
            break;
        }
        assert!(now < ms(10_000));
    }
    assert_eq!(this.take_given_up(), 1);
    assert_eq!(this.take_given_up(), 0);
    assert_eq!((transmissions, next), (3 + 7 + 2, 4 + 7 + 2));
    assert_eq!(
        (this.poll_timeout(), this.sender.sizes().2),
        (None, ByteSize::ZERO)
    );
}

#[test]
fn acks_travel_on_frames_that_have_room_or_alone_after_their_time() {
    let mut this = end();
    let arriving = |sequence| LpPacket {
        tx_sequence: Some(sequence + 1_000),
        ..piece(sequence, 0, 1)
    };
    assert!(this.handle_packet(ms(0), &arriving(0)));
    assert!(this.handle_packet(ms(3), &arriving(1)));
    assert_eq!(this.poll_timeout(), Some(ms(5)));
    assert_eq!(outputs(&mut this, ms(4)), []);
    assert_eq!(outputs(&mut this, ms(5)), [acks(&[1_000, 1_001])]);
    assert_eq!(
        (this.poll_timeout(), outputs(&mut this, ms(50))),
        (None, vec![])
    );
    // A small frame has room, a full one has not.
    assert!(this.handle_packet(ms(60), &arriving(2)));
    let full = LpPacket {
        fragment: Some(Bytes::from(vec![0; 1_400 - 4 - 10 - 12 - 4])),
        ..piece(0, 0, 1)
    };
    let full = this.send(ms(60), full);
    assert_eq!((full.len(), decode(full).acks), (1_400, vec![]));
    assert_eq!(decode(this.send(ms(61), piece(1, 0, 1))).acks, [1_002]);
    assert_eq!(this.counters().ack_frames, 1);
    // What repeats is acknowledged again and told apart; packets without fragment are not acknowledged.
    assert!(!this.handle_packet(ms(62), &arriving(2)));
    let bare = LpPacket {
        fragment: None,
        ..arriving(9)
    };
    assert!(this.handle_packet(ms(62), &bare));
    assert_eq!(outputs(&mut this, ms(67)), [acks(&[1_002])]);
}

/// 1400 octets hold 116 Acks: (1400 − 4) / 12. As many are sent at once, so that no more ever wait.
#[test]
fn acks_that_fill_a_frame_do_not_wait() {
    let mut this = end();
    for number in 0..300 {
        let arriving = LpPacket {
            tx_sequence: Some(number),
            ..piece(number, 0, 1)
        };
        this.handle_packet(ms(0), &arriving);
        for packet in outputs(&mut this, ms(0)) {
            assert_eq!(packet.acks.len(), 116);
            assert!(packet.encode_whole().len() <= 1_400);
        }
    }
    assert_eq!(
        (this.receiver.sizes().0, this.counters().ack_frames),
        (300 - 232, 2)
    );
}

/// A fragment of 1300 octets is worth 1300 / 256 = 5 more sayings of its Ack, one of 100 none.
#[test]
fn acks_of_large_fragments_are_said_again_once_a_copy_has_come() {
    let mut this = end();
    let answers = |this: &mut Reliability, sequence, transmission, length| {
        let now = 5 * transmission;
        let arriving = LpPacket {
            tx_sequence: Some(transmission),
            fragment: Some(Bytes::from(vec![7; length])),
            ..piece(sequence, 0, 1)
        };
        this.handle_packet(ms(now), &arriving);
        let answers = outputs(this, ms(now + 5));
        let answers = answers.into_iter().map(|packet| packet.acks);
        answers.flatten().collect::<Vec<u64>>()
    };
    for number in 0..3 {
        assert_eq!(answers(&mut this, number, number, 1_300), [number]);
    }
    // The second one again.
    assert_eq!(answers(&mut this, 1, 10, 1_300), [10]);
    assert_eq!(answers(&mut this, 11, 11, 100), [10, 11]);
    assert_eq!(answers(&mut this, 12, 12, 1_300), [10, 12]);
    assert_eq!(answers(&mut this, 13, 13, 100), [10, 12, 13]);
    assert_eq!(answers(&mut this, 14, 14, 100), [10, 12, 14]);
    assert_eq!(answers(&mut this, 15, 15, 100), [10, 12, 15]);
    assert_eq!(answers(&mut this, 16, 16, 100), [12, 16]);
    // A frame of the other way takes what it has room for, here two; by itself none is sent for their sake.
    for number in 20..22 {
        answers(&mut this, number, number, 1_300);
    }
    let nearly_full = LpPacket {
        fragment: Some(Bytes::from(vec![0; 1_400 - 4 - 10 - 12 - 4 - 2 - 2 * 12])),
        ..piece(0, 0, 1)
    };
    let frame = decode(this.send(ms(200), nearly_full));
    assert_eq!(frame.acks, [20, 21]);
    assert_eq!(
        (this.poll_timeout(), this.receiver.sizes().1),
        (Some(ms(450)), 2)
    );
    // None after a thousand fragments without a copy.
    let last: Vec<_> = (100..1_110)
        .map(|number| answers(&mut this, number, number, 1_300))
        .collect();
    assert!(last[..990].iter().skip(5).all(|acks| acks.len() == 6));
    assert_eq!(last[1_009], [1_109]);
    assert_eq!(this.receiver.sizes().1, 0);
}

/// Frames back that are lost, up to five in a row, lose no Ack, as each is in six; a sixth loses that of the first fragment.
#[test]
fn a_burst_of_lost_frames_of_acks_sends_nothing_again() {
    for burst in 0..=8 {
        let (mut this, mut peer) = (end(), end());
        let mut repeated = BTreeSet::new();
        for number in 0..40 {
            let now = ms(number * 8);
            let big = LpPacket {
                fragment: Some(Bytes::from(vec![7; 1_300])),
                ..piece(number, 0, 1)
            };
            let frame = decode(this.send(now, big));
            if number == 0 {
                peer.handle_packet(now, &frame);
            }
            peer.handle_packet(now, &frame);
            for answer in outputs(&mut peer, now + Duration::from_millis(5)) {
                if !(20..20 + burst).contains(&number) {
                    this.handle_packet(now, &answer);
                }
            }
            let again = again(&mut this, now);
            repeated.extend(again.into_iter().map(|(sequence, _)| sequence));
        }
        let expected = 20..20 + burst.saturating_sub(5);
        assert!(
            repeated.iter().copied().eq(expected),
            "{burst}: {repeated:?}"
        );
    }
}

#[test]
fn no_frame_exceeds_the_mtu() {
    for mtu in [64, 100, 130, 300, 1_400] {
        let mut this = Reliability::new(ReliabilityConfig::default(), Some(mtu));
        for length in 1..=mtu - 30 {
            for number in 0..3 {
                let arriving = LpPacket {
                    tx_sequence: Some(number),
                    ..piece(length as u64 * 3 + number, 0, 1)
                };
                this.handle_packet(ms(0), &arriving);
            }
            let piece = LpPacket {
                fragment: Some(Bytes::from(vec![0; length])),
                ..piece(length as u64, 0, 1)
            };
            assert!(this.send(ms(0), piece).len() <= mtu, "{mtu} {length}");
        }
        assert!(
            outputs(&mut this, ms(5))
                .iter()
                .all(|p| p.encode_whole().len() <= mtu)
        );
    }
}

/// A peer that never acknowledged is sent nothing twice, and costs no memory for longer than an RTO.
#[test]
fn a_peer_that_does_not_speak_it_is_not_disturbed() {
    let mut this = Reliability::new(ReliabilityConfig::default(), Some(1_400));
    for number in 0..5 {
        send(&mut this, ms(number), number, 1);
    }
    let plain = LpPacket::carrying(Bytes::from_static(&[6, 0]));
    assert!(this.handle_packet(ms(10), &plain));
    this.handle_timeout(ms(300));
    assert_eq!(outputs(&mut this, ms(300)), []);
    assert_eq!((this.sender.sizes().0, this.poll_timeout()), (0, None));
    assert_eq!((this.counters().unwatched, this.take_given_up()), (5, 0));
    // Once it numbers its frames, it is known to acknowledge.
    let numbered = LpPacket {
        tx_sequence: Some(0),
        ..piece(0, 0, 1)
    };
    this.handle_packet(ms(400), &numbered);
    send(&mut this, ms(400), 9, 1);
    this.handle_timeout(ms(2_000));
    assert_eq!(again(&mut this, ms(2_000)).len(), 1);
}

/// A peer that fell silent for 1 + 7 timeouts is sent nothing twice any more, until it speaks.
#[test]
fn a_peer_that_fell_silent_is_not_pressed() {
    let mut this = end();
    let (mut now, mut sent) = (ms(0), 0);
    for number in 0..2_000 {
        send(&mut this, now, number, 1);
        now += Duration::from_millis(10);
        this.handle_timeout(now);
        sent += outputs(&mut this, now).len();
    }
    // Eight timeouts, each of what was sent in one instant.
    assert_eq!(sent, 8);
    assert!(this.sender.sizes().0 <= 100);
    assert_eq!(this.take_given_up(), 0);
    this.handle_packet(now, &acks(&[]));
    let last = send(&mut this, now, 5_000, 1)[0];
    this.handle_packet(now, &acks(&[last]));
    send(&mut this, now, 5_001, 1);
    let due = now + Duration::from_secs(5);
    this.handle_timeout(due);
    assert!(
        again(&mut this, due)
            .iter()
            .any(|(sequence, _)| *sequence == 5_001)
    );
}

#[test]
fn tables_keep_their_bounds() {
    let config = ReliabilityConfig {
        max_frames: 10,
        max_octets: ByteSize::bytes(450),
        octets_for_ack: 10,
        max_acks_again: 4,
        ..ReliabilityConfig::default()
    };
    let mut this = Reliability::new(config, None);
    this.sender.hear_peer();
    for number in 0..100 {
        send(&mut this, ms(number), 3 * number, 3);
        assert!(this.sender.sizes().1 <= 10 && this.sender.sizes().2 <= config.max_octets);
        let arriving = LpPacket {
            tx_sequence: Some(number),
            ..piece(number, 0, 1)
        };
        // Twice, so that Acks are said again.
        this.handle_packet(ms(number), &arriving);
        this.handle_packet(ms(number), &arriving);
        outputs(&mut this, ms(number + 5));
        let (_, said, known) = this.receiver.sizes();
        assert!(said <= 4 && known <= 10);
    }
    // Three fragments of 100 octets fit, six do not.
    assert_eq!((this.sender.sizes().0, this.counters().unwatched), (3, 99));
    // Known for the eight seconds in which a copy may come, and no longer.
    let late = |this: &mut Reliability, at| {
        let copy = LpPacket {
            tx_sequence: Some(0),
            ..piece(99, 0, 1)
        };
        this.handle_packet(at, &copy)
    };
    assert!(!late(&mut this, ms(8_099)));
    assert!(late(&mut this, ms(8_100)));
}

#[test]
fn acks_for_what_was_never_sent_tell_nothing() {
    let mut this = end();
    send(&mut this, ms(0), 0, 4);
    this.handle_packet(ms(10), &acks(&[4, 5, u64::MAX, u64::MAX / 2, 1 << 32]));
    assert_eq!(this.counters().acknowledged, 0);
    assert_eq!(
        (again(&mut this, ms(10)), this.poll_timeout()),
        (vec![], Some(ms(250)))
    );
}

/// Which transmissions are lost by later Acks, found the slow way: after each packet's Acks, count all later ones.
#[derive(Default)]
struct NaiveTwin {
    /// Sequence of each transmission, Acks that came, in order, and those that are lost.
    sent: BTreeMap<u64, u64>,
    acked: Vec<u64>,
    lost: BTreeSet<u64>,
}

impl NaiveTwin {
    /// The Sequences to send again after a packet's Acks.
    fn handle_acks(&mut self, acks: &[u64]) -> Vec<u64> {
        for ack in acks {
            if self.sent.contains_key(ack) && !self.acked.contains(ack) {
                self.acked.push(*ack);
            }
        }
        let arrived: BTreeSet<u64> = self.acked.iter().map(|acked| self.sent[acked]).collect();
        let lost = self.sent.iter().filter(|&(number, sequence)| {
            let later = self.acked.iter().filter(|acked| *acked > number).count();
            !arrived.contains(sequence) && !self.lost.contains(number) && later >= 3
        });
        let lost: Vec<(u64, u64)> = lost
            .map(|(number, sequence)| (*number, *sequence))
            .collect();
        self.lost.extend(lost.iter().map(|(number, _)| number));
        lost.into_iter().map(|(_, sequence)| sequence).collect()
    }
}

/// Random packets, of which Acks come in any order, late, twice or never.
#[test]
fn losses_are_those_that_a_naive_twin_finds() {
    let mut retransmissions = 0;
    for seed in 0..20 {
        let mut random = Random::from_seed(seed);
        let config = ReliabilityConfig {
            max_retransmissions: 1_000,
            max_frames: 1 << 20,
            ..ReliabilityConfig::default()
        };
        let mut this = Reliability::new(config, Some(1_400));
        this.sender.hear_peer();
        let mut twin = NaiveTwin::default();
        let mut sequence = 0;
        for _ in 0..100 {
            if random.chance(0.5) {
                let count = 1 + random.below(7);
                for (index, number) in send(&mut this, ms(0), sequence, count)
                    .into_iter()
                    .enumerate()
                {
                    twin.sent.insert(number, sequence + index as u64);
                }
                sequence += count;
            }
            let newest = twin.sent.last_key_value().map_or(0, |(number, _)| *number);
            // Those of long ago come as well, and some that were never sent.
            let reach = if random.chance(0.1) { 60 } else { 8 };
            let said: Vec<u64> = (0..1 + random.below(5))
                .map(|_| (newest + 1).saturating_sub(random.below(reach)))
                .collect();
            let expected = twin.handle_acks(&said);
            this.handle_packet(ms(0), &acks(&said));
            let again = again(&mut this, ms(0));
            let sequences: Vec<u64> = again.iter().map(|(sequence, _)| *sequence).collect();
            assert_eq!(sequences, expected, "seed {seed}");
            retransmissions += again.len();
            for (sequence, number) in again {
                twin.sent.insert(number, sequence);
            }
        }
    }
    assert!(retransmissions > 500, "{retransmissions}");
}

mod channel;
