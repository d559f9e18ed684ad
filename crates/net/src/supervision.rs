//! Listeners that are started again when they end, whether by an error or a panic.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use namecast_units::Duration;
use tokio::sync::Notify;
use tokio::task::JoinError;
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
    fault: Notify,
    peer_fault: Notify,
}

impl ListenerState {
    /// Returns the state of the listener `name`, which listens.
    pub fn new(name: impl Into<String>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            restarts: AtomicU64::new(0),
            problem: Mutex::default(),
            fault: Notify::new(),
            peer_fault: Notify::new(),
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

    /// Returns how often it, or a task that serves one of its peers, was started again.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends the listener by a panic, as a defect would. For tests.
    pub fn inject_fault(&self) {
        self.fault.notify_one();
    }

    /// Ends a task that [`serve`](Self::serve) runs by a panic. For tests.
    pub fn inject_peer_fault(&self) {
        self.peer_fault.notify_one();
    }

    /// Runs the listener once: `listening` calls [`set_up`](Self::set_up) once it listens, and returns why it ended. Returns when it is time
    /// to start it again.
    pub async fn run(&self, listening: impl Future<Output = String>) {
        let ended = until_panic(listening, &self.fault).await;
        let (Ok(why) | Err(why)) = ended;
        self.set_down(&why);
        sleep(PAUSE).await;
    }

    /// Runs `task`, which serves one peer, and returns its output; `None`: it panicked, and is to start again. That is counted, but the
    /// listener stays up, as it serves all others.
    pub async fn serve<T>(&self, task: impl Future<Output = T>) -> Option<T> {
        match until_panic(task, &self.peer_fault).await {
            Ok(output) => Some(output),
            Err(why) => {
                tracing::error!("a task of the {} listener ended: {why}", self.name);
                sleep(PAUSE).await;
                self.restarts.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
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
    F: Future<Output = String>,
{
    loop {
        state.run(listen(Arc::clone(&state))).await;
    }
}

/// Runs `task` to its end; returns the text of its panic if it panics, or if a `fault` is injected.
async fn until_panic<T>(task: impl Future<Output = T>, fault: &Notify) -> Result<T, String> {
    let task = async {
        tokio::select! {
            biased;
            () = fault.notified() => panic!("fault injected"),
            output = task => output,
        }
    };
    catch_panic(task).await
}

/// Runs `task` to its end; returns the text of its panic if it panics.
pub(crate) async fn catch_panic<T>(task: impl Future<Output = T>) -> Result<T, String> {
    // What the task had is dropped with it. What it shares are tables that are valid after each step, and counters.
    let ended = AssertUnwindSafe(task).catch_unwind().await;
    ended.map_err(|panic| panic_text(&*panic))
}

/// Waits until a listener was started again so often, and listens.
#[doc(hidden)]
pub async fn until_restarted(state: &ListenerState, restarts: u64) {
    while state.restarts() < restarts || state.problem().is_some() {
        sleep(Duration::from_millis(10)).await;
    }
}

/// Returns what a task that was not cancelled panicked with.
pub fn panicked(error: JoinError) -> String {
    let cancelled = |_| "its task was cancelled".to_owned();
    (error.try_into_panic()).map_or_else(cancelled, |panic| panic_text(&*panic))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no text"))
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicUsize;

    use tokio::sync::mpsc;
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    use super::*;

    /// Starts a listener that does `listen` with the number of its restarts. Returns its task, and what reports each start.
    fn listen<F: Future<Output = String> + Send + 'static>(
        state: &Arc<ListenerState>,
        listen: impl Fn(u64) -> F + Copy + Send + 'static,
    ) -> (JoinSet<()>, mpsc::Receiver<()>) {
        let (starts, started) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_running(Arc::clone(state), move |state| {
            let starts = starts.clone();
            async move {
                state.set_up();
                starts.send(()).await.unwrap();
                listen(state.restarts()).await
            }
        }));
        (tasks, started)
    }

    #[tokio::test]
    async fn a_listener_is_started_again_and_counted() {
        let state = ListenerState::new("rtmp");
        let (_tasks, mut started) = listen(&state, |restarts| async move {
            match restarts {
                0 => panic!("number {}", 7),
                1 => "the socket broke".to_owned(),
                _ => core::future::pending().await,
            }
        });
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

    /// Each fault is noticed before any time passes, and the listener is back within a second.
    #[tokio::test(start_paused = true)]
    async fn a_thousand_faults_are_a_thousand_restarts() {
        let state = ListenerState::new("tcp");
        let (_tasks, mut started) = listen(&state, |_| core::future::pending());
        started.recv().await.unwrap();
        for restarts in 1..=1_000 {
            state.inject_fault();
            // Time stands still while a task is ready.
            while state.problem().is_none() {
                tokio::task::yield_now().await;
            }
            let problem = "the tcp listener is down: panicked: fault injected";
            assert_eq!(state.problem().as_deref(), Some(problem));
            let back = timeout(Duration::from_secs(1), started.recv()).await;
            back.unwrap().unwrap();
            assert_eq!((state.restarts(), state.problem()), (restarts, None));
        }
    }

    /// The task of one peer starts again with what it had, while the listener stays up.
    #[tokio::test(start_paused = true)]
    async fn a_peer_is_served_on_after_a_panic() {
        let state = ListenerState::new("udp");
        let served = Arc::new(AtomicUsize::new(0));
        let (faulty, counted) = (Arc::clone(&state), Arc::clone(&served));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let serving = async {
                    match counted.fetch_add(1, Ordering::Relaxed) {
                        3 => "the peer left",
                        _ => core::future::pending().await,
                    }
                };
                if let Some(output) = faulty.serve(serving).await {
                    return output;
                }
            }
        });
        for restarts in 1..=3 {
            while served.load(Ordering::Relaxed) < restarts as usize {
                tokio::task::yield_now().await;
            }
            state.inject_peer_fault();
            until_restarted(&state, restarts).await;
            assert_eq!(state.problem(), None);
        }
        assert_eq!(tasks.join_next().await.unwrap().unwrap(), "the peer left");
        assert_eq!(served.load(Ordering::Relaxed), 4);
    }
}
