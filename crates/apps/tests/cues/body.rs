//! Cues, reports, logs and scripts of a show, and OSC, of any octets.

use std::collections::BTreeSet;
use std::time::Duration;

use namecast_apps::cues::osc::{self, Frames};
use namecast_apps::cues::{
    Action, Cue, CueId, Desk, Device, DeviceConfig, Done, Log, MAX_CUE, Output,
};
use namecast_units::Timestamp;

/// Kinds of inputs of [`cues`], by their first octet: a cue; a report; a log; a script.
pub(crate) const CUES: u8 = 4;
/// Kinds of inputs of [`osc`]: a packet; a TCP stream.
pub(crate) const OSC: u8 = 2;

const NOW: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
const MAX_WAITING: usize = 4;

/// Reads `octets` by their kind. Returns whether they hold what their kind says.
pub(crate) fn cues(octets: &[u8]) -> bool {
    let Some((kind, rest)) = octets.split_first() else {
        return false;
    };
    match kind % CUES {
        0 => cue(rest),
        1 => report(rest),
        2 => log(rest),
        _ => script(rest),
    }
}

/// A cue says the same when it is written again, if that is not too long; device and desk take it as it is.
fn cue(octets: &[u8]) -> bool {
    let Ok(cue) = Cue::decode(octets) else {
        return false;
    };
    if let Ok(written) = cue.encode() {
        let again = Cue::decode(&written).expect("it was written");
        let parts = |cue: &Cue| {
            let keys: Vec<_> = cue.values.keys().cloned().collect();
            (
                cue.id,
                cue.number.clone(),
                cue.at,
                cue.term,
                cue.targets.clone(),
                keys,
            )
        };
        assert_eq!(parts(&again), parts(&cue));
    }
    if let Ok(packet) = osc::encode_cue(&cue) {
        // Own addresses of cues are no presses.
        let _ = osc::decode(&packet);
    }
    let mut device = Device::new(DeviceConfig::default());
    device.handle_cue(NOW, "main", cue.clone());
    let mut desk = Desk::new("backup", false, Duration::from_secs(2));
    desk.handle_cue("main", cue);
    let sent = desk.take_over(NOW, CueId([1; 16]));
    assert!(sent[0].encode().is_ok(), "it can always take over");
    true
}

fn report(octets: &[u8]) -> bool {
    let Ok(done) = Done::decode(octets) else {
        return false;
    };
    let written = done.encode();
    if written.len() <= MAX_CUE {
        assert_eq!(Done::decode(&written).expect("it was written"), done);
    }
    true
}

/// A log ends, and lines that count have numbers that grow.
fn log(octets: &[u8]) -> bool {
    let mut last = 0;
    let mut problems = 0;
    for line in Log::new(octets.to_vec().into()) {
        match line {
            Ok(line) => {
                assert!(line.line > last);
                last = line.line;
            }
            Err(error) => {
                problems += 1;
                assert!(!error.to_string().is_empty());
            }
        }
        assert!(last + problems <= octets.len() as u64, "it ends");
    }
    last > 0 && problems == 0
}

/// Desks that lie, come and go, and a device whose journal fails: nothing is executed twice, and nothing that the journal lacks but stops.
fn script(octets: &[u8]) -> bool {
    let mut device = Device::new(DeviceConfig {
        max_waiting: MAX_WAITING,
        ..DeviceConfig::default()
    });
    let mut desk = Desk::new("backup", false, Duration::from_secs(2));
    let mut now = NOW;
    let (mut journal, mut executed) = (BTreeSet::new(), BTreeSet::new());
    for step in octets.chunks_exact(4) {
        let [what, id, term, time] = [step[0], step[1], step[2], step[3]];
        now = match what & 0x40 {
            0 => now + Duration::from_millis(u64::from(time)),
            _ => Timestamp::from_micros(now.as_micros() - u64::from(time) * 1_000),
        };
        let name = ["main", "backup", "liar"][usize::from(term % 3)];
        let cue = Cue {
            id: CueId([id; 16]),
            number: id.to_string(),
            action: [Action::Go, Action::Stop, Action::Lead, Action::Undo][usize::from(what & 3)],
            term: match what & 0x20 {
                0 => u64::from(term),
                _ => u64::MAX >> (term % 64),
            },
            at: now + Duration::from_millis(u64::from(time) * 16),
            targets: Vec::new(),
            values: Default::default(),
            rehearsal: what & 0x10 != 0,
        };
        desk.handle_cue(name, cue.clone());
        device.handle_cue(now, name, cue);
        if what & 0x08 != 0 {
            for cue in desk.take_over(now, CueId([id ^ 0x80; 16])) {
                assert!(cue.encode().is_ok());
                device.handle_cue(now, "backup", cue);
            }
        }
        device.handle_timeout(now);
        while let Some(output) = device.poll_output() {
            match output {
                Output::Journal(id) if what & 0x80 != 0 => device.handle_journal_failure(now, id),
                Output::Journal(id) => assert!(journal.insert(id), "twice"),
                Output::Execute(cue) => {
                    assert!(executed.insert(cue.id), "twice");
                    assert!(journal.contains(&cue.id) || cue.action == Action::Stop);
                }
                Output::Report(_) => {}
            }
        }
    }
    !executed.is_empty()
}

/// Reads `octets` by their kind. Returns whether they hold what their kind says.
pub(crate) fn osc(octets: &[u8]) -> bool {
    let Some((kind, rest)) = octets.split_first() else {
        return false;
    };
    match kind % OSC {
        0 => packet(rest),
        _ => stream(rest),
    }
}

/// A press says the same when it is written again.
fn packet(octets: &[u8]) -> bool {
    let _ = osc::decode_reply(octets);
    let Ok(presses) = osc::decode(octets) else {
        return false;
    };
    assert!(presses.len() <= 64);
    for press in &presses {
        let written = osc::encode_press(press).expect("it was read");
        assert_eq!(osc::decode(&written).as_ref(), Ok(&vec![press.clone()]));
    }
    !presses.is_empty()
}

/// Streams are cut alike whole and in parts, and packets have a bound.
fn stream(octets: &[u8]) -> bool {
    let read = |step: usize| {
        let mut frames = Frames::default();
        let mut packets = Vec::new();
        for chunk in octets.chunks(step) {
            match frames.read(chunk) {
                Ok(read) => packets.extend(read),
                Err(_) => return (packets, false),
            }
        }
        (packets, true)
    };
    let (each, is_whole) = read(1);
    let (some, _) = read(7);
    assert!(each.starts_with(&some) && (!is_whole || each == some));
    assert!(
        each.iter()
            .all(|packet| (1..=8_192).contains(&packet.len()))
    );
    is_whole && !each.is_empty()
}
