//! How fast a consumer may ask for Data. One file per algorithm, each named after its paper.

mod fixed;
mod pacer;

use core::fmt::Debug;
use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

pub use fixed::{Fixed, Unlimited};
pub use pacer::Pacer;

/// What a controller learns from one Data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the Interest left.
    pub asked_at: Instant,
    /// Time from Interest to Data, less the time the Interest waited for the Data to exist; `None` if the Interest was
    /// sent more than once, or how long it waited is unknown.
    pub rtt: Option<Duration>,
    /// Size of the Data packet on the wire.
    pub size: ByteSize,
    /// A node on the path saw its queue build up.
    pub congestion_marked: bool,
    /// Smallest rate any node on the path was willing to give, if the path reports one.
    pub offered_rate: Option<Bitrate>,
}

/// How a consumer learned that a Data packet will not come by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Data asked for later has come.
    Gap,
    /// The Interest's retransmission timer ran out.
    Timeout,
    /// The Interest came back because of congestion.
    Nack,
}

/// What a controller allows from now on. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Rate at which Data may be requested.
    pub rate: Option<Bitrate>,
    /// Segments that may be asked for and not yet there, of samples that exist already.
    pub window: Option<u32>,
}

/// Decides how fast a consumer may request Data.
///
/// The pipeline reports what happened; the controller answers [`target`](Self::target).
/// It owns no clock, timer or randomness: the same reports give the same rate.
pub trait RateController: Debug + Send {
    /// One requested Data packet arrived.
    fn on_data(&mut self, now: Instant, data: &Arrival);

    /// An Interest was given up and sent again, or came back.
    fn on_loss(&mut self, now: Instant, loss: Loss);

    /// What is allowed from now on.
    fn target(&self) -> Target;

    /// The controller's name, for people.
    fn name(&self) -> &'static str;
}

/// Which controller a consumer uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateControl {
    /// Everything is asked for as soon as it is wanted: the stream's own bitrate is the limit.
    #[default]
    Unlimited,
    /// At most this rate.
    Fixed(Bitrate),
}

impl RateControl {
    /// Makes the controller; `now` starts its periods.
    pub fn build(self, _now: Instant) -> Box<dyn RateController> {
        match self {
            Self::Unlimited => Box::new(Unlimited),
            Self::Fixed(rate) => Box::new(Fixed::new(rate)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_chooses_the_controller() {
        let unlimited = RateControl::default().build(Instant::ZERO);
        assert_eq!(unlimited.target(), Target::default());
        assert_eq!(unlimited.name(), "unlimited");

        let mut fixed = RateControl::Fixed(Bitrate::mbps(2)).build(Instant::ZERO);
        fixed.on_loss(Instant::ZERO, Loss::Timeout);
        assert_eq!(fixed.target().rate, Some(Bitrate::mbps(2)));
        assert_eq!(fixed.target().window, None);
        assert_eq!(fixed.name(), "fixed");
    }
}
