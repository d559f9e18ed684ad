//! What of a scenario can be put between sockets, and as what.

use namecast_forward::StrategyKind;
use namecast_netem as netem;
use namecast_packet::MAX_PACKET_SIZE;
use namecast_sim::scenario::{Flow, FlowDelivery, NetworkScenario};
use namecast_sim::topology::{Dumbbell, NodeIndex, Spec};
use namecast_units::{Bitrate, ByteSize, Duration};

use super::super::super::laboratory::Refusal;
use super::super::world::{Hop, Layout};
use super::super::{refuse, rules};

/// Size of an Interest on the wire, as the simulator takes it for the round-trip time of an idle path.
const INTEREST: ByteSize = ByteSize::bytes(40);
/// An access link that is so many times as fast as the bottleneck has no queue worth speaking of.
const ACCESS_FACTOR: u64 = 10;

/// One flow over one emulated link.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) scenario: &'a NetworkScenario,
    pub(super) flow: &'a Flow,
    /// The link of the only hop is the bottleneck.
    pub(super) layout: Layout,
    /// The bottleneck's rate.
    pub(super) rate: Bitrate,
    /// Interest-to-Data time of an idle path.
    pub(super) base_rtt: Duration,
}

impl<'a> Stage<'a> {
    /// Where the fetcher runs.
    pub(super) const CONSUMER: NodeIndex = 0;
    /// Where the server runs.
    pub(super) const PRODUCER: NodeIndex = 1;

    /// What `scenario` is between sockets.
    ///
    /// # Errors
    /// The field of which sockets can make nothing.
    pub(super) fn new(scenario: &'a NetworkScenario) -> Result<Self, Refusal> {
        let Spec::Dumbbell(dumbbell) = &scenario.topology else {
            return refuse("topology.kind", "'dumbbell'");
        };
        let flow = the_flow(scenario, dumbbell)?;
        check_extras(scenario)?;
        let there = dumbbell.bottleneck_back.as_ref();
        let there = there.unwrap_or(&dumbbell.bottleneck);
        let Some(rate) = constant(&dumbbell.bottleneck) else {
            return refuse("topology.bottleneck.rate", "a constant rate");
        };
        if there.rate.is_some() && constant(there).is_none() {
            return refuse("topology.bottleneck-back.rate", "a constant rate");
        }
        for (field, link) in [
            ("bottleneck", &dumbbell.bottleneck),
            ("bottleneck-back", there),
        ] {
            if !link.schedule.is_empty() {
                return refuse(format!("topology.{field}.schedule"), "no schedule");
            }
        }
        check_access("producer-access", &dumbbell.producer_access, rate)?;
        check_access("consumer-access", &dumbbell.consumer_access, rate)?;
        let data_size = ByteSize::bytes(u64::from(scenario.packet.wire));
        let around = |link: &netem::Config, size| {
            let access = [&dumbbell.producer_access, &dumbbell.consumer_access];
            let access: Duration = access.iter().map(|access| crossing(access, size)).sum();
            netem::Config {
                delay: link.delay + access,
                ..link.clone()
            }
        };
        let hop = Hop {
            from: Self::CONSUMER,
            to: Self::PRODUCER,
            cost: 1,
            interests: around(there, INTEREST),
            data: around(&dumbbell.bottleneck, data_size),
        };
        let prefix = flow.prefix.replace("{}", "1");
        let Ok(prefix) = prefix.parse() else {
            return refuse("flows.0.prefix", "a name");
        };
        Ok(Self {
            scenario,
            flow,
            rate,
            base_rtt: crossing(&hop.interests, INTEREST) + crossing(&hop.data, data_size),
            layout: Layout {
                caches: vec![scenario.cache; 2],
                strategy: StrategyKind::default(),
                rules: rules(&scenario.hops)?,
                hops: vec![hop],
                prefixes: vec![prefix],
                duration: scenario.duration,
            },
        })
    }
}

/// The rate, if it is constant.
fn constant(link: &netem::Config) -> Option<Bitrate> {
    link.rate.as_ref().and_then(netem::Rate::constant)
}

/// Delay and serialisation.
fn crossing(link: &netem::Config, size: ByteSize) -> Duration {
    let size = size + link.headers;
    link.delay + constant(link).map_or(Duration::ZERO, |rate| size / rate)
}

/// The only flow, if it goes the way that there is.
fn the_flow<'a>(scenario: &'a NetworkScenario, dumbbell: &Dumbbell) -> Result<&'a Flow, Refusal> {
    if dumbbell.flows != 1 {
        return refuse("topology.flows", "1: there is one relay with one client");
    }
    if scenario
        .bottleneck
        .split('>')
        .map(str::trim)
        .ne(["R1", "R2"])
    {
        return refuse("bottleneck", "'R1>R2', the way of Data");
    }
    let [flow] = scenario.flows.as_slice() else {
        return refuse("flows", "one flow");
    };
    if flow.count != 1 {
        return refuse("flows.0.count", "1");
    }
    if flow.delivery != FlowDelivery::Numbered {
        return refuse("flows.0.delivery", "'numbered'");
    }
    let ends = [
        ("flows.0.consumer", &flow.consumer, "C1"),
        ("flows.0.producer", &flow.producer, "P1"),
    ];
    for (field, name, expected) in ends {
        if name.replace("{}", "1") != expected {
            return refuse(field, &format!("'{expected}'"));
        }
    }
    Ok(flow)
}

/// What only the simulator does.
fn check_extras(scenario: &NetworkScenario) -> Result<(), Refusal> {
    let extras = [
        ("changes", !scenario.changes.is_empty()),
        ("evictions", !scenario.evictions.is_empty()),
        ("convergence", scenario.convergence.is_some()),
        ("probes", !scenario.probes.is_empty()),
        ("series", scenario.series),
    ];
    if let Some((field, _)) = extras.iter().find(|(_, is_there)| *is_there) {
        return refuse(*field, "none: only the simulator has them");
    }
    if scenario.packet.wire as usize > MAX_PACKET_SIZE {
        return refuse("packet.wire", &format!("at most {MAX_PACKET_SIZE} octets"));
    }
    Ok(())
}

/// An access link becomes part of the emulated link's delay, so it must be nothing else.
fn check_access(field: &str, access: &netem::Config, bottleneck: Bitrate) -> Result<(), Refusal> {
    let plain = netem::Config {
        rate: access.rate.clone(),
        delay: access.delay,
        queue: access.queue,
        ..netem::Config::default()
    };
    let least = bottleneck.as_bps().saturating_mul(ACCESS_FACTOR);
    let is_fast = match &access.rate {
        Some(rate) => (rate.constant()).is_some_and(|rate| rate.as_bps() >= least),
        None => true,
    };
    if *access != plain || !is_fast {
        let expected = "rate and delay only, the rate at least ten times the bottleneck's";
        return refuse(format!("topology.{field}"), expected);
    }
    Ok(())
}
