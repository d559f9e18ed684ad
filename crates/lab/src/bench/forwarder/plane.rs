//! What the forwarding plane alone takes for an exchange, in processor time: its tables, without sockets.

use bytes::Bytes;
use namecast_forward::{Config, ExtensionFields, FaceConfig, FaceId, Forwarder, Piggyback};
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{Component, Data, Interest, LpPacket, Name, Nonce, piggyback};
use namecast_units::{Duration, Instant};

use super::super::measure::Usage;
use super::median;

/// Exchanges of one round, rounds, and Interests that are pending at a time.
const EXCHANGES: u32 = 10_000;
const ROUNDS: usize = 15;
const WINDOW: u32 = 250;
/// Between two frames.
const STEP: Duration = Duration::from_micros(3);

/// Microseconds for an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planes {
    pub(super) plain_us: f64,
    pub(super) bundled_us: f64,
    /// For a look-up in the FIB.
    pub(super) look_up_us: f64,
}

/// How an exchange goes through the plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Plain,
    Bundled,
    /// With a look-up for each Interest, as a longer prefix might be for part of the flow.
    LookedUp,
}

/// Has planes take turns, with Data of so many octets.
pub(super) fn measure(payload: usize) -> anyhow::Result<Planes> {
    let mut turns = [(); 3].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        let all = [How::Plain, How::Bundled, How::LookedUp];
        for (costs, how) in turns.iter_mut().zip(all) {
            costs.push(cost_us(how, payload)?);
        }
    }
    let pairs = turns[1].iter().zip(&turns[2]);
    let look_up_us = median(pairs.map(|(followed, looked_up)| looked_up - followed));
    let [plain_us, bundled_us, _] = turns.map(|costs| median(costs.into_iter()));
    Ok(Planes {
        plain_us,
        bundled_us,
        look_up_us: look_up_us.max(0.0),
    })
}

fn cost_us(how: How, payload: usize) -> anyhow::Result<f64> {
    let mut node = Forwarder::new(Config::default());
    if how != How::Plain {
        node.install(Box::<Piggyback>::default());
    }
    let face = FaceConfig {
        extension_fields: ExtensionFields::On,
        ..FaceConfig::default()
    };
    let faces = [(); 2].map(|()| node.add_face(face.clone()).expect("there is room"));
    let names: [Name; 2] =
        ["/bench/0/call", "/bench/1/call"].map(|uri| uri.parse().expect("a valid name"));
    let mut add = |name: Name, face| node.add_route(name, face, 0).expect("there is room");
    for (name, face) in names.iter().zip(faces) {
        add(name.prefix(2), face);
    }
    if how == How::LookedUp {
        add("/other/1/2/3/4".parse().expect("a valid name"), faces[0]);
    }
    let interests = names
        .clone()
        .map(|name| Interest::builder(name).template(Component::SEQUENCE));
    let data = Data::builder(Name::root()).content(vec![7; payload]);
    let data = data.template(NullSigner.info(), 32);
    let asked = |side: usize, number: u32| {
        let number = (1 + side as u64) << 32 | u64::from(number);
        interests[side].build(number, Nonce::from(number as u32))
    };
    let first = (0..WINDOW).map(|number| asked(0, number).wire().clone());
    let mut now = Instant::ZERO;
    forward(&mut node, &mut now, faces[1], first.collect())?;
    let (mut numbers, mut side) = ([0, 0], 0);
    let mut taken = Duration::ZERO;
    for _ in (0..EXCHANGES).step_by(WINDOW as usize) {
        let (start, next) = (numbers[side], numbers[1 - side]);
        numbers[side] += WINDOW;
        let frames = (0..WINDOW).flat_map(|more| {
            let number = (1 + side as u64) << 32 | u64::from(start + more);
            let answer = data.build(names[side].builder().sequence(number).finish());
            let next = asked(1 - side, next + more);
            match how {
                How::Plain => vec![answer.wire().clone(), next.wire().clone()],
                _ => {
                    let value = piggyback::encode(&next, answer.name());
                    vec![LpPacket::bundle(answer.wire(), &value)]
                }
            }
        });
        let frames = frames.collect();
        taken += forward(&mut node, &mut now, faces[side], frames)?;
        side = 1 - side;
    }
    Ok(taken.as_secs_f64() * 1e6 / f64::from(EXCHANGES))
}

fn forward(
    node: &mut Forwarder,
    now: &mut Instant,
    from: FaceId,
    frames: Vec<Bytes>,
) -> anyhow::Result<Duration> {
    let start = Usage::now()?;
    for frame in frames {
        *now += STEP;
        node.handle_frame(*now, from, frame);
        while node.poll_output().is_some() {}
    }
    Ok(Usage::now()?.since(start))
}
