//! What the page watches.

use namecast_apps::Output;
use namecast_apps::live::watcher::{
    Event, Liveness, Seek, Signer, Verdict, Watch, WatchId, Watched,
};
use namecast_apps::sealed::Unopened;
use namecast_forward::FaceConfig;
use namecast_stream::StreamKind;
use namecast_stream::path::Weight;
use namecast_units::{Duration, Instant};
use serde::Serialize;

use crate::config::{ConfigError, WatchConfig, parse_target, rung_choice};
use crate::files::{FetchError, Files, FilesFigures};
use crate::outbox::{Source, TabEvent, hex};
use crate::room::Room;
use crate::tab::{Tab, TabCounters};
use crate::watching::{MAX_WATCHES, TabWatch};

/// Why the page cannot watch a stream.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// What the page says makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tab watches as many streams as it may.
    #[error("this tab watches sixteen streams already")]
    Full,
}

/// Methods for watches, by the number that [`watch`](Tab::watch) returned. Those of a number that is not watched any more do
/// nothing.
impl Tab {
    /// Watches what `config` says. Returns the number of the watch.
    ///
    /// # Errors
    /// If a field of `config` makes no sense, or the tab watches sixteen streams already.
    pub fn watch(&mut self, now: Instant, config: &WatchConfig) -> Result<u32, WatchError> {
        if self.watches.len() == MAX_WATCHES {
            return Err(WatchError::Full);
        }
        let wall_at_zero = self.both(Instant::ZERO).wall;
        let seed = self.random.next_u64();
        let watcher = config.watcher(wall_at_zero, seed, self.room.as_ref().map(Room::reading))?;
        let control = config.controller.unwrap_or_default();
        let seed = self.random.next_u64();
        let files = Files::new(watcher.root.clone(), wall_at_zero, control, seed);
        let face = FaceConfig {
            local_fields: true,
            ..FaceConfig::application("files")
        };
        let files_face = self
            .node
            .add_face(face)
            .expect("there is a face for each of so many");
        let watch = TabWatch {
            id: self.watchers.add(watcher),
            files,
            files_face,
        };
        let number = self.draw_number();
        self.watches.insert(number, watch);
        self.handle_timeout(now);
        Ok(number)
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, now: Instant, number: u32) {
        if let Some(watch) = self.watches.remove(&number) {
            self.watchers.remove(watch.id);
            self.node.remove_face(now, watch.files_face);
            self.turn(now);
        }
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Watch> {
        self.watchers.get_mut(self.watches.get(&number)?.id)
    }

    /// Moves the playout target.
    ///
    /// # Errors
    /// The target is negative, above ten seconds, or no number.
    pub fn set_target(
        &mut self,
        now: Instant,
        number: u32,
        milliseconds: f64,
    ) -> Result<(), ConfigError> {
        let target = parse_target(milliseconds)?;
        if let Some(watch) = self.get_mut(number) {
            watch.set_target(now, target);
            self.turn(now);
        }
        Ok(())
    }

    /// Sets how long before they are shown the page gets frames of video from now on.
    pub fn set_decode_lead(&mut self, now: Instant, number: u32, lead: Duration) {
        if let Some(watch) = self.get_mut(number) {
            watch.set_decode_lead(now, lead);
            self.turn(now);
        }
    }

    /// Chooses another rung: its name, `highest` or `lowest`.
    pub fn set_rung(&mut self, now: Instant, number: u32, name: &str) {
        if let Some(watch) = self.get_mut(number) {
            watch.set_rung(now, rung_choice(Some(name)));
            self.turn(now);
        }
    }

    /// Chooses whether video and audio are requested.
    pub fn set_wanted(&mut self, now: Instant, number: u32, video: bool, audio: bool) {
        if let Some(watch) = self.get_mut(number) {
            watch.set_wanted(now, video, audio);
            self.turn(now);
        }
    }

    /// Sets the weight of its pictures beside those of other watches of the tab.
    pub fn set_weight(&mut self, now: Instant, number: u32, weight: u8) {
        if let Some(watch) = self.get_mut(number) {
            watch.set_weight(now, Weight::new(weight));
            self.turn(now);
        }
    }

    /// Goes to what was captured at a time, by the publisher's clock, or to live.
    pub fn seek(&mut self, now: Instant, number: u32, to: Seek) {
        if let Some(watch) = self.get_mut(number) {
            watch.seek(now, to);
            self.turn(now);
        }
    }

    /// The page decoded a frame.
    pub fn decoded(&mut self, number: u32, stream: StreamKind, position: u64, took: Duration) {
        if let Some(watch) = self.get_mut(number) {
            watch.handle_decoded(stream, position, took);
        }
    }

    /// The page showed a frame.
    pub fn rendered(&mut self, now: Instant, number: u32, stream: StreamKind, position: u64) {
        if let Some(watch) = self.get_mut(number) {
            watch.handle_rendered(now, stream, position);
        }
    }

    /// The page's decoder failed, or skipped: what it gets next must stand alone.
    pub fn decoder_error(&mut self, now: Instant, number: u32, stream: StreamKind) {
        if let Some(watch) = self.get_mut(number) {
            watch.handle_decoder_error(now, stream);
            self.turn(now);
        }
    }

    /// Fetches the object named by `uri`, which must be under the watched name and signed by its signer; it is known as `object` from
    /// now on.
    ///
    /// # Errors
    /// If it is no such name, too many objects are being fetched, or the signer is not known yet.
    pub fn fetch(
        &mut self,
        now: Instant,
        number: u32,
        object: u64,
        uri: &str,
    ) -> Result<(), FetchError> {
        if let Some(watch) = self.watches.get_mut(&number) {
            watch.files.fetch(now, object, uri)?;
            self.turn(now);
        }
        Ok(())
    }

    /// Fetches an object no more.
    pub fn give_up(&mut self, number: u32, object: u64) {
        if let Some(watch) = self.watches.get_mut(&number) {
            watch.files.give_up(object);
        }
    }

    /// All figures of a watch, as JSON: the watcher's, with the tab's own under `tab`. `null` for a number that is not watched.
    pub fn stats(&self, now: Instant, number: u32) -> String {
        #[derive(Serialize)]
        struct All {
            #[serde(flatten)]
            watcher: namecast_apps::live::Stats,
            tab: TabCounters,
            files: Option<FilesFigures>,
        }
        let all = self.watches.get(&number).and_then(|watch| {
            Some(All {
                watcher: self.watchers.stats(now, watch.id)?,
                tab: self.counters,
                files: watch.files.figures(now),
            })
        });
        serde_json::to_string(&all).expect("figures hold only text and numbers")
    }

    /// Verification failures of all watches.
    pub(crate) fn verification_failures(&self) -> u64 {
        let watches = self.watches.values();
        let watches = watches.filter_map(|it| self.watchers.get(it.id));
        watches.map(Watch::verification_failures).sum()
    }

    /// Passes a packet for objects to the node. Returns whether there was one.
    pub(crate) fn turn_files(&mut self, now: Instant) -> bool {
        let mut all = self.watches.values_mut();
        let output = all.find_map(|it| Some((it.files_face, it.files.poll_output()?)));
        let has_moved = output.is_some();
        if let Some((face, wire)) = output {
            self.node.handle_frame(now, face, wire);
        }
        has_moved
    }

    /// Takes what the watchers have for the network or for the page.
    pub(crate) fn handle_watched(&mut self, now: Instant, output: Output<(WatchId, Watched)>) {
        match output {
            Output::Send(wire) => self.send_of_watchers(now, wire),
            Output::Event((id, watched)) => {
                let mut all = self.watches.iter();
                if let Some((number, _)) = all.find(|(_, it)| it.id == id) {
                    self.report(*number, watched);
                }
            }
        }
    }

    fn report(&mut self, number: u32, watched: Watched) {
        match watched {
            Watched::Frame(frame) => {
                if self.has_room(frame.payload.len()) {
                    self.outbox.frame(number, &frame);
                }
            }
            Watched::Discontinuity { stream, is_jump } => {
                self.outbox.discontinuity(number, stream, is_jump);
            }
            news => self.report_news(number, news),
        }
    }

    fn report_news(&mut self, number: u32, news: Watched) {
        let Some(watch) = self.watches.get_mut(&number) else {
            return;
        };
        let (files, outbox, source) = (&mut watch.files, &mut self.outbox, Source::Watch(number));
        match news {
            Watched::Catalogue(catalogue) => {
                files.handle_catalogue(&catalogue);
                let catalogue = &catalogue;
                outbox.event(source, &TabEvent::Catalogue { catalogue });
            }
            Watched::Signer(signer) => {
                files.handle_signer(&signer);
                outbox.event(source, &signer_event(&signer));
            }
            // Playlists say when segments were made: the catalogue of a package has no samples by which its publisher could confirm that.
            Watched::Event(Event::Liveness(Liveness::Unconfirmed)) if files.is_package() => {}
            Watched::Event(event) => {
                if let Event::Unopened(why) = &event {
                    let why = Some(reason_of(why));
                    outbox.event(source, &TabEvent::Sealed { why });
                } else if matches!(event, Event::Opened) {
                    outbox.event(source, &TabEvent::Sealed { why: None });
                }
                if !event.is_detail() {
                    let text = event.to_string();
                    outbox.event(source, &TabEvent::Step { text });
                }
                if let Some(event) = TabEvent::of_travel(&event) {
                    outbox.event(source, &event);
                }
            }
            Watched::Frame(_) | Watched::Discontinuity { .. } => {}
        }
    }
}

/// Returns the reason's name for the page.
const fn reason_of(why: &Unopened) -> &'static str {
    match why {
        Unopened::NotAReader => "notareader",
        Unopened::BeforeJoining => "beforejoining",
        Unopened::MissingBox(_) => "boxmissing",
        Unopened::Damaged => "damaged",
    }
}

fn signer_event(signer: &Signer) -> TabEvent<'static> {
    TabEvent::Signer {
        name: signer.key_name.to_string(),
        digest: hex(&signer.key_digest),
        verdict: signer.verdict.to_string(),
        trusted: !matches!(signer.verdict, Verdict::Refused(_)),
        memory: (&signer.verdict).into(),
    }
}
