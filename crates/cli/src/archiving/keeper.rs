//! Seals and deletes what an archive keeps, and says what goes wrong.

use namecast_archive::{Archive, Moment};
use namecast_net::Clock;
use namecast_units::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::time::interval;

use super::{SYNC_INTERVAL, Sentence, moment, tell};

/// How often the chunks of others are looked for.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);
/// What goes wrong again and again, and what is deleted, is said so often.
const REPEAT_INTERVAL: Duration = Duration::from_mins(1);

/// Seals and deletes until it is told to stop.
pub(super) async fn keep(
    clock: Clock,
    archive: Archive,
    say: mpsc::Sender<Sentence>,
    mut stopping: watch::Receiver<bool>,
) {
    let mut tick = interval(SYNC_INTERVAL);
    let mut refresh_at = clock.now() + REFRESH_INTERVAL;
    let mut troubles = Troubles::default();
    let (mut told, mut tell_at) = (0, clock.now());
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            _ = stopping.changed() => {
                return;
            }
        }
        maintain(&archive, moment(clock), &mut troubles, &say).await;
        if clock.now() >= refresh_at {
            refresh_at = clock.now() + REFRESH_INTERVAL;
            if let Err(error) = archive.refresh(moment(clock)).await {
                troubles.tell(&say, clock.now(), error.to_string());
            }
        }
        let expired = archive.counters().expired;
        if expired > told && clock.now() >= tell_at {
            tell_at = clock.now() + REPEAT_INTERVAL;
            let new = expired - told;
            told = expired;
            tell(&say, format!("{new} chunks deleted: older than --keep"));
        }
    }
}

/// Says what goes wrong, over and over, once a minute: a full disk fails every sample.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    /// When the next sentence may be said.
    next_at: Option<Instant>,
    /// Failures since the last sentence.
    unsaid: u64,
}

impl Troubles {
    /// The sentence to say now, if it is time for one.
    fn sentence(&mut self, now: Instant, trouble: &str) -> Option<String> {
        if self.next_at.is_some_and(|at| now < at) {
            self.unsaid += 1;
            return None;
        }
        self.next_at = Some(now + REPEAT_INTERVAL);
        Some(match core::mem::take(&mut self.unsaid) {
            0 => trouble.to_owned(),
            unsaid => format!("{trouble} ({unsaid} failures since the last line)"),
        })
    }

    /// Says it, if it is time to.
    pub(super) fn tell(&mut self, say: &mpsc::Sender<Sentence>, now: Instant, trouble: String) {
        if let Some(sentence) = self.sentence(now, &trouble) {
            tell(say, sentence);
        }
    }
}

async fn maintain(
    archive: &Archive,
    now: Moment,
    troubles: &mut Troubles,
    say: &mpsc::Sender<Sentence>,
) {
    if let Err(error) = archive.maintain(now).await {
        troubles.tell(say, now.monotonic, error.to_string());
    }
    while let Some(damage) = archive.poll_damage() {
        tell(say, damage.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full disk for three minutes, 75 failures a second: four sentences, which count what was not said.
    #[test]
    fn a_full_disk_is_told_once_a_minute() {
        let mut troubles = Troubles::default();
        let step = Duration::from_secs(1) / 75;
        let said: Vec<_> = (0..=75 * 180)
            .filter_map(|n| troubles.sentence(Instant::ZERO + step * n, "disk full"))
            .collect();
        assert!((3..=4).contains(&said.len()), "{said:?}");
        assert_eq!(said[0], "disk full");
        assert!(
            said[1].starts_with("disk full (4499 failures")
                || said[1].starts_with("disk full (4500 failures"),
            "{said:?}"
        );
    }
}
