//! What is said and heard in a call, and how long it takes from mouth to ear.

use bytes::{Bytes, BytesMut};
use namecast_apps::session::CallId;
use namecast_media::voice::{Frame, Microphone, Playout, Speaker};
use namecast_net::Clock;
use namecast_units::{Duration, Instant, Timestamp};
use serde_json::{Value, json};

use super::Talk;

/// Packets from one that says when it was spoken to the next.
const STAMPED: u32 = 50;
/// Delays that are kept for their quantiles.
const MAX_DELAYS: usize = 600;

/// The sound of a call.
pub(super) struct Sound {
    pub(super) call: CallId,
    /// `None`: it has ended.
    microphone: Option<Microphone>,
    speaker: Speaker,
    playout: Playout,
    number: u32,
    received: u64,
    malformed: u64,
    /// When packets that wait to be played were spoken.
    spoken: Vec<(u64, Timestamp)>,
    /// From mouth to ear.
    delays: Vec<Duration>,
    /// When to look whether something is to be played.
    due: Option<Duration>,
}

impl Sound {
    /// Listens to the microphone from now on.
    pub(super) fn start(call: CallId, arguments: &Talk) -> anyhow::Result<Self> {
        Ok(Self {
            call,
            speaker: Speaker::open(&arguments.output)?,
            microphone: Some(Microphone::start(&arguments.input, arguments.bitrate)?),
            playout: Playout::new(arguments.buffer),
            number: 0,
            received: 0,
            malformed: 0,
            spoken: Vec::new(),
            delays: Vec::new(),
            due: None,
        })
    }

    /// Waits for the next message of this side; returns without one when something is due to be played.
    pub(super) async fn next(&mut self) -> Option<(CallId, Bytes)> {
        let due = self.due;
        let is_due = async {
            match due {
                Some(wait) => tokio::time::sleep(wait).await,
                None => core::future::pending().await,
            }
        };
        let spoken = async {
            match &mut self.microphone {
                Some(microphone) => microphone.next().await,
                None => core::future::pending().await,
            }
        };
        let spoken = tokio::select! {
            spoken = spoken => spoken,
            () = is_due => return None,
        };
        let Some(spoken) = spoken else {
            self.microphone = None;
            return None;
        };
        let mut message = BytesMut::from(&self.number.to_be_bytes()[..]);
        if self.number.is_multiple_of(STAMPED) {
            message.extend_from_slice(&spoken.at.as_micros().to_be_bytes());
        }
        message.extend_from_slice(&spoken.payload);
        self.number = self.number.wrapping_add(1);
        Some((self.call, message.freeze()))
    }

    /// Takes a message of the other side.
    pub(super) fn take(&mut self, clock: Clock, message: &Bytes) {
        self.received += 1;
        let Some((number, at, payload)) = read(message) else {
            self.malformed += 1;
            return;
        };
        if let Some(at) = at {
            self.spoken.push((number, at));
            // Two are under way at most.
            if self.spoken.len() > 8 {
                self.spoken.remove(0);
            }
        }
        self.playout.handle_packet(clock.now(), number, payload);
    }

    /// Plays what is due.
    pub(super) fn play(&mut self, clock: Clock) {
        let now = clock.now();
        while let Some(frame) = self.playout.poll_frame(now) {
            if let Frame::Packet(number, _) = frame {
                let spoken = self.spoken.iter().find(|it| it.0 == number);
                if let Some((_, at)) = spoken {
                    if self.delays.len() >= MAX_DELAYS {
                        self.delays.remove(0);
                    }
                    self.delays.push(clock.wall().since(*at));
                }
            }
            self.speaker.play(&frame);
        }
        let due: Option<Instant> = self.playout.poll_timeout(now);
        self.due = due.map(|at| at.since(now));
    }

    fn delay(&self, permille: usize) -> Option<f64> {
        let mut delays = self.delays.clone();
        delays.sort();
        let at = delays.len().checked_sub(1)? * permille / 1_000;
        Some(delays[at].as_secs_f64() * 1e3)
    }

    /// Returns why nothing is heard here any more, once.
    pub(super) fn trouble(&mut self) -> Option<String> {
        let said = self.speaker.failure()?;
        Some(format!(
            "Nothing is heard here any more; the call goes on. {said}"
        ))
    }

    /// How it is, for people.
    pub(super) fn line(&self) -> String {
        let counters = self.playout.counters();
        let delay = self
            .delay(500)
            .map_or_else(String::new, |it| format!("mouth to ear {it:.0} ms, "));
        format!(
            "{delay}{} packets played, {} concealed, longest gap {} ms",
            counters.played,
            counters.concealed,
            counters.longest_gap * 20
        )
    }

    /// How it was, for programs.
    pub(super) fn figures(&self) -> Value {
        let counters = self.playout.counters();
        json!({
            "packets_spoken": self.number,
            "packets_received": self.received,
            "packets_malformed": self.malformed,
            "packets_played": counters.played,
            "packets_concealed": counters.concealed,
            "packets_late": counters.late,
            "packets_left_out": counters.left_out,
            "buffer_ms": self.playout.target().as_secs_f64() * 1e3,
            "packets_not_taken_by_speaker": self.speaker.dropped(),
            "longest_gap_ms": counters.longest_gap * 20,
            "mouth_to_ear_ms": { "p50": self.delay(500), "p95": self.delay(950) },
        })
    }

    /// Plays what is left.
    pub(super) fn close(self) -> anyhow::Result<()> {
        drop(self.microphone);
        let closed = self.speaker.close();
        closed.map_err(|said| anyhow::anyhow!("ffmpeg could not play: {said}"))
    }
}

/// The number of a packet, when it was spoken if it says so, and its sound.
fn read(message: &Bytes) -> Option<(u64, Option<Timestamp>, Bytes)> {
    let number = u32::from_be_bytes(*message.first_chunk()?);
    let rest = message.slice(4..);
    if !number.is_multiple_of(STAMPED) {
        return Some((u64::from(number), None, rest));
    }
    let micros = u64::from_be_bytes(*rest.first_chunk()?);
    let at = Timestamp::from_micros(micros);
    Some((u64::from(number), Some(at), rest.slice(8..)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_or_refused() {
        let mut stamped = 50_u32.to_be_bytes().to_vec();
        stamped.extend_from_slice(&7_u64.to_be_bytes());
        stamped.extend_from_slice(b"opus");
        let at = Some(Timestamp::from_micros(7));
        assert_eq!(read(&stamped.into()), Some((50, at, Bytes::from("opus"))));
        let plain = Bytes::from_static(&[0, 0, 0, 51, 1]);
        assert_eq!(read(&plain), Some((51, None, Bytes::from_static(&[1]))));
        for wrong in [&[][..], &[0, 0, 0], &[0, 0, 0, 50, 1, 2]] {
            assert_eq!(read(&Bytes::copy_from_slice(wrong)), None);
        }
    }
}
