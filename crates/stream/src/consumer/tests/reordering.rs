//! Pictures that are decoded in another order than they are shown in.

use super::*;

/// A key sample at the position of its number, and the pictures after it as x264 sends them by default: P₄ B₂ B₁ B₃ P₈ B₆ B₅ B₇.
const PYRAMID: [u64; 9] = [0, 4, 2, 1, 3, 8, 6, 5, 7];
/// Two pictures wait for others.
const DEPTH: u64 = 2;

/// The picture that is decoded at `position` of the group that begins with picture `first`.
fn picture(first: u64, position: u64) -> Encoded {
    let number = PYRAMID[usize::try_from(position).unwrap()];
    let at = |number: u64| WALL + PERIOD * u32::try_from(first + number).unwrap();
    let (decoded_at, presented_at) = (at(position), at(number + DEPTH));
    Encoded {
        class: if position == 0 {
            SampleClass::Key
        } else {
            SampleClass::Delta
        },
        sequence: if position == 0 { 5 } else { 99 + position },
        other_sequence: if position == 0 { 100 } else { 5 },
        position: first + position,
        captured_at: decoded_at,
        composition_offset: presented_at.since(decoded_at),
        encoded_at: decoded_at,
        payload: vec![1; 500].into(),
        seal: None,
    }
}

impl Desk {
    /// Gives the picture at `now`, published when it is decoded.
    fn give_picture(&mut self, now: Instant, picture: &Encoded) {
        let stamp = Stamp {
            published_at: picture.captured_at,
            asked: None,
        };
        let cut = self.segmenter.segment(picture, stamp, &signer(b"key"));
        self.give(now, &cut.unwrap().data[0]);
    }
}

/// Each arrives 60 ms after its publication and leaves 150 ms later, in decoding order. It is shown by its composition offset
/// after that: I₀ at 60 + 150 + 80, P₄ 4 periods after I₀, B₂ two. B₁ arrives 100 ms too late to be decoded in time, but not to
/// be shown.
#[test]
fn pictures_leave_in_decoding_order_and_are_shown_in_theirs() {
    let mut desk = Desk::started(Config::default());
    desk.asks();
    for position in 0..9 {
        let late = if position == 3 { 250 } else { 0 };
        let arrives_at = at(position * 40 + 60 + late);
        desk.consumer.handle_timeout(arrives_at);
        desk.give_picture(arrives_at, &picture(0, position));
    }
    for position in 0..9 {
        desk.consumer.handle_timeout(at(position * 40 + 210));
        desk.asks();
    }
    let positions: Vec<_> = desk.samples.iter().map(|it| it.header.position).collect();
    assert_eq!(positions, (0..9).collect::<Vec<_>>());
    let shown: Vec<_> = desk.samples.iter().map(|it| it.render_at).collect();
    let expected = PYRAMID.map(|number| at((number + DEPTH) * 40 + 210));
    assert_eq!(shown, expected);
}

/// A rung with B-frames takes over when its key sample is shown, 80 ms after it is decoded: until then the other one goes on. What
/// would be shown after it stays with the other one, whatever its position.
#[test]
fn rungs_change_over_by_the_time_of_presentation() {
    let mut desk = Desk::started(Config::default());
    desk.consumer.set_held(at(0), true);
    desk.give_picture(at(60), &picture(0, 0));
    let key = desk.consumer.ready_key(at(60), None).unwrap();
    assert_eq!(key.leaves_at, at(60 + 150 + 80));
    assert_eq!(key.presented_at, WALL + ms(80));

    // Picture 3 is the other rung's, at position 5 there: P₄ is shown after it, and all that follows needs P₄.
    let mut desk = Desk::started(Config::default());
    let stop = ReadyKey {
        position: 5,
        presented_at: WALL + ms(40 * (3 + DEPTH)),
        reorder_delay: ms(80),
        leaves_at: at(0),
    };
    desk.consumer.set_stop_before(Some(stop));
    for position in 0..5 {
        desk.give_picture(at(60 + position * 40), &picture(0, position));
    }
    desk.consumer.handle_timeout(at(2_000));
    desk.asks();
    let positions: Vec<_> = desk.samples.iter().map(|it| it.header.position).collect();
    assert_eq!(positions, [0]);
}
