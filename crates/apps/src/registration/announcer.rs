//! A prefix that is announced for as long as somebody answers for it.

use core::fmt;

use namecast_packet::{Name, PrefixAnnouncement, Signer, Validity};
use namecast_units::{Duration, Timestamp};

/// How long an announcement may be relied on after it was heard; it is repeated long before. Who ends without a word is
/// forgotten by then, where nothing tells so earlier.
const EXPIRATION: Duration = Duration::from_secs(600);
/// How long an announcement is valid once it is signed.
const VALIDITY: Duration = Duration::from_secs(3_600);
/// How long before, so that clocks of others may go that much behind.
const LEEWAY: Duration = Duration::from_secs(600);
/// When the next is signed: what is heard last of the one before is still valid for more than its expiration, and clocks may go
/// ahead by the rest.
const RENEWAL: Duration = Duration::from_secs(1_800);

const _: () =
    assert!(RENEWAL.as_secs() + EXPIRATION.as_secs() + LEEWAY.as_secs() <= VALIDITY.as_secs());

/// Signs announcements of one prefix, each with its period of validity, and the next before the last ends.
pub struct Announcer {
    prefix: Name,
    signer: Box<dyn Signer + Send>,
    last: Option<(Timestamp, PrefixAnnouncement)>,
}

impl fmt::Debug for Announcer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcer")
            .field("prefix", &self.prefix)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl Announcer {
    /// Announces `prefix`, signed by whom those who hear it may have to trust.
    pub fn new(prefix: Name, signer: Box<dyn Signer + Send>) -> Self {
        Self {
            prefix,
            signer,
            last: None,
        }
    }

    /// What is announced.
    pub const fn prefix(&self) -> &Name {
        &self.prefix
    }

    /// The announcement to make at `now`.
    pub fn announcement(&mut self, now: Timestamp) -> &PrefixAnnouncement {
        // A clock that was set back makes what was signed before it valid in the future only.
        let is_recent =
            |&(signed, _): &(Timestamp, _)| signed <= now && now.since(signed) < RENEWAL;
        let last = self.last.take().filter(is_recent);
        let (_, announcement) = self.last.insert(last.unwrap_or_else(|| {
            let micros = now.as_micros().saturating_sub(LEEWAY.as_micros() as u64);
            let validity = Validity {
                not_before: Timestamp::from_micros(micros),
                not_after: now + VALIDITY,
            };
            let signed = PrefixAnnouncement::sign(
                &self.prefix,
                now.as_micros(),
                EXPIRATION,
                Some(validity),
                &*self.signer,
            );
            (now, signed)
        }));
        announcement
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::Component;
    use namecast_packet::signature::DigestSigner;

    use super::*;

    /// 2000-01-01, and so many seconds.
    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros((946_684_800 + seconds) * 1_000_000)
    }

    fn version(announcement: &PrefixAnnouncement) -> Option<u64> {
        let name = announcement.data().name();
        name.get(name.len() - 2)?.number_of(Component::VERSION)
    }

    /// Through three hours, by clocks that go ten minutes behind or ahead: valid when it is heard, and until it expires.
    #[test]
    fn what_is_announced_is_valid_and_stays_so_until_it_is_renewed() {
        let mut announcer = Announcer::new("/p".parse().unwrap(), Box::new(DigestSigner));
        let mut versions = Vec::new();
        for seconds in (0..3 * 3_600).step_by(10) {
            let announcement = announcer.announcement(at(1_000 + seconds));
            assert_eq!(announcement.prefix().to_string(), "/p");
            assert_eq!(announcement.expiration(), EXPIRATION);
            for heard in [400 + seconds, 1_000 + seconds, 1_600 + seconds] {
                assert!(announcement.is_valid_at(at(heard)), "{seconds} {heard}");
                let left = announcement.left_at(at(heard)).unwrap();
                assert!(
                    left >= EXPIRATION && left <= LEEWAY + VALIDITY + EXPIRATION,
                    "{left:?}"
                );
            }
            versions.push(version(announcement).unwrap());
        }
        assert!(versions.is_sorted());
        versions.dedup();
        assert_eq!(versions.len(), 6, "one each half an hour");
    }

    #[test]
    fn a_clock_that_is_set_back_has_it_signed_anew() {
        let mut announcer = Announcer::new("/p".parse().unwrap(), Box::new(DigestSigner));
        announcer.announcement(at(100_000));
        let announcement = announcer.announcement(at(5_000));
        assert!(announcement.is_valid_at(at(5_000)));
        assert!(!announcement.is_valid_at(at(4_399)) && !announcement.is_valid_at(at(8_601)));
    }
}
