//! Listeners that are started again when they end, whether by an error or a panic.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namecast_units::Duration;
use serde_json::{Value, json};
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

/// Pause before a listener is started again: within a second it is there, and one that cannot start costs little.
const PAUSE: Duration = Duration::from_millis(250);

/// State of a listener, for `/health` and metrics.
#[derive(Debug)]
pub struct ListenerState {
    name: String,
    restarts: AtomicU64,
    /// Why it does not listen; `None`: it does.
    problem: Mutex<Option<String>>,
    #[cfg(test)]
    fault: tokio::sync::Notify,
}

impl ListenerState {
    /// Returns the state of the listener `name`, which listens.
    pub fn new(name: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            restarts: AtomicU64::new(0),
            problem: Mutex::default(),
            #[cfg(test)]
            fault: tokio::sync::Notify::new(),
        })
    }

    /// Records that it listens. Counts a restart if it did not before.
    pub fn set_up(&self) {
        if self.lock().take().is_some() {
            self.restarts.fetch_add(1, Ordering::Relaxed);
            tracing::info!("the {} listener is back", self.name);
        }
    }

    /// Records that it does not listen.
    pub fn set_down(&self, why: &str) {
        let problem = format!("the {} listener is down: {why}", self.name);
        tracing::error!("{problem}");
        *self.lock() = Some(problem);
    }

    /// Returns why it does not listen, if it does not.
    pub fn problem(&self) -> Option<String> {
        self.lock().clone()
    }

    /// Returns how often it was started again.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    pub(crate) fn figures(&self) -> Value {
        json!({
            "listener": self.name,
            "up": self.lock().is_none(),
            "restarts": self.restarts(),
        })
    }

    /// Ends the listener by a panic, as a defect would.
    #[cfg(test)]
    pub(crate) fn inject_fault(&self) {
        self.fault.notify_one();
    }

    #[cfg(test)]
    async fn fault(&self) -> String {
        self.fault.notified().await;
        panic!("fault injected");
    }

    #[cfg(not(test))]
    async fn fault(&self) -> String {
        core::future::pending().await
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the listener that `listen` returns, and again after it ended or panicked. It returns why it ended, and calls
/// [`ListenerState::set_up`] of the state that it gets once it listens.
pub async fn keep_running<F>(
    state: Arc<ListenerState>,
    mut listen: impl FnMut(Arc<ListenerState>) -> F,
) where
    F: Future<Output = String> + Send + 'static,
{
    loop {
        let listening = listen(Arc::clone(&state));
        let faulty = Arc::clone(&state);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            tokio::select! {
                why = listening => why,
                why = faulty.fault() => why,
            }
        });
        let why = match tasks.join_next().await {
            Some(Ok(why)) => why,
            Some(Err(error)) => panicked(error),
            None => "it has no task".to_owned(),
        };
        state.set_down(&why);
        sleep(PAUSE).await;
    }
}

/// Waits until a listener was started again so often, and listens.
#[cfg(test)]
pub(crate) async fn until_restarted(state: &ListenerState, restarts: u64) {
    while state.restarts() < restarts || state.problem().is_some() {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Returns what a task that was not cancelled panicked with.
pub(crate) fn panicked(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "its task was cancelled".to_owned();
    };
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_is_started_again_and_counted() {
        let state = ListenerState::new("rtmp");
        let (starts, mut started) = tokio::sync::mpsc::channel(1);
        let running = keep_running(Arc::clone(&state), move |state| {
            let starts = starts.clone();
            async move {
                state.set_up();
                starts.send(()).await.unwrap();
                match state.restarts() {
                    0 => panic!("number {}", 7),
                    1 => "the socket broke".to_owned(),
                    _ => core::future::pending().await,
                }
            }
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(running);
        for (restarts, why) in [(0, "panicked: number 7"), (1, "the socket broke")] {
            started.recv().await.unwrap();
            assert_eq!(state.restarts(), restarts);
            let problem = loop {
                if let Some(problem) = state.problem() {
                    break problem;
                }
                tokio::task::yield_now().await;
            };
            assert_eq!(problem, format!("the rtmp listener is down: {why}"));
        }
        started.recv().await.unwrap();
        assert_eq!((state.restarts(), state.problem()), (2, None));
        state.inject_fault();
        started.recv().await.unwrap();
        assert_eq!(state.restarts(), 3);
    }
}
