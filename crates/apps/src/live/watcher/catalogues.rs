//! The catalogue that is followed, and the one that is on its way.

use namecast_packet::{Data, Name};
use namecast_stream::Catalogue;
use namecast_stream::path::{Token, Uplink};
use namecast_units::Instant;

use crate::discovery::{Fetch, Progress};

/// Catalogues of one publisher. One with the same name does not change.
#[derive(Debug, Default)]
pub(super) struct Catalogues {
    fetch: Option<Fetch>,
    current: Option<(Name, Catalogue)>,
    /// The one that was refused last.
    refused: Option<Name>,
    /// Whether the current one was verified and reported.
    is_announced: bool,
}

impl Catalogues {
    /// Returns whether `name` is of the one that is followed, on its way, or refused.
    pub(super) fn knows(&self, name: &Name) -> bool {
        let fetching = self.fetch.as_ref().map(|fetch| &fetch.catalogue_name);
        [self.name(), fetching, self.refused.as_ref()].contains(&Some(name))
    }

    /// Returns the one that is followed.
    pub(super) fn current(&self) -> Option<&Catalogue> {
        self.current.as_ref().map(|(_, catalogue)| catalogue)
    }

    /// Returns the name of the one that is followed.
    pub(super) fn name(&self) -> Option<&Name> {
        self.current.as_ref().map(|(name, _)| name)
    }

    /// Requests the catalogue `name`.
    pub(super) fn fetch(&mut self, now: Instant, name: Name, uplink: &mut Uplink) {
        self.fetch = Some(Fetch::begin(now, name, uplink));
    }

    /// Requests nothing more of any catalogue.
    pub(super) fn end_fetch(&mut self, uplink: &mut Uplink) {
        self.fetch = None;
        Fetch::end(uplink);
    }

    /// Returns the segment that `name` is of, if it is still missing.
    pub(super) fn token_of(&self, name: &Name) -> Option<Token> {
        self.fetch.as_ref()?.token_of(name)
    }

    /// Takes segment `token`, which is verified. Returns the name of its catalogue, and what became of it.
    pub(super) fn take(
        &mut self,
        now: Instant,
        token: Token,
        data: &Data,
        uplink: &mut Uplink,
    ) -> Option<(Name, Progress)> {
        let fetch = self.fetch.as_mut()?;
        let progress = fetch.take(now, token, data, uplink);
        let name = fetch.catalogue_name.clone();
        if progress != Progress::Partial {
            self.fetch = None;
        }
        Some((name, progress))
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
    pub(super) fn forget(&mut self, uplink: &mut Uplink) {
        self.end_fetch(uplink);
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::NullSigner;
    use namecast_stream::path::{Budget, LiveConfig, UplinkConfig};

    use super::*;

    fn name(version: u64) -> Name {
        format!("/demo/catalogue/v={version}").parse().unwrap()
    }

    fn uplink() -> Uplink {
        let budget = Budget::live(LiveConfig::default());
        Uplink::new(UplinkConfig::default(), budget)
    }

    fn catalogue() -> Catalogue {
        Catalogue {
            version: 1,
            streams: Vec::new(),
            signer: String::new(),
        }
    }

    #[test]
    fn a_catalogue_is_reported_once_until_there_is_another() {
        let mut catalogues = Catalogues::default();
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
        let (mut catalogues, mut uplink) = (Catalogues::default(), uplink());
        assert!(!catalogues.knows(&name(1)));
        catalogues.install(name(1), catalogue());
        catalogues.fetch(Instant::ZERO, name(2), &mut uplink);
        catalogues.refuse(name(3));
        assert!((1..=3).all(|version| catalogues.knows(&name(version))));
        catalogues.end_fetch(&mut uplink);
        assert!(!catalogues.knows(&name(2)));
        catalogues.forget(&mut uplink);
        assert!((1..=3).all(|version| !catalogues.knows(&name(version))));
    }

    #[test]
    fn a_whole_catalogue_is_not_on_its_way_any_more() {
        let (mut catalogues, mut uplink) = (Catalogues::default(), uplink());
        catalogues.fetch(Instant::ZERO, name(1), &mut uplink);
        let segment = Data::builder(name(1).builder().segment(0).finish())
            .content(&b"a"[..])
            .sign(&NullSigner);
        let token = catalogues.token_of(segment.name()).unwrap();
        let taken = catalogues.take(Instant::ZERO, token, &segment, &mut uplink);
        assert_eq!(taken, Some((name(1), Progress::Whole("a".into()))));
        assert_eq!(catalogues.token_of(segment.name()), None);
        let again = catalogues.take(Instant::ZERO, token, &segment, &mut uplink);
        assert_eq!(again, None);
    }
}
