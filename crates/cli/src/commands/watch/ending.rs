//! How a watch ends where nothing came: with the reason, and what to type next.

use anyhow::{anyhow, bail, ensure};
use namecast_apps::live::watcher::{RungChoice, Unkept};
use namecast_command::report::local;
use namecast_media::package::HLS;
use namecast_packet::Name;
use namecast_stream::{Catalogue, StreamKind};
use namecast_units::{Duration, Instant, Timestamp};

use super::package::IsPackage;

/// How long a watch without `--duration` waits for the first frame: longer than a publisher takes to start.
const MAX_WAIT: Duration = Duration::from_secs(15);

/// What came so far, as far as it decides whether the watch was a success.
#[derive(Debug)]
pub(super) struct Ending {
    name: Name,
    rung: RungChoice,
    /// When it is given up unless a frame came.
    deadline: Option<Instant>,
    has_catalogue: bool,
    has_frames: bool,
    plays_past: bool,
    /// Whose signature was refused, and why.
    refusal: Option<String>,
    /// Advice where samples are sealed for others.
    sealed: Option<String>,
}

impl Ending {
    /// A watch that begins now, of `rung` under `name`.
    pub(super) fn new(name: Name, rung: RungChoice) -> Self {
        Self {
            name,
            rung,
            deadline: None,
            has_catalogue: false,
            has_frames: false,
            plays_past: false,
            refusal: None,
            sealed: None,
        }
    }

    /// Gives up some time after `now` unless a frame came.
    pub(super) fn give_up_after(&mut self, now: Instant) {
        self.deadline = Some(now + MAX_WAIT);
    }

    /// Whether nothing came for so long that nothing is waited for any more.
    pub(super) fn is_given_up(&self, now: Instant) -> bool {
        !self.has_frames && self.deadline.is_some_and(|at| now >= at)
    }

    /// The rung that is wanted.
    pub(super) const fn rung(&self) -> &RungChoice {
        &self.rung
    }

    pub(super) const fn on_frame(&mut self) {
        self.has_frames = true;
    }

    pub(super) fn on_refusal(&mut self, text: &str) {
        self.refusal = Some(text.to_owned());
    }

    pub(super) fn on_sealed(&mut self, text: &str) {
        self.sealed = Some(text.to_owned());
    }

    pub(super) const fn on_past(&mut self) {
        self.plays_past = true;
    }

    /// Takes a catalogue.
    ///
    /// # Errors
    /// If the first one does not have the rung that is wanted, or has no frames but HLS.
    pub(super) fn on_catalogue(&mut self, catalogue: &Catalogue) -> anyhow::Result<()> {
        let is_first = !core::mem::replace(&mut self.has_catalogue, true);
        let mut streams = catalogue.streams.iter();
        if is_first && streams.all(|stream| stream.codec == HLS) && !catalogue.streams.is_empty() {
            let name = self.name.clone();
            return Err(IsPackage { name }.into());
        }
        let RungChoice::Label(wanted) = &self.rung else {
            return Ok(());
        };
        let video = |stream: &&namecast_stream::StreamInfo| stream.kind == StreamKind::Video;
        let Some(video) = catalogue.streams.iter().find(video) else {
            return Ok(());
        };
        let name = &self.name;
        let rungs: Vec<_> = video.rungs.iter().map(|rung| rung.name.as_str()).collect();
        ensure!(
            !is_first || rungs.contains(&wanted.as_str()),
            "{name} has no quality '{wanted}': write --rung with {}, auto, highest or lowest",
            rungs.join(", ")
        );
        Ok(())
    }

    /// Records that nothing of a time can be played.
    ///
    /// # Errors
    /// Unless the past played before.
    pub(super) fn on_unkept(&self, to: Timestamp, unkept: Unkept) -> anyhow::Result<()> {
        if self.plays_past {
            return Ok(());
        }
        let (name, time) = (&self.name, local(to));
        Err(match unkept {
            Unkept::NotThere { since: Some(since) } => {
                // To the second at which it is kept already.
                let since = local(Timestamp::from_micros(
                    since.as_micros().saturating_add(999_999),
                ));
                anyhow!(
                    "nothing is kept of {time}: {name} is kept from {since} on; write --from '{since}' or later"
                )
            }
            Unkept::NotThere { since: None } => {
                anyhow!("nothing is kept of {name} yet: watch it live, without --from")
            }
            Unkept::Unanswered => anyhow!(
                "nobody answers for what {name} was at {time}: keep it from now on with namecast archive {name}"
            ),
        })
    }

    /// Says whether anything came from the forwarder at `remote`.
    ///
    /// # Errors
    /// If nothing did.
    pub(super) fn finish(&self, remote: &str) -> anyhow::Result<()> {
        let name = &self.name;
        if self.has_frames {
            return Ok(());
        }
        if let Some(refusal) = &self.refusal {
            bail!("nothing of {name} was accepted: {refusal}");
        }
        if let Some(advice) = &self.sealed {
            bail!("no frame of {name} could be opened: {advice}");
        }
        ensure!(
            self.has_catalogue,
            "nothing came: nobody publishes {name} where {remote} can find it; namecast publish {name} does, and \
             namecast trace {name} shows where it is looked for"
        );
        bail!(
            "no frame of {name} came, though it is published: its publisher says whether the input is silent, or frames were left out"
        );
    }
}

#[cfg(test)]
mod tests {
    use namecast_stream::StreamInfo;

    use super::*;

    fn ending(rung: &str) -> Ending {
        let name = "/cam".parse().unwrap();
        Ending::new(name, rung.into())
    }

    fn said(result: anyhow::Result<()>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn what_did_not_come_has_a_reason_and_advice() {
        let mut ending = ending("auto");
        assert!(
            said(ending.finish("tcp4://127.0.0.1:6363")).contains("namecast publish /cam does")
        );
        ending.on_refusal("signed by another key");
        assert!(said(ending.finish("tcp4://127.0.0.1:6363")).contains("signed by another key"));
        ending.on_frame();
        assert!(ending.finish("tcp4://127.0.0.1:6363").is_ok());
    }

    #[test]
    fn it_is_given_up_only_while_nothing_came_and_if_asked_to() {
        let mut ending = ending("auto");
        let late = Instant::ZERO + MAX_WAIT;
        assert!(!ending.is_given_up(late));
        ending.give_up_after(Instant::ZERO);
        assert!(!ending.is_given_up(Instant::ZERO));
        assert!(ending.is_given_up(late));
        ending.on_frame();
        assert!(!ending.is_given_up(late));
    }

    #[test]
    fn an_unknown_rung_is_refused_with_those_that_there_are() {
        let mut video = StreamInfo::data("video", 25, 1_000);
        video.kind = StreamKind::Video;
        video.rungs = vec![video.rungs[0].clone(); 2];
        video.rungs[0].name = "1M".to_owned();
        video.rungs[1].name = "200k".to_owned();
        let catalogue = Catalogue {
            version: 1,
            starts: Default::default(),
            title: None,
            streams: vec![video],
            signer: "/cam/KEY/1".to_owned(),
        };
        assert!(ending("200k").on_catalogue(&catalogue).is_ok());
        assert!(ending("highest").on_catalogue(&catalogue).is_ok());
        let mut ending = ending("2M");
        let refused = said(ending.on_catalogue(&catalogue));
        assert!(refused.contains("no quality '2M'"), "{refused}");
        assert!(refused.contains("--rung with 1M, 200k, auto"), "{refused}");
        // A publisher that was started again with other rungs does not end what plays.
        assert!(ending.on_catalogue(&catalogue).is_ok());
    }

    #[test]
    fn hls_is_refused_with_where_it_plays() {
        let mut hls = StreamInfo::data("hls", 25, 1_000);
        (hls.kind, hls.codec) = (StreamKind::Other, HLS.to_owned());
        let catalogue = Catalogue {
            version: 1,
            starts: Default::default(),
            title: None,
            streams: vec![hls],
            signer: "/cam/KEY/1".to_owned(),
        };
        let refused = said(ending("auto").on_catalogue(&catalogue));
        assert!(refused.contains("?name=/cam"), "{refused}");
        assert!(refused.contains("--output film.mp4"), "{refused}");
    }

    #[test]
    fn a_time_before_what_is_kept_is_refused_with_one_that_is() {
        let mut ending = ending("auto");
        let since = Timestamp::from_micros(1_777_636_800_000_000);
        let unkept = Unkept::NotThere { since: Some(since) };
        let refused = said(ending.on_unkept(Timestamp::default(), unkept));
        let advice = format!("write --from '{}' or later", local(since));
        assert!(refused.ends_with(&advice), "{refused}");
        ending.on_past();
        assert!(ending.on_unkept(since, Unkept::Unanswered).is_ok());
    }
}
