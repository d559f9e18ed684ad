//! How far a run has come: a bar on a terminal, a line now and then elsewhere.

use namecast_command::report::print_error;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Lines for a whole run that does not go to a terminal.
const LINES: u64 = 20;

/// Shows how far a run has come. All methods may be called from any thread.
#[derive(Debug)]
pub struct Progress {
    how: How,
    done: AtomicU64,
    total: AtomicU64,
    said: Mutex<u64>,
}

#[derive(Debug)]
enum How {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

impl Progress {
    /// On standard error; nothing at all if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let how = if quiet {
            How::Nothing
        } else if std::io::stderr().is_terminal() {
            How::Bar(ProgressBar::with_draw_target(
                None,
                ProgressDrawTarget::stderr(),
            ))
        } else {
            How::Lines
        };
        Self {
            how,
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            said: Mutex::new(0),
        }
    }

    /// `total` runs are left to do; `kept` were done before.
    pub(super) fn begin(&self, total: usize, kept: usize) {
        self.total.store(total as u64, Ordering::Relaxed);
        if kept > 0 {
            self.say(&format!("{kept} runs were finished before"));
        }
        match &self.how {
            How::Bar(bar) => {
                bar.set_length(total as u64);
                let style = "{bar:40} {pos}/{len} runs, {elapsed} gone, {eta} left  {msg}";
                bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
                bar.enable_steady_tick(Duration::from_millis(250));
            }
            How::Lines => print_error(format_args!("{total} runs to do")),
            How::Nothing => {}
        }
    }

    /// One more run of `experiment` is done.
    pub(super) fn done(&self, experiment: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.how {
            How::Bar(bar) => {
                bar.set_message(experiment.to_owned());
                bar.inc(1);
            }
            How::Lines => {
                let total = self.total.load(Ordering::Relaxed).max(1);
                let step = done * LINES / total;
                let mut said = self
                    .said
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                if step > *said {
                    *said = step;
                    print_error(format_args!("{done} of {total} runs ({experiment})"));
                }
            }
            How::Nothing => {}
        }
    }

    /// A line that stays, even in a quiet run.
    pub(super) fn warn(&self, text: &str) {
        match &self.how {
            How::Bar(bar) => bar.suspend(|| print_error(format_args!("warning: {text}"))),
            How::Lines | How::Nothing => print_error(format_args!("warning: {text}")),
        }
    }

    /// A line that stays.
    pub(super) fn say(&self, text: &str) {
        match &self.how {
            How::Bar(bar) => bar.suspend(|| print_error(format_args!("{text}"))),
            How::Lines => print_error(format_args!("{text}")),
            How::Nothing => {}
        }
    }

    /// Takes the bar away.
    pub(super) fn end(&self) {
        if let How::Bar(bar) = &self.how {
            bar.finish_and_clear();
        }
    }
}
