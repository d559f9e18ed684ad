//! One log line per second for each reason, of those that strangers cause.

use core::fmt;
use std::sync::{Mutex, PoisonError};

use namecast_units::{Instant, LogLimit};

use crate::Clock;

/// Lines of this process.
static LIMIT: Mutex<LogLimit<&'static str>> = Mutex::new(LogLimit::new());

/// Number of lines of a reason left out since the last one, as the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut(pub u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " ({count} more left out)"),
        }
    }
}

/// Returns whether a line of `reason` is logged, with the end of the line; `None`: there was one in the last second.
pub fn admit(reason: &'static str) -> Option<LeftOut> {
    let mut limit = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Clock::new().now().since(Instant::ZERO);
    limit.admit(now, reason).map(LeftOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_many_are_missing() {
        assert_eq!(LeftOut(0).to_string(), "");
        assert_eq!(LeftOut(7).to_string(), " (7 more left out)");
        let reason = "one of this test alone";
        assert_eq!(admit(reason), Some(LeftOut(0)));
        assert_eq!(admit(reason), None);
    }
}
