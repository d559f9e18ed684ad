//! The one loop that runs an application in real time.
//!
//! ```text
//!   face ─ frames ─▶ ┐                  ┌ frames ─▶ face
//!          the time ▶│ step(application)│
//!   Handle ─ calls ▶ ┘                  └ events ─▶ whoever runs it
//! ```

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_apps::{Application, Now, Output, step};
use namecast_units::Instant;
use tokio::sync::{mpsc, oneshot};

use crate::{ApplicationFace, ApplicationReceiver, ApplicationSender, Clock, Timer};

/// Frames that are taken from the face at once.
const BATCH: usize = 256;
/// Calls that may wait.
const MAX_CALLS: usize = 256;
/// Events that may wait. They come in bursts, while joining; whoever is slower for long makes the application wait.
const MAX_EVENTS: usize = 1_024;

type Call<A> = Box<dyn FnOnce(&mut A, Now) + Send>;

/// A handle on an application that runs. The application ends with its last handle.
pub struct Handle<A> {
    calls: mpsc::Sender<Call<A>>,
}

/// A handle that does not keep the application running.
pub struct WeakHandle<A> {
    calls: mpsc::WeakSender<Call<A>>,
}

impl<A> WeakHandle<A> {
    /// Returns a handle on the application, if it still runs.
    pub fn upgrade(&self) -> Option<Handle<A>> {
        Some(Handle {
            calls: self.calls.upgrade()?,
        })
    }
}

impl<A> Clone for WeakHandle<A> {
    fn clone(&self) -> Self {
        Self {
            calls: self.calls.clone(),
        }
    }
}

impl<A> Clone for Handle<A> {
    fn clone(&self) -> Self {
        Self {
            calls: self.calls.clone(),
        }
    }
}

impl<A> core::fmt::Debug for Handle<A> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl<A: 'static> Handle<A> {
    /// Returns a handle that does not keep the application running.
    pub fn downgrade(&self) -> WeakHandle<A> {
        WeakHandle {
            calls: self.calls.downgrade(),
        }
    }

    /// Calls the application between two of its steps, and returns what `call` returns; `None` if it has ended.
    pub async fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&mut A, Now) -> R + Send + 'static,
    ) -> Option<R> {
        let (reply, answer) = oneshot::channel();
        let call = move |application: &mut A, now: Now| {
            // Whoever called may have given up.
            drop(reply.send(call(application, now)));
        };
        self.calls.send(Box::new(call)).await.ok()?;
        answer.await.ok()
    }

    /// Has the application called between two of its steps, without waiting. Returns whether it will be: not if it has ended,
    /// or if 256 calls wait.
    pub fn try_call(&self, call: impl FnOnce(&mut A, Now) + Send + 'static) -> bool {
        self.calls.try_send(Box::new(call)).is_ok()
    }
}

/// What it takes to run an application.
pub struct Driven<A: Application> {
    /// For calls from outside.
    pub handle: Handle<A>,
    /// What it reports.
    pub events: mpsc::Receiver<A::Event>,
    driver: Driver<A>,
}

/// Prepares to run `application` on `face`.
pub fn drive<A>(clock: Clock, face: ApplicationFace, application: A) -> Driven<A>
where
    A: Application<Event: Send> + Send + 'static,
{
    let (calls, queue) = mpsc::channel(MAX_CALLS);
    let (events, heard) = mpsc::channel(MAX_EVENTS);
    let (sender, receiver) = face.split();
    let driver = Driver {
        clock,
        timer: Timer::default(),
        application,
        sender,
        receiver,
        calls: queue,
        events,
        unheard: VecDeque::new(),
    };
    Driven {
        handle: Handle { calls },
        events: heard,
        driver,
    }
}

impl<A: Application<Event: Send> + Send + 'static> Driven<A> {
    /// Lets it be woken by `timer` and not to the millisecond.
    #[must_use]
    pub fn timed_by(mut self, timer: Timer) -> Self {
        self.driver.timer = timer;
        self
    }

    /// Runs it on the current tokio runtime until its face, all handles or the receiver of its events are gone; then calls
    /// `ended`.
    ///
    /// Returns a handle on it, and its events.
    pub fn spawn(
        self,
        ended: impl FnOnce() + Send + 'static,
    ) -> (Handle<A>, mpsc::Receiver<A::Event>) {
        let driver = self.driver;
        tokio::spawn(async move {
            driver.run().await;
            ended();
        });
        (self.handle, self.events)
    }
}

struct Driver<A: Application> {
    clock: Clock,
    timer: Timer,
    application: A,
    sender: ApplicationSender,
    receiver: ApplicationReceiver,
    calls: mpsc::Receiver<Call<A>>,
    events: mpsc::Sender<A::Event>,
    /// Events that wait for room. While there are any, no frames are taken; calls are, since whoever hears events may be
    /// waiting for one.
    unheard: VecDeque<A::Event>,
}

impl<A: Application> Driver<A> {
    async fn run(mut self) {
        let mut frames = Vec::with_capacity(BATCH);
        while let Some(due) = self.step(&mut frames).await {
            let is_running = tokio::select! {
                alive = self.receiver.recv_many(&mut frames, BATCH), if self.unheard.is_empty() => alive,
                call = self.calls.recv() => match call {
                    Some(call) => {
                        call(&mut self.application, self.clock.both());
                        true
                    }
                    None => false,
                },
                room = self.events.reserve(), if !self.unheard.is_empty() => match room {
                    Ok(room) => {
                        if let Some(event) = self.unheard.pop_front() {
                            room.send(event);
                        }
                        true
                    }
                    Err(_) => false,
                },
                () = self.timer.sleep_until(self.clock, due) => true,
            };
            if !is_running {
                return;
            }
        }
    }

    /// Returns when the next step is due, if ever; `None` once nobody takes what the application gives.
    async fn step(&mut self, frames: &mut Vec<Bytes>) -> Option<Option<Instant>> {
        let clock = self.clock;
        let mut sent = Vec::new();
        let frames = frames.drain(..).map(|frame| (clock.both(), frame));
        let due = step(
            &mut self.application,
            clock.both(),
            frames,
            |output| match output {
                Output::Send(frame) => sent.push(frame),
                Output::Event(event) => self.unheard.push_back(event),
            },
        );
        if !sent.is_empty() {
            self.sender.send_batch(sent).await.ok()?;
        }
        while let Some(event) = self.unheard.pop_front() {
            match self.events.try_send(event) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(event)) => {
                    self.unheard.push_front(event);
                    break;
                }
                Err(mpsc::error::TrySendError::Closed(_)) => return None,
            }
        }
        Some(due)
    }
}
