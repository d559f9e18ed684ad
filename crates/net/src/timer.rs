//! What an application sleeps by.

use namecast_units::{Duration, Instant};

use crate::Clock;

/// How long to sleep when nothing is due.
const IDLE: Duration = Duration::from_secs(60);

/// Wakes a task when something is due: to the millisecond, which costs no call of the system, or [finely](Self::fine).
#[derive(Debug, Default)]
pub struct Timer {
    #[cfg(target_os = "linux")]
    fine: Option<fine::Alarm>,
}

impl Timer {
    /// Returns a timer that counts nanoseconds where the system has one, which is Linux, for what shall leave at its time and
    /// not with whatever else is due in the same millisecond. Each sleep costs two calls of the system.
    ///
    /// # Errors
    /// If the system has no room for one.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn fine() -> std::io::Result<Self> {
        #[cfg(target_os = "linux")]
        let timer = Self {
            fine: Some(fine::Alarm::new()?),
        };
        #[cfg(not(target_os = "linux"))]
        let timer = Self::default();
        Ok(timer)
    }

    /// Sleeps until `due`, or for a minute if that is `None`.
    pub async fn sleep_until(&self, clock: Clock, due: Option<Instant>) {
        let wait = due.map_or(IDLE, |at| at.since(clock.now()));
        #[cfg(target_os = "linux")]
        if let Some(alarm) = &self.fine
            && alarm.wait(wait).await.is_ok()
        {
            return;
        }
        tokio::time::sleep(wait).await;
    }
}

#[cfg(target_os = "linux")]
mod fine {
    use std::io;
    use std::os::fd::OwnedFd;

    use namecast_units::Duration;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// A timer of the kernel.
    #[derive(Debug)]
    pub(super) struct Alarm(AsyncFd<OwnedFd>);

    impl Alarm {
        #[expect(
            deprecated,
            reason = "its soundness is about what closes behind its back, which an OwnedFd does not"
        )]
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?).map(Self)
        }

        /// Waits for so long.
        pub(super) async fn wait(&self, duration: Duration) -> io::Result<()> {
            const NEVER: Timespec = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // A wait of nothing would disarm it.
            let duration = duration.max(Duration::from_nanos(1));
            let value = Timespec {
                tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: duration.subsec_nanos().into(),
            };
            let once = Itimerspec {
                it_interval: NEVER,
                it_value: value,
            };
            // Whether it rang before is forgotten with this.
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            loop {
                let mut ready = self.0.readable().await?;
                let rang = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut [0; 8])?));
                if let Ok(rang) = rang {
                    return rang.map(|_| ());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody is woken early by either timer: neither by it nor by a sleep before, which was given up 0.2 ms before its end.
    #[tokio::test]
    async fn nobody_is_woken_early() {
        let clock = Clock::new();
        for timer in [Timer::default(), Timer::fine().unwrap()] {
            for micros in [0, 300, 1_700] {
                let due = clock.now() + Duration::from_micros(micros);
                tokio::select! {
                    biased;
                    () = timer.sleep_until(clock, Some(due.saturating_sub(Duration::from_micros(200)))) => {}
                    () = core::future::ready(()) => {}
                }
                timer.sleep_until(clock, Some(due)).await;
                assert!(clock.now() >= due);
            }
        }
    }
}
