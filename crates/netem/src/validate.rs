//! What a configuration must keep to.

use namecast_units::{Bitrate, ByteSize, Duration};

use crate::config::{Config, Queue};
use crate::loss::Loss;
use crate::rate::Rate;

/// Shortest time between two updates of a controller: each of them is worked off.
const SHORTEST_UPDATE: Duration = Duration::from_millis(1);

/// More than any packet has of them.
const MAX_HEADERS: ByteSize = ByteSize::bytes(65_536);

/// A value of a [`Config`] that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}")]
pub struct ConfigError {
    /// Where it is, as in `queue.max-probability` or `schedule.0.at`.
    pub field: String,
    /// What was expected there.
    pub expected: &'static str,
}

impl Config {
    /// Says what is wrong with the first value that makes no sense.
    ///
    /// # Errors
    /// The value's place, and what was expected.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let positive = |rate: Option<Bitrate>| rate.is_none_or(|rate| rate > Bitrate::ZERO);
        self.check_rate()?;
        share("duplicate", self.duplicate)?;
        share("corrupt", self.corrupt)?;
        check(
            "headers",
            self.headers <= MAX_HEADERS,
            "at most 65536 bytes",
        )?;
        check(
            "max-in-flight",
            self.max_in_flight > 0,
            "at least one frame",
        )?;
        self.check_loss()?;
        let mut last = Duration::ZERO;
        for (index, outage) in self.outages.iter().enumerate() {
            let field = |name: &str| format!("outages.{index}.{name}");
            let expected = "a time not before the end of the outage above";
            check(&field("from"), outage.from >= last, expected)?;
            let is_later = outage.until > outage.from;
            check(&field("until"), is_later, "a time after 'from'")?;
            last = outage.until;
        }
        let is_constant = (self.rate.as_ref()).is_none_or(|rate| rate.constant().is_some());
        let mut last = Duration::ZERO;
        for (index, step) in self.schedule.iter().enumerate() {
            let field = |name: &str| format!("schedule.{index}.{name}");
            let expected = "a time not before that of the step above";
            check(&field("at"), step.at >= last, expected)?;
            check(&field("rate"), positive(step.rate), "a rate above zero")?;
            let expected = "no rate: the link's is a trace or model, and changes by itself";
            check(&field("rate"), step.rate.is_none() || is_constant, expected)?;
            last = step.at;
        }
        self.check_queue()
    }

    fn check_rate(&self) -> Result<(), ConfigError> {
        match &self.rate {
            Some(Rate::Constant(rate)) => check("rate", *rate > Bitrate::ZERO, "a rate above zero"),
            Some(Rate::Trace(_)) => check("rate.trace", false, "a trace that has been read"),
            Some(Rate::Model(model)) => {
                check("rate.mean", model.is_sound(), "10 kbit/s to 100 Mbit/s")
            }
            Some(Rate::Schedule(_)) | None => Ok(()),
        }
    }

    fn check_loss(&self) -> Result<(), ConfigError> {
        match self.loss {
            Loss::None => Ok(()),
            Loss::Random { share: lost } => share("loss.share", lost),
            Loss::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
            } => {
                share("loss.good-to-bad", good_to_bad)?;
                share("loss.bad-to-good", bad_to_good)?;
                share("loss.loss-good", loss_good)?;
                share("loss.loss-bad", loss_bad)
            }
        }
    }

    fn check_queue(&self) -> Result<(), ConfigError> {
        match self.queue {
            Queue::DropTail { .. } | Queue::DropTailBytes { .. } => Ok(()),
            Queue::CoDel { interval, .. } => {
                let is_positive = interval > Duration::ZERO;
                check("queue.interval", is_positive, "a time above zero")
            }
            Queue::Red {
                min,
                max,
                max_probability,
                weight,
                ..
            } => {
                let is_number = min.is_finite() && min >= 0.0;
                check("queue.min", is_number, "a number of frames, 0 or more")?;
                let is_larger = max.is_finite() && max > min;
                check("queue.max", is_larger, "a number of frames above 'min'")?;
                share("queue.max-probability", max_probability)?;
                let is_weight = weight > 0.0 && weight <= 1.0;
                check("queue.weight", is_weight, "a share above 0, at most 1")
            }
            Queue::Pi2 {
                update,
                alpha,
                beta,
                ..
            } => {
                check("queue.update", update >= SHORTEST_UPDATE, "1 ms or more")?;
                let is_gain = |gain: f64| gain.is_finite() && gain >= 0.0;
                check("queue.alpha", is_gain(alpha), "a gain, 0 or more")?;
                check("queue.beta", is_gain(beta), "a gain, 0 or more")
            }
            Queue::Ramp { min, max, .. } => check("queue.max", max > min, "a time above 'min'"),
        }
    }
}

fn check(field: &str, holds: bool, expected: &'static str) -> Result<(), ConfigError> {
    match holds {
        true => Ok(()),
        false => Err(ConfigError {
            field: field.to_owned(),
            expected,
        }),
    }
}

fn share(field: &str, value: f64) -> Result<(), ConfigError> {
    check(
        field,
        (0.0..=1.0).contains(&value),
        "a share between 0 and 1",
    )
}
