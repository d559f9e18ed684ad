//! Who fetches what from whom, and what changes meanwhile.

use core::num::{NonZeroU32, NonZeroU64};

use namecast_apps::sequence::{Delivery, Ending, FetcherConfig, Repair};
use namecast_packet::Name;
use namecast_stream::path::NumberedConfig;
use namecast_stream::rate::RateControl;
use namecast_units::{Bitrate, ByteSize, Duration};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::choice::Choice;
use super::network::PacketSize;
use super::place::find;
use crate::topology::Topology;

/// How Data are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowDelivery {
    /// One number after the other.
    #[default]
    Numbered,
    /// Whatever comes next: needs hops `any-next` in the nodes, and numbers are provided at most at the flow's
    /// [`provider_rate`](Flow::provider_rate).
    AnyNext,
}

impl FlowDelivery {
    fn is_numbered(&self) -> bool {
        *self == Self::Numbered
    }
}

/// How what is missing of a flow that ends is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowRepair {
    /// Not at all: any packets are of use, until there are enough.
    Coded,
    /// From the provider, once the flow has ended.
    AtEnd,
    /// From the provider, as soon as it is missing.
    Inline,
    /// From neighbours as soon as it is missing and they have it, and from the provider once the flow has ended.
    FromPeers,
}

/// Where a flow ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct End {
    /// Packets of the flow.
    pub packets: NonZeroU64,
    /// How the rest is requested.
    pub repair: FlowRepair,
    /// Packets in a chunk, which neighbours tell each other that they have.
    #[serde(default = "usual_chunk")]
    pub chunk: NonZeroU32,
    /// Rate of content at which it is played.
    #[serde(default = "usual_playout")]
    pub playout: Bitrate,
}

const fn usual_chunk() -> NonZeroU32 {
    NonZeroU32::new(100).expect("it is not zero")
}

const fn usual_playout() -> Bitrate {
    Bitrate::mbps(3)
}

/// One flow, or `count` of them whose names differ in a number: `{}` in a name stands for it, from 1 on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flow {
    /// How many.
    #[default(1)]
    pub count: u32,
    /// Node that asks.
    #[default("C{}".to_owned())]
    pub consumer: String,
    /// Node that answers.
    #[default("P{}".to_owned())]
    pub producer: String,
    /// What its kind is called in metrics; several flows may be of one kind. None if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name that the Data's numbers follow. Flows of one prefix fetch the same Data.
    #[default("/p{}".to_owned())]
    pub prefix: String,
    /// Which Data are requested.
    #[serde(skip_serializing_if = "FlowDelivery::is_numbered")]
    pub delivery: FlowDelivery,
    /// Rate at which any next Data are provided at most, of whole frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_rate: Option<Bitrate>,
    /// When any next Data begin to be provided: before, requests only count.
    #[serde(
        with = "namecast_units::duration",
        skip_serializing_if = "Duration::is_zero"
    )]
    pub provider_start: Duration,
    /// Receiver at whose pace any next Data are provided, as a quantile of the rates that all report: 0, the slowest. Without one, the
    /// pace is that of who requests most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_quantile: Option<f64>,
    /// Where it ends; nowhere without. Numbered Data are requested until all have come, whatever the repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// What decides how fast.
    pub controller: Choice<RateControl>,
    /// When it starts.
    #[serde(with = "namecast_units::duration")]
    pub start: Duration,
    /// Up to how much later it starts, drawn for each flow.
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_millis(10))]
    pub start_spread: Duration,
    /// When it stops, if before the end.
    #[serde(with = "namecast_units::optional_duration")]
    pub stop: Option<Duration>,
    /// Whether lost Data is retransmitted.
    pub retransmit: bool,
    /// Later Data that may overtake before Data counts as lost.
    pub reordering_tolerance: u32,
    /// Numbers in a segment, whose next is not requested before all of it has come; lost Data is then retransmitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<NonZeroU64>,
    /// Paths that it uses at a time, each with a controller of its own: more than one needs hops `path-labels` in the nodes.
    #[default(1)]
    pub max_paths: usize,
    /// How long Interests stay pending.
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_secs(2))]
    pub lifetime: Duration,
}

impl Flow {
    /// Numbers of the flow, if it has an end and no parity behind it.
    pub(super) fn last_number(&self) -> Option<u64> {
        let end = self.end.filter(|end| end.repair != FlowRepair::Coded)?;
        Some(end.packets.get())
    }

    /// A text of this flow's, for copy `number`.
    pub(super) fn named(text: &str, number: u32) -> String {
        text.replace("{}", &number.to_string())
    }

    /// Returns what the fetcher of copy `number` is told, which draws Nonces from `seed`.
    ///
    /// # Errors
    /// If there is no such controller, or the prefix is no name.
    pub fn fetcher(
        &self,
        number: u32,
        packet: PacketSize,
        seed: u64,
    ) -> Result<FetcherConfig, String> {
        let prefix = Self::named(&self.prefix, number).parse();
        let prefix = prefix.map_err(|error| format!("'{}' is no name: {error}", self.prefix))?;
        let requests = NumberedConfig {
            expected_size: ByteSize::bytes(u64::from(packet.payload)),
            control: self.controller.get()?,
            lifetime: self.lifetime,
            retransmit: self.retransmit,
            reordering_tolerance: self.reordering_tolerance,
            segment: self.segment.map(NonZeroU64::get),
            max_paths: self.max_paths,
            seed,
            count: self.last_number(),
            ..NumberedConfig::default()
        };
        let mut config = FetcherConfig::new(prefix, requests);
        config.server = packet.server(config.prefix.clone());
        config.ending = self.end.map(|end| Ending {
            count: end.packets.get(),
            repair: match end.repair {
                FlowRepair::Coded => Repair::Coded,
                FlowRepair::AtEnd => Repair::AtEnd,
                FlowRepair::Inline => Repair::Inline,
                FlowRepair::FromPeers => Repair::FromPeers,
            },
            chunk_size: end.chunk.get(),
            playout: end.playout,
        });
        config.delivery = match self.delivery {
            FlowDelivery::Numbered => Delivery::Numbered,
            FlowDelivery::AnyNext => Delivery::AnyNext,
        };
        config.reports_as = self.provider_quantile.map(|_| seed.to_be_bytes());
        Ok(config)
    }

    /// Checks the first and the last copy.
    ///
    /// # Errors
    /// The field at fault and what is wrong with it.
    pub(super) fn check(&self, topology: &Topology) -> Result<(), (&'static str, String)> {
        self.controller
            .get()
            .map_err(|problem| ("controller", problem))?;
        if self.delivery == FlowDelivery::AnyNext && self.provider_rate.is_none() {
            let problem = "any next Data need one, such as \"3 Mbit/s\"";
            return Err(("provider-rate", problem.to_owned()));
        }
        if let Some(quantile) = self.provider_quantile
            && !(0.0..=1.0).contains(&quantile)
        {
            let problem = format!("{quantile} is no quantile: expected 0 to 1");
            return Err(("provider-quantile", problem));
        }
        let is_name = |kind: &String| {
            let part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '+' | '.');
            !kind.is_empty() && kind.chars().all(part)
        };
        if self.kind.as_ref().is_some_and(|kind| !is_name(kind)) {
            let problem = "expected letters, digits and any of - _ + . as part of metrics' names";
            return Err(("kind", problem.to_owned()));
        }
        for number in [1, self.count] {
            for (field, text) in [("consumer", &self.consumer), ("producer", &self.producer)] {
                find(topology, &Self::named(text, number)).map_err(|problem| (field, problem))?;
            }
            let prefix = Self::named(&self.prefix, number).parse::<Name>();
            prefix.map_err(|error| ("prefix", error.to_string()))?;
        }
        Ok(())
    }
}

/// A content store that loses all it has, under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Eviction {
    /// When.
    #[serde(with = "namecast_units::duration")]
    pub at: Duration,
    /// Whose.
    pub node: String,
}

/// A change of a link under way, in both directions unless it says which.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Change {
    /// When.
    #[serde(with = "namecast_units::duration")]
    pub at: Duration,
    /// Up to how much later, drawn for each run.
    #[serde(default, with = "namecast_units::duration")]
    pub spread: Duration,
    /// The link, as `R1-R2` for both directions or `R1>R2` for one.
    pub link: String,
    /// Its rate from then on.
    #[serde(default)]
    pub rate: Option<Bitrate>,
    /// Its delay from then on.
    #[serde(default, with = "namecast_units::optional_duration")]
    pub delay: Option<Duration>,
    /// Whether it is up from then on.
    #[serde(default)]
    pub up: Option<bool>,
}
