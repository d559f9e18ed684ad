//! Keeping faces over datagrams alive.

use namecast_forward::{FaceCounters, FaceId};

use super::LinkState;
use super::event_loop::EventLoop;
use super::events::FaceEventKind;
use crate::link::{Counted, KeepAlive};

/// What the forwarder has counted of a face.
const fn counted(counters: &FaceCounters) -> Counted {
    Counted {
        sent: counters.outgoing.frames,
        heard: counters.incoming.frames,
        keep_alives: counters.keep_alives,
    }
}

impl EventLoop {
    /// Sends what keeps faces alive where it is due, and records peers that fell silent or are heard again.
    pub(super) fn keep_alive(&mut self) {
        let now = self.clock.now();
        let mut changes = Vec::new();
        for (face, entry) in self.faces.iter_mut() {
            let Some(keep_alive) = &mut entry.keep_alive else {
                continue;
            };
            let findings = keep_alive.look(now, counted(&self.plane.face_counters(face)));
            if findings.is_due {
                entry.sender.send_frame(self.clock, KeepAlive::frame());
            }
            changes.extend(findings.silence.map(|is_silent| (face, is_silent)));
        }
        for (face, is_silent) in changes {
            self.change_silence(face, is_silent);
        }
    }

    fn change_silence(&mut self, face: FaceId, is_silent: bool) {
        let Some(entry) = self.faces.get(face) else {
            return;
        };
        let has_changed = entry.state.send_if_modified(|state| {
            let next = match (&*state, is_silent) {
                (LinkState::Up, true) => LinkState::Down("the peer is silent".to_owned()),
                (LinkState::Down(_), false) => LinkState::Up,
                _ => return false,
            };
            *state = next;
            true
        });
        if has_changed {
            self.tell(
                face,
                if is_silent {
                    FaceEventKind::Down
                } else {
                    FaceEventKind::Up
                },
            );
        }
    }
}
