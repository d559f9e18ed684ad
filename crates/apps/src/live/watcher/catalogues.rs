//! The catalogue that is followed, and the one that is on its way; what was shown of each run of the publisher, so that nothing is
//! shown twice; and whether its clock was set back, so that names may come again.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::{Data, Name};
use namecast_stream::Catalogue;
use namecast_stream::consumer::Shown;
use namecast_stream::path::ClientId;
use namecast_units::{Instant, Timestamp};

use crate::discovery::{CatalogueFetcher, Progress};

/// Catalogues of one publisher. One with the same name does not change.
#[derive(Debug)]
pub(super) struct Catalogues {
    pub fetcher: CatalogueFetcher,
    current: Option<(Name, Catalogue)>,
    /// The one that was refused last.
    refused: Option<Name>,
    /// Whether the current one was verified and reported.
    is_announced: bool,
}

impl Catalogues {
    /// None yet; `client` is to fetch them.
    pub(super) const fn new(client: ClientId) -> Self {
        Self {
            fetcher: CatalogueFetcher::new(client),
            current: None,
            refused: None,
            is_announced: false,
        }
    }

    /// Returns whether `name` is of the one that is followed, on its way, or refused.
    pub(super) fn knows(&self, name: &Name) -> bool {
        [self.name(), self.fetcher.fetching(), self.refused.as_ref()].contains(&Some(name))
    }

    /// Returns the one that is followed.
    pub(super) fn current(&self) -> Option<&Catalogue> {
        self.current.as_ref().map(|(_, catalogue)| catalogue)
    }

    /// Returns the name of the one that is followed.
    pub(super) fn name(&self) -> Option<&Name> {
        self.current.as_ref().map(|(name, _)| name)
    }

    /// Takes segment `number`, which is verified. Returns the name of its catalogue, and what became of it.
    pub(super) fn take(&mut self, number: u64, data: &Data) -> Option<(Name, Progress)> {
        let name = self.fetcher.fetching()?.clone();
        Some((name, self.fetcher.handle_answer(number, data)))
    }

    /// Does without the catalogue `name`, and does not look at it again.
    pub(super) fn refuse(&mut self, name: Name) {
        self.refused = Some(name);
    }

    /// Follows `catalogue`, which is to be reported.
    pub(super) fn install(&mut self, name: Name, catalogue: Catalogue) {
        self.current = Some((name, catalogue));
        self.is_announced = false;
    }

    /// Returns the catalogue to report now that it is verified, once.
    pub(super) fn announce(&mut self) -> Option<Catalogue> {
        let (_, catalogue) = self.current.as_ref()?;
        let was_announced = core::mem::replace(&mut self.is_announced, true);
        (!was_announced).then(|| catalogue.clone())
    }

    /// Returns whether the catalogue was verified and reported.
    pub(super) const fn is_announced(&self) -> bool {
        self.is_announced
    }

    /// Drops what nobody vouches for.
    pub(super) fn forget(&mut self) {
        self.fetcher.end();
        (self.current, self.refused) = (None, None);
        self.is_announced = false;
    }
}

/// Runs and streams that are remembered.
const MAX_REMEMBERED: usize = 16;
/// A clock that is so much behind its earlier readings was set back, or is another one.
const SET_BACK: Duration = Duration::from_millis(100);
/// A new run is noticed within this time after its clock was seen.
const RECENT: Duration = Duration::from_secs(5);
/// Longest time for which caches are passed by.
const MAX_FRESH: Duration = Duration::from_secs(3_600);

/// Runs of the publisher, each with a catalogue of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    shown: VecDeque<(Name, String, Shown)>,
    /// When the publisher's clock was found set back, and by how much.
    set_back: Option<(Instant, Duration)>,
}

impl Sessions {
    /// Records that playback leaves the run of `catalogue`.
    pub(super) fn leave(&mut self, catalogue: &Name, stream: &str, shown: Shown) {
        self.shown
            .retain(|(name, of, _)| (name, of.as_str()) != (catalogue, stream));
        if self.shown.len() == MAX_REMEMBERED {
            self.shown.pop_front();
        }
        self.shown
            .push_back((catalogue.detached(), stream.to_owned(), shown));
    }

    /// Returns the frame of `stream` that was shown last before the run of `catalogue`.
    pub(super) fn shown_before(
        &self,
        now: Instant,
        catalogue: &Name,
        stream: &str,
    ) -> Option<Shown> {
        let of_stream = self.shown.iter().filter(|(_, of, _)| of == stream);
        let known = of_stream.clone().find(|(name, ..)| name == catalogue);
        let known = known.map(|(_, _, shown)| *shown);
        // Times mean something only by the same clock, and positions within one run.
        if self.fresh_until(now).is_some() {
            return known;
        }
        let (_, _, last) = of_stream.last()?;
        Some(Shown {
            position: known.and_then(|shown| shown.position),
            ..*last
        })
    }

    /// Takes the publisher's clock, `heard` before and `served_at` in an answer that arrives now.
    pub(super) fn on_clock(
        &mut self,
        now: Instant,
        heard: Option<(Instant, Timestamp)>,
        served_at: Timestamp,
    ) {
        let Some((at, before)) = heard else {
            return;
        };
        let by = (before + now.since(at)).since(served_at);
        if by >= SET_BACK {
            self.set_back = Some((now, by));
        }
    }

    /// Until when caches may hold Data of an earlier run under names of the one that begins now. `None` if the clock, which
    /// numbers come from, was not set back.
    pub(super) fn fresh_until(&self, now: Instant) -> Option<Instant> {
        let (at, by) = self.set_back?;
        (now.since(at) <= RECENT).then(|| now + by.min(MAX_FRESH))
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::NullSigner;

    use super::*;
    use crate::fixtures::client;

    fn name(version: u64) -> Name {
        format!("/demo/catalogue/v={version}").parse().unwrap()
    }

    fn catalogues() -> Catalogues {
        Catalogues::new(client())
    }

    fn catalogue() -> Catalogue {
        Catalogue {
            version: 1,
            starts: Default::default(),
            title: None,
            streams: Vec::new(),
            signer: String::new(),
        }
    }

    #[test]
    fn a_catalogue_is_reported_once_until_there_is_another() {
        let mut catalogues = catalogues();
        assert_eq!(catalogues.announce(), None);
        assert!(!catalogues.is_announced());
        for version in 1..=2 {
            catalogues.install(name(version), catalogue());
            assert!(!catalogues.is_announced());
            assert_eq!(catalogues.announce(), Some(catalogue()));
            assert_eq!(catalogues.announce(), None);
            assert_eq!(catalogues.name(), Some(&name(version)));
        }
    }

    #[test]
    fn what_is_followed_fetched_or_refused_is_known() {
        let mut catalogues = catalogues();
        assert!(!catalogues.knows(&name(1)));
        catalogues.install(name(1), catalogue());
        catalogues.fetcher.begin(name(2));
        catalogues.refuse(name(3));
        assert!((1..=3).all(|version| catalogues.knows(&name(version))));
        catalogues.fetcher.end();
        assert!(!catalogues.knows(&name(2)));
        catalogues.forget();
        assert!((1..=3).all(|version| !catalogues.knows(&name(version))));
    }

    #[test]
    fn a_whole_catalogue_is_not_on_its_way_any_more() {
        let mut catalogues = catalogues();
        catalogues.fetcher.begin(name(1));
        let segment = Data::builder(name(1).builder().segment(0).finish())
            .content(&b"a"[..])
            .sign(&NullSigner);
        let taken = catalogues.take(0, &segment);
        assert_eq!(taken, Some((name(1), Progress::Whole("a".into()))));
        assert_eq!(catalogues.take(0, &segment), None);
    }
}

#[cfg(test)]
mod sessions_tests {
    use super::*;

    const WALL: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn name(version: u64) -> Name {
        format!("/demo/catalogue/v={version}").parse().unwrap()
    }

    const fn shown(position: u64) -> Shown {
        Shown {
            position: Some(position),
            presented_at: WALL,
        }
    }

    #[test]
    fn a_run_that_comes_back_is_known_by_position_and_others_by_time() {
        let mut sessions = Sessions::default();
        sessions.leave(&name(1), "video", shown(5));
        sessions.leave(&name(1), "video", shown(7));
        let before =
            |sessions: &Sessions, version, kind| sessions.shown_before(at(0), &name(version), kind);
        assert_eq!(before(&sessions, 1, "video"), Some(shown(7)));
        let by_time = Shown {
            position: None,
            presented_at: WALL,
        };
        assert_eq!(before(&sessions, 1, "audio"), None);
        assert_eq!(before(&sessions, 2, "video"), Some(by_time));
        for version in 10..50 {
            sessions.leave(&name(version), "video", shown(1));
        }
        assert_eq!(sessions.shown.len(), MAX_REMEMBERED);
    }

    /// Heard at 1 s, answered at 2 s: its clock should have gone on by one second.
    #[test]
    fn a_clock_that_was_set_back_makes_names_come_again_for_as_long() {
        let mut sessions = Sessions::default();
        let heard = Some((at(1_000), WALL));
        sessions.on_clock(at(2_000), heard, WALL + Duration::from_millis(950));
        assert_eq!(sessions.fresh_until(at(2_000)), None);
        let answer = Timestamp::from_micros(WALL.as_micros() - 2_000_000);
        sessions.on_clock(at(2_000), heard, answer);
        assert_eq!(sessions.fresh_until(at(2_500)), Some(at(5_500)));
        sessions.leave(&name(1), "video", shown(9));
        let before = sessions.shown_before(at(2_500), &name(3), "video");
        assert_eq!(before, None);
        assert_eq!(sessions.fresh_until(at(7_001)), None);
    }
}
