//! Owners behind one bottleneck and behind two.

use super::*;

/// Two owners. A packet is published for each every 10 ms, and arrives with the delay of its owner.
struct Two {
    uplinks: Uplinks,
    owners: [Clients; 2],
    clients: [ClientId; 2],
    /// Milliseconds, and wants of each so far.
    now: u64,
    count: u64,
}

impl Two {
    fn new() -> Self {
        let mut uplinks = Uplinks::new(UplinkConfig::default(), Control::Live);
        let mut owners = [(); 2].map(|()| uplinks.new_clients());
        let clients = owners.each_mut().map(Clients::draw);
        Self {
            uplinks,
            owners,
            clients,
            now: 1_000,
            count: 0,
        }
    }

    /// Goes on until `until`. Each packet is requested 200 ms ahead, and each is answered, whatever uplink its owner is on.
    fn run(&mut self, until: u64, delays: [fn(u64) -> u64; 2]) {
        let mut coming = Vec::new();
        while self.now < until {
            for (owner, delay) in delays.into_iter().enumerate() {
                let token = self.clients[owner].token(token(0, self.count, 0).segment);
                let published = self.now + 200;
                let want = Want {
                    available_at: Some(at(published)),
                    ..want(token, Kind::Sound)
                };
                self.uplinks.carry_out(at(self.now), Request::Want(want));
                coming.push((published + delay(published), token));
            }
            self.count += 1;
            for _ in 0..10 {
                self.uplinks.handle_timeout(at(self.now));
                let arrived = coming.extract_if(.., |(at, _)| *at <= self.now);
                for (_, token) in arrived.collect::<Vec<_>>() {
                    let received = Received::new(SIZE, false);
                    self.uplinks
                        .handle_data(at(self.now), &name(token), &received);
                    let answer = self.uplinks.poll_answer();
                    assert_eq!(answer.map(|it| it.token), Some(token));
                    assert_eq!(self.uplinks.poll_answer(), None);
                }
                while self.uplinks.poll_event().is_some() {}
                self.now += 1;
            }
        }
    }
}

/// All of the second one's Data is 60 ms late, none of the first one's: after the 200 ms ahead and three looks within 300 ms more they
/// are apart. Later one queue of up to 36 ms delays both, and they share an uplink again after the pause of 10 s.
#[test]
fn owners_behind_two_bottlenecks_have_two_uplinks() {
    let mut two = Two::new();
    two.run(1_300, [|_| 0, |_| 60]);
    assert_eq!(two.uplinks.count(), 1);
    two.run(2_100, [|_| 0, |_| 60]);
    let places = |two: &Two| two.owners.each_ref().map(|owner| two.uplinks.place(owner));
    assert_eq!((two.uplinks.count(), places(&two)), (2, [0, 1]));
    let queue = |millis| millis / 10 % 10 * 4;
    two.run(10_900, [queue, queue]);
    assert_eq!(two.uplinks.count(), 2);
    two.run(13_000, [queue, queue]);
    assert_eq!((two.uplinks.count(), places(&two)), (1, [0, 0]));
}

/// The same queue from the beginning; and two queues of their own that come and go.
#[test]
fn owners_of_whom_nothing_shows_share_an_uplink() {
    let mut two = Two::new();
    let queue = |millis| millis / 10 % 10 * 4;
    two.run(6_000, [queue, queue]);
    two.run(12_000, [queue, |millis| (millis / 10 + 5) % 10 * 4]);
    assert_eq!(two.uplinks.count(), 1);
}

/// One that ends takes its uplink with it, and not the one that all begin on.
#[test]
fn an_uplink_ends_with_its_last_owner() {
    let mut two = Two::new();
    two.run(2_100, [|_| 0, |_| 60]);
    let [first, second] = &two.owners;
    two.uplinks.end(first);
    assert_eq!(two.uplinks.count(), 2);
    two.uplinks.end(second);
    assert_eq!(two.uplinks.count(), 1);
}

/// The second one ends just as it stands apart, and what it has requested still comes: nobody would end an uplink of its own.
#[test]
fn an_owner_that_has_ended_gets_no_uplink() {
    let mut two = Two::new();
    two.run(1_690, [|_| 0, |_| 60]);
    let [_, second] = &two.owners;
    two.uplinks.end(second);
    two.run(3_000, [|_| 0, |_| 60]);
    assert_eq!(two.uplinks.count(), 1);
}

/// The weight moves with its owner, to an uplink of its own and back.
#[test]
fn a_weight_moves_with_its_owner() {
    let mut two = Two::new();
    let [light, heavy] = two.clients;
    let now = at(two.now);
    (two.uplinks).carry_out(now, Request::Weigh(heavy, Weight::new(8)));
    two.run(2_100, [|_| 0, |_| 60]);
    let queue = |millis| millis / 10 % 10 * 4;
    assert_eq!(two.uplinks.count(), 2);
    two.run(13_000, [queue, queue]);
    assert_eq!(two.uplinks.count(), 1);
    let of = |client: ClientId| client.token(token(7, 7, 7).segment);
    let order = |two: &mut Two| {
        let now = at(two.now);
        for client in [light, heavy] {
            let wanted = want(of(client), Kind::Delta);
            two.uplinks.carry_out(now, Request::Want(wanted));
        }
        two.uplinks.handle_timeout(now);
        let events = core::iter::from_fn(|| two.uplinks.poll_event());
        let of_sent = |(_, event)| match event {
            Event::Sent { token, .. } => Some(token.client),
            _ => None,
        };
        events.filter_map(of_sent).collect::<Vec<_>>()
    };
    assert_eq!(order(&mut two), [heavy, light]);
}
